"""The estimate with its interval, or a survey's answers with theirs, and where the uncertainty comes from."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from hushbid.common.numbers import cut_to, decimals_for, is_unusable, with_unit
from hushbid.languages import noted
from hushbid.report import answers_chart, strata_table
from hushbid.report.language import fixed, interval, level_text, number, percent, say
from hushbid.report.material import Material, noise_share
from hushbid.report.suppression import coarse, few_missing, too_few
from hushbid.report.svg import (
    NARROW,
    Chart,
    Drawing,
    Part,
    Scale,
    Table,
    area,
    axis_x,
    box,
    divided_bar,
    dot,
    label,
    rule,
)

ANCHOR, TITLE = "estimate", noted("The estimate")
_BANDS = (0.5, 0.8)
_ZOOM_BELOW = 0.12


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateFacts:
    """The estimate and how far off it may be."""

    value: float | None
    """The released estimate; None before a release."""

    bounds: tuple[float, float]
    """The public range: of the data, and where strata are combined of their combination."""

    level: float
    """How sure the interval is."""

    half_width: float
    """Half the width of the interval at ``level``; infinite if nothing was bought."""

    normal_half_width: float
    """The same by normal approximation."""

    bands: tuple[tuple[float, float], ...]
    """Narrower intervals for the picture, as (level, half-width)."""

    standard_error: float
    """Root mean squared error, if price and datum are unrelated."""

    worst_standard_error: float
    """The same at worst, if they are related as closely as was allowed for."""

    noise_share: float
    """The part of the squared error that is noise added for privacy, or false answers by coin; the rest comes from
    asking finitely many."""

    dropped_out: int | None
    """How many people who were bought from did not deliver; None if some did not, but too few to be counted."""

    by_coin: bool = False
    """Whether one yes/no question was answered by a coin on everybody's device, instead of adding noise."""

    answers: tuple[answers_chart.AnswerFacts, ...] = ()
    """What a survey found, question by question; then ``value`` is None, and errors are those of all together."""

    strata: strata_table.StrataFacts | None = None
    """What is estimated of strata; None where there are none."""

    @property
    def released(self) -> bool:
        """Whether there is an estimate, or a survey's answers."""
        return self.value is not None or any(one.values for one in self.answers)

    @property
    def unusable(self) -> bool:
        """Whether the interval covers more than half of the range."""
        return self.value is not None and is_unusable(self.value, self.half_width, self.bounds)


def facts_of(material: Material) -> EstimateFacts:
    """The estimate, rounded coarsely where few people are behind it."""
    release, error, bought_from = material.release, material.error, material.fewest
    bounds, combined = material.outcome.market.bounds, material.combined
    bands: tuple[tuple[float, float], ...] = ()
    if error is not None and not too_few(bought_from):
        bands = tuple((band, error.half_width(band)) for band in _BANDS if band < material.level)
    missing = 0 if release is None else len(release.dropped_out)
    return EstimateFacts(
        value=None if release is None else release.estimate,
        bounds=bounds if combined is None else combined.range_of(bounds),
        level=material.level,
        half_width=material.half_width,
        normal_half_width=material.normal_half_width,
        bands=bands,
        standard_error=math.inf if error is None else coarse(math.sqrt(error.mse), bought_from),
        worst_standard_error=math.inf if error is None else coarse(math.sqrt(error.worst_mse), bought_from),
        noise_share=noise_share(material.outcome, error, release),
        by_coin=material.outcome.market.strategy.response,
        dropped_out=None if few_missing(missing) else missing,
        answers=answers_chart.answer_facts(material),
        strata=strata_table.strata_facts(material),
    )


def answer_chart(facts: answers_chart.AnswerFacts) -> Chart:
    """One question of a survey: its shares, or its estimate as a single one is drawn."""
    if facts.answers:
        return answers_chart.shares_chart(facts)
    alone = EstimateFacts(
        value=facts.shown[0],
        bounds=facts.bounds,
        level=facts.level,
        half_width=facts.half_width,
        normal_half_width=facts.normal_half_width,
        bands=(),
        standard_error=facts.standard_error,
        worst_standard_error=facts.worst_standard_error,
        noise_share=0.0,
        dropped_out=0,
    )
    drawn = interval_chart(alone, question=facts.what, unit=facts.unit)
    return replace(drawn, name=f"question-{facts.place}")


def half_width_text(half_width: float) -> str:
    """Rounded up, so that what is shown still holds."""
    decimals = decimals_for(half_width)
    return fixed(math.ceil(half_width * 10.0**decimals) / 10.0**decimals, decimals)


def levels(facts: EstimateFacts) -> list[str]:
    """How sure the nested intervals are, the narrowest first."""
    return [percent(level) for level, _ in sorted(facts.bands)] + [level_text(facts.level)]


