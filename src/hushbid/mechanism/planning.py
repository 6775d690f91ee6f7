"""What a campaign would come to, before anybody bids: with the goal as stated, with others, with more protection.

The figures with the goal as stated are simulated with payments. All that is compared with it are means over the same
draws, of which only virtual payments are needed (`hushbid.mechanism.simulation`). If price and datum are related
with strength g, whatever was allowed for, the error of the weights w is at most ``MSE + g²·V̄·(N·Σw² − 1)``.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from hushbid.allocation import Accuracy, Budget, Goal, HardBudget, Price
from hushbid.allocation.goals import name_of
from hushbid.common.arrays import FloatArray, as_count, as_number
from hushbid.common.numbers import figure, people, table
from hushbid.common.tables import Library, frame_of_rows
from hushbid.display import pretty
from hushbid.errors import InputError, MarketError, Unreachable
from hushbid.mechanism.population import Population
from hushbid.mechanism.protection import RELATIONS, Protection, protected
from hushbid.mechanism.setting import CENTRAL
from hushbid.mechanism.shared_menu import people_paid_in_coins
from hushbid.mechanism.simulation import (
    FEWEST,
    Estimate,
    Progress,
    Simulation,
    campaigns,
    drawn,
    simulate,
    standard_error,
)
from hushbid.mechanism.summary import plan_card
from hushbid.mechanism.survey import QuestionError, goal_for_questions, mean_figures, question_errors
from hushbid.mechanism.terms import Terms

_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
"""The points of the frontier: this much money, or these parts of it."""

_MOST_PEOPLE = 10**7
_REPETITIONS = 200
_COMPARED = 40
"""At most so many campaigns are drawn where degrees of protection and goals are compared."""

_MOST_TRIALS = 100
_ROUGHLY = 1e-3
"""Payments to three digits are enough for a forecast, and much quicker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierPoint:
    """One way to trade error against money, and what to state to have it."""

    goal: Goal
    """The goal that chooses it."""

    standard_error: float
    """The root of the expected mean squared error, at worst."""

    payment: float
    """The expected total payment."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan:
    """What campaigns of so many people come to."""

    market: Terms
    """The market."""

    n: int
    """How many people take part."""

    needed: Estimate | None
    """Where the number of people was asked for: it, with the interval that the Monte Carlo error leaves open."""

    simulation: Simulation
    """Campaigns with the goal as stated: errors, payments, the worst case, people bought from, the largest loss."""

    relations: tuple[float, ...]
    """The true relations that `Protection.standard_errors` are about."""

    protection: tuple[Protection, ...]
    """The same goal with each degree of protection; empty where people have a use for the estimate, or
    answer by randomised response."""

    frontier: tuple[FrontierPoint, ...]
    """Error against money: the goal as stated, and with more and less."""

    question_errors: tuple[QuestionError, ...]
    """The errors of a survey's questions, on average over campaigns; empty without questions."""

    def summary(self) -> str:
        """The plan in words and two tables."""
        found, rarely = self.simulation, self.simulation.quantile("total_payment").value
        return self.text(
            f"Total payment: {found.expected('total_payment')} expected, {figure(rarely)} exceeded in"
            f" one campaign of 20, {figure(found.worst_payment_bound)} never exceeded."
        )

    def text(self, spending: str, *, paid: Callable[[float], str] = figure, stated: Callable[[Goal], str] = str) -> str:
        """The plan with a sentence of one's own about the spending, in which money and goals are written so."""
        found = self.simulation
        error, worst = (math.sqrt(found.expected(name).value) for name in ("mse", "worst_mse"))
        lines = []
        if self.question_errors:
            whose = (
                "what was stated" if isinstance(self.market.goal, Accuracy) else "their ranges, weighed by importance"
            )
            lines += [
                f"Standard errors of the questions: {'; '.join(one.words for one in self.question_errors)}.",
                f"All other errors are those of all questions together, relative to {whose}.",
            ]
        if self.needed is not None:
            lines.append(f"So many people are needed: {self.needed}.")
        related = "" if error == worst else f", {figure(worst)} at worst"
        lines += [
            f"{people(self.n)}: a standard error of {figure(error)} if price and datum are unrelated{related}; bought"
            f" from {figure(found.share_bought.mean() * self.n)} of them, at most {figure(found.largest_loss.mean())}"
            " of privacy loss each.",
            spending,
            "Counted without people's own limits and without people who do not deliver: both make errors larger.",
        ]
        if self.protection:
            lines += ["", "what protection costs, and the error at worst if the relation is that of a column"]
            lines.append(self._protection_table(paid))
        if self.frontier:
            lines += ["", "error against money, and what to state for it"]
            lines.append(
                table([(figure(one.standard_error), paid(one.payment), stated(one.goal)) for one in self.frontier])
            )
        return "\n".join(lines)

    def to_frame(self, table: Literal["frontier", "protection"] = "frontier", *, library: Library | None = None) -> Any:
        """Error against money, or what protection costs, as a data frame; see `Outcome.to_frame` for ``library``."""
        if table == "frontier":
            heads = ["goal", "standard_error", "payment"]
            points = ((str(one.goal), one.standard_error, one.payment) for one in self.frontier)
            return frame_of_rows(heads, points, library)
        if table != "protection":
            raise InputError(f"table must be 'frontier' or 'protection', got {table!r}.", field="table")
        heads = ["max_correlation", "bought_from", "payment", "largest_loss"]
        heads += [f"standard_error_at_{relation:g}" for relation in self.relations]
        rows = (
            (row.max_correlation, row.bought_from, row.payment, row.largest_loss, *row.standard_errors)
            for row in self.protection
        )
        return frame_of_rows(heads, rows, library)

    def _protection_table(self, paid: Callable[[float], str]) -> str:
        rows = [("protected up to", "bought from", "paid", "largest loss", *map(figure, self.relations))]
        for one in self.protection:
            reached = (figure(one.bought_from), paid(one.payment), figure(one.largest_loss))
            if math.isinf(one.payment):  # so accurate no purchase is
                reached = ("out of reach", "", "")
            errors = ("" if math.isinf(error) else figure(error) for error in one.standard_errors)
            rows.append((figure(one.max_correlation), *reached, *errors))
        return table(rows)

    def _repr_html_(self) -> str:
        return plan_card(self)

    _repr_pretty_ = pretty


