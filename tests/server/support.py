"""An installation for tests, a clock that tests set, and people who play campaigns."""

import copy
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from hushbid.campaign.spec import fields_of
from hushbid.disclosure import privatize
from hushbid.errors import Conflict
from hushbid.priors import Prior
from hushbid.questions import Choice, Number, YesNo
from hushbid.server.failpoints import Crash, no_crash
from hushbid.server.installation import DataDir
from hushbid.server.model.settings import CampaignSettings
from hushbid.server.model.views import CampaignView, Invitation, JobView, Principal
from hushbid.server.service import Service
from hushbid.server.service.use_case import Effort
from hushbid.server.store import links
from hushbid.server.store.database import Database, Transaction
from hushbid.server.store.schema import hashed

PASSWORD = "correct horse battery staple"
QUICK = Effort(least=2, most=5, seconds=0.0)
NONCE = "0f" * 16
on_both_stores = pytest.mark.stores("sqlite", "postgresql")
"""Above a test, or as the mark of a file, whose claim is about the store."""

on_the_strict_store = pytest.mark.stores("postgresql")
"""Above a test about what a store may refuse: PostgreSQL refuses more."""

each_setting_on_a_store = pytest.mark.parametrize(
    ("installation", "setting"), [("sqlite", "central"), ("postgresql", "local")], indirect=["installation"]
)
"""Above a test about both settings and both stores; all four pairs live through a campaign in
service/test_life_cycle.py."""

VALUES = (3.0, 7.5, 0.0, 10.0, 6.25, 1.0, 9.5, 4.0)


