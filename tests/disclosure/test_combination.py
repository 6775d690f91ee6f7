"""One release of a combination of stratum means: exact proportions, the promises, errors, drop-outs, and once."""

import itertools
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hushbid.audit import check_privacy, check_questions
from hushbid.disclosure import (
    Relation,
    Release,
    ReleasePlan,
    privatize,
    release_once,
    release_plan,
    release_synthetic,
    simulate_plan,
)
from hushbid.disclosure.combination import Blend, Combined
from hushbid.disclosure.delivery import planned_error, planned_errors
from hushbid.disclosure.memory import weigh as weigh_survey
from hushbid.disclosure.received import sent_by
from hushbid.disclosure.relation import Unevenness, bias_of
from hushbid.disclosure.sum_plan import LEAST_EXPONENT, SumPlan
from hushbid.disclosure.sums import part_of
from hushbid.errors import AlreadyReleased, InfiniteLoss, InputError, NothingDelivered, ReleaseError
from hushbid.estimation import Setting, Strata, best_contrast, best_weights
from hushbid.questions import Choice, Number, Question, YesNo
from tests.disclosure.support import weigh

CODES = np.array([0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2])
STRATA = Strata(codes=CODES, weights=[0.5, -1.25, 0.3], names=("young", "old", "new"))
LOSSES = np.linspace(0.2, 1.3, 12)
SURE = 1.0 - 1e-6
QUESTIONS: tuple[Question, ...] = (
    Number(name="hours", bounds=(2.0, 12.0), variance=4.0),
    YesNo(name="employed"),
    Choice(name="transport", answers=("car", "bus", "none")),
)


def made(label: str, *, setting: Setting = "central", strata: Strata | None = STRATA, **more: Any) -> ReleasePlan:
    asked = {} if "questions" in more else {"bounds": (2.0, 12.0), "variance": 4.0}
    return ReleasePlan.of(LOSSES, setting=setting, strata=strata, label=label, **{**asked, **more})


# -- exact proportions and the promise ---------------------------------------------------------------------------------


def test_the_sum_without_noise_is_the_combination_of_the_weighted_means_and_nothing_else() -> None:
    summed, rng = weigh(made("exact"), np.ones(12, dtype=bool)), np.random.default_rng(1)
    steps = [[int(x) for x in rng.integers(0, 2**40, 12)] for _ in range(20)]
    for values in steps:
        sums = [sum(int(summed.weights[i]) * values[i] for i in np.flatnonzero(STRATA.codes == g)) for g in range(3)]
        wanted = sum(
            Fraction(float(STRATA.weights[g])) * sums[g] / int(summed.weights[STRATA.codes == g].sum())
            for g in range(3)
        )
        found = sum(factor * one for factor, one in zip(summed.blend.factors, sums, strict=True)) / summed.blend.total
        assert found == wanted  # in rational numbers: no rounding of a weight is left
        assert summed.blend.floor(sums, 40) == math.floor(wanted * summed.blend.total / 2**40)


def test_nobody_loses_more_than_promised_and_all_of_it_is_used_where_it_can_be() -> None:
    summed = weigh(made("promised"), np.ones(12, dtype=bool))
    assert summed.exponent is not None
    for row in range(12):
        stated = Fraction(float(summed.privacy_loss[row]))
        assert stated == Fraction(int(summed.weights[row]), 2**summed.exponent) <= Fraction(float(LOSSES[row]))
        # what she can move the sum by is no more than what is stated
        assert abs(summed.blend.factors[CODES[row]]) * int(summed.weights[row]) <= int(summed.weights[row])
    strength = [summed.privacy_loss[STRATA.codes == g].sum() / abs(STRATA.weights[g]) for g in range(3)]
    assert max(strength) == pytest.approx(min(strength), rel=1e-12)
    tight = np.isclose(summed.privacy_loss, LOSSES, rtol=1e-12)
    assert tight[STRATA.codes == 0].all()  # the scarce stratum gives all that it was promised
    assert not tight[STRATA.codes == 2].any()