def buyer_weight_for(payment: float, *, from_standard_error: float, to_standard_error: float) -> float:
    """The buyer weight of somebody who would pay ``payment`` to bring the standard error down so far.

    >>> round(buyer_weight_for(500, from_standard_error=2, to_standard_error=1), 3)
    166.667
    """
    paid = as_number(payment, "payment")
    before = as_number(from_standard_error, "from_standard_error")
    after = as_number(to_standard_error, "to_standard_error")
    if not (0.0 < paid < math.inf and 0.0 <= after < before < math.inf):
        raise InputError(
            f"a positive payment must buy a smaller standard error, got {payment} for {from_standard_error} down to"
            f" {to_standard_error}."
        )
    return paid / (before**2 - after**2)


def plan(
    market: Terms,
    n: int | None = None,
    *,
    target_standard_error: float | None = None,
    target_payment: float | None = None,
    rng: np.random.Generator,
    repetitions: int | None = None,
    relations: tuple[float, ...] = RELATIONS,
    progress: Progress | None = None,
) -> Plan:
    """What campaigns of a market come to; see `Market.plan`."""
    if n is None and market.strata is not None:
        raise InputError("n must be given for a market with strata: it is the number of labels.", field="n")
    for name in ("variance", "user_weight", "prior"):
        if n is None and (isinstance(getattr(market, name), np.ndarray) or (name == "prior" and market.grouped)):
            raise InputError(f"n must be given for a market with one {name} per person.", field="n")
    if not isinstance(rng, np.random.Generator):
        raise InputError(f"rng must be a numpy.random.Generator, got {type(rng).__name__}.", field="rng")
    for_questions = int(rng.integers(2**62)) if market.survey is not None else 0
    times, needed = _times(repetitions), None
    if n is None or target_standard_error is not None or target_payment is not None:
        if n is not None:
            raise InputError(f"n must not be given with a target, which asks for it, got {n}.", field="n")
        goal = market.for_people(2).goal  # a market may refuse a single person
        search = _Search.of(goal, target_standard_error, target_payment, times, rng, progress)
        needed = search.number(market.for_people, int(min(market.roster or _MOST_PEOPLE, people_paid_in_coins(goal))))
        n = int(needed.value)
    population = market.for_people(n)
    seed = int(rng.integers(2**62))
    rough = replace(population, tolerance=max(population.tolerance, _ROUGHLY))
    simulation = simulate(rough, times(n), rng=rng, progress=progress)
    draws = min(_COMPARED, times(n))
    protection = () if population.cares or population.setting.response else relations
    frontier = (
        replace(one, goal=goal_for_questions(market.survey, market.stated_goal, one.goal))
        for one in _frontier(rough, seed, draws)
    )
    return Plan(
        market=market,
        n=n,
        needed=needed,
        simulation=simulation,
        relations=relations,
        protection=tuple(
            protected(rough, lambda one: list(drawn(one, seed, draws)), each, relations) for each in protection
        ),
        frontier=tuple(frontier),
        question_errors=_question_errors(market, population, for_questions),
    )


