"""How texts are shown to people."""

import unicodedata

_UNSEEN = {"Cc", "Cf", "Cs", "Cn", "Zl", "Zp"}  # control, format, half and unassigned characters, other line breaks


def printable(text: str, *, keep: str = "\n") -> str:
    """A text without control characters, which could rewrite what a terminal shows; lines stay lines."""
    return "".join(one if one in keep or unicodedata.category(one) not in _UNSEEN else ascii(one)[1:-1] for one in text)
