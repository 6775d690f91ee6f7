"""The release ledger against people who try to draw again: columns, synthetic people, older ledgers, guesses."""

import hashlib
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hushbid
from hushbid.disclosure import ReleasePlan, release_once, release_synthetic
from hushbid.disclosure.ledger import marks, once
from hushbid.disclosure.ledger.question import ColumnTally, Forms, Tally, answer_forms, person_digests, tallied
from hushbid.errors import AlreadyReleased, InputError, ReleaseError, Unwritable
from hushbid.questions import Choice, Number, Question, YesNo

N = 6
IDS = [f"p{row}" for row in range(N)]
SLEEP = [6.5, 7.0, 7.25, 8.0, 5.5, 6.0]
HOURS, CONSTANT = Number(name="sleep", bounds=(0, 12)), Number(name="constant", bounds=(0, 12))


def forget() -> None:
    """Forget what a process remembers, as a new one would start."""
    once._drawn.clear()


def survey(*questions: Question) -> ReleasePlan:
    return ReleasePlan.of(np.linspace(0.5, 1.0, N), setting="central", questions=questions)


def number() -> ReleasePlan:
    return ReleasePlan.of(np.linspace(0.5, 1.0, N), setting="central", bounds=(0, 12))


def ask(plan: ReleasePlan, data: Any, question: str, **more: Any) -> float:
    forget()
    found = release_once(plan, data, question=question, **{"ids": IDS, **more}).release
    return found.answers[0].values[0] if found.answers else found.one_estimate


# -- item 7: columns ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ids", [IDS, None])
def test_a_column_is_drawn_from_once_whatever_is_asked_beside_it(ids: list[str] | None) -> None:
    ask(number(), SLEEP, "sleep", ids=ids)
    for place, constant in enumerate((0.0, 1.0, 2.0)):
        for asked in ((HOURS, CONSTANT), (CONSTANT, HOURS)):
            data = {"sleep": SLEEP, "constant": [constant] * N}
            with pytest.raises(AlreadyReleased, match=r"already produced an estimate \(question 'sleep', wave 1, "):
                ask(survey(*asked), data, f"another {place}", ids=ids)
    # the same constant beside another column is no draw from the same data
    other = Number(name="other", bounds=(0, 12))
    ask(survey(other, CONSTANT), {"other": [x + 1.0 for x in SLEEP], "constant": [1.0] * N}, "other", ids=ids)
    third = Number(name="third", bounds=(0, 12))
    ask(survey(third, CONSTANT), {"third": [1.0, 2, 3, 4, 5, 7], "constant": [1.0] * N}, "third", ids=ids)


def test_a_question_of_a_survey_is_not_drawn_again_alone_nor_as_another_kind() -> None:
    smokes = [1.0, 0.0, 0.0, 1.0, 1.0, 0.0]
    words = ["yes" if one else "no" for one in smokes]
    shift = ["day", "night", "both", "day", "day", "night"]
    asked = (HOURS, YesNo(name="smokes"), Choice(name="shift", answers=("day", "night", "both")))
    ask(survey(*asked), {"sleep": SLEEP, "smokes": [bool(one) for one in smokes], "shift": shift}, "work")
    unit = ReleasePlan.of(np.linspace(0.5, 1.0, N), setting="central", bounds=(0, 1))
    attempts: list[tuple[ReleasePlan, Any]] = [
        (number(), SLEEP),
        (unit, smokes),
        (survey(Choice(name="x", answers=("no", "yes"))), {"x": words}),
        (survey(Choice(name="y", answers=("both", "day", "night"))), {"y": shift}),
    ]
    for place, (plan, data) in enumerate(attempts):
        with pytest.raises(AlreadyReleased, match="already produced"):
            ask(plan, data, f"attempt {place}")


def test_tallies_of_batches_add_up_to_that_of_all_rows_in_any_order() -> None:
    rng = np.random.default_rng(5)
    table = np.column_stack([rng.random(40), rng.integers(0, 2, 40), np.ones(40)])
    questions = (HOURS, YesNo(name="smokes"), CONSTANT)
    people, losses = person_digests([f"p{row}" for row in range(40)]), rng.random(40)

    def of(rows: np.ndarray) -> Tally:
        forms = answer_forms(table[rows], np.ones(rows.size, dtype=bool), questions)
        return tallied(people[rows], losses[rows], 1.0, forms)

    whole = of(np.arange(40))
    parts = sum((of(rows) for rows in np.array_split(rng.permutation(40), 7)), Tally())
    assert [(one.data, one.answers, one.varies) for one in parts.columns] == [
        (one.data, one.answers, one.varies) for one in whole.columns
    ]
    assert [one.varies for one in whole.columns] == [True, True, False]
    assert ColumnTally() + whole.columns[0] == whole.columns[0]


