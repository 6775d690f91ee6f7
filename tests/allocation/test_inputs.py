"""Both settings: reference values, ties, extreme numbers, what is accepted and what is refused."""

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from hushbid.allocation import Allocation, allocate, local_market, replies
from hushbid.errors import InputError, NobodyToBuyFrom
from tests.extent import each

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "allocation_and_payments.json").read_text())
SETTINGS = ["central", "local"]
KAPPA = 1.5 * 4 ** (1 / 3)


def cost_of(allocation: Allocation, costs: Any, variance: Any) -> float:
    """``A·MSE + Σ ψε`` by its definition, from the returned losses alone."""
    costs, loss = np.asarray(costs, dtype=float), allocation.privacy_loss
    bought = loss > 0
    costs, loss, variance = costs[bought], loss[bought], np.broadcast_to(variance, bought.shape)[bought]
    if allocation.setting == "central":
        mse = (2 + np.sum(variance * loss**2)) / loss.sum() ** 2
    else:
        mse = 1 / np.sum(loss**2 / (variance * loss**2 + 2))
    return float(allocation.error_weight * mse + costs @ loss)


def assert_sound(allocation: Allocation) -> None:
    """What holds for every answer, infinite losses included."""
    assert not np.isnan(allocation.privacy_loss).any()
    assert not np.isnan([allocation.mse, allocation.objective, allocation.lower_bound]).any()
    assert (allocation.privacy_loss >= 0).all()
    assert (allocation.weights >= 0).all()
    assert allocation.weights.sum() == pytest.approx(1, abs=1e-12)
    assert ((allocation.weights > 0) == (allocation.privacy_loss > 0)).all()
    assert allocation.active == np.count_nonzero(allocation.privacy_loss)
    assert math.isfinite(allocation.objective)
    assert allocation.lower_bound <= allocation.objective
    assert allocation.setting == "local" or allocation.gap <= 1e-9


# -- reference values -------------------------------------------------------------------------------------------------


@each("setting", SETTINGS)
@each("index", range(30))
def test_the_optimum_equals_the_reference_instance(setting: str, index: int) -> None:
    vector = VECTORS[setting][index]
    costs, variance, error_weight = vector["virtual_costs"], vector["variance"], vector["error_weight"]
    found = allocate(costs, setting=setting, variance=variance, error_weight=error_weight)
    assert found.objective == pytest.approx(vector["objective"], rel=1e-9)
    assert found.mse == pytest.approx(vector["mse"], rel=1e-6)
    np.testing.assert_allclose(found.privacy_loss, vector["privacy_loss"], rtol=1e-6, atol=1e-6)
    assert cost_of(found, costs, variance) == pytest.approx(found.objective, rel=1e-12)
    assert_sound(found)


@each("index", range(16))
def test_the_losses_of_the_payment_instances_follow_from_their_bids(index: int) -> None:
    vector = VECTORS["payments"][index]
    if vector["prior"]["family"] != "uniform":
        virtual_costs = np.asarray(vector["bids"]) + vector["prior"]["scale"] * np.expm1(
            np.asarray(vector["bids"]) / vector["prior"]["scale"]
        )
    else:
        virtual_costs = 2 * np.asarray(vector["bids"]) - vector["prior"]["low"]
    found = allocate(virtual_costs, setting=vector["setting"], variance=vector["variance"])
    np.testing.assert_allclose(found.privacy_loss, vector["privacy_loss"], rtol=1e-6, atol=1e-6)
    assert found.mse == pytest.approx(vector["mse"], rel=1e-6)


# -- small and symmetric ----------------------------------------------------------------------------------------------


@each("setting", SETTINGS)
@each("cost", [1e-6, 0.3, 1.0, 40.0, 1e9])
@each("error_weight", [None, 0.01, 500.0])
def test_one_person_alone_gives_the_cube_root(setting: str, cost: float, error_weight: float | None) -> None:
    found = allocate([cost], setting=setting, variance=0.2, error_weight=error_weight)
    weight = 2.0 if error_weight is None else error_weight
    assert found.error_weight == weight
    assert found.privacy_loss[0] == pytest.approx((4 * weight / cost) ** (1 / 3), rel=1e-12)
    assert found.objective == pytest.approx(0.2 * weight + KAPPA * weight ** (1 / 3) * cost ** (2 / 3), rel=1e-12)
    assert found.weights.tolist() == [1.0]
    assert found.active == 1


