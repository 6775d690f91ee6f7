"""All wording of the pages, one file per language in ``texts/``; English is the one that is always there.

A text may name values in braces, ``{amount}``, which are given as texts already written in that language. Texts are
plain: markup stands in templates only, and everything shown is escaped, but for a value that is markup: a time.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from markupsafe import Markup, escape

from hushbid.report.rendering import shown

DEFAULT = "en"
_LONGEST_HEADER = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """The wording in one language."""

    language: str
    """As in the attribute ``lang``."""

    texts: Mapping[str, str]
    """By dotted name."""

    def __call__(self, name: str, /, **values: object) -> str:
        """A text with its values filled in; markup if one of them is."""
        if any(isinstance(value, Markup) for value in values.values()):
            return escape(self.texts[name]).format_map({at: shown(value) for at, value in values.items()})
        return self.texts[name].format_map(values)

    def __contains__(self, name: object) -> bool:
        return name in self.texts


@cache
def languages() -> dict[str, Texts]:
    """Every language there is a file for, English first."""
    folder = files("hushbid.server.pages") / "texts"
    found = {}
    for file in sorted(folder.iterdir(), key=lambda file: (file.name != f"{DEFAULT}.toml", file.name)):
        if file.name.endswith(".toml"):
            language = file.name.removesuffix(".toml")
            found[language] = Texts(
                language=language, texts=dict(_flat(tomllib.loads(file.read_text(encoding="utf-8"))))
            )
    return found


def negotiated(wanted: str, *, chosen: str | None = None) -> Texts:
    """The language somebody chose, or the first that her browser asks for and we have.

    >>> negotiated("fr-CH, de;q=0.8, en;q=0.9").language, negotiated("", chosen="de").language
    ('en', 'de')
    """
    known = languages()
    if chosen in known:
        return known[chosen]
    asked = []
    for place, part in enumerate(wanted[:_LONGEST_HEADER].split(",")):
        tag, _, rest = part.strip().partition(";")
        asked.append((-_quality(rest), place, tag.partition("-")[0].strip().lower()))
    return next((known[name] for quality, _, name in sorted(asked) if name in known and quality < 0), known[DEFAULT])


def _quality(text: str) -> float:
    name, _, value = text.strip().partition("=")
    try:
        return min(max(float(value), 0.0), 1.0) if name.strip() == "q" else 1.0
    except ValueError:
        return 0.0


def _flat(table: Mapping[str, Any], before: str = "") -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for name, value in table.items():
        if isinstance(value, Mapping):
            found += _flat(value, f"{before}{name}.")
        else:
            found.append((f"{before}{name}", str(value).strip()))
    return found
