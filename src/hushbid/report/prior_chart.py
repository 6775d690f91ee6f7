"""A picture of a pilot sample against fitted priors: densities, cumulative shares, and the virtual costs they imply.

The sample is shown as a histogram and as cumulative shares at the histogram's edges, each bar with at least five people
behind it; below twenty people only the priors are drawn. An `Empirical` prior is drawn at the edges alone, since its
steps are people's values, and so is a `KernelDensity`, whose bumps are.
"""

import math
from collections.abc import Mapping, Sequence
from functools import reduce

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
    below,
    box,
    document,
    dot,
    label,
    line,
    line_legend,
    plot,
    rule,
    text_width,
)
from hushbid.report.svg import histogram as bars_between

MOST_PRIORS = 7
_STEPS = 240
_BOTTOM = 224.0
_STEEPEST = 3.0

Named = Sequence[tuple[str, Prior]]
Range = tuple[float, float]


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
    between = _range(bars, [prior for _, prior in ordered])
    title = _axis_title(Currency.of(currency) if isinstance(currency, str) else currency)
    drawing = reduce(
        below,
        [
            _legend(ordered, chosen, values.size),
            _density(between, bars, values.size, ordered, title),
            _shares(between, bars, values.size, ordered, title),
            _virtual_costs(between, bars, ordered, title),
        ],
    )
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


def _legend(ordered: Named, chosen: str | None, people: int) -> Drawing:
    """Which line is which, in as many rows as needed."""
    note = "" if people >= SMALLEST_CHART else f" (not shown: fewer than {SMALLEST_CHART} people)"
    sample = f"pilot sample, {people:,} people{note}"
    named = [
        plain(name) + (", chosen" if name == chosen else "") + ("" if prior.is_regular else ", ironed")
        for name, prior in ordered
    ]
    lines = line_legend(named, start=44.0 + text_width(sample))
    marks = (box(0, 4, 12, 12, "band2", radius=2), label(20, 15, sample), *lines.marks)
    return Drawing(width=WIDE, height=lines.height, marks=marks)


def _points(prior: Prior, between: Range, bars: Histogram | None) -> FloatArray:
    """Where a prior is looked at: on an even grid, or for one that is made of people, at the histogram's edges."""
    low, high = prior.support
    if isinstance(prior, Empirical | KernelDensity):
        edges = np.array([] if bars is None else bars.edges)
        return edges[(edges >= low) & (edges <= high)]
    grid = np.linspace(*between, _STEPS)
    ends = [end for end in (low, high) if between[0] <= end <= between[1]]
    inside = grid[(grid >= low) & (grid <= high)]
    return np.unique(np.concatenate([inside, ends]))


def _density(between: Range, bars: Histogram | None, people: int, ordered: Named, title: str) -> Drawing:
    curves = []
    for place, (_, prior) in enumerate(ordered):
        if not isinstance(prior, Empirical | KernelDensity):
            points = _points(prior, between, bars)
            curves.append((place, points, np.asarray(prior.pdf(points))))
    heights = [] if bars is None else [height / (people * bars.width) for height in bars.heights]
    typical = [float(np.quantile(found, 0.98)) for _, _, found in curves if found.size]
    most = 1.15 * max([*heights, *(min(one, 2.5 * max(heights, default=math.inf)) for one in typical)], default=1.0)

    def inside(x: Scale, y: Scale) -> list[Markup]:
        marks = [] if bars is None else bars_between(x, y, bars.edges, heights, "band2 gap")
        return marks + [part for place, points, found in curves for part in _lines(x, y, points, found, place)]

    up = (0.0, most if 0.0 < most < math.inf else 1.0)
    return plot(WIDE, between, up, (title, "density"), inside, bottom=_BOTTOM)


def _shares(between: Range, bars: Histogram | None, people: int, ordered: Named, title: str) -> Drawing:
    def inside(x: Scale, y: Scale) -> list[Markup]:
        marks: list[Markup] = []
        for place, (_, prior) in enumerate(ordered):
            points = _points(prior, between, bars)
            marks += _lines(x, y, points, np.asarray(prior.cdf(points)), place)
        if bars is not None:
            reached = (np.cumsum((0, *bars.counts)) / people).tolist()
            marks += [dot(x(edge), y(share), 4, "point") for edge, share in zip(bars.edges, reached, strict=True)]
        return marks

    return plot(WIDE, between, (0.0, 1.0), (title, "share of people up to this cost"), inside, bottom=_BOTTOM)


def _virtual_costs(between: Range, bars: Histogram | None, ordered: Named, title: str) -> Drawing:
    curves = []
    for _, prior in ordered:
        points = _points(prior, between, bars)
        curves.append((points, np.asarray(prior.virtual_cost(points))))
    low, high = between
    finite = [float(cost) for _, costs in curves for cost in costs if cost <= _STEEPEST * high]

    def inside(x: Scale, y: Scale) -> list[Markup]:
        marks = [rule(x.start, y(low), x.end, y(high), "grid")]
        for place, (points, costs) in enumerate(curves):
            marks += _lines(x, y, points, costs, place)
        return marks

    titles = (title, "virtual cost after ironing; thin: the cost itself")
    return plot(WIDE, between, [0.0, high, *finite], titles, inside, bottom=_BOTTOM)


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
