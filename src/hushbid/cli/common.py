"""What all commands share: common options, results for people or for programs, and progress on a terminal."""

import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from hushbid.cli import COMMANDS, DEBUG
from hushbid.common.numbers import NBSP, printable
from hushbid.errors import HushbidError

if TYPE_CHECKING:
    from hushbid.record import Record

_WIDTH = 24
_STREAM = "-"
CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 110}


class Number(click.FloatRange):
    """A number, finite unless said otherwise, and perhaps within limits."""

    name = "number"

    def __init__(self, *limits: Any, finite: bool = True, **more: Any) -> None:
        super().__init__(*limits, **more)
        self._finite = finite

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        found = super().convert(value, param, ctx)
        if self._finite and not math.isfinite(found):
            self.fail(f"must be finite, got {value}.", param, ctx)
        return found


class Whole(click.IntRange):
    """A whole number, perhaps within limits."""

    name = "whole number"


COUNT = Whole(1, 1_000_000_000)
"""So many people, or so often."""


def command(
    name: str, *, results: bool = True, group: click.Group | None = None
) -> Callable[[Callable[..., Any]], click.Command]:
    """A command with ``--debug`` and, if it prints results, ``--json`` (the parameter ``as_json``).

    With ``group`` it becomes a command inside that one, described by its own docstring.
    """

    def make(function: Callable[..., Any]) -> click.Command:
        if group is not None:
            made = group.command(name, context_settings=CONTEXT)(function)
        else:
            made = click.command(name, context_settings=CONTEXT, short_help=COMMANDS.get(name))(function)
        if results:
            made.params.append(click.Option(["--json", "as_json"], is_flag=True, help="Print the result as JSON."))
        made.params.append(
            click.Option(
                ["--debug"], is_flag=True, expose_value=False, callback=_debug, help="Show the traceback of an error."
            )
        )
        return made

    return make


def command_group(name: str) -> Callable[[Callable[..., Any]], click.Group]:
    """A command that consists of others; see ``group`` above."""
    return click.group(name, context_settings=CONTEXT, short_help=COMMANDS[name])


def _debug(ctx: click.Context, option: click.Parameter, value: bool) -> None:
    if value:
        ctx.meta[DEBUG] = True


class OneFile(click.Path):
    """A path to a file that cannot be a stream; ours, not click's, is the sentence about a missing one."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if str(value) == _STREAM:
            self.fail("must be a file, not - for a stream.", param, ctx)
        if not Path(str(value)).name:
            self.fail(f"must be the name of a file, got {str(value)!r}.", param, ctx)
        return super().convert(value, param, ctx)


def read_bounds(ctx: click.Context, option: click.Parameter | None, value: str | None) -> tuple[float, float] | None:
    """Return two numbers with a comma between them, the smaller first; None if there are none."""
    from hushbid.common.arrays import as_bounds
    from hushbid.errors import InputError

    if value is None:
        return None
    try:
        low, high = (float(part) for part in value.split(","))
    except ValueError:
        low = high = math.nan
    try:
        return as_bounds((low, high))
    except InputError as problem:
        allowed = "must be two numbers, the smaller first, such as 0,10"
        if low < high:
            allowed = str(problem).removeprefix("bounds ").partition(", got ")[0]
        raise click.BadParameter(f"{allowed}; got {value!r}.", ctx, option) from None


LEDGER = click.option(
    "--ledger",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Folder of the release ledger, which keeps every estimate drawn.  [default: HUSHBID_LEDGER, or the user's]",
)


@contextmanager
def announced_ledger(given: Path | None) -> Iterator[None]:
    """Say on standard error that a release ledger was created: an estimate drawn elsewhere is not in it."""
    from hushbid.disclosure.ledger.store import is_ledger, ledger_folder

    try:
        folder = ledger_folder(given)
        before = is_ledger(folder)
    except HushbidError:  # refused where something is drawn
        before = True
    try:
        yield
    finally:
        if not before and is_ledger(folder):
            click.echo(
                f"Created a release ledger: {folder}. Keep it, and treat it as confidential as the data: without it the"
                " same question could be drawn again.",
                err=True,
            )


def is_stated(name: str) -> bool:
    """Whether a parameter of the command that runs was given, and is not its default."""
    return click.get_current_context().get_parameter_source(name) is not ParameterSource.DEFAULT


def read_record(path: Path) -> "Record":
    """A record from a file, or from standard input."""
    from hushbid.common.documents import parsed
    from hushbid.record import Record

    return Record.read(path) if str(path) != _STREAM else Record.from_dict(parsed(sys.stdin.buffer.read()))


def tell(result: Mapping[str, Any], text: str, *, as_json: bool, err: bool = False) -> None:
    """Print a result: one JSON object for programs, or the text for people (``err``: standard output is taken)."""
    if as_json:
        from hushbid.common.documents import plain

        click.echo(json.dumps(plain(result), indent=2, allow_nan=False))
    else:
        click.echo(printable(text).replace(NBSP, " "), err=err)  # a terminal breaks lines anywhere


class Steps:
    """A progress bar over the steps of a command, on a terminal only and gone at the end.

    ``with Steps(3) as step: step("reading") ...``
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._done = -1
        self._label = ""
        self._shown = sys.stderr.isatty()

    def __enter__(self) -> "Steps":
        return self

    def __call__(self, label: str) -> None:
        """Begin the next step."""
        self._done += 1
        self._label = label
        self._show(0.0)

    def part(self, done: int, of: int) -> None:
        """Say how much of the current step is done."""
        self._show(done / max(of, 1))

    def _show(self, part: float) -> None:
        if self._shown:
            filled = min(round(_WIDTH * (self._done + min(part, 1.0)) / self._count), _WIDTH)
            bar = "━" * filled + "─" * (_WIDTH - filled)
            click.echo(f"\r\033[2K  {bar}  {self._label} ...", err=True, nl=False)

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown and self._done >= 0:
            click.echo("\r\033[2K", err=True, nl=False)
