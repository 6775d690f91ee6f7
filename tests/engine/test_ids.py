"""What may name people, in which form; and counting different ids, exactly, in eight bytes per row."""

from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hushbid.allocation import tie_keys
from hushbid.campaign.people import read_people
from hushbid.common.arrays import id_texts
from hushbid.disclosure.ledger.question import Forms, person_digests, tallied
from hushbid.engine import ids, price
from hushbid.engine.backends.arrow import ArrowEngine
from hushbid.engine.delivered import data_columns
from hushbid.engine.releasing import asked_of
from hushbid.errors import InputError
from hushbid.mechanism import Market
from hushbid.priors import Uniform

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


# -- what may name people, and its one form ----------------------------------------------------------------------------

WHERE = ("memory", "arrow", "parquet", "polars", "duckdb")
MARKET = Market(
    prior=Uniform(1, 2), bounds=(0, 12), variance=9.0, setting="local", user_weight=0, buyer_weight=300.0 / 144
)
PEOPLE = 60
NAMED = [f"Zoe\u0308-{k}" if k % 2 else f"Zo\u00eb-{k} " for k in range(PEOPLE)]
GOOD: dict[str, Any] = {
    "texts": pa.array(NAMED),
    "large texts": pa.array(NAMED, pa.large_string()),
    "labels": pa.array(NAMED).dictionary_encode(),
    "integers": pa.array(range(PEOPLE), pa.int32()),
    "numbers among texts": pa.array([f" {k}" for k in range(PEOPLE)]),
}
DAYS = [datetime(2024, 1, 2, 3) + timedelta(k) for k in range(PEOPLE)]
BAD: dict[str, tuple[Any, str]] = {
    "floats": (pa.array([float(k) for k in range(PEOPLE)]), "floats"),
    "decimals": (pa.array([Decimal(k) for k in range(PEOPLE)], pa.decimal128(9, 2)), "decimals"),
    "timestamps": (pa.array(DAYS, pa.timestamp("us")), "timestamps"),
    "timestamps in a zone": (
        pa.array(DAYS, pa.timestamp("us", "UTC")),
        "timestamps",
    ),
    "dates": (pa.array([day.date() for day in DAYS], pa.date32()), "dates"),
    "truth values": (pa.array([k % 2 == 0 for k in range(PEOPLE)]), "truth values"),
    "bytes": (pa.array([str(k).encode() for k in range(PEOPLE)], pa.binary()), "bytes"),
}


def equals(ids: Any, folder: Path) -> Path:
    """People who all ask the same: identity decides from whom it is bought."""
    path = folder / "people.parquet"
    messages = pa.array([None] * PEOPLE, pa.string())
    pq.write_table(pa.table({"id": ids, "bid": np.full(PEOPLE, 1.25), "message": messages}), path)
    return path


def bought(path: Path, where: str) -> tuple[list[bool], int]:
    """From whom something is bought, in the order of rows, and the sum that names these people's claim."""
    if where == "memory":
        found = read_people(str(path))
        losses = MARKET.acquire(found.bids, tie_key=found.tie_keys(MARKET)).privacy_loss
        digests = person_digests(id_texts(found.ids or ()))
        return (losses > 0.0).tolist(), tallied(digests, losses, 1.0, Forms(rows=[None] * PEOPLE)).people
    population: Any = pq.read_table(path) if where == "arrow" else str(path)
    priced = price(population, MARKET, engine="auto" if where in ("arrow", "parquet") else where)
    priced.write_parquet(path.with_name("priced.parquet"))
    losses = pq.read_table(path.with_name("priced.parquet"))["privacy_loss"].to_numpy()
    return (losses > 0.0).tolist(), asked_of(
        priced, data_columns(priced, "message"), question="sleep", wave=1
    ).tally.people


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("name", GOOD)
def test_the_same_people_are_bought_from_and_have_the_same_claim_wherever_their_ids_stand(
    name: str, where: str, tmp_path: Path
) -> None:
    found, people = bought(equals(GOOD[name], tmp_path), where)
    names = [f"Zo\u00eb-{k}" if GOOD[name][0].as_py() == NAMED[0] else str(k) for k in range(PEOPLE)]
    losses = MARKET.acquire(np.full(PEOPLE, 1.25), tie_key=tie_keys(names)).privacy_loss
    assert 0 < sum(found) < PEOPLE
    assert found == (losses > 0.0).tolist()
    assert people == tallied(person_digests(names), losses, 1.0, Forms(rows=[None] * PEOPLE)).people


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("name", BAD)
def test_a_column_of_anything_but_texts_and_integers_names_nobody(name: str, where: str, tmp_path: Path) -> None:
    ids, held = BAD[name]
    with pytest.raises(InputError, match=rf"olumn 'id' must hold texts or integers, not {held}\.$"):
        bought(equals(ids, tmp_path), where)


@pytest.mark.parametrize("where", WHERE)
def test_where_identity_decides_a_missing_id_is_refused_not_called_none(where: str, tmp_path: Path) -> None:
    for some in ([None, *NAMED[1:]], [None, *range(1, PEOPLE)]):
        with pytest.raises(InputError, match="must name everybody"):
            bought(equals(pa.array(some), tmp_path), where)


def test_on_spark_too_an_id_is_a_text_or_an_integer(spark_session: Any, tmp_path: Path) -> None:
    for name in ("labels", "integers"):
        frame = spark_session.read.parquet(str(equals(GOOD[name], tmp_path)))
        here, there = (price(one, MARKET) for one in (frame, str(tmp_path / "people.parquet")))
        asked = [
            asked_of(priced, data_columns(priced, "message"), question="sleep", wave=1).tally
            for priced in (here, there)
        ]
        assert asked[0].people == asked[1].people
        assert asked[0].marked == pytest.approx(asked[1].marked, rel=1e-12)
    for name in ("floats", "timestamps in a zone"):
        frame = spark_session.read.parquet(str(equals(BAD[name][0], tmp_path)))
        with pytest.raises(InputError, match=f"'id' must hold texts or integers, not {BAD[name][1]}"):
            price(frame, MARKET)
