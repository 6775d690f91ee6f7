"""A whole survey is released once, and nobody loses more than promised over all its questions together."""

import itertools
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from hushbid.disclosure import (
    QuestionAnswer,
    Relation,
    Release,
    ReleasePlan,
    release_once,
    release_plan,
    simulate_plan,
)
from hushbid.disclosure.answers import as_answers
from hushbid.disclosure.delivery import planned_error, planned_errors
from hushbid.disclosure.memory import weigh
from hushbid.disclosure.sums import part_of
from hushbid.disclosure.weighing import Weighing, expected_errors
from hushbid.errors import AlreadyReleased, DataError, InputError, NothingDelivered, RecordError, ReleaseError
from hushbid.questions import PARTS, Choice, Number, Question, YesNo, layout_of
from tests.extent import each

HOURS = Number(name="hours", bounds=(0, 10), unit="h")
YES = YesNo(name="yes")
PARTY = Choice(name="party", answers=("left", "right", "none"))
EXTRA = Number(name="extra", bounds=(-1, 1), importance=1000)
MIXED: tuple[Question, ...] = (HOURS, YES, PARTY, EXTRA)
ROWS: list[Any] = [[3, True, "left", 0.5], [8.0, 0, "none", -0.5], [9, 1, 1, 0.0]]


def plan_of(losses: Any, questions: Any = MIXED, **more: Any) -> ReleasePlan:
    return ReleasePlan.of(losses, setting="central", questions=questions, **more)


# -- what is promised --------------------------------------------------------------------------------------------------


@settings(max_examples=200)
@given(st.integers(0, 2**60), st.integers(1, PARTS))
def test_a_part_of_a_weight_is_exact(weight: int, parts: int) -> None:
    assert int(part_of(np.array([weight]), parts)[0]) == weight * parts >> 30


@settings(max_examples=60)
@given(st.lists(st.floats(1e-9, 50.0), min_size=1, max_size=6), st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=5))
def test_all_groups_together_cost_nobody_more_than_promised(losses: list[float], weights: list[float]) -> None:
    asked = [YesNo(name=str(row), importance=one) for row, one in enumerate(weights)]
    people = weigh(plan_of(losses, [*asked, PARTY]), np.ones(len(losses), dtype=bool))
    scale, split = Fraction(people.sum_plan.noise_scale), [part_of(people.weights, p) for p in people.sum_plan.parts]
    for row, promised in enumerate(losses):
        lost = sum(Fraction(int(part[row])) for part in split) / scale
        assert lost <= Fraction(int(people.weights[row]), 1 << people.sum_plan.exponent) <= Fraction(promised)
        assert lost > Fraction(promised) - (len(split) + 1) / scale  # and no group gives its part away


def test_the_worst_change_of_ones_answers_costs_what_was_promised_and_no_more() -> None:
    """Every pair of answers of every person: the log ratio of probabilities at worst, in rational numbers."""
    losses = [0.7, 0.1, 1.3]
    people = weigh(plan_of(losses), np.ones(3, dtype=bool))
    summed, scale = people.without_data(), Fraction(people.sum_plan.noise_scale)
    domain = list(itertools.product([0.0, 3.3, 10.0], [0, 1], [0, 1, 2], [-1.0, 1.0]))
    middle = np.array([[5.0, 1, 1, 0.25]] * 3)
    for person, promised in enumerate(losses):
        totals = []
        for answers in domain:
            table = middle.copy()
            table[person] = answers
            totals.append(summed.totals_of(people.sums(table)))
        worst = Fraction(0)
        for before, after in itertools.combinations(totals, 2):
            loss = Fraction(0)
            for group, left, right in zip(summed.plan.layout.groups, before, after, strict=True):
                moved = [a - b for a, b in zip(left, right, strict=True)]
                # what `test_vector_noise` shows a move to cost: a box its largest cell, a choice what is moved
                size = sum(max(cell, 0) for cell in moved) if group.choice else max(map(abs, moved))
                assert not group.choice or sum(moved) == 0
                loss += Fraction(size) / scale
            worst = max(worst, loss)
        assert Fraction(promised) * (1 - Fraction(1, 10**9)) < worst <= Fraction(promised)


