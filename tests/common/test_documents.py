"""Plain values have one written form, and what has two is not read."""

import json
import math
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushbid.common.documents import canonical, compact, number_of, number_text, parsed, time_of, time_text
from hushbid.errors import RecordError
from tests.extent import each

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_canonical_numbers_read_back_as_the_same_doubles() -> None:
    numbers = [0.1, -0.0, 5e-324, 1.7976931348623157e308, 1 / 3, 2**60, 1e22, float(np.nextafter(1, 2))]
    found = parsed(canonical({"numbers": numbers}))["numbers"]
    assert [repr(number) for number in found] == [repr(number) for number in numbers]
    assert [type(number) for number in found] == [type(number) for number in numbers]


def test_the_spelling_of_numbers_and_signs_stays_as_it_is() -> None:
    """Hashes of records that exist depend on it, whatever a later version of the library that writes may do."""
    numbers = [1.0, -0.0, 1e-5, 1e-6, 1.23e-5, 1e15, 9007199254740993.0, 1e16, 1e22, 5e-324, 0.1, 1 / 3, 7, -(2**63)]
    written = canonical({"b": numbers, "a": 'ä€😀 \x7f\x01\n"\\', "é": {"y": None, "x": [True, False]}})
    assert written == (
        b'{"a":"\\u00e4\\u20ac\\ud83d\\ude00 \x7f\\u0001\\n\\"\\\\","b":[1.0,-0.0,0.00001,1e-6,0.0000123,'
        b"1000000000000000.0,9007199254740992.0,1e+16,1e+22,5e-324,0.1,0.3333333333333333,7,-9223372036854775808],"
        b'"\\u00e9":{"x":[true,false],"y":null}}'
    )


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=20,
)


@given(content=st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), PLAIN))
@settings(max_examples=40)
def test_what_is_written_is_read_by_every_reader_as_what_it_was(content: dict[str, Any]) -> None:
    text = canonical(content)
    assert repr(parsed(text)) == repr(json.loads(text))
    assert parsed(text) == content
    assert canonical(parsed(text)) == text
    assert list(parsed(compact(content))) == list(content)
    pretty = json.dumps(content, indent=1).encode()
    assert canonical(parsed(pretty)) == text


@each("wrong", [math.nan, math.inf, -math.inf, np.zeros(2), np.float32(1.0), 1j, "\ud800", 2**64])
def test_what_has_no_form_cannot_be_written(wrong: object) -> None:
    for content in ({"a": wrong}, {"a": [0.5, wrong]}, {"a": {"b": [{"c": wrong}]}}, {"a": [0.5] * 20 + [wrong]}):
        with pytest.raises(RecordError, match="plain finite values"):
            canonical(content)
    with pytest.raises(RecordError, match="plain finite values"):
        canonical({1: 0.5})  # type: ignore[dict-item]


def test_sums_beyond_the_largest_double_are_not_taken_for_infinities() -> None:
    assert parsed(canonical({"a": [1.7e308, 1.7e308]})) == {"a": [1.7e308, 1.7e308]}


@each(
    "text",
    [
        b'{"a":[1.50,2.0]}',
        b'{"a":[1E5,1e5,100000]}',
        b'{"a": [0.5, 0.25], "b":\t{}}\r\n',
        b'{"a":123456789012345678901234567890}',
        b'{"a":[-0,-0.0,0.0]}',
        b'{"b":1,"a":"\\u0041\\/"}',
        '{"a":"ä"}'.encode(),
    ],
)
def test_other_spellings_are_read_as_json_reads_them(text: bytes) -> None:
    assert repr(parsed(text)) == repr(json.loads(text))


@each(
    "text",
    [
        b'{"a":1,"a":1}',
        b'{"a":[{"b":0.5,"b":0.25}]}',
        b'{"a":NaN}',
        b'{"a":[0.5,-Infinity]}',
        b'{"a":+1.0}',
        b'{"a":01.0}',
        b'{"a":[0.5,,1.0]}',
        b'{"a":[0.5',
        b'{"a":1}{"a":1}',
        b'{"a":"\x01"}',
        b'{"a":"\xff"}',
        b"[0.5]",
        b"",
        b"[" * 3_000_000,
    ],
)
def test_what_readers_differ_on_is_refused(text: bytes) -> None:
    with pytest.raises(RecordError, match="A record must be"):
        parsed(text)


@each("number", [0.1, 1e-7, 1e22, 5e-324, 1.7976931348623157e308, 3, float("inf")])
def test_a_number_comes_back_from_its_text(number: float) -> None:
    assert number_of(number_text(number), "x") == number


@each("text", ["1", "1.50", "+1.0", " 1.0", "1_0.0", "nan", "Infinity", "1E5", 1.0, None, "-0.0"])
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
