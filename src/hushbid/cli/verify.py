"""``hushbid verify``: does a record hold what it says?"""

from pathlib import Path

import click

from hushbid.cli.frame import Steps, read_record, tell
from hushbid.cli.frame import command as make_command


@make_command("verify")
@click.argument("record", type=click.Path(allow_dash=True, path_type=Path))
def command(record: Path, as_json: bool) -> None:
    """Check a record without the data: decisions, payments and promises.

    RECORD is a file, or - for standard input. Recomputes what can be recomputed by other means than those that made the
    record. The exit status is 0 if everything holds and 1 if something does not.
    """
    from hushbid.record import verify

    with Steps(2) as step:
        step("reading")
        found = read_record(record)
        step("verifying")
        verification = verify(found)
    tell({"record": str(record), **verification.to_dict()}, verification.summary(), as_json=as_json)
    if not verification.ok:
        click.get_current_context().exit(1)
