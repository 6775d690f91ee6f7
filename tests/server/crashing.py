"""A server in a process of its own that is killed at a named point, and what must be true afterwards.

The process writes down every acknowledgement it gets. Whoever starts the server again holds it to them: nothing that
was acknowledged is lost, nothing is done twice, and there is one estimate.
"""

import json
import multiprocessing
import os
import signal
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hushbid.common.documents import parsed
from hushbid.disclosure.ledger.files import stored
from hushbid.record import Record
from hushbid.server.failpoints import no_crash
from hushbid.server.model.states import CampaignState, ParticipantState
from hushbid.server.store import campaigns
from hushbid.verification.receipts import verify_log, verify_receipt
from tests.server.support import Installation, Play, opened

PEOPLE = ["ann@x", "bob@x", "cy@x"]
FEE = 100  # minor units

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(
    [
        "tests.server.crashing",
        "alembic.command",
        "opendp.prelude",
        "psycopg",
        "scipy.special",
        "sqlalchemy.dialects.postgresql.psycopg",
    ]
)


@dataclass(frozen=True)
class Scene:
    """A campaign somewhere in its life, with no server running."""

    installation: Installation
    play: Play

    def started(self, crash: Callable[[str], None] = no_crash) -> Play:
        service = self.installation.start(crash=crash)
        return self.play.on(service)


# -- the process that dies ---------------------------------------------------------------------------------------------


def killed_at(scene: Scene, point: str, journal: Path) -> int | None:
    """Let a process hold the server to its word and live on until it reaches a point; its exit code."""
    return process_of(_until, scene, point, journal)


def process_of(target: Callable[..., None], *given: object) -> int | None:
    """Call a function in a new process, and wait for its end; its exit code."""
    process = _processes.Process(target=target, args=given)
    process.start()
    process.join(600)
    return process.exitcode


def _until(scene: Scene, point: str, journal: Path) -> None:
    def crash(reached: str) -> None:
        if reached == point:
            os.kill(os.getpid(), signal.SIGKILL)

    with _telling(journal):
        told = _read(journal)
        play = scene.started(crash)
        _take_up(play)
        _nothing_is_lost(play, told)
        with journal.open("a") as file:

            def note(**acknowledged: Any) -> None:
                file.write(json.dumps(acknowledged) + "\n")
                file.flush()

            _live_on(play, note)


def _live_on(play: Play, note: Callable[..., None]) -> None:
    """Everybody does whatever is still to be done, or what she has no answer to; all of it may be done twice."""
    if play.view.state is CampaignState.BIDDING:
        for row in range(len(PEOPLE)):
            play.bid([row])
            note(bid=row)
        assert play.decide().state == "done"
    if play.view.state is CampaignState.DELIVERING:
        note(promised=[play.service.participation(link.token).promised for link in play.seats])
        for row in range(len(PEOPLE)):
            play.deliver([row])
            note(delivered=row)
        assert play.release().state == "done"
    assert play.view.state is CampaignState.RELEASED
    note(estimate=play.view.release)
    play.service.tick()
    play.service.mark_paid(play.who, play.id)
    note(paid=play.view.paid)


def staged(installation: Installation) -> Scene:
    """A campaign that has opened."""
    with installation.start() as service:
        play = opened(service, PEOPLE, participation_fee=FEE / 100)
        return Scene(installation, replace(play, service=None))  # type: ignore[arg-type]


# -- afterwards --------------------------------------------------------------------------------------------------------


def holds_up(scene: Scene, journal: Path) -> None:
    """Start the server again in a new process, hold it to what it acknowledged, and look at everything."""
    ended = process_of(_hold_up, scene, journal)
    assert ended == 0, problem_of(journal) or f"exit code {ended}"


def _hold_up(scene: Scene, journal: Path) -> None:
    with _telling(journal):
        told = _read(journal)
        play = scene.started()
        with play.service:
            _take_up(play)
            _nothing_is_lost(play, told)
            _live_on(play, lambda **_: None)
            _nothing_is_lost(play, told)
            _is_consistent(play)


@contextmanager
def _telling(journal: Path) -> Iterator[None]:
    """Write down what went wrong, for whoever waits for this process."""
    try:
        yield
    except BaseException:  # noqa: BLE001 - told in the file
        journal.with_name("problem").write_text(traceback.format_exc())
        raise SystemExit(1) from None


def problem_of(journal: Path) -> str:
    """What went wrong in a process."""
    problem = journal.with_name("problem")
    return problem.read_text() if problem.exists() else ""


def _take_up(play: Play) -> None:
    """Wait for what the server took up."""
    for job in play.service.jobs(play.who, play.id):
        play.service.wait(job, timeout=300)


def _read(journal: Path) -> list[dict[str, Any]]:
    if not journal.exists():
        return []
    return [json.loads(line) for line in journal.read_text().splitlines() if line.endswith("}")]


def _nothing_is_lost(play: Play, told: list[dict[str, Any]]) -> None:
    for one in told:
        if "bid" in one:
            assert play.service.participation(play.token(one["bid"])).bid is not None
        if "promised" in one:
            assert [play.service.participation(link.token).promised for link in play.seats] == one["promised"]
        if "delivered" in one:
            seen = play.service.participation(play.token(one["delivered"]))
            assert seen.state is ParticipantState.DELIVERED
        if "estimate" in one:
            assert play.view.release == one["estimate"]
        if "paid" in one:
            assert play.view.paid == one["paid"]


def _is_consistent(play: Play) -> None:
    service, view = play.service, play.view
    record = Record.from_dict(parsed(service.record(play.who, play.id)))
    log = service.events(play.who, play.id)
    assert verify_log(log, root=view.root, record=record).ok
    assert verify_receipt(service.receipt(play.token(0)), root=view.root, log=log, record=record).ok
    kinds = [event.kind for event in log]
    for once in ("opened", "bidding-closed", "allocated", "release-claimed", "released", "key-destroyed", "paid"):
        assert kinds.count(once) == 1, once
    assert kinds.count("bid") == kinds.count("delivered") == len(PEOPLE)
    assert record.money is not None
    assert (view.due, view.paid) == (0, record.money.total + FEE * len(PEOPLE))
    claims = service.home.claims
    drawn, decision = stored(claims, f"release-{play.id}"), stored(claims, f"decision-{play.id}")
    assert drawn is not None
    assert decision is not None
    assert view.release is not None
    assert drawn["estimate"] == view.release["estimate"]
    assert decision["record"]["outcome"] == record.content["outcome"]
    assert not list(claims.glob("*.draft"))
    assert not service.installation.vault.holds(play.id)
    assert view.key_destroyed_at is not None
    with service._read() as connection:
        assert campaigns.get(connection, play.id).root == view.root
    lost = {service.participation(link.token).delivered_loss for link in play.seats}
    assert {row.amount for row in service.privacy_account(play.who).items} == lost
