"""Attack the claim that the truth is everybody's best report, by trying other reports.

For sampled people the whole mechanism is run again at many reports of theirs, the others' unchanged: evenly over the
support, on both sides of everybody else's report and of her own, and closing in on every jump of her privacy loss.
From what comes out,

* the *gain* of the best misreport, for her own type and for every other type on the same list of reports;
* the *slack* of joining over staying out;
* whether her loss ever rises with her report;
* whether her payment agrees with ``β·(MSE − outside) + c·ε + ∫ε``, the integral enclosed by lower and upper sums of
  losses alone: those that were seen, and for a market many more from allocations. Nothing here calls the code that
  computes payments or follows one person's cost.

A violation found is a fact. None found means: none among the reports that were tried.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike

from hushbid.arrays import FloatArray, as_floats
from hushbid.errors import InputError, ReportError
from hushbid.mechanism import Market, Population, decide
from hushbid.priors import Prior

_KINKS = 40
_CLOSER = 24
_INTEGRATION = 600
"""How many allocations may be spent on one person's integral."""


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
class PersonFinding:
    """What was found for one person."""

    row: int
    """Who it is."""

    reports_tried: int
    """At how many reports of hers the mechanism was run."""

    spacing: float
    """The widest gap between neighbouring reports that were tried."""

    gain: float
    """What the best misreport tried gains her, if her report is the truth; 0 if none gains."""

    misreport: float
    """The report that gains it."""

    gain_of_any_type: float
    """What the best misreport gains the type, among the reports tried, to whom it gains most."""

    slack: float
    """The least any of those types gains by joining truthfully."""

    rise: float
    """The most her loss rose with her report."""

    payment_error: float
    """How far her payment lies outside the sums that enclose it."""

    payment_resolution: float
    """How far those sums lie apart."""

    excess: float
    """The largest gain beyond what the mechanism states for its own errors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A claim that was found to be wrong for one person; as text, a sentence that names her row."""

    claim: Literal["truth", "joining", "loss", "payment"]
    """That no misreport gains; that joining costs nothing; that losses do not rise with reports; what is paid."""

    row: int
    """Who it is."""

    amount: float
    """By how much it is wrong."""

    def __str__(self) -> str:
        return self.sentence(f"row {self.row}")

    def sentence(self, who: str) -> str:
        """What was found, in words, of a person who is called ``who``."""
        return _SENTENCES[self.claim].format(who=who, amount=f"{self.amount:.3g}")