def test_losses_that_cannot_be_shared_are_refused_before_anything_is_drawn() -> None:
    with pytest.raises(ReleaseError, match="too small to share"):
        release_plan(plan_of([2.0**-53] * 3), ROWS)
    with pytest.raises(ReleaseError, match=r"at most 2\*\*43"):
        release_plan(plan_of([2.0**50] * 3), ROWS)


def test_a_layout_of_other_questions_is_refused() -> None:
    with pytest.raises(InputError, match="layout"):
        plan_of([1.0], (HOURS, YES), layout=layout_of((HOURS, PARTY)))
    with pytest.raises(InputError, match="layout"):
        plan_of([1.0], (HOURS,), layout=layout_of((HOURS, YES)))
    with pytest.raises(InputError, match="bounds must be left out"):
        ReleasePlan.of([1.0], setting="central", questions=MIXED, bounds=(0, 1))
    with pytest.raises(InputError, match="bounds must be two numbers"):
        ReleasePlan.of([1.0], setting="central")


def test_the_key_of_a_survey_depends_on_what_is_asked_and_how_it_shares_the_loss() -> None:
    keys = {
        plan_of([1.0, 2.0], asked, layout=layout).key
        for asked, layout in [
            (MIXED, None),
            (MIXED[:3], None),
            ((*MIXED[:3], Number(name="extra", bounds=(-1, 2), importance=1000)), None),
            (MIXED, layout_of(MIXED, [1.0, 0.1, 0.1, 0.1])),
        ]
    }
    assert len(keys) == 4


# -- what is answered --------------------------------------------------------------------------------------------------


def test_answers_are_read_from_rows_names_columns_and_arrays_alike() -> None:
    needed = np.ones(3, dtype=bool)
    names = [one.name for one in MIXED]
    expected = np.array([[3, 1, 0, 0.5], [8, 0, 2, -0.5], [9, 1, 1, 0]])
    columns = {name: [row[place] for row in ROWS] for place, name in enumerate(names)}
    by_name = [dict(zip(names, row, strict=True)) for row in ROWS]
    arrays = {name: expected[:, place] for place, name in enumerate(names)}
    frame = pd.DataFrame(columns)
    for given_ in (ROWS, by_name, columns, expected, np.ma.masked_array(expected), arrays, frame):
        np.testing.assert_array_equal(as_answers(given_, MIXED, needed=needed), expected)


@each("open_", [None, math.nan, "", "  ", np.ma.masked])
def test_whoever_leaves_a_question_open_has_dropped_out_of_all(open_: Any) -> None:
    for place in range(4):
        row = list(ROWS[0])
        row[place] = open_
        release = release_plan(plan_of([1.0] * 3, label=f"open {place} {open_!r}"), [row, *ROWS[1:]])
        assert release.dropped_out == (0,)
        assert release.privacy_loss.tolist() == [0.0, 1.0, 1.0]
    with pytest.raises(NothingDelivered):
        release_plan(plan_of([1.0] * 3), [row, None, [None] * 4])


@each(
    ("place", "wrong"),
    [(0, "7"), (0, [1]), (1, 2), (1, 0.5), (1, "yes"), (1, -1), (2, "middle"), (2, 3), (2, 1.5), (2, True), (3, b"1")],
)
def test_what_is_no_answer_is_told_by_question_and_row_and_never_shown(place: int, wrong: Any) -> None:
    row = list(ROWS[1])
    row[place] = wrong
    with pytest.raises(DataError) as told:
        release_plan(plan_of([1.0] * 3), [ROWS[0], row, ROWS[2]])
    assert "row 1 is not" in str(told.value)
    assert repr(MIXED[place].name) in str(told.value)
    assert told.value.row == 1
    assert "middle" not in str(told.value)
    # nobody looks at the answers of people whose data were not bought
    release_plan(plan_of([1.0, 0.0, 1.0], label=f"{place} {wrong!r}"), [ROWS[0], row, ROWS[2]])


