"""Attack the claim that the truth is everybody's best bid, by trying other bids.

For sampled people the whole mechanism is run again at many bids of theirs, the others' unchanged: evenly over the
support, on both sides of everybody else's bid and of their own, and closing in on every jump of their privacy loss.
From what comes out,

* the *gain* of the best misreport, for her own type and for every other type on the same list of bids;
* the *slack* of joining over staying out;
* whether her loss ever rises with her bid;
* whether her loss ever exceeds a limit she stated, where people state limits: then she also tries others, smaller and
  larger, beside several bids. What would cost her more than her true limit is no gain;
* whether her payment agrees with ``β·(MSE − outside) + c·ε + ∫ε``, the integral enclosed by lower and upper sums of
  losses alone: those that were seen, and for a market many more from allocations. Nothing here calls the code that
  computes payments or follows one person's cost.

A violation found is a fact. None found means: none among the bids that were tried.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from hushbid.allocation import HardBudget
from hushbid.audit.incentive_report import IncentiveReport, PersonFinding, judged
from hushbid.common.arrays import FloatArray, Rng, as_floats, as_generator
from hushbid.errors import BidError, InputError, Unreachable
from hushbid.mechanism import Market, Population, decide
from hushbid.mechanism.stated import as_limits
from hushbid.priors import Prior

_KINKS = 40
_CLOSER = 24
_LIMITS = (0.5, 0.97, 1.5)
"""Limits that are tried, as shares of her own, or of her loss if she named none; and none at all."""
_BESIDE = 3
"""Beside how many bids."""
_WHERE_DEAR = 0.2
"""The share of closer looks where losses are limited, or people are in strata: each takes many times as long."""
_INTEGRATION = 600
"""How many allocations may be spent on one person's integral."""


class Decided(Protocol):
    """What a mechanism must answer to a vector of bids."""

    @property
    def privacy_loss(self) -> FloatArray: ...
    @property
    def payments(self) -> FloatArray: ...
    @property
    def mse(self) -> float: ...


Rule = Callable[..., Decided]
"""From everybody's bids, and everybody's limits as a second argument where people state limits."""

_Run = Callable[[FloatArray, FloatArray | None], Decided]


