"""``hushbid audit``: attacks on our own claims."""

from pathlib import Path
from typing import Any

import click

from hushbid.cli.common import COUNT, Steps, Whole, read_record, tell
from hushbid.cli.common import command as make_command
from hushbid.common.numbers import number

CHECKS = ("incentives", "privacy", "accuracy")


@make_command("audit")
@click.argument("record", type=click.Path(allow_dash=True, path_type=Path))
@click.option("--check", "checks", multiple=True, type=click.Choice(CHECKS), help="One or more.  [default: all]")
@click.option(
    "--samples",
    type=Whole(1000, COUNT.max),
    help="Draw so many noisy outputs.  [default: 20,000, or fewer for a survey]",
)
@click.option("--people", type=COUNT, help="How many people try misreports.  [default: as many as are quick]")
@click.option("--among", type=COUNT, help="In a market of how many of them.  [default: as many as are quick]")
@click.option("--seed", type=Whole(min=0), default=1, show_default=True, help="Of synthetic data and choices.")
def command(
    record: Path,
    checks: tuple[str, ...],
    samples: int | None,
    people: int | None,
    among: int | None,
    seed: int,
    as_json: bool,
) -> None:
    """Attack a record's claims: incentives, privacy and accuracy.

    RECORD is a file or a folder, or - for standard input. Looks for misreports that pay, for outputs that betray more
    than was promised, and for errors larger than stated, on synthetic data only. What it finds is proof; that it finds
    nothing is not, so the power to find a planted fault is told too. The exit status is 1 if a fault was found.
    """
    from hushbid.audit.suite import audits_of
    from hushbid.report.sections.audits import lines_of

    chosen = checks or CHECKS
    with Steps(1 + len(chosen)) as step:
        step("reading the record")
        outcome = read_record(record).outcome
        found = []
        for check in chosen:
            step(f"attacking {check}")
            found += list(
                audits_of(
                    outcome,
                    checks=(check,),
                    samples=samples,
                    tested=people,
                    among=among,
                    seed=seed,
                    progress=step.part,
                )
            )
    lines = [_facts(line) for line in lines_of(found, outcome)]
    failed = any(line["verdict"] == "failed" for line in lines)
    result = {"record": str(record), "ok": not failed, "audits": lines}
    tell(result, _text(lines), as_json=as_json)
    if failed:
        click.get_current_context().exit(1)


def _facts(line: Any) -> dict[str, Any]:
    names = ("title", "verdict", "finding", "samples", "power", "power_against")
    return {name: getattr(line, name) for name in names}


def _text(lines: list[dict[str, Any]]) -> str:
    message = []
    words = {"failed": "FAILED", "clear": "no fault found", "weak": "no fault found, but one could have been missed"}
    for line in lines:
        message.append(f"{line['title']}  {words[line['verdict']]}.")
        message.append(f"  {line['finding']} ({line['samples']}.)")
        if line["power"] is not None:
            message.append(f"  It would find {line['power_against']} with probability {number(line['power'], 2)}.")
    return "\n".join(message) or "There was nothing to audit: nothing was bought, or without any noise."
