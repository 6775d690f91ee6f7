"""Many numbers that are written at once are written as one by one: by Arrow and by Python the same texts."""

import subprocess
import sys

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from hushbid.common.tables import arrow_texts

FINITE = st.floats(allow_nan=False, allow_infinity=False)
WHOLE = st.integers(-(2**60), 2**60).map(float)
DECIMAL = st.builds(
    lambda digits, power: float(f"{digits}e{power}"), st.integers(-(10**17), 10**17), st.integers(-30, 25)
)
AWKWARD = [0.0, -0.0, 5e-324, -2.2250738585072014e-308, 1e-5, 9.999999999999999e-05, 1e-4, 1e9, 9999999999.0, 1e10]
AWKWARD += [9999999999.999998, 1e15, 1e16, 123456789012345678.0, 1e22, 1.7976931348623157e308, 0.1, 1 / 3, -2.5, 7.0]


@given(numbers=st.lists(st.one_of(FINITE, WHOLE, DECIMAL, st.sampled_from(AWKWARD)), min_size=1, max_size=60))
@settings(max_examples=200)
def test_doubles_are_written_at_once_as_python_writes_each(numbers: list[float]) -> None:
    assert arrow_texts.float_strings(np.array(numbers)).to_pylist() == [repr(one) for one in numbers]


def test_every_size_of_number_is_written_as_python_writes_it() -> None:
    rng = np.random.default_rng(5)
    numbers = rng.integers(0, 2**64, 40_000, dtype=np.uint64).view(np.float64)
    numbers = np.concatenate([numbers[np.isfinite(numbers)], rng.random(20_000) * 10.0 ** rng.integers(-9, 24, 20_000)])
    for some in (numbers, np.round(numbers[-20_000:]), np.zeros(20_000), np.array(AWKWARD * 1000)):
        assert arrow_texts.float_strings(some).to_pylist() == [*map(repr, some.tolist())]


def test_arrow_is_asked_without_pandas() -> None:
    program = (
        "import sys, io, numpy as np;"
        "from hushbid.common.tables import read_table; from hushbid.common.tables.arrow import places_of;"
        "from hushbid.common.tables.csv_files import read_csv, write_csv; file = io.BytesIO();"
        "ids = [f'p{row}' for row in range(200_000)];"
        "write_csv(file, {'id': ids, 'x': np.arange(200_000) / 7});"
        "table = read_csv(file.getvalue(), 's', ['id', 'x'], []);"
        "assert table.numbers('x')[7] == 1.0 and table.keys('id') == ids and places_of(ids, ids[::-1])[0] == 199_999;"
        "assert 'pyarrow' in sys.modules and 'pandas' not in sys.modules and 'scipy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
