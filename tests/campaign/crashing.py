"""A server in a process of its own that is killed at a named point, and what must be true afterwards.

The process writes down every acknowledgement it gets. Whoever starts the server again holds it to them: nothing that
was acknowledged is lost, nothing is done twice, and there is one estimate.
"""

import json
import multiprocessing
import os
import signal
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from hushbid.campaign.crash import no_crash
from hushbid.campaign.domain.states import CampaignState, ParticipantState
from hushbid.campaign.service import Service
from hushbid.campaign.store import campaigns
from hushbid.disclosure.claims import stored
from hushbid.record.canonical import parsed
from hushbid.record.contents import Record
from hushbid.record.trust import verify_log, verify_receipt
from tests.campaign.support import Installation, Play, opened

PEOPLE = ["ann@x", "bob@x", "cy@x"]
FEE = 100

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(
    [
        "tests.campaign.crashing",
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


def killed_at(scene: Scene, act: str, point: str, journal: Path) -> int | None:
    """Let a process act until it reaches a point, at which it is killed; its exit code."""
    return process_of(_act, scene, act, point, journal)


def process_of(target: Callable[..., None], *given: object) -> int | None:
    """Call a function in a new process, and wait for its end; its exit code."""
    process = _processes.Process(target=target, args=given)
    process.start()
    process.join(120)
    return process.exitcode


def _act(scene: Scene, act: str, point: str, journal: Path) -> None:
    def crash(reached: str) -> None:
        if reached == point:
            os.kill(os.getpid(), signal.SIGKILL)

    play = scene.started(crash)
    with journal.open("a") as file:

        def note(**acknowledged: Any) -> None:
            file.write(json.dumps(acknowledged) + "\n")
            file.flush()

        ACTS[act](play, note)


def _report(play: Play, note: Callable[..., None]) -> None:
    for row in range(len(PEOPLE)):
        play.report([row])
        note(reported=row)


def _decide(play: Play, note: Callable[..., None]) -> None:
    play.decide()
    note(promised=[play.service.participation(link.token).promised for link in play.links])


def _deliver(play: Play, note: Callable[..., None]) -> None:
    for row in range(len(PEOPLE)):
        play.deliver([row])
        note(delivered=row)


def _release(play: Play, note: Callable[..., None]) -> None:
    play.release()
    note(estimate=play.view.release)


def _pay(play: Play, note: Callable[..., None]) -> None:
    note(paid=sum(row.due for row in play.service.mark_paid(play.who, play.id)))


ACTS: dict[str, Callable[[Play, Callable[..., None]], None]] = {
    "report": _report,
    "decide": _decide,
    "deliver": _deliver,
    "release": _release,
    "pay": _pay,
}


# -- the scenes --------------------------------------------------------------------------------------------------------


def staged(installation: Installation, act: str) -> Scene:
    """A campaign that is about to see an act."""
    with installation.start() as service:
        play = opened(service, PEOPLE, participation_fee=FEE)
        if act != "report":
            play = decided_before(service, play, act)
        installation.clock.now += timedelta(seconds=1)
        return Scene(installation, replace(play, service=None))  # type: ignore[arg-type]


def decided_before(service: Service, play: Play, act: str) -> Play:
    play.report()
    if act == "decide":
        return play
    play.decide()
    if act == "deliver":
        return play
    play.deliver()
    if act == "pay":
        play.release()
    return play


# -- afterwards --------------------------------------------------------------------------------------------------------


def holds_up(scene: Scene, journal: Path) -> None:
    """Start the server again in a new process, hold it to what it acknowledged, and bring the campaign to its end."""
    problem = journal.with_name("problem")
    ended = process_of(_hold_up, scene, journal, problem)
    assert ended == 0, problem.read_text() if problem.exists() else f"exit code {ended}"


def _hold_up(scene: Scene, journal: Path, problem: Path) -> None:
    try:
        _held_up(scene, journal)
    except BaseException:  # noqa: BLE001 - told to whoever waits for this process
        problem.write_text(traceback.format_exc())
        raise SystemExit(1) from None


def _held_up(scene: Scene, journal: Path) -> None:
    told = _read(journal)
    play = scene.started()
    with play.service as service:
        for job in service.jobs(play.who, play.id):
            service.wait(job, timeout=60)
        _nothing_is_lost(play, told)
        _bring_to_the_end(play)
        _nothing_is_lost(play, told)
        _is_consistent(play)


def _read(journal: Path) -> list[dict[str, Any]]:
    if not journal.exists():
        return []
    return [json.loads(line) for line in journal.read_text().splitlines() if line.endswith("}")]


def _nothing_is_lost(play: Play, told: list[dict[str, Any]]) -> None:
    for one in told:
        if "reported" in one:
            assert play.service.participation(play.token(one["reported"])).report is not None
        if "promised" in one:
            assert [play.service.participation(link.token).promised for link in play.links] == one["promised"]
        if "delivered" in one:
            seen = play.service.participation(play.token(one["delivered"]))
            assert seen.state is ParticipantState.DELIVERED
        if "estimate" in one:
            assert play.view.release == one["estimate"]
        if "paid" in one:
            assert play.view.paid == one["paid"]


def _bring_to_the_end(play: Play) -> None:
    """Everybody does again whatever she has no answer to; all of it may be done twice."""
    service = play.service
    if play.view.state is CampaignState.REPORTING:
        play.report()
        assert play.decide().state == "done"
    if play.view.state is CampaignState.DELIVERING:
        play.deliver()
        assert play.release().state == "done"
    service.mark_paid(play.who, play.id)
    service.tick()
    assert play.view.state is CampaignState.RELEASED


def _is_consistent(play: Play) -> None:
    service, view = play.service, play.view
    record = Record.from_dict(parsed(service.record(play.who, play.id)))
    log = service.events(play.who, play.id)
    assert verify_log(log, root=view.root, record=record).ok
    assert verify_receipt(service.receipt(play.token(0)), root=view.root, log=log, record=record).ok
    kinds = [event.kind for event in log]
    for once in ("opened", "reporting-closed", "allocated", "release-claimed", "released", "key-destroyed", "paid"):
        assert kinds.count(once) == 1, once
    assert kinds.count("reported") == kinds.count("delivered") == len(PEOPLE)
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
    assert not service._context.vault.holds(play.id)
    assert view.key_destroyed_at is not None
    with service._read() as connection:
        assert campaigns.get(connection, play.id).root == view.root
    lost = {service.participation(link.token).delivered_loss for link in play.links}
    assert {row.amount for row in service.ledger(play.who).items} == lost
