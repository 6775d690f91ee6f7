"""What a participant is asked, and what her answer means: the arithmetic behind the page, without any wording.

Nobody knows what one unit of privacy loss costs her. So the page asks for the price of a concrete step ε: somebody who
gives her value even odds could become at most e^ε/(1 + e^ε) sure. Costs are proportional to ε in the model, so a price
p for that step is a sensitivity of p/ε per unit, which is what is reported.

What an answer leads to is read from the menu that was computed when the campaign opened: averages over simulated
reports of the others. Between its points loss, chance and *rent* are taken to be straight. The rent is what is paid
beyond the own price for the loss; it is never negative, so neither is it between two points. A straight payment would
fall below the own price there. Beyond the last point nothing was bought in any simulated campaign.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from hushbid.server.domain.settings import LEAST_LOSS
from hushbid.server.domain.views import MenuView, ParticipationView

_STEPS = (2.0, 1.0, 0.5, 0.2, 0.1)
_ROWS, _MORE_ROWS = 9, 4
_APART = 0.3
_ALIKE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Consequence:
    """What can be expected of one answer, on average over what others may answer."""

    report: float
    """The sensitivity it amounts to."""

    price: float
    """The answer: the price of the step."""

    chance: float
    """How likely it is that anything is bought."""

    loss: float
    """The privacy loss if something is bought."""

    payment: float
    """The payment if something is bought, in units of the currency."""

    mean_loss: float
    """The privacy loss, counting 0 if nothing is bought."""

    mean_payment: float
    """The payment, counting 0 if nothing is bought."""

    def gain(self, sensitivity: float) -> float:
        """What is left on average for somebody whom a unit of privacy loss really costs so much."""
        return self.mean_payment - sensitivity * self.mean_loss


def step_of(view: ParticipationView) -> float:
    """The step whose price is asked: a round one that the campaign could buy, or else the most it could."""
    return next((step for step in _STEPS if step <= view.max_privacy_loss), view.max_privacy_loss)


def report_of(price: Decimal, step: float) -> float:
    """The sensitivity that the price of a step amounts to.

    >>> report_of(Decimal("1.5"), 0.5)
    3.0
    """
    return float(price / Decimal(step))


def limit_of(sure: Decimal) -> float | None:
    """The privacy loss after which somebody is at most so many per cent sure; None if there is no such loss.

    Nobody learns anything at 50 per cent: the limit is 0, and nothing is bought.

    >>> round(limit_of(Decimal(75)), 6), limit_of(Decimal(50)), limit_of(Decimal(100))
    (1.098612, 0.0, None)
    """
    if not 50 <= sure < 100:
        return None
    limit = math.log(float(sure / (100 - sure)))
    return limit if limit >= LEAST_LOSS or limit == 0.0 else None


def sureness_typed(limit: float) -> float:
    """A limit as it was typed, in per cent: `limit_of` gives it back."""
    return round(100.0 / (1.0 + math.exp(-limit)), 9)


def consequence(menu: MenuView, report: float, step: float, *, largest: float | None) -> Consequence:
    """What an answer leads to; above the largest price that is ever paid, to nothing."""
    out_of_reach = largest is not None and report > largest
    rents = np.subtract(menu.payment, np.multiply(menu.reports, menu.privacy_loss))
    chance, loss, rent = (
        0.0 if out_of_reach else float(np.interp(report, menu.reports, values))
        for values in (menu.chance, menu.privacy_loss, rents)
    )
    payment = report * loss + rent
    return Consequence(
        report=report,
        price=report * step,
        chance=chance,
        loss=loss / chance if chance > 0.0 else 0.0,
        payment=payment / chance if chance > 0.0 else 0.0,
        mean_loss=loss,
        mean_payment=payment,
    )


def table(menu: MenuView, step: float, *, largest: float | None) -> tuple[Consequence, ...]:
    """Some answers across the whole menu, and what each leads to."""
    last, end = menu.usual - 1, len(menu.reports) - 1
    spread = [np.linspace(0, last, _ROWS), np.linspace(last, end, _MORE_ROWS)]
    places = np.unique(np.concatenate(spread).round().astype(int))
    return tuple(consequence(menu, menu.reports[place], step, largest=largest) for place in places)


def around(menu: MenuView, truth: float, step: float, *, largest: float | None) -> dict[str, Consequence]:
    """The answers of somebody who says less than, exactly, and more than what is true; those that differ enough.

    Less and more by a third; at the ends of the menu, as far as it goes. The page's script counts in the same way.
    """
    reports = np.asarray(menu.reports)
    found = {"truth": consequence(menu, truth, step, largest=largest)}
    for name, factor in (("less", 1.0 - _APART), ("more", 1.0 + _APART)):
        report = min(max(truth * factor, menu.reports[0]), menu.reports[-1])
        between = abs(int(np.searchsorted(reports, report)) - int(np.searchsorted(reports, truth)))
        if between > _ALIKE:
            found[name] = consequence(menu, report, step, largest=largest)
    return found


def anchors(menu: MenuView, step: float) -> tuple[float, float, float]:
    """Prices to hold on to: what few would undercut, what half would, and what few would exceed."""
    places = (1, menu.usual // 2, menu.usual - 2)
    return tuple(menu.reports[place] * step for place in places)  # type: ignore[return-value]


def steps_below_and_above(step: float, cap: float) -> tuple[float, ...]:
    """Half the step, the step and its double, as far as anybody may lose: their prices are half and double, too."""
    return tuple(one for one in (step / 2.0, step, 2.0 * step) if one <= cap)


def round_price(price: float, decimals: int) -> float:
    """A price to begin with: rounded to two digits, or to what can be paid if that is coarser."""
    if price <= 0.0:
        return 0.0
    digits = max(-decimals, math.floor(math.log10(price)) - 1)
    return round(price, -digits)


def plain_menu(menu: MenuView) -> dict[str, Sequence[float]]:
    """The menu for the page's script, which reads it the same way."""
    values = {"reports": menu.reports, "loss": menu.privacy_loss, "payment": menu.payment, "chance": menu.chance}
    return {**values, "usual": [menu.usual]}
