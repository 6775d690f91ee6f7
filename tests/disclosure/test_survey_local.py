"""A survey in the local setting: every device adds its own noise to its answers, and none loses more than promised."""

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from hushbid.disclosure import (
    Message,
    Relation,
    ReleasePlan,
    privatize_answers,
    release_once,
    release_plan,
    release_synthetic,
    simulate_plan,
)
from hushbid.disclosure.delivery import planned_errors
from hushbid.disclosure.local import grid_bits, noise_scale
from hushbid.disclosure.tails import tail_of
from hushbid.errors import AlreadyReleased, DataError, InfiniteLoss, InputError, ReleaseError
from hushbid.questions import Choice, Number, Question, YesNo, layout_of

HOURS = Number(name="hours", bounds=(0, 10))
YES = YesNo(name="yes")
PARTY = Choice(name="party", answers=("left", "right", "none"))
MIXED: tuple[Question, ...] = (HOURS, YES, PARTY)
LAYOUT = layout_of(MIXED)
ROW = [2.5, True, "right"]


def plan_of(losses: Any, questions: Any = MIXED, **more: Any) -> ReleasePlan:
    return ReleasePlan.of(losses, setting="local", questions=questions, **more)


@settings(max_examples=80)
@given(st.floats(2.0**-50, 2.0**24), st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=4))
def test_the_noise_of_all_groups_is_enough_and_the_least_that_is(loss: float, weights: list[float]) -> None:
    asked = [*(YesNo(name=str(row), importance=one) for row, one in enumerate(weights)), PARTY]
    layout = layout_of(asked)
    bits = grid_bits(loss, layout.groups)
    if bits < 1:
        with pytest.raises(InputError, match="large enough to share"):
            privatize_answers([1] * len(asked), loss, asked)
        return
    scales = [noise_scale(loss, bits, group) for group in layout.groups]
    assert bits <= 32
    assert max(scales) <= 2.0**54
    assert sum(2**bits / Fraction(scale) for scale in scales) <= Fraction(loss)
    for group, scale in zip(layout.groups, scales, strict=True):
        less = Fraction(math.nextafter(scale, 0.0))
        assert 2**bits / less > Fraction(loss) * group.parts / 2**30


