"""Plain values have one written form, and what has two is not read."""

from datetime import UTC, datetime

import numpy as np
import pytest

from hushbid.common.documents import canonical, number_of, number_text, parsed, time_of, time_text
from hushbid.errors import RecordError

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_canonical_numbers_read_back_as_the_same_doubles() -> None:
    numbers = [0.1, -0.0, 5e-324, 1.7976931348623157e308, 1 / 3, 2**60, 1e22, float(np.nextafter(1, 2))]
    found = parsed(canonical({"numbers": numbers}))["numbers"]
    assert [repr(number) for number in found] == [repr(number) for number in numbers]
    assert [type(number) for number in found] == [type(number) for number in numbers]


def test_a_number_that_is_not_there_cannot_be_written() -> None:
    with pytest.raises(RecordError, match="plain finite values"):
        canonical({"number": float("nan")})
    with pytest.raises(RecordError, match="plain finite values"):
        canonical({"array": np.zeros(2)})


@pytest.mark.parametrize("number", [0.1, 1e-7, 1e22, 5e-324, 1.7976931348623157e308, 3, float("inf")])
def test_a_number_comes_back_from_its_text(number: float) -> None:
    assert number_of(number_text(number), "x") == number


@pytest.mark.parametrize("text", ["1", "1.50", "+1.0", " 1.0", "1_0.0", "nan", "Infinity", "1E5", 1.0, None, "-0.0"])
def test_a_number_has_one_text_only(text: object) -> None:
    with pytest.raises(RecordError):
        number_of(text, "x")


def test_a_time_has_one_text_only() -> None:
    assert time_of(time_text(NOON), "at") == NOON
    for text in ("2026-03-01T12:00:00Z", "2026-03-01T12:00:00.000000+00:00", "2026-13-01T12:00:00.000000Z", 5):
        with pytest.raises(RecordError):
            time_of(text, "at")
    with pytest.raises(RecordError, match="time zone"):
        time_text(datetime(2026, 3, 1))
