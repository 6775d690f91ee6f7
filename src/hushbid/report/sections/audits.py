"""Audit results as lines of a report: what was tried, on how many samples, and what could have been found.

"No fault found" is never "proved": the line always says how likely the audit would have caught a build that adds only
0.7 times the noise it should, and below `ENOUGH_POWER` the verdict is "weak". Rows and promises are not named: a report
does not say who was attacked.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from hushbid.audit import AccuracyCheck, IncentiveReport, PrivacyAudit
from hushbid.audit.accuracy import TOLERANCE
from hushbid.audit.targets import TOO_LITTLE_NOISE
from hushbid.common.numbers import NBSP, at_least, at_most
from hushbid.errors import InputError
from hushbid.languages import noted
from hushbid.mechanism import Outcome
from hushbid.report.language import count, level_text, number, percent, say, say_plural
from hushbid.report.material import Material
from hushbid.report.rendering import plain
from hushbid.report.svg import NARROW, Chart, Drawing, axis_x, box, label, round_scale, rule, text_width

ANCHOR, TITLE = "audits", noted("Audits")

ENOUGH_POWER = 0.8
"""An audit that would miss a planted fault more often than one time in five is called weak."""

_HALF_WIDTH = 1.96
"""Standard errors in half of a 95 % interval."""

_WRONG_PAYMENTS = 0.1

Verdict = Literal["failed", "clear", "weak"]


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


def facts_of(material: Material) -> tuple[AuditLine, ...]:
    """The audits in words, failures first."""
    return lines_of(material.audits, material.outcome)


def audit_lines(audits: Iterable[object], *, people: int | None = None) -> tuple[AuditLine, ...]:
    """One line per audit result; failures first. ``people``, if known, is how many bid."""
    lines = [_line(audit, people) for audit in audits]
    return tuple(sorted(lines, key=lambda line: ("failed", "weak", "clear").index(line.verdict)))


def lines_of(audits: Iterable[object], outcome: Outcome) -> tuple[AuditLine, ...]:
    """Audits of an outcome in words, failures first."""
    return audit_lines(audits, people=outcome.bids.size)


def _line(audit: object, people: int | None) -> AuditLine:
    if isinstance(audit, AuditLine):
        return audit
    if isinstance(audit, PrivacyAudit):
        return _privacy(audit)
    if isinstance(audit, AccuracyCheck):
        return _accuracy(audit)
    if isinstance(audit, IncentiveReport):
        return _incentives(audit, people)
    raise InputError(
        f"audits must be results of hushbid.audit or AuditLine, got {type(audit).__name__}.", field="audits"
    )


def _planted(by_coin: bool) -> str:
    """The fault that an audit of a release is tried on."""
    if by_coin:
        return say("a build whose coin lies as for an ε 1/{part} times as large", part=TOO_LITTLE_NOISE)
    return say("a build that adds only {part} times the noise it should", part=TOO_LITTLE_NOISE)


def _verdict(rejected: bool, power: float | None) -> Verdict:
    if rejected:
        return "failed"
    return "weak" if power is not None and power < ENOUGH_POWER else "clear"


def _privacy(audit: PrivacyAudit) -> AuditLine:
    """In units of the promise: the promise itself is one person's number."""
    proved, sure = audit.lower_bound / audit.promised, say("{sure:.7g}", sure=100.0 * audit.confidence) + f"{NBSP}%"
    if audit.loss_rejected:
        finding = say(
            "The promise is broken: the person attacked certainly loses at least {times} times the ε that she was"
            " promised.",
            times=number(at_least(proved, 3)),
        )
    elif audit.fit_rejected:
        chance = number(audit.fit_p_value or 0.0, 2)
        finding = (
            say(
                "The coin is not what it should be: the number of its lies does not fit the promised odds (p ="
                " {chance}).",
                chance=chance,
            )
            if audit.by_coin
            else say(
                "The noise is not what it should be: it does not fit the distribution of the promised scale (p"
                " = {chance}).",
                chance=chance,
            )
        )
        finding += " " + say(
            "The attack could prove a loss of {part} of the ε that was promised.", part=percent(proved)
        )
    else:
        finding = say(
            "The attack could prove a loss of {part} of the ε that was promised, and no more.", part=percent(proved)
        )
        if audit.fit_p_value is not None:
            fits = say("The number of lies fits the odds") if audit.by_coin else say("The noise fits its distribution")
            finding += f" {fits} (p = {number(audit.fit_p_value, 2)})."
    return AuditLine(
        title=say("Privacy: can the output tell one person's datum?"),
        verdict=_verdict(audit.rejected, audit.power),
        finding=finding,
        samples=say(
            "{count:,} outputs on each of 4 synthetic data sets, at {sure} confidence", count=audit.samples, sure=sure
        ),
        power=audit.power,
        power_against=_planted(audit.by_coin),
        bar=(proved, 1.0),
    )


