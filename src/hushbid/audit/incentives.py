"""Attack the claim that the truth is everybody's best report, by trying other reports.

For sampled people the whole mechanism is run again at many reports of theirs, the others' unchanged: evenly over the
support, on both sides of everybody else's report and of her own, and closing in on every jump of her privacy loss.
From what comes out,

* the *gain* of the best misreport, for her own type and for every other type on the same list of reports;
* the *slack* of joining over staying out;
* whether her loss ever rises with her report;
* whether her payment agrees with ``β·(MSE − outside) + c·ε + ∫ε``, the integral enclosed by lower and upper sums of
  the losses that were seen. Nothing here calls the code that computes payments.

A violation found is a fact. None found means: none among the reports that were tried.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hushbid.errors import InputError
from hushbid.mechanism import Market
from hushbid.priors import Grouped, Prior

FloatArray = NDArray[np.float64]
_KINKS = 40
_CLOSER = 24


class Decided(Protocol):
    """What a mechanism must answer to a vector of reports."""

    @property
    def privacy_loss(self) -> FloatArray: ...
    @property
    def payments(self) -> FloatArray: ...
    @property
    def mse(self) -> float: ...


Rule = Callable[[FloatArray], Decided]


@dataclass(frozen=True, slots=True, kw_only=True)
class IncentiveReport:
    """What was found; money in the market's unit."""

    people: int
    """How many people were put to the test."""

    reports_tried: int
    """At how many reports in all the mechanism was run."""

    largest_gain: float
    """The most any type gained by any misreport that was tried; 0 or less: the truth was always best."""

    participation_slack: float
    """The least anybody truthful gained by joining; negative: somebody would rather have stayed out."""

    largest_rise: float
    """The most a privacy loss rose when its owner's report did; 0 for a monotone rule."""

    payment_error: float
    """How far a payment lay outside what its own losses allow."""

    payment_resolution: float
    """How well the sums enclose those payments: a smaller error could not have been seen."""

    stated_error: float
    """What the mechanism itself says a misreport could gain."""

    violations: tuple[str, ...]
    """What was found to be wrong, a sentence each."""

    @property
    def passed(self) -> bool:
        """Whether nothing was found; that proves nothing about reports that were not tried."""
        return not self.violations

    def summary(self) -> str:
        """The result in words."""
        head = f"{self.people} people, {self.reports_tried} reports tried: "
        if self.violations:
            return head + " ".join(self.violations)
        return (
            head + f"no misreport gained more than {max(self.largest_gain, 0.0):.2g} (stated: {self.stated_error:.2g}),"
            f" joining never cost anything, losses never rose with reports, and payments agree with their integrals as"
            f" far as can be seen ({self.payment_resolution:.2g}). Not found is not proved."
        )


