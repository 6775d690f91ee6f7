"""Payments in whole minor units of a currency (cents, yen, fils), rounded in the participant's favour.

1.234 becomes 124 hundredths and −1.234 becomes −123: always up, so nobody gets less or pays more than was decided. As a
rounded payment exceeds the exact one by less than one minor unit, whatever the report, a misreport can gain at most one
minor unit more than before.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushbid.disclosure.fields import Fields
from hushbid.errors import InputError, RecordError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
_LARGEST = 2.0**53
MOST_DECIMALS = 6
_CLOSE = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Money:
    """What is really paid."""

    currency: str
    """Three capital letters, as in ISO 4217."""

    decimals: int
    """One unit of the currency is ``10**decimals`` minor units."""

    payments: IntArray
    """Everybody's payment in minor units."""

    total: int
    """Their sum."""

    incentive_error: float
    """No misreport can gain more than this, in units of the currency, rounding included."""

    @classmethod
    def of(cls, payments: FloatArray, incentive_error: float, *, currency: str, decimals: int) -> "Money":
        """Round payments, in units of the currency, up to minor units."""
        _check_currency(currency, decimals)
        minor = rounded_up(payments, decimals)
        return cls(
            currency=currency,
            decimals=decimals,
            payments=minor,
            total=sum(minor.tolist()),
            incentive_error=incentive_error + 10.0**-decimals,
        )

    def to_dict(self) -> dict[str, Any]:
        """The money as plain values."""
        return {
            "currency": self.currency,
            "decimals": self.decimals,
            "payments": self.payments.tolist(),
            "total": self.total,
            "incentive_error": self.incentive_error,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], people: int) -> "Money":
        """The inverse of `to_dict`, strictly."""
        given = Fields(values, "money", cls.__slots__)
        minor, total = given.integers("payments"), given.integer("total")
        if len(minor) != people or not all(-_LARGEST <= amount <= _LARGEST for amount in minor):
            raise RecordError(f"money: payments must be {people} whole numbers below 2**53, one per person.")
        _check_currency(given.text("currency"), given.integer("decimals"))
        return cls(
            currency=given.text("currency"),
            decimals=given.integer("decimals"),
            payments=np.array(minor, dtype=np.int64),
            total=total,
            incentive_error=given.number("incentive_error"),
        )


def _check_currency(currency: str, decimals: int) -> None:
    letters = isinstance(currency, str) and len(currency) == 3 and currency.isascii() and currency.isalpha()
    if not (letters and currency.isupper()):
        raise InputError(f"currency must be three capital letters such as 'EUR', got {currency!r}.")
    if type(decimals) is not int or not 0 <= decimals <= MOST_DECIMALS:
        raise InputError(f"decimals must be an integer from 0 to {MOST_DECIMALS}, got {decimals!r}.")


def rounded_up(amounts: FloatArray, decimals: int) -> IntArray:
    """The least whole numbers of minor units that are not below the amounts, in exact arithmetic.

    >>> rounded_up(np.array([1.234, -1.234, 0.25, 0.07]), 2).tolist()  # the double nearest to 0.07 is above it
    [124, -123, 25, 8]
    """
    scaled = amounts * 10.0**decimals
    if not (np.abs(scaled) < _LARGEST).all():
        raise InputError(f"payments must be below 2**53 minor units, but row {np.argmax(np.abs(scaled))} is not.")
    minor = np.ceil(scaled).astype(np.int64)
    doubtful = np.abs(scaled - np.rint(scaled)) <= _CLOSE * np.maximum(np.abs(scaled), 1.0)
    for row in np.flatnonzero(doubtful & (amounts != 0.0)).tolist():
        minor[row] = math.ceil(Fraction(float(amounts[row])) * 10**decimals)
    return minor
