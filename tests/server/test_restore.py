"""Going back to an older database: it can neither promise again, nor release again, nor forget what people gave up."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from hushbid.common.documents import parsed
from hushbid.errors import CampaignError, Conflict, HushbidError
from hushbid.record import Record
from hushbid.server.admin import Administration
from hushbid.server.installation import mark_standing
from hushbid.server.model.states import CampaignState, ParticipantState
from hushbid.server.service import Service
from hushbid.server.store import backup
from hushbid.verification.receipts import verify_log, verify_logged_record
from tests.server.support import (
    NONCE,
    Installation,
    Play,
    decided,
    drafted,
    each_setting_on_a_store,
    on_both_stores,
    open_now,
    opened,
    released,
)

pytestmark = on_both_stores


def back_up(service: Service, path: Path) -> None:
    with service._read() as connection, path.open("wb") as file:
        backup.dump(connection, file, at="2026-03-01T12:00:00.000000Z")


def restore(installation: Installation, path: Path) -> None:
    with Administration.at(installation.folder, database=installation.url, alone=True) as beside:
        beside.restore(path, replace=True)


def again(service: Service, play: Play) -> Play:
    """The campaign on the restored server, when all jobs it took up are done."""
    for job in service.jobs(play.who, play.id):
        service.wait(job, timeout=300)
    return play.on(service)


STEPS: list[Callable[[Play], object]] = [
    lambda play: open_now(play.service, play.who, play.id),
    lambda play: play.bid([0]),
    lambda play: play.bid(),
    lambda play: play.decide(),
    lambda play: play.deliver([0, 1]),
    lambda play: play.deliver(),
    lambda play: play.release(),
]
EXPECTED = [
    CampaignState.CANCELLED,
    CampaignState.CANCELLED,
    CampaignState.CANCELLED,
    CampaignState.CANCELLED,
    CampaignState.RELEASED,
    CampaignState.RELEASED,
    CampaignState.RELEASED,
]


@each_setting_on_a_store
def test_after_every_restore_there_is_the_same_estimate_or_none(
    installation: Installation, tmp_path: Path, setting: str
) -> None:
    with installation.start() as service:
        play = drafted(service, 3, setting=setting)
        for number, step in enumerate(STEPS):
            back_up(service, tmp_path / f"{number}")
            step(play)
        estimate = play.view.release
        payments = service.payments(play.who, play.id)
        assert estimate is not None
    for number, state in enumerate(EXPECTED):
        restore(installation, tmp_path / f"{number}")
        with installation.start() as service:
            now = again(service, play)
            assert now.view.state is state
            assert verify_log(service.events(play.who, play.id)).ok
            if state is CampaignState.RELEASED:
                record = Record.from_dict(parsed(service.record(play.who, play.id)))
                assert verify_logged_record(record, log=service.events(play.who, play.id)).ok
                assert now.view.release == estimate
                assert service.payments(play.who, play.id) == payments
                assert service.receipt(play.token(0)).included
            else:
                assert now.view.release is None
                assert "restored from a backup" in (now.view.reason or "")
            other = partial(service.deliver, now.token(0), 3.0, nonce=NONCE)
            for attempt in (now.decide, now.release, lambda now=now: now.bid([0]), other):
                with pytest.raises(HushbidError):
                    attempt()
            assert now.view.release in (None, estimate)


def test_a_decision_that_was_begun_is_adopted_or_given_up_never_made_again(
    installation: Installation, tmp_path: Path
) -> None:
    taken: list[Path] = []

    def at(point: str) -> None:
        if point in ("allocation.claimed", "allocation.store.after-commit") and len(taken) < 2:
            taken.append(tmp_path / point)
            back_up(service, taken[-1])

    with installation.start(crash=at) as service:
        play = decided(service, 3)
        promised = [service.participation(link.token).promised for link in play.seats]
        play.deliver()
        play.release()
        estimate = play.view.release
    assert len(taken) == 2
    for path in taken:
        restore(installation, path)
        with installation.start() as service:
            now = again(service, play)
            assert now.view.state is CampaignState.RELEASED
            assert [service.participation(link.token).promised for link in play.seats] == promised
            assert now.view.release == estimate


def test_bids_that_differ_from_those_of_the_decision_end_the_campaign(
    installation: Installation, tmp_path: Path
) -> None:
    with installation.start() as service:
        play = opened(service, 3)
        play.bid()
        back_up(service, tmp_path / "backup")
        play.decide()
        decision = next((installation.folder / "claims").glob("decision-*.json"))
        hidden = decision.rename(tmp_path / decision.name)
        (service.home.data_keys / f"{decision.stem}.stands").unlink()
    restore(installation, tmp_path / "backup")
    with installation.start() as service:  # as if the folder came back only now
        now = play.on(service)
        service.bid(play.token(0), 1.9)
        hidden.rename(decision)
        now.decide()
        assert now.view.state is CampaignState.CANCELLED
        assert service.participation(play.token(0)).promised is None


def test_a_campaign_that_ended_without_data_takes_none_after_a_restore(
    installation: Installation, tmp_path: Path
) -> None:
    with installation.start() as service:
        play = decided(service, 3)
        back_up(service, tmp_path / "backup")
        play.release(accept_nobody=True)
    restore(installation, tmp_path / "backup")
    with installation.start() as service:
        now = again(service, play)
        assert now.view.state is CampaignState.CANCELLED
        assert "key to its data is destroyed" in (now.view.reason or "")
        with pytest.raises(Conflict):
            now.deliver([0])


def test_what_people_gave_up_is_written_into_a_privacy_account_that_forgot_it(
    installation: Installation, tmp_path: Path
) -> None:
    people = ["a@x", "b@x", "c@x"]
    with installation.start(privacy_cap=1.5) as service:
        drafted(service, people)
        back_up(service, tmp_path / "backup")
        play = released(service, people)
        before = {row.person: row.amount for row in service.privacy_account(play.who).items}
        assert len(before) == 3
    restore(installation, tmp_path / "backup")
    with installation.start(privacy_cap=1.5) as service:
        who = play.who
        after = [row for row in service.privacy_account(who).items if row.campaign == play.id]
        assert sorted(row.amount for row in after) == sorted(before.values())
        again_play = drafted(service, people)
        with pytest.raises(Conflict, match="may still give something up, got 0"):
            open_now(service, who, again_play.id)
    with installation.start(privacy_cap=1.5) as service:
        assert len(service.privacy_account(who).items) == 3


def test_a_delivery_that_a_restored_database_forgot_is_still_paid(installation: Installation, tmp_path: Path) -> None:
    with installation.start() as service:
        play = decided(service, 3)
        back_up(service, tmp_path / "backup")
        play.deliver([0, 1])
        play.release()
    restore(installation, tmp_path / "backup")
    with installation.start() as service:
        now = again(service, play)
        states = [service.participation(link.token).state for link in play.seats]
        assert states == [ParticipantState.DELIVERED, ParticipantState.DELIVERED, ParticipantState.DROPPED]
        assert len(service.mark_paid(play.who, play.id)) == 2
        assert now.view.due == 0


def test_what_was_withdrawn_after_the_backup_stays_withdrawn(installation: Installation, tmp_path: Path) -> None:
    with installation.start() as service:
        early, late = opened(service, 4), decided(service, 4)
        early.bid()
        late.deliver()
        back_up(service, tmp_path / "backup")
        service.withdraw(early.token(0))
        service.withdraw(late.token(0))
    restore(installation, tmp_path / "backup")
    with installation.start() as service:
        assert early.on(service).view.people == {"bid": 3, "withdrawn": 1}
        assert late.on(service).view.people == {"delivered": 3, "withdrawn": 1}
        assert service.participation(early.token(0)).bid is None
        assert late.on(service).release().state == "done"
        record = Record.from_dict(parsed(service.record(late.who, late.id)))
        assert record.release is not None
        assert len(record.release.dropped_out) == 1


def test_a_withdrawal_after_a_decision_that_is_adopted_stays(installation: Installation, tmp_path: Path) -> None:
    taken: list[Path] = []

    def at(point: str) -> None:
        if point == "allocation.claimed" and not taken:
            taken.append(tmp_path / "backup")
            back_up(service, taken[0])

    with installation.start(crash=at) as service:
        play = decided(service, 4)
        service.withdraw(play.token(0))
    restore(installation, taken[0])
    with installation.start() as service:
        assert again(service, play).view.people == {"promised": 3, "withdrawn": 1}


@pytest.mark.parametrize("lost", ["everything", "decision", "release"])
def test_a_server_whose_claims_were_lost_does_not_start_and_draws_nothing_anew(
    installation: Installation, tmp_path: Path, lost: str
) -> None:
    with installation.start() as service:
        play = decided(service)
        play.deliver()
        back_up(service, tmp_path / "before")
        play.release()
        claims = service.home.claims
    restore(installation, tmp_path / "before")
    kept = {path: path.read_bytes() for path in claims.iterdir()}
    for path in kept:
        if lost == "everything" or path.name.startswith(lost):
            path.unlink()
    gone = "decision" if lost == "everything" else lost
    with pytest.raises(CampaignError, match=rf"{gone}-{play.id}\.json is missing, and must not be made anew"):
        installation.start()
    for path, content in kept.items():
        path.write_bytes(content)
    with installation.start() as service:
        assert again(service, play).view.state is CampaignState.RELEASED


def test_claims_that_a_crash_left_unmarked_are_marked_at_the_next_start(installation: Installation) -> None:
    with installation.start() as service:
        play = decided(service)
        play.deliver()
        play.release()
        claims, keys = service.home.claims, service.home.data_keys
    for mark in keys.glob("*.stands"):
        mark.unlink()
    installation.start().close()
    assert {mark.stem for mark in keys.glob("*.stands")} == {f"decision-{play.id}", f"release-{play.id}"}
    for mark in keys.glob("*.stands"):
        mark.unlink()
    for kind in ("release", "decision"):  # before any start has marked them
        claim = claims / f"{kind}-{play.id}.json"
        content = claim.read_bytes()
        claim.unlink()
        with pytest.raises(CampaignError, match=rf"{kind}-{play.id}\.json is missing, and must not be made anew"):
            installation.start()
        claim.write_bytes(content)
    installation.start().close()


def test_claims_that_are_lost_while_a_server_runs_are_not_drawn_anew(installation: Installation) -> None:
    with installation.start() as service:
        play = decided(service)
        play.deliver()
        mark_standing(service.home, f"release-{play.id}")  # drawn, and then lost
        service.wait(service.release(play.who, play.id), timeout=300)
        assert "failed" in [job.state for job in service.jobs(play.who, play.id)]
        assert play.view.state is CampaignState.RELEASING
        assert not list(service.home.claims.glob("release-*"))
