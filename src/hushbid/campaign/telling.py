"""What is said of decisions, estimates and costs: figures for programs, and sentences for people."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hushbid.allocation import Budget, Goal, HardBudget
from hushbid.campaign.terms import Campaign
from hushbid.common import numbers
from hushbid.common.money import Currency, money_at_most
from hushbid.common.numbers import (
    at_most,
    cut_to,
    decimals_for,
    estimate_figures,
    figure,
    fixed,
    interval,
    is_unusable,
    level_text,
)
from hushbid.disclosure import Answer, ErrorModel, QuestionAnswer, Release
from hushbid.errors import LimitExceeded
from hushbid.mechanism import Market, Simulation
from hushbid.mechanism.simulation import simulate
from hushbid.questions import Choice, Number, YesNo

UNSAID = "the mean"
"""What is asked if nothing else is said."""

_BEFORE = "This estimate was drawn by an earlier run; it is shown again, not drawn again."
_UNUSABLE = "no usable result (the interval covers more than half of the range); "
_PUBLIC_LEVEL = 0.95
_SIMULATED_BIDS = 2_000_000
_FORECAST_TOLERANCE = 1e-3


def estimate_facts(release: Release, level: float) -> dict[str, Any]:
    """Return the estimate with its interval and error, without digits far below the error; the record keeps all.

    In it is the part that may be shown to anybody; there the estimate has the digits that its planned error deserves.
    Of a survey, all that for each question; an interval is sure for one question by itself, not for all together.
    """
    answers = [_answer_facts(one, level) for one in release.results]
    rest = {"dropped_out": release.absent, "moved_to_bounds": release.clamped, "public": _public(release)}
    if release.answers:
        heads = ({"name": one.name, "kind": one.question.kind} for one in release.answers)
        return {"answers": [{**head, **found} for head, found in zip(heads, answers, strict=True)], **rest}
    [number] = answers
    del number["worst_standard_error"]
    return {**number, **rest}


def _answer_facts(answer: QuestionAnswer, level: float) -> dict[str, Any]:
    """Return for one question an estimate with its interval, or a share with its interval for each answer."""
    found = [_figures(value, answer.error, answer.range, level) for value in answer.values]
    errors = {
        "standard_error": at_most(answer.standard_error, 3),
        "worst_standard_error": at_most(answer.worst_standard_error, 3),
    }
    if isinstance(answer.question, Choice):
        return {"shares": dict(zip(answer.question.answers, found, strict=True)), **errors}
    return {**found[0], **errors}


def _figures(value: float, error: ErrorModel, between: tuple[float, float], level: float) -> dict[str, Any]:
    """Return an estimate with the interval that holds for all data and the normal one, both cut to the public range."""
    estimate, low, high = estimate_figures(value, error.half_width(level), between)
    _, normal_low, normal_high = estimate_figures(value, error.normal_half_width(level), between)
    return {
        "estimate": estimate,
        "interval": {"level": level, "low": low, "high": high},
        "normal_interval": {"level": level, "low": normal_low, "high": normal_high},
    }


def _public(release: Release) -> dict[str, Any]:
    """Return what may be shown to anybody, with the digits that the planned errors deserve."""
    shown = release.public()
    for one, answer in zip(shown.get("answers", [shown]), release.results, strict=True):
        planned = answer.planned_error.half_width(_PUBLIC_LEVEL)
        for name in {"estimate", "shares", "projected"} & one.keys():
            values = one[name]
            one[name] = (
                {key: estimate_figures(value, planned)[0] for key, value in values.items()}
                if isinstance(values, dict)
                else estimate_figures(values, planned)[0]
            )
    return shown


def estimate_text(release: Release, level: float, question: str = UNSAID, unit: str = "") -> str:
    """Return the estimate and its interval in a sentence, and who is missing; of a survey, a line for each question."""
    gone = f"{numbers.people(release.absent)} did not deliver; the interval allows for it." if release.absent else ""
    lines = [] if release.strata is None or not release.strata.about else [release.strata.about]
    if not release.answers:
        if release.strata is not None and question == UNSAID:
            question = release.strata.words
        sentence = _answer_text(release.results[0], question, unit, level)
        return "\n".join([f"{sentence} {gone}".rstrip(), *lines])
    if len(release.answers) > 1:
        lines.insert(0, "Each interval is sure by itself, not all of them together.")
    sentences = []
    for one in release.answers:
        combined = "" if one.strata is None or one.strata.are_shares else f", {one.strata.words}"
        unit = one.question.unit if isinstance(one.question, Number) else ""
        sentences.append(_answer_text(one, f"{one.question.name}{combined}", unit, level))
    return "\n".join([*sentences, *lines, *([gone.replace("the interval allows", "intervals allow")] if gone else [])])


def _answer_text(answer: QuestionAnswer, what: str, unit: str, level: float) -> str:
    """Return what was found for one question in a line, with its intervals; shares in percent."""
    question, sure = answer.question, level_text(level)
    scale = 1.0 if isinstance(question, Number) else 100.0
    low, high = answer.range
    widths = [scale * half for half in (answer.error.half_width(level), answer.error.normal_half_width(level))]
    values, between = [scale * value for value in answer.values], (scale * low, scale * high)
    first = _UNUSABLE if any(is_unusable(value, widths[0], between) for value in values) else ""
    ends = [[end for half in widths for end in interval(value, half, between)[1:]] for value in values]
    if isinstance(question, Number):
        shown, each, unit = [interval(values[0], widths[0])[0]], "", f" {unit}" if unit else ""
    else:  # the nearest shares that can be; intervals are around what was drawn
        possible = answer.projected if answer.is_share else [cut_to(one, one, answer.range)[0] for one in answer.values]
        shown, each, unit = [fixed(scale * share, decimals_for(widths[0])) for share in possible], " %", " %"
    if isinstance(question, Choice):
        shares = "; ".join(
            f"{name} {value} % ({lower} to {upper} %; by normal approximation {near} to {far} %)"
            for name, value, (lower, upper, near, far) in zip(question.answers, shown, ends, strict=True)
        )
        return f"Shares of {what}, with {sure} intervals: {first}{shares}."
    what = f"the share of yes to {what}" if isinstance(question, YesNo) else what
    [value], [(lower, upper, near, far)] = shown, ends
    return (
        f"Estimate of {what}: {first}{value}{unit}, {sure} interval {lower} to {upper}{each}; by normal approximation"
        f" {near} to {far}{each}."
    )


def answer_lines(campaign: Campaign, answer: Answer) -> list[str]:
    """Return what the operator is told of an estimate, a line each."""
    release, late = answer.release, len(answer.late)
    lines = estimate_text(release, campaign.spec.output.level, campaign.question, campaign.unit).splitlines()
    if many := release.clamped:
        moved = "1 value outside the bounds was" if many == 1 else f"{many:,} values outside the bounds were"
        lines.append(f"{moved} moved to the nearer end.")
    lines += [_BEFORE] * answer.before
    if late:
        what = f"{numbers.people(late)} delivered after it was drawn: their data were not used"
        lines.append(f"{what}, and they are {campaign.late}.")
    return lines


def campaign_estimate(campaign: Campaign, answer: Answer) -> dict[str, Any]:
    """Return the figures of a campaign's estimate: also of which wave it is, and whether it is synthetic."""
    facts = estimate_facts(answer.release, campaign.spec.output.level)
    origin = {"wave": campaign.spec.wave, "waves_before": answer.waves_before, "synthetic": campaign.spec.synthetic}
    return {**facts, **origin, "public": {**facts["public"], "synthetic": campaign.spec.synthetic}}


