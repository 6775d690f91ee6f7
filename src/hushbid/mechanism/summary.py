"""What was decided, in words; no individual's numbers."""

import math

import numpy as np

from hushbid.allocation import Budget, HardBudget, Price
from hushbid.common.numbers import as_sentence, at_most, people
from hushbid.mechanism.decision import LESS_EXACT, Decision, is_less_exact
from hushbid.mechanism.terms import Terms


def summary_of(outcome: Decision, market: Terms, *, several: str, cap_cost: float) -> str:
    """A decision in words; ``several`` are the errors of its estimates, if there is more than one of them."""
    n = outcome.bids.size
    if outcome.active == 0:
        return nothing_words(outcome, market)
    lines = [
        f"{market.setting.capitalize()} setting, {asked_words(market)}: bought from {outcome.active} of {n} people, at"
        f" most {at_most(float(outcome.privacy_loss.max()), 3):g} of privacy loss each.",
        f"Expected error of the estimate: {error_words(outcome, market)} (root mean square). Total payment:"
        f" {outcome.total_payment:.6g}.",
    ]
    if several:
        lines[1] = f"Expected errors of the estimates (root mean square): {several}."
        lines.append(f"Total payment: {outcome.total_payment:.6g}.")
    if not isinstance(market.goal, Price):
        more = f"{_planned_for(outcome, market)}{_kept_for_rounding(market)}"
        lines.append(f"The goal is {market.stated_goal.words}.{more}")
    paying = int((outcome.payments < 0.0).sum())
    if paying:
        who = "1 person pays: they value" if paying == 1 else f"{paying} people pay: they value"
        lines.append(
            f"{who} the estimate more than giving data costs. If that is not wanted, use user_weight=0, under which"
            " no payment is negative."
        )
    elif not np.any(np.asarray(market.user_weight) > 0):
        lines.append("No payment is negative.")
    if cap_cost > 0.0:
        lines.append(_cap_in_words(outcome, market, cap_cost))
    if np.isinf(outcome.privacy_loss).any():
        exposed = people(int(np.isinf(outcome.privacy_loss).sum()))
        advice = ": set max_privacy_loss" if market.takes_cap else ""
        lines.append(f"{exposed} bid no cost and would lose all privacy{advice}.")
    lines.append(f"No misreport can gain more than {at_most(outcome.incentive_error):g}.")
    if is_less_exact(outcome, market.tolerance):
        lines.append(as_sentence(LESS_EXACT))
    return "\n".join(lines)


def _kept_for_rounding(market: Terms) -> str:
    """What of a budget is kept for rounding payments up."""
    goal = market.goal
    if not isinstance(goal, Budget) or not goal.reserve:
        return ""
    return f" Of these, {goal.reserve:.6g} are kept for rounding payments up to coins of {goal.coin:g}."


def _planned_for(outcome: Decision, market: Terms) -> str:
    """For whom a price was planned, and what limits do to it."""
    goal = market.goal
    if not isinstance(goal, Budget) or goal.planned is None:
        return ""
    limits = "" if outcome.limits is None else " Limits that people state are in no draw: with them it may be more."
    return f" It was planned for {people(market.roster or outcome.bids.size)} who were asked.{limits}"


def nothing_words(outcome: Decision, market: Terms) -> str:
    """Why nothing was bought."""
    where = "low enough" if isinstance(market.goal, HardBudget) else "within the prior's support"
    return f"Nothing was bought: none of {outcome.bids.size} people bid {where}. Nobody is paid."


def asked_words(market: Terms) -> str:
    """What the data are, and what is estimated."""
    low, high = market.bounds
    asked = f"data between {low:g} and {high:g}"
    if market.survey is not None:
        count = len(market.survey)
        asked = "1 question" if count == 1 else f"{count} questions"
    if market.strata is None:
        return asked
    names = market.strata_names
    strata = "1 stratum" if len(names) == 1 else f"{len(names)} strata"
    what = "a post-stratified mean over" if market.shares is not None else "a contrast of"
    return f"{asked}, {what} {strata}"


def error_words(outcome: Decision, market: Terms) -> str:
    """The error, or both where price and datum may be related."""
    unrelated = f"{math.sqrt(outcome.mse):.3g}"
    if market.max_correlation == 0.0:
        return unrelated
    return f"{unrelated} if price and datum are unrelated, {math.sqrt(outcome.worst_mse):.3g} at worst"


def _cap_in_words(outcome: Decision, market: Terms, cost: float) -> str:
    cap = market.max_privacy_loss
    what = f"The cap of {cap:g}" if isinstance(cap, float) and outcome.limits is None else "Limits on privacy loss"
    verb = "costs" if what.startswith("The") else "cost"
    if market.stated_goal.costs_money:
        return f"{what} {verb} {cost:.3g} against the optimum without."
    return f"{what} {verb} accuracy: the squared error is {cost:.3g} larger than without."