@each("n", [2, 3, 10, 1000, 50_000])
def test_of_equal_people_in_the_local_setting_the_best_number_is_bought_from_alike(n: int) -> None:
    cost, variance, weight = 0.9, 0.25, float(n + 1)
    found = allocate(np.full(n, cost), setting="local", variance=variance)
    loss = np.geomspace(1e-3, 1e3, 4001)
    precision = loss**2 / (variance * loss**2 + 2)
    around = np.unique(np.clip(found.active + np.arange(-3, 4), 1, n))
    best = [float((weight / (k * precision) + cost * k * loss).min()) for k in around]
    assert found.active == around[int(np.argmin(best))]
    assert found.objective == pytest.approx(min(best), rel=1e-5)
    assert np.ptp(found.privacy_loss[: found.active]) <= 1e-12 * found.privacy_loss[0]
    assert (found.privacy_loss[found.active :] == 0).all()


# -- ties -------------------------------------------------------------------------------------------------------------

TIED = [3.0, 1.0, 2.0, 2.0, 1.0, 2.0, 2.0, 9.0]


@pytest.fixture(scope="module")
def tied_weight() -> float:
    """An error weight at which the local optimum takes some, not all, of the people at cost 2."""
    for weight in np.geomspace(1, 500, 400):
        if allocate(TIED, setting="local", variance=0.25, error_weight=float(weight)).active == 4:
            return float(weight)
    raise AssertionError("no error weight splits the tied people")


def test_without_a_key_ties_at_the_margin_go_to_the_earlier_position(tied_weight: float) -> None:
    found = allocate(TIED, setting="local", variance=0.25, error_weight=tied_weight)
    assert np.flatnonzero(found.privacy_loss).tolist() == [1, 2, 3, 4]


def test_the_smaller_key_is_bought_from_first_and_equal_keys_go_by_position(tied_weight: float) -> None:
    keys = [0, 0, 5, 4, 0, 4, 4, 0]
    found = allocate(TIED, setting="local", variance=0.25, error_weight=tied_weight, tie_key=keys)
    assert np.flatnonzero(found.privacy_loss).tolist() == [1, 3, 4, 5]


@pytest.mark.parametrize("keys", [list("hgfedcba"), np.arange(8)[::-1], pd.Series(range(8))[::-1].to_numpy()])
def test_keys_of_any_kind_decide_among_equals_only(keys: Any, tied_weight: float) -> None:
    found = allocate(TIED, setting="local", variance=0.25, error_weight=tied_weight, tie_key=keys)
    assert np.flatnonzero(found.privacy_loss).tolist() == [1, 4, 5, 6]


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("variance", [0.1, 0.25])
def test_with_a_key_the_order_of_the_rows_does_not_matter_even_for_ties(
    setting: str, variance: float, tied_weight: float
) -> None:
    rng = np.random.default_rng(5)
    costs, keys = np.array(TIED), np.array([8, 3, 5, 1, 7, 2, 6, 4])
    first = allocate(costs, setting=setting, variance=variance, error_weight=tied_weight, tie_key=keys)
    for _ in range(20):
        order = rng.permutation(costs.size)
        again = allocate(
            costs[order], setting=setting, variance=variance, error_weight=tied_weight, tie_key=keys[order]
        )
        assert again.objective == first.objective
        np.testing.assert_array_equal(again.privacy_loss, first.privacy_loss[order])
        np.testing.assert_array_equal(again.weights, first.weights[order])


# -- extremes ---------------------------------------------------------------------------------------------------------


@each("setting", SETTINGS)
@each("error_weight", [None, 1e-150, 1e-9, 1e9, 1e40])
def test_ten_costs_from_1e_minus_150_to_1e150_come_out_right(setting: str, error_weight: float | None) -> None:
    costs = np.logspace(-150, 150, 10)
    found = allocate(costs[::-1], setting=setting, error_weight=error_weight)
    assert_sound(found)
    assert found.gap <= 1e-9 or setting == "local"
    assert (np.diff(found.privacy_loss) >= 0).all()
    # The cheap ones cost nothing and the others are out of the question, so it is all about averaging over the former.
    weight = found.error_weight
    free = np.flatnonzero(weight ** (1 / 3) * costs ** (2 / 3) < 1e-3 * weight)
    assert found.active == max(free.size, 1)
    if free.size:
        assert found.objective == pytest.approx(weight * 0.25 / free.size, rel=1e-2)


