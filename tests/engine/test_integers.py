"""The integers below the noise: the same to the last bit in memory and on engines, for random surveys."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hushbid import Choice, Market, Number, Uniform, YesNo
from hushbid.disclosure import ReleasePlan
from hushbid.disclosure.memory import weigh
from hushbid.disclosure.sums import Sums
from hushbid.engine import price
from hushbid.engine.delivered import data_columns
from hushbid.engine.releasing import prepared_sums
from hushbid.estimation import Strata
from hushbid.questions import Question
from tests.engine.conftest import make_kind

ENGINES = ("arrow", "polars", "duckdb")
NAMES = ("east", "south", "west")


def asked_by(rng: np.random.Generator) -> list[Question]:
    """One to four questions of all kinds."""
    found: list[Question] = []
    for place in range(int(rng.integers(1, 5))):
        name, importance = f"q{place}", float(rng.choice([1.0, 3.0, 100.0]))
        low = float(rng.normal(0.0, 10.0))
        found.append(
            (
                Number(name=name, bounds=(low, low + float(rng.uniform(0.5, 20.0))), importance=importance),
                YesNo(name=name, importance=importance),
                Choice(name=name, answers=tuple("abcde"[: int(rng.integers(2, 6))]), importance=importance),
            )[int(rng.integers(3))]
        )
    return found


def answers_to(question: Question, people: int, rng: np.random.Generator) -> tuple[np.ndarray, Any]:
    """Random answers as numbers, some numbers outside their range, and as a column of a table."""
    if isinstance(question, Number):
        low, high = question.bounds
        codes = rng.uniform(low - 1.0, high + 1.0, people)
        return codes, codes
    if isinstance(question, Choice):
        codes = rng.integers(len(question.answers), size=people)
        return codes, [question.answers[code] for code in codes]
    codes = rng.integers(2, size=people)
    return codes, codes.astype(bool)


@pytest.mark.parametrize("seed", range(20))
def test_memory_polars_and_duckdb_have_the_same_integers_below_the_noise(
    seed: int, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    rng = np.random.default_rng(seed)
    n, asked, strata, missing = 1200, asked_by(rng), seed % 2 == 1, seed % 3 > 0
    where, bids = rng.choice(NAMES, size=n, p=[0.2, 0.3, 0.5]), Uniform(1, 2).sample(n, rng=rng)
    given = [answers_to(one, n, rng) for one in asked]
    table = np.column_stack([codes for codes, _ in given]).astype(float)
    open_ = rng.random(n) < 0.1 if missing else np.zeros(n, dtype=bool)
    table[open_] = np.nan
    columns = {one.name: pa.array(column, mask=open_) for one, (_, column) in zip(asked, given, strict=True)}
    people = pa.table({"id": np.arange(n), "bid": bids, "where": where, **columns})
    more: dict[str, Any] = {"strata": [], "contrast": {"east": 1.0, "south": -0.7, "west": -0.3}} if strata else {}
    relation = 0.02 if seed % 5 == 0 else 0.0
    market = Market(prior=Uniform(1, 2), questions=asked, buyer_weight=3e5, max_correlation=relation, **more)
    by: dict[str, Any] = {"stratum": "where"} if strata else {}
    found, codes = [], np.searchsorted(NAMES, where) if strata else np.zeros(n, dtype=int)
    for name in ENGINES:
        kind = make_kind(name, request, tmp_path)
        priced = price(kind.make(people), market, **by, gather=100, window=50)
        engine = prepared_sums(priced, data_columns(priced, None))
        losses = kind.read(priced.frame).column("privacy_loss").to_numpy()
        assert engine.sums == Sums.of(losses, table, codes, engine.plan)
        found.append((engine.sums, engine.totals, engine.grid, engine.error, engine.errors()))
    assert found[0] == found[1] == found[2]
    if strata and missing:  # memory knows who is left, and finds the best contrast of what they were promised
        return
    stated = Strata(codes=codes, weights=[1.0, -0.7, -0.3], names=NAMES) if strata else None
    plan = ReleasePlan.of(
        losses, setting="central", questions=asked, strata=stated, relation=priced._population.relation
    )
    memory = weigh(plan, (losses > 0.0) & ~open_).prepare(table)
    assert (memory.totals, memory.grid, memory.error, memory.errors()[0]) == (*found[0][1:4], found[0][4][0])
