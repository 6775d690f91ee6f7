"""The shared menu of a hard budget once more, for verification: offers, payments and shares by quadrature.

What is offered at a virtual cost ``x`` has one number for each stratum, a water level or a price of precision, that
public facts fix (docs/concepts/purchase.md). The mechanism integrates over virtual costs; here the expectations are
integrals over *ranks*, of ``ψ`` at the quantile ``p``, which polynomials give on small intervals. What the menu pays,
``t₀(c) = c·ε₀(c) + ∫ from c of ε₀``, is integrated over bids, from one person's to the next. Shares
``s_i = (B_g − υ·m_i)/(t₀^max_i + Σ_{j≠i} t₀(c_j))`` within each stratum follow.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from hushbid.common.arrays import FloatArray, IndexArray
from hushbid.priors import Prior
from hushbid.verification.local_curve import PrecisionCurve
from hushbid.verification.quadrature import is_step_function
from hushbid.verification.work import Answers, WorkExceeded

_POINTS, _WEIGHTS = (np.asarray(part, dtype=np.float64) for part in np.polynomial.legendre.leggauss(10))
_FIT = np.linalg.inv(np.polynomial.legendre.legvander(_POINTS, _POINTS.size - 1))
_ROUNDS = 45
_FINE, _SMOOTH = 1e-13, 1e-9
_TAIL = 24
"""Closer to 1 than two to minus this, ranks have too few digits."""

_MOST_HALVED = 4096
_MOST_INTERVALS = 200_000
_BELOW = 1.0 - 1e-9
_SELLERS, _OF_FEW = 3.0, 0.95
_TOP = 1.0 - 2.0**-20
_FAR, _NARROW = 1e-6, 1e-9
_MOST_SUPPLIED = 1e-12
"""What is at least missing of a datum's precision, whatever is offered locally."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A loss for each virtual cost, in the unit that everybody has a multiple of."""

    number: float
    curve: PrecisionCurve | None
    most: float

    @property
    def end(self) -> float:
        """Nothing is bought at a higher virtual cost."""
        if self.curve is None:
            return self.number
        useful = min(self.curve.most_useful, self.most)
        return self.number * self.curve.precision(useful) / useful

    @property
    def bend(self) -> float:
        """The loss is the most up to this virtual cost."""
        if self.curve is None:
            return self.number - self.most
        if self.most <= self.curve.most_useful:
            return self.end
        slope = 1.0 / float(self.curve.price_of_last(np.array([self.curve.precision(self.most)]))[0])
        return self.number * slope

    def loss(self, costs: FloatArray) -> FloatArray:
        """The loss at each virtual cost."""
        if self.curve is None:
            return np.clip(self.number - costs, 0.0, self.most)
        bought = costs <= self.end
        ratio = np.where(bought, costs, 0.0) / self.number
        with np.errstate(divide="ignore", invalid="ignore"):
            high = np.where(ratio > 0.0, self.curve.loss(self.curve.short_at(np.maximum(ratio, 1e-300))), math.inf)
        return np.where(bought, np.minimum(high, self.most), 0.0)

    def supply(self, costs: FloatArray) -> FloatArray:
        """What that brings the estimate."""
        loss = self.loss(costs)
        if self.curve is None:
            return loss
        return np.where(loss > 0.0, 1.0 / self.curve.error(np.where(loss > 0.0, loss, 1.0)), 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class SharedRule:
    """What is bought from one person at any virtual cost of hers: her share does not depend on it."""

    menu: "MenuFound"
    strength: FloatArray
    """What of the offer's loss everybody gets."""

    limit: FloatArray
    """What everybody may lose at most: it takes effect after sharing."""

    costs: FloatArray
    """Everybody's virtual cost as bid."""

    def at(self, rows: IndexArray, costs: FloatArray) -> Answers:
        """The loss of person ``rows[j]`` at cost ``costs[j]``; there is neither an objective nor an error to it."""
        loss = np.minimum(self.strength[rows] * self.menu.offered(rows, costs), self.limit[rows])
        nothing = np.full(rows.size, math.nan)
        return Answers(loss, nothing, nothing)

    def everybody(self, row: int, cost: float) -> tuple[FloatArray, float, float]:
        """All losses if person ``row`` had that cost, which moves hers alone; neither an error nor an objective."""
        costs = self.costs.copy()
        costs[row] = cost
        return self.at(np.arange(costs.size), costs).loss, math.nan, math.nan


@dataclass(frozen=True, slots=True, eq=False)
class MenuFound:
    """The menu and everybody's share in it."""

    offers: tuple[Offer, ...]
    """Of each stratum."""

    codes: IndexArray
    """Everybody's stratum."""

    share: FloatArray
    strength: FloatArray
    """What an offer's loss is multiplied by for each person, before it is shared."""

    most: FloatArray
    """What each person's share of the menu pays at the lowest bid."""

    known: bool
    """Whether the numbers of the offers are known to the digits that are compared: not in the far tail of a prior, nor
    under caps that are next to nothing beside them."""

    def offered(self, rows: IndexArray, costs: FloatArray) -> FloatArray:
        """The offer's loss of some people at these virtual costs."""
        loss, codes = np.zeros(costs.size), self.codes[rows]
        for code, offer in enumerate(self.offers):
            loss[codes == code] = offer.loss(costs[codes == code])
        return loss


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MenuCase:
    """What a menu follows from."""

    groups: Sequence[tuple[Prior, IndexArray]]
    codes: IndexArray
    sizes: FloatArray
    bids: FloatArray
    costs: FloatArray
    variance: FloatArray
    amount: float
    coin: float
    cap: float
    """One for all, infinite if there is none such."""

    curve: PrecisionCurve | None
    """The noise that people add themselves; None if it is added once."""


def shared_menu(case: MenuCase) -> MenuFound:
    """The menu for these people, and the shares that their bids leave each of them."""
    local, groups, codes = case.curve is not None, case.groups, case.codes
    strength = 1.0 / np.sqrt(case.variance) if local else 2.0 / case.variance / case.amount
    one = np.unique(case.variance).size == 1
    planning = _Planning(
        [[(prior, rows[codes[rows] == code]) for prior, rows in groups] for code in range(case.sizes.size)],
        case.sizes,
        np.ones(codes.size) if local else 1.0 / case.variance,
        case.amount * math.sqrt(float(case.variance[0])) if local else 0.5 * case.amount**2,
        case.cap / float(strength[0]) if one else math.inf,
        case.curve,
    )
    offers, parts = planning.found()
    paid, most = np.zeros(codes.size), np.zeros(codes.size)
    for code, offer in enumerate(offers):
        for prior, members in groups:
            rows = members[codes[members] == code]
            if rows.size:
                paid[rows], most[rows] = _listed(prior, offer, case.bids[rows], case.costs[rows])
    paid, most = strength * paid, strength * most
    share = np.zeros(codes.size)
    left = case.amount - case.coin * codes.size
    for code, part in enumerate(parts):
        rows = codes == code
        # a coin for everybody else who is paid, and one for herself
        coins = 1.0 + np.count_nonzero(paid[rows]) - (paid[rows] > 0.0)
        others = most[rows] + (math.fsum(paid[rows]) - paid[rows])
        amount = case.coin * np.count_nonzero(rows) + part * left
        with np.errstate(divide="ignore", invalid="ignore"):
            share[rows] = np.where(others > 0.0, np.maximum(amount - case.coin * coins, 0.0) / others, 1.0)
    return MenuFound(offers, codes, share, strength, share * most, planning.known(offers))


def _listed(prior: Prior, offer: Offer, bids: FloatArray, costs: FloatArray) -> tuple[FloatArray, float]:
    """What an offer pays at each bid, and at the lowest that there is."""
    lowest = prior.smallest_bid
    places = np.append(bids, lowest)
    loss = offer.loss(np.append(costs, float(prior.virtual_cost(lowest))))
    sold = loss > 0.0
    amounts = np.zeros(places.size)
    if sold.any():
        amounts[sold] = places[sold] * loss[sold] + _rents(prior, offer, places[sold])
    return amounts[:-1], float(amounts[-1])


# -- the numbers of the strata -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Planning:
    """From public facts to offers."""

    strata: list[list[tuple[Prior, IndexArray]]]
    sizes: FloatArray
    counts: FloatArray
    amount: float
    most: float
    curve: PrecisionCurve | None

    def offer(self, number: float) -> Offer:
        if self.curve is None:
            return Offer(number, None, self.most)
        return Offer(number, self.curve, min(self.most, float(self.curve.loss(np.array([_MOST_SUPPLIED]))[0])))

    def mean(self, stratum: int, number: float, *, paid: bool) -> float:
        """What a stratum's offer costs on average, or what it brings."""
        offer = self.offer(number)
        return math.fsum(
            math.fsum(self.counts[rows]) * _mean(prior, offer, paid=paid)
            for prior, rows in self.strata[stratum]
            if rows.size
        )

    def balance(self, stratum: int, number: float) -> float:
        """What is the same in all strata."""
        factor = 1.0 if self.curve is None else math.sqrt(number)
        return factor * self.mean(stratum, number, paid=False) / float(self.sizes[stratum])

    def full(self, stratum: int) -> float:
        """The number at which the dearest person is offered their cap."""
        if self.most == math.inf:
            return 1e300
        tops = [
            float(prior.virtual_cost(prior.support[1] if prior.support[1] < math.inf else prior.quantile(_TOP)))
            for prior, rows in self.strata[stratum]
            if rows.size
        ]
        return max(tops) + self.most if self.curve is None else max(tops) / self.offer(1.0).bend

    def enough(self, stratum: int) -> float:
        """The number at which some sellers are expected; none are asked for where there is one central mean."""
        if self.curve is None and len(self.strata) == 1:
            return 0.0
        kinds = [(prior, rows.size) for prior, rows in self.strata[stratum] if rows.size]
        wanted = min(_SELLERS, _OF_FEW * sum(size for _, size in kinds))

        def sellers(number: float) -> float:
            end = self.offer(number).end
            return math.fsum(size * _chance(prior, end) for prior, size in kinds)

        return _crossing(sellers, wanted, 1e300) / _BELOW

    def known(self, offers: tuple[Offer, ...]) -> bool:
        """Return whether the offers' numbers are known to the digits that are compared."""
        priors = [[prior for prior, rows in kinds if rows.size] for kinds in self.strata]
        tails = [
            1.0 - _chance(prior, offer.end)
            for offer, some in zip(offers, priors, strict=True)
            for prior in some
            if prior.support[1] == math.inf
        ]
        narrow = self.curve is None and any(offer.most < _NARROW * offer.number for offer in offers)
        return min(tails, default=1.0) > _FAR and not narrow

    def found(self) -> tuple[tuple[Offer, ...], list[float]]:
        """The offers, and each stratum's part of the budget."""
        strata = range(len(self.strata))
        full = [self.full(code) for code in strata]
        people = [
            sum(math.fsum(self.counts[rows]) for _, rows in kinds) / size
            for kinds, size in zip(self.strata, self.sizes, strict=True)
        ]
        first = int(np.argmax(people)) if self.most < math.inf else 0
        lower = 1.0 if self.curve is None else _BELOW

        def numbers(number: float) -> list[float]:
            if len(self.strata) == 1:
                return [number]
            same = self.balance(first, number)
            return [
                number
                if code == first
                else lower * _crossing(lambda one, code=code: self.balance(code, one), same, full[code])  # type: ignore[misc]
                for code in strata
            ]

        def expense(number: float) -> float:
            return math.fsum(self.mean(code, one, paid=True) for code, one in enumerate(numbers(number)))

        found = numbers(lower * _crossing(expense, self.amount, full[first]))
        spent = [self.mean(code, one, paid=True) for code, one in enumerate(found)]
        offers = tuple(self.offer(max(one, self.enough(code))) for code, one in enumerate(found))
        if not any(spent):  # all that is bought is free
            spent = [sum(rows.size for _, rows in kinds) for kinds in self.strata]
        return offers, [one / math.fsum(spent) for one in spent]


def _crossing(function: Callable[[float], float], wanted: float, most: float) -> float:
    """Where a nondecreasing function reaches what is wanted: by false position on logarithms, and by halving."""
    if most < 1e300 and function(most) < wanted:
        return most
    low, high = min(1.0, most), min(1.0, most)
    while function(low) >= wanted and low > 1e-280:
        high, low = low, low / 4.0
    while function(high) < wanted and high < most:
        low, high = high, min(4.0 * high, most)
    below, above = function(low) - wanted, function(high) - wanted
    if not below < 0.0 <= above:
        return low if below >= 0.0 else high
    for step in range(400):
        middle = high - above * (high - low) / (above - below)
        if step % 3 == 2 or not low < middle < high:  # false position may rest on an end that is all but the root
            middle = 0.5 * (low + high)
        if not low < middle < high or high - low <= 1e-14 * high:
            break
        value = function(middle) - wanted
        if value >= 0.0:
            high, above, below = middle, value, 0.5 * below
        else:
            low, below, above = middle, value, 0.5 * above
    return high


def _chance(prior: Prior, cost: float) -> float:
    """How likely a virtual cost of at most this is."""
    if not is_step_function(prior):
        return _Ranks.of(prior).rank(cost)
    ends = [right for _, right, step in prior.flat_parts if step <= cost]
    return float(prior.cdf(ends[-1])) if ends else 0.0


# -- expectations over ranks -------------------------------------------------------------------------------------------


def _mean(prior: Prior, offer: Offer, *, paid: bool) -> float:
    """``E[ψ·ε₀]`` or the expected supply."""

    def at(cost: FloatArray) -> FloatArray:
        if not paid:
            return offer.supply(cost)
        return np.where(cost > 0.0, cost, 0.0) * np.where(cost > 0.0, offer.loss(cost), 0.0)

    if is_step_function(prior):
        ends = np.array([right for _, right, _ in prior.flat_parts])
        cost = np.array([step for *_, step in prior.flat_parts])
        return math.fsum(np.diff(np.asarray(prior.cdf(ends)), prepend=0.0) * at(cost))
    return _Ranks.of(prior).integral(at, offer.bend, offer.end)


@dataclass(frozen=True, slots=True, eq=False)
class _Ranks:
    """``ψ`` as a function of the rank: a polynomial on each of small intervals."""

    prior: Prior
    edges: FloatArray
    polynomials: FloatArray
    tops: FloatArray
    """``ψ`` at the right end of each interval."""

    @staticmethod
    @lru_cache(maxsize=64)
    def of(prior: Prior) -> "_Ranks":
        """Those of a prior: intervals in halves until these have the same polynomial."""
        flats = np.array([place for part in prior.flat_parts for place in part[:2]])
        halvings = 0.5 ** np.arange(1.0, 60.0)
        inner = np.asarray(prior.cdf(flats)) if flats.size else np.zeros(0)
        edges = np.unique(np.concatenate([[0.0], halvings, 1.0 - halvings[:_TAIL], inner[inner < 1.0], [1.0]]))
        edges = edges[edges <= 1.0 - halvings[_TAIL - 1]] if prior.support[1] == math.inf else edges

        def costs(left: FloatArray, right: FloatArray) -> FloatArray:
            points = 0.5 * (left + right)[:, None] + 0.5 * (right - left)[:, None] * _POINTS
            ranks = np.asarray(prior.quantile(points.ravel()))
            return np.asarray(prior.virtual_cost(ranks)).reshape(points.shape)

        left, right = edges[:-1], edges[1:]
        done: list[tuple[FloatArray, FloatArray, FloatArray]] = []
        for round_ in range(_ROUNDS):
            whole, middle = costs(left, right), 0.5 * (left + right)
            inside = np.polynomial.legendre.legval(0.5 * (_POINTS - 1.0), (whole @ _FIT.T).T)
            off = np.abs(inside - costs(left, middle)).max(axis=1) > _SMOOTH * np.abs(whole).max(axis=1)
            go = off & (right - left > 1e-13) & (round_ < _ROUNDS - 1)
            go &= np.count_nonzero(go) <= _MOST_HALVED
            done.append((left[~go], right[~go], whole[~go]))
            left, right = np.append(left[go], middle[go]), np.append(middle[go], right[go])
            if not left.size:
                break
        starts = np.concatenate([one for one, _, _ in done])
        order = np.argsort(starts, kind="stable")
        whole = np.concatenate([one for _, _, one in done])[order]
        polynomials = (whole @ _FIT.T).T
        return _Ranks(prior, np.append(starts[order], edges[-1]), polynomials, polynomials.sum(axis=0))

    def rank(self, cost: float) -> float:
        """The rank up to which people have at most this virtual cost."""
        cell = int(np.searchsorted(np.maximum.accumulate(self.tops), cost, side="right"))
        if cell >= self.tops.size:
            return float(self.edges[-1])
        low, high = -1.0, 1.0
        for _ in range(50):
            middle = 0.5 * (low + high)
            above = float(np.polynomial.legendre.legval(middle, self.polynomials[:, cell])) > cost
            low, high = (low, middle) if above else (middle, high)
        return float(self.edges[cell] + 0.5 * (1.0 + low) * (self.edges[cell + 1] - self.edges[cell]))

    def integral(self, function: Callable[[FloatArray], FloatArray], bend: float, end: float) -> float:
        """The integral of a function of ``ψ`` up to a virtual cost, with a kink at another."""
        last = self.rank(end)
        beyond = self._far_tail(function, bend, end) if last >= self.edges[-1] and self.edges[-1] < 1.0 else 0.0
        cuts = np.append(self.edges[self.edges < last], last)
        edges = np.unique(np.append(cuts, min(self.rank(bend), last) if bend > 0.0 else 0.0))
        half, cell = 0.5 * np.diff(edges), self.edges.searchsorted(edges[:-1], side="right") - 1
        points = (edges[:-1] + half)[:, None] + half[:, None] * _POINTS
        left, right = self.edges[cell][:, None], self.edges[cell + 1][:, None]
        place = (2.0 * points - left - right) / (right - left)
        costs = np.polynomial.legendre.legval(place.T, self.polynomials[:, cell], tensor=False).T
        values = function(np.asarray(costs, dtype=np.float64).ravel()).reshape(points.shape)
        return beyond + float((half[:, None] * values * _WEIGHTS).sum())

    def _far_tail(self, function: Callable[[FloatArray], FloatArray], bend: float, end: float) -> float:
        """The same from the last rank on, over bids and by their density: ranks have no digits there."""
        first, last = float(self.prior.quantile(self.edges[-1])), _end(self.prior, end)
        if not first < last:
            return 0.0
        kink = np.clip(_end(self.prior, bend) if bend > self.tops[-1] else first, first, last)
        edges = np.unique(np.append(np.geomspace(first, last, 33), [first, kink, last]))
        edges = edges[(edges >= first) & (edges <= last)]
        density = self.prior.pdf
        return math.fsum(
            _areas(lambda z: np.asarray(density(z)) * function(np.asarray(self.prior.virtual_cost(z))), edges)
        )


# -- what an offer pays ------------------------------------------------------------------------------------------------


def _rents(prior: Prior, offer: Offer, bids: FloatArray) -> FloatArray:
    """The integral of the loss over higher bids, for every bid: sums of the areas from one bid to the next."""
    end = _end(prior, offer.end)
    flats = np.array([place for part in prior.flat_parts for place in part[:2]])
    wide = np.linspace(float(bids.min(initial=end)), end, 65)
    low = float(bids.min(initial=end))
    near = low + (end - low) * 0.5 ** np.arange(50.0)  # what costs next to nothing may be lost nearly without end
    edges = np.unique(np.concatenate([bids[bids < end], flats[flats > low], wide, near]))
    edges = edges[edges <= end]
    area = _areas(lambda z: offer.loss(np.asarray(prior.virtual_cost(np.maximum(z, low)))), edges)
    beyond = np.append(area[::-1].cumsum()[::-1], 0.0)
    return np.asarray(beyond[np.minimum(edges.searchsorted(bids), edges.size - 1)])


def _end(prior: Prior, level: float) -> float:
    """The largest bid at which the menu still buys: bisection on the virtual cost."""
    low, high = prior.smallest_bid, prior.support[1]
    if high == math.inf:
        high = float(prior.quantile(0.5))
        while float(prior.virtual_cost(high)) < level:
            high *= 2.0
    if float(prior.virtual_cost(high)) < level:
        return high
    for _ in range(200):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        low, high = (middle, high) if float(prior.virtual_cost(middle)) < level else (low, middle)
    return high


def _areas(function: Callable[[FloatArray], FloatArray], edges: FloatArray) -> FloatArray:
    """The integral over each interval between two edges; cut in halves where those say something else."""

    def rule(left: FloatArray, right: FloatArray) -> FloatArray:
        half = 0.5 * (right - left)
        points = (0.5 * (left + right))[:, None] + half[:, None] * _POINTS[None, :]
        return np.asarray(half * (function(points.ravel()).reshape(points.shape) @ _WEIGHTS))

    left, right = edges[:-1], edges[1:]
    home, whole = np.arange(left.size), rule(left, right)
    found, total = np.zeros(left.size), float(np.abs(whole).sum())
    for round_ in range(_ROUNDS):
        middle = 0.5 * (left + right)
        halves = rule(left, middle), rule(middle, right)
        off = np.abs(halves[0] + halves[1] - whole)
        done = (off <= _FINE * total) | (round_ == _ROUNDS - 1)
        found += np.bincount(home[done], (halves[0] + halves[1])[done], found.size)
        if done.all():
            break
        go = ~done
        if np.count_nonzero(go) > _MOST_INTERVALS:
            raise WorkExceeded("the most that a verification may compute is exceeded.")
        left, right = np.append(left[go], middle[go]), np.append(middle[go], right[go])
        home, whole = np.tile(home[go], 2), np.append(halves[0][go], halves[1][go])
    return found
