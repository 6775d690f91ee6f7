"""Answers to several questions inside the server: sealed as one, opened once, released once whatever crashes."""

import struct
from typing import Any

import pytest

from hushbid.common.documents import parsed
from hushbid.disclosure.ledger.files import stored
from hushbid.errors import DataError
from hushbid.questions import Choice, Number, Question, YesNo
from hushbid.record import Record
from hushbid.server.model.answers import Answers, codes_of
from hushbid.server.service import Service, release
from hushbid.verification.verifying import verify
from tests.server.support import Installation, Play, decided, nonce_for

ASKED: tuple[Question, ...] = (
    Number(name="sleep", bounds=(0, 12)),
    YesNo(name="smokes"),
    Choice(name="shift", answers=("days", "nights", "no answer")),
)
SECRET = 7.765625
HERS = {"sleep": SECRET, "smokes": True, "shift": "nights"}


def survey(service: Service, **changes: Any) -> Play:
    return decided(service, 5, questions=ASKED, bounds=None, buyer_weight=400.0, **changes)


def deliver(play: Play, rows: range, answers: Any = HERS) -> None:
    for row in rows:
        play.service.deliver(play.token(row), Answers(answers), nonce=nonce_for(play.id, row))


def test_answers_are_sealed_as_one_of_the_same_length_and_stand_nowhere_else(installation: Installation) -> None:
    with installation.start() as service:
        play = survey(service)
        deliver(play, range(1))
        deliver(play, range(1, 2), {"sleep": 0, "smokes": False, "shift": "no answer"})
        with service._read() as connection:
            rows = connection.exec_driver_sql("SELECT delivery FROM participants WHERE delivery IS NOT NULL").scalars()
            sealed = list(rows)
        assert [len(one) for one in sealed] == [12 + 3 * 8 + 16] * 2
        assert str(SECRET) not in repr(Answers(HERS)) + repr(service.export(play.token(0)))
    files = [path.read_bytes() for path in installation.folder.rglob("*") if path.is_file()]
    for trace in (str(SECRET).encode(), struct.pack("<d", SECRET), struct.pack(">d", SECRET)):
        assert not any(trace in content for content in files)


def test_what_was_drawn_for_all_questions_is_shown_again_after_a_crash(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    with installation.start() as service:
        play = survey(service)
        deliver(play, range(4))
        with monkeypatch.context() as patch:
            patch.setattr(release, "_store", lambda *_: 1 / 0)
            assert play.release().state == "failed"
        drawn = stored(service.home.claims, f"release-{play.id}")
    with installation.start() as service:
        again = play.on(service)
        for job in service.jobs(again.who, again.id):
            service.wait(job, timeout=300)
        if again.view.release is None:
            assert again.release().state == "done"
        record = Record.from_dict(parsed(service.record(again.who, again.id)))
        assert drawn is not None
        assert record.release is not None
        found = [list(answer.values) for answer in record.release.answers]
        assert found == [answer["values"] for answer in drawn["answers"]]
        assert verify(record).ok
        assert again.view.key_destroyed_at is not None


def test_codes_are_places_and_an_error_never_says_what_was_answered() -> None:
    assert codes_of(ASKED, Answers({**HERS, "sleep": -0.0})) == (0.0, 1.0, 1.0)
    for wrong in ({**HERS, "sleep": SECRET + 12}, {**HERS, "smokes": str(SECRET)}, {**HERS, "shift": str(SECRET)}):
        with pytest.raises(DataError) as told:
            codes_of(ASKED, Answers(wrong))
        assert str(SECRET)[2:] not in str(told.value)
    for nothing in (None, HERS, 7.0):
        with pytest.raises(DataError, match="answers must be given"):
            codes_of(ASKED, nothing)