# -- decisions ---------------------------------------------------------------------------------------------------------


def decision_text(facts: Mapping[str, Any], currency: Currency, market: Market) -> str:
    """What was decided, in sentences."""
    return "\n".join(_decision_lines(facts, currency, market)).replace(numbers.NBSP, " ")


def _decision_lines(facts: Mapping[str, Any], currency: Currency, market: Market) -> Iterator[str]:
    count, bought = facts["people"], facts["bought_from"]
    if dropped := facts["dropped_rows"]:
        yield f"Left out because they cannot be priced: {dropped:,} row{'s' * (dropped > 1)}."
    if bought == 0:
        where = "low enough" if isinstance(market.goal, HardBudget) else "within the prior's support"
        yield f"Nothing was bought: none of {count:,} people bid {where}. Nobody is paid."
        return
    yield (
        f"Bought from {bought:,} of {count:,} people ({facts['setting']} setting); nobody loses more than ε ="
        f" {figure(facts['largest_privacy_loss'])}."
    )
    minor = facts["total_payment_minor"]
    paid = f"They are paid {currency.text(minor)}" if minor >= 0 else f"On balance people pay {currency.text(-minor)}"
    gain = money_at_most(facts["incentive_error"], currency)
    yield f"{paid} in all, rounded in their favour; each payment is exact to {gain}."
    yield from _expected(facts)
    if reserve := facts.get("rounding_reserve"):
        yield f"{currency.text_of(reserve)} of the budget were kept for rounding payments up."
    yield from map(numbers.as_sentence, facts.get("flags", ()))
    if payers := facts["people_who_pay"]:
        yield f"{numbers.people(payers)} owe money: they value the estimate more than their data cost them."
    if facts["cap_cost"] > 0.0:
        yield _cap_in_words(facts, currency, market)
    if math.isinf(facts["largest_privacy_loss"]):
        yield "Someone named no price and would lose all privacy: set max_privacy_loss."


def _expected(facts: Mapping[str, Any]) -> Iterator[str]:
    """How accurate the estimate is expected to be; of a survey, of every question; of strata, of each."""
    for one in facts.get("strata", ()):
        for line in _expected(one):
            yield f"{one['stratum']}, {one['bought_from']:,} of {one['people']:,} people: {line[0].lower()}{line[1:]}"
    for one in facts.get("questions", () if "strata" in facts else (facts,)):
        share = ", every share" * (one.get("kind") == Choice.kind)
        error, worst = one["standard_error"], one["worst_standard_error"]
        at_worst = "" if worst == error else f", at worst {figure(worst)} if price and datum are related"
        yield f"Expected standard error of {one.get('name', 'the estimate')}{share}: {figure(error)}{at_worst}."


