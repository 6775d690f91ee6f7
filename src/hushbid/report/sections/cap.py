"""What other caps on everybody's privacy loss would have cost: the same optimum, clipped elsewhere.

Clipping keeps the rule truthful. The best estimator for the clipped losses has a larger error, and less is paid; the
objective, error and virtual payments together, can only grow.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hushbid.mechanism import Outcome
from hushbid.money import Currency, currency_words, money
from hushbid.report.material import Material
from hushbid.report.sections import settings
from hushbid.report.suppression import enough_for_chart, too_few
from hushbid.report.svg import (
    NARROW,
    Chart,
    Drawing,
    Scale,
    Table,
    area,
    axis_x,
    axis_y,
    label,
    line,
    margin_for,
    round_scale,
    rule,
    text_width,
)
from hushbid.wording import number, with_unit

ANCHOR, TITLE = "cap", "What a cap costs"

_POINTS = 40
_DEAREST = 0.5
"""Caps that add more than this part of the cost are left out: they would flatten the rest of the curve."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CapFacts:
    """What capping everybody's privacy loss costs."""

    capped: settings.SettingFacts | None
    """The campaign as it is; None without a cap."""

    uncapped: settings.SettingFacts | None
    """The campaign as it would have been without its cap."""

    reached: int
    """How many people would have lost more without the cap."""

    curve: tuple[tuple[float, float, float], ...]
    """For other caps: (cap, standard error, objective); empty if people are too few."""


def facts_of(material: Material) -> CapFacts:
    """The campaign with its cap and without, and what other caps would have cost."""
    outcome = material.outcome
    curve, cap = cap_curve(outcome), outcome.market.max_privacy_loss
    if cap is None or too_few(outcome.active):
        return CapFacts(capped=None, uncapped=None, reached=0, curve=curve)
    free = settings.again(outcome, max_privacy_loss=None)
    return CapFacts(
        capped=settings.setting_facts(outcome, "with the cap", material.level),
        uncapped=settings.setting_facts(free, "without", material.level),
        reached=int(np.count_nonzero(free.privacy_loss > cap)),
        curve=curve,
    )


def cap_curve(outcome: Outcome) -> tuple[tuple[float, float, float], ...]:
    """(cap, standard error, objective), caps ascending to the largest loss without one; empty for too few people."""
    population, allocation = outcome.population, outcome.allocation
    if allocation is None:
        return ()
    used = np.flatnonzero(allocation.privacy_loss > 0.0)
    losses = allocation.privacy_loss[used]
    if not enough_for_chart(used.size) or not np.isfinite(losses).all():
        return ()
    costs, buyers = outcome.virtual_costs[used], population.take(used)
    largest = float(losses.max())
    points: list[tuple[float, float, float]] = []
    # from no cap downwards, until it costs too much to be of interest
    for part in np.linspace(1.0, 0.0, _POINTS, endpoint=False).tolist():
        clipped = np.minimum(losses, part * largest)
        mse = buyers.best_estimate(clipped)[1]
        objective = population.error_weight * mse + float(costs @ clipped)
        if points and objective > (1.0 + _DEAREST) * points[0][2]:
            break
        points.append((part * largest, math.sqrt(mse * population.unit), objective))
    return tuple(reversed(points))


def chart(facts: CapFacts, cap: float | None, currency: Currency | None, unit: str) -> Chart:
    """What each cap adds to the cost of error and payments together."""
    best = min(objective for _, _, objective in facts.curve)
    rows = tuple(
        (number(level), with_unit(number(error), unit), money(objective - best, currency))
        for level, error, objective in facts.curve[:: max(len(facts.curve) // 12, 1)]
    )
    return Chart(
        name="caps",
        title="The lower the cap, the dearer the error",
        description=f"Extra cost against the cap: it falls to nothing at ε = {number(facts.curve[-1][0])}.",
        draw=lambda width: _extra_cost(facts.curve, cap, currency, width),
        table=Table(head=("Cap on ε", "Standard error", "Extra cost"), rows=rows),
    )


def _extra_cost(
    curve: Sequence[tuple[float, float, float]], cap: float | None, currency: Currency | None, width: float
) -> Drawing:
    best = min(objective for _, _, objective in curve)
    extra = [objective - best for _, _, objective in curve]
    y = round_scale(extra, 220, 34, wanted=4)
    left = margin_for(y, wanted=4)
    last = curve[-1][0]
    x = Scale(0.0, max(last, min(cap or 0.0, 1.25 * last)), left, width - 14)
    points = [(x(level), y(more)) for (level, _, _), more in zip(curve, extra, strict=True)]
    marks = axis_y(y, left, width - 14, f"extra cost, {currency_words(currency)}", wanted=4)
    marks += [area(points, [(place, y(0)) for place, _ in points], "band1"), line(points, "l1")]
    if cap is not None and cap <= x.high:
        words = f"this campaign: cap {number(cap)}"
        fits = x(cap) + 8 + text_width(words) < width
        marks += [
            rule(x(cap), y.start, x(cap), y.end - 8, "dash"),
            label(x(cap) + (8 if fits else -8), y.end + 2, words, "halo", anchor="start" if fits else "end"),
        ]
    marks += axis_x(x, 220, "cap on everybody's ε", wanted=4 if width == NARROW else 8)
    return Drawing(width=width, height=266, marks=tuple(marks))
