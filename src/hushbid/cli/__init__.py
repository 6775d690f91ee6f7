"""The command line ``hushbid``: one file per command, loaded only when that command runs.

To add a command, write ``hushbid/cli/NAME.py`` with a click command called ``command`` and list it in ``COMMANDS``.
At the top of such a file stand light imports only: the shell loads every command to complete a name.

In reading order:

- `exit_codes`: what a command's status means
- `common`, `options`, `installation`: what all commands share, and what several ask for
- `extensions`: priors and baselines that you add, for every command
- `new`, `run`, `price`, `release`, `privatize`: write a campaign file and buy from it, or buy step by step
- `plan`, `compare`, `fit_prior`: before buying
- `verify`, `audit`, `report`: afterwards
- `serve`, `serve_demo`, `users`, `keys`, `backup`, `restore`: a server and what is done with it
- `demo`: a campaign on synthetic people

Exit status: see `exit_codes`, the one table for all commands. What is refused is said in one sentence, without a
traceback (``--debug`` shows it).
"""

import errno
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from types import FrameType
from typing import Any, NoReturn

import click

from hushbid import __version__
from hushbid.cli.exit_codes import FAULT, INTERRUPTED, TERMINATED, UNREAD, exit_code
from hushbid.common.numbers import printable
from hushbid.errors import HushbidError

COMMANDS = {
    "new": "Write a campaign file with comments, by questions asked or by options.",
    "run": "Buy: from a campaign file to decisions, an estimate, a record and a report.",
    "price": "Decide how much privacy to buy from whom, and at what price.",
    "privatize": "Add noise to a value or to answers on their owner's machine, once.",
    "release": "Draw the estimate that a record paid for, once.",
    "verify": "Check a record, a receipt or a campaign's log, offline.",
    "plan": "Say what a campaign costs, and how accurate it is.",
    "audit": "Attack a record's claims: incentives, privacy and accuracy.",
    "report": "Write the report page again, from a record.",
    "compare": "Set two campaigns, or two settings of a market, side by side.",
    "fit-prior": "Fit priors to a pilot's bids and compare them.",
    "serve": "Serve campaigns to analysts, auditors and participants.",
    "users": "Say who may log in to a server.",
    "backup": "Write a server's database into one file.",
    "restore": "Put a backup in place of a server's database.",
    "keys": "Make, list and replace the keys with which a server signs.",
    "demo": "Run a complete campaign on synthetic people.",
}

DEBUG = "hushbid.debug"
BY_FILES = "hushbid.by_files"
"""Set in a context's ``meta`` where files state the market: then names are those of the files' fields."""

_ASSIGNED = re.compile(r"(?<![\w/.])([a-z_]+)=(True|'[\w-]+'|\d[\d.]*\d|\d)(?![\w/=])")


def _refused(sentence: str, code: int) -> click.ClickException:
    """Return what makes click print a sentence and exit with a code, which it keeps in the class."""
    kind: type[click.ClickException] = type("Refused", (click.ClickException,), {"exit_code": code})
    return kind(sentence)


class _LateGroup(click.Group):
    """A group that knows its commands by name and imports one only to run it; ``--help`` imports none."""

    _stopped: Callable[[], bytes]

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = import_module(f"hushbid.cli.{cmd_name.replace('-', '_')}").command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            import difflib  # only where something is misspelt

            close = difflib.get_close_matches(args[0], COMMANDS, n=1)
            if close:
                raise click.UsageError(f"{error.message} Did you mean {close[0]}?", ctx) from None
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def main(self, *args: Any, **extra: Any) -> Any:
        with _stops_noticed() as self._stopped:
            try:
                return super().main(*args, **extra)
            except SystemExit as end:
                if end.code == 1 and signal.SIGINT in self._stopped():  # so late that click caught it
                    end.code = INTERRUPTED
                raise

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.ClickException as problem:
            raise _shown_safely(problem) from None
        except KeyboardInterrupt:
            _leave()

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.exceptions.Exit:
            raise
        except Exception as problem:  # noqa: BLE001 (the outermost place)
            # An engine that runs our code calls an interrupt an error of its own: what counts is the signal.
            _leave_after(self._stopped())
            _end(ctx, problem)
        except KeyboardInterrupt:
            # DuckDB tells of every signal in one way, so here too the signal counts.
            _leave_after(self._stopped())
            _leave()


