"""The charts about the estimate, the money and the privacy losses: each a function of the facts and a width."""

from collections.abc import Sequence

from hushbid.money import Currency, currency_words
from hushbid.report.html import Child, Markup, element
from hushbid.report.model import Curve, EstimateFacts
from hushbid.report.suppression import Histogram
from hushbid.report.svg import (
    NARROW,
    Drawing,
    Scale,
    area,
    axis_x,
    axis_y,
    box,
    dot,
    label,
    line,
    margin_for,
    round_scale,
    rule,
    text_width,
)
from hushbid.wording import interval, number, percent, with_unit

_ZOOM_BELOW = 0.12
Part = tuple[str, float, str, str]
"""One part of a bar: name, size, class, and the size in words."""


def estimate_chart(value: float, facts: EstimateFacts, unit: str, width: float) -> Drawing:
    """The estimate on a line with nested intervals; a narrow one is enlarged below the whole range."""
    low, high = facts.bounds
    edge = 10.0
    whole = Scale(min(low, value - facts.half_width), max(high, value + facts.half_width), edge, width - edge)
    zoomed = facts.half_width < _ZOOM_BELOW * (whole.high - whole.low)
    marks: list[Child] = []
    top = 34.0
    scale = whole
    if zoomed:
        scale = Scale(value - 2.0 * facts.half_width, value + 2.0 * facts.half_width, edge, width - edge)
        marks += _locator(whole, scale, facts)
        top = 92.0
    text, _, _ = interval(value, facts.half_width)
    middle = scale(value)
    nested = [(facts.level, facts.half_width, "band1"), *_named(facts.bands)]
    for _, half, class_ in nested:
        left, right = scale(value - half), scale(value + half)
        marks.append(box(left, top + 14, max(right - left, 1.5), 28, class_, radius=3))
    anchor = "middle" if 60 < middle < width - 60 else "start" if middle <= 60 else "end"
    marks += [
        rule(middle, top + 6, middle, top + 50, "mark"),
        dot(middle, top + 28, 6.5, "point"),
        label(middle, top, with_unit(text, unit), "big", anchor=anchor),
    ]
    marks += axis_x(scale, top + 58, unit or "value", wanted=4 if width == NARROW else 8, write=lambda v: number(v, 5))
    return Drawing(width=width, height=top + 104, marks=tuple(marks))


def _named(bands: Sequence[tuple[float, float]]) -> list[tuple[float, float, str]]:
    widest_first = sorted(bands, reverse=True)
    return [(level, half, f"band{place + 2}") for place, (level, half) in enumerate(widest_first[:2])]


def _locator(whole: Scale, scale: Scale, facts: EstimateFacts) -> list[Child]:
    """The whole public range as a thin bar, and a lens from the part that is enlarged below it."""
    low, high = facts.bounds
    left, right = (min(max(whole(edge), whole.start), whole.end) for edge in (scale.low, scale.high))
    shape = [(left, 28.0), (right, 28.0), (scale.end, 54.0), (scale.start, 54.0)]
    return [
        label(whole.start, 12, f"the public range, {number(low, 5)} to {number(high, 5)}", "quiet"),
        box(whole(low), 20, whole(high) - whole(low), 8, "track", radius=4),
        box(left, 20, max(right - left, 3.0), 8, "band3", radius=2),
        area(shape[:2], [shape[3], shape[2]], "lens"),
    ]


def parts_chart(parts: Sequence[Part], width: float) -> Drawing:
    """A bar divided into parts, each with its share if there is room; parts below zero in a bar of their own."""
    gains = [(size, class_) for _, size, class_, _ in parts if size > 0.0]
    losses = [(-size, class_) for _, size, class_, _ in parts if size < 0.0]
    whole = max(sum(size for size, _ in gains), sum(size for size, _ in losses)) or 1.0
    marks: list[Child] = []
    for row, bar in enumerate(bar for bar in (gains, losses) if bar):
        place, top = 0.0, 46.0 * row
        for size, class_ in bar:
            span = size / whole * width
            marks.append(box(place, top, span, 36, f"{class_} gap", radius=2))
            words = percent(size / whole) if not losses else "below zero" if bar is losses else ""
            if words and span > text_width(words) + 14:
                marks.append(label(place + span / 2, top + 23, words, f"on-{class_} strong", anchor="middle"))
            place += span
    return Drawing(width=width, height=82 if gains and losses else 36, marks=tuple(marks))


def legend(parts: Sequence[Part]) -> Markup:
    """What the colours mean, with the amounts; text, not picture."""
    items = [
        element("li", swatch(class_), element("span", name), element("b", words)) for name, _, class_, words in parts
    ]
    return element("ul", items, class_="legend")


def swatch(class_: str) -> Markup:
    """A small square of a colour."""
    return element("svg", box(0, 0, 12, 12, class_, radius=2), viewBox="0 0 12 12", class_="swatch", aria_hidden="true")