@each("setting", SETTINGS)
@each("never", [[1], [0, 3], [0, 1, 2, 4]])
def test_an_infinite_cost_is_as_good_as_absent(setting: str, never: list[int]) -> None:
    costs = np.array([1.0, 1.2, 1.1, 0.9, 1.3])
    costs[never] = math.inf
    found = allocate(costs, setting=setting, error_weight=50.0)
    without = allocate(costs[np.isfinite(costs)], setting=setting, error_weight=50.0)
    assert (found.privacy_loss[never] == 0).all()
    assert found.objective == pytest.approx(without.objective, rel=1e-14)
    np.testing.assert_allclose(found.privacy_loss[np.isfinite(costs)], without.privacy_loss, rtol=1e-13)
    assert_sound(found)


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("variance", [0.25, 0.1])
def test_if_every_cost_is_infinite_there_is_nobody_to_buy_from(setting: str, variance: float) -> None:
    with pytest.raises(NobodyToBuyFrom, match=r"^Every virtual cost is infinite: there is nobody to buy from\.$"):
        allocate([math.inf, math.inf], setting=setting, variance=variance)


@pytest.mark.parametrize("setting", SETTINGS)
def test_if_privacy_costs_nothing_everybody_is_bought_from_without_noise(setting: str) -> None:
    found = allocate(np.zeros(4), setting=setting, error_weight=8.0)
    assert found.privacy_loss.tolist() == [math.inf] * 4
    assert found.weights.tolist() == [0.25] * 4
    assert found.objective == 8 * 0.25 / 4
    assert_sound(found)


def test_in_the_local_setting_free_people_send_plain_data_and_others_may_still_join() -> None:
    costs = [0.0, 0.01, 0.0, 1e6]
    found = allocate(costs, setting="local", error_weight=10.0)
    assert np.isinf(found.privacy_loss).tolist() == [True, False, True, False]
    assert found.active == 3
    y = found.privacy_loss[1]
    assert found.mse == pytest.approx(1 / (2 / 0.25 + y**2 / (0.25 * y**2 + 2)), rel=1e-12)
    assert found.objective == pytest.approx(10 * found.mse + 0.01 * y, rel=1e-12)
    assert_sound(found)


@each("setting", SETTINGS)
@each("error_weight", [1e-140, 1e-60, 1e-12, 1e12, 1e60, 1e140])
def test_tiny_and_huge_error_weights_reach_their_limits(setting: str, error_weight: float) -> None:
    costs = np.array([1.0, 2.0, 4.0])
    found = allocate(costs, setting=setting, error_weight=error_weight)
    assert_sound(found)
    if error_weight < 1:  # accuracy is worth little: a little noisy information from the cheapest
        assert found.active == 1
        assert found.objective == pytest.approx(0.25 * error_weight + KAPPA * error_weight ** (1 / 3), rel=1e-12)
    else:  # accuracy is worth everything: hardly any noise, so the variance of the mean is what remains
        assert found.active == 3
        assert found.mse == pytest.approx(0.25 / 3, rel=1e-5)


@pytest.mark.parametrize(
    ("setting", "costs", "variance", "error_weight"),
    [("central", [1.0], 1e250, 1.0), ("local", [1.0], 1e250, 1.0), ("local", [0.0, 1.0], 1e-280, 1e-3)],
)
def test_magnitudes_beyond_floating_point_are_refused_not_miscalculated(
    setting: str, costs: list[float], variance: float, error_weight: float
) -> None:
    with pytest.raises(InputError, match="too extreme"):
        allocate(costs, setting=setting, variance=variance, error_weight=error_weight)


@each(
    ("setting", "costs", "variance", "error_weight"),
    [
        ("local", [1.0, 2.0], 0.25, 1e-300),
        ("local", [1e200], 1.0, 1.0),
        *((setting, [1.0, 2.0], 1e-250, 1.0) for setting in SETTINGS),
        *((setting, [1.0], 0.25, 1e300) for setting in SETTINGS),
        *((setting, [1e-250, 0.5, 0.7], 0.25, 4.0) for setting in SETTINGS),
    ],
)
def test_one_extreme_number_does_not_stop_the_others(
    setting: str, costs: list[float], variance: float, error_weight: float
) -> None:
    found = allocate(costs, setting=setting, variance=variance, error_weight=error_weight)
    assert found.weights.sum() == pytest.approx(1.0)
    assert found.lower_bound <= found.objective <= found.lower_bound * (1 + 1e-9)


