"""How much a relation between price and datum could mislead.

The estimate weighs people by how much privacy was bought from them, and that depends on what they asked for. Over the n
people who bid, with weights w that sum to 1 and data x of mean m,

    Σ w_i x_i − m = Σ (w_i − 1/n)(x_i − m) = n · cov(w, x) = ρ(w, x) · sd(x) · √(n Σ w_i² − 1).

So what moves the estimate is the correlation between *weight* and datum, times the data's standard deviation, times how
uneven the weights are (``n Σ w² = n / effective people``). It moves by half an interval, h, when

    |ρ(w, x)| = h / (sd(x) · √(n Σ w² − 1)),

whatever the shape of the relation. If the datum depends on the bid c in a straight line, plus
something that has nothing to do with the weights, then cov(w, x) = cov(w, c)·cov(c, x)/var(c), so

    ρ(w, x) = ρ(w, c) · ρ(c, x),

and the correlation between *bid* and datum that does it is larger by 1/|ρ(w, c)|. Correlations above 1 do not
exist: then nothing of that kind can do it. sd(x) is the declared one; if the true one is smaller, it takes more.

*Strata.* A combination ``Σ ℓ_g·mean_g`` has weights that add up to ``ℓ_g`` in each of them, and what differs between
strata does it no harm. In place of 1/n stands ``ℓ_g/n_g``, so that ``n·(Σ w² − Σ ℓ_g²/n_g)`` takes the place of
``n Σ w² − 1``, and weights, data and bids are taken less their stratum's mean. Where ``ℓ_g`` have both signs,
weights are taken without theirs: a relation in the worse direction in each stratum.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from markupsafe import Markup

from hushbid.allocation import Accuracy
from hushbid.common.arrays import FloatArray
from hushbid.common.numbers import with_unit
from hushbid.estimation import Strata
from hushbid.languages import noted
from hushbid.questions import Number
from hushbid.report import protection_chart
from hushbid.report.answers import answer_facts
from hushbid.report.language import count, number, say
from hushbid.report.material import Material
from hushbid.report.suppression import too_few
from hushbid.report.svg import Chart, Drawing, Part, Scale, Table, box, dot, label, line, plot, rule

ANCHOR, TITLE = "selection", noted("Could prices mislead?")


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionFacts:
    """How far the estimate would move if prices and data were related; see the module."""

    spread: float
    """The declared standard deviation of the data."""

    half_width: float
    """Half the interval: the move in question."""

    shift_per_correlation: float
    """How far a correlation of 1 between weight and datum moves the estimate."""

    effective_people: float
    """How many equally weighted people would be as precise."""

    weight_cost_correlation: float | None
    """Between weight and bid; None if one of them is the same for all."""

    any_shape: float | None
    """The correlation of weight and datum that moves the estimate by ``half_width``; None if nothing does."""

    linear: float | None
    """The correlation of bid and datum that does, if the datum depends on it in a straight line."""

    about: str = ""
    """Of a survey, the question that is moved most easily, which this is about."""

    protection: protection_chart.ProtectionFacts | None = None
    """What the campaign was protected against, and what other degrees would have cost."""


def facts_of(material: Material) -> SelectionFacts | None:
    """Which correlation would move the estimate by half an interval; None if too few people are behind it."""
    outcome = material.outcome
    if too_few(material.fewest):
        return None
    variance, half_width = float(np.mean(outcome.market.stated_variance)), material.half_width
    about = ""
    if outcome.market.survey is not None:
        variance, half_width, about = _easiest(material)
    found = selection_facts(
        outcome.weights,
        outcome.bids,
        variance=variance,
        half_width=half_width,
        strata=outcome.market.stratified,
    )
    found = replace(found, about=about)
    return replace(found, protection=protection_chart.protection_facts(outcome) if outcome.active else None)


def _easiest(material: Material) -> tuple[float, float, str]:
    """Of a survey's questions the one that is moved most easily: its variance, half its interval, and its name.

    Both relative to its range, or to the standard error that was stated for it, as all errors of a survey are.
    """
    market = material.outcome.market
    goal, found = market.stated_goal, []
    for row, (question, answer) in enumerate(zip(market.survey or (), answer_facts(material), strict=True)):
        unit = goal.targets[row] if isinstance(goal, Accuracy) else question.width
        spread = math.sqrt(question.largest_variance) * question.width
        half = answer.half_width if isinstance(question, Number) else answer.half_width / 100.0  # of shares in percent
        found.append((half / spread, (spread / unit) ** 2, half / unit, answer.name))
    _, variance, half, name = min(found)
    return variance, half, name


def selection_facts(
    weights: FloatArray, bids: FloatArray, *, variance: float, half_width: float, strata: Strata | None = None
) -> SelectionFacts:
    """Which correlation would move the estimate by ``half_width``."""
    sizes = np.abs(weights)
    n, squares, total = weights.size, float(np.dot(weights, weights)), float(sizes.sum())
    even = total**2 / n if strata is None else _even(strata)
    # √(n Σ w² − 1): zero for equal weights
    unevenness = math.sqrt(max(n * (squares - even), 0.0)) if squares > 0.0 else 0.0
    if unevenness < 1e-6:  # equal weights: nobody is preferred
        unevenness = 0.0
    shift = math.sqrt(variance) * unevenness
    between = _correlation(_inside(sizes, strata), _inside(bids, strata))
    return SelectionFacts(
        spread=math.sqrt(variance),
        half_width=half_width,
        shift_per_correlation=shift,
        effective_people=total**2 / squares if squares > 0.0 else 0.0,
        weight_cost_correlation=between,
        any_shape=_needed(half_width, shift),
        linear=None if between is None else _needed(half_width, shift * abs(between)),
    )


def _even(strata: Strata) -> float:
    """``Σ ℓ_g²/n_g``: the sum of squared weights if everybody in a stratum has the same."""
    return float(np.sum(np.square(strata.weights) / np.bincount(strata.codes, minlength=strata.count)))


def _inside(values: FloatArray, strata: Strata | None) -> FloatArray:
    """Values less the mean of their stratum: what differs between strata does not move the estimate."""
    if strata is None or not np.isfinite(values).all():
        return values
    sums = np.bincount(strata.codes, weights=values, minlength=strata.count)
    found: FloatArray = values - (sums / np.bincount(strata.codes, minlength=strata.count))[strata.codes]
    return found


def _needed(half_width: float, shift: float) -> float | None:
    if shift <= 0.0 or not math.isfinite(half_width):
        return None
    correlation = half_width / shift
    return correlation if correlation <= 1.0 else None


def _correlation(first: FloatArray, second: FloatArray) -> float | None:
    if first.size < 2 or not np.isfinite(second).all():
        return None
    a, b = _centred(first), _centred(second)
    scale = math.sqrt(float(a @ a)) * math.sqrt(float(b @ b))
    return float(a @ b) / scale if scale > 0.0 else None


def _centred(values: FloatArray) -> FloatArray:
    """Less the mean, and of size one, so that squares neither overflow nor vanish."""
    largest = float(np.max(np.abs(values)))
    scaled = values / largest if largest > 0.0 else values
    centred: FloatArray = scaled - scaled.mean()
    return np.where(np.abs(centred) < 1e-14, 0.0, centred)


def half_interval(facts: SelectionFacts, unit: str) -> str:
    """The move in question, in words."""
    return with_unit(number(facts.half_width, 2), unit)


def shapes(facts: SelectionFacts) -> list[Part]:
    """The relations that are drawn."""
    any_shape = Part(say("a relation of any shape, by weight"), 0, "s2")
    straight = Part(say("a straight-line relation with the price"), 0, "s1")
    return [any_shape] if facts.linear is None else [straight, any_shape]


def chart(facts: SelectionFacts, unit: str) -> Chart:
    """How far the estimate moves, either way, with the size of the correlation, against half the interval."""
    assert facts.any_shape is not None
    return Chart(
        name="selection",
        title=say("How far a relation between price and datum would move the estimate"),
        description=say(
            "Two lines from zero. The interval's half-width, {half}, is reached at a correlation of {any_shape} between"
            " weight and datum{linear}.",
            half=half_interval(facts, unit),
            any_shape=number(facts.any_shape, 2),
            linear=""
            if facts.linear is None
            else say(" and at {linear} between price and datum", linear=number(facts.linear, 2)),
        ),
        draw=lambda width: _lines(facts, unit, width),
    )


def _lines(facts: SelectionFacts, unit: str, width: float) -> Drawing:
    slope, half = facts.shift_per_correlation, facts.half_width
    linear = abs(facts.weight_cost_correlation or 0.0) * slope
    reach = min(1.0, 2.0 * half / (linear or slope))

    def inside(x: Scale, y: Scale) -> list[Markup]:
        marks = [box(x.start, y(half), x.end - x.start, y(0) - y(half), "band1")]
        marks.append(label(x.start + 8, y(half) - 6, say("half an interval"), "quiet halo"))
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
        return marks

    titles = (
        say("size of the correlation"),
        say("how far the estimate moves, up or down") + (f", {unit}" if unit else ""),
    )
    return plot(width, (0.0, reach), [reach * slope, 1.2 * half], titles, inside, bottom=240.0, wanted=5)


def arithmetic(facts: SelectionFacts, people: int, unit: str, *, strata: bool = False) -> Table:
    """The formula of the module with its numbers."""
    uneven = number(facts.shift_per_correlation / facts.spread if facts.spread else 0.0)
    between = facts.weight_cost_correlation
    return Table(
        head=(say("Bias = n · cov(weight, datum)"), say("Value")),
        rows=(
            (say("Standard deviation of the data (declared)"), with_unit(number(facts.spread), unit)),
            (say("People bidding, n"), count(people)),
            (
                say(
                    "People as if all counted the same, {formula}", formula="(Σ |w|)² / Σ w²" if strata else "1 / Σ w²"
                ),
                number(facts.effective_people),
            ),
            (
                say(
                    "Unevenness of the weights, {formula}",
                    formula="√(n Σ w² − n Σ ℓ² / n_g)" if strata else "√(n Σ w² − 1)",
                ),
                uneven,
            ),
            (
                say("Correlation of weight and price, inside strata")
                if strata
                else say("Correlation of weight and price"),
                "—" if between is None else number(between),
            ),
            (say("Half the interval"), half_interval(facts, unit)),
        ),
    )
