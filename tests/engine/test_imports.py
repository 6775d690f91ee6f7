"""Heavy engines are loaded when they are used, not before."""

import subprocess
import sys


def test_importing_the_engine_and_pricing_loads_no_frame_library() -> None:
    code = (
        "import sys, hushbid.engine; from hushbid.engine import price, release;"
        " print(sorted({'polars', 'duckdb', 'pyspark', 'pyarrow', 'pandas'} & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
