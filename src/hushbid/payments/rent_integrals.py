"""The integral of one's privacy loss over higher bids, by the way that suits the rule and the prior."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushbid.common.arrays import BoolArray, FloatArray, IndexArray
from hushbid.errors import MarketError
from hushbid.payments.rent_bounds import FINEST, Enclosures
from hushbid.payments.rent_sums import Bounds, Halving
from hushbid.payments.rule import ROUNDING, Rents, RuleWithPotential
from hushbid.payments.virtual_cost_table import Ladder, tail_of
from hushbid.priors import Prior

_SAMPLE = 4096
_FINER, _MOST_NODES = 3, 1 << 18
"""So often, and while it has at most so many nodes, a table of ψ is made four times as fine for those who need it."""


def rents(
    rule: RuleWithPotential,
    prior: Prior,
    rows: IndexArray,
    bids: FloatArray,
    *,
    cap: float = np.inf,
    alike: NDArray[Any] | None = None,
    paid_besides: FloatArray | None = None,
    tolerance: float = 1e-6,
    ladder: Ladder | None = None,
) -> Rents:
    """The rents of people ``rows``, who bid ``bids`` and share ``prior``.

    ``cap`` clips the rule. ``alike`` marks people who face the same rule if their bids are equal (so that equals are
    computed once). The enclosure's half-width is at most ``tolerance`` times the largest of ``paid_besides + rent``
    wherever ψ is smooth enough for it, and rounding allows it; the result says what was reached. A ``ladder`` from
    `ladder_up_to` saves making one.
    """
    if rows.size == 0:
        return Rents(lower=np.zeros(0), upper=np.zeros(0), estimate=np.zeros(0), evaluations=0)
    # ψ a step function: a finite sum
    if prior.is_stepped:
        return _finite_sum(rule, prior.flat_parts, rows, bids, cap, alike)
    besides = np.zeros(rows.size) if paid_besides is None else paid_besides
    # else by integration, once for all who have the same bid and face the same rule
    one, kind = (rows, rows) if prior.is_linear and cap == np.inf else _one_of_each(bids, alike)
    if one.size < rows.size:
        found = _by_integration(rule, prior, rows[one], bids[one], cap, besides[one], tolerance, ladder)
        return Rents(
            lower=found.lower[kind],
            upper=found.upper[kind],
            estimate=found.estimate[kind],
            evaluations=found.evaluations,
        )
    return _by_integration(rule, prior, rows, bids, cap, besides, tolerance, ladder)


def ladder_up_to(prior: Prior, low: float, level: float) -> Ladder | None:
    """Return a table of ψ for people who bid at least ``low``, if nothing is bought above a virtual cost of ``level``.

    None where rents need no table, or there is nothing to tabulate.
    """
    top = prior.support[1]
    high = float(prior.virtual_cost_inverse(level)) if low < level < np.inf else low
    if prior.is_stepped or prior.is_linear or not low < high < np.inf:
        return None
    return Ladder.over(prior, low, min(high + 1e-6 * (high - low), top))


def _one_of_each(bids: FloatArray, alike: NDArray[Any] | None) -> tuple[IndexArray, IndexArray]:
    """Return one of all who have the same bid and face the same rule, and who that is for everybody.

    Of many people a sample is asked first whether there are enough equals to be worth looking for.
    """
    everybody = np.arange(bids.size)
    sample = slice(None, None, max(1, bids.size // _SAMPLE))
    if bids.size > 4 * _SAMPLE and np.unique(bids[sample]).size > 0.9 * _SAMPLE:
        return everybody, everybody
    kinds = np.zeros(bids.size) if alike is None else alike
    order = np.lexsort((bids, kinds))
    new = np.append(True, (np.diff(bids[order]) > 0.0) | (kinds[order][1:] != kinds[order][:-1]))
    kind = np.empty_like(everybody)
    kind[order] = np.cumsum(new) - 1
    return order[new], kind


def _by_integration(
    rule: RuleWithPotential,
    prior: Prior,
    rows: IndexArray,
    bids: FloatArray,
    cap: float,
    besides: FloatArray,
    tolerance: float,
    ladder: Ladder | None = None,
) -> Rents:
    """Integrate for each person: people who reach the same bid by a cap do not face the same rule."""
    if cap < np.inf:
        return _capped(rule, prior, rows, bids, cap, besides, tolerance)
    top = prior.support[1]
    # uniform and the like: two optimal values
    if prior.is_linear:
        return _closed_form(rule, prior, rows, bids, besides, tolerance)
    ladder = ladder or Ladder.reaching(rule, prior, rows, bids)
    found = Enclosures(rule, ladder, rows, bids, prior.virtual_cost(bids))
    found.run(besides, tolerance)
    tail = tail_of(found.at_end, ladder, top)
    for _ in range(_FINER):  # those for whom the table of ψ was too coarse
        wide = found.too_wide()
        if wide.size == 0 or ladder.z.size > _MOST_NODES:
            break
        ladder = ladder.finer(prior)
        if not found.narrowed(wide, ladder):
            break
    bounds, evaluations = Bounds(*found.sums), found.evaluations
    wide = found.too_wide()
    if wide.size:  # those whose values have too few digits
        halving = Halving(rule, prior, rows[wide], None)
        whole = halving.whole(bids[wide], np.full(wide.size, max(float(ladder.z[-1]), float(bids[wide].max()))))
        narrow = Bounds(*found.sums[:, wide]).intersected(halving.run(whole, found.allowed))
        bounds.lower[wide], bounds.upper[wide], bounds.estimate[wide] = narrow.lower, narrow.upper, narrow.estimate
        evaluations += halving.evaluations
    return Rents(
        lower=bounds.lower, upper=bounds.upper + tail, estimate=bounds.estimate + tail, evaluations=evaluations
    )


def rent_of_rule(
    loss: Callable[[FloatArray], FloatArray],
    bid: float,
    top: float,
    *,
    breaks: FloatArray | None = None,
    tolerance: float = 1e-6,
    most_evaluations: int = 200_000,
) -> Rents:
    """One person's rent under any nonincreasing ``loss`` of their own bid, by lower and upper sums.

    ``breaks`` are bids where the rule is known to jump. The half-width is at most ``tolerance`` times the rent, or
    what ``most_evaluations`` allow.
    """
    if not -np.inf < bid <= top < np.inf:
        raise MarketError(
            f"top, where the rule must have stopped buying, must be finite and no less than the bid, got top={top}."
        )
    # both sides of every jump that is known
    inner = np.unique(np.clip(np.asarray([] if breaks is None else breaks, dtype=float), bid, top))
    z = np.unique(np.concatenate([np.linspace(bid, top, 65), inner, np.nextafter(inner, np.inf)]))
    z = z[z <= top]
    e = _monotone(loss(z))
    while True:
        gap = (e[:-1] - e[1:]) * np.diff(z)
        lower, upper = float((e[1:] * np.diff(z)).sum()), float((e[:-1] * np.diff(z)).sum())
        # halve whatever has more than its share of the allowed gap
        wide = gap > max(tolerance * (lower + upper), 0.0) / max(gap.size, 1)
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
        raise MarketError("the rule is not monotone: raising a bid raises the privacy loss, so no payment is truthful.")
    return np.minimum.accumulate(loss)


def _closed_form(
    rule: RuleWithPotential,
    prior: Prior,
    rows: IndexArray,
    bids: FloatArray,
    besides: FloatArray,
    tolerance: float,
) -> Rents:
    """ψ affine: the integral is a difference of two optimal values over the slope, if they have digits enough."""
    found = Halving(rule, prior, rows, prior.slope or 1.0)
    whole = found.whole(bids, np.full(rows.size, prior.support[1]))
    bounds = whole.bounds(found.slope)
    wide = np.flatnonzero(bounds.upper - bounds.lower > (allowed := _allowed(besides + bounds.lower, tolerance)))
    evaluations = found.evaluations
    if wide.size:
        found = Halving(rule, prior, rows[wide], found.slope)
        part = whole.take(wide)
        part.who = np.arange(wide.size)
        narrow = found.run(part, allowed)
        bounds.lower[wide], bounds.upper[wide], bounds.estimate[wide] = narrow.lower, narrow.upper, narrow.estimate
        evaluations += found.evaluations
    return Rents(lower=bounds.lower, upper=bounds.upper, estimate=bounds.estimate, evaluations=evaluations)


def _allowed(paid: FloatArray, tolerance: float) -> float:
    """How wide an enclosure may be, if people are paid at least so much."""
    return 1.5 * max(tolerance, FINEST) * max(float(paid.max()), 0.0)


def _capped(
    rule: RuleWithPotential,
    prior: Prior,
    rows: IndexArray,
    bids: FloatArray,
    cap: float,
    besides: FloatArray,
    tolerance: float,
) -> Rents:
    """The cap up to the bid where the loss falls below it, found to the last digits; from there as without a cap."""
    below, above, evaluations = _crossing(rule, prior, rows, bids, cap)
    least, most = cap * (below - bids), cap * (above - bids)
    slack = ROUNDING * most
    lower, upper, estimate = least - slack, most + slack, 0.5 * (least + most)
    open_ = np.flatnonzero(above < prior.support[1])  # the others are clipped at every bid
    if open_.size:
        rest = _by_integration(rule, prior, rows[open_], above[open_], np.inf, (besides + least)[open_], tolerance)
        lower[open_] += rest.lower
        upper[open_] += rest.upper
        estimate[open_] += rest.estimate
        evaluations += rest.evaluations
    return Rents(lower=lower, upper=upper, estimate=estimate, evaluations=evaluations)


def _crossing(
    rule: RuleWithPotential, prior: Prior, rows: IndexArray, bids: FloatArray, cap: float
) -> tuple[FloatArray, FloatArray, int]:
    """For each person two neighbouring bids: at the lower their loss is at least ``cap`` (or it is their own bid),
    at the higher it is not (or it is the top of the support)."""
    top, evaluations = prior.support[1], 0

    def clipped(who: IndexArray, z: FloatArray) -> BoolArray:
        nonlocal evaluations
        evaluations += who.size
        return rule.at(rows[who], np.asarray(prior.virtual_cost(z))).loss >= cap

    low, high = bids.copy(), bids.copy()
    unsolved = np.flatnonzero(clipped(np.arange(rows.size), bids))
    reach = np.maximum(bids[unsolved], 1e-3)
    while unsolved.size:  # a bid that is not clipped any more
        high[unsolved] = np.minimum(bids[unsolved] + reach, top)
        still = clipped(unsolved, high[unsolved])
        low[unsolved[still]] = high[unsolved[still]]
        going = still & (high[unsolved] < top)
        unsolved, reach = unsolved[going], 2.0 * reach[going]
    unsolved = np.flatnonzero(low < high)
    while unsolved.size:  # cut into so many parts that a call is worth its while
        parts = max(2, min(32, 4096 // unsolved.size))
        left, width = low[unsolved, None], (high - low)[unsolved, None]
        inner = left + width * (np.arange(1, parts) / parts)[None, :]
        still = clipped(np.repeat(unsolved, parts - 1), inner.ravel()).reshape(inner.shape)
        count = still.cumprod(axis=1).sum(axis=1)  # inner points before the first that is not clipped
        edges = np.concatenate([left, inner, high[unsolved, None]], axis=1)
        here = np.arange(unsolved.size)
        before = high[unsolved] - low[unsolved]
        low[unsolved], high[unsolved] = edges[here, count], edges[here, count + 1]
        unsolved = unsolved[high[unsolved] - low[unsolved] < 0.9 * before]  # until no number lies between
    return low, high, evaluations


def _finite_sum(
    rule: RuleWithPotential,
    steps: tuple[tuple[float, float, float], ...],
    rows: IndexArray,
    bids: FloatArray,
    cap: float,
    alike: NDArray[Any] | None,
) -> Rents:
    """ψ a step function: the rest of one's own step, and every later step until nothing is bought any more."""
    ends, levels = np.array([right for _, right, _ in steps]), np.array([level for _, _, level in steps])
    own = np.minimum(ends.searchsorted(bids, side="left"), ends.size - 1)
    widths = np.diff(ends)
    # one of each: those on the same step who face the same rule have the same later steps
    kind = np.zeros(rows.size) if alike is None else np.unique(alike, return_inverse=True)[1].astype(float)
    groups, which = np.unique(np.stack([own.astype(float), kind]), axis=1, return_inverse=True)
    which = which.reshape(-1)
    one = np.zeros(groups.shape[1], dtype=np.intp)
    one[which] = np.arange(rows.size)
    # the rest of one's own step is bought at one's own loss
    here = np.minimum(rule.at(rows[one], levels[own[one]]).loss, cap)
    later, evaluations = np.zeros(one.size), one.size
    level = own[one] + 1
    alive = np.flatnonzero((level < ends.size) & (here > 0.0))
    while alive.size:
        # the next few steps of all who still sell, in one call
        block = max(1, min(64, (1 << 16) // alive.size))
        ahead = level[alive, None] + np.arange(block)[None, :]
        inside = ahead < ends.size
        at = np.minimum(ahead, ends.size - 1)
        loss = rule.at(np.repeat(rows[one[alive]], block), levels[at].ravel()).loss.reshape(at.shape)
        loss = np.where(inside, np.minimum(loss, cap), 0.0)
        later[alive] += (loss * widths[at - 1]).sum(axis=1)
        evaluations += loss.size
        level[alive] += block
        # losses fall with the step: after a zero there is nothing more
        alive = alive[(loss[:, -1] > 0.0) & (level[alive] < ends.size)]
    rest = np.maximum(ends[own] - bids, 0.0)
    # an infinite loss times no width is nothing
    own_part = np.where(rest > 0.0, rest * np.where(rest > 0.0, here[which], 0.0), 0.0)
    estimate = own_part + later[which]
    slack = ROUNDING * estimate
    return Rents(lower=estimate - slack, upper=estimate + slack, estimate=estimate, evaluations=evaluations)
