"""Errors in the words of the command line: options, and the fields of a campaign file, never Python's arguments.

Whatever is raised below is written for Python, where ``force=True`` and ``max_privacy_loss`` are arguments. Which of
these names are options the command itself knows: its parameters have the same names, so nothing is listed here but the
exceptions. A name that is not an option of the command is a field of a campaign file, or stays as it is.
"""

import re

import click

from hushbid.errors import HushbidError

BY_FILES = "hushbid.by_files"
"""Set in a context's ``meta`` where files state the market: then names without a value are the files' fields."""

_FIELDS_OF_FILES = frozenset({"accept_infinite_loss", "accept_pilot_overlap", "each", "max_correlation", "user_weight"})
"""What a message may advise with a value, and a campaign file states."""

_ASSIGNED = re.compile(r"(?<![\w/.])([a-z_]+)=(True|'[\w-]+'|\d[\d.]*\d|\d)(?![\w/=])")


def in_options(problem: HushbidError, command: click.Command, *, by_files: bool = False) -> str:
    """What a problem says, in the words of a command."""
    options = {one.name: max(one.opts, key=len) for one in command.params if isinstance(one, click.Option) and one.name}
    told = _ASSIGNED.sub(lambda found: _assigned(found, options), str(problem))
    if by_files or "." in (problem.field or ""):
        return told
    field = problem.field
    if field in options and options[field] not in told:
        told = re.sub(rf"(?<![\w-]){field} (?=must|is|cannot|needs)", f"{options[field]} ", told, count=1)
    # a name of several words is never English, so it can be told from the words around it
    several = "|".join(sorted((name for name in options if "_" in name), key=len, reverse=True))
    if several:
        alone = rf"(?<![\w./'\"=-])({several})(?![\w/'\"=]|\.\w)"
        told = re.sub(alone, lambda found: options[found[1]], told)
    return told


def _assigned(found: re.Match[str], options: dict[str, str]) -> str:
    """An argument with its value as an option, or as a line of a campaign file."""
    name, value = found[1], found[2]
    if name in options:
        return options[name] if value == "True" else f"{options[name]} {value.strip(chr(39))}"
    if name in _FIELDS_OF_FILES:
        return f"{name} = {value.lower() if value == 'True' else value}"
    return found[0]
