"""From an outcome to the frozen `Report`: everything that is computed for the page, nothing of how it looks."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Protocol

from hushbid.allocation import Accuracy
from hushbid.common.arrays import as_number
from hushbid.common.money import Currency, Money
from hushbid.common.numbers import as_sentence
from hushbid.disclosure import Release
from hushbid.errors import InputError
from hushbid.languages import ENGLISH, Sentence, noted
from hushbid.mechanism import Menu, Outcome
from hushbid.mechanism.decision import LESS_EXACT
from hushbid.report import sections
from hushbid.report.answers import question_of
from hushbid.report.conduct import Conduct, ConductFacts, conduct_facts
from hushbid.report.language import say, say_sentence, speaking
from hushbid.report.material import Groups, Material, Settlement, planned_error
from hushbid.report.rendering import plain
from hushbid.report.suppression import GroupRow, few_words, too_few

LESS_EXACT_PAYMENTS = Sentence(
    noted(
        "Less exact payments: rounding leaves an error above the market's tolerance, and a misreport may gain as much"
        " as the stated incentive error."
    )
)


class Section(Protocol):
    """What every module of `hushbid.report.sections` has."""

    ANCHOR: str
    TITLE: str
    __name__: str

    def facts_of(self, material: Material) -> Any:
        """Everything the section shows, and nothing that belongs to one person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A campaign, as it may be shown to somebody outside.

    Nothing in it belongs to one person (see :mod:`hushbid.report.suppression`): what the page withholds is not here.
    Money is in units of the currency, data in data units. ``dataclasses.asdict(report)`` is what a program reads
    instead of the page. The sections are those fields that name one, in the order of the page.
    """

    title: str
    """What the page is headed."""

    question: str
    """What was estimated, as it stands in a sentence: "the mean blood pressure"."""

    unit: str
    """Of the data; may be empty. Of a survey, what errors of all questions together are relative to."""

    currency: Currency | None
    """Of all amounts; None if none was named."""

    date: str
    """When the campaign was carried out, as it is to be shown; may be empty."""

    notices: tuple[str, ...]
    """Sentences that must not be overlooked: that data are synthetic, that a prior was fitted on participants."""

    setting: str
    """Where noise is added."""

    people: int
    """How many bid."""

    bought_from: int
    """How many of them give up privacy."""

    too_few: bool
    """Whether they are too few, altogether or in one of the strata, for any amount to be shown."""

    estimate: sections.estimate.EstimateFacts = field(metadata={"section": sections.estimate})
    """What was learnt, and how far off it may be."""

    cost: sections.cost.CostFacts = field(metadata={"section": sections.cost})
    """What is paid, and for what."""

    privacy: sections.privacy.PrivacyFacts = field(metadata={"section": sections.privacy})
    """Who gave up how much."""

    groups: tuple[GroupRow, ...] | None = field(metadata={"section": sections.groups})
    """Who was bought from: None if no groups were given; empty if they are all too small."""

    selection: sections.selection.SelectionFacts | None = field(metadata={"section": sections.selection})
    """What would mislead the estimate; None if too few people are behind it."""

    comparison: sections.settings.ComparisonFacts = field(metadata={"section": sections.settings})
    """The other setting on the same bids."""

    baselines: sections.baselines.BaselinesFacts = field(metadata={"section": sections.baselines})
    """Other ways to buy."""

    cap: sections.cap.CapFacts = field(metadata={"section": sections.cap})
    """What a cap costs."""

    audits: tuple[sections.audits.AuditLine, ...] = field(metadata={"section": sections.audits})
    """Attacks on our own claims, failures first."""

    assumptions: sections.assumptions.AssumptionFacts = field(metadata={"section": sections.assumptions})
    """What the numbers rest on."""

    verify: sections.verify.VerifyFacts = field(metadata={"section": sections.verify})
    """How to compute everything again."""

    language: str = ENGLISH
    """What the page is written in."""

    conduct: ConductFacts | None = None
    """How it was carried out, by whoever keeps that account: shown with who was bought from."""

    @property
    def failed(self) -> bool:
        """Whether an audit proved one of our claims wrong."""
        return any(audit.verdict == "failed" for audit in self.audits)

    @property
    def privacy_failed(self) -> bool:
        """Whether an audit proved that somebody loses more privacy than promised."""
        return any(audit.bar is not None and audit.bar[0] > audit.bar[1] for audit in self.audits)

    @property
    def few(self) -> str:
        """Why amounts are withheld, where they are."""
        return few_words(in_stratum=self.estimate.strata is not None)

    @property
    def everybody_delivered(self) -> bool:
        """Whether what was decided is also what is owed."""
        if self.cost.settled is not None:
            return self.cost.settled.delivered == self.bought_from
        return self.estimate.released and self.estimate.dropped_out == 0

    @property
    def no_estimate_ever(self) -> bool:
        """Whether nobody delivered, and nobody can any more."""
        settled = self.cost.settled
        return settled is not None and settled.over and settled.delivered == 0 and self.bought_from > 0


SECTIONS: dict[str, Section] = {one.name: one.metadata["section"] for one in fields(Report) if one.metadata}
"""The sections by the field that holds their facts."""


def build_report(
    outcome: Outcome,
    release: Release | None = None,
    *,
    title: str = "A campaign",
    question: str = "the mean",
    unit: str = "",
    currency: Currency | str | None = None,
    money: Money | None = None,
    groups: Groups | None = None,
    audits: Iterable[object] = (),
    comparison: Outcome | Literal["compute", "omit"] = "compute",
    menu: Menu | None = None,
    prior_from_participants: bool = False,
    spending_limit: float | None = None,
    settlement: Settlement | None = None,
    conduct: Conduct | None = None,
    notices: Sequence[str | Sentence] = (),
    record_name: str = "record.json",
    record_hash: str | None = None,
    date: str = "",
    level: float = 0.95,
    language: str = ENGLISH,
) -> Report:
    """Everything the report shows.

    ``groups`` has one label per person (by default the groups of the prior, if it has any). ``audits`` are results of
    `hushbid.audit`. ``comparison`` is the outcome in the other setting on the same bids, or whether to compute it.
    ``menu``, from ``market.menu``, stands in for the schedule where too few people are behind it. ``money`` is
    what is really paid; with a ``currency`` alone, payments are rounded up to its smallest coin. ``settlement`` is the
    account of whoever keeps one: who delivered, what is owed and paid; ``conduct`` likewise what was asked, when, and
    who took no part. ``notices`` are shown above all else. ``language`` is the code of that of the page; what the
    caller words stays as it is.
    """
    if not 0.0 < as_number(level, "level") < 1.0:
        raise InputError(f"level must lie strictly between 0 and 1, got {level}.", field="level")
    named = Currency.of(currency) if isinstance(currency, str) else currency
    if money is None:
        money = _rounded(outcome, named)
    else:
        named = Currency(money.currency, money.decimals)
    material = Material(
        outcome=outcome,
        release=release,
        error=release.error if release is not None else planned_error(outcome),
        level=level,
        question=plain(question),
        unit=plain(unit),
        currency=named,
        money=money,
        groups=groups,
        audits=tuple(audits),
        comparison=comparison,
        menu=menu,
        prior_from_participants=prior_from_participants,
        spending_limit=spending_limit,
        settlement=settlement,
        record_name=record_name,
        record_hash=record_hash,
    )
    with speaking(language):
        return Report(
            title=_named(plain(title)),
            question=question_of(material),
            unit=_unit(outcome) or material.unit,
            currency=material.currency,
            date=plain(date),
            notices=tuple(_notice(one) for one in [*notices, *map(_flag, outcome.flags)]),
            setting=outcome.market.setting,
            people=outcome.bids.size,
            bought_from=outcome.active,
            too_few=too_few(material.fewest),
            **{name: section.facts_of(material) for name, section in SECTIONS.items()},
            language=language,
            conduct=None if conduct is None else conduct_facts(conduct, material),
        )


def _notice(notice: str | Sentence) -> str:
    """A notice in the page's language; what the caller worded stays as it is."""
    return plain(say_sentence(notice) if isinstance(notice, Sentence) else notice)


def _flag(flag: str) -> Sentence:
    """What a decision says of itself, as a sentence."""
    return LESS_EXACT_PAYMENTS if flag == LESS_EXACT else Sentence(as_sentence(flag))


def _named(stated: str) -> str:
    """What the page is headed: as stated, or else that it is a campaign."""
    return say("A campaign") if stated in ("", "A campaign") else stated


def _unit(outcome: Outcome) -> str:
    """What errors of a survey's questions together are counted in; empty where one number was asked for."""
    if outcome.market.survey is None:
        return ""
    return say("of what was stated") if isinstance(outcome.market.goal, Accuracy) else say("of the range")


def _rounded(outcome: Outcome, currency: Currency | None) -> Money | None:
    """What is really paid in a currency; None if there is none, or a payment is infinite."""
    if currency is None or not math.isfinite(outcome.total_payment):
        return None
    return Money.of(outcome.payments, outcome.incentive_error, currency=currency.code, decimals=currency.decimals)
