"""Price a population wherever it lives."""

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from hushbid.allocation import HardBudget
from hushbid.allocation.central_problem import countable
from hushbid.allocation.from_sums import SummedOptimum
from hushbid.common.staging import Staging
from hushbid.disclosure.promises import refuse_unreleasable
from hushbid.disclosure.sums import exact_total
from hushbid.engine.adapter import Batch, Engine, Frame
from hushbid.engine.checks import check_options, people_of, refuse_repeated_ids, refuse_rows
from hushbid.engine.decisions import Decider, FormulaKernel, Idle, LookupKernel
from hushbid.engine.ids import OverlapKernel
from hushbid.engine.opening import open_engine
from hushbid.engine.passes import Census, CensusKernel, SolvingPasses
from hushbid.engine.people import People, Progress, Run
from hushbid.engine.solve_few import MOST, cheapest_few_of_strata, price_cheapest, price_nobody
from hushbid.engine.solve_menu import SharedOut, solve_menu
from hushbid.errors import InputError, MarketError, OutputExists
from hushbid.mechanism import Figures, Market, Population
from hushbid.mechanism.figures import cap_cost
from hushbid.mechanism.impossible import refuse_without_sellers
from hushbid.mechanism.many import MANY, WINDOW, purchase_of
from hushbid.mechanism.rounding import refuse_rounding
from hushbid.mechanism.strata import refuse_empty
from hushbid.mechanism.summed import locate, solve
from hushbid.mechanism.survey import QuestionError
from hushbid.priors import Prior
from hushbid.priors.pilot import Pilot

Method = Literal["gathered", "summed", "nobody"]
GATHER = MANY
"""Up to so many people are priced on the driver one by one; more by sums and curves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary(Figures):
    """What was decided, in figures about the whole population, and how the engine found it."""

    dropped: int
    """How many rows were left out because they could not be priced."""

    schedule_error: float
    """How far payments may be from exact ones because they are read off a curve, in money: 0 if they are not."""

    method: Method
    """Whether those who matter were priced one by one on the driver, or by sums and curves."""

    passes: int
    """How often the rows were read to decide; pricing reads them once more."""

    total_payment: float | None = field(default=None, compare=False)
    """What everybody is paid together, in money; None for a table that is not in memory: `Priced.total_payment` reads
    it once more to know."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Priced:
    """A priced population. Confidential: a loss or a payment tells what was bid."""

    frame: Frame
    """The table with columns privacy_loss, weight and payment; of the input's kind, and lazy if it was."""

    summary: Summary
    """Figures about the whole population."""

    market: Market
    """The market as it was given; a budget paid in coins also states what is kept of it for rounding."""

    _population: Population
    _engine: Engine
    _kernel: Decider
    _drop: bool

    def total_payment(self) -> float:
        """What everybody is paid together, from one more pass; the same to the last bit on every engine."""
        # payments in whole steps of 2**-50 of the largest: integers add up the same in any order
        step = 2.0 ** (math.frexp(max(self._kernel.largest_payment, 1e-290))[1] - 50)
        total = self._engine.reduce(TallyKernel(self._kernel, step), 0)
        return total * step

    def question_errors(self) -> tuple[QuestionError, ...]:
        """How far the estimate of each question of a survey may be off; empty without questions."""
        return self.market.errors_of(self.summary, self._population)

    def write_parquet(self, path: str | Path, *, force: bool = False) -> None:
        """Price and write everybody; what is written takes its name only when it is complete."""
        if os.path.lexists(path) and not force:
            raise OutputExists(f"{str(path)!r} exists already; choose another name, or force.", field="path")
        with Staging(force=force) as files:
            files.make(path, lambda temporary: self.write(self.frame, temporary))

    def write(self, frame: Frame, place: str | Path) -> None:
        """Write a frame that was made of this table, where the table's engine writes."""
        self._engine.write(frame, str(place))

    def __repr__(self) -> str:
        return f"Priced({self.summary!r})"


