"""``hushbid plan``: what a campaign comes to that states what the buyer has, and how many people it takes."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hushbid.cli.common import COUNT, Number, OneFile, Steps, Whole, tell
from hushbid.cli.common import command as make_command
from hushbid.cli.new import next_steps, refuse_output, write_draft
from hushbid.cli.options import MARKET, Options, campaign_options
from hushbid.common.numbers import figure, people, typed
from hushbid.errors import InputError

if TYPE_CHECKING:
    from hushbid.allocation.goals import Goal
    from hushbid.campaign.telling import Spending
    from hushbid.campaign.terms import Campaign
    from hushbid.common.money import Currency
    from hushbid.mechanism import Plan

_POSITIVE = Number(min=0.0, min_open=True)


@make_command("plan")
@click.argument("campaign", type=OneFile(), required=False)
@campaign_options(*MARKET)
@click.option("--people", type=COUNT, help="How many take part; without it, a target says how many are needed.")
@click.option("--target-standard-error", type=_POSITIVE, help="With how many people is the error no larger than this?")
@click.option("--target-payment", type=_POSITIVE, help="With how many people is no more than this paid on average?")
@click.option(
    "--repetitions",
    type=Whole(20, COUNT.max),
    help="Simulate so many campaigns.  [default: 200, or fewer of more than 100,000 people]",
)
@click.option("--seed", type=Whole(min=0), default=1, show_default=True, help="Of the simulation.")
@click.option("--write", type=OneFile(), metavar="FILE.toml", help="Write a campaign file that states this market.")
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
def command(campaign: Path | None, options: Options, as_json: bool, **given: Any) -> None:
    """Say what a campaign costs, and how accurate it is.

    CAMPAIGN is a campaign file; options take the place of what it says. Without one, options state the market. It is
    planned with so many --people, or as many as it takes to meet a target for what you do not state: a payment for a
    standard error, a standard error for a budget. And what more protection against a relation of prices and data, or
    more money, would do. All before anyone has bid, from simulated campaigns. --write makes a campaign file of it, as
    "hushbid new" does: one that "hushbid run" takes once people have bid in the file bids.csv next to it.
    """
    from hushbid.campaign.terms import campaign_of, counts_of

    out = given["write"]
    stated = options.stated(campaign)
    wanted = campaign_of(stated, bids={}, planned=True)
    refuse_each(wanted, "plan strata")
    if wanted.spec.strata is not None:
        if given["people"] is not None:
            raise click.UsageError("--people must not be given with strata, which say how many people there are.")
        given["people"] = sum(counts_of(wanted.spec.strata).values())
    wanted_for = ("people", "target_standard_error", "target_payment")
    if all(given[name] is None for name in wanted_for):
        given["people"] = wanted.market["population"]
    if sum(given[name] is not None for name in wanted_for) != 1:
        raise click.UsageError("Give one of --people, --target-standard-error and --target-payment.")
    if out is not None:
        refuse_output(out, *wanted.inputs, *options.tables.values(), option="--write", force=given["force"])
    found = _plan(wanted, given)
    result, text = _plain(found, wanted.currency), _text(found, wanted.currency)
    if out is not None:
        bids = str(out.with_name("bids.csv"))
        values = {**stated.values, "bids": {"file": bids, **stated.values.get("bids", {})}}
        write_draft(values, stated.home, out, force=given["force"], planned=_planned(found, wanted.currency))
        result, text = {**result, "file": str(out)}, f"{text}\n\n{next_steps(out, bids)}"
    tell(result, text, as_json=as_json)


def refuse_each(campaign: "Campaign", what: str) -> None:
    """Refuse a campaign that estimates each stratum, which is several."""
    if campaign.each:
        message = f"each = true makes every stratum a campaign of its own: {what} one by one, each without strata."
        raise InputError(message, field="strata.each")


def _planned(found: "Plan", currency: "Currency") -> str:
    """What a campaign file says of the plan that it was written by."""
    error = math.sqrt(found.simulation.expected("worst_mse").value)
    of_error = "" if found.question_errors else f", and its standard error is {figure(error)}"
    return f"Planned for {people(found.n)}. {_spending(found).short_text(currency)}{of_error}."


def _reserved(found: "Plan") -> "Goal":
    """The goal for the planned number of people, with what rounding takes of a budget."""
    return found.market.for_people(found.n).stated


def _spending(found: "Plan") -> "Spending":
    """What such a campaign costs, what rounding adds to a budget included."""
    from hushbid.campaign.telling import Spending

    return Spending.of(found.simulation, _reserved(found))


def _plan(campaign: "Campaign", given: dict[str, Any]) -> "Plan":
    import numpy as np

    if campaign.prior.is_grouped:
        raise InputError("A plan needs one prior: plan each group by itself.")
    market = campaign.market_before(given["people"])
    with Steps(1) as step:
        step("simulating")
        return market.plan(
            given["people"],
            target_standard_error=given["target_standard_error"],
            target_payment=given["target_payment"],
            rng=np.random.default_rng(given["seed"]),
            repetitions=given["repetitions"],
            progress=step.part,
        )


def _plain(found: "Plan", currency: "Currency") -> dict[str, Any]:
    from dataclasses import asdict

    from hushbid.campaign.deciding import question_facts

    simulated, needed = found.simulation, found.needed
    return {
        **({"questions": question_facts(found.question_errors)} if found.question_errors else {}),
        "setting": found.market.setting,
        "people": found.n,
        "repetitions": simulated.repetitions,
        "people_needed": None if needed is None else asdict(needed),
        "goal": found.market.stated_goal.to_dict(),
        "standard_error": math.sqrt(simulated.expected("mse").value),
        "worst_standard_error": math.sqrt(simulated.expected("worst_mse").value),
        "share_bought_from": float(simulated.share_bought.mean()),
        "largest_loss": float(simulated.largest_loss.mean()),
        "currency": currency.code,
        "total_payment": asdict(_spending(found)),
        "relations": list(found.relations),
        "protection": [asdict(row) for row in found.protection],
        "frontier": [
            {"goal": point.goal.to_dict(), "standard_error": point.standard_error, "payment": point.payment}
            for point in found.frontier
        ],
    }


def _text(found: "Plan", currency: "Currency") -> str:
    from hushbid.common.money import money
    from hushbid.mechanism.rounding import takes_too_much

    goal = _reserved(found)
    spending = _spending(found).text(currency)
    if takes_too_much(goal):
        spending += (
            " That is more than 5 % of the budget: such a purchase is refused unless accept_rounding says otherwise;"
            " invite fewer people, or state a hard budget."
        )
    return found.text(spending, paid=lambda amount: money(amount, currency), stated=_options)


def _options(goal: "Goal") -> str:
    """The option that states a goal; a survey's standard errors are stated in the file of its questions."""
    from hushbid.allocation.goals import Accuracy, name_of

    if isinstance(goal, Accuracy) and len(goal.targets) > 1:
        return f"standard_error of the questions: {', '.join(map(typed, goal.targets))}"
    return f"--{name_of(goal).replace('_', '-')} {typed(goal.number)}"
