"""Opening a campaign in the background: once, with progress, taken up after a restart; a failure leaves a draft."""

from dataclasses import replace

import pytest

from hushbid.errors import Conflict
from hushbid.server.model.states import CampaignState
from hushbid.server.service import Service, drafts
from hushbid.server.store import jobs as stored
from tests.server.support import Installation, drafted


def test_opening_with_strata_is_a_job_that_says_how_far_it_is(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    people = [("ann", None, "a"), ("bob", None, "b"), ("cem", None, "a"), ("dee", None, "b")]
    play = drafted(service, people, strata={"shares": {"a": 0.5, "b": 0.5}})
    seen: list[tuple[str, int, int]] = []
    change = stored.change

    def noted(connection: object, job_id: str, **columns: object) -> None:
        seen.append((str(columns.get("step")), int(str(columns.get("done", 0))), int(str(columns.get("total", 0)))))
        change(connection, job_id, **columns)  # type: ignore[arg-type]

    monkeypatch.setattr(stored, "change", noted)
    job = service.open(play.who, play.id)
    assert (job.kind, job.state) == ("opening", "running")
    done = service.wait(job, timeout=300)
    assert (done.state, done.problem) == ("done", None)
    assert ("menus", 1, 2) in seen
    assert play.view.state is CampaignState.BIDDING


def test_a_second_click_opens_nothing_twice_and_a_failure_is_told(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    play = drafted(service, 3, spending_limit=0.01)
    monkeypatch.setattr(service, "start", lambda job: None)
    job = service.open(play.who, play.id)
    with pytest.raises(Conflict, match="already"):
        service.open(play.who, play.id)
    monkeypatch.undo()
    service.start(job)
    found = service.wait(job, timeout=300)
    assert found.state == "failed"
    assert found.problem is not None
    assert found.field == "spending_limit"
    assert play.view.state is CampaignState.DRAFT
    service.discard(play.who, play.id)


def test_an_opening_that_a_restart_interrupted_is_taken_up(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    with installation.start() as service:
        play = drafted(service, 3)
        monkeypatch.setattr(service, "start", lambda job: None)
        job = service.open(play.who, play.id)
    with installation.start() as service:
        assert service.wait(job, timeout=300).state == "done"
        assert play.on(service).view.state is CampaignState.BIDDING


def test_a_server_that_stops_leaves_an_opening_to_the_next_one(installation: Installation) -> None:
    """With strata it takes minutes, which nobody waits for who stops a server."""
    with installation.start() as service:
        play = drafted(service, 3)
        stopping = service.context.stopping
        assert not stopping()
        service.context = replace(service.context, stopping=lambda: True)
        job = service.wait(service.open(play.who, play.id), timeout=300)
        assert (job.state, play.view.state) == ("running", CampaignState.DRAFT)
    assert stopping()
    with installation.start() as service:
        assert service.wait(job, timeout=300).state == "done"
        assert play.on(service).view.state is CampaignState.BIDDING


def test_a_draft_that_was_changed_meanwhile_is_not_opened(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    play = drafted(service, 3)
    slowly = drafts.preview

    def changed(*args: object, **kwargs: object) -> object:
        service.invite(play.who, play.id, count=1)
        return slowly(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(drafts, "preview", changed)
    job = service.wait(service.open(play.who, play.id), timeout=300)
    assert (job.state, job.field) == ("failed", "draft")
    assert play.view.state is CampaignState.DRAFT
