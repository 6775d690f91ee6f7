"""Currencies: how many decimals each has, and how people write amounts.

Payments are whole minor units (cents, yen, fils), rounded in the participant's favour by :mod:`hushbid.record.money`.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hushbid.errors import InputError
from hushbid.record.money import rounded_up

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

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
_MOST_DECIMALS = 6


@dataclass(frozen=True, slots=True)
class Currency:
    """A currency and how many decimals its smallest coin has.

    >>> Currency.of("EUR").text(123456), Currency.of("JPY").text(1500), Currency.of("KWD").text(-1)
    ('EUR 1,234.56', 'JPY 1,500', 'KWD -0.001')
    """

    code: str
    """Three capital letters; XXX, ISO's own code for no currency, where none was named."""

    decimals: int
    """One unit is ``10**decimals`` minor units."""

    @classmethod
    def of(cls, code: str, decimals: int | None = None) -> "Currency":
        """A currency by its ISO 4217 code; one that is not on the list needs its number of decimals."""
        if not (isinstance(code, str) and len(code) == 3 and code.isascii() and code.isalpha() and code.isupper()):
            raise InputError(f"currency must be three capital letters such as 'EUR', got {code!r}.")
        known = DECIMALS.get(code)
        if decimals is None:
            if known is None:
                raise InputError(f"currency {code!r} is not an ISO 4217 code: state its number of decimals.")
            return cls(code, known)
        if isinstance(decimals, bool) or not isinstance(decimals, int) or not 0 <= decimals <= _MOST_DECIMALS:
            raise InputError(f"decimals must be an integer from 0 to {_MOST_DECIMALS}, got {decimals!r}.")
        if known is not None and decimals != known:
            raise InputError(f"decimals must be {known} for {code}, got {decimals}.")
        return cls(code, decimals)

    @property
    def per_unit(self) -> int:
        """How many minor units make one unit."""
        return int(10**self.decimals)

    def text(self, minor: int) -> str:
        """An amount of minor units as people write it."""
        whole, part = divmod(abs(minor), self.per_unit)
        fraction = f".{part:0{self.decimals}d}" if self.decimals else ""
        name = "" if self == NO_CURRENCY else f"{self.code} "
        return f"{name}{'-' if minor < 0 else ''}{whole:,}{fraction}"

    def text_of(self, amount: float) -> str:
        """An amount in units, rounded up to minor units, as people write it."""
        return self.text(int(self.minor_units(np.array([amount]))[0])) if math.isfinite(amount) else "unlimited"

    def minor_units(self, amounts: FloatArray) -> IntArray:
        """Amounts in whole minor units, rounded up: in favour of whoever is paid."""
        return rounded_up(amounts, self.decimals)


NO_CURRENCY = Currency("XXX", 2)
"""Where nobody named a currency: hundredths of whatever the sensitivities are in."""


def with_rounding(incentive_error: float, currency: Currency) -> float:
    """What a misreport can gain at most, in units, once payments are whole minor units: one of them more."""
    return incentive_error + 1.0 / currency.per_unit