losses = st.one_of(st.sampled_from([5e-324, 1e-300, 2.0**-54, 0.1, 1 / 3, 1.0 + 2**-52, 1e16]), st.floats(0.01, 10.0))
signed = st.one_of(st.floats(0.01, 3.0), st.floats(-3.0, -0.01), st.sampled_from([1.0, -1.0, 1e-9]))


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_one_datum_moves_the_sum_by_at_most_that_persons_weight_for_hostile_losses_too(choices: st.DataObject) -> None:
    promised = choices.draw(st.lists(losses, min_size=4, max_size=8))
    wanted = choices.draw(st.lists(signed, min_size=1, max_size=3))
    codes = [row % len(wanted) for row in range(len(promised))]
    strata = Strata(codes=codes, weights=wanted)
    missing = choices.draw(st.integers(len(wanted), len(promised)))
    present = np.arange(len(promised)) != missing
    try:
        plan = ReleasePlan.of(promised, setting="central", bounds=(-1.0, 2.0), strata=strata)
        summed = weigh(plan, present)
    except ReleaseError:  # a stratum's losses are too small beside the others'
        assume(False)
    data = np.array(choices.draw(st.lists(st.floats(-2.0, 3.0), min_size=len(promised), max_size=len(promised))))
    user = choices.draw(st.sampled_from(np.flatnonzero(present).tolist()))
    other = data.copy()
    other[user] = choices.draw(st.sampled_from([-5.0, 0.3, 5.0]))
    assert abs(summed.total(data) - summed.total(other)) <= int(summed.weights[user])
    for weight, promise in zip(summed.weights, plan.promised, strict=True):
        assert Fraction(int(weight)) / Fraction(summed.noise_scale) <= Fraction(float(promise))


def tiny_losses(weights: list[int], blend: Blend, codes: list[int], exponent: int) -> list[float]:
    """For each person the largest log ratio of probabilities over all data, neighbours and outputs, by brute force."""
    scale, steps = 2.0**exponent, range(3)  # data on a grid of 2 steps: M = 2

    def total(data: tuple[int, ...]) -> int:
        sums = [sum(w * x for w, x, c in zip(weights, data, codes, strict=True) if c == g) for g in range(2)]
        return blend.floor(sums, 1)

    worst = [0.0] * len(weights)
    for data in itertools.product(steps, repeat=len(weights)):
        for person, other in itertools.product(range(len(weights)), steps):
            changed = (*data[:person], other, *data[person + 1 :])
            # discrete Laplace noise: the log ratio at every output is at most the distance, and attains it
            worst[person] = max(worst[person], abs(total(data) - total(changed)) / scale)
    return worst


@pytest.mark.parametrize("wanted", [(1.0, -1.0), (0.3, -0.7), (0.5, 2.0)])
def test_brute_force_over_neighbours_finds_no_loss_above_the_weight(wanted: tuple[float, float]) -> None:
    weights, codes = [5, 3, 7, 2, 4], [0, 0, 1, 1, 1]
    blend = Blend.of([8, 13], wanted)
    found = tiny_losses(weights, blend, codes, 3)
    assert all(loss <= weight / 8 for loss, weight in zip(found, weights, strict=True))
    # and the bound is the real one, up to rounding, where a stratum gives all that it has
    fullest = int(np.argmax([abs(factor) for factor in blend.factors]))
    assert all(found[i] == weights[i] / 8 for i in range(5) if codes[i] == fullest)


def test_a_changed_answer_of_a_choice_moves_at_most_the_weight_and_keeps_the_sum() -> None:
    weights, codes, blend = [5, 3, 7, 2], [0, 0, 1, 1], Blend.of([8, 9], (0.3, -0.7))

    def cells(answers: tuple[int, ...]) -> list[int]:
        return blend.floors(
            [
                [
                    sum(w for w, a, c in zip(weights, answers, codes, strict=True) if (a, c) == (cell, g))
                    for cell in range(4)
                ]
                for g in range(2)
            ]
        )

    for answers in itertools.product(range(4), repeat=4):
        before = cells(answers)
        for person, other in itertools.product(range(4), range(4)):
            moved = np.array(cells((*answers[:person], other, *answers[person + 1 :]))) - before
            assert moved.sum() == 0  # or one output would prove which it was
            assert np.maximum(moved, 0).sum() <= weights[person]


