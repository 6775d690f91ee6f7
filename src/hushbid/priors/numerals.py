"""Numbers in dict and text forms, where every float reads back as itself."""

import math


def number_text(value: float) -> str:
    """The shortest text that reads back as ``value``, without a plus sign (which joins a mixture's components)."""
    if value.is_integer() and abs(value) < 1e15:
        return str(int(value)) if value or math.copysign(1.0, value) > 0 else "0"
    return repr(value).replace("+", "")


def plain_number(value: float) -> float | str:
    """``value`` for a dict that strict JSON can hold: infinity becomes the text "inf"."""
    return value if math.isfinite(value) else "inf"