@pytest.mark.parametrize("ids", [IDS, None])
def test_synthetic_draws_refuse_what_the_ledger_knows_as_real(ids: list[str] | None) -> None:
    assert release_synthetic(number(), SLEEP, ids=ids, question="sleep") is not None  # nothing real yet
    ask(number(), SLEEP, "sleep", ids=ids)
    for question, data in (("sleep", SLEEP), ("sleep", SLEEP[::-1]), ("other", SLEEP)):
        with pytest.raises(AlreadyReleased, match=r"question 'sleep', wave 1"):
            release_synthetic(number(), data, ids=ids, question=question)
    made = [f"q{row}" for row in range(N)]
    if ids is not None:
        release_synthetic(number(), [9.0, 8.0, 7.0, 6.0, 5.0, 4.0], ids=made, question="sleep")


# -- item 8: one ledger for every process ------------------------------------------------------------------------------

TWICE = """
import hushbid
outcome = hushbid.Market(prior=hushbid.Uniform(1, 2), buyer_weight=50, user_weight=0).acquire([1.1, 1.2, 1.3])
print(hushbid.release(outcome, [0.1, 0.2, 0.3], question="sleep").estimate)
"""


def test_a_script_that_runs_twice_shows_one_estimate(tmp_path: Path) -> None:
    env = {**os.environ, "HUSHBID_LEDGER": str(tmp_path / "ledger")}
    shown = {subprocess.check_output([sys.executable, "-c", TWICE], env=env, timeout=120) for _ in range(2)}
    assert len(shown) == 1


OUTCOME = hushbid.Market(prior=hushbid.Uniform(1, 2), buyer_weight=50, user_weight=0).acquire([1.1, 1.2, 1.3])


def test_simulations_refuse_the_outcome_of_a_real_release() -> None:
    assert len(set(hushbid.simulate_releases(OUTCOME, [0.3, 0.4, 0.5], 5).tolist())) == 5
    hushbid.release(OUTCOME, [0.1, 0.2, 0.3], question="sleep", ids=["a", "b", "c"])
    for data in ([0.1, 0.2, 0.3], [0.5, 0.5, 0.5]):
        with pytest.raises(AlreadyReleased, match="synthetic"):
            hushbid.simulate_releases(OUTCOME, data, 5)
    other = hushbid.Market(prior=hushbid.Uniform(1, 2), buyer_weight=40, user_weight=0).acquire([1.1, 1.2, 1.3])
    assert hushbid.simulate_releases(other, [0.5, 0.5, 0.5], 2).size == 2


def test_a_question_is_required() -> None:
    with pytest.raises(TypeError, match="question"):
        hushbid.release(OUTCOME, [0.1, 0.2, 0.3])  # type: ignore[call-arg]
    with pytest.raises(InputError, match="question must say what is asked"):
        hushbid.release(OUTCOME, [0.1, 0.2, 0.3], question="  ")


def test_a_ledger_that_cannot_be_written_draws_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Unwritable, match="cannot be used"):
        hushbid.release(OUTCOME, [0.1, 0.2, 0.3], question="sleep", ledger=tmp_path / "file")
    with pytest.raises(InputError, match="ledger must be the path of a folder"):
        hushbid.release(OUTCOME, [0.1, 0.2, 0.3], question="sleep", ledger="")


def test_an_older_ledger_is_refused_by_name_wherever_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def draw(**more: Any) -> None:
        hushbid.release(OUTCOME, [0.1, 0.2, 0.3], question="sleep", **more)

    entry = f"ids-{'0' * 32}-{'1' * 32}-1.json"
    for name in ("store.key", entry, f"seen-{'2' * 32}", f"{'3' * 64}.claim"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / name).write_text("{}")
        with pytest.raises(AlreadyReleased, match="earlier version of Hushbid"):
            draw(ledger=folder)
    later = tmp_path / "later"
    later.mkdir()
    (later / "ledger.format").write_text(json.dumps({"format": "hushbid release ledger", "version": 6}))
    with pytest.raises(ReleaseError, match="must have format 'hushbid release ledger' and version 5"):
        draw(ledger=later)
    monkeypatch.delenv("HUSHBID_LEDGER")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    (tmp_path / "hushbid" / "claims").mkdir(parents=True)
    (tmp_path / "hushbid" / "claims" / "store.key").write_text("")
    with pytest.raises(AlreadyReleased, match="earlier version of Hushbid"):
        draw()
    monkeypatch.setenv("HUSHBID_CLAIMS", str(tmp_path / "elsewhere"))
    with pytest.raises(ReleaseError, match="HUSHBID_CLAIMS is set"):
        draw()


