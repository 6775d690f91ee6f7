"""What a purchase came to: for programs, for people, and as a summary in a file."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from hushbid.campaign import deciding
from hushbid.campaign.deciding import Decision, DecisionInMemory
from hushbid.campaign.notices import stratum_notice
from hushbid.campaign.releasing import Released
from hushbid.campaign.telling import answer_lines, campaign_estimate, decision_text
from hushbid.campaign.terms import Campaign
from hushbid.common import numbers
from hushbid.common.money import amounts_due, in_units
from hushbid.common.tables import Library, Raw, frame_of
from hushbid.disclosure import Answer, Release
from hushbid.disclosure.cards import estimates_table
from hushbid.disclosure.error import FEW, FEW_IN_STRATUM
from hushbid.display import WITHHELD, Table, card, pretty
from hushbid.errors import InputError
from hushbid.mechanism import Market
from hushbid.mechanism.summary import fewest_bought_from
from hushbid.record import Record
from hushbid.report import AuditLine
from hushbid.report.suppression import too_few

_COUNTED = ("people", "dropped_rows", "bought_from", "total_payment_minor", "people_who_pay")
_SUMMED = ("objective", "lower_bound", "cap_cost")
_LARGEST = ("largest_privacy_loss", "incentive_error")
_DELIVERED = ("not asked", "yes", "no", "late")
_NOT_ASKED, _YES, _NO, _LATE = range(len(_DELIVERED))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Purchase:
    """What a campaign came to."""

    campaign: Campaign
    """What was wanted."""

    decided: Decision
    """What was decided, and the money it comes to."""

    released: Released = field(default_factory=Released)
    """The estimate, if there is one."""

    record: Record | None = None
    """None if an engine kept so many people's figures to itself: it is in the folder only."""

    record_hash: str | None = None
    """The hash of the record; None if there is none."""

    unrecorded: str = ""
    """Why there is no record, in a sentence; empty if there is one."""

    stamps: tuple[str, ...] = ()
    """What record and summary say of safeguards that were overridden."""

    audits: tuple[AuditLine, ...] = ()
    files: tuple[Path, ...] = ()

    def __repr__(self) -> str:
        figures, released = self.decided.figures, self.answer is not None
        return (
            f"Purchase(title={self.campaign.title!r}, people={figures.people}, active={figures.active},"
            f" released={released}, files={len(self.files)})"
        )

    @property
    def answer(self) -> Answer | None:
        """The estimate and how it came about; None if there is none."""
        return self.released.answer

    @property
    def release(self) -> Release | None:
        """The one estimate."""
        return None if self.answer is None else self.answer.release

    @property
    def failed(self) -> int:
        """How many audits found a fault."""
        return sum(audit.verdict == "failed" for audit in self.audits)

    @property
    def on_engine(self) -> bool:
        """Whether an engine decided."""
        return self.decided.passes is not None

    @property
    def late(self) -> int:
        """How many people delivered after the estimate was drawn."""
        return 0 if self.answer is None else len(self.answer.late)

    def to_frame(self, library: Library | None = None) -> Any:
        """Return what was decided about everybody, a row per person in the order of the bids, with ids. Confidential.

        Of ``library``; unless one is named, of the library that people came in, else of the first that is installed:
        pandas, Polars, pyarrow.
        """
        decided = self.decided
        if not isinstance(decided, DecisionInMemory):
            raise InputError("Everybody's figures stayed with the engine: they are in the tables that it wrote.")
        columns = decided.columns()
        if self.answer is not None:
            columns |= payment_columns(decided, self.answer, late_is_paid=self.campaign.late == "paid")
        return frame_of(columns, library or self.campaign.library)

    def facts(self) -> dict[str, Any]:
        """Return figures for programs, none of which belongs to one person."""
        facts: dict[str, Any] = {"campaign": self.campaign.title, **self.decided.facts()}
        if self.answer is not None:
            facts["estimate"] = campaign_estimate(self.campaign, self.answer)
            facts["drawn_before"] = self.answer.before
            facts["late"] = self.late
        facts["synthetic"] = self.campaign.spec.synthetic
        facts["stamps"] = list(self.stamps)
        if self.record is not None:
            facts["audits_failed"] = self.failed
        if self.record_hash is not None:
            facts["record_hash"] = self.record_hash
        return facts | _ending(self.decided.reading_notes, self.released.notes, self.files)

    def text(self) -> str:
        """Return the same in sentences."""
        lines = [*_new_notes(self.released.notes, self.decided.reading_notes), self.decided.text(), *self.lines()]
        if self.campaign.folder is not None:
            lines.append(f"Written to {self.campaign.folder}: {', '.join(path.name for path in self.files)}.")
        return "\n".join([*lines, *_next_step(self.campaign, self.decided.market, self.on_engine)])

    def lines(self) -> list[str]:
        """Return what is said of the estimate, and of what should not be overlooked, a line each."""
        campaign, answer, lines = self.campaign, self.answer, list[str]()
        if answer is not None:
            lines += answer_lines(campaign, answer)
            lines += ["The table of payments names those who were late."] * bool(self.late)
        if self.released.missing:
            lines.append(f"No estimate: {self.released.missing}")
        lines += strangers_text(self.released.strangers)
        if self.failed:
            lines.append(f"WARNING: {self.failed} audit{'s' * (self.failed > 1)} failed; see the report.")
        where = "summary" if self.on_engine else "record"
        lines += [f"STAMPED in the {where}: {stamp}." for stamp in self.stamps]
        lines += [self.unrecorded] * bool(self.unrecorded)
        if not isinstance(self.decided, DecisionInMemory):
            lines.append(f"No report and no audits: an engine has them for at most {deciding.LARGEST_HERE:,} people.")
        return [one for line in lines for one in line.splitlines()]

    def _repr_html_(self) -> str:
        campaign, decided, figures = self.campaign, self.decided, self.decided.figures
        few, few_in_stratum = too_few(figures.active), too_few(self._fewest())

        def bound(value: float, hidden: bool) -> str:
            return WITHHELD if hidden else f"at most {numbers.number(numbers.at_most(value))}"

        facts = [
            ("Setting", figures.setting),
            ("Bought from", f"{numbers.count(figures.active)} of {numbers.people(figures.people)}"),
            ("Privacy loss of each", bound(figures.largest_privacy_loss, few_in_stratum)),
            ("Total payment", WITHHELD if few else decided.currency.text(decided.total_minor)),
            ("Error of a payment", bound(decided.incentive_error, few)),
        ]
        if self.files:
            facts.append(("Written", ", ".join(path.name for path in self.files)))
        tables: list[Table] = []
        if self.release is not None:
            tables.append(estimates_table(self.release.public(), campaign.question, campaign.unit))
        notes = [FEW] if few else [FEW_IN_STRATUM] if few_in_stratum else []
        notes += [f"No estimate: {self.released.missing}"] if self.released.missing else []
        notes += [f"{self.failed} of {len(self.audits)} audits failed; see the report."] if self.failed else []
        notes += [f"Stamped: {stamp}." for stamp in self.stamps]
        return card(f"Purchase: {campaign.title}", facts=facts, tables=tables, notes=notes, failed=self.failed > 0)

    _repr_pretty_ = pretty

    def _fewest(self) -> int:
        """From how many people is bought, in the stratum with the fewest if that is known."""
        if isinstance(self.decided, DecisionInMemory):
            return fewest_bought_from(self.decided.outcome, self.decided.market)
        return self.decided.figures.active if self.release is None else self.release.fewest


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class PurchaseByStratum:
    """What a campaign with an estimate for each stratum came to."""

    campaign: Campaign
    """What was wanted."""

    parts: Mapping[str, Purchase]
    """The purchase of each stratum, by its name."""

    reading_notes: tuple[str, ...]
    """How the bids were read, where that was a choice."""

    released: Released
    """What is to be said about the data of all."""

    table: Path
    """Where the strata stand side by side."""

    def __repr__(self) -> str:
        return f"PurchaseByStratum(title={self.campaign.title!r}, parts={self.parts!r})"

    @property
    def failed(self) -> int:
        """How many audits found a fault."""
        return sum(part.failed for part in self.parts.values())

    @property
    def files(self) -> tuple[Path, ...]:
        """Everything that was written."""
        return (*(path for part in self.parts.values() for path in part.files), self.table)

    def decided_facts(self) -> dict[str, Any]:
        """Return what was decided in all strata together: counts, costs and bounds add up, errors do not."""
        found = {name: part.decided.facts() for name, part in self.parts.items()}
        facts = dict(next(iter(found.values())))
        for name in ("standard_error", "worst_standard_error", "questions", "flags"):
            facts.pop(name, None)
        facts |= {name: sum(one[name] for one in found.values()) for name in _COUNTED}
        facts |= {name: math.fsum(one[name] for one in found.values()) for name in _SUMMED}
        facts |= {name: max(one[name] for one in found.values()) for name in _LARGEST}
        flags = list(dict.fromkeys(flag for one in found.values() for flag in one.get("flags", ())))
        kept = ("people", "bought_from", "questions", "standard_error", "worst_standard_error")
        strata = [
            {"stratum": label, **{name: one[name] for name in kept if name in one}} for label, one in found.items()
        ]
        return facts | ({"flags": flags} if flags else {}) | {"strata": strata}

    def facts(self) -> dict[str, Any]:
        """Return figures for programs of everybody, and of each stratum what a purchase says of itself."""
        return {
            "campaign": self.campaign.title,
            **self.decided_facts(),
            "strata": [{"stratum": name, **part.facts()} for name, part in self.parts.items()],
            "synthetic": self.campaign.spec.synthetic,
            "audits_failed": self.failed,
            **_ending(self.reading_notes, self.released.notes, self.files),
        }

    def text(self) -> str:
        """Return the same in sentences."""
        market = next(iter(self.parts.values())).decided.market  # setting and questions are the same in all
        lines = [*_new_notes(self.released.notes, self.reading_notes), *self.reading_notes]
        lines.append(decision_text(self.decided_facts(), self.campaign.currency, market))
        for name, part in self.parts.items():
            if said := part.lines():
                lines += [f"{name}:", *(f"  {line}" for line in said)]
        lines += strangers_text(self.released.strangers)
        lines.append(f"Written to {self.campaign.folder}: {self.table.name}, and a folder for each stratum.")
        return "\n".join([*lines, *_next_step(self.campaign, market, on_engine=False)])


