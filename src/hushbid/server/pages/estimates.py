"""Results as pages show them, in the rows of a report: estimate, interval and a bar on the question's range."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hushbid.common.numbers import cut_to, with_unit
from hushbid.report.answers import AnswerFacts, ResultRow, half_width_text, result_rows
from hushbid.report.language import speaking
from hushbid.server.pages.wording import Texts, Writing


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownEstimate:
    """What was found for one question."""

    name: str
    """Of a choice, above the rows of its answers; empty where the row names the question."""

    rows: tuple[ResultRow, ...]

    unusable: bool
    """Whether the interval covers more than half of the range, or may not be told."""

    sentence: str
    """How far off it may be, and why there is no usable result if there is none."""


def shown_estimates(
    t: Texts, w: Writing, release: Mapping[str, Any] | None, bounds: Sequence[float] | None, unit: str
) -> tuple[ShownEstimate, ...]:
    """What is shown of a release, if there is one: to staff the interval for what was delivered."""
    if release is None:
        return ()
    answers = [release] if bounds is not None else release["answers"]
    one_number = {"kind": "number", "name": t("The average"), "bounds": bounds, "unit": unit}
    return tuple(_shown(t, w, {"question": one_number, **one}, place) for place, one in enumerate(answers, start=1))


def estimate_value(w: Writing, release: Mapping[str, Any], bounds: Sequence[float] | None, unit: str) -> str | None:
    """The estimate alone, as staff see it in a list; None where there are several."""
    return None if bounds is None else shown_estimates(w.texts, w, release, bounds, unit)[0].rows[0].value


def _shown(t: Texts, w: Writing, answer: Mapping[str, Any], place: int) -> ShownEstimate:
    margin = answer.get("delivered_half_width", answer["half_width"])
    with speaking(t.language):
        facts = _facts(t, answer, margin["value"], place)
        rows = tuple(result_rows(facts))
        sure = math.isfinite(facts.half_width)
        half = with_unit(half_width_text(facts.half_width), facts.error_unit) if sure else ""
    if not sure:
        sentence = t.coded("estimate.no_margin")
    else:
        kind = "estimate.interval_staff" if "delivered_half_width" in answer else "estimate.interval"
        sentence = t.coded(kind, half=half, level=w.percent(margin["level"]))
    doubt = _doubt(t, w, facts, rows) if facts.unusable else ""
    nearest = _nearest(t, facts, rows) if facts.answers and facts.values != facts.shown else ""
    return ShownEstimate(
        name=facts.name if facts.answers else "",
        rows=rows,
        unusable=facts.unusable,
        sentence=f"{doubt}{sentence}{nearest}",
    )


def _facts(t: Texts, answer: Mapping[str, Any], half: float | None, place: int) -> AnswerFacts:
    """One question as a report has it; shares in percent, in the buyer's order, as the nearest that can be."""
    question = answer["question"]
    is_number, words = question["kind"] == "number", tuple(question.get("answers", ()))
    low, high = answer.get("range", question.get("bounds", (0.0, 1.0)))
    scale = 1.0 if is_number else 100.0
    drawn = [answer["shares"][word] for word in words] if words else [answer["estimate"]]
    possible = answer.get("projected", drawn)
    if not isinstance(possible, list):
        possible = [possible[word] for word in words] if words else [possible]
    reach = math.inf if half is None else scale * half
    unit = question["unit"] if is_number else "%"
    return AnswerFacts(
        place=place,
        name=question["name"],
        yes_no=question["kind"] == "yes_no",
        unit=unit,
        error_unit=unit if is_number else t("percentage points"),
        asked="",
        bounds=(scale * low, scale * high),
        values=tuple(scale * one for one in drawn),
        shown=tuple(scale * cut_to(one, one, (low, high))[0] for one in possible),
        answers=words,
        half_width=reach,
        normal_half_width=reach,
        standard_error=reach,
        worst_standard_error=reach,
    )


def _drawn(facts: AnswerFacts, rows: Sequence[ResultRow]) -> str:
    return "; ".join(f"{row.name} {row.drawn}" if facts.answers else row.drawn for row in rows)


def _nearest(t: Texts, facts: AnswerFacts, rows: Sequence[ResultRow]) -> str:
    """That shares are not those that were drawn, and what these were."""
    return f" {t.coded('estimate.nearest', drawn=_drawn(facts, rows))}"


def _doubt(t: Texts, w: Writing, facts: AnswerFacts, rows: Sequence[ResultRow]) -> str:
    """Why there is no usable result, and the number all the same; where no margin is told its sentence says why."""
    number = t("The estimate is {value}: a hint at most.", value=_drawn(facts, rows))
    if not math.isfinite(facts.half_width):
        return f"{number} "
    low, high = facts.bounds
    shown = f"{w.number(high, 6)} {facts.unit}".rstrip()
    return f"{t.coded('estimate.wide', low=w.number(low, 6), high=shown)} {number} "