def test_the_audit_attacks_a_contrast_and_a_noise_that_is_a_fifth_too_small_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = made("audit")
    sound = check_privacy(plan, user=6, samples=3000, confidence=SURE)
    assert not sound.rejected
    assert sound.lower_bound > 0.2 * sound.promised
    right = SumPlan.noise_scale.fget
    assert right is not None
    monkeypatch.setattr(SumPlan, "noise_scale", property(lambda self: 0.8 * right(self)))
    cheated = check_privacy(plan, user=6, samples=3000, confidence=SURE)
    assert cheated.fit_rejected
    assert cheated.fit_p_value is not None
    assert cheated.fit_p_value < 1e-20


def test_the_audit_of_a_survey_attacks_its_contrasts() -> None:
    plan = ReleasePlan.of(6.0 * LOSSES, setting="central", strata=STRATA, questions=QUESTIONS)
    for user in (3, 6):  # one of a stratum that counts, and one of a stratum that is subtracted
        found = check_privacy(plan, user=user, samples=1000, confidence=SURE)
        assert not found.rejected
        assert found.lower_bound > 0.1 * found.promised


# -- the estimate and its errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", ["central", "local"])
def test_a_lone_stratum_of_weight_1_is_the_release_without_strata(setting: Setting) -> None:
    lone = Strata(codes=np.zeros(12, dtype=int), weights=[1.0])
    with_one, without = made("lone", setting=setting, strata=lone), made("lone", setting=setting, strata=None)
    data = np.linspace(1.0, 13.0, 12)
    if setting == "local":
        data = [privatize(x, e, (2.0, 12.0)) for x, e in zip(data, LOSSES, strict=True)]
        ours, theirs = release_synthetic(with_one, data).release, release_synthetic(without, data).release
        assert (ours.estimate, ours.error, ours.planned_error) == (theirs.estimate, theirs.error, theirs.planned_error)
        return
    for present in (np.ones(12, dtype=bool), np.arange(12) > 2):
        one, other = weigh(with_one, present), weigh(without, present)
        assert one.weights.tolist() == other.weights.tolist()
        assert (one.exponent, one.total(data), one.error) == (other.exponent, other.total(data), other.error)
        assert one.estimates([one.total(data)] * 0) == []
    assert planned_error(with_one) == planned_error(without)


def test_estimates_are_unbiased_for_strata_with_means_of_their_own() -> None:
    plan, rng = made("panel"), np.random.default_rng(3)
    means = np.array([4.0, 7.0, 9.5])
    truth, summed = float(STRATA.weights @ means), weigh(plan, np.arange(12) != 8)
    # two values, as different as declared
    panels = means[CODES] + rng.choice([-2.0, 2.0], (1500, 12))
    misses = np.array(summed.estimates([summed.total(panel) for panel in panels])) - truth
    assert abs(misses.mean()) < 7.0 * math.sqrt(summed.error.mse / misses.size)
    assert np.mean(misses**2) == pytest.approx(summed.error.mse, rel=0.5)
    assert np.mean(np.abs(misses) <= summed.error.half_width(0.95)) >= 0.9


@pytest.mark.parametrize("setting", ["central", "local"])
def test_errors_and_intervals_hold_under_a_relation_in_simulation(setting: Setting) -> None:
    plan = made("simulated", setting=setting, relation=Relation(spread=0.2, roster=30, strata=(8, 12, 10)))
    found = check_questions(plan, rng=np.random.default_rng(7), repetitions=1000, drop_out=0.2)[0]
    assert not found.rejected
    assert found.worst is not None
    assert found.worst.formula_mse > found.formula_mse
    for row in check_questions(
        made("answers", setting=setting, questions=QUESTIONS), rng=np.random.default_rng(8), repetitions=200
    ):
        assert not row.rejected


