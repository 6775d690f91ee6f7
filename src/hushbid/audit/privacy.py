"""A statistical attack on a release or a message: how much privacy does a chosen person certainly lose?

Draw many outputs on pairs of synthetic data sets that differ in one person only, the worst pairs we know: their answers
at one end of the range or the other, or far outside (`hushbid.audit.targets`). Half of the outputs choose an
event that distinguishes the two; the other half count it. If the event has probabilities p and q on the two data sets,
the person loses at least ``log(p/q)``; exact (Clopper-Pearson) confidence bounds on p and q make that a lower bound
that holds with the stated confidence, over all pairs and directions together. Events are thresholds on

* the *output*; of several columns on their sum in the direction in which the person's answers move them, and on their
  *likelihood ratio*, with which one column rises or falls anyway;
* its *granularity*, the place of the last nonzero bit, which betrays floating-point noise: ``0 + noise`` has bits where
  ``1 + noise`` cannot (Mironov 2012).

Besides, the noise is compared with the distribution that it should have, and the number of false answers by randomised
response with their odds: what is slightly too little shows there first.

A lower bound above the promise proves that the promise is broken. One below proves nothing.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from hushbid.audit.targets import PLACES, TOO_LITTLE_NOISE, Noise, Target, target_of
from hushbid.common.arrays import FloatArray, IntArray, as_bounds, as_losses
from hushbid.disclosure import ReleasePlan
from hushbid.errors import InputError

Mechanism = Callable[[FloatArray, int], FloatArray]
"""``mechanism(data, repetitions)`` returns that many independent outputs on the same data."""

Features = Mapping[str, FloatArray]
"""Numbers by which outputs may be distinguished, by name: one for each output."""

_PAIRS = [("low", "high"), ("low", "far above"), ("far below", "high")]
_THRESHOLDS = 199
_POWER_SIMULATIONS = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacyAudit:
    """What an attack found. ``rejected`` is proof, up to ``confidence``; its absence is not."""

    user: int
    """The row that was attacked."""

    promised: float
    """The privacy loss that was promised to that person."""

    lower_bound: float
    """They lose at least this much."""

    event: str
    """The event that shows it."""

    fit_p_value: float | None
    """How likely the right noise, or the right coin, fits as badly; None if it is not known what would be right."""

    confidence: float
    """A mechanism that keeps its promise is rejected with probability at most 1 minus this."""

    samples: int
    """Outputs drawn on each of the four data sets."""

    power: float
    """Probability of rejecting a mechanism with 0.7 times the noise it should have, in the group of questions where it
    shows least; of a coin, one that lies as for a loss 1/0.7 times as large. By the fit, and by the lower bound if it
    is not known which noise would be right."""

    by_coin: bool = False
    """Whether it is an answer to a yes/no question by randomised response: true or false by a coin, and no noise."""

    @property
    def rejected(self) -> bool:
        """Whether the promise is broken or the noise is not what it should be."""
        return self.loss_rejected or self.fit_rejected

    @property
    def loss_rejected(self) -> bool:
        """Whether the person certainly loses more than promised."""
        return self.lower_bound > self.promised

    @property
    def fit_rejected(self) -> bool:
        """Whether the noise is certainly not of the expected distribution, or the coin not the promised one."""
        return self.fit_p_value is not None and self.fit_p_value < (1.0 - self.confidence) / 2.0

    def __str__(self) -> str:
        facts = (
            f"row {self.user} loses at least {self.lower_bound:.4g} of the {self.promised:.4g} promised"
            f" ({self.samples} outputs per data set, confidence {self.confidence:.8g}, event: {self.event})"
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

    ``mechanism`` is a plan, of a number or a survey (then the release's own noise path is attacked; locally, the
    message of ``user``), or any function of data and a number of repetitions, together with everybody's promised
    ``privacy_loss`` and the public ``bounds``. With ``noise_scale`` (data units) the noise of a function is also tested
    for being Laplace of that scale.
    """
    if isinstance(mechanism, ReleasePlan):
        losses = mechanism.delivered
        if not 0 <= user < losses.size or not 0 < losses[user] < math.inf:
            raise InputError(f"user must be a row with a positive, finite privacy loss, got {user}.", field="user")
        # attacked is what was promised, not what is used of it
        return attack(target_of(mechanism, user), float(mechanism.promised[user]), user, samples, confidence)
    if privacy_loss is None or bounds is None:
        raise InputError("privacy_loss and bounds must be given for a mechanism that is not a plan.")
    losses = as_losses(privacy_loss)
    if not 0 <= user < losses.size:
        raise InputError(f"user must be a row from 0 to {losses.size - 1}, got {user}.", field="user")
    target = _function_target(mechanism, user, losses.size, as_bounds(bounds), noise_scale)
    return attack(target, float(losses[user]), user, samples, confidence)


