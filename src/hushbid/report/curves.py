"""The schedule: privacy loss and payment against what a person reports.

Where people differ by nothing but their reports one curve prices everybody; under a prior for each group there is one
curve per group. It is evaluated on an even grid, so that it shows no report. Where variances or user weights differ
from person to person, averages over neighbouring reports take its place.
"""

import math

import numpy as np

from hushbid.arrays import FloatArray, IndexArray
from hushbid.mechanism import Menu, Outcome
from hushbid.priors import Grouped, Prior
from hushbid.report.model import Curve
from hushbid.report.suppression import SMALLEST_CELL, SMALLEST_CHART, round_step

_STEPS = 100
_AVERAGES = 24
_MOST_CURVES = 4


def curves_of(outcome: Outcome, menu: Menu | None = None) -> tuple[Curve, ...]:
    """The schedule of an outcome; from ``menu``, which is nobody's, where too few people are behind it."""
    market = outcome.market
    alike = all(np.unique(np.asarray(value)).size == 1 for value in (market.stated_variance, market.user_weight))
    curves = []
    for name, prior, rows in _groups(outcome):
        if _enough(outcome, rows):
            curves.append(_exact(outcome, name, prior, rows) if alike else _averages(outcome, name, rows))
    curves = [curve for curve in curves if len(curve.reports) > 1]  # all reports equal: one point is no curve
    if not curves and menu is not None and _finite(menu.privacy_loss, menu.payment):
        return (_expected(menu),)
    return tuple(curves[:_MOST_CURVES])


def _groups(outcome: Outcome) -> list[tuple[str, Prior, IndexArray]]:
    prior = outcome.market.prior
    if isinstance(prior, Grouped):
        return sorted(prior.groups, key=lambda group: -group[2].size)
    return [("", prior, np.arange(outcome.reports.size))]


def _enough(outcome: Outcome, rows: IndexArray) -> bool:
    losses = outcome.privacy_loss[rows]
    return int(np.count_nonzero(losses)) >= SMALLEST_CHART and _finite(
        losses, outcome.payments[rows], outcome.reports[rows]
    )


def _finite(*arrays: FloatArray) -> bool:
    return all(bool(np.isfinite(array).all()) for array in arrays)


def _exact(outcome: Outcome, name: str, prior: Prior, rows: IndexArray) -> Curve:
    """Straight lines through everybody's decision, read off at round reports and ending beyond the last purchase."""
    everybody, bought = outcome.reports[rows], outcome.privacy_loss[rows] > 0.0
    low, last = float(everybody.min()), float(everybody[bought].max())
    end = min(float(everybody.max()), prior.support[1], last + 0.25 * (last - low))
    rows = rows[everybody <= end]
    reports, first = np.unique(outcome.reports[rows], return_index=True)
    rows = rows[first]
    step = round_step((end - low) / _STEPS if end > low else (low or 1.0) / _STEPS)
    grid: FloatArray = step * np.arange(
        math.ceil(low / step - 1e-9), math.floor(end / step + 1e-9) + 1, dtype=np.float64
    )
    loss, rent = (np.interp(grid, reports, column[rows]) for column in (outcome.privacy_loss, outcome.information_rent))
    rest = outcome.payments[rows] - reports * outcome.privacy_loss[rows] - outcome.information_rent[rows]
    return _curve(name, grid, loss, rent, np.interp(grid, reports, rest), "exact")


def _averages(outcome: Outcome, name: str, rows: IndexArray) -> Curve:
    order = rows[np.argsort(outcome.reports[rows], kind="stable")]
    parts = np.array_split(order, max(2, min(_AVERAGES, order.size // max(SMALLEST_CELL, 1))))
    columns = (outcome.reports, outcome.privacy_loss, outcome.information_rent, outcome.payments)
    reports, loss, rent, payment = (np.array([column[part].mean() for part in parts]) for column in columns)
    return _curve(name, reports, loss, rent, payment - reports * loss - rent, "average")


def _expected(menu: Menu) -> Curve:
    compensation = menu.reports * menu.privacy_loss
    gain = menu.payment - compensation
    return _curve("", menu.reports, menu.privacy_loss, gain, np.zeros_like(gain), "expected")


def _curve(name: str, reports: FloatArray, loss: FloatArray, rent: FloatArray, other: FloatArray, kind: str) -> Curve:
    scale = float(np.max(np.abs(reports * loss + rent), initial=0.0))
    other = np.where(np.abs(other) <= 1e-9 * scale, 0.0, other)
    return Curve(
        name=name,
        reports=_rounded(reports),
        privacy_loss=_rounded(loss),
        compensation=_rounded(reports * loss),
        rent=_rounded(rent),
        other=_rounded(other),
        kind=kind,  # type: ignore[arg-type]
    )


def _rounded(values: FloatArray) -> tuple[float, ...]:
    """Four digits of the largest: enough for a picture, too few to work backwards from."""
    largest = float(np.max(np.abs(values), initial=0.0))
    if largest == 0.0:
        return tuple(0.0 for _ in range(values.size))
    decimals = 3 - math.floor(math.log10(largest))
    return tuple(round(value, decimals) for value in values.tolist())
