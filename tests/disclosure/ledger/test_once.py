"""One question to the same people has one answer, in Python: with ids and without, in a process and in a store."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hushbid
from hushbid.disclosure.ledger import store
from hushbid.errors import AlreadyReleased, InputError


def forget() -> None:
    """What a process remembers is gone, as in a new one."""
    hushbid.disclosure.ledger.once._drawn.clear()


def test_the_store_is_the_accounts_own_unless_it_is_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HUSHBID_LEDGER")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert store.account() == tmp_path / "hushbid" / "ledger"
    for unset in ("", "relative"):
        monkeypatch.setenv("XDG_STATE_HOME", unset)
        monkeypatch.setenv("HOME", "/home/somebody")
        assert store.account() == Path("/home/somebody/.local/state/hushbid/ledger")


OUTCOME = hushbid.Market(prior=hushbid.Uniform(1, 2), bounds=(0, 1), buyer_weight=50, user_weight=0).acquire(
    [1.1, 1.2, 1.3]
)


def release(data: list[float | None], **options: Any) -> float:
    return hushbid.release(OUTCOME, data, **{"question": "mean", **options}).estimate


def test_in_python_the_users_ledger_remembers_questions_and_people_in_every_process() -> None:
    ids = ["a", "b", "c"]
    first = release([0.1, 0.2, 0.3], question="sleep", ids=ids)
    release([0.4, 0.5, 0.6], question="weight", ids=ids)
    release([0.1, 0.2, 0.3], question="sleep", ids=["x", "y", "z"])
    release([0.7, 0.8, 0.9], question="sleep", ids=ids, wave=2)
    forget()
    assert release([0.1, 0.2, 0.3], question="sleep", ids=ids) == first
    for data, question, who in (
        ([0.3, 0.2, 0.1], "sleep", ids[::-1]),  # other privacy losses
        ([0.9, 0.9, 0.9], " Sleep ", ids),
        ([0.1, 0.2, 0.3], "slumber", ids),
    ):
        with pytest.raises(AlreadyReleased):
            release(data, question=question, ids=who)
    with pytest.raises(InputError, match=r"ids must have one entry per person \(3\), got 2"):
        release([0.1, 0.2, 0.3], ids=["a", "b"])


@pytest.mark.parametrize("folder", [False, True])
def test_without_ids_people_are_known_by_their_data_and_by_what_they_were_promised(
    folder: bool, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"ledger": tmp_path} if folder else {}
    first = release([0.1, 0.2, 0.3], **options)
    assert release([0.1, 0.2, 0.3], **options) == first
    for data, question in (([0.1, 0.2, 0.4], "mean"), ([0.1, 0.2, None], "mean"), ([0.1, 0.2, 0.3], "another")):
        with pytest.raises(AlreadyReleased):
            release(data, question=question, **options)
    assert release([0.4, 0.5, 0.6], question="another", **options) != first


def test_numbers_and_their_texts_are_the_same_ids(tmp_path: Path) -> None:
    first = release([0.1, 0.2, 0.3], ids=[7, 8, 9], ledger=tmp_path)
    assert release([0.1, 0.2, 0.3], ids=np.array([7, 8, 9]), ledger=tmp_path) == first
    assert release([0.1, 0.2, 0.3], ids=["7", " 8", "9"], ledger=tmp_path) == first


@pytest.mark.parametrize(
    ("ids", "told"),
    [
        ([None] * 3, "nobody is named in rows 0, 1, 2"),
        (["a", "b", None], "nobody is named in row 2"),
        (["a", float("nan"), "c"], "nobody is named in row 1"),
        (["", "b", "\u2003 "], "nobody is named in rows 0, 2"),
        (["a"] * 3, "somebody is named again in rows 1, 2"),
        ([7, "b", " 7"], "somebody is named again in row 2"),
    ],
)
def test_ids_that_name_nobody_or_somebody_twice_are_refused_before_anything_is_drawn(
    ids: list[object], told: str, tmp_path: Path
) -> None:
    for options in ({}, {"ledger": tmp_path}):
        with pytest.raises(InputError, match=told):
            release([0.15, 0.25, 0.35], question="who", ids=ids, **options)
    assert not list(tmp_path.iterdir())


def test_messages_are_compared_by_what_they_say_and_not_by_how_it_is_written(tmp_path: Path) -> None:
    local = hushbid.Market(prior=hushbid.Uniform(1, 2), bounds=(0, 1), setting="local", buyer_weight=50, user_weight=0)
    outcome = local.acquire([1.1, 1.2, 1.3])
    sent = [hushbid.privatize(0.5, float(loss), (0, 1)).to_json() if loss else None for loss in outcome.privacy_loss]
    options: dict[str, Any] = {"question": "sleep", "ids": ["a", "b", "c"], "ledger": tmp_path}
    first = hushbid.release(outcome, sent, **options)
    rewritten = [None if text is None else json.dumps(json.loads(text), indent=1) for text in sent]
    assert hushbid.release(outcome, rewritten, **options).estimate == first.estimate
    other = [hushbid.privatize(0.5, float(loss), (0, 1)) if loss else None for loss in outcome.privacy_loss]
    with pytest.raises(AlreadyReleased, match="drawn from other data"):
        hushbid.release(outcome, other, **options)


@pytest.mark.parametrize("folder", [False, True])
@pytest.mark.parametrize("named_first", [True, False])
@pytest.mark.parametrize("again", ["the same data", "another question", "one datum changed"])
def test_leaving_out_ids_or_adding_them_does_not_draw_again(
    folder: bool, named_first: bool, again: str, tmp_path: Path
) -> None:
    start = 0.001 * (1 + folder + 2 * named_first + 4 * len(again))  # data of its own for the process's memory
    data, ids = [start, 0.5, 0.9], {"ids": [f"{start}a", f"{start}b", f"{start}c"]}
    options: dict[str, Any] = {"ledger": tmp_path} if folder else {}
    question, first, then = f"ids {start}", (ids if named_first else {}), ({} if named_first else ids)
    release(data, question=question, **first, **options)
    asked = f"not {question}" if again == "another question" else question
    if again == "one datum changed":
        data = [start + 1e-9, 0.5, 0.9]
    if folder:
        forget()
    with pytest.raises(AlreadyReleased, match=r"already produced|without ids"):
        release(data[::-1] if not named_first and folder else data, question=asked, **then, **options)


def test_other_people_with_ids_may_answer_alike(tmp_path: Path) -> None:
    first = release([0.0, 1.0, 1.0], question="yes", ids=["u", "v", "w"], ledger=tmp_path)
    assert release([0.0, 1.0, 1.0], question="yes", ids=["x", "y", "z"], ledger=tmp_path) != first
    assert release([0.0, 1.0, 1.0], question="yes", ids=["u", "v", "w"], ledger=tmp_path) == first


def test_without_ids_a_neighbour_that_was_stored_and_is_gone_is_missed(tmp_path: Path) -> None:
    release([0.11, 0.21, 0.31], question="gone", ledger=tmp_path)
    [claim] = tmp_path.glob("*.json")
    claim.unlink()
    forget()
    with pytest.raises(hushbid.errors.ReleaseError, match="was stored and is gone"):
        release([0.11, 0.21, 0.32], question="gone", ledger=tmp_path)