def test_one_noise_is_better_than_one_for_each_stratum() -> None:
    plan = made("one")
    apart = 0.0
    for g in range(3):
        there = STRATA.codes == g
        own = best_weights(LOSSES[there], setting="central", variance=0.04).mse * 100.0
        apart += float(STRATA.weights[g]) ** 2 * own
    expected = best_contrast(LOSSES, strata=STRATA, variance=0.04).mse * 100.0
    assert planned_error(plan).mse == pytest.approx(expected, rel=1e-9)
    assert expected < 0.9 * apart


def test_local_weights_are_by_precision_in_each_stratum() -> None:
    plan = made("by precision", setting="local")
    messages = [privatize(5.0, loss, (2.0, 12.0)) for loss in LOSSES]
    release = release_synthetic(plan, messages).release
    expected = 0.0
    for g in range(3):
        there = np.flatnonzero(STRATA.codes == g)
        precision = 1.0 / (0.04 + 2.0 / LOSSES[there] ** 2)
        sent = np.array([messages[i].decode((2.0, 12.0)) for i in there])
        expected += float(STRATA.weights[g] * (precision @ sent) / precision.sum())
    assert release.one_estimate == pytest.approx(expected, rel=1e-9)


def test_the_bias_under_a_relation_is_attained_within_strata() -> None:
    relation = Relation(spread=0.5, roster=30, strata=(8, 12, 10))
    plan = made("related", relation=relation)
    summed = weigh(plan, np.ones(12, dtype=bool))
    sizes = np.abs(STRATA.weights)
    # everybody of the roster, whoever is not in the plan with weight 0
    shares = np.concatenate([summed.shares, np.zeros(18)])
    codes = np.concatenate([CODES, np.repeat([0, 1, 2], [4, 7, 7])])
    shape = shares - (sizes / np.array(relation.strata))[codes]
    worst = math.sqrt(30 * 0.5) * np.linalg.norm(shape)  # of b ∝ shape, which adds up to 0 in each stratum
    assert [shape[codes == g].sum() for g in range(3)] == pytest.approx([0.0] * 3, abs=1e-12)
    squared, largest = bias_of(relation, Unevenness.under(relation, summed.shares, STRATA), 10.0)
    assert squared == pytest.approx(worst**2, rel=1e-12)
    assert largest == pytest.approx(min(worst, 10.0 * 0.5 * np.abs(shape).sum()), rel=1e-9)
    assert summed.error.squared_bias == pytest.approx(squared, rel=1e-12)
    assert squared == pytest.approx(
        30 * 0.5 * (np.sum(summed.shares**2) - np.sum(sizes**2 / np.array(relation.strata))), rel=1e-9
    )


@pytest.mark.parametrize("strata", [(), (8, 12), (3, 17, 10)])
def test_a_relation_counts_everybody_in_each_stratum(strata: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="relation"):
        made("counts", relation=Relation(spread=0.5, roster=30 if len(strata) != 2 else 20, strata=strata))
    with pytest.raises(InputError, match="add up to its roster of 31"):
        Relation(spread=0.5, roster=31, strata=(8, 12, 10))


# -- who does not deliver ----------------------------------------------------------------------------------------------


def test_the_others_give_the_best_contrast_of_what_they_were_promised() -> None:
    plan = made("drop-outs")
    present = ~np.isin(np.arange(12), [5, 8])
    summed = weigh(plan, present)
    best = best_contrast(LOSSES[present], strata=STRATA.of(present), variance=0.04)
    assert summed.error.mse == pytest.approx(best.mse * 100.0, rel=1e-9)
    assert summed.shares[present] == pytest.approx(np.abs(best.weights), rel=1e-9)
    assert (summed.privacy_loss <= LOSSES).all()
    assert (summed.privacy_loss[~present] == 0.0).all()


@pytest.mark.parametrize("setting", ["central", "local"])
def test_a_stratum_with_nobody_left_is_named_and_nothing_is_drawn(setting: Setting) -> None:
    plan = made(f"nobody-{setting}", setting=setting)
    data: list[Any] = [None if code == 2 else 5.0 for code in CODES]
    if setting == "local":
        data = [x if x is None else privatize(x, e, (2.0, 12.0)) for x, e in zip(data, LOSSES, strict=True)]
    with pytest.raises(NothingDelivered, match="Nobody of stratum 'new' is left"):
        release_plan(plan, data)


