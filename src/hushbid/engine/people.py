"""Who is in a table: from a batch of rows to bids, virtual costs and what is wrong with them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic

import numpy as np
from numpy.typing import NDArray

from hushbid.allocation import tie_keys
from hushbid.common.arrays import BoolArray, FloatArray, HashArray, IndexArray, IntArray, id_texts
from hushbid.disclosure.promises import SMALLEST_LOSS
from hushbid.engine.adapter import Batch, Engine, Reducer, Sum, pyarrow
from hushbid.errors import InputError
from hushbid.mechanism.many import rows_by_stratum
from hushbid.priors import Prior

PROBLEMS = (
    "missing or not a number",
    "negative",
    "below the prior's support",
    "in no known group",
    "without a variance above 0",
    "with a negative limit or a cap that is not positive",
    "in no known stratum",
)
_ODD = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """The people of one batch; rows with a problem are left out of all arrays but ``problem``."""

    bids: FloatArray
    costs: FloatArray
    groups: IntArray | None
    variance: FloatArray | None
    limit: FloatArray | None
    """The most that each may lose: their own limit, or the cap set for them if that is lower; infinite for neither, and
    0 for people who sell nothing, whose virtual cost is infinite."""

    strata: IntArray
    """Everybody's stratum; where none are named there is one."""

    problem: NDArray[np.int8] | None
    """For every row of the batch, 0 or one more than the place in `PROBLEMS`; None if all are fine."""

    @property
    def good(self) -> BoolArray | None:
        """Which rows of the batch the arrays are about; None for all."""
        return None if self.problem is None else self.problem == 0

    def by_stratum(self, count: int) -> list[IndexArray | slice]:
        """Which of the good rows are in each of so many strata."""
        return list(rows_by_stratum(self.strata, count)) if count > 1 else [slice(None)]

    @property
    def columns(self) -> dict[str, Any]:
        """The arrays by name, None for those that the table has no column for."""
        return {name: getattr(self, name) for name in ("bids", "costs", "groups", "variance", "limit", "strata")}

    def take(self, which: IndexArray | slice) -> "Rows":
        """Some of the good rows, which are then all there is."""
        columns: dict[str, Any] = {
            name: None if column is None else column[which] for name, column in self.columns.items()
        }
        return Rows(**columns, problem=None)

    def __add__(self, other: "Rows") -> "Rows":
        """The good rows of two batches of one table."""
        columns: dict[str, Any] = {
            name: None if column is None else np.concatenate([column, other.columns[name]])
            for name, column in self.columns.items()
        }
        return Rows(**columns, problem=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    """Which columns say what, and what is believed about whom. It is shipped to where the rows are."""

    bid: str
    id: str | None
    group: str | None
    variance: str | None
    limit: str | None = None
    """The column of what people accept at most, nothing where somebody names no limit."""

    cap: str | None = None
    """The column of what may be asked of each at most, nothing where there is no cap."""

    stratum: str | None = None
    """The column of everybody's public stratum, if a combination of stratum means is wanted."""

    strata: tuple[str, ...] = ()
    """What the strata are called, in the order of their codes."""

    priors: Mapping[str, Prior]
    """By group; a single one, under any name, if there are no groups."""

    tie_seed: bytes
    """Decides, with the id, who is bought from first among equals."""

    @property
    def columns(self) -> list[str]:
        """What `read` reads, each column once; not the ids, which may be long."""
        return _once(self.bid, self.group, self.variance, self.limit, self.cap, self.stratum)

    @property
    def columns_and_id(self) -> list[str]:
        """What `read` reads, each column once, and ids if there are any."""
        return _once(*self.columns, self.id)

    @property
    def limited(self) -> bool:
        """Whether a column says how much each may lose."""
        return self.limit is not None or self.cap is not None

    @property
    def prior_list(self) -> list[Prior]:
        """The priors in the order of group codes."""
        return list(self.priors.values())

    def read(self, batch: Batch) -> Rows:
        """Everybody who can be priced, with their virtual cost."""
        bids = floats_of(batch.column(self.bid), self.bid)
        groups = None if self.group is None else _codes(batch.column(self.group), self.priors)
        strata = np.zeros(bids.size, dtype=np.int64)
        if self.stratum is not None:
            strata = _codes(batch.column(self.stratum), self.strata)
        variance = None if self.variance is None else floats_of(batch.column(self.variance), self.variance)
        limit = self._limits(batch)
        problem = _with_strangers(self._problems(bids, groups, variance, limit), strata)
        if problem is not None:
            good = problem == 0
            bids, strata, groups = bids[good], strata[good], None if groups is None else groups[good]
            variance, limit = (None if column is None else column[good] for column in (variance, limit))
        return Rows(
            bids=bids,
            costs=self._costs(bids, groups, limit),
            groups=groups,
            variance=variance,
            limit=limit,
            strata=strata,
            problem=problem,
        )

    def nobody(self) -> Rows:
        """No row yet."""
        codes, numbers = np.zeros(0, dtype=np.int64), np.zeros(0)
        return Rows(
            bids=numbers,
            costs=numbers,
            groups=None if self.group is None else codes,
            variance=None if self.variance is None else numbers,
            limit=numbers if self.limited else None,
            strata=codes,
            problem=None,
        )

    def tie_keys(self, ids: Any) -> HashArray:
        """A hash of each id (an Arrow array): the order among equals, which no bid can influence."""
        names = id_texts(ids.to_pylist())
        if "" in names:
            raise self.unnamed()
        return tie_keys(names, seed=self.tie_seed)

    def unnamed(self) -> InputError:
        """What is said if identity shall decide, and cannot."""
        return InputError(
            f"Column {self.id!r} must name everybody once, but among those who could be bought from an id is missing or"
            " repeated.",
            field=self.id,
        )

    def _costs(self, bids: FloatArray, groups: IntArray | None, limit: FloatArray | None) -> FloatArray:
        priors = self.prior_list
        if groups is None:
            costs = np.asarray(priors[0].virtual_cost(bids))
        else:
            costs = np.empty(bids.size)
            for code, prior in enumerate(priors):
                rows = groups == code
                if rows.any():
                    costs[rows] = prior.virtual_cost(bids[rows])
        if limit is not None:
            costs = np.where(limit > 0.0, costs, np.inf)
        return costs + 0.0  # no negative zero: bit patterns order the costs

    def _limits(self, batch: Batch) -> FloatArray | None:
        """The lower of everybody's limit and cap; infinite where neither is stated, negative where a cap is 0."""
        found = [floats_of(batch.column(name), name) for name in (self.limit, self.cap) if name is not None]
        if not found:
            return None
        if self.cap is not None:
            found[-1] = np.where(found[-1] == 0.0, -1.0, found[-1])
        lowest: FloatArray = np.min([np.where(np.isnan(one), np.inf, one) for one in found], axis=0)
        return lowest

    def _problems(
        self, bids: FloatArray, groups: IntArray | None, variance: FloatArray | None, limit: FloatArray | None
    ) -> NDArray[np.int8] | None:
        """What is wrong with each row: the first that applies."""
        lows = np.array([prior.smallest_bid for prior in self.prior_list])
        low = lows[0] if groups is None else lows[groups]
        fine = bool(bids.size == 0 or (bids >= low).all())
        if groups is not None:
            fine = fine and bool((groups >= 0).all())
        if variance is not None:
            fine = fine and bool(((variance > 0.0) & (variance < np.inf)).all())
        if limit is not None:
            fine = fine and bool(((limit >= SMALLEST_LOSS) | (limit == 0.0)).all())
        # the usual case costs no further array
        if fine:
            return None
        # later lines overwrite earlier ones: the first of the list is said
        problem = np.zeros(bids.size, dtype=np.int8)
        if limit is not None:
            problem[(limit < SMALLEST_LOSS) & (limit != 0.0)] = 6
        if variance is not None:
            problem[~((variance > 0.0) & (variance < np.inf))] = 5
        problem[bids < low] = 3
        if groups is not None:
            problem[groups < 0] = 4
        problem[bids < 0.0] = 2
        problem[np.isnan(bids)] = 1
        return problem


def _codes(column: Any, names: Iterable[str]) -> IntArray:
    """The place of each label among some names; −1 for none of them."""
    known = {name: code for code, name in enumerate(names)}
    encoded = column.dictionary_encode() if not hasattr(column, "dictionary") else column
    labels = encoded.dictionary.cast("string").to_pylist()
    codes = np.array([*(known.get(label, -1) for label in labels), -1], dtype=np.int64)
    places: IntArray = encoded.indices.cast("int64").fill_null(len(labels)).to_numpy(zero_copy_only=False)
    return codes[places]


def _with_strangers(problem: NDArray[np.int8] | None, strata: IntArray) -> NDArray[np.int8] | None:
    """The problems of rows, those of people who are in no stratum included."""
    if bool((strata >= 0).all()):
        return problem
    problem = np.zeros(strata.size, dtype=np.int8) if problem is None else problem
    return np.where((problem == 0) & (strata < 0), np.int8(7), problem)


def _once(*names: str | None) -> list[str]:
    return list(dict.fromkeys(name for name in names if name is not None))


def lookup_keys(rows: Rows, ties: HashArray, salt: int) -> HashArray:
    """A number for each person by which their decision is found again; ``salt`` gives others where two are equal."""
    odd = np.array(_ODD, dtype=np.uint64) + np.uint64(2 * salt)
    # odd factors permute 64-bit numbers: one column alone never collides; + 0.0 makes -0.0 and 0.0 one
    keys: HashArray = np.ascontiguousarray(rows.bids + 0.0).view(np.uint64) * odd[0]
    for shift, code in ((0, rows.groups), (32, rows.strata)):  # there are fewer than 2**32 groups
        if code is not None:
            keys ^= ((code.astype(np.uint64) + np.uint64(1)) << np.uint64(shift)) * odd[1]
    for factor, column in zip(odd[2:], (rows.variance, rows.limit), strict=True):
        if column is not None:
            keys ^= np.ascontiguousarray(column + 0.0).view(np.uint64) * factor
    return keys ^ ties


def floats_of(column: Any, name: str) -> FloatArray:
    """A column as doubles, NaN where it is null. Texts are no numbers, not even "nan", which Arrow would read."""
    kinds = pyarrow().types
    is_number = (kinds.is_floating, kinds.is_integer, kinds.is_decimal, kinds.is_null)
    kind = column.type.value_type if kinds.is_dictionary(column.type) else column.type
    if not any(is_one(kind) for is_one in is_number):
        held = "texts" if kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_string_view(kind) else kind
        raise InputError(f"Column {name!r} must hold numbers, not {held}.", field=name)
    column = column.cast("float64")
    values: FloatArray = column.to_numpy(zero_copy_only=False)
    return values


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Told before every pass over the rows."""

    number: int
    """Passes count from 1."""

    what: str
    """What the pass is for."""


@dataclass(frozen=True, slots=True)
class RowsKernel(Generic[Sum]):
    """From a batch to what a function makes of its good rows."""

    people: People
    of: Callable[[Rows], Sum]
    """It is shipped to where the rows are."""

    @property
    def columns(self) -> list[str]:
        """What it reads."""
        return self.people.columns

    def __call__(self, batch: Batch, start: int | None) -> Sum:
        return self.of(self.people.read(batch))


@dataclass(slots=True, kw_only=True, eq=False)
class Run:
    """Counts passes and tells about them."""

    engine: Engine
    people: People
    window: int
    """At most so many people are expected in the window that goes to the driver."""

    tell: Callable[[Progress], object] | None
    passes: int = 0

    def reduce(self, what: str, kernel: Reducer[Sum], zero: Sum) -> Sum:
        """One pass."""
        self.starts(what)
        return self.engine.reduce(kernel, zero)

    def add_up(self, what: str, of: Callable[[Rows], Sum], zero: Sum) -> Sum:
        """One pass that adds up what a function makes of good rows."""
        return self.reduce(what, RowsKernel(self.people, of), zero)

    def starts(self, what: str) -> None:
        """Count a pass and tell about it."""
        self.passes += 1
        if self.tell is not None:
            self.tell(Progress(number=self.passes, what=what))
