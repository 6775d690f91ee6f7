"""Pictures for notebooks, where one says more than a table: each function draws on Matplotlib axes and returns them.

    from hushbid.report import plots

    plots.frontier(plan)
    plots.schedule(outcome, ax=axes[0])

With ``ax`` it is drawn there, otherwise in a new figure of pyplot's, which a notebook shows. Matplotlib is in the extra
``plot`` and loaded when something is drawn. What is shown of people follows the rules of bids (`suppression`): where
too few are behind a picture, a sentence stands in its place.
"""

import math
from typing import TYPE_CHECKING, Literal

import numpy as np

from hushbid.baselines import Comparison
from hushbid.disclosure.error import FEW_IN_STRATUM
from hushbid.errors import InputError, MissingExtra
from hushbid.mechanism import Menu, Outcome, Plan, Simulation
from hushbid.report.rendering import plain
from hushbid.report.schedule_chart import curves_of
from hushbid.report.suppression import SMALLEST_CHART, enough_for_chart, fewest, histogram, too_few

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# the colours of reports
_OURS, _OTHERS, _QUIET = "#0072b2", "#e69f00", "#8a919c"
_LINES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")
_STYLES = ("-", "--", ":", "-.")
_FEW = f"Withheld: with fewer than {SMALLEST_CHART} people\nthis could show what one of them bid."
_QUANTITIES = {
    "total_payment": "total payment",
    "mse": "mean squared error if unrelated",
    "worst_mse": "mean squared error at worst",
    "objective": "objective",
    "buyer_cost": "cost to the buyer",
    "share_bought": "share bought from",
    "largest_loss": "largest privacy loss",
}


def frontier(plan: Plan, *, ax: "Axes | None" = None) -> "Axes":
    """Error against money: what campaigns come to with the goal as stated (filled), with more and with less."""
    _must_be(plan, Plan, "plan")
    axes = _axes(ax)
    points = [one for one in plan.frontier if math.isfinite(one.payment) and math.isfinite(one.standard_error)]
    if not points:
        return _sentence(axes, "This goal has no frontier.")
    paid, errors = [one.payment for one in points], [one.standard_error for one in points]
    axes.plot(paid, errors, color=_OURS, marker="o", markerfacecolor="white", zorder=2)
    for one in points:
        if one.goal == plan.market.stated_goal:
            axes.plot([one.payment], [one.standard_error], color=_OURS, marker="o", linestyle="none", label="as stated")
            axes.legend(frameon=False)
    axes.set_ylim(bottom=0.0)
    return _labelled(
        axes, x="expected total payment", y="standard error", title=f"Error against money, {plan.n:,} people"
    )


def schedule(
    outcome: Outcome,
    *,
    menu: Menu | None = None,
    show: Literal["privacy_loss", "payment"] = "privacy_loss",
    ax: "Axes | None" = None,
) -> "Axes":
    """Privacy loss, or payment, against what a person bids; where groups have priors of their own, a line for each
    of the four largest from which at least 20 people are bought from.

    As in a report: read off at round bids, from at least 20 people bought from; with fewer, from ``menu``, made by
    ``market.menu``, which nobody's bid is behind.
    """
    _must_be(outcome, Outcome, "outcome")
    if show not in ("privacy_loss", "payment"):
        raise InputError(f"show must be 'privacy_loss' or 'payment', got {show!r}.", field="show")
    axes = _axes(ax)
    curves = curves_of(outcome, menu)
    if not curves and too_few(fewest(outcome)):
        return _sentence(axes, FEW_IN_STRATUM if outcome.market.strata else _FEW)
    if not curves:
        return _sentence(axes, "These bids make no curve." if enough_for_chart(outcome.active) else _FEW)
    for place, curve in enumerate(curves):
        paid = [sum(parts) for parts in zip(curve.compensation, curve.rent, curve.other, strict=True)]
        heights = list(curve.privacy_loss) if show == "privacy_loss" else paid
        style = {"color": _LINES[place], "linestyle": _STYLES[place]}
        axes.plot(list(curve.bids), heights, label=_literal(curve.name), **style)  # type: ignore[arg-type]
    if curves[0].name:
        axes.legend(frameon=False)
    expected = " (expected)" if curves[0].kind == "expected" else ""
    title = "The more a person asks, the less is bought from her" if show == "privacy_loss" else "What a person is paid"
    return _labelled(
        axes,
        x="what a person asks for one unit of ε",
        y=("privacy loss ε" if show == "privacy_loss" else "payment") + expected,
        title=title,
    )