@dataclass(frozen=True, slots=True)
class TallyKernel:
    """Payments in whole steps, rounded down."""

    kernel: Decider
    step: float

    @property
    def columns(self) -> list[str]:
        """What it reads."""
        return self.kernel.columns

    def __call__(self, batch: Batch, start: int | None) -> int:
        rows = self.kernel.people.read(batch)
        steps = np.floor(self.kernel.details(batch, rows).payment / self.step)
        if not np.abs(steps).max(initial=0.0) < 2.0**62:
            raise MarketError("A payment is too large to be added up.")
        return exact_total(steps.astype(np.int64))


def price(
    population: Any,
    market: Market,
    *,
    bid: str = "bid",
    id: str | None = "id",
    group: str | None = None,
    stratum: str | None = None,
    variance: str | None = None,
    limit: str | None = None,
    cap: str | None = None,
    engine: str = "auto",
    connection: Any = None,
    on_bad_rows: Literal["fail", "drop"] = "fail",
    check_ids: Literal["exact", "off"] = "off",
    tie_seed: bytes = b"",
    progress: Callable[[Progress], object] | None = None,
    gather: int = GATHER,
    window: int = WINDOW,
    accept_rounding: bool = False,
) -> Priced:
    """Decide how much privacy each person in a table gives up and what they are paid, wherever the table lives.

    Parameters
    ----------
    population
        A pandas frame, a Polars frame (lazy or not), a DuckDB relation, a Spark DataFrame, a ``pyarrow.Table``,
        anything else that speaks Arrow (priced as a ``pyarrow.Table``), or the path of a Parquet file or folder.
    market
        As in memory. For different priors by group, its prior is ``Grouped(priors, [])`` and ``group`` names the
        column of labels; for different variances (central), ``variance`` names a column, in data units. User weights
        are one number.
    stratum
        The column of everybody's public stratum, for a market with ``strata=[]`` and its ``shares`` or ``contrast``: a
        combination of stratum means with one noise.
    limit, cap
        The columns of the largest losses that people accept, stated beside their bids (central, without user
        weights), and of the largest that may be asked of each, which you set (central); nothing where there is none.
    bid, id
        The columns of bids and of ids. Ids are needed only where identity decides between equals.
    engine
        ``"auto"`` goes by what ``population`` is. For a path it may also be ``"memory"``, ``"polars"``, ``"duckdb"``,
        ``"spark"`` (the running session) or ``"spark:"`` and a master URL.
    connection
        The DuckDB connection that a relation belongs to, if it is not the default one.
    on_bad_rows
        What to do if a bid is missing, not a number, negative or below the support (or a label or variance is
        missing, or a limit negative): fail before anything is priced, or leave such rows out, also of the result.
    check_ids
        With ``"exact"``, fail if an id is missing or repeated.
    tie_seed
        Keys the hash of ids that decides between equals; without one it is the hash of `hushbid.allocation.tie_keys`.
    progress
        Called before every pass over the rows.
    gather, window
        Up to how many people are priced one by one on the driver, and taken there to finish the solution by sums.
    accept_rounding
        Price although rounding payments up to the coin of a `hushbid.Budget` is expected to take more than 5 % of it.

    >>> import pyarrow, hushbid.engine
    >>> market = Market(prior=_example_prior(), bounds=(0, 1), variance=0.25, buyer_weight=1, user_weight=1)
    >>> people = pyarrow.table({"id": ["a", "b", "c"], "bid": [1.1, 1.2, 1.9]})
    >>> priced = price(people, market)
    >>> [round(t, 3) for t in priced.frame["payment"].to_pylist()], priced.summary.active
    ([2.204, 1.469, 0.252], 2)
    >>> round(priced.summary.total_payment, 3)
    3.925
    """
    columns = {"bid": bid, "id": id, "group": group, "stratum": stratum}
    columns |= {"variance": variance, "limit": limit, "cap": cap}
    table = count(
        population,
        market,
        columns,
        engine=engine,
        connection=connection,
        on_bad_rows=on_bad_rows,
        check_ids=check_ids,
        tie_seed=tie_seed,
        progress=progress,
        window=window,
        accept_rounding=accept_rounding,
    )
    return table.price(gather=gather)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class CountedTable:
    """A table after the first pass: who is in it, with nothing decided yet."""

    market: Market
    """The market for the people who were asked; a budget paid in coins also states what is kept of it for rounding."""

    _population: Population
    _run: Run
    _census: Census

    @property
    def people(self) -> int:
        """How many people can be priced."""
        return self._census.people

    @property
    def dropped(self) -> int:
        """How many rows are left out because they cannot be priced."""
        return self._census.bad

    @property
    def passes(self) -> int:
        """How often the rows were read so far."""
        return self._run.passes

    @property
    def _engine(self) -> Engine:
        return self._run.engine

    def overlap(self, pilots: Iterable[Pilot]) -> int:
        """Return how many people took part in any of these pilots, from one more pass that hashes every id."""
        id = self._run.people.id
        if id is None:
            raise InputError("id must name a column: by their ids people of a pilot are recognised.", field="id")
        return self._engine.reduce(OverlapKernel(id, tuple(pilots)), 0)

    def price(self, *, gather: int = GATHER) -> Priced:
        """Decide about everybody; the rows are read once more when the frame of the result is."""
        run, census = self._run, self._census
        kernel, summary = _decide(run, self._population, census, gather)
        if self.market.layout is not None and summary.active:
            refuse_unreleasable(summary.largest_privacy_loss, self.market.layout)
        priced = Priced(
            frame=run.engine.map(kernel, drop=census.bad > 0),
            summary=replace(summary, passes=run.passes, dropped=census.bad),
            market=self.market,
            _population=self._population,
            _engine=run.engine,
            _kernel=kernel,
            _drop=census.bad > 0,
        )
        if not run.engine.in_memory:
            return priced
        return replace(priced, summary=replace(priced.summary, total_payment=priced.total_payment()))


