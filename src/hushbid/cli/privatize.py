"""``hushbid privatize``: the local channel, for a participant's own machine."""

import hashlib
import math
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hushbid.cli.common import Number, OneFile, read_bounds
from hushbid.cli.common import command as make_command
from hushbid.common.numbers import as_seen, typed
from hushbid.common.staging import STREAM, refuse_clashes, write_file
from hushbid.errors import DataError, InputError

if TYPE_CHECKING:
    from hushbid.disclosure import Message
    from hushbid.questions import Question

_LOSS = Number(min=0.0, min_open=True, finite=False)


@make_command("privatize")
@click.option("--campaign", required=True, metavar="NAME", help="What the value is for; one value is kept for each.")
@click.option(
    "--privacy-loss",
    required=True,
    type=_LOSS,
    metavar="EPSILON",
    help="What you were promised at most.",
)
@click.option(
    "--at-most",
    required=True,
    type=_LOSS,
    metavar="EPSILON",
    help="The largest privacy loss you agreed to when you named your price; a larger one is refused.",
)
@click.option("--bounds", callback=read_bounds, metavar="LOW,HIGH", help="The campaign's public range, for one value.")
@click.option(
    "--questions",
    type=OneFile(),
    metavar="FILE",
    help="The campaign's questions, for a survey: the tables [[questions]] of a TOML file, such as its campaign file.",
)
@click.option("--id", "person", default="", metavar="ID", help="Your id, where several people share this machine.")
@click.option(
    "--value-file",
    default=STREAM,
    show_default=True,
    type=click.Path(dir_okay=False, allow_dash=True),
    help="A file that holds the value and nothing else, or the answers, each on a line; - asks for it, or reads"
    " standard input.",
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
    """Add noise to a value or to answers on their owner's machine, once.

    Prints the message to send. State --bounds for a value, or --questions for answers. A single yes/no question gets no
    noise: a coin decides whether the message says the truth. What is yours is read from a
    file or typed unseen, never taken from the command line, where others could see it. The first message is kept:
    asking again, after a failed transfer for instance, gives the same one, because two different ones would together
    tell more than was agreed. Nothing is asked of a server: how much noise is added depends on what is typed here
    and, in a survey, on the questions.
    """
    if (given["bounds"] is None) == (given["questions"] is None):
        raise click.UsageError("State either --bounds, for one value, or --questions, for a survey.")
    if not given["privacy_loss"] <= given["at_most"]:
        raise InputError(
            f"--privacy-loss {typed(given['privacy_loss'])} is more than you agreed to, --at-most"
            f" {typed(given['at_most'])}: no noise was drawn."
        )
    folder = given["store"] or Path(click.get_app_dir("hushbid")) / "values"
    store = folder / _file_name(given["campaign"], given["person"])
    read = [given["value_file"], folder, *([given["questions"]] if given["questions"] else [])]
    refuse_clashes([given["out"]], read)
    again = store.with_name(f"{store.name}.json").exists()
    make = _message_of_value if given["questions"] is None else _message_of_answers
    message = make(given, store, again)
    if again:
        what = "A value was" if given["questions"] is None else "Answers were"
        click.echo(f"{what} privatized for this campaign before; this is the same message again.", err=True)
    text = f"{message.to_json()}\n"
    write_file(given["out"], lambda file: file.write(text.encode()), force=given["force"])


def _message_of_value(given: dict[str, Any], store: Path, again: bool) -> "Message":
    from hushbid.disclosure import privatize

    return privatize(
        0.0 if again else _value(given["value_file"]),
        given["privacy_loss"],
        given["bounds"],
        store=store,
        accept_infinite_loss=given["accept_infinite_loss"],
    )


def _message_of_answers(given: dict[str, Any], store: Path, again: bool) -> "Message":
    """The layout is the market's: the best for the standard errors that the questions state, or for importance."""
    from hushbid.campaign.terms import survey_in
    from hushbid.disclosure import privatize_answers
    from hushbid.questions import layout_of

    questions, targets = survey_in(given["questions"])
    return privatize_answers(
        [] if again else _answers(given["value_file"], questions),
        given["privacy_loss"],
        questions,
        layout=layout_of(questions, targets or None),
        store=store,
        accept_infinite_loss=given["accept_infinite_loss"],
    )


def _read(file: str, prompts: Sequence[str], allowed: str) -> list[str]:
    """What is hers: typed unseen, a line for each prompt, or from a file or a stream, whose lines these are."""
    if file == STREAM and sys.stdin.isatty():
        return [click.prompt(f"{prompt} (not shown)", hide_input=True, err=True) for prompt in prompts]
    if file == STREAM:
        return sys.stdin.read().splitlines()
    try:
        return Path(file).read_text(encoding="utf-8").splitlines()
    except OSError as problem:
        raise InputError(f"{file} cannot be read: {problem.strerror}.") from problem
    except UnicodeDecodeError:
        raise DataError(f"{file} must hold {allowed} and nothing else.") from None


def _answers(file: str, questions: Sequence["Question"]) -> list[float]:
    """The answers in the order of the questions; what they are never appears in a message."""
    from hushbid.campaign.people import answer_of
    from hushbid.questions import Choice, Number

    lines = _read(file, [f"Your answer to {one.name}" for one in questions], "one answer on each line")
    if len(lines) != len(questions):
        raise DataError(f"There must be one answer on each line, {len(questions)} in all, got {len(lines)} lines.")
    values = [answer_of(line, question) for line, question in zip(lines, questions, strict=True)]
    for question in (one for one, value in zip(questions, values, strict=True) if math.isnan(value)):
        allowed = "one number such as 7.5" if isinstance(question, Number) else "yes or no"
        if isinstance(question, Choice):
            allowed = f"one of its {len(question.answers)} answers"
        raise DataError(f"The answer to {question.name!r} must be {allowed}, and nothing else.")
    return values


def _value(file: str) -> float:
    """The datum; what it is never appears in a message."""
    from hushbid.common.tables import number_of

    text = "\n".join(_read(file, ["Your value"], "one number"))
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