class Clock:
    """A clock that stands still until a test moves it, but never shows the same time twice."""

    def __init__(self) -> None:
        self.now = datetime(2026, 3, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(milliseconds=1)
        return self.now

    def pass_(self, **time: float) -> None:
        """Let time pass."""
        self.now += timedelta(**time)


@dataclass
class Installation:
    """A folder and a database, on which a server may be started again and again."""

    folder: Path
    url: str | None
    """None for the folder's own SQLite file."""

    clock: Clock = field(default_factory=Clock)
    patience: float = 0.05
    """How long to wait for a server that is just dying, in seconds."""

    def start(self, *, crash: Crash = no_crash, privacy_cap: float | None = None) -> Service:
        home = DataDir.at(self.folder)
        database = Database.sqlite(home.database) if self.url is None else Database(self.url, patience=self.patience)
        try:
            return Service(
                home, database, clock=self.clock, crash=crash, privacy_cap=privacy_cap, effort=QUICK, least_people=1
            )
        except BaseException:
            database.close()
            raise


def opened_database(installation: Installation) -> Database:
    """The database of an installation, without a server."""
    if installation.url is not None:
        return Database(installation.url, patience=0.05)
    return Database.sqlite(installation.folder / "hushbid.sqlite3")


_PLACES = {name.rpartition(".")[2]: name for name, _ in fields_of(CampaignSettings) if "questions." not in name}
_PLACES |= {"questions": "questions", "strata": "strata", "consent": "server.consent"}
_PLACES |= {**{name: name for name in ("title", "question", "unit")}, "population": "market.population"}


def stated(**changes: Any) -> dict[str, Any]:
    """A small campaign in which everybody is bought from, as plain values; fields are given by their short names."""
    usual: dict[str, Any] = {
        "title": "Hours of sleep",
        "question": "How many hours did you sleep last night?",
        "setting": "central",
        "prior": "uniform:1,2",
        "bounds": [0, 10],
        "buyer_weight": 50.0,
        "max_privacy_loss": 1.0,
        "minimum_people": 2,
        "currency": "EUR",
    }
    if not changes.keys().isdisjoint(("budget", "hard_budget", "standard_error")):
        del usual["buyer_weight"]
    given = {**usual, **changes}
    if isinstance(given["prior"], Prior):
        given["prior"] = given["prior"].to_text()
    if isinstance(given["prior"], Mapping):
        given["prior"] = {
            name: one.to_text() if isinstance(one, Prior) else one for name, one in given["prior"].items()
        }
    asked = given.get("questions")
    if (
        isinstance(asked, list | tuple)
        and asked
        and all(isinstance(one, dict | Number | YesNo | Choice) for one in asked)
    ):
        asked = [one if isinstance(one, dict) else one.to_dict() for one in asked]
        asked = [{name: value for name, value in one.items() if value not in (None, "")} for one in asked]
        errors = given.pop("standard_error", None) or [None] * len(asked)
        pairs = zip(asked, errors, strict=True)
        given["questions"] = [one if error is None else {**one, "standard_error": error} for one, error in pairs]
        given.setdefault("bounds", None)
        del given["bounds"]
    return with_fields({}, **{name: value for name, value in given.items() if value is not None})


def with_fields(values: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    """A campaign's plain values with other fields, which are given by their short names."""
    found: dict[str, Any] = copy.deepcopy(dict(values))
    for name, value in changes.items():
        *tables, leaf = _PLACES.get(name, name).split(".")
        place = found
        for table in tables:
            place = place.setdefault(table, {})
        place[leaf] = value
        if value is None:
            del place[leaf]
    return found


def settings(**changes: Any) -> CampaignSettings:
    """The campaign that these values state."""
    return CampaignSettings.read(stated(**changes))


def analyst(service: Service) -> Principal:
    """Ann, the analyst."""
    return user(service, "ann")


def user(service: Service, name: str, role: Any = "analyst") -> Principal:
    """Somebody who is created when first asked for."""
    known = {one.name: one for one in service.users()}
    return known[name] if name in known else service.create_user(name, role, PASSWORD)


@dataclass
class Play:
    """A campaign and its people's links."""

    service: Service
    who: Principal
    id: str
    links: tuple[Invitation, ...]
    sent: dict[str, Any] = field(default_factory=dict)
    """What everybody's device keeps and sends again: in the local setting the first noisy value."""

    @property
    def view(self) -> CampaignView:
        return self.service.campaign(self.who, self.id)

    def link(self, row: int) -> str:
        """What she was sent."""
        return self.links[row].token

    def token(self, row: int) -> str:
        """The secret of a device of hers, which came in without using up her link."""
        return seated(self.service, self.links[row].id)

    def fresh(self, row: int) -> str:
        """A link for another device of hers."""
        return self.service.own_link(self.token(row)).token

    @property
    def seats(self) -> tuple[Invitation, ...]:
        """Everybody, each with the secret of a device of hers in the place of her link."""
        return tuple(replace(one, token=self.token(row)) for row, one in enumerate(self.links))

    def bid(self, rows: Sequence[int] | None = None) -> None:
        for row in range(len(self.links)) if rows is None else rows:
            self.service.bid(self.token(row), 1.0 + row / (len(self.links) + 1))

    def decide(self) -> JobView:
        return self.service.wait(self.service.close_bidding(self.who, self.id), timeout=300)

    def deliver(self, rows: Sequence[int] | None = None) -> None:
        for row in range(len(self.links)) if rows is None else rows:
            deliver(self.service, self.token(row), VALUES[row % len(VALUES)], kept=self.sent)

    def release(self, **options: Any) -> JobView:
        return self.service.wait(self.service.release(self.who, self.id, **options), timeout=300)

    def on(self, service: Service) -> "Play":
        """This campaign on a server that was started again."""
        return replace(self, service=service)


def secret_for(*device: object) -> str:
    """What a device drew."""
    return "hb_d_" + hashlib.sha256(repr(device).encode()).hexdigest()[:43]


def seated(service: Service, participant: str) -> str:
    """Let a device of somebody's in behind the server's back; the secret is the same whenever it is asked for."""
    known: set[str] = service.__dict__.setdefault("_seated", set())
    secret = secret_for("seat", participant)
    if participant not in known:

        def seat(tx: Transaction) -> None:
            if not links.is_secret(tx.connection, hashed(secret)):
                links.add(tx.connection, {f"seat {participant}": participant}, made_by="analyst", at=tx.at)
                links.use(tx.connection, links.of_token(tx.connection, f"seat {participant}"), hashed(secret), tx.at)

        service._write("seat", seat)
        known.add(participant)
    return secret


def nonce_for(*delivery: object) -> str:
    """What a device keeps as the name of a delivery: another one for another."""
    return hashlib.sha256(repr(delivery).encode()).hexdigest()[:32]


def deliver(service: Service, token: str, value: float, *, kept: dict[str, Any]) -> None:
    """Deliver as a participant's client does: the value, or the first message made from it."""
    seen = service.participation(token)
    if token not in kept and seen.promised:
        noisy = seen.setting == "local"
        kept[token] = privatize(value, seen.promised, seen.bounds).to_dict() if noisy else value
    content = kept.get(token, value)
    service.deliver(token, content, nonce=nonce_for(token, content))


def drafted(service: Service, people: int | Sequence[Any] = 4, **changes: Any) -> Play:
    """A campaign with invited people that has not opened."""
    who = analyst(service)
    campaign = service.draft(who, settings(**changes))
    chosen: dict[str, Any] = {"count": people} if isinstance(people, int) else {"people": people}
    return Play(service, who, campaign.id, service.invite(who, campaign.id, **chosen))


def opened(service: Service, people: int | Sequence[Any] = 4, **changes: Any) -> Play:
    """A campaign that takes bids."""
    play = drafted(service, people, **changes)
    open_now(service, play.who, play.id)
    return play


def open_now(service: Service, who: Principal, campaign: str) -> CampaignView:
    """Open a campaign, and wait for it; refused as the job was."""
    job = service.wait(service.open(who, campaign), timeout=300)
    if job.state == "failed":
        raise Conflict(str(job.problem))
    return service.campaign(who, campaign)


def decided(service: Service, people: int | Sequence[Any] = 4, **changes: Any) -> Play:
    """A campaign that takes data; everybody bid."""
    play = opened(service, people, **changes)
    play.bid()
    assert play.decide().state == "done"
    return play


def released(service: Service, people: int | Sequence[Any] = 4, **changes: Any) -> Play:
    """A campaign whose estimate is out; everybody delivered."""
    play = decided(service, people, **changes)
    play.deliver()
    assert play.release().state == "done"
    return play
