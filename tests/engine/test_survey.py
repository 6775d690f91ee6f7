"""Surveys on engines: priced, summed and released as in memory."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import hushbid
from hushbid import Budget, Choice, HardBudget, Market, Number, Uniform, YesNo
from hushbid.common.money import Currency
from hushbid.disclosure import privatize_answers
from hushbid.disclosure import release_synthetic as drawn_in_memory
from hushbid.disclosure.ledger.question import answer_forms, person_digests, tallied
from hushbid.disclosure.memory import weigh
from hushbid.disclosure.sums import Sums
from hushbid.engine import Priced, price, release
from hushbid.engine.delivered import data_columns
from hushbid.engine.payouts import due
from hushbid.engine.releasing import asked_of, prepared_sums, release_synthetic, sum_plan
from hushbid.errors import AlreadyReleased, DataError, InputError, MarketError
from hushbid.mechanism.releasing import plan_of
from tests.engine.conftest import ENGINES, Kind

QUESTIONS = (
    Number(name="sleep", bounds=(0, 12), variance=2.5),
    YesNo(name="smokes"),
    Choice(name="shift", answers=("days", "nights", "no answer"), importance=2),
)
MARKET = Market(prior=Uniform(1, 2), questions=QUESTIONS, buyer_weight=2000.0)
RNG = np.random.default_rng(11)
N = 3000
BIDS = Uniform(1, 2).sample(N, rng=RNG)
SLEEP = np.where(np.arange(N) % 50 == 0, np.nan, RNG.normal(7, 3, N))
SMOKES = RNG.random(N) < 0.3
SHIFT = [None if k % 70 == 0 else ("days", " nights ", "no answer", "")[int(RNG.integers(4))] for k in range(N)]
OPEN = np.isnan(SLEEP) | np.array([not shift for shift in SHIFT])
TABLE = np.column_stack([SLEEP, SMOKES, [QUESTIONS[2].answers.index((one or "days").strip()) for one in SHIFT]])
TABLE[OPEN] = np.nan


def people(**changes: Any) -> pa.Table:
    columns = {"id": np.arange(N), "bid": BIDS, "sleep": SLEEP, "smokes": SMOKES, "shift": SHIFT}
    return pa.table({**columns, **changes})


def sums_of(priced: Priced) -> Sums:
    return prepared_sums(priced, data_columns(priced, None)).sums


@pytest.mark.parametrize("kind", [name for name in ENGINES if name != "spark"], indirect=True)
def test_on_an_engine_a_survey_has_the_losses_the_integers_and_the_claim_of_memory(kind: Kind) -> None:
    outcome = MARKET.acquire(BIDS)
    plan = plan_of(outcome)
    here, there = price(people(), MARKET), price(kind.make(people()), MARKET, gather=100, window=50)
    assert there.summary.method == "summed"
    losses = kind.read(there.frame).sort_by("id").column("privacy_loss").to_numpy()
    np.testing.assert_allclose(losses, outcome.privacy_loss, rtol=1e-9, atol=1e-12)
    # the integers: of losses that are the same to the last bit, those of memory
    memory = Sums.of(outcome.privacy_loss, TABLE, np.zeros(N, dtype=int), sum_plan(here))
    assert sums_of(here) == memory
    found = sums_of(there)
    assert found == sums_of(price(people(), MARKET, gather=100, window=50))
    [ours], [theirs] = found.strata, memory.strata
    assert ours.delivered == theirs.delivered == int((~OPEN & (outcome.privacy_loss > 0)).sum())
    for mine, its in zip(ours.cells, theirs.cells, strict=True):
        assert [one / ours.weight for one in mine] == pytest.approx([one / theirs.weight for one in its], rel=1e-9)
    # what is asked of whom
    asked = asked_of(there, data_columns(there, None), question="work", wave=1)
    forms = answer_forms(TABLE, (plan.promised > 0) & ~OPEN, plan.questions)
    expected = tallied(person_digests([str(k) for k in range(N)]), plan.promised, plan.variance, forms)
    assert (asked.tally.people, asked.tally.whole.data, asked.tally.whole.answers) == (
        expected.people,
        expected.whole.data,
        expected.whole.answers,
    )
    columns = [(one.data, one.answers, one.varies) for one in expected.columns]
    assert [(one.data, one.answers, one.varies) for one in asked.tally.columns] == columns
    assert asked.tally.marked == pytest.approx(expected.marked, rel=1e-9)
    assert asked.tally.marked_variances == pytest.approx(expected.marked_variances, rel=1e-9)
    assert asked.asked.as_fields == plan.as_fields


def test_the_integers_are_those_that_memory_adds_its_noise_to() -> None:
    plan, priced = plan_of(MARKET.acquire(BIDS), from_engine=True), price(people(), MARKET)
    memory = weigh(plan, (plan.promised > 0) & ~OPEN).prepare(TABLE)
    engine = prepared_sums(priced, data_columns(priced, None))
    assert (memory.totals, memory.grid, memory.blends) == (engine.totals, engine.grid, engine.blends)
    assert (memory.error, memory.errors()[0]) == (engine.error, engine.errors()[0])


def test_rows_that_cannot_be_priced_are_left_out_of_a_survey_too() -> None:
    bids = np.where(np.arange(N) % 9 == 0, -1.0, BIDS)
    fewer = people(bid=bids).filter(pa.array(bids > 0))
    whole = price(people(bid=bids), MARKET, on_bad_rows="drop")
    assert sums_of(whole) == sums_of(price(fewer, MARKET))


@pytest.mark.parametrize("goal", [{}, {"goal": HardBudget(300)}])
def test_errors_promises_and_counts_are_those_of_memory(goal: dict[str, Any]) -> None:
    market = replace(MARKET, **goal) if "goal" in goal else replace(MARKET, max_correlation=0.1, population=4000)
    outcome = market.acquire(BIDS)
    found = release_synthetic(price(people(), market)).release
    expected = drawn_in_memory(plan_of(outcome), TABLE).release
    assert (found.bounds, found.clamped, found.absent) == (expected.bounds, expected.clamped, expected.absent)
    assert found.delivered == expected.delivered
    for ours, theirs in zip(found.answers, expected.answers, strict=True):
        assert ours.question == theirs.question
        for name in ("error", "planned_error"):
            mine, memory = asdict(getattr(ours, name)), asdict(getattr(theirs, name))
            for field in set(mine) - {"rounding"}:
                assert mine[field] == pytest.approx(memory[field], rel=1e-6), (name, field)
        gap = np.abs(np.array(ours.values) - np.array(theirs.values)).max()
        assert gap < 20 * ours.worst_standard_error
    errors = market.errors_of(price(people(), market).summary)
    for one, other in zip(errors, outcome.question_errors(), strict=True):
        assert one.mse == pytest.approx(other.mse, rel=1e-9)
        assert one.worst_mse == pytest.approx(other.worst_mse, rel=1e-9)


def test_memory_and_engines_find_each_others_surveys_and_never_draw_again(tmp_path: Path) -> None:
    outcome, ids = MARKET.acquire(BIDS), np.arange(N)
    answers = {"sleep": SLEEP, "smokes": SMOKES, "shift": SHIFT}
    drawn = hushbid.release(outcome, answers, ids=ids, question="work", ledger=tmp_path / "memory")
    shown = release(price(people(), MARKET), ledger=tmp_path / "memory", question="work")
    assert [one.values for one in shown.answers] == [one.values for one in drawn.answers]
    later = {"sleep": SLEEP + 1, "smokes": np.roll(SMOKES, 1), "shift": SHIFT[::-1]}
    drawn = release(price(people(**later), MARKET), ledger=tmp_path / "engine", question="rest")
    shown = hushbid.release(outcome, later, ids=ids, question="rest", ledger=tmp_path / "engine")
    assert [one.values for one in shown.answers] == [one.values for one in drawn.answers]
    assert (shown.privacy_loss <= outcome.privacy_loss).all()
    with pytest.raises(AlreadyReleased, match="other data"):
        release(price(people(**{**later, "smokes": ~SMOKES}), MARKET), ledger=tmp_path / "engine", question="rest")
    asks_more = replace(MARKET, questions=(*QUESTIONS[:2], replace(QUESTIONS[2], importance=3)))
    with pytest.raises(AlreadyReleased, match="other promises"):
        release(price(people(**later), asks_more), ledger=tmp_path / "engine", question="rest")


def test_words_booleans_and_numbers_say_yes_and_no_alike_in_the_same_integers(kind: Kind) -> None:
    words = ["Yes" if one else "no" for one in SMOKES]
    written = [words, SMOKES.astype(float), SMOKES.astype(int), pa.array(words).dictionary_encode()]
    expected = price(people().slice(0, 300), MARKET)
    for smokes in written[:1] if kind.name == "spark" else written:
        priced = price(kind.make(people(smokes=smokes).slice(0, 300)), MARKET)
        assert sums_of(priced) == sums_of(expected)
        tallies = [asked_of(one, data_columns(one, None), question="work", wave=1).tally for one in (priced, expected)]
        assert tallies[0].whole.data == tallies[1].whole.data


def test_whoever_left_a_question_open_is_paid_nothing(kind: Kind) -> None:
    priced = price(kind.make(people().slice(0, 300)), MARKET)
    frame = kind.read(due(priced, None, Currency("EUR", 2), mse=priced.summary.mse))
    state = np.array(frame.column("delivered").to_pylist())
    asked = MARKET.acquire(BIDS[:300]).privacy_loss > 0
    assert (state == np.where(asked, np.where(OPEN[:300], "no", "yes"), "not asked")).all()
    assert (frame.column("payment_minor").to_numpy()[OPEN[:300]] == 0).all()


def test_an_answer_that_is_none_is_refused_without_saying_it(kind: Kind) -> None:
    shift = [*SHIFT[:7], "evenings", *SHIFT[8:300]]
    priced = price(kind.make(people().slice(0, 300).set_column(4, "shift", [shift])), MARKET)
    row = "somebody's answer is another one" if kind.name == "spark" else "row 7 does not"
    with pytest.raises(DataError, match=f"'shift' must hold one of its 3 answers, or nothing, but {row}") as refused:
        release_synthetic(priced)
    assert "evenings" not in str(refused.value)


def test_columns_that_do_not_fit_the_questions_are_refused() -> None:
    priced = price(people(), MARKET)
    with pytest.raises(InputError, match=r"data must name one column for each question \(3\), got 1"):
        release_synthetic(priced, "sleep")
    with pytest.raises(InputError, match="no column 'works'"):
        release_synthetic(priced, ["sleep", "smokes", "works"])
    with pytest.raises(InputError, match="Column 'shift' must hold numbers, not texts"):
        release_synthetic(priced, ["shift", "smokes", "shift"])
    one = price(people(), Market(prior=Uniform(1, 2), buyer_weight=1.0))
    with pytest.raises(InputError, match="data must name one column, got 0"):
        release_synthetic(one)
    with pytest.raises(InputError, match=r"variance must not name a column \('sleep'\) beside questions"):
        price(people(), MARKET, variance="sleep")


def test_losses_too_small_to_share_are_refused_before_anybody_is_paid() -> None:
    market = replace(MARKET, max_privacy_loss=1.5 * 2.0**-53)
    for decide in (lambda: market.acquire(BIDS), lambda: price(people(), market)):
        with pytest.raises(MarketError, match="for some of the questions, is too small to release anything"):
            decide()


def test_a_budget_for_a_survey_is_kept_by_sums_as_one_by_one() -> None:
    market = replace(MARKET, goal=Budget(200))
    outcome, summed = market.acquire(BIDS), price(people(), market, gather=100, window=50)
    assert summed.summary.method == "summed"
    assert summed.total_payment() == pytest.approx(outcome.total_payment, rel=1e-6)
    assert summed.summary.mse == pytest.approx(outcome.mse, rel=1e-9)


@pytest.mark.parametrize("shares", [None, {"a": 0.7, "b": 0.3}], ids=["mean", "strata"])
@pytest.mark.parametrize("asked", [QUESTIONS, QUESTIONS[1:2]], ids=["survey", "randomised response"])
@pytest.mark.parametrize("kind", ["polars_lazy"], indirect=True)
def test_messages_about_questions_are_combined_as_in_memory(
    kind: Kind, asked: tuple[Any, ...], shares: dict[str, float] | None, tmp_path: Path
) -> None:
    some, where = BIDS[:200], np.where(np.arange(200) % 3 == 0, "a", "b")
    stated = {} if shares is None else {"shares": shares}
    terms = {"prior": Uniform(1, 2), "setting": "local", "questions": asked, "buyer_weight": 1e4, **stated}
    memory = Market(**terms, **({} if shares is None else {"strata": where})).acquire(some)
    words = {"sleep": 7.5, "smokes": True, "shift": "days"}
    sent = [
        None
        if loss == 0.0
        else privatize_answers({one.name: words[one.name] for one in asked}, float(loss), asked).to_json()
        for loss in memory.privacy_loss
    ]
    rows = pa.table({"id": np.arange(200), "bid": some, "sent": pa.array(sent, pa.string()), "where": where})
    ours = Market(**terms, **({} if shares is None else {"strata": []}))
    priced = price(kind.make(rows), ours, **({} if shares is None else {"stratum": "where"}))
    assert np.array_equal(kind.read(priced.frame).column("privacy_loss").to_numpy(), memory.privacy_loss)
    found = release(priced, "sent", question="q", ledger=tmp_path / "ledger")
    again = drawn_in_memory(plan_of(memory), sent).release
    for mine, other in zip(found.answers, again.answers, strict=True):
        assert mine.values == pytest.approx(other.values, rel=1e-12)
        assert mine.error.mse == pytest.approx(other.error.mse, rel=1e-9)
    assert release(priced, "sent", question="q", ledger=tmp_path / "ledger").answers == found.answers
