"""The public strata of a campaign: which combination of their means is wanted, and who is in which.

The analyst says with the invitation in which stratum somebody is; she herself never does. Wanted is a mean of all for
given ``shares`` of the strata, which add up to 1, or a ``contrast`` of any signs, such as a difference of two. Whoever
did not bid is in nobody's column, but counts in the roster of her stratum.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from hushbid.errors import InputError
from hushbid.server.model.checks import checked_text

_KINDS = ("shares", "contrast")
MOST_STRATA = 50
STRATA_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {
            "type": "object",
            "required": [kind],
            "additionalProperties": False,
            "properties": {kind: {"type": "object", "additionalProperties": {"type": "number"}}},
        }
        for kind in _KINDS
    ]
    + [{"type": "null"}]
}
"""How the combination looks in a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Combination:
    """Which combination of stratum means is wanted."""

    kind: Literal["shares", "contrast"]
    weights: Mapping[str, float]
    """By the strata's names, in their order."""

    @property
    def names(self) -> tuple[str, ...]:
        """The strata."""
        return tuple(self.weights)

    def to_dict(self) -> dict[str, Any]:
        """As in a request."""
        return {self.kind: dict(self.weights)}

    def of_people(self, column: Sequence[str | None]) -> dict[str, Any]:
        """What a market is told: everybody's stratum, and what is wanted."""
        return {"strata": [label or "" for label in column], self.kind: dict(self.weights)}

    def without(self, column: Sequence[str | None]) -> list[str]:
        """The strata in which nobody is."""
        present = Counter(column)
        return [name for name in self.names if not present[name]]


def combination_of(given: object) -> Combination | None:
    """The combination in a request; the market checks the numbers."""
    if given is None or isinstance(given, Combination):
        return given
    kind = next(iter(given)) if isinstance(given, Mapping) and len(given) == 1 else None
    weights = given[kind] if isinstance(given, Mapping) and kind in _KINDS else None
    if not isinstance(weights, Mapping) or not 1 <= len(weights) <= MOST_STRATA:
        told = f"must be shares or a contrast, each a number for each of 1 to {MOST_STRATA} strata by its name"
        raise InputError(f'strata {told}: {{"shares": {{"young": 0.4, "old": 0.6}}}}.', field="strata")
    found = dict(sorted(_entry(name, number) for name, number in weights.items()))
    return Combination(kind="shares" if kind == "shares" else "contrast", weights=found)


def _entry(name: object, number: object) -> tuple[str, float]:
    """One stratum and its number."""
    try:
        label = checked_text(name, "stratum", needed=True)
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            raise InputError(f"strata must have numbers, got {type(number).__name__}.")
        return label, float(number)
    except OverflowError:
        raise InputError("strata must have numbers that a double can hold.", field="strata") from None
    except InputError as problem:
        problem.field = "strata"
        raise
