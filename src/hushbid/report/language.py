"""The language of a report: its sentences, and how it writes numbers.

A page is built and drawn in one language, inside ``with speaking(code)``; outside of it everything is English. Whatever
a report writes for people comes from here or from ``trans`` in a template: the writers of `hushbid.common.numbers` and
`hushbid.common.money` have their counterparts, of the same names. What others wrote stays as it is.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from hushbid import languages
from hushbid.common import money as amounts
from hushbid.common import numbers
from hushbid.common.money import NO_CURRENCY, Currency
from hushbid.common.numbers import NBSP, Range
from hushbid.languages import ENGLISH, Language, Sentence, noted

SETTINGS = (noted("central"), noted("local"))
"""The names of settings, which are said by what they are called in the code."""

_SPOKEN: ContextVar[str] = ContextVar("language of the report", default=ENGLISH)


@contextmanager
def speaking(code: str) -> Iterator[None]:
    """Say everything inside in this language; one that there is no catalogue for is refused."""
    before = _SPOKEN.set(languages.language(code).code)
    try:
        yield
    finally:
        _SPOKEN.reset(before)


def spoken() -> Language:
    """The language that is spoken now."""
    return languages.language(_SPOKEN.get())


def say(message: str, /, **values: object) -> str:
    """Say a sentence with its values; numbers are written as the language has them.

    >>> with speaking("de"):
    ...     say("median {median}", median=number(1234.5, 5))
    'Median 1.234,5'
    """
    return spoken()(message, **_local_numbers(values))


def say_plural(one: str, many: str, n: int, /, **values: object) -> str:
    """Say the sentence for this number.

    >>> say_plural("One answer of {most}.", "{n} answers.", 1, n=1, most=3)
    'One answer of 3.'
    """
    return spoken().plural(one, many, n, **_local_numbers(values))


def say_within(context: str, message: str, /, **values: object) -> str:
    """Say a text that has another translation elsewhere."""
    return spoken().within(context, message, **_local_numbers(values))


def say_sentence(sentence: Sentence) -> str:
    """Say a sentence that was kept for when the language is known."""
    return sentence.said(spoken(), _local_number)


def _local_numbers(values: dict[str, object]) -> dict[str, object]:
    return {name: _local_number(one) for name, one in values.items()}


def _local_number(value: object) -> object:
    return _Local(value) if type(value) in (int, float) else value


class _Local:
    """A number that is written in the way of the language, whatever the format."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __format__(self, how: str) -> str:
        return spoken().number(format(self.value, how))


def number(value: float, digits: int = 3) -> str:
    """A number with so many significant digits."""
    return spoken().number(numbers.number(value, digits))


def fixed(value: float, decimals: int) -> str:
    """A number with so many decimals."""
    return spoken().number(numbers.fixed(value, decimals))


def percent(share: float, digits: int = 2) -> str:
    """A share of one as per cent; never 0 % or 100 % for what is not."""
    text = numbers.percent(share, digits)
    if text.startswith("under"):
        return say("under {number}", number=spoken().number(text.removeprefix("under ")))
    if text.startswith("over"):
        return say("over {number}", number=spoken().number(text.removeprefix("over ")))
    return spoken().number(text)


def level_text(level: float) -> str:
    """A confidence as it was asked for, not rounded."""
    return spoken().number(numbers.level_text(level))


def factor_at_most(loss: float) -> str:
    """By how much a privacy loss can change odds, at most."""
    return spoken().number(numbers.factor_at_most(loss))


def interval(estimate: float, half_width: float, between: Range | None = None) -> tuple[str, str, str]:
    """Estimate, lower and upper end as texts; the ends are rounded outwards."""
    value, low, high = map(spoken().number, numbers.interval(estimate, half_width, between))
    return value, low, high


def count(people: int) -> str:
    """A number of people, thousands separated."""
    return spoken().number(numbers.count(people))


def people(n: int) -> str:
    """So many people, in words."""
    return say_plural("{number} person", "{number} people", n, number=count(n))


def combination(names: Sequence[str], weights: Sequence[float]) -> str:
    """A combination of strata with any signs, as it stands in a sentence."""
    return numbers.combination(names, weights, write=number, say=say)


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
    if currency is None or currency == NO_CURRENCY:
        return spoken().number(text)
    code, _, digits = text.partition(NBSP)
    return say_within("an amount of money", "{currency}\u00a0{number}", currency=code, number=spoken().number(digits))


def currency_words(currency: Currency | None) -> str:
    """The currency's code where there is one, to stand beside numbers without it."""
    none = currency is None or currency == NO_CURRENCY
    return say("in money") if none else amounts.currency_words(currency)


def lowered(name: str) -> str:
    """A name as it stands inside a sentence; where nouns are capital, as it is."""
    return name if spoken().capital_nouns else name.lower()
