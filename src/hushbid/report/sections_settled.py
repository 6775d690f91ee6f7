"""What a report says about who delivered and what is owed."""

from hushbid.money import money
from hushbid.report.model import Report
from hushbid.report.suppression import SMALLEST_CHART
from hushbid.wording import count, people

_PAID = {
    "nothing": "Nothing of what is owed has been marked as paid.",
    "a part": "A part of what is owed has been marked as paid.",
    "all": "All that is owed has been marked as paid.",
}


def everybody_delivered(report: Report) -> bool:
    """Whether what was decided is also what is owed."""
    settled = report.cost.settled
    if settled is not None:
        return settled.delivered == report.bought_from
    return report.estimate.value is not None and report.estimate.dropped_out == 0


def settled_sentence(report: Report) -> str:
    """What is owed to whom, what was paid, and what is not told."""
    cost, currency = report.cost, report.currency
    settled, decided = cost.settled, cost.paid
    assert settled is not None
    assert decided is not None
    whom = f"{count(report.bought_from)} of {people(report.people)}"
    if settled.payments is not None and settled.delivered is not None:
        from_whom = (
            whom if everybody_delivered(report) else f"{count(settled.delivered)} of the {whom} it was bought from"
        )
        told = f"{money(settled.payments, currency)} is owed for the data of {from_whom}"
    elif settled.over:
        told = (
            f"Payments of {money(decided, currency)} were decided for {whom}, if all of them delivered; not all did,"
            " and less is owed (how much could show what one of them reported)"
        )
    else:
        told = f"Payments of {money(decided, currency)} are decided for {whom}, each due when she delivers"
    fees = f" Fees for taking part come to {money(settled.fees, currency)}." if settled.fees else ""
    return f"{told}.{fees} {_PAID[settled.paid]}"


def cost_name(report: Report) -> str:
    """What the amount among the key figures is."""
    settled = report.cost.settled
    if settled is None:
        return "Paid" if everybody_delivered(report) else "Decided"
    if settled.payments is None:
        return "Decided"
    return "Paid" if settled.paid == "all" else "Owed"


def cost_amount(report: Report) -> float | None:
    """The amount among the key figures, fees included where they are known; None if too few people are behind it."""
    settled, decided = report.cost.settled, report.cost.paid
    if settled is None or decided is None:
        return decided
    return (decided if settled.payments is None else settled.payments) + settled.fees


def delivered_words(report: Report) -> str:
    """How many delivered, behind how many were bought from."""
    settled, missing = report.cost.settled, report.estimate.dropped_out
    if settled is not None and settled.delivered is not None:
        return f"; {count(settled.delivered)} delivered"
    if settled is not None and not settled.over:
        return ""
    if missing is None:
        return f"; fewer than {SMALLEST_CHART} did not deliver"
    return f"; {count(missing)} did not deliver" if missing else ""


def no_estimate_ever(report: Report) -> bool:
    """Whether nobody delivered, and nobody can any more."""
    settled = report.cost.settled
    return settled is not None and settled.over and settled.delivered == 0 and report.bought_from > 0
