"""What an ethics board wants a person to be told before she agrees, and what somebody might want to find out about her.

`Consent` is stated by the analyst: who is responsible, whom to ask, what for, how long what is kept, and a text of her
own in each language of the pages. Every part may be left empty; the pages show what is there.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, ClassVar

from pydantic import ConfigDict

from hushbid.errors import InputError
from hushbid.languages import language_codes
from hushbid.server.model.checks import checked_text

LONGEST_CONSENT = {"controller": 500, "contact": 500, "purpose": 2_000, "storage": 2_000}
LONGEST_OWN_TEXT = 20_000
LANGUAGES = language_codes()
"""The languages in which an analyst can word a text of her own: those of the pages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Consent:
    """What people are told beside what the server itself promises."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    controller: str = ""
    """Who is responsible for people's data: a name and an address."""

    contact: str = ""
    """Whom people can ask or complain to."""

    purpose: str = ""
    """What the estimate is for."""

    storage: str = ""
    """How long what is kept outside this server, such as proofs of payment."""

    texts: Mapping[str, str] = field(default_factory=dict)
    """A text of the analyst's own by language; where a language has none, another one's is shown."""

    def __post_init__(self) -> None:
        for name, most in LONGEST_CONSENT.items():
            told = f"consent.{name}"
            object.__setattr__(self, name, checked_text(getattr(self, name), told, longest=most))
        if not isinstance(self.texts, Mapping):
            raise InputError(
                f"consent.texts must be texts by language, {' or '.join(LANGUAGES)}.", field="consent.texts"
            )
        for language in self.texts:
            if language not in LANGUAGES:
                told = f"consent.texts must be in {' or '.join(LANGUAGES)}, got {str(language)[:20]!r}."
                raise InputError(told, field="consent.texts")
        checked = {
            language: checked_text(text, f"consent.texts.{language}", longest=LONGEST_OWN_TEXT)
            for language, text in sorted(self.texts.items())
        }
        object.__setattr__(self, "texts", {language: text for language, text in checked.items() if text})

    def text_in(self, language: str) -> tuple[str, str] | None:
        """The analyst's own text for readers of that language and the language it is in; None if there is none."""
        for found in (language, *LANGUAGES):
            if found in self.texts:
                return self.texts[found], found
        return None

    def to_dict(self) -> dict[str, Any]:
        """What is stated of it."""
        return {name: value for name, value in asdict(self).items() if value}


NOTHING_TOLD = Consent()
"""Where the analyst says nothing of her own."""


def consent_of(given: object) -> Consent:
    """The consent in a request, or in stored settings."""
    if given is None or isinstance(given, Consent):
        return given or NOTHING_TOLD
    known = {one.name for one in fields(Consent)}
    if not isinstance(given, Mapping) or not set(given) <= known:
        raise InputError(f"consent must have no fields but {', '.join(sorted(known))}.", field="consent")
    return Consent(**given)
