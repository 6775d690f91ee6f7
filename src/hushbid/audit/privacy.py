"""A statistical attack on a release: how much privacy does a chosen person certainly lose?

Draw many outputs on pairs of synthetic data sets that differ in one person only, the worst pairs we know: her datum at
one end of the range or the other, or far outside (which clamping must make harmless). Half of the outputs choose an
event that tells the two apart; the other half count it. If the event has probabilities p and q on the two data sets,
she loses at least ``log(p/q)``; exact (Clopper-Pearson) confidence bounds on p and q make that a lower bound that holds
with the stated confidence, over all pairs and directions together. Events are thresholds on the output, and thresholds
on its *granularity*, the place of its last nonzero bit, which betrays floating-point noise: ``0 + noise`` has bits
where ``1 + noise`` cannot (Mironov 2012). Besides, the noise itself is compared with the Laplace distribution
(Kolmogorov-Smirnov).

A lower bound above the promise proves that the promise is broken. One below proves nothing.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from hushbid.common.arrays import FloatArray, IntArray, as_bounds, as_losses
from hushbid.disclosure import ReleasePlan, simulate_plan
from hushbid.disclosure.combination import level_of
from hushbid.disclosure.local import draw_values
from hushbid.disclosure.memory import planned_weights
from hushbid.errors import InputError
from hushbid.estimation import is_central

Mechanism = Callable[[FloatArray, int], FloatArray]
"""``mechanism(data, repetitions)`` returns that many independent outputs on the same data."""

TOO_LITTLE_NOISE = 0.7
"""The power reported is that of rejecting a mechanism whose noise is this fraction of what it should be."""

_FAR = 10.0
_THRESHOLDS = 199
_POWER_SIMULATIONS = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacyAudit:
    """What an attack found. ``rejected`` is proof, up to ``confidence``; its absence is not."""

    user: int
    """The row that was attacked."""

    promised: float
    """The privacy loss she was promised."""

    lower_bound: float
    """She loses at least this much."""

    event: str
    """The event that shows it."""

    fit_p_value: float | None
    """How likely noise of the expected distribution fits as badly, or a coin lies as often; None if none was given."""

    confidence: float
    """A mechanism that keeps its promise is rejected with probability at most 1 minus this."""

    samples: int
    """Outputs drawn on each of the four data sets."""

    power: float
    """Probability of rejecting a mechanism with 0.7 times the noise it should have: by the lower bound alone, and of a
    survey by the fit in the group of questions where it shows least; of a coin, one that lies as for a loss 1/0.7 times
    as large, by the number of its lies."""

    by_coin: bool = False
    """Whether it is an answer to a yes/no question, true or false by a coin, and no noise."""

    @property
    def rejected(self) -> bool:
        """Whether the promise is broken or the noise is not what it should be."""
        return self.loss_rejected or self.fit_rejected

    @property
    def loss_rejected(self) -> bool:
        """Whether she certainly loses more than promised."""
        return self.lower_bound > self.promised

    @property
    def fit_rejected(self) -> bool:
        """Whether the noise is certainly not of the expected distribution, or the coin not the promised one."""
        return self.fit_p_value is not None and self.fit_p_value < (1.0 - self.confidence) / 2.0

    def __str__(self) -> str:
        facts = (
            f"row {self.user} loses at least {self.lower_bound:.4g} of the {self.promised:.4g} promised"
            f" ({self.samples} outputs per data set, confidence {self.confidence:.4g}, event: {self.event})"
        )
        if self.loss_rejected:
            return f"Rejected: {facts}."
        if self.fit_rejected:
            what = "number of lies" if self.by_coin else "noise"
            return f"Rejected: the {what} does not fit (p = {self.fit_p_value:.2g}); {facts}."
        planted = f"a mechanism with {TOO_LITTLE_NOISE} times the noise"
        if self.by_coin:
            planted = f"a coin that lies as for a loss 1/{TOO_LITTLE_NOISE} times as large"
        return (
            f"Not rejected, which proves nothing: {facts}; {planted} would be rejected with probability"
            f" {self.power:.2f}."
        )


def check_privacy(
    mechanism: Mechanism | ReleasePlan,
    *,
    user: int,
    privacy_loss: ArrayLike | None = None,
    bounds: tuple[float, float] | None = None,
    noise_scale: float | None = None,
    samples: int = 20_000,
    confidence: float = 0.99,
) -> PrivacyAudit:
    """Attack a mechanism on synthetic data; never pass it anybody's real data.

    ``mechanism`` is a plan (then the release's own noise path is attacked; locally, the message of ``user``), or any
    function of data and a number of repetitions, together with everybody's promised ``privacy_loss`` and the public
    ``bounds``. With ``noise_scale`` (data units) the noise is also tested for being Laplace of that scale.
    """
    if isinstance(mechanism, ReleasePlan):
        return _check_plan(mechanism, user=user, samples=samples, confidence=confidence)
    if privacy_loss is None or bounds is None:
        raise InputError("privacy_loss and bounds must be given for a mechanism that is not a plan.")
    losses, bounds = as_losses(privacy_loss), as_bounds(bounds)
    return _attacked(
        mechanism, user, losses, bounds, bounds[0], noise_scale=noise_scale, samples=samples, confidence=confidence
    )


def _attacked(
    mechanism: Mechanism,
    user: int,
    losses: FloatArray,
    bounds: tuple[float, float],
    lowest: float,
    *,
    noise_scale: float | None,
    samples: int,
    confidence: float,
) -> PrivacyAudit:
    """The attack, where the output without noise is ``lowest`` if all data are at the low end."""
    low, high = bounds
    if not 0 <= user < losses.size:
        raise InputError(f"user must be a row from 0 to {losses.size - 1}, got {user}.", field="user")
    if samples < 100 or not 0.5 <= confidence < 1.0:
        raise InputError(
            f"samples must be at least 100 and confidence in [0.5, 1), got {samples} and {confidence}.", field="samples"
        )
    outputs = {}
    # the worst data sets we know: everybody at the low end, her datum anywhere
    far = _FAR * (high - low)
    for place, datum in {"low": low, "high": high, "far below": low - far, "far above": high + far}.items():
        data = np.full(losses.size, low)
        data[user] = datum
        outputs[place] = _outputs(mechanism, data, samples)
    doubt = (1.0 - confidence) / 2.0  # the other half of it is for the fit
    bound, event = certain_loss(outputs, doubt)
    promised = float(losses[user])
    return PrivacyAudit(
        user=user,
        promised=promised,
        lower_bound=bound,
        event=event,
        fit_p_value=None if noise_scale is None else _fit(outputs["low"] - lowest, noise_scale),
        confidence=confidence,
        samples=samples,
        power=_power(promised, samples, doubt),
    )


def _check_plan(plan: ReleasePlan, *, user: int, samples: int, confidence: float) -> PrivacyAudit:
    losses = plan.delivered
    if not 0 <= user < losses.size or not 0 < losses[user] < math.inf:
        raise InputError(f"user must be a row with a positive, finite privacy loss, got {user}.", field="user")

    def central(data: FloatArray, repetitions: int) -> FloatArray:
        return simulate_plan(plan, data, repetitions)

    def message(data: FloatArray, repetitions: int) -> FloatArray:
        drawn = draw_values(np.full(repetitions, data[user]), float(losses[user]), plan.bounds)
        return np.array([one.decode(plan.bounds) for one in drawn])

    is_sum = is_central(plan.setting)
    return _attacked(
        central if is_sum else message,
        user,
        plan.promised,  # attacked is what was promised, not what is used of it
        plan.bounds,
        plan.bounds[0] * (level_of(plan.combination) if is_sum else 1.0),
        noise_scale=plan.width * (planned_weights(plan)[1] if is_sum else 1.0 / float(losses[user])),
        samples=samples,
        confidence=confidence,
    )


def _outputs(mechanism: Mechanism, data: FloatArray, samples: int) -> FloatArray:
    values = np.asarray(mechanism(data, samples), dtype=np.float64)
    if values.shape != (samples,) or not np.isfinite(values).all():
        raise InputError(f"A mechanism must return as many finite numbers as asked for ({samples}).")
    return values


def certain_loss(outputs: dict[str, FloatArray], doubt: float) -> tuple[float, str]:
    """The largest certain loss over pairs and directions, each allowed its part of the doubt."""
    pairs = [("low", "high"), ("low", "far above"), ("far below", "high")]
    directed = pairs + [(second, first) for first, second in pairs]
    doubt_each = doubt / (2 * len(directed))  # two confidence bounds each
    best, event = 0.0, "none"
    for first, second in directed:
        bound, description = _attack(outputs[first], outputs[second], doubt_each)
        if bound > best:
            best, event = bound, f"{description}, more likely with the datum {first} than {second}"
    return best, event


def _attack(first: FloatArray, second: FloatArray, doubt: float) -> tuple[float, str]:
    """Choose an event on one half of the outputs, then bound its log likelihood ratio on the other half."""
    # on the first half: the event with the best bound
    half = first.size // 2
    best, choice = -math.inf, ("output", 0.0, True)
    for feature in ("output", "granularity"):
        train_first, train_second = _feature(first[:half], feature), _feature(second[:half], feature)
        thresholds = _thresholds(np.concatenate([train_first, train_second]))
        for above in (True, False):
            scores = _log_ratio_bound(
                _counts(train_first, thresholds, above), _counts(train_second, thresholds, above), half, doubt
            )
            place = int(np.argmax(scores))
            if scores[place] > best:
                best, choice = float(scores[place]), (feature, float(thresholds[place]), above)
    feature, threshold, above = choice
    limit = np.array([threshold])
    # on the second half, which did not choose it: the bound that counts
    hits = _counts(_feature(first[half:], feature), limit, above)
    others = _counts(_feature(second[half:], feature), limit, above)
    bound = float(_log_ratio_bound(hits, others, first.size - half, doubt)[0])
    return bound, f"{feature} {'above' if above else 'at most'} {threshold:.6g}"


def _feature(outputs: FloatArray, name: str) -> FloatArray:
    return outputs if name == "output" else granularity(outputs)


def granularity(values: FloatArray) -> FloatArray:
    """The exponent of the last nonzero bit of each double: 3.0 → 0, 0.75 → −2, 0.1 → −55; 1100 for zero."""
    fraction, power = np.frexp(values)
    significand = np.abs(np.ldexp(fraction, 53)).astype(np.int64)
    last_bit = np.frexp((significand & -significand).astype(np.float64))[1] - 1
    return np.where(values == 0, 1100.0, (power - 53 + last_bit).astype(np.float64))


def _thresholds(pooled: FloatArray) -> FloatArray:
    return np.unique(np.quantile(pooled, np.linspace(0.0, 1.0, _THRESHOLDS), method="inverted_cdf"))


def _counts(values: FloatArray, thresholds: FloatArray, above: bool) -> IntArray:
    at_most = np.searchsorted(np.sort(values), thresholds, side="right")
    return np.asarray(values.size - at_most if above else at_most, dtype=np.int64)


def _log_ratio_bound(hits: IntArray, others: IntArray, trials: int, doubt: float) -> FloatArray:
    """``log(lower bound on p / upper bound on q)`` from binomial counts, exact (Clopper and Pearson 1934)."""
    from scipy.special import betaincinv

    least = np.where(hits > 0, betaincinv(np.maximum(hits, 1), trials - hits + 1, doubt), 0.0)
    most = np.where(others < trials, betaincinv(others + 1, np.maximum(trials - others, 1), 1.0 - doubt), 1.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(least) - np.log(most))


def _fit(noise: FloatArray, scale: float) -> float:
    """p-value of the Kolmogorov-Smirnov test that ``noise`` is Laplace of this scale."""
    ordered = np.sort(noise) / scale
    below = 0.5 * np.exp(-np.abs(ordered))
    return kolmogorov_p_value(np.where(ordered < 0, below, 1.0 - below))


def kolmogorov_p_value(cdf: FloatArray) -> float:
    """p-value of the Kolmogorov-Smirnov test, from the supposed distribution function at the ordered sample."""
    from scipy.special import kolmogorov

    steps = np.arange(1, cdf.size + 1) / cdf.size
    distance = max(float(np.max(steps - cdf)), float(np.max(cdf - steps)) + 1.0 / cdf.size)
    return float(kolmogorov(math.sqrt(cdf.size) * distance))


def _power(promised: float, samples: int, doubt: float) -> float:
    """How often the bound exceeds the promise when the real loss is 1/0.7 of it, at the best threshold."""
    if not 0.0 < promised < math.inf:
        return 0.0
    rng = np.random.default_rng(0)
    trials = samples - samples // 2
    hits = rng.binomial(trials, 0.5, size=_POWER_SIMULATIONS)
    others = rng.binomial(trials, 0.5 * math.exp(-promised / TOO_LITTLE_NOISE), size=_POWER_SIMULATIONS)
    bounds = _log_ratio_bound(hits, others, trials, doubt / 12)
    return float(np.mean(bounds > promised))
