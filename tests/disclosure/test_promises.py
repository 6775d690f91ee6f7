"""Plans and data columns: generous inputs, strict results, and messages that never show a person's datum."""

import math

import numpy as np
import pandas as pd
import pytest

from hushbid.disclosure import ReleasePlan
from hushbid.disclosure.answers import as_answers
from hushbid.disclosure.promises import one_number
from hushbid.errors import DataError, InputError


def column(data: object, people: int = 3, needed: tuple[bool, ...] = ()) -> list[float]:
    rows = np.array(needed or (True,) * people)
    return as_answers(data, one_number((0.0, 1.0)), needed=rows, survey=False)[:, 0].tolist()


def test_a_plan_uses_all_that_is_promised_and_the_largest_variance_by_default() -> None:
    plan = ReleasePlan.of([0.5, 1.0], setting="central", bounds=(0, 10))
    assert plan.delivered.tolist() == plan.promised.tolist() == [0.5, 1.0]
    assert plan.variance.tolist() == [25.0, 25.0]
    assert plan.unit_variance.tolist() == [0.25, 0.25]
    assert (plan.people, plan.width, plan.bounds) == (2, 10.0, (0.0, 10.0))


def test_a_plan_cannot_be_changed_afterwards() -> None:
    losses = np.array([0.5, 1.0])
    plan = ReleasePlan.of(losses, setting="central", bounds=(0, 1))
    losses[0] = 9.0
    assert plan.promised[0] == 0.5
    with pytest.raises(ValueError, match="read-only"):
        plan.delivered[0] = 9.0


def test_the_key_depends_on_everything_that_is_promised() -> None:
    base = {"promised": [0.5, 1.0], "setting": "central", "bounds": (0.0, 1.0)}
    changes: list[dict[str, object]] = [
        {},
        {"promised": [0.5, math.nextafter(1.0, 2.0)]},
        {"promised": [1.0, 0.5]},
        {"setting": "local"},
        {"bounds": (0.0, 2.0)},
        {"delivered": [0.5, 0.9]},
        {"variance": 0.2},
        {"label": "second wave"},
    ]
    keys = [ReleasePlan.of(**{**base, **change}).key for change in changes]  # type: ignore[arg-type]
    assert len(set(keys)) == len(keys)
    assert ReleasePlan.of(**base).key == keys[0]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"promised": []}, "promised must be a nonempty"),
        ({"promised": [1.0, -1.0]}, "promised must be nonnegative, but row 1"),
        ({"promised": [math.nan]}, "row 0"),
        ({"setting": "hybrid"}, "setting must be 'central' or 'local'"),
        ({"bounds": (1.0, 1.0)}, "bounds must be two numbers low < high"),
        ({"bounds": (2.0, 1.0)}, "bounds"),
        ({"bounds": (0.0, math.inf)}, "bounds"),
        ({"bounds": (-1.7e308, 1.7e308)}, "bounds"),
        ({"bounds": (0.0, 5e-324)}, "bounds"),
        ({"bounds": (math.nan, 1.0)}, "bounds"),
        ({"bounds": 3}, "bounds must be two numbers"),
        ({"bounds": "ab"}, "bounds must be two numbers"),
        ({"delivered": [2.0]}, "delivered must not exceed promised, but row 0 does"),
        ({"delivered": [0.5, 0.5]}, "delivered must have one entry per person"),
        ({"variance": -1.0}, "variance must be above 0"),
        ({"variance": math.inf}, "variance"),
        ({"variance": [1.0, 2.0]}, "variance must be one number or one per person"),
        ({"variance": "wide"}, "variance"),
        ({"key": "../../etc/passwd"}, "key must be"),
        ({"key": ""}, "key must be"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(arguments: dict[str, object], message: str) -> None:
    base = {"promised": [1.0], "setting": "central", "bounds": (0.0, 1.0)}
    with pytest.raises(InputError, match=message):
        ReleasePlan.of(**{**base, **arguments})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "data",
    [
        [1, None, 2.5],
        (1.0, math.nan, 2.5),
        np.array([1.0, np.nan, 2.5]),
        np.array([1.0, np.nan, 2.5], dtype=np.float32),
        np.array([1, None, 2.5], dtype=object),
        np.ma.MaskedArray([1.0, 7.0, 2.5], mask=[False, True, False]),
        pd.Series([1.0, None, 2.5]),
        pd.Series([1, pd.NA, 2.5], dtype="object"),
        pd.Series([1.0, None, 2.5], dtype="Float64"),
        iter([1, None, 2.5]),
    ],
    ids=lambda data: type(data).__name__,
)
def test_missing_data_are_recognised_in_every_container(data: object) -> None:
    first, second, third = column(data)
    assert (first, third) == (1.0, 2.5)
    assert math.isnan(second)


def test_integers_and_booleans_are_numbers_and_huge_ones_are_infinite() -> None:
    assert column(np.array([1, 2, 3])) == [1.0, 2.0, 3.0]
    assert column([True, 10**400, -(10**400)]) == [1.0, math.inf, -math.inf]


@pytest.mark.parametrize(
    "data",
    [
        [1.0, "s3cret", 2.0],
        [1.0, [3.0], 2.0],
        ["s3cret"] * 3,
        [1.0, 2j, 3.0],
        np.array(["s3cret", "b", "c"]),
        "s3cret",
        3.0,
    ],
)
def test_data_that_are_not_numbers_are_refused_without_showing_them(data: object) -> None:
    with pytest.raises(DataError) as refusal:
        column(data)
    assert "s3cret" not in str(refusal.value)
    assert refusal.value.__suppress_context__ or refusal.value.__context__ is None


def test_the_wrong_number_of_rows_is_refused() -> None:
    for data in ([1.0, 2.0], np.zeros(4), [None] * 2):
        with pytest.raises(DataError, match=r"one entry per person \(3\)"):
            column(data)
    with pytest.raises(DataError, match="2 dimensions"):
        column(np.zeros((3, 1)))


def test_rows_that_are_not_needed_are_not_read() -> None:
    values = column(["anything", 2.0], needed=(False, True))
    assert math.isnan(values[0])
    assert values[1] == 2.0
