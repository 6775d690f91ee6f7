"""What other ways of buying would have paid for the same accuracy, and how far the same money would have gone."""

import math

from hushbid.baselines import ComparisonRow, compare
from hushbid.errors import HushbidError
from hushbid.mechanism import Outcome
from hushbid.report.model import RivalFacts, RivalsFacts
from hushbid.report.suppression import SMALLEST_CHART

MOST_PEOPLE = 20_000
"""With more, searching every rival's terms takes longer than the campaign itself."""


def rivals_facts(outcome: Outcome) -> RivalsFacts:
    """Ours and every rival on the same reports, or why they are not shown."""
    missing = _missing(outcome)
    if missing:
        return RivalsFacts(rows=(), missing=missing)
    try:
        found = compare(outcome.market, outcome.reports)
    except HushbidError as problem:
        return RivalsFacts(rows=(), missing=f"Other ways to buy cannot be computed here: {problem}")
    return RivalsFacts(rows=tuple(_facts(row) for row in (found.ours, *found.rivals)), missing="")


def _missing(outcome: Outcome) -> str:
    if outcome.active < SMALLEST_CHART:
        return f"With fewer than {SMALLEST_CHART} people, what others would pay could show what one of them reported."
    if outcome.reports.size > MOST_PEOPLE:
        return (
            f"For more than {MOST_PEOPLE:,} people this takes longer than the campaign; the command hushbid compare"
            " does it."
        )
    if not 0.0 < outcome.total_payment < math.inf:
        return "People pay on balance, or without limit, so there is no price to compare."
    return ""


def _facts(row: ComparisonRow) -> RivalFacts:
    return RivalFacts(
        name=row.name,
        truthful=row.truthful,
        voluntary=row.voluntary,
        payment=row.payment_for_same_error,
        standard_error=math.sqrt(row.error_for_same_payment),
        note=row.note,
    )
