"""How much a relation between price and datum could mislead.

The estimate weighs people by how much privacy was bought from them, and that depends on what they asked for. Over the n
people who reported, with weights w that sum to 1 and data x of mean m,

    Σ w_i x_i − m = Σ (w_i − 1/n)(x_i − m) = n · cov(w, x) = ρ(w, x) · sd(x) · √(n Σ w_i² − 1).

So what moves the estimate is the correlation between *weight* and datum, times the data's standard deviation, times how
uneven the weights are (``n Σ w² = n / effective people``). It moves by half an interval, h, when

    |ρ(w, x)| = h / (sd(x) · √(n Σ w² − 1)),

whatever the shape of the relation. If the datum depends on the reported sensitivity c in a straight line, plus
something that has nothing to do with the weights, then cov(w, x) = cov(w, c)·cov(c, x)/var(c), so

    ρ(w, x) = ρ(w, c) · ρ(c, x),

and the correlation between *sensitivity* and datum that does it is larger by 1/|ρ(w, c)|. Correlations above 1 do not
exist: then nothing of that kind can do it. sd(x) is the declared one; if the true one is smaller, it takes more.
"""

import math

import numpy as np

from hushbid.arrays import FloatArray
from hushbid.report.model import SelectionFacts


def selection_facts(weights: FloatArray, reports: FloatArray, *, variance: float, half_width: float) -> SelectionFacts:
    """Which correlation would move the estimate by ``half_width``."""
    n, squares = weights.size, float(np.dot(weights, weights))
    # √(n Σ w² − 1): zero for equal weights
    unevenness = math.sqrt(max(n * squares - 1.0, 0.0)) if squares > 0.0 else 0.0
    if unevenness < 1e-6:  # equal weights: nobody is preferred
        unevenness = 0.0
    shift = math.sqrt(variance) * unevenness
    between = _correlation(weights, reports)
    return SelectionFacts(
        spread=math.sqrt(variance),
        half_width=half_width,
        shift_per_correlation=shift,
        effective_people=1.0 / squares if squares > 0.0 else 0.0,
        weight_cost_correlation=between,
        any_shape=_needed(half_width, shift),
        linear=None if between is None else _needed(half_width, shift * abs(between)),
    )


def _needed(half_width: float, shift: float) -> float | None:
    if shift <= 0.0 or not math.isfinite(half_width):
        return None
    correlation = half_width / shift
    return correlation if correlation <= 1.0 else None


def _correlation(first: FloatArray, second: FloatArray) -> float | None:
    if first.size < 2 or not np.isfinite(second).all():
        return None
    a, b = _centred(first), _centred(second)
    scale = math.sqrt(float(a @ a)) * math.sqrt(float(b @ b))
    return float(a @ b) / scale if scale > 0.0 else None


def _centred(values: FloatArray) -> FloatArray:
    """Less the mean, and of size one, so that squares neither overflow nor vanish."""
    largest = float(np.max(np.abs(values)))
    scaled = values / largest if largest > 0.0 else values
    centred: FloatArray = scaled - scaled.mean()
    return np.where(np.abs(centred) < 1e-14, 0.0, centred)
