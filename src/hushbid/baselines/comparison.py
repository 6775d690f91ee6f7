"""What the same accuracy would have cost elsewhere, and what accuracy the same money would have bought.

`compare` runs our mechanism and every baseline on the same people: given bids, or several populations drawn from the
prior. Two questions are asked of each baseline:

1. *Same accuracy.* What would it have paid for our mean squared error?
2. *Same money.* What error would our total payment have bought from it?

A baseline is a family indexed by its error weight, how much it values accuracy; a larger one buys a smaller error for
more money. The weight is moved until the answer fits. Where a baseline's choice jumps (its number of sellers, say), the
last step is made by scaling its common loss, or, if it has none, stays on the side that is accurate enough or within
the money. With several populations, errors and payments are means over them. On one given population our mechanism need
not be the cheapest: it is optimal in expectation over the prior. And a baseline's weight is chosen here by looking at
the bids: this is hindsight, not a mechanism.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hushbid.allocation import Price
from hushbid.baselines.baseline import Baseline, common_variance, implied_weight
from hushbid.baselines.near_optimal import NearOptimal, Optimal
from hushbid.baselines.posted_price import PostedPrice
from hushbid.baselines.registry import BASELINES, every_baseline, refuse_no_baseline
from hushbid.common.arrays import FloatArray, Rng, as_count, as_floats, as_generator
from hushbid.common.numbers import people as so_many
from hushbid.common.numbers import table as columns
from hushbid.common.tables import Library, frame_of_rows
from hushbid.disclosure.error import FEWEST_IN_CHART
from hushbid.display import Table, card, pretty
from hushbid.errors import BidError, HushbidError, InputError, MarketError
from hushbid.languages import noted
from hushbid.mechanism import Market, Population

_HEAD = (
    "mechanism",
    "truthful",
    "voluntary",
    "standard error",
    "paid",
    "paid for our error",
    "error for our pay",
)

_CLOSE = 1e-7
"""How close, relatively, an error or a payment must come to ours."""

_FAR = 1e3
_REACH, _STEPS = 16.0, 30
_CLOSE_REACH, _CLOSE_STEPS = 2.0**0.25, 120
"""For the paper's estimators: because of their cap, the error can be least at some weight and rise again beyond."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonRow:
    """One mechanism in the comparison; money and squared data units."""

    name: str
    """What it is called."""

    truthful: bool
    """Whether it claims that the truth is everybody's best bid."""

    voluntary: bool
    """Whether it claims that nobody is worse off for joining."""

    mse: float
    """Its mean squared error, with its own parameters chosen for the prior, and for the price of the error at which our
    purchase would be chosen; at worst, where a relation is allowed for."""

    total_payment: float
    """What it pays in all."""

    cost: float | None
    """Buyer weight times error plus payments, what the platform minimises; None where the goal is not a price."""

    cost_error: float
    """Standard error of ``cost`` over the populations; 0 for one population."""

    payment_for_same_error: float
    """What it pays for our error; infinite if it cannot reach it."""

    error_for_same_payment: float
    """The mean squared error it reaches with our money; infinite if it cannot run on it."""

    note: str
    """What a reader should know about it; may be empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Our mechanism against every baseline on the same people."""

    market: Market
    """The market they compete in."""

    people: int
    """How many people there are."""

    populations: int
    """How many populations were looked at; 1 if bids were given."""

    bought_from: int
    """From how many people our mechanism buys, in the population in which it buys from the fewest."""

    ours: ComparisonRow
    """Our mechanism."""

    baselines: tuple[ComparisonRow, ...]
    """Everybody else."""

    def row(self, name: str) -> ComparisonRow:
        """The row of that name, ours included."""
        for row in (self.ours, *self.baselines):
            if row.name == name:
                return row
        raise InputError(f"no mechanism in this comparison is called {name!r}.")

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; what cannot be reached is None."""
        return {
            "people": self.people,
            "populations": self.populations,
            "rows": [
                {key: None if value == math.inf else value for key, value in asdict(row).items()}
                for row in (self.ours, *self.baselines)
            ],
        }

    def to_frame(self, library: Library | None = None) -> Any:
        """The comparison as a data frame, one row per mechanism, ours first; see `Outcome.to_frame` for ``library``."""
        heads = [one.name for one in fields(ComparisonRow)]
        rows = ([getattr(row, head) for head in heads] for row in (self.ours, *self.baselines))
        return frame_of_rows(heads, rows, library)

    def table(self) -> str:
        """The comparison as text, in columns."""
        return columns([_HEAD, *(_cells(row) for row in (self.ours, *self.baselines))], indent=0)

    @property
    def withheld(self) -> str:
        """Why it must not be shown to others: then it could tell what somebody bid. Empty if it may."""
        if self.populations > 1 or self.bought_from >= FEWEST_IN_CHART:
            return ""
        return (
            f"With fewer than {FEWEST_IN_CHART} people bought from, what others would pay could show what one of them"
            " bid."
        )

    def _repr_html_(self) -> str:
        title, of = "Other ways to buy", so_many(self.people)
        drawn = f"{self.populations} populations of {of}, drawn from the prior" if self.populations > 1 else of
        if self.withheld:
            return card(title, facts=[("Compared on", drawn)], notes=[self.withheld])
        rows = tuple(_cells(row) for row in (self.ours, *self.baselines))
        notes = [f"{row.name}: {row.note}" for row in self.baselines if row.note]
        return card(
            title, facts=[("Compared on", drawn)], tables=[Table(caption="", head=_HEAD, rows=rows)], notes=notes
        )

    _repr_pretty_ = pretty


def compare(
    market: Market,
    bids: ArrayLike | None = None,
    *,
    people: int | None = None,
    rng: Rng | None = None,
    populations: int = 20,
    baselines: Sequence[type[Baseline]] | None = None,
) -> Comparison:
    """Our mechanism and its baselines on given ``bids``, or on ``populations`` of ``people`` drawn from the prior.

    ``rng`` is a generator or a seed.

    Unless ``baselines`` names some, they are all of `BASELINES` and those of one's own that are registered.

    >>> from hushbid.priors import Uniform
    >>> market = Market(prior=Uniform(1, 2), user_weight=0.0, buyer_weight=10_000.0)
    >>> found = compare(market, np.linspace(1, 2, 50))
    >>> for row in found.baselines[2:5]:
    ...     print(f"{row.name}: {row.payment_for_same_error:.2f} instead of {found.ours.total_payment:.2f}")
    a posted price: 53.85 instead of 52.65
    a fixed-accuracy auction: 53.85 instead of 52.65
    the same loss for all: 53.85 instead of 52.65
    """
    if not isinstance(market, Market):
        raise InputError(f"market must be a Market, got {type(market).__name__}.", field="market")
    if isinstance(baselines, str | type) or not (baselines is None or isinstance(baselines, Iterable)):
        raise InputError(f"baselines must be a list of subclasses of Baseline, got {baselines!r}.", field="baselines")
    kinds = every_baseline() if baselines is None else tuple(baselines)
    for kind in kinds:
        refuse_no_baseline(kind)
    population, drawn = _drawn(market, bids, people, rng, populations)
    # refused before anything is run
    common_variance(population)
    ours = _measure(Optimal(population=population), drawn)
    if not math.isfinite(ours.mse):
        raise MarketError(noted("nothing is bought from these people, so there is no accuracy to compare."))
    target = replace(
        _row(Optimal, population, ours), payment_for_same_error=ours.payment, error_for_same_payment=ours.mse
    )
    weight = implied_weight(population, drawn[0])
    found = []
    for kind in kinds:
        try:
            found.append(_compared(kind, population, drawn, ours, weight))
        except HushbidError:
            raise
        except Exception as problem:
            if kind in BASELINES:
                raise
            # only its type: what it says may hold a bid
            told = f"the baseline {kind.name!r} must not fail, but it raises {type(problem).__name__}."
            raise InputError(told, field="baselines") from problem
    return Comparison(
        market=market,
        people=population.people,
        populations=len(drawn),
        bought_from=ours.fewest,
        ours=target,
        baselines=tuple(found),
    )


@dataclass(frozen=True, slots=True)
class _Measured:
    """Means over the populations."""

    mse: float
    payment: float
    errors: FloatArray
    payments: FloatArray
    fewest: int
    """From how many is bought, where it is from the fewest."""


def _drawn(
    market: Market, bids: ArrayLike | None, people: int | None, rng: Rng | None, populations: int
) -> tuple[Population, list[FloatArray]]:
    """The people, and what they bid, once or in so many populations drawn from their priors."""
    if bids is not None:
        if people is not None or rng is not None:
            raise InputError("give bids, or people and rng, not both.")
        stated = np.atleast_1d(as_floats(bids, "bids", BidError))
        return market.for_people(stated.size), [stated]
    if people is None or rng is None:
        missing = "people" if people is None else "rng"
        raise InputError(f"without bids, people and rng are needed, got no {missing}.", field=missing)
    repetitions = as_count(populations, "populations", least=2)
    population = market.for_people(as_count(people, "people", least=1))
    generator = as_generator(rng)
    return population, [population.sample(generator) for _ in range(repetitions)]


def _measure(baseline: Baseline, populations: list[FloatArray]) -> _Measured:
    outcomes = [baseline.acquire(bids) for bids in populations]
    errors = np.array([outcome.mse for outcome in outcomes])
    payments = np.array([outcome.total_payment for outcome in outcomes])
    fewest = min(outcome.active for outcome in outcomes)
    return _Measured(float(errors.mean()), float(payments.mean()), errors, payments, fewest)


def _row(kind: type[Baseline], population: Population, found: _Measured | None, note: str = "") -> ComparisonRow:
    weight = population.buyer_weight
    costs = np.array([np.inf]) if found is None else weight * found.errors + found.payments
    finite = bool(np.isfinite(costs).all())
    priced = isinstance(population.goal, Price)
    return ComparisonRow(
        name=kind.name,
        truthful=kind.truthful,
        voluntary=kind.voluntary,
        mse=math.inf if found is None else found.mse,
        total_payment=math.inf if found is None else found.payment,
        cost=float(costs.mean()) if priced else None,
        cost_error=float(costs.std(ddof=1) / math.sqrt(costs.size)) if costs.size > 1 and finite else 0.0,
        payment_for_same_error=math.inf,
        error_for_same_payment=math.inf,
        note=note,
    )


class _Family:
    """The members of one kind of baseline by their error weight, each made and measured once."""

    def __init__(self, kind: type[Baseline], population: Population, populations: list[FloatArray]) -> None:
        self.kind, self.population, self.populations = kind, population, populations
        self._members: dict[float, Baseline] = {}
        self._measured: dict[int, tuple[Baseline, _Measured]] = {}  # the baseline too: an id is hers while she lives

    def __call__(self, weight: float) -> Baseline:
        if weight not in self._members:
            self._members[weight] = self.kind.best(self.population, error_weight=weight)
        return self._members[weight]

    def measured(self, baseline: Baseline) -> _Measured:
        if id(baseline) not in self._measured:
            self._measured[id(baseline)] = (baseline, _measure(baseline, self.populations))
        return self._measured[id(baseline)][1]


def _compared(
    kind: type[Baseline], population: Population, populations: list[FloatArray], ours: _Measured, weight: float
) -> ComparisonRow:
    family = _Family(kind, population, populations)
    try:
        baseline = family(weight)
    except MarketError as problem:
        return _row(kind, population, None, note=str(problem))
    found = family.measured(baseline)
    # whoever need not pay people has no family to move along
    if not kind.voluntary:
        row = _row(kind, population, found, note=noted("Nobody who minds would join."))
        reached = found.mse <= ours.mse
        return replace(
            row, payment_for_same_error=found.payment if reached else math.inf, error_for_same_payment=found.mse
        )
    # question 1, then question 2
    cheaper = _at_same_error(family, ours.mse, weight)
    richer = _at_same_payment(family, ours.payment, weight)
    nothing = isinstance(baseline, PostedPrice) and found.payment <= 1e-6 * abs(ours.payment)
    note = noted("Guessing the middle of the range beats every price.") if nothing else ""
    if cheaper is None and kind is NearOptimal:
        note = noted("Its cap on losses keeps the error above ours, however much is bought.")
    return replace(
        _row(kind, population, found, note=note),
        payment_for_same_error=math.inf if cheaper is None else family.measured(cheaper).payment,
        error_for_same_payment=math.inf if richer is None else family.measured(richer).mse,
    )


def _at_same_error(family: _Family, target: float, start: float) -> Baseline | None:
    """The baseline with the mean error ``target``, or less if it cannot do worse; None if it never gets that
    accurate."""
    population = family.population

    def missing(baseline: Baseline) -> float:
        planned = float(np.mean([baseline.error(bids.copy()) for bids in family.populations]))
        mean = (planned - population.bias) * population.unit
        if mean <= 0.0:
            return -_FAR
        return math.log(mean / target) if math.isfinite(mean) else _FAR

    reach = _CLOSE_REACH if family.kind is NearOptimal else _REACH
    found = _solve(family, missing, start, 0.0, enough=True, reach=reach)
    return None if found.missing > _CLOSE else found.baseline


def _at_same_payment(family: _Family, target: float, start: float) -> Baseline | None:
    """The baseline with the mean payment ``target``; None if it cannot pay so little."""

    def missing(baseline: Baseline) -> float:
        paid = family.measured(baseline).payment
        scale = max(abs(target), abs(paid))
        return _FAR if not math.isfinite(paid) else 0.0 if scale == 0 else (target - paid) / scale

    # with less the buyer would pay for a larger error
    least = family.population.total_weight - family.population.buyer_weight
    found = _solve(family, missing, start, least, enough=False)
    return None if found.missing < -_CLOSE else found.baseline


@dataclass(frozen=True, slots=True)
class _Found:
    baseline: Baseline | None
    missing: float


def _solve(
    family: Callable[[float], Baseline],
    missing: Callable[[Baseline], float],
    start: float,
    least: float,
    *,
    enough: bool,
    reach: float = _REACH,
) -> _Found:
    """The member of a family at which nothing is missing.

    ``missing`` falls as the error weight rises. Where even the least weight buys too much, that member is returned;
    where it jumps over zero, the member above the jump if it must be ``enough``, else the one below.
    """
    from scipy.optimize import brentq

    value = missing(family(start))
    if abs(value) <= _CLOSE:
        return _Found(family(start), value)
    # step 1: weights on either side
    ends = _bracket(family, missing, start, value, least, reach)
    if ends is None:
        return _Found(None, value)
    low, high = ends
    if low == high:
        return _Found(family(low), missing(family(low)))
    # step 2: where nothing is missing, or where it jumps over zero
    weight = math.exp(
        brentq(lambda x: missing(family(math.exp(x))), math.log(low), math.log(high), xtol=1e-9, rtol=1e-12)
    )
    baseline = family(weight)
    step = 4e-9
    while (
        isinstance(baseline, PostedPrice) and baseline.loss == 0.0 and step < 1.0
    ):  # offers something above this weight
        baseline, step = family(weight * (1.0 + step)), 2.0 * step
    value = missing(baseline)
    # step 3, over a jump: scale the common loss, if there is one
    if abs(value) > _CLOSE and baseline.scaled(1.0) is not None:
        common = baseline

        def scaled(factor: float) -> Baseline:
            return common.scaled(factor) or common

        if missing(scaled(1e-3)) > 0 > missing(scaled(1e3)):
            factor = brentq(lambda x: missing(scaled(math.exp(x))), math.log(1e-3), math.log(1e3), xtol=1e-10)
            baseline = scaled(math.exp(factor))
            value = missing(baseline)
    step = 4e-9
    # step 4, if that is not possible: to the side that was asked for
    while abs(value) > _CLOSE and (value > 0) == enough and step < 1.0:
        baseline = family(weight * (1.0 + step if enough else 1.0 - step))
        value, step = missing(baseline), 2.0 * step
    return _Found(baseline, value)


def _bracket(
    family: Callable[[float], Baseline],
    missing: Callable[[Baseline], float],
    start: float,
    value: float,
    least: float,
    reach: float,
) -> tuple[float, float] | None:
    """Two error weights, with too little and with too much bought; twice the least if that buys too much already."""
    floor = max(least, start * _REACH**-_STEPS)
    low = high = start
    # too much is bought: less weight, down to the least
    if value < 0:
        while missing(family(low)) < 0:
            if low <= floor:
                return low, low
            low, high = max(low / _REACH, floor), low
        return low, high
    # too little: more weight, until more of it changes nothing because everybody sells all that she may
    steps = _STEPS if reach == _REACH else _CLOSE_STEPS
    last = missing(family(start * reach**steps))
    for _ in range(steps):
        low, high = high, high * reach
        value = missing(family(high))
        if value <= 0:
            return low, high
        if value == last:
            break
    return None


def _cells(row: ComparisonRow) -> tuple[str, ...]:
    def shown(value: float, digits: int) -> str:
        return "-" if not math.isfinite(value) else f"{value:.{digits}g}"

    return (
        row.name,
        "yes" if row.truthful else "no",
        "yes" if row.voluntary else "no",
        shown(math.sqrt(row.mse), 3),
        shown(row.total_payment, 4),
        shown(row.payment_for_same_error, 4),
        shown(math.sqrt(row.error_for_same_payment), 3),
    )
