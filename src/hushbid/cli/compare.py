"""``hushbid compare``: two campaigns; or what trust in a platform is worth, and what other ways to buy would pay."""

import math
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from hushbid.cli import BY_FILES
from hushbid.cli.common import COUNT, Steps, Whole, tell
from hushbid.cli.common import command as make_command
from hushbid.cli.options import COLUMNS, MARKET, Options, campaign_options, option_of
from hushbid.cli.plan import refuse_each
from hushbid.common.numbers import at_most, count, figure, number, table
from hushbid.common.numbers import people as people_text
from hushbid.errors import InputError

if TYPE_CHECKING:
    from hushbid.campaign.terms import Campaign

SETTINGS = ("central", "local")
Baselines = dict[str, dict[str, Any]]
"""What is known about other ways to buy, by setting."""


@make_command("compare")
@click.argument("files", nargs=-1, metavar="[BIDS | A [B]]", type=click.Path(allow_dash=True))
@campaign_options(*MARKET, *COLUMNS)
@click.option("--people", type=Whole(2, COUNT.max), default=1000, show_default=True, help="Without bids: how many.")
@click.option(
    "--repetitions",
    type=Whole(2, COUNT.max),
    default=20,
    show_default=True,
    help="Without bids: how often.",
)
@click.option("--seed", type=Whole(min=0), default=1, show_default=True, help="Without bids: of the draws.")
@click.option(
    "--baselines/--no-baselines", default=True, show_default=True, help="Compare with other ways to buy, too."
)
@click.option(
    "--baseline",
    "named",
    multiple=True,
    metavar="NAME",
    help="Compare with this way to buy only, such as one of your own (hushbid --import); may be given again.",
)
def command(options: Options, files: tuple[str, ...], as_json: bool, **given: Any) -> None:
    """Set two campaigns, or two settings of a market, side by side.

    A and B are campaign files, records, or folders that hold one: what each costs, how accurate and how private it is,
    from whom it buys, and what differs in them. Files are decided about; nothing is drawn or written. Options that
    state a market take the place of what the files say. With A alone, a campaign file is set against itself with the
    options.

    With options that state a market, a trusted platform is set against noise on everybody's own device: on the BIDS
    of a file, or, without one, on people drawn from the prior again and again; then every figure is a mean, with the
    standard error of its simulation in brackets. Then the baselines: what other ways to buy would have paid for the
    same accuracy, and what error they would have reached with the same money.
    """
    if len(files) > 2:
        raise click.UsageError(f"Give one file of bids, or up to two campaigns, got {len(files)} files.")
    if len(files) == 2 or any(Path(one).is_dir() or Path(one).suffix in (".toml", ".json") for one in files):
        _compare_campaigns(files, options, as_json=as_json)
    elif "market.setting" in options.given:
        raise click.UsageError("--setting is for campaign files: without one, both settings are compared.")
    else:
        _compare_settings(options, files[0] if files else None, as_json, given)


def _compare_campaigns(files: tuple[str, ...], options: Options, *, as_json: bool) -> None:
    """Two campaigns, or one with and without options."""
    from hushbid.campaign.comparing import side_by_side

    ctx = click.get_current_context()
    ctx.meta[BY_FILES] = True
    stated = {option_of(name).removeprefix("--").replace("-", "_") for name in options.known}
    for option in ctx.command.params:
        given = ctx.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
        if given and option.name not in ("files", "as_json", *stated):
            raise click.UsageError(f"{option.opts[0]} must not be given with campaigns, whose people bid.")
    if "-" in files:
        raise click.UsageError("A and B must be files or folders, not - for a stream.")
    changes = options.stated if options.given or options.tables else None
    with Steps(2) as step:
        found = side_by_side(*map(Path, files), changes=changes, step=step)
    tell(found.to_dict(), found.text(), as_json=as_json)


