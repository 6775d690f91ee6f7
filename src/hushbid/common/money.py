"""Payments in whole minor units of a currency (cents, yen, fils), rounded in the participant's favour.

1.234 becomes 124 hundredths and −1.234 becomes −123: always up, so nobody gets less or pays more than was decided. As a
rounded payment exceeds the exact one by less than one minor unit, whatever the bid, a misreport can gain at most one
minor unit more than before.
"""

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from hushbid.common.arrays import BoolArray, FloatArray, IntArray
from hushbid.common.numbers import MINUS, NBSP, at_most, fixed, number
from hushbid.errors import InputError

_LARGEST = 2.0**53
MOST_DECIMALS = 6
_CLOSE = 1e-12

# ISO 4217. Two decimals unless listed with another number.
_NO_DECIMALS = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF"
_THREE_DECIMALS = "BHD IQD JOD KWD LYD OMR TND"
_FOUR_DECIMALS = "CLF UYW"
_TWO_DECIMALS = (
    "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF CHE CHF CHW"
    " CNY COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR"
    " ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV"
    " MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD"
    " SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST XAD XCD XCG YER ZAR ZMW ZWG"
)
DECIMALS = {
    code: places
    for places, codes in ((0, _NO_DECIMALS), (2, _TWO_DECIMALS), (3, _THREE_DECIMALS), (4, _FOUR_DECIMALS))
    for code in codes.split()
}


@dataclass(frozen=True, slots=True)
class Currency:
    """A currency and how many decimals its smallest coin has.

    >>> Currency.of("EUR").text(123456), Currency.of("JPY").text(1500), Currency.of("KWD").text(-1)
    ('EUR 1,234.56', 'JPY 1,500', 'KWD −0.001')
    """

    code: str
    """Three capital letters; XXX, ISO's own code for no currency, where none was named."""

    decimals: int
    """One unit is ``10**decimals`` minor units."""

    @classmethod
    def of(cls, code: str, decimals: int | None = None) -> "Currency":
        """A currency by its ISO 4217 code; one that is not on the list needs its number of decimals."""
        check_currency(code, 0 if decimals is None else decimals)
        known = DECIMALS.get(code)
        if decimals is None:
            if known is None:
                raise InputError(f"currency {code!r} is not an ISO 4217 code: state its number of decimals.")
            return cls(code, known)
        if known is not None and decimals != known:
            raise InputError(f"decimals must be {known} for {code}, got {decimals}.", field="decimals")
        return cls(code, decimals)

    @property
    def per_unit(self) -> int:
        """How many minor units make one unit."""
        return int(10**self.decimals)

    @property
    def coin(self) -> float:
        """One minor unit, in units: the smallest coin."""
        return float(f"1e-{self.decimals}")

    def text(self, minor: int) -> str:
        """An amount of minor units as people write it."""
        whole, part = divmod(abs(minor), self.per_unit)
        fraction = f".{part:0{self.decimals}d}" if self.decimals else ""
        name = "" if self == NO_CURRENCY else f"{self.code} "
        return f"{name}{MINUS if minor < 0 else ''}{whole:,}{fraction}"

    def text_of(self, amount: float) -> str:
        """An amount in units, rounded up to minor units, as people write it."""
        return self.text(int(self.minor_units(np.array([amount]))[0])) if math.isfinite(amount) else "unlimited"

    def minor_units(self, amounts: FloatArray) -> IntArray:
        """Amounts in whole minor units, rounded up: in favour of whoever is paid."""
        return rounded_up(amounts, self.decimals)


NO_CURRENCY = Currency("XXX", 2)
"""Where nobody named a currency: hundredths of whatever the bids are in."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Money:
    """What is really paid."""

    currency: str
    """Three capital letters, as in ISO 4217."""

    decimals: int
    """One unit of the currency is ``10**decimals`` minor units."""

    payments: IntArray = field(repr=False)
    """Everybody's payment in minor units."""

    total: int
    """Their sum."""

    incentive_error: float
    """How far a payment may be from the exact one, in units of the currency, rounding included."""

    @classmethod
    def of(cls, payments: FloatArray, incentive_error: float, *, currency: str, decimals: int) -> "Money":
        """Round payments, in units of the currency, up to minor units."""
        check_currency(currency, decimals)
        minor = rounded_up(payments, decimals)
        return cls(
            currency=currency,
            decimals=decimals,
            payments=minor,
            total=sum(minor.tolist()),
            incentive_error=with_rounding(incentive_error, decimals),
        )


def check_currency(code: object, decimals: object) -> None:
    """Refuse what is not a currency: three capital letters, and a possible number of decimals."""
    letters = isinstance(code, str) and len(code) == 3 and code.isascii() and code.isalpha() and code.isupper()
    if not letters:
        raise InputError(f"currency must be three capital letters such as 'EUR', got {code!r}.", field="currency")
    if type(decimals) is not int or not 0 <= decimals <= MOST_DECIMALS:
        raise InputError(f"decimals must be an integer from 0 to {MOST_DECIMALS}, got {decimals!r}.", field="decimals")


def with_rounding(incentive_error: float, decimals: int) -> float:
    """How far a payment may be from the exact one, in units, once it is a whole minor unit: one of them more."""
    return incentive_error + 10.0**-decimals


def rounded_up(amounts: FloatArray, decimals: int) -> IntArray:
    """The least whole numbers of minor units that are not below the amounts, in exact arithmetic.

    >>> rounded_up(np.array([1.234, -1.234, 0.25, 0.07]), 2).tolist()  # the double nearest to 0.07 is above it
    [124, -123, 25, 8]
    """
    scaled = amounts * 10.0**decimals
    if not (np.abs(scaled) < _LARGEST).all():
        row = int(np.argmax(np.abs(scaled)))
        told = f"payments must be below {_LARGEST:,.0f} minor units, but row {row} is not."
        raise InputError(told, field="payments", row=row)
    minor = np.ceil(scaled).astype(np.int64)
    doubtful = np.abs(scaled - np.rint(scaled)) <= _CLOSE * np.maximum(np.abs(scaled), 1.0)
    for row in np.flatnonzero(doubtful & (amounts != 0.0)).tolist():
        minor[row] = math.ceil(Fraction(float(amounts[row])) * 10**decimals)
    return minor


def in_units(minor: IntArray, decimals: int) -> FloatArray:
    """Amounts of minor units in units of their currency: the doubles nearest to them, which read as they are written.

    >>> in_units(np.array([124, -5, 1500]), 2).tolist()
    [1.24, -0.05, 15.0]
    """
    return minor / float(10**decimals)


def amounts_due(payments: FloatArray, extra: float | FloatArray, unpaid: BoolArray, decimals: int) -> IntArray:
    """What everybody is due after drop-outs, in minor units: her payment and ``extra``; nothing if she is ``unpaid``.

    Drop-outs make the estimate worse, and who values it is owed ``extra`` for that: her weight times the error more.
    """
    found: IntArray = np.where(unpaid, 0, rounded_up(payments + extra, decimals))
    return found


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


def money_at_most(amount: float, currency: Currency | None) -> str:
    """An upper bound on an amount: two digits, rounded up, however small.

    >>> money_at_most(0.0100011, Currency.of("EUR"))
    'EUR\\xa00.011'
    """
    code = "" if currency is None or currency == NO_CURRENCY else f"{currency.code}{NBSP}"
    return f"{code}{number(at_most(amount), 2)}"


def currency_words(currency: Currency | None) -> str:
    """The currency's code where there is one, to stand beside numbers without it."""
    return "in money" if currency is None or currency == NO_CURRENCY else currency.code
