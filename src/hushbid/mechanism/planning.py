"""How large a campaign must be, or what an error is worth, to meet a target on average.

No payments are computed: however a rule is priced as in :mod:`hushbid.payments`, expected payments equal expected
virtual payments,

    E Σ t_i = E[Σ ψ_i ε_i + Σ β_i (MSE − outside_i)]        (reports drawn from the prior; [F] Prop. 2),

and the right-hand side varies less. For fixed reports the error falls and the virtual payment rises with the buyer
weight: with ``A`` the error weight, ``d(Σ ψε) = −A·dMSE`` at an optimum, so the payment changes by ``−α·dMSE ≥ 0``. So
the means over the same draws are monotone, and one root is sought.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from hushbid.arrays import FloatArray, as_count, as_number
from hushbid.errors import InputError, MarketError
from hushbid.mechanism.population import Population
from hushbid.mechanism.setting import CENTRAL
from hushbid.mechanism.simulation import Estimate, Progress, mean_of, standard_error
from hushbid.wording import people

Campaigns = Iterable[FloatArray]
"""The virtual costs of everybody, campaign by campaign."""

_MOST_PEOPLE = 10**7
_MOST_DRAWS = 2 * 10**7
_FEWEST = 10
"""At least so many campaigns are drawn, and no more than so many sensitivities if that is enough."""

_MOST_TRIALS = 100
_PRECISION = 1e-4
"""The buyer weight is sought to this relative precision, far below what the draws can tell."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Planned:
    """A buyer weight and a number of people that meet a target on average."""

    buyer_weight: float
    """What one unit of squared error is worth to the buyer in the plan."""

    n: int
    """How many people to invite."""

    solved_for: Literal["buyer_weight", "n"]
    """What was free."""

    answer: Estimate
    """The buyer weight or the number of people, with the interval that the Monte Carlo error leaves open."""

    expected_mse: Estimate
    """Expected mean squared error, in squared data units, from draws of its own."""

    expected_payment: Estimate
    """Expected total payment, from the same draws."""

    repetitions: int
    """How many campaigns were drawn for the search, and as many again for the expected figures."""

    def summary(self) -> str:
        """The plan in words."""
        found = "number of people" if self.solved_for == "n" else "buyer weight"
        return (
            f"Invite {people(self.n)}, with a buyer weight of {self.buyer_weight:.6g}. Expected mean squared error:"
            f" {self.expected_mse}. Expected total payment: {self.expected_payment}. From {self.repetitions} simulated"
            f" campaigns; the {found} that meets the target is {self.answer}."
        )


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
    for_people: Callable[[int], Population],
    *,
    target_mse: float | None = None,
    budget: float | None = None,
    n: int | None = None,
    rng: np.random.Generator,
    repetitions: int = 200,
    progress: Progress | None = None,
) -> Planned:
    """Meet a target on average, for a market that can be had for any number of people; see `Market.plan`."""
    if (target_mse is None) == (budget is None):
        raise InputError(f"give either target_mse or budget, got target_mse={target_mse} and budget={budget}.")
    name, value = ("target_mse", target_mse) if budget is None else ("budget", budget)
    target = as_number(value, name)
    if not 0.0 < target < math.inf:
        raise InputError(f"{name} must be positive and finite, got {value}.", field=name)
    repetitions = as_count(repetitions, "repetitions", least=_FEWEST)
    if not isinstance(rng, np.random.Generator):
        raise InputError(f"rng must be a numpy.random.Generator, got {type(rng).__name__}.", field="rng")
    search = _Search("payment" if target_mse is None else "mse", target, repetitions, rng, progress)
    return search.for_number(for_people) if n is None else search.for_weight(for_people(n))


def virtual_figures(population: Population, costs: FloatArray) -> tuple[float, float]:
    """Error (squared data units) and total payment at given virtual costs, virtual payments in place of payments."""
    population.refuse_divergence(costs)
    loss, _, mse = population.capped(population.allocation(costs))
    mse *= population.unit
    used = (loss > 0.0) & (costs > 0.0)  # an infinite loss that costs nothing is free
    paid = float(costs[used].dot(loss[used]))
    if population.cares:
        paid += float(population.user_weights().dot(mse - population.outside_errors(costs)))
    return mse, paid


