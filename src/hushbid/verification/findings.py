"""What a verification found: named checks, each with its verdict in a sentence and the figures behind it."""

import math
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from hushbid.arrays import FloatArray
from hushbid.notebook import Table, card, pretty
from hushbid.wording import NBSP

Status = Literal["ok", "failed", "skipped"]
Kind = Literal["record", "receipt", "log"]
Figure = float | int | str


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at."""

    name: str
    """What was checked, in a word or two."""

    status: Status
    """``"ok"``, ``"failed"``, or ``"skipped"`` if there was nothing to check."""

    sentence: str
    """What was found. It names rows, never a person's numbers."""

    figures: dict[str, Figure] = field(default_factory=dict)
    """How close it was, and how many people were looked at."""


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
    def ok(self) -> bool:
        """Whether nothing failed."""
        return all(check.status != "failed" for check in self.checks)

    @property
    def failed(self) -> tuple[str, ...]:
        """The names of the checks that failed."""
        return tuple(check.name for check in self.checks if check.status == "failed")

    def summary(self) -> str:
        """One line per check, then the verdict."""
        marks = {"ok": "ok    ", "failed": "FAILED", "skipped": "-     "}
        lines = [f"{marks[check.status]}  {check.name}: {check.sentence}" for check in self.checks]
        lines += [f"stamp   {stamp}" for stamp in self.stamps]
        return "\n".join([*lines, f"{self._verdict()} {self.kind.capitalize()} {self.hash}."])

    def _verdict(self) -> str:
        if not self.ok:
            return f"{len(self.failed)} of {len(self.checks)} checks failed: do not rely on this {self.kind}."
        if self.kind != "record":
            return "Everything that was checked holds."
        return "Everything that can be checked without the data holds."

    def _repr_html_(self) -> str:
        marks = {"ok": "✓", "failed": "✗", "skipped": "–"}
        rows = tuple(
            (f"{marks[check.status]}{NBSP}{check.status}", check.name, check.sentence) for check in self.checks
        )
        table = Table(caption="", head=("verdict", "check", "what was found"), rows=rows)
        notes = [*(f"Stamped: {stamp}." for stamp in self.stamps), f"{self.kind.capitalize()} {self.hash}."]
        return card(self._verdict(), tables=[table], notes=notes, failed=not self.ok)

    _repr_pretty_ = pretty

    def to_dict(self) -> dict[str, Any]:
        """The verification as plain values."""
        return {
            "ok": self.ok,
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


def judged(name: str, problems: list[str], sentence: str, **figures: Figure) -> Check:
    """Failed if there are problems, which then make up the sentence; otherwise ok."""
    plain = {label.replace("_", " "): value for label, value in figures.items()}
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        return Check(name=name, status="failed", sentence=f"{problems[0]}{more}.", figures=plain)
    return Check(name=name, status="ok", sentence=f"{sentence}.", figures=plain)


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
