"""Numbers as people write them: bounds stay bounds, and nothing is rounded to all or nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushbid.common.numbers import as_seen, at_most, interval, number, percent, printable, showable


@given(st.floats(1e-300, 1e300))
def test_rounding_up_is_never_below_and_at_most_a_tenth_above(value: float) -> None:
    rounded = at_most(value)
    assert value <= rounded
    assert rounded <= value * 1.1 * (1 + 1e-12)


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
def test_a_shown_interval_contains_the_exact_one(estimate: float, half_width: float) -> None:
    _, low, high = (float(text.replace(",", "").replace("\u2212", "-")) for text in interval(estimate, half_width))
    slack = 1e-9 * max(abs(estimate), half_width)
    assert low <= estimate - half_width + slack
    assert high >= estimate + half_width - slack
    assert high - low <= 2.5 * half_width


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_every_number_can_be_written(value: float) -> None:
    assert number(value)
    assert "e" not in number(value).replace("not a number", "")


@pytest.mark.parametrize(("share", "text"), [(1.0, "100"), (0.996, "over 99"), (0.004, "under 1"), (0.5, "50")])
def test_a_share_is_never_rounded_to_all_or_nothing(share: float, text: str) -> None:
    assert percent(share) == f"{text}\u00a0%"


def test_a_page_keeps_the_joiners_that_names_need_and_a_terminal_is_told_of_them() -> None:
    name = "Mahn\u200caz \u202e\x1b"
    assert showable(name) == "Mahn\u200caz "
    assert printable(name) == "Mahn\\u200caz \\u202e\\x1b"
    assert as_seen(name) == "Mahnaz"
