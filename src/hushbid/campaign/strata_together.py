"""What was decided in all strata of a campaign together, where each stratum has an estimate."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hushbid.campaign.deciding import Decided, decided_text
from hushbid.common import numbers
from hushbid.common.money import Currency

_COUNTED = ("people", "dropped_rows", "bought_from", "total_payment_minor", "people_who_pay")
_SUMMED = ("objective", "lower_bound", "cap_cost")
_LARGEST = ("largest_privacy_loss", "incentive_error")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class DecidedByStratum:
    """The decisions of all strata, each a market: their counts, costs and bounds add up, their errors do not."""

    parts: Mapping[str, Decided]
    """What was decided in each stratum, by its name."""

    currency: Currency
    """What payments are made in."""

    reading_notes: tuple[str, ...]
    """Sentences about how the bids were read, where that was a choice: their encoding, decimal commas."""

    @property
    def some_part(self) -> Decided:
        """One of the strata: setting, questions and currency are the same in all."""
        return next(iter(self.parts.values()))

    @property
    def total_minor(self) -> int:
        """All payments together, in minor units."""
        return sum(part.total_minor for part in self.parts.values())

    def facts(self) -> dict[str, Any]:
        """For programs; nothing in it belongs to one person."""
        found = {name: part.facts() for name, part in self.parts.items()}
        facts = dict(next(iter(found.values())))
        for name in ("standard_error", "worst_standard_error", "questions", "flags"):
            facts.pop(name, None)
        facts |= {name: sum(one[name] for one in found.values()) for name in _COUNTED}
        facts |= {name: math.fsum(one[name] for one in found.values()) for name in _SUMMED}
        facts |= {name: max(one[name] for one in found.values()) for name in _LARGEST}
        flags = list(dict.fromkeys(flag for one in found.values() for flag in one.get("flags", ())))
        strata = [{"stratum": name, **_errors(one)} for name, one in found.items()]
        return facts | ({"flags": flags} if flags else {}) | {"strata": strata}

    def text(self) -> str:
        """For people."""
        told = decided_text(self.facts(), self.currency, self.some_part.market).replace(numbers.NBSP, " ")
        return "\n".join([*self.reading_notes, told])


def _errors(facts: Mapping[str, Any]) -> dict[str, Any]:
    """How many people a stratum has, and what is expected of its estimates."""
    names = ("people", "bought_from", "questions", "standard_error", "worst_standard_error")
    return {name: facts[name] for name in names if name in facts}
