"""``hushbid keys``: the keys with which a server signs receipts."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hushbid.cli.common import command as make_command
from hushbid.cli.common import command_group, tell
from hushbid.cli.installation import in_folder

if TYPE_CHECKING:
    from hushbid.receipts.key_folder import KeyFolder
    from hushbid.receipts.keys import KeyList


@command_group("keys")
def command() -> None:
    """Make, list and replace the keys with which a server signs.

    The secret half stays in the server's folder. Publish the fingerprint where participants find it without asking the
    server, on paper or on your own site: with it they can tell your receipts from anybody else's.
    """


@make_command("create", group=command)
@in_folder
def create(home: Path, as_json: bool) -> None:
    """Make a server's first key; the server does so itself when it starts without one."""
    keys = _folder(home).create()
    text = f"Made key 1. Its fingerprint, for participants to compare with:\n{keys.newest.fingerprint}"
    tell(_facts(keys), text, as_json=as_json)


@make_command("list", group=command)
@in_folder
def list_keys(home: Path, as_json: bool) -> None:
    """List all keys there have been; --json prints the list that `verify --keys` takes."""
    keys = _folder(home).listed()
    lines = [f"{key.number:>3}  {key.fingerprint}  {key.created_at[:10]}  {_state(keys, key)}" for key in keys.keys]
    tell(keys.to_dict(), "\n".join(lines), as_json=as_json)


@make_command("fingerprint", group=command)
@in_folder
def fingerprint(home: Path, as_json: bool) -> None:
    """Print the fingerprint of the key in use."""
    keys = _folder(home).listed()
    tell(_facts(keys), keys.newest.fingerprint, as_json=as_json)


@make_command("rotate", group=command)
@click.option("--leaked", is_flag=True, help="The key in use may be in other hands, or is lost: withdraw it.")
@in_folder
def rotate(home: Path, leaked: bool, as_json: bool) -> None:
    """Replace the key in use; a running server notices.

    The old key endorses the new one with its last signature, so whoever trusted the old one can trust the new. With
    --leaked it does not, and is withdrawn: then participants must be told the new fingerprint by another way.
    """
    keys = _folder(home).rotate(leaked=leaked)
    ending = "withdrawn: publish the new fingerprint" if leaked else "retired and has endorsed its successor"
    new = keys.newest
    text = f"Key {new.number} is in use, key {new.number - 1} is {ending}.\n{new.fingerprint}"
    tell(_facts(keys), text, as_json=as_json)


def _folder(home: Path) -> "KeyFolder":
    from hushbid.receipts.key_folder import KeyFolder

    return KeyFolder(home / "keys" / "signing")


def _facts(keys: "KeyList") -> dict[str, Any]:
    newest = keys.newest
    return {"number": newest.number, "fingerprint": newest.fingerprint, "public_key": newest.public_key.hex}


def _state(keys: "KeyList", key: Any) -> str:
    if key.withdrawn:
        return "withdrawn"
    return "in use" if key is keys.newest else "retired"