_SENTENCES = {
    "truth": "A misreport gains {amount} for the person in {who} or a type like hers.",
    "joining": "Joining costs {amount} more than staying out in {who}.",
    "loss": "Raising the report in {who} raises the privacy loss by {amount}.",
    "payment": "The payment in {who} differs from its integral by at least {amount}.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class IncentiveReport:
    """What was found; money in the market's unit."""

    findings: tuple[PersonFinding, ...]
    """Person by person."""

    people: int
    """How many people were put to the test."""

    reports_tried: int
    """At how many reports in all the mechanism was run."""

    spacing: float
    """The widest gap between neighbouring reports tried for one person; what lies in between was not tried."""

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

    violations: tuple[Violation, ...]
    """What was found to be wrong."""

    @property
    def passed(self) -> bool:
        """Whether nothing was found; that proves nothing about reports that were not tried."""
        return not self.violations

    def summary(self) -> str:
        """The result in words."""
        head = f"{self.people} people, {self.reports_tried} reports tried: "
        if self.violations:
            return head + " ".join(map(str, self.violations))
        return (
            head + f"no misreport gained more than {max(self.largest_gain, 0.0):.2g} (stated: {self.stated_error:.2g}),"
            f" joining never cost anything, losses never rose with reports, and payments agree with their integrals as"
            f" far as can be seen ({self.payment_resolution:.2g}). Reports at most {self.spacing:.2g} apart were tried."
            f" Not found is not proved."
        )


def check_incentives(
    rule: Market | Population | Rule | Any,
    reports: ArrayLike,
    *,
    market: Market | None = None,
    people: int | None = 20,
    rows: Sequence[int] | None = None,
    points: int = 65,
    rng: np.random.Generator | None = None,
    tolerance: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> IncentiveReport:
    """Try misreports of up to ``people`` people (None: everybody), or of ``rows``, in a market, a rival or any rule.

    A rule maps a report vector to something with ``privacy_loss``, ``payments`` and ``mse`` (in squared data units), or
    has a method ``acquire`` that does; ``market`` then tells priors, user weights and what staying out means.
    ``tolerance`` is what counts as a violation, in money: by default what the mechanism itself states as its error, at
    the truth and at the misreport, and rounding.
    """
    world = rule if isinstance(rule, (Market, Population)) else market
    if world is None:
        raise InputError(
            "market must be given when the rule is not a Market: it says what people believe and value.", field="market"
        )
    truth = np.atleast_1d(as_floats(reports, "reports", ReportError))
    population = world if isinstance(world, Population) else world.for_people(truth.size)
    run: Any = partial(decide, rule) if isinstance(rule, Population) else rule
    run = run.acquire if hasattr(run, "acquire") else run
    is_ours = rule is world or rule == getattr(world, "acquire", None)
    tested = _tested(truth.size, people, rows, rng)
    base = run(truth)
    scale = 1.0 + float(np.abs(base.payments).max())  # what rounding is relative to
    findings = []
    for number, row in enumerate(tested):
        findings.append(_Person(population, run, truth, row, is_ours).finding(points, tolerance))
        if progress is not None:
            progress(number + 1, len(tested))
    stated = float(getattr(base, "incentive_error", 0.0))
    return _judged(findings, stated, stated if tolerance is None else tolerance, scale)


def _tested(n: int, people: int | None, rows: Sequence[int] | None, rng: np.random.Generator | None) -> list[int]:
    if rows is not None:
        if not rows or not all(0 <= row < n for row in rows):
            raise InputError(f"rows must be at least one row from 0 to {n - 1}, got {list(rows)}.", field="rows")
        return [int(row) for row in rows]
    if people is None or people >= n:
        return list(range(n))
    if people < 1:
        raise InputError(f"people must be at least 1, got {people}.", field="people")
    chosen: list[int] = np.sort((rng or np.random.default_rng(0)).choice(n, people, replace=False)).tolist()
    return chosen


class _Person:
    """One person's part of the mechanism, run at many reports of hers, the others' unchanged."""

    def __init__(self, population: Population, decide: Rule, truth: FloatArray, row: int, is_ours: bool) -> None:
        self.population, self.decide, self.truth, self.row = population, decide, truth, row
        self.is_ours = is_ours
        self.prior = population.prior_of(row)
        self.weight = float(population.user_weights()[row])
        self.report = float(truth[row])
        self.table: dict[float, tuple[float, float, float, float]] = {}

    def run(self, z: float) -> float:
        """Her loss at report ``z``; what else came out is kept."""
        if z not in self.table:
            found = self.decide(self._changed(z))
            own_error = 0.5 * float(getattr(found, "incentive_error", 0.0))
            row = self.row
            self.table[z] = (float(found.privacy_loss[row]), float(found.payments[row]), float(found.mse), own_error)
        return self.table[z][0]

    def finding(self, points: int, tolerance: float | None) -> PersonFinding:
        top = _top(self.prior, self.report, self.run)
        # run the mechanism at every report, then at ever closer ones around jumps
        for tried in _reports_to_try(self.prior, self.truth, self.row, top, points):
            self.run(tried)
        _close_in(self.table, self.run)
        z = np.array(sorted(self.table))
        columns = np.array([self.table[value] for value in z.tolist()])
        loss, paid, error, own_error = (columns[:, k] for k in range(4))
        own = int(np.searchsorted(z, self.report))
        # row: a true type; column: a report
        worth = paid[None, :] - _burden(z, loss) - self.weight * np.where(np.isfinite(error), error, 0.0)[None, :]
        gains = worth - np.diagonal(worth)[:, None]  # type by report
        gains[~np.isfinite(loss)] = 0.0  # a type who loses everything at no cost: no number to compare
        stated = own_error[:, None] + own_error[None, :] if tolerance is None else tolerance
        outside = _outside(self.population, self.truth, self.row) if self.weight > 0.0 else 0.0
        slack = np.diagonal(worth) + self.weight * outside
        # her rent against lower and upper sums of losses
        low, high = self._integral(z, loss, own)
        rent = paid[own] - self.weight * (error[own] - outside) - _burden(z[own : own + 1], loss[own : own + 1])[0, 0]
        comparable = math.isfinite(loss[own])
        return PersonFinding(
            row=self.row,
            reports_tried=z.size,
            spacing=float(np.diff(z).max(initial=0.0)),
            gain=float(max(gains[own].max(), 0.0)),
            misreport=float(z[gains[own].argmax()]),
            gain_of_any_type=float(max(gains.max(), 0.0)),
            slack=float(slack[np.isfinite(loss)].min(initial=math.inf)),
            rise=float(np.diff(loss)[np.isfinite(loss[:-1])].max(initial=0.0)),
            payment_error=float(max(low - rent, rent - high, 0.0)) if comparable else 0.0,
            payment_resolution=float(high - low) if comparable else math.inf,
            excess=float((gains - stated).max()),
        )

    def _integral(self, z: FloatArray, loss: FloatArray, own: int) -> tuple[float, float]:
        """Lower and upper sums of her loss from her report on; of a market, at many more reports."""
        known = dict(zip(z[own:].tolist(), loss[own:].tolist(), strict=True))
        if self.is_ours:
            _close_in(known, lambda at: known.setdefault(at, self._allocated(at)), rounds=_INTEGRATION // 16, each=16)
        nodes = np.array(sorted(known))
        values = np.array([known[at] for at in nodes.tolist()])
        width = np.diff(nodes)
        with np.errstate(invalid="ignore"):
            return float((values[1:] * width).sum()), float(np.nan_to_num(values[:-1] * width, posinf=math.inf).sum())

    def _allocated(self, z: float) -> float:
        """Her loss by solving the whole problem with her report changed."""
        costs = self.population.virtual_costs(self._changed(z))
        return min(float(self.population.allocation(costs).privacy_loss[self.row]), self.population.cap)

    def _changed(self, z: float) -> FloatArray:
        changed = self.truth.copy()
        changed[self.row] = z
        return changed


def _burden(types: FloatArray, losses: FloatArray) -> FloatArray:
    """What each loss costs each type; nothing costs those who do not care."""
    with np.errstate(invalid="ignore"):
        return np.where(types[:, None] > 0.0, types[:, None] * losses[None, :], 0.0)


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


def _top(prior: Prior, report: float, run: Callable[[float], float]) -> float:
    """The top of the support, or a report beyond which nothing is bought any more."""
    top = prior.support[1]
    if math.isfinite(top):
        return float(top)
    reach = max(report, float(prior.quantile(0.5)))
    for _ in range(60):
        reach *= 2.0
        if run(reach) <= 0.0:
            break
    return reach


def _close_in(table: dict[float, Any], run: Callable[[float], float], *, rounds: int = _CLOSER, each: int = 4) -> None:
    """Halve the intervals over which the loss changes most, so that jumps are seen from close by."""
    for _ in range(rounds):
        z = np.array(sorted(table))
        loss = np.array([np.atleast_1d(table[value])[0] for value in z.tolist()])
        with np.errstate(invalid="ignore"):
            change = np.nan_to_num(np.abs(np.diff(loss)) * np.diff(z), posinf=np.inf)
        middle = 0.5 * (z[:-1] + z[1:])
        change[(middle <= z[:-1]) | (middle >= z[1:])] = 0.0
        for k in np.argsort(change)[-each:].tolist():
            if change[k] > 0.0:
                run(float(middle[k]))


def _outside(population: Population, truth: FloatArray, row: int) -> float:
    """The error person ``row`` lives with outside: her own datum's variance, or that of a market without her."""
    if population.outside_option == "own_data":
        return float(population.own_errors()[row])
    others = np.delete(np.arange(truth.size), row)
    weights = population.user_weights()[others]
    alone = replace(population.take(others), user_weight=weights, outside_option="own_data")
    return decide(alone, truth[others]).mse


def _judged(findings: list[PersonFinding], stated: float, allowed: float, scale: float) -> IncentiveReport:
    violations: list[Violation] = []
    rounding = 1e-9 * scale
    # claim 1: no misreport gains, for any type that was tried
    gain = max(findings, key=lambda f: f.excess)
    if gain.excess > rounding:
        violations.append(Violation(claim="truth", row=gain.row, amount=gain.gain_of_any_type))
    # claim 2: joining is never worse than staying out
    slack = min(findings, key=lambda f: f.slack)
    if slack.slack < -allowed - rounding:
        violations.append(Violation(claim="joining", row=slack.row, amount=-slack.slack))
    # claim 3: the loss never rises with the report
    rise = max(findings, key=lambda f: f.rise)
    if rise.rise > rounding:
        violations.append(Violation(claim="loss", row=rise.row, amount=rise.rise))
    # claim 4: the payment is its integral
    error = max(findings, key=lambda f: f.payment_error)
    if error.payment_error > allowed + rounding:
        violations.append(Violation(claim="payment", row=error.row, amount=error.payment_error))
    return IncentiveReport(
        findings=tuple(findings),
        people=len(findings),
        reports_tried=sum(f.reports_tried for f in findings),
        spacing=max(f.spacing for f in findings),
        largest_gain=max(f.gain_of_any_type for f in findings),
        participation_slack=slack.slack,
        largest_rise=rise.rise,
        payment_error=error.payment_error,
        payment_resolution=max(f.payment_resolution for f in findings),
        stated_error=stated,
        violations=tuple(violations),
    )
