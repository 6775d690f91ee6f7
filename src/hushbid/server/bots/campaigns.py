"""Bots that play whole campaigns: as a demonstration, as a test and as load.

`play_campaign` conducts a campaign with an analyst's credentials, `play_links` plays the participants of another
analyst's. Bots take turns in threads. At the end every bot compares its receipt with what the server acknowledged:
nothing may be lost, doubled or changed. `hushbid.server.bots.bot` says what a single bot does.
"""

import math
import threading
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

import numpy as np

from hushbid.client import AnalystClient, MessageMemory, ParticipantClient, Participation, Transport
from hushbid.client.views import OVER
from hushbid.errors import HushbidError, InputError, ServerFailed
from hushbid.priors import Prior, Uniform
from hushbid.server.bots.bot import MIXTURE, Bot, Person, Tally, people
from hushbid.server.model.settings import CampaignSettings
from hushbid.verification.receipts import verify_log

_POLL_SECONDS = 0.5
PATIENCE = 14
"""How often bots ask a server that does not answer: half a minute in all."""


def campaign_of(name: str) -> dict[str, Any]:
    """Return what one of our own campaign files states: bots, commute, doctor, rent or sleep."""
    return tomllib.loads(files("hushbid.server.bots").joinpath(f"{name}.toml").read_text(encoding="utf-8"))


SETTINGS = campaign_of("bots")
"""What bots play unless they are given a campaign."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What a campaign with bots came to."""

    campaign: str
    """Its identifier."""

    state: str
    """Its last state."""

    bots: tuple[Bot, ...] = field(repr=False)
    """Everybody, as they ended."""

    tally: Tally = field(repr=False)
    """What happened, counted."""

    seconds: dict[str, float]
    """How long bidding, deciding, delivering, releasing and reading receipts took."""

    estimate: dict[str, Any] | None
    """What was released, if the bots may see it."""

    @property
    def ok(self) -> bool:
        """Whether nothing happened that should not have."""
        return not self.tally.problems

    def visits(self) -> dict[str, float]:
        """What taking part cost people, and who of those bought from dropped out; reading receipts is not counted."""
        bodies = [bot.receipt.body for bot in self.bots if bot.receipt is not None]
        asked = sum(many for phase, many in self.tally.requests.items() if phase != "receipts")
        return {
            "visits_per_bot": sum(bot.visits for bot in self.bots) / len(self.bots),
            "requests_per_bot": asked / len(self.bots),
            "bought_from": sum(bool(body.promised) for body in bodies),
            "dropped_out": sum(body.state == "dropped" for body in bodies),
        }

    def to_dict(self) -> dict[str, Any]:
        """The result as plain values."""
        groups = {name: [bot for bot in self.bots if bot.person.strategy == name] for name in MIXTURE}
        return {
            "ok": self.ok,
            "campaign": self.campaign,
            "state": self.state,
            "bots": len(self.bots),
            "strategies": {
                name: {
                    "bots": len(group),
                    "delivered": sum(bot.delivered for bot in group),
                    "mean_gain": float(np.mean([bot.gain for bot in group])),
                }
                for name, group in groups.items()
                if group
            },
            "submissions": {
                kind: {
                    "count": len(times),
                    "median_ms": 1e3 * float(np.median(times)),
                    "p99_ms": 1e3 * float(np.quantile(times, 0.99)),
                }
                for kind, times in sorted(self.tally.seconds.items())
            },
            "visits": self.visits(),
            "refused_as_expected": dict(self.tally.refusals),
            "receipts": sum(self.tally.roots.values()),
            "seconds": self.seconds,
            "estimate": self.estimate,
            "problems": sorted(set(self.tally.problems)),
        }


def play_campaign(
    analyst: AnalystClient,
    settings: Mapping[str, Any],
    *,
    n: int,
    strategy: str = "mixed",
    seed: int = 1,
    connections: int = 32,
    identities: bool = False,
    stay_away: float = 0.0,
    progress: Callable[[str], None] = lambda phase: None,
    network: Any = None,
) -> Played:
    """Draft a campaign, let bots play it, release and pay; ``identities`` gives bots external ids, ``stay_away`` is the
    share of those who do not come a second time.

    ``network`` replaces the real one, as for `hushbid.client.Transport`.
    """
    rng = np.random.default_rng(seed)
    stated = CampaignSettings.read(settings)
    groups, strata, asked = _groups(stated, n), list(stated.weights), stated.asked or stated.bounds
    campaign = analyst.draft(settings).id
    if identities or strata or groups[0][0] is not None:  # with ids, groups or strata people are named, else counted
        named = [
            {"id": f"bot-{k}", "group": group, "stratum": strata[k % len(strata)] if strata else None}
            for k, (group, _) in enumerate(groups)
        ]
        invitations = analyst.invite(campaign, people=named)
    else:
        invitations = analyst.invite(campaign, count=n)
    cast = people(strategy, [prior for _, prior in groups], asked, rng=rng, stay_away=stay_away)
    with _Stage(analyst.url, progress, connections, network) as stage:
        bots = stage.cast([invitation.token for invitation in invitations], cast)
        analyst.open(campaign)
        stage.act("bidding", bots, Bot.bid)
        with stage.timed("deciding"):
            analyst.close_bidding(campaign)
            found = analyst.wait(campaign)
        if found.state == "delivering":
            stage.act("delivering", bots, Bot.deliver)
            with stage.timed("releasing"):
                analyst.release(campaign, accept_nobody=True)
                found = analyst.wait(campaign)
        stage.act("receipts", bots, Bot.finish)
    analyst.mark_paid(campaign)
    stage.tally.problems += _audit(analyst, campaign, stage.tally)
    estimate = analyst.estimate(campaign) if found.state in ("released", "closed") else None
    return Played(
        campaign=campaign, state=found.state, bots=bots, tally=stage.tally, seconds=stage.seconds, estimate=estimate
    )


