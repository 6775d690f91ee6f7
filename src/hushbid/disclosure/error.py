"""How far an estimate may lie from the mean: its standard error, and intervals that hold at every sample size.

The error is ``Σ w_i (x_i − θ) + Laplace noise``: one Laplace term in the central setting, one per person in the local.
Everything here follows from the plan and from who delivered, nothing from the data. Where price and datum may be
related, there is a bias besides (`hushbid.disclosure.relation`): the worst mean squared error has its largest square
more, and an interval is wider by it on either side. Where stratum means are combined, ``w_i`` is everywhere the
``|ω_i|`` of `hushbid.disclosure.combination`, and the error ``Σ ω_i (x_i − θ_g(i)) + noise``.

**The interval.** Let L be the Laplace term of largest scale and Y the rest. Chernoff's inequality bounds Y's tail,

    P(Y ≥ u) ≤ T(u) = min over λ of exp(K(λ) − λu),

where K adds up bounds on logarithms of moment generating functions: for the data the smaller of Hoeffding's
``λ² R² Σw²/8`` and Bernstein's ``λ² ΣVw² / (2 − 2λ R max w/3)``; for Laplace terms of scales b ≤ B,
``Σ −log(1 − λ²b²) ≤ (Σb²/B²)·(−log(1 − λ²B²))`` by convexity (discrete Laplace noise has the smaller function, since
``sinh(x)/x`` increases). L is taken exactly: over cells of u, ``P(L + Y ≥ s)`` is at most

    P(L ≥ s) + Σ T(u_k) P(s − u_{k+1} ≤ L < s − u_k),

an upper sum because T falls. The half-width is the s at which this reaches half of ``1 − level``, plus the grid's
rounding. A question of a survey gets one cell of each noise term instead, whose distribution and cumulants are those of
`hushbid.disclosure.tails`; the rest is the same. Where Laplace noise dominates, it is the Laplace quantile; where
sampling dominates it is up to 1.4 times as wide as the normal interval that large samples would justify (at 95 %), the
price of holding for all distributions on the range whose variance is at most the declared one.

**The normal interval.** With many people, none of whom weighs much, Y is nearly normal. If it is, and has the declared
variance, the half-width is the s at which ``P(L + N ≥ s)`` is half of ``1 − level``, N normal with Y's variance: L is
taken exactly here too, because one Laplace term never becomes normal. Over cells of N an upper sum bounds it from
above. As the normal tail lies below T, it is never wider than the interval that holds for all data; with few people,
or a few who weigh much, it may hold less often than it says.

Both are cut to the public range, in which the truth lies: what contains the truth does so still. Where a noisy
estimate lies so far outside that nothing of its interval is left, the nearest end of the range stands for it.
"""

import functools
import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from hushbid.common.arrays import FloatArray, as_number
from hushbid.common.numbers import at_most
from hushbid.disclosure.tails import Tail, tail_of
from hushbid.errors import InputError

FEWEST_PEOPLE = 5
"""Figures that rest on fewer people are not published: they would tell what one of them bid."""

FEW = f"Fewer than {FEWEST_PEOPLE} people were bought from, so this could show what one of them bid."
FEW_IN_STRATUM = FEW.replace("were bought from", "of a stratum were bought from")

FEWEST_IN_CHART = 20
"""No chart, quantile or comparison of one campaign is shown that fewer people are behind."""

