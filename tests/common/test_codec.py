"""The strict codec: what it writes it reads, it reads nothing else, and it tells all that is wrong at once."""

import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import pytest

from hushbid.common.arrays import FloatArray, IntArray
from hushbid.common.codec import SIGNED, TIME, Codec, hexadecimal
from hushbid.errors import RecordError
from tests.extent import each


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    data_bits: int
    noise_scale: float | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sample:
    setting: Literal["central", "local"]
    bounds: tuple[float, float]
    losses: FloatArray
    rows: IntArray
    names: tuple[str, ...]
    grid: Grid
    versions: dict[str, str]
    late: bool
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    report: float | None
    at: Annotated[str, TIME]
    salt: Annotated[bytes, hexadecimal(2)]
    fee: int


SAMPLE: Codec[Sample] = Codec(Sample, "sample", header={"format": "a sample", "version": 3})
LETTER: Codec[Letter] = Codec(Letter, "letter", style=SIGNED)
WRITTEN: dict[str, Any] = {
    "format": "a sample",
    "version": 3,
    "setting": "central",
    "bounds": [0.0, "inf"],
    "losses": [0.5, "inf", -1.0],
    "rows": [3, -4],
    "names": ["ann", ""],
    "grid": {"data_bits": 53, "noise_scale": None},
    "versions": {"hushbid": "0.1"},
    "late": False,
}
SIGNED_LETTER = {"report": "1.25", "at": "2026-03-01T12:00:00.000000Z", "salt": "00ff", "fee": 7}


def test_what_is_read_is_written_again_as_it_stood() -> None:
    found = SAMPLE.read(WRITTEN)
    assert SAMPLE.write(found) == WRITTEN
    assert (found.bounds, found.losses.tolist(), found.rows.dtype) == ((0.0, math.inf), [0.5, math.inf, -1.0], np.int64)
    assert (found.grid, found.note) == (Grid(data_bits=53, noise_scale=None), "")
    assert SAMPLE.write(SAMPLE.read({**WRITTEN, "note": "x"})) == {**WRITTEN, "note": "x"}


def test_signed_documents_write_numbers_times_and_bytes_as_texts() -> None:
    found = LETTER.read(SIGNED_LETTER)
    assert (found.report, found.salt) == (1.25, b"\x00\xff")
    assert LETTER.write(found) == SIGNED_LETTER


def test_every_problem_is_told_at_once_with_its_path_and_no_value() -> None:
    wrong = {**WRITTEN, "losses": [0.5, "0.25"], "grid": {"data_bits": True, "noise_scale": 1}, "late": 0, "names": "x"}
    with pytest.raises(RecordError) as refused:
        SAMPLE.read(wrong)
    for path in ("sample.losses.1", "sample.grid.data_bits", "sample.grid.noise_scale", "sample.late", "sample.names"):
        assert f"{path} must be " in str(refused.value)
    assert "0.25" not in str(refused.value)
    assert refused.value.field == "sample.losses.1"


@each(
    ("changed", "words"),
    [
        ({"version": 2}, r"A sample must have format 'a sample' and version 3, got \('a sample', 2\)\.$"),
        ({"version": 3.0}, r"got \('a sample', 3\.0\)"),
        ({"further": 1}, "differs in: further"),
        ({"bounds": [0.0]}, "sample.bounds must have 2 entries, got 1"),
        ({"bounds": [0, 1.0]}, r"sample\.bounds\.0 must be a number .*, got int"),
        ({"losses": [math.inf]}, r"sample\.losses\.0 must be a number"),
        ({"rows": [2**53 + 1]}, r"sample\.rows\.0 must be a whole number from"),
        ({"rows": [True]}, r"sample\.rows\.0 must be an integer, got bool"),
        ({"setting": "elsewhere"}, r"sample\.setting must be 'central' or 'local'"),
        ({"versions": {"a\n": 1}}, r"sample\.versions\.a\\n must be text, got int\.$"),
        ({"note": ""}, "sample.note must be left out where it says nothing"),
    ],
)
def test_there_is_one_way_to_say_something(changed: dict[str, Any], words: str) -> None:
    with pytest.raises(RecordError, match=words):
        SAMPLE.read({**WRITTEN, **changed})


@each(
    "changed",
    [{"report": 1.25}, {"report": "1.250"}, {"at": "2026-03-01"}, {"salt": "00FF"}, {"fee": -1}, {"fee": "7"}],
)
def test_a_signed_document_has_one_form_for_every_value(changed: dict[str, Any]) -> None:
    with pytest.raises(RecordError, match=rf"^letter\.{next(iter(changed))} must be "):
        LETTER.read({**SIGNED_LETTER, **changed})


def test_a_document_full_of_problems_is_refused_in_a_few_sentences() -> None:
    with pytest.raises(RecordError, match=r"And 40 more\.$"):
        SAMPLE.read({**WRITTEN, "versions": {str(row): row for row in range(50)}})
