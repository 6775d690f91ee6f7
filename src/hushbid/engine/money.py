"""Money as it is paid: whole minor units of a currency (cents, yen, fils), rounded in the participant's favour.

A payment of 1.234 euros becomes 124 cents, one of −1.234 becomes −123: always up. Rounding moves any payment by less
than one minor unit, so a misreport can gain at most one more than before; :func:`with_rounding` adds it.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hushbid.errors import InputError, MarketError

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
_LARGEST = 2**53
_NEAR = 2.0**-50  # a product of floats is off by at most 2**-53 of itself


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

    @property
    def smallest(self) -> float:
        """One minor unit, in units."""
        return 1.0 / self.per_unit

    def text(self, minor: int) -> str:
        """An amount of minor units as people write it."""
        whole, part = divmod(abs(minor), self.per_unit)
        fraction = f".{part:0{self.decimals}d}" if self.decimals else ""
        return f"{self.code} {'-' if minor < 0 else ''}{whole:,}{fraction}"

    def text_of(self, amount: float) -> str:
        """An amount in units, rounded up to minor units, as people write it."""
        return self.text(int(self.minor_units(np.array([amount]))[0])) if math.isfinite(amount) else "unlimited"

    def minor_units(self, amounts: FloatArray) -> IntArray:
        """The least whole numbers of minor units that are not below the amounts, exactly.

        >>> Currency.of("EUR").minor_units(np.array([1.234, -1.234, 0.25, 0.0])).tolist()
        [124, -123, 25, 0]
        """
        scaled = amounts * float(self.per_unit)
        if not (np.abs(scaled) < _LARGEST).all():
            raise MarketError(f"A payment must stay below 2**53 minor units of {self.code}.")
        rounded = np.ceil(scaled)
        close = np.abs(scaled - np.rint(scaled)) <= _NEAR * np.abs(scaled)
        for row in np.flatnonzero(close & (amounts != 0.0)).tolist():
            rounded[row] = math.ceil(Fraction(float(amounts[row])) * self.per_unit)
        return rounded.astype(np.int64)


NO_CURRENCY = Currency("XXX", 2)
"""Where nobody named a currency: hundredths of whatever the sensitivities are in."""


def with_rounding(incentive_error: float, currency: Currency) -> float:
    """What a misreport can gain at most, in units, once payments are whole minor units."""
    return incentive_error + currency.smallest
