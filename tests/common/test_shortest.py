"""Many numbers written at once are written as one by one: by Arrow and by Python the same bytes."""

import json
import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushbid.common import shortest
from hushbid.common.documents import canonical, parsed, parsed_held
from hushbid.common.held import Doubles, Held, held_in
from hushbid.errors import RecordError

FINITE = st.floats(allow_nan=False, allow_infinity=False)
WHOLE = st.integers(-(2**60), 2**60).map(float)
DECIMAL = st.builds(
    lambda digits, power: float(f"{digits}e{power}"), st.integers(-(10**17), 10**17), st.integers(-30, 25)
)
AWKWARD = [0.0, -0.0, 5e-324, -2.2250738585072014e-308, 1e-5, 9.999999999999999e-05, 1e-4, 1e9, 9999999999.0, 1e10]
AWKWARD += [9999999999.999998, 1e15, 1e16, 123456789012345678.0, 1e22, 1.7976931348623157e308, 0.1, 1 / 3, -2.5, 7.0]


@pytest.fixture
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shortest, "MANY", 1)
    monkeypatch.setattr(shortest, "_CHUNK", 16)


@given(numbers=st.lists(st.one_of(FINITE, WHOLE, DECIMAL, st.sampled_from(AWKWARD)), min_size=1, max_size=60))
@settings(max_examples=200)
def test_doubles_are_written_at_once_as_python_writes_each(numbers: list[float]) -> None:
    expected = [repr(one) for one in numbers]
    assert shortest.joined_floats(np.array(numbers), ", ").decode() == ", ".join(expected)
    assert shortest.float_strings(np.array(numbers)).to_pylist() == expected


def test_every_size_of_number_is_written_as_python_writes_it() -> None:
    rng = np.random.default_rng(5)
    numbers = rng.integers(0, 2**64, 40_000, dtype=np.uint64).view(np.float64)
    numbers = np.concatenate([numbers[np.isfinite(numbers)], rng.random(20_000) * 10.0 ** rng.integers(-9, 24, 20_000)])
    for some in (numbers, np.round(numbers[-20_000:]), np.zeros(20_000), np.array(AWKWARD * 1000)):
        assert shortest.joined_floats(some, ",").decode() == ",".join(map(repr, some.tolist()))


@pytest.mark.usefixtures("few_are_many")
@pytest.mark.parametrize(
    "content",
    [
        {"b": AWKWARD, "a": {"deep": [1.5] * 40, "text": "ä"}, "": [], "ids": ["x", "ÿ"], "one": [1, 2.0, "inf", None]},
        {
            "whole": [1, 2],
            "mixed": [0.5, True],
            "nested": [[0.25], {"z": [1e-9]}],
            "a": {"b": {"c": {"d": {"e": [0.5]}}}},
        },
        {"numbers": [0.5], 'key"': [2.0], "é": {"x": -0.0}},
    ],
)
def test_the_canonical_form_is_that_of_json(content: dict[str, object]) -> None:
    expected = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")
    assert canonical(content) == expected


@pytest.mark.usefixtures("few_are_many")
@pytest.mark.parametrize("wrong", [math.nan, math.inf, np.zeros(3), np.float32(1.0)])
def test_what_has_no_form_is_refused_in_long_lists_too(wrong: object) -> None:
    with pytest.raises(RecordError, match="plain finite values"):
        canonical({"numbers": [0.5, wrong]})
    with pytest.raises(RecordError, match="plain finite values"):
        canonical({"numbers": wrong})


@pytest.mark.usefixtures("few_are_many")
def test_arrays_that_are_held_are_written_and_shown_as_lists() -> None:
    columns = {"a": Doubles(np.array(AWKWARD)), "b": Doubles(np.array([1.0, math.inf])), "c": None}
    held = Held({"format": "f", "columns": columns})
    plain = {"format": "f", "columns": {"a": AWKWARD, "b": [1.0, "inf"], "c": None}}
    assert {**held} == plain
    assert canonical(held) == canonical(plain)


@given(numbers=st.lists(st.one_of(FINITE, WHOLE, DECIMAL, st.sampled_from(AWKWARD)), min_size=1, max_size=60))
@settings(max_examples=200)
def test_doubles_that_were_joined_are_split_into_the_same_bits(numbers: list[float]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shortest, "MANY", 1)
        found = shortest.split_floats(",".join(map(repr, numbers)).encode())
    assert found is not None
    assert found.tobytes() == np.array(numbers).tobytes()