class _Search:
    """One plan. Figures at different trials are means over the same draws, so that they are comparable."""

    def __init__(
        self,
        kind: Literal["mse", "payment"],
        value: float,
        repetitions: int,
        rng: np.random.Generator,
        progress: Progress | None,
    ) -> None:
        self.kind, self.value, self.repetitions = kind, value, repetitions
        self.rng, self.progress, self.trials = rng, progress, 0
        self.seed = int(rng.integers(2**62))

    def for_weight(self, population: Population) -> Planned:
        # common draws for every weight: the means are then monotone in it
        campaigns = list(self._draw(population, self.seed))
        self._refuse_impossible(population, campaigns)
        if population.cares and self.kind == "mse":
            # the people's own weights reach the error already
            careless = replace(population, buyer_weight=0.0)
            if float(self._figure(careless, campaigns).mean()) <= self.value:
                nothing = Estimate(value=0.0, low=0.0, high=0.0)
                return self._result(careless, "buyer_weight", nothing)

        def figure(log_weight: float) -> FloatArray:
            return self._figure(replace(population, buyer_weight=math.exp(log_weight)), campaigns)

        low, high = self._bracket(lambda at: float(figure(at).mean()), population.buyer_weight)
        while high - low > _PRECISION:
            middle = 0.5 * (low + high)
            too_small = (float(figure(middle).mean()) > self.value) == (self.kind == "mse")
            low, high = (middle, high) if too_small else (low, middle)
        # on the side that meets the target
        best = high if self.kind == "mse" else low
        # how far the answer moves if the mean is off by its standard error
        slope = (float(figure(best + 0.1).mean()) - float(figure(best - 0.1).mean())) / 0.2
        answer = _interval(math.exp(best), standard_error(figure(best)), slope)
        return self._result(replace(population, buyer_weight=math.exp(best)), "buyer_weight", answer)

    def for_number(self, for_people: Callable[[int], Population]) -> Planned:
        def figure(n: int) -> FloatArray:
            population = for_people(n)
            return self._figure(population, self._draw(population, self.seed))

        two = for_people(2)  # a market may refuse a single person
        self._refuse_whatever_the_number(two)
        low, high = 0, 2 if two.outside_option == "estimate" else 1
        # double, then halve
        while float(figure(high).mean()) > self.value:
            low, high = high, 2 * high
            if high > _MOST_PEOPLE:
                raise MarketError(
                    f"the expected {self.kind} is above {self.value:g} for every number of people tried, up to {low}:"
                    " choose another buyer_weight."
                )
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if float(figure(middle).mean()) > self.value else (low, middle)
        # the slope in log n, from a fifth more people
        more = math.ceil(1.2 * high)
        at_best = figure(high)
        slope = float(figure(more).mean() - at_best.mean()) / math.log(more / high)
        answer = _interval(float(high), standard_error(at_best), slope)
        return self._result(for_people(high), "n", answer)

    def _draw(self, population: Population, seed: int) -> Campaigns:
        """Virtual costs, campaign by campaign; of large campaigns, whose figures vary less, fewer."""
        rng = np.random.default_rng(seed)
        for _ in range(self._campaigns(population.people)):
            yield population.virtual_costs(population.sample(rng))

    def _campaigns(self, n: int) -> int:
        return max(_FEWEST, min(self.repetitions, _MOST_DRAWS // n))

    def _figure(self, population: Population, campaigns: Campaigns) -> FloatArray:
        """Error or virtual payment of each campaign, whichever is aimed at."""
        self.trials += 1
        if self.progress is not None:
            self.progress(self.trials, max(_MOST_TRIALS, self.trials))
        figures = np.array([virtual_figures(population, costs) for costs in campaigns])
        return figures[:, 0 if self.kind == "mse" else 1]

    def _bracket(self, mean: Callable[[float], float], weight: float) -> tuple[float, float]:
        """Two logarithms of the buyer weight between which the mean crosses its target, from ``weight`` on."""
        start = math.log(weight) if weight > 0.0 else 0.0
        too_small = (mean(start) > self.value) == (self.kind == "mse")
        step, here = math.log(8.0) if too_small else -math.log(8.0), start
        while -600.0 < here + step < 600.0:
            there = here + step
            if ((mean(there) > self.value) == (self.kind == "mse")) != too_small:
                return min(here, there), max(here, there)
            here, step = there, 1.5 * step
        raise MarketError(f"no buyer weight makes the expected {self.kind} {self.value:g}.")

    def _refuse_whatever_the_number(self, population: Population) -> None:
        """If only the buyer cares, nobody can be cheaper than the cheapest: the noise alone has an error and a price.

        Centrally the error is at least ``2/S²`` and the virtual payment ``S·a``, with ``S = (4A/a)^{1/3}`` and ``a``
        at least the smallest virtual cost.
        """
        if population.setting is not CENTRAL or population.cap < math.inf or population.cares:
            return
        prior = population.groups[0].prior
        cheapest = float(prior.virtual_cost(prior.support[0]))
        if cheapest == 0.0:
            return
        total = population.setting.most_loss(population.error_weight, cheapest, population.variance)
        least = 2.0 * (population.width / total) ** 2 if self.kind == "mse" else cheapest * total
        if self.value <= least:
            name = "target_mse" if self.kind == "mse" else "budget"
            raise MarketError(
                f"{name} must be above {least:.6g}, the least with this buyer_weight however many people there are, got"
                f" {self.value:g}.",
                field=name,
            )

    def _refuse_impossible(self, population: Population, campaigns: list[FloatArray]) -> None:
        """Some errors cannot be had from these people at any price; some payments are due whatever the buyer wants."""
        n = population.people
        virtual_figures(population, campaigns[0])  # whatever else is wrong with the market, once
        if self.kind == "mse":
            least = population.best_estimate(np.full(n, population.cap))[1] * population.unit
            if not self.value > least:
                raise MarketError(
                    f"target_mse must be above {least:g}, the least possible with {n} people, got {self.value:g}.",
                    field="target_mse",
                )
        elif population.cares:
            least = float(self._figure(replace(population, buyer_weight=0.0), campaigns).mean())
            if not self.value > least:
                raise MarketError(
                    f"budget must be above {least:g}, what {n} people are paid even if the buyer does not care about"
                    f" the error, got {self.value:g}.",
                    field="budget",
                )

    def _result(self, population: Population, solved_for: Literal["buyer_weight", "n"], answer: Estimate) -> Planned:
        fresh = self._draw(population, int(self.rng.integers(2**62)))  # not those that chose the answer
        figures = np.array([virtual_figures(population, costs) for costs in fresh])
        return Planned(
            buyer_weight=population.buyer_weight,
            n=population.people,
            solved_for=solved_for,
            answer=answer,
            expected_mse=mean_of(figures[:, 0]),
            expected_payment=mean_of(figures[:, 1]),
            repetitions=self._campaigns(population.people),
        )


def _interval(answer: float, error: float, slope: float) -> Estimate:
    """Where the answer may lie if the figure is off by its error, its slope in the answer's logarithm known."""
    ratio = math.exp(min(1.96 * error / abs(slope), 700.0)) if slope != 0.0 else math.inf
    return Estimate(value=answer, low=answer / ratio, high=answer * ratio)
