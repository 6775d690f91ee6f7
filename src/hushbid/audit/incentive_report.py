"""What an attack on incentives found: person by person, as a verdict, and in words."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from hushbid.languages import noted

Claim = Literal["truth", "joining", "loss", "payment", "limit"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PersonFinding:
    """What was found for one person."""

    row: int
    """Who it is."""

    bids_tried: int
    """At how many bids of hers the mechanism was run."""

    spacing: float
    """The widest gap between neighbouring bids that were tried."""

    gain: float
    """What the best misreport tried gains her, if her bid is the truth; 0 if none gains."""

    misreport: float
    """The bid that gains it."""

    misstated_limit: float | None
    """The limit that gains it, stated beside that bid; None if nobody stated limits."""

    gain_of_any_type: float
    """What the best misreport gains the type, among the bids tried, to whom it gains most."""

    slack: float
    """The least any of those types gains by joining truthfully."""

    rise: float
    """The most her loss rose with her bid."""

    payment_error: float
    """How far her payment lies outside the sums that enclose it."""

    payment_resolution: float
    """How far those sums lie apart."""

    excess: float
    """The largest gain beyond what the mechanism states for its own errors."""

    beyond_limit: float
    """The most her loss exceeded the limit she stated."""

    def __repr__(self) -> str:  # misreports lie around a person's bid: not for a log
        return f"PersonFinding(row={self.row}, bids_tried={self.bids_tried})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A claim that was found to be wrong for one person; as text, a sentence that names her row."""

    claim: Claim
    """That no misreport gains; that joining costs nothing; that losses do not rise with bids; what is paid; that
    nobody loses more than she said she accepts."""

    row: int
    """Who it is."""

    amount: float
    """By how much it is wrong."""

    def __str__(self) -> str:
        return self.sentence(f"row {self.row}")

    def sentence(self, who: str, *, say: Callable[..., str] = str.format) -> str:
        """What was found, in words, of a person who is called ``who``; ``say`` fills them in, in any language."""
        return say(SENTENCES[self.claim], who=who, amount=self.amount)


SENTENCES = {
    "truth": noted("A misreport gains {amount:.3g} for the person in {who} or a type like hers."),
    "joining": noted("Joining costs {amount:.3g} more than staying out in {who}."),
    "loss": noted("Raising the bid in {who} raises the privacy loss by {amount:.3g}."),
    "payment": noted("The payment in {who} differs from its integral by at least {amount:.3g}."),
    "limit": noted("The privacy loss in {who} exceeds the limit stated by {amount:.3g}."),
}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class IncentiveReport:
    """What was found; money in the market's unit."""

    findings: tuple[PersonFinding, ...]
    """Person by person."""

    people: int
    """How many people were put to the test."""

    bids_tried: int
    """At how many bids in all the mechanism was run."""

    spacing: float
    """The widest gap between neighbouring bids tried for one person; what lies in between was not tried."""

    largest_gain: float
    """The most any type gained by any misreport that was tried; 0 or less: the truth was always best."""

    participation_slack: float
    """The least anybody truthful gained by joining; negative: somebody would rather have stayed out."""

    largest_rise: float
    """The most a privacy loss rose when its owner's bid did; 0 for a monotone rule."""

    payment_error: float
    """How far a payment lay outside what its own losses allow."""

    payment_resolution: float
    """How well the sums enclose those payments: a smaller error could not have been seen."""

    stated_error: float
    """What the mechanism itself says a misreport could gain."""

    limits_stated: bool
    """Whether people also stated the largest loss they accept, and other limits were tried too."""

    violations: tuple[Violation, ...]
    """What was found to be wrong."""

    def __repr__(self) -> str:
        return (
            f"IncentiveReport(passed={self.passed}, people={self.people}, bids_tried={self.bids_tried},"
            f" largest_gain={self.largest_gain:g}, violations={len(self.violations)})"
        )

    @property
    def passed(self) -> bool:
        """Whether nothing was found; that proves nothing about bids that were not tried."""
        return not self.violations

    def summary(self) -> str:
        """The result in words."""
        head = f"{self.people} people, {self.bids_tried} bids tried: "
        if self.violations:
            return head + " ".join(map(str, self.violations))
        of_what = " of price or limit" if self.limits_stated else ""
        return (
            head + f"no misreport{of_what} gained more than {max(self.largest_gain, 0.0):.2g}"
            f" (stated: {self.stated_error:.2g}),"
            f" joining never cost anything, losses never rose with bids, and payments agree with their integrals as"
            f" far as can be seen ({self.payment_resolution:.2g}). Bids at most {self.spacing:.2g} apart were tried."
            f" Not found is not proved."
        )


def judged(findings: list[PersonFinding], stated: float, allowed: float, scale: float) -> IncentiveReport:
    """The verdict on all that was found; ``allowed`` is the error that the mechanism may have."""
    rounding, violations = 1e-9 * scale, list[Violation]()
    # of each claim: by what it is violated, from where on, and by how much
    claims: tuple[tuple[Claim, Callable[[PersonFinding], float], float, Callable[[PersonFinding], float]], ...] = (
        ("truth", lambda one: one.excess, rounding, lambda one: one.gain_of_any_type),
        ("joining", lambda one: -one.slack, allowed + rounding, lambda one: -one.slack),
        ("loss", lambda one: one.rise, rounding, lambda one: one.rise),
        ("payment", lambda one: one.payment_error, allowed + rounding, lambda one: one.payment_error),
        ("limit", lambda one: one.beyond_limit, 0.0, lambda one: one.beyond_limit),
    )
    for claim, wrong, most, amount in claims:
        worst = max(findings, key=wrong)
        if wrong(worst) > most:
            violations.append(Violation(claim=claim, row=worst.row, amount=amount(worst)))
    return IncentiveReport(
        findings=tuple(findings),
        people=len(findings),
        bids_tried=sum(f.bids_tried for f in findings),
        spacing=max(f.spacing for f in findings),
        largest_gain=max(f.gain_of_any_type for f in findings),
        participation_slack=min(f.slack for f in findings),
        largest_rise=max(f.rise for f in findings),
        payment_error=max(f.payment_error for f in findings),
        payment_resolution=max(f.payment_resolution for f in findings),
        stated_error=stated,
        limits_stated=findings[0].misstated_limit is not None,
        violations=tuple(violations),
    )