@each("keys", [[1, None, 2], ["10", 9, "8"], [0.0, float("nan"), 1.0], "abc", [1, 2]])
def test_tie_keys_without_one_order_are_refused_whether_or_not_there_is_a_tie(keys: object) -> None:
    with pytest.raises(InputError, match="tie_key"):
        allocate([1.0, 2.0, 3.0], setting="local", tie_key=keys)  # type: ignore[arg-type]


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_pair_whose_second_is_hardly_worthwhile_is_balanced_exactly(setting: str) -> None:
    """At such prices supply rises steeply, so that a Newton step is small far from the solution."""
    for costs in ([0.00665066, 0.27802306], [0.00073643, 0.229041], [0.00137743, 0.2727004]):
        found = allocate(costs, setting=setting, variance=1.0, error_weight=1.0)
        assert cost_of(found, costs, 1.0) == pytest.approx(found.objective, rel=1e-12)


# -- the way in -------------------------------------------------------------------------------------------------------

SAME_NUMBERS: list[Any] = [
    [3, 1, 2],
    (3.0, 1.0, 2.0),
    pd.Series([3, 1, 2], index=[7, 8, 9]),
    pd.Series([3.0, 1.0, 2.0]),
    pl.Series([3, 1, 2]),
    pl.Series([3.0, 1.0, 2.0]),
    np.array([3, 1, 2]),
    np.array([3, 1, 2], dtype=np.uint8),
    np.array([3, 1, 2], dtype=np.float32),
    np.array([3, 1, 2], dtype=">f8"),
    np.array([9, 3, 9, 1, 9, 2], dtype=float)[1::2],
    np.array([3, 1, 2], dtype=object),
    range(3, 0, -1),
]


@each("setting", SETTINGS)
@each("given", SAME_NUMBERS)
def test_lists_tuples_frames_columns_and_integers_mean_the_same(setting: str, given: Any) -> None:
    expected = allocate(np.array(list(given), dtype=float), setting=setting, error_weight=30.0)
    found = allocate(given, setting=setting, error_weight=30.0)
    np.testing.assert_array_equal(found.privacy_loss, expected.privacy_loss)
    assert type(found.privacy_loss) is np.ndarray
    assert found.privacy_loss.dtype == found.weights.dtype == np.float64
    assert {type(found.objective), type(found.mse), type(found.lower_bound)} == {float}
    assert type(found.active) is int


@pytest.mark.parametrize(
    "given", [[0.1, 0.2, 0.3], (0.1, 0.2, 0.3), pl.Series([0.1, 0.2, 0.3]), pd.Series([0.1, 0.2, 0.3])]
)
def test_variances_come_in_any_container_too(given: Any) -> None:
    expected = allocate([1.0, 2.0, 3.0], variance=np.array([0.1, 0.2, 0.3]))
    np.testing.assert_array_equal(allocate([1.0, 2.0, 3.0], variance=given).privacy_loss, expected.privacy_loss)


@each("variance", [1, np.float32(1.0), np.int64(1), np.array(1.0), np.ones(3)])
def test_one_variance_may_be_any_number_or_repeated(variance: Any) -> None:
    expected = allocate([1.0, 2.0, 3.0], variance=1.0)
    np.testing.assert_allclose(allocate([1.0, 2.0, 3.0], variance=variance).privacy_loss, expected.privacy_loss)