def _question_errors(market: Terms, population: Population, seed: int) -> tuple[QuestionError, ...]:
    """What errors a survey's questions have on average over campaigns."""
    if market.survey is None or market.layout is None:
        return ()
    noise, squares = mean_figures(population, drawn(population, seed, FEWEST))
    return question_errors(
        market.survey,
        market.layout,
        noise=noise,
        squares=squares,
        population=population,
        relation=market.max_correlation,
    )


def _times(repetitions: int | None) -> Callable[[int], int]:
    """Return how many campaigns of ``n`` people to simulate: as many as were asked for, else as many as are enough."""
    if repetitions is None:
        return partial(campaigns, repetitions=_REPETITIONS)
    asked = as_count(repetitions, "repetitions", least=FEWEST)
    return lambda n: asked


# -- what if -----------------------------------------------------------------------------------------------------------


def _frontier(population: Population, seed: int, draws: int) -> Iterator[FrontierPoint]:
    """The goal as stated, and with more and less; what is out of reach is left out."""
    goal = population.goal
    if goal.number == 0.0:
        return
    # money goes like one over the error, and like the third root of its price
    power = {Accuracy: -1.0, Price: 3.0}.get(type(goal), 1.0)
    for factor in _FACTORS:
        stated = replace(goal, **{fields(goal)[0].name: goal.number * factor**power})
        if isinstance(stated, Budget):
            stated = Budget(stated.amount, coin=stated.coin)  # what rounding takes of it is another
        if people_paid_in_coins(stated) < population.people:
            continue
        try:
            found = list(drawn(replace(population, goal=stated), seed, draws))
        except MarketError:
            continue
        error = math.sqrt(np.mean([one.worst_mse for one in found]))
        yield FrontierPoint(goal=stated, standard_error=error, payment=float(np.mean([one.payment for one in found])))


