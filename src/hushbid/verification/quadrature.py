"""Information rents by quadrature: ``∫ from c to c̄ of min(ε(ψ(z)), cap) dz``, from the rule alone.

The payments module integrates against the optimal value, in closed form where it can. Here the privacy loss itself is
integrated over bids: a finite sum where ψ is a step function, and otherwise adaptive Gauss quadrature, from a
person's bid to where nothing is bought from her any more. The rule has kinks (somebody else enters or leaves) and
jumps: an interval is cut, at its largest jump if it has one and else in quarters, until the sum over the parts agrees
with the sum over the whole, and the values at its ends with those inside. The variable is the cube root of the distance
from the bid, because a loss that starts at infinity falls like the inverse cube root of the cost. Beyond the prior's
median the range is first cut geometrically: from somebody who is alone something is bought at any price, however far in
the tail of the prior.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hushbid.common.arrays import BoolArray, FloatArray, IndexArray
from hushbid.priors import Prior

_INNER, _WEIGHTS = (np.asarray(part, dtype=np.float64) for part in np.polynomial.legendre.leggauss(8))
_NODES = np.array([-1.0, *_INNER, 1.0])
_TO_RIGHT_END = np.array([np.prod([(1.0 - b) / (a - b) for b in _INNER if a != b]) for a in _INNER])
"""Carries a polynomial's values at the inner nodes to 1; mirrored, to −1."""

_BEYOND = 0.5 * (1.0 - _INNER[-1])
"""The share of an interval that lies beyond the outermost inner node at either end."""

_ROUNDS = 40
_ROUNDS_TO_JUMP = 16
_PIECES = 4
_SECTIONS = 16
_ACCURACY = 1e-8
_MOST_INTERVALS = 200_000
_GROWTH = 16.0
_DOUBLINGS = 4
MOST_WORK = 20e6
"""What all rules of one verification may do, in millionths of a second on an ordinary computer, about. It is counted
and not measured: a verdict does not depend on the computer."""

WORK_PER_PERSON = 500.0
"""What they may do more for each person in the record."""

_ORDINARY = 60.0
"""What one evaluation of a rule comes to that says nothing else."""

_AT_ONCE = 4096
_AT_ONCE_COUNTED = 256
_SMALL = 1e-12
"""A first step away from a bid of 0, relative to the top of the support."""


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """The optimum for each of many (person, cost) pairs; range of width 1."""

    loss: FloatArray
    """The person's privacy loss."""

    mse: FloatArray
    """The error of the estimate; infinite if nobody is there."""

    value: FloatArray
    """The objective."""


class Rule(Protocol):
    """The optimum as a function of one person's cost."""

    def at(self, rows: IndexArray, costs: FloatArray) -> Answers: ...

    def everybody(self, row: int, cost: float) -> tuple[FloatArray, float, float]: ...


class WorkExceeded(ArithmeticError):
    """A verification took more evaluations of its rules than it may, whatever the record says."""


@dataclass(slots=True)
class Work:
    """How much all rules of one verification have done, in the unit of `MOST_WORK`."""

    people: int = 0
    """How many people the record has."""

    done: float = 0.0

    def add(self, amount: float) -> None:
        """Count work; too much of it ends a verification."""
        self.done += amount
        if self.done > MOST_WORK + WORK_PER_PERSON * self.people:
            raise WorkExceeded("the most that a verification may compute is exceeded.")


class BoundedRule:
    """A rule whose evaluations are counted: each at the rule's ``price``, or as the rule itself has ``worked``."""

    def __init__(self, rule: Rule, work: Work) -> None:
        self._rule, self._work = rule, work
        self.effort = float(getattr(rule, "effort", 1.0))
        self._counts = hasattr(rule, "worked")
        self._price = 0.0 if self._counts else float(getattr(rule, "price", _ORDINARY))
        self._at_once = _AT_ONCE_COUNTED if self._counts else _AT_ONCE

    def at(self, rows: IndexArray, costs: FloatArray) -> Answers:
        """The purchase if person ``rows[j]`` had cost ``costs[j]``, for every j."""
        parts = []
        for start in range(0, max(rows.size, 1), self._at_once):
            part = slice(start, start + self._at_once)
            self._work.add(rows[part].size * self._price)
            before = self._worked()
            parts.append(self._rule.at(rows[part], costs[part]))
            self._work.add(self._worked() - before)
        if len(parts) == 1:
            return parts[0]
        return Answers(*(np.concatenate([getattr(one, name) for one in parts]) for name in Answers.__slots__))

    def _worked(self) -> float:
        """What the rule has done so far, where it counts that itself."""
        return float(self._rule.worked) if self._counts else 0.0  # type: ignore[attr-defined]

    def everybody(self, row: int, cost: float) -> tuple[FloatArray, float, float]:
        """Everybody's privacy loss, the error and the value if person ``row`` had that cost."""
        self._work.add(max(self._price, _ORDINARY))
        return self._rule.everybody(row, cost)


