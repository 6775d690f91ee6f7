"""What a participant is asked, and what her answer means: the arithmetic behind the page, without any wording.

Nobody knows what one unit of privacy loss costs her. So the page asks for the price of a concrete step ε: somebody who
gives her value even odds could become at most e^ε/(1 + e^ε) sure. Costs are proportional to ε in the model, so a price
p for that step is a bid of p/ε per unit, which is what is sent.

What an answer leads to is read from the menu that was computed when the campaign opened: averages over simulated
bids of the others. Between its points loss, chance and *rent* are taken to be straight. The rent is what is paid
beyond the own price for the loss; it is never negative, so neither is it between two points. A straight payment would
fall below the own price there. Beyond the last point nothing was bought in any simulated campaign.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from hushbid.server.model.settings import LEAST_LOSS
from hushbid.server.model.views import MenuView, ParticipationView

_STEPS = (2.0, 1.0, 0.5, 0.2, 0.1)
_ROWS, _MORE_ROWS = 9, 4
_APART = 0.3
_ALIKE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Consequence:
    """What can be expected of one answer, on average over what others may answer."""

    bid: float
    """The bid it amounts to."""

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

    def gain(self, bid: float) -> float:
        """What is left on average for somebody whom a unit of privacy loss really costs so much."""
        return self.mean_payment - bid * self.mean_loss


def step_of(view: ParticipationView) -> float:
    """The step whose price is asked: a round one that the campaign could buy, or else the most it could."""
    return next((step for step in _STEPS if step <= view.max_privacy_loss), view.max_privacy_loss)


def bid_of(price: Decimal, step: float) -> float:
    """The bid that the price of a step amounts to.

    >>> bid_of(Decimal("1.5"), 0.5)
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


def consequence(menu: MenuView, bid: float, step: float, *, largest: float | None) -> Consequence:
    """What an answer leads to; above the largest price that is ever paid, to nothing."""
    out_of_reach = largest is not None and bid > largest
    rents = np.subtract(menu.payment, np.multiply(menu.bids, menu.privacy_loss))
    chance, loss, rent = (
        0.0 if out_of_reach else float(np.interp(bid, menu.bids, values))
        for values in (menu.chance, menu.privacy_loss, rents)
    )
    payment = bid * loss + rent
    return Consequence(
        bid=bid,
        price=bid * step,
        chance=chance,
        loss=loss / chance if chance > 0.0 else 0.0,
        payment=payment / chance if chance > 0.0 else 0.0,
        mean_loss=loss,
        mean_payment=payment,
    )


def table(menu: MenuView, step: float, *, largest: float | None) -> tuple[Consequence, ...]:
    """Some answers across the whole menu, and what each leads to."""
    last, end = menu.usual - 1, len(menu.bids) - 1
    spread = [np.linspace(0, last, _ROWS), np.linspace(last, end, _MORE_ROWS)]
    places = np.unique(np.concatenate(spread).round().astype(int))
    return tuple(consequence(menu, menu.bids[place], step, largest=largest) for place in places)


def around(menu: MenuView, truth: float, step: float, *, largest: float | None) -> dict[str, Consequence]:
    """The answers of somebody who says less than, exactly, and more than what is true; those that differ enough.

    Less and more by a third; at the ends of the menu, as far as it goes. The page's script counts in the same way.
    """
    bids = np.asarray(menu.bids)
    found = {"truth": consequence(menu, truth, step, largest=largest)}
    for name, factor in (("less", 1.0 - _APART), ("more", 1.0 + _APART)):
        bid = min(max(truth * factor, menu.bids[0]), menu.bids[-1])
        between = abs(int(np.searchsorted(bids, bid)) - int(np.searchsorted(bids, truth)))
        if between > _ALIKE:
            found[name] = consequence(menu, bid, step, largest=largest)
    return found


def anchors(menu: MenuView, step: float) -> tuple[float, float, float]:
    """Prices to hold on to: what few would undercut, what half would, and what few would exceed."""
    places = (1, menu.usual // 2, menu.usual - 2)
    return tuple(menu.bids[place] * step for place in places)  # type: ignore[return-value]


def steps_below_and_above(step: float, cap: float) -> tuple[float, ...]:
    """Half the step, the step and its double, as far as anybody may lose: their prices are half and double, too."""
    return tuple(one for one in (step / 2.0, step, 2.0 * step) if one <= cap)


def plain_menu(menu: MenuView) -> dict[str, Sequence[float]]:
    """The menu for the page's script, which reads it the same way."""
    values = {"bids": menu.bids, "loss": menu.privacy_loss, "payment": menu.payment, "chance": menu.chance}
    return {**values, "usual": [menu.usual]}
