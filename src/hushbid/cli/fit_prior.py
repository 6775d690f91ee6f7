"""``hushbid fit-prior``: from a pilot's sensitivities to a prior for other people's."""

from typing import Any

import click

from hushbid.cli.common import OneFile, Steps, tell
from hushbid.cli.common import command as make_command
from hushbid.cli.options import read_bounds
from hushbid.durable import Staging, refuse_clashes, refuse_existing
from hushbid.wording import four_digits, table

FAMILIES = ("uniform", "exponential", "lognormal", "gamma", "truncnormal", "beta", "empirical")
_LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)


@make_command("fit-prior")
@click.argument("pilot", type=click.Path(dir_okay=False, allow_dash=True))
@click.option("--sensitivity-column", metavar="NAME", default="sensitivity", show_default=True, help="Of reports.")
@click.option("--id-column", metavar="NAME", default="id", show_default=True, help="Of ids, to recognise people later.")
@click.option("--no-ids", is_flag=True, help="The pilot has no ids; whether its people report again cannot be checked.")
@click.option("--family", type=click.Choice(FAMILIES), help="Which prior to take.  [default: the best]")
@click.option(
    "--range",
    "bounds",
    callback=lambda ctx, option, value: None if value is None else read_bounds(ctx, option, value),
    metavar="LOW,HIGH",
    help="Where all sensitivities must lie, if that is known: fits a beta prior too.",
)
@click.option("--out", type=OneFile(), metavar="FILE.json", help="Write the prior for run and price.")
@click.option("--picture", type=OneFile(), metavar="FILE.svg", help="Draw data, fits and virtual cost.")
@click.option("--force", is_flag=True, help="Replace files that exist.")
def command(pilot: str, as_json: bool, **given: Any) -> None:
    """Fit priors to a pilot's sensitivities and compare them.

    PILOT is a CSV, Parquet or Excel file, or - for standard input. Each family is fitted by maximum likelihood; the
    best is the one that lies closest to data it has not seen. The people of the pilot must not report in the campaign
    that uses the prior, or their own answers would move their own prices: --out keeps a keyed hash of every id, by
    which run and price recognise them.
    """
    from hushbid.errors import InputError

    for option, end in (("out", ".json"), ("picture", ".svg")):
        if given[option] is not None and given[option].suffix != end:
            raise InputError(f"--{option} must end in {end}, got {given[option]}.")
    written = [path for path in (given["out"], given["picture"]) if path is not None]
    refuse_clashes(written, [pilot])
    if not given["force"]:
        refuse_existing(written)
    fits, chosen, people = _fit(pilot, given)
    result = {
        "people": people,
        "chosen": chosen.family,
        "prior": chosen.prior.to_dict(),
        "fits": [_facts(fit) for fit in fits],
        "virtual_cost": _virtual_costs(chosen.prior),
        "files": [str(path) for path in written],
    }
    tell(result, _text(result, fits, chosen), as_json=as_json)


def _fit(pilot: str, given: dict[str, Any]) -> tuple[list[Any], Any, int]:
    import numpy as np

    from hushbid.arrays import first_row, rows_text
    from hushbid.errors import InputError, ReportError
    from hushbid.priors.fitting import fit_priors
    from hushbid.priors.pilot import Pilot, prior_file_text
    from hushbid.report.prior_chart import prior_picture
    from hushbid.tables import read_table, rows_note

    with Steps(3) as step, Staging(force=given["force"]) as files:
        step("reading the pilot")
        column = given["sensitivity_column"]
        found = read_table(pilot, needed=[column] if given["no_ids"] else [column, given["id_column"]])
        ids = None if given["no_ids"] else found.keys(given["id_column"])
        values = found.numbers(column, error=ReportError)
        for note in found.notes_on(column):
            click.echo(note, err=True)
        bad = ~((values >= 0.0) & np.isfinite(values))
        if bad.any():
            raise ReportError(
                f"{found.source}: sensitivities must be finite numbers of at least 0, but {rows_text(bad, 'does')} not"
                f" hold one ({rows_note(first_row(bad), found.lines)}).",
                field=column,
                row=first_row(bad),
            )
        step("fitting")
        fits = fit_priors(values, bounds=given["bounds"])
        named = [fit for fit in fits if given["family"] in (None, fit.family)]
        if not named:
            why = "needs --range" if given["family"] == "beta" else "needs sensitivities above 0"
            raise InputError(f"--family {given['family']} cannot be fitted here: it {why}.")
        step("writing")
        if given["out"] is not None:
            fit = {**_facts(named[0]), "compared_with": [_facts(one) for one in fits]}
            text = prior_file_text(named[0].prior, Pilot.of(ids, values.size), fit)
            files.add(given["out"], lambda file: file.write(text.encode()))
        if given["picture"] is not None:
            picture = prior_picture(values, {fit.family: fit.prior for fit in fits}, chosen=named[0].family)
            files.add(given["picture"], lambda file: file.write(picture.encode()))
    return fits, named[0], int(values.size)


def _facts(fit: Any) -> dict[str, Any]:
    from hushbid.priors import Empirical

    return {
        "family": fit.family,
        "text": None if isinstance(fit.prior, Empirical) else fit.prior.to_text(),
        "log_likelihood": fit.log_likelihood,
        "aic": fit.aic,
        "held_out_distance": fit.held_out_distance,
        "regular": fit.is_regular,
    }


def _virtual_costs(prior: Any) -> list[dict[str, float]]:
    """The virtual cost at a few quantiles, before and after ironing."""
    rows = []
    for level in _LEVELS:
        sensitivity = float(prior.quantile(level))
        rows.append(
            {
                "quantile": level,
                "sensitivity": sensitivity,
                "raw": float(prior.raw_virtual_cost(sensitivity)),
                "ironed": float(prior.virtual_cost(sensitivity)),
            }
        )
    return rows


def _text(result: dict[str, Any], fits: list[Any], chosen: Any) -> str:
    compared: list[tuple[str, ...]] = [("family", "held-out distance", "AIC", "needs ironing")]
    for fit in fits:
        aic = "" if fit.aic is None else f"{fit.aic:.1f}"
        compared.append((fit.family, f"{fit.held_out_distance:.4f}", aic, "no" if fit.is_regular else "yes"))
    costs: list[tuple[str, ...]] = [("quantile", "sensitivity", "virtual cost", "ironed")]
    costs += [
        (f"{row['quantile']:.0%}", *(f"{row[name]:.4g}" for name in ("sensitivity", "raw", "ironed")))
        for row in result["virtual_cost"]
    ]
    named = next(one for one in result["fits"] if one["family"] == chosen.family)["text"]
    shown = "the pilot's own values" if named is None else four_digits(named)
    lines = [
        f"{result['people']:,} people; how far each prior lies from data it was not fitted to, closest first:",
        table(compared),
        f"Taken: {chosen.family} ({shown}). What a unit of privacy costs a buyer who pays truthfully:",
        table(costs),
        "Use it for other people only: whoever was in the pilot must not report in the campaign.",
    ]
    if result["files"]:
        lines.append(f"Written: {', '.join(result['files'])}.")
    return "\n".join(lines)
