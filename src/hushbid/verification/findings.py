"""What a verification found: named checks, each with its verdict in a sentence and the figures behind it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from hushbid.common.arrays import FloatArray
from hushbid.common.numbers import NBSP
from hushbid.display import Table, card, pretty

Verdict = Literal["holds", "holds by sample", "fails", "incomplete"]
Status = Literal["holds", "fails", "incomplete", "skipped"]
Kind = Literal["record", "receipt", "log"]
Figure = float | int | str

_WORDS: dict[Status, str] = {"holds": "holds", "fails": "FAILS", "incomplete": "INCOMPLETE", "skipped": "-"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at."""

    name: str
    """What was checked, in a word or two."""

    status: Status
    """``"holds"``, ``"fails"``, ``"incomplete"`` if the check could not be made or not closely enough, or ``"skipped"``
    if there was nothing to check."""

    sentence: str
    """What was found. It names rows, never a person's numbers."""

    figures: dict[str, Figure] = field(default_factory=dict)
    """How close it was, and how many people were looked at."""

    sampled: str = ""
    """What was checked of how many, if that was a random sample."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """All checks of one document."""

    checks: tuple[Check, ...]
    """In the order in which they were made."""

    hash: str
    """Of the document that was verified; of a log, that of its last event."""

    stamps: tuple[str, ...] = ()
    """Safeguards that the record says were overridden."""

    kind: Kind = "record"
    """What was verified."""

    @property
    def verdict(self) -> Verdict:
        """``"fails"`` if a check does, else ``"incomplete"`` if one is, else ``"holds"``, perhaps ``"by sample"``."""
        if self.failed:
            return "fails"
        if self.incomplete:
            return "incomplete"
        return "holds by sample" if any(check.sampled for check in self.checks) else "holds"

    @property
    def ok(self) -> bool:
        """Whether everything that was checked holds, of everybody or of a random sample, and nothing was left out."""
        return self.verdict in ("holds", "holds by sample")

    @property
    def failed(self) -> tuple[str, ...]:
        """The names of the checks that failed."""
        return tuple(check.name for check in self.checks if check.status == "fails")

    @property
    def incomplete(self) -> tuple[str, ...]:
        """The names of the checks that could not be made, or not closely enough."""
        return tuple(check.name for check in self.checks if check.status == "incomplete")

    def summary(self) -> str:
        """One line per check, then the verdict."""
        lines = [f"{_WORDS[check.status]:10}  {check.name}: {check.sentence}" for check in self.checks]
        lines += [f"{'stamp':10}  {stamp}" for stamp in self.stamps]
        return "\n".join([*lines, f"{self._sentence()} {self.kind.capitalize()} {self.hash}."])

    def _sentence(self) -> str:
        """The verdict in a sentence, which begins with its word."""
        match self.verdict:
            case "fails":
                return f"Fails: {len(self.failed)} of {len(self.checks)} checks. Do not rely on this {self.kind}."
            case "incomplete":
                return f"Incomplete: not verified: {', '.join(self.incomplete)}. Nothing that was checked fails."
            case "holds by sample":
                sampled = ", ".join(check.sampled for check in self.checks if check.sampled)
                return f"Holds by sample: {sampled} were checked, and everything else that needs no data."
            case _ if self.kind == "record":
                return "Holds: everything that can be checked without the data."
            case _:
                return "Holds: everything that was checked."

    def _repr_html_(self) -> str:
        marks = {"holds": "✓", "fails": "✗", "incomplete": "?", "skipped": "–"}
        rows = tuple(
            (f"{marks[check.status]}{NBSP}{check.status}", check.name, check.sentence) for check in self.checks
        )
        table = Table(caption="", head=("verdict", "check", "what was found"), rows=rows)
        notes = [*(f"Stamped: {stamp}." for stamp in self.stamps), f"{self.kind.capitalize()} {self.hash}."]
        return card(self._sentence(), tables=[table], notes=notes, failed=not self.ok)

    _repr_pretty_ = pretty

    def to_dict(self) -> dict[str, Any]:
        """The verification as plain values."""
        return {
            "verdict": self.verdict,
            "kind": self.kind,
            "hash": self.hash,
            "stamps": list(self.stamps),
            "checks": [
                {
                    "name": check.name,
                    "status": check.status,
                    "sentence": check.sentence,
                    "figures": {
                        name: str(value) if isinstance(value, float) and not math.isfinite(value) else value
                        for name, value in check.figures.items()
                    },
                }
                for check in self.checks
            ],
        }


def judged(
    name: str, problems: Sequence[str], sentence: str, *, doubts: Sequence[str] = (), **figures: Figure
) -> Check:
    """A check that fails if there are problems, is incomplete if there are doubts only, and holds otherwise."""
    plain = {label.replace("_", " "): value for label, value in figures.items()}
    told = problems or doubts
    if not told:
        return Check(name=name, status="holds", sentence=f"{sentence}.", figures=plain)
    more = f" (and {len(told) - 1} more)" if len(told) > 1 else ""
    return Check(name=name, status="fails" if problems else "incomplete", sentence=f"{told[0]}{more}.", figures=plain)


def incomplete(name: str, sentence: str) -> Check:
    """A check that cannot be made."""
    return Check(name=name, status="incomplete", sentence=f"{sentence}.")


def skipped(name: str, sentence: str) -> Check:
    """There was nothing to check."""
    return Check(name=name, status="skipped", sentence=f"{sentence}.")


def distance(found: Any, expected: Any, floor: Any = 0.0) -> FloatArray:
    """How far numbers are from the expected ones, relative to those or to a larger ``floor``; 0 if they are equal."""
    left, right = np.asarray(found, dtype=float), np.asarray(expected, dtype=float)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        gap = np.abs(left - right) / np.maximum(np.abs(right), floor)
    gap = np.where(left == right, 0.0, gap)
    return np.where(np.isnan(gap), math.inf, gap)
