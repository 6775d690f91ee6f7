"""Outcomes as version 1 wrote them: every market had a price for the error, no relation was allowed for, and nobody
stated a limit.

They stay readable, and are written again byte for byte. In memory they are like any other: the weight of the error is
the price that it is, and the worst error is the error.
"""

from collections.abc import Mapping
from typing import Any

from hushbid.errors import RecordError

_LATER = ("goal", "max_relation", "population", "questions", "strata", "shares", "contrast")


def market_of_version_1(values: object) -> dict[str, Any]:
    """The fields of a market of today from those of version 1."""
    if not isinstance(values, Mapping) or "buyer_weight" not in values or any(name in values for name in _LATER):
        raise RecordError("outcome.market must have exactly the fields of version 1.")
    return dict(values)


def market_in_version_1(values: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that version 1 writes of a market, whose goal must be a price, from those of today."""
    kept = {name: value for name, value in values.items() if name not in _LATER}
    return {**kept, "buyer_weight": values["goal"]["buyer_weight"]}


def decision_of_version_1(values: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a decision of today from those of version 1, which knows one error and no limits."""
    columns = values.get("columns")
    later = [
        name
        for name, place in (("worst_mse", values), ("limit", columns))
        if isinstance(place, Mapping) and name in place
    ]
    if later:
        raise RecordError(f"outcome must have exactly the fields of version 1, but differs in: {', '.join(later)}.")
    found = {**values, **({"worst_mse": values["mse"]} if "mse" in values else {})}
    return {**found, "columns": {**columns, "limit": None}} if isinstance(columns, Mapping) else found


def decision_in_version_1(values: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that version 1 writes of a decision, from those of today."""
    columns = {name: value for name, value in values["columns"].items() if name != "limit"}
    return {**{name: value for name, value in values.items() if name != "worst_mse"}, "columns": columns}