def _accuracy(audit: AccuracyCheck) -> AuditLine:
    power = _accuracy_power(audit)
    about = f" ({plain(audit.question)})" if audit.question else ""
    return AuditLine(
        title=say("Accuracy: are error and interval as stated?") + about,
        verdict=_verdict(audit.rejected, power),
        finding=_compared(audit)
        + " "
        + say(
            "Intervals meant to hold the mean at least {level} of the time did so {coverage} of the time.",
            level=level_text(audit.level),
            coverage=percent(audit.coverage, 3),
        ),
        samples=say("{count:,} simulated campaigns on synthetic data", count=audit.repetitions),
        power=power,
        power_against=_planted(audit.by_coin),
    )


def _compared(audit: AccuracyCheck) -> str:
    """The simulated error beside the stated one."""
    written = {
        "simulated": number(audit.simulated_mse, 4),
        "uncertainty": number(_HALF_WIDTH * audit.mse_uncertainty, 2),
        "stated": number(audit.formula_mse, 4),
    }
    if audit.rejected:
        return say(
            "The simulated squared error, {simulated} ± {uncertainty}, differs from the stated {stated}.", **written
        )
    return say("The simulated squared error, {simulated} ± {uncertainty}, agrees with the stated {stated}.", **written)


def _accuracy_power(audit: AccuracyCheck) -> float | None:
    """How likely too little noise would show as too small an error, by the normal approximation.

    The number of yes by randomised response is as uncertain whatever the odds are, so that nothing would show.
    """
    if audit.by_coin or not audit.mse_uncertainty > 0.0:
        return None
    missing = (1.0 - TOO_LITTLE_NOISE**2) * audit.noise_share
    distance = missing * audit.formula_mse / audit.mse_uncertainty
    # the smaller error is measured more exactly, but judged by what the right one would vary by
    return 0.5 * math.erfc((TOLERANCE - distance) / (1.0 - missing) / math.sqrt(2.0))


def _incentives(audit: IncentiveReport, people: int | None) -> AuditLine:
    """The check runs the mechanism again, without chance; only who is put to the test is drawn by lot."""
    if audit.violations:
        finding = " ".join(violation.sentence(say("one row"), say=say) for violation in audit.violations)
    else:
        finding = say(
            "No misreport that was tried gained more than {gain} ({stated} is stated), joining never cost anything, no"
            " privacy loss rose with a bid, and payments agree with what the privacy losses imply.",
            gain=number(at_most(max(audit.largest_gain, 0.0)), 2),
            stated=number(at_most(audit.stated_error), 2),
        )
    everybody = people is not None and audit.people >= people
    who = say_plural("one person", "{number} people", audit.people, number=count(audit.people))
    tried = count(audit.bids_tried)
    power = 1.0 if everybody else 1.0 - (1.0 - _WRONG_PAYMENTS) ** audit.people
    return AuditLine(
        title=say("Incentives: does anybody gain by not telling the truth?"),
        verdict=_verdict(not audit.passed, power),
        finding=finding,
        samples=say("{count} bids tried, for {who}", count=tried, who=who)
        if everybody
        else say("{count} bids tried, for {who} drawn by lot", count=tried, who=who),
        power=power,
        power_against=say(
            "a mistake of more than {amount} in one payment out of {payments}",
            amount=number(at_most(audit.payment_resolution), 2),
            payments=round(1 / _WRONG_PAYMENTS),
        ),
    )


def chart(lines: Sequence[AuditLine]) -> Chart | None:
    """What each attack on privacy proved to be lost, against what was promised; None if there was no such attack."""
    bars = [(line.bar, line.verdict) for line in lines if line.bar is not None]
    if not bars:
        return None
    listed = "; ".join(say("proved {times} times what was promised", times=number(found)) for (found, _), _ in bars)
    return Chart(
        name="audits",
        title=say("Privacy loss that the attack could prove, against the promise"),
        description=say("For each privacy audit: {listed}.", listed=listed),
        draw=lambda width: _bars(bars, width),
    )


def _bars(bars: Sequence[tuple[tuple[float, float], Verdict]], width: float) -> Drawing:
    scale = round_scale([value for bar, _ in bars for value in bar], 4, width - 12, wanted=4 if width == NARROW else 7)
    bottom = 30.0 + 40.0 * len(bars)
    marks = axis_x(
        scale, bottom, say("in units of the ε that was promised"), wanted=4 if width == NARROW else 7, top=22
    )
    for place, ((found, promised), verdict) in enumerate(bars):
        y = 30.0 + 40.0 * place
        marks += [
            box(scale(0), y + 8, scale(found) - scale(0), 18, "bad" if verdict == "failed" else "s1", radius=2),
            rule(scale(promised), y, scale(promised), y + 34, "promise"),
        ]
        words = say("proved {times}", times=number(found, 2))
        if min(scale(found), scale(promised)) > text_width(words) + 20:
            marks.append(label(scale(0) + 9, y + 22, words, "on-s1 strong"))
    end = scale(bars[0][0][1])
    side = "end" if end > width / 2 else "start"
    marks.append(label(end, 16, say("promised: no more than this"), "quiet", anchor=side))
    return Drawing(width=width, height=bottom + 46, marks=tuple(marks))