def attack(target: Target, promised: float, user: int, samples: int, confidence: float) -> PrivacyAudit:
    """Attack anything of which outputs can be drawn, where a person in row ``user`` was promised a privacy loss."""
    if samples < 100 or not 0.5 <= confidence < 1.0:
        raise InputError(
            f"samples must be at least 100 and confidence in [0.5, 1), got {samples} and {confidence}.", field="samples"
        )
    outputs = {place: target.draw(place, samples) for place in PLACES}
    features = {
        place: {**target.features(seen), "granularity": granularity(seen).min(axis=1)}
        for place, seen in outputs.items()
    }
    doubt = (1.0 - confidence) / 2.0  # the other half of it is for the fit
    bound, event = _certain_loss(features, doubt)
    return PrivacyAudit(
        user=user,
        promised=promised,
        lower_bound=bound,
        event=event,
        fit_p_value=target.fit(outputs),
        confidence=confidence,
        samples=samples,
        power=target.power(samples, doubt) if target.parts else _power(promised, samples, doubt),
        by_coin=target.by_coin,
    )


def _function_target(
    mechanism: Mechanism, user: int, people: int, bounds: tuple[float, float], noise_scale: float | None
) -> Target:
    """Any mechanism, whose output without noise is the low end if all data are."""
    low, high = bounds

    def draw(place: str, samples: int) -> FloatArray:
        data = np.full(people, low)
        data[user] = low + PLACES[place] * (high - low)
        values = np.asarray(mechanism(data, samples), dtype=np.float64)
        if values.shape != (samples,) or not np.isfinite(values).all():
            raise InputError(f"A mechanism must return as many finite numbers as asked for ({samples}).")
        return values[:, np.newaxis]

    if noise_scale is None:
        return Target(draw=draw, parts=())
    # how far a datum moves the output is not known
    noise = Noise(
        lowest=np.array([low]), highest=None, scale=np.array([noise_scale]), columns=np.zeros(1, dtype=np.intp)
    )
    return Target(draw=draw, parts=(noise,))


def _certain_loss(features: Mapping[str, Features], doubt: float) -> tuple[float, str]:
    """The largest certain loss over pairs of data sets and directions, each allowed its part of the doubt."""
    directed = _PAIRS + [(second, first) for first, second in _PAIRS]
    doubt_each = doubt / (2 * len(directed))  # two confidence bounds each
    best, event = 0.0, "none"
    for first, second in directed:
        bound, description = _distinguish(features[first], features[second], doubt_each)
        if bound > best:
            best, event = bound, f"{description}, more likely with the datum {first} than {second}"
    return best, event


def _distinguish(first: Features, second: Features, doubt: float) -> tuple[float, str]:
    """Choose an event on one half of the outputs, then bound its log likelihood ratio on the other half."""
    size = first["granularity"].size
    half = size // 2
    # on the first half: the event with the best bound
    best, choice = -math.inf, ("granularity", 0.0, True)
    for name in first:
        ours, theirs = first[name][:half], second[name][:half]
        thresholds = _thresholds(np.concatenate([ours, theirs]))
        for above in (True, False):
            scores = _log_ratio_bound(_counts(ours, thresholds, above), _counts(theirs, thresholds, above), half, doubt)
            place = int(np.argmax(scores))
            if scores[place] > best:
                best, choice = float(scores[place]), (name, float(thresholds[place]), above)
    name, threshold, above = choice
    # on the second half, which did not choose it: the bound that counts
    hits, others = (_counts(one[name][half:], np.array([threshold]), above) for one in (first, second))
    bound = float(_log_ratio_bound(hits, others, size - half, doubt)[0])
    return bound, f"{name} {'above' if above else 'at most'} {threshold:.6g}"


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
