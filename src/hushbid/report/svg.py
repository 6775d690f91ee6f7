"""Just enough SVG for our charts: scales, axes, marks, and charts that are also text.

A chart is drawn twice: wide for screens and paper, narrow for phones; the style sheet shows one.
Colours are classes (``s1`` … filled, ``l1`` … stroked), so that light, dark and print are the style sheet's business.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from hushbid.report.language import number, percent, say
from hushbid.report.rendering import shown, stylesheet
from hushbid.report.suppression import round_step

WIDE, NARROW = 704.0, 344.0
_LETTER = 7.1
"""The width of a letter, roughly, at the size of chart text."""

Point = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """The inside of a chart."""

    width: float
    height: float
    marks: tuple[Markup, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The numbers behind a picture."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A picture, what is said of it to those who cannot see it, and the numbers behind it."""

    name: str
    """By which its parts are known on the page."""

    title: str
    """What is to be seen in it."""

    description: str
    """What those see who see it."""

    draw: Callable[[float], Drawing]
    """The drawing in a given width."""

    table: Table | None = None
    """Its numbers; None where they stand beside it."""

    @property
    def wide(self) -> Markup:
        """For screens and paper."""
        return self._picture(WIDE, "wide")

    @property
    def narrow(self) -> Markup:
        """For phones."""
        return self._picture(NARROW, "narrow")

    def _repr_svg_(self) -> str:  # what a notebook shows
        head = Drawing(width=WIDE, height=34.0, marks=(label(0, 14, self.title, "strong"),))
        return document(below(head, self.draw(WIDE)), title=self.title, description=self.description)

    def _picture(self, width: float, kind: str) -> Markup:
        name = f"{self.name}-{kind}"
        return picture(self.draw(width), name=name, title=self.title, description=self.description, class_=kind)


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a divided bar, and its line in the legend."""

    name: str
    size: float
    colour: str
    words: str = ""
    """The size as it is written; empty where the legend only names colours."""


@dataclass(frozen=True, slots=True)
class Scale:
    """A straight line from values to places."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        span = self.high - self.low
        return self.start + (value - self.low) / span * (self.end - self.start) if span > 0.0 else self.start

    def ticks(self, wanted: int = 5) -> tuple[float, ...]:
        """About so many round values."""
        if not self.high > self.low:
            return (self.low,)
        step = round_step((self.high - self.low) / max(wanted, 1))
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return tuple(float(f"{k * step:.10g}") for k in range(first, last + 1))


def round_scale(values: Sequence[float], start: float, end: float, *, wanted: int = 5) -> Scale:
    """Return a scale with room for 0 and all values that begins and ends at a round one."""
    low, high = min(*values, 0.0), max(*values, 0.0)
    if not high > low:
        high = low + (abs(low) or 1.0)
    step = round_step((high - low) / wanted)
    return Scale(math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step, start, end)


