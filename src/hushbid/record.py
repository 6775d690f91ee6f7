"""The record of a campaign: one file that says what was decided, why, and what was released.

A record of version 3 is a JSON object (docs/reference/record.md describes every field)::

    format, version      "hushbid record", 3
    outcome              the market, everybody's bid, and every decision, as `Outcome.to_dict` gives them
    outcome_key          a hash of the outcome, by which a release says that it belongs to it
    lower_bound          no decision can have a lower objective (see `hushbid.allocation.lower_bounds`)
    totals               control totals: the exact sum of every column
    people               ids and group labels; each may be null
    money                payments in whole minor units of a currency, or null
    release              the released estimate and how it was made, or null
    stamps, notes        safeguards that were overridden, flags of the outcome; anything else worth saying
    versions             of the programs that made it
    hash                 of everything else, in the canonical form

All of it is confidential: a loss or a payment tells what somebody bid.
Records of other versions are refused.
"""

import functools
import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from hushbid.allocation.goals import Budget, HardBudget
from hushbid.common.arrays import FloatArray, rounded_sum
from hushbid.common.codec import Codec, Named, Number, Perhaps, header_problem
from hushbid.common.documents import canonical, hash_of, parsed, read_content, write_content
from hushbid.common.money import Money, check_currency
from hushbid.disclosure import Release
from hushbid.disclosure.release import RELEASE
from hushbid.errors import HashMismatch, HushbidError, InputError, RecordError
from hushbid.mechanism import Outcome
from hushbid.mechanism.releasing import outcome_key

__all__ = ["Record", "read"]

