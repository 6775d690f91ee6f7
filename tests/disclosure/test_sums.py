"""Sums over people: in any batches those of memory, the promise if some are missing, and what cannot be released."""

import json
import math
from dataclasses import asdict, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hushbid.disclosure import Relation, Release, ReleasePlan, noise, release_once
from hushbid.disclosure.combination import Blend
from hushbid.disclosure.delivery import planned_error, planned_errors, prepare_release, with_rows
from hushbid.disclosure.grid import exponent_of
from hushbid.disclosure.ledger.once import release_summed
from hushbid.disclosure.ledger.question import Ask, answer_forms, person_digests, tallied
from hushbid.disclosure.memory import ENOUGH, weigh
from hushbid.disclosure.prepare import prepare
from hushbid.disclosure.promises import strata_terms
from hushbid.disclosure.sum_plan import SumPlan
from hushbid.disclosure.sums import Above, Sums
from hushbid.errors import AlreadyReleased, NothingDelivered, ReleaseError
from hushbid.estimation import Strata
from hushbid.questions import Choice, Number, Question, YesNo

N = 40
STRATA = Strata(codes=np.random.default_rng(11).integers(0, 3, N), weights=[0.6, -1.0, 0.4], names=("a", "b", "c"))
QUESTIONS: tuple[Question, ...] = (
    Number(name="hours", bounds=(2.0, 12.0)),
    YesNo(name="employed"),
    Choice(name="transport", answers=("car", "bus", "none")),
    Number(name="extra", bounds=(-1.0, 1.0), importance=1000.0),
)


def plan_of(*, survey: bool, strata: bool, related: bool = False) -> ReleasePlan:
    asked: dict[str, Any] = {"questions": QUESTIONS} if survey else {"bounds": (0.0, 10.0)}
    if not survey:
        asked["variance"] = np.random.default_rng(14).uniform(1.0, 4.0, N)
    more: dict[str, Any] = {"strata": STRATA} if strata else {}
    if related:
        more["relation"] = Relation(spread=0.001, roster=100, strata=(30, 40, 30) if strata else ())
    losses = np.random.default_rng(12).exponential(0.3, N)
    losses[5:8] = 0.0
    made = ReleasePlan.of(losses, setting="central", from_engine=True, **asked, **more)
    # what the best contrast uses of them is what is promised
    return ReleasePlan.of(made.delivered, setting="central", from_engine=True, **asked, **more)


def answers(survey: bool, missing: bool) -> np.ndarray:
    rng = np.random.default_rng(13)
    table = np.stack(
        [rng.uniform(0.0, 13.0, N), rng.integers(0, 2, N), rng.integers(0, 3, N), rng.uniform(-1.0, 1.0, N)], axis=1
    )
    table = table if survey else table[:, :1]
    if missing:
        table[[0, 9, 20]] = math.nan
    return table


