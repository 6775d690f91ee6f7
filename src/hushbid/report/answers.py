"""What was found for each question: the facts of one, and its lines on the first page, each with a bar on its range.

One number is a survey of one question. Every interval is sure by itself, not all of them together.
"""

import math
from dataclasses import dataclass

from markupsafe import Markup

from hushbid.common.numbers import NBSP, adding_up, cut_to, decimals_for, is_unusable, with_unit
from hushbid.disclosure import ErrorModel
from hushbid.disclosure.delivery import planned_errors
from hushbid.mechanism.releasing import plan_of
from hushbid.questions import Choice, Layout, Number, Question, YesNo
from hushbid.report.language import combination, fixed, interval, number, percent, say, say_plural
from hushbid.report.material import Material
from hushbid.report.rendering import plain
from hushbid.report.suppression import coarse
from hushbid.report.svg import Drawing, Scale, box, label, picture, rule

_WIDTH, _EDGE = 240.0, 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerFacts:
    """What was found for one question, or is expected. Shares, their ranges and errors are in percent."""

    place: int
    """Which question it is, from 1."""

    name: str
    """What was asked, and where strata are combined in what combination."""

    yes_no: bool
    """Whether the value is the share of yes."""

    unit: str
    """Of its answers, % for shares; may be empty."""

    error_unit: str
    """Of its errors: percentage points for shares."""

    asked: str
    """How it was asked, in words."""

    bounds: tuple[float, float]
    """The public range of an answer, and where strata are combined of their combination."""

    values: tuple[float, ...]
    """The estimate, or the share of each answer, as it was drawn; empty before a release."""

    shown: tuple[float, ...]
    """The nearest values that are possible: inside the range, and shares that add up to 100."""

    answers: tuple[str, ...]
    """What the values are of, for a choice; empty otherwise."""

    half_width: float
    """Half the width of every interval; infinite if nothing was bought."""

    normal_half_width: float
    """The same by normal approximation."""

    standard_error: float
    """Root mean squared error of every value, if price and answer are unrelated."""

    worst_standard_error: float
    """The same at worst, if they are related as closely as was allowed for."""

    @property
    def unusable(self) -> bool:
        """Whether an interval covers more than half of the range."""
        return any(is_unusable(value, self.half_width, self.bounds) for value in self.values)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultRow:
    """One line of the results: texts, and a bar."""

    name: str
    value: str
    """With its unit; that there is no usable result; or that nothing is released yet."""

    low: str
    high: str
    """The ends of the interval; empty before a release."""

    drawn: str
    """As it was drawn, which may lie outside of the range."""

    normal: tuple[str, str]
    """The interval by normal approximation."""

    bar: Markup


def question_of(material: Material) -> str:
    """What was estimated: as stated, or else the mean, or the combination of means."""
    if material.question not in ("", "the mean"):
        return material.question
    combined = material.combined
    if combined is None or combined.are_shares:
        return say("the mean")
    return plain(combination(combined.names, combined.weights))


def answer_facts(material: Material) -> tuple[AnswerFacts, ...]:
    """The questions in their order; one number is one question."""
    market, release = material.outcome.market, material.release
    asked = market.survey or (Number(name=question_of(material) or "?", bounds=market.bounds, unit=material.unit),)
    found: list[tuple[tuple[float, ...], tuple[float, ...], ErrorModel | None]] = [((), (), None)] * len(asked)
    if release is not None:
        found = [(one.values, one.projected, one.error) for one in release.results]
    elif material.outcome.active:
        found = [((), (), error) for error in planned_errors(plan_of(material.outcome, key="report"))]
    return tuple(
        _facts(material, place, question, market.layout, *one)
        for place, (question, one) in enumerate(zip(asked, found, strict=True), start=1)
    )


def _facts(
    material: Material,
    place: int,
    question: Question,
    layout: Layout | None,
    values: tuple[float, ...],
    possible: tuple[float, ...],
    error: ErrorModel | None,
) -> AnswerFacts:
    combined, is_number = material.combined, isinstance(question, Number)
    bounds = question.bounds if isinstance(question, Number) else (0.0, 1.0)
    between = bounds if combined is None else combined.range_of(bounds)
    scale = 1.0 if is_number else 100.0
    name = plain(question.name)
    if layout is not None and combined is not None and not combined.are_shares:
        name = f"{name}, {plain(combination(combined.names, combined.weights))}"
    unit = plain(question.unit) if isinstance(question, Number) else "%"

    def rounded(value: float) -> float:
        return scale * coarse(value, material.fewest)

    return AnswerFacts(
        place=place,
        name=name[:1].upper() + name[1:],
        yes_no=isinstance(question, YesNo),
        unit=unit,
        error_unit=unit if is_number else say("percentage points"),
        asked=_asked(question, layout, place - 1, material.outcome.market.strategy.response),
        bounds=(scale * between[0], scale * between[1]),
        values=tuple(scale * one for one in values),
        shown=tuple(scale * cut_to(one, one, between)[0] for one in possible),
        answers=tuple(plain(one) for one in question.answers) if isinstance(question, Choice) else (),
        half_width=math.inf if error is None else rounded(error.half_width(material.level)),
        normal_half_width=math.inf if error is None else rounded(error.normal_half_width(material.level)),
        standard_error=math.inf if error is None else rounded(math.sqrt(error.mse)),
        worst_standard_error=math.inf if error is None else rounded(math.sqrt(error.worst_mse)),
    )