PUBLIC_LEVEL = 0.95
_CELLS = 2000
_RATES = 300
_NEGLIGIBLE = 1e-4
_NORMAL_CELLS = 8000
_NORMAL_REACH = 9.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorModel:
    """The few numbers that determine how far an estimate may lie from the mean; data units."""

    sampling_variance: float
    """``Σ V_i w_i²``."""

    squared_steps: float
    """``R² Σ w_i²``."""

    largest_step: float
    """``R max w_i``: how far one person's datum can move the estimate."""

    largest_noise: float
    """Scale of the largest Laplace term."""

    next_noise: float
    """Scale of the second largest Laplace term, 0 in the central setting."""

    other_noise_squared: float
    """Sum of the squared scales of all Laplace terms but the largest."""

    rounding: float
    """Bound on what the integer grid adds."""

    squared_bias: float = 0.0
    """What the square of the bias is at most, by how closely price and datum may be related."""

    largest_bias: float = 0.0
    """What the bias is at most, by that or by the range."""

    cells: int = 1
    """How many cells each noise term has, of which this estimate gets one: 1 for Laplace terms."""

    choice: bool = False
    """Whether these are the cells of a choice; if not, they are those of a box."""

    @property
    def mse(self) -> float:
        """Mean squared error if price and datum are unrelated: a Laplace term of scale b has variance ``2b²``."""
        noise = self.largest_noise * self.largest_noise + self.other_noise_squared
        return self.sampling_variance + self._tail_of_noise.variance * noise

    @property
    def worst_mse(self) -> float:
        """Mean squared error at worst, if they are related as closely as they may be."""
        return self.mse + self.squared_bias

    @property
    def related(self) -> bool:
        """Whether price and datum may be related, so that the two errors differ."""
        return self.squared_bias > 0.0

    @property
    def _tail_of_noise(self) -> Tail:
        return tail_of(self.cells, self.choice)

    def half_width(self, level: float) -> float:
        """Half the width of an interval that contains the mean with probability at least ``level``."""
        if not 0.0 < as_number(level, "level") < 1.0:
            raise InputError(f"level must lie strictly between 0 and 1, got {level}.", field="level")
        unit = math.sqrt(self.mse)
        if unit == 0.0 or not math.isfinite(unit):
            return self.rounding + self.largest_bias if unit == 0.0 else math.inf
        random = unit * _quantile_of(self._relative(unit), (1.0 - level) / 2.0)
        return random + self.rounding + self.largest_bias

    def normal_half_width(self, level: float) -> float:
        """The same if everything but the largest noise term is normal: nearly so with many people of small weight."""
        whole = self.half_width(level)
        unit = math.sqrt(self.mse)
        if unit == 0.0 or not math.isfinite(unit):
            return whole
        found = unit * _quantile_of(self._relative(unit), (1.0 - level) / 2.0, normal=True)
        return min(found + self.rounding + self.largest_bias, whole)

    def _normal_quantile(self, tail: float) -> float:
        """The least s with ``P(L + N ≥ s) ≤ tail``, from above by an upper sum over cells of N; unit standard error."""
        noise = self._tail_of_noise
        spread = math.sqrt(self.sampling_variance + noise.variance * self.other_noise_squared)
        if spread == 0.0:
            return self.largest_noise * noise.quantile(tail)
        if self.largest_noise == 0.0:
            return spread * NormalDist().inv_cdf(1.0 - tail)
        ends, masses = _normal_cells()
        low, high = 0.0, spread * float(ends[-1]) + self.largest_noise * noise.quantile(tail / 2.0) + 1.0
        for _ in range(50):
            middle = (low + high) / 2.0
            # P(L ≥ s − u) at the right end u of every cell
            beyond = 1.0 - noise.below((middle - spread * ends) / self.largest_noise)
            low, high = (low, middle) if float(masses @ beyond) <= tail else (middle, high)
        return high

    def _relative(self, unit: float) -> "ErrorModel":
        """The random part of this model, with ``unit`` as the unit of length."""
        return ErrorModel(
            sampling_variance=self.sampling_variance / unit / unit,
            squared_steps=self.squared_steps / unit / unit,
            largest_step=self.largest_step / unit,
            largest_noise=self.largest_noise / unit,
            next_noise=self.next_noise / unit,
            other_noise_squared=self.other_noise_squared / unit / unit,
            rounding=self.rounding / unit,
            cells=self.cells,
            choice=self.choice,
        )

    def _quantile(self, tail: float) -> float:
        """The least s with ``P(error ≥ s) ≤ tail`` by the bound above, found by bisection; unit standard error."""
        rates, cumulants = self._cumulants()
        if rates.size == 0:  # nothing but the one noise term
            return self.largest_noise * self._tail_of_noise.quantile(tail)
        # past this the rest's tail is negligible, by Chernoff at the best rate
        reach = float(np.min((cumulants - math.log(tail * _NEGLIGIBLE)) / rates))
        cells = np.linspace(0.0, reach, _CELLS + 1)
        rest = self._tail_of_rest(cells)
        low, high = 0.0, reach + self.largest_noise * self._tail_of_noise.quantile(tail / 2.0) + 1.0
        # the bound falls with s: bisection, from the safe side
        for _ in range(60):
            middle = (low + high) / 2.0
            low, high = (low, middle) if self._tail(middle, cells, rest) <= tail else (middle, high)
        return high

    def _tail(self, s: float, cells: FloatArray, rest: FloatArray) -> float:
        if self.largest_noise == 0.0:
            return float(self._tail_of_rest(np.array([s]))[0])
        below = self._tail_of_noise.below((s - cells) / self.largest_noise)  # decreasing; P(L < s − u_k)
        # over each cell of u, the mass of L times the tail of the rest at its left end
        cell_mass = below[:-1] - below[1:]
        return float((1.0 - below[0]) + rest[:-1] @ cell_mass + rest[-1] * below[-1])

    def _tail_of_rest(self, distance: FloatArray) -> FloatArray:
        """``T(u)``, minimised over a grid of rates: any rate gives a valid bound."""
        rates, cumulants = self._cumulants()
        exponents = np.zeros_like(distance)
        for rate, cumulant in zip(rates, cumulants, strict=True):
            np.minimum(exponents, cumulant - rate * distance, out=exponents)
        return np.asarray(np.exp(exponents))

    def _cumulants(self) -> tuple[FloatArray, FloatArray]:
        """Rates λ and bounds K(λ) on the log moment generating function of everything but the largest noise."""
        spread = self.sampling_variance + self._tail_of_noise.variance * self.other_noise_squared
        if spread == 0.0:
            return np.empty(0), np.empty(0)
        # rates up to where the bound is below any tail of interest, and K still finite
        fastest = 60.0 / math.sqrt(spread)
        if self.next_noise > 0.0:
            fastest = min(fastest, 0.999 / self.next_noise)
        rates = np.geomspace(fastest * 1e-4, fastest, _RATES)
        slack = 1.0 - rates * self.largest_step / 3.0
        with np.errstate(divide="ignore"):
            bernstein = np.where(slack > 0, rates**2 * self.sampling_variance / (2.0 * slack), math.inf)
        # the data: Hoeffding or Bernstein, whichever is smaller
        data = (
            np.minimum(rates**2 * self.squared_steps / 8.0, bernstein) if self.sampling_variance > 0.0 else 0.0 * rates
        )
        if self.next_noise == 0.0:
            return rates, data
        # the other noise, as if so many terms of the next scale
        count = self.other_noise_squared / self.next_noise / self.next_noise
        tail, reduced = self._tail_of_noise, rates * self.next_noise
        others = tail.cumulants(reduced)
        if self.cells > 1:  # log E e^(λZ)/λ² falls before it rises: at most what it is at 0, or at the next scale
            others = np.maximum(others, np.square(reduced) * (tail.variance / 2.0))
        return rates, data + count * others


