"""What a prior may be given: its parameters, and the costs, bids and levels it is asked about.

A message shows a parameter's value; of what it is asked about it names rows, which may be people's.
"""

from collections.abc import Callable

import numpy as np

from hushbid.common.arrays import FloatArray, as_floats, refuse_rows, rows_text
from hushbid.errors import BidError, InputError, PriorError


def no_nan(values: object, name: str) -> FloatArray:
    """Return ``values`` as floats, refusing NaN by row."""
    array = as_floats(values, name)
    if array.size and np.isnan(np.min(array)):
        refuse_rows(np.isnan(array), f"{name} must not be NaN", end="", field=name)
    return array


def to_bids(values: object, low: FloatArray | float, support_of: Callable[[int], tuple[float, float]]) -> FloatArray:
    """Return bids as floats, each a number no smaller than ``low`` (one bound, or one per row)."""
    bids = as_floats(values, "bids", BidError)
    if bids.size == 0:
        return bids
    least = np.min(bids)
    if np.isnan(least):
        refuse_rows(np.isnan(bids), "bids must be numbers", field="bids", error=BidError)
    if np.ndim(low) == 0 and least >= low:  # the usual case
        return bids
    below = bids < low
    if np.any(below):
        row = int(np.argmax(np.ravel(below)))
        ends = support_of(row)
        # where bids below the support are allowed, only negative ones are refused
        limit = "0" if np.broadcast_to(low, bids.shape).flat[row] < ends[0] else "the prior's support"
        raise BidError(
            f"bids must not lie below {limit}, but {rows_text(below, 'does')}: the support is {interval_text(*ends)}",
            field="bids",
            row=row,
        )
    return bids


def interval_text(low: float, high: float) -> str:
    """Return ``[1, 2]``, or ``[0, inf)``."""
    return f"[{low:.12g}, {high:.12g}]" if high < np.inf else f"[{low:.12g}, inf)"


def to_probabilities(values: object) -> FloatArray:
    """Return quantile levels as floats in [0, 1]."""
    levels = as_floats(values, "quantile levels")
    bad = np.asarray(~((levels >= 0.0) & (levels <= 1.0)))
    refuse_rows(bad, "quantile levels must lie in [0, 1]", "does", field="quantile levels")
    return levels


def to_draws(n: object) -> int:
    """Return the number of draws."""
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 0:
        raise InputError(f"n must be an integer of at least 0, got n={n!r}", field="n")
    return int(n)


def to_parameter(value: object, name: str, allowed: str, is_allowed: Callable[[float], bool]) -> float:
    """Return one parameter of a prior as a float; the message shows the value and what is allowed."""
    try:
        if isinstance(value, bool | np.bool_ | str | bytes):
            raise TypeError
        number = float(value)  # type: ignore[arg-type]
    except OverflowError:
        raise PriorError(f"{name} must be {allowed}, got an integer beyond all floats", field=name) from None
    except (TypeError, ValueError):
        raise PriorError(f"{name} must be {allowed}, got {name}={value!r}", field=name) from None
    if not is_allowed(number):
        raise PriorError(f"{name} must be {allowed}, got {name}={number:.12g}", field=name)
    return number


def to_finite(value: object, name: str) -> float:
    """Return a finite parameter."""
    return to_parameter(value, name, "a finite number", np.isfinite)


def to_positive(value: object, name: str) -> float:
    """Return a positive, finite parameter."""
    return to_parameter(value, name, "a finite number above 0", lambda x: 0.0 < x < np.inf)


def to_support_low(value: object) -> float:
    """Return the lower end of a support: costs are never negative."""
    return to_parameter(value, "low", "a finite number of at least 0", lambda x: 0.0 <= x < np.inf)


def to_support_high(value: object, low: float, *, infinite: bool = False) -> float:
    """Return the upper end of a support, above the lower one."""
    allowed = f"a {'' if infinite else 'finite '}number above low={low:.12g}"
    return to_parameter(value, "high", allowed, lambda x: low < x and (infinite or x < np.inf))


def to_vector(values: object, name: str) -> FloatArray:
    """Return a vector of finite numbers of at least 0, at least one of them."""
    array = as_floats(values, name, PriorError)
    if array.ndim != 1 or array.size == 0:
        raise PriorError(f"{name} must be a vector of at least one number, got shape {array.shape}", field=name)
    bad = ~((array >= 0.0) & (array < np.inf))
    refuse_rows(bad, f"{name} must be finite numbers of at least 0", field=name, error=PriorError)
    return array