def test_a_stratum_from_which_nothing_was_bought_makes_no_plan() -> None:
    with pytest.raises(NothingDelivered, match="Nobody of stratum 'old'"):
        ReleasePlan.of(np.where(CODES == 1, 0.0, 1.0), setting="central", bounds=(0, 1), strata=STRATA)
    with pytest.raises(InputError, match="one code per person"):
        ReleasePlan.of(LOSSES[:5], setting="central", bounds=(0, 1), strata=STRATA)
    with pytest.raises(InputError, match="variance must be above 0"):
        made("flat", variance=0.0)


def test_without_any_noise_the_estimate_is_the_contrast_of_precise_means() -> None:
    plan = ReleasePlan.of([math.inf] * 12, setting="central", bounds=(2, 12), variance=4.0, strata=STRATA)
    data = np.linspace(3.0, 11.0, 12)
    release = release_plan(plan, data, accept_infinite_loss=True)
    means = [data[STRATA.codes == g].mean() for g in range(3)]
    assert release.one_estimate == pytest.approx(float(STRATA.weights @ means), abs=1e-9)


def test_weights_of_very_different_sizes_are_released_or_refused_by_name() -> None:
    near = Strata(codes=CODES, weights=[1.0, -1e-6, 1e-3])
    summed = weigh(made("near", strata=near), np.ones(12, dtype=bool))
    assert summed.blend.level == 1.0 - 1e-6 + 1e-3
    assert [float(summed.shares[STRATA.codes == g].sum()) for g in range(3)] == pytest.approx([1.0, 1e-6, 1e-3])
    far = made("far", strata=Strata(codes=CODES, weights=[1.0, -1e-30, 1.0], names=STRATA.names))
    with pytest.raises(ReleaseError, match="stratum 'old' who delivered are too small"):
        weigh(far, np.ones(12, dtype=bool))


def test_noise_is_not_left_out_unasked_where_only_people_without_a_limit_are_left() -> None:
    losses = np.where(STRATA.codes == 0, [0.5, math.inf, 0.5, 0.5] * 3, math.inf)
    plan = ReleasePlan.of(losses, setting="central", bounds=(2, 12), variance=4.0, strata=STRATA)
    assert (plan.delivered < math.inf).all()
    data = [5.0 if loss == math.inf else None for loss in losses]
    with pytest.raises(InfiniteLoss):
        release_plan(plan, data)
    assert release_plan(plan, data, accept_infinite_loss=True).grid.noise_scale == 0.0


# -- surveys -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", ["central", "local"])
def test_all_answers_of_a_survey_are_contrasts_with_the_same_weights(setting: Setting) -> None:
    plan = made(f"survey-{setting}", setting=setting, questions=QUESTIONS)
    rng = np.random.default_rng(5)
    table = np.stack([rng.uniform(2, 12, 12), rng.integers(0, 2, 12), rng.integers(0, 3, 12)], axis=1)
    found = simulate_plan(plan, table, 400 if setting == "central" else 300)
    if setting == "central":
        shares = weigh_survey(plan, np.ones(12, dtype=bool)).shares
    else:
        shares = sent_by(plan).weights
    signed = np.sign(STRATA.weights)[CODES] * shares
    truths = [signed @ table[:, 0], signed @ table[:, 1], *(signed @ (table[:, 2] == a) for a in range(3))]
    errors = [planned_errors(plan)[row] for row in (0, 1, 2, 2, 2)]
    for values, truth, error in zip(found.T, truths, errors, strict=True):
        noise = error.mse - error.sampling_variance
        assert abs(values.mean() - truth) < 8.0 * math.sqrt(noise / values.size)
    # a choice's values add up to what the weights do
    assert found[:, 2:].sum(axis=1) == pytest.approx(np.full(len(found), STRATA.weights.sum()), abs=1e-8)


