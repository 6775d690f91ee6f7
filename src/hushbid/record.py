"""The record of a campaign: one file that says what was decided, why, and what was released.

Version 1 is a JSON object (docs/reference/record.md describes every field)::

    format, version      "hushbid record", 1
    outcome              the market, everybody's report, and every decision, as `Outcome.to_dict` gives them
    outcome_key          a hash of the outcome, by which a release says that it belongs to it
    lower_bound          no decision can have a lower objective (see `hushbid.allocation.lower_bounds`)
    totals               control totals: the exact sum of every column
    people               ids and group labels; each may be null
    money                payments in whole minor units of a currency, or null
    release              the released estimate and how it was made, or null
    stamps, notes        safeguards that were overridden; anything else worth saying
    versions             of the programs that made it
    hash                 of everything else, in the canonical form

All of it is confidential: a loss or a payment tells what somebody reported.
"""

import math
import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from hushbid.disclosure import Release
from hushbid.documents import Fields, canonical, content_hash, hash_of, parsed, read_content, with_hash, write_content
from hushbid.errors import HushbidError, InputError, RecordError
from hushbid.mechanism import Outcome
from hushbid.mechanism.market import outcome_key
from hushbid.money import Money

__all__ = ["Record", "read"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Record:
    """A campaign's decisions and its release, with a hash over all of it.

    >>> from hushbid.priors import Uniform
    >>> outcome = Market(prior=Uniform(1, 2), variance=0.25).acquire([1.1, 1.2, 1.9])
    >>> record = Record.of(outcome, ids=["ann", "bob", "cy"], currency="EUR", decimals=2)
    >>> record.money.payments.tolist(), Record.from_dict(record.to_dict()).hash == record.hash
    ([221, 147, 26], True)
    """

    outcome: Outcome
    """The market, the reports and the decisions."""

    outcome_key: str
    """The name under which the outcome's one release is claimed: a hash of the outcome."""

    lower_bound: float
    """No decision can have a lower objective, in money."""

    totals: dict[str, float]
    """The exact sum of every column, infinite entries left out, and how many people are bought from."""

    ids: tuple[str, ...] | None
    """Everybody's name or number, all different."""

    groups: tuple[str, ...] | None
    """Everybody's group, if groups were given or have priors of their own."""

    money: Money | None
    """Payments as they are really paid; None if no currency was named."""

    release: Release | None
    """The released estimate; None if nothing has been released."""

    stamps: tuple[str, ...]
    """Safeguards that somebody overrode, for instance "prior fitted on participants"."""

    notes: tuple[str, ...]
    """Anything else worth saying."""

    versions: dict[str, str]
    """Of the programs that made the record."""

    hash: str
    """SHA-256 of the content in its canonical form."""

    content: Mapping[str, Any]
    """Everything but the hash as the plain values that were hashed."""

    _written: tuple[Mapping[str, Any], bytes] | None = field(default=None, repr=False)
    """The content and its canonical form, kept from hashing to writing: for a million people it takes a while."""

    @classmethod
    def of(
        cls,
        outcome: Outcome,
        release: Release | None = None,
        *,
        ids: Iterable[str] | None = None,
        groups: Iterable[str] | None = None,
        currency: str | None = None,
        decimals: int = 2,
        stamps: Iterable[str] = (),
        notes: Iterable[str] = (),
    ) -> "Record":
        """The record of an outcome, and of its release if there is one.

        With ``currency``, payments are also rounded to whole minor units, of which ``10**decimals`` make one unit of
        the market's money, in the participant's favour.
        """
        n = outcome.reports.size
        money = None
        if currency is not None:
            money = Money.of(outcome.payments, outcome.incentive_error, currency=currency, decimals=decimals)
        people = {
            "ids": _texts(ids, "ids", n),
            "groups": _texts(groups, "groups", n),
        }
        bound = outcome.population.lower_bound(outcome.virtual_costs)
        content: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "outcome": outcome.to_dict(),
            "outcome_key": outcome_key(outcome),
            "lower_bound": bound if math.isfinite(bound) else str(bound),
            "totals": totals(outcome),
            "people": people,
            "money": None if money is None else money.to_dict(),
            "release": None if release is None else release.to_dict(),
            "stamps": _texts(stamps, "stamps", None),
            "notes": _texts(notes, "notes", None),
            "versions": _versions(),
        }
        return cls._made(content, outcome=outcome, money=money, release=release)

    def with_release(self, release: Release, *, stamps: Iterable[str] = ()) -> "Record":
        """This record with the release that was drawn later, and more stamps; a record has one release at most."""
        if self.release is not None:
            raise RecordError("A record holds one release, and this one has it already.")
        stamped = _texts([*self.stamps, *stamps], "stamps", None)
        content = {**self.content, "release": release.to_dict(), "stamps": stamped}
        return self._made(content, outcome=self.outcome, money=self.money, release=release)

    @property
    def incentive_error(self) -> float:
        """No misreport can gain more than this, in money; the rounding of payments included."""
        return self.outcome.incentive_error if self.money is None else self.money.incentive_error

    def to_dict(self) -> dict[str, Any]:
        """The record as plain values, with its hash."""
        return {**self.content, "hash": self.hash}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Record":
        """The inverse of `to_dict`; a record of another version or with a wrong hash is refused."""
        check_version(values)
        content = {name: value for name, value in values.items() if name != "hash"}
        if "hash" not in values:
            raise RecordError("A record must have a hash, and this one has none.")
        if values["hash"] != content_hash(content):
            raise RecordError("The record's hash does not fit its content: it was altered or damaged.")
        return cls._read(content, values["hash"])

    def write(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the record to a file in one step, for its owner's eyes only; compressed if the name ends in ``.gz``.

        An existing file is replaced only with ``overwrite``.
        """
        place = Path(path)
        write_content(place, self.to_bytes(), overwrite=overwrite)
        return place

    def to_bytes(self) -> bytes:
        """What a file holds: the record in its canonical form, and a line break."""
        if self._written is not None and self._written[0] is self.content:
            return with_hash(self._written[1], self.hash) + b"\n"
        return canonical(self.to_dict()) + b"\n"

    @classmethod
    def read(cls, path: str | Path) -> "Record":
        """Read a record from a file."""
        return cls.from_dict(parsed(read_content(Path(path))))

    def __repr__(self) -> str:  # losses and payments tell what people reported: not for a log
        released = "released" if self.release is not None else "not released"
        return f"Record(people={self.outcome.reports.size}, {released}, hash={self.hash[:12]!r})"

    def read_again(self) -> "Record":
        """The record with the same content and hash, all other fields read from the content."""
        return self._read(self.content, self.hash)

    @classmethod
    def _made(
        cls, content: Mapping[str, Any], *, outcome: Outcome, money: Money | None, release: Release | None
    ) -> "Record":
        """A record whose large parts are at hand and need not be read from its content."""
        written = canonical(content)
        try:
            known = {"outcome": outcome, "money": money, "release": release}
            fields = fields_of(content, known)
        except HushbidError as problem:
            raise RecordError(f"There is no such record: {problem}") from None
        return cls(**fields, hash=hash_of(written), content=content, _written=(content, written))

    @classmethod
    def _read(cls, content: Mapping[str, Any], digest: str) -> "Record":
        try:
            return cls(**fields_of(content), hash=digest, content=content)
        except HushbidError as problem:
            raise RecordError(f"The record cannot be read: {problem}") from None
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as problem:
            raise RecordError(f"The record cannot be read: {type(problem).__name__} in its fields.") from None


def read(path: str | Path) -> Record:
    """Read a record from a file."""
    return Record.read(path)


def totals(outcome: Outcome) -> dict[str, float]:
    """Control totals: the correctly rounded sum of the finite entries of every column, and how many are bought from."""
    columns = {**outcome.columns(), "rent_lower": outcome.rent_bounds[0], "rent_upper": outcome.rent_bounds[1]}
    for name in ("user_weight", "variance"):
        value = getattr(outcome.market, name)
        if isinstance(value, np.ndarray):
            columns[name] = value
    sums: dict[str, float] = {name: math.fsum(column[np.isfinite(column)]) for name, column in columns.items()}
    return {**sums, "bought_from": outcome.active}


def _texts(values: Iterable[str] | None, name: str, n: int | None) -> list[str] | None:
    """A list of texts, ``n`` of them if given; ids must differ."""
    if values is None:
        return None
    found = [values] if isinstance(values, str) and n is None else list(values)
    if not all(issubclass(kind, str) for kind in set(map(type, found))):
        raise InputError(f"{name} must be texts, got something else.", field=name)
    if n is not None and len(found) != n:
        raise InputError(f"{name} must have one entry per person ({n}), got {len(found)}.", field=name)
    if name == "ids" and len(set(found)) < len(found):
        raise InputError("ids must all be different, but one occurs twice.", field="ids")
    return found


def _versions() -> dict[str, str]:
    return {
        **{name: version(name) for name in ("hushbid", "numpy", "scipy")},
        "python": platform.python_version(),
    }


# ----------------------------------------------------------------------------------------------------
# From the plain values of a record to its fields, strictly: a value of another type or form is refused.
#
# Plain values have one meaning only: what is read must be written again exactly as it stands, so that ``true`` for 1.0,
# ``"0.5"`` for 0.5, or a field that is left out because it has its usual value are no second way to say the same.

FORMAT, VERSION = "hushbid record", 1
_FIELDS = (
    *("format", "version", "outcome", "outcome_key", "lower_bound", "totals", "people", "money", "release"),
    *("stamps", "notes", "versions"),
)
_OUTCOME = (
    *("format", "version", "market", "columns", "rent_lower", "rent_upper", "mse", "objective", "incentive_error"),
    "tie_order",
)
_COLUMNS = ("report", "virtual_cost", "privacy_loss", "weight", "payment", "information_rent", "outside_error")


def check_version(values: Any) -> None:
    """Refuse what is not a record of this version."""
    stated = (values.get("format"), values.get("version")) if isinstance(values, Mapping) else None
    if stated != (FORMAT, VERSION) or type(stated[1]) is not int:
        raise RecordError(f"A record must have format {FORMAT!r} and version {VERSION}, got {stated!r}.")


def fields_of(content: Mapping[str, Any], known: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Every field of a record but the hash; ``known`` are outcome, money and release, if they need not be read."""
    given = Fields(content, "record", _FIELDS)
    outcome: Outcome = _outcome(content["outcome"]) if known is None else known["outcome"]
    n = outcome.reports.size
    if known is None:
        money = None if content["money"] is None else Money.from_dict(content["money"], n)
        release = None if content["release"] is None else _release(content["release"])
    else:
        money, release = known["money"], known["release"]
    if release is not None and release.privacy_loss.size != n:
        raise RecordError(f"release must be about {n} people, got {release.privacy_loss.size}.", field="release")
    people = Fields(content["people"], "people", ("ids", "groups"))
    groups = people.listed_texts("groups", n)
    # labels may be stated once, in the prior
    if groups is None and outcome.population.labels is not None:
        groups = list(outcome.population.labels)
    ids = people.listed_texts("ids", n)
    if ids is not None and len(set(ids)) < n:
        raise RecordError("people: ids must all be different, but one occurs twice.")
    return {
        "outcome": outcome,
        "outcome_key": given.text("outcome_key"),
        "lower_bound": given.number("lower_bound"),
        "totals": given.named_numbers("totals"),
        "ids": None if ids is None else tuple(ids),
        "groups": None if groups is None else tuple(groups),
        "money": money,
        "release": release,
        "stamps": tuple(given.listed_texts("stamps") or ()),
        "notes": tuple(given.listed_texts("notes") or ()),
        "versions": given.texts("versions"),
    }


def _outcome(values: Any) -> Outcome:
    given = Fields(values, "outcome", _OUTCOME)
    columns = Fields(values["columns"], "columns", _COLUMNS)
    sizes = [len(columns.numbers(name)) for name in _COLUMNS]
    sizes += [len(given.numbers(name)) for name in ("rent_lower", "rent_upper")]
    if min(sizes) < 1 or min(sizes) < max(sizes):
        raise RecordError(
            "outcome: columns and bounds on rents must have one number per person, and somebody must be there."
        )
    if values["tie_order"] is not None and sorted(given.integers("tie_order")) != list(range(sizes[0])):
        raise RecordError(f"outcome: tie_order must hold every place from 0 to {sizes[0] - 1} once.")
    outcome = Outcome.from_dict(values)
    # what is read must be written again exactly as it stands
    if not _same(values, outcome.to_dict()):
        raise RecordError("outcome: every field must be there, and in the form in which it is written.")
    return outcome


def _release(values: Any) -> Release:
    release = Release.from_dict(values)
    if not _same(values, release.to_dict()):
        raise RecordError("release: every field must be in the form in which it is written.")
    return release


def _same(left: Any, right: Any) -> bool:
    """Equal, types included: 1, 1.0 and true are three things here. (NumPy's doubles are doubles.)"""
    if isinstance(left, float):
        return isinstance(right, float) and bool(left == right)
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(_same(left[name], right[name]) for name in left)
    if isinstance(left, list):
        if set(map(type, left)) == set(map(type, right)) == {float}:
            return bool(left == right)
        return len(left) == len(right) and all(map(_same, left, right))
    return bool(left == right)
