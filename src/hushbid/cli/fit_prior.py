"""``hushbid fit-prior``: from a pilot's bids to a prior for other people's."""

from typing import Any

import click

from hushbid.cli.common import OneFile, Steps, read_bounds, tell
from hushbid.cli.common import command as make_command
from hushbid.common.numbers import figure, fixed, four_digits, people, percent, table
from hushbid.common.staging import Staging, refuse_clashes, refuse_existing

FAMILIES = ("uniform", "exponential", "lognormal", "gamma", "truncnormal", "beta", "empirical", "histogram", "kde")
_WHERE_NAMED = ("histogram", "kde")
_LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)


@make_command("fit-prior")
@click.argument("pilot", type=click.Path(dir_okay=False, allow_dash=True))
@click.option("--bid-column", metavar="NAME", default="bid", show_default=True, help="Of bids.")
@click.option("--id-column", metavar="NAME", default="id", show_default=True, help="Of ids, to recognise people later.")
@click.option("--group-column", metavar="NAME", help="Of groups: fits a prior to each.")
@click.option("--no-ids", is_flag=True, help="The pilot has no ids; whether its people bid again cannot be checked.")
@click.option(
    "--family",
    type=click.Choice(FAMILIES),
    help="Which prior to take; histogram and kde are fitted where they are named.  [default: the best]",
)
@click.option(
    "--range",
    "bounds",
    callback=read_bounds,
    metavar="LOW,HIGH",
    help="Where all bids must lie, if that is known: fits a beta prior too.",
)
@click.option("--out", type=OneFile(), metavar="FILE.json", help="Write the prior for run and price.")
@click.option("--picture", type=OneFile(), metavar="FILE.svg", help="Draw data, fits and virtual cost.")
@click.option("--force", is_flag=True, help="Replace files that exist.")
def command(pilot: str, as_json: bool, **given: Any) -> None:
    """Fit priors to a pilot's bids and compare them.

    PILOT is a CSV, Parquet or Excel file, or - for standard input. Each family is fitted by maximum likelihood; the
    best is the one that lies closest to data it has not seen, and of those that lie equally close, within one standard
    error, the most parsimonious: the one of least AIC. The people of the pilot must not bid in the campaign
    that uses the prior, or their own answers would move their own prices: --out keeps a keyed hash of every id, by
    which run and price recognise them. With --group-column each group gets a prior of its own, and --out holds them
    all; a group must be something public that a person cannot choose.
    """
    from hushbid.errors import InputError

    for option, end in (("out", ".json"), ("picture", ".svg")):
        if given[option] is not None and given[option].suffix != end:
            raise InputError(f"--{option} must end in {end}, got {given[option]}.")
    written = [path for path in (given["out"], given["picture"]) if path is not None]
    if given["group_column"] is not None and given["picture"] is not None:
        raise click.UsageError("--picture draws one prior and must not be given beside --group-column.")
    refuse_clashes(written, [pilot])
    if not given["force"]:
        refuse_existing(written)
    fitted = _fit(pilot, given)
    groups = {label: _result(*one) for label, one in fitted.items()}
    files = [str(path) for path in written]
    if given["group_column"] is None:
        result = {**groups[""], "files": files}
    else:
        result = {"people": sum(one["people"] for one in groups.values()), "groups": groups, "files": files}
    tell(result, _text(groups, fitted, files), as_json=as_json)


Fitted = tuple[list[Any], Any, int]
"""The fits, the best first; the one that is taken; and to how many people."""


def _result(fits: list[Any], chosen: Any, people: int) -> dict[str, Any]:
    return {
        "people": people,
        "chosen": chosen.family,
        "prior": chosen.prior.to_dict(),
        "fits": [_facts(fit) for fit in fits],
        "virtual_cost": _virtual_costs(chosen.prior),
    }


def _fit(pilot: str, given: dict[str, Any]) -> dict[str, Fitted]:
    """What was fitted, by group; without groups, to everybody, under an empty name."""
    import numpy as np

    from hushbid.priors.pilot import Pilot, grouped_file_text, prior_file_text
    from hushbid.report.prior_chart import MOST_PRIORS, prior_picture

    with Steps(3) as step, Staging(force=given["force"]) as files:
        step("reading the pilot")
        values, ids, labels = _read(pilot, given)
        step("fitting")
        fitted, written = {}, {}
        for label in dict.fromkeys(labels):
            rows = [place for place, one in enumerate(labels) if one == label]
            fits, chosen, people = fitted[label] = _fit_group(values[np.array(rows)], label, given)
            fit = {**_facts(chosen), "compared_with": [_facts(one) for one in fits]}
            named = None if ids is None else [ids[row] for row in rows]
            written[label] = (chosen.prior, Pilot.of(named, people), fit)
        step("writing")
        if given["out"] is not None:
            grouped = given["group_column"] is not None
            text = grouped_file_text(written) if grouped else prior_file_text(*written[""])
            files.add(given["out"], lambda file: file.write(text.encode()))
        if given["picture"] is not None:
            fits, chosen, _ = fitted[""]
            drawn = [chosen, *(fit for fit in fits if fit is not chosen)][:MOST_PRIORS]
            picture = prior_picture(values, {fit.family: fit.prior for fit in drawn}, chosen=chosen.family)
            files.add(given["picture"], lambda file: file.write(picture.encode()))
    return fitted


