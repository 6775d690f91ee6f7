"""Payments that make the truth a dominant strategy, for any monotone rule.

A rule gives person i the privacy loss ``ε_i(z)`` if she reports ``z`` and the others' reports stay as they are. If that
is nonincreasing in ``z``, then paying her

    t_i = β_i·(MSE − outside_i) + c_i·ε_i(c_i) + ∫ from c_i to c̄_i of ε_i(z) dz

makes the truth her best reply whatever the others report, and leaves her exactly the integral, her *information rent*,
over staying out ([F] Prop. 1, without its smoothness assumptions). This module computes the integral with a rigorous
enclosure and knows nothing of how a rule is made:

* `rent_of_rule` takes any rule, only using that it is monotone: lower and upper sums, halved where they differ most;
* `rents` takes a rule that depends on the report through a virtual cost ``x = ψ(z)`` and has a *potential*, a function
  ``v_i`` with ``dv_i = ε_i dx`` (for an optimal rule, its optimal value: the envelope theorem). Then the integral over
  every interval in ``x`` is known exactly, and what is left is how ``dz/dx`` varies across it: nothing for a uniform
  prior (closed form), a finite sum where ψ is a step function, and elsewhere a second-order enclosure. If ψ is convex
  on an interval, ``dz/dx`` falls there like ``ε``, so by Chebyshev's inequality ``∫ε dz ≥ Δv·Δz/Δx``; and among
  nonincreasing ``ε`` with the known ends and the known ``∫ε dx`` a two-step function makes ``∫ε dz`` largest. If ψ is
  concave the two change places. Kinks and jumps of ``ε`` need not be found.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hushbid.errors import MarketError
from hushbid.priors import Prior

FloatArray = NDArray[np.float64]
Rows = NDArray[np.intp]
_NODES = 4096
_PEOPLE = 512
"""How many people are worked on together, so that their intervals stay in the processor's cache."""

_PIECES = 256
_FAR = 1e100
"""Virtual costs are followed up to here; what is bought beyond is bounded by a formula."""

_EDGES = 64
"""Up to so many ends of flat parts, reports close to them are looked at closely."""

_PSI_ERROR = 2e-12
"""Virtual costs are taken to be right to this relative error when the shape of ψ is read off a table of them."""

_ROUNDING = 16.0 * np.finfo(float).eps


class Replies(Protocol):
    """Potential and loss at each of many (person, virtual cost) pairs."""

    @property
    def value(self) -> FloatArray: ...
    @property
    def loss(self) -> FloatArray: ...


