"""The most that anybody can lose where no cap is stated, whatever everybody else bids.

It follows from public terms alone, so people can be told before they bid. Losses are ``ε = y/√V``, ``q(y)`` is what
somebody supplies in the local setting (`hushbid.allocation.precision`), and ``ψ`` the least virtual cost there is.

**A price A of the error, by randomised response.** Whoever loses ``y`` while others supply ``Q`` minimises
``AV/(Q + q(y)) + ψ_i·y``. With ``Q = 0`` and with a smaller ``ψ_i`` each further bit of ``y`` brings at least as much
more, so their best ``y`` is not smaller: nobody loses more than the only seller at the least cost.

**A standard error r** (local). Precisions must add up to ``T = V/r²``; an optimum never supplies more. If ``T < 1``
nobody supplies more than ``T``. Else let ``m`` be the whole part of ``T`` and ``f`` the rest. Only people at finite
costs count, of whom there are more than ``T``: at least ``m`` besides them. If they supply ``θ = (1 + f)/2`` or more,
one of the others supplies at most ``s = (T − θ)/m = 1 − (1 − f)/(2m)``, perhaps nothing. Let that one supply ``δ`` more
and their ``δ`` less. As this cannot be cheaper, with ``ρ`` the ratio of the largest virtual cost to the least,

    y(q) − y(q − δ) ≤ ρ·(y(q_j + δ) − y(q_j)) ≤ ρ·max{y(δ), y(s + δ) − y(s)}        for every δ < 1 − s.

(The slope of ``y`` falls and then rises, so an increment is largest at an end.) For the same reason the left side
exceeds the right from some ``q`` on, up to 1: a bound for each ``δ``, of which the least is taken. With a largest cost
that is infinite there is none, for the others could be so dear that they have to supply nearly everything.
"""

import math
from collections.abc import Sequence
from typing import NoReturn

import numpy as np

from hushbid.allocation import Accuracy
from hushbid.allocation.precision import Curve
from hushbid.common.arrays import FloatArray
from hushbid.errors import InputError
from hushbid.mechanism.combinations import Combination
from hushbid.mechanism.population import Population
from hushbid.priors import Prior

_ROUNDING = 1e-9
"""Losses are computed to about 1e-10 (`Setting.loss_rounding`), and a target that is a whole number of people's work
must not be taken for a little less than that."""

_STEPS = 0.5 ** np.arange(1.0, 40.0)
_HALVINGS = 50
_SHORTEST = 1e-12
"""Whoever may supply more than all but this is said to lose any amount."""

FREE_PEOPLE = "somebody may cost nothing, who then may lose any amount; choose a prior whose least price is above 0."
NO_HIGHEST = (
    "with a standard_error it follows from the dearest person there may be, and this prior has none; choose a prior"
    " with a highest price, such as a uniform one, or state a buyer_weight."
)
NOT_RELATED = "with a standard_error it is not known under a relation; state a buyer_weight, or a max_correlation of 0."


def follows_from_terms(combination: Combination) -> bool:
    """Whether people can be told a largest loss although a cap that could be stated is not."""
    by_price = combination.response and combination.goal == "price"
    return combination.local and not combination.strata and (by_price or combination.goal == "accuracy")


def largest_loss(population: Population, priors: Sequence[Prior]) -> float:
    """The most that anybody of these priors can lose, whoever else bids what; refused if there is no such number.

    Of the population only what is the same for any number of people counts: setting, goal, variance and strata.
    """
    least = min(float(prior.virtual_cost(prior.support[0])) for prior in priors)
    if not least > 0.0:
        _refuse(FREE_PEOPLE, "prior")
    if isinstance(population.goal, Accuracy):
        found = _at_an_accuracy(population, priors, least)
    else:
        found = population.setting.sole_loss(population.error_weight, least)
    return found * (1.0 + _ROUNDING)


def _at_an_accuracy(population: Population, priors: Sequence[Prior], least: float) -> float:
    if population.bias > 0.0:
        _refuse(NOT_RELATED, "max_correlation")
    highest = max(float(prior.virtual_cost(prior.support[1])) for prior in priors)
    if highest == math.inf:
        _refuse(NO_HIGHEST, "prior")
    variance = float(np.max(population.variance))
    curve = population.setting.curve
    assert curve is not None  # in the local setting
    target = variance / population.aim.number**2 * (1.0 + _ROUNDING)
    supplied = target if target < 1.0 else _most_supplied(curve, target, highest / least)
    return math.inf if supplied == 1.0 else float(curve.loss(np.array(supplied))) / math.sqrt(variance)


def _most_supplied(curve: Curve, target: float, ratio: float) -> float:
    """The most that anybody supplies of a ``target`` of 1 or more, if costs are at most so many times the least."""
    whole = math.floor(target)
    rest = 1.0 - (target - whole)
    room = 0.5 * rest / whole  # 1 − s
    step = room * _STEPS
    allowed = ratio * np.maximum(_less(curve, step, step), _less(curve, 1.0 - room + step, step))
    # they supply 1 − short: for ever smaller ``short``, beyond the turn of the curve, the left side rises
    turn = float(curve.precision(np.array(curve.turn)))
    ruled_out, most = np.zeros(step.size), np.minimum(0.5 * rest, 1.0 - turn - step)
    low = np.full(step.size, _SHORTEST)
    for _ in range(_HALVINGS):
        short = np.sqrt(low * most)
        above = _less(curve, 1.0 - short, step) > allowed
        ruled_out, low = np.where(above, short, ruled_out), np.where(above, short, low)
        most = np.where(above, most, short)
    return 1.0 - float(ruled_out.max())


def _less(curve: Curve, supplied: FloatArray, step: FloatArray) -> FloatArray:
    """Return how much less a person loses if they supply ``step`` less."""
    return curve.loss(supplied) - curve.loss(np.maximum(supplied - step, 0.0))


def _refuse(reason: str, field: str) -> NoReturn:
    told = "no largest privacy loss can be told to people without a max_privacy_loss: "
    raise InputError(told + reason, field=field)
