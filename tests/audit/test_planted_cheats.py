"""What is honest passes every attack, and every planted cheat is found, in each kind of release and message.

An honest mechanism is rejected with probability below 1e-7 in each attack. A planted cheat is found with a margin: its
p-value is below 1e-10, where an alarm needs 5e-8, and mostly far smaller (the Kolmogorov-Smirnov statistic lies more
than six standard deviations beyond), or what is found lies at least a fifth beyond the tolerance, mostly several times.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hushbid import Number, YesNo
from hushbid.audit import AccuracyCheck, PrivacyAudit, check_privacy, check_questions
from hushbid.audit.accuracy import TOLERANCE
from hushbid.audit.privacy import attack
from hushbid.audit.targets import response_target
from hushbid.disclosure import ErrorModel, Relation, ReleasePlan, local, noise, sums
from hushbid.disclosure.memory import Weighed
from hushbid.disclosure.sums import Sums
from tests.audit.plans import KINDS, SUMMED, WITH_NOISE, attacked, plan
from tests.extent import ALL_CASES

CONFIDENCE = 1 - 1e-7
SAMPLES = 1_500
CERTAIN = 1e-10


def privacy(kind: str, samples: int = SAMPLES) -> PrivacyAudit:
    return check_privacy(plan(kind), user=attacked(kind), samples=samples, confidence=CONFIDENCE)


def accuracy(kind: str, repetitions: int = 2000) -> list[AccuracyCheck]:
    return check_questions(plan(kind), rng=np.random.default_rng(2), repetitions=repetitions)


def misfit(kind: str) -> float:
    found = privacy(kind)
    assert found.fit_rejected, str(found)
    assert found.fit_p_value is not None
    return found.fit_p_value


# -- honest ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_honest_is_not_rejected_and_the_attack_proves_part_of_the_promise(kind: str) -> None:
    found = privacy(kind, 2 * SAMPLES)
    assert not found.rejected, str(found)
    assert 0.15 * found.promised < found.lower_bound <= found.promised
    assert found.power > 0.999
    assert found.by_coin == (kind == "response")
    assert ("coin" in str(found)) == (kind == "response")


@pytest.mark.parametrize("kind", KINDS)
def test_the_stated_errors_and_intervals_of_what_is_honest_hold(kind: str) -> None:
    found = accuracy(kind)
    assert [one.question for one in found] == [one.name * plan(kind).survey for one in plan(kind).questions]
    assert not any(one.rejected for one in found), found
    assert all(0.05 < one.noise_share < 1.0 for one in found)


# -- cheats with noise, found by its distribution ----------------------------------------------------------------------


def with_each_sampler(monkeypatch: pytest.MonkeyPatch, cheat: Callable[..., Any]) -> None:
    """Plant a cheat in all three samplers of noise."""
    real = {name: getattr(noise, name) for name in ("draw_many", "draw_boxes", "draw_choices")}

    def boxes(totals: Sequence[Sequence[int]], *, scale: float) -> list[list[int]]:
        if totals and len(totals[0]) == 1:  # one number: by the sampler of one number, in which a cheat is planted too
            return [[one] for one in noise.draw_many([total for [total] in totals], scale=scale)]
        return cheat(real["draw_boxes"], totals, scale)  # type: ignore[no-any-return]

    monkeypatch.setattr(noise, "draw_boxes", boxes)
    monkeypatch.setattr(noise, "draw_choices", lambda totals, *, scale: cheat(real["draw_choices"], totals, scale))

    def many(totals: Sequence[int], *, scale: float) -> list[int]:
        found = cheat(
            lambda rows, *, scale: [[one] for one in real["draw_many"]([t for [t] in rows], scale=scale)],
            [[total] for total in totals],
            scale,
        )
        return [one for [one] in found]

    monkeypatch.setattr(noise, "_geometric", _geometric(real["draw_many"]))
    monkeypatch.setattr(noise, "draw_many", many)


def _geometric(draw: Callable[..., list[int]]) -> Callable[[int, float], list[int]]:
    """What a noise of several cells is made of, without a cheat."""
    return lambda count, scale: [one if one >= 0 else -one - 1 for one in draw([0] * count, scale=scale)]


def too_little(draw: Callable[..., Any], totals: Sequence[Sequence[int]], scale: float) -> Any:
    return draw(totals, scale=0.7 * scale)


def drawn_again(draw: Callable[..., Any], totals: Sequence[Sequence[int]], scale: float) -> Any:
    """The mean of two draws, which is what those who see both know."""
    pairs = zip(draw(totals, scale=scale), draw(totals, scale=scale), strict=True)
    return [[(a + b) // 2 for a, b in zip(*pair, strict=True)] for pair in pairs]


def upwards(draw: Callable[..., Any], totals: Sequence[Sequence[int]], scale: float) -> Any:
    """Noise as large as it should be, but never downwards in the first cell."""
    found = []
    for row, noisy in zip(totals, draw(totals, scale=scale), strict=True):
        moved = [b - a for a, b in zip(row, noisy, strict=True)]
        sign = -1 if moved[0] < 0 else 1
        found.append([a + sign * b for a, b in zip(row, moved, strict=True)])
    return found


def another_shape(draw: Callable[..., Any], totals: Sequence[Sequence[int]], scale: float) -> Any:
    """Noise of the right size on average, which is never large: every other one is a fixed draw."""
    first = draw([[0] * len(totals[0])], scale=scale)[0]
    return [
        [a + b for a, b in zip(row, first, strict=True)] if place % 2 else noisy
        for place, (row, noisy) in enumerate(zip(totals, draw(totals, scale=scale), strict=True))
    ]


CHEATS = [too_little, drawn_again, upwards, another_shape]
PLANTED = [
    (kind, cheat)
    for kind in WITH_NOISE
    for cheat in CHEATS
    if ALL_CASES or cheat is too_little or kind in ("number", "survey sent")
]
"""Every cheat with each sampler, of a sum and of a message; too little noise in every kind of release."""


@pytest.mark.parametrize(("kind", "cheat"), PLANTED)
def test_noise_that_is_not_the_promised_one_is_found(
    kind: str, cheat: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with_each_sampler(monkeypatch, cheat)
    assert misfit(kind) < CERTAIN


@pytest.mark.parametrize("name", ["draw_boxes", "draw_choices"])
@pytest.mark.parametrize("kind", ["survey", "survey sent"])
def test_too_little_noise_in_one_group_of_questions_is_found(
    kind: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real: Callable[..., Any] = getattr(noise, name)
    monkeypatch.setattr(noise, name, lambda totals, *, scale: real(totals, scale=0.7 * scale))
    assert misfit(kind) < CERTAIN


@pytest.mark.parametrize("kind", WITH_NOISE if ALL_CASES else list(WITH_NOISE)[1::2])
def test_a_tenth_of_the_noise_is_proved_to_break_the_promise(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with_each_sampler(monkeypatch, lambda draw, totals, scale: draw(totals, scale=0.1 * scale))
    found = privacy(kind)
    assert found.loss_rejected, str(found)
    assert found.lower_bound > 1.5 * found.promised


# -- cheats with people's data -----------------------------------------------------------------------------------------


def add_again(monkeypatch: pytest.MonkeyPatch, rows: Any, times: int) -> None:
    """Add the data of these people up so many times more than the weights that were checked say."""
    right = Weighed.sums

    def with_more(self: Weighed, table: Any) -> Sums:
        found, more = right(self, table), right(replace(self, losses=np.where(rows, self.losses, 0.0)), table)
        strata = [
            replace(one, cells=tuple(tuple(a + times * b for a, b in zip(*cells, strict=True)) for cells in both))
            for one, extra in zip(found.strata, more.strata, strict=True)
            for both in [zip(one.cells, extra.cells, strict=True)]
        ]
        return replace(found, strata=tuple(strata))

    monkeypatch.setattr(Weighed, "sums", with_more)


@pytest.mark.parametrize("kind", SUMMED)
def test_a_person_who_counts_more_than_was_promised_is_found(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    add_again(monkeypatch, np.arange(plan(kind).people) == attacked(kind), 4)
    found = privacy(kind)
    assert found.loss_rejected, str(found)
    assert found.lower_bound > 1.2 * found.promised


@pytest.mark.parametrize("kind", ["number", "contrast", "survey", "number sent", "survey sent"])
def test_answers_that_are_not_clamped_are_found(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def unclamped(column: Any, bounds: tuple[float, float], *, bits: int = 40) -> Any:
        low, high = bounds
        return np.floor((column - low) / (high - low) * 2.0**bits).astype(np.int64)

    monkeypatch.setattr(sums, "to_grid", unclamped)
    monkeypatch.setattr(local, "to_grid", unclamped)
    found = privacy(kind)
    assert found.fit_p_value is not None
    assert found.fit_p_value < CERTAIN
    assert "far" in found.event
    assert found.loss_rejected, str(found)


# -- cheats with randomised response -----------------------------------------------------------------------------------


@pytest.mark.parametrize("lying", [0.5, 0.0, 1.5], ids=["half", "never", "more"])
def test_a_coin_with_other_odds_is_found(lying: float, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(7)

    def flip(truths: Sequence[int], above: int, below: int) -> list[int]:
        chance = lying / (1.0 + np.exp(above / below))
        return [truth ^ int(lie) for truth, lie in zip(truths, rng.random(len(truths)) < chance, strict=True)]

    monkeypatch.setattr(noise, "flip_many", flip)
    found = privacy("response", 10_000)
    assert found.fit_p_value is not None
    assert found.fit_p_value < CERTAIN
    assert found.loss_rejected == (lying < 1.0)  # not only the number of lies: the loss itself


@pytest.mark.parametrize("lying", [1.0, 0.5, 0.0, 1.5], ids=["right", "half", "never", "more"])
def test_the_attack_takes_any_device(lying: float) -> None:
    rng = np.random.default_rng(7)
    chance = lying / (1.0 + np.e)

    def respond(truth: int, number: int) -> list[int]:
        return [truth ^ int(lie) for lie in rng.random(number) < chance]

    found = attack(response_target(respond, 1.0), 1.0, 0, 4000, CONFIDENCE)
    assert found.rejected == (lying != 1.0)
    assert (found.lower_bound > 1.0) == (lying < 1.0)


# -- cheats with what is stated ----------------------------------------------------------------------------------------


def beyond(found: AccuracyCheck) -> float:
    """By how much the error is off, in units of what is tolerated."""
    assert found.rejected, str(found)
    tolerated = TOLERANCE if found.deviation < 0.0 else TOLERANCE + 60.0 / np.sqrt(found.repetitions)
    return abs(found.deviation) / tolerated


@pytest.mark.parametrize("kind", WITH_NOISE if ALL_CASES else list(WITH_NOISE)[::2])
def test_less_noise_than_stated_shows_as_an_error(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with_each_sampler(monkeypatch, lambda draw, totals, scale: draw(totals, scale=0.25 * scale))
    found = max(accuracy(kind), key=lambda one: one.noise_share)
    assert beyond(found) > 1.2


def test_less_noise_in_one_group_shows_in_its_own_questions_only(monkeypatch: pytest.MonkeyPatch) -> None:
    real = noise.draw_boxes
    monkeypatch.setattr(noise, "draw_boxes", lambda totals, *, scale: real(totals, scale=0.25 * scale))
    assert [one.rejected for one in accuracy("survey")] == [True, True, False]


@pytest.mark.parametrize("kind", KINDS if ALL_CASES else list(KINDS)[::2])
def test_an_error_that_is_stated_as_a_quarter_of_what_it_is_is_found(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = ErrorModel.mse.fget
    assert right is not None
    monkeypatch.setattr(ErrorModel, "mse", property(lambda self: 0.25 * right(self)))
    assert all(beyond(one) > 1.5 for one in accuracy(kind))


@pytest.mark.parametrize("kind", KINDS if ALL_CASES else list(KINDS)[1::2])
def test_intervals_that_are_too_narrow_are_found(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = ErrorModel.half_width
    monkeypatch.setattr(ErrorModel, "half_width", lambda self, level: 0.3 * right(self, level))
    for one in accuracy(kind):
        assert one.rejected
        assert one.coverage < 0.75


@pytest.mark.parametrize("kind", SUMMED)
def test_other_weights_than_stated_show_as_an_error(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    add_again(monkeypatch, np.arange(plan(kind).people) < 2, 8)
    assert all(beyond(one) > 1.5 for one in accuracy(kind))


def test_a_survey_that_is_silent_about_a_relation_of_price_and_answers_is_found() -> None:
    questions = (Number(name="sleep", bounds=(0, 12), variance=2.0), YesNo(name="smoker"))
    related = Relation(spread=0.1, roster=60)
    losses = np.linspace(1.0, 60.0, 40)
    known = ReleasePlan.of(losses, setting="central", questions=questions, relation=related)
    for one in check_questions(known, rng=np.random.default_rng(2), repetitions=2000):
        assert not one.rejected, str(one)
        assert one.worst is not None
        silent = replace(one.worst, formula_mse=one.formula_mse)
        assert silent.rejected
        assert silent.deviation > 10.0
