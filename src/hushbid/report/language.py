"""The language of a report: its sentences, and how it writes numbers.

English sentences stand in the code and are the keys under which ``texts/<language>.toml`` has the others; values stand
in braces. Templates have a copy for each language, in ``templates/<language>``, which asks and shows the same. A page
is built and drawn in one language, inside ``with speaking(language)``; outside of it everything is English. Whatever a
report writes for people comes from here: the writers of `hushbid.wording` and `hushbid.money` have their counterparts,
of the same names. What somebody else wrote stays as it is, and so do messages of errors that are not in the file.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib.resources import files

from hushbid import money as amounts
from hushbid import wording
from hushbid.errors import InputError
from hushbid.money import NO_CURRENCY, Currency
from hushbid.wording import NBSP, Range

ENGLISH = "en"
LANGUAGES = (ENGLISH, "de")
"""What a report can be written in; English first."""

_SPOKEN: ContextVar[str] = ContextVar("language of the report", default=ENGLISH)
_RECOGNISED = 40
_SWAPPED = str.maketrans(",.", ".,")


@contextmanager
def speaking(language: str) -> Iterator[None]:
    """Everything inside is said in this language."""
    if language not in LANGUAGES:
        raise InputError(f"language must be one of {', '.join(LANGUAGES)}, got {language!r}.", field="language")
    before = _SPOKEN.set(language)
    try:
        yield
    finally:
        _SPOKEN.reset(before)


@cache
def sentences(language: str) -> Mapping[str, str]:
    """What English sentences are in another language."""
    text = files("hushbid.report").joinpath("texts", f"{language}.toml").read_text("utf-8")
    return {key: value for key, value in tomllib.loads(text).items() if isinstance(value, str)}


def say(english: str, /, **values: object) -> str:
    """A sentence with its values in the language that is spoken; one that is not known, such as a name, as it is.

    >>> with speaking("de"):
    ...     say("median {median}", median=number(1234.5, 5))
    'Median 1.234,5'
    """
    language = _SPOKEN.get()
    if language == ENGLISH:
        return english.format(**values) if values else english
    told = sentences(language).get(english, english)
    if not values:
        return told
    return told.format(**{name: _Local(one) if type(one) in (int, float) else one for name, one in values.items()})


def retold(text: str) -> str:
    """A sentence of ours that was written down in English, with its values, in the language that is spoken.

    What is no sentence of ours stays as it is.

    >>> with speaking("de"):
    ...     retold("Wave 2: this question was answered from these people's data never before by this account.")[:16]
    'Welle 2: Aus den'
    """
    if _SPOKEN.get() == ENGLISH:
        return text
    if text.endswith(".") and text in sentences(_SPOKEN.get()):
        return say(text)
    for key, told in _patterns(_SPOKEN.get()):
        found = key.fullmatch(text)
        if found:
            return told.format(**{name: _people_again(value) for name, value in found.groupdict().items()})
    return text


def _people_again(value: str) -> str:
    """So many people, where a value is that."""
    found = re.fullmatch(r"([0-9,]+) (person|people)", value)
    return value if found is None else people(int(found[1].replace(",", "")))


@cache
def _patterns(language: str) -> tuple[tuple[re.Pattern[str], str], ...]:
    """Sentences long enough to be recognised whatever their values are."""
    found = []
    for english, told in sentences(language).items():
        pieces = re.split(r"\{(\w+)\}", english)
        if sum(map(len, pieces[::2])) >= _RECOGNISED and not re.search(r"\{\w+:", english):
            parts = (re.escape(one) if at % 2 == 0 else f"(?P<{one}>.+?)" for at, one in enumerate(pieces))
            found.append((re.compile("".join(parts), flags=re.DOTALL), told))
    return tuple(found)


class _Local:
    """A number that is written in the way of the language, whatever the format."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __format__(self, how: str) -> str:
        return _local(format(self.value, how))


def _local(text: str) -> str:
    """A number with the signs that the language has between thousands and before decimals."""
    return text if _SPOKEN.get() == ENGLISH else text.translate(_SWAPPED)


def number(value: float, digits: int = 3) -> str:
    """A number with so many significant digits."""
    return _local(wording.number(value, digits))


def fixed(value: float, decimals: int) -> str:
    """A number with so many decimals."""
    return _local(wording.fixed(value, decimals))


def percent(share: float, digits: int = 2) -> str:
    """A share of one as per cent; never 0 % or 100 % for what is not."""
    text = wording.percent(share, digits)
    return say(text) if text.startswith(("under", "over")) else _local(text)


def level_text(level: float) -> str:
    """A confidence as it was asked for, not rounded."""
    return _local(wording.level_text(level))


def factor_at_most(loss: float) -> str:
    """By how much a privacy loss can change odds, at most."""
    return _local(wording.factor_at_most(loss))


def interval(estimate: float, half_width: float, between: Range | None = None) -> tuple[str, str, str]:
    """Estimate, lower and upper end as texts; the ends are rounded outwards."""
    value, low, high = wording.interval(estimate, half_width, between)
    return _local(value), _local(low), _local(high)


def count(people: int) -> str:
    """A number of people, thousands separated."""
    return _local(wording.count(people))


def people(n: int) -> str:
    """So many people, in words."""
    return say("1 person") if n == 1 else say("{number} people", number=count(n))


def combination(names: Sequence[str], weights: Sequence[float]) -> str:
    """A combination of strata with any signs, as it stands in a sentence."""
    return wording.combination(names, weights, write=number, say=say)


def money(amount: float, currency: Currency | None) -> str:
    """An amount with its currency, which stands where the language has it.

    >>> with speaking("de"):
    ...     money(1234.5, Currency.of("EUR")), money(1234.5, None)
    ('1.234,50\\xa0EUR', '1.234')
    """
    return _with_code(amounts.money(amount, currency), currency)


def money_at_most(amount: float, currency: Currency | None) -> str:
    """An upper bound on an amount."""
    return _with_code(amounts.money_at_most(amount, currency), currency)


def _with_code(text: str, currency: Currency | None) -> str:
    if _SPOKEN.get() == ENGLISH or currency is None or currency == NO_CURRENCY:
        return _local(text)
    code, _, digits = text.partition(NBSP)
    return f"{_local(digits)}{NBSP}{code}"


def currency_words(currency: Currency | None) -> str:
    """The currency's code where there is one, to stand beside numbers without it."""
    return say(amounts.currency_words(currency))


def lowered(name: str) -> str:
    """A name as it stands inside a sentence; where nouns are capital, as it is."""
    return name.lower() if _SPOKEN.get() == ENGLISH else name
