"""A language: its sentences with values, singular and plural, and its signs in numbers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from gettext import NullTranslations
from importlib.resources import files
from typing import NamedTuple

from hushbid.errors import InputError
from hushbid.languages.catalogue import read_catalogue

ENGLISH = "en"


@dataclass(frozen=True)
class Language:
    """What is said in one language."""

    code: str
    """As in the attribute ``lang``."""

    catalogue: NullTranslations
    """The translations of English sentences; none for English."""

    def __call__(self, message: str, /, **values: object) -> str:
        """Say a sentence with its values."""
        return _filled(self.catalogue.gettext(message), values)

    def plural(self, one: str, many: str, n: int, /, **values: object) -> str:
        """Say the sentence for this number; the number itself is a value like any other."""
        return _filled(self.catalogue.ngettext(one, many, n), values)

    def within(self, context: str, message: str, /, **values: object) -> str:
        """Say a text that has another translation elsewhere."""
        return _filled(self.catalogue.pgettext(context, message), values)

    @cached_property
    def name(self) -> str:
        """What the language calls itself."""
        return self.within("the name of this language", "English")

    @cached_property
    def decimal(self) -> str:
        """The sign before decimals."""
        return self.within("the sign before decimals", ".")

    @cached_property
    def group(self) -> str:
        """The sign between thousands."""
        return self.within("the sign between thousands", ",")

    @cached_property
    def capital_nouns(self) -> bool:
        """Whether nouns begin with a capital letter inside a sentence, too."""
        return self.within("whether nouns are capital inside a sentence: yes or no", "no") == "yes"

    @cached_property
    def _signs(self) -> Mapping[int, str]:
        return {ord(","): self.group, ord("."): self.decimal}

    def number(self, text: str) -> str:
        """Write a number that is written in English."""
        return text.translate(self._signs)


def _filled(message: str, values: Mapping[str, object]) -> str:
    """A sentence with its values; one without may be a name that holds braces."""
    return message.format_map(values) if values else message


@dataclass(frozen=True)
class Sentence:
    """A sentence of ours and its values, to be said when the language is known; as text it is English."""

    message: str
    values: Mapping[str, object] = field(default_factory=dict)
    many: str | None = None
    """What is said of more than one, where that differs."""

    n: int = 1

    def said(self, language: Language, write: Callable[[object], object] = lambda value: value) -> str:
        """Say it in a language, in which ``write`` writes its values."""
        values = {name: write(value) for name, value in self.values.items()}
        if self.many is None:
            return language(self.message, **values)
        return language.plural(self.message, self.many, self.n, **values)

    def __str__(self) -> str:
        return self.said(Language(ENGLISH, NullTranslations()))


def noted(message: str) -> str:
    """Mark a sentence that is said elsewhere, so that catalogues have it."""
    return message


class Within(NamedTuple):
    """A text that has another translation in another context."""

    context: str
    message: str


class Forms(NamedTuple):
    """What is said of one, and of many."""

    one: str
    many: str


Wording = str | Within | Forms
"""A sentence that is said elsewhere, as it is noted."""


def noted_plural(one: str, many: str, n: int, /, **values: object) -> Sentence:
    """Mark a sentence about one or many that is said elsewhere."""
    return Sentence(one, values, many, n)


@cache
def language_codes() -> tuple[str, ...]:
    """The code of every language: English, then those that there is a catalogue for."""
    names = sorted(file.name for file in files("hushbid.languages").iterdir())
    return ENGLISH, *(name.removesuffix(".po") for name in names if name.endswith(".po"))


@cache
def languages() -> dict[str, Language]:
    """Every language by its code, English first."""
    found = {ENGLISH: Language(ENGLISH, NullTranslations())}
    for code in language_codes()[1:]:
        text = files("hushbid.languages").joinpath(f"{code}.po").read_text(encoding="utf-8")
        found[code] = Language(code, read_catalogue(text, f"{code}.po"))
    return found


def language(code: str) -> Language:
    """The language of this code; others are refused."""
    known = languages()
    if code not in known:
        raise InputError(f"language must be one of {', '.join(known)}, got {code!r}.", field="language")
    return known[code]
