"""A survey's record is verified from its questions, by formulas of their own, and planted faults are found."""

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hushbid import Accuracy, Budget, Choice, HardBudget, Market, Number, Record, Uniform, YesNo, verify
from hushbid.common.documents import content_hash
from hushbid.disclosure import release_synthetic
from hushbid.mechanism import survey
from hushbid.mechanism.releasing import plan_of
from hushbid.questions import Layout, layout_of
from hushbid.verification.check_questions import noise_of
from tests.extent import by_turns

QUESTIONS = (
    Number(name="sleep", bounds=(0, 12), variance=2.0),
    YesNo(name="smoker", importance=50.0),
    Choice(name="party", answers=("a", "b", "c")),
    Number(name="age", bounds=(18, 100), importance=0.01),
)
GOALS: dict[str, dict[str, Any]] = {
    "price": {"buyer_weight": 100.0},
    "budget": {"goal": Budget(20)},
    "hard budget": {"goal": HardBudget(20)},
    "accuracy": {"goal": Accuracy([1.5, 0.2, 0.2, 14])},
}
BIDS = np.random.default_rng(8).uniform(1, 2, 24)


def recorded(**terms: Any) -> Record:
    return Record.of(Market(prior=Uniform(1, 2), questions=QUESTIONS, **terms).acquire(BIDS))


LOCAL: dict[str, dict[str, Any]] = {
    "price": {"buyer_weight": 100.0, "setting": "local"},
    "cap": {"buyer_weight": 100.0, "max_privacy_loss": 0.5, "setting": "local"},
    "relation": {"goal": Accuracy([4, 0.6, 0.6, 40]), "max_correlation": 0.1, "setting": "local"},
}


@pytest.mark.parametrize("terms", GOALS.values(), ids=GOALS)
def test_an_honest_survey_passes(terms: dict[str, Any]) -> None:
    found = verify(recorded(**terms))
    assert found.ok, found
    assert {"questions", "grouping"} <= {check.name for check in found.checks if check.status == "holds"}


def answered(**terms: Any) -> Record:
    """A survey with its answers, of which one person left one open."""
    outcome = Market(prior=Uniform(1, 2), questions=QUESTIONS, **terms).acquire(BIDS)
    rng, n = np.random.default_rng(3), BIDS.size
    rows = [[7.0, bool(rng.random() < 0.3), "abc"[int(rng.integers(3))], float(rng.uniform(18, 90))] for _ in range(n)]
    if outcome.active > 1:
        rows[int(np.flatnonzero(outcome.privacy_loss)[0])][2] = None
    answer = release_synthetic(plan_of(outcome), rows, simulated=outcome.market.setting == "local")
    return Record.of(outcome, answer.release)


@pytest.mark.parametrize("name", ["hard budget", "accuracy"])
def test_honest_answers_pass(name: str) -> None:
    terms = GOALS[name] | {"max_correlation": 0.1}
    if name == "accuracy":
        terms |= {"goal": Accuracy([2.5, 0.3, 0.3, 25])}
    found = verify(Record.from_dict(answered(**terms).to_dict()))
    assert found.ok, found
    checked = {check.name for check in found.checks if check.status == "holds"}
    assert {"answers", "one loss for all questions", "error of 'party'", "planned error of 'age'"} <= checked


@pytest.mark.parametrize("terms", LOCAL.values(), ids=LOCAL)
def test_honest_messages_pass(terms: dict[str, Any]) -> None:
    found = verify(Record.from_dict(answered(**terms).to_dict()))
    assert found.ok, found
    checked = {check.name for check in found.checks if check.status == "holds"}
    assert {"questions", "grid", "answers", "one loss for all questions", "error of 'party'"} <= checked


def test_messages_about_hardly_anything_pass_on_their_coarser_grid() -> None:
    """The noise of the group with the least part would not fit in 64 bits on the usual grid."""
    record = answered(buyer_weight=1e-22, setting="local")
    assert record.release is not None
    assert record.release.grid.data_bits < 32
    assert verify(Record.from_dict(record.to_dict())).ok


def altered(record: Record, change: Callable[[dict[str, Any]], object]) -> Record:
    content = copy.deepcopy(dict(record.to_dict()))
    del content["hash"]
    change(content["release"]["answers"])
    return Record.from_dict({**content, "hash": content_hash(content)})