def _cap_in_words(facts: Mapping[str, Any], currency: Currency, market: Market) -> str:
    """What caps and limits cost: money, or accuracy where the money is given."""
    what, it = ("People's limits on privacy loss cost", "them")
    if market.max_privacy_loss is not None:
        what, it = "The cap on privacy loss costs", "it"
    if market.stated_goal.costs_money:
        return f"{what} {currency.text_of(facts['cap_cost'])} against the optimum without {it}."
    without = math.sqrt(max(facts["worst_standard_error"] ** 2 - facts["cap_cost"], 0.0))
    related = " at worst" if market.max_correlation > 0.0 else ""
    return f"{what} accuracy: without, the standard error would be {figure(without)}{related}."


# -- what a campaign costs before anybody has bid ---------------------------------------------------------------------


def refuse_above_spending_limit(total_minor: int, campaign: Campaign, usual: Callable[[], str]) -> None:
    """Refuse to spend more than allowed, and say what is usual."""
    limit, currency = campaign.spec.money.spending_limit, campaign.currency
    if limit is not None and total_minor / currency.per_unit > limit:
        raise LimitExceeded(
            f"The payments come to {currency.text(total_minor)}, above the spending limit of {currency.text_of(limit)}:"
            f" nothing was bought and nothing was written. {usual()}"
        )


def forecast(markets: Sequence[tuple[Market, int]], currency: Currency) -> str:
    """Say what campaigns in these markets cost together, each with so many people: on average, rarely and at worst."""
    people = sum(count for _, count in markets)
    times, rng = max(20, min(200, _SIMULATED_BIDS // people)), np.random.default_rng(1)
    found = [_simulated(market, count, times, rng) for market, count in markets]
    whole = replace(
        found[0],
        total_payment=np.sum([one.total_payment for one in found], axis=0),
        worst_payment_bound=sum(one.worst_payment_bound for one in found),
    )
    market, count = markets[0]
    return Spending.of(whole, market.for_people(count).stated).text(currency)


def _simulated(market: Market, people: int, times: int, rng: np.random.Generator) -> Simulation:
    """Simulated campaigns with payments to three digits, enough for a forecast and much quicker."""
    population = market.for_people(people)
    rough = replace(population, tolerance=max(population.tolerance, _FORECAST_TOLERANCE))
    return simulate(rough, times, rng=rng)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """What a campaign of so many people costs, before anybody has bid; from simulated campaigns."""

    expected: float
    """The mean total payment."""

    expected_error: float
    """Half the width of a 95 % confidence interval of the mean."""

    in_95_of_100: float
    """The total that 95 of 100 campaigns do not exceed."""

    at_worst: float
    """The total that no bids can exceed; infinite under a prior without an upper end."""

    repetitions: int
    """How many campaigns were simulated."""

    rounding: float | None = None
    """What rounding up to whole coins adds to a budget's payments on average. It is part of the amounts above; of what
    is spent at worst, a coin for each person is. None where it was not computed."""

    @classmethod
    def of(cls, found: Simulation, goal: Goal | None = None) -> "Spending":
        """From simulated campaigns; of a budget, the ``goal`` says what rounding is expected to add."""
        expected = found.expected("total_payment")
        coins = goal.coin if isinstance(goal, Budget) else 0.0
        rounding = goal.reserve if isinstance(goal, Budget) and coins > 0.0 else None
        return cls(
            expected=expected.value + (rounding or 0.0),
            expected_error=(expected.high - expected.low) / 2.0,
            rounding=rounding,
            in_95_of_100=found.quantile("total_payment").value + (rounding or 0.0),
            at_worst=found.worst_payment_bound + (coins * found.n if rounding is not None else 0.0),
            repetitions=found.repetitions,
        )

    def short_text(self, currency: Currency) -> str:
        """In half a sentence: what is usual, and what is rare."""
        return (
            f"If the prior is right, it costs {currency.text_of(self.expected)} on average, up to"
            f" {currency.text_of(self.in_95_of_100)} in 95 of 100 cases"
        )

    def text(self, currency: Currency) -> str:
        """In a sentence."""
        worst = (
            f"{currency.text_of(self.at_worst)} at the very worst"
            if math.isfinite(self.at_worst)
            else "without any limit at the very worst, because the prior has no upper end"
        )
        rounded = "before rounding up to whole coins"
        if self.rounding is not None:
            rounded = f"rounding up to whole coins adds {currency.text_of(self.rounding)} of it"
        return (
            f"If the prior is right, such a campaign costs {currency.text_of(self.expected)} on average"
            f" (± {currency.text_of(self.expected_error)}), up to {currency.text_of(self.in_95_of_100)} in 95 of 100"
            f" cases, and {worst} ({self.repetitions} simulated campaigns, {rounded})."
        )
