"""Numbers in dict and text forms, where every float reads back as itself, and bounds with few digits."""

import math
from decimal import ROUND_CEILING, Decimal


def number_text(value: float) -> str:
    """The shortest text that reads back as ``value``, without a plus sign (which joins a mixture's components)."""
    if value.is_integer() and abs(value) < 1e15:
        return str(int(value)) if value or math.copysign(1.0, value) > 0 else "0"
    return repr(value).replace("+", "")


def plain_number(value: float) -> float | str:
    """``value`` for a dict that strict JSON can hold: infinity becomes the text "inf"."""
    return value if math.isfinite(value) else "inf"


def at_most(value: float, digits: int = 2) -> float:
    """The value rounded up to so many significant digits: still a bound, but no longer exactly anybody's number.

    >>> at_most(0.4213), at_most(0.42), at_most(12.01), at_most(0.0), at_most(math.inf)
    (0.43, 0.42, 13.0, 0.0, inf)
    """
    if value == 0 or not math.isfinite(value):
        return value
    written = Decimal(repr(float(value)))
    return float(written.quantize(Decimal(1).scaleb(written.adjusted() - digits + 1), ROUND_CEILING))
