"""Counting different ids, exactly, in eight bytes per row."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hushbid.engine import ids
from hushbid.engine.arrow import ArrowEngine

RNG = np.random.default_rng(40)
DRAWN = RNG.integers(0, 3000, 3000)
COLUMNS: dict[str, Any] = {
    "integers": pa.array(DRAWN),
    "large integers": pa.array(DRAWN.astype(np.uint64) + np.uint64(2**63)),
    "floats": pa.array(DRAWN / 7.0),
    "texts": pa.array([f"person-{x}" * (1 + x % 3) for x in DRAWN]),
    "short texts": pa.array([chr(0x4E00 + x % 500) for x in DRAWN]),
    "labels": pa.array([str(x) for x in DRAWN]).dictionary_encode(),
    "bytes": pa.array([str(x).encode() for x in DRAWN], pa.binary()),
    "some missing": pa.array([None if x % 5 == 0 else str(x) for x in DRAWN]),
    "one": pa.array(["x"] * 3000),
}


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("at_once", [1 << 27, 500])
def test_different_values_are_counted_exactly(name: str, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ids, "AT_ONCE", at_once)
    column = COLUMNS[name]
    expected = len({value for value in column.to_pylist() if value is not None})
    table = pa.table({"id": pa.chunked_array([column.slice(0, 700), column.slice(700)])})
    assert ArrowEngine(table).distinct("id") == expected


def test_texts_that_share_a_fingerprint_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = ids._of_texts
    monkeypatch.setattr(ids, "_of_texts", lambda column: inner(column) % np.uint64(40))
    assert ArrowEngine(pa.table({"id": [f"u{k % 990}" for k in range(1000)]})).distinct("id") == 990


def test_texts_that_differ_in_one_place_only_have_different_fingerprints() -> None:
    texts = [""] + ["a" * length for length in range(1, 40)] + ["a" * k + "b" + "a" * (30 - k) for k in range(31)]
    texts += ["\0" * length for length in range(1, 20)]
    found, exact = ids.fingerprints(pa.array(texts))
    assert np.unique(found).size == len(texts)
    assert not exact
