"""What no purchase can do, found before anybody is priced: sentences that say what is missing.

A stratum whose mean is wanted and where nobody sells, an accuracy that nobody's data reach even without noise, and a
payment without end. The last happens to a person who is bought from whatever they ask, as nobody can take their place:
their rent is an integral of their loss up to the top of the prior's support. It converges only for a bounded support,
or a tail light enough for how their loss falls in their cost (`loss_power`, `rent_diverges`).
"""

import math

import numpy as np

from hushbid.allocation import Accuracy, Budget, Price
from hushbid.allocation.precision import LAPLACE
from hushbid.common.arrays import BoolArray, FloatArray, IndexArray
from hushbid.common.numbers import people
from hushbid.errors import DivergentPayment, NobodyToBuyFrom, Unreachable
from hushbid.estimation import Strata
from hushbid.mechanism.population import Population
from hushbid.priors import Prior


def refuse_impossible(population: Population, costs: FloatArray) -> None:
    """A stratum without sellers, an accuracy out of reach, or a payment that would be infinite."""
    finite, strata = costs < math.inf, population.parts
    sellers = _sellers(strata, finite)
    if population.strata is not None:
        refuse_without_sellers(population, sellers)
    if isinstance(population.goal, Accuracy):
        if not sellers.all():
            planned = math.inf
        elif population.has_caps and not population.setting.sends_messages:  # everybody gives all they may
            planned = population.best_estimate(np.where(finite, population.cap, 0.0))[1]
        else:
            planned = float(np.sum(np.square(strata.weights) / _precisions(population, strata, finite)))
        refuse_unreachable(population, int(sellers.sum()), planned)
    _refuse_divergence(population, costs)


def _refuse_divergence(population: Population, costs: FloatArray) -> None:
    """A payment that would be infinite."""
    if all(group.prior.support[1] < math.inf for group in population.groups):
        return
    for row in _indispensable(population, costs).tolist():
        prior = population.prior_of(row)
        if rent_diverges(prior, power=loss_power(population)):
            raise DivergentPayment(
                f"A person's payment would be infinite: under {prior!r} they are bought from at every bid, as"
                " nobody can take their place; use a prior with bounded support or a lighter tail, or invite more"
                " people."
            )


def refuse_without_sellers(population: Population, sellers: IndexArray) -> None:
    """A stratum whose mean is wanted and from which nothing can be bought; ``sellers`` are how many can be."""
    if population.strata is not None and not sellers.all():
        where = "within the prior's support" if population.hard_budget is None else "low enough"
        raise NobodyToBuyFrom(
            f"The mean of stratum {population.strata.label(int(np.argmin(sellers)))} cannot be estimated: nobody in it"
            f" bid {where}."
        )


def _sellers(strata: Strata, finite: BoolArray) -> IndexArray:
    """Return how many people of each stratum can be bought from."""
    codes = strata.codes if finite.all() else strata.codes.compress(finite)
    return np.bincount(codes, minlength=strata.count)


def _precisions(population: Population, strata: Strata, finite: BoolArray) -> FloatArray:
    """``U_g``: the precision of all data in each stratum that can be bought; in the local setting, under one cap."""
    if not isinstance(population.variance, np.ndarray):
        curve = population.setting.curve or LAPLACE
        cap = population.largest_cap if population.setting.sends_messages else math.inf
        return _sellers(strata, finite) * curve.precisions(np.array([cap]), population.variance)
    codes, precision = strata.codes.compress(finite), 1.0 / population.variance.compress(finite)
    return np.bincount(codes, weights=precision, minlength=strata.count).astype(np.float64, copy=False)


def refuse_unreachable(population: Population, count: int, planned: float) -> None:
    """An accuracy that ``count`` people cannot reach, whose least error with the planned variance is this."""
    wanted = population.goal.number
    if count == 0:
        told = f"A standard error of {wanted:g} cannot be reached: nobody bid within the prior's support."
        raise Unreachable(told, field="standard_error")
    if planned < population.aim.number**2 * (1.0 - 1e-12):  # what rounding cannot tell from the least is out of reach
        return
    least = math.sqrt(max(planned - population.allowance, 0.0) * population.unit)
    how = "" if population.strata is None else " in their strata"
    how += " within their limits" if population.has_caps else " even without noise"
    end = ": the campaign is cancelled, and nobody is bought from" if population.has_caps else ""
    how += " against a relation of that strength" if population.bias > 0.0 else ""
    told = f"the least that {people(count)} can reach{how}"
    if population.survey:
        told = f"{least / wanted:.6g} times what is stated for the hardest question, {told}"
        raise Unreachable(f"standard_error must be above {told}{end}.", field="standard_error")
    told = f"standard_error must be above {least:.6g}, {told}, got {wanted:g}{end}."
    raise Unreachable(told, field="standard_error")


def loss_power(population: Population) -> float:
    """Return the power: the loss of a person bought from at every cost falls like one over their cost to this power."""
    if isinstance(population.goal, Price):
        return 1.0 / 3.0
    return 0.0 if isinstance(population.goal, Accuracy) else 1.0


def _indispensable(population: Population, costs: FloatArray) -> IndexArray:
    """Those who are bought from whatever they ask: the only sellers of their strata, those without whom an accuracy is
    out of reach, and who gets all of a budget.
    """
    finite, strata = costs < math.inf, population.parts
    if isinstance(population.goal, Accuracy) and population.has_caps:
        rows = np.flatnonzero(finite)
        return rows[np.isinf(population.rule(costs).at(rows, np.full(rows.size, math.inf)).value)]
    codes, sole = strata.codes, _sellers(strata, finite) == 1
    needed = finite & sole[codes] if sole.any() else np.zeros(finite.size, dtype=bool)
    if isinstance(population.goal, Accuracy):
        squares, total = np.square(strata.weights), _precisions(population, strata, finite)
        # each person's precision, or one of each stratum where all people's are the same
        each = isinstance(population.variance, np.ndarray)
        of = codes if each else np.arange(strata.count)
        others = np.maximum(total[of] - 1.0 / population.variance, 0.0)
        with np.errstate(divide="ignore"):
            left = np.sum(squares / total) - (squares / total)[of] + squares[of] / others
        short = left >= population.aim.number**2
        if short.any():
            needed |= finite & (short if each else short[codes])
    elif isinstance(population.goal, Budget):
        paid = finite & (costs > 0.0)
        needed |= paid if np.count_nonzero(paid) == 1 else False
    return np.flatnonzero(needed)


def rent_diverges(prior: Prior, *, power: float = 1.0 / 3.0) -> bool:
    """Whether the rent of a person bought from at every bid is infinite: their loss falls like ``ψ^{-power}``.

    The integral converges only if ψ grows faster than the bid to ``1/power``; a loss that stays never does.
    """
    if prior.support[1] < math.inf:
        return False
    if power == 0.0:
        return True
    # the power that ψ grows with, far out
    far = float(prior.quantile(0.5)) * 2.0 ** np.arange(10.0, 30.0)
    cost = np.asarray(prior.virtual_cost(far))
    growth = np.diff(np.log2(cost[np.isfinite(cost)]))
    return bool(growth.size and growth[-1] <= 1.0 / power + 1e-6)
