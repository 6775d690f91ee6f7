"""What the pages say in one language: sentences, numbers, money and times; and reading the numbers that people type.

Sentences of Python code are plain text with values in braces. Everything shown is escaped, but for a value that is
markup: a time.
"""

import math
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from importlib.resources import files

from markupsafe import Markup, escape

from hushbid import languages as catalogues
from hushbid.common.numbers import at_most
from hushbid.languages import ENGLISH, Forms, Language, Within, Wording
from hushbid.report.rendering import shown

_LONGEST_HEADER = 500


def _worded(told: str | dict[str, str]) -> Wording:
    if isinstance(told, str):
        return told
    return Within(told["context"], told["text"]) if "context" in told else Forms(told["one"], told["many"])


_TABLE = tomllib.loads(files("hushbid.server.pages").joinpath("codes.toml").read_text(encoding="utf-8"))
CODES: dict[str, Wording] = {code: _worded(told) for code, told in _TABLE.items()}
"""What is said for each code, with its context where one English text has several translations."""


class Texts(Language):
    """A language as the pages speak it: with markup, and sentences by their codes."""

    @property
    def language(self) -> str:
        """As in the attribute ``lang``."""
        return self.code

    def __call__(self, message: str, /, **values: object) -> str:
        """Say a sentence with its values; it is markup if one of them is."""
        if any(isinstance(value, Markup) for value in values.values()):
            text = escape(super().__call__(message))
            return text.format_map({at: shown(value) for at, value in values.items()})
        return super().__call__(message, **values)

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
    return {code: Texts(code, language.catalogue) for code, language in catalogues.languages().items()}


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


NBSP = "\u00a0"
_MINUS = "\u2212"
_LONGEST = 40
_NUMERAL = re.compile(r"[+-]?(?:[0-9]+(?:[.,][0-9]+)?|[.,][0-9]+)")
_FEW = 4
_ROUGH = 3


class FormError(ValueError):
    """What was typed or sent cannot be read."""

    def __init__(self, code: str) -> None:
        super().__init__(f"What was typed cannot be read: {code}.")
        self.code = code
        """Why; pages word it (``codes.toml``)."""


@dataclass(frozen=True, slots=True)
class Writing:
    """Writes and reads in the way of one language."""

    texts: Texts

    def number(self, value: float, digits: int = _FEW) -> str:
        """A number with so many significant digits at most, without needless zeros."""
        if not math.isfinite(value):
            return "∞" if value > 0 else f"{_MINUS}∞"
        if value == 0:
            return "0"
        size = math.floor(math.log10(abs(value)))
        if not -6 <= size < 12:
            return self._local(f"{value:.{digits - 1}e}")
        text = f"{value:,.{max(0, digits - 1 - size)}f}"
        return self._local(text.rstrip("0").rstrip(".") if "." in text else text)

    def exactly(self, value: Decimal) -> str:
        """A decimal number with the decimals it has."""
        return self._local(f"{value:,f}")

    def fixed(self, value: float, decimals: int) -> str:
        """A number with so many decimals."""
        return self._local(f"{value:z,.{decimals}f}")

    def money(self, minor: int, currency: str, decimals: int) -> str:
        """An amount in minor units, exactly."""
        text = f"{Decimal(minor).scaleb(-decimals):,.{decimals}f}"
        return f"{self._local(text)}{NBSP}{currency}"

    def amount(self, value: float, currency: str, decimals: int) -> str:
        """An amount in units of the currency, rounded to what can be paid; finer where it would vanish."""
        small = 0.0 < abs(value) < 0.5 * 10.0**-decimals
        return f"{self.number(value, 2) if small else self.fixed(value, decimals)}{NBSP}{currency}"

    def percent(self, share: float) -> str:
        """A share as whole per cent; never 0 or 100 for what is not."""
        if 0.0 < share < 0.005:
            return self.texts("under {number}", number=f"1{NBSP}%")
        if 0.995 <= share < 1.0:
            return self.texts("over {number}", number=f"99{NBSP}%")
        return f"{share * 100:.0f}{NBSP}%"

    def sure(self, privacy_loss: float) -> str:
        """How sure even odds can become at most, rounded up: it is a bound."""
        tenths = math.ceil(1000.0 * sureness(privacy_loss) - 1e-9)
        if tenths > 999:
            return self.texts("over {number}", number=f"{self.fixed(99.9, 1)}{NBSP}%")
        return f"{self.number(tenths / 10.0)}{NBSP}%"

    def chances(self, privacy_loss: float) -> int:
        """The same as a whole number out of 100, rounded up."""
        return math.ceil(100.0 * sureness(privacy_loss) - 1e-9)

    def out_of_100(self, privacy_loss: float) -> str:
        """The same as it is written; with a decimal where 100 would be said."""
        whole = self.chances(privacy_loss)
        return str(whole) if whole < 100 else self.sure(privacy_loss).removesuffix(f"{NBSP}%")

    def at_most(self, value: float, digits: int = 3) -> str:
        """A bound with so many significant digits, rounded up."""
        return self.number(at_most(value, digits), digits + 1)

    def roughly(self, minor: int, currency: str, decimals: int, *, most: int | None = None) -> str:
        """An amount in minor units that was simulated: three digits, rounded up, but not above what is ``most``."""
        unit = 10 ** max(len(str(abs(minor))) - _ROUGH, 0)
        rounded = -(-minor // unit) * unit
        return self.money(rounded if most is None else min(rounded, most), currency, decimals)

    def moment(self, at: datetime) -> str:
        """A moment in UTC, in words alone."""
        return at.astimezone(UTC).strftime(self.texts.within("a moment", "%Y-%m-%d, %H:%M UTC"))

    def time(self, moment: datetime) -> Markup:
        """A moment in UTC, as markup: a script writes the time where the reader is behind it."""
        stamp = moment.astimezone(UTC).isoformat(timespec="seconds")
        return Markup('<time datetime="{}">{}</time>').format(stamp, self.moment(moment))

    def timed(self, text: str, moments: Iterable[datetime | None]) -> Markup:
        """A text in which these moments stand in words, with each of them as markup."""
        shown = escape(text)
        for at in moments:
            if at is not None:
                shown = shown.replace(escape(self.moment(at)), self.time(at))
        return shown

    def typed(self, value: float | Decimal) -> str:
        """A number as somebody would type it, all digits that matter."""
        text = f"{value if isinstance(value, Decimal) else Decimal(repr(float(value))):f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
        return text.replace(".", self.texts.decimal)

    def read(self, typed: str) -> Decimal:
        """The number that somebody typed, exactly.

        A point or a comma may stand before the decimals. What could be meant to separate thousands is not guessed.
        """
        text = "".join(typed.split()).replace(_MINUS, "-")
        if not text:
            raise FormError("field.missing")
        if len(text) > _LONGEST or not _NUMERAL.fullmatch(text):
            raise FormError("field.number")
        group = self.texts.group
        if re.search(rf"{re.escape(group)}[0-9]{{3}}$", text):
            raise FormError("field.thousands")
        return Decimal(text.replace(",", "."))

    def _local(self, text: str) -> str:
        swapped = text.translate({ord(","): self.texts.group, ord("."): self.texts.decimal})
        return swapped.replace("-", _MINUS)


def sureness(privacy_loss: float) -> float:
    """How sure somebody can become at most who gave a value even odds: odds change by exp(ε), so e^ε/(1 + e^ε).

    >>> round(sureness(1.0), 3), sureness(0.0)
    (0.731, 0.5)
    """
    return 1.0 / (1.0 + math.exp(-privacy_loss))
