"""Write the generated tables of the reference again: ``python -m tools.reference_tables``, from the root.

Options come from the commands, routes from the server's registry and its downloads, refusals from the table of
statuses, fields from the schema of campaigns and combinations from the table of refusals. Tests compare each page with
its source. A table follows its mark, such as ``<!-- options of run -->``.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from hushbid.cli import COMMANDS, main
from hushbid.cli.options import COLUMNS, MARKET, OPTIONS
from hushbid.server.http.app import all_routes
from hushbid.server.http.auth import PREFIX
from hushbid.server.http.problems import kinds
from tools import campaign_fields, combinations

REFERENCE = Path(__file__).resolve().parents[1] / "docs" / "reference"
COMMAND_LINE, HTTP_API = REFERENCE / "command-line.md", REFERENCE / "http-api.md"
READERS = {"participants": ("secret", "link"), "staff": ("analyst", "staff"), "everybody": ("anybody",)}
ENGINE = ("--engine", "--spark-master", "--on-bad-rows", "--check-ids")
SHARED = ("--json", "--debug", "--help")
GROUPS: dict[str, tuple[str, ...]] = {
    "market": tuple(OPTIONS[name] for name in MARKET),
    "columns": tuple(OPTIONS[name] for name in COLUMNS),
    "engine": ENGINE,
}
"""Options that several commands share, each with a table of its own."""

_MARKED = re.compile(r"(<!-- (options|routes|commands|refusals)(?: (?:of|for) ([\w -]+?))? -->\n\n)(?:\|.*\n)*\n*")


def filled(text: str) -> str:
    """Return a page with the present tables after their marks."""
    tables: dict[str, Callable[[str], Iterator[str]]] = {
        "options": options,
        "routes": routes,
        "commands": lambda _: commands(),
        "refusals": lambda _: refusals(),
    }
    page = _MARKED.sub(lambda found: found[1] + "".join(f"{row}\n" for row in tables[found[2]](found[3])) + "\n", text)
    return page.rstrip("\n") + "\n"


def commands() -> Iterator[str]:
    """Yield the table of all commands, each with a link to its section."""
    yield from ("| command | what it does |", "|---|---|")
    for name, words in COMMANDS.items():
        yield f"| [`{name}`](#hushbid-{name}) | {words} |"


def options(of: str) -> Iterator[str]:
    """Yield the table of a command's own options, or of a group of shared ones."""
    if of in GROUPS:
        own = [one for one in options_of("price") if one.opts[0] in GROUPS[of]]
    else:
        own = own_options(of)
    yield from ("| option | meaning |", "|---|---|")
    for one in own:
        names, words = one.get_help_record(_context(of if of not in GROUPS else "price")) or ("", "")
        yield f"| {_names(names)} | {_cell(words)} |"


def own_options(name: str) -> list[click.Option]:
    """Return the options of a command without those of the groups that it shares."""
    hidden = {option for group in shared_groups(name) for option in GROUPS[group]} | set(SHARED)
    return [one for one in options_of(name) if one.opts[0] not in hidden]


def shared_groups(name: str) -> list[str]:
    """Return the groups of options that a command has whole, or but for one, in the words of their tables."""
    own = {one.opts[0]: one.help for one in options_of(name)}
    usual = {one.opts[0]: one.help for one in options_of("price")}

    def alike(option: str) -> bool:
        return option in own and _before_default(own[option]) == _before_default(usual[option])

    return [group for group, options in GROUPS.items() if sum(not alike(option) for option in options) <= 1]


def options_of(name: str) -> list[click.Option]:
    """Return all options of a command, of ``users add`` too."""
    return [one for one in command_of(name).params if isinstance(one, click.Option)]


def command_of(name: str) -> click.Command:
    """Return a command by its words."""
    found: click.Command | None = main
    for word in name.split():
        assert isinstance(found, click.Group)
        found = found.get_command(click.Context(found), word)
    assert found is not None, name
    return found


def routes(readers: str) -> Iterator[str]:
    """Yield the table of the routes that some callers may use: what each does, in its docstring's first sentences."""
    yield from ("| request | what it does |", "|---|---|")
    for route in all_routes():
        if route.by in READERS[readers]:
            [method] = sorted(route.methods or ())
            words = " ".join((route.description or route.summary or "").split("\n\n")[0].split())
            yield f"| `{method} {route.path.removeprefix(PREFIX)}` | {_cell(words)} |"


def refusals() -> Iterator[str]:
    """Yield the table of the kinds of problems, with their statuses."""
    yield from ("| `type`, after `urn:hushbid:problem:` | status |", "|---|---|")
    for kind, statuses in kinds().items():
        yield f"| `{kind}` | {', '.join(map(str, statuses)) or 'any other'} |"


def _context(name: str) -> click.Context:
    return click.Context(command_of(name), info_name=name, max_content_width=10_000, terminal_width=10_000)


def _names(record: str) -> str:
    """Return the spellings of an option as code, and in brackets what may be chosen."""
    record, _, chosen = record.partition(" [")
    choices = f" ({chosen.rstrip(']').replace('|', ', ')})" if chosen else ""
    return " / ".join(f"`{one}`" for one in record.split(" / ")) + choices


def _before_default(words: str | None) -> str:
    return (words or "").partition("[default")[0].strip()


def _cell(words: str) -> str:
    return " ".join(words.replace("|", "\\|").split())


PAGES: dict[Path, Callable[[str], str]] = {
    COMMAND_LINE: filled,
    HTTP_API: filled,
    campaign_fields.PAGE: campaign_fields.filled,
    combinations.PAGE: combinations.filled,
}


if __name__ == "__main__":
    for page, fill in PAGES.items():
        page.write_text(fill(page.read_text(encoding="utf-8")), encoding="utf-8")
