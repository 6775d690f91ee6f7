"""What is allowed in the fields of a market and in the arguments of its methods; one sentence for what is not."""

import math
from typing import Any

import numpy as np

from hushbid.arrays import FloatArray
from hushbid.disclosure.promises import SMALLEST_LOSS
from hushbid.errors import InputError, MarketError


def as_number(value: Any, name: str) -> float:
    """One number; text is refused, not converted."""
    try:
        if isinstance(value, (str, bytes)) or np.ndim(value) > 0:
            raise TypeError
        return float(value)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a number, got {value!r}.") from None


def as_count(value: object, name: str, *, least: int) -> int:
    """A whole number of people, campaigns or points."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise InputError(f"{name} must be a whole number of at least {least}, got {value!r}.")
    return int(value)


def as_row(value: object, n: int) -> int:
    """A person's place among ``n``; as usual, -1 is the last."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not -n <= value < n:
        raise InputError(f"user must be a row from 0 to {n - 1}, got {value!r}.")
    return int(value) % n


def as_nonnegative(value: Any, name: str, *, per_person: bool = True) -> float | FloatArray:
    """One number, or an array that cannot be changed any more, of finite numbers of at least 0."""
    if np.ma.is_masked(value):
        raise InputError(f"{name} must be a number, but row {int(np.argmax(np.ma.getmaskarray(value)))} is masked.")
    try:
        array = np.array(value)
        if value is None or array.dtype.kind not in "fiubO":
            raise TypeError
        array = array.astype(float)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a number, got {value!r}.") from None
    if array.ndim > (1 if per_person else 0) or array.size == 0:
        raise InputError(f"{name} must be one number{' or one per person' if per_person else ''}, got {value!r}.")
    bad = ~((array >= 0.0) & (array < math.inf))
    if bad.any():
        where = f" in row {int(np.argmax(bad))}" if array.ndim else ""
        raise InputError(f"{name} must be nonnegative and finite, got {array[bad].flat[0]}{where}.")
    if array.ndim == 0:
        return float(array)
    array.setflags(write=False)
    return array


def refuse_unreleasable(least: float) -> None:
    """What is decided and paid must be possible to release: one sum with noise, or everybody's own noisy value."""
    if least < SMALLEST_LOSS:
        raise MarketError(
            f"A privacy loss of {least:.2g} is too small to release anything: it must be at least 2**-53 ="
            f" {SMALLEST_LOSS:.2g}, so the error weight is too small for these reports."
        )
