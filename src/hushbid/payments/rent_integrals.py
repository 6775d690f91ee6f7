"""The integral of one's privacy loss over higher bids, by the way that suits the rule and the prior."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushbid.common.arrays import FloatArray, IndexArray
from hushbid.errors import MarketError
from hushbid.payments.rent_bounds import Bounds, Enclosures, halved
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
    alike: NDArray[Any] | None = None,
    paid_besides: FloatArray | None = None,
    tolerance: float = 1e-6,
    ladder: Ladder | None = None,
) -> Rents:
    """The rents of people ``rows``, who bid ``bids`` and share ``prior``.

    ``alike`` marks people who face the same rule if their bids are equal (so that equals are
    computed once). The enclosure's half-width is at most ``tolerance`` times the largest of ``paid_besides + rent``
    wherever ψ is smooth enough for it, and rounding allows it; the result says what was reached. A ``ladder`` from
    `ladder_up_to` saves making one.
    """
    if rows.size == 0:
        return Rents(lower=np.zeros(0), upper=np.zeros(0), estimate=np.zeros(0))
    # ψ a step function: a finite sum
    if prior.is_stepped:
        return _finite_sum(rule, prior.flat_parts, rows, bids, alike)
    besides = np.zeros(rows.size) if paid_besides is None else paid_besides
    # else by integration, once for all who have the same bid and face the same rule
    one, kind = (rows, rows) if prior.is_linear else _one_of_each(bids, alike)
    if one.size < rows.size:
        found = _by_integration(rule, prior, rows[one], bids[one], besides[one], tolerance, ladder)
        return Rents(
            lower=found.lower[kind],
            upper=found.upper[kind],
            estimate=found.estimate[kind],
        )
    return _by_integration(rule, prior, rows, bids, besides, tolerance, ladder)


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
    besides: FloatArray,
    tolerance: float,
    ladder: Ladder | None = None,
) -> Rents:
    """Integrate for each person, up to the top of the support or to where nothing is bought any more."""
    if prior.is_linear:
        ladder = Ladder.straight(prior, float(bids.min()))
    ladder = ladder or Ladder.reaching(rule, prior, rows, bids)
    found = Enclosures(rule, ladder, rows, bids, np.asarray(prior.virtual_cost(bids)))
    found.run(besides, tolerance)
    tail = tail_of(found.at_end, ladder, prior.support[1])
    for _ in range(_FINER):  # those for whom the table of ψ was too coarse
        wide = found.too_wide()
        if wide.size == 0 or ladder.linear or ladder.z.size > _MOST_NODES:
            break
        ladder = ladder.finer(prior)
        if not found.narrowed(wide, ladder):
            break
    bounds = Bounds(*found.sums)
    wide = found.too_wide()
    if wide.size:  # those whose values have too few digits

        def loss(who: IndexArray, z: FloatArray) -> FloatArray:
            return rule.at(rows[wide][who], np.asarray(prior.virtual_cost(z))).loss

        ends = np.stack([bids[wide], np.maximum(ladder.z[-1], bids[wide])])
        narrow, _ = halved(loss, np.arange(wide.size), ends, allowed=found.allowed)
        narrow = Bounds(*found.sums[:, wide]).intersected(narrow)
        bounds.lower[wide], bounds.upper[wide], bounds.estimate[wide] = narrow.lower, narrow.upper, narrow.estimate
    return Rents(lower=bounds.lower, upper=bounds.upper + tail, estimate=bounds.estimate + tail)


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
    z = np.append(z[z < top], top) if bid < top else np.array([bid, top])
    who, ends = np.zeros(z.size - 1, dtype=np.intp), np.stack([z[:-1], z[1:]])
    found, rises = halved(lambda _, at: loss(at), who, ends, share=tolerance, most=most_evaluations)
    if rises:
        raise MarketError("the rule is not monotone: raising a bid raises the privacy loss, so no payment is truthful.")
    return Rents(lower=found.lower, upper=found.upper, estimate=found.estimate)


def _finite_sum(
    rule: RuleWithPotential,
    steps: tuple[tuple[float, float, float], ...],
    rows: IndexArray,
    bids: FloatArray,
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
    here = rule.at(rows[one], levels[own[one]]).loss
    later = np.zeros(one.size)
    level = own[one] + 1
    alive = np.flatnonzero((level < ends.size) & (here > 0.0))
    while alive.size:
        # the next few steps of all who still sell, in one call
        block = max(1, min(64, (1 << 16) // alive.size))
        ahead = level[alive, None] + np.arange(block)[None, :]
        inside = ahead < ends.size
        at = np.minimum(ahead, ends.size - 1)
        loss = rule.at(np.repeat(rows[one[alive]], block), levels[at].ravel()).loss.reshape(at.shape)
        loss = np.where(inside, loss, 0.0)
        later[alive] += (loss * widths[at - 1]).sum(axis=1)
        level[alive] += block
        # losses fall with the step: after a zero there is nothing more
        alive = alive[(loss[:, -1] > 0.0) & (level[alive] < ends.size)]
    rest = np.maximum(ends[own] - bids, 0.0)
    # an infinite loss times no width is nothing
    own_part = np.where(rest > 0.0, rest * np.where(rest > 0.0, here[which], 0.0), 0.0)
    estimate = own_part + later[which]
    slack = ROUNDING * estimate
    return Rents(lower=estimate - slack, upper=estimate + slack, estimate=estimate)
