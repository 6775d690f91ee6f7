"""Which prior do a pilot's costs speak for? Maximum likelihood for each family, and a fair comparison.

Families differ in how many numbers they adapt, and the empirical prior adapts to every one, so none is judged on the
values it was fitted to: each fifth is held out in turn, for five random splits into fifths, and the *held-out distance*
is the mean of the largest gap between the fitted and the held-out distribution function. Chance alone gives about
1.2/√m with m values in a fold (0.87/√m on average). Priors within one standard error of the least distance fit equally
(the one-standard-error rule of Breiman et al. 1984). Of these the best is the most parsimonious: the one of least AIC,
which charges for every parameter. The empirical prior and a kernel density keep every value and have no AIC: they come
last. A histogram and a kernel density are fitted where they are asked for.

A prior is public on a server and stands in every record, so the ends of a uniform prior and of a histogram are not the
smallest and the largest answer of the pilot: they are rounded outwards, by 2 to 5 % of the range at most. An empirical
prior and a kernel density hold the answers themselves.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

import numpy as np

from hushbid.common.arrays import FloatArray
from hushbid.errors import InputError
from hushbid.priors import (
    Beta,
    Empirical,
    Exponential,
    Gamma,
    Histogram,
    KernelDensity,
    LogNormal,
    Prior,
    TruncatedNormal,
    Uniform,
)

_FOLDS = 5
_SPLITS = 5
_FEWEST = 10
_NEWTON_STEPS = 100
_LEAST_STEPS = 20
"""The grid to which ends are rounded has at least so many steps across the sample."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """One family, fitted."""

    family: str
    """Its name."""

    prior: Prior
    """With the parameters of largest likelihood."""

    log_likelihood: float | None
    """None for the empirical prior, which has no density."""

    aic: float | None
    """Akaike's criterion: twice the number of parameters less twice the log-likelihood; None without either."""

    held_out_distance: float
    """Mean largest gap between fitted and held-out distribution functions."""

    held_out_error: float
    """Standard error of that mean, as if from one split: further ones take away its luck and add no values."""

    is_regular: bool
    """Whether its virtual cost needs no ironing."""


def fit_priors(values: FloatArray, *, bounds: tuple[float, float] | None = None, also: Iterable[str] = ()) -> list[Fit]:
    """Fit all families that can be fitted, and return them with the best first.

    Those that fit as well as the closest come first, the most parsimonious of them before all. The others follow by
    their held-out distance.

    ``bounds``, where known from elsewhere, give the support of a beta prior. ``also`` names families that follow the
    sample more closely: ``"histogram"`` and ``"kde"``.
    """
    values = np.asarray(values, dtype=np.float64)
    if values.size < _FEWEST:
        raise InputError(f"a pilot must have at least {_FEWEST} people, got {values.size}.")
    if np.ptp(values) == 0.0:
        raise InputError("a pilot's costs must differ, but they are all the same.")
    makers = _makers(values, bounds) | {family: _SMOOTHED[family] for family in also}
    fits = [_fit(family, maker, values) for family, maker in makers.items()]
    closest = min(fits, key=lambda fit: fit.held_out_distance)
    equal = closest.held_out_distance + closest.held_out_error

    def place(fit: Fit) -> tuple[bool, float, float, str]:
        worse = fit.held_out_distance > equal
        aic = math.inf if fit.aic is None else fit.aic
        return worse, 0.0 if worse else aic, fit.held_out_distance, fit.family

    return sorted(fits, key=place)


Maker = Callable[[FloatArray], Prior]


def _makers(values: FloatArray, bounds: tuple[float, float] | None) -> dict[str, Maker]:
    makers: dict[str, Maker] = {"uniform": _uniform, "exponential": _exponential, "truncnormal": _truncated_normal}
    if values.min() > 0.0:
        makers["lognormal"] = _lognormal
        makers["gamma"] = _gamma
    if bounds is not None:
        low, high = bounds
        if not (0.0 <= low < values.min() and values.max() < high):
            problem = "bounds must lie around all costs, with 0 or more at its low end"
            raise InputError(f"{problem}, got {low:g} to {high:g}.", field="bounds")
        makers["beta"] = lambda sample: _beta(sample, low, high)
    makers["empirical"] = Empirical
    return makers


def _fit(family: str, maker: Maker, values: FloatArray) -> Fit:
    prior = maker(values)
    likelihood = None if isinstance(prior, Empirical) else float(np.sum(np.log(prior.pdf(values))))
    # of a histogram, the ends and all weights but one
    count = prior.weights.size + 1 if isinstance(prior, Histogram) else _PARAMETERS.get(family)
    distances = _held_out(maker, values)
    return Fit(
        family=family,
        prior=prior,
        log_likelihood=likelihood,
        aic=None if likelihood is None or count is None else 2.0 * count - 2.0 * likelihood,
        held_out_distance=float(np.mean(distances)),
        held_out_error=float(np.std(distances, ddof=1)) / math.sqrt(_FOLDS),
        is_regular=prior.is_regular,
    )


_PARAMETERS = {"uniform": 2, "exponential": 1, "truncnormal": 2, "lognormal": 2, "gamma": 2, "beta": 2}


