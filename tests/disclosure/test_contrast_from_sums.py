"""A combination of stratum means from sums: what memory finds, whoever adds up, and the promise if some are missing."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from hushbid.disclosure import Relation, ReleasePlan, noise, release_once
from hushbid.disclosure.central import planned_error, planned_weights, weigh
from hushbid.disclosure.contrast import Blend
from hushbid.disclosure.contrast_from_sums import (
    Stratified,
    SummedContrast,
    prepare_summed_contrast,
    prepare_summed_survey_contrast,
)
from hushbid.disclosure.ledger.once import release_summed
from hushbid.disclosure.ledger.question import Ask, person_digests, tallied
from hushbid.disclosure.preparing import answer_forms, planned_errors, with_rows
from hushbid.disclosure.preparing_from_sums import SummedPlan
from hushbid.disclosure.promises import strata_terms
from hushbid.disclosure.survey import weigh as weigh_survey
from hushbid.disclosure.survey_from_sums import SummedSurvey, SurveySums
from hushbid.errors import AlreadyReleased, NothingDelivered
from hushbid.estimation import Strata
from hushbid.questions import Choice, Number, YesNo, layout_of

RNG = np.random.default_rng(11)
STRATA = Strata(codes=RNG.integers(0, 3, 40), weights=[0.6, -1.0, 0.4], names=("a", "b", "c"))
DATA = RNG.uniform(0.0, 10.0, 40)
QUESTIONS = (
    Number(name="hours", bounds=(2.0, 12.0)),
    YesNo(name="employed"),
    Choice(name="transport", answers=("car", "bus", "none")),
)
BATCHES = (slice(0, 17), slice(17, 40))


def plan_of(relation: Relation | None = None, survey: bool = False) -> ReleasePlan:
    asked = {"questions": QUESTIONS} if survey else {"bounds": (0, 10), "variance": 4.0}
    losses = np.random.default_rng(12).exponential(0.3, 40)
    made = ReleasePlan.of(losses, setting="central", strata=STRATA, relation=relation, from_engine=True, **asked)  # type: ignore[arg-type]
    # what the best contrast uses of them is what is promised
    return ReleasePlan.of(
        made.delivered,
        setting="central",
        strata=STRATA,
        relation=relation,
        from_engine=True,
        **asked,  # type: ignore[arg-type]
    )


def summed(plan: ReleasePlan) -> SummedContrast:
    """The same promises in figures about strata."""
    losses, weights = plan.delivered, planned_weights(plan)[0]
    return SummedContrast(
        people=SummedPlan(
            bounds=plan.bounds,
            active=40,
            total_loss=float(losses.sum()),
            largest_loss=float(losses.max()),
            largest_variance=float(plan.variance.max()),
            mse=planned_error(plan).mse,
            squared_weights=float(np.sum(weights**2)),
            relation=plan.relation,
        ),
        weights=tuple(STRATA.weights.tolist()),
        losses=tuple(float(losses[STRATA.codes == g].sum()) for g in range(3)),
        active=tuple(np.bincount(STRATA.codes).tolist()),
        names=STRATA.names,
    )


@pytest.mark.parametrize("missing", [[], [0, 9, 20]])
def test_sums_give_the_total_and_the_errors_of_memory(missing: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    relation = Relation(spread=0.3, roster=100, strata=(30, 40, 30))
    plan, data = plan_of(relation), DATA.copy()
    data[missing] = np.nan
    figures = summed(plan)
    sums = figures.no_sums()
    for part in BATCHES:
        sums += figures.sums(plan.delivered[part], data[part], STRATA.codes[part])
    totals = [one.weight for one in sums.parts]
    above = figures.above(plan.delivered, data, STRATA.codes, totals)
    seen: list[int] = []
    monkeypatch.setattr(noise, "draw_many", lambda totals, scale: [*map(seen.append, totals)] and list(totals))
    found = prepare_summed_contrast(figures, sums, above)("summed")
    assert found.planned_error.half_width(0.95) == pytest.approx(planned_error(plan).half_width(0.95), rel=1e-6)
    assert found.planned_error.largest_bias == pytest.approx(planned_error(plan).largest_bias, rel=1e-9)
    # without noise: the combination of the weighted means of those who delivered
    there = ~np.isnan(data)
    means = [
        np.average(data[rows], weights=plan.delivered[rows]) for rows in (there & (STRATA.codes == g) for g in range(3))
    ]
    assert found.one_estimate == pytest.approx(float(STRATA.weights @ means), abs=1e-8)
    if not missing:
        memory = weigh(plan, np.ones(40, dtype=bool))
        assert seen == [memory.total(data)]
        assert found.grid == memory.grid
        for name in ("mse", "worst_mse", "largest_bias", "largest_step", "squared_steps", "rounding"):
            assert getattr(found.error, name) == pytest.approx(getattr(memory.error, name), rel=1e-9)
    assert found.strata == plan.combined
    assert found.error.mse >= weigh(plan, there).error.mse * (1.0 - 1e-9)  # memory finds the best contrast


def test_whoever_is_known_is_charged_what_the_sums_cost_her() -> None:
    plan, data = plan_of(), DATA.copy()
    rows = np.flatnonzero(STRATA.codes == 1)[:3]
    data[rows] = np.nan
    figures, there = summed(plan), ~np.isnan(data)
    sums = figures.sums(plan.delivered, data, STRATA.codes)
    known = with_rows(prepare_summed_contrast(figures, sums)("known"), plan, there)
    exponent = known.grid.weight_exponent
    assert exponent is not None
    blend = Blend.of([one.weight for one in sums.parts], figures.weights)
    for row in range(40):
        weight = int(np.floor(np.ldexp(plan.delivered[row], exponent))) if there[row] else 0
        moved = abs(blend.factors[STRATA.codes[row]]) * weight
        stated = Fraction(float(known.privacy_loss[row])) * 2**exponent
        assert moved <= stated <= weight
        assert stated <= moved * (1 + Fraction(1, 2**40)) + 1
    assert (known.privacy_loss[there & (STRATA.codes == 0)] < 0.999 * plan.delivered[there & (STRATA.codes == 0)]).all()


def test_a_stratum_with_nobody_left_is_named() -> None:
    plan, figures = plan_of(), summed(plan_of())
    data = np.where(STRATA.codes == 2, np.nan, DATA)
    with pytest.raises(NothingDelivered, match="Nobody of stratum 'c' is left"):
        prepare_summed_contrast(figures, figures.sums(plan.delivered, data, STRATA.codes))


def test_a_survey_s_sums_give_the_totals_and_errors_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(Relation(spread=0.01, roster=100, strata=(30, 40, 30)), survey=True)
    table = np.stack([DATA + 1.0, RNG.integers(0, 2, 40), RNG.integers(0, 3, 40)], axis=1).astype(float)
    figures, memory = summed(plan), weigh_survey(plan, np.ones(40, dtype=bool))
    survey = SummedSurvey(people=figures.people, questions=plan.questions, layout=layout_of(plan.questions))

    def made(rows: np.ndarray) -> SurveySums:
        return SurveySums.of(plan.delivered[rows], table[rows], survey)

    sums = Stratified.of(STRATA.codes, 3, made)
    above = figures.above(plan.delivered, DATA, STRATA.codes, [one.people.weight for one in sums.parts])
    for name in ("draw_boxes", "draw_choices"):
        monkeypatch.setattr(noise, name, lambda totals, scale: totals)
    found = prepare_summed_survey_contrast(figures, survey, sums, above)("survey")
    expected = memory.answers(memory.draw([memory.totals(table)])[0])
    for ours, theirs, planned in zip(found.answers, expected, planned_errors(plan), strict=True):
        assert ours.values == theirs.values
        assert ours.strata == theirs.strata
        assert ours.error.worst_mse == pytest.approx(theirs.error.worst_mse, rel=1e-7)
        assert ours.error.half_width(0.9) == pytest.approx(theirs.error.half_width(0.9), rel=1e-6)
        assert ours.planned_error.worst_mse == pytest.approx(planned.worst_mse, rel=1e-9)


def test_memory_and_sums_share_a_claim_and_other_strata_are_refused(tmp_path: Path) -> None:
    plan, ids = plan_of(), [f"p{row}" for row in range(40)]
    figures, digests = summed(plan), person_digests(ids)

    def asked(strata: Strata) -> Ask:
        forms = answer_forms(DATA[:, np.newaxis], np.ones(40, dtype=bool))
        return Ask(
            question="difference",
            wave=1,
            by_ids=True,
            setting="central",
            bounds=(0.0, 10.0),
            tally=tallied(digests, plan.promised, plan.variance, forms, strata.codes),
            strata=tuple(strata_terms(strata, None)),
        )

    draw = prepare_summed_contrast(figures, figures.sums(plan.delivered, DATA, STRATA.codes))
    first = release_summed(asked(STRATA), draw, ledger=tmp_path).release
    again = release_once(plan, DATA, question="difference", ids=ids, ledger=tmp_path)
    assert again.before
    assert again.release.estimate == first.estimate
    assert again.release.strata == plan.combined
    swapped = STRATA.codes.copy()
    swapped[[0, int(np.flatnonzero(swapped != swapped[0])[0])]] = swapped[
        [int(np.flatnonzero(swapped != swapped[0])[0]), 0]
    ]
    for other in (Strata(codes=swapped, weights=STRATA.weights), Strata(codes=STRATA.codes, weights=[0.6, -1.0, 0.5])):
        with pytest.raises(AlreadyReleased, match="other promises"):
            release_summed(asked(other), draw, ledger=tmp_path)