def check_incentives(
    rule: Market | Rule | Any,
    reports: ArrayLike,
    *,
    market: Market | None = None,
    people: int | None = 20,
    points: int = 65,
    rng: np.random.Generator | None = None,
    tolerance: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> IncentiveReport:
    """Try misreports of up to ``people`` people (None: everybody) against a market, a rival or any rule.

    A rule maps a report vector to something with ``privacy_loss``, ``payments`` and ``mse`` (in squared data units), or
    has a method ``acquire`` that does; ``market`` then tells priors, user weights and what staying out means.
    ``tolerance`` is what counts as a violation, in money: by default what the mechanism itself states, and rounding.
    """
    world = rule if isinstance(rule, Market) else market
    if world is None:
        raise InputError("market must be given when the rule is not a Market: it says what people believe and value.")
    decide: Rule = rule.acquire if hasattr(rule, "acquire") else rule
    truth = np.atleast_1d(np.asarray(reports, dtype=float))
    rows = np.arange(truth.size)
    if people is not None and truth.size > people:
        rows = np.sort((rng or np.random.default_rng(0)).choice(truth.size, people, replace=False))
    base = decide(truth)
    stated = float(getattr(base, "incentive_error", 0.0))
    scale = 1.0 + float(np.abs(base.payments).max())
    allowed = (stated if tolerance is None else tolerance) + 1e-9 * scale
    findings = []
    for number, row in enumerate(rows.tolist()):
        findings.append(_one_person(world, decide, truth, row, points))
        if progress is not None:
            progress(number + 1, rows.size)
    return _judged(findings, stated, allowed, scale)


@dataclass(frozen=True, slots=True)
class _Finding:
    row: int
    tried: int
    gain: float
    slack: float
    rise: float
    payment_error: float
    resolution: float


def _one_person(market: Market, decide: Rule, truth: FloatArray, row: int, points: int) -> _Finding:
    prior = market.prior.prior_of(row) if isinstance(market.prior, Grouped) else market.prior
    weight = float(np.broadcast_to(np.asarray(market.user_weight, dtype=float), truth.shape)[row])
    table: dict[float, tuple[float, float, float]] = {}

    def run(z: float) -> tuple[float, float, float]:
        if z not in table:
            changed = truth.copy()
            changed[row] = z
            found = decide(changed)
            table[z] = (float(found.privacy_loss[row]), float(found.payments[row]), float(found.mse))
        return table[z]

    top = _top(prior, truth[row], run)
    for tried in _reports_to_try(prior, truth, row, top, points):
        run(tried)
    _close_in(table, run)
    z = np.array(sorted(table))
    loss, paid, error = (np.array([table[value][k] for value in z.tolist()]) for k in range(3))
    own = int(np.searchsorted(z, truth[row]))
    with np.errstate(invalid="ignore"):
        burden = np.where(np.isinf(loss)[None, :] & (z[:, None] == 0.0), 0.0, z[:, None] * loss[None, :])
    worth = paid[None, :] - burden - weight * np.where(np.isfinite(error), error, 0.0)[None, :]
    honest = np.diagonal(worth)
    outside = _outside(market, truth, row) if weight > 0.0 else 0.0
    low = np.concatenate([np.cumsum((loss[1:] * np.diff(z))[::-1])[::-1], [0.0]])
    finite = np.where(np.isfinite(loss), loss, 0.0)
    high = np.concatenate([np.cumsum((finite[:-1] * np.diff(z))[::-1])[::-1], [0.0]])
    rent = paid[own] - weight * (error[own] - outside) - (truth[row] * loss[own] if truth[row] > 0.0 else 0.0)
    return _Finding(
        row,
        z.size,
        float((worth.max(axis=1) - honest)[np.isfinite(loss)].max(initial=0.0)),
        float((honest + weight * outside)[np.isfinite(loss)].min(initial=math.inf)),
        float(np.diff(loss)[np.isfinite(loss[:-1])].max(initial=0.0)),
        float(max(low[own] - rent, rent - high[own], 0.0)) if math.isfinite(loss[own]) else 0.0,
        float(high[own] - low[own]),
    )


def _reports_to_try(prior: Prior, truth: FloatArray, row: int, top: float, points: int) -> list[float]:
    low = prior.smallest_report
    near = np.sort(np.delete(truth, row))
    near = near[(near >= low) & (near <= top)]
    near = near[:: max(1, near.size // _KINKS)]
    sides = np.concatenate([near, near * (1.0 - 1e-9), near * (1.0 + 1e-9), [truth[row]]])
    ends = [part[1] for part in prior.flat_parts[:_KINKS]]
    flat = np.concatenate([ends, np.nextafter(ends, np.inf)]) if ends else np.zeros(0)
    every = np.concatenate([np.linspace(low, top, points), sides, flat])
    values: list[float] = np.unique(every[(every >= low) & (every <= top)]).tolist()
    return values


def _top(prior: Prior, report: float, run: Callable[[float], tuple[float, float, float]]) -> float:
    """The top of the support, or a report beyond which nothing is bought any more."""
    top = prior.support[1]
    if math.isfinite(top):
        return float(top)
    reach = max(report, float(prior.quantile(0.5)))
    for _ in range(60):
        reach *= 2.0
        if run(reach)[0] <= 0.0:
            break
    return reach


def _close_in(table: dict[float, tuple[float, float, float]], run: Callable[[float], Any]) -> None:
    """Halve the intervals over which the loss changes most, so that jumps are seen from close by."""
    for _ in range(_CLOSER):
        z = np.array(sorted(table))
        loss = np.array([table[value][0] for value in z.tolist()])
        with np.errstate(invalid="ignore"):
            change = np.nan_to_num(np.abs(np.diff(loss)) * np.diff(z), posinf=np.inf)
        middle = 0.5 * (z[:-1] + z[1:])
        change[(middle <= z[:-1]) | (middle >= z[1:])] = 0.0
        for k in np.argsort(change)[-4:].tolist():
            if change[k] > 0.0:
                run(float(middle[k]))


def _outside(market: Market, truth: FloatArray, row: int) -> float:
    """The error person ``row`` lives with outside: her own datum's variance, or that of a market without her."""
    if market.outside_option == "own_data":
        return float(np.broadcast_to(np.asarray(market.stated_variance, dtype=float), truth.shape)[row])
    values = market.to_dict()
    weights = np.broadcast_to(np.asarray(market.user_weight, dtype=float), truth.shape)
    values["user_weight"] = np.delete(weights, row).tolist()
    if isinstance(market.variance, np.ndarray):
        values["variance"] = np.delete(market.variance, row).tolist()
    if isinstance(market.prior, Grouped):
        values["prior"] = Grouped(market.prior.priors, np.delete(np.array(market.prior.labels), row).tolist())
    values["outside_option"] = "own_data"
    return Market.from_dict(values).acquire(np.delete(truth, row)).mse


def _judged(findings: list[_Finding], stated: float, allowed: float, scale: float) -> IncentiveReport:
    violations = []
    gain = max(findings, key=lambda f: f.gain)
    if gain.gain > allowed:
        violations.append(f"A misreport gains {gain.gain:.3g} for the person in row {gain.row} or a type like hers.")
    slack = min(findings, key=lambda f: f.slack)
    if slack.slack < -allowed:
        violations.append(f"Joining costs {-slack.slack:.3g} more than staying out in row {slack.row}.")
    rise = max(findings, key=lambda f: f.rise)
    if rise.rise > 1e-9 * scale:
        violations.append(f"Raising the report in row {rise.row} raises the privacy loss by {rise.rise:.3g}.")
    error = max(findings, key=lambda f: f.payment_error)
    if error.payment_error > allowed:
        violations.append(
            f"The payment in row {error.row} differs from its integral by at least {error.payment_error:.3g}."
        )
    return IncentiveReport(
        people=len(findings),
        reports_tried=sum(f.tried for f in findings),
        largest_gain=gain.gain,
        participation_slack=slack.slack,
        largest_rise=rise.rise,
        payment_error=error.payment_error,
        payment_resolution=max(f.resolution for f in findings),
        stated_error=stated,
        violations=tuple(violations),
    )
