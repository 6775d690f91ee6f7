"""The charts that compare: groups, correlations, settings, caps and audits."""

import math
from collections.abc import Callable, Sequence

from hushbid.money import Currency, currency_words, money
from hushbid.report.html import Child
from hushbid.report.model import AuditLine, CapFacts, RivalFacts, SelectionFacts, SettingFacts
from hushbid.report.suppression import GroupRow
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
    shortened,
    text_width,
)
from hushbid.wording import number, percent

_LONGEST_BAR = 4.0
"""A rival who pays more than so many times as much gets a broken bar, or the others would be too short to compare."""

Measure = tuple[str, Callable[[SettingFacts], float], Callable[[float], str]]
"""What is compared: its name, how to get it, how to write it."""


def groups_chart(rows: Sequence[GroupRow], width: float) -> Drawing:
    """Each group's share of people against its share of the estimate."""
    narrow = width == NARROW
    step = 50.0 if narrow else 36.0
    left = 8.0 if narrow else min(max(text_width(row.name) for row in rows) + 20.0, 270.0)
    shares = [share for row in rows for share in (row.share_of_people, row.share_of_weight) if share is not None]
    bottom = 26.0 + step * len(rows)
    scale = round_scale(shares, left, width - 26, wanted=4 if narrow else 6)
    marks = axis_x(scale, bottom, "share", wanted=4 if narrow else 6, write=percent, top=14)
    for place, row in enumerate(rows):
        y = 26.0 + step * (place + (0.72 if narrow else 0.5))
        name = shortened(row.name, width - 20 if narrow else left - 14)
        marks.append(label(2, y - 16, name) if narrow else label(left - 12, y + 4, name, anchor="end"))
        if row.share_of_weight is not None:
            marks.append(rule(scale(row.share_of_people), y, scale(row.share_of_weight), y, "link"))
        marks.append(dot(scale(row.share_of_people), y, 6, "hollow"))
        if row.share_of_weight is not None:
            marks.append(dot(scale(row.share_of_weight), y, 6.5, "s1"))
    return Drawing(width=width, height=bottom + 46, marks=tuple(marks))


def selection_chart(facts: SelectionFacts, unit: str, width: float) -> Drawing:
    """How far the estimate moves, either way, with the size of the correlation, against half the interval."""
    slope, half = facts.shift_per_correlation, facts.half_width
    linear = abs(facts.weight_cost_correlation or 0.0) * slope
    reach = min(1.0, 2.0 * half / (linear or slope))
    y = round_scale([reach * slope, 1.2 * half], 240, 34)
    left = margin_for(y)
    x = Scale(0.0, reach, left, width - 14)
    marks: list[Child] = [box(left, y(half), width - 14 - left, y(0) - y(half), "band1")]
    marks += axis_y(y, left, width - 14, f"how far the estimate moves, up or down{f', {unit}' if unit else ''}")
    marks.append(label(left + 8, y(half) - 6, "half an interval", "quiet halo"))
    marks.append(line([(x(0), y(0)), (x(reach), y(reach * slope))], "l2 thin"))
    if linear:
        marks.append(line([(x(0), y(0)), (x(reach), y(reach * linear))], "l1"))
    for correlation, side in ((facts.any_shape, "end"), (facts.linear, "start")):
        if correlation is not None and correlation <= reach:
            away = -7 if side == "end" else 7
            marks += [
                rule(x(correlation), y(half), x(correlation), y.start, "dash"),
                dot(x(correlation), y(half), 5, "point"),
                label(x(correlation) + away, y.start - 8, number(correlation, 2), "strong halo", anchor=side),
            ]
    marks += axis_x(x, 240, "size of the correlation", wanted=4 if width == NARROW else 8)
    return Drawing(width=width, height=286, marks=tuple(marks))


