"""How an accuracy is divided among strata in the local setting, exactly: branch and bound over precisions.

In normal form the error of stratum g is the share ``u_g/Λ_g`` of what is allowed, ``u_g = ℓ_g²·V/r²``. With ``C_g(Λ)``
the least cost of a precision in a stratum (`hushbid.allocation.local`),

    minimise  Σ C_g(Λ_g)   subject to   Σ u_g/Λ_g ≤ 1.

``C_g`` is not convex: where one more person is bought from, it turns. For any weight ``α ≥ 0`` of the error and any box
of precisions, no point of the box costs less than ``Σ_g min over the box of (α·u_g/Λ + C_g(Λ)) − α``. Each minimum is
the optimum of one stratum with the demand ``(α·u_g, l_g, m_g)``, which is found exactly. The shares at these optima
fall in α. If they pass 1 continuously, the box is solved: bound and cost agree. If they jump, from more than 1 at
``α₁`` to less at ``α₂``, the stratum that jumps most is cut between its two precisions, where the others at ``α₂``
leave it just enough: that is one more purchase. Boxes whose bound is not below the best purchase are closed; nearly
always a few are enough. At the optimum the shares add up to 1, so every box shrinks to what can be met with equality:
of one stratum, to a point.

**Truth.** What is feasible does not depend on costs, so everybody's own loss falls with their own cost and is the slope
of the value, as long as the optimum is found: if the boxes do not close within a bounded number of steps, the problem
is refused. People who cost nothing share the work equally if they alone are enough.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hushbid.allocation.local_market import Lists
from hushbid.allocation.local_problem import Demand
from hushbid.allocation.unsolved import NOT_CLOSED
from hushbid.common.arrays import BoolArray, FloatArray, IndexArray

_CLOSED = 1e-13  # a box is closed if its bound is so near the best purchase, relatively
_EXACT = 3e-15  # shares that add up to 1 within this are a solution
_JUMP = 4.0
"""A sum of shares whose logarithm falls by more than so many times that of the weight jumps; smoothly it is a half."""

_STEPS = 80
_MOST = 500, 500  # so many boxes are evaluated at some weight, and so many more for each list


@dataclass(frozen=True, slots=True, eq=False)
class _Boxes:
    """Boxes of precisions, one row each."""

    lists: IndexArray  # whose box it is
    least: FloatArray
    most: FloatArray
    weight: FloatArray  # where to look for α first

    def of(self, which: IndexArray | BoolArray) -> "_Boxes":
        return _Boxes(self.lists[which], self.least[which], self.most[which], self.weight[which])


@dataclass(frozen=True, slots=True, eq=False)
class _Points:
    """The optima of boxes at one weight each."""

    weight: FloatArray
    precision: FloatArray
    cost: FloatArray  # what each stratum costs, the error not counted
    share: FloatArray  # each stratum's share of the error that is allowed

    @classmethod
    def unknown(cls, boxes: int, strata: int) -> "_Points":
        return cls(np.full(boxes, np.nan), *(np.full((boxes, strata), np.nan) for _ in range(3)))

    @property
    def total(self) -> FloatArray:
        """What all shares add up to."""
        found: FloatArray = self.share.sum(axis=1)
        return found

    @property
    def bound(self) -> FloatArray:
        """What no point of the box costs less than."""
        found: FloatArray = self.cost.sum(axis=1) + self.weight * (self.total - 1.0)
        return found

    def put(self, where: IndexArray, points: "_Points", which: BoolArray) -> None:
        """Replace some."""
        for name in self.__slots__:
            getattr(self, name)[where[which]] = getattr(points, name)[which]


class Division:
    """The cheapest precisions of all strata, for each of many lists."""

    def __init__(self, strata: Sequence[Lists], units: FloatArray) -> None:
        """Divide an accuracy: ``Σ units[g]/Λ_g ≤ 1``."""
        self._strata, self._units, self._evaluated = strata, units, 0
        count = strata[0].free.size
        self._cost = np.full(count, np.inf)
        self.precision = np.full((count, units.size), np.nan)
        """The precision of each stratum (in columns); not a number where the accuracy cannot be reached."""

        self.weight = np.zeros(count)  # α, what the error is worth there

    def find(self, weight: float) -> "Division":
        """Search from a weight; refused if the boxes do not close."""
        supply, units, lists = self._strata[0].market.form.supply, self._units, np.arange(self._cost.size)
        sizes = np.stack([one.deviations.size for one in self._strata], axis=1) * supply.top
        free = np.stack([one.free for one in self._strata], axis=1) * supply.top
        with np.errstate(divide="ignore"):
            shared, least = (units / free).sum(axis=1), (units / sizes).sum(axis=1)
        enough = shared <= 1.0
        self.precision[enough], self._cost[enough] = free[enough] * shared[enough, None], 0.0
        reachable = (least < 1.0) | ((least == 1.0) & (supply.cap < np.inf))
        boxes = _Boxes(lists, np.broadcast_to(units, sizes.shape), sizes, np.full(lists.size, weight))
        boxes = boxes.of(reachable & ~enough)
        while True:
            boxes = self._shrunk(boxes)
            if boxes.lists.size == 0:
                return self
            if self._evaluated > _MOST[0] + _MOST[1] * lists.size:
                raise NOT_CLOSED.error()
            boxes = self._cut(boxes)

    def _shrunk(self, boxes: _Boxes) -> _Boxes:
        """Shrink boxes to what can add up to 1, and leave out those that cannot; those that are points are solved."""
        units, low, high = self._units, self._units / boxes.most, self._units / boxes.least
        possible = (low.sum(axis=1) <= 1.0 + _EXACT) & (high.sum(axis=1) >= 1.0 - _EXACT)
        boxes, low, high = boxes.of(possible), low[possible], high[possible]
        # of a share: what the others leave at the most, and at the least
        largest = np.minimum(1.0 - (low.sum(axis=1, keepdims=True) - low), high)
        smallest = np.maximum(1.0 - (high.sum(axis=1, keepdims=True) - high), low)
        least = np.clip(units / largest, boxes.least, boxes.most)
        most = np.clip(np.where(smallest > low, units / np.maximum(smallest, low), boxes.most), least, boxes.most)
        boxes = replace(boxes, least=least, most=most)
        points = (least == most).all(axis=1)
        if points.any():
            self._take(boxes.lists[points], least[points], self._costs(boxes.of(points), least[points]), boxes.weight)
        return boxes.of(~points)

    def _costs(self, boxes: _Boxes, precision: FloatArray) -> FloatArray:
        """What precisions cost; nothing needs to be computed of a list that has no other box."""
        if self._units.size == 1:
            return np.zeros(precision.shape[0])
        every = (one.optima(boxes.lists, Demand.exactly(precision[:, g])).value for g, one in enumerate(self._strata))
        return np.asarray(sum(every))

    def _take(self, lists: IndexArray, precision: FloatArray, cost: FloatArray, weight: FloatArray) -> None:
        """Keep the cheapest purchases that were found."""
        for j in np.argsort(-cost, kind="stable").tolist():
            if cost[j] < self._cost[lists[j]]:
                self._cost[lists[j]], self.precision[lists[j]] = cost[j], precision[j]
                self.weight[lists[j]] = weight[j]

    def _at(self, boxes: _Boxes, weight: FloatArray) -> _Points:
        """The optima of boxes at weights."""
        self._evaluated += weight.size
        points = _Points.unknown(weight.size, self._units.size)
        points.weight[:] = weight
        for g, (one, unit) in enumerate(zip(self._strata, self._units.tolist(), strict=True)):
            demand = Demand(weight * unit, boxes.least[:, g], boxes.most[:, g])
            found = one.optima(boxes.lists, demand)
            points.precision[:, g], points.share[:, g] = found.precision, unit / found.precision
            points.cost[:, g] = found.value - demand.cost(found.precision)
        return points

    def _closed(self, boxes: _Boxes, points: _Points) -> BoolArray:
        """Whether boxes cannot hold anything better than what was found."""
        best = self._cost[boxes.lists]
        with np.errstate(invalid="ignore"):
            return points.bound >= best - _CLOSED * best - 1e-15 * points.weight

    def _cut(self, boxes: _Boxes) -> _Boxes:
        """Solve boxes, or close them by their bounds; return the others, each cut in two."""
        low, high, solved = self._around(boxes)
        self._take(boxes.lists[solved], low.precision[solved], low.cost[solved].sum(axis=1), low.weight[solved])
        rest = np.flatnonzero(~solved & ~self._closed(boxes, low) & ~self._closed(boxes, high))
        boxes = boxes.of(rest)
        if rest.size == 0:
            return boxes
        every, fall = np.arange(rest.size), low.share[rest] - high.share[rest]
        jumps = fall.argmax(axis=1)
        start, end = low.precision[rest, jumps], high.precision[rest, jumps]
        # the stratum that jumps gets what the others leave
        left = 1.0 - (high.total[rest] - high.share[rest, jumps])
        precision = high.precision[rest].copy()
        precision[every, jumps] = filled = np.clip(self._units[jumps] / np.maximum(left, 1e-300), start, end)
        self._take(boxes.lists, precision, self._costs(boxes, precision), high.weight[rest])
        at = np.clip(filled, start + 0.05 * (end - start), end - 0.05 * (end - start))
        tie = np.sqrt(low.weight[rest] * high.weight[rest])
        below, above = boxes.most.copy(), boxes.least.copy()
        below[every, jumps] = above[every, jumps] = at
        return _Boxes(
            np.append(boxes.lists, boxes.lists),
            np.concatenate([boxes.least, above]),
            np.concatenate([below, boxes.most]),
            np.append(tie, tie),
        )

    def _around(self, boxes: _Boxes) -> tuple[_Points, _Points, BoolArray]:
        """Points just below and above the weight at which shares add up to 1, and whether the first is that weight."""
        size, strata = boxes.lists.size, self._units.size
        low, high = _Points.unknown(size, strata), _Points.unknown(size, strata)
        solved, weight = np.zeros(size, dtype=bool), boxes.weight.copy()
        pending = np.arange(size)
        for step in range(_STEPS):
            if pending.size == 0:
                break
            here = boxes.of(pending)
            found = self._at(here, weight[pending])
            total = found.total
            exact = np.abs(total - 1.0) <= _EXACT
            solved[pending] = exact
            low.put(pending, found, exact | (total > 1.0))
            high.put(pending, found, ~exact & (total <= 1.0))
            done = exact | self._closed(here, found) | self._jumping(low, high, pending)
            pending = pending[~done]
            weight[pending] = self._next(low, high, pending, step)
        return low, high, solved

    def _jumping(self, low: _Points, high: _Points, at: IndexArray) -> BoolArray:
        """Whether shares jump between two weights, where a bound between them is no better."""
        near, far = low.weight[at], high.weight[at]
        jump = np.log(low.total[at] / high.total[at]) > _JUMP * np.log(far / near)
        best = np.maximum(low.bound[at], high.bound[at])
        model = low.bound[at] + (low.total[at] - 1.0) * (_tie(low, high, at) - near)
        found: BoolArray = (jump & (model - best <= _CLOSED * best)) | (far <= near * (1.0 + 4e-16))
        return found

    def _next(self, low: _Points, high: _Points, at: IndexArray, step: int) -> FloatArray:
        """The next weights: by secant, or at jumps and every other time where the bounds' tangents meet."""
        near, far = low.weight[at], high.weight[at]
        above, below = np.log(low.total[at]), np.log(high.total[at])
        # one side is not known yet: shares fall like a small power of the weight, or ever less
        least = min(1e-3 * 4.0**step, 60.0)
        outward = np.where(np.isnan(far), near * np.exp(np.clip(6.0 * above, least, 60.0)), 0.0)
        outward = np.where(np.isnan(near), far * np.exp(np.clip(6.0 * below, -60.0, -least)), outward)
        secant = near * np.exp(np.log(far / near) * above / (above - below))
        jump = (above - below > _JUMP * np.log(far / near)) | (step % 2 == 1)
        ahead = np.where(jump, _tie(low, high, at), secant)
        between = np.where((near < ahead) & (ahead < far), ahead, np.sqrt(near) * np.sqrt(far))
        between = np.sqrt(near) * np.sqrt(far) if step % 6 == 5 else between
        return np.where(outward > 0.0, outward, between)


def _tie(low: _Points, high: _Points, at: IndexArray) -> FloatArray:
    """Where the tangents of the bounds at two weights meet."""
    up, down = low.total[at] - 1.0, high.total[at] - 1.0
    near, far = low.weight[at], high.weight[at]
    with np.errstate(divide="ignore", invalid="ignore"):
        found: FloatArray = (high.bound[at] - low.bound[at] + up * near - down * far) / (up - down)
    return found
