"""What is said of an estimate: its figures for programs, and sentences for people."""

from typing import Any

from hushbid.common import numbers
from hushbid.common.numbers import (
    at_most,
    cut_to,
    decimals_for,
    estimate_figures,
    fixed,
    interval,
    is_unusable,
    level_text,
)
from hushbid.disclosure import Answer, ErrorModel, QuestionAnswer, Release
from hushbid.questions import Choice, Number

UNSAID = "the mean"
"""What is asked if nothing else is said."""

BEFORE = "This estimate was drawn by an earlier run; it is shown again, not drawn again."
_UNUSABLE = "no usable result (the interval covers more than half of the range); "
_PUBLIC_LEVEL = 0.95


def estimate_facts(release: Release, level: float) -> dict[str, Any]:
    """The estimate with its interval and error, without digits far below the error; the record keeps all.

    In it is the part that may be shown to anybody; there the estimate has the digits that its planned error deserves.
    Of a survey, all that for each question; an interval is sure for one question by itself, not for all together.
    """
    if release.answers:
        answers = [_answer_facts(one, level) for one in release.answers]
        told = {"dropped_out": release.absent, "moved_to_bounds": release.clamped}
        return {"answers": answers, **told, "public": _public_answers(release)}
    planned = release.planned_error.half_width(_PUBLIC_LEVEL)
    return {
        **_figures(release.one_estimate, release.error, release.range, level),
        "standard_error": at_most(release.standard_error, 3),
        "dropped_out": release.absent,
        "moved_to_bounds": release.clamped,
        "public": {**release.public(), "estimate": estimate_figures(release.one_estimate, planned)[0]},
    }


def _figures(value: float, error: ErrorModel, between: tuple[float, float], level: float) -> dict[str, Any]:
    """An estimate with the interval that holds for all data and the normal one, both cut to the public range."""
    estimate, low, high = estimate_figures(value, error.half_width(level), between)
    _, normal_low, normal_high = estimate_figures(value, error.normal_half_width(level), between)
    return {
        "estimate": estimate,
        "interval": {"level": level, "low": low, "high": high},
        "normal_interval": {"level": level, "low": normal_low, "high": normal_high},
    }


def _answer_facts(answer: QuestionAnswer, level: float) -> dict[str, Any]:
    """One question: an estimate with its interval, or a share with its interval for each answer."""
    found = [_figures(value, answer.error, answer.range, level) for value in answer.values]
    errors = {
        "standard_error": at_most(answer.standard_error, 3),
        "worst_standard_error": at_most(answer.worst_standard_error, 3),
    }
    head = {"name": answer.name, "kind": answer.question.kind}
    if isinstance(answer.question, Choice):
        return {**head, "shares": dict(zip(answer.question.answers, found, strict=True)), **errors}
    return {**head, **found[0], **errors}


def _public_answers(release: Release) -> dict[str, Any]:
    """What may be shown to anybody, with the digits that the planned errors deserve."""
    shown = release.public()
    for one, answer in zip(shown["answers"], release.answers, strict=True):
        planned = answer.planned_error.half_width(_PUBLIC_LEVEL)
        for name in {"estimate", "shares", "projected"} & one.keys():
            values = one[name]
            one[name] = (
                {key: estimate_figures(value, planned)[0] for key, value in values.items()}
                if isinstance(values, dict)
                else estimate_figures(values, planned)[0]
            )
    return shown


def estimate_text(release: Release, level: float, question: str = "the mean", unit: str = "") -> str:
    """The estimate and its interval in a sentence, and who is missing in another; of a survey, a line a question."""
    gone = f"{numbers.people(release.absent)} did not deliver; the interval allows for it."
    shares = "" if release.strata is None else release.strata.about
    if release.answers:
        lines = [_answer_text(one, level) for one in release.answers]
        if len(lines) > 1:
            lines.append("Each interval is sure by itself, not all of them together.")
        lines += [shares] * bool(shares)
        return "\n".join(
            [*lines, *([gone.replace("the interval allows", "intervals allow")] if release.absent else [])]
        )
    if release.strata is not None and question == UNSAID:
        question = release.strata.words
    half_width = release.error.half_width(level)
    value, lower, upper = interval(release.one_estimate, half_width, release.range)
    _, near, far = interval(release.one_estimate, release.error.normal_half_width(level), release.range)
    first = _UNUSABLE if is_unusable(release.one_estimate, half_width, release.range) else ""
    sentence = (
        f"Estimate of {question}: {first}{value}{' ' * bool(unit)}{unit}, {level_text(level)} interval {lower} to"
        f" {upper}; by normal approximation {near} to {far}."
    )
    return sentence + f" {gone}" * (release.absent > 0) + f"\n{shares}" * bool(shares)


def _answer_text(answer: QuestionAnswer, level: float) -> str:
    """One question in a line: what was found, and its intervals."""
    question, error = answer.question, answer.error
    of_what = "" if answer.strata is None or answer.strata.are_shares else f", {answer.strata.words}"
    half_width, scale = error.half_width(level), 1.0 if isinstance(question, Number) else 100.0
    between = (scale * answer.range[0], scale * answer.range[1])
    told = [interval(scale * value, scale * half_width, between) for value in answer.values]
    normal = [interval(scale * value, scale * error.normal_half_width(level), between)[1:] for value in answer.values]
    first = _UNUSABLE if any(is_unusable(value, half_width, answer.range) for value in answer.values) else ""
    if scale > 1.0:  # the nearest shares that can be; intervals are around what was drawn
        shown = answer.projected if answer.is_share else [cut_to(one, one, answer.range)[0] for one in answer.values]
        decimals = decimals_for(scale * half_width)
        ends = [(lower, upper) for _, lower, upper in told]
        told = [(fixed(scale * share, decimals), *pair) for share, pair in zip(shown, ends, strict=True)]
    if isinstance(question, Choice):
        each = "; ".join(
            f"{name} {value} % ({lower} to {upper} %; by normal approximation {near} to {far} %)"
            for name, (value, lower, upper), (near, far) in zip(question.answers, told, normal, strict=True)
        )
        return f"Shares of {question.name}{of_what}, with {level_text(level)} intervals: {first}{each}."
    [(value, lower, upper)], [(near, far)] = told, normal
    if not isinstance(question, Number):
        return (
            f"Estimate of the share of yes to {question.name}{of_what}: {first}{value} %, {level_text(level)} interval"
            f" {lower} to {upper} %; by normal approximation {near} to {far} %."
        )
    unit = f" {question.unit}" if question.unit else ""
    return (
        f"Estimate of {question.name}{of_what}: {first}{value}{unit}, {level_text(level)} interval {lower} to {upper};"
        f" by normal approximation {near} to {far}."
    )


def moved_text(release: Release) -> list[str]:
    """How many data lay outside the bounds; nothing if none did. For the operator only."""
    if not release.clamped:
        return []
    many = "1 value" if release.clamped == 1 else f"{release.clamped:,} values"
    return [f"{many} outside the bounds {'was' if release.clamped == 1 else 'were'} moved to the nearer end."]


def late_text(answer: Answer) -> str:
    """How many delivered too late: the beginning of a sentence that says what they are paid."""
    return f"{numbers.people(len(answer.late))} delivered after it was drawn: their data were not used"
