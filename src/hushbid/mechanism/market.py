"""A market for data: what is bought, from whom one believes to buy, and what an error costs.

A platform wants the mean of a population. Person i's datum lies in public ``bounds`` and has ``variance`` around the
mean. Their cost is ``β_i·MSE + c_i·ε_i − t_i`` (``β_i`` the *user weight*, ``c_i`` their bid, ``ε_i`` their privacy
loss, ``t_i`` their payment); if they stay out it is ``β_i·V_i`` (they have their own datum) or ``β_i`` times the error
of the mechanism run without them. The platform's cost is ``α·MSE + Σ t_i`` (``α`` the *buyer weight*). Among all
truthful mechanisms that everybody is willing to join, the best one gives, for each bid vector, the privacy losses that
minimise ``A·MSE + Σ ψ_i ε_i``, ``A = α + Σ β_i``, and pays as in :mod:`hushbid.payments` ([F] Prop. 2).

Units: bounds and variance in data units, weights in money per squared data unit, bids in money per unit of
privacy loss. With ``questions`` everybody answers several; errors are then relative (`hushbid.mechanism.survey`).
"""

import math
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hushbid.allocation import Allocation, Budget, HardBudget, ReplyRule
from hushbid.common.arrays import FloatArray, Rng, as_floats, as_generator, as_row, rounded_sum
from hushbid.common.codec import header_problem
from hushbid.common.tables import Library, frame_of_rows
from hushbid.disclosure.promises import refuse_unreleasable, refuse_unsendable
from hushbid.display import pretty
from hushbid.errors import BidError, InputError, RecordError, UnknownFamily
from hushbid.mechanism.deciding import decide
from hushbid.mechanism.decision import LESS_EXACT, Decision, fields_of_plain, is_less_exact
from hushbid.mechanism.figures import Figures, cap_cost
from hushbid.mechanism.people import TieKey
from hushbid.mechanism.planning import Plan, plan
from hushbid.mechanism.population import Population
from hushbid.mechanism.protection import RELATIONS
from hushbid.mechanism.rounding import refuse_rounding
from hushbid.mechanism.schedule import Menu, Schedule, common_schedule, expected_menu, own_schedule
from hushbid.mechanism.simulation import Progress, Simulation, simulate
from hushbid.mechanism.stated import as_prior
from hushbid.mechanism.summary import market_card, outcome_card, summary_of
from hushbid.mechanism.survey import (
    QuestionError,
    noise_in,
    noise_of,
    question_errors,
)
from hushbid.mechanism.terms import Terms
from hushbid.priors import Grouped, Prior