FORMAT, VERSION = "hushbid record", 3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Record:
    """A campaign's decisions and its release, with a hash over all of it.

    >>> from hushbid.mechanism import Market
    >>> from hushbid.priors import Uniform
    >>> market = Market(prior=Uniform(1, 2), variance=0.25, buyer_weight=1, user_weight=1)
    >>> outcome = market.acquire([1.1, 1.2, 1.9])
    >>> record = Record.of(outcome, ids=["ann", "bob", "cy"], currency="EUR", decimals=2)
    >>> record.money.payments.tolist(), Record.from_dict(record.to_dict()).hash == record.hash
    ([221, 147, 26], True)
    """

    outcome: Outcome
    """The market, the bids and the decisions."""

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
    """Safeguards that were overridden, for instance "prior fitted on participants", and the flags of the outcome."""

    notes: tuple[str, ...]
    """Anything else worth saying."""

    versions: dict[str, str]
    """Of the programs that made the record."""

    hash: str
    """SHA-256 of the content in its canonical form."""

    text: bytes
    """Everything but the hash in its canonical form: what was hashed."""

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
        money: Money | None = None,
        stamps: Iterable[str] = (),
        notes: Iterable[str] = (),
    ) -> "Record":
        """The record of an outcome, and of its release if there is one.

        With ``currency``, payments are also rounded to whole minor units, of which ``10**decimals`` make one unit of
        the market's money, in the participant's favour. Where they are rounded already, ``money`` has them.
        """
        n = outcome.bids.size
        if currency is not None and money is not None:
            raise InputError("give either currency or money, not both.", field="money")
        if currency is not None:
            check_currency(currency, decimals)
        _refuse_uncoined(outcome.market.goal, decimals if money is None else money.decimals, currency or money)
        if currency is not None:
            money = Money.of(outcome.payments, outcome.incentive_error, currency=currency, decimals=decimals)
        made = _Content(
            outcome=outcome.to_dict(),
            outcome_key=outcome_key(outcome),
            lower_bound=outcome.lower_bound,
            totals=totals(outcome),
            people=_People(ids=_texts(ids, "ids", n), groups=_texts(groups, "groups", n)),
            money=money,
            release=release,
            stamps=_texts(dict.fromkeys([*stamps, *outcome.flags]), "stamps", None) or (),
            notes=_texts(notes, "notes", None) or (),
            versions=_versions(),
        )
        text = canonical(_CODEC.write(made))
        try:
            fields = _fields(made, outcome, are_ids_different=True)  # as was made sure of above
        except HushbidError as problem:
            raise RecordError(f"There is no such record: {problem}") from None
        return cls(**fields, hash=hash_of(text), text=text)

    def with_release(self, release: Release, *, stamps: Iterable[str] = (), notes: Iterable[str] = ()) -> "Record":
        """This record with the release that was drawn later, and more stamps and notes; it has one release at most.

        The notes come before those it has: notices of the campaign's own stay last.
        """
        if self.release is not None:
            raise RecordError("A record holds one release, and this one has it already.")
        people = self.outcome.bids.size
        if release.privacy_loss.size != people:
            raise RecordError(
                f"There is no such record: release must be about {people} people, got {release.privacy_loss.size}."
            )
        stamped = _texts([*self.stamps, *stamps], "stamps", None) or ()
        texts = _texts([*notes, *self.notes], "notes", None) or ()
        changed = {"release": release.to_dict(), "stamps": list(stamped), "notes": list(texts)}
        text = canonical({**self.content, **changed})
        return replace(self, release=release, stamps=stamped, notes=texts, hash=hash_of(text), text=text)

    @property
    def content(self) -> dict[str, Any]:
        """Everything but the hash as the plain values that were hashed."""
        return parsed(self.text)

    @property
    def incentive_error(self) -> float:
        """No misreport can gain more than this, in money; the rounding of payments included."""
        return self.outcome.incentive_error if self.money is None else self.money.incentive_error

    def to_dict(self) -> dict[str, Any]:
        """The record as plain values, with its hash."""
        return {**self.content, "hash": self.hash}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Record":
        """The inverse of `to_dict`; a record of an unknown version or with a wrong hash is refused."""
        known = values if isinstance(values, Mapping) else {}
        wrong = header_problem(known, "record", _HEADER)
        if wrong is not None:
            raise RecordError(wrong)
        if "hash" not in values:
            raise RecordError("A record must have a hash, and this one has none.")
        content = {name: value for name, value in values.items() if name != "hash"}
        text = canonical(content)
        found = hash_of(text)
        if values["hash"] != found:
            raise HashMismatch("The record's hash does not fit its content: it was altered or damaged.", found=found)
        return cls._read(content, found, text)

    def write(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the record to a file in one step, for its owner's eyes only; compressed if the name ends in ``.gz``.

        An existing file is replaced only with ``overwrite``.
        """
        place = Path(path)
        write_content(place, self.to_bytes(), overwrite=overwrite)
        return place

    def to_bytes(self) -> bytes:
        """What a file holds: the record in its canonical form, and a line break."""
        first, comma, rest = self.text.partition(b",")  # of the keys, only ``format`` comes before ``hash``
        return b"".join((first, comma, b'"hash":"', self.hash.encode("ascii"), b'",', rest, b"\n"))

    @classmethod
    def read(cls, path: str | Path) -> "Record":
        """Read a record from a file."""
        return cls.from_dict(parsed(read_content(Path(path))))

    def __repr__(self) -> str:  # losses and payments tell what people bid: not for a log
        released = "released" if self.release is not None else "not released"
        return f"Record(people={self.outcome.bids.size}, {released}, hash={self.hash[:12]!r})"

    def read_again(self) -> "Record":
        """The record with the same content and hash, all other fields read from the content."""
        return self._read(self.content, self.hash, self.text)

    @classmethod
    def _read(cls, content: Mapping[str, Any], digest: str, text: bytes) -> "Record":
        try:
            found = _CODEC.read(content)
            outcome = _outcome(found.outcome)
            return cls(**_fields(found, outcome), hash=digest, text=text)
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
    return {**{name: _finite_sum(column) for name, column in columns.items()}, "bought_from": outcome.active}


def _refuse_uncoined(goal: object, decimals: int, paid: object) -> None:
    """Refuse to round payments up that were decided for a budget which knows of no such coin."""
    if paid is None or not isinstance(goal, (Budget, HardBudget)) or goal.coin >= 10.0**-decimals * (1.0 - 1e-12):
        return
    kind = type(goal).__name__
    raise InputError(
        f"A {'hard ' * (kind == 'HardBudget')}budget that is paid in a currency must state its smallest coin, or"
        f" rounding would exceed it: {kind}({goal.amount:.12g}, coin={10.0**-decimals:g}); got coin={goal.coin:g}.",
        field="coin",
    )


def _finite_sum(column: FloatArray) -> float:
    finite = np.isfinite(column)
    return rounded_sum(column if finite.all() else column[finite])


def _texts(values: Iterable[str] | None, name: str, n: int | None) -> tuple[str, ...] | None:
    """Texts, ``n`` of them if given; ids must differ."""
    if values is None:
        return None
    found = [values] if isinstance(values, str) and n is None else list(values)
    if not all(issubclass(kind, str) for kind in set(map(type, found))):
        raise InputError(f"{name} must be texts, got something else.", field=name)
    if n is not None and len(found) != n:
        raise InputError(f"{name} must have one entry per person ({n}), got {len(found)}.", field=name)
    if name == "ids" and len(set(found)) < len(found):
        raise InputError("ids must all be different, but one occurs twice.", field="ids")
    return tuple(found)


def _versions() -> dict[str, str]:
    return {**_installed(), "python": platform.python_version()}


@functools.cache
def _installed() -> dict[str, str]:
    """Return the versions of packages, which are looked up in files of the installation once."""
    return {name: version(name) for name in ("hushbid", "numpy", "scipy")}


# -- the content as it is written --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _People:
    ids: tuple[str, ...] | None
    groups: tuple[str, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Content:
    """All fields of a record but the hash, under the names and in the shape that they have in a file."""

    outcome: Mapping[str, Any]
    outcome_key: str
    lower_bound: float
    totals: Annotated[dict[str, float], Named(Number(exact=False))]
    people: _People
    money: Money | None
    release: Annotated[Release | None, Perhaps(RELEASE)]
    stamps: tuple[str, ...]
    notes: tuple[str, ...]
    versions: dict[str, str]


_HEADER = {"format": FORMAT, "version": VERSION}
_CODEC = Codec(_Content, "record", header=_HEADER)


def _fields(found: _Content, outcome: Outcome, *, are_ids_different: bool = False) -> dict[str, Any]:
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
    if ids is not None and not are_ids_different and len(set(ids)) < n:
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


def _outcome(values: Mapping[str, Any]) -> Outcome:
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
        if set(map(type, left)) == set(map(type, right)) == {float}:
            return bool(left == right)
        return len(left) == len(right) and all(map(_same, left, right))
    return bool(left == right)
