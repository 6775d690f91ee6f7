"""The optimum for a contrast of strata under caps as an allocation, and what no purchase under them can beat."""

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from hushbid.allocation.capped.contrast import Outline, begin, best_seen
from hushbid.allocation.capped.parts import Lines, Parts
from hushbid.allocation.capped.price import explore
from hushbid.allocation.capped.strata import Divided
from hushbid.allocation.central_problem import CentralProblem
from hushbid.allocation.problem import Allocation, Problem
from hushbid.allocation.uncapped import solve_uncapped
from hushbid.arrays import FloatArray, IndexArray
from hushbid.estimation import Strata

_ROUNDING = 1e-11


@dataclass(frozen=True, slots=True, eq=False)
class Optimum:
    """The best purchase that somebody is paid for; infinite in value if there is none."""

    rows: list[IndexArray]
    """Everybody who can be bought from, the cheapest of each stratum first."""

    parts: Parts
    outline: Outline
    at: float
    """``S``."""

    levels: list[float]
    """Each stratum's."""

    value: float
    bound: float
    """No other is below this."""

    seen: Lines | None
    """Everything that was looked at."""

    @classmethod
    def of(cls, divided: Divided, guess: float | None = None) -> "Optimum":
        """By a search over all ``S``, perhaps from a guess."""
        rows, parts = divided.sorted()
        outline = Outline.of(parts)
        guesses = np.array([[one] for one in ([] if guess is None else [guess])])
        attained, cheapest, paid = (np.array([one]) for one in (outline.value.min(), divided.cheapest, divided.paid))
        low, high, best = begin(parts, attained, guesses, cheapest, paid)
        high = np.minimum(high, outline.until(best))
        if not high[0] > 0.0:  # everybody asks for nothing
            return cls(rows, parts, outline, 0.0, [0.0] * len(rows), math.inf, math.inf, None)
        seen, bound = explore(parts, low, high, best)
        at, levels, value = best_seen(parts, seen)
        return cls(rows, parts, outline, float(at[0]), levels[:, 0].tolist(), float(value[0]), float(bound[0]), seen)

    def losses(self) -> list[FloatArray]:
        """What is bought from each, in each stratum, in the units of the search."""
        rate = 0.5 * self.at * self.at
        return [one.crowd.people.losses(level, rate) for one, level in zip(self.parts.each, self.levels, strict=True)]


def solve_capped_contrast(problem: Problem, caps: float | FloatArray, strata: Strata) -> Allocation:
    """The global optimum of the central problem with strata, for a price, under caps."""
    # if nobody's loss is too large without caps, that is best under them
    uncapped = solve_uncapped(CentralProblem.of(problem, strata))
    if bool((uncapped.privacy_loss <= caps).all()):
        return uncapped
    divided = Divided.of(problem, caps, strata)
    guess = float(uncapped.privacy_loss.sum()) * math.sqrt(divided.unit)
    found = Optimum.of(divided, guess if guess < math.inf else None)
    losses, free = np.zeros(problem.costs.size), _free(divided)
    error, without_pay = divided.without_pay(free)
    if error <= found.value:
        losses[free] = without_pay
    else:
        for rows, bought in zip(found.rows, found.losses(), strict=True):
            losses[rows] = bought / math.sqrt(divided.unit)
    return _allocation(divided, np.minimum(losses, divided.caps))


def capped_contrast_lower_bound(problem: Problem, caps: float | FloatArray, strata: Strata) -> float:
    """What no allocation under these caps can be below, without solving."""
    return _bound(Divided.of(problem, caps, strata))


def _free(divided: Divided) -> IndexArray:
    return np.flatnonzero(divided.problem.costs == 0.0)


def _bound(divided: Divided) -> float:
    bound = min(Optimum.of(divided).bound, divided.without_pay(_free(divided))[0])
    return max(bound * (1.0 - _ROUNDING), 0.0) * divided.scale / math.sqrt(divided.unit)


def _allocation(divided: Divided, losses: FloatArray) -> Allocation:
    """The allocation with these losses, in the caller's units; nobody's is raised so that strata fit together."""
    problem, strata = divided.problem, divided.strata
    codes, sizes = strata.codes, np.abs(strata.weights)
    shares = losses
    if bool((losses == math.inf).any()):  # no noise: by precision
        shares = np.where(losses == math.inf, 1.0 / np.broadcast_to(problem.variance, losses.shape), 0.0)
    given = np.bincount(codes, weights=shares, minlength=strata.count)
    strength, noise = math.inf, 0.0
    if shares is losses:
        strength = float((given / sizes).min())
        noise = 2.0 / strength / strength
        losses = np.minimum(losses * (strength * sizes / given)[codes], losses)
    sized = shares * (sizes / given)[codes]
    mse = noise + float((problem.variance * sized * sized).sum())
    bought = np.flatnonzero(losses)
    costs = problem.costs[bought]
    expense = float((costs * np.where(costs > 0.0, losses[bought], 0.0)).sum())
    return Allocation(
        privacy_loss=losses,
        weights=np.sign(strata.weights)[codes] * sized,
        mse=mse,
        objective=problem.error_weight * mse + expense,
        active=bought.size,
        setting="central",
        error_weight=problem.error_weight,
        _certify=partial(_bound, divided),
    )
