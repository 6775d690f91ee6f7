"""Where people are paid: what is taken, what is refused without being told again, references that tell nothing."""

import random
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushbid.errors import InputError
from hushbid.server.model.payout import _LENGTHS, checked_handle, masked, reference_of
from tests.extent import each

# The registry's own examples of ISO 13616.
EXAMPLES = (
    *("DE89370400440532013000", "GB29NWBK60161331926819", "FR1420041010050500013M02606", "NO9386011117947"),
    *("BE68539007547034", "CH9300762011623852957", "MT84MALT011000012345MTLCAST001S", "AT611904300234573201"),
    *(
        "NL91ABNA0417164300",
        "PL61109010140000071219812874",
        "SA0380000000608010167519",
        "LC55HEMM000100010012001200023015",
    ),
)


@each("iban", EXAMPLES)
def test_ibans_are_taken_as_people_write_them(iban: str) -> None:
    spaced = " ".join(iban[place : place + 4] for place in range(0, len(iban), 4)).lower()
    assert checked_handle("iban", f" {spaced} ") == iban


@settings(max_examples=50)
@given(st.sampled_from(EXAMPLES), st.integers(0, 40), st.sampled_from(string.digits + string.ascii_uppercase))
def test_no_iban_with_one_character_changed_is_taken(iban: str, place: int, letter: str) -> None:
    place %= len(iban)
    changed = iban[:place] + letter + iban[place + 1 :]
    if changed != iban and not _same_remainder(iban, changed):
        with pytest.raises(InputError, match="payout must be an IBAN") as refused:
            checked_handle("iban", changed)
        assert changed not in str(refused.value)
        assert refused.value.field == "payout"


def _same_remainder(one: str, other: str) -> bool:
    """A digit and a letter may stand for numbers that are equal by 97; the length of a country decides the rest."""
    return len(one) == _LENGTHS.get(other[:2]) and all(
        int("".join(str(int(letter, 36)) for letter in text[4:] + text[:4])) % 97 == 1 for text in (one, other)
    )


@each("iban", [f"{one}0" for one in EXAMPLES] + ["XX89370400440532013000", "DE", "", "DE89\u0663"])
def test_no_iban_of_another_length_or_country_is_taken(iban: str) -> None:
    with pytest.raises(InputError):
        checked_handle("iban", iban)


@pytest.mark.parametrize("typed", ["ann@example.org", "a.b+c@mail.example.co", "zo\u00eb@m\u00fcller.example"])
def test_addresses_are_taken(typed: str) -> None:
    assert checked_handle("email", f" {typed} ") == typed


BAD = ("ann", "@mail.org", "ann@mail", "ann@ma il.org", "a@b@c.org", "ann@-b.org", "ann@b..org", "a\n@b.org")
WORSE = ("<a@b.org>", f"{'a' * 65}@b.org", f"a@{'b' * 250}.org", 7, None, "a@b.org\x00")


@each("typed", [*BAD, *WORSE])
def test_what_is_no_address_is_refused_without_being_told_again(typed: object) -> None:
    with pytest.raises(InputError, match="payout must be an e-mail address") as refused:
        checked_handle("email", typed)
    assert str(typed) not in str(refused.value)


@each("typed", ["", " ", "x" * 101, "two\nlines", "a\tb"])
def test_a_panel_id_is_one_short_line(typed: str) -> None:
    assert checked_handle("panel", " R-4711/b ") == "R-4711/b"
    with pytest.raises(InputError):
        checked_handle("panel", typed)


@settings(max_examples=25)
@given(st.text(min_size=1, max_size=60))
def test_a_mask_never_shows_more_than_four_characters_or_half(handle: str) -> None:
    shown = masked(handle).removeprefix("\u2022\u2022\u2022\u2022")
    assert len(shown) == min(4, len(handle) // 2)
    assert handle.endswith(shown)


def test_references_differ_and_stay_the_same() -> None:
    rng = random.Random(1)
    pairs = [(f"c{rng.randbytes(10).hex()}", f"p{rng.randbytes(10).hex()}") for _ in range(5_000)]
    found = {reference_of(*pair) for pair in pairs}
    assert len(found) == len(pairs)
    assert reference_of("c1", "p1") == reference_of("c1", "p1") != reference_of("c1p1", "")
    assert all(len(one) == 17 for one in found)