def interval_chart(facts: EstimateFacts, *, question: str, unit: str) -> Chart:
    """The estimate on a line with nested intervals; a narrow one is enlarged below the whole range."""
    assert facts.value is not None
    value = facts.value
    text, low, high = interval(value, facts.half_width, facts.bounds)
    rows = [(percent(level), *interval(value, width, facts.bounds)[1:]) for level, width in facts.bands]
    normal = interval(value, facts.normal_half_width, facts.bounds)[1:]
    rows += [
        (level_text(facts.level), low, high),
        (say("{level}, normal approximation", level=level_text(facts.level)), *normal),
    ]
    rows.append((say("Estimate"), text, ""))
    return Chart(
        name="estimate",
        title=say("{question}, and how far off the estimate may be", question=f"{question[:1].upper()}{question[1:]}"),
        description=say(
            "A number line. The estimate is {estimate}; the {level} interval goes from {low} to {high}. The"
            " public range"
            " goes from {least} to {most}.",
            estimate=with_unit(text, unit),
            level=level_text(facts.level),
            low=low,
            high=high,
            least=number(facts.bounds[0], 6),
            most=number(facts.bounds[1], 6),
        ),
        draw=lambda width: _nested(value, facts, unit, width),
        table=Table(head=(say("Confidence"), say("From"), say("To")), rows=tuple(rows)),
    )


def _nested(value: float, facts: EstimateFacts, unit: str, width: float) -> Drawing:
    low, high = facts.bounds
    edge = 10.0
    # intervals are cut to the range, the estimate is not
    whole = Scale(min(low, value), max(high, value), edge, width - edge)
    zoomed = facts.half_width < _ZOOM_BELOW * (whole.high - whole.low)
    marks: list[Markup] = []
    top = 34.0
    scale = whole
    if zoomed:
        scale = Scale(value - 2.0 * facts.half_width, value + 2.0 * facts.half_width, edge, width - edge)
        marks += _locator(whole, scale, facts)
        top = 92.0
    text, _, _ = interval(value, facts.half_width, facts.bounds)
    middle = scale(value)
    for half, class_ in [(facts.half_width, "band1"), *_named(facts.bands)]:
        left, right = map(scale, cut_to(value - half, value + half, facts.bounds))
        marks.append(box(left, top + 14, max(right - left, 1.5), 28, class_, radius=3))
    anchor = "middle" if 60 < middle < width - 60 else "start" if middle <= 60 else "end"
    marks += [
        rule(middle, top + 6, middle, top + 50, "mark"),
        dot(middle, top + 28, 6.5, "point"),
        label(middle, top, with_unit(text, unit), "big", anchor=anchor),
    ]
    marks += axis_x(
        scale, top + 58, unit or say("value"), wanted=4 if width == NARROW else 8, write=lambda v: number(v, 5)
    )
    return Drawing(width=width, height=top + 104, marks=tuple(marks))


def _named(bands: Sequence[tuple[float, float]]) -> list[tuple[float, str]]:
    widest_first = sorted(bands, reverse=True)
    return [(half, f"band{place + 2}") for place, (_, half) in enumerate(widest_first[:2])]


def _locator(whole: Scale, scale: Scale, facts: EstimateFacts) -> list[Markup]:
    """The whole public range as a thin bar, and a lens from the part that is enlarged below it."""
    low, high = facts.bounds
    left, right = (min(max(whole(edge), whole.start), whole.end) for edge in (scale.low, scale.high))
    shape = [(left, 28.0), (right, 28.0), (scale.end, 54.0), (scale.start, 54.0)]
    return [
        label(
            whole.start, 12, say("the public range, {low} to {high}", low=number(low, 5), high=number(high, 5)), "quiet"
        ),
        box(whole(low), 20, whole(high) - whole(low), 8, "track", radius=4),
        box(left, 20, max(right - left, 3.0), 8, "band3", radius=2),
        area(shape[:2], [shape[3], shape[2]], "lens"),
    ]


def sources(facts: EstimateFacts) -> list[Part]:
    """Where the uncertainty comes from."""
    noise, chance = facts.noise_share, 1.0 - facts.noise_share
    private = say("False answers by coin, for privacy") if facts.by_coin else say("Noise, added for privacy")
    return [
        Part(private, noise, "s1", percent(noise)),
        Part(say("Chance, from asking only some people"), chance, "s2", percent(chance)),
    ]


def sources_chart(facts: EstimateFacts) -> Chart:
    """The squared error, divided."""
    noise, chance = sources(facts)
    told = {"noise": noise.words, "chance": chance.words}
    return Chart(
        name="uncertainty",
        title=say("Where the uncertainty comes from"),
        description=say(
            "Of the squared error, {noise} is from false answers by coin, for privacy, and {chance} is chance.", **told
        )
        if facts.by_coin
        else say("Of the squared error, {noise} is noise added for privacy and {chance} is chance.", **told),
        draw=lambda width: divided_bar([noise, chance], width),
    )