def _compare_settings(options: Options, file: str | None, as_json: bool, given: dict[str, Any]) -> None:
    """One market in both settings, and its baselines."""
    from hushbid.common.money import money

    _baselines_wanted(given)
    campaigns, refused = _campaigns(options, on_bids=file is not None)
    rows, baselines = _found(campaigns, file, given, ids_needed="bids.id" in options.given)
    some = next(iter(campaigns.values()))
    currency = some.currency
    result = {
        "people": rows[0]["people"],
        "repetitions": 1 if file else given["repetitions"],
        "goal": some.market["goal"].to_dict(),
        "currency": currency.code,
        "settings": dict(zip(campaigns, rows, strict=True)),
        "refused": {one: str(why) for one, why in refused.items()},
        "baselines": baselines,
    }
    pay = partial(money, currency=currency)
    message = [
        _text(rows, result, pay, survey="questions" in some.market),
        *(f"Not in the {one} setting: {why}" for one, why in refused.items()),
    ]
    tell(result, "\n\n".join([*message, *_baselines_texts(baselines, pay)]), as_json=as_json)


def _baselines_wanted(given: dict[str, Any]) -> Any:
    """The baselines to compare with; refuses a name that none has."""
    from hushbid.baselines.registry import baselines_named

    if given["named"] and not given["baselines"]:
        raise click.UsageError("--baseline must not be given beside --no-baselines.")
    return baselines_named(*given["named"])


def _campaigns(options: Options, *, on_bids: bool) -> "tuple[dict[str, Campaign], dict[str, InputError]]":
    """Return the campaign in each setting in which such a goal can be had, and why not in the others.

    People who are drawn are a roster that was closed before they bid; those in a table of bids are not.
    """
    from hushbid.campaign.terms import campaign_of

    found, refused = {}, {}
    for setting in SETTINGS:
        try:
            stated = options.but({"market.setting": setting}).stated()
            found[setting] = campaign_of(stated, bids={}, planned=not on_bids)
        except InputError as problem:
            refused[setting] = problem
    if not found:
        raise refused[SETTINGS[0]]
    refuse_each(next(iter(found.values())), "compare strata")
    return found, refused


def _found(
    campaigns: "dict[str, Campaign]", file: str | None, given: dict[str, Any], *, ids_needed: bool
) -> tuple[list[dict[str, Any]], Baselines]:
    """Return the figures of each setting, on the people of a file or on people drawn again and again; and baselines."""
    import numpy as np

    from hushbid.campaign.people import read_people, rows_of
    from hushbid.campaign.terms import counts_of

    some, people, repetitions = next(iter(campaigns.values())), None, 1 if file else given["repetitions"]
    with Steps(3 + 2 * len(campaigns)) as step:
        if file is not None:
            step("reading the bids")
            people = read_people(file, some.bids, stratum=some.stratum, ids_needed=ids_needed)
            for note in people.notes:
                click.echo(note, err=True)
            draws: Iterable[Any] = [people.bids]
            markets = {setting: campaign.market_for(people) for setting, campaign in campaigns.items()}
        else:
            if some.prior.is_grouped:
                raise InputError("Priors by group need BIDS with a column of groups to be compared on.")
            size = given["people"] if some.spec.strata is None else sum(counts_of(some.spec.strata).values())
            prior, rng = some.prior.priors[""], np.random.default_rng(given["seed"])
            draws = (prior.sample(size, rng=rng) for _ in range(repetitions))
            markets = {setting: campaign.market_before(size) for setting, campaign in campaigns.items()}
        named = people if people is not None and people.ids is not None else None
        keys = {one: None if named is None else named.tie_keys(market) for one, market in markets.items()}
        decided: dict[str, list[dict[str, Any]]] = {setting: [] for setting in campaigns}
        baselines: Baselines = {}
        with nullcontext() if people is None else rows_of(people.source, people.lines):
            step("deciding in each setting")
            for time, bids in enumerate(draws):
                step.part(time, repetitions)
                for setting, market in markets.items():
                    decided[setting].append(_figures(market.acquire(bids, tie_key=keys[setting])))
            for setting, market in markets.items() if given["baselines"] else ():
                step(f"buying as others would, {setting} setting")
                how: dict[str, Any] = {"baselines": _baselines_wanted(given)}
                if people is None:  # the same people again
                    how |= {"people": size, "populations": repetitions, "rng": np.random.default_rng(given["seed"])}
                baselines[setting] = _baselines(market, None if people is None else people.bids, **how)
    return [rows[0] if people is not None else _averaged(rows) for rows in decided.values()], baselines


