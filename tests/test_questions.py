"""Questions and how they share a privacy loss: one market for one number, with the smallest width there is."""

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
import pytest

from hushbid.errors import InputError
from hushbid.questions import (
    PARTS,
    Choice,
    Layout,
    Number,
    Question,
    YesNo,
    as_questions,
    layout_of,
    layout_with,
    question_from_dict,
)
from tests.extent import each


def survey(importances: Sequence[float]) -> list[Question]:
    return [YesNo(name=f"q{i}", importance=p) for i, p in enumerate(importances)]


def partitions(items: Sequence[int]) -> Iterator[list[list[int]]]:
    if not items:
        yield []
        return
    for rest in partitions(items[1:]):
        yield [[items[0]], *rest]
        for i, block in enumerate(rest):
            yield [*rest[:i], [items[0], *block], *rest[i + 1 :]]


def error_of(layout: Layout, questions: Sequence[Question], losses: float, squares: float) -> float:
    """The error weighed by importance, question by question."""
    total = 0.0
    for row, one in enumerate(questions):
        noise = layout.group_of(row).noise / losses**2
        total += one.importance * (noise + one.relative_variance * squares)
    return total


def test_the_boxes_are_the_best_of_all_partitions_of_six_questions() -> None:
    rng = np.random.default_rng(1)
    for _ in range(25):
        weights = np.exp(rng.normal(0, 2.5, 6)).tolist()
        best = math.inf
        for blocks in partitions(range(6)):
            roots = [(sum(weights[j] for j in b) * (len(b) + 1) * (len(b) + 2) / 6) ** (1 / 3) for b in blocks]
            best = min(best, sum(roots) ** 3 / sum(weights))
        assert layout_of(survey(weights)).width ** 2 == pytest.approx(best, rel=1e-8)


def test_a_target_for_each_question_is_met_with_the_smallest_width_of_all_partitions() -> None:
    rng = np.random.default_rng(2)
    for _ in range(25):
        targets = np.exp(rng.normal(-3, 1.5, 5)).tolist()
        best = min(
            sum(max(1 / targets[j] for j in b) * math.sqrt((len(b) + 1) * (len(b) + 2) / 6) for b in blocks)
            for blocks in partitions(range(5))
        )
        assert layout_of(survey([1] * 5), targets).width == pytest.approx(best, rel=1e-4)


def test_ten_questions_in_a_box_have_22_times_the_noise_of_one_where_splitting_has_100() -> None:
    assert layout_of(survey([1] * 10)).width ** 2 == pytest.approx(22)
    assert layout_of(survey([1])).width == 1


def test_the_market_for_one_number_has_the_error_of_all_questions() -> None:
    questions = [
        Number(name="sleep", bounds=(0, 12), variance=3, importance=4),
        YesNo(name="smokes", importance=0.1),
        Choice(name="party", answers=("a", "b", "c", "none"), importance=2),
        Number(name="age", bounds=(18, 100)),
    ]
    layout = layout_of(questions)
    for losses, squares in ((1.0, 0.5), (40.0, 0.01), (1e4, 1e-5)):
        alone = layout.importance * (2 * layout.width**2 / losses**2 + layout.variance * squares)
        assert alone == pytest.approx(error_of(layout, questions, losses, squares), rel=1e-12)
    assert sum(group.parts for group in layout.groups) == PARTS
    assert sorted(row for group in layout.groups for row in group.rows) == [0, 1, 2, 3]


def test_where_the_one_number_has_error_one_every_question_meets_its_target() -> None:
    questions = [
        Number(name="sleep", bounds=(0, 12), variance=3),
        YesNo(name="smokes"),
        Choice(name="party", answers=("a", "b", "c", "none")),
    ]
    targets = (0.4, 0.03, 0.05)
    layout = layout_of(questions, targets)
    losses = 3 * layout.width
    squares = (1 - 2 * layout.width**2 / losses**2) / layout.variance
    for row, (one, target) in enumerate(zip(questions, targets, strict=True)):
        error = one.width**2 * (layout.group_of(row).noise / losses**2 + one.largest_variance * squares)
        assert error <= target**2 * (1 + 1e-12)


