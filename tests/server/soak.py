"""Hundreds of kills at random moments: ``python -m tests.server.soak --kills 200``, or ``make soak``.

A process runs the server and, in several threads, the people of one campaign after another; every acknowledgement is
written down before the next request. At a random moment the process is killed (SIGKILL), and another takes over on the
same database and folder. It first holds the server to everything that was ever acknowledged, then goes on. At the end
every campaign is checked from its record to its receipts.
"""

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from hushbid.common.documents import parsed
from hushbid.disclosure import privatize
from hushbid.record import Record
from hushbid.server.installation import DataDir
from hushbid.server.model.states import CampaignState, ParticipantState
from hushbid.server.service import Service
from hushbid.server.store.database import Database
from hushbid.verification.receipts import verify_log, verify_logged_record, verify_receipt
from tests.conftest import PARTS
from tests.server.crashing import _processes
from tests.server.postgres import running_postgres
from tests.server.support import QUICK, analyst, nonce_for, open_now, secret_for, settings

PEOPLE = 5
FEE = 50  # minor units


@dataclass
class Known:
    """What was acknowledged about one campaign, and what everybody's device keeps."""

    id: str
    setting: str
    tokens: list[str]
    bid: dict[int, float] = field(default_factory=dict)
    kept: dict[int, Any] = field(default_factory=dict)
    delivered: set[int] = field(default_factory=set)
    promised: list[float] | None = None
    estimates: list[Any] = field(default_factory=list)
    paid: int | None = None
    done: bool = False


