"""The audit rejects what it must reject, each defect alone, and does not reject the release itself.

A mechanism that keeps its promise is rejected with probability below 1e-7 here.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from hushbid.audit import PrivacyAudit, check_privacy
from hushbid.audit.privacy import Mechanism, _log_ratio_bound, attack, granularity
from hushbid.audit.targets import PLACES, Noise, Target
from hushbid.disclosure import ReleasePlan, noise, simulate_plan
from hushbid.disclosure.grid import exact_sum
from hushbid.errors import InputError
from tests.disclosure.support import weigh
from tests.extent import TIMES

LOSSES = np.array([0.3, 0.5, 1.0])
PLAN = ReleasePlan.of(LOSSES, setting="central", bounds=(0.0, 1.0))
NOISE = 1 / LOSSES.sum()
CONFIDENCE = 1 - 1e-7


def audit(mechanism: Mechanism | ReleasePlan, *, user: int = 2, fit: bool = True) -> PrivacyAudit:
    if isinstance(mechanism, ReleasePlan):
        return check_privacy(mechanism, user=user, confidence=CONFIDENCE)
    return check_privacy(
        mechanism,
        user=user,
        privacy_loss=LOSSES,
        bounds=(0.0, 1.0),
        noise_scale=NOISE if fit else None,
        confidence=CONFIDENCE,
    )


def too_little_noise(data: np.ndarray, repetitions: int) -> np.ndarray:
    summed = weigh(PLAN, LOSSES > 0)
    drawn = noise.draw_many([summed.total(data)] * repetitions, scale=0.7 * summed.noise_scale)
    return np.array([round(value / summed.total_weight * 2**40) / 2**40 for value in drawn])


def no_clamping(data: np.ndarray, repetitions: int) -> np.ndarray:
    summed = weigh(PLAN, LOSSES > 0)
    total = exact_sum(summed.weights, np.floor(data * 2**40).astype(np.int64) + 2**44) >> 40
    return np.array(summed.estimates([total - 16 * summed.total_weight] * repetitions))


def one_wrong_weight(data: np.ndarray, repetitions: int) -> np.ndarray:
    summed = weigh(PLAN, LOSSES > 0)
    wrong = replace(summed.people, losses=summed.people.losses * np.array([1, 1, 2]))
    [[total]] = summed.summed.totals_of(wrong.sums(data[:, np.newaxis]))
    return np.array(summed.estimates([total] * repetitions))


def numpy_noise(data: np.ndarray, repetitions: int) -> np.ndarray:
    rng = np.random.default_rng(8)
    return float(LOSSES @ np.clip(data, 0, 1)) * NOISE + rng.laplace(scale=NOISE, size=repetitions)


@pytest.mark.parametrize("user", [1, 2])
def test_the_release_is_not_rejected_and_the_bound_is_close_to_its_promise(user: int) -> None:
    found = audit(PLAN, user=user)
    assert not found.rejected, str(found)
    assert 0.4 * LOSSES[user] < found.lower_bound <= LOSSES[user]
    assert found.power > 0.8
    assert str(found).startswith("Not rejected, which proves nothing")
    assert f"{found.samples} outputs" in str(found)


def test_a_message_is_not_rejected_either() -> None:
    found = audit(ReleasePlan.of([1.0, 0.5], setting="local", bounds=(-2.0, 6.0)), user=1)
    assert not found.rejected, str(found)
    assert found.lower_bound > 0.3


def test_noise_scaled_by_seven_tenths_is_rejected_by_the_bound_and_by_the_fit() -> None:
    found = audit(too_little_noise)
    assert found.loss_rejected
    assert found.fit_rejected
    assert found.lower_bound < 1 / 0.7
    assert str(found).startswith("Rejected: row 2 loses at least 1.")


def test_forgetting_to_clamp_is_rejected() -> None:
    found = audit(no_clamping, fit=False)
    assert found.loss_rejected
    assert "far" in found.event


def test_a_wrong_weight_for_one_person_is_rejected_for_her_and_only_for_her() -> None:
    assert audit(one_wrong_weight, user=2).loss_rejected
    assert not audit(one_wrong_weight, user=1).rejected


def test_floating_point_noise_from_numpy_is_rejected_by_its_porous_low_bits() -> None:
    found = audit(numpy_noise)
    assert found.loss_rejected
    assert found.lower_bound > 4 * LOSSES[2]
    assert "granularity" in found.event
    assert not found.fit_rejected  # as a distribution it is impeccable


def test_the_textbook_attack_sees_the_datum_through_numpy_noise_but_not_through_a_release() -> None:
    # A double y can come from 1 + noise only if 1 + (y − 1) gives y back.
    def impossible_from_one(outputs: np.ndarray) -> float:
        return float(np.mean(1.0 + (outputs - 1.0) != outputs))

    rng = np.random.default_rng(1)
    assert impossible_from_one(1.0 + rng.laplace(size=20_000)) == 0
    assert impossible_from_one(0.0 + rng.laplace(size=20_000)) > 0.1
    plan = ReleasePlan.of([1.0], setting="central", bounds=(0.0, 1.0))
    for datum in (0.0, 1.0):
        assert impossible_from_one(simulate_plan(plan, [datum], 20_000)) == 0


def test_noise_of_another_shape_is_rejected_by_the_fit_alone() -> None:
    def normal_noise(data: np.ndarray, repetitions: int) -> np.ndarray:
        outputs = LOSSES @ np.clip(data, 0, 1) * NOISE + np.random.default_rng(0).normal(
            scale=9 * NOISE, size=repetitions
        )
        return np.round(outputs * 2**30) / 2**30

    found = audit(normal_noise)
    assert found.fit_rejected
    assert not found.loss_rejected
    assert "the noise does not fit" in str(found)


def test_no_noise_at_all_is_rejected() -> None:
    found = audit(lambda data, repetitions: np.full(repetitions, LOSSES @ np.clip(data, 0, 1)), fit=False)
    assert found.loss_rejected


def test_the_power_is_honest_about_what_cannot_be_found() -> None:
    def power(loss: float, samples: int) -> float:
        """Of a mechanism of which it is not known what noise it should have."""
        found = check_privacy(
            lambda data, times: np.zeros(times), user=0, privacy_loss=[loss], bounds=(0, 1), samples=samples
        )
        return found.power

    assert power(0.01, 200) < 0.05
    assert power(1.0, 200) < power(1.0, 2000) <= 1.0
    assert power(30.0, 200) < 0.05


@pytest.mark.parametrize("samples", [100, 200])
def test_the_power_of_the_fit_is_how_often_it_finds_too_little_noise(samples: int) -> None:
    rng = np.random.default_rng(samples)
    target = Target(
        draw=lambda place, times: 0.7 * rng.laplace(size=(times, 1)) + (PLACES[place] > 0.5),
        parts=(Noise(lowest=np.zeros(1), highest=np.ones(1), scale=np.ones(1), columns=np.zeros(1, dtype=np.intp)),),
    )
    tried = [attack(target, 1.0, 0, samples, 0.99) for _ in range(100 * TIMES)]
    assert np.mean([one.fit_rejected for one in tried]) == pytest.approx(tried[0].power, abs=0.15)


@pytest.mark.parametrize(("p", "q"), [(0.5, 0.5), (0.3, 0.1), (0.02, 0.01)])
def test_the_confidence_bound_is_exact(p: float, q: float) -> None:
    trials, doubt = 60, 0.05
    counts = np.arange(trials + 1)
    hits, others = (grid.ravel() for grid in np.meshgrid(counts, counts, indexing="ij"))
    exceeds = _log_ratio_bound(hits, others, trials, doubt) > math.log(p / q)
    mass = stats.binom.pmf(hits, trials, p) * stats.binom.pmf(others, trials, q)
    assert mass[exceeds].sum() <= 2 * doubt


def test_granularity_is_the_place_of_the_last_bit() -> None:
    values = np.array([3.0, 0.75, -0.75, 8.0, 0.1, 0.0, 5e-324])
    assert granularity(values).tolist() == [0.0, -2.0, -2.0, 3.0, -55.0, 1100.0, -1074.0]


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(InputError, match="must be given"):
        check_privacy(numpy_noise, user=0)
    with pytest.raises(InputError, match="user"):
        check_privacy(numpy_noise, user=3, privacy_loss=LOSSES, bounds=(0, 1))
    with pytest.raises(InputError, match="user"):
        check_privacy(ReleasePlan.of([0.0, 1.0], setting="central", bounds=(0, 1)), user=0)
    with pytest.raises(InputError, match="samples"):
        check_privacy(numpy_noise, user=0, privacy_loss=LOSSES, bounds=(0, 1), samples=10)
    with pytest.raises(InputError, match="finite numbers"):
        check_privacy(lambda data, k: np.full(k, math.nan), user=0, privacy_loss=LOSSES, bounds=(0, 1))
