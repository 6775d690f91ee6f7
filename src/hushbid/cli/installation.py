"""Options that say which server is meant, and its passwords."""

import secrets
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from hushbid.errors import InputError

HOME = "hushbid-server"
_PASSWORD_BYTES = 15


in_folder = click.option(
    "--home",
    type=click.Path(file_okay=False, path_type=Path),
    default=HOME,
    show_default=True,
    help="The server's folder.",
)


def installation(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add options that say which installation is meant."""
    function = click.option(
        "--database",
        envvar="HUSHBID_DATABASE",
        metavar="URL",
        help="PostgreSQL by its address, postgresql://USER@HOST/NAME, also from HUSHBID_DATABASE.  [default: SQLite]",
    )(function)
    return in_folder(function)


def refuse_nowhere(home: Path) -> None:
    """Refuse to look for something in a folder that holds no server; one would be made by looking."""
    if not home.is_dir() or not any(home.iterdir()):
        raise InputError(f"{home} holds no server: --home names its folder, and hushbid serve makes one.")


def new_password() -> str:
    """Return a password that nobody chose: 120 random bits."""
    return secrets.token_urlsafe(_PASSWORD_BYTES)


def asked_password() -> str:
    """Return a password from the keyboard, or the first line of what is piped in."""
    if sys.stdin.isatty():
        found: str = click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
        return found
    return sys.stdin.readline().rstrip("\r\n")