# -- how many people ---------------------------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class _Search:
    """How many people it takes to meet a target on average; the figures at all trials are from the same draws."""

    name: str
    target: float
    times: Callable[[int], int]
    seed: int
    progress: Progress | None
    trials: int = 0

    @classmethod
    def of(
        cls,
        goal: Goal,
        target_standard_error: float | None,
        target_payment: float | None,
        times: Callable[[int], int],
        rng: np.random.Generator,
        progress: Progress | None,
    ) -> "_Search":
        if (target_standard_error is None) == (target_payment is None):
            raise InputError(
                "give n, or a target that so many people should meet: either target_standard_error or target_payment.",
                field="n",
            )
        name = "target_payment" if target_standard_error is None else "target_standard_error"
        value = target_payment if target_standard_error is None else target_standard_error
        target = as_number(value, name)
        if not 0.0 < target < math.inf:
            raise InputError(f"{name} must be positive and finite, got {value}.", field=name)
        if isinstance(goal, Accuracy if name == "target_standard_error" else (Budget, HardBudget)):
            raise InputError(f"{name} must not be given beside a {name_of(goal)}, which states it already.", field=name)
        seed = int(rng.integers(2**62))
        return cls(name=name, target=target, times=times, seed=seed, progress=progress)

    @property
    def limit(self) -> float:
        """What the figure may be on average: errors are squared."""
        return self.target if self.name == "target_payment" else self.target**2

    def number(self, for_people: Callable[[int], Population], most: int) -> Estimate:
        """A number at which the target is met while with one fewer it is not."""
        two = for_people(2)  # a market may refuse a single person
        self._refuse_whatever_the_number(two)
        low, high = 0, min(2 if two.outside_option == "estimate" else 1, most)
        # double, then halve
        while not float(self._figures(for_people(high)).mean()) <= self.limit:
            if high == most:
                raise MarketError(
                    f"{self.name} is not met with any number of people tried, up to {most}, got {self.target:g}.",
                    field=self.name,
                )
            low, high = high, min(2 * high, most)
        while high - low > 1:
            middle = (low + high) // 2
            met = float(self._figures(for_people(middle)).mean()) <= self.limit
            low, high = (low, middle) if met else (middle, high)
        # how far the answer moves if the mean is off by its standard error: the slope in log n
        here, fewer = self._figures(for_people(high)), max(math.floor(high / 1.2), low, 1)
        slope = (
            float(self._figures(for_people(fewer)).mean() - here.mean()) / math.log(high / fewer) if high > 1 else 0.0
        )
        return _interval(float(high), standard_error(here), slope)

    def _figures(self, population: Population) -> FloatArray:
        """Error or payment of each campaign, whichever is aimed at; infinite where the goal is out of reach."""
        self.trials += 1
        if self.progress is not None:
            self.progress(self.trials, max(_MOST_TRIALS, self.trials))
        try:
            found = list(drawn(population, self.seed, self.times(population.people)))
        except Unreachable:
            return np.full(FEWEST, np.inf)
        if self.name == "target_payment":
            return np.array([one.payment for one in found])
        return np.array([one.worst_mse for one in found])

    def _refuse_whatever_the_number(self, population: Population) -> None:
        """If only the buyer cares, nobody can be cheaper than the cheapest: the noise alone has an error and a price.

        Centrally the error is at least ``2/S²`` and the virtual payment ``S·a``, ``a`` at least the smallest virtual
        cost, with ``S = (4A/a)^{1/3}`` at a price, ``√2/r`` for an accuracy and ``B/a`` for a budget, under a hard one
        with the smallest bid.
        """
        goal, prior = population.goal, population.groups[0].prior
        if population.setting is not CENTRAL or population.cap < math.inf or population.cares:
            return
        low = prior.support[0]
        cheapest = low if isinstance(goal, HardBudget) else float(prior.virtual_cost(low))
        if cheapest == 0.0:
            return
        if isinstance(goal, Price):
            total = population.setting.most_loss(population.error_weight, cheapest, population.variance)
        else:
            total = math.sqrt(2.0) / population.aim.number if isinstance(goal, Accuracy) else goal.number / cheapest
        least = math.sqrt(2.0) * population.width / total
        if self.name == "target_payment":
            least = cheapest * total
        if self.target <= least:
            raise MarketError(
                f"{self.name} must be above {least:.6g}, the least with this goal however many people there are, got"
                f" {self.target:g}.",
                field=self.name,
            )


def _interval(answer: float, error: float, slope: float) -> Estimate:
    """Where the answer may lie if the figure is off by its error, its slope in the answer's logarithm known."""
    ratio = math.exp(min(1.96 * error / abs(slope), 700.0)) if slope != 0.0 and math.isfinite(slope) else math.inf
    return Estimate(value=answer, low=answer / ratio, high=answer * ratio)