def count(
    population: Any,
    market: Market,
    columns: Mapping[str, str | None],
    *,
    engine: str = "auto",
    connection: Any = None,
    on_bad_rows: Literal["fail", "drop"] = "fail",
    check_ids: Literal["exact", "off"] = "off",
    tie_seed: bytes = b"",
    progress: Callable[[Progress], object] | None = None,
    window: int = WINDOW,
    accept_rounding: bool = False,
) -> CountedTable:
    """Open a table and read it once: refuse rows that cannot be priced, and count the others.

    ``columns`` name what `price` calls bid, id, group, stratum, variance, limit and cap; so do the other arguments.
    """
    check_options(market, on_bad_rows, check_ids, columns)
    opened = open_engine(population, engine, connection=connection)
    people = people_of(market, opened, columns, tie_seed=tie_seed)
    run = Run(engine=opened, people=people, window=window, tell=progress)
    census = run.reduce("counting and bounding", CensusKernel(people), Census())  # pass 1
    refuse_rows(run, census, on_bad_rows)
    # rounding is reserved for all who were asked: every row, also those that cannot be priced
    roster = census.rows if market.keeps_for_rounding else None
    counted = _counted(market, people, census, roster)
    refuse_rounding(counted.stated, counted.roster, accepted=accept_rounding)
    if check_ids == "exact":
        refuse_repeated_ids(run, census)
    asked = market if market.strata is not None else market.with_roster(roster)
    return CountedTable(market=asked.with_reserve(counted), _population=counted, _run=run, _census=census)