@pytest.mark.usefixtures("few_are_many")
@pytest.mark.parametrize(
    "text",
    ["1.50", "+1.0", "01.0", "1.", ".5", "1", "1E5", "1e5", " 1.0", "1.0 ", "nan", "inf", "", "1.0\n2.0", '"1.0"'],
)
def test_numbers_that_are_written_otherwise_are_not_split(text: str) -> None:
    assert shortest.split_floats(f"0.5,{text},2.5".encode()) is None


@pytest.mark.usefixtures("few_are_many")
def test_long_lists_of_doubles_are_read_as_arrays_and_all_else_as_json_reads_it() -> None:
    plain = {"a": AWKWARD, "b": {"c": [0.25, 0.5]}, "ids": ["x[", "]["], "mixed": [1.5, "inf"], "one": 1.5}
    found = parsed_held(canonical(plain))
    assert {**found} == plain
    held = held_in(found)
    assert isinstance(held["a"], Doubles)
    assert isinstance(held["b"]["c"], Doubles)
    assert canonical(found) == canonical(plain)


@pytest.mark.usefixtures("few_are_many")
@pytest.mark.parametrize(
    "text",
    [
        b'{"a":[1.50,2.0],"b":[0.5,0.25]}',
        b'{"a":[1,2.0],"b":[1e5,0.5]}',
        b'{"a": [0.5, 0.25], "b": [ 0.5,0.25 ]}',
        b'{"a":"[0.5,0.25]","b":"\\"[0.5,0.25]"}',
        b'{"a":[[0.5,0.25],[0.5,0.25]],"b":[{"c":[0.5,0.25]}]}',
        b'{"a":{},"[0.5,0.25]":[0.5,0.25]}',
    ],
)
def test_a_list_that_is_written_or_stands_otherwise_is_read_as_json_reads_it(text: bytes) -> None:
    assert {**parsed_held(text)} == parsed(text) == json.loads(text)


@pytest.mark.usefixtures("few_are_many")
@pytest.mark.parametrize(
    "text",
    [
        b'{"a":[0.5,0.25],"a":[0.5,0.25]}',
        b'{"a":[0.5,NaN]}',
        b'{"a":[0.5,+1.0]}',
        b'{"a":[0.5,01.0]}',
        b'{"a":[0.5,,1.0]}',
        b"[0.5,0.25]",
        b'{"a":[0.5,0.25]',
        b'{"a":[0.5,0.25]]}',
        b"[" * 50_000 + b"0.5,0.25]",
        b"[" * 3_000_000,
    ],
)
def test_what_json_refuses_is_refused_with_long_lists_too(text: bytes) -> None:
    with pytest.raises(RecordError, match="A record must be"):
        parsed_held(text)


@pytest.mark.usefixtures("few_are_many")
@pytest.mark.parametrize(
    "texts", [["x", "y z"], ["", ""], ['"', "a"], ["\\", "a"], ["ä", "b"], ["a\tb", "\x7f"], ['","', "a"]]
)
def test_texts_are_written_at_once_as_json_writes_them(texts: list[str]) -> None:
    assert canonical({"texts": texts}) == json.dumps({"texts": texts}, separators=(",", ":")).encode()


def test_arrow_is_asked_without_pandas() -> None:
    program = (
        "import sys, io, numpy as np; from hushbid.common.documents import canonical;"
        "from hushbid.common.tables import read_table; from hushbid.common.tables.arrow import places_of;"
        "from hushbid.common.tables.csv_files import read_csv, write_csv;"
        "canonical({'a': [0.5] * 20_000}); file = io.BytesIO();"
        "ids = [f'p{row}' for row in range(200_000)];"
        "write_csv(file, {'id': ids, 'x': np.arange(200_000) / 7});"
        "table = read_csv(file.getvalue(), 's', ['id', 'x'], []);"
        "assert table.numbers('x')[7] == 1.0 and table.keys('id') == ids and places_of(ids, ids[::-1])[0] == 199_999;"
        "assert 'pyarrow' in sys.modules and 'pandas' not in sys.modules and 'scipy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
