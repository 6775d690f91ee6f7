"""Everything a report shows, as frozen plain values: computing ends here and rendering begins.

Nothing in it belongs to one person (see :mod:`hushbid.report.suppression`): what the page withholds is not here. Money
is in units of the currency, data in data units. ``dataclasses.asdict(report)`` is what a program reads instead of the
page.
"""

from dataclasses import dataclass
from typing import Literal

from hushbid.money import Currency
from hushbid.report.settlement import SettledFacts
from hushbid.report.suppression import GroupRow, Histogram

Verdict = Literal["failed", "clear", "weak"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateFacts:
    """The estimate and how far off it may be."""

    value: float | None
    """The released estimate; None before a release."""

    bounds: tuple[float, float]
    """The public range of the data."""

    level: float
    """How sure the interval is."""

    half_width: float
    """Half the width of the interval at ``level``; infinite if nothing was bought."""

    bands: tuple[tuple[float, float], ...]
    """Narrower intervals for the picture, as (level, half-width)."""

    standard_error: float
    """Root mean squared error."""

    noise_share: float
    """The part of the squared error that is noise added for privacy; the rest comes from asking finitely many."""

    dropped_out: int | None
    """How many people who were bought from did not deliver; None if some did not, but too few to be counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostParts:
    """What a payment consists of, and what the purchase minimises."""

    total: float
    """The sum of all payments, before they are rounded to coins."""

    compensation: float
    """What the privacy given up cost the people themselves, at the prices they named."""

    rent: float
    """What people gain because only they know their price."""

    error_term: float
    """What people are paid, or pay, because they too value the estimate; 0 if user weights are 0."""

    rounding: float | None
    """What rounding to coins added; None if unknown."""

    total_loss: float
    """The sum of all privacy losses."""

    objective: float
    """Error weight times squared error plus virtual payments: what the purchase minimises."""

    lower_bound: float
    """No truthful purchase has a lower objective."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostFacts:
    """What is paid, and for what."""

    paid: float | None
    """What was decided to be paid in all, if everybody delivers; None if too few people are behind it."""

    parts: CostParts | None
    """What it is for; None if too few people are behind it."""

    payers: int
    """How many people pay instead of being paid."""

    incentive_error: float
    """No misreport gains more than this."""

    spending_ceiling: float | None
    """What the campaign was allowed to spend."""

    settled: SettledFacts | None = None
    """What became of it: who delivered, what is owed; None where nobody keeps that account."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Privacy loss and payment against what a person reports."""

    name: str
    """The group the curve is for; empty if it is everybody's."""

    reports: tuple[float, ...]
    """Reported sensitivities, ascending, on a grid that is nobody's."""

    privacy_loss: tuple[float, ...]
    """At each report."""

    compensation: tuple[float, ...]
    """Report times privacy loss."""

    rent: tuple[float, ...]
    """Information rent."""

    other: tuple[float, ...]
    """The rest of the payment, from valuing the estimate."""

    kind: Literal["exact", "average", "expected"]
    """Through everybody's decision; averages over neighbouring reports; or simulated before anybody reported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacyFacts:
    """Who gave up how much."""

    largest: float
    """Nobody loses more than this (rounded up)."""

    unlimited: int
    """How many people are promised nothing: an infinite loss."""

    cap: float | None
    """The cap on everybody's loss."""

    quantiles: tuple[tuple[float, float], ...]
    """(level, quantile) of the losses of those bought from; empty if they are too few."""

    median: float | None
    """Of the same; None if they are too few."""

    histogram: Histogram | None
    """Of the losses of those bought from; None if they are too few."""

    curves: tuple[Curve, ...]
    """The schedule; empty if people are too few."""

    withheld: str
    """Why charts are missing; empty if none is."""

    checked: tuple[int, int, int] | None
    """For how many people the promise was verified before release: in integers, in fractions, by the sampler.

    None before a release, and where it would tell how many of few did not deliver.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionFacts:
    """How far the estimate would move if prices and data were related; see :mod:`hushbid.report.selection`."""

    spread: float
    """The declared standard deviation of the data."""

    half_width: float
    """Half the interval: the move in question."""

    shift_per_correlation: float
    """How far a correlation of 1 between weight and datum moves the estimate."""

    effective_people: float
    """How many equally weighted people would be as precise."""

    weight_cost_correlation: float | None
    """Between weight and reported sensitivity; None if one of them is the same for all."""

    any_shape: float | None
    """The correlation of weight and datum that moves the estimate by ``half_width``; None if nothing does."""

    linear: float | None
    """The correlation of sensitivity and datum that does, if the datum depends on it in a straight line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingFacts:
    """One way of buying the same data."""

    name: str
    """What it is called in tables."""

    bought_from: int
    """People with a positive privacy loss."""

    largest_loss: float
    """Nobody loses more (rounded up)."""

    standard_error: float
    """Root mean squared error of the estimate."""

    half_width: float
    """Half the interval."""

    total: float
    """All payments."""

    objective: float
    """Error weight times squared error plus virtual payments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonFacts:
    """Central against local, on the same reports."""

    settings: tuple[SettingFacts, ...]
    """The campaign's own, then the other one with the same cap, then, if there is a cap, the other one without."""

    missing: str
    """Why there is no comparison; empty if there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RivalFacts:
    """Another way to buy from the same people."""

    name: str
    """What it is called."""

    truthful: bool
    """Whether the truth is everybody's best report under it."""

    voluntary: bool
    """Whether nobody is worse off for joining."""

    payment: float
    """What it would have paid for this campaign's accuracy; infinite if it cannot reach it."""

    standard_error: float
    """What it would have reached with this campaign's money; infinite if it cannot run on it."""

    note: str
    """What a reader should know; may be empty."""

    @property
    def is_real(self) -> bool:
        """Whether a buyer could have chosen it: people would have told their price, and joined."""
        return self.truthful and self.voluntary


@dataclass(frozen=True, slots=True, kw_only=True)
class RivalsFacts:
    """This campaign's way to buy against others, on the same reports."""

    rows: tuple[RivalFacts, ...]
    """This campaign's own first; empty if they are not shown."""

    missing: str
    """Why they are not; empty if they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CapFacts:
    """What capping everybody's privacy loss costs."""

    capped: SettingFacts | None
    """The campaign as it is; None without a cap."""

    uncapped: SettingFacts | None
    """The campaign as it would have been without its cap."""

    reached: int
    """How many people would have lost more without the cap."""

    curve: tuple[tuple[float, float, float], ...]
    """For other caps: (cap, standard error, objective); empty if people are too few."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditLine:
    """One attack on our own claims, and what came of it."""

    title: str
    """What was attacked."""

    verdict: Verdict
    """"failed" is proof; "clear" is not; "weak" means that a fault could easily have been missed."""

    finding: str
    """What was found, in a sentence."""

    samples: str
    """How many samples of what."""

    power: float | None
    """How likely the planted fault would have been found; None if not known."""

    power_against: str
    """Which planted fault."""

    bar: tuple[float, float] | None = None
    """Privacy audits: the loss that was proved and the one promised, in units of the promise, to be drawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """Something the numbers rest on."""

    title: str
    """In a few words."""

    text: str
    """In full."""

    if_wrong: str
    """What follows if it does not hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A campaign, as it may be shown to somebody outside."""

    campaign_name: str
    """What the page is headed."""

    quantity: str
    """What was estimated, as it stands in a sentence: "the mean blood pressure"."""

    unit: str
    """Of the data; may be empty."""

    currency: Currency | None
    """Of all amounts; None if none was named."""

    date: str
    """When the campaign was carried out, as it is to be shown; may be empty."""

    notices: tuple[str, ...]
    """Sentences that must not be overlooked: that data are made up, that a prior was fitted on participants."""

    setting: str
    """Where noise is added."""

    prior: str
    """The prior in words of `Prior.to_text`, shortened; a prior made of a sample is described, not shown."""

    people: int
    """How many reported."""

    bought_from: int
    """How many of them give up privacy."""

    estimate: EstimateFacts
    """Section 1."""

    cost: CostFacts
    """Section 2."""

    privacy: PrivacyFacts
    """Section 3."""

    groups: tuple[GroupRow, ...] | None
    """Section 4: None if no groups were given; empty if they are all too small."""

    selection: SelectionFacts | None
    """Section 5: None if too few people are behind it."""

    comparison: ComparisonFacts
    """Section 6."""

    rivals: RivalsFacts
    """Section 7."""

    cap: CapFacts
    """Section 8."""

    audits: tuple[AuditLine, ...]
    """Section 9: failures first."""

    assumptions: tuple[Assumption, ...]
    """Section 10."""

    record_name: str
    """Section 11: the file to ask for."""

    record_hash: str | None
    """Its fingerprint."""

    versions: tuple[tuple[str, str], ...]
    """Of the software the release was made with."""

    @property
    def failed(self) -> bool:
        """Whether an audit proved one of our claims wrong."""
        return any(audit.verdict == "failed" for audit in self.audits)

    @property
    def privacy_failed(self) -> bool:
        """Whether an audit proved that somebody loses more privacy than promised."""
        return any(audit.bar is not None and audit.bar[0] > audit.bar[1] for audit in self.audits)