def _counted(market: Market, people: People, census: Census, roster: int | None) -> Population:
    """The market for everybody who can be priced; variances of a column have a mean of their own."""
    counts = [one.people for one in census.parts]
    if market.strata is not None:
        refuse_empty("shares" if market.contrast is None else "contrast", people.strata, counts)
    counted = market.for_count(
        census.people,
        counts if market.strata is not None else None,
        roster=roster,
        counted=tuple(tuple(one.sizes.get(code, 0) for code in range(len(people.priors))) for one in census.parts),
        limits=people.limit is not None,
    )
    if people.variance is None:
        return counted
    # what rounding takes goes by everybody's mean variance
    reserved = replace(counted, own_error=census.mean_variance, goal=market.stated_goal).goal
    counted = replace(counted, goal=reserved)
    if market.max_correlation == 0.0:
        return counted
    if market.roster not in (None, census.people):
        raise InputError(
            f"variance must be one number for all, or known for each of the population of {market.roster}, with"
            f" max_correlation={market.max_correlation:g}, got {census.people}: the protection rests on everybody's.",
            field="variance",
        )
    return replace(counted, bias=market.max_correlation**2 * census.mean_variance / counted.unit)


def _decide(run: Run, population: Population, census: Census, gather: int) -> tuple[Decider, Summary]:
    """Choose a way to solve: sums for many, one by one for few and for what sums cannot do."""
    refuse_without_sellers(population, np.array([one.histogram.people for one in census.parts]))
    if census.finite == 0:
        return price_nobody(run, population), _summary(population, census, "nobody")
    if population.hard_budget is not None:  # everybody shares in it
        return _shared_out(run, population, population.hard_budget, census, gather)
    if population.setting.sends_messages:  # the cheapest few √n
        cuts, most = cheapest_few_of_strata(population, census)
        return _gathered(run, population, census, cuts, most)
    least_cap = min(population.largest_cap, census.lowest_limit)
    if least_cap < math.inf and census.people <= gather:
        return _everybody(run, population, census)
    variance = _planned_variances(run, population, census)
    # by sums if many are below the bracket's top, else one by one
    located = locate(population, census.parts, variance=variance)
    if run.people.variance is None and min(one.found.below for one in located) > gather:
        solved = solve(located, census.parts, SolvingPasses(run))
        if solved is not None and (least_cap == math.inf or solved[0].bracket.most_lost < least_cap):
            return _summed(run, population, census, solved)
    if least_cap < math.inf:  # where a limit binds, it makes room for the dearest
        return _everybody(run, population, census)
    return _one_by_one(run, population, census, located[0].cuts)


def _summed(
    run: Run, population: Population, census: Census, solved: Sequence[SummedOptimum]
) -> tuple[FormulaKernel, Summary]:
    """Losses by formula, rents by curves."""
    purchase = purchase_of(population, census.parts, run.people.prior_list, solved)
    refuse_unreleasable(purchase.largest_loss)
    idle = Idle(
        user_weight=float(population.user_weight),
        mse=purchase.mse,
        outside=purchase.outside,
        largest_outside=purchase.outside,
    )
    summary = _summary(
        population,
        census,
        "summed",
        active=purchase.active,
        mse=purchase.mse,
        worst_mse=purchase.worst_mse,
        objective=purchase.objective,
        lower_bound=purchase.lower_bound,
        largest_privacy_loss=purchase.largest_loss,
        total_privacy_loss=purchase.loss_per_share,
        squared_weights=purchase.squared_weights,
        schedule_error=purchase.schedule_error,
        incentive_error=2.0 * (purchase.schedule_error + purchase.rent_error),
    )
    return FormulaKernel(people=run.people, idle=idle, purchase=purchase), summary


def _planned_variances(run: Run, population: Population, census: Census) -> tuple[float, float]:
    """The smallest and the largest variance that the purchase is planned with, on a range of width 1."""
    if run.people.variance is None:
        return float(population.variance), float(population.variance)
    smallest, largest = countable(np.array(census.variance) / population.unit).tolist()
    more = population.roster * population.bias
    return smallest + more, largest + more


