"""Two attacks that truthful payments do not cover: people who collude, and one person with several identities.

That the truth is everybody's best bid holds for one person at a time, and for one person with one identity. Here the
attackers know everybody's bids, which is more than they would, and search for the best they can do; what is found
is a lower bound on what such an attack may gain, under any goal. Under an accuracy or a budget one's bid moves the
others' payments through the level as well; under a hard budget the total cannot rise, so a person who gains takes
it from others or from what is left. docs/concepts/incentives.md says what to do about it.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from hushbid.common.arrays import FloatArray, as_floats
from hushbid.errors import BidError, InputError
from hushbid.mechanism import Decision, Market, Population, decide

_ROUNDS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class JointAttack:
    """The best that was found for some bids that are stated together."""

    bids: tuple[float, ...]
    """What is bid; true costs if nothing better was found."""

    gain: float
    """What the attackers have together beyond what the truth gives them, in money."""

    honest_surplus: float
    """What the truth gives them together over staying out."""

    buyer_loss: float
    """What it costs the buyer: the rise of ``buyer weight · true mse + total payment``, or of the payments alone
    without a price for the error."""

    tried: int
    """How many sets of bids were tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Collusion(JointAttack):
    """The best joint misreport found for some people, their payments pooled."""

    rows: tuple[int, ...]
    """Who colludes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeveralIdentities(JointAttack):
    """The best found for one person who takes part several times with the same datum."""

    row: int
    """Who it is."""

    identities: int
    """How many times they take part."""

    privacy_loss: float
    """What they really lose: the losses of their identities add up, for they protect one datum."""

    stated_mse: float
    """The error the buyer is told, in squared data units."""

    true_mse: float
    """The error of the estimate: their datum has the weight of all their identities."""


def collusion(market: Market, bids: ArrayLike, rows: Sequence[int], *, points: int = 9) -> Collusion:
    """Search for the joint bid of the people ``rows`` that gains them most together.

    A grid over everybody's support with ``points`` bids each, refined around the best found.
    """
    truth = np.atleast_1d(as_floats(bids, "bids", BidError))
    who = list(dict.fromkeys(int(row) for row in rows))
    if len(who) < 2 or not all(0 <= row < truth.size for row in who):
        raise InputError(
            f"rows must be at least two different rows from 0 to {truth.size - 1}, got {list(rows)}.", field="rows"
        )
    population = market.for_people(truth.size)
    weights = population.user_weights()

    def outcome_of(stated: FloatArray) -> Decision:
        changed = truth.copy()
        changed[who] = stated
        return decide(population, changed)

    # what they have together, at their true costs
    def surplus(outcome: Decision) -> float:
        return sum(_worth(outcome, row, float(truth[row]), float(weights[row])) for row in who)

    ranges = [_range(population, row) for row in who]
    place, tried = _search(lambda stated: surplus(outcome_of(stated)), ranges, truth[who], points)
    honest, best = decide(population, truth), outcome_of(place)
    # over staying out, where each lives with the error outside
    outside = float(sum(weights[row] * honest.outside_error[row] for row in who))
    return Collusion(
        rows=tuple(who),
        bids=tuple(best.bids[who].tolist()),
        gain=surplus(best) - surplus(honest),
        honest_surplus=surplus(honest) + outside,
        buyer_loss=_buyer_cost(population, best, best.mse) - _buyer_cost(population, honest, honest.mse),
        tried=tried,
    )


def several_identities(
    market: Market, bids: ArrayLike, row: int, *, identities: int = 2, points: int = 17
) -> SeveralIdentities:
    """Search for the best that person ``row`` can do by taking part ``identities`` times.

    Her identities bid the same, or one of them something of its own. She cannot make up data: each identity holds
    her own datum, so her losses add up, and she values the estimate once.
    """
    truth = np.atleast_1d(as_floats(bids, "bids", BidError))
    if not 0 <= row < truth.size:
        raise InputError(f"row must be from 0 to {truth.size - 1}, got {row}.", field="row")
    if identities < 2:
        raise InputError(f"identities must be at least 2, got {identities}.", field="identities")
    # the market as it sees her: more people, all of them real
    population = market.for_people(truth.size)
    crowd = population.take(np.append(np.arange(truth.size), np.full(identities - 1, row)))
    mine = [row, *range(truth.size, truth.size + identities - 1)]
    everybody = np.append(truth, np.full(identities - 1, truth[row]))
    # what she has under one identity, to compare with
    cost = float(truth[row])
    weight = float(population.user_weights()[row])
    honest = decide(population, truth)
    honest_worth = _worth(honest, row, cost, weight)

    def outcome_of(stated: FloatArray) -> Decision:
        changed = everybody.copy()
        changed[mine] = stated[1]
        changed[row] = stated[0]
        return decide(crowd, changed)

    # what she has under several: all their payments, the sum of their losses, the estimate once
    def surplus(outcome: Decision) -> float:
        paid = float(outcome.payments[mine].sum())
        burden = _burden(cost, float(outcome.privacy_loss[mine].sum()))
        return paid - burden - weight * _true_error(crowd, outcome, mine)

    ranges = [_range(population, row)] * 2
    place, tried = _search(lambda stated: surplus(outcome_of(stated)), ranges, np.full(2, cost), points)
    outcome = outcome_of(place)
    true_mse = _true_error(crowd, outcome, mine)
    return SeveralIdentities(
        row=row,
        identities=identities,
        bids=tuple(outcome.bids[mine].tolist()),
        gain=surplus(outcome) - honest_worth,
        honest_surplus=honest_worth + weight * float(honest.outside_error[row]),
        privacy_loss=float(outcome.privacy_loss[mine].sum()),
        stated_mse=outcome.mse,
        true_mse=true_mse,
        buyer_loss=_buyer_cost(population, outcome, true_mse) - _buyer_cost(population, honest, honest.mse),
        tried=tried,
    )


def _worth(outcome: Decision, row: int, cost: float, weight: float) -> float:
    """A person's payment less what her loss and the error cost her."""
    error = weight * outcome.mse if weight > 0.0 else 0.0
    return float(outcome.payments[row]) - _burden(cost, float(outcome.privacy_loss[row])) - error