def _held_out(maker: Maker, values: FloatArray) -> list[float]:
    """Return the distance in each fold of each split; splits are the same at every call and for every family.

    Values are sorted first, so their order does not matter. The empirical prior's distances then depend on the split
    alone: with a single split it would win or lose by luck, the same for every sample of that size.
    """
    ordered, rng = np.sort(values), np.random.default_rng(_FOLDS)
    distances = []
    for _ in range(_SPLITS):
        shuffled = rng.permutation(ordered)
        for fold in range(_FOLDS):
            rest = np.delete(shuffled, np.s_[fold::_FOLDS])
            distances.append(_distance(maker(rest), shuffled[fold::_FOLDS]))
    return distances


def _distance(prior: Prior, sample: FloatArray) -> float:
    """Return Kolmogorov's distance: the largest gap between a prior's and a sample's distribution function."""
    points, counts = np.unique(sample, return_counts=True)
    after = np.cumsum(counts) / sample.size
    before = np.concatenate([[0.0], after[:-1]])
    # at a jump of the sample both sides count; an empirical prior jumps too
    at, below = np.asarray(prior.cdf(points)), np.asarray(prior.cdf(np.nextafter(points, -np.inf)))
    return float(max(np.max(np.abs(at - after)), np.max(np.abs(below - before))))


def _uniform(sample: FloatArray) -> Prior:
    return Uniform(*_rounded_ends(sample))


def _rounded_ends(sample: FloatArray) -> tuple[float, float]:
    """Return the ends of a sample, rounded outwards to a step of 1, 2 or 5 times a power of ten."""
    low, high = Decimal(float(sample.min())), Decimal(float(sample.max()))
    largest = (high - low) / _LEAST_STEPS
    power = Decimal(1).scaleb(largest.adjusted())
    step = max(factor * power for factor in (1, 2, 5) if factor * power <= largest)
    down = (low / step).to_integral_value(ROUND_FLOOR) * step
    up = (high / step).to_integral_value(ROUND_CEILING) * step
    # a decimal number that is no double may round to the wrong side
    return min(float(down), float(sample.min())), max(float(up), float(sample.max()))


def _exponential(sample: FloatArray) -> Prior:
    return Exponential(float(sample.mean()))


def _histogram(sample: FloatArray) -> Prior:
    """Fit bins of one width: as many as NumPy's rule ("auto") takes, but at most two for each unit of √n."""
    bins = len(np.histogram_bin_edges(sample, "auto")) - 1
    most = math.ceil(2.0 * math.sqrt(sample.size))
    weights, edges = np.histogram(sample, min(bins, most), range=_rounded_ends(sample))
    return Histogram(edges, weights)


_SMOOTHED: dict[str, Maker] = {"histogram": _histogram, "kde": KernelDensity}


def _lognormal(sample: FloatArray) -> Prior:
    logs = np.log(sample)
    return LogNormal(float(logs.mean()), float(logs.std()))


def _gamma(sample: FloatArray) -> Prior:
    """Solve ``log k − digamma(k) = log mean − mean log`` for the shape, by Newton in ``1/k`` (Minka 2002)."""
    from scipy.special import digamma, polygamma

    gap = math.log(sample.mean()) - float(np.log(sample).mean())
    shape = (3.0 - gap + math.sqrt((gap - 3.0) ** 2 + 24.0 * gap)) / (12.0 * gap)  # good to 1.5 %
    for _ in range(_NEWTON_STEPS):
        slope = 1.0 / shape - float(polygamma(1, shape))
        updated = 1.0 / (1.0 / shape + (math.log(shape) - float(digamma(shape)) - gap) / (shape * shape * slope))
        if abs(updated - shape) <= 1e-12 * shape:
            break
        shape = updated
    return Gamma(shape, float(sample.mean()) / shape)


def _truncated_normal(sample: FloatArray) -> Prior:
    """Fit a normal distribution cut off at 0, by descent from the sample's own mean and deviation."""
    from scipy.optimize import minimize
    from scipy.special import log_ndtr

    mean, spread = float(sample.mean()), float(sample.std())

    def cost(parameters: FloatArray) -> float:
        centre, scale = parameters[0] * spread, math.exp(parameters[1]) * spread
        squares = float(np.mean(np.square((sample - centre) / scale)))
        return 0.5 * squares + math.log(scale) + float(log_ndtr(centre / scale))

    # A centre far below 0 means an exponential tail; beyond 30 deviations nothing changes any more.
    limits = [(mean / spread - 30.0, mean / spread + 1.0), (-5.0, 5.0)]
    found = minimize(cost, x0=np.array([mean / spread, 0.0]), method="L-BFGS-B", bounds=limits)
    return TruncatedNormal(float(found.x[0]) * spread, math.exp(float(found.x[1])) * spread, 0.0, math.inf)


def _beta(sample: FloatArray, low: float, high: float) -> Prior:
    """Fit by descent in the logarithms of both exponents, from the values that match mean and variance."""
    from scipy.optimize import minimize
    from scipy.special import betaln

    shares = (sample - low) / (high - low)
    logs, others = float(np.log(shares).mean()), float(np.log1p(-shares).mean())

    def cost(parameters: FloatArray) -> float:
        a, b = np.exp(parameters)
        return float(betaln(a, b) - (a - 1.0) * logs - (b - 1.0) * others)

    mean, variance = float(shares.mean()), float(shares.var())
    total = max(mean * (1.0 - mean) / variance - 1.0, 0.1)  # a + b, by moments
    start = np.log([mean * total, (1.0 - mean) * total])
    found = minimize(cost, x0=start, method="L-BFGS-B", bounds=[(-8.0, 12.0)] * 2)
    a, b = np.exp(found.x)
    return Beta(float(a), float(b), low, high)
