"""Strata in the section of the estimate: what is estimated of them, and why the panel's own mean would not do.

The panel is everybody who bid. With ``p_g`` its share of a stratum and ``ℓ_g`` the population's, its mean is off
by ``Σ (p_g − ℓ_g)·θ_g``, and for stratum means anywhere in a range of width R by at most ``R·½·Σ |p_g − ℓ_g|``. That is
known without any data. The panel's own mean is not computed: it would be a second release, and cost privacy.
"""

import math
from dataclasses import dataclass

import numpy as np

from hushbid.common.numbers import with_unit
from hushbid.questions import Number
from hushbid.report.language import combination, count, number, percent, say
from hushbid.report.material import Material
from hushbid.report.rendering import plain
from hushbid.report.suppression import pool
from hushbid.report.svg import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class StratumRow:
    """One stratum."""

    name: str
    """What it is called."""

    share_of_people: float
    """Part of all who bid."""

    weight: float
    """Its share of the population, or what its mean is multiplied by."""

    bought_from: int | None
    """How many of it were bought from; None if so few people bid that they are not counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """By how much a mean of the panel may be off because of its shares."""

    name: str
    """Of which question; empty where one number was asked for."""

    most: float
    """In the unit of the data."""

    unit: str
    """Of its answers; may be empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StrataFacts:
    """What is estimated of the strata."""

    rows: tuple[StratumRow, ...]
    """The strata in their order."""

    are_shares: bool
    """Whether it is a mean for a population with these shares; if not, a combination of any signs."""

    words: str
    """The combination in words."""

    imbalance: float
    """``½·Σ |p − ℓ|``: the part of the panel that is of another stratum than it should be; 0 unless ``are_shares``."""

    misses: tuple[Miss, ...]
    """By how much means of the panel may be off; empty unless ``are_shares``."""


def strata_facts(material: Material) -> StrataFacts | None:
    """What is estimated of the strata; None where there are none."""
    strata, combined = material.outcome.market.stratified, material.combined
    if strata is None or combined is None:
        return None
    people = np.bincount(strata.codes, minlength=strata.count)
    shares, uncounted = people / people.sum(), pool(people)
    imbalance = 0.5 * float(np.abs(shares - strata.weights).sum()) if combined.are_shares else 0.0
    names = tuple(plain(name) for name in strata.names)
    rows = zip(names, shares.tolist(), combined.weights, combined.bought_from, uncounted.tolist(), strict=True)
    return StrataFacts(
        rows=tuple(
            StratumRow(name=name, share_of_people=share, weight=weight, bought_from=None if few else bought)
            for name, share, weight, bought, few in rows
        ),
        are_shares=combined.are_shares,
        words=combination(names, combined.weights),
        imbalance=imbalance,
        misses=_misses(material, imbalance) if combined.are_shares else (),
    )


def _misses(material: Material, imbalance: float) -> tuple[Miss, ...]:
    market = material.outcome.market
    if market.survey is None:
        low, high = market.bounds
        return (Miss(name="", most=imbalance * (high - low), unit=""),)
    return tuple(
        Miss(
            name=plain(one.name),
            most=imbalance * one.width,
            unit=plain(one.unit) if isinstance(one, Number) else "",
        )
        for one in market.survey
    )


def strata_table(facts: StrataFacts) -> Table:
    """One row per stratum."""
    return Table(
        head=(
            say("Stratum"),
            say("Share of those who bid"),
            say("Share of the population") if facts.are_shares else say("Weight of its mean"),
            say("Bought from"),
        ),
        rows=tuple(
            (
                row.name,
                percent(row.share_of_people, 3),
                percent(row.weight, 3) if facts.are_shares else number(row.weight, 6),
                say("not told") if row.bought_from is None else count(row.bought_from),
            )
            for row in facts.rows
        ),
    )


def misses_table(facts: StrataFacts) -> Table:
    """By how much the panel's own means may be off, question by question."""
    return Table(
        head=(say("Question"), say("Its mean or share, over all who bid, is off by at most")),
        rows=tuple((one.name, with_unit(bound(one), one.unit)) for one in facts.misses),
    )


def bound(miss: Miss) -> str:
    """Rounded up, so that it is still one."""
    if miss.most == 0.0:
        return "0"
    power = 2 - math.floor(math.log10(miss.most))
    return number(math.ceil(miss.most * 10.0**power - 1e-9) / 10.0**power)