def losses(outcome: Outcome, *, ax: "Axes | None" = None) -> "Axes":
    """How many people lose how much privacy, of those bought from: bars of round width with at least 5 people each."""
    _must_be(outcome, Outcome, "outcome")
    axes = _axes(ax)
    if outcome.market.strata and too_few(fewest(outcome)):
        return _sentence(axes, FEW_IN_STRATUM)
    found = histogram(outcome.privacy_loss[outcome.privacy_loss > 0.0])
    if found is None:
        infinite = np.isinf(outcome.privacy_loss).any()
        return _sentence(axes, "Somebody would lose all privacy:\nthere is no scale for that." if infinite else _FEW)
    edges = np.asarray(found.edges)
    axes.bar(edges[:-1], found.heights, width=np.diff(edges), align="edge", color=_OURS, edgecolor="white")
    per = f"people per {found.width:g} of ε"
    return _labelled(axes, x="privacy loss ε", y=per, title=f"Privacy losses of {outcome.active:,} people bought from")


def baselines(comparison: Comparison, *, ax: "Axes | None" = None) -> "Axes":
    """What every way to buy pays for our accuracy, ours on top; grey are those that nobody could really use."""
    _must_be(comparison, Comparison, "comparison")
    axes = _axes(ax)
    if comparison.withheld:
        return _sentence(axes, _FEW)
    rows = [comparison.ours, *comparison.baselines][::-1]
    for place, row in enumerate(rows):
        real = row.truthful and row.voluntary
        colour = _OURS if row is comparison.ours else _OTHERS if real else _QUIET
        if math.isfinite(row.payment_for_same_error):
            axes.barh(place, row.payment_for_same_error, color=colour)
        else:
            axes.text(0.0, place, " out of reach", va="center", color=_QUIET)
    axes.set_yticks(range(len(rows)), [_literal(row.name) for row in rows])
    axes.set_ylim(-0.6, len(rows) - 0.4)  # also where the last has no bar
    return _labelled(axes, x="total payment", y="", title="What the same accuracy would have cost")


def simulation(found: Simulation, name: str = "total_payment", *, ax: "Axes | None" = None) -> "Axes":
    """The distribution of a figure over simulated campaigns, its mean, and what one campaign of 20 exceeds."""
    _must_be(found, Simulation, "found")
    if name not in _QUANTITIES:
        raise InputError(f"name must be one of {', '.join(_QUANTITIES)}, got {name!r}.", field="name")
    axes = _axes(ax)
    values = getattr(found, name)
    finite = values[np.isfinite(values)]
    if not finite.size:
        return _sentence(axes, "In no campaign anything was bought.")
    axes.hist(finite, bins=min(max(round(math.sqrt(finite.size)), 8), 40), color=_OURS, edgecolor="white")
    axes.axvline(float(finite.mean()), color="#1d2129", label="mean")
    upper = found.quantile(name).value
    if math.isfinite(upper):
        axes.axvline(upper, color="#1d2129", linestyle="--", label="exceeded in one of 20")
    axes.legend(frameon=False)
    left_out = f", {values.size - finite.size} without an estimate left out" if finite.size < values.size else ""
    title = f"{values.size} simulated campaigns of {found.n:,} people{left_out}"
    return _labelled(axes, x=_QUANTITIES[name], y="campaigns", title=title)


def _must_be(given: object, kind: type, name: str) -> None:
    if not isinstance(given, kind):
        raise InputError(f"{name} must be a {kind.__name__}, got {type(given).__name__}.", field=name)


def _axes(ax: "Axes | None") -> "Axes":
    """Those given, or new ones."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise MissingExtra("Pictures need matplotlib: pip install '.[plot]' in a checkout.") from None
    return plt.subplots(layout="constrained")[1]


def _labelled(axes: "Axes", *, x: str, y: str, title: str) -> "Axes":
    axes.set(xlabel=x, ylabel=y, title=title)
    axes.grid(visible=True, linewidth=0.4, color="#cccccc")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def _sentence(axes: "Axes", text: str) -> "Axes":
    """In the place of a picture."""
    axes.set_axis_off()
    axes.text(0.5, 0.5, text, ha="center", va="center", transform=axes.transAxes)
    return axes


def _literal(text: str) -> str:
    """A name as it is: neither a formula, which dollars enclose, nor hidden from the legend by an underscore."""
    shown = plain(text).replace("$", r"\$")
    return f" {shown}" if shown.startswith("_") else shown