@each(("place", "wrong"), [(1, 2.0), (1, 0.5), (2, 3.0), (2, -1.0), (2, 0.5), (2, math.inf)])
def test_arrays_of_numbers_are_read_as_strictly(place: int, wrong: float) -> None:
    table = as_answers(ROWS, MIXED, needed=np.ones(3, dtype=bool))
    table[2, place] = wrong
    with pytest.raises(DataError, match=rf"'{MIXED[place].name}' must be .* row 2 is not"):
        as_answers(table, MIXED, needed=np.ones(3, dtype=bool))
    read = as_answers(table, MIXED, needed=np.array([True, True, False]))
    assert np.isnan(read[2]).all()
    with pytest.raises(DataError):
        as_answers({"party": np.array([True])}, (PARTY,), needed=np.array([True]))


@each("data", [ROWS[:2], "abc", {"hours": [1, 2, 3]}, [[1, 2], [1, 2], [1, 2]], np.zeros((3, 3)), 5])
def test_data_of_another_shape_are_refused(data: Any) -> None:
    with pytest.raises(DataError):
        release_plan(plan_of([1.0] * 3), data)


# -- what is found -----------------------------------------------------------------------------------------------------


def test_with_little_noise_the_answers_are_the_weighted_means() -> None:
    losses = np.array([1.0, 2.0, 3.0]) * 1e7
    release = release_plan(plan_of(losses), ROWS)
    weights, found = losses / losses.sum(), {one.name: one for one in release.answers}
    assert found["hours"].estimate == pytest.approx(weights @ [3, 8, 9], abs=1e-3)
    assert found["yes"].estimate == pytest.approx(weights @ [1, 0, 1], abs=1e-4)
    assert found["party"].shares == pytest.approx({"left": 1 / 6, "right": 1 / 2, "none": 1 / 3}, abs=1e-4)
    assert found["extra"].estimate == pytest.approx(weights @ [0.5, -0.5, 0], abs=1e-4)
    assert sum(found["party"].values) == pytest.approx(1.0, abs=1e-11)
    assert release.clamped == 0
    assert release.delivered == 3
    clamped = release_plan(plan_of(losses, label="clamped"), [[-5, 1, 0, 7], *ROWS[1:]])
    assert clamped.clamped == 2
    assert clamped.answers[0].estimate == pytest.approx(weights @ [0, 8, 9], abs=1e-3)


def test_without_noise_a_survey_is_the_mean_of_those_who_accept_that() -> None:
    plan = plan_of([math.inf, 1.0, math.inf])
    release = release_plan(plan, ROWS, accept_infinite_loss=True)
    assert release.answers[0].estimate == pytest.approx(6.0, abs=1e-9)
    assert release.answers[2].values == pytest.approx((0.5, 0.5, 0.0), abs=1e-9)
    assert release.grid.weight_exponent is None


def test_one_question_is_the_market_for_its_number() -> None:
    """A survey of one yes/no question has the errors of a number from 0 to 1."""
    alone = ReleasePlan.of([0.5, 1.0], setting="central", bounds=(0, 1))
    one = release_plan(plan_of([0.5, 1.0], [YES], label="one"), [[1], [0]])
    number = release_plan(alone, [1, 0])
    assert one.answers[0].error == number.error == one.error
    assert one.answers[0].planned_error == number.planned_error


def test_the_survey_error_is_the_weighted_mean_of_the_questions() -> None:
    asked = (HOURS, YesNo(name="yes", importance=7.0), Number(name="small", bounds=(0, 2), variance=0.1))
    release = release_plan(plan_of([0.5, 1.0, 0.25], asked), [[1, 1, 1]] * 3)
    for survey_error, errors in (
        (release.planned_error, [one.planned_error for one in release.answers]),
        (release.error, [one.error for one in release.answers]),
    ):
        relative = [one.importance * error.mse / one.width**2 for one, error in zip(asked, errors, strict=True)]
        assert survey_error.mse == pytest.approx(sum(relative) / 9.0, rel=1e-6)


