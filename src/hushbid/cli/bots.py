"""``python -m hushbid.cli.bots``: simulated participants play a whole campaign on a server."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hushbid.cli.common import Number, OneFile, Steps, Whole, tell
from hushbid.cli.common import command as make_command
from hushbid.common.numbers import count, figure, fixed, table
from hushbid.errors import InputError

if TYPE_CHECKING:
    from hushbid.server.bot_campaigns import Played

STRATEGIES = ("truthful", "overstate", "understate", "drop-out", "decline", "withdraw", "late", "mixed")
_PHASES = 6


@make_command("bots")
@click.argument("url")
@click.option("--n", "n", type=Whole(min=1), default=200, show_default=True, help="How many bots.")
@click.option("--strategy", type=click.Choice(STRATEGIES), default="mixed", show_default=True, help="How they behave.")
@click.option(
    "--setting", type=click.Choice(["central", "local"]), help="Of the campaign they make.  [default: central]"
)
@click.option("--single-visit", is_flag=True, help="The campaign they make asks for price and answers together.")
@click.option("--stay-away", type=Number(0, 1), default=0.0, show_default=True, help="Share that comes once only.")
@click.option("--campaign", type=OneFile(), help="Settings of the campaign they make, as JSON.")
@click.option("--identities", is_flag=True, help="Give bots external ids, as a server with a privacy cap needs them.")
@click.option("--token-file", type=OneFile(), help="An analyst's API token.  [default: HUSHBID_TOKEN]")
@click.option("--user", metavar="NAME", help="An analyst's name; the password is asked for.")
@click.option("--links", type=OneFile(), help="Play the campaign of these links instead, one a line.")
@click.option("--prior", metavar="PRIOR", help="With --links: costs, such as uniform:1,3.")
@click.option("--connections", type=Whole(1, 1000), default=32, show_default=True, help="At once.")
@click.option("--seed", type=Whole(min=0), default=1, show_default=True, help="Of the bots' characters.")
def command(url: str, as_json: bool, **given: Any) -> None:
    """Simulate participants on a server.

    With an analyst's credentials the bots make, open, decide, release and pay a campaign of their own. With --links
    they play the participants of a campaign that others conduct, and wait for its phases. In the end every bot
    compares its receipt with what the server acknowledged; the exit status is 1 if anything was lost, doubled or
    changed.
    """
    with Steps(_PHASES) as step:
        step("inviting")
        played = _played(url, given, step)
    tell(played.to_dict(), _text(played), as_json=as_json)
    if not played.ok:
        click.get_current_context().exit(1)


def _played(url: str, given: dict[str, Any], step: Steps) -> "Played":
    from hushbid.priors import Prior, parse_prior
    from hushbid.server.bot_campaigns import play_campaign, play_links

    common = {name: given[name] for name in ("strategy", "seed", "connections", "stay_away")}
    if given["links"] is not None:
        prior = None if given["prior"] is None else parse_prior(given["prior"])
        if prior is not None and not isinstance(prior, Prior):
            raise InputError("--prior must be one prior, such as uniform:1,3.")
        tokens = _tokens(given["links"], url)
        _reach(url)
        return play_links(url, tokens, prior=prior, progress=step, **common)
    settings = _settings(given["campaign"], given["setting"])
    if given["single_visit"]:
        settings["server"] = {**settings.get("server", {}), "single_visit": True}
    with _analyst(url, given["token_file"], given["user"]) as analyst:
        _reach(url)
        more = {name: given[name] for name in ("n", "identities")}
        return play_campaign(analyst, settings, progress=step, **more, **common)


def _reach(url: str) -> None:
    """A server that is not there at all is not worth the bots' patience."""
    from hushbid.client import AnalystClient

    with AnalystClient(url, attempts=2) as anybody:
        anybody.keys()


def _analyst(url: str, token_file: Path | None, user: str | None) -> Any:
    """An analyst's client; secrets come from a file, the environment or the keyboard, never from the command line."""
    from hushbid.client import AnalystClient
    from hushbid.server.bot_campaigns import PATIENCE

    if user is not None:
        _reach(url)
        client = AnalystClient(url, attempts=PATIENCE)
        client.log_in(user, click.prompt(f"Password of {user}", hide_input=True, err=True))
        return client
    token = os.environ.get("HUSHBID_TOKEN") if token_file is None else token_file.read_text(encoding="utf-8").strip()
    if not token:
        raise InputError("Give an analyst's token with --token-file or HUSHBID_TOKEN, a name with --user, or --links.")
    return AnalystClient(url, token=token, attempts=PATIENCE)


def _settings(file: Path | None, setting: str | None) -> dict[str, Any]:
    from hushbid.client.files import stated_in
    from hushbid.server.bot_campaigns import SETTINGS
    from hushbid.server.model.settings import CampaignSettings

    found = SETTINGS if file is None else stated_in(file)
    if setting is not None:
        found = {**found, "market": {**found.get("market", {}), "setting": setting}}
    return CampaignSettings.read(found).to_dict()


def _estimates(release: dict[str, Any]) -> list[str]:
    """What was found, in a line for each question."""
    if "answers" not in release:
        return [f"Estimate {figure(release['estimate'])}."]
    lines = []
    for one in release["answers"]:
        found = one["shares"] if "shares" in one else {"": one["estimate"]}
        shown = ", ".join(f"{name} {figure(share)}".strip() for name, share in found.items())
        lines.append(f"Estimate of {one['question']['name']}: {shown}.")
    return lines


def _tokens(file: Path, url: str) -> list[str]:
    """The secrets in a file of links, each to this server; a secret alone is fine too."""
    from hushbid.client.views import split_link

    tokens = []
    for row, line in enumerate(file.read_text(encoding="utf-8").split()):
        if "#" not in line:
            tokens.append(line)
            continue
        home, token = split_link(line)
        if home != url.rstrip("/"):
            raise InputError(f"The link in row {row} of {file} leads to another server than {url}.")
        tokens.append(token)
    return tokens


def _text(played: "Played") -> str:
    facts = played.to_dict()
    rows: list[tuple[str, ...]] = [("strategy", "bots", "delivered", "mean gain")]
    rows += [
        (name, count(one["bots"]), count(one["delivered"]), fixed(one["mean_gain"], 3))
        for name, one in facts["strategies"].items()
    ]
    speed: list[tuple[str, ...]] = [("submission", "count", "median ms", "99th percentile ms")]
    speed += [
        (kind, count(one["count"]), fixed(one["median_ms"], 1), fixed(one["p99_ms"], 1))
        for kind, one in facts["submissions"].items()
    ]
    lines = [
        f"Campaign {played.campaign} is {played.state} after {fixed(sum(played.seconds.values()), 1)} s.",
        table(rows),
    ]
    lines += ["", table(speed), ""]
    seen = facts["visits"]
    lines.append(
        f"{seen['visits_per_bot']:.2f} visits and {seen['requests_per_bot']:.2f} requests per bot; of"
        f" {seen['bought_from']} bought from {seen['dropped_out']} dropped out."
    )
    if played.estimate is not None:
        lines += _estimates(played.estimate)
    lines.append(f"{count(facts['receipts'])} receipts were compared with what the server acknowledged.")
    lines += [f"PROBLEM  {problem}." for problem in facts["problems"]]
    return "\n".join(lines if facts["problems"] else [*lines, "Nothing was lost, doubled or changed."])


if __name__ == "__main__":
    from hushbid.cli import main

    main(["bots", *sys.argv[1:]], prog_name="python -m hushbid.cli")
