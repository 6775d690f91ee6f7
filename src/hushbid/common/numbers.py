"""How numbers and texts are written for people: few digits, true signs, units that stay on their number's line."""

import math
import re
import unicodedata
from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, Decimal

NBSP = "\u00a0"
MINUS = "\u2212"
_LARGEST_POWER = 700.0
_MOST_STRATA = 6
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float, digits: int = 3) -> str:
    """A number with so many significant digits, thousands separated: 0.0123, 12.3, 1,234.

    >>> number(0.012345), number(1234.5), number(-2.5), number(3e-9), number(math.inf)
    ('0.0123', '1,234', '−2.5', '3\\xa0×\\xa010⁻⁹', '∞')
    """
    if not math.isfinite(value):
        return "not a number" if math.isnan(value) else ("∞" if value > 0 else f"{MINUS}∞")
    if value == 0:
        return "0"
    size = math.floor(math.log10(abs(value)))
    if not -5 <= size < 12:
        mantissa, _, power = f"{value:.{digits - 1}e}".partition("e")
        short = f"{float(mantissa):g}"
        return f"{short}{NBSP}×{NBSP}10{str(int(power)).translate(_SUPERSCRIPTS)}".replace("-", MINUS)
    text = fixed(value, max(0, digits - 1 - size))
    return text.rstrip("0").rstrip(".") if "." in text else text


def figure(value: float) -> str:
    """A result as every command writes it, in sentences and in tables: four significant digits.

    >>> figure(0.37584), figure(12345.6), figure(1e-7), figure(math.inf)
    ('0.3758', '12,346', '1\\xa0×\\xa010⁻⁷', '∞')
    """
    return number(value, 4)


def typed(value: float) -> str:
    """A number to be typed again, in an option or a file: all of its digits, no separators, no powers of ten.

    >>> typed(1234567.5), typed(100.0), typed(-1e-7)
    ('1234567.5', '100', '-0.0000001')
    """
    text = f"{Decimal(repr(float(value))):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def fixed(value: float, decimals: int) -> str:
    """A number with so many decimals; no negative zero."""
    text = f"{value:,.{decimals}f}"
    if text.startswith("-") and not text.strip("-0.,"):
        text = text[1:]
    return text.replace("-", MINUS)


def percent(share: float, digits: int = 2) -> str:
    """A share of one as per cent; never 0 % or 100 % for what is not.

    >>> percent(0.1234), percent(0.0), percent(0.9999), percent(0.0001)
    ('12\\xa0%', '0\\xa0%', 'over 99\\xa0%', 'under 1\\xa0%')
    """
    if 0 < share < 0.005:
        return f"under 1{NBSP}%"
    if 0.995 <= share < 1:
        return f"over 99{NBSP}%"
    return f"{number(100 * share, digits if abs(share) < 1 else 3)}{NBSP}%"


def combination(
    names: Sequence[str],
    weights: Sequence[float],
    *,
    write: Callable[[float, int], str] = number,
    say: Callable[..., str] = str.format,
) -> str:
    """A combination of strata with any signs, as it stands in a sentence; only counted where there are many.

    ``write`` writes numbers and ``say`` fills in a sentence, where another language is spoken.

    >>> combination(("old", "young"), (1.0, -1.0)), combination(("north", "south"), (-0.5, 2.0))
    ('old − young', '−0.5 × north + 2 × south')
    """
    if not 0 < len(names) <= _MOST_STRATA:
        return say("a combination of {count} strata", count=len(weights))
    terms = [
        (f"{write(abs(one), 6)} × " if abs(one) != 1.0 else "") + name for name, one in zip(names, weights, strict=True)
    ]
    signs = [f" {MINUS} " if one < 0.0 else " + " for one in weights]
    first = MINUS if weights[0] < 0.0 else ""
    return first + terms[0] + "".join(sign + term for sign, term in zip(signs[1:], terms[1:], strict=True))


def shares_text(names: Sequence[str], weights: Sequence[float]) -> str:
    """The shares of strata in a population, as they stand in a sentence; only counted where there are many.

    >>> shares_text(("north", "south"), (0.4, 0.6))
    'north 40 %, south 60 %'
    """
    if not 0 < len(names) <= _MOST_STRATA:
        return f"those stated for {len(weights)} strata"
    told = ", ".join(f"{name} {percent(one, 3)}" for name, one in zip(names, weights, strict=True))
    return told.replace(NBSP, " ")


