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

from hushbid.allocation import Accuracy, Budget, Goal, Price
from hushbid.common.arrays import as_count, as_number
from hushbid.common.numbers import count, figure, number, people, percent, table
from hushbid.common.tables import Library, frame_of_rows
from hushbid.display import Table, card, pretty
from hushbid.errors import InputError, MarketError
from hushbid.mechanism.people_needed import Search
from hushbid.mechanism.population import Population
from hushbid.mechanism.protection import RELATIONS, Protection, protected
from hushbid.mechanism.shared_menu import people_paid_in_coins
from hushbid.mechanism.simulation import (
    FEWEST,
    Estimate,
    Progress,
    Simulation,
    campaigns,
    drawn,
    simulate,
)
from hushbid.mechanism.summary import error_alone
from hushbid.mechanism.survey import QuestionError, goal_for_questions, mean_figures, question_errors
from hushbid.mechanism.terms import Terms

_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
"""The points of the frontier: this much money, or these parts of it."""

_MOST_PEOPLE = 10**7
_REPETITIONS = 200
_COMPARED = 40
"""At most so many campaigns are drawn where degrees of protection and goals are compared."""

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
        return _card(self)

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
    for_questions = int(rng.integers(2**62)) if market.survey is not None else 0
    times, needed = _times(repetitions), None
    if n is None or target_standard_error is not None or target_payment is not None:
        if n is not None:
            raise InputError(f"n must not be given with a target, which asks for it, got {n}.", field="n")
        goal = market.for_people(2).goal  # a market may refuse a single person
        search = Search.of(goal, target_standard_error, target_payment, times, rng, progress)
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


def _card(plan: Plan) -> str:
    """What campaigns come to; nobody has bid yet."""
    found = plan.simulation
    paid = found.expected("total_payment")
    error, worst = (math.sqrt(found.expected(name).value) for name in ("mse", "worst_mse"))
    facts = [
        ("Goal", plan.market.stated_goal.words),
        ("People", count(plan.n) if plan.needed is None else f"{plan.needed} are needed"),
        ("Standard error", number(error, 4) if error == worst else f"{number(error, 4)}, {number(worst, 4)} at worst"),
        ("Bought from", f"{percent(float(found.share_bought.mean()))} of them"),
        ("Privacy loss of each", f"at most {number(float(found.largest_loss.mean()))} on average over campaigns"),
        ("Total payment", f"{number(paid.value, 4)} ({number(paid.low, 4)} to {number(paid.high, 4)}) expected"),
        ("in one campaign of 20 above", number(found.quantile("total_payment").value, 4)),
        ("never above", number(found.worst_payment_bound, 4)),
    ]
    errors = Table(
        caption="Standard errors of the questions; the others are of all together, relative",
        head=("question", "standard error"),
        rows=tuple((one.question.name, error_alone(one)) for one in plan.question_errors),
    )
    protection = Table(
        caption="Protection against a relation of price and datum: worst error if it is so strong",
        head=("protected up to", "bought from", "paid", *(number(one) for one in plan.relations)),
        rows=tuple(
            (*map(number, (one.max_correlation, one.bought_from, one.payment)), *map(number, one.standard_errors))
            for one in plan.protection
        ),
    )
    frontier = Table(
        caption="Error against money, and what to state for it",
        head=("standard error", "paid", "goal"),
        rows=tuple((number(one.standard_error, 4), number(one.payment, 4), str(one.goal)) for one in plan.frontier),
    )
    return card("Plan", facts=facts, tables=[errors, protection, frontier])