def test_a_target_for_each_question_is_kept() -> None:
    targets = [0.9, 0.2, 0.25, 0.05]
    layout = layout_of(MIXED, targets)
    plan = plan_of([40.0] * 50, layout=layout)
    errors = planned_errors(plan)
    worst = [math.sqrt(error.mse) / target for error, target in zip(errors, targets, strict=True)]
    whole = planned_error(plan)
    assert max(worst) <= math.sqrt(whole.mse) * (1 + 1e-9)  # relative to targets, no question is worse than the whole


def test_a_relation_widens_every_question_by_its_own_bias() -> None:
    rows, roster = [ROWS[0], ROWS[1]], 40
    layout = layout_of(MIXED)
    related = Relation(spread=0.04 * layout.variance, roster=roster)
    plain, biased = (release_plan(plan_of([0.5, 1.0], relation=one), rows).answers for one in (None, related))
    squares = roster * (1 / 9 + 4 / 9) - 1
    for one, other, question in zip(plain, biased, MIXED, strict=True):
        variance = 0.25 * question.width**2
        assert other.error.squared_bias == pytest.approx(0.04 * variance * squares, rel=1e-6)
        assert other.error.mse == one.error.mse
        grown = other.error.half_width(0.9) - one.error.half_width(0.9)
        assert grown == pytest.approx(
            min(0.2 * math.sqrt(variance * squares), question.width * (1 - 2 / roster)), rel=1e-6
        )


@pytest.mark.parametrize("asked", [(YES, HOURS, EXTRA), (YES, HOURS, YesNo(name="no")), (PARTY,)])
def test_where_noise_decides_intervals_have_the_coverage_they_state(asked: Any) -> None:
    plan, row, times = plan_of([0.5], asked), [1, 10, 1] if len(asked) == 3 else ["right"], 5000
    estimates = simulate_plan(plan, [row], times)
    truth = [0.0, 1.0, 0.0] if asked[0] is PARTY else row
    # the errors of noise alone, without what a person's answers may vary by
    alone = Weighing(squares=0.0, spread=0.0, largest=0.0, noise=2.0)
    errors = expected_errors(plan, alone)
    for place, error in enumerate(errors):
        off = np.abs(estimates[:, place] - truth[place])
        for factor, right in ((1.0, True), (0.7, False), (1.4, False)):
            inside = int(np.count_nonzero(off <= factor * error.half_width(0.9)))
            assert (stats.binomtest(inside, times, 0.9).pvalue > 1e-7) == right
        assert math.sqrt(np.mean(np.square(off))) == pytest.approx(math.sqrt(error.mse), rel=0.15)


def test_intervals_hold_where_sampling_decides_too() -> None:
    rng, people = np.random.default_rng(11), 60
    plan = plan_of([3.0] * people, (YES, PARTY))
    halves = [one.half_width(0.8) for one in planned_errors(plan)]
    misses = np.zeros(4)
    for _ in range(80):
        table = np.stack([rng.random(people) < 0.5, rng.choice(3, size=people, p=[0.5, 0.3, 0.2])], axis=1)
        found = simulate_plan(plan, table.astype(float), 4)
        misses += np.mean(np.abs(found - [0.5, 0.5, 0.3, 0.2]) > [halves[0], *[halves[1]] * 3], axis=0)
    assert (misses / 80 < 0.2).all()


def test_simulated_values_stand_in_the_order_of_the_questions() -> None:
    plan = plan_of([1e7] * 2)
    drawn = simulate_plan(plan, [[2, 1, "none", 0.5]] * 2, 3)
    np.testing.assert_allclose(drawn, [[2, 1, 0, 0, 1, 0.5]] * 3, atol=1e-3)
    assert simulate_plan(plan, [[2, 1, "none", 0.5]] * 2, 0).shape == (0, 6)


@settings(max_examples=80)
@given(st.lists(st.floats(-2, 3), min_size=3, max_size=3))
def test_projected_shares_are_the_nearest_that_can_be(values: list[float]) -> None:
    error = planned_errors(plan_of([1.0], (PARTY,)))[0]
    found = QuestionAnswer(question=PARTY, error=error, planned_error=error, values=tuple(values)).projected
    assert min(found) >= 0.0
    assert sum(found) == pytest.approx(1.0)
    # nearest to a convex set: no corner lies in front of it
    away = np.array(values) - found
    assert all(away @ (corner - np.array(found)) <= 1e-9 for corner in np.eye(3))