@pytest.mark.parametrize(
    ("changed", "setting"),
    by_turns(
        [
            (lambda answers: answers[0]["error"].update(largest_noise=1e-3), "error of 'sleep'"),
            (lambda answers: answers[1]["planned_error"].update(sampling_variance=1e-3), "planned error of 'smoker'"),
            (lambda answers: answers[2]["error"].update(cells=2), "error of 'party'"),
            (lambda answers: answers[2]["values"].__setitem__(0, 0.5), "answers"),
            (lambda answers: answers[3]["values"].__setitem__(0, 0.1 + 1e-9), "answers"),
            (lambda answers: answers.reverse(), "answers"),
            (lambda answers: answers[0]["question"].update(variance=1.5), "answers"),
        ],
        ("central", "local"),
    ),
)
def test_a_changed_answer_or_error_is_found(changed: tuple[Callable[[Any], object], str], setting: str) -> None:
    change, check = changed
    found = verify(altered(answered(buyer_weight=100.0, setting=setting), change))
    assert check in found.failed


@pytest.mark.parametrize("field", ["next_noise", "other_noise_squared", "sampling_variance", "rounding"])
@pytest.mark.parametrize("kind", ["error", "planned_error"])
def test_everybodys_own_noise_is_checked_to_a_millionth(kind: str, field: str) -> None:
    def change(answers: Any) -> None:
        stated = answers[2][kind]
        stated[field] = stated[field] * (1 + 1e-6) + (1e-9 if stated[field] == 0 else 0)

    name = "error of 'party'" if kind == "error" else "planned error of 'party'"
    assert name in verify(altered(answered(**LOCAL["cap"]), change)).failed


def test_a_market_without_questions_has_no_such_checks() -> None:
    found = verify(Record.of(Market(prior=Uniform(1, 2), goal=Budget(20)).acquire(BIDS)))
    assert not {"questions", "grouping"} & {check.name for check in found.checks}


def smaller_width(layout: Layout) -> Layout:
    return replace(layout, width=layout.width * (1 - 1e-6))


def other_variance(layout: Layout) -> Layout:
    return replace(layout, variance=layout.variance * (1 + 1e-6))


def more_than_the_whole(layout: Layout) -> Layout:
    first, *others = layout.groups
    return replace(layout, groups=(replace(first, parts=first.parts + 1), *others))


def other_parts(layout: Layout) -> Layout:
    first, second, *others = layout.groups
    moved = replace(first, parts=first.parts + 10**6), replace(second, parts=second.parts - 10**6)
    return replace(layout, groups=(*moved, *others))


def one_box(layout: Layout) -> Layout:
    """All numbers and yes/no questions in one box, as if they were of the same importance."""
    alike = layout_of([replace(one, importance=1.0) for one in QUESTIONS])
    noise = [one.importance * alike.group_of(row).noise / 2 for row, one in enumerate(QUESTIONS)]
    return replace(layout, groups=alike.groups, width=(sum(noise) / layout.importance) ** 0.5)


@pytest.mark.parametrize(
    ("fault", "check"),
    [
        (smaller_width, "questions"),
        (other_variance, "questions"),
        (more_than_the_whole, "questions"),
        (other_parts, "questions"),
        (one_box, "grouping"),
    ],
)
def test_a_survey_bought_as_another_number_is_found(
    fault: Callable[[Layout], Layout], check: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(survey, "layout_of", lambda questions, targets: fault(layout_of(questions, targets)))
    survey.layout.cache_clear()
    try:
        found = verify(recorded(goal=Budget(20)))
    finally:
        survey.layout.cache_clear()
    assert check in {one.name for one in found.checks if one.status == "fails"}


def test_the_noise_of_a_choice_is_that_of_a_simulation() -> None:
    """Cells that add up to 0 with density falling as their positive sum, drawn by rejection from even differences."""
    rng = np.random.default_rng(5)
    # by definition: Gamma(d) times a point of the unit ball {sum of positives at most 1} among vectors that sum to 0
    points = rng.uniform(-1, 1, (400_000, 2))
    last = -points.sum(axis=1, keepdims=True)
    whole = np.hstack([points, last])
    inside = whole[np.maximum(whole, 0).sum(axis=1) <= 1.0]
    drawn = inside * rng.gamma(3.0, size=(len(inside), 1))
    assert float((drawn**2).mean()) == pytest.approx(float(noise_of(3, choice=True)), rel=0.02)
    assert noise_of(2, choice=True) == noise_of(1, choice=False) == 2


@pytest.mark.parametrize("seed", [3, 7])
def test_an_honest_budget_is_not_suspected_for_the_kinks_of_its_rents(seed: int) -> None:
    bids = np.random.default_rng(seed).uniform(1, 2, 24)
    market = Market(prior=Uniform(1, 2), bounds=(0, 10), variance=2, goal=Budget(20))
    assert verify(Record.of(market.acquire(bids))).ok
