"""What a survey found, question by question: facts and pictures for the section of the estimate.

A number and a share of yes are drawn as a single estimate is; the shares of a choice are bars with their intervals.
Every interval is sure by itself, not all of them together.
"""

import math
from dataclasses import dataclass

from markupsafe import Markup

from hushbid.common.numbers import cut_to, decimals_for, is_unusable
from hushbid.disclosure import ErrorModel, QuestionAnswer
from hushbid.disclosure.delivery import planned_errors
from hushbid.mechanism.releasing import plan_of
from hushbid.questions import Choice, Layout, Number, Question, YesNo
from hushbid.report.language import combination, fixed, interval, number, percent, say, say_plural
from hushbid.report.material import Material
from hushbid.report.rendering import plain
from hushbid.report.suppression import coarse
from hushbid.report.svg import NARROW, Chart, Drawing, Scale, Table, axis_x, box, label, rule, shortened


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerFacts:
    """What was found for one question, or is expected."""

    place: int
    """Which question it is, from 1."""

    name: str
    """How the question is called."""

    what: str
    """What is estimated, as it stands in a title: its mean, or the share of yes."""

    unit: str
    """Of its answers, % for shares; may be empty."""

    error_unit: str
    """Of its errors: percentage points for shares."""

    asked: str
    """How it was asked, in words."""

    bounds: tuple[float, float]
    """The public range of an answer, and where strata are combined of their combination; of shares in per cent, as is
    everything here."""

    values: tuple[float, ...]
    """The estimate, or the share of each answer, as it was drawn; empty before a release."""

    shown: tuple[float, ...]
    """The same, of shares the nearest that can be."""

    answers: tuple[str, ...]
    """What the values are of, for a choice; empty otherwise."""

    projected: bool
    """Whether the shares of a choice that are shown add up to one."""

    level: float
    """How sure an interval is."""

    half_width: float
    """Half the width of every interval at ``level``; infinite if nothing was bought."""

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


def answer_facts(material: Material) -> tuple[AnswerFacts, ...]:
    """The questions in their order; empty where one number was asked for."""
    market, release = material.outcome.market, material.release
    if market.survey is None or market.layout is None:
        return ()
    answers: list[QuestionAnswer] | list[None] = [None] * len(market.survey)
    errors: list[ErrorModel] | list[None] = [None] * len(market.survey)
    if release is not None:
        answers, errors = list(release.answers), [one.error for one in release.answers]
    elif material.outcome.active:
        errors = planned_errors(plan_of(material.outcome, key="report"))
    rows = zip(market.survey, answers, errors, strict=True)
    return tuple(
        _facts(material, place, question, market.layout, answer, error)
        for place, (question, answer, error) in enumerate(rows, start=1)
    )


def _facts(
    material: Material,
    place: int,
    question: Question,
    layout: Layout,
    answer: QuestionAnswer | None,
    error: ErrorModel | None,
) -> AnswerFacts:
    people, combined = material.fewest, material.combined
    bounds = question.bounds if isinstance(question, Number) else (0.0, 1.0)
    of_what = (
        "" if combined is None or combined.are_shares else f", {plain(combination(combined.names, combined.weights))}"
    )
    number_asked = isinstance(question, Number)
    scale = 1.0 if number_asked else 100.0
    between = bounds if combined is None else combined.range_of(bounds)
    values = () if answer is None else answer.values
    shown = values
    if answer is not None and not number_asked:
        shown = answer.projected if answer.is_share else tuple(cut_to(one, one, between)[0] for one in values)

    def rounded(value: float) -> float:
        return scale * coarse(value, people)

    return AnswerFacts(
        place=place,
        name=plain(question.name),
        what=(say("the share of yes to ") if isinstance(question, YesNo) else "") + plain(question.name) + of_what,
        unit=plain(question.unit) if isinstance(question, Number) else "%",
        error_unit=plain(question.unit) if isinstance(question, Number) else say("percentage points"),
        asked=_asked(question, layout, place - 1, material.outcome.market.strategy.response),
        bounds=(scale * between[0], scale * between[1]),
        values=tuple(scale * one for one in values),
        shown=tuple(scale * one for one in shown),
        answers=tuple(plain(one) for one in question.answers) if isinstance(question, Choice) else (),
        projected=answer is not None and isinstance(question, Choice) and answer.is_share,
        level=material.level,
        half_width=math.inf if error is None else rounded(error.half_width(material.level)),
        normal_half_width=math.inf if error is None else rounded(error.normal_half_width(material.level)),
        standard_error=math.inf if error is None else rounded(math.sqrt(error.mse)),
        worst_standard_error=math.inf if error is None else rounded(math.sqrt(error.worst_mse)),
    )


def _asked(question: Question, layout: Layout, row: int, by_coin: bool) -> str:
    """How a question was asked, and what it shares its noise with."""
    group = layout.group_of(row)
    others = len(group.rows) - 1
    shared, part = "", ""
    if others:
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


def shares_chart(facts: AnswerFacts) -> Chart:
    """The shares of a choice, each with its interval."""
    decimals, cells = decimals_for(facts.half_width), list[tuple[str, ...]]()
    for name, value, share in zip(facts.answers, facts.values, facts.shown, strict=True):
        drawn, low, high = interval(value, facts.half_width, facts.bounds)
        cells.append((name, fixed(share, decimals), low, high, drawn))
    told = [
        say("{name} {share} %, {low} to {high} %", name=name, share=text, low=low, high=high)
        for name, text, low, high, _ in cells
    ]
    head = (say("Answer"), say("Share, %"), say("From"), say("To"), say("As it was drawn"))
    return Chart(
        name=f"question-{facts.place}",
        title=say("{what}: the share of each answer", what=facts.what),
        description=say("Bars: {listed}.", listed="; ".join(told)),
        draw=lambda width: _bars(facts, width),
        table=Table(head=head, rows=tuple(cells)),
    )


def _bars(facts: AnswerFacts, width: float) -> Drawing:
    """One row for each answer: its name, a bar up to its share, and its interval as a line."""
    narrow = width == NARROW
    left, edge, room = (0.0 if narrow else 190.0), 10.0, (44.0 if narrow else 34.0)
    ends = [*facts.bounds, *facts.shown]
    scale = Scale(min(ends), max(ends), left + edge, width - edge)
    marks: list[Markup] = []
    for place, (name, value, share) in enumerate(zip(facts.answers, facts.values, facts.shown, strict=True)):
        top = room * place + (16.0 if narrow else 0.0)
        if narrow:
            marks.append(label(0, top - 2, shortened(name, width), "strong"))
        else:
            marks.append(label(left - 4, top + 20, shortened(name, left - 10), anchor="end"))
        start, end = sorted((scale(0.0), scale(share)))
        cut = cut_to(value - facts.half_width, value + facts.half_width, facts.bounds)
        middle, reach = top + 14.0, (scale(cut[0]), scale(cut[1]))
        marks += [
            box(start, top + 5, max(end - start, 1.5), 18, "s1", radius=2),
            rule(reach[0], middle, reach[1], middle, "mark"),
            rule(reach[0], middle - 5, reach[0], middle + 5, "mark"),
            rule(reach[1], middle - 5, reach[1], middle + 5, "mark"),
        ]
    bottom = room * len(facts.answers) + 12.0
    marks += axis_x(scale, bottom, say("share, %"), wanted=4 if narrow else 8)
    return Drawing(width=width, height=bottom + 46, marks=tuple(marks))
