"""A server to look at: campaigns in several states, and bots at work through the same interface as everybody.

`demo_service` starts an installation in a folder of its own, with two accounts. Once it is served, `Demo` conducts
campaigns over HTTP: one that is over, one in which values are given, one in which prices are named, and a draft. A
visitor can take part in two of them. Bots then go on answering, one every few seconds, until the demo is stopped.
"""

import secrets
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hushbid.client import AnalystClient, MessageMemory, ParticipantClient, Transport
from hushbid.client.views import Invitation
from hushbid.errors import HushbidError
from hushbid.priors import parse_prior
from hushbid.server.bots.bot import Bot, Tally, people
from hushbid.server.bots.campaigns import campaign_of, play_campaign
from hushbid.server.installation import DataDir
from hushbid.server.service import Service
from hushbid.server.service.use_case import Effort
from hushbid.server.store.database import Database

ANALYST, AUDITOR = "demo", "auditor"
_QUICK = Effort(least=10, most=60, seconds=0.7)
_PAUSE_SECONDS = 2.5
_PATIENCE = 3
_AT_ONCE = 8
_SEED = 7
_VISITOR = "visitor@example.org"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Invited:
    """What a visitor needs."""

    naming: str
    """A link to a campaign in which prices are named, and values given with them."""

    giving: str
    """A link to one in which her browser adds noise to a value."""


def demo_service(folder: Path) -> tuple[Service, str]:
    """A running installation with an analyst and an auditor, and the password of both."""
    home = DataDir.at(folder)
    database = Database.sqlite(home.database)
    try:
        service = Service(home, database, effort=_QUICK)
    except BaseException:
        database.close()
        raise
    password = secrets.token_urlsafe(9)
    service.create_user(ANALYST, "analyst", password)
    service.create_user(AUDITOR, "auditor", password)
    return service, password


class Demo:
    """Bots at work on a server, in a thread of their own."""

    def __init__(
        self, url: str, token: str, *, ready: Callable[[Invited], None], failed: Callable[[str], None]
    ) -> None:
        """``token`` is an analyst's; ``ready`` is told when there is something to look at, ``failed`` why not."""
        self._url, self._token = url, token
        self._ready, self._failed = ready, failed
        self._stopped = threading.Event()
        self._memory = MessageMemory()
        self._rng = np.random.default_rng(_SEED)
        self._thread = threading.Thread(target=self._run, name="hushbid-demo", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, at the next opportunity."""
        self._stopped.set()
        self._thread.join(timeout=30)

    def _run(self) -> None:
        try:
            self._play()
        except HushbidError as problem:
            if not self._stopped.is_set():
                self._failed(str(problem))

    def _play(self) -> None:
        with (
            AnalystClient(self._url, token=self._token, attempts=_PATIENCE) as analyst,
            Transport(self._url, attempts=_PATIENCE) as transport,
        ):
            # one that is over, a draft, one in delivery, one in bidding: something in every state
            play_campaign(analyst, campaign_of("sleep"), n=60, seed=_SEED, connections=_AT_ONCE, identities=True)
            analyst.draft(campaign_of("doctor"))
            giving, deliverers = self._in_delivery(analyst, transport)
            naming, bidders = self._in_bidding(analyst, transport)
            self._ready(Invited(naming=naming, giving=giving))
            self._trickle(bidders, deliverers)

    def _in_delivery(self, analyst: AnalystClient, transport: Transport) -> tuple[str, list[Bot]]:
        """Open a campaign and let everybody bid, the visitor a price at which something is bought."""
        campaign, visitor, bots = self._opened(analyst, transport, campaign_of("rent"), 30)
        _all_at_once(Bot.bid, bots)
        client = ParticipantClient(self._url, visitor.token, keeper=self._memory, transport=transport)
        client.bid(0.6)
        link = client.own_link()  # theirs was used by this client
        analyst.close_bidding(campaign)
        analyst.wait(campaign)
        _all_at_once(Bot.deliver, bots[:12])
        return link, bots[12:]

    def _in_bidding(self, analyst: AnalystClient, transport: Transport) -> tuple[str, list[Bot]]:
        """Open a campaign in which the visitor has not answered yet."""
        _, visitor, bots = self._opened(analyst, transport, campaign_of("commute"), 40)
        return visitor.link, bots

    def _opened(
        self, analyst: AnalystClient, transport: Transport, settings: dict[str, Any], n: int
    ) -> tuple[str, Invitation, list[Bot]]:
        campaign = analyst.draft(settings).id
        visitor, *others = analyst.invite(campaign, people=[_VISITOR, *(f"bot-{k}" for k in range(n))])
        analyst.open(campaign)
        market = settings["market"]
        cast = people("mixed", [parse_prior(market["prior"])] * n, tuple(market["bounds"]), rng=self._rng)
        tally = Tally()
        bots = [
            Bot(person, ParticipantClient(self._url, one.token, keeper=self._memory, transport=transport), tally)
            for person, one in zip(cast, others, strict=True)
        ]
        return campaign, visitor, bots

    def _trickle(self, bidders: list[Bot], deliverers: list[Bot]) -> None:
        """Let one bot after the other act; what an analyst has closed meanwhile refuses them, which is fine."""
        waiting = [*zip(bidders, deliverers, strict=False), *((one, None) for one in bidders[len(deliverers) :])]
        for bidder, deliverer in waiting:
            if self._stopped.wait(_PAUSE_SECONDS):
                return
            with suppress(HushbidError):
                bidder.bid()
                if deliverer is not None:
                    deliverer.deliver()


def _all_at_once(what: Callable[[Bot], None], bots: Sequence[Bot]) -> None:
    """Let bots act in threads; what goes wrong with one is raised."""
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        list(threads.map(what, bots))