@functools.lru_cache(maxsize=256)
def _quantile_of(model: ErrorModel, tail: float, *, normal: bool = False) -> float:
    """Found once for all pages, files and figures that tell the same interval."""
    return model._normal_quantile(tail) if normal else model._quantile(tail)


@functools.lru_cache(maxsize=1)
def _normal_cells() -> tuple[FloatArray, FloatArray]:
    """The right ends of cells of a standard normal variable, and its mass in each; the last cell has the whole tail."""
    ends = np.linspace(-_NORMAL_REACH, _NORMAL_REACH, _NORMAL_CELLS + 1)
    below = np.array([0.5 * math.erfc(-end * math.sqrt(0.5)) for end in ends.tolist()])
    return ends, np.diff(below, prepend=0.0)


def published_errors(planned: ErrorModel, *, people: int) -> dict[str, Any]:
    """The errors planned for so many people, as anybody may see them.

    In full they would tell, in a small campaign, what somebody bid: with all digits one equation for each person's
    privacy loss. So they are rounded up to two digits, and None where fewer than `FEWEST_PEOPLE` are behind them. The
    error at worst stands beside the other one where price and datum may be related.
    """
    enough = people == 0 or people >= FEWEST_PEOPLE

    def shown(error: float) -> float | str | None:
        return _finite_or_text(at_most(error)) if enough else None

    worst = {"planned_worst_standard_error": shown(math.sqrt(planned.worst_mse))} if planned.related else {}
    return {
        "planned_standard_error": shown(math.sqrt(planned.mse)),
        **worst,
        "planned_half_width": {"level": PUBLIC_LEVEL, "value": shown(planned.half_width(PUBLIC_LEVEL))},
    }


def _finite_or_text(value: float) -> float | str:
    """JSON knows no infinity."""
    return str(value) if math.isinf(value) else value


def published_half_width(*, planned: ErrorModel, delivered: ErrorModel, width: float, level: float) -> float:
    """A half-width that holds for what was delivered, too coarse to tell who did not deliver.

    Twice what was planned, rounded up to two digits, and doubled until it is as wide as the real one; infinite if that
    is as wide as the public range. So it is the same whoever dropped out, as long as the interval grew less than
    twofold (`docs/concepts/privacy.md` says what it tells beyond that).

    >>> def noise(total_loss: float) -> ErrorModel:
    ...     no = dict(sampling_variance=0.0, squared_steps=1.0, largest_step=1.0, next_noise=0.0)
    ...     return ErrorModel(**no, largest_noise=1.0 / total_loss, other_noise_squared=0.0, rounding=0.0)
    >>> [published_half_width(planned=noise(80), delivered=noise(rest), width=1.0, level=0.95) for rest in (80, 41, 39)]
    [0.076, 0.076, 0.152]
    """
    # planned figures only, but for how often they are doubled
    first, real = 2.0 * at_most(planned.half_width(level)), delivered.half_width(level)
    if not 0.0 < first < math.inf:
        return real if first == real == 0.0 else math.inf
    doublings = max(0, math.ceil(math.log2(real / first))) if 0.0 < real < math.inf else 0
    found = math.ldexp(first, doublings)
    while found < real:  # the logarithm was rounded down, or the real width is infinite
        found *= 2.0
    return found if found < width else math.inf
