"""What a report is made from: an outcome, its release, and what the caller knows besides."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hushbid.common.money import Currency, Money
from hushbid.disclosure import ErrorModel, Release
from hushbid.disclosure.combination import Combined
from hushbid.disclosure.delivery import planned_error as error_of_plan
from hushbid.mechanism import Menu, Outcome
from hushbid.mechanism.releasing import plan_of
from hushbid.report.suppression import coarse, fewest

Groups = Sequence[object] | NDArray[np.generic]
"""One label per person, in the order of the bids."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """What a server's account says of a campaign. In units of the currency; confidential."""

    delivered: int
    """How many have delivered what was bought from them."""

    payments: float
    """What those are owed for it, paid or not."""

    fees: float
    """What people are owed for taking part, paid or not."""

    paid: float
    """What has been marked as paid, of both."""

    over: bool
    """Whether nobody can deliver any more."""

    left: int = 0
    """How many withdrew, if what fees come to follows from that."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Material:
    """What sections compute their facts from. Confidential: it holds everybody's bids and decisions."""

    outcome: Outcome
    """The decisions."""

    release: Release | None
    """The estimate; None before there is one."""

    error: ErrorModel | None
    """How far off the estimate is, or would be if everybody delivers; None if nothing was bought."""

    level: float
    """How sure the interval is to be."""

    question: str
    """What is estimated, as the caller words it; may be empty."""

    unit: str
    """Of the data; may be empty."""

    currency: Currency | None
    """Of all amounts."""

    money: Money | None
    """What is really paid; None if no currency was named, or a payment is infinite."""

    groups: Groups | None
    """Everybody's group, if the caller knows them."""

    audits: tuple[object, ...]
    """Results of `hushbid.audit`, or lines that are worded already."""

    comparison: Outcome | Literal["compute", "omit"]
    """The outcome in the other setting, or whether to compute it."""

    menu: Menu | None
    """Stands in for the schedule where too few people are behind it."""

    prior_from_participants: bool
    """Whether the prior was fitted on people who bid here."""

    spending_limit: float | None
    """What the campaign was allowed to spend."""

    settlement: Settlement | None
    """Who delivered and what is owed, by whoever keeps that account."""

    record_name: str
    """The file to verify."""

    record_hash: str | None
    """Its fingerprint."""

    @property
    def half_width(self) -> float:
        """Half the interval at ``level``; infinite if nothing was bought."""
        return math.inf if self.error is None else coarse(self.error.half_width(self.level), self.fewest)

    @property
    def fewest(self) -> int:
        """How many people were bought from, in the smallest stratum where strata are combined."""
        return fewest(self.outcome)

    @property
    def combined(self) -> Combined | None:
        """Which combination of stratum means is estimated; None where it is one mean."""
        strata = self.outcome.market.stratified
        return None if strata is None else Combined.of(strata, self.outcome.privacy_loss > 0.0)


def planned_error(outcome: Outcome) -> ErrorModel | None:
    """How far off the estimate of this outcome would be, if everybody delivers; None if nothing was bought."""
    return error_of_plan(plan_of(outcome, key="report")) if outcome.active else None


def noise_share(outcome: Outcome, error: ErrorModel | None, release: Release | None = None) -> float:
    """The part of the squared error that is noise added for privacy, or false answers by coin.

    The rest comes from asking finitely many.
    """
    if error is None or not 0.0 < error.mse < math.inf:
        return 0.0
    sampling = error.sampling_variance
    if outcome.market.strategy.response:  # the error of answers is stated as one number
        weights, _ = outcome.population.best_estimate(outcome.privacy_loss if release is None else release.privacy_loss)
        sampling = float(outcome.population.own_error * np.sum(np.square(weights)))
    return min(max(1.0 - sampling / error.mse, 0.0), 1.0)