def loss_chart(bars: Histogram, median: float | None, cap: float | None, width: float) -> Drawing:
    """How many people lose how much."""
    y = round_scale(bars.heights, 240, 34, wanted=4)
    left = margin_for(y, wanted=4)
    x = Scale(min(0.0, bars.edges[0]), bars.edges[-1], left, width - 12)
    marks = axis_y(y, left, width - 12, f"people per {number(bars.width)} of ε", wanted=4)
    for first, last, height in zip(bars.edges, bars.edges[1:], bars.heights, strict=False):
        marks.append(box(x(first), y(height), x(last) - x(first), y(0) - y(height), "s1 gap"))
    if median is not None:
        marks += _flag(x(median), y, width, f"median {number(median)}", "mark", row=0)
    if cap is not None and cap <= bars.edges[-1] * (1 + 1e-9):
        marks += _flag(x(cap), y, width, f"cap {number(cap)}", "dash", row=1)
    marks += axis_x(x, 240, "privacy loss ε of those bought from", wanted=4 if width == NARROW else 8)
    return Drawing(width=width, height=286, marks=tuple(marks))


def _flag(x: float, y: Scale, width: float, text: str, class_: str, *, row: int) -> list[Child]:
    """A vertical line with words at its top, on whichever side there is room, in a row of their own."""
    fits = x + 6 + text_width(text) < width
    words = label(x + 6 if fits else x - 6, y.end + 2 + 17 * row, text, "halo", anchor="start" if fits else "end")
    return [rule(x, y.start, x, y.end - 8, class_), words]


def schedule_chart(curves: Sequence[Curve], currency: Currency | None, width: float) -> Drawing:
    """Privacy loss against what a person reports."""
    y = round_scale([value for curve in curves for value in curve.privacy_loss], 220, 34, wanted=4)
    left = margin_for(y, wanted=4)
    x = _report_scale(curves, left, width)
    marks = axis_y(y, left, width - 12, "privacy loss ε", wanted=4)
    for place, curve in enumerate(curves):
        points = [(x(c), y(loss)) for c, loss in zip(curve.reports, curve.privacy_loss, strict=True)]
        if len(curves) == 1:
            marks.append(area(points, [(x(c), y(0)) for c in curve.reports], "band1"))
        marks.append(line(points, f"l{place % 4 + 1}"))
    marks += axis_x(x, 220, _report_title(currency), wanted=4 if width == NARROW else 8)
    return Drawing(width=width, height=266, marks=tuple(marks))


def payment_chart(curves: Sequence[Curve], currency: Currency | None, width: float) -> Drawing:
    """Payment against what a person reports: divided into compensation and rent for one curve, in total for several."""
    totals = [[sum(parts) for parts in zip(c.compensation, c.rent, c.other, strict=True)] for c in curves]
    tops = [pay + rent for c in curves for pay, rent in zip(c.compensation, c.rent, strict=True)]
    y = round_scale([*tops, *(value for total in totals for value in total)], 220, 34, wanted=4)
    left = margin_for(y, wanted=4)
    x = _report_scale(curves, left, width)
    title = f"payment, {currency_words(currency)}"
    marks = axis_y(y, left, width - 12, title, wanted=4)
    for place, (curve, total) in enumerate(zip(curves, totals, strict=True)):
        across = [x(c) for c in curve.reports]
        if len(curves) > 1:
            marks.append(line([(a, y(v)) for a, v in zip(across, total, strict=True)], f"l{place % 4 + 1}"))
            continue
        floor = [(a, y(0)) for a in across]
        paid = [(a, y(v)) for a, v in zip(across, curve.compensation, strict=True)]
        roof = [(a, y(p + r)) for a, p, r in zip(across, curve.compensation, curve.rent, strict=True)]
        marks += [area(paid, floor, "s1"), area(roof, paid, "s2")]
        marks.append(line([(a, y(v)) for a, v in zip(across, total, strict=True)], "l0 thin"))
    marks += axis_x(x, 220, _report_title(currency), wanted=4 if width == NARROW else 8)
    return Drawing(width=width, height=266, marks=tuple(marks))


def _report_scale(curves: Sequence[Curve], left: float, width: float) -> Scale:
    return Scale(min(c.reports[0] for c in curves), max(c.reports[-1] for c in curves), left, width - 14)


def _report_title(currency: Currency | None) -> str:
    return f"what a person asks for one unit of ε, {currency_words(currency)}"


def curve_legend(curves: Sequence[Curve]) -> Markup | None:
    """Which line is whose, where there are several."""
    if len(curves) < 2:
        return None
    items = []
    for place, curve in enumerate(curves):
        key = element(
            "svg",
            line([(0, 6), (30, 6)], f"l{place % 4 + 1}"),
            viewBox="0 0 30 12",
            class_="key chart",
            aria_hidden="true",
        )
        items.append(element("li", key, element("span", curve.name)))
    return element("ul", items, class_="legend")