# -- item 9: what the ledger reveals -----------------------------------------------------------------------------------


def everything_in(folder: Path) -> str:
    return "\n".join(f"{path.name}\n{path.read_bytes().hex()}\n" for path in folder.iterdir() if path.is_file())


def test_with_ids_no_fingerprint_of_values_alone_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [1.0, 0.0, 0.0, 1.0, 1.0, 0.0]
    plan = ReleasePlan.of(np.linspace(0.5, 1.0, N), setting="central", bounds=(0, 1))
    slow: list[bytes] = []
    real = hashlib.scrypt

    def counted(password: bytes, **more: Any) -> bytes:
        slow.append(password)
        return real(password, **more)

    monkeypatch.setattr(marks.hashlib, "scrypt", counted)
    ask(plan, answers, "smokes", ledger=tmp_path)
    assert len(slow) == 1  # a column, never a row
    stored, key = everything_in(tmp_path), marks.Keyed((tmp_path / "ledger.key").read_bytes())
    fast = marks.Keyed((tmp_path / "ledger.key").read_bytes(), slow=False)
    people = person_digests(IDS)
    for guess in itertools.product((0.0, 1.0), repeat=N):
        table = np.array(guess)[:, np.newaxis]
        forms: Forms = answer_forms(table, np.ones(N, dtype=bool))
        tally = tallied(people, plan.promised, plan.variance, forms)
        # neither the count of answers, nor a quick hash of anything, is to be found
        totals = {tally.whole.answers, tally.whole.data}
        for purpose, total in itertools.product(("ids", "data"), totals):
            assert fast.fingerprint(purpose, total) not in stored
        if list(guess) == answers:
            assert key.fingerprint("ids", tally.whole.data) in stored
            assert key.fingerprint("data", tally.whole.answers) not in stored


def test_an_entry_without_ids_says_of_the_data_nothing_beside_their_fingerprint(tmp_path: Path) -> None:
    plan = ReleasePlan.of(np.linspace(0.5, 1.0, N), setting="central", bounds=(0, 1))
    held = []
    for place, smokes in enumerate(([1.0, 0, 0, 1, 1, 0], [0.0, 0, 1, 0, 1, 1])):
        ledger = tmp_path / str(place)
        ledger.mkdir()
        (ledger / "ledger.key").write_bytes(bytes(32))
        ask(plan, smokes, "smokes", ids=None, ledger=ledger)
        [path] = ledger.glob("data-*.json")
        entry = json.loads(path.read_text())["drawing"]
        del entry["stated"]["data"], entry["release"]["estimate"]
        held.append(entry)
    # neither the order of privacy losses nor a hash of it, which is quick to compute, depends on who said yes
    assert held[0] == held[1]


def test_an_entry_keeps_nobodys_losses_and_knows_late_data_by_their_ids(tmp_path: Path) -> None:
    gone: list[float | None] = [*SLEEP[:4], None, None]
    first = release_once(number(), gone, question="sleep", ids=IDS, ledger=tmp_path)
    [path] = tmp_path.glob("ids-*.json")
    kept = json.loads(path.read_text())["drawing"]["release"]
    assert (kept["privacy_loss"], kept["dropped_out"]) == ([], [])
    forget()
    rows = np.array([3, 5, 0, 1, 4, 2])
    plan = ReleasePlan.of(np.linspace(0.5, 1.0, N)[rows], setting="central", bounds=(0, 12))
    again = release_once(
        plan,
        [[*SLEEP[:4], None, 6.0][row] for row in rows],
        question="sleep",
        ids=[IDS[row] for row in rows],
        ledger=tmp_path,
    )
    assert (again.before, again.late, again.release.dropped_out) == (True, (1,), (1, 4))
    assert again.release.estimate == first.release.estimate
    assert again.release.privacy_loss.tolist() == first.release.privacy_loss[rows].tolist()