# -- what is kept ------------------------------------------------------------------------------------------------------


def test_a_survey_is_written_and_read_strictly() -> None:
    release = release_plan(plan_of([0.5, 1.0, 1.0]), ROWS)
    written = json.loads(json.dumps(release.to_dict()))
    assert Release.from_dict(written).to_dict() == release.to_dict()
    assert list(written)[-1] == "answers"
    assert "estimate" not in written
    assert Release.from_dict(written).answers == release.answers
    for spoil in (
        lambda answers: answers[0].update(values=[1.0, 2.0]),
        lambda answers: answers[0].update(extra=1),
        lambda answers: answers[0]["question"].update(kind="other"),
        lambda answers: answers[0]["question"].pop("unit"),
        lambda answers: answers[0]["question"].update(bounds=[0, 10]),
        lambda answers: answers.clear(),
    ):
        wrong = json.loads(json.dumps(written))
        spoil(wrong["answers"])
        with pytest.raises(RecordError):
            Release.from_dict(wrong)
    with pytest.raises(RecordError):
        Release.from_dict({**written, "estimate": 0.5})


def test_a_survey_has_no_single_estimate() -> None:
    release = release_plan(plan_of([0.5, 1.0, 1.0]), ROWS)
    assert release.estimate is None
    for ask in (release.interval, lambda: release.one_estimate, lambda: release.answers[2].estimate):
        with pytest.raises(InputError, match=r"use (answers|shares)"):
            ask()
    assert "3.0" not in repr(release)


def test_the_public_part_tells_nothing_of_who_delivered() -> None:
    shown = [
        release_plan(plan_of([0.5] * 6, key=f"public-{k}"), [*ROWS, *ROWS[:k], *[None] * (3 - k)]).public()
        for k in (1, 3)
    ]
    drawn = ("estimate", "shares", "projected")
    stripped = [[{k: v for k, v in one.items() if k not in drawn} for one in each["answers"]] for each in shown]
    assert stripped[0] == stripped[1]
    assert set(shown[0]) == {"format", "version", "setting", "answers"}
    assert set(shown[0]["answers"][2]["shares"]) == set(PARTY.answers)


def test_asking_again_returns_what_was_drawn_and_other_questions_are_refused(tmp_path: Path) -> None:
    ids = ["a", "b", "c"]

    def ask(questions: Any, rows: Any = ROWS, **more: Any) -> Any:
        plan = plan_of([0.5, 1.0, 1.0], questions, **more)
        return release_once(plan, rows, question="Q", ids=ids, ledger=tmp_path)

    first = ask(MIXED)
    again = ask(MIXED)
    assert again.before
    assert again.release.answers == first.release.answers
    worded = (Number(name="Hours", bounds=(0, 10), unit="h"), *MIXED[1:])
    wider = (Number(name="hours", bounds=(0, 11), unit="h"), *MIXED[1:])
    for other in (worded, wider):
        with pytest.raises(AlreadyReleased, match="questions"):
            ask(other)
    with pytest.raises(AlreadyReleased, match="questions"):
        ask(MIXED, layout=layout_of(MIXED, [1.0, 0.1, 0.1, 0.1]))
    with pytest.raises(AlreadyReleased, match="other data"):
        ask(MIXED, [[4, *ROWS[0][1:]], *ROWS[1:]])


def test_answers_that_come_late_are_not_used(tmp_path: Path) -> None:
    plan = plan_of([0.5, 1.0, 1.0])
    early = [ROWS[0], [1, 1, None, 0.5], ROWS[2]]
    first = release_once(plan, early, question="late", ids="abc", ledger=tmp_path)
    later = release_once(plan, ROWS, question="late", ids="abc", ledger=tmp_path)
    assert later.late == (1,)
    assert later.release.answers == first.release.answers
