"""A picture of a pilot sample against fitted priors: densities, cumulative shares, and the virtual costs they imply.

The sample is shown as a histogram and as cumulative shares at the histogram's edges, each bar with at least five people
behind it; below twenty people only the priors are drawn. An `Empirical` prior is drawn at the edges alone, since its
steps are people's values, and so is a `KernelDensity`, whose bumps are.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from numpy.typing import ArrayLike

from hushbid.common.arrays import FloatArray
from hushbid.common.money import Currency, currency_words
from hushbid.errors import InputError
from hushbid.priors import Empirical, KernelDensity, Prior
from hushbid.report.rendering import plain
from hushbid.report.suppression import SMALLEST_CHART, Histogram, histogram
from hushbid.report.svg import (
    WIDE,
    Drawing,
    Point,
    Scale,
    axis_x,
    axis_y,
    box,
    document,
    dot,
    label,
    line,
    line_legend,
    rule,
    text_width,
)

MOST_PRIORS = 7
_STEPS = 240
_LEFT, _RIGHT, _PANEL, _GAP = 62.0, WIDE - 14.0, 190.0, 84.0
_STEEPEST = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Panel:
    """Where one of the three charts lies."""

    x: Scale
    y: Scale


def prior_picture(
    samples: ArrayLike,
    priors: Mapping[str, Prior],
    *,
    chosen: str | None = None,
    currency: Currency | str | None = None,
) -> str:
    """An SVG document: the sample's distribution, that of each prior, and the ironed virtual costs.

    ``priors`` maps names to fitted priors, at most seven; ``chosen`` is drawn first and named as such. Values of the
    sample are not in the picture: see the module.
    """
    values = np.sort(np.asarray(samples, dtype=np.float64).ravel())
    if values.size == 0 or not (np.isfinite(values) & (values >= 0.0)).all():
        raise InputError("samples must be nonnegative finite numbers, at least one.", field="samples")
    if not 0 < len(priors) <= MOST_PRIORS or (chosen is not None and chosen not in priors):
        raise InputError(
            f"priors must be 1 to {MOST_PRIORS} with the chosen one among them, got {', '.join(priors)}.",
            field="priors",
        )
    ordered = sorted(priors.items(), key=lambda item: item[0] != chosen)
    bars = histogram(values)
    low, high = _range(bars, [prior for _, prior in ordered])
    marks, top = _legend(ordered, chosen, values.size)
    panels = []
    for place in range(3):
        bottom = top + 26.0 + _PANEL + place * (_PANEL + _GAP)
        panels.append(_Panel(x=Scale(low, high, _LEFT, _RIGHT), y=Scale(0.0, 1.0, bottom, bottom - _PANEL)))
    title = _axis_title(Currency.of(currency) if isinstance(currency, str) else currency)
    marks += _density(panels[0], bars, values.size, ordered, title)
    marks += _shares(panels[1], bars, values.size, ordered, title)
    marks += _virtual_costs(panels[2], bars, ordered, title)
    drawing = Drawing(width=WIDE, height=panels[2].y.start + 52.0, marks=tuple(marks))
    names = ", ".join(plain(name) for name, _ in ordered)
    shown = f"A sample of {values.size} costs against these priors: {names}. Top: density; middle: share of"
    picture = document(
        drawing,
        title="Pilot sample and fitted priors",
        description=f"{shown} people up to each cost; bottom: virtual cost after ironing.",
    )
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{picture}\n'


def _axis_title(currency: Currency | None) -> str:
    return f"cost: what one unit of ε costs a person, {currency_words(currency)}"


def _range(bars: Histogram | None, priors: Sequence[Prior]) -> tuple[float, float]:
    if bars is not None:
        low, high = bars.edges[0], bars.edges[-1]
        margin = 0.04 * (high - low)
        return max(low - margin, 0.0), high + margin
    ends = [(float(prior.quantile(0.005)), float(prior.quantile(0.99))) for prior in priors]
    low, high = min(end[0] for end in ends), max(end[1] for end in ends)
    return (low, high) if high > low else (0.0, max(2.0 * high, 1.0))


def _legend(ordered: Sequence[tuple[str, Prior]], chosen: str | None, people: int) -> tuple[list[Markup], float]:
    """Which line is which, in as many rows as needed; returns how far down they reach."""
    note = "" if people >= SMALLEST_CHART else f" (not shown: fewer than {SMALLEST_CHART} people)"
    sample = f"pilot sample, {people:,} people{note}"
    named = [
        plain(name) + (", chosen" if name == chosen else "") + ("" if prior.is_regular else ", ironed")
        for name, prior in ordered
    ]
    lines = line_legend(named, start=44.0 + text_width(sample))
    return [box(0, 4, 12, 12, "band2", radius=2), label(20, 15, sample), *lines.marks], lines.height


def _points(prior: Prior, panel: _Panel, bars: Histogram | None) -> FloatArray:
    """Where a prior is looked at: on an even grid, or for one that is made of people, at the histogram's edges."""
    low, high = prior.support
    if isinstance(prior, Empirical | KernelDensity):
        edges = np.array([] if bars is None else bars.edges)
        return edges[(edges >= low) & (edges <= high)]
    grid = np.linspace(panel.x.low, panel.x.high, _STEPS)
    ends = [end for end in (low, high) if panel.x.low <= end <= panel.x.high]
    inside = grid[(grid >= low) & (grid <= high)]
    return np.unique(np.concatenate([inside, ends]))


