"""Public strata of a market, and what may be stated about them.

Everybody is in one stratum, known beforehand, and the means of the strata differ. A buyer wants a combination of them,
``Σ ℓ_g θ_g``, with one noise for all: a post-stratified mean (``shares``, which sum to 1) or a difference
(``contrast``, any signs). Then weights ``ω`` have the sign of ``ℓ_g`` and add up to it in each stratum, and if price
and datum may be related inside strata the error is at worst

    MSE + N·γ²·V̄·(Σω² − Σ ℓ_g²/N_g),        attained by b ∝ ω_i − ℓ_g/N_g,

with ``N_g`` people in stratum g and ``N`` in all: again the error with a larger variance, less a constant. A buyer who
wants the mean of every stratum makes a market of each. Strata come in the order of their names.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from hushbid.allocation import Accuracy, Goal
from hushbid.common.arrays import as_count, as_number, first_row, rows_text
from hushbid.errors import InputError
from hushbid.estimation import Strata

_SUM = 1e-9
"""Shares may miss 1 by this much in sum: what writing them down in decimals leaves."""


def as_strata(column: Any, shares: Any, contrast: Any) -> Strata | None:
    """Everybody's stratum and the combination that is wanted; None without strata."""
    given = [name for name, stated in (("shares", shares), ("contrast", contrast)) if stated is not None]
    if column is None:
        if given:
            raise InputError(f"{given[0]} must not be stated without strata, everybody's stratum.", field=given[0])
        return None
    if len(given) != 1:
        got = " and ".join(given) or "none of them"
        raise InputError(f"strata must go with either shares or a contrast, got {got}.", field="strata")
    labels = _labels(column)
    weights = _weights(given[0], shares if contrast is None else contrast)
    names = tuple(weights)
    places = {name: code for code, name in enumerate(names)}
    codes = np.array([places.get(label, -1) for label in labels], dtype=np.intp)
    if (codes < 0).any():
        row = first_row(codes < 0)
        raise InputError(
            f"strata must be among those of {given[0]}, {listed(names)}, but row {row} is {labels[row]!r}: state its"
            " weight, or leave such people out.",
            field="strata",
            row=row,
        )
    if labels:
        refuse_empty(given[0], names, np.bincount(codes, minlength=len(names)).tolist())
    return Strata(codes=codes, weights=np.array(list(weights.values())), names=names)


def refuse_empty(stated: str, names: Sequence[str], counts: Sequence[int]) -> None:
    """Strata whose shares, or whose contrast, are stated, and with nobody in them."""
    for name, count in zip(names, counts, strict=True):
        if count == 0:
            told = f"strata must have somebody in every stratum of {stated}, but nobody is in {name!r}."
            raise InputError(told, field="strata")


def _labels(column: Any) -> list[str]:
    """Everybody's label; none if people are counted, but not listed."""
    if isinstance(column, (str, bytes, Mapping)) or not isinstance(column, Iterable):
        raise InputError(f"strata must be one label per person, got {type(column).__name__}.", field="strata")
    if isinstance(column, np.ndarray) and column.ndim != 1:
        raise InputError(f"strata must be one label per person, got {column.ndim} dimensions.", field="strata")
    labels = column.tolist() if isinstance(column, np.ndarray) else list(column)
    bad = np.array([not isinstance(label, str) or not label.strip() for label in labels], dtype=bool)
    if bad.any():
        told = f"strata must be a text for everybody, but {rows_text(bad, 'is')} not."
        raise InputError(told, field="strata", row=first_row(bad))
    return labels


def _weights(name: str, stated: Any) -> dict[str, float]:
    """What is stated of each stratum, in the order of their names."""
    if not isinstance(stated, Mapping) or not stated or not all(isinstance(one, str) for one in stated):
        raise InputError(f"{name} must be a mapping of each stratum's name to a number.", field=name)
    found = {one: as_number(stated[one], f"{name} of {one!r}") for one in sorted(stated)}
    for one, value in found.items():
        if name == "shares" and not 0.0 < value <= 1.0 + _SUM:
            raise InputError(f"shares must be above 0 and at most 1, but that of {one!r} is {value:g}.", field=name)
        if not math.isfinite(value) or value == 0.0:
            raise InputError(f"{name} must be finite and not 0, but that of {one!r} is {value:g}.", field=name)
    total = math.fsum(found.values())
    if name == "shares" and abs(total - 1.0) > _SUM:
        raise InputError(f"shares must sum to 1, got a sum of {total:.12g}.", field=name)
    return found


def listed(names: Sequence[str]) -> str:
    """Some names, for a message."""
    shown = ", ".join(repr(name) for name in names[:8])
    return shown if len(names) <= 8 else f"{shown} and {len(names) - 8} more"


# -- what is stated for each stratum -----------------------------------------------------------------------------------


def refuse_named_errors(goal: Goal) -> None:
    """Refuse standard errors by the names of strata: a market makes one estimate."""
    if isinstance(goal, Accuracy) and isinstance(goal.standard_error, Mapping):
        told = "standard_error must not name strata: a market makes one estimate; make a market of each stratum."
        raise InputError(told, field="standard_error")


def as_rosters(population: Any, strata: Strata | None) -> int | dict[str, int] | None:
    """How many people the mean is about, with strata in each of them; None means those who bid."""
    if population is None:
        return None
    if strata is None:
        if isinstance(population, Mapping):
            told = "population must be a whole number without strata, got one for each stratum."
            raise InputError(told, field="population")
        return as_count(population, "population", least=1)
    if not isinstance(population, Mapping) or set(population) != set(strata.names):
        raise InputError(
            f"population must be how many people there are in each stratum, {listed(strata.names)}, by its name.",
            field="population",
        )
    found = {name: as_count(population[name], "population", least=1) for name in strata.names}
    rosters_of(found, strata)
    return found


def rosters_of(
    population: Mapping[str, int] | None, strata: Strata, counts: Sequence[int] | None = None
) -> tuple[int, ...]:
    """``N_g`` of every stratum, in their order: as stated, or those who are there; ``counts`` if they are counted."""
    counts = np.bincount(strata.codes, minlength=strata.count).tolist() if counts is None else counts
    if population is None:
        return tuple(counts)
    for name, there in zip(strata.names, counts, strict=True):
        if population[name] < there:
            raise InputError(
                f"population must be at least the number of people in each stratum, but {name!r} has {there} people and"
                f" a population of {population[name]}.",
                field="population",
            )
    return tuple(population[name] for name in strata.names)