def settings_chart(settings: Sequence[SettingFacts], measures: Sequence[Measure], width: float) -> Drawing:
    """One block of bars per measure, each on its own scale."""
    narrow = width == NARROW
    left = 0.0 if narrow else 190.0
    marks: list[Child] = []
    top = 0.0
    for name, get, write in measures:
        values = [get(one) for one in settings]
        largest = max(values) or 1.0
        if narrow:
            marks.append(label(0, top + 14, name, "strong"))
            top += 22
        else:
            marks.append(label(left - 14, top + 29, name, anchor="end"))
        for place, (one, value) in enumerate(zip(settings, values, strict=True)):
            words = f"{one.name} {write(value)}"
            room = width - left - text_width(words) - 14
            length = max(room * value / largest, 1.0) if value < float("inf") else room
            y = top + 22.0 * place
            marks += [
                box(left, y + 2, length, 16, f"s{place + 1}", radius=2),
                label(left + length + 7, y + 15, words, "quiet"),
            ]
        top += 22.0 * len(settings) + 18.0
    return Drawing(width=width, height=top - 10, marks=tuple(marks))


def rivals_chart(rows: Sequence[RivalFacts], currency: Currency | None, width: float) -> Drawing:
    """One bar per way to buy: what it pays for the same accuracy."""
    narrow = width == NARROW
    left = 0.0 if narrow else max(text_width(row.name) for row in rows) + 16.0
    step = 44.0 if narrow else 28.0
    finite = [row.payment for row in rows if math.isfinite(row.payment)]
    largest = min(max(finite), _LONGEST_BAR * rows[0].payment)
    room = width - left - max(text_width(money(payment, currency)) for payment in finite) - 14
    marks: list[Child] = []
    for place, row in enumerate(rows):
        y = step * place + (20.0 if narrow else 0.0)
        weight = "strong" if place == 0 else ""
        side = "start" if narrow else "end"
        marks.append(label(0 if narrow else left - 12, y + (-4 if narrow else 15), row.name, weight, anchor=side))
        reached = math.isfinite(row.payment)
        length = min(max(room * row.payment / largest, 1.5), room) if reached else 0.0
        words = money(row.payment, currency) if reached else "out of reach"
        class_ = "s1" if place == 0 else "s2" if row.is_real else "s5"
        if reached:
            marks.append(box(left, y + 2, length, 16, class_, radius=2))
        if reached and row.payment > largest:  # a broken bar
            marks += [rule(left + length - at, y + 20, left + length - at + 8, y, "gap") for at in (24, 19)]
        marks.append(label(left + length + (7 if reached else 0), y + 15, words, "quiet"))
    return Drawing(width=width, height=step * len(rows), marks=tuple(marks))


def cap_chart(facts: CapFacts, cap: float | None, currency: Currency | None, width: float) -> Drawing:
    """What each cap adds to the cost of error and payments together."""
    best = min(objective for _, _, objective in facts.curve)
    extra = [objective - best for _, _, objective in facts.curve]
    y = round_scale(extra, 220, 34, wanted=4)
    left = margin_for(y, wanted=4)
    last = facts.curve[-1][0]
    x = Scale(0.0, max(last, min(cap or 0.0, 1.25 * last)), left, width - 14)
    points = [(x(level), y(more)) for (level, _, _), more in zip(facts.curve, extra, strict=True)]
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


def audit_chart(lines: Sequence[AuditLine], width: float) -> Drawing:
    """What each attack proved to be lost, against what was promised."""
    bars = [(one.bar, one.verdict) for one in lines if one.bar is not None]
    scale = round_scale([value for bar, _ in bars for value in bar], 4, width - 12, wanted=4 if width == NARROW else 7)
    bottom = 30.0 + 40.0 * len(bars)
    marks = axis_x(scale, bottom, "in units of the ε that was promised", wanted=4 if width == NARROW else 7, top=22)
    for place, ((found, promised), verdict) in enumerate(bars):
        y = 30.0 + 40.0 * place
        marks += [
            box(scale(0), y + 8, scale(found) - scale(0), 18, "bad" if verdict == "failed" else "s1", radius=2),
            rule(scale(promised), y, scale(promised), y + 34, "promise"),
        ]
        words = f"proved {number(found, 2)}"
        if min(scale(found), scale(promised)) > text_width(words) + 20:
            marks.append(label(scale(0) + 9, y + 22, words, "on-s1 strong"))
    end = scale(bars[0][0][1])
    side = "end" if end > width / 2 else "start"
    marks.append(label(end, 16, "promised: no more than this", "quiet", anchor=side))
    return Drawing(width=width, height=bottom + 46, marks=tuple(marks))