def _ending(bids: Sequence[str], data: Sequence[str], files: Sequence[Path]) -> dict[str, Any]:
    return {"reading_notes": list(dict.fromkeys([*bids, *data])), "files": [str(path) for path in files]}


def _new_notes(data: Sequence[str], bids: Sequence[str]) -> list[str]:
    return [note for note in data if note not in bids]


def strangers_text(count: int) -> list[str]:
    """Say how many people in the data did not bid; nothing if all did."""
    return [f"{numbers.people(count)} in the data did not bid; their data were not used."] * bool(count)


def summary(campaign: Campaign, decision: Decision, answer: Answer | None, stamps: Sequence[str]) -> dict[str, Any]:
    """The figures that are not about one person, in a file."""
    return {
        "format": "hushbid summary",
        "version": 2,
        "campaign": campaign.title,
        "market": decision.market.to_dict(),
        "prior": dict(decision.origin),
        "decided": decision.facts(),
        "release": None if answer is None else campaign_estimate(campaign, answer),
        "question": campaign.question,
        "stamps": list(stamps),
        "notices": [*([str(stratum_notice(*campaign.part_of))] if campaign.part_of else []), *campaign.spec.notices],
        "report": {"written": isinstance(decision, DecisionInMemory), "most_people": deciding.LARGEST_HERE},
        "versions": {name: version(name) for name in ("hushbid", "numpy", "scipy")},
    }


