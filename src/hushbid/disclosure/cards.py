"""A release as a notebook shows it: made of `Release.public` alone, so that it cannot show what that hides."""

import math
from collections.abc import Mapping
from typing import Any

from hushbid.common.numbers import decimals_for, fixed, is_unusable, level_text, number
from hushbid.disclosure.error import FEW, FEW_IN_STRATUM
from hushbid.display import WITHHELD, Table, card

_UNUSABLE = "no usable result: "
_PLANNED = (
    "Errors are those that were planned. Drop-outs make them larger: intervals that allow for them are the operator's,"
    " and would tell who dropped out."
)


def release_card(public: Mapping[str, Any]) -> str:
    """What may be shown to anybody."""
    table = estimates_table(public)
    strata = Table(caption="", head=(), rows=())
    if "strata" in public:
        weights = public["strata"]["weights"]
        names = public["strata"].get("names") or [f"stratum {k}" for k in range(len(weights))]
        rows = tuple((name, number(weight)) for name, weight in zip(names, weights, strict=True))
        strata = Table(caption="Combined strata", head=("stratum", "weight"), rows=rows)
    facts = [("Setting", public["setting"])]
    if "bounds" in public:
        low, high = public["bounds"]
        facts.append(("Data between", f"{number(low)} and {number(high)}"))
    return card("Release", facts=facts, tables=[table, strata], notes=[_why_withheld(public) or _PLANNED])


def _why_withheld(public: Mapping[str, Any]) -> str:
    """Why errors are not told; empty if they are."""
    answers = public.get("answers", [public])
    if all(answer["planned_standard_error"] is not None for answer in answers):
        return ""
    return FEW_IN_STRATUM if "strata" in public else FEW


def estimates_table(public: Mapping[str, Any], name: str = "the mean", unit: str = "") -> Table:
    """Every estimate with its planned errors; a choice has a line for each of its answers."""
    rows: list[tuple[str, ...]] = []
    for answer in public.get("answers", [public]):
        question = answer.get("question", {"name": name, "unit": unit})
        named = {question["name"]: answer.get("estimate")}
        if "shares" in answer:
            named = {f"{question['name']}: {one}": share for one, share in answer["shares"].items()}
        half, between = answer["planned_half_width"]["value"], _range_of(public, question)
        errors = [_shown(answer["planned_standard_error"]), _shown(half)]
        if "planned_worst_standard_error" in answer:
            errors[0] += f", {_shown(answer['planned_worst_standard_error'])} at worst"
        first = _UNUSABLE if any(_is_unusable(value, half, between) for value in named.values()) else ""
        shown = {what: _estimate(value, half, question.get("unit", "")) for what, value in named.items()}
        rows += [(what, f"{first}{text}", *errors) for what, text in shown.items()]
    level = level_text(public.get("answers", [public])[0]["planned_half_width"]["level"])
    head = ("estimate of", "estimate", "planned standard error", f"planned half width of a {level} interval")
    return Table(caption="", head=head, rows=tuple(rows))


def _range_of(public: Mapping[str, Any], question: Mapping[str, Any]) -> tuple[float, float]:
    """Between which values the truth lies; of shares between 0 and 1, and of strata their combination."""
    bounds = question.get("bounds") or public.get("bounds", (0.0, 1.0))
    weights = public["strata"]["weights"] if "strata" in public else [1.0]
    ends = [sorted(weight * end for end in bounds) for weight in weights]
    return math.fsum(low for low, _ in ends), math.fsum(high for _, high in ends)


def _is_unusable(value: float, half: float | str | None, between: tuple[float, float]) -> bool:
    return half is not None and is_unusable(value, float(half), between)


def _estimate(value: float, half: float | str | None, unit: str) -> str:
    """With the digits that its published error deserves."""
    text = fixed(value, decimals_for(half)) if isinstance(half, float) else number(value)
    return f"{text} {unit}".rstrip()


def _shown(error: float | str | None) -> str:
    return WITHHELD if error is None else number(float(error))
