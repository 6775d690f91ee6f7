"""``hushbid privatize``: the local channel, for a participant's own machine."""

import hashlib
import math
import re
import sys
from pathlib import Path
from typing import Any

import click

from hushbid.cli.common import command as make_command
from hushbid.cli.options import read_bounds
from hushbid.durable import STREAM, refuse_clashes, write_file
from hushbid.errors import DataError, InputError
from hushbid.wording import as_seen


@make_command("privatize")
@click.option("--campaign", required=True, metavar="NAME", help="What the value is for; one value is kept for each.")
@click.option("--privacy-loss", required=True, type=float, metavar="EPSILON", help="What you were promised at most.")
@click.option(
    "--at-most",
    required=True,
    type=float,
    metavar="EPSILON",
    help="The largest privacy loss you agreed to when you named your price; a larger one is refused.",
)
@click.option("--bounds", required=True, callback=read_bounds, metavar="LOW,HIGH", help="The campaign's public range.")
@click.option("--id", "person", default="", metavar="ID", help="Your id, where several people share this machine.")
@click.option(
    "--value-file",
    default=STREAM,
    show_default=True,
    type=click.Path(dir_okay=False, allow_dash=True),
    help="A file that holds the value and nothing else; - asks for it, or reads standard input.",
)
@click.option(
    "--store",
    type=click.Path(file_okay=False, path_type=Path),
    envvar="HUSHBID_STORE",
    help="Folder that keeps what was sent.  [default: hushbid's own folder of your account]",
)
@click.option("--accept-infinite-loss", is_flag=True, help="Send the value without noise if the loss is infinite.")
@click.option("--out", default=STREAM, show_default=True, help="File for the message; - is standard output.")
@click.option("--force", is_flag=True, help="Replace the file of the message. No new noise is ever drawn.")
def command(**given: Any) -> None:
    """Add noise to one value on its owner's machine, once.

    Prints the message to send. The value is read from a file or typed unseen, never taken from the command line, where
    others could see it. The first message is kept: asking again, after a failed transfer for instance, gives the same
    one, because two different ones would together tell more than was agreed. Nothing is asked of a server: how much
    noise is added depends on what is typed here.
    """
    from hushbid.disclosure import privatize

    if not given["privacy_loss"] <= given["at_most"]:
        raise InputError(
            f"--privacy-loss {given['privacy_loss']:g} is more than you agreed to, --at-most {given['at_most']:g}: no"
            " noise was drawn."
        )
    folder = given["store"] or Path(click.get_app_dir("hushbid")) / "values"
    store = folder / _file_name(given["campaign"], given["person"])
    refuse_clashes([given["out"]], [given["value_file"], folder])
    again = store.with_name(f"{store.name}.json").exists()
    message = privatize(
        0.0 if again else _value(given["value_file"]),
        given["privacy_loss"],
        given["bounds"],
        store=store,
        accept_infinite_loss=given["accept_infinite_loss"],
    )
    if again:
        click.echo("A value was privatized for this campaign before; this is the same message again.", err=True)
    text = f"{message.to_json()}\n"
    write_file(given["out"], lambda file: file.write(text.encode()), force=given["force"])


def _value(file: str) -> float:
    """The datum; what it is never appears in a message."""
    from hushbid.tables import number_of

    if file == STREAM and sys.stdin.isatty():
        text = click.prompt("Your value (not shown)", hide_input=True, err=True)
    elif file == STREAM:
        text = sys.stdin.read()
    else:
        try:
            text = Path(file).read_text(encoding="utf-8")
        except OSError as problem:
            raise InputError(f"{file} cannot be read: {problem.strerror}.") from problem
        except UnicodeDecodeError:
            raise DataError(f"{file} must hold one number and nothing else.") from None
    value = number_of(text)
    if math.isnan(value):
        raise DataError("The value must be one number such as 7.5, and nothing else.")
    return value


def _file_name(campaign: str, person: str) -> str:
    """A file name that tells campaigns and people apart, whatever characters their names have.

    A second name for the same campaign would mean a second draw, so the ways in which people type one name count as
    one: letters composed or not, wide or narrow, capital or small, invisible characters, spaces. Ids may differ in
    capitals, and in those only.
    """
    name, who = as_seen(campaign).casefold(), as_seen(person)
    if not name:
        raise InputError("--campaign must have at least one visible character.")
    digest = hashlib.sha256(f"{len(name)}:{name}{who}".encode(errors="surrogateescape")).hexdigest()[:16]
    return f"{re.sub(r'[^a-z0-9]+', '-', name).strip('-')[:40] or 'campaign'}-{digest}"