def at_most(value: float, digits: int = 2) -> float:
    """The value rounded up to so many significant digits: still a bound, but no longer exactly anybody's number.

    >>> at_most(0.4213), at_most(0.42), at_most(12.01), at_most(0.0), at_most(math.inf)
    (0.43, 0.42, 13.0, 0.0, inf)
    """
    if value == 0 or not math.isfinite(value):
        return value
    written = Decimal(repr(float(value)))
    return float(written.quantize(Decimal(1).scaleb(written.adjusted() - digits + 1), ROUND_CEILING))


def at_least(value: float, digits: int = 2) -> float:
    """The value rounded down to so many significant digits: still a bound from below.

    >>> at_least(0.4293), at_least(0.42)
    (0.42, 0.42)
    """
    return -at_most(-value, digits)


def factor_at_most(loss: float) -> str:
    """By how much a privacy loss can change odds, at most.

    >>> factor_at_most(0.1), factor_at_most(1.0), factor_at_most(1000.0)
    ('1.11', '2.72', '∞')
    """
    return number(at_most(math.exp(loss) if loss < _LARGEST_POWER else math.inf, 3))


def level_text(level: float) -> str:
    """A confidence as it was asked for, not rounded: a bound that is rounded up is none.

    >>> level_text(0.95), level_text(0.956)
    ('95\\xa0%', '95.6\\xa0%')
    """
    return f"{100.0 * level:.12g}{NBSP}%"


def decimals_for(half_width: float) -> int:
    """How many decimals a number deserves whose uncertainty is this: two digits of it."""
    if not 0 < half_width < math.inf:
        return 3
    return max(0, min(12, 1 - math.floor(math.log10(half_width))))


def adding_up(values: Sequence[float], decimals: int) -> list[float]:
    """Round shares to so many decimals so that they still add up, by the largest remainders.

    >>> adding_up([100 / 3] * 3, 0), adding_up([12.34, 87.66], 1)
    ([34.0, 33.0, 33.0], [12.3, 87.7])
    """
    unit = 10.0**decimals
    whole = [math.floor(value * unit + 1e-9) for value in values]
    missing = round(math.fsum(values) * unit) - sum(whole)
    for place in sorted(range(len(whole)), key=lambda place: whole[place] - values[place] * unit)[:missing]:
        whole[place] += 1
    return [one / unit for one in whole]


Range = tuple[float, float]
"""Between which values something lies."""


def cut_to(low: float, high: float, between: Range | None) -> Range:
    """An interval cut to a range; if none of it is left, the nearest end of the range.

    >>> cut_to(-0.2, 0.4, (0, 1)), cut_to(-0.4, -0.2, (0, 1)), cut_to(-0.4, 2.0, None)
    ((0.0, 0.4), (0.0, 0.0), (-0.4, 2.0))
    """
    if between is None:
        return low, high
    least, most = float(between[0]), float(between[1])
    return min(max(low, least), most), max(min(high, most), least)


def is_unusable(estimate: float, half_width: float, between: Range) -> bool:
    """Whether an interval, cut to the range that was known before, covers more than half of it.

    >>> is_unusable(3.0, 11.0, (0, 12)), is_unusable(3.0, 2.0, (0, 12)), is_unusable(-0.2, 0.4, (0, 1))
    (True, False, False)
    """
    low, high = cut_to(estimate - half_width, estimate + half_width, between)
    return not high - low <= (between[1] - between[0]) / 2.0


def interval(estimate: float, half_width: float, between: Range | None = None) -> tuple[str, str, str]:
    """Estimate, lower and upper end as texts; the ends are rounded outwards, so that what is shown still holds.

    Cut to the range ``between`` which the truth lies, if that is known.

    >>> interval(52.3417, 2.0631), interval(52.3417, 2.0631, (0, 53))
    (('52.3', '50.2', '54.5'), ('52.3', '50.2', '53.0'))
    """
    decimals = decimals_for(half_width)
    unit = 10.0**decimals
    ends = cut_to(estimate - half_width, estimate + half_width, between)
    low, high = math.floor(ends[0] * unit) / unit, math.ceil(ends[1] * unit) / unit
    return fixed(estimate, decimals), fixed(low, decimals), fixed(high, decimals)