OUTCOME_VERSION = 3
_HEADER = {"format": "hushbid outcome", "version": OUTCOME_VERSION}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Market(Terms):
    """Everything that is fixed before anybody bids.

    Parameters
    ----------
    prior
        What the platform believes about costs: a prior, or `Grouped` priors.
    goal, buyer_weight
        What the buyer states: a `Price`, `Accuracy`, `Budget` or `HardBudget`; a buyer weight is short for a `Price`.
    setting
        Where noise is added: ``"central"``, by a trusted platform, or ``"local"``, on each person's device.
    bounds, variance
        The public range of the data, and their variance around the mean; by default the largest that bounds allow.
    questions
        What is asked, where it is more than one number, instead of ``bounds`` and ``variance``.
    user_weight
        What one unit of squared error costs a person: one number, or one per person.
    outside_option
        What people have who stay out: ``"own_data"``, or the ``"estimate"`` made without them.
    max_privacy_loss
        A cap on everybody's privacy loss; in the central setting also one per person.
    max_correlation, population
        How closely price and datum may be related, from 0 to 1, and how many people the mean is then about.
    expected_share
        How likely people of the population are to bid, where a price is planned for them.
    strata, shares, contrast
        Everybody's public stratum, with the strata's shares of the population, or their weights in a combination of
        means.
    tolerance
        How far a payment may be from the exact one, relative to the largest payment.

    >>> from hushbid.priors import Uniform
    >>> from hushbid.allocation import Budget
    >>> market = Market(prior=Uniform(1, 2), goal=Budget(5))
    >>> outcome = market.acquire([1.1, 1.2, 1.9])
    >>> outcome.privacy_loss.round(3).tolist(), outcome.payments.round(3).tolist()
    ([2.095, 1.775, 0.0], [3.21, 2.849, 0.0])
    """

    def acquire(
        self,
        bids: ArrayLike,
        *,
        limits: ArrayLike | None = None,
        tie_key: TieKey = None,
        accept_rounding: bool = False,
    ) -> "Outcome":
        """Decide, from everybody's bid, how much privacy each gives up and what they are paid.

        ``limits`` are the largest losses people accept, stated beside their bids, infinite (in a list also
        None) where somebody named none, and 0 where they sell nothing; NaN is refused. Naming both truthfully is
        everybody's best reply. Without user weights; in the local setting under a `HardBudget` only.

        If rounding payments up to the coin of a `Budget` is expected to take more than 5 % of it, the purchase is
        refused unless ``accept_rounding`` is true.

        Among equals the smaller ``tie_key`` comes first, or the earlier row: neither may depend on the bids.
        `hushbid.allocation.tie_keys` makes keys of ids, as the command line, the engines and the server do.
        """
        if np.ndim(bids) > 1 or np.size(bids) == 0:
            raise InputError(
                f"bids must be one number per person, at least one, got shape {np.shape(bids)}.", field="bids"
            )
        stated: FloatArray = np.atleast_1d(as_floats(bids, "bids", BidError))
        costs: FloatArray = np.atleast_1d(self.prior.virtual_cost(stated))
        stated_limits = None if limits is None else self._limits(limits, stated.size)
        population = self.for_people(stated.size, limits=stated_limits is not None)
        refuse_rounding(population.stated, population.roster, accepted=accept_rounding)
        if stated_limits is not None:
            costs = np.where(stated_limits > 0.0, costs, math.inf)
        found = decide(population.with_limits(stated_limits), stated, costs, tie_key)
        if self.layout is not None and found.active:
            bought = found.privacy_loss[found.privacy_loss > 0.0]
            refuse_unreleasable(self.strategy.hardest_to_release(bought), self.layout)
            if self.strategy.sends_messages and not self.strategy.response:
                refuse_unsendable(bought)
        fields = {name: getattr(found, name) for name in Decision.__slots__}
        return Outcome(market=self.with_reserve(population), **fields | {"limits": stated_limits})

    @property
    def keeps_for_rounding(self) -> bool:
        """Whether part of a budget is kept for rounding payments up to coins."""
        return isinstance(self.goal, Budget) and self.goal.coin > 0.0

    def with_reserve(self, population: Population) -> "Market":
        """The market whose budget states what is kept for rounding and the price planned for it, for a population."""
        if not isinstance(self.goal, Budget):
            return self
        found = copy(self)  # what was checked need not be checked again: of many people that takes long
        object.__setattr__(found, "goal", population.stated)
        return found

    def rule(self, costs: FloatArray, *, tie_key: TieKey = None) -> ReplyRule:
        """How the optimum answers to one person's virtual cost, in units where the data range has width 1."""
        return self.for_people(costs.size).rule(costs, tie_key)

    def allocation(self, costs: FloatArray, tie_key: TieKey = None) -> Allocation:
        """The optimal allocation for given virtual costs."""
        return self.for_people(costs.size).allocation(costs, tie_key)

    def menu(
        self,
        n: int,
        *,
        rng: Rng,
        repetitions: int = 200,
        points: int = 33,
        stratum: str | None = None,
    ) -> Menu:
        """What a person can expect, as a function of their bid, before anybody else of the ``n`` has bid.

        With strata it is that of somebody in ``stratum``.
        """
        return expected_menu(
            self.for_people(n), rng=as_generator(rng), repetitions=repetitions, points=points, stratum=stratum
        )

    def simulate(
        self,
        n: int,
        repetitions: int,
        *,
        rng: Rng,
        true_prior: Prior | Grouped | None = None,
        progress: Progress | None = None,
    ) -> Simulation:
        """What would happen in campaigns of ``n`` people: error, payments, objective, and the worst case of payments.

        People are drawn from ``true_prior`` if the market's prior is wrong. Those below its support bid its lowest
        value (their best reply), those above are never bought from; both are counted. ``progress`` is called with the
        number of campaigns done and to do.
        """
        drawn_from = None
        if true_prior is not None and true_prior != self.prior:
            drawn_from = replace(self, prior=as_prior(true_prior, "true_prior")).for_people(n)
        generator = as_generator(rng)
        return simulate(self.for_people(n), repetitions, rng=generator, drawn_from=drawn_from, progress=progress)

    def sweep(
        self,
        changes: Mapping[str, Sequence[Any]],
        n: int,
        repetitions: int,
        *,
        rng: Rng,
        library: Library | None = None,
    ) -> Any:
        """Return what campaigns of ``n`` people come to in markets that differ, as a data frame with a row for each.

        ``changes`` maps fields of the market to the values to try, in all combinations, on the same people. The other
        columns are the means of what `Simulation` has for each campaign.
        """
        seed, rows, heads = int(as_generator(rng).integers(2**62)), [], list(changes)
        for values in product(*changes.values()):
            stated: dict[str, Any] = dict(zip(heads, values, strict=True))
            if "buyer_weight" in stated:
                stated["goal"] = None
            found = replace(self, **stated).simulate(n, repetitions, rng=seed).means()
            rows.append((*values, *found.values()))
        return frame_of_rows([*heads, *found] if rows else heads, rows, library)

    def plan(
        self,
        n: int | None = None,
        *,
        target_standard_error: float | None = None,
        target_payment: float | None = None,
        rng: Rng,
        repetitions: int | None = None,
        relations: tuple[float, ...] = RELATIONS,
        progress: Progress | None = None,
    ) -> Plan:
        """What campaigns of ``n`` people with this goal come to, what protection costs, and error against money.

        Instead of ``n`` a target may be given: a standard error, at worst, or an expected total payment, whichever the
        goal does not state. Then ``n`` is one at which it is met on average while with one person fewer it is not.

        ``repetitions`` campaigns are simulated; by default 200, or fewer of more than 100,000 people. What protection
        costs and the error against money are computed from the same 40 campaigns, or fewer if fewer are simulated.
        """
        return plan(
            self,
            n,
            target_standard_error=target_standard_error,
            target_payment=target_payment,
            rng=as_generator(rng),
            repetitions=repetitions,
            relations=relations,
            progress=progress,
        )

    def _repr_html_(self) -> str:
        return market_card(self)

    _repr_pretty_ = pretty

    def errors_of(self, figures: Figures, population: Population | None = None) -> tuple[QuestionError, ...]:
        """How far the estimate of each question may be off, from figures about all; empty without questions.

        ``population`` is needed where people are in strata and not listed.
        """
        if self.survey is None or self.layout is None:
            return ()
        squares, variance = figures.squared_weights, self.layout.variance
        if population is None:
            count = self.for_count if self.strata is None else self.for_people
            population = count(figures.people)
        return question_errors(
            self.survey,
            self.layout,
            noise=noise_in(figures.mse, squares, variance, self.width**2),
            squares=squares,
            population=population,
            relation=self.max_correlation,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Outcome(Decision):
    """What a market decided, and everything needed to compute it again. Confidential, as every decision is."""

    market: Market
    """The market, as it was before anybody bid."""

    _optimum: Allocation | None = field(default=None, init=False, repr=False)
    """Kept when it was asked for."""

    _certified: float | None = field(default=None, init=False, repr=False)
    """The lower bound, kept when it was asked for."""

    @property
    def population(self) -> Population:
        """The market for those who bid."""
        return self.market.for_people(self.bids.size, limits=self.limits is not None).with_limits(self.limits)

    @property
    def allocation(self) -> Allocation | None:
        """The optimum on a data range of width 1; None if nothing was bought or a menu was shared.

        Solved again when first asked for, from market, virtual costs and the order of equals: it is the same for an
        outcome that was read back.
        """
        if self._optimum is None and self.active and not isinstance(self.market.goal, HardBudget):
            object.__setattr__(self, "_optimum", self.population.allocation(self.virtual_costs, self.tie_order))
        return self._optimum

    @property
    def flags(self) -> tuple[str, ...]:
        """What its record and report warn of: payments that rounding leaves less exact than the market asks for."""
        return (LESS_EXACT,) if is_less_exact(self, self.market.tolerance) else ()

    @property
    def cap_cost(self) -> float:
        """How much higher the objective is than without caps and limits, in its own unit; 0 if none binds."""
        return cap_cost(self.population, self)

    @property
    def lower_bound(self) -> float:
        """The certificate: no truthful decision has an objective below this; infinite if nothing was bought.

        Computed when first asked for, and then kept (see `hushbid.allocation.least_objective`).
        """
        if self._certified is None:
            found = self.population.lower_bound(self.virtual_costs, self.privacy_loss)
            object.__setattr__(self, "_certified", found)
        assert self._certified is not None
        return self._certified

    def utility(self, user: int, cost: float, bid: float | None = None) -> float:
        """Return what person ``user`` gains over staying out at a true cost, with their bid or another one.

        The payment, less what the privacy loss and the error cost them, plus what the error would cost them outside.
        """
        found, row = self, as_row(user, self.bids.size)
        if bid is not None:
            bids = self.bids.copy()
            bids[row] = bid
            found = self.market.acquire(bids, limits=self.limits, tie_key=self.tie_order)
        weight = float(np.broadcast_to(np.asarray(self.market.user_weight, dtype=float), self.bids.shape)[row])
        error = weight * (found.mse - float(found.outside_error[row])) if weight else 0.0
        lost = cost * float(found.privacy_loss[row]) if found.privacy_loss[row] else 0.0
        return float(found.payments[row]) - lost - error

    def figures(self) -> Figures:
        """What the decision comes to for everybody together, with its certificate."""
        return Figures.of(self.market.setting, self, lower_bound=self.lower_bound, cap_cost=self.cap_cost)

    def question_errors(self) -> tuple[QuestionError, ...]:
        """How far the estimate of each question may be off, in its own unit; empty without questions."""
        market = self.market
        if market.survey is None or market.layout is None:
            return ()
        population = self.population
        return question_errors(
            market.survey,
            market.layout,
            noise=noise_of(population, self.privacy_loss, self.weights),
            squares=rounded_sum(self.weights**2),
            population=population,
            relation=market.max_correlation,
        )

    def schedule(self, user: int | None = None, *, stratum: str | None = None) -> Schedule:
        """One curve c ↦ (privacy loss, payment): that prices everybody, with strata everybody in ``stratum``, or the
        one that person ``user`` faces."""
        if user is not None and stratum is not None:
            raise InputError("give either user or stratum, got both.", field="stratum")
        if user is None:
            return common_schedule(self.population, self, stratum)
        return own_schedule(self.population, self, user)

    def summary(self) -> str:
        """What was decided, in words; no individual's numbers."""
        several = "; ".join(one.words for one in self.question_errors())
        return summary_of(self, self.market, several=several, cap_cost=self.cap_cost)

    def _repr_html_(self) -> str:  # what `summary` tells, for a notebook
        return outcome_card(self, self.market, self.question_errors())

    _repr_pretty_ = pretty

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain values; `from_dict` reads it back."""
        return {**_HEADER, "market": self.market.to_dict(), **self.plain()}

    def to_columns(self) -> dict[str, Any]:
        """Return the same, but everybody's numbers stay arrays; `from_dict` reads that, too."""
        return {**_HEADER, "market": self.market.to_dict(), **self.with_arrays()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Outcome":
        """The inverse of `to_dict`; an outcome of another version is refused."""
        if not isinstance(values, Mapping):
            raise RecordError(f"An outcome must be a mapping of its fields, got {type(values).__name__}.")
        wrong = header_problem(values, "outcome", _HEADER)
        if wrong is not None:
            raise RecordError(wrong)
        plain = {name: one for name, one in values.items() if name not in ("market", *_HEADER)}
        market: Any = values.get("market")
        decided = fields_of_plain(plain)
        try:
            return cls(**decided, market=Market.from_dict(market))
        except UnknownFamily as problem:  # it says what to do about it
            raise RecordError(f"The outcome cannot be read: {problem}.") from None
        except (KeyError, TypeError, ValueError, AttributeError) as problem:
            raise RecordError(f"The outcome cannot be read: {type(problem).__name__} in its fields.") from None
