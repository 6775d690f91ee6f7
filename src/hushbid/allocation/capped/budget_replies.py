"""How a purchase with a given expense, under caps, answers to one person's cost.

If even the most accurate losses that the caps allow cost less than the budget, these are bought. Above some cost of
hers that cannot be, and above another she is out: there her potential is 0. If the others alone cannot spend the budget
she is never out, and her potential counts from a fixed cost at which she is not at her cap.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from hushbid.allocation.capped.levels import others_at_caps
from hushbid.allocation.capped.near import Present, in_step
from hushbid.allocation.capped.potential import areas
from hushbid.arrays import BoolArray, FloatArray, IndexArray

_ENDLESS = 1e150
"""Stands for an infinite loss, which is the most accurate where nobody has a cap."""


@dataclass(frozen=True, slots=True, eq=False)
class _Limits:
    """For each of some people what the most accurate losses are, and cost, with and without her."""

    own: FloatArray
    """Her loss, if she is there."""

    spent: FloatArray
    """What the others' losses cost then."""

    error: FloatArray
    """The error then."""

    spent_without: FloatArray
    """What the others' losses cost if she is not there, at least; exactly if that is no more than the budget."""

    error_without: FloatArray
    """The error then, if it is needed."""


class BudgetReplies:
    """The purchase as a function of one person's cost, everybody else's fixed."""

    def __init__(self, now: Present) -> None:
        self._now, self._scaled = now, now.scaled
        losses, self._error = self._scaled.weight(now.rows)
        self._costs = self._scaled.costs[now.rows] / self._scaled.scale
        self._losses = losses = np.minimum(losses, _ENDLESS)
        self._bills = _bills(self._costs, losses)

    @property
    def can_be_spent(self) -> bool:
        """Whether the most accurate losses cost more than the budget."""
        return float(self._bills.sum()) > self._scaled.aim.number

    def answer(self, rows: IndexArray, costs: FloatArray) -> tuple[Callable[[], FloatArray], FloatArray, FloatArray]:
        """What computes the value function of each pair; loss and error of each."""
        who, which = np.unique(rows, return_inverse=True)
        limits = self._limits(who)
        budget = self._scaled.aim.number
        x = np.where(costs < math.inf, costs, 0.0) / self._scaled.scale
        there = costs < math.inf
        spent = np.where(there, limits.spent[which] + x * limits.own[which], limits.spent_without[which])
        unspent = spent <= budget
        loss = np.where(there, limits.own[which], 0.0)
        mse = np.where(there, limits.error[which], limits.error_without[which])
        level, rate = np.zeros(rows.size), np.zeros(rows.size)
        unsolved = np.flatnonzero(~unspent)
        if unsolved.size:
            variants = self._now.variants(rows[unsolved], costs[unsolved])
            assert variants.moved is not None
            points = self._now.solved(variants)
            _, _, left, known = others_at_caps(variants, self._scaled.aim)
            loss[unsolved] = np.where(known, left, variants.moved.losses(points.level, points.rate))
            mse[unsolved] = points.mse
            level[unsolved], rate[unsolved] = points.level, points.rate
        value = partial(self._potential, who, which, limits, x, there, level, rate)
        return value, np.where(loss < _ENDLESS, loss, math.inf), mse

    def _limits(self, who: IndexArray) -> _Limits:
        """What the most accurate losses are with and without each of these people."""
        now, scaled, budget = self._now, self._scaled, self._scaled.aim.number
        place = now.place[who]
        present = place < now.rows.size
        at = np.minimum(place, now.rows.size - 1)
        total = float(self._bills.sum())
        own, error = self._losses[at].copy(), np.full(who.size, self._error)
        spent = total - self._bills[at]
        # without her the others' losses are not smaller
        spent_without, error_without = spent.copy(), np.full(who.size, self._error)
        for j in np.flatnonzero(~present | (spent_without <= budget)).tolist():
            others = now.rows[now.rows != who[j]]
            if not present[j]:
                losses, error[j] = scaled.weight(np.append(others, who[j]))
                losses = np.minimum(losses, _ENDLESS)
                own[j], spent[j] = losses[-1], float(_bills(self._costs, losses[:-1]).sum())
            if others.size == 0:
                spent_without[j], error_without[j] = 0.0, math.inf
                continue
            losses, error_without[j] = scaled.weight(others)
            spent_without[j] = float(_bills(scaled.costs[others] / scaled.scale, losses).sum())
        return _Limits(own, spent, error, spent_without, error_without)

    def _potential(
        self,
        who: IndexArray,
        which: IndexArray,
        limits: _Limits,
        x: FloatArray,
        there: BoolArray,
        level: FloatArray,
        rate: FloatArray,
    ) -> FloatArray:
        """Minus the integral of her loss over all higher costs, or from a fixed cost if she is never out."""
        budget = self._scaled.aim.number
        never_out = limits.spent_without <= budget
        value = np.zeros(x.size)
        # below this cost the budget cannot be spent and the loss stays the same
        unspent = np.maximum((budget - limits.spent) / limits.own, 0.0)[which]
        out = np.flatnonzero(~never_out[which] & there)
        if out.size:
            people, back = np.unique(which[out], return_inverse=True)
            alone = self._now.solved(self._now.variants(who[people], np.full(people.size, math.inf)))
            top, stop = (alone.base + alone.level)[back], np.maximum(x, unspent)[out]
            value[out] = -self._area(who[which[out]], alone.level[back], alone.rate[back], top, stop)
        always = np.flatnonzero(never_out[which] & there)
        if always.size:
            people, back = np.unique(which[always], return_inverse=True)
            fixed = 2.0 * np.maximum(budget / limits.own[people], float(self._costs.max()))
            points = self._now.solved(self._now.variants(who[people], fixed * self._scaled.scale))
            reference, beyond = fixed[back], x[always] > fixed[back]
            area = self._area(
                who[which[always]],
                np.where(beyond, level[always], points.level[back]),
                np.where(beyond, rate[always], points.rate[back]),
                np.maximum(x[always], reference),
                np.maximum(np.minimum(x[always], reference), unspent[always]),
            )
            value[always] = np.where(beyond, area, -area)
        value[never_out[which] & ~there] = np.inf
        return value - np.where(there, limits.own[which] * np.maximum(unspent - x, 0.0), 0.0)

    def _area(
        self, rows: IndexArray, level: FloatArray, rate: FloatArray, top: FloatArray, stop: FloatArray
    ) -> FloatArray:
        """The integral of the loss between two costs, in the smallest box that is never left."""
        now, area = self._now, np.zeros(rows.size)
        variants = now.variants(rows, np.zeros(rows.size))
        unsolved = np.flatnonzero(top > stop)
        for crowd in now.crowds():
            step, left = in_step(crowd), []
            for first in range(0, unsolved.size, step):
                some = unsolved[first : first + step]
                part = variants.take(some).on(crowd)
                found, kept = areas(part, level[some], rate[some], self._scaled.aim.number, top[some], stop[some])
                area[some[kept]] = found[kept]
                left.append(some[~kept])
            unsolved = np.concatenate(left) if left else unsolved
            if unsolved.size == 0:
                break
        return area


def _bills(costs: FloatArray, losses: FloatArray) -> FloatArray:
    """What each loss costs; nothing if she asks for nothing."""
    return np.where(costs > 0.0, costs * np.minimum(losses, _ENDLESS), 0.0)
