"""Simulate participants on a server: ``python -m hushbid.server.bots URL``.

With an analyst's credentials the bots make, open, decide, release and pay a campaign of their own. With --links they
play the participants of a campaign that others conduct, and wait for its phases. In the end every bot compares its
receipt with what the server acknowledged. The result is printed as JSON. The exit status is 1 if anything was lost,
doubled or changed, 2 if a call is not allowed, and 7 if the server cannot be reached.
"""

import json
import math
import os
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Sequence
from getpass import getpass
from pathlib import Path
from typing import Any

from hushbid.client import AnalystClient
from hushbid.client.files import stated_in
from hushbid.client.views import split_link
from hushbid.common.documents import plain
from hushbid.errors import HushbidError, InputError, ServerFailed
from hushbid.priors import Prior, parse_prior
from hushbid.server.bots.bot import STRATEGIES
from hushbid.server.bots.campaigns import PATIENCE, SETTINGS, Played, play_campaign, play_links
from hushbid.server.model.settings import CampaignSettings


def main(arguments: Sequence[str] | None = None) -> int:
    """Let bots play, print what came of it, and return the exit status."""
    given = _parser().parse_args(arguments)
    try:
        played = _played(given)
    except (HushbidError, OSError, UnicodeDecodeError) as problem:
        sys.stderr.write(f"Error: {problem}\n")
        return 7 if isinstance(problem, ServerFailed) else 2
    facts = played.to_dict()
    sys.stdout.write(json.dumps(plain(facts), indent=2, allow_nan=False) + "\n")
    sys.stderr.writelines(f"PROBLEM  {found}.\n" for found in facts["problems"])
    return 0 if played.ok else 1


def _parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="python -m hushbid.server.bots", description=__doc__, formatter_class=RawDescriptionHelpFormatter
    )
    parser.add_argument("url")
    parser.add_argument("--n", type=_number(int, 1), default=200, help="how many bots (200)")
    parser.add_argument("--strategy", choices=STRATEGIES, default="mixed", help="how they behave (mixed)")
    parser.add_argument("--setting", choices=["central", "local"], help="of the campaign they make (central)")
    parser.add_argument("--single-visit", action="store_true", help="their campaign asks for price and answers at once")
    parser.add_argument("--stay-away", type=_number(float, 0, 1), default=0.0, help="share that comes once only (0)")
    parser.add_argument("--campaign", type=Path, help="file with the settings of the campaign they make")
    parser.add_argument("--identities", action="store_true", help="external ids, as a server with a privacy cap needs")
    parser.add_argument("--token-file", type=Path, help="an analyst's API token (HUSHBID_TOKEN)")
    parser.add_argument("--user", help="an analyst's name; the password is asked for")
    parser.add_argument("--links", type=Path, help="play the campaign of these links instead, one a line")
    parser.add_argument("--prior", help="with --links: costs, such as uniform:1,3")
    parser.add_argument("--connections", type=_number(int, 1, 1000), default=32, help="at once (32)")
    parser.add_argument("--seed", type=_number(int, 0), default=1, help="of the bots' characters (1)")
    return parser


def _number(kind: type[int] | type[float], least: float, most: float = math.inf) -> Callable[[str], float]:
    """Return what reads a number within limits."""

    def number(text: str) -> float:
        if not least <= (found := kind(text)) <= most:
            raise ArgumentTypeError(f"must be from {least:g} to {most:g}, got {text}")
        return found

    return number


def _played(given: Namespace) -> Played:
    how: dict[str, Any] = {name: getattr(given, name) for name in ("strategy", "seed", "connections", "stay_away")}
    if sys.stderr.isatty():
        how["progress"] = lambda phase: sys.stderr.write(f"  {phase} ...\n")
    if given.links is not None:
        prior = None if given.prior is None else parse_prior(given.prior)
        if prior is not None and not isinstance(prior, Prior):
            raise InputError("--prior must be one prior, such as uniform:1,3.")
        tokens = _tokens(given.links, given.url)
        _reach(given.url)
        return play_links(given.url, tokens, prior=prior, **how)
    settings = SETTINGS if given.campaign is None else stated_in(given.campaign)
    changes = {} if given.setting is None else {"market.setting": given.setting}
    changes |= {"server.single_visit": True} if given.single_visit else {}
    settings = CampaignSettings.read(settings).changed(changes).to_dict()
    with _analyst(given) as analyst:
        _reach(given.url)
        return play_campaign(analyst, settings, n=given.n, identities=given.identities, **how)


def _reach(url: str) -> None:
    """Refuse a server that is not there at all without the bots' patience."""
    with AnalystClient(url, attempts=2) as client:
        client.keys()


def _analyst(given: Namespace) -> AnalystClient:
    """Return an analyst's client; secrets come from a file, the environment or the keyboard, never from the command."""
    if given.user is not None:
        _reach(given.url)
        client = AnalystClient(given.url, attempts=PATIENCE)
        client.log_in(given.user, getpass(f"Password of {given.user}: ", sys.stderr))
        return client
    token = os.environ.get("HUSHBID_TOKEN") if given.token_file is None else given.token_file.read_text("utf-8").strip()
    if not token:
        raise InputError("Give an analyst's token with --token-file or HUSHBID_TOKEN, a name with --user, or --links.")
    return AnalystClient(given.url, token=token, attempts=PATIENCE)


def _tokens(file: Path, url: str) -> list[str]:
    """Return the secrets in a file of links, each to this server; a secret alone is fine too."""
    tokens = []
    for row, line in enumerate(file.read_text("utf-8").split()):
        home, token = split_link(line) if "#" in line else (url.rstrip("/"), line)
        if home != url.rstrip("/"):
            raise InputError(f"The link in row {row} of {file} leads to another server than {url}.")
        tokens.append(token)
    return tokens


if __name__ == "__main__":
    sys.exit(main())
