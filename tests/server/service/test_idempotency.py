"""A request with a key is carried out once, and gets one answer, even if the server is killed in the middle of it."""

import json
import signal
from collections.abc import Callable
from typing import Any, ParamSpec

import pytest

from hushbid.errors import Conflict, InputError, ServerFailed
from hushbid.server.service import Service
from hushbid.server.service.use_case import Call, IdempotencyKey
from tests.server.crashing import process_of
from tests.server.support import Installation, analyst, drafted, on_both_stores, opened, secret_for, settings

pytestmark = on_both_stores

P = ParamSpec("P")
KEY = "0123456789abcdef"


def encode(found: Any) -> bytes:
    """An answer, by what tells it from others."""
    shown = [one.token for one in found] if isinstance(found, tuple) else [found.id]
    return json.dumps(shown).encode()


def request(*, who: str = "u1", asked: bytes = b"request") -> IdempotencyKey:
    return IdempotencyKey(who=who, key=KEY, asked=asked, encode=encode)


def ask(service: Service, use_case: Call[P, Any], *args: P.args, **kwargs: P.kwargs) -> tuple[bytes, bool]:
    return use_case.once(request(), *args, **kwargs)


def test_a_request_is_carried_out_once_under_its_key(installation: Installation) -> None:
    with installation.start() as service:
        who = analyst(service)

        def draft(**differently: Any) -> tuple[bytes, bool]:
            return service.draft.once(request(**differently), who, settings())

        first = draft()
        assert first[1] is False
        assert draft() == (first[0], True)
        assert draft(who="u2")[1] is False
        with pytest.raises(Conflict, match="another request"):
            draft(asked=b"another")
        assert len(service.campaigns(who).items) == 2
        installation.clock.pass_(days=2)
        service.tick()
        assert draft()[1] is False


@pytest.mark.parametrize("wrong", ["short", "x" * 201, "\u0661" * 20, "spaces between words"])
def test_a_key_that_others_could_guess_is_refused(wrong: str) -> None:
    with pytest.raises(InputError, match="Idempotency-Key"):
        IdempotencyKey(who="u1", key=wrong, asked=b"request", encode=encode)


def test_what_was_refused_is_not_stored(service: Service) -> None:
    play = drafted(service, 1)
    with pytest.raises(Conflict, match="At least 2 people"):
        ask(service, service.open, play.who, play.id)
    service.invite(play.who, play.id, count=1)
    assert ask(service, service.open, play.who, play.id)[1] is False


def test_a_request_that_is_refused_because_it_was_just_carried_out_gets_its_answer(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One request arrives twice at once, and the second finds the campaign open before it finds the answer."""
    play, run = drafted(service, 2), service.writer.run

    def after_another(name: str, operation: Callable[..., Any]) -> Any:
        monkeypatch.setattr(service.writer, "run", run)
        assert ask(service, service.open, play.who, play.id)[1] is False
        return run(name, operation)

    monkeypatch.setattr(service.writer, "run", after_another)
    content, repeated = ask(service, service.open, play.who, play.id)
    [job] = service.jobs(play.who, play.id)
    assert (json.loads(content), repeated) == ([job.id], True)


def test_an_answer_that_cannot_be_made_undoes_the_change(service: Service) -> None:
    who = analyst(service)

    def broken(found: Any) -> bytes:
        raise ValueError("no answer")

    with pytest.raises(ValueError, match="no answer"):
        service.draft.once(IdempotencyKey(who="u1", key=KEY, asked=b"request", encode=broken), who, settings())
    assert service.campaigns(who).items == ()


def test_a_lost_commit_that_was_made_after_all_is_found(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    play = drafted(service, 2)
    run = service.writer.run

    def lost(name: str, operation: Callable[..., Any]) -> Any:
        run(name, operation)
        raise ServerFailed("it is not known whether the change was made")

    monkeypatch.setattr(service.writer, "run", lost)
    content, repeated = ask(service, service.invite, play.who, play.id, count=3)
    assert (len(json.loads(content)), repeated) == (3, True)
    assert service.campaign(play.who, play.id).people == {"invited": 5}


# -- killed ------------------------------------------------------------------------------------------------------------


def _invite(installation: Installation, campaign: str, point: str) -> None:
    def crash(reached: str) -> None:
        if reached == point:
            signal.raise_signal(signal.SIGKILL)

    with installation.start(crash=crash) as service:
        ask(service, service.invite, analyst(service), campaign, count=3)


@pytest.mark.parametrize(("point", "done"), [("invite.before-commit", False), ("invite.after-commit", True)])
def test_a_request_whose_server_was_killed_is_answered_when_it_comes_again(
    installation: Installation, point: str, done: bool
) -> None:
    with installation.start() as service:
        play = drafted(service, 2)
    installation.patience = 5.0
    assert process_of(_invite, installation, play.id, point) == -signal.SIGKILL
    with installation.start() as service:
        content, repeated = ask(service, service.invite, play.who, play.id, count=3)
        assert repeated is done
        assert service.campaign(play.who, play.id).people == {"invited": 5}
        for token in json.loads(content):
            assert service.enter(token, secret_for(token)).state == "invited"
        assert ask(service, service.invite, play.who, play.id, count=3) == (content, True)


def _decide(installation: Installation, campaign: str, point: str) -> None:
    def crash(reached: str) -> None:
        if reached == point:
            signal.raise_signal(signal.SIGKILL)

    with installation.start(crash=crash) as service:
        ask(service, service.close_bidding, analyst(service), campaign)


def test_work_that_was_begun_by_a_request_goes_on_although_its_answer_was_lost(installation: Installation) -> None:
    with installation.start() as service:
        play = opened(service)
        play.bid()
    installation.patience = 5.0
    assert process_of(_decide, installation, play.id, "allocation.start.after-commit") == -signal.SIGKILL
    with installation.start() as service:
        content, repeated = ask(service, service.close_bidding, play.who, play.id)
        [job, _] = service.jobs(play.who, play.id)  # newest first: the decision, the opening
        assert (json.loads(content), repeated) == ([job.id], True)
        assert service.wait(job, timeout=300).state == "done"
        assert service.campaign(play.who, play.id).state == "delivering"