def _burden(cost: float, loss: float) -> float:
    return cost * loss if loss > 0.0 and cost > 0.0 else 0.0


def _buyer_cost(population: Population, outcome: Decision, mse: float) -> float:
    weight = population.buyer_weight
    return outcome.total_payment + (weight * mse if weight > 0.0 else 0.0)


def _true_error(population: Population, outcome: Decision, mine: list[int]) -> float:
    """One datum with the weight of several: its variance counts by the square of their sum."""
    own = outcome.weights[mine]
    spread = population.own_errors()[mine[0]]
    return outcome.mse + float(spread) * float(own.sum() ** 2 - np.square(own).sum())


def _range(population: Population, row: int) -> tuple[float, float]:
    """The bids worth trying: the support, its far end cut where almost nobody is."""
    prior = population.prior_of(row)
    high = prior.support[1] if math.isfinite(prior.support[1]) else float(prior.quantile(1.0 - 1e-6))
    return prior.support[0], float(high)


def _search(
    worth: Callable[[FloatArray], float], ranges: list[tuple[float, float]], truth: FloatArray, points: int
) -> tuple[FloatArray, int]:
    """The best point of a grid that closes in on it, and how many points were tried."""
    if points < 3:
        raise InputError(f"points must be at least 3, got {points}.", field="points")
    low, high = np.array(ranges).T
    place, best, tried = truth.copy(), worth(truth), 1
    bottom, top = low.copy(), high.copy()
    for _ in range(_ROUNDS):
        # the best point so far is on every grid, so a round never loses it
        axes = [np.unique(np.append(np.linspace(a, b, points), c)) for a, b, c in zip(low, high, place, strict=True)]
        for stated in np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, truth.size):
            found = worth(stated)
            tried += 1
            if found > best:
                best, place = found, stated
        # one step around the best, within the support
        step = (high - low) / (points - 1)
        low, high = np.maximum(place - step, bottom), np.minimum(place + step, top)
    return place, tried
