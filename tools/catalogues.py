"""Bring the catalogues of translations up to date with the sentences of the code: ``make catalogues``.

What is new has an empty translation, what changed is marked fuzzy, and tests fail until both are mended by hand; what
nothing says any more is removed. Needs Babel, which nothing else does.
"""

import tomllib
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_file
from babel.messages.pofile import read_po, write_po

SOURCE = Path(__file__).resolve().parents[1] / "src" / "hushbid"
FOLDER = SOURCE / "languages"
_CONTEXT: tuple[object, ...] = ((1, "c"), 2)
_PYTHON = {
    **dict.fromkeys(("noted", "say", "t", "texts"), None),
    **dict.fromkeys(("plural", "noted_plural", "say_plural"), (1, 2)),
    **dict.fromkeys(("within", "say_within"), _CONTEXT),
}
_FLEETING = (b'"POT-', b'"PO-', b'"Generated-By', b'"Report-', b'"Last-', b'"Project-', b'"Language-Team')
_SILENT = ("client",)
"""Packages that say nothing in any other language."""

_TEMPLATES = {"_": None, "gettext": None, "ngettext": (1, 2), "pgettext": _CONTEXT}
_JINJA = {"trimmed": "true", "newstyle_gettext": "true", "silent": "false"}


def extracted() -> Catalog:
    """Every sentence of the code, the templates and the table of codes, in the order of files."""
    found = Catalog(project="Hushbid", charset="utf-8")
    for path in sorted(SOURCE.rglob("*")):
        if path.suffix == ".py" and path.parent.name not in _SILENT:
            rows = extract_from_file("python", path, keywords=_PYTHON)
        elif path.name == "codes.toml":
            rows = coded(path)
        elif path.suffix == ".html":
            rows = extract_from_file("jinja2.ext:babel_extract", path, keywords=_TEMPLATES, options=_JINJA)
        else:
            continue
        for line, message, _, context in rows:
            found.add(message, context=context, locations=[(path.relative_to(SOURCE).as_posix(), line)])
    return found


def coded(path: Path) -> Iterator[tuple[int, str | tuple[str, str], list[str], str | None]]:
    """The sentences of a table of codes, as Babel extracts them from code."""
    for told in tomllib.loads(path.read_text(encoding="utf-8")).values():
        named = told if isinstance(told, dict) else {"text": told}
        yield 1, named.get("text") or (named["one"], named["many"]), [], named.get("context")


def written(catalogue: Catalog) -> bytes:
    """A catalogue as text: without line numbers, dates and versions, which change for no reason of a translator's."""
    content = BytesIO()
    write_po(content, catalogue, width=120, include_lineno=False, ignore_obsolete=True)
    return b"".join(line for line in content.getvalue().splitlines(True) if not line.startswith(_FLEETING))


def updated(path: Path, messages: Catalog) -> bytes:
    """The text of a catalogue after an update."""
    with path.open("rb") as file:
        catalogue = read_po(file, locale=path.stem)
    catalogue.update(messages, update_creation_date=False)
    return written(catalogue)


def main() -> None:
    """Update every catalogue."""
    messages = extracted()
    for path in sorted(FOLDER.glob("*.po")):
        path.write_bytes(updated(path, messages))
        print(f"catalogues: {path.name}, {len(messages)} sentences")


if __name__ == "__main__":
    main()
