"""The content of a record: the fields that it has in a file, and what is made of them when they are read."""

import functools
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Annotated, Any

import numpy as np

from hushbid.common.arrays import FloatArray, rounded_sum
from hushbid.common.codec import ARRAYS, Codec, Named, Number, Perhaps
from hushbid.common.column_files import Texts
from hushbid.common.money import Money, check_currency
from hushbid.disclosure import Release
from hushbid.disclosure.release import RELEASE
from hushbid.errors import RecordError
from hushbid.mechanism import Outcome

FORMAT, VERSION = "hushbid record", 3


@dataclass(frozen=True, slots=True, kw_only=True)
class PeopleContent:
    ids: tuple[str, ...] | None
    groups: tuple[str, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableContent:
    """What is stated of the other file of a folder."""

    rows: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """All fields of a record but the hash, under the names and in the shape that they have in a file."""

    outcome: Mapping[str, Any]
    outcome_key: str
    lower_bound: float
    totals: Annotated[dict[str, float], Named(Number(exact=False))]
    people: PeopleContent
    money: Money | None
    release: Annotated[Release | None, Perhaps(RELEASE)]
    stamps: tuple[str, ...]
    notes: tuple[str, ...]
    versions: dict[str, str]
    table: TableContent | None = None


HEADER = {"format": FORMAT, "version": VERSION}
CODEC = Codec(Content, "record", header=HEADER)
WITH_ARRAYS = Codec(Content, "record", header=HEADER, style=ARRAYS)


def fields_of(found: Content, outcome: Outcome, *, are_ids_different: bool = False) -> dict[str, Any]:
    """Every field of a record but the hash; refused if its parts are not about the same people."""
    n, money, release = outcome.bids.size, found.money, found.release
    if money is not None:
        check_currency(money.currency, money.decimals)
        if money.payments.size != n:
            raise RecordError(f"money: payments must be {n} whole numbers below 2**53, one per person.")
    if release is not None and release.privacy_loss.size != n:
        raise RecordError(f"release must be about {n} people, got {release.privacy_loss.size}.", field="release")
    ids, groups = found.people.ids, found.people.groups
    for name, texts in (("ids", ids), ("groups", groups)):
        if texts is not None and len(texts) != n:
            raise RecordError(f"people: {name} must have one entry per person ({n}), got {len(texts)}.", field=name)
    if ids is not None and not are_ids_different and not _are_different(ids):
        raise RecordError("people: ids must all be different, but one occurs twice.")
    # labels may be stated once, in the prior
    groups = outcome.population.labels if groups is None else groups
    return {
        "outcome": outcome,
        "outcome_key": found.outcome_key,
        "lower_bound": found.lower_bound,
        "totals": found.totals,
        "ids": ids,
        "groups": groups,
        "money": money,
        "release": release,
        "stamps": found.stamps,
        "notes": found.notes,
        "versions": found.versions,
    }


def _are_different(ids: Sequence[str]) -> bool:
    return ids.are_different() if isinstance(ids, Texts) else len(set(ids)) == len(ids)


def outcome_of(values: Mapping[str, Any]) -> Outcome:
    outcome = Outcome.from_dict(values)
    # what is read must be written again exactly as it stands
    if not _same(values["market"], outcome.market.to_dict()):
        raise RecordError("outcome.market: every field must be there, and in the form in which it is written.")
    return outcome


def _same(left: Any, right: Any) -> bool:
    """Equal, types included: 1, 1.0 and true are three things here. (NumPy's doubles are doubles.)"""
    if isinstance(left, float):
        return isinstance(right, float) and bool(left == right)
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(_same(left[name], right[name]) for name in left)
    if isinstance(left, list):
        if set(map(type, left)) == set(map(type, right)) and set(map(type, left)) in ({float}, {str}):
            return bool(left == right)
        return len(left) == len(right) and all(map(_same, left, right))
    return bool(left == right)


def totals(outcome: Outcome) -> dict[str, float]:
    """Control totals: the correctly rounded sum of the finite entries of every column, and how many are bought from."""
    columns = {**outcome.columns(), "rent_lower": outcome.rent_bounds[0], "rent_upper": outcome.rent_bounds[1]}
    for name in ("user_weight", "variance"):
        value = getattr(outcome.market, name)
        if isinstance(value, np.ndarray):
            columns[name] = value
    return {**{name: _finite_sum(column) for name, column in columns.items()}, "bought_from": outcome.active}


def _finite_sum(column: FloatArray) -> float:
    finite = np.isfinite(column)
    return rounded_sum(column if finite.all() else column[finite])


def versions() -> dict[str, str]:
    """Return the versions of the programs that make a record."""
    return {**_installed(), "python": platform.python_version()}


@functools.cache
def _installed() -> dict[str, str]:
    """Return the versions of packages, which are looked up in files of the installation once."""
    return {name: version(name) for name in ("hushbid", "numpy", "scipy")}
