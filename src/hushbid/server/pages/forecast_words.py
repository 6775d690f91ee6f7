"""A forecast in words: what so many people and so much money lead to, and what it takes to get more.

Every number comes from simulated campaigns (`hushbid.server.service.what_if`, `hushbid.server.service.forecast`) and is
said with "about"; amounts and numbers of people are rounded up. ± is what results show: half a 95 % interval before it
is cut to the range; for other errors than the forecast one, as many standard errors as for that one.
"""

import math
from dataclasses import dataclass, field

from hushbid.questions import Number
from hushbid.server.model.settings import MOST_PEOPLE, CampaignSettings
from hushbid.server.model.views import PlannedPriceView, Preview
from hushbid.server.pages.request import PageRequest
from hushbid.server.pages.wording import Texts, Writing
from hushbid.server.service.what_if import WhatIf

_SHOWN_DIGITS, _PRICE_DIGITS = 2, 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What the page shows of a forecast. Every part is there, whether there is a forecast or not."""

    problem: str | None = None
    """Why there is none, or nothing if there is one."""

    sentences: tuple[str, ...] = ()
    errors: tuple[tuple[str, str], ...] = ()
    """The name of each question of a survey, and its error."""

    texts: dict[str, str] = field(default_factory=dict)
    """The numbers behind the sentences, by the place that shows them; empty if there are none."""


def forecast_words(visit: PageRequest, settings: CampaignSettings, preview: Preview | None, found: WhatIf) -> Forecast:
    """Sentences, the error of each question, and the numbers behind them."""
    words = _Words(visit, settings)
    sentences = words.sentences(found)
    if preview is not None and preview.planned is not None:
        sentences.append(planned_words(words.t, words.write, settings, preview.planned))
    errors: list[tuple[str, str]] = []
    if settings.asked and found.errors is not None:
        errors = [
            (one.name, words.error(found, place, error))
            for place, (one, error) in enumerate(zip(settings.asked, found.errors, strict=True))
        ]
    numbers = {} if preview is None else words.numbers(preview)
    return Forecast(sentences=tuple(sentences), errors=tuple(errors), texts=numbers)


class _Words:
    """The words for one campaign."""

    def __init__(self, visit: PageRequest, settings: CampaignSettings) -> None:
        self.t, self.write, self.settings = visit.texts, visit.write, settings

    def sentences(self, found: WhatIf) -> list[str]:
        """What is to be got, and what it takes to get more."""
        people = self.write.number(found.people, 9)
        if found.errors is None or found.cost is None:
            return [self._out_of_reach(found, people)]
        told = {"people": people, "errors": self.errors(found, found.errors), "cost": self.money(found.cost)}
        kind, several = "get", "_each" if len(found.errors) > 1 else ""
        if self.settings.target_errors:
            kind = "costs" if found.cost_of_twice is None else "costs_twice"
        if found.cost_of_twice is not None:
            told |= {"twice": self.write.number(2 * found.people, 9), "other": self.money(found.cost_of_twice)}
        basis = "plus_minus_worst" if self.settings.market.max_correlation else "plus_minus"
        first = self.t.coded(f"what_if.{kind}{several}", **told)
        left_out = "limits_left_out" if self.settings.takes_limits else "missing_left_out"
        return [first, self._more(found, people), self.t.coded(f"what_if.{basis}"), self.t.coded(f"what_if.{left_out}")]

    def _more(self, found: WhatIf, people: str) -> str:
        """What half the error takes."""
        targets = self.t("half of each error") if len(found.targets) > 1 else self.errors(found, found.targets)
        many, cost, both = found.people_for_targets, found.cost_for_targets, found.both_for_targets
        told = {"targets": targets, "people": people}
        if both is not None and many is None and cost is None:
            return self.t.coded("more.both", **told, many=self.people(both[0]), cost=self.money(both[1]))
        told |= {} if many is None else {"many": self.people(many)}
        told |= {} if cost is None else {"cost": self.money(cost)}
        kinds = {(True, True): "either", (True, False): "people", (False, True): "money"}
        none = "none" if found.in_time else "no_time"
        return self.t.coded(f"more.{kinds.get((many is not None, cost is not None), none)}", **told)

    def _out_of_reach(self, found: WhatIf, people: str) -> str:
        if not self.settings.target_errors:
            return self.t.coded("unreached.money", people=people)
        if found.least_people is None:
            return self.t.coded(f"unreached.{'none' if found.in_time else 'no_time'}", people=people)
        return self.t.coded("unreached.people", people=people, many=self.people(found.least_people))

    def numbers(self, found: Preview) -> dict[str, str]:
        """The numbers behind the sentences."""
        spending, worst = found.spending, found.spending.at_worst
        bought = found.share_bought * spending.people
        each = (spending.expected - spending.fees - spending.rounding) / bought if bought > 0 else 0.0
        return {
            "expected": self.money(spending.expected, most=worst),
            "high": self.money(spending.in_95_of_100, most=worst),
            "worst": self.t("no such limit") if worst is None else self._exactly(worst),
            "share": self.write.percent(found.share_bought),
            "each": self.money(math.ceil(max(each, 0.0))),
            "sure": self.write.sure(found.largest_loss),
            "basis": self.t.coded(
                "what_if.basis", people=self.write.number(spending.people, 9), repetitions=str(spending.repetitions)
            ),
            "spending_limit": self._refused(found),
        }

    def _refused(self, found: Preview) -> str:
        """Why such a campaign would not open, if it would not."""
        if found.too_much_rounding:
            return self.t.coded("refused_step.accept_rounding")
        return self.t.coded("unopened.spending_limit") if found.above_spending_limit else ""

    def errors(self, found: WhatIf, errors: tuple[float, ...]) -> str:
        """What a standard error of a single question means."""
        return self.error(found, 0, errors[0])

    def error(self, found: WhatIf, place: int, standard_error: float) -> str:
        """Half the interval that a standard error of a question means, in its unit."""
        return half_width_words(self.t, self.write, self.settings, place, found.margins[place] * standard_error)

    def money(self, minor: int, *, most: int | None = None) -> str:
        """A simulated amount: three digits, rounded up."""
        return self.write.roughly(minor, self.settings.currency.code, self.settings.currency.decimals, most=most)

    def people(self, number: int) -> str:
        """A simulated number of people: two digits, rounded up."""
        unit = 10 ** max(len(str(number)) - 2, 0)
        return self.write.number(min(-(-number // unit) * unit, MOST_PEOPLE), 9)

    def _exactly(self, minor: int) -> str:
        return self.write.money(minor, self.settings.currency.code, self.settings.currency.decimals)


def planned_words(t: Texts, w: Writing, settings: CampaignSettings, planned: PlannedPriceView) -> str:
    """The planned price of the error, what it costs on average, and how exactly that is known."""
    amounts = {
        "price": w.number(planned.price, _PRICE_DIGITS),
        "mean": w.number(planned.mean, _PRICE_DIGITS),
        "error": w.number(planned.standard_error, _SHOWN_DIGITS),
    }
    return t.coded("what_if.planned", currency=settings.currency.code, **amounts)


def half_width_words(t: Texts, w: Writing, settings: CampaignSettings, place: int, half_width: float) -> str:
    """Half an interval of one question in its unit, behind ±; of shares in percentage points."""
    asked = settings.asked[place] if settings.asked else None
    if asked is not None and not isinstance(asked, Number):
        points = t("percentage points")
        return f"± {w.number(100.0 * half_width, _SHOWN_DIGITS)} {points}"
    unit = (settings.unit or "") if asked is None else asked.unit
    return f"± {w.number(half_width, _SHOWN_DIGITS)}{' ' * bool(unit)}{unit}"