def _end(ctx: click.Context, problem: Exception) -> NoReturn:
    """Say in one sentence why a command ends, and with which status."""
    match problem:
        case click.Abort():  # from a question
            _leave()
        case click.ClickException():
            raise _shown_safely(problem)
        case HushbidError():
            _refuse(ctx, _told(ctx, problem), problem)
        case OSError() if problem.errno == errno.EPIPE:
            _end_quietly()
        case OSError():
            _refuse(ctx, f"{problem.filename or 'The system'}: {problem.strerror or type(problem).__name__}.", problem)
        case RecursionError():
            _refuse(ctx, "What was read is nested too deeply.", problem)
        case ArithmeticError():
            _refuse(ctx, "This cannot be computed with the numbers that were given; --debug shows where.", problem)
        case UnicodeEncodeError():
            _refuse(ctx, "A name or a text that was given is not made of characters.", problem)
        case MemoryError():
            _refuse(ctx, "There is not enough memory for so many people.", problem)
    _show_traceback(ctx)
    # Its message may hold somebody's datum, so only its kind is told.
    click.echo(f"Error: a fault in hushbid ({type(problem).__name__}); --debug shows where.", err=True)
    ctx.exit(FAULT)


def in_options(problem: HushbidError, command: click.Command, *, by_files: bool = False) -> str:
    """Return what a problem says in the words of a command: options, never Python's arguments.

    A parameter of a command has the name of the argument or field that it states. Where files state the market
    (``by_files``, or a field with its table), fields keep their names.
    """
    options = {one.name: max(one.opts, key=len) for one in command.params if isinstance(one, click.Option) and one.name}

    def assigned(found: re.Match[str]) -> str:
        option, value = options.get(found[1]), found[2].strip("'")
        return found[0] if option is None else option if value == "True" else f"{option} {value}"

    told = _ASSIGNED.sub(assigned, str(problem))
    if by_files or "." in (problem.field or ""):
        return told
    if problem.field in options:
        verbs = "must|is|cannot|needs"
        told = re.sub(rf"(?<![\w-]){problem.field} (?={verbs})", f"{options[problem.field]} ", told, count=1)
    several = "|".join(sorted((name for name in options if "_" in name), key=len, reverse=True)) or "$^"
    # a name of several words is never English, so it can be told from the words around it
    return re.sub(rf"(?<![\w./'\"=-])({several})(?![\w/'\"=]|\.\w)", lambda found: options[found[1]], told)


def _told(ctx: click.Context, problem: HushbidError) -> str:
    """What a problem says, in the words of the command that was run."""
    command = main.get_command(ctx, ctx.invoked_subcommand or "")
    return str(problem) if command is None else in_options(problem, command, by_files=bool(ctx.meta.get(BY_FILES)))


def _leave() -> NoReturn:
    click.echo("\nInterrupted: nothing is left half written.", err=True)
    sys.exit(INTERRUPTED)


def _end_quietly() -> NoReturn:
    """Whoever read our output has gone; what is still to be flushed at the end goes nowhere."""
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
    sys.exit(UNREAD)


def _refuse(ctx: click.Context, sentence: str, error: Exception) -> NoReturn:
    _show_traceback(ctx)
    raise _refused(printable(sentence), exit_code(error)) from error


def _shown_safely(problem: click.ClickException) -> click.ClickException:
    told = printable(problem.format_message())
    if told == problem.format_message():
        return problem
    return (
        click.UsageError(told, problem.ctx)
        if isinstance(problem, click.UsageError)
        else _refused(told, problem.exit_code)
    )


def _show_traceback(ctx: click.Context) -> None:
    if ctx.meta.get(DEBUG):
        import traceback

        click.echo(traceback.format_exc(), err=True, nl=False)


def _leave_after(signals: bytes) -> None:
    if signal.SIGINT in signals:
        _leave()
    if signals:
        sys.exit(TERMINATED)


@contextmanager
def _stops_noticed() -> Iterator[Callable[[], bytes]]:
    """Let SIGTERM and SIGHUP unwind like an interrupt, so that temporary files are removed.

    What is yielded tells which of the three have arrived, whoever handled them and whatever was raised then: Python
    itself notes their numbers in a pipe.
    """

    def stop(number: int, frame: FrameType | None) -> NoReturn:
        sys.exit(TERMINATED)

    stops = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    if threading.current_thread() is not threading.main_thread():  # only the main thread is ever interrupted
        yield lambda: b""
        return
    noted, note = os.pipe()
    for end in (noted, note):
        os.set_blocking(end, False)
    noted_before = signal.set_wakeup_fd(note, warn_on_full_buffer=False)
    before = {number: signal.signal(number, stop) for number in stops[1:]}

    seen = bytearray()

    def arrived() -> bytes:
        with suppress(BlockingIOError):
            seen.extend(number for number in os.read(noted, 4096) if number in stops)
        return bytes(seen)

    try:
        yield arrived
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(noted_before)
        os.close(noted)
        os.close(note)


@click.group(cls=_LateGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="hushbid %(version)s")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.option(
    "--import",
    "modules",
    multiple=True,
    metavar="MODULE",
    help="Import a module or a file.py first, which registers priors or baselines of your own.",
)
@click.pass_context
def main(ctx: click.Context, debug: bool, modules: tuple[str, ...]) -> None:
    """Buy data from people who each name their own price for privacy."""
    ctx.meta[DEBUG] = debug
    for module in modules:
        from hushbid.cli.extensions import load

        load(module)