def test_with_little_noise_a_message_holds_the_answers() -> None:
    message = privatize_answers(ROW, 2.0**24, MIXED)
    steps = 2**message.grid_bits
    by_group = {group.choice: cells for group, cells in zip(LAYOUT.groups, message.values, strict=True)}
    assert [cell / steps for cell in by_group[False]] == pytest.approx([0.25, 1.0], abs=1e-4)
    assert [cell / steps for cell in by_group[True]] == pytest.approx([0.0, 1.0, 0.0], abs=1e-4)
    assert sum(by_group[True]) == steps  # a choice's noise adds up to nothing
    same = privatize_answers({"yes": 1, "hours": 2.5, "party": 1}, math.inf, MIXED, accept_infinite_loss=True)
    assert same.values == ((steps // 4, steps), (0, steps, 0))


def test_a_message_has_the_noise_of_its_groups_and_no_other() -> None:
    loss, sent = 0.7, 700
    values = [privatize_answers(ROW, loss, MIXED).values for _ in range(sent)]
    for place, group in enumerate(LAYOUT.groups):
        at = 0.25 if not group.choice else 0.0
        noisy = np.array([(one[place][0] / 2**32 - at) * loss * group.share for one in values])
        tail = tail_of(group.cells, group.choice)
        assert stats.kstest(noisy, tail.below).pvalue > 1e-7
        for wrong in (0.25, 4.0):
            assert stats.kstest(noisy / wrong, tail.below).pvalue < 1e-7


def test_messages_are_read_strictly() -> None:
    message = privatize_answers(ROW, 0.5, MIXED)
    assert Message.from_json(message.to_json(), "answers") == message
    assert message.privacy_loss == Fraction(1, 2)
    good = message.to_dict()
    far = str(10**30)
    for wrong in (
        {"version": 2},
        {"version": True},
        {"format": "hushbid-local"},
        {"grid_bits": 33},
        {"epsilon": ["2", "4"]},
        {"epsilon": "1/2"},
        {"parts": [2**30]},
        {"parts": [2**30 - 1, 2]},
        {"parts": [2**30, 0]},
        {"values": good["values"][:1]},
        {"values": [["1", 2], good["values"][1]]},
        {"values": [["1", "02"], good["values"][1]]},
        {"values": [[far, "0"], good["values"][1]]},
        {"values": [[], good["values"][1]]},
        {"extra": 1},
    ):
        with pytest.raises(InputError):
            Message.from_dict({**good, **wrong}, "answers")
    with pytest.raises(InputError, match="no key occurs twice"):
        Message.from_json(message.to_json().replace("{", '{"version": 1, ', 1), "answers")


def test_messages_of_other_losses_or_questions_are_refused() -> None:
    plan = plan_of([0.5, 1.0])
    right = [privatize_answers(ROW, loss, MIXED) for loss in (0.5, 1.0)]
    fewer = privatize_answers(ROW[:2], 1.0, MIXED[:2])
    shared = privatize_answers(ROW, 1.0, MIXED, layout=layout_of(MIXED, [1.0, 0.1, 0.3]))
    for wrong in (right[0], fewer, shared):
        with pytest.raises(DataError, match="row 1 does not"):
            release_plan(plan, [right[0], wrong])
    with pytest.raises(DataError, match="privatize_answers, but row 0"):
        release_plan(plan, [0.5, right[1]])
    with pytest.raises(DataError, match="row 1 cannot be read"):
        release_plan(plan, [right[0].to_json(), "{}"])
    release = release_plan(plan, [right[0].to_json(), right[1].to_dict()])
    assert release.privacy_loss.tolist() == [0.5, 1.0]


def test_messages_are_weighed_alike_for_all_questions() -> None:
    """The more a message tells, the more it counts, with the weights of the market that the survey is like."""
    losses = np.array([2.0**20, 2.0**21, 2.0**19])
    rows = [[1.0, 1, "left"], [4.0, 0, "none"], [10.0, 1, 1]]
    release = release_plan(
        plan_of(losses), [privatize_answers(row, loss, MIXED) for row, loss in zip(rows, losses, strict=True)]
    )
    assert release.answers[0].estimate == pytest.approx(5.0, abs=1e-2)
    assert release.answers[1].estimate == pytest.approx(2 / 3, abs=1e-3)
    assert release.answers[2].values == pytest.approx((1 / 3,) * 3, abs=1e-3)
    tiny = plan_of([1.0, 2.0], label="tiny")
    errors = planned_errors(tiny)
    precision = [1 / (LAYOUT.variance + 2 * LAYOUT.width**2 / loss**2) for loss in (1.0, 2.0)]
    weights = np.array(precision) / sum(precision)
    for error, question in zip(errors, MIXED, strict=True):
        group = LAYOUT.group_of(MIXED.index(question))
        noise = group.noise * np.sum(weights**2 / np.array([1.0, 4.0]))
        expected = question.width**2 * (noise + question.largest_variance * np.sum(weights**2))
        assert error.mse == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("asked", [(HOURS, YES), (Number(name="part", bounds=(0, 1)),), (PARTY,)])
def test_intervals_hold_for_what_arrives(asked: Any) -> None:
    rng, people = np.random.default_rng(2), 20
    losses = rng.uniform(0.5, 3.0, people)
    plan = plan_of(losses, asked)
    errors = planned_errors(plan)
    row = [5.0, 1] if len(asked) == 2 else [1]
    drawn = simulate_plan(plan, [row] * people, 700)
    truth = [0, 1, 0] if asked[0] is PARTY else row
    halves = [error.half_width(0.8) for error, one in zip(errors, asked, strict=True) for _ in range(_cells(one))]
    off = np.abs(drawn - truth)
    assert (np.mean(off > halves, axis=0) < 0.2).all()
    spread = [
        math.sqrt(error.mse - error.sampling_variance)
        for error, one in zip(errors, asked, strict=True)
        for _ in range(_cells(one))
    ]
    assert np.sqrt(np.mean(np.square(off), axis=0)) == pytest.approx(spread, rel=0.25)


def _cells(question: Question) -> int:
    return len(question.answers) if isinstance(question, Choice) else 1


def test_simulated_messages_are_those_of_devices() -> None:
    answer = release_synthetic(plan_of([2.0**20] * 2, label="made up"), [ROW, ROW], simulated=True)
    assert answer.release.answers[0].estimate == pytest.approx(2.5, abs=1e-2)
    related = plan_of([1.0, 2.0], relation=Relation(spread=0.1 * LAYOUT.variance, roster=9))
    found = release_synthetic(related, [ROW, None], simulated=True).release
    assert found.dropped_out == (1,)
    assert all(one.error.squared_bias > 0.0 for one in found.answers)


def test_answers_are_privatized_once(tmp_path: Path) -> None:
    first = privatize_answers(ROW, 0.5, MIXED, store=tmp_path / "me")
    assert privatize_answers([9, 0, 0], 0.5, MIXED, store=tmp_path / "me") == first
    for loss, asked in ((0.25, MIXED), (0.5, (Number(name="hours", bounds=(0, 11)), *MIXED[1:]))):
        with pytest.raises(ReleaseError, match="another privacy loss or for other questions"):
            privatize_answers(ROW, loss, asked, store=tmp_path / "me")


def test_a_survey_of_messages_is_released_once(tmp_path: Path) -> None:
    plan = plan_of([0.5, 1.0])
    sent = [privatize_answers(ROW, loss, MIXED) for loss in (0.5, 1.0)]
    first = release_once(plan, sent, question="local", ids="ab", ledger=tmp_path)
    again = release_once(plan, [one.to_json() for one in sent], question="local", ids="ab", ledger=tmp_path)
    assert again.before
    assert again.release.answers == first.release.answers
    anew = [sent[0], privatize_answers(ROW, 1.0, MIXED)]
    with pytest.raises(AlreadyReleased):
        release_once(plan, anew, question="local", ids="ab", ledger=tmp_path)


@pytest.mark.parametrize("loss", [0.0, -1.0, math.nan, 2.0**25, "x"])
def test_losses_that_send_nothing_or_no_noise_are_refused(loss: Any) -> None:
    with pytest.raises(InputError):
        privatize_answers(ROW, loss, MIXED)


def test_what_cannot_be_sent_is_refused() -> None:
    with pytest.raises(InfiniteLoss):
        privatize_answers(ROW, math.inf, MIXED)
    with pytest.raises(DataError, match="left open"):
        privatize_answers([2.5, None, "right"], 1.0, MIXED)
    with pytest.raises(DataError, match="'party'"):
        privatize_answers([2.5, 1, "centre"], 1.0, MIXED)
