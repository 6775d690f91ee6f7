"""What users see of the package, as text: the names in ``hushbid.__all__``, and the help of every command."""

import dataclasses
import inspect
from collections.abc import Iterator
from typing import Any

import click

import hushbid as package
from hushbid.cli import main
from tests.golden.runs import fixed, hushbid


def public_names() -> str:
    """A line for each public name, with its parameters, and for each public field of a dataclass."""
    return "\n".join(line for name in sorted(package.__all__) for line in _lines(name, getattr(package, name))) + "\n"


def _lines(name: str, thing: Any) -> Iterator[str]:
    if inspect.ismodule(thing):
        yield f"module {name}"
    elif inspect.isclass(thing) and issubclass(thing, Exception):
        yield f"class {name}({thing.__mro__[1].__name__})"
    elif dataclasses.is_dataclass(thing):
        yield f"class {name}"
        for field in dataclasses.fields(thing):
            if not field.name.startswith("_"):
                yield f"    {name}.{field.name}{_default(field)}"
    elif callable(thing):
        yield f"{'class' if inspect.isclass(thing) else 'def'} {name}{_signature(thing)}"
    else:
        yield f"{name}: {type(thing).__name__}"


def _default(field: "dataclasses.Field[Any]") -> str:
    return "" if field.default is dataclasses.MISSING else f" = {field.default!r}"


def _signature(thing: Any) -> str:
    """Names, kinds and defaults; how a type is written may change with where it lives."""
    found = inspect.signature(thing)
    bare = [one.replace(annotation=inspect.Parameter.empty) for one in found.parameters.values()]
    return str(inspect.Signature(bare))


def help_texts() -> str:
    """What ``--help`` prints, for every command and the commands within."""
    with fixed():
        return "\n".join(_help(main, []))


def _help(command: click.Command, path: list[str]) -> Iterator[str]:
    told = hushbid(*path, "--help")
    yield f"$ {' '.join(['hushbid', *path, '--help'])}\n{told.stdout}"
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            within = command.get_command(context, name)
            assert within is not None
            yield from _help(within, [*path, name])