def mark(tag: str, *inside: str | Markup, **attributes: str | float | None) -> Markup:
    """One element of a picture; text and values are escaped. ``class_`` gives ``class``, None leaves out.

    >>> mark("text", "a < b", class_="title", text_anchor="end", x=None)
    Markup('<text class="title" text-anchor="end">a &lt; b</text>')
    """
    values = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(shown(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{tag}{values}>{Markup('').join(escape(shown(one)) for one in inside)}</{tag}>")


def line(points: Sequence[Point], class_: str) -> Markup:
    """A line through points."""
    return mark("path", d=_path(points), class_=f"line {class_}")


def area(upper: Sequence[Point], lower: Sequence[Point], class_: str) -> Markup:
    """What lies between two lines."""
    return mark("path", d=_path([*upper, *reversed(lower)]) + "Z", class_=class_)


def rule(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    """A straight line from one place to another."""
    return mark("line", x1=_n(x1), y1=_n(y1), x2=_n(x2), y2=_n(y2), class_=class_)


def box(x: float, y: float, width: float, height: float, class_: str, *, radius: float = 0.0) -> Markup:
    """A rectangle."""
    rounded = _n(radius) if radius else None
    return mark(
        "rect", x=_n(x), y=_n(y), width=_n(max(width, 0.0)), height=_n(max(height, 0.0)), rx=rounded, class_=class_
    )


def dot(x: float, y: float, radius: float, class_: str) -> Markup:
    """A circle."""
    return mark("circle", cx=_n(x), cy=_n(y), r=_n(radius), class_=class_)


def label(x: float, y: float, text: str, class_: str = "", *, anchor: str = "start") -> Markup:
    """Text at a place."""
    return mark(
        "text", text, x=_n(x), y=_n(y), class_=class_ or None, text_anchor=None if anchor == "start" else anchor
    )


def text_width(text: str) -> float:
    """How wide a text will be, roughly."""
    return _LETTER * len(text)


def shortened(text: str, width: float) -> str:
    """A text that fits."""
    room = max(int(width / _LETTER), 4)
    return text if len(text) <= room else text[: room - 1].rstrip() + "…"


def axis_x(
    scale: Scale,
    y: float,
    title: str,
    *,
    wanted: int = 6,
    write: Callable[[float], str] = number,
    top: float | None = None,
) -> list[Markup]:
    """Ticks, their values and a title below; thin lines up to ``top`` if given."""
    marks: list[Markup] = [rule(scale.start, y, scale.end, y, "axis")]
    for tick in scale.ticks(wanted):
        x = scale(tick)
        if top is not None:
            marks.append(rule(x, y, x, top, "grid"))
        marks += [rule(x, y, x, y + 4, "axis"), label(x, y + 18, write(tick), "tick", anchor="middle")]
    marks.append(label((scale.start + scale.end) / 2, y + 38, title, "title", anchor="middle"))
    return marks


def axis_y(
    scale: Scale, x: float, right: float, title: str, *, wanted: int = 5, write: Callable[[float], str] = number
) -> list[Markup]:
    """Values at the left with thin lines across, and a title above the first."""
    marks: list[Markup] = [label(0, scale.end - 14, title, "title")]
    for tick in scale.ticks(wanted):
        y = scale(tick)
        marks += [rule(x, y, right, y, "grid"), label(x - 7, y + 4, write(tick), "tick", anchor="end")]
    return marks


def margin_for(scale: Scale, *, wanted: int = 5, write: Callable[[float], str] = number) -> float:
    """How much room the values of a vertical axis need."""
    return 12.0 + max(text_width(write(tick)) for tick in scale.ticks(wanted))


def plot(
    width: float,
    across: Sequence[float],
    up: Sequence[float],
    titles: tuple[str, str],
    inside: Callable[[Scale, Scale], Sequence[Markup]],
    *,
    bottom: float = 220.0,
    is_round: bool = False,
    wanted: int = 4,
) -> Drawing:
    """A picture between two axes with these titles, with room for the values ``across`` and ``up``.

    ``inside`` draws at the scales of both; that of values across begins and ends at a round value if ``is_round``.
    """
    y = round_scale(up, bottom, 34, wanted=wanted)
    left, right = margin_for(y, wanted=wanted), width - 14
    x = round_scale(across, left, right) if is_round else Scale(min(across), max(across), left, right)
    marks = [*axis_y(y, left, width - 12, titles[1], wanted=wanted), *inside(x, y)]
    marks += axis_x(x, bottom, titles[0], wanted=4 if width == NARROW else 8)
    return Drawing(width=width, height=bottom + 46, marks=tuple(marks))


def flag(x: float, y: Scale, width: float, text: str, class_: str, *, row: int = 0) -> list[Markup]:
    """A vertical line with words at its top, on whichever side there is room, in a row by themselves."""
    side = 1 if x + 6 + text_width(text) < width else -1
    words = label(x + 6 * side, y.end + 2 + 17 * row, text, "halo", anchor="start" if side > 0 else "end")
    return [rule(x, y.start, x, y.end - 8, class_), words]


def histogram(x: Scale, y: Scale, edges: Sequence[float], heights: Sequence[float], class_: str) -> list[Markup]:
    """Bars between edges."""
    return [
        box(x(first), y(height), x(last) - x(first), y(0) - y(height), class_)
        for first, last, height in zip(edges, edges[1:], heights, strict=False)
    ]


def picture(drawing: Drawing, *, name: str, title: str, description: str, class_: str = "") -> Markup:
    """One SVG element."""
    return mark(
        "svg",
        mark("title", title, id=f"{name}-title"),
        mark("desc", description, id=f"{name}-desc"),
        *drawing.marks,
        class_=f"chart {class_}".strip(),
        viewBox=f"0 0 {_n(drawing.width)} {_n(drawing.height)}",
        role="img",
        aria_labelledby=f"{name}-title {name}-desc",
    )


def document(drawing: Drawing, *, title: str, description: str) -> str:
    """One SVG file with its style and a margin."""
    width, height = _n(drawing.width + 32), _n(drawing.height + 32)
    return mark(
        "svg",
        mark("title", title),
        mark("desc", description),
        Markup("<style>{}</style>").format(stylesheet("theme.css", "chart.css")),
        mark("rect", x="-16", y="-16", width=width, height=height, class_="paper"),
        *drawing.marks,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"-16 -16 {width} {height}",
        width=width,
        height=height,
        class_="chart",
        role="img",
    )


def below(upper: Drawing, lower: Drawing) -> Drawing:
    """One drawing under another."""
    moved = mark("g", *lower.marks, transform=f"translate(0 {_n(upper.height)})")
    return Drawing(width=upper.width, height=upper.height + lower.height, marks=(*upper.marks, moved))


def line_legend(names: Sequence[str], *, start: float = 0.0) -> Drawing:
    """Which line is which, in as many rows as needed; the first begins at ``start``."""
    marks: list[Markup] = []
    x, y = start, 15.0
    for place, words in enumerate(names):
        if x > 0.0 and x + 40.0 + text_width(words) > WIDE:
            x, y = 0.0, y + 22.0
        marks += [line([(x, y - 4), (x + 30, y - 4)], f"l{place + 1}"), label(x + 38, y, words)]
        x += 62.0 + text_width(words)
    return Drawing(width=WIDE, height=y + 24.0, marks=tuple(marks))


def divided_bar(parts: Sequence[Part], width: float) -> Drawing:
    """A bar divided into parts, each with its share if there is room; parts below zero in a bar of their own."""
    gains = [(part.size, part.colour) for part in parts if part.size > 0.0]
    losses = [(-part.size, part.colour) for part in parts if part.size < 0.0]
    whole = max(sum(size for size, _ in gains), sum(size for size, _ in losses)) or 1.0
    marks: list[Markup] = []
    for row, bar in enumerate(bar for bar in (gains, losses) if bar):
        place, top = 0.0, 46.0 * row
        for size, colour in bar:
            span = size / whole * width
            marks.append(box(place, top, span, 36, f"{colour} gap", radius=2))
            words = percent(size / whole) if not losses else say("below zero") if bar is losses else ""
            if words and span > text_width(words) + 14:
                marks.append(label(place + span / 2, top + 23, words, f"on-{colour} strong", anchor="middle"))
            place += span
    return Drawing(width=width, height=82 if gains and losses else 36, marks=tuple(marks))


def _path(points: Sequence[Point]) -> str:
    return "M" + "L".join(f"{_n(x)} {_n(y)}" for x, y in points)


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