def test_only_weights_that_are_shares_make_shares() -> None:
    difference = release_synthetic(made("difference", questions=QUESTIONS), [[5.0, True, "bus"]] * 12).release
    number, employed, transport = difference.answers
    assert not employed.is_share
    assert employed.projected == employed.values
    assert transport.projected == transport.values
    assert "projected" not in transport.public(people=12)
    assert number.range == pytest.approx((0.8 * 2 - 1.25 * 12, 0.8 * 12 - 1.25 * 2))
    assert transport.range == pytest.approx((-1.25, 0.8))
    shares = Strata(codes=CODES, weights=[0.2, 0.5, 0.3])
    mean = release_synthetic(made("shares", strata=shares, questions=QUESTIONS), [[5.0, True, "bus"]] * 12).release
    assert mean.answers[1].is_share
    assert sum(mean.answers[2].projected) == pytest.approx(1.0)
    assert mean.answers[0].range == pytest.approx((2.0, 12.0))


def test_the_groups_of_a_survey_together_keep_every_promise() -> None:
    summed = weigh_survey(made("groups", questions=QUESTIONS), np.ones(12, dtype=bool))
    exponent = summed.sum_plan.exponent
    assert exponent >= LEAST_EXPONENT
    charged = sum(part_of(summed.weights, parts) for parts in summed.sum_plan.parts)
    for row in range(12):
        assert Fraction(int(charged[row]), 2**exponent) <= Fraction(float(LOSSES[row]))


# -- once, and what is shown -------------------------------------------------------------------------------------------


def test_the_same_question_with_other_weights_or_strata_is_another_promise(tmp_path: Path) -> None:
    ids, data = [f"p{row}" for row in range(12)], np.linspace(2.0, 12.0, 12)

    def ask(strata: Strata | None, order: slice = slice(None)) -> Release:
        plan = ReleasePlan.of(
            LOSSES[order],
            setting="central",
            bounds=(2, 12),
            variance=4.0,
            strata=None if strata is None else strata.of(np.arange(12)[order]),
        )
        asked = {"question": "difference", "ids": ids[order], "ledger": tmp_path}
        return release_once(plan, data[order], **asked).release  # type: ignore[arg-type]

    first = ask(STRATA)
    assert ask(STRATA, slice(None, None, -1)).estimate == first.estimate
    swapped = CODES.copy()
    swapped[[3, 4]] = swapped[[4, 3]]
    for other in (
        None,
        Strata(codes=CODES, weights=[0.5, -1.25, 0.31], names=STRATA.names),
        Strata(codes=swapped, weights=STRATA.weights),
    ):
        with pytest.raises(AlreadyReleased, match="other promises"):
            ask(other)


def test_a_release_is_written_with_its_strata_and_read_again() -> None:
    for plan in (made("written"), made("written", questions=QUESTIONS)):
        data = [[5.0, True, "bus"]] * 12 if plan.survey else np.full(12, 5.0)
        release = release_synthetic(plan, data).release
        assert Release.from_dict(release.to_dict()).to_dict() == release.to_dict()
        assert release.to_dict()["strata"] == {
            "weights": [0.5, -1.25, 0.3],
            "bought_from": [4, 5, 3],
            "names": ["young", "old", "new"],
        }
    assert "strata" not in release_synthetic(made("plain", strata=None), np.full(12, 5.0)).release.to_dict()
    with pytest.raises(InputError, match="one weight and one count"):
        Combined(weights=(1.0, -1.0), bought_from=(3,))


def test_what_is_shown_tells_weights_but_nobody_s_stratum_and_no_error_of_a_small_one() -> None:
    shown = release_synthetic(made("public"), np.full(12, 5.0)).release.public()
    assert shown["strata"] == {"weights": [0.5, -1.25, 0.3], "names": ["young", "old", "new"]}
    # a stratum of 3: the noise would tell what its people were promised
    assert shown["planned_standard_error"] is None
    enough = Strata(codes=np.array([0] * 6 + [1] * 6), weights=[1.0, -1.0])
    assert release_synthetic(made("enough", strata=enough), np.full(12, 5.0)).release.public()["planned_standard_error"]
