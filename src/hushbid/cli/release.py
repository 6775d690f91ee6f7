"""``hushbid release``: the estimate, from decisions that were saved."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hushbid import wording
from hushbid.cli.common import OneFile, Steps, tell
from hushbid.cli.common import command as make_command
from hushbid.durable import Staging, refuse_clashes, refuse_existing

if TYPE_CHECKING:
    from hushbid.disclosure import Answer
    from hushbid.record import Record


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
@click.option("--question", metavar="TEXT", help="What is asked, if RECORD does not say it.  [default: the mean]")
@click.option(
    "--wave", type=click.IntRange(1, 1_000_000), metavar="N", help="Which time it is asked.  [default: RECORD's, or 1]"
)
@click.option(
    "--late",
    type=click.Choice(["paid", "unpaid"]),
    help="What is paid to those whose data came after the estimate was drawn.  [default: such data are refused]",
)
@click.option("--accept-infinite-loss", is_flag=True, help="Use the data of people whose loss is infinite.")
@click.option("--out", type=OneFile(), metavar="FILE", help="Record with the estimate in it.")
@click.option("--force", is_flag=True, help="Replace the file. The estimate is not drawn again.")
def command(record: Path, data: str, as_json: bool, **given: Any) -> None:
    """Draw the estimate that a record paid for, once.

    RECORD was written by "price --record" or by "run" without data; DATA is a CSV or Parquet file, or - for standard
    input. The estimate is kept in the account's store, under what is asked of whom, and asking again gives the same
    one. A record that holds it is written to RECORD's name with .released.json at its end.
    """
    from hushbid.purchase.asking import BEFORE, MADE_UP
    from hushbid.purchase.results import estimate_facts, estimate_text

    answer, question, stamps, path = _release(record, data, given)
    text = estimate_text(answer.release, given["level"], question)
    facts = estimate_facts(answer.release, given["level"])
    if answer.before:
        text += f"\n{BEFORE}"
    if answer.late:
        text += f"\n{wording.people(len(answer.late))} delivered after it was drawn: their data were not used,"
        text += f" and they are {given['late']}."
    text += "".join(f"\nSTAMPED in the record: {stamp}." for stamp in stamps)
    if path is not None:
        text += f"\nWritten: {path}."
    facts |= {"drawn_before": answer.before, "late": len(answer.late), "stamps": list(stamps), "record": path}
    facts["made_up"] = facts["public"]["made_up"] = MADE_UP in stamps
    tell(facts, text, as_json=as_json)


def _release(path: Path, file: str, given: dict[str, Any]) -> tuple["Answer", str, tuple[str, ...], Path | None]:
    """The estimate, what was asked, what is stamped, and the record that was written."""
    from hushbid.arrays import id_texts
    from hushbid.disclosure import Answer
    from hushbid.errors import InputError
    from hushbid.purchase.asking import asked_by, refuse_unsaid_late, store_beside
    from hushbid.purchase.campaign_file import Kind
    from hushbid.purchase.deciding import record_writer
    from hushbid.purchase.people import People, read_data, rows_of
    from hushbid.record import read

    out = given["out"] or path.with_name(f"{path.name.removesuffix('.json')}.released.json")
    refuse_clashes([out], [path, file])
    if not given["force"]:
        refuse_existing([out])
    with Steps(4) as step:
        step("reading the record")
        record = read(path)
        question, wave = asked_by(record, given["question"], given["wave"])
        given = {**given, "question": question, "wave": wave}
        if record.release is not None:
            answer = Answer(release=record.release, before=True, late=(), waves_before=0)
            return answer, question, record.stamps, None
        local = record.outcome.market.strategy.sends_messages
        if given["simulated_values"] and not local:
            raise InputError("--simulated-values is for the local setting; in the central one DATA holds values.")
        ids = None if record.ids is None else id_texts(record.ids)
        reports = record.outcome.reports
        people = People(source=str(path), ids=ids, id_column=ids or [], reports=reports, groups=None)
        step("reading the data")
        kind: Kind = "simulated_values" if given["simulated_values"] else "messages" if local else "values"
        value = given["value_column"] or ("message" if kind == "messages" else "value")
        found = read_data(file, people, id_column=given["id_column"], value=value, kind=kind)
        step("drawing")
        with rows_of(str(path)):
            answer, stamps = _answer(record, found.data, store_beside(path.parent), given)
        refuse_unsaid_late(answer.late, len(people), given["late"], "--late")
        step("writing")
        whole = record.with_release(answer.release, stamps=stamps)
        with Staging(force=given["force"]) as files:
            files.add(out, record_writer(whole))
    return answer, question, whole.stamps, out


def _answer(record: "Record", data: Any, claims: Path, given: dict[str, Any]) -> tuple["Answer", list[str]]:
    """The estimate, and what is stamped because of it."""
    from hushbid.disclosure import release_made_up, release_once
    from hushbid.mechanism.market import plan_of
    from hushbid.purchase.asking import MADE_UP, wave_stamps

    plan, simulated, accepted = plan_of(record.outcome), given["simulated_values"], given["accept_infinite_loss"]
    if MADE_UP in record.stamps:
        return release_made_up(plan, data, accept_infinite_loss=accepted, simulated=simulated), []
    answer = release_once(
        plan,
        data,
        question=given["question"],
        wave=given["wave"],
        ids=record.ids,
        claims=claims,
        accept_infinite_loss=accepted,
        simulated=simulated,
    )
    stamps = wave_stamps(given["wave"], answer.waves_before)
    if answer.late:
        who = wording.people(len(answer.late))
        stamps.append(
            f"late: the data of {who} came after the estimate was drawn and were not used; they are {given['late']}"
        )
    return answer, stamps