def test_a_choice_between_two_answers_costs_what_a_yes_or_no_does() -> None:
    assert layout_of([Choice(name="c", answers=("yes", "no"))]).width == pytest.approx(1, rel=1e-15)
    assert Choice(name="c", answers=("yes", "no")).relative_variance == YesNo(name="y").relative_variance


def test_the_noise_of_a_choice_has_the_mean_square_of_its_exact_distribution() -> None:
    # vectors of integers that sum to 0 with weight q^(sum of positive parts): Σ over the sum m, counted by hand
    q, d = Fraction(9, 10), 3
    size = 400
    total = weighted = 0.0
    for a in range(-size, size + 1):
        for b in range(-size, size + 1):
            c = -a - b
            weight = float(q) ** (max(a, 0) + max(b, 0) + max(c, 0)) if abs(a) + abs(b) < 400 else 0.0
            total += weight
            weighted += weight * (a * a + b * b + c * c)
    # the continuous noise at S = −ln q; a lattice differs by a term of order one
    mean_square = layout_of([Choice(name="c", answers=("a", "b", "c"))]).groups[0].noise
    assert weighted / total * math.log(1 / q) ** 2 / d == pytest.approx(mean_square, rel=0.01)


@each(
    ("made", "told"),
    [
        (lambda: Number(name="", bounds=(0, 1)), "name must be a text"),
        (lambda: Number(name="a", bounds=(1, 0)), "bounds"),
        (lambda: Number(name="a", bounds=(0, 1), variance=0.3), "at most 0.25"),
        (lambda: YesNo(name="a", importance=0), "importance must be between"),
        (lambda: Choice(name="a", answers=("x",)), "answers must be 2 to 100"),
        (lambda: Choice(name="a", answers=("x", "x")), "all different"),
        (lambda: Choice(name="a", answers="xy"), "a list of texts"),
        (lambda: as_questions([]), "questions must be 1 to 200"),
        (lambda: as_questions([YesNo(name="a"), YesNo(name="a")]), "'a' twice"),
        (lambda: as_questions(["a"]), "must be Number, YesNo or Choice"),
        (lambda: question_from_dict({"kind": "rank"}), "one of number, yes_no, choice"),
        (lambda: question_from_dict({"kind": "number", "name": "a"}), "must have 'bounds'"),
        (lambda: question_from_dict({"kind": "yes_no", "name": "a", "unit": "h"}), "has no 'unit'"),
    ],
)
def test_what_is_no_question_is_refused_in_a_sentence(made: object, told: str) -> None:
    with pytest.raises(InputError, match=told):
        made()  # type: ignore[operator]


@pytest.mark.parametrize(
    "question",
    [
        Number(name="sleep", bounds=(0, 12), variance=2, unit="h", importance=3),
        YesNo(name="smokes"),
        Choice(name="party", answers=("left", "right")),
    ],
)
def test_a_question_is_read_back_as_it_was_written(question: Question) -> None:
    assert question_from_dict(question.to_dict()) == question


def test_a_layout_is_found_again_from_rows_and_parts_and_others_are_refused() -> None:
    asked = [YesNo(name="a", importance=100), YesNo(name="b"), Choice(name="c", answers=("x", "y", "z"))]
    best = layout_of(asked)
    groups = [(group.rows, group.parts) for group in best.groups]
    assert layout_with(asked, groups) == best
    whole = PARTS // 2
    for wrong in (
        [],
        [((0, 1, 2), PARTS)],
        [((0, 1), PARTS)],
        [((0, 1), whole), ((2,), whole - 1)],
        [((0, 1), PARTS), ((2,), 0)],
        [((0, 0), whole), ((2,), whole)],
        [((0, 3), whole), ((2,), whole)],
        [((0, True), whole), ((2,), whole)],
        [((0, 1), whole), ((2,), whole), ((), 0)],
        [((0, 1), float(whole)), ((2,), float(whole))],
    ):
        with pytest.raises(InputError, match="layout must"):
            layout_with(asked, wrong)  # type: ignore[arg-type]