def figures_of(plan: ReleasePlan) -> SumPlan:
    """What an engine knows of the promises: nothing of how uneven weights were planned to be."""
    figures = weigh(plan, plan.delivered > 0.0).sum_plan
    return replace(figures, planned=replace(figures.planned, uneven=None))


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("related", [False, True])
@pytest.mark.parametrize("strata", [False, True])
@pytest.mark.parametrize("survey", [False, True])
def test_sums_in_any_batches_are_those_of_memory_and_so_is_the_release(
    survey: bool, strata: bool, related: bool, missing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, table = plan_of(survey=survey, strata=strata, related=related), answers(survey, missing)
    figures, codes, losses, spread = figures_of(plan), plan.strata.codes, plan.delivered, plan.variance
    batches = np.array_split(np.random.default_rng(3).permutation(N), 4)
    sums = sum(
        (Sums.of(losses[some], table[some], codes[some], figures, spread[some]) for some in batches),
        Sums.none(figures),
    )
    assert sums == Sums.of(losses, table, codes, figures, spread)
    above = None
    if related:
        parts = (Above.of(losses[some], table[some], codes[some], figures, sums.weights) for some in batches)
        above = sum(parts, Above.none(figures))
    for name in ("draw_boxes", "draw_choices"):
        monkeypatch.setattr(noise, name, lambda totals, scale: totals)
    found, memory = (
        prepare(figures, sums, above).draw("summed"),
        prepare_release(plan, table if survey else table[:, 0]).draw(),
    )
    assert (found.delivered, found.absent, found.clamped) == (memory.delivered, memory.absent, memory.clamped)
    assert found.strata == memory.strata
    assert found.planned_error.half_width(0.95) == pytest.approx(planned_error(plan).half_width(0.95), rel=1e-6)
    assert found.planned_error.worst_mse == pytest.approx(planned_error(plan).worst_mse, rel=1e-9)
    for ours, theirs in zip(found.answers, planned_errors(plan) if survey else [], strict=True):
        assert ours.planned_error.worst_mse == pytest.approx(theirs.worst_mse, rel=1e-9)
    if strata and missing:  # memory finds the best contrast of what is left, sums bring strata into proportion
        assert found.error.mse >= memory.error.mse * (1.0 - 1e-9)
        return
    assert found.grid == memory.grid
    assert found.estimate == memory.estimate
    assert asdict(found.error) == asdict(memory.error)
    for ours, theirs in zip(found.answers, memory.answers, strict=True):
        assert ours.values == theirs.values
        assert asdict(ours.error) == asdict(theirs.error)
    shown = with_rows(found, plan, (plan.delivered > 0.0) & ~np.isnan(table).any(axis=1))
    there = prepare_release(plan, table if survey else table[:, 0]).drawn()
    np.testing.assert_array_equal(shown.privacy_loss, there.privacy_loss)
    assert Release.from_dict(json.loads(json.dumps(found.to_dict()))).to_dict() == found.to_dict()


def test_the_error_of_sums_is_that_of_the_integer_weights() -> None:
    plan, table = plan_of(survey=False, strata=True, related=True), answers(False, True)
    people = weigh(plan, (plan.delivered > 0.0) & ~np.isnan(table[:, 0]))
    error, shares = people.prepare(table).error, people.shares
    equal = np.abs(STRATA.weights)[STRATA.codes] / np.array([30, 40, 30])[STRATA.codes]
    others = np.sum(STRATA.weights**2 / [30, 40, 30]) - np.sum(equal**2)
    assert error.sampling_variance == pytest.approx(np.sum(plan.variance * shares**2), rel=1e-12)
    assert error.squared_steps == pytest.approx(100.0 * np.sum(shares**2), rel=1e-12)
    assert error.largest_step == pytest.approx(10.0 * shares.max(), rel=1e-12)
    assert error.squared_bias == pytest.approx(0.1 * (np.sum((shares - equal) ** 2) + others), rel=1e-9)
    bias = 10.0 * np.sum(np.maximum(shares - equal, 0.0))
    assert error.largest_bias == pytest.approx(min(math.sqrt(error.squared_bias), bias), rel=1e-9)


def test_each_person_is_charged_what_the_sums_cost_them() -> None:
    plan, table = plan_of(survey=False, strata=True), answers(False, False)
    table[np.flatnonzero(STRATA.codes == 1)[:3]] = math.nan
    figures, there = figures_of(plan), (plan.delivered > 0.0) & ~np.isnan(table[:, 0])
    sums = Sums.of(plan.delivered, table, STRATA.codes, figures)
    known = with_rows(prepare(figures, sums).draw("known"), plan, there)
    exponent = known.grid.weight_exponent
    assert exponent is not None
    blend = Blend.of(sums.weights, figures.weights)
    for row in range(N):
        weight = int(np.floor(np.ldexp(plan.delivered[row], exponent))) if there[row] else 0
        moved = abs(blend.factors[STRATA.codes[row]]) * weight
        stated = Fraction(float(known.privacy_loss[row])) * 2**exponent
        assert moved <= stated <= weight
        assert stated <= moved * (1 + Fraction(1, 2**40)) + 1
    charged = there & (STRATA.codes == 0)
    assert (known.privacy_loss[charged] < 0.999 * plan.delivered[charged]).all()


def test_nothing_is_drawn_from_nobody_or_from_nobody_of_a_stratum() -> None:
    plan, table = plan_of(survey=False, strata=True), answers(False, False)
    figures = figures_of(plan)
    with pytest.raises(NothingDelivered, match="None of the 37 people"):
        prepare(figures, Sums.none(figures))
    table[STRATA.codes == 2] = math.nan
    with pytest.raises(NothingDelivered, match="Nobody of stratum 'c' is left"):
        prepare(figures, Sums.of(plan.delivered, table, STRATA.codes, figures))


@pytest.mark.parametrize(
    ("loss", "told"), [(2.0**-53, "too small to share"), (2.0**-56, "too small to release"), (2.0**50, r"2\*\*43")]
)
def test_nothing_is_drawn_from_losses_that_cannot_be_shared(loss: float, told: str) -> None:
    plan = ReleasePlan.of([loss] * 3, setting="central", questions=QUESTIONS)
    with pytest.raises(ReleaseError, match=told):
        weigh(plan, np.ones(3, dtype=bool)).without_data()


def test_more_weight_than_was_planned_is_refused() -> None:
    plan, table = plan_of(survey=False, strata=False), answers(False, False)
    figures = figures_of(plan)
    sums = Sums.of(plan.delivered, table, np.zeros(N, dtype=int), figures)
    with pytest.raises(ReleaseError, match="more than was promised to all"):
        prepare(figures, sum([sums] * 64, Sums.none(figures)))
    with pytest.raises(ReleaseError, match="OpenDP's bound"):
        prepare(replace(figures, largest_loss=0.5 * figures.largest_loss), sums)


def test_memory_and_sums_share_an_entry_and_other_strata_are_refused(tmp_path: Path) -> None:
    plan, ids = plan_of(survey=False, strata=True), [f"p{row}" for row in range(N)]
    figures, digests, table = figures_of(plan), person_digests(ids), answers(False, False)

    def asked(strata: Strata) -> Ask:
        forms = answer_forms(table, plan.delivered > 0.0)
        return Ask(
            asked=plan,
            question="difference",
            wave=1,
            by_ids=True,
            setting="central",
            tally=tallied(digests, plan.promised, plan.variance, forms, strata.codes),
            strata=tuple(strata_terms(strata, None)),
        )

    draw = prepare(figures, Sums.of(plan.delivered, table, STRATA.codes, figures)).draw
    first = release_summed(asked(STRATA), draw, ledger=tmp_path).release
    again = release_once(plan, table[:, 0], question="difference", ids=ids, ledger=tmp_path)
    assert again.before
    assert again.release.estimate == first.estimate
    assert again.release.strata == plan.combined
    swapped = STRATA.codes.copy()
    other = int(np.flatnonzero(swapped != swapped[0])[0])
    swapped[[0, other]] = swapped[[other, 0]]
    for strata in (Strata(codes=swapped, weights=STRATA.weights), Strata(codes=STRATA.codes, weights=[0.6, -1.0, 0.5])):
        with pytest.raises(AlreadyReleased, match="other promises"):
            release_summed(asked(strata), draw, ledger=tmp_path)


def test_the_grid_follows_from_what_was_planned_unless_nearly_all_of_it_dropped_out() -> None:
    losses = np.array([1e9, *np.full(20, 1.0)])
    plan = ReleasePlan.of(losses, setting="central", bounds=(0.0, 1.0))
    all_there, most = weigh(plan, np.ones(21, dtype=bool)), weigh(plan, np.arange(21) != 20)
    assert all_there.sum_plan.exponent == most.sum_plan.exponent == exponent_of(losses)
    others = weigh(plan, np.arange(21) > 0)
    assert others.sum_plan.exponent == exponent_of(losses[1:]) > most.sum_plan.exponent + 20
    assert int(others.weights.sum()) >= ENOUGH