def play_links(
    url: str,
    tokens: Sequence[str],
    *,
    strategy: str = "mixed",
    prior: Prior | None = None,
    seed: int = 1,
    connections: int = 32,
    patience: float = 3600.0,
    stay_away: float = 0.0,
    progress: Callable[[str], None] = lambda phase: None,
    sleep: Callable[[float], object] = time.sleep,
    network: Any = None,
) -> Played:
    """Play somebody else's campaign, given links to it; the bots wait for the analyst, for so many seconds at most."""
    if not tokens:
        raise InputError("There must be at least one link.")
    with _Stage(url, progress, connections, network) as stage:
        first = stage.client(tokens[0])
        # what the first bot sees holds for all: one campaign, one state
        view = first.participation()
        asked = view.questions or view.bounds or ()
        rng = np.random.default_rng(seed)
        cast = people(strategy, [prior or _guess(view)] * len(tokens), asked, rng=rng, stay_away=stay_away)
        bots = stage.cast(tokens, cast)

        def awaited(states: frozenset[str]) -> Participation:
            """Ask now and then, through one bot, how far the campaign is."""
            for _ in range(math.ceil(patience / _POLL_SECONDS) + 1):
                found = first.participation()
                if found.campaign_state in states:
                    return found
                sleep(_POLL_SECONDS)
            raise ServerFailed(f"The campaign is still {found.campaign_state}; the bots have waited long enough.")

        if view.campaign_state == "bidding":
            stage.act("bidding", bots, Bot.bid)
        with stage.timed("deciding"):
            view = awaited(frozenset({"delivering", *OVER}))
        if view.campaign_state == "delivering":
            stage.act("delivering", bots, Bot.deliver)
            with stage.timed("releasing"):
                view = awaited(OVER)
        stage.act("receipts", bots, Bot.finish)
    estimate = view.content.get("estimate")
    return Played(
        campaign=view.campaign,
        state=view.campaign_state,
        bots=bots,
        tally=stage.tally,
        seconds=stage.seconds,
        estimate=estimate if isinstance(estimate, dict) else None,
    )


class _Stage:
    """Runs one phase after the other, so many bots at once, and notes how long each took."""

    def __init__(self, url: str, progress: Callable[[str], None], at_once: int, network: Any) -> None:
        self.tally = Tally()
        self.seconds: dict[str, float] = {}
        self._progress = progress
        self._memory = MessageMemory()
        self._stopped = threading.Event()
        # pauses end when the stage is left, so that an interrupt need not wait for patient bots
        self._transport = Transport(url, attempts=PATIENCE, sleep=self._stopped.wait, network=network)
        self._turns = ThreadPoolExecutor(at_once, thread_name_prefix="bot")

    def client(self, token: str) -> ParticipantClient:
        """Return a participant's client, over shared connections."""
        return ParticipantClient(self._transport.url, token, keeper=self._memory, transport=self._transport)

    def cast(self, tokens: Sequence[str], persons: Sequence[Person]) -> tuple[Bot, ...]:
        """Give every person a link."""
        return tuple(Bot(person, self.client(token), self.tally) for person, token in zip(persons, tokens, strict=True))

    def act(self, phase: str, bots: Sequence[Bot], what: Callable[[Bot], None]) -> None:
        """Let every bot do something; one that fails with a refusal is a problem, and the others go on."""

        def turn(bot: Bot) -> None:
            try:
                what(bot)
            except HushbidError as problem:
                self.tally.problems.append(f"A {bot.person.strategy} bot failed while {phase}: {problem}")

        before = self._transport.requests
        with self.timed(phase):
            for done in as_completed([self._turns.submit(turn, bot) for bot in bots]):
                done.result()
        self.tally.requests[phase] = self._transport.requests - before

    @contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        """Note how long something takes."""
        self._progress(phase)
        began = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[phase] = time.perf_counter() - began

    def __enter__(self) -> "_Stage":
        return self

    def __exit__(self, *problem: object) -> None:
        """End: bots that wait for their turn never get it, and those that ask fail at their next request."""
        self._stopped.set()
        self._turns.shutdown(wait=False, cancel_futures=True)
        self._transport.close()


def _audit(analyst: AnalystClient, campaign: str, tally: Tally) -> list[str]:
    """What the whole campaign must show: one root on all receipts, the published one, and a log that holds."""
    problems = []
    root = analyst.public(campaign).get("root")
    fingerprints = {key.fingerprint for key in analyst.keys().keys}
    for found, fingerprint in tally.roots:
        if found != root:
            problems.append("A receipt's root is not the one that was published")
        if fingerprint not in fingerprints:
            problems.append("A receipt is signed by a key that the server does not list")
    log = verify_log(analyst.events(campaign), root=root)
    return problems + [f"The log fails its check {name}" for name in log.failed]


def _groups(settings: CampaignSettings, n: int) -> list[tuple[str | None, Prior]]:
    """Everybody's group and prior; groups take turns."""
    named = list(settings.prior.items()) if isinstance(settings.prior, Mapping) else [(None, settings.prior)]
    return [named[k % len(named)] for k in range(n)]


def _guess(view: Participation) -> Prior:
    """Costs between the least that may be bid and the most that can be bought, as far as she is told."""
    low = float(view.content.get("smallest_bid") or 0.0)
    high = view.content.get("largest_bought")
    top = float(high) if isinstance(high, (int, float)) and high > low else 2.0 * low + 1.0
    return Uniform(low, top)
