"""What the pages say in one language: sentences where they are said, and those that follow from a code.

Sentences of Python code are plain text with values in braces. Everything shown is escaped, but for a value that is
markup: a time.
"""

from dataclasses import dataclass
from functools import cache

from markupsafe import Markup, escape

from hushbid import languages as catalogues
from hushbid.languages import ENGLISH, Forms, Language
from hushbid.report.rendering import shown
from hushbid.server.pages.codes import CODES

_LONGEST_HEADER = 500


@dataclass(frozen=True, slots=True)
class Texts:
    """The wording in one language."""

    spoken: Language

    @property
    def language(self) -> str:
        """As in the attribute ``lang``."""
        return self.spoken.code

    @property
    def name(self) -> str:
        """What the language calls itself."""
        return self.spoken.name

    @property
    def decimal(self) -> str:
        """The sign before decimals."""
        return self.spoken.decimal

    @property
    def group(self) -> str:
        """The sign between thousands."""
        return self.spoken.group

    def __call__(self, message: str, /, **values: object) -> str:
        """Say a sentence with its values; it is markup if one of them is."""
        if any(isinstance(value, Markup) for value in values.values()):
            return escape(self.spoken(message)).format_map({at: shown(value) for at, value in values.items()})
        return self.spoken(message, **values)

    def plural(self, one: str, many: str, n: int, /, **values: object) -> str:
        """Say the sentence for this number."""
        return self.spoken.plural(one, many, n, **values)

    def within(self, context: str, message: str, /, **values: object) -> str:
        """Say a text that has another translation elsewhere."""
        return self.spoken.within(context, message, **values)

    def coded(self, code: str, n: int = 1, /, **values: object) -> str:
        """Say the sentence of a code; where it has forms for one and many, that for ``n``."""
        told = CODES[code]
        if isinstance(told, Forms):
            return self.plural(*told, n, **values)
        return self(told, **values) if isinstance(told, str) else self.within(*told, **values)

    def __contains__(self, code: object) -> bool:
        return code in CODES


@cache
def languages() -> dict[str, Texts]:
    """Every language that there is a catalogue for, English first."""
    return {code: Texts(language) for code, language in catalogues.languages().items()}


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
    return next((known[name] for quality, _, name in sorted(asked) if name in known and quality < 0), known[ENGLISH])


def _quality(text: str) -> float:
    name, _, value = text.strip().partition("=")
    try:
        return min(max(float(value), 0.0), 1.0) if name.strip() == "q" else 1.0
    except ValueError:
        return 0.0