def estimate_figures(estimate: float, half_width: float, between: Range | None = None) -> tuple[float, float, float]:
    """Estimate, lower and upper end as numbers with one digit more than people are shown, the ends rounded outwards.

    Cut to the range ``between`` which the truth lies, if that is known; its ends are not rounded.

    >>> estimate_figures(52.34174231, 2.06312313), estimate_figures(52.34174231, 2.06312313, (51.0001, 100))
    ((52.34, 50.27, 54.41), (52.34, 51.0001, 54.41))
    """
    if not math.isfinite(half_width):
        return estimate, *cut_to(-math.inf, math.inf, between)
    unit = 10.0 ** (decimals_for(half_width) + 1)
    low, high = math.floor((estimate - half_width) * unit) / unit, math.ceil((estimate + half_width) * unit) / unit
    return round(estimate * unit) / unit, *cut_to(low, high, between)


def count(people: int) -> str:
    """A number of people, thousands separated."""
    return f"{people:,}"


def people(n: int) -> str:
    """So many people, in words.

    >>> people(1), people(2000)
    ('1 person', '2,000 people')
    """
    return "1 person" if n == 1 else f"{count(n)} people"


def as_sentence(text: str) -> str:
    """A stamp or a flag as a sentence."""
    return f"{text[0].upper()}{text[1:]}."


def with_unit(text: str, unit: str) -> str:
    """A number and its unit, which stay together."""
    return f"{text}{NBSP}{unit}" if unit else text


def four_digits(text: str) -> str:
    """A text whose decimal numbers have four digits, to be read; the whole ones stay in the file.

    >>> four_digits("gamma(2, 0.512345678)")
    'gamma(2, 0.5123)'
    """
    return re.sub(r"\d+\.\d+(e[-+]?\d+)?", lambda number: f"{float(number[0]):.4g}", text)


def table(rows: list[tuple[str, ...]], *, indent: int = 2) -> str:
    """Rows of cells in columns, the first to the left and the others to the right."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        first, *others = (
            cell.rjust(width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        lines.append(" " * indent + "  ".join([first, *others]).rstrip())
    return "\n".join(lines)


# -- what cannot be seen -----------------------------------------------------------------------------------------------
#
# Three uses, three lists: a terminal is told of whatever has no shape, a page drops only what could deceive (names need
# joiners), and two names are one if people see no difference between them.

_SHAPELESS = {"Cc", "Cf", "Cn"}  # control, format and unassigned characters
_NOT_FOR_TERMINALS = {*_SHAPELESS, "Cs", "Zl", "Zp"}  # and halves of characters, and line breaks of other kinds

# What neither HTML nor XML allows in a document, not even escaped; and characters that reorder what stands around them.
_NOT_FOR_PAGES = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)

# What looks like a space (fillers, the empty Braille pattern) or like nothing, as Unicode lists it
# (Default_Ignorable_Code_Point); and whatever is without a shape, or has a private one.
_BLANK = re.compile("[\\s\u115f\u1160\u2800\u3164\uffa0]")
_IGNORABLE = re.compile("[\u034f\u17b4\u17b5\u180b-\u180f\ufe00-\ufe0f\U000e0000-\U000e0fff]")
_NOT_IN_NAMES = {*_SHAPELESS, "Co"}


def printable(text: str, *, keep: str = "\n") -> str:
    """A text without control characters, which could rewrite what a terminal shows; lines stay lines.

    >>> print(printable("red \\x1b[31m"))
    red \\x1b[31m
    """
    return "".join(
        one if one in keep or unicodedata.category(one) not in _NOT_FOR_TERMINALS else ascii(one)[1:-1] for one in text
    )


def showable(text: str) -> str:
    """A text as a page may show it: a name must not rewrite the sentence it is shown in.

    >>> showable("Ann\\u202e!")
    'Ann!'
    """
    return _NOT_FOR_PAGES.sub("", text)


def as_seen(text: str) -> str:
    """A name in the form in which two are compared: invisible characters, kinds of spaces and width make no difference.

    >>> as_seen(" Mean\\u200b\\u00a0 sleep ")
    'Mean sleep'
    """
    spaced = _BLANK.sub(" ", unicodedata.normalize("NFKC", text))
    seen = (one for one in _IGNORABLE.sub("", spaced) if unicodedata.category(one) not in _NOT_IN_NAMES)
    return " ".join(unicodedata.normalize("NFKC", "".join(seen)).split())