@pytest.mark.parametrize("setting", SETTINGS)
def test_the_input_is_left_alone(setting: str) -> None:
    costs = np.random.default_rng(0).exponential(size=40_000)
    costs[3] = math.inf
    before = costs.copy()
    allocate(costs, setting=setting).lower_bound  # noqa: B018
    np.testing.assert_array_equal(costs, before)


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("nan", {"virtual_costs": [1.0, 2.0, math.nan]}, "virtual_costs .* row 2 is not a number"),
    ("null", {"virtual_costs": pl.Series([1.0, None])}, "virtual_costs .* row 1 is not a number"),
    ("None", {"virtual_costs": [None, 1.0]}, "virtual_costs .* row 0 is not a number"),
    ("negative", {"virtual_costs": [1.0, -2.5, -3.5]}, r"virtual_costs .* row 1 is negative \(2 such rows\)"),
    ("minus infinity", {"virtual_costs": [-math.inf]}, "row 0 is negative"),
    ("empty", {"virtual_costs": []}, "virtual_costs must not be empty"),
    ("2-D", {"virtual_costs": [[1.0, 2.0]]}, "virtual_costs must be one-dimensional, got 2 dimensions"),
    ("one number", {"virtual_costs": 1.0}, "virtual_costs must be one-dimensional, got 0 dimensions"),
    ("text", {"virtual_costs": ["cheap"]}, "virtual_costs must be numbers, got list"),
    ("complex", {"virtual_costs": np.array([1j])}, "virtual_costs must be numbers, got ndarray"),
    ("ragged", {"virtual_costs": [[1.0], [1.0, 2.0]]}, "virtual_costs must be numbers, got list"),
    ("too large", {"virtual_costs": [10**400]}, "virtual_costs must be numbers, got list"),
    ("variance below 0", {"variance": -0.5}, r"variance must be above 0 and finite, got -0\.5"),
    ("variance nan", {"variance": math.nan}, "variance must be above 0 and finite, got nan"),
    ("variance inf", {"variance": math.inf}, "variance must be above 0 and finite, got inf"),
    ("variance text", {"variance": "small"}, "variance must be numbers, got str"),
    ("error weight 0", {"error_weight": 0}, "error_weight must be positive and finite, got 0"),
    ("error weight below 0", {"error_weight": -2.0}, r"error_weight must be positive and finite, got -2\.0"),
    ("error weight nan", {"error_weight": math.nan}, "error_weight must be positive and finite, got nan"),
    ("error weight inf", {"error_weight": math.inf}, "error_weight must be positive and finite, got inf"),
    ("error weight text", {"error_weight": "much"}, "error_weight must be a number, got 'much'"),
    ("too few keys", {"tie_key": [1]}, r"tie_key must have one entry per person \(2\)"),
    ("one key", {"tie_key": 1}, r"tie_key must have one entry per person \(2\)"),
]


