"""``hushbid users``: who may log in to a server."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hushbid.cli.common import command as make_command
from hushbid.cli.common import command_group, tell
from hushbid.cli.installation import asked_password, installation, new_password, refuse_nowhere

if TYPE_CHECKING:
    from hushbid.server.admin import Administration


@command_group("users")
def command() -> None:
    """Say who may log in to a server.

    Analysts do everything, auditors only read. Works beside a running server. A password is asked for, or taken from
    the first line of what is piped in, never from the command line.
    """


_name = click.argument("name")
_label = click.option("--label", default="default", show_default=True, help="What the token is for.")


@make_command("add", group=command)
@_name
@click.option("--role", type=click.Choice(["analyst", "auditor"]), default="analyst", show_default=True)
@click.option("--generate", is_flag=True, help="Make up a password and show it once.")
@installation
def add(name: str, role: Any, generate: bool, home: Path, database: str | None, as_json: bool) -> None:
    """Let somebody in."""
    password = new_password() if generate else asked_password()
    with _admin(home, database, may_be_new=True) as admin:
        user = admin.create_user(name, role, password)
    shown = {"password": password} if generate else {}
    text = f"{user.name} may log in as {role}."
    tell({"name": user.name, "role": role, **shown}, f"{text}\n{password}" if generate else text, as_json=as_json)


@make_command("list", group=command)
@installation
def list_users(home: Path, database: str | None, as_json: bool) -> None:
    """List everybody who may log in."""
    with _admin(home, database) as admin:
        users = [{"name": user.name, "role": user.role} for user in admin.users()]
    text = "\n".join(f"{user['role']:<8} {user['name']}" for user in users) or "Nobody may log in yet."
    tell({"users": users}, text, as_json=as_json)


@make_command("password", group=command)
@_name
@click.option("--generate", is_flag=True, help="Make up a password and show it once.")
@installation
def password(name: str, generate: bool, home: Path, database: str | None, as_json: bool) -> None:
    """Give somebody another password, which ends her sessions."""
    secret = new_password() if generate else asked_password()
    with _admin(home, database) as admin:
        admin.set_password(name, secret)
    shown = {"password": secret} if generate else {}
    text = f"{name} has another password."
    tell({"name": name, **shown}, f"{text}\n{secret}" if generate else text, as_json=as_json)


@make_command("remove", group=command)
@_name
@installation
def remove(name: str, home: Path, database: str | None, as_json: bool) -> None:
    """Let somebody in no more: ends her sessions and tokens."""
    with _admin(home, database) as admin:
        admin.remove_user(name)
    tell({"removed": name}, f"{name} may log in no more.", as_json=as_json)


@make_command("token", group=command)
@_name
@_label
@installation
def token(name: str, label: str, home: Path, database: str | None, as_json: bool) -> None:
    """Print an API token for somebody's programs, once; one with the same label is worth nothing from now on."""
    with _admin(home, database) as admin:
        secret = admin.create_api_token(name, label)
    tell({"name": name, "label": label, "token": secret}, secret, as_json=as_json)


@make_command("revoke", group=command)
@_name
@_label
@installation
def revoke(name: str, label: str, home: Path, database: str | None, as_json: bool) -> None:
    """Make an API token worth nothing."""
    with _admin(home, database) as admin:
        admin.revoke_api_token(name, label)
    tell({"name": name, "label": label}, f"The token {label!r} of {name} is worth nothing any more.", as_json=as_json)


def _admin(home: Path, database: str | None, *, may_be_new: bool = False) -> "Administration":
    from hushbid.server.admin import Administration

    if not may_be_new:
        refuse_nowhere(home)
    return Administration.at(home, database=database)
