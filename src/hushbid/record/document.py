"""A record: made of an outcome, written, and read again."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hushbid.allocation.goals import Budget, HardBudget
from hushbid.common.codec import header_problem
from hushbid.common.column_files import ColumnFile, joined
from hushbid.common.documents import canonical, hash_of, parsed, read_content, write_content
from hushbid.common.money import Money, check_currency
from hushbid.common.staging import Staging
from hushbid.disclosure import Release
from hushbid.errors import HashMismatch, HushbidError, InputError, MissingExtra, OutputExists, RecordError
from hushbid.mechanism import Outcome
from hushbid.mechanism.releasing import outcome_key
from hushbid.record.content import (
    CODEC,
    HEADER,
    WITH_ARRAYS,
    Content,
    PeopleContent,
    fields_of,
    outcome_of,
    totals,
    versions,
)
from hushbid.record.folder import (
    DOCUMENT,
    TABLE,
    Folder,
    apart,
    bytes_of_file,
    is_record_folder,
    needs_folder,
    place_of_folder,
)


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

    ids: Sequence[str] | None
    """Everybody's name or number, all different."""

    groups: Sequence[str] | None
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
    """Everything but the hash in its canonical form: what was hashed. Of a folder, what is in ``record.json``."""

    table: ColumnFile | None
    """The other file of a folder; None for a record in one file."""

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
        in_one_file: bool = False,
    ) -> "Record":
        """The record of an outcome, and of its release if there is one.

        With ``currency``, payments are also rounded to whole minor units, of which ``10**decimals`` make one unit of
        the market's money, in the participant's favour. Where they are rounded already, ``money`` has them. A record
        that is kept elsewhere than in a folder may be ``in_one_file`` of any size.
        """
        n = outcome.bids.size
        if currency is not None and money is not None:
            raise InputError("give either currency or money, not both.", field="money")
        if currency is not None:
            check_currency(currency, decimals)
        _refuse_uncoined(outcome.market.goal, decimals if money is None else money.decimals, currency or money)
        if currency is not None:
            money = Money.of(outcome.payments, outcome.incentive_error, currency=currency, decimals=decimals)
        is_folder = needs_folder(n) and not in_one_file
        made = Content(
            outcome=outcome.to_columns() if is_folder else outcome.to_dict(),
            outcome_key=outcome_key(outcome),
            lower_bound=outcome.lower_bound,
            totals=totals(outcome),
            people=PeopleContent(ids=_texts(ids, "ids", n), groups=_texts(groups, "groups", n)),
            money=money,
            release=release,
            stamps=_texts(dict.fromkeys([*stamps, *outcome.flags]), "stamps", None) or (),
            notes=_texts(notes, "notes", None) or (),
            versions=versions(),
        )
        text, table = apart(WITH_ARRAYS.write(made), n, release) if is_folder else (canonical(CODEC.write(made)), None)
        try:
            fields = fields_of(made, outcome, are_ids_different=True)  # as was made sure of above
        except HushbidError as problem:
            raise RecordError(f"There is no such record: {problem}") from None
        return cls(**fields, hash=hash_of(text), text=text, table=table)

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
        text, table = canonical({**self.content, **changed}), None
        if self.table is not None:
            text, table = apart({**joined(self.content, self.table.read()), **changed}, people, release)
        digest = hash_of(text)
        return replace(self, release=release, stamps=stamped, notes=texts, hash=digest, text=text, table=table)

    @property
    def content(self) -> dict[str, Any]:
        """Everything but the hash as the plain values that were hashed; of a folder, those of ``record.json``."""
        return parsed(self.text)

    @property
    def incentive_error(self) -> float:
        """How far a payment may be from the exact one, in money; the rounding of payments included."""
        return self.outcome.incentive_error if self.money is None else self.money.incentive_error

    def to_dict(self) -> dict[str, Any]:
        """The record as plain values, with its hash."""
        return {**self.content, "hash": self.hash}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Record":
        """The inverse of `to_dict`; a record of an unknown version or with a wrong hash is refused.

        So is a record whose people are in another file: `read` takes the folder.
        """
        if isinstance(values, Mapping) and "table" in values:
            raise RecordError(
                f"The people of this record are in {TABLE}: give the folder that holds both files. Streams and .gz are"
                " for records in one file."
            )
        return cls._checked(values, None)

    @classmethod
    def _checked(cls, values: Mapping[str, Any], folder: "Folder | None") -> "Record":
        known = values if isinstance(values, Mapping) else {}
        wrong = header_problem(known, "record", HEADER)
        if wrong is not None:
            raise RecordError(wrong)
        if "hash" not in values:
            raise RecordError("A record must have a hash, and this one has none.")
        content = {name: value for name, value in values.items() if name != "hash"}
        text = canonical(content)
        found = hash_of(text)
        if values["hash"] != found:
            raise HashMismatch("The record's hash does not fit its content: it was altered or damaged.", found=found)
        return cls._read(content, found, text, None if folder is None else folder.table_of(content))

    def write(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the record in one step, for its owner's eyes only, and return where it is.

        One file is compressed if its name ends in ``.gz``. A folder is called ``path`` without ``.json`` or ``.gz``.
        What exists is replaced only with ``overwrite``.
        """
        place = self.place(path)
        if self.table is None:
            write_content(place, self.to_bytes(), overwrite=overwrite)
            return place
        try:
            with Staging(force=overwrite) as files:
                self.stage(files, path)
        except OutputExists:
            raise OutputExists(f"{place} exists already; pass overwrite=True to replace it.") from None
        return place

    def place(self, path: str | Path) -> Path:
        """Return where the record is if it is written to a path: a folder's name does not end in ``.json``."""
        return Path(path) if self.table is None else place_of_folder(Path(path))

    def stage(self, files: Staging, path: str | Path) -> Path:
        """Let the record wait among other files for its name; return that. What the other form left there goes."""
        place = self.place(path)
        if self.table is None:
            files.add(place, lambda file: file.write(self.to_bytes()))
            if is_record_folder(other := place_of_folder(place)):
                files.remove(other)
            return place
        files.make(place, self._fill)
        if Path(path) != place:
            files.remove(path)
        return place

    def _fill(self, folder: Path) -> None:
        """Write the two files of a folder."""
        assert self.table is not None
        folder.mkdir(mode=0o700)
        with (folder / TABLE).open("xb") as file:
            for part in self.table.parts():
                file.write(part)
        (folder / DOCUMENT).write_bytes(self.to_bytes())

    def to_bytes(self) -> bytes:
        """What a file holds: the record in its canonical form, and a line break; of a folder, ``record.json``."""
        return bytes_of_file(self.text, self.hash)

    @classmethod
    def read(cls, path: str | Path) -> "Record":
        """Read a record from a file, or from a folder."""
        place = Path(path)
        if not place.is_dir():
            values = parsed(read_content(place))
            if place.name != DOCUMENT or "table" not in values:
                return cls.from_dict(values)
            place = place.parent
        with Folder(place) as folder:
            return cls._checked(folder.document(), folder)

    def __repr__(self) -> str:  # losses and payments tell what people bid: not for a log
        released = "released" if self.release is not None else "not released"
        return f"Record(people={self.outcome.bids.size}, {released}, hash={self.hash[:12]!r})"

    def read_again(self) -> "Record":
        """The record with the same content and hash, all other fields read from the content."""
        return self._read(self.content, self.hash, self.text, self.table)

    @classmethod
    def _read(cls, content: Mapping[str, Any], digest: str, text: bytes, table: ColumnFile | None) -> "Record":
        try:
            found = CODEC.read(content if table is None else joined(content, table.read()))
            outcome = outcome_of(found.outcome)
            return cls(**fields_of(found, outcome), hash=digest, text=text, table=table)
        except (HashMismatch, MissingExtra):
            raise
        except HushbidError as problem:
            raise RecordError(f"The record cannot be read: {problem}") from None
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as problem:
            raise RecordError(f"The record cannot be read: {type(problem).__name__} in its fields.") from None


def read(path: str | Path) -> Record:
    """Read a record from a file, or from a folder."""
    return Record.read(path)


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
