"""Where a person is to be paid: what she may type, what she is shown of it again, and the reference of her payment.

A handle is an e-mail address, an IBAN or a panel's id, as the campaign asks. An error says what is allowed, never what
was typed.
"""

import hashlib
import re
from typing import Literal

from hushbid.errors import InputError
from hushbid.server.model.checks import checked_text

Kind = Literal["none", "email", "iban", "panel"]

LONGEST_HANDLE = 254
"""Characters; what an e-mail address may have, and more than any other."""

_LONGEST_PANEL, _LONGEST_LOCAL = 100, 64
_EMAIL = re.compile(r"[^\s@<>()\[\],;:\\\"]+@(?:[^\W_](?:[\w-]*[^\W_])?\.)+[^\W\d_]{2,}")
_SHOWN = 4
_LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # without those that are taken for others

# How long an IBAN is in each country of the registry of ISO 13616.
_LENGTHS = {
    **dict.fromkeys(("NO",), 15),
    **dict.fromkeys(("BE",), 16),
    **dict.fromkeys(("DK", "FI", "FK", "FO", "GL", "NL", "SD"), 18),
    **dict.fromkeys(("MK", "SI"), 19),
    **dict.fromkeys(("AT", "BA", "EE", "KZ", "LT", "LU", "MN", "XK"), 20),
    **dict.fromkeys(("CH", "HR", "LI", "LV"), 21),
    **dict.fromkeys(("BG", "BH", "CR", "DE", "GB", "GE", "IE", "ME", "RS", "VA"), 22),
    **dict.fromkeys(("AE", "GI", "IL", "IQ", "OM", "SO", "TL"), 23),
    **dict.fromkeys(("AD", "CZ", "ES", "MD", "PK", "RO", "SA", "SE", "SK", "TN", "VG"), 24),
    **dict.fromkeys(("LY", "PT", "ST"), 25),
    **dict.fromkeys(("IS", "TR"), 26),
    **dict.fromkeys(("BI", "DJ", "FR", "GR", "IT", "MC", "MR", "SM"), 27),
    **dict.fromkeys(("AL", "AZ", "BY", "CY", "DO", "GT", "HN", "HU", "LB", "NI", "PL", "SV"), 28),
    **dict.fromkeys(("BR", "EG", "PS", "QA", "UA"), 29),
    **dict.fromkeys(("JO", "KW", "MU", "YE"), 30),
    **dict.fromkeys(("MT", "SC"), 31),
    **dict.fromkeys(("LC",), 32),
    **dict.fromkeys(("RU",), 33),
}
_MEANT = {
    "email": "an e-mail address such as name@example.org",
    "iban": "an IBAN with the length of its country and right check digits",
    "panel": f"the panel's id, 1 to {_LONGEST_PANEL} characters in one line",
}


def checked_handle(kind: Kind, typed: object) -> str:
    """A handle of that kind as it is stored: an IBAN without spaces, in capitals.

    >>> checked_handle("iban", "gb82 west 1234 5698 7654 32")
    'GB82WEST12345698765432'
    """
    problem = InputError(f"payout must be {_MEANT[kind]}.", field="payout")
    if not isinstance(typed, str) or len(typed) > 2 * LONGEST_HANDLE:
        raise problem
    try:
        text = checked_text(typed, "payout", needed=True, longest=LONGEST_HANDLE)
    except InputError:
        raise problem from None
    if kind == "iban":
        text = "".join(text.split()).upper()
    rule = {"email": _is_email, "iban": _is_iban, "panel": _is_panel_id}[kind]
    if not rule(text):
        raise problem
    return text


def masked(handle: str) -> str:
    """What she is shown of her own handle: its last four characters, and never more than half of it.

    >>> masked("GB82WEST12345698765432"), masked("A1")
    ('••••5432', '••••1')
    """
    shown = min(_SHOWN, len(handle) // 2)
    return "••••" + handle[len(handle) - shown :]


def reference_of(campaign: str, participant: str) -> str:
    """The reference of a person's payment: short, always the same, and made of nothing but two random identifiers.

    60 bits of a hash: among 100,000 people two share one with a probability of 5 in a billion.

    >>> reference_of("c1", "p1")
    'HB-KZ8Y-TTD7-ZKKB'
    """
    digest = hashlib.sha256(f"hushbid reference 1\n{campaign}\n{participant}".encode()).digest()
    number = int.from_bytes(digest[:8], "big")
    letters = "".join(_LETTERS[(number >> 5 * place) & 31] for place in range(12))
    return f"HB-{letters[:4]}-{letters[4:8]}-{letters[8:]}"


def _is_email(text: str) -> bool:
    return _EMAIL.fullmatch(text) is not None and len(text.partition("@")[0]) <= _LONGEST_LOCAL


def _is_iban(text: str) -> bool:
    """ISO 13616: two letters, two check digits, and a remainder of 1 by 97 once those four stand at the end."""
    if not re.fullmatch(r"[A-Z]{2}[0-9]{2}[A-Z0-9]+", text, flags=re.ASCII) or len(text) != _LENGTHS.get(text[:2]):
        return False
    digits = "".join(str(int(letter, 36)) for letter in text[4:] + text[:4])
    return 2 <= int(text[2:4]) <= 98 and int(digits) % 97 == 1


def _is_panel_id(text: str) -> bool:
    return len(text) <= _LONGEST_PANEL and text.isprintable()