@each("setting", SETTINGS)
@each(("arguments", "message"), [case[1:] for case in REFUSED])
def test_what_is_refused_is_refused_in_one_sentence(setting: str, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as refusal:
        allocate(**{"virtual_costs": [1.0, 2.0], "setting": setting, **arguments})
    text = str(refusal.value)
    assert text.endswith(".")
    assert ". " not in text
    assert "2.5" not in text  # a person's number is never repeated


@each(
    ("variance", "message"),
    [
        ([0.1, 0.2, 0.3], r"variance must be one number or one per person \(2\), got shape \(3,\)"),
        ([[0.1, 0.2]], r"variance must be one number or one per person \(2\), got shape \(1, 2\)"),
        ([0.1, -0.2], "variance must be above 0 and finite, but row 1 is not"),
        ([math.nan, 0.2], "variance must be above 0 and finite, but row 0 is not"),
        ([math.inf, 0.2], "variance must be above 0 and finite, but row 0 is not"),
    ],
)
def test_a_wrong_vector_of_variances_is_refused_by_row_or_shape(variance: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        allocate([1.0, 2.0], variance=variance)


@pytest.mark.parametrize("variance", [[0.1, 0.2], [0.1, 0.1], np.array([0.1, 0.2]), [0.1]])
def test_a_vector_of_variances_is_refused_in_the_local_setting(variance: Any) -> None:
    with pytest.raises(InputError, match=r"variance must be one number in the local setting: .* NP-hard"):
        allocate([1.0, 2.0], setting="local", variance=variance)


@each("setting", ["middle", "", "Central", None, 1, ["central"]])
def test_an_unknown_setting_is_refused(setting: Any) -> None:
    with pytest.raises(InputError, match=r"^setting must be 'central' or 'local', got .*\.$"):
        allocate([1.0], setting=setting)


# -- many people ------------------------------------------------------------------------------------------------------


def crowd(kind: str, n: int, rng: np.random.Generator) -> np.ndarray:
    """Virtual costs of many people."""
    match kind:
        case "uniform":
            return rng.uniform(1, 3, n)
        case "exponential":
            return rng.exponential(size=n)
        case "log-normal":
            return rng.lognormal(0, 2, n)
        case "heavy tail":
            return rng.pareto(0.2, n)
        case "two points":
            return rng.choice([1.0, 1.5], n)
        case "constant":
            return np.full(n, 2.0)
        case "some free":
            return rng.choice([0.0, 0.5, 2.0], n, p=[0.001, 0.5, 0.499])
        case "some never":
            return np.where(rng.random(n) < 0.9, np.inf, rng.exponential(size=n))
        case "ascending":
            return np.linspace(1, 2, n)
        case "one bargain":
            return np.append(rng.uniform(1, 2, n - 1), 1e-9)
    raise ValueError(kind)


CROWDS = [
    *("uniform", "exponential", "log-normal", "heavy tail", "two points", "constant"),
    *("some free", "some never", "ascending", "one bargain"),
]


def assert_same(found: Allocation, expected: Allocation) -> None:
    assert found.active == expected.active
    assert found.objective == pytest.approx(expected.objective, rel=1e-13)
    assert found.mse == pytest.approx(expected.mse, rel=1e-12)
    finite = np.isfinite(expected.privacy_loss)
    np.testing.assert_array_equal(np.isfinite(found.privacy_loss), finite)
    scale = float(expected.privacy_loss[finite].max(initial=0.0))
    np.testing.assert_allclose(
        found.privacy_loss[finite], expected.privacy_loss[finite], rtol=1e-10, atol=1e-12 * scale
    )
    np.testing.assert_allclose(found.weights, expected.weights, rtol=1e-10, atol=1e-12 * expected.weights.max())


@pytest.mark.parametrize("kind", CROWDS)
def test_leaving_people_out_of_a_local_market_before_sorting_changes_nothing(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(8)
    n = 38_000
    costs = crowd(kind, n, rng)
    for error_weight in (None, 1e-3, 30.0, 1e9):
        arguments = {"setting": "local", "variance": 0.2, "error_weight": error_weight}
        found = allocate(costs, **arguments)
        with monkeypatch.context() as patch:
            patch.setattr(local_market, "_SELECTED", n)
            assert_same(found, allocate(costs, **arguments))


@pytest.mark.parametrize("kind", CROWDS)
def test_too_few_selected_in_a_local_market_cost_time_but_not_the_optimum(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of eight people the cut is often too low, so it must be checked and raised."""
    rng = np.random.default_rng(9)
    for n in (70, 300, 2000):
        costs = crowd(kind, n, rng)
        if not np.isfinite(costs).any():
            continue
        for error_weight in (None, 0.1, 1e4, 1e8):
            arguments = {"setting": "local", "variance": 0.2, "error_weight": error_weight}
            expected = allocate(costs, **arguments)
            with monkeypatch.context() as patch:
                patch.setattr(local_market, "_SELECTED", 8)
                assert_same(allocate(costs, **arguments), expected)


@pytest.mark.parametrize(
    ("costs", "options"),
    [
        ([4.8e-75, 3.8e-57, 2.9e138, 6.8e132, 3.2e-91], {"setting": "local", "variance": 0.01, "error_weight": 0.05}),
        ([1e150, 1e10], {"setting": "local", "variance": 0.001, "error_weight": 2.4}),
        ([2.4e-203, 8.8e-194], {"setting": "local", "variance": 10.0, "error_weight": 22.0}),
    ],
    ids=range(3),
)
def test_what_the_optimum_would_be_at_another_cost_is_what_it_then_is_at_every_magnitude(costs, options) -> None:
    rule = replies(costs, **{"setting": "central", **options})
    for row, cost in itertools.product(range(len(costs)), [*costs, 1.0, 0.0]):
        there = rule.at(np.array([row]), np.array([cost]))
        changed = [cost if other == row else costs[other] for other in range(len(costs))]
        if min(changed) < np.inf:
            then = allocate(changed, **options)
            assert there.value[0] == pytest.approx(then.objective, rel=1e-9)
            if min(changed) < 1e140:  # beyond, only noise counts, and the tie key decides
                assert there.loss[0] == pytest.approx(then.privacy_loss[row], rel=1e-6, abs=1e-6 * finite_largest(then))


def finite_largest(allocation) -> float:
    """The largest privacy loss that is not infinite."""
    losses = allocation.privacy_loss
    return float(losses[losses < np.inf].max(initial=0.0))
