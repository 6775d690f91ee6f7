"""Reading people's numbers: generous inputs, and errors that say to programs as to people what is wrong."""

import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hushbid.common.arrays import (
    as_bounds,
    as_count,
    as_floats,
    as_generator,
    as_losses,
    as_nonnegative,
    as_number,
    as_row,
    as_variance,
    id_texts,
    rows_text,
)
from hushbid.errors import BidError, DataError, HushbidError, InputError, MissingExtra, Throttled

MASKED = np.ma.masked_array([1.0, 2.0, 3.0], mask=[False, True, True])


def test_rows_are_listed_briefly_with_the_verb_that_fits() -> None:
    bad = np.zeros(10, dtype=np.bool_)
    bad[4] = True
    assert (rows_text(bad), rows_text(bad, "is"), rows_text(bad, "does")) == ("row 4", "row 4 is", "row 4 does")
    bad[[1, 2]] = True
    assert (rows_text(bad), rows_text(bad, "is")) == ("rows 1, 2, 4", "rows 1, 2, 4 are")
    bad[5:] = True
    assert rows_text(bad, "does") == "rows 1, 2, 4, 5, 6 and 3 more do"


def test_rows_have_the_numbers_the_reader_knows_them_by() -> None:
    assert rows_text(np.array([False, True, True]), "does", numbered=np.array([0, 7, 9])) == "rows 7, 9 do"


def test_one_number_and_a_table_have_rows_too() -> None:
    assert rows_text(np.array(True)) == "row 0"
    assert rows_text(np.array([[False, False], [True, True]])) == "row 1"


@pytest.mark.parametrize(
    ("read", "field", "row"),
    [
        (lambda: as_floats(MASKED, "reports", BidError), "reports", 1),
        (lambda: as_floats("1", "reports"), "reports", None),
        (lambda: as_floats(None, "reports"), "reports", None),
        (lambda: as_number("1", "tolerance"), "tolerance", None),
        (lambda: as_number(10**400, "tolerance"), "tolerance", None),
        (lambda: as_number(True, "tolerance"), "tolerance", None),
        (lambda: as_number(np.True_, "tolerance"), "tolerance", None),
        (lambda: as_count(0, "points", least=1), "points", None),
        (lambda: as_row(3, 3), "user", None),
        (lambda: as_bounds((1, 1)), "bounds", None),
        (lambda: as_bounds("ab"), "bounds", None),
        (lambda: as_losses([1.0, -1.0, math.nan]), "privacy_loss", 1),
        (lambda: as_losses([0.0]), "privacy_loss", None),
        (lambda: as_losses([[1.0]], name="promised"), "promised", None),
        (lambda: as_nonnegative(None, "buyer_weight"), "buyer_weight", None),
        (lambda: as_nonnegative([1.0], "buyer_weight", per_person=False), "buyer_weight", None),
        (lambda: as_nonnegative([1.0, math.inf], "user_weight"), "user_weight", 1),
        (lambda: as_variance([1.0, -1.0], 2), "variance", 1),
        (lambda: as_variance(10**400, 2), "variance", None),
        (lambda: as_variance([1.0], 2), "variance", None),
        (lambda: id_texts([1.5]), "ids", None),
    ],
)
def test_what_is_refused_is_named_in_the_sentence_and_as_an_attribute(
    read: Callable[[], Any], field: str, row: int | None
) -> None:
    with pytest.raises(InputError) as refused:
        read()
    assert (refused.value.field, refused.value.row) == (field, row)
    told = str(refused.value)
    assert told.startswith(field)
    assert told.endswith(".")
    assert row is None or f" {row}" in told


def test_what_comes_as_64_bit_floats_is_not_copied_to_be_read() -> None:
    given = np.array([1.0, 2.0])
    assert as_floats(given, "reports") is given
    assert not np.shares_memory(as_losses(given), given)
    kept = as_nonnegative(given, "variance")
    assert isinstance(kept, np.ndarray)
    assert not kept.flags.writeable
    assert not np.shares_memory(kept, given)


@pytest.mark.parametrize(
    "error",
    [DataError("data", field="data", row=3), Throttled("later", retry_after=7.5), MissingExtra("no pyarrow")],
)
def test_an_error_keeps_what_it_carries_from_one_process_to_another(error: HushbidError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert (again.field, again.row, again.retry_after) == (error.field, error.row, error.retry_after)


def test_a_seed_is_a_generator_of_its_own() -> None:
    generator = np.random.default_rng(7)
    assert as_generator(generator) is generator
    assert as_generator(7).random() == as_generator(np.int64(7)).random() == np.random.default_rng(7).random()
    for wrong in (None, True, -1, 1.0, "7"):
        with pytest.raises(InputError, match=r"rng must be a numpy\.random\.Generator or a seed"):
            as_generator(wrong)
