"""Price and datum related: what a release states then is never too little, and at worst just enough."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushbid.audit import check_questions
from hushbid.disclosure import Relation, Release, ReleasePlan, privatize, release_once, release_plan
from hushbid.disclosure.combination import one_stratum
from hushbid.disclosure.delivery import planned_error
from hushbid.disclosure.error import published_half_width
from hushbid.disclosure.ledger.files import stored
from hushbid.disclosure.relation import Unevenness, bias_of
from hushbid.errors import AlreadyReleased, InputError
from hushbid.estimation import Setting
from tests.disclosure.support import weigh

LOSSES = np.linspace(0.2, 3.0, 12)
RELATION = Relation(spread=0.05, roster=20)


def made(
    label: str, *, setting: Setting = "central", relation: Relation | None = RELATION, **more: object
) -> ReleasePlan:
    stated: dict[str, object] = {"bounds": (0.0, 10.0), "variance": 4.0, **more}
    return ReleasePlan.of(LOSSES, setting=setting, label=label, relation=relation, **stated)  # type: ignore[arg-type]


def test_no_relation_changes_nothing_to_the_last_bit() -> None:
    expected = {  # as it was before there were relations
        "central": ("3fe6d08f7e3a3ae2", "0x1.895f608936958p+5", "0x1.7fafc8ca7594cp+4"),
        "local": ("104b5ba4ed213b2d", "0x1.8fbfddcba070ep+6", "0x1.07fce86653f85p+5"),
    }
    for setting, (key, mse, half) in expected.items():
        plan = ReleasePlan.of(
            [0.2, 0.5, 1.0, 3.0, 0.0],
            setting=setting,  # type: ignore[arg-type]
            bounds=(-5, 15),
            variance=[30.0, 20.0, 10.0, 30.0, 1.0],
            label="before",
        )
        error = planned_error(plan)
        assert plan.key.startswith(key)
        assert error.mse == error.worst_mse == float.fromhex(mse)
        assert error.half_width(0.95) == pytest.approx(float.fromhex(half), rel=1e-14)
    release = release_plan(made("unrelated", relation=None), np.full(12, 5.0))
    assert not {"squared_bias", "largest_bias"} & release.to_dict()["error"].keys()
    assert set(release.public()) == {
        "format", "version", "setting", "bounds", "planned_standard_error", "planned_half_width", "estimate",
    }  # fmt: skip
    assert release.worst_standard_error == release.standard_error


@given(
    weights=st.lists(st.floats(0.0, 1.0), min_size=1, max_size=8).filter(lambda some: sum(some) > 0.1),
    others=st.integers(0, 9),
    seed=st.integers(0, 999),
)
def test_no_relation_of_the_stated_closeness_has_a_larger_bias_and_the_worst_one_has_it(
    weights: list[float], others: int, seed: int
) -> None:
    shares = np.array(weights) / sum(weights)
    roster, spread, width = shares.size + others, 0.3, 4.0
    everybody = np.concatenate([shares, np.zeros(others)])
    relation = Relation(spread=spread, roster=roster)
    squared, bias = bias_of(relation, Unevenness.under(relation, shares, one_stratum(shares.size)), width)

    def scaled(shape: np.ndarray) -> np.ndarray:
        centred = shape - shape.mean()
        size = math.sqrt(float(np.mean(centred**2)))
        return centred * (math.sqrt(spread) / size) if size > 1e-9 else np.zeros(roster)

    rng = np.random.default_rng(seed)
    worst = abs(everybody @ scaled(everybody - 1.0 / roster))
    assert worst == pytest.approx(math.sqrt(squared), abs=1e-7)
    for shape in rng.standard_normal((20, roster)):
        assert abs(everybody @ scaled(shape)) <= worst + 1e-9
    # within the range, whatever the relation: data at one end for the heavy, at the other for the light
    ends = np.where(everybody > 1.0 / roster, width, 0.0)
    largest = abs(everybody @ ends - ends.mean())
    assert bias == pytest.approx(min(math.sqrt(squared), largest), abs=1e-7)


def test_one_seller_of_ten_with_everything_related_states_an_error_of_two_and_a_half() -> None:
    plan = ReleasePlan.of(
        [math.inf], setting="central", bounds=(0, 1), label="one of ten", relation=Relation(spread=0.25, roster=10)
    )
    release = release_plan(plan, [0.5], accept_infinite_loss=True)
    assert release.error.worst_mse == pytest.approx(2.5)
    assert release.error.mse == pytest.approx(0.25)
    assert release.error.largest_bias == pytest.approx(0.9)  # data in the range allow no more
    assert release.error.largest_bias**2 + release.error.mse == pytest.approx(1.06)


@pytest.mark.parametrize("setting", ["central", "local"])
@pytest.mark.parametrize("gone", [(), (0, 3, 11)])
def test_a_release_states_both_errors_and_those_who_are_not_there_count(
    setting: Setting, gone: tuple[int, ...]
) -> None:
    plan = made(f"both {setting} {gone}", setting=setting)
    data: list[object] = [5.0] * 12
    if setting == "local":
        data = [privatize(5.0, loss, plan.bounds) for loss in LOSSES.tolist()]
    for row in gone:
        data[row] = None
    release = release_plan(plan, data)
    losses = np.where(np.isin(np.arange(12), gone), 0.0, LOSSES)
    planned, there = 4.0 + 20 * 0.05, losses > 0
    weights = losses / losses.sum()
    noise = 2.0 * (10.0 / losses.sum()) ** 2
    if setting == "local":  # weighed by the variance of the plan, not by the declared one
        weights = np.zeros(12)
        weights[there] = 1.0 / (planned / 100.0 + 2.0 / losses[there] ** 2)
        weights /= weights.sum()
        noise = float(np.sum(2.0 * (10.0 * weights[there] / losses[there]) ** 2))
    squares = float(np.sum(weights**2))
    assert release.standard_error**2 == pytest.approx(4.0 * squares + noise)
    assert release.worst_standard_error**2 == pytest.approx(planned * squares - 0.05 + noise)
    roster = np.concatenate([weights, np.zeros(8)])
    bias = min(math.sqrt(0.05 * (20 * squares - 1)), 10.0 * 0.5 * float(np.abs(roster - 0.05).sum()))
    random = replace(release.error, squared_bias=0.0, largest_bias=0.0)
    assert release.error.half_width(0.9) == pytest.approx(random.half_width(0.9) + bias)


@pytest.mark.parametrize("drop_out", [0.0, 0.4])
@pytest.mark.parametrize("closeness", [0.05, 0.1, 0.3])
@pytest.mark.parametrize("setting", ["central", "local"])
def test_simulated_errors_reach_the_stated_worst_and_never_exceed_it(
    setting: Setting, closeness: float, drop_out: float
) -> None:
    losses = np.linspace(0.5, 6.0, 10)
    relation = Relation(spread=closeness**2 * 4.0, roster=25)
    plan = ReleasePlan.of(losses, setting=setting, bounds=(0, 20), variance=4.0, relation=relation)
    check = check_questions(plan, rng=np.random.default_rng(5), repetitions=1000, drop_out=drop_out)[0]
    assert check.worst is not None
    assert check.worst.attained
    assert not check.rejected, str(check)
    assert "at worst" in str(check)


def test_the_check_covers_unequal_variances_and_relations_that_no_data_in_the_range_have() -> None:
    relation = Relation(spread=0.9 * 0.25, roster=12)
    tight = ReleasePlan.of([3.0, 2.0, 0.5], setting="central", bounds=(0, 1), relation=relation)
    check = check_questions(tight, rng=np.random.default_rng(2), repetitions=2000)[0]
    assert check.worst is not None
    assert not check.worst.attained
    assert check.worst.simulated_mse < check.worst.formula_mse
    assert not check.rejected, str(check)
    spreads = np.array([0.01, 0.04, 0.09, 0.02])
    mixed = ReleasePlan.of(
        [1.0, 2.0, 3.0, 9.0],
        setting="central",
        bounds=(0, 3),
        variance=spreads,
        relation=Relation(spread=0.1 * float(spreads.mean()), roster=9),
    )
    check = check_questions(mixed, rng=np.random.default_rng(3), repetitions=3000)[0]
    assert check.worst is not None
    assert check.worst.attained
    assert not check.rejected, str(check)


def test_the_check_rejects_a_release_that_is_silent_about_the_relation() -> None:
    plan = ReleasePlan.of(
        np.linspace(0.5, 6.0, 30),
        setting="central",
        bounds=(0, 20),
        variance=4.0,
        relation=Relation(spread=1.0, roster=50),
    )
    check = check_questions(plan, rng=np.random.default_rng(1), repetitions=1500)[0]
    assert check.worst is not None
    assert not check.rejected
    assert replace(check, worst=replace(check.worst, formula_mse=check.formula_mse)).rejected
    assert replace(check, worst=replace(check.worst, formula_mse=check.worst.formula_mse * 1.5)).rejected
    assert replace(check, worst=replace(check.worst, coverage=0.9)).rejected


def test_weights_become_equal_as_the_relation_may_be_closer() -> None:
    uneven = []
    for spread in (0.0, 1.0, 100.0, 10_000.0):
        relation = Relation(spread=spread, roster=12) if spread else None
        error = planned_error(made("closer", setting="local", relation=relation))
        uneven.append(error.squared_steps / 100.0 * 12 - 1.0)
    assert uneven == sorted(uneven, reverse=True)
    assert uneven[-1] < 0.01 < uneven[0]


def test_a_release_under_a_relation_is_read_back_and_one_without_is_as_it_was() -> None:
    release = release_plan(made("written"), np.full(12, 5.0))
    written = json.loads(json.dumps(release.to_dict()))
    back = Release.from_dict(written)
    assert (back.error, back.planned_error) == (release.error, release.planned_error)
    assert back.worst_standard_error > back.standard_error
    new = ("squared_bias", "largest_bias")
    old = {**written, "error": {name: one for name, one in written["error"].items() if name not in new}}
    assert Release.from_dict(old).error == replace(release.error, squared_bias=0.0, largest_bias=0.0)
    public = release.public()
    assert (
        public["planned_worst_standard_error"] >= release.worst_standard_error > public["planned_standard_error"] / 1.1
    )


def test_the_same_question_has_one_answer_whatever_the_relation(tmp_path: Path) -> None:
    ids, data = [f"p{row}" for row in range(12)], np.linspace(2, 8, 12)

    def ask(relation: Relation | None, folder: str = "claims") -> Release:
        plan = made("asked", relation=relation)
        return release_once(plan, data, question="Sleep?", ids=ids, ledger=tmp_path / folder).release

    first = ask(RELATION)
    assert ask(RELATION).estimate == first.estimate
    closer = Relation(spread=0.06, roster=20)
    for other in (None, closer, Relation(spread=0.05, roster=21)):
        with pytest.raises(AlreadyReleased, match="relation or privacy losses"):
            ask(other)
    # a claim without a word about it was made without a relation
    data = data + 0.5
    ids = [f"q{row}" for row in range(12)]
    unrelated = ask(None, "plain")
    assert ask(None, "plain").estimate == unrelated.estimate
    [path] = (tmp_path / "plain").glob("ids-*.json")
    claim = stored(tmp_path / "plain", path.stem)
    assert claim is not None
    assert "relation" not in claim["stated"]["promise"]
    with pytest.raises(AlreadyReleased, match="other promises"):
        ask(RELATION, "plain")


def test_the_published_interval_holds_the_bias_too() -> None:
    plan = made("published")
    planned, real = planned_error(plan), weigh(plan, np.arange(12) > 2).error
    shown = published_half_width(planned=planned, delivered=real, width=100.0, level=0.95)
    assert shown >= real.half_width(0.95) > replace(real, largest_bias=0.0).half_width(0.95)


def test_a_relation_counts_everybody_and_is_part_of_what_a_plan_is() -> None:
    with pytest.raises(InputError, match="12 people or more, got 11"):
        made("few", relation=Relation(spread=0.1, roster=11))
    for wrong in ({"spread": 0.0, "roster": 3}, {"spread": math.inf, "roster": 3}, {"spread": 0.1, "roster": 0}):
        with pytest.raises(InputError, match="relation must have a positive spread"):
            Relation(**wrong)  # type: ignore[arg-type]
    assert (
        made("key").key != made("key", relation=None).key != made("key", relation=Relation(spread=0.1, roster=20)).key
    )
