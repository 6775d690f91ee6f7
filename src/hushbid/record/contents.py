"""The record of a campaign: one file that says what was decided, why, and what was released.

Version 1 is a JSON object (docs/reference/record.md describes every field)::

    format, version      "hushbid record", 1
    outcome              the market, everybody's report, and every decision, as `Outcome.to_dict` gives them
    outcome_key          a hash of the outcome, by which a release says that it belongs to it
    lower_bound          no decision can have a lower objective (see `hushbid.allocation.certificate`)
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
from numpy.typing import NDArray

from hushbid.allocation.certificate import central_lower_bound, local_lower_bound
from hushbid.disclosure import Release
from hushbid.errors import HushbidError, InputError, RecordError
from hushbid.mechanism import Market, Outcome
from hushbid.mechanism.publish import outcome_key
from hushbid.record.canonical import canonical, content_hash, hash_of, parsed, read_bytes, with_hash, write_bytes
from hushbid.record.money import Money
from hushbid.record.reading import FORMAT, VERSION, check_version, fields_of

FloatArray = NDArray[np.float64]


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
        bound = lower_bound(outcome.market, outcome.virtual_costs)
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
        write_bytes(place, self.to_bytes(), overwrite=overwrite)
        return place

    def to_bytes(self) -> bytes:
        """What a file holds: the record in its canonical form, and a line break."""
        if self._written is not None and self._written[0] is self.content:
            return with_hash(self._written[1], self.hash) + b"\n"
        return canonical(self.to_dict()) + b"\n"

    @classmethod
    def read(cls, path: str | Path) -> "Record":
        """Read a record from a file."""
        return cls.from_dict(parsed(read_bytes(Path(path))))

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


def lower_bound(market: Market, virtual_costs: FloatArray) -> float:
    """What no decision's objective can be below, in money; infinite if nobody can be bought from."""
    if not (virtual_costs < math.inf).any():
        return math.inf
    variance, weight = unit_variance(market), market.error_weight(virtual_costs.size) * market.width**2
    if market.setting == "central":
        return float(central_lower_bound(virtual_costs, variance, weight))
    assert isinstance(variance, float)
    return float(local_lower_bound(virtual_costs, variance, weight))


def unit_variance(market: Market) -> float | FloatArray:
    """The declared variance for a data range of width 1."""
    return market.stated_variance / market.width**2


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
        raise InputError(f"{name} must be texts, got something else.")
    if n is not None and len(found) != n:
        raise InputError(f"{name} must have one entry per person ({n}), got {len(found)}.")
    if name == "ids" and len(set(found)) < len(found):
        raise InputError("ids must all be different, but one occurs twice.")
    return found


def _versions() -> dict[str, str]:
    return {
        **{name: version(name) for name in ("hushbid", "numpy", "scipy")},
        "python": platform.python_version(),
    }
