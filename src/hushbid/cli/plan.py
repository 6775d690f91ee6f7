"""``hushbid plan``: how many people, what budget and what error go together."""

import math
from typing import Any

import click

from hushbid.cli.common import COUNT, Steps, tell
from hushbid.cli.common import command as make_command
from hushbid.cli.options import MarketOptions, market_options

_POSITIVE = click.FloatRange(min=0.0, min_open=True)


@make_command("plan")
@market_options()
@click.option("--target-standard-error", type=_POSITIVE, help="Reach this error, in data units.")
@click.option("--budget", type=_POSITIVE, help="Spend this much, expected.")
@click.option("--people", type=COUNT, help="How many there are; without it, the answer says how many.")
@click.option(
    "--repetitions", type=click.IntRange(20, COUNT.max), default=200, show_default=True, help="Simulated campaigns."
)
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Of the simulation.")
def command(options: MarketOptions, as_json: bool, **given: Any) -> None:
    """Say how many people, what budget and what error go together.

    With --people and a target or a budget, solves for the buyer weight; without --people, for the number of people at
    the buyer weight given; with --people alone, says what such a campaign costs. All before anybody has reported, from
    simulated campaigns, with the error of the simulation.
    """
    target, budget, people = given["target_standard_error"], given["budget"], given["people"]
    if target is not None and budget is not None:
        raise click.UsageError("Give --target-standard-error or --budget, not both.")
    if target is None and budget is None and people is None:
        raise click.UsageError("Give --people, --target-standard-error or --budget.")
    result = _plan(options, target, budget, people, given)
    tell(result, _text(result, options), as_json=as_json)


def _plan(
    options: MarketOptions, target: float | None, budget: float | None, people: int | None, given: dict[str, Any]
) -> dict[str, Any]:
    from dataclasses import asdict

    import numpy as np

    from hushbid.errors import HushbidError, InputError
    from hushbid.purchase.spending import Spending, roughly

    source = options.prior_source()
    if source.is_grouped:
        raise InputError("A plan needs one prior: plan each group by itself.")
    # solve for what is not given: the buyer weight, or the number of people
    market, answer, solved_for = options.market(source.priors[""]), None, None
    with Steps(2) as step:
        if target is not None or budget is not None:
            step("searching")
            try:
                found = market.plan(
                    target_mse=None if target is None else target**2,
                    budget=budget,
                    n=people,
                    rng=np.random.default_rng(given["seed"]),
                    repetitions=given["repetitions"],
                    progress=step.part,
                )
            except HushbidError as problem:
                if problem.field != "target_mse":
                    raise
                raise InputError(f"{problem} (target_mse is --target-standard-error squared.)") from problem
            market, people, answer, solved_for = found.market, found.n, found.answer, found.solved_for
        # simulate the campaign that was found, with other draws than those it was found with
        assert people is not None
        step("simulating")
        rng = np.random.default_rng(given["seed"] + 1)
        simulated = roughly(market).simulate(people, given["repetitions"], rng=rng, progress=step.part)
    error = simulated.expected("mse")
    return {
        "setting": market.setting,
        "people": people,
        "buyer_weight": market.buyer_weight,
        "solved_for": {"n": "people"}.get(solved_for or "", solved_for),
        "answer": None if answer is None else {"value": answer.value, "low": answer.low, "high": answer.high},
        "standard_error": math.sqrt(error.value),
        "standard_error_range": [math.sqrt(max(error.low, 0.0)), math.sqrt(error.high)],
        "share_bought_from": float(simulated.share_bought.mean()),
        "currency": options.currency().code,
        "total_payment": asdict(Spending.of(simulated)),
    }


def _text(result: dict[str, Any], options: MarketOptions) -> str:
    from hushbid.purchase.spending import Spending
    from hushbid.wording import at_least, at_most

    lines = [
        f"Invite {result['people']:,} people, {result['setting']} setting, with a buyer weight of"
        f" {result['buyer_weight']:.4g}."
    ]
    if result["answer"] is not None:
        what = "number of people" if result["solved_for"] == "people" else "buyer weight"
        low, high = result["answer"]["low"], result["answer"]["high"]
        lines.append(
            f"The simulation's own error leaves the {what} between {at_least(low, 4):g} and {at_most(high, 4):g}."
        )
    low, high = result["standard_error_range"]
    lines.append(
        f"Expected standard error of the estimate: {result['standard_error']:.4g} ({low:.4g} to {high:.4g}), bought"
        f" from {100 * result['share_bought_from']:.3g} % of them."
    )
    lines.append(Spending(**result["total_payment"]).text(options.currency()))
    return "\n".join(lines)