def _asked(question: Question, layout: Layout | None, row: int, by_coin: bool) -> str:
    """How a question was asked, and what it shares its noise with."""
    shared = part = ""
    if layout is not None:
        group = layout.group_of(row)
        if others := len(group.rows) - 1:
            shared = say_plural(
                ", with a noise that it shares with {count} other question",
                ", with a noise that it shares with {count} other questions",
                others,
                count=others,
            )
        if len(layout.groups) > 1:
            part = say("; {part} of everybody's privacy loss is for that", part=percent(group.share))
    if isinstance(question, Choice):
        return say("one of {count} answers", count=len(question.answers)) + part
    if isinstance(question, Number):
        low, high = (number(end, 6) for end in question.bounds)
        unit = f" {plain(question.unit)}" if question.unit else ""
        return say("a number from {low} to {high}", low=low, high=high) + unit + shared + part
    coin = say(", answered by a coin that tells the truth more often than not") if by_coin else ""
    return say("yes or no") + coin + shared + part


# -- lines of the results ----------------------------------------------------------------------------------------------


def half_width_text(half_width: float) -> str:
    """Rounded up, so that what is shown still holds."""
    decimals = decimals_for(half_width)
    return fixed(math.ceil(half_width * 10.0**decimals) / 10.0**decimals, decimals)


def result_rows(facts: AnswerFacts) -> list[ResultRow]:
    """One line for each value, in the buyer's order; before a release, what margin is expected."""
    name = say("{name} (share of yes)", name=facts.name) if facts.yes_no else facts.name
    if not facts.values:
        margin = f"±{NBSP}{with_unit(half_width_text(facts.half_width), facts.error_unit)}"
        expected = say("{margin} expected", margin=margin)
        return [
            ResultRow(name=name, value=expected, low="", high="", drawn="", normal=("", ""), bar=Markup())
        ]  # of a choice too: every share has the same margin
    decimals = decimals_for(facts.half_width)
    shown = adding_up(facts.shown, decimals) if facts.answers else facts.shown
    lines = zip(facts.answers or (name,), facts.values, shown, strict=True)
    return [_row(facts, place, *line, decimals) for place, line in enumerate(lines, start=1)]


def _row(facts: AnswerFacts, place: int, name: str, value: float, shown: float, decimals: int) -> ResultRow:
    sure = math.isfinite(facts.half_width)  # if not, nothing may be told of the error
    drawn, low, high = interval(value, facts.half_width, facts.bounds) if sure else (number(value, 2), "", "")
    text = with_unit(fixed(shown, decimals) if sure else number(shown, 2), facts.unit)
    least, most = (number(end, 6) for end in facts.bounds)
    description = say(
        "A bar from {least} to {most}; the interval goes from {low} to {high}.",
        least=least,
        most=most,
        low=low or least,
        high=high or most,
    )
    return ResultRow(
        name=name,
        value=say("No usable result") if facts.unusable else text,
        low=low,
        high=with_unit(high, facts.unit) if high else "",
        drawn=with_unit(drawn, facts.unit),
        normal=interval(value, facts.normal_half_width, facts.bounds)[1:] if sure else ("", ""),
        bar=picture(
            _bar(facts, value, shown, ends=place == max(len(facts.answers), 1)),
            name=f"result-{facts.place}-{place}",
            title=f"{name}: {text}",
            description=description,
            class_="on-range",
        ),
    )


def _bar(facts: AnswerFacts, value: float, shown: float, *, ends: bool) -> Drawing:
    """The question's range, the interval on it and the estimate; with ``ends`` those of the range in figures."""
    scale = Scale(*facts.bounds, _EDGE, _WIDTH - _EDGE)
    low, high = map(scale, cut_to(value - facts.half_width, value + facts.half_width, facts.bounds))
    marks = [box(_EDGE, 7, _WIDTH - 2 * _EDGE, 6, "track", radius=3)]
    if math.isfinite(facts.half_width):
        marks.append(box(low, 4, max(high - low, 2.0), 12, "band2", radius=3))
    marks.append(rule(scale(shown), 1, scale(shown), 19, "value"))
    if ends:
        least, most = (number(end, 6) for end in facts.bounds)
        marks += [label(_EDGE, 33, least, "tick"), label(_WIDTH - _EDGE, 33, most, "tick", anchor="end")]
    return Drawing(width=_WIDTH, height=36.0 if ends else 20.0, marks=tuple(marks))