@dataclass(frozen=True, slots=True, eq=False)
class Integrals:
    """Rents, and how far each may be off by the quadrature's own estimate."""

    rent: FloatArray
    error: FloatArray


def integrate(rule: Rule, prior: Prior, rows: IndexArray, bids: FloatArray, *, floor: float) -> Integrals:
    """The rents of people ``rows``, bought from at ``bids``, who share ``prior``; an error of ``floor`` is fine."""
    if rows.size == 0:
        return Integrals(np.zeros(0), np.zeros(0))
    steps = prior.flat_parts
    top = prior.support[1]
    if is_step_function(prior):
        ends = np.array([right for _, right, _ in steps])
        return _sum_of_steps(rule, ends, np.array([level for *_, level in steps]), rows, bids)

    def loss(who: IndexArray, z: FloatArray) -> FloatArray:
        return rule.at(rows[who], np.asarray(prior.virtual_cost(z))).loss

    # up to where nothing is bought
    last = _last_bid(lambda who, z: loss(who, z) > 0.0, bids, top)
    breaks = np.unique([*(end for part in steps for end in part[:2]), *_powers(prior, float(last.max()))])
    return _Quadrature(loss, bids.copy(), last, breaks, floor).run()


def _powers(prior: Prior, end: float) -> FloatArray:
    """The median times 16, 256, … up to ``end``."""
    median = float(prior.quantile(0.5))
    count = int(math.log(end / median, _GROWTH)) if 0.0 < median < end else 0
    return median * _GROWTH ** np.arange(1.0, count + 1.0)


def is_step_function(prior: Prior) -> bool:
    """Whether the virtual cost is constant in steps over the whole support."""
    steps, (low, top) = prior.flat_parts, prior.support
    contiguous = all(right == left for (_, right, _), (left, _, _) in pairwise(steps))
    return bool(steps) and steps[0][0] <= low and steps[-1][1] >= top and contiguous


def _sum_of_steps(rule: Rule, ends: FloatArray, levels: FloatArray, rows: IndexArray, bids: FloatArray) -> Integrals:
    """ψ a step function: each step's loss times its length, up to the first at which nothing is bought."""
    own = np.minimum(ends.searchsorted(bids, side="left"), ends.size - 1)
    rent = np.zeros(rows.size)
    step, who = own.copy(), np.arange(rows.size)
    while who.size:
        at = step[who]
        loss = rule.at(rows[who], levels[at]).loss
        start = np.where(at == own[who], bids[who], ends[np.maximum(at - 1, 0)])
        length = np.maximum(ends[at] - start, 0.0)
        rent[who] += np.where(length > 0.0, loss, 0.0) * length
        step[who] += 1
        who = who[(loss > 0.0) & (step[who] < ends.size)]
    return Integrals(rent, 1e-12 * rent)


