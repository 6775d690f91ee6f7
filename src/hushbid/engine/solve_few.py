"""Populations of which only a few people matter: these are taken to the driver and priced like any others in memory.

Everybody else, however many, enters only through the error weight, so the few form a market of their own in which the
buyer also carries the others' weight. In the local setting these are the cheapest few √n people, or ``4V/r²`` for an
accuracy ``r``; in the central setting everybody below the level past which no minimum lies.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from hushbid.allocation.precision import Supply
from hushbid.allocation.problem import normal_scale
from hushbid.common.arrays import HashArray
from hushbid.engine.decisions import Details, Gathered, GatherKernel, Idle, LookupKernel
from hushbid.engine.passes import Census
from hushbid.engine.people import Rows, Run, lookup_keys
from hushbid.errors import InputError, MarketError, NobodyToBuyFrom
from hushbid.mechanism import Decision, Population, decide
from hushbid.mechanism.impossible import refuse_unreachable
from hushbid.mechanism.summed import Counted

MOST = 1 << 22
"""More people than this are not taken to the driver."""

_AT_LEAST = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Few:
    """The few, priced."""

    population: Population
    decision: Decision
    kernel: LookupKernel


def price_cheapest(
    run: Run, population: Population, census: Census, cuts: tuple[float, ...], *, most: int = MOST
) -> Few:
    """Price everybody with a virtual cost of at most the cut, or the cheapest ``most`` of them, of each stratum."""
    # ids are read only where they decide
    by_identity = population.identity_decides or census.variance[0] == 0.0
    if by_identity and run.people.id is None:
        raise InputError("id must name a column: who is bought from among equals is decided by identity.", field="id")
    cuts = tuple(_enough(one, other) for one, other in zip(cuts, census.parts, strict=True))
    kernel = GatherKernel(run.people, cuts, max(most, min(_AT_LEAST, census.finite)), by_identity)
    nobody = Gathered(most=kernel.most, rows=run.people.nobody(), ties=np.zeros(0, dtype=np.uint64))
    people = run.reduce("gathering the few that matter", kernel, nobody).settled()
    # the few are a market of their own, in which the buyer carries the others' weight
    few, rows = _population_of(population, people.rows), people.rows
    made = decide(few, rows.bids, rows.costs, tie_key=people.ties if by_identity else None)
    # a shared menu may promise more than the best estimate uses
    used = few.used(made.privacy_loss) if few.hard_budget is not None and made.active else made.privacy_loss
    outside = _outside_of_idle(run, few, made, census)
    salt, keys = _told_apart(run, people, by_identity)
    # decisions sorted by key, for the writing pass to look up
    order = np.argsort(keys, kind="stable")
    return Few(
        population=few,
        decision=made,
        kernel=LookupKernel(
            gather=kernel,
            idle=Idle(
                user_weight=float(population.user_weight),
                mse=made.mse,
                outside=outside,
                largest_outside=census.widest if outside is None else outside,
            ),
            salt=salt,
            keys=keys[order],
            known=Details.of(made, used, order),
            strata=rows.strata[order],
        ),
    )


def _enough(cut: float, counted: Counted) -> float:
    """The cut, or a higher one below which some people are."""
    return max(cut, counted.histogram.cut_after(min(_AT_LEAST, counted.histogram.people)))


def _told_apart(run: Run, people: Gathered, by_identity: bool) -> tuple[int, HashArray]:
    """Keys that are equal only for people who are alike in everything that decides, and the salt they take."""
    alike = [column for column in (*people.rows.columns.values(), people.ties) if column is not None]
    for salt in range(64):
        keys = lookup_keys(people.rows, people.ties, salt)
        order = np.argsort(keys, kind="stable")
        # equal keys of people who differ: try another salt
        twins = np.flatnonzero(keys[order][1:] == keys[order][:-1])
        same = np.all([column[order[twins]] == column[order[twins + 1]] for column in alike], axis=0)
        if by_identity and same.any():
            raise run.people.unnamed()
        if same.all():
            return salt, keys
    raise MarketError("The bids of two people cannot be told apart by 64 bits.")


def price_nobody(run: Run, population: Population) -> LookupKernel:
    """Every bid is above the support: nothing is bought, and nobody is paid if nobody cares about the estimate."""
    if population.goal.kind == "accuracy":
        refuse_unreachable(population, 0, math.inf)
    if population.cares:
        raise NobodyToBuyFrom("Every virtual cost is infinite: there is nobody to buy from.")
    none, keys = np.zeros(0), np.zeros(0, dtype=np.uint64)
    return LookupKernel(
        gather=GatherKernel(run.people, (-1.0,) * max(len(run.people.strata), 1), 0, False),
        idle=Idle(user_weight=0.0, mse=math.inf, outside=0.0, largest_outside=0.0),
        salt=0,
        keys=keys,
        known=Details.idle(none, none),
        strata=np.zeros(0, dtype=np.int64),
    )


def _cheapest_few(population: Population, counted: Counted, *, divided: bool) -> tuple[float, int]:
    """In the local setting: a cost below which everybody is who can matter, and how many of the cheapest do.

    All active people but the last supply at least ``q₀``, what the concave branch of their curve or the cap begins
    with, so ``Λ ≥ (k − 1)·q₀``; and everybody who is active has a cost of at most ``w·P`` (in normal form), where ``w``
    is the most precision for a loss and ``P = 1/Λ²``. So ``k ≤ √(w/ψ_1)/q₀ + 1``, also when any one person stays away;
    for an accuracy ``k ≤ Λ/q₀ + 1``. Four times as many are taken, for the dual bound too. Of an accuracy that strata
    divide, no stratum knows its part: everybody may matter.
    """
    variance = float(population.variance)
    assert population.setting.curve is not None
    supply = Supply.up_to(population.setting.curve, population.largest_cap * math.sqrt(variance))
    if divided:
        wanted = math.inf
    elif population.goal.kind == "accuracy":
        finite = counted.histogram.people
        refuse_unreachable(population, finite, variance / (finite * supply.top))
        wanted = variance / population.aim.number**2
    else:
        scale = normal_scale(population.error_weight, variance)
        wanted = math.sqrt(supply.worthwhile * scale / counted.lowest) if counted.lowest > 0.0 else math.inf
    few = wanted / supply.turn_precision + 2.0
    most = int(min(4.0 * few + _AT_LEAST, MOST))
    # the bound exceeds what the driver takes, and so many are there
    if 2.0 * few > most and counted.histogram.people > most:
        raise MarketError(
            f"More than {MOST} of the cheapest people could matter: the accuracy or the error weight is too large, or"
            " the smallest virtual cost too small, for the local setting at this size."
        )
    return counted.histogram.cut_after(most), most


def cheapest_few_of_strata(population: Population, census: Census) -> tuple[tuple[float, ...], int]:
    """In the local setting: below which cost everybody of each stratum is who can matter, and how many do at the most.

    For a price strata are separate markets.
    """
    divided = population.strata is not None and population.goal.kind == "accuracy"
    weights = [1.0] if population.strata is None else population.strata.weights.tolist()
    goals = (population.goal_at(population.buyer_weight * weight**2) for weight in weights)
    found = [
        _cheapest_few(replace(population, strata=None, rosters=(), goal=goal), one, divided=divided)
        for goal, one in zip(goals, census.parts, strict=True)
    ]
    return tuple(cut for cut, _ in found), max(most for _, most in found)


def _population_of(population: Population, rows: Rows) -> Population:
    """Return the few by themselves: same error weight, rows by group."""
    absent = population.people - rows.bids.size
    few = replace(
        population,
        people=rows.bids.size,
        goal=population.goal_at(population.buyer_weight + absent * float(population.user_weight)),
        groups=population.groups_with(np.zeros(rows.bids.size, np.int64) if rows.groups is None else rows.groups),
        strata=None if population.strata is None else replace(population.strata, codes=rows.strata),
    )
    few = few.with_limits(rows.limit)
    return few if rows.variance is None else replace(few, own_error=rows.variance)


def _outside_of_idle(run: Run, few: Population, made: Decision, census: Census) -> float | None:
    """The error outside of somebody whose absence changes nothing but the error weight."""
    user_weight = float(few.user_weight)
    if few.outside_option == "own_data":
        return None if run.people.variance is not None else float(few.own_error)
    if census.people == few.people or user_weight == 0.0:
        return 0.0
    without = replace(few, goal=few.goal_at(few.buyer_weight - user_weight))
    return without.allocation(made.virtual_costs).mse * without.unit