def _baselines(market: Any, bids: Any, **how: Any) -> dict[str, Any]:
    """Every way to buy, ours first; or why there is no comparison."""
    from hushbid.baselines import compare
    from hushbid.errors import HushbidError

    try:
        found = compare(market, bids, **how)
    except HushbidError as problem:
        return {"rows": [], "missing": str(problem)}
    rows = [
        {
            "name": row.name,
            "truthful": row.truthful,
            "voluntary": row.voluntary,
            "payment_for_same_error": row.payment_for_same_error,
            "standard_error_for_same_payment": math.sqrt(row.error_for_same_payment),
            "note": row.note,
        }
        for row in (found.ours, *found.baselines)
    ]
    return {"rows": rows, "missing": ""}


def _figures(outcome: Any) -> dict[str, Any]:
    return {
        "people": int(outcome.bids.size),
        "bought_from": outcome.active,
        "largest_privacy_loss": float(outcome.privacy_loss.max()),
        "standard_error": math.sqrt(outcome.mse),
        "worst_standard_error": math.sqrt(outcome.worst_mse),
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


_MINIMISED = {
    "price": "cost: error and virtual payments",
    "accuracy": "cost: virtual payments",
    "budget": "squared error, at worst",
    "hard_budget": "squared error, at worst",
}
"""What each goal minimises."""

_LABELS = {
    "bought_from": "bought from",
    "largest_privacy_loss": "largest privacy loss",
    "standard_error": "standard error of the estimate",
    "worst_standard_error": "  at worst, under the relation",
    "total_payment": "payments",
    "objective": "",
}


_RELATIVE_ERROR = "relative error of all questions together"
"""A survey's questions have units of their own."""


def _text(rows: list[dict[str, Any]], result: dict[str, Any], pay: Callable[[float], str], *, survey: bool) -> str:
    lines: list[tuple[str, ...]] = [(people_text(result["people"]), *result["settings"])]
    for name, label in _LABELS.items():
        if name == "worst_standard_error" and all(row[name] == row["standard_error"] for row in rows):
            continue  # no relation is allowed for
        priced = name == "objective" and result["goal"]["kind"] in ("price", "accuracy")
        write = pay if name == "total_payment" or priced else figure
        label = label or _MINIMISED[result["goal"]["kind"]]
        label = _RELATIVE_ERROR if survey and name == "standard_error" else label
        lines.append((label, *(_cell(row, name, write) for row in rows)))
    if len(rows) < len(SETTINGS):
        return table(lines)
    ratio = rows[1]["objective"] / rows[0]["objective"] if math.isfinite(rows[1]["objective"]) else math.inf
    return f"{table(lines)}\n\nDoing without a trusted platform costs {number(ratio)} times as much here."


def _cell(row: dict[str, Any], name: str, write: Callable[[float], str] = figure) -> str:
    value = row[name]
    error = row.get(f"{name}_error")
    # a bound is rounded up; a mean over simulated campaigns is none
    if name == "largest_privacy_loss" and error is None:
        value = at_most(value)
    text = count(value) if isinstance(value, int) else write(value)
    return text if error is None else f"{text} ({number(error, 2)})"


def _baselines_texts(baselines: Baselines, pay: Callable[[float], str]) -> list[str]:
    """A table per setting: ours against every baseline, with what a reader should know."""
    texts = []
    for setting, found in baselines.items():
        if found["missing"]:
            texts.append(f"Other ways to buy, {setting} setting: not compared. {found['missing']}")
            continue
        lines: list[tuple[str, ...]] = [
            (f"{setting} setting", "truthful", "voluntary", "pays for our accuracy", "error for our money")
        ]
        for row in found["rows"]:
            answers = ("yes" if row[name] else "no" for name in ("truthful", "voluntary"))
            figures = ((pay, row["payment_for_same_error"]), (figure, row["standard_error_for_same_payment"]))
            shown = (write(value) if math.isfinite(value) else "out of reach" for write, value in figures)
            lines.append((row["name"], *answers, *shown))
        notes = [f"  {_note(row)}" for row in found["rows"] if row["note"]]
        texts.append("\n".join([table(lines), *notes]))
    if any(found["rows"] for found in baselines.values()):
        texts.append(_CAVEAT)
    return texts


_CAVEAT = (
    "Without a cap, Hushbid is the cheapest truthful and voluntary purchase on average over the prior. On one set of\n"
    "bids another can be ahead, as its terms were chosen here by looking at them, which a real one may not do."
)


def _note(row: dict[str, Any]) -> str:
    note = str(row["note"])
    return note[:1].upper() + note[1:] if row["name"] in note else f"{row['name']}: {note}"