def _last_bid(holds: Callable[[IndexArray, FloatArray], BoolArray], bids: FloatArray, top: float) -> FloatArray:
    """The bid up to which something holds that holds at first: doubling, then cutting up."""
    if bids.size == 0:
        return bids.copy()
    who = np.arange(bids.size)
    low, high = bids.copy(), np.full(bids.size, math.inf)
    scale = max(float(bids.max()), min(top, 1.0) * _SMALL)
    reach = np.maximum(1e-3 * bids, 1e-9 * scale)
    unsolved = who
    # doubling, several times in one call: enough to cross the whole range of doubles
    ahead_by = 2.0 ** np.arange(_DOUBLINGS)
    for _ in range(2200 // _DOUBLINGS):
        ahead = np.minimum(bids[unsolved, None] + reach[unsolved, None] * ahead_by, top)
        bought = holds(np.repeat(unsolved, _DOUBLINGS), ahead.ravel()).reshape(ahead.shape)
        here, count = np.arange(unsolved.size), bought.cumprod(axis=1).sum(axis=1)
        some, ended = count > 0, count < _DOUBLINGS
        low[unsolved[some]] = ahead[here[some], count[some] - 1]
        high[unsolved[ended]] = ahead[here[ended], count[ended]]
        unsolved = unsolved[~ended & (ahead[:, -1] < top)]
        reach[unsolved] *= 2.0**_DOUBLINGS
        if unsolved.size == 0:
            break
    # then sixteen sections at a time, down to neighbours
    unsolved = who[high < math.inf]
    inner = np.arange(1, _SECTIONS) / _SECTIONS
    for _ in range(20):
        unsolved = unsolved[high[unsolved] - low[unsolved] > 1e-15 * high[unsolved]]
        if unsolved.size == 0:
            break
        points = low[unsolved, None] + (high - low)[unsolved, None] * inner[None, :]
        bought = holds(np.repeat(unsolved, inner.size), points.ravel()).reshape(points.shape)
        ends = np.concatenate([low[unsolved, None], points, high[unsolved, None]], axis=1)
        count, here = bought.sum(axis=1), np.arange(unsolved.size)
        low[unsolved], high[unsolved] = ends[here, count], ends[here, count + 1]
    return low


@dataclass(slots=True, eq=False)
class _Parts:
    """Intervals, one entry each: whose, where, in which stretch, and their Gauss sums."""

    who: IndexArray
    left: FloatArray
    right: FloatArray
    start: FloatArray
    length: FloatArray
    area: FloatArray
    edges: FloatArray
    """What may have been missed beyond the outermost nodes."""

    first: FloatArray
    """The loss at the left end."""

    last: FloatArray
    """The loss at the right end."""

    steepest: FloatArray
    """The largest drop between neighbouring nodes."""

    def take(self, which: NDArray[Any]) -> "_Parts":
        return _Parts(*(getattr(self, name)[which] for name in self.__slots__))


class _Quadrature:
    """Halve intervals until halves and whole agree."""

    def __init__(
        self,
        loss: Callable[[IndexArray, FloatArray], FloatArray],
        first: FloatArray,
        last: FloatArray,
        breaks: FloatArray,
        floor: float,
    ) -> None:
        self._loss, self._first, self._last, self._breaks, self._floor = loss, first, last, breaks, floor

    def run(self) -> Integrals:
        size = self._first.size
        parts = self._stretches()
        rent, error = np.zeros(size), np.zeros(size)
        rough = np.bincount(parts.who, parts.area, size)
        for round_ in range(_ROUNDS):
            pieces = self._quarters(parts)
            # what the quarters say, and how far that is from what the whole said
            better = pieces.area.reshape(-1, _PIECES).sum(axis=1)
            doubt = np.abs(better - parts.area) + pieces.edges.reshape(-1, _PIECES).sum(axis=1)
            crowd = np.bincount(parts.who, minlength=size)
            # everybody's allowance, shared among her intervals
            allowed = (_ACCURACY * rough + self._floor) / np.maximum(crowd, 4)
            done = ~(doubt > allowed[parts.who])  # what is no number will not become one
            if round_ == _ROUNDS - 1 or parts.who.size > _MOST_INTERVALS:
                done[:] = True
            rent += np.bincount(parts.who[done], better[done], size)
            error += np.bincount(parts.who[done], doubt[done], size)
            if done.all():
                break
            # half of the fall between two nodes: perhaps a jump, cut there instead
            steep = np.flatnonzero(~done & (parts.steepest > 0.5 * (parts.first - parts.last)))
            jump, sides, missed = self._beside_jumps(parts.take(steep))
            error += missed
            done[steep[jump]] = True
            rest = pieces.take(np.repeat(~done, _PIECES))
            parts = _Parts(*(np.concatenate([getattr(x, name) for x in (sides, rest)]) for name in _Parts.__slots__))
        return Integrals(rent, error)

    def _beside_jumps(self, parts: _Parts) -> tuple[BoolArray, _Parts, FloatArray]:
        """In which intervals there is a jump, what lies to either side of it, and how much is lost in between."""
        left, right, high, low = parts.left, parts.right, parts.first, parts.last
        inner = np.linspace(0.0, 1.0, _PIECES + 1)[None, 1:-1]
        here = np.arange(parts.who.size)
        for _ in range(_ROUNDS_TO_JUMP):
            s = left[:, None] + (right - left)[:, None] * inner
            found = self._at(parts, s)
            places = np.concatenate([left[:, None], s, right[:, None]], axis=1)
            losses = np.concatenate([high[:, None], found, low[:, None]], axis=1)
            # close in on the quarter with the largest drop
            steepest = np.argmax(losses[:, :-1] - losses[:, 1:], axis=1)
            left, right = places[here, steepest], places[here, steepest + 1]
            high, low = losses[here, steepest], losses[here, steepest + 1]
        # still a fifth of the fall over almost nothing: a jump
        jump = (high - low) > 0.2 * (parts.first - parts.last)
        # at most the drop times the length in bids, dz = 3·length·s²·ds
        missed = (high - low) * 3.0 * parts.length * right * right * (right - left)
        some = parts.take(jump)
        sides = self._measured(
            np.tile(some.who, 2),
            np.concatenate([some.left, right[jump]]),
            np.concatenate([left[jump], some.right]),
            np.tile(some.start, 2),
            np.tile(some.length, 2),
        )
        lost = np.zeros(self._first.size)
        np.add.at(lost, some.who, missed[jump])
        return jump, sides, lost

    def _at(self, parts: _Parts, s: FloatArray) -> FloatArray:
        z = parts.start[:, None] + parts.length[:, None] * s**3
        return self._loss(np.repeat(parts.who, s.shape[1]), z.ravel()).reshape(s.shape)

    def _quarters(self, parts: _Parts) -> _Parts:
        cuts = parts.left[:, None] + (parts.right - parts.left)[:, None] * np.linspace(0.0, 1.0, _PIECES + 1)[None, :]
        cuts[:, -1] = parts.right
        start, length = np.repeat(parts.start, _PIECES), np.repeat(parts.length, _PIECES)
        return self._measured(np.repeat(parts.who, _PIECES), cuts[:, :-1].ravel(), cuts[:, 1:].ravel(), start, length)

    def _stretches(self) -> _Parts:
        """From the bid to the end of buying, cut where the virtual cost is known to turn flat or to jump."""
        who, starts, ends = [], [], []
        for j, (first, last) in enumerate(zip(self._first.tolist(), self._last.tolist(), strict=True)):
            inner = self._breaks[(self._breaks > first) & (self._breaks < last)].tolist()
            points = [first, *inner, last]
            who += [j] * (len(points) - 1)
            starts += points[:-1]
            ends += points[1:]
        start, length = np.array(starts), np.array(ends) - np.array(starts)
        zero, one = np.zeros(start.size), np.ones(start.size)
        return self._measured(np.array(who, dtype=np.intp), zero, one, start, length)

    def _measured(
        self, who: IndexArray, left: FloatArray, right: FloatArray, start: FloatArray, length: FloatArray
    ) -> _Parts:
        """Gauss sums over intervals of the cube root of the distance from the start of the stretch."""
        half = 0.5 * (right - left)
        s = left[:, None] + half[:, None] * (1.0 + _NODES[None, :])
        z = start[:, None] + length[:, None] * s**3
        found = self._loss(np.repeat(who, _NODES.size), z.ravel()).reshape(z.shape)
        counts = (s > 0.0) & (length > 0.0)[:, None]  # a loss may be infinite at the bid, where nothing is added up
        value = np.where(counts, found, 0.0) * (3.0 * s * s) * (half * length)[:, None]
        inner = value[:, 1:-1]
        # the values at the ends against the polynomial carried there: what may lie beyond the inner nodes
        edges = np.abs(value[:, -1] - inner @ _TO_RIGHT_END) + np.abs(value[:, 0] - inner @ _TO_RIGHT_END[::-1])
        ends, drop = (found[:, 0], found[:, -1]), (found[:, :-1] - found[:, 1:]).max(axis=1)
        return _Parts(who, left, right, start, length, inner @ _WEIGHTS, 2.0 * _BEYOND * edges, *ends, drop)