def _next_step(campaign: Campaign, market: Market, on_engine: bool) -> list[str]:
    """What comes next where a file says nothing of data yet."""
    if campaign.data is not None or campaign.path is None:
        return []
    add = "add [data] to the campaign file and run it again."
    if on_engine:
        columns = "a column" if market.survey is None else "a column for each question"
        return [
            f"Next: collect the data, put them into {columns} of the same table, add [data] with that file to the"
            " campaign file and run it again."
        ]
    if not market.strategy.sends_messages:
        return [f"Next: collect the data, {add}"]
    asked = f"--questions {campaign.path.name}"
    if market.survey is None:
        asked = f"--bounds {','.join(map(numbers.typed, market.bounds))}"
    return [
        "Next: tell each person her privacy loss. On her own machine she runs hushbid privatize --campaign"
        f" {json.dumps(campaign.title)} --privacy-loss HERS --at-most AGREED {asked}. Then add"
        " [data] with their messages to the campaign file and run it again."
    ]


def payment_columns(decision: DecisionInMemory, answer: Answer, *, late_is_paid: bool) -> dict[str, Raw]:
    """What is to be paid, now that data were delivered or not: nothing to those who did not deliver.

    If people value the estimate and some dropped out, its error has grown, and with it what they are owed. Whoever
    delivered late is paid like the others, or like those who did not deliver.
    """
    people, outcome, money, release = decision.people, decision.outcome, decision.money, answer.release
    gone, late = (np.zeros(len(people), dtype=bool) for _ in range(2))
    gone[list(release.dropped_out)] = True
    late[list(answer.late)] = True
    delivered = np.where(outcome.privacy_loss > 0.0, _YES, _NOT_ASKED)
    delivered[gone], delivered[late] = _NO, _LATE
    owed = money.payments
    if gone.any():
        worse = outcome.population.user_weights() * (release.error.mse - outcome.mse)
        owed = amounts_due(outcome.payments, worse, gone & ~late if late_is_paid else gone, money.decimals)
    return {
        people.id_name: people.id_column,
        "payment_minor": owed,
        "payment": in_units(owed, money.decimals),
        "currency": [money.currency] * len(people),
        "delivered": np.array(_DELIVERED, dtype=object)[delivered].tolist(),
    }
