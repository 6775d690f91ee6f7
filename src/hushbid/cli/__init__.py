"""The command line ``hushbid``: one file per command, loaded only when that command runs.

To add a command, write ``hushbid/cli/NAME.py`` with a click command called ``command`` and list it in ``COMMANDS``.
Whatever Hushbid refuses on purpose ends in exit status 2 and one sentence, never in a traceback.
"""

from importlib import import_module
from typing import Any

import click

from hushbid import __version__
from hushbid.errors import HushbidError

COMMANDS = {
    "demo": "Price a synthetic population and show what was bought.",
}


class _Refused(click.ClickException):
    exit_code = 2


class _LateGroup(click.Group):
    """A group that knows its commands by name and imports one only to run it; ``--help`` imports none."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = import_module(f"hushbid.cli.{cmd_name.replace('-', '_')}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except HushbidError as error:
            raise _Refused(str(error)) from error


@click.group(cls=_LateGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="hushbid %(version)s")
def main() -> None:
    """Buy data from people who each name their own price for privacy."""
