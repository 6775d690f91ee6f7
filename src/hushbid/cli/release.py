"""``hushbid release``: the estimate, from decisions that were saved."""

from pathlib import Path
from typing import Any

import click

from hushbid.cli.frame import OneFile, Steps, tell
from hushbid.cli.frame import command as make_command
from hushbid.engine.atomic import Staging, refuse_clashes, refuse_existing


@make_command("release")
@click.argument("record", type=OneFile())
@click.argument("data", type=click.Path(dir_okay=False, allow_dash=True))
@click.option("--id-column", default="id", show_default=True, metavar="NAME", help="Column of ids in DATA.")
@click.option(
    "--value-column", metavar="NAME", help="Column of data.  [default: value, or message in the local setting]"
)
@click.option(
    "--simulated-values",
    is_flag=True,
    help="Local setting: DATA holds made-up values, not messages, and the noise is added here. For simulation only.",
)
@click.option(
    "--level",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="How sure the interval is to be.",
)
@click.option("--accept-infinite-loss", is_flag=True, help="Use the data of people whose loss is infinite.")
@click.option("--out", type=OneFile(), metavar="FILE", help="Record with the estimate in it.")
@click.option("--force", is_flag=True, help="Replace the file. The estimate is never drawn again.")
def command(record: Path, data: str, as_json: bool, **given: Any) -> None:
    """Draw the estimate that a record paid for, once.

    RECORD was written by "price --record" or by "run" without data; DATA is a CSV or Parquet file, or - for standard
    input. The estimate is kept in the folder "claims" beside RECORD, and asking again gives the same one. A record that
    holds it is written to RECORD's name with .released.json at its end.
    """
    from hushbid.cli.conduct import estimate_facts, estimate_text

    release, before, path = _release(record, data, given)
    text = estimate_text(release, given["level"])
    if before:
        text += "\nThis estimate was drawn before; it is shown again, not drawn again."
    if path is not None:
        text += f"\nWritten: {path}."
    facts = {**estimate_facts(release, given["level"]), "drawn_before": before, "record": path}
    tell(facts, text, as_json=as_json)


def _release(path: Path, file: str, given: dict[str, Any]) -> tuple[Any, bool, Path | None]:
    from hushbid.cli.campaign_file import Kind
    from hushbid.cli.conduct import CLAIMS, is_released, refuse_other_release, simulated_messages
    from hushbid.cli.people import People, read_data, rows_of
    from hushbid.cli.purchase import record_writer
    from hushbid.disclosure import release_plan
    from hushbid.errors import InputError
    from hushbid.mechanism.publish import plan_of
    from hushbid.record import read

    out = given["out"] or path.with_name(f"{path.name.removesuffix('.json')}.released.json")
    refuse_clashes([out], [path, file])
    if not given["force"]:
        refuse_existing([out])
    with Steps(4) as step:
        step("reading the record")
        record = read(path)
        if record.release is not None:
            return record.release, True, None
        local = record.outcome.market.setting == "local"
        if given["simulated_values"] and not local:
            raise InputError("--simulated-values is for the local setting; in the central one DATA holds values.")
        ids = None if record.ids is None else list(record.ids)
        reports = record.outcome.reports
        people = People(source=str(path), ids=ids, id_column=ids or [], reports=reports, groups=None)
        step("reading the data")
        kind: Kind = "simulated_values" if given["simulated_values"] else "messages" if local else "values"
        value = given["value_column"] or ("message" if kind == "messages" else "value")
        found = read_data(file, people, id_column=given["id_column"], value=value, kind=kind)
        step("drawing")
        plan, claims, accepted = plan_of(record.outcome), path.parent / CLAIMS, given["accept_infinite_loss"]
        refuse_other_release(claims, plan.key)
        before, values = is_released(claims, plan.key), found.data
        if kind == "simulated_values" and not before:
            values = simulated_messages(plan, values, accept_infinite_loss=accepted)
        with rows_of(str(path)):
            release = release_plan(plan, values, claims=claims, accept_infinite_loss=accepted)
        step("writing")
        with Staging(force=given["force"]) as files:
            files.add(out, record_writer(record.with_release(release)))
    return release, before, out