def _shared_out(
    run: Run, population: Population, goal: HardBudget, census: Census, gather: int
) -> tuple[Decider, Summary]:
    """A hard budget: by sums if people are many, if it is one central mean and neither limits nor variances differ."""
    one_mean = population.strata is None and not population.setting.sends_messages
    if one_mean and census.people > gather and run.people.variance is None:
        found = solve_menu(run, population, goal, census)
        if found is not None:
            return found.kernel, _summary_of_menu(population, census, found)
    return _everybody(run, population, census)


def _summary_of_menu(population: Population, census: Census, found: SharedOut) -> Summary:
    used, variance = found.used, float(population.variance)
    squared_weights = used.squares / used.total**2
    worst = population.worst_error(2.0 / used.total**2 + variance * squared_weights) * population.unit
    own = float(population.own_error) / population.unit
    mse = worst if population.bias == 0.0 else (2.0 / used.total**2 + own * squared_weights) * population.unit
    return _summary(
        population,
        census,
        "summed",
        active=found.promised.losses.count,
        mse=mse,
        worst_mse=worst,
        objective=worst,
        lower_bound=min(found.lower_bound, worst),
        largest_privacy_loss=found.promised.largest_loss,
        total_privacy_loss=float(found.promised.losses.about(0.0)[0]),
        squared_weights=squared_weights,
        incentive_error=2.0 * found.promised.error,
    )


def _everybody(run: Run, population: Population, census: Census) -> tuple[LookupKernel, Summary]:
    if census.people > MOST:
        what = "variances of their own make" if run.people.variance is not None else "a cap on privacy losses makes"
        what = "limits on privacy losses make" if run.people.limited else what
        what = "a hard budget makes" if population.hard_budget is not None and not population.has_caps else what
        raise MarketError(
            f"{census.people} people could matter, more than the {MOST} that can be priced one by one, as {what}"
            " everybody count: state another goal, or invite fewer people."
        )
    return _gathered(run, population, census, (math.inf,) * len(census.parts), census.people)


def _one_by_one(
    run: Run, population: Population, census: Census, cuts: tuple[float, ...]
) -> tuple[LookupKernel, Summary]:
    """Everybody up to the cut of each stratum, if the driver takes so many."""
    below = sum(one.histogram.below(cut) for one, cut in zip(census.parts, cuts, strict=True))
    if below > MOST:
        raise MarketError(
            f"{below} people could matter, more than the {MOST} that can be priced one by one, and sums cannot tell the"
            " optimum apart: state one variance for all or a smaller error weight, or invite fewer people of a stratum"
            " that has far more than the others."
        )
    return _gathered(run, population, census, cuts, MOST)


def _gathered(
    run: Run, population: Population, census: Census, cuts: tuple[float, ...], most: int
) -> tuple[LookupKernel, Summary]:
    priced = price_cheapest(run, population, census, cuts, most=most)
    few, made = priced.population, priced.decision
    # the few stand for everybody: only their number is not the population's
    bound = few.lower_bound(made.virtual_costs, made.privacy_loss)
    figures = Figures.of(few.setting.name, made, lower_bound=bound, cap_cost=cap_cost(few, made))
    return priced.kernel, _summary(population, census, "gathered", **asdict(figures))


def _summary(population: Population, census: Census, method: Method, **figures: Any) -> Summary:
    """Figures of what was decided; those that are not stated are of nobody who is bought from."""
    infinite = dict.fromkeys(("mse", "worst_mse", "objective", "lower_bound"), math.inf)
    nothing = ("active", "cap_cost", "largest_privacy_loss", "total_privacy_loss", "squared_weights", "incentive_error")
    stated: dict[str, Any] = {**infinite, **dict.fromkeys(nothing, 0), "schedule_error": 0.0, "passes": 1, **figures}
    stated |= {"setting": population.setting.name, "people": census.people, "dropped": census.bad}
    return Summary(**stated, method=method)


def _example_prior() -> Prior:
    from hushbid.priors import Uniform

    return Uniform(1, 2)
