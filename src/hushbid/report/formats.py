"""How numbers are written for people: few digits, true signs, units that stay on their number's line."""

import math

from hushbid.money import NO_CURRENCY, Currency
from hushbid.priors.numerals import at_most as at_most

NBSP = "\u00a0"
_MINUS = "\u2212"
_LARGEST_POWER = 700.0
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float, digits: int = 3) -> str:
    """A number with so many significant digits, thousands separated: 0.0123, 12.3, 1,234.

    >>> number(0.012345), number(1234.5), number(-2.5), number(3e-9), number(math.inf)
    ('0.0123', '1,234', '−2.5', '3\\xa0×\\xa010⁻⁹', '∞')
    """
    if not math.isfinite(value):
        return "not a number" if math.isnan(value) else ("∞" if value > 0 else f"{_MINUS}∞")
    if value == 0:
        return "0"
    size = math.floor(math.log10(abs(value)))
    if not -5 <= size < 12:
        mantissa, _, power = f"{value:.{digits - 1}e}".partition("e")
        short = f"{float(mantissa):g}"
        return f"{short}{NBSP}×{NBSP}10{str(int(power)).translate(_SUPERSCRIPTS)}".replace("-", _MINUS)
    text = fixed(value, max(0, digits - 1 - size))
    return text.rstrip("0").rstrip(".") if "." in text else text


def fixed(value: float, decimals: int) -> str:
    """A number with so many decimals; no negative zero."""
    text = f"{value:,.{decimals}f}"
    if text.startswith("-") and not text.strip("-0.,"):
        text = text[1:]
    return text.replace("-", _MINUS)


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


def money(amount: float, currency: Currency | None) -> str:
    """An amount with its currency and its usual decimals; below the smallest coin, two significant digits.

    >>> money(1234.5, Currency.of("EUR")), money(0.00123, Currency.of("JPY")), money(1234.56, None)
    ('EUR\\xa01,234.50', 'JPY\\xa00.0012', '1,235')
    """
    if currency is None:
        return number(amount, 4)
    code = "" if currency == NO_CURRENCY else f"{currency.code}{NBSP}"
    if not math.isfinite(amount):
        return f"{code}{number(amount)}"
    below_coin = 0 < abs(amount) < 10.0**-currency.decimals
    digits = number(amount, 2) if below_coin else fixed(amount, currency.decimals)
    return f"{code}{digits}"


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


def currency_words(currency: Currency | None) -> str:
    """The currency's code where there is one, to stand beside numbers without it."""
    return "in money" if currency is None or currency == NO_CURRENCY else currency.code


def money_at_most(amount: float, currency: Currency | None) -> str:
    """An upper bound on an amount: two digits, rounded up, however small.

    >>> money_at_most(0.0100011, Currency.of("EUR"))
    'EUR\\xa00.011'
    """
    code = "" if currency is None or currency == NO_CURRENCY else f"{currency.code}{NBSP}"
    return f"{code}{number(at_most(amount), 2)}"


def decimals_for(half_width: float) -> int:
    """How many decimals a number deserves whose uncertainty is this: two digits of it."""
    if not 0 < half_width < math.inf:
        return 3
    return max(0, min(12, 1 - math.floor(math.log10(half_width))))


def interval(estimate: float, half_width: float) -> tuple[str, str, str]:
    """Estimate, lower and upper end as texts; the ends are rounded outwards, so that what is shown still holds.

    >>> interval(52.3417, 2.0631)
    ('52.3', '50.2', '54.5')
    """
    decimals = decimals_for(half_width)
    unit = 10.0**decimals
    low = math.floor((estimate - half_width) * unit) / unit
    high = math.ceil((estimate + half_width) * unit) / unit
    return fixed(estimate, decimals), fixed(low, decimals), fixed(high, decimals)


def estimate_figures(estimate: float, half_width: float) -> tuple[float, float, float]:
    """Estimate, lower and upper end as numbers with one digit more than people are shown, the ends rounded outwards.

    >>> estimate_figures(52.34174231, 2.06312313)
    (52.34, 50.27, 54.41)
    """
    if not math.isfinite(half_width):
        return estimate, -math.inf, math.inf
    unit = 10.0 ** (decimals_for(half_width) + 1)
    low, high = math.floor((estimate - half_width) * unit) / unit, math.ceil((estimate + half_width) * unit) / unit
    return round(estimate * unit) / unit, low, high


def count(people: int) -> str:
    """A number of people, thousands separated."""
    return f"{people:,}"


def with_unit(text: str, unit: str) -> str:
    """A number and its unit, which stay together."""
    return f"{text}{NBSP}{unit}" if unit else text


def people(n: int) -> str:
    """So many people, in words."""
    return "1 person" if n == 1 else f"{count(n)} people"