class RuleWithPotential(Protocol):
    """A monotone rule in terms of the virtual cost, with its potential."""

    def at(self, rows: Rows, costs: FloatArray, /) -> Replies:
        """What happens if person ``rows[j]`` had virtual cost ``costs[j]`` (``inf``: were not there)."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rents:
    """Information rents with their enclosure."""

    lower: FloatArray
    """No rent is below this."""

    upper: FloatArray
    """No rent is above this."""

    estimate: FloatArray
    """The value used for payments: inside the enclosure, and usually much closer to the truth than its ends."""

    evaluations: int
    """How often the rule was evaluated."""

    @property
    def error(self) -> float:
        """The largest possible distance of an estimate from the truth."""
        if self.estimate.size == 0:
            return 0.0
        return float(np.maximum(self.upper - self.estimate, self.estimate - self.lower).max())


def rents(
    rule: RuleWithPotential,
    prior: Prior,
    rows: Rows,
    reports: FloatArray,
    *,
    cap: float = np.inf,
    alike: NDArray[Any] | None = None,
    paid_besides: FloatArray | None = None,
    tolerance: float = 1e-6,
) -> Rents:
    """The rents of people ``rows``, who reported ``reports`` and share ``prior``.

    ``cap`` clips the rule. ``alike`` marks people who face the same rule if their reports are equal (so that equals are
    computed once). The enclosure's half-width is at most ``tolerance`` times the largest of ``paid_besides + rent``
    wherever ψ is smooth enough for it; the result says what was reached.
    """
    if rows.size == 0:
        return Rents(lower=np.zeros(0), upper=np.zeros(0), estimate=np.zeros(0), evaluations=0)
    top = prior.support[1]
    steps = prior.flat_parts
    if steps and steps[0][0] <= prior.support[0] and _contiguous(steps, top):
        return _finite_sum(rule, steps, rows, reports, cap, alike)
    besides = np.zeros(rows.size) if paid_besides is None else paid_besides
    if cap < np.inf:
        return _capped(rule, prior, rows, reports, cap, besides, tolerance)
    if prior.is_linear:
        return _closed_form(rule, rows, prior.virtual_cost(reports), float(prior.virtual_cost(top)), prior.slope or 1.0)
    ladder = _Ladder.reaching(rule, prior, rows, reports)
    found = _Adaptive(rule, ladder, rows, reports, prior.virtual_cost(reports)).run(besides, tolerance)
    tail = _tail(rule, rows, ladder, top)
    return replace(found, upper=found.upper + tail, estimate=found.estimate + tail)


def rent_of_rule(
    loss: Callable[[FloatArray], FloatArray],
    report: float,
    top: float,
    *,
    breaks: FloatArray | None = None,
    tolerance: float = 1e-6,
    most_evaluations: int = 200_000,
) -> Rents:
    """One person's rent under any nonincreasing ``loss`` of her own report, by lower and upper sums.

    ``breaks`` are reports where the rule is known to jump. The half-width is at most ``tolerance`` times the rent, or
    what ``most_evaluations`` allow.
    """
    if not report <= top < np.inf:
        raise MarketError(f"the rule must stop buying by a finite report, got top={top} for a report at or above it.")
    inner = np.unique(np.clip(np.asarray([] if breaks is None else breaks, dtype=float), report, top))
    z = np.unique(np.concatenate([np.linspace(report, top, 65), inner, np.nextafter(inner, np.inf)]))
    z = z[z <= top]
    e = _monotone(loss(z))
    while True:
        gap = (e[:-1] - e[1:]) * np.diff(z)
        lower, upper = float((e[1:] * np.diff(z)).sum()), float((e[:-1] * np.diff(z)).sum())
        wide = gap > max(tolerance * (lower + upper), 0.0) / gap.size
        middle = 0.5 * (z[:-1] + z[1:])[wide]
        middle = middle[(middle > z[:-1][wide]) & (middle < z[1:][wide])]
        if upper - lower <= tolerance * (upper + lower) or middle.size == 0 or z.size + middle.size > most_evaluations:
            break
        z = np.concatenate([z, middle])
        order = np.argsort(z, kind="stable")
        e, z = _monotone(np.concatenate([e, loss(middle)])[order]), z[order]
    return Rents(
        lower=np.array([lower]),
        upper=np.array([upper]),
        estimate=np.array([0.5 * (lower + upper)]),
        evaluations=int(z.size),
    )


def _monotone(loss: FloatArray) -> FloatArray:
    if (np.diff(loss) > 1e-9 * (1.0 + np.abs(loss[:-1]))).any():
        raise MarketError(
            "the rule is not monotone: raising a report raises the privacy loss, so no payment is truthful."
        )
    return np.minimum.accumulate(loss)


def _closed_form(rule: RuleWithPotential, rows: Rows, costs: FloatArray, top: float, slope: float) -> Rents:
    """ψ affine: the integral is a difference of two optimal values over the slope."""
    now, last = rule.at(rows, costs).value, rule.at(rows, np.full(rows.size, top)).value
    estimate = np.maximum(last - now, 0.0) / slope
    slack = _ROUNDING * np.abs(last) / slope
    return Rents(lower=estimate - slack, upper=estimate + slack, estimate=estimate, evaluations=2 * rows.size)


def _capped(
    rule: RuleWithPotential,
    prior: Prior,
    rows: Rows,
    reports: FloatArray,
    cap: float,
    besides: FloatArray,
    tolerance: float,
) -> Rents:
    """The cap up to the report where the loss falls below it, found to the last digits; from there as without a cap."""
    below, above, evaluations = _crossing(rule, prior, rows, reports, cap)
    rest = rents(rule, prior, rows, above, paid_besides=besides + cap * (below - reports), tolerance=tolerance)
    least, most = cap * (below - reports), cap * (above - reports)
    slack = _ROUNDING * most
    return Rents(
        lower=rest.lower + least - slack,
        upper=rest.upper + most + slack,
        estimate=rest.estimate + 0.5 * (least + most),
        evaluations=evaluations + rest.evaluations,
    )


def _crossing(
    rule: RuleWithPotential, prior: Prior, rows: Rows, reports: FloatArray, cap: float
) -> tuple[FloatArray, FloatArray, int]:
    """For each person two neighbouring reports: at the lower her loss is at least ``cap`` (or it is her own report),
    at the higher it is not (or it is the top of the support)."""
    top, evaluations = prior.support[1], 0

    def clipped(who: Rows, z: FloatArray) -> NDArray[np.bool_]:
        nonlocal evaluations
        evaluations += who.size
        return rule.at(rows[who], np.asarray(prior.virtual_cost(z))).loss >= cap

    low, high = reports.copy(), reports.copy()
    todo = np.flatnonzero(clipped(np.arange(rows.size), reports))
    reach = np.maximum(reports[todo], 1e-3)
    while todo.size:  # a report that is not clipped any more
        high[todo] = np.minimum(reports[todo] + reach, top)
        still = clipped(todo, high[todo])
        low[todo[still]] = high[todo[still]]
        going = still & (high[todo] < top)
        todo, reach = todo[going], 2.0 * reach[going]
    todo = np.flatnonzero(low < high)
    while todo.size:  # cut into so many parts that a call is worth its while
        parts = max(2, min(32, 4096 // todo.size))
        left, width = low[todo, None], (high - low)[todo, None]
        inner = left + width * (np.arange(1, parts) / parts)[None, :]
        still = clipped(np.repeat(todo, parts - 1), inner.ravel()).reshape(inner.shape)
        count = still.cumprod(axis=1).sum(axis=1)
        edges = np.concatenate([left, inner, high[todo, None]], axis=1)
        here = np.arange(todo.size)
        before = high[todo] - low[todo]
        low[todo], high[todo] = edges[here, count], edges[here, count + 1]
        todo = todo[high[todo] - low[todo] < 0.9 * before]
    return low, high, evaluations


def _contiguous(steps: tuple[tuple[float, float, float], ...], top: float) -> bool:
    ends = np.array([(left, right) for left, right, _ in steps])
    return bool(ends[-1, 1] >= top and np.all(ends[1:, 0] <= ends[:-1, 1]))


def _finite_sum(
    rule: RuleWithPotential,
    steps: tuple[tuple[float, float, float], ...],
    rows: Rows,
    reports: FloatArray,
    cap: float,
    alike: NDArray[Any] | None,
) -> Rents:
    """ψ a step function: the rest of one's own step, and every later step until nothing is bought any more."""
    ends, levels = np.array([right for _, right, _ in steps]), np.array([level for _, _, level in steps])
    own = np.minimum(ends.searchsorted(reports, side="left"), ends.size - 1)
    widths = np.diff(ends)
    kind = np.zeros(rows.size) if alike is None else np.unique(alike, return_inverse=True)[1].astype(float)
    groups, which = np.unique(np.stack([own.astype(float), kind]), axis=1, return_inverse=True)
    which = which.reshape(-1)
    one = np.zeros(groups.shape[1], dtype=np.intp)
    one[which] = np.arange(rows.size)
    here = np.minimum(rule.at(rows[one], levels[own[one]]).loss, cap)
    later, evaluations = np.zeros(one.size), one.size
    level = own[one] + 1
    alive = np.flatnonzero((level < ends.size) & (here > 0.0))
    while alive.size:
        block = max(1, min(64, (1 << 16) // alive.size))
        ahead = level[alive, None] + np.arange(block)[None, :]
        inside = ahead < ends.size
        at = np.minimum(ahead, ends.size - 1)
        loss = rule.at(np.repeat(rows[one[alive]], block), levels[at].ravel()).loss.reshape(at.shape)
        loss = np.where(inside, np.minimum(loss, cap), 0.0)
        later[alive] += (loss * widths[at - 1]).sum(axis=1)
        evaluations += loss.size
        level[alive] += block
        alive = alive[(loss[:, -1] > 0.0) & (level[alive] < ends.size)]
    rest = np.maximum(ends[own] - reports, 0.0)
    own_part = np.where(rest > 0.0, rest * np.where(rest > 0.0, here[which], 0.0), 0.0)
    estimate = own_part + later[which]
    slack = _ROUNDING * estimate
    return Rents(lower=estimate - slack, upper=estimate + slack, estimate=estimate, evaluations=evaluations)


@dataclass(frozen=True, slots=True, eq=False)
class _Ladder:
    """A shared table of ψ, fine enough to bound its inverse between nodes."""

    z: FloatArray
    x: FloatArray
    not_convex: NDArray[np.int64]
    """How many interior nodes up to each show ψ not convex there."""

    not_concave: NDArray[np.int64]
    slope: FloatArray
    """``Δz/Δx`` of each cell; 0 where ψ is constant."""

    @classmethod
    def reaching(cls, rule: RuleWithPotential, prior: Prior, rows: Rows, reports: FloatArray) -> "_Ladder":
        """From the smallest report to where nothing is bought from any of the people any more."""
        low, high = float(reports.min()), _end_of_buying(rule, prior, rows, reports)
        z = np.linspace(low, high, _NODES + 1)
        if high - low > 1e3 * max(low, 1e-12 * high):
            z = np.concatenate([z, low + np.geomspace(1e-9, 1.0, _NODES) * (high - low)])
        least = max(float(prior.virtual_cost(low)), 1e-9 * float(prior.virtual_cost(prior.quantile(0.5))))
        most = float(prior.virtual_cost(high))
        if most > 1e20 * least:  # one person who sells at every report: even steps in the logarithm of the cost
            even = np.geomspace([least, 1e8 * least], [1e8 * least, most], 4 * _NODES)
            z = np.concatenate([z, np.asarray(prior.virtual_cost_inverse(even.ravel()))])
        edges = np.array([end for part in prior.flat_parts for end in part[:2] if low < end < high])
        close = (high - low) * 2.0 ** -np.arange(2.0, 46.0 if edges.size < _EDGES else 2.0)
        around = (edges[:, None] + np.concatenate([-close, [0.0], close])[None, :]).ravel()
        z = np.concatenate([z, around])
        z = np.unique(np.append(z[(z > low) & (z < high)], [low, high]))
        x = np.maximum.accumulate(prior.virtual_cost(z))
        for _ in range(40):  # where ψ jumps, close in on the jump
            steep = np.flatnonzero(
                (np.diff(x) > (x[-1] - x[0]) / 512.0) & (np.diff(z) > 1e-13 * (abs(high) + abs(low)))
            )
            if steep.size == 0 or z.size > 8 * _NODES:
                break
            middle = 0.5 * (z[steep] + z[steep + 1])
            order = np.argsort(np.concatenate([z, middle]), kind="stable")
            z = np.concatenate([z, middle])[order]
            x = np.maximum.accumulate(np.concatenate([x, prior.virtual_cost(middle)])[order])
        return cls._of(z, x)

    @classmethod
    def _of(cls, z: FloatArray, x: FloatArray) -> "_Ladder":
        dx, dz = np.diff(x), np.diff(z)
        slope = np.divide(dz, dx, out=np.zeros_like(dz), where=dx > 0.0)
        noise = 1.0 + _PSI_ERROR * np.divide(x[1:], dx, out=np.zeros_like(dx), where=dx > 0.0)
        flat = dx <= 0.0
        rises = np.ones(z.size, dtype=bool)
        falls = np.ones(z.size, dtype=bool)
        band = noise[1:] * noise[:-1]
        rises[1:-1] = (slope[1:] > slope[:-1] * band) | flat[1:] | flat[:-1]
        falls[1:-1] = (slope[1:] * band < slope[:-1]) | flat[1:] | flat[:-1]
        rises[0] = falls[0] = rises[-1] = falls[-1] = False
        return cls(z, x, np.cumsum(rises), np.cumsum(falls), slope)

    def shape(self, first: Rows, last: Rows) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Whether ψ is convex, and concave, from node ``first`` to node ``last``, one cell to either side included."""
        left = np.maximum(first - 1, 0)
        right = np.minimum(last, self.z.size - 1)
        convex = self.not_convex[right] == np.where(first > 0, self.not_convex[left], 0)
        concave = self.not_concave[right] == np.where(first > 0, self.not_concave[left], 0)
        return convex, concave

    def inverse(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """For each ``x``: ``z`` on the chord of its cell, and on the nearer of the neighbouring chords, extended.

        Where ψ is convex (z concave in x) the first is below the truth and the second, the smaller extension, above.
        """
        cell = np.clip(self.x.searchsorted(x, side="right") - 1, 0, self.z.size - 2)
        chord = self.z[cell] + self.slope[cell] * (x - self.x[cell])
        before, after = np.maximum(cell - 1, 0), np.minimum(cell + 1, self.z.size - 2)
        from_left = self.z[cell] + self.slope[before] * (x - self.x[cell])
        from_right = self.z[cell + 1] - self.slope[after] * (self.x[cell + 1] - x)
        nearer = np.abs(from_left - chord) <= np.abs(from_right - chord)
        return chord, np.where((nearer & (cell > 0)) | (cell == after), from_left, from_right)


def _end_of_buying(rule: RuleWithPotential, prior: Prior, rows: Rows, reports: FloatArray) -> float:
    """A report, not much too high, at which nothing is bought from anybody; at most the top of the support.

    The only seller is bought from at every report: then it is where her virtual cost is beyond all measure.
    """
    top, highest = prior.support[1], float(reports.max())

    def bought(who: Rows, z: FloatArray) -> NDArray[np.bool_]:
        """Whether anything is bought from any of these people at each of these reports, the same for all."""
        costs = np.asarray(prior.virtual_cost(z))
        sold = np.zeros(z.size, dtype=bool)
        near = np.flatnonzero(costs <= _FAR)
        loss = rule.at(np.tile(rows[who], near.size), np.repeat(costs[near], who.size)).loss
        sold[near] = (loss.reshape(near.size, who.size) > 0.0).any(axis=1)
        return sold

    few = np.union1d(np.linspace(0, rows.size - 1, 16).astype(np.intp), [reports.argmin(), reports.argmax()])
    reach = max(1e-3 * (highest - float(reports.min())), 1e-6 * highest, 1e-9 * float(prior.quantile(0.5)))
    low, end, sold = highest, highest, 1
    while sold and end < top:  # by powers of two, several at a time
        z = np.minimum(highest + reach * 2.0 ** np.arange(8.0), top)
        sold = int(np.argmin(np.append(bought(few, z), False)))
        low, end = (z[sold - 1] if sold else low), z[min(sold, 7)]
        reach, sold = 2.0**8 * reach, sold == 8
    z = np.linspace(low, end, 9)[1:]  # then evenly between two of them
    end = float(z[min(int(np.argmin(np.append(bought(few, z), False))), 7)])
    while end < top and bought(np.arange(rows.size), np.array([end]))[0]:
        end = min(highest + 2.0 * (end - highest), top)
    if prior.virtual_cost(end) > _FAR:
        nearby = np.maximum(end - (end - highest) * 2.0 ** -np.arange(50.0, -1.0, -1.0), highest)
        end = float(nearby[np.argmax(np.asarray(prior.virtual_cost(nearby)) <= _FAR)])
    return end


def _tail(rule: RuleWithPotential, rows: Rows, ladder: "_Ladder", top: float) -> FloatArray:
    """At most how much is left beyond the ladder: something only for the one person who sells.

    Her loss goes with ``ψ^{-1/3}``, and ψ grows at least like the power of z that it grew with last.
    """
    end = float(ladder.z[-1])
    if end >= top:
        return np.zeros(rows.size)
    loss = rule.at(rows, np.full(rows.size, ladder.x[-1])).loss
    before = int(ladder.z.searchsorted(0.5 * end))
    length = top - end
    if (loss > 0.0).any() and length == np.inf:
        growth = np.log(ladder.x[-1] / ladder.x[before]) / np.log(end / ladder.z[before])
        length = end / max(growth / 3.0 - 1.0, 1e-300)
    return np.where(loss > 0.0, loss, 0.0) * min(length, np.finfo(float).max)


@dataclass(slots=True, eq=False)
class _Parts:
    """Intervals of reports, one entry each: whose, between which nodes, and what the rule does at both ends."""

    who: Rows
    first: Rows
    last: Rows
    z0: FloatArray
    z1: FloatArray
    x0: FloatArray
    x1: FloatArray
    e0: FloatArray
    e1: FloatArray
    v0: FloatArray
    v1: FloatArray

    def take(self, which: Any) -> "_Parts":
        return _Parts(*(getattr(self, name)[which] for name in self.__slots__))

    def joined(self, other: "_Parts") -> "_Parts":
        return _Parts(*(np.concatenate([getattr(self, name), getattr(other, name)]) for name in self.__slots__))


class _Adaptive:
    """Split intervals, most where their enclosures are widest, until everybody's is narrow enough."""

    def __init__(
        self,
        rule: RuleWithPotential,
        ladder: _Ladder,
        rows: Rows,
        reports: FloatArray,
        costs: FloatArray,
    ) -> None:
        self.rule, self.ladder, self.rows, self.reports, self.costs = rule, ladder, rows, reports, costs
        self.evaluations = 0

    def run(self, besides: FloatArray, tolerance: float) -> Rents:
        size = self.rows.size
        sums = np.zeros((3, size))  # lower bounds, upper bounds, estimates
        start = self._start()
        largest = self._largest(start, besides)
        order = np.argsort(start.who, kind="stable")
        ends = start.who[order].searchsorted(np.arange(0, size + _PEOPLE, _PEOPLE))
        for first, begin, end in zip(range(0, size, _PEOPLE), ends[:-1], ends[1:], strict=True):
            self._settle(
                start.take(order[begin:end]), 1.5 * tolerance * largest, sums[:, first : first + _PEOPLE], first
            )
        return Rents(lower=sums[0], upper=sums[1], estimate=sums[2], evaluations=self.evaluations)

    def _largest(self, start: _Parts, besides: FloatArray) -> float:
        """A lower bound, within a few percent, on what the person who seems to be paid most is paid."""
        guess = besides + np.bincount(start.who, self._enclose(start)[2], besides.size)
        who = int(guess.argmax())
        goal = float(guess[who])
        for _ in range(40):
            sums = np.zeros((3, 1))
            self._settle(start.take(start.who == who), 0.02 * goal, sums, who)
            least, most = (float(besides[who] + bound) for bound in sums[:2, 0])
            if most <= 1.5 * least:
                break
            goal = min(0.1 * goal, most)
        return least

    def _settle(self, parts: _Parts, allowed: float, sums: FloatArray, first: int) -> None:
        """Add up the enclosures of the people from ``first`` on, splitting until each one's gap is allowed."""
        size = sums.shape[1]
        for round_ in range(40):
            who = parts.who - first
            bounds = self._enclose(parts)
            gap = bounds[1] - bounds[0]
            total = np.bincount(who, gap, size)
            # Splitting in m divides a gap by m²; for the fewest pieces in all, m goes with its cube root.
            share = np.cbrt(np.minimum(gap, 1e300))
            factor = np.sqrt(np.bincount(who, share, size) * (1.04 / max(allowed, 1e-300)))
            pieces = np.ceil(share * np.where(total <= allowed, 0.0, factor)[who])
            pieces = np.minimum(np.minimum(pieces, parts.last - parts.first), _PIECES)
            again = (pieces > 1) if round_ < 39 else np.zeros(pieces.size, dtype=bool)
            done = slice(None) if not again.any() else ~again
            for row, bound in zip(sums, bounds, strict=True):
                row += np.bincount(who[done], bound[done], size)
            if not again.any():
                return
            parts = self._split(parts.take(again), pieces[again].astype(np.intp))

    def _at(self, who: Rows, costs: FloatArray) -> tuple[FloatArray, FloatArray]:
        self.evaluations += who.size
        found = self.rule.at(self.rows[who], costs)
        return found.loss, found.value

    def _start(self) -> _Parts:
        """From one's own report to the next node, and from there to the last."""
        ladder = self.ladder
        who = np.arange(self.rows.size)
        node = np.minimum(ladder.z.searchsorted(self.reports, side="left"), ladder.z.size - 1)
        end = np.full(who.size, ladder.z.size - 1)
        x = np.maximum(ladder.x[node], self.costs)
        (e0, v0), (e1, v1), (e2, v2) = (self._at(who, costs) for costs in (self.costs, x, ladder.x[end]))
        own, z = np.maximum(node - 1, 0), ladder.z[node]
        near = _Parts(who, own, node, self.reports, z, self.costs, x, e0, e1, v0, v1)
        return near.joined(_Parts(who, node, end, z, ladder.z[end], x, ladder.x[end], e1, e2, v1, v2))

    def _split(self, parts: _Parts, pieces: Rows) -> _Parts:
        """Each interval cut at evenly spaced nodes into so many pieces."""
        inner = pieces - 1
        which = np.repeat(np.arange(pieces.size), inner)
        number = np.arange(which.size) - np.repeat(np.cumsum(inner) - inner, inner) + 1
        node = parts.first[which] + (parts.last - parts.first)[which] * number // pieces[which]
        x = self.ladder.x[node]
        loss, value = self._at(parts.who[which], x)
        places = np.arange(which.size) + 2 * which + 1
        starts = np.cumsum(inner + 2) - inner - 2
        ends = starts + inner + 1

        def strung(first: NDArray[Any], middle: NDArray[Any], last: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
            """Start, inner points and end of every interval in a row; then the left and right end of every piece."""
            string = np.empty(which.size + 2 * pieces.size, dtype=middle.dtype)
            string[starts], string[places], string[ends] = first, middle, last
            return np.delete(string, ends), np.delete(string, starts)

        nodes = strung(parts.first, node, parts.last)
        ends_of = [
            strung(first, middle, last)
            for first, middle, last in (
                (parts.z0, self.ladder.z[node], parts.z1),
                (parts.x0, x, parts.x1),
                (parts.e0, loss, parts.e1),
                (parts.v0, value, parts.v1),
            )
        ]
        return _Parts(np.repeat(parts.who, pieces), *nodes, *(end for pair in ends_of for end in pair))

    def _enclose(self, part: _Parts) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Lower bound, upper bound and estimate of ``∫ε dz`` over each interval."""
        dz, dx = part.z1 - part.z0, part.x1 - part.x0
        some = dz > 0.0
        low, high = np.where(some, part.e1, 0.0) * dz, np.where(some, part.e0, 0.0) * dz
        best = 0.5 * (low + np.minimum(high, 1e300))
        convex, concave = self.ladder.shape(part.first, part.last)
        usable = (convex | concave) & (part.e0 > part.e1) & (dx > 0.0)
        if not usable.any():
            return low, high, best
        k: slice | NDArray[np.bool_] = slice(None) if usable.all() else usable
        area, drop = np.maximum(part.v1[k] - part.v0[k], 0.0), part.e0[k] - part.e1[k]
        chebyshev = area * dz[k] / dx[k]
        with np.errstate(invalid="ignore"):
            turn = np.clip(part.x0[k] + (area - part.e1[k] * dx[k]) / drop, part.x0[k], part.x1[k])
        chord, beyond = self.ladder.inverse(turn)
        bend = np.where(convex[k], np.maximum(chord, beyond), np.minimum(chord, beyond))
        bend = np.clip(bend, part.z0[k], part.z1[k])
        with np.errstate(invalid="ignore"):
            step = part.e0[k] * (bend - part.z0[k]) + part.e1[k] * (part.z1[k] - bend)
        endless = np.isinf(part.e0[k])
        # From an infinite loss the potential still bounds the integral: dz/dx is at most its value at the start.
        steepest = self.ladder.slope[np.minimum(part.first[k], self.ladder.slope.size - 1)]
        step = np.where(endless, area * np.maximum(steepest, dz[k] / dx[k]), step)
        slack = (_ROUNDING * np.abs(part.v1[k]) + _PSI_ERROR * area * part.x1[k] / dx[k]) * dz[k] / dx[k]
        bounds = np.where(convex[k], chebyshev, step), np.where(convex[k], step, chebyshev)
        lowest = np.maximum(np.minimum(*bounds) - slack, low[k])
        highest = np.minimum(np.maximum(*bounds) + slack, high[k])
        # For linear ε and dz/dx the truth lies two thirds of the way from Chebyshev's bound to the other.
        best[k] = np.clip(chebyshev + (2.0 / 3.0) * (step - chebyshev), lowest, np.maximum(highest, lowest))
        low[k], high[k] = lowest, np.maximum(highest, lowest)
        return low, high, best