class Journal:
    """A file of acknowledgements; it outlives the processes that write it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.campaigns: dict[str, Known] = {}
        self.lines = 0
        self._lock = threading.Lock()
        lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        for line in lines:
            if line.endswith("\n"):
                self._take(json.loads(line))
        self._file = path.open("a")
        if lines and not lines[-1].endswith("\n"):
            self._file.write("\n")  # torn by a kill: never read, so never relied on

    def note(self, **said: Any) -> None:
        with self._lock:
            self._file.write(json.dumps(said) + "\n")
            self._file.flush()
            self._take(said)

    def _take(self, said: dict[str, Any]) -> None:
        self.lines += 1
        if said["kind"] == "begun":
            self.campaigns[said["id"]] = Known(said["id"], said["setting"], said["tokens"])
            return
        known, row = self.campaigns[said["id"]], said.get("row", -1)
        match said["kind"]:
            case "bid":
                known.bid[row] = said["bid"]
            case "kept":
                known.kept[row] = said["value"]
            case "delivered":
                known.delivered.add(row)
            case "decided":
                known.promised = said["promised"]
            case "released":
                known.estimates.append(said["estimate"])
            case "paid":
                known.paid = said["total"]
            case "done":
                known.done = True


# -- one process -------------------------------------------------------------------------------------------------------


def play(folder: Path, url: str | None, path: Path, ready: Connection, last: bool) -> None:
    """Hold the server to its word, then go on; to the end of the campaign at hand if it is the ``last`` process."""
    try:
        home = DataDir.at(folder)
        database = Database.sqlite(home.database) if url is None else Database(url)
        service = Service(home, database, effort=QUICK, least_people=1)
        journal = Journal(path)
        ready.send_bytes(b"ready")
        for known in list(journal.campaigns.values())[-3:]:
            settle(service, known)
            hold(service, known)
        while True:
            current = next((known for known in journal.campaigns.values() if not known.done), None)
            if last and current is None and journal.campaigns:
                break
            conduct(service, journal, current or begin(service, journal))
        for known in journal.campaigns.values():
            hold(service, known)
            inspect(service, known)
        service.close()
    except BaseException:  # noqa: BLE001 - told to whoever started the process
        path.with_name("problem").write_text(traceback.format_exc())
        raise SystemExit(1) from None


def settle(service: Service, known: Known) -> None:
    """Wait for what the server took up."""
    for job in service.jobs(analyst(service), known.id):
        service.wait(job, timeout=300)


def begin(service: Service, journal: Journal) -> Known:
    who = analyst(service)
    setting = "central" if len(journal.campaigns) % 2 else "local"
    campaign = service.draft(who, settings(setting=setting, participation_fee=FEE / 100))
    people = [f"person-{number}@x" for number in range(PEOPLE)]
    links = service.invite(who, campaign.id, people=people)
    tokens = [secret_for(link.token) for link in links]
    for link, token in zip(links, tokens, strict=True):
        service.enter(link.token, token)
    journal.note(kind="begun", id=campaign.id, setting=setting, tokens=tokens)
    return journal.campaigns[campaign.id]


def conduct(service: Service, journal: Journal, known: Known) -> None:
    """Whatever is still to be done, each step as often as it takes."""
    who = analyst(service)

    def state() -> CampaignState:
        return service.campaign(who, known.id).state

    if state() is CampaignState.DRAFT:
        open_now(service, who, known.id)
    if state() is CampaignState.BIDDING:
        together(lambda row: bid(service, journal, known, row))
        service.wait(service.close_bidding(who, known.id))
    if state() is CampaignState.DELIVERING:
        losses = [service.participation(token).promised for token in known.tokens]
        journal.note(kind="decided", id=known.id, promised=losses)
        together(lambda row: deliver(service, journal, known, row))
        service.wait(service.release(who, known.id))
    seen = service.campaign(who, known.id)
    assert seen.state in (CampaignState.RELEASED, CampaignState.CLOSED), seen.state
    journal.note(kind="released", id=known.id, estimate=seen.release)
    service.mark_paid(who, known.id)
    journal.note(kind="paid", id=known.id, total=service.campaign(who, known.id).paid)
    service.tick()
    if seen.state is CampaignState.RELEASED:
        service.close_campaign(who, known.id)
    journal.note(kind="done", id=known.id)


def together(act: Callable[[int], None]) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(act, range(PEOPLE)))


def bid(service: Service, journal: Journal, known: Known, row: int) -> None:
    said = known.bid.get(row, 1.0 + random.random())
    service.bid(known.tokens[row], said)
    journal.note(kind="bid", id=known.id, row=row, bid=said)


def deliver(service: Service, journal: Journal, known: Known, row: int) -> None:
    seen = service.participation(known.tokens[row])
    if not seen.promised:
        return
    if row not in known.kept:  # a device keeps what it sends before it sends it
        value: Any = float(row)
        if known.setting == "local":
            value = privatize(value, seen.promised, seen.bounds).to_dict()
        journal.note(kind="kept", id=known.id, row=row, value=value)
    service.deliver(known.tokens[row], known.kept[row], nonce=nonce_for(known.tokens[row]))
    journal.note(kind="delivered", id=known.id, row=row)


# -- what must hold ----------------------------------------------------------------------------------------------------


def hold(service: Service, known: Known) -> None:
    """Nothing that was acknowledged is lost, and no two estimates were ever seen."""
    seen = [service.participation(token) for token in known.tokens]
    view = service.campaign(analyst(service), known.id)
    for row, said in known.bid.items():
        assert seen[row].bid == said, "a bid was lost"
    if known.promised is not None:
        assert [one.promised for one in seen] == known.promised, "a promise was changed"
    for row in known.delivered:
        assert seen[row].state is ParticipantState.DELIVERED, "a delivery was lost"
    for estimate in known.estimates:
        assert view.release == estimate, "two estimates were seen"
    if known.paid is not None:
        assert view.paid == known.paid, "somebody was paid twice, or a payment was lost"


def inspect(service: Service, known: Known) -> None:
    """A finished campaign, from its record to its receipts."""
    who = analyst(service)
    view = service.campaign(who, known.id)
    record = Record.from_dict(parsed(service.record(who, known.id)))
    log = service.events(who, known.id)
    assert verify_logged_record(record, log=log).ok
    assert verify_log(log, root=view.root, record=record).ok
    for token in known.tokens:
        assert verify_receipt(service.receipt(token), root=view.root, log=log, record=record).ok
    kinds = Counter(event.kind for event in log)
    for once in ("opened", "bidding-closed", "allocated", "release-claimed", "released", "key-destroyed", "closed"):
        assert kinds[once] == 1, f"{once} {kinds[once]} times"
    assert kinds["bid"] == PEOPLE
    assert kinds["delivered"] == record.outcome.active
    assert record.money is not None
    assert (view.due, view.paid) == (0, record.money.total + FEE * PEOPLE)
    assert not service.installation.vault.holds(known.id)


# -- all processes -----------------------------------------------------------------------------------------------------


@contextmanager
def store(name: str) -> Iterator[str | None]:
    """An address, or None for a file."""
    if name == "sqlite":
        yield None
        return
    programs = PARTS["postgres"]()
    if programs is None:
        raise SystemExit("PostgreSQL is not installed (make test-deps).")
    with running_postgres(programs) as postgres:
        yield postgres.url(postgres.new())


def soak(name: str, kills: int, chance: random.Random) -> str:
    """Kill so many times; a sentence about what happened."""
    folder = Path(tempfile.mkdtemp(prefix="hushbid-soak-"))
    journal = folder / "journal"
    phases: Counter[str] = Counter()
    with store(name) as url:
        longest = 0.0
        for number in range(kills + 2):
            whole = number in (0, kills + 1)  # the first tells how long a campaign takes, the last checks everything
            here, there = _processes.Pipe(duplex=False)
            process = _processes.Process(target=play, args=(folder / "home", url, journal, there, whole))
            process.start()
            here.poll(60)
            begun = time.monotonic()
            if not whole:
                time.sleep(chance.uniform(0.0, longest))
                if process.pid is not None and process.is_alive():
                    os.kill(process.pid, signal.SIGKILL)
            process.join()
            if process.exitcode != (0 if whole else -signal.SIGKILL):
                problem = folder / "problem"
                raise SystemExit(problem.read_text() if problem.exists() else f"exit code {process.exitcode}")
            longest = longest or 0.7 * (time.monotonic() - begun)
            if not whole:
                phases[_phase(journal)] += 1
        known = Journal(journal)
    shutil.rmtree(folder)
    met = ", ".join(f"{count} after {phase!r}" for phase, count in sorted(phases.items()))
    return (
        f"{name}: {kills} kills, {len(known.campaigns)} campaigns of {PEOPLE} people, {known.lines} acknowledgements:"
        f" nothing lost, nothing doubled, one estimate each. The last thing acknowledged before a kill: {met}.\n"
    )


def _phase(journal: Path) -> str:
    lines = journal.read_text().splitlines() if journal.exists() else []
    complete = [line for line in lines if line.endswith("}")]
    return str(json.loads(complete[-1])["kind"]) if complete else "nothing"


def main() -> None:
    """Soak both stores."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="per store")
    parser.add_argument("--store", choices=["sqlite", "postgresql"], action="append")
    parser.add_argument("--seed", type=int, default=None, help="for the moments of the kills")
    options = parser.parse_args()
    for name in options.store or ["sqlite", "postgresql"]:
        sys.stdout.write(soak(name, options.kills, random.Random(options.seed)))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