def _density(
    panel: _Panel, bars: Histogram | None, people: int, ordered: Sequence[tuple[str, Prior]], title: str
) -> list[Markup]:
    curves = []
    for place, (_, prior) in enumerate(ordered):
        if not isinstance(prior, Empirical | KernelDensity):
            points = _points(prior, panel, bars)
            curves.append((place, points, np.asarray(prior.pdf(points))))
    heights = [] if bars is None else [height / (people * bars.width) for height in bars.heights]
    typical = [float(np.quantile(found, 0.98)) for _, _, found in curves if found.size]
    most = 1.15 * max([*heights, *(min(one, 2.5 * max(heights, default=math.inf)) for one in typical)], default=1.0)
    y = Scale(0.0, most if 0.0 < most < math.inf else 1.0, panel.y.start, panel.y.end)
    marks = _frame(panel.x, y, "density", title)
    if bars is not None:
        for first, last, height in zip(bars.edges, bars.edges[1:], heights, strict=False):
            marks.append(box(panel.x(first), y(height), panel.x(last) - panel.x(first), y(0) - y(height), "band2 gap"))
    return marks + [part for place, points, found in curves for part in _lines(panel.x, y, points, found, place)]


def _shares(
    panel: _Panel, bars: Histogram | None, people: int, ordered: Sequence[tuple[str, Prior]], title: str
) -> list[Markup]:
    marks = _frame(panel.x, panel.y, "share of people up to this cost", title)
    for place, (_, prior) in enumerate(ordered):
        points = _points(prior, panel, bars)
        marks += _lines(panel.x, panel.y, points, np.asarray(prior.cdf(points)), place)
    if bars is not None:
        reached = np.cumsum((0, *bars.counts)) / people
        marks += [
            dot(panel.x(edge), panel.y(share), 4, "point")
            for edge, share in zip(bars.edges, reached.tolist(), strict=True)
        ]
    return marks


def _virtual_costs(
    panel: _Panel, bars: Histogram | None, ordered: Sequence[tuple[str, Prior]], title: str
) -> list[Markup]:
    curves = []
    for _, prior in ordered:
        points = _points(prior, panel, bars)
        curves.append((points, np.asarray(prior.virtual_cost(points))))
    finite = [float(cost) for _, costs in curves for cost in costs if cost <= _STEEPEST * panel.x.high]
    y = Scale(0.0, max([panel.x.high, *finite]), panel.y.start, panel.y.end)
    marks = _frame(panel.x, y, "virtual cost after ironing; thin: the cost itself", title)
    marks.append(rule(panel.x.start, y(panel.x.low), panel.x.end, y(panel.x.high), "grid"))
    for place, (points, costs) in enumerate(curves):
        marks += _lines(panel.x, y, points, costs, place)
    return marks


def _frame(x: Scale, y: Scale, name: str, title: str) -> list[Markup]:
    return [*axis_y(y, _LEFT, _RIGHT, name, wanted=4), *axis_x(x, y.start, title, wanted=8)]


def _lines(x: Scale, y: Scale, points: FloatArray, values: FloatArray, place: int) -> list[Markup]:
    """A curve, interrupted where it leaves the panel."""
    inside = np.isfinite(values) & (values <= y.high * (1 + 1e-9))
    marks: list[Markup] = []
    run: list[Point] = []
    for point, value, drawn in zip(points.tolist(), values.tolist(), inside.tolist(), strict=True):
        if drawn:
            run.append((x(point), y(value)))
        if (not drawn or point == points[-1]) and run:
            marks.append(line(run, f"l{place + 1}") if len(run) > 1 else dot(*run[0], 3, f"s{min(place, 3) + 1}"))
            run = []
    return marks