def _read(pilot: str, given: dict[str, Any]) -> tuple[Any, list[str] | None, list[str]]:
    """Bids, ids if there are any, and everybody's group, empty if there are none."""
    import numpy as np

    from hushbid.common.arrays import first_row, rows_text
    from hushbid.common.tables import read_table, rows_note
    from hushbid.errors import BidError

    column, group = given["bid_column"], given["group_column"]
    needed = [column, *([] if given["no_ids"] else [given["id_column"]]), *([] if group is None else [group])]
    found = read_table(pilot, needed=needed)
    ids = None if given["no_ids"] else found.keys(given["id_column"])
    values = found.numbers(column, error=BidError)
    for note in found.notes_on(column):
        click.echo(note, err=True)
    bad = ~((values >= 0.0) & np.isfinite(values))
    if bad.any():
        raise BidError(
            f"{found.source}: bids must be finite numbers of at least 0, but {rows_text(bad, 'does')} not"
            f" hold one ({rows_note(first_row(bad), found.lines)}).",
            field=column,
            row=first_row(bad),
        )
    return values, ids, [""] * values.size if group is None else found.labels(group, "a group")


def _fit_group(values: Any, label: str, given: dict[str, Any]) -> Fitted:
    from hushbid.errors import InputError
    from hushbid.priors.fitting import fit_priors

    try:
        also = [given["family"]] if given["family"] in _WHERE_NAMED else []
        fits = fit_priors(values, bounds=given["bounds"], also=also)
        named = [fit for fit in fits if given["family"] in (None, fit.family)]
        if not named:
            why = "needs --range" if given["family"] == "beta" else "needs bids above 0"
            raise InputError(f"--family {given['family']} cannot be fitted here: it {why}.")
    except InputError as problem:
        if not label:
            raise
        raise InputError(f"In the group {label!r}: {problem}", field=problem.field) from None
    return fits, named[0], int(values.size)


def _facts(fit: Any) -> dict[str, Any]:
    from hushbid.priors import Empirical, KernelDensity

    return {
        "family": fit.family,
        "text": None if isinstance(fit.prior, Empirical | KernelDensity) else fit.prior.to_text(),
        "log_likelihood": fit.log_likelihood,
        "aic": fit.aic,
        "held_out_distance": fit.held_out_distance,
        "held_out_error": fit.held_out_error,
        "regular": fit.is_regular,
    }


def _virtual_costs(prior: Any) -> list[dict[str, float]]:
    """The virtual cost at a few quantiles, before and after ironing."""
    rows = []
    for level in _LEVELS:
        bid = float(prior.quantile(level))
        rows.append(
            {
                "quantile": level,
                "bid": bid,
                "raw": float(prior.raw_virtual_cost(bid)),
                "ironed": float(prior.virtual_cost(bid)),
            }
        )
    return rows


def _text(groups: dict[str, dict[str, Any]], fitted: dict[str, Fitted], files: list[str]) -> str:
    lines = []
    for label, result in groups.items():
        lines += [f"Group {label}:"] if label else []
        lines += _group_text(result, *fitted[label][:2])
    lines.append("Use it for other people only: whoever was in the pilot must not bid in the campaign.")
    if files:
        lines.append(f"Written: {', '.join(files)}.")
    return "\n".join(lines)


def _group_text(result: dict[str, Any], fits: list[Any], chosen: Any) -> list[str]:
    compared: list[tuple[str, ...]] = [("family", "held-out distance", "AIC", "needs ironing")]
    for fit in fits:
        aic = "" if fit.aic is None else fixed(fit.aic, 1)
        compared.append((fit.family, fixed(fit.held_out_distance, 4), aic, "no" if fit.is_regular else "yes"))
    costs: list[tuple[str, ...]] = [("quantile", "bid", "virtual cost", "ironed")]
    costs += [
        (percent(row["quantile"]), *(figure(row[name]) for name in ("bid", "raw", "ironed")))
        for row in result["virtual_cost"]
    ]
    named = next(one for one in result["fits"] if one["family"] == chosen.family)["text"]
    smoothed = ", smoothed" if chosen.family == "kde" else ""
    shown = f"the pilot's own values{smoothed}" if named is None else four_digits(named)
    return [
        f"{people(result['people'])}; how far each prior lies from data it was not fitted to, the best first (of those"
        " that fit equally, the simplest):",
        table(compared),
        f"Taken: {chosen.family} ({shown}). What a unit of privacy costs a buyer who pays truthfully:",
        table(costs),
    ]