def check_incentives(
    rule: Market | Population | Rule | Any,
    bids: ArrayLike,
    *,
    limits: ArrayLike | None = None,
    market: Market | None = None,
    people: int | None = 20,
    rows: Sequence[int] | None = None,
    points: int = 65,
    rng: Rng | None = None,
    tolerance: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> IncentiveReport:
    """Try misreports of up to ``people`` people (None: everybody), or of ``rows``, in a market, a baseline or any rule.

    A rule maps a bid vector to something with ``privacy_loss``, ``payments`` and ``mse`` (in squared data units), or
    has a method ``acquire`` that does; ``market`` then tells priors, user weights and what staying out means. With
    ``limits``, the largest losses people accept, a rule takes them as its second argument, and misreports of both are
    tried together. ``tolerance`` is what counts as a violation, in money: by default what the mechanism itself states
    as its error, at the truth and at the misreport, and rounding.
    """
    world = rule if isinstance(rule, (Market, Population)) else market
    if world is None:
        raise InputError(
            "market must be given when the rule is not a Market: it says what people believe and value.", field="market"
        )
    truth = np.atleast_1d(as_floats(bids, "bids", BidError))
    population = world if isinstance(world, Population) else world.for_people(truth.size)
    accepted = None if limits is None else as_limits(limits, "limits")
    if accepted is not None and accepted.shape != truth.shape:
        raise InputError(f"limits must be one per bid, {truth.size}, got {accepted.size}.", field="limits")
    run = _runner(rule)
    is_ours = rule is world or rule == getattr(world, "acquire", None)
    tested = _tested(truth.size, people, rows, rng)
    base = run(truth, accepted)
    scale = 1.0 + float(np.abs(base.payments).max())  # what rounding is relative to
    findings = []
    for number, row in enumerate(tested):
        findings.append(_Person(population, run, truth, accepted, row, is_ours).finding(points, tolerance))
        if progress is not None:
            progress(number + 1, len(tested))
    stated = float(getattr(base, "incentive_error", 0.0))
    return judged(findings, stated, stated if tolerance is None else tolerance, scale)


def _runner(rule: Any) -> _Run:
    """The rule as a function of bids and limits."""
    if isinstance(rule, Population):
        return lambda bids, limits: decide(rule.with_limits(limits), bids)
    acquire = getattr(rule, "acquire", None)

    def run(bids: FloatArray, limits: FloatArray | None) -> Decided:
        if acquire is not None:
            found: Decided = acquire(bids) if limits is None else acquire(bids, limits=limits)
        else:
            found = rule(bids) if limits is None else rule(bids, limits)
        return found

    return run


def _tested(n: int, people: int | None, rows: Sequence[int] | None, rng: Rng | None) -> list[int]:
    if rows is not None:
        if not rows or not all(0 <= row < n for row in rows):
            raise InputError(f"rows must be at least one row from 0 to {n - 1}, got {list(rows)}.", field="rows")
        return [int(row) for row in rows]
    if people is None or people >= n:
        return list(range(n))
    if people < 1:
        raise InputError(f"people must be at least 1, got {people}.", field="people")
    chosen: list[int] = np.sort(as_generator(0 if rng is None else rng).choice(n, people, replace=False)).tolist()
    return chosen


class _Person:
    """One person's part of the mechanism, run at many bids of hers, the others' unchanged."""

    def __init__(
        self,
        population: Population,
        decide: _Run,
        truth: FloatArray,
        limits: FloatArray | None,
        row: int,
        is_ours: bool,
    ) -> None:
        self.population, self.decide, self.truth, self.row = population.with_limits(limits), decide, truth, row
        self.limits, self.is_ours = limits, is_ours
        self.prior = population.prior_of(row)
        self.weight = float(population.user_weights()[row])
        self.bid = float(truth[row])
        self.limit = math.inf if limits is None else float(limits[row])
        self.effort = _WHERE_DEAR if self.population.has_caps else 1.0
        self.closer = max(1, int(_CLOSER * (self.effort if population.strata is None else _WHERE_DEAR)))
        self.table: dict[float, tuple[float, ...]] = {}

    def run(self, z: float) -> float:
        """Her loss at bid ``z``; what else came out is kept."""
        if z not in self.table:
            self.table[z] = self._outcome(z, self.limit)
        return self.table[z][0]

    def _outcome(self, z: float, limit: float) -> tuple[float, ...]:
        """Loss, payment, error of the estimate and half of the stated error, at a bid and a limit of hers."""
        found, row = self.decide(_changed(self.truth, self.row, z), _changed(self.limits, self.row, limit)), self.row
        own_error = 0.5 * float(getattr(found, "incentive_error", 0.0))
        return float(found.privacy_loss[row]), float(found.payments[row]), float(found.mse), own_error

    def finding(self, points: int, tolerance: float | None) -> PersonFinding:
        top = _top(self.prior, self.bid, self.run)
        # run the mechanism at every bid, then at ever closer ones around jumps, and with other limits
        for tried in _bids_to_try(self.prior, self.truth, self.row, top, points):
            self.run(tried)
        _close_in(self.table, self.run, rounds=self.closer)
        z = np.array(sorted(self.table))
        columns = np.array([(value, self.limit, *self.table[value]) for value in z.tolist()])
        own, kept = int(np.searchsorted(z, self.bid)), slice(z.size)
        if self.limits is not None:
            columns = np.vstack([columns, self._other_limits(z, float(columns[own, 2]))])
        types, limits, loss, paid, error, own_error = columns.T
        # row: a true type; column: what she states
        worth = paid[None, :] - _burden(types, loss) - self.weight * np.where(np.isfinite(error), error, 0.0)[None, :]
        gains = worth - np.diagonal(worth)[:, None]  # type by statement
        gains[~np.isfinite(loss)] = 0.0  # a type who loses everything at no cost: no number to compare
        gains[loss[None, :] > limits[:, None] * (1.0 + 1e-9)] = -math.inf  # more than she accepts
        stated = own_error[:, None] + own_error[None, :] if tolerance is None else tolerance
        outside = _outside(self.population, self.truth, self.row) if self.weight > 0.0 else 0.0
        slack = np.diagonal(worth) + self.weight * outside
        # her rent against lower and upper sums of losses
        low, high = self._integral(z, loss[kept], own)
        settled = self.weight * (error[own] - outside) if self.weight > 0.0 else 0.0
        rent = paid[own] - settled - _burden(z[own : own + 1], loss[own : own + 1])[0, 0]
        comparable, best = math.isfinite(loss[own]), int(gains[own].argmax())
        return PersonFinding(
            row=self.row,
            bids_tried=types.size,
            spacing=float(np.diff(z).max(initial=0.0)),
            gain=float(max(gains[own].max(), 0.0)),
            misreport=float(types[best]),
            misstated_limit=None if self.limits is None else float(limits[best]),
            gain_of_any_type=float(max(gains.max(), 0.0)),
            slack=float(slack[np.isfinite(loss)].min(initial=math.inf)),
            rise=float(np.diff(loss[kept])[np.isfinite(loss[kept][:-1])].max(initial=0.0)),
            payment_error=float(max(low - rent, rent - high, 0.0)) if comparable else 0.0,
            payment_resolution=float(high - low) if comparable else math.inf,
            excess=float((gains - stated).max()),
            beyond_limit=_beyond(loss, limits),
        )

    def _other_limits(self, z: FloatArray, loss: float) -> FloatArray:
        """What comes out at other limits than her own, beside some of these bids and the true one."""
        around = self.limit if math.isfinite(self.limit) else loss
        limits = [share * around for share in _LIMITS if share * around > 0.0 and math.isfinite(share * around)]
        beside = [*z[np.linspace(0, z.size - 1, _BESIDE).astype(np.intp)].tolist(), self.bid]
        rows = []
        for limit in (*limits, math.inf):
            for bid in sorted(set(beside)):
                try:
                    found = self._outcome(bid, limit)
                except Unreachable:  # no campaign: nothing is bought, nobody is paid
                    found = (0.0, 0.0, math.inf, 0.0)
                rows.append((bid, limit, *found))
        return np.array(rows)

    def _integral(self, z: FloatArray, loss: FloatArray, own: int) -> tuple[float, float]:
        """Lower and upper sums of her loss from her bid on; of a market, at many more bids."""
        known = dict(zip(z[own:].tolist(), loss[own:].tolist(), strict=True))
        if self.is_ours:
            _close_in(
                known,
                lambda at: known.setdefault(at, self._allocated(at)),
                rounds=int(_INTEGRATION * self.effort) // 16,
                each=16,
            )
        nodes = np.array(sorted(known))
        values = np.array([known[at] for at in nodes.tolist()])
        width = np.diff(nodes)
        with np.errstate(invalid="ignore"):
            return float((values[1:] * width).sum()), float(np.nan_to_num(values[:-1] * width, posinf=math.inf).sum())

    def _allocated(self, z: float) -> float:
        """Her loss by solving the whole problem with her bid changed."""
        if isinstance(self.population.goal, HardBudget):  # a menu, not an optimum
            return self.run(z)
        costs = self.population.virtual_costs(_changed(self.truth, self.row, z))
        return float(self.population.allocation(costs).privacy_loss[self.row])


def _changed(values: Any, row: int, value: float) -> Any:
    """The same numbers with another one in this row; None if there are none."""
    if values is None:
        return None
    changed = values.copy()
    changed[row] = value
    return changed


def _beyond(loss: FloatArray, limits: FloatArray) -> float:
    """The most by which a loss exceeds its limit, rounding aside."""
    limited = np.isfinite(limits)
    return float((loss[limited] - limits[limited] * (1.0 + 1e-9)).max(initial=0.0))


def _burden(types: FloatArray, losses: FloatArray) -> FloatArray:
    """What each loss costs each type; nothing costs those who do not care."""
    with np.errstate(invalid="ignore"):
        return np.where(types[:, None] > 0.0, types[:, None] * losses[None, :], 0.0)


def _bids_to_try(prior: Prior, truth: FloatArray, row: int, top: float, points: int) -> list[float]:
    low = prior.smallest_bid
    near = np.sort(np.delete(truth, row))
    near = near[(near >= low) & (near <= top)]
    near = near[:: max(1, near.size // _KINKS)]
    sides = np.concatenate([near, near * (1.0 - 1e-9), near * (1.0 + 1e-9), [truth[row]]])
    ends = [part[1] for part in prior.flat_parts[:_KINKS]]
    flat = np.concatenate([ends, np.nextafter(ends, np.inf)]) if ends else np.zeros(0)
    every = np.concatenate([np.linspace(low, top, points), sides, flat])
    values: list[float] = np.unique(every[(every >= low) & (every <= top)]).tolist()
    return values


def _top(prior: Prior, bid: float, run: Callable[[float], float]) -> float:
    """The top of the support, or a bid beyond which nothing is bought any more."""
    top = prior.support[1]
    if math.isfinite(top):
        return float(top)
    reach = max(bid, float(prior.quantile(0.5)))
    for _ in range(60):
        reach *= 2.0
        if run(reach) <= 0.0:
            break
    return reach


def _close_in(table: dict[float, Any], run: Callable[[float], float], *, rounds: int = _CLOSER, each: int = 4) -> None:
    """Halve the intervals over which the loss changes most, so that jumps are seen from close by."""
    for _ in range(rounds):
        z = np.array(sorted(table))
        loss = np.array([np.atleast_1d(table[value])[0] for value in z.tolist()])
        with np.errstate(invalid="ignore"):
            change = np.nan_to_num(np.abs(np.diff(loss)) * np.diff(z), posinf=np.inf)
        middle = 0.5 * (z[:-1] + z[1:])
        change[(middle <= z[:-1]) | (middle >= z[1:])] = 0.0
        for k in np.argsort(change)[-each:].tolist():
            if change[k] > 0.0:
                run(float(middle[k]))


def _outside(population: Population, truth: FloatArray, row: int) -> float:
    """The error person ``row`` lives with outside: her own datum's variance, or that of a market without her."""
    if population.outside_option == "own_data":
        return float(population.own_errors()[row])
    others = np.delete(np.arange(truth.size), row)
    weights = population.user_weights()[others]
    alone = replace(population.take(others), user_weight=weights, outside_option="own_data")
    return decide(alone, truth[others]).mse
