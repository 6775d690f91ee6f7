"""Work in the background: it tells how far it is, and what failed can be begun again."""

import pytest

from hushbid.errors import Conflict, MarketError, NotFound, ReleaseError
from hushbid.server.model.states import CampaignState
from hushbid.server.model.views import JobView
from hushbid.server.service import Service, decision, release
from tests.server.support import Installation, analyst, decided, on_both_stores, opened

pytestmark = on_both_stores


def test_a_job_tells_how_far_it_is(installation: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decision, "_AT_ONCE", 2)
    seen: list[JobView] = []

    def look(point: str) -> None:
        if point.endswith("store.after-commit"):
            seen.append(service.jobs(who, play.id)[0])

    with installation.start(crash=look) as service:
        who = analyst(service)
        play = opened(service, 7)
        play.bid()
        play.decide()
        assert [(job.kind, job.state, job.done, job.total) for job in seen] == [
            ("allocation", "running", done, 7) for done in (2, 4, 6, 7)
        ]
        seen.clear()
        play.deliver()
        monkeypatch.setattr(decision, "_AT_ONCE", 3)
        play.release()
        assert [(job.kind, job.done, job.total) for job in seen] == [("release", done, 7) for done in (3, 6, 7)]
        last = service.jobs(who, play.id)[0]
        assert (last.state, last.problem) == ("done", None)
        assert last.finished_at is not None


def test_nobody_sees_a_decision_before_all_of_it_stands(installation: Installation) -> None:
    seen: list[float | None] = []

    def look(point: str) -> None:
        if point == "allocation.store.after-commit":
            seen.append(service.participation(play.token(0)).promised)
            with pytest.raises(NotFound):
                service.record(play.who, play.id)
            with pytest.raises(Conflict):
                service.receipt(play.token(0))

    with installation.start(crash=look) as service:
        play = opened(service, 3)
        play.bid()
        assert play.decide().state == "done"
        assert seen == [None]
        assert service.participation(play.token(0)).promised


def test_a_decision_that_failed_can_be_begun_again_or_cancelled(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise MarketError("A payment would be infinite.")

    one, two = opened(service, 3, participation_fee=0.05), opened(service, 3)
    with monkeypatch.context() as broken:
        broken.setattr(decision, "_record", fails)
        for play in (one, two):
            play.bid()
            job = play.decide()
            assert (job.state, job.problem) == ("failed", "A payment would be infinite.")
            assert play.view.state is CampaignState.ALLOCATING
    with pytest.raises(Conflict, match="decision is being made"):
        service.withdraw(one.token(0))
    assert two.decide().state == "done"
    assert two.view.state is CampaignState.DELIVERING
    assert service.cancel(one.who, one.id, "It failed.").due == 15


def test_a_release_that_failed_is_begun_again_and_nothing_leads_back(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise ReleaseError("The claims folder is full.")

    play = decided(service, 3)
    play.deliver([0, 1])
    with monkeypatch.context() as broken:
        broken.setattr(release, "release_plan", fails)
        assert play.release().problem == "The claims folder is full."
    assert play.view.state is CampaignState.RELEASING
    for attempt in (
        lambda: play.deliver([2]),
        lambda: service.withdraw(play.token(0)),
        lambda: service.cancel(play.who, play.id, "No."),
    ):
        with pytest.raises(Conflict):
            attempt()
    assert play.release().state == "done"
    assert play.view.people == {"delivered": 2, "dropped": 1}


def test_an_unexpected_fault_is_told_and_logged_without_what_it_says(
    service: Service, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise ZeroDivisionError("secret 7.5")

    monkeypatch.setattr(decision, "_record", fails)
    play = opened(service, 2)
    play.bid()
    assert play.decide().problem == "An unexpected fault: ZeroDivisionError; the server's log says more."
    assert "fault ZeroDivisionError at allocation of campaign" in caplog.text
    assert "decision.py" in caplog.text
    assert "7.5" not in caplog.text
