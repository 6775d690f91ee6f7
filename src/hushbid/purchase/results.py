"""What a purchase came to: for programs, for people, and as a summary in a file."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from hushbid import wording
from hushbid.disclosure import Answer, Release
from hushbid.disclosure.cards import estimates_table
from hushbid.disclosure.error import FEW
from hushbid.notebook import WITHHELD, Table, card
from hushbid.purchase.campaign_file import Campaign
from hushbid.purchase.deciding import LARGEST_RECORD, Decided
from hushbid.purchase.releasing import BEFORE, estimate_facts, estimate_text, late_text
from hushbid.record import Record
from hushbid.report import AuditLine
from hushbid.report.suppression import too_few


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Purchase:
    """What a campaign came to."""

    campaign: Campaign
    """What was wanted."""

    decided: Decided
    """What was decided, and the money it comes to."""

    answer: Answer | None
    """The estimate and how it came about; None if there is none."""

    record: Record | None
    """None if an engine kept so many people's figures to itself."""

    stamps: tuple[str, ...]
    """What record and summary say of safeguards that were overridden."""

    strangers: int
    """People in the data who did not report."""

    missing: str
    """Why there is no estimate although there are data; empty if there is one."""

    audits: tuple[AuditLine, ...]
    files: tuple[Path, ...]

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

    def facts(self) -> dict[str, Any]:
        """For programs; nothing in it belongs to one person."""
        facts: dict[str, Any] = {"campaign": self.campaign.name, **self.decided.facts()}
        if self.answer is not None:
            facts["estimate"] = campaign_estimate(self.campaign, self.answer)
            facts["drawn_before"] = self.answer.before
            facts["late"] = self.late
        facts["made_up"] = self.campaign.made_up
        facts["stamps"] = list(self.stamps)
        if self.record is not None:
            facts["audits_failed"] = self.failed
            facts["record_hash"] = self.record.hash
        facts["files"] = [str(path) for path in self.files]
        return facts

    def text(self) -> str:
        """For people."""
        campaign, answer = self.campaign, self.answer
        lines = [self.decided.text()]
        if answer is not None:
            lines.append(estimate_text(answer.release, campaign.level, campaign.quantity, campaign.unit))
            if answer.before:
                lines.append(BEFORE)
            if self.late and campaign.data is not None:
                lines.append(
                    f"{late_text(answer)}, they are {campaign.data.late}, and the table of payments names them."
                )
        if self.missing:
            lines.append(f"No estimate: {self.missing}")
        if self.strangers:
            lines.append(f"{wording.people(self.strangers)} in the data did not report; their data were not used.")
        if self.failed:
            lines.append(f"WARNING: {self.failed} audit{'s' * (self.failed > 1)} failed; see the report.")
        where = "summary" if self.on_engine else "record"
        lines += [f"STAMPED in the {where}: {stamp}." for stamp in self.stamps]
        if self.record is None:
            lines.append(f"No record and no report: an engine writes them for at most {LARGEST_RECORD:,} people.")
        names = ", ".join(path.name for path in self.files)
        lines.append(f"Written to {campaign.folder}: {names}.")
        if campaign.data is None:
            lines.append(_next_step(campaign, self.on_engine))
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        campaign, figures = self.campaign, self.decided.figures
        hidden = too_few(figures.active)
        largest, gain = (
            WITHHELD if hidden else f"at most {wording.number(wording.at_most(value))}"
            for value in (figures.largest_privacy_loss, self.decided.incentive_error)
        )
        facts = [
            ("Setting", figures.setting),
            ("Bought from", f"{wording.count(figures.active)} of {wording.people(figures.people)}"),
            ("Privacy loss of each", largest),
            ("Total payment", WITHHELD if hidden else self.decided.currency.text(self.decided.total_minor)),
            ("A misreport gains", gain),
            ("Written", ", ".join(path.name for path in self.files)),
        ]
        tables: list[Table] = []
        if self.release is not None:
            tables.append(estimates_table(self.release.public(), campaign.quantity, campaign.unit))
        notes = [FEW] if hidden or any(WITHHELD in row for table in tables for row in table.rows) else []
        notes += [f"No estimate: {self.missing}"] if self.missing else []
        notes += [f"{self.failed} of {len(self.audits)} audits failed; see the report."] if self.failed else []
        notes += [f"Stamped: {stamp}." for stamp in self.stamps]
        return card(f"Campaign {campaign.name}", facts=facts, tables=tables, notes=notes, failed=self.failed > 0)


def summary(campaign: Campaign, decided: Decided, answer: Answer | None, stamps: Sequence[str]) -> dict[str, Any]:
    """The figures that are not about one person, in a file; above `LARGEST_RECORD` people in the place of a record."""
    return {
        "format": "hushbid summary",
        "version": 1,
        "campaign": campaign.name,
        "market": decided.market.to_dict(),
        "prior": dict(decided.origin),
        "decided": decided.facts(),
        "release": None if answer is None else campaign_estimate(campaign, answer),
        "question": campaign.quantity,
        "stamps": list(stamps),
        "notices": list(campaign.notices),
        "record": {"written": decided.everybody is not None, "most_people": LARGEST_RECORD},
        "versions": {name: version(name) for name in ("hushbid", "numpy", "scipy")},
    }


def campaign_estimate(campaign: Campaign, answer: Answer) -> dict[str, Any]:
    """The estimate of a campaign: of which wave it is, and whether it is made up."""
    facts = estimate_facts(answer.release, campaign.level)
    origin = {"wave": campaign.wave, "waves_before": answer.waves_before, "made_up": campaign.made_up}
    return {**facts, **origin, "public": {**facts["public"], "made_up": campaign.made_up}}


def _next_step(campaign: Campaign, on_engine: bool) -> str:
    if on_engine:
        columns = "a column for each question" if "questions" in campaign.market else "a column"
        return (
            f"Next: collect the data, put them into {columns} of the same table, add [data] with that file to the"
            " campaign file and run it again."
        )
    if campaign.market["setting"] == "local":
        asked = f"--questions {campaign.path.name}"
        if "questions" not in campaign.market:
            low, high = campaign.market["bounds"]
            asked = f"--bounds {low:g},{high:g}"
        return (
            "Next: tell each person her privacy loss. On her own machine she runs hushbid privatize --campaign"
            f" {json.dumps(campaign.name)} --privacy-loss HERS --at-most AGREED {asked}. Then add"
            " [data] with their messages to the campaign file and run it again."
        )
    return "Next: collect the data, add [data] to the campaign file and run it again."
