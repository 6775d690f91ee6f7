"""Records of very many people: two files that belong together, and nothing else that is found in their place."""

import hashlib
import json
import math
import multiprocessing
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hushbid.common.documents import canonical, content_hash
from hushbid.disclosure import Release
from hushbid.errors import HashMismatch, OutputExists, RecordError
from hushbid.mechanism import Market, release
from hushbid.priors import Grouped, Uniform
from hushbid.record import Record, folder, read
from hushbid.verification.files import read_document
from hushbid.verification.verifying import verify

N = 40


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a record be a folder above a few people."""
    monkeypatch.setattr(folder, "LARGEST_FILE", N - 1)


def made(*, seed: int = 1, **options: Any) -> Record:
    rng = np.random.default_rng(seed)
    labels = rng.choice(["nurses", "Ärzte"], N).tolist()
    priors = Grouped({"nurses": Uniform(1, 2), "Ärzte": Uniform(1, 3)}, labels)
    market = Market(prior=priors, variance=0.25, buyer_weight=100.0, user_weight=1.0)
    outcome = market.acquire(rng.uniform(1.0, 2.0, N))
    drawn: Release = release(outcome, rng.uniform(size=N), question=f"folder {seed}")
    ids = [f"p{row}" for row in range(N - 1)] + ["Zoë"]
    return Record.of(outcome, drawn, ids=ids, groups=labels, currency="EUR", stamps=["a stamp"], **options)


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Record]:
    with pytest.MonkeyPatch.context() as few:
        few.setattr(folder, "LARGEST_FILE", N - 1)
        few.setenv("HUSHBID_LEDGER", str(tmp_path_factory.mktemp("ledger")))
        yield made()


@pytest.fixture
def place(record: Record, tmp_path: Path) -> Path:
    return record.write(tmp_path / "record")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# -- what is written is read again -------------------------------------------------------------------------------------


def test_a_folder_is_read_as_it_was_written_and_verified(record: Record, place: Path) -> None:
    for path in (place, place / "record.json"):
        found = read(path)
        assert (found.hash, found.text, found.stamps) == (record.hash, record.text, record.stamps)
        assert list(found.ids or ()) == list(record.ids or ())
        assert list(found.groups or ()) == list(record.groups or ())
        for column, other in zip(found.outcome.columns().values(), record.outcome.columns().values(), strict=True):
            np.testing.assert_array_equal(column, other)
        for one, another in zip(found.outcome.rent_bounds, record.outcome.rent_bounds, strict=True):
            np.testing.assert_array_equal(one, another)
        assert found.outcome.market.to_dict() == record.outcome.market.to_dict()
        assert found.release is not None
        assert record.release is not None
        assert found.release.to_dict() == record.release.to_dict()
        assert found.money is not None
        assert record.money is not None
        assert found.money.payments.tolist() == record.money.payments.tolist()
        assert verify(found).ok
    assert verify(record).ok
    document = read_document(place)
    assert isinstance(document, Record)
    assert document.hash == record.hash


def test_both_files_are_there_for_their_owner_only(place: Path) -> None:
    assert sorted(path.name for path in place.iterdir()) == ["people.parquet", "record.json"]
    assert [mode(path) for path in (place, *place.iterdir())] == [0o700, 0o600, 0o600]
    assert [path.name for path in place.parent.iterdir()] == ["record"]  # nothing temporary stays


def test_rows_are_in_the_order_of_the_input_and_every_list_is_a_column(record: Record, place: Path) -> None:
    table = pq.read_table(place / "people.parquet")
    assert table["id"].to_pylist() == list(record.ids or ())
    np.testing.assert_array_equal(table["bid"].to_numpy(), record.outcome.bids)
    longest = max((len(value) for value in lists(json.loads((place / "record.json").read_text()))), default=0)
    assert longest < N


def lists(values: Any) -> Iterator[list[Any]]:
    """Return every list of a document."""
    if isinstance(values, list):
        yield values
    for one in values.values() if isinstance(values, dict) else values if isinstance(values, list) else ():
        yield from lists(one)


def test_the_shell_recipe_gives_the_hash_and_it_covers_the_table(record: Record, place: Path) -> None:
    recipe = """sed -E 's/"hash":"[0-9a-f]{64}",//' record.json | tr -d '\\n' | sha256sum"""
    done = subprocess.run(recipe, shell=True, cwd=place, capture_output=True, text=True, check=True)
    assert done.stdout.split()[0] == record.hash
    stated = json.loads((place / "record.json").read_text())["table"]
    assert stated == {"rows": N, "sha256": hashlib.sha256((place / "people.parquet").read_bytes()).hexdigest()}


def test_what_is_read_is_written_again_byte_for_byte(place: Path, tmp_path: Path) -> None:
    again = read(place).write(tmp_path / "again.json")
    assert again == tmp_path / "again"
    for path in place.iterdir():
        assert (again / path.name).read_bytes() == path.read_bytes()


def test_a_release_that_is_drawn_later_is_a_column_too(record: Record, tmp_path: Path) -> None:
    without = Record.of(record.outcome, ids=record.ids, groups=record.groups, currency="EUR", stamps=["a stamp"])
    decided = without.write(tmp_path / "decided")
    assert "lost" not in pq.read_schema(decided / "people.parquet").names
    assert record.release is not None
    for one in (without, read(decided)):
        assert one.with_release(record.release).hash == record.hash


def test_few_people_or_one_that_says_so_are_in_one_file(
    record: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Record.of(record.outcome, record.release, ids=record.ids, currency="EUR", in_one_file=True)
    assert read(one.write(tmp_path / "one.json")).hash == one.hash
    monkeypatch.setattr(folder, "LARGEST_FILE", N)
    few = Record.of(record.outcome, record.release, ids=record.ids, currency="EUR")
    assert (few.table, few.hash) == (None, one.hash)


def test_an_infinite_loss_and_a_market_of_lists_are_kept(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    caps = [math.inf if row % 2 else 0.5 for row in range(N)]
    market = Market(
        prior=Uniform(1, 2),
        variance=rng.uniform(0.1, 0.25, N),
        buyer_weight=50.0,
        user_weight=0.0,
        max_privacy_loss=caps,
    )
    whole = Record.of(market.acquire(rng.uniform(1.0, 2.5, N)))
    found = read(whole.write(tmp_path / "record"))
    assert np.isinf(found.outcome.virtual_costs).any()
    assert found.outcome.market.to_dict() == whole.outcome.market.to_dict()
    assert found.hash == whole.hash


# -- what is not the record is refused ---------------------------------------------------------------------------------


def rewritten(place: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    """Change the table, and make both hashes fit."""
    table = change(pq.read_table(place / "people.parquet"))
    pq.write_table(table, place / "people.parquet", store_schema=False)
    document = json.loads((place / "record.json").read_text())
    document["table"]["sha256"] = hashlib.sha256((place / "people.parquet").read_bytes()).hexdigest()
    restated(place, document)


def restated(place: Path, document: dict[str, Any]) -> None:
    content = {name: value for name, value in document.items() if name != "hash"}
    (place / "record.json").write_bytes(canonical({**content, "hash": content_hash(content)}) + b"\n")


def altered(table: pa.Table, name: str, values: Any) -> pa.Table:
    return table.set_column(table.schema.names.index(name), name, pa.array(values, table.schema.field(name).type))


def test_a_byte_that_was_altered_is_found_before_anything_is_read(place: Path) -> None:
    path = place / "people.parquet"
    content = bytearray(path.read_bytes())
    for where in (0, len(content) // 2, len(content) - 1):
        damaged = bytearray(content)
        damaged[where] ^= 1
        path.write_bytes(damaged)
        with pytest.raises(HashMismatch, match=r"does not fit people\.parquet: it was altered or damaged"):
            read(place)
    path.write_bytes(content[:-1])
    with pytest.raises(HashMismatch):
        read(place)


def test_the_table_of_another_record_is_found(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUSHBID_LEDGER", str(tmp_path / "ledger"))
    other = made(seed=2).write(tmp_path / "other")
    shutil.copy(other / "people.parquet", place / "people.parquet")
    with pytest.raises(HashMismatch):
        read(place)


def swapped(table: pa.Table) -> pa.Table:
    first, second = table["payment"], table["information_rent"]
    return altered(altered(table, "payment", second.to_pylist()), "information_rent", first.to_pylist())


REFUSED: dict[str, tuple[Callable[[pa.Table], pa.Table], str]] = {
    "a missing column": (lambda table: table.drop_columns(["weight"]), "differs in: 'weight'"),
    "one column more": (lambda table: table.append_column("more", table["bid"]), "differs in: 'more'"),
    "another order": (lambda table: table.select(table.schema.names[::-1]), "differs in: 'their order'"),
    "a missing row": (lambda table: table.slice(1), f"must have {N} rows, got {N - 1}"),
    "one row more": (lambda table: pa.concat_tables([table, table.slice(0, 1)]), f"must have {N} rows, got {N + 1}"),
    "a value that is missing": (
        lambda table: altered(table, "payment", [None, *table["payment"].to_pylist()[1:]]),
        "a value for everybody in column 'payment'",
    ),
    "NaN": (lambda table: altered(table, "weight", [np.nan, *table["weight"].to_pylist()[1:]]), "one is NaN"),
    "another type": (
        lambda table: table.set_column(2, "bid", table["bid"].cast(pa.float32())),
        "differs in: 'bid'",
    ),
    "an id twice": (lambda table: altered(table, "id", ["p1", *table["id"].to_pylist()[1:]]), "one occurs twice"),
    "a group that is not known": (
        lambda table: altered(table, "prior_label", ["x", *table["prior_label"].to_pylist()[1:]]),
        "PriorError in its fields",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_table_with_other_rows_or_columns_is_refused_even_if_hashes_fit(place: Path, name: str) -> None:
    change, told = REFUSED[name]
    rewritten(place, change)
    with pytest.raises(RecordError, match=re.escape(told)):
        read(place)


@pytest.mark.parametrize("change", [swapped, lambda table: table.take([1, 0, *range(2, N)])], ids=["columns", "rows"])
def test_columns_and_rows_that_were_swapped_are_found_even_if_hashes_fit(
    place: Path, change: Callable[[pa.Table], pa.Table]
) -> None:
    rewritten(place, change)
    assert "key" in verify(read(place)).failed


def test_a_number_that_was_altered_is_found_even_if_hashes_fit(place: Path) -> None:
    rewritten(place, lambda table: altered(table, "payment", np.array(table["payment"].to_numpy()) * (1 + 1e-5)))
    assert {"key", "totals"} <= set(verify(read(place)).failed)


def test_a_document_that_names_another_column_or_none_is_refused(place: Path) -> None:
    document = json.loads((place / "record.json").read_text())
    document["outcome"]["columns"]["bid"] = {"column": "payment"}
    restated(place, document)
    with pytest.raises(RecordError):
        read(place)
    del document["table"]
    restated(place, document)
    with pytest.raises(RecordError, match=r"people\.ids must be a list, got dict"):
        read(place)


@pytest.mark.parametrize(
    "table", [{"rows": N}, {"rows": str(N), "sha256": ""}, [], {"rows": N, "sha256": "", "file": "x"}]
)
def test_what_a_document_states_of_its_table_is_exactly_its_size_and_hash(place: Path, table: Any) -> None:
    restated(place, {**json.loads((place / "record.json").read_text()), "table": table})
    with pytest.raises(RecordError):
        read(place)


def test_the_table_cannot_be_elsewhere(place: Path, tmp_path: Path) -> None:
    """The same bytes behind a link are refused: what a link leads to may change."""
    for name in ("people.parquet", "record.json"):
        moved = shutil.move(place / name, tmp_path / name)
        (place / name).symlink_to(moved)
        with pytest.raises(RecordError, match="it is a link"):
            read(place)
        (place / name).unlink()
        os.mkfifo(place / name)  # nobody writes into it: it is not waited for
        with pytest.raises(RecordError, match="it is not a file"):
            read(place)
        (place / name).unlink()
        with pytest.raises(RecordError, match="No such file"):
            read(place)
        shutil.move(tmp_path / name, place / name)
    assert read(place)


def test_a_table_that_would_fill_the_memory_is_refused(place: Path) -> None:
    rows = 10**7
    columns = pq.read_schema(place / "people.parquet")
    zeros = {"string": pa.array(["x"]).take(pa.array(np.zeros(rows, np.int32))), "double": pa.array(np.zeros(rows))}
    zeros["int64"] = pa.array(np.zeros(rows, np.int64))
    rewritten(place, lambda _: pa.table({field.name: zeros[str(field.type)] for field in columns}))
    document = json.loads((place / "record.json").read_text())
    restated(place, {**document, "table": {**document["table"], "rows": rows}})
    with pytest.raises(RecordError, match="far more memory than its size"):
        read(place)


def test_streams_and_compressed_files_are_for_one_file(place: Path, tmp_path: Path) -> None:
    told = "give the folder that holds both files"
    with pytest.raises(RecordError, match=told):
        Record.from_dict(json.loads((place / "record.json").read_text()))
    shutil.copy(place / "record.json", tmp_path / "other.json")
    with pytest.raises(RecordError, match=told):
        read(tmp_path / "other.json")


def test_without_the_library_of_the_table_one_sentence_says_what_to_install(place: Path) -> None:
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from hushbid.errors import MissingExtra\n"
        "from hushbid.record import folder, read\n"
        f"for what in (lambda: read({str(place)!r}), lambda: folder.require_table_library(10**6)):\n"
        "    try:\n        what()\n    except MissingExtra as problem:\n        print(problem)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    told = "Records of very many people need pyarrow: pip install '.[engines]' in a checkout."
    assert done.stdout.splitlines() == [told, told]


# -- together or not at all --------------------------------------------------------------------------------------------


def test_a_folder_that_exists_is_replaced_only_on_demand(record: Record, place: Path, tmp_path: Path) -> None:
    record.write(place)  # the same again is not overwriting
    other = Record.of(record.outcome, ids=record.ids, currency="EUR")
    with pytest.raises(OutputExists, match="exists already; pass overwrite=True"):
        other.write(place)
    assert read(place).hash == record.hash
    other.write(place, overwrite=True)
    assert read(place).hash == other.hash
    assert [path.name for path in tmp_path.iterdir()] == ["record"]


def test_the_other_form_does_not_stay_in_the_same_place(record: Record, tmp_path: Path) -> None:
    one = Record.of(record.outcome, currency="EUR", in_one_file=True)
    path = tmp_path / "record.json"
    one.write(path)
    with pytest.raises(OutputExists):
        record.write(path)
    assert [found.name for found in tmp_path.iterdir()] == ["record.json"]
    assert record.write(path, overwrite=True) == tmp_path / "record"
    assert [found.name for found in tmp_path.iterdir()] == ["record"]


def test_a_folder_of_another_kind_is_never_removed(record: Record, tmp_path: Path) -> None:
    (tmp_path / "record").mkdir()
    (tmp_path / "record" / "people.parquet").write_text("of value")
    one = Record.of(record.outcome, currency="EUR", in_one_file=True)
    one.write(tmp_path / "record.json", overwrite=True)
    assert (tmp_path / "record" / "people.parquet").read_text() == "of value"


def test_a_failure_leaves_nothing_behind(record: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Record) -> bytes:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Record, "to_bytes", fail)
    with pytest.raises(Exception, match="No space left"):
        record.write(tmp_path / "record")
    assert list(tmp_path.iterdir()) == []


def write_often(source: Path, target: Path, times: int) -> None:
    """Replace a record again and again, from a process of its own."""
    record = read(source)
    for _ in range(times):
        record.write(target, overwrite=True)


def test_two_processes_that_write_at_once_leave_one_whole_record(record: Record, tmp_path: Path) -> None:
    other = Record.of(record.outcome, ids=record.ids, currency="EUR")
    sources = [one.write(tmp_path / name) for one, name in ((record, "a"), (other, "b"))]
    spawn = multiprocessing.get_context("spawn")
    target = tmp_path / "target"
    writing = [spawn.Process(target=write_often, args=(source, target, 50)) for source in sources]
    for one in writing:
        one.start()
    for one in writing:
        one.join()
    assert [one.exitcode for one in writing] == [0, 0]
    assert read(target).hash in (record.hash, other.hash)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "target"]
