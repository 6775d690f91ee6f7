"""``hushbid compare``: what trust in a platform is worth."""

import math
from typing import Any

import click

from hushbid.cli.frame import Steps, table, tell
from hushbid.cli.frame import command as make_command
from hushbid.cli.market_options import MarketOptions, market_options, people_options

SETTINGS = ("central", "local")


@make_command("compare")
@click.argument("reports", required=False, type=click.Path(dir_okay=False, allow_dash=True))
@market_options(setting=False)
@click.option(
    "--people", type=click.IntRange(min=2), default=1000, show_default=True, help="Without reports: how many."
)
@click.option(
    "--repetitions", type=click.IntRange(min=2), default=20, show_default=True, help="Without reports: how often."
)
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Without reports: of the draws.")
@people_options
def command(options: MarketOptions, reports: str | None, as_json: bool, **given: Any) -> None:
    """Set a trusted platform against noise on everybody's own device.

    On the REPORTS of a file, or, without one, on people drawn from the prior again and again; then every figure is a
    mean, with the standard error of its simulation in brackets.
    """
    rows = _on_reports(options, reports, given) if reports else _on_prior(options, given)
    currency = options.currency()
    result = {
        "people": rows[0]["people"],
        "repetitions": 1 if reports else given["repetitions"],
        "currency": currency.code,
        "settings": dict(zip(SETTINGS, rows, strict=True)),
    }
    tell(result, _text(rows, result), as_json=as_json)


def _on_reports(options: MarketOptions, file: str, given: dict[str, Any]) -> list[dict[str, Any]]:
    from hushbid.cli.people import read_people, rows_of

    with Steps(3) as step:
        step("reading the reports")
        people = read_people(
            file,
            id_column=given["id_column"],
            sensitivity=given["sensitivity_column"],
            group=given["group_column"],
            ids_needed=False,
        )
        with rows_of(people.source):
            prior = options.prior_source().prior_for(people.groups)
            rows = []
            for setting in SETTINGS:
                step(f"pricing, {setting} setting")
                rows.append(_figures(options.market(prior, setting=setting).acquire(people.reports)))
    return rows


def _on_prior(options: MarketOptions, given: dict[str, Any]) -> list[dict[str, Any]]:
    import numpy as np

    from hushbid.errors import InputError

    source = options.prior_source()
    if source.is_grouped:
        raise InputError("Priors by group need REPORTS with a column of groups to be compared on.")
    prior = source.priors[""]
    rng = np.random.default_rng(given["seed"])
    drawn: dict[str, list[dict[str, Any]]] = {setting: [] for setting in SETTINGS}
    with Steps(1) as step:
        step("simulating")
        for time in range(given["repetitions"]):
            step.part(time, given["repetitions"])
            reports = prior.sample(given["people"], rng=rng)
            for setting in SETTINGS:
                drawn[setting].append(_figures(options.market(prior, setting=setting).acquire(reports)))
    return [_averaged(rows) for rows in drawn.values()]


def _figures(outcome: Any) -> dict[str, Any]:
    return {
        "people": int(outcome.reports.size),
        "bought_from": outcome.active,
        "largest_privacy_loss": float(outcome.privacy_loss.max()),
        "standard_error": math.sqrt(outcome.mse),
        "total_payment": outcome.total_payment,
        "objective": outcome.objective,
    }


def _averaged(rows: list[dict[str, Any]]) -> dict[str, Any]:
    from statistics import fmean, stdev

    averaged: dict[str, Any] = {}
    for name in rows[0]:
        column = [float(row[name]) for row in rows]
        if not all(map(math.isfinite, column)):
            averaged[name] = math.inf
            continue
        averaged[name] = fmean(column)
        averaged[f"{name}_error"] = stdev(column) / math.sqrt(len(column))
    averaged["people"] = rows[0]["people"]
    del averaged["people_error"]
    return averaged


_LABELS = {
    "bought_from": "bought from",
    "largest_privacy_loss": "largest privacy loss",
    "standard_error": "standard error of the estimate",
    "total_payment": "payments",
    "objective": "cost: error and virtual payments",
}


def _text(rows: list[dict[str, Any]], result: dict[str, Any]) -> str:
    money = "" if result["currency"] == "XXX" else f", {result['currency']}"
    lines: list[tuple[str, ...]] = [(f"{result['people']:,} people", *SETTINGS)]
    for name, label in _LABELS.items():
        unit = money if name in ("total_payment", "objective") else ""
        lines.append((f"{label}{unit}", *(_cell(row, name) for row in rows)))
    ratio = rows[1]["objective"] / rows[0]["objective"] if math.isfinite(rows[1]["objective"]) else math.inf
    return f"{table(lines)}\n\nDoing without a trusted platform costs {ratio:.3g} times as much here."


def _cell(row: dict[str, Any], name: str) -> str:
    value = row[name]
    text = f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
    error = row.get(f"{name}_error")
    return text if error is None else f"{text} ({error:.1g})"
