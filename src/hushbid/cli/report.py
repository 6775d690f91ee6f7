"""``hushbid report``: the report page again, from a record."""

from pathlib import Path
from typing import Any

import click

from hushbid.cli.common import OneFile, Steps, read_record, tell
from hushbid.cli.common import command as make_command
from hushbid.cli.options import Options, campaign_options
from hushbid.languages import ENGLISH, language_codes


@make_command("report")
@click.argument("record", type=click.Path(allow_dash=True, path_type=Path))
@campaign_options("title", "question", "unit", "money.spending_limit", "output.level", in_file=True)
@click.option("--date", metavar="TEXT", default="", help="When it was carried out, as it is to be shown.")
@click.option(
    "--language",
    type=click.Choice(language_codes()),
    default=ENGLISH,
    show_default=True,
    help="What the page is written in.",
)
@click.option("--audit/--no-audit", default=True, show_default=True, help="Attack the record's claims for the page.")
@click.option("--out", type=OneFile(), metavar="FILE.html", help="Where to write it.  [default: report.html by RECORD]")
@click.option("--force", is_flag=True, help="Replace a file that exists.")
def command(
    record: Path, options: Options, audit: bool, out: Path | None, force: bool, as_json: bool, **given: Any
) -> None:
    """Write the report page again, from a record.

    RECORD is a file or a folder, or - for standard input; one that does not fit its own hash is refused. What the
    record does not hold, the options state: unit, date, spending limit and level (0.95 by default). Audits are run
    again. What a server knows of deliveries and payments made is not in a record, so it is not on this page.
    --language de writes it in German; names and notices of the campaign's own stay as they are.
    """
    from hushbid.audit.suite import audits_of
    from hushbid.campaign.recorded import recorded_page
    from hushbid.common.staging import refuse_clashes, refuse_existing, write_file
    from hushbid.report.language import speaking
    from hushbid.report.sections.audits import AuditLine, lines_of

    place = out or record.with_name("report.html")
    if place.suffix != ".html":
        raise click.UsageError(f"--out must end in .html, got {place}.")
    refuse_clashes([place], [record])
    if not force:
        refuse_existing([place])
    lines: tuple[AuditLine, ...] = ()
    with Steps(3) as step:
        step("reading the record")
        found = read_record(record)

        def audited() -> tuple[AuditLine, ...]:
            nonlocal lines
            step("auditing")
            if audit and found.outcome.active:
                with speaking(given["language"]):
                    lines = lines_of(audits_of(found.outcome, progress=step.part), found.outcome)
            step("writing")
            return lines

        name = "record.json" if str(record) == "-" else record.name
        page = recorded_page(found, audits=audited, file=name, **options.checked(), **given).encode()
        write_file(place, lambda file: file.write(page), force=force)
    failed = sum(line.verdict == "failed" for line in lines)
    warning = f"\nWARNING: {failed} audit{'s' * (failed > 1)} failed; see the report." if failed else ""
    result = {"record_hash": found.hash, "audits_failed": failed, "file": str(place)}
    tell(result, f"Written: {place}, from the record with the hash {found.hash}.{warning}", as_json=as_json)
    if failed:
        click.get_current_context().exit(1)
