"""How far two decisions of one market are apart, each difference in units of what is allowed.

Without caps objective, error and losses agree to 1e-12 (losses relative to the largest). With caps they agree to 1e-9,
a loss relative to the own cap. Payments agree to 1e-9 of the largest, or to the tolerance that the market asks for
where that is wider, and their enclosures overlap. Refusals have the same class and, but for renamed words, the same
sentence. A lower bound is no number to agree on: it must stay below the objective, and no further than before.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from tools.comparison.markets import Case
from tools.comparison.worker import OUT_OF_TIME, Floats, Result

_RENAMED = {
    "max_correlation": "max_relation",
    "bids": "reports",
    "bid": "report",
    "baselines": "rivals",
    "make a market of each stratum": "ask for each=True",
}
"""New words for old ones in sentences of refusals."""

_ROUNDING = 1e-12
"""Enclosures may be apart by this share of the largest payment: they are computed numbers too."""


@dataclass(slots=True)
class Difference:
    """What is different between two decisions of one market."""

    case: Case
    deviations: dict[str, float] = field(default_factory=dict)
    """By what is compared: how far apart, relative."""

    outside: list[str] = field(default_factory=list)
    """What is further apart than allowed, in words; empty where the decisions agree."""

    def note(self, name: str, deviation: float, allowed: float) -> None:
        """Note a deviation, and that it is too large."""
        self.deviations[name] = deviation
        if not deviation <= allowed:
            self.outside.append(f"{name} differs by {deviation:.2g}, allowed {allowed:.2g}")


def difference(case: Case, old: Result, new: Result) -> Difference:
    """Compare two decisions of one market."""
    found = Difference(case)
    if old.refusal is not None or new.refusal is not None:
        _compare_refusals(found, old, new)
        return found
    allowed = 1e-12 if case.caps == "none" else 1e-9
    for name in ("objective", "mse", "worst_mse"):
        if name in old.numbers:
            found.note(name, _relative(old.numbers[name], new.numbers[name]), allowed)
    found.note("loss", _losses(old, new), allowed)
    largest = max(float(np.max(np.abs(old.columns["weight"]))), 1e-300)
    found.note("weight", _apart(old.columns["weight"], new.columns["weight"], largest), 1e3 * allowed)
    _compare_bounds(found, old, new)
    if "payment" in old.columns:
        _compare_payments(found, old, new)
    return found


def _compare_refusals(found: Difference, old: Result, new: Result) -> None:
    before, after = _words(old), _words(new)
    if before[0] == OUT_OF_TIME:  # there is nothing to compare with
        return
    if before[0] != after[0]:
        found.outside.append(f"was {before[0]} ({before[1]}), is {after[0]} ({after[1]})")
    elif before[1] != after[1]:
        found.outside.append(f"sentence was {before[1]!r}, is {after[1]!r}")


def _words(result: Result) -> tuple[str, str]:
    """The class and sentence of a refusal, with today's words."""
    if result.refusal is None:
        return "decided", f"objective {result.numbers['objective']:.17g}"
    kind, sentence = result.refusal
    for new, old in _RENAMED.items():
        sentence = sentence.replace(new, old)
    return kind, sentence


def _compare_bounds(found: Difference, old: Result, new: Result) -> None:
    """The lower bound holds, and is not much further from the objective than it was."""
    gaps = []
    for result in (old, new):
        objective, bound = result.numbers["objective"], result.numbers["lower_bound"]
        scale = abs(objective) if math.isfinite(objective) and objective else 1.0
        gaps.append((objective - bound) / scale if objective != bound else 0.0)
    if not gaps[1] >= min(-1e-9, 1.1 * gaps[0]):
        found.outside.append(f"lower bound is above the objective by {-gaps[1]:.2g}")
    found.note("bound", max(gaps[1] - gaps[0], 0.0), 1e-8)


def _compare_payments(found: Difference, old: Result, new: Result) -> None:
    before, after = old.columns["payment"], new.columns["payment"]
    largest = max(float(np.max(np.abs(before))), 1e-300)
    allowed = max(1e-9, old.numbers["tolerance"], new.numbers["tolerance"])
    found.note("payment", _apart(before, after, largest), allowed)
    if "payment_lower" not in old.columns or "payment_lower" not in new.columns:
        return
    lower, upper = (np.stack([one.columns[f"payment_{end}"] for one in (old, new)]) for end in ("lower", "upper"))
    apart = lower.max(axis=0) - upper.min(axis=0) - _ROUNDING * largest
    if np.max(apart) > 0.0:
        row = int(np.argmax(apart))
        found.outside.append(f"the enclosures of the payment of row {row} are {apart[row] / largest:.2g} apart")


def _losses(old: Result, new: Result) -> float:
    """The largest difference of a loss: relative to the own cap, or to the largest loss where there is no cap."""
    before, after, caps = old.columns["loss"], new.columns["loss"], old.columns["cap"]
    finite = before[np.isfinite(before)]
    largest = max(float(np.max(finite, initial=0.0)), 1e-300)
    return _apart(before, after, np.where((caps > 0.0) & np.isfinite(caps), np.minimum(caps, largest), largest))


def _apart(before: Floats, after: Floats, scale: Floats | float) -> float:
    """The largest difference relative to a scale; infinite numbers must be in the same places."""
    same = before == after
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.where(same, 0.0, np.abs(before - after) / scale)
    return float(np.max(np.where(np.isnan(apart), math.inf, apart), initial=0.0))


def _relative(before: float, after: float) -> float:
    if before == after:
        return 0.0
    apart = abs(before - after) / max(abs(before), abs(after))
    return math.inf if math.isnan(apart) else apart
