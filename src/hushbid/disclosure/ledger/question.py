"""What is asked of whom: what an entry of the release ledger is named by, and what it is compared by.

People are the sum of a hash of each id, so they have no order and add up batch by batch wherever the rows are; so are
the data of those who delivered, each hashed with the id it belongs to: whole rows, and each question's column by
itself, so that a column is recognised whatever is asked beside it. Losses are two plain sums, one of them weighted
by the person's hash: engines differ in the last bits, which a sum forgives, and a loss that moves from one person to
another moves the weighted one. Variances are two sums of the same kind; strata, which are whole numbers, are a sum of
hashes with ids as data are. Nothing here is keyed or stored: `hushbid.disclosure.ledger.marks` keys what is kept.
"""

import hashlib
import itertools
import struct
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from hushbid.common.adding import Adds, each, joined
from hushbid.common.arrays import BoolArray, FloatArray, HashArray, IndexArray, rounded_sum
from hushbid.disclosure.answers import YES_NO
from hushbid.disclosure.messages import Message
from hushbid.disclosure.weighing import Asked
from hushbid.errors import InputError
from hushbid.estimation import Setting
from hushbid.questions import Choice, Question

LAST_WAVE = 1_000_000
_MODULUS = 1 << 256
_PERSON, _DATUM, _STRATUM = b"hushbid person", b"hushbid datum", b"hushbid stratum"


@dataclass(frozen=True, slots=True, kw_only=True)
class Forms:
    """Everybody's data in a form in which two can be compared; None where nothing was asked for or delivered."""

    rows: list[bytes | None]
    """All that a person delivered."""

    columns: tuple[list[bytes | None], ...] = ()
    """The same of each question; empty where there is one, or where people sent messages."""

    def without(self, rows: Iterable[int]) -> "Forms":
        """The same rows as if some people had not delivered; without columns."""
        rest = list(self.rows)
        for row in rows:
            rest[row] = None
        return Forms(rows=rest)


def answer_forms(table: FloatArray, present: BoolArray, questions: Sequence[Question] = ()) -> Forms:
    """Return what those who delivered answered, to the last bit: rows and, of several questions, columns."""
    columns = tuple(
        _column_forms(table[:, place], present, questions[place] if questions else None)
        for place in range(table.shape[1])
    )
    if len(columns) == 1:
        return Forms(rows=columns[0])
    return Forms(rows=_float_forms(table, present), columns=columns)


def _column_forms(column: FloatArray, present: BoolArray, question: Question | None) -> list[bytes | None]:
    """Numbers, and for a choice the words: listing its answers in another order makes no other data."""
    if not isinstance(question, Choice):
        return _float_forms(column[:, np.newaxis], present)
    words = [_word_form(answer) for answer in question.answers]
    return [words[int(code)] if there else None for code, there in zip(column, present.tolist(), strict=True)]


def _word_form(answer: str) -> bytes:
    """An answer of a choice; a number, yes and no as where these are asked for."""
    word = " ".join(unicodedata.normalize("NFC", answer.casefold()).split())
    try:
        value = YES_NO[word] if word in YES_NO else float(word)
    except ValueError:
        return f"an answer: {word}".encode("utf-8", "surrogatepass")
    return struct.pack("<d", value + 0.0)


def _float_forms(table: FloatArray, present: BoolArray) -> list[bytes | None]:
    content, size = (table[present] + 0.0).astype("<f8").tobytes(), 8 * table.shape[1]
    found: list[bytes | None] = [None] * present.size
    for place, row in enumerate(np.flatnonzero(present).tolist()):
        found[row] = content[size * place : size * (place + 1)]
    return found


def message_form(message: Message | None) -> bytes | None:
    """A message, however it was written."""
    return None if message is None else message.to_json().encode()


def _modular(ours: int, others: int) -> int:
    return (ours + others) % _MODULUS


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnTally(Adds):
    """What people delivered, all of it or to one question; tallies add up."""

    data: int = joined(_modular, default=0)
    """The sum of a hash of each id and datum."""

    answers: int = joined(_modular, default=0)
    """The sum of a hash of each datum alone, to recognise what was drawn before without ids; equal to ``data`` without
    ids. It is looked up, and stored only there."""

    examples: frozenset[bytes] = joined(lambda ours, others: frozenset(sorted(ours | others)[:2]), default=frozenset())
    """Hashes of two different data, or of one if all delivered the same; empty where nobody delivered."""

    @property
    def varies(self) -> bool:
        """Whether people delivered different data."""
        return len(self.examples) > 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally(Adds):
    """Some people, what they were promised, and what they delivered; tallies add up."""

    people: int = joined(_modular, default=0)
    """The sum of a hash of each id; 0 without ids."""

    losses: float = 0.0
    """The sum of ε/(1 + ε) over everybody, 1 for an infinite ε."""

    marked: float = 0.0
    """The terms of ``losses``, each times a number in [0, 1) that the id decides; equal to ``losses`` without ids."""

    variances: float = 0.0
    """The sum of log(1 + variance) over everybody."""

    marked_variances: float = 0.0
    """The terms of ``variances``, each times the number that the id decides."""

    strata: int = joined(_modular, default=0)
    """The sum of a hash of each id and stratum; of strata alone without ids, and 0 where there are none."""

    whole: ColumnTally = ColumnTally()
    """Of all that each person delivered."""

    columns: tuple[ColumnTally, ...] = joined(each, default=())
    """Of each question; empty where nothing was added up yet."""

    delivered: int = 0
    """How many people were asked and delivered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One question to some people, and what was promised to them for an answer."""

    asked: Asked
    """What they answer, and in which range."""

    question: str
    """The question in a sentence, as it was written; two are compared as `as_question` writes them."""

    wave: int
    """Which time it is asked of these people."""

    by_ids: bool
    """Whether people are known by ids; if not, they are known by their data."""

    setting: Setting
    """Where noise is added."""

    tally: Tally
    """The people, their losses and their data."""

    strata: tuple[str, ...] = ()
    """Which combination of stratum means is estimated; empty where it is one mean."""

    exact: bytes | None = None
    """Everybody's losses and variance to the last bit, in an order that ids decide; None where only sums are known."""

    absent: HashArray | None = None
    """The hashes of the ids of those who should have delivered and did not; None where nobody knows who they are."""


def as_question(question: object) -> str:
    """A question in the form in which two are compared: capitals and spaces make no difference.

    >>> as_question("  Mean  sleep ")
    'mean sleep'
    """
    if not isinstance(question, str):
        raise InputError(f"question must be a text, got {type(question).__name__}.", field="question")
    found = " ".join(unicodedata.normalize("NFC", question.casefold()).split())
    if not found:
        raise InputError("question must say what is asked, got an empty text.", field="question")
    return found


def as_wave(wave: object) -> int:
    """A wave is a whole number from 1; nobody is asked the same more than a million times."""
    if not isinstance(wave, int) or isinstance(wave, bool) or not 1 <= wave <= LAST_WAVE:
        got = "a larger one" if isinstance(wave, int) and wave > LAST_WAVE else repr(wave)
        raise InputError(f"wave must be a whole number from 1 to {LAST_WAVE}, got {got}.", field="wave")
    return wave


def person_digests(ids: Sequence[str]) -> HashArray:
    """A hash of each id, as `hushbid.common.arrays.id_texts` writes it."""
    whole = "\n".join(ids).encode("utf-8", "surrogatepass")  # all at once, unless an id holds a line break
    if whole.count(b"\n") == len(ids) - 1:
        return _digests(whole.split(b"\n"), _PERSON)
    return _digests([one.encode("utf-8", "surrogatepass") for one in ids], _PERSON)


def tallied(
    people: HashArray | None,
    losses: FloatArray,
    variance: FloatArray | float,
    data: Forms,
    strata: IndexArray | None = None,
) -> Tally:
    """Add up some rows: hashes of ids (None: no ids), losses, variances, forms of data, strata.

    Strata are numbered as the combination lists them; None where it is one mean.
    """
    names = b"" if people is None else people.astype("<u8").tobytes()
    whole = _column(names, data.rows)
    spreads = np.broadcast_to(np.log1p(variance), losses.shape)
    # ε/(1 + ε): bounded, so that one huge loss does not hide the others in a sum
    sizes = np.where(np.isinf(losses), 1.0, losses / (1.0 + np.where(np.isinf(losses), 0.0, losses)))
    # a number in [0, 1) from the hash of the id
    shares = np.ones(sizes.size) if people is None else people[:, 0] / 2.0**64
    return Tally(
        people=0 if people is None else _total(people),
        losses=rounded_sum(sizes),
        marked=rounded_sum(sizes * shares),
        variances=rounded_sum(spreads),
        marked_variances=rounded_sum(spreads * shares),
        strata=0 if strata is None else _total(_digests(_named_codes(names, strata), _STRATUM)),
        whole=whole,
        columns=tuple(_column(names, column) for column in data.columns) or (whole,),
        delivered=sum(datum is not None for datum in data.rows),
    )


def _column(names: bytes, data: Sequence[bytes | None]) -> ColumnTally:
    """Add up one column, after the hashes of ids, if there are any."""
    counts = Counter(datum for datum in data if datum is not None)
    if not counts:
        return ColumnTally()
    if 4 * len(counts) < len(data):  # few different answers: each is hashed once
        hashed = _digests(counts, _DATUM).astype("<u8").tobytes()
        each = (int.from_bytes(hashed[32 * k : 32 * k + 32], "little") for k in range(len(counts)))
        answers = sum(count * one for count, one in zip(counts.values(), each, strict=True)) % _MODULUS
    else:
        answers = _total(_digests((datum for datum in data if datum is not None), _DATUM))
    named = (names[32 * row : 32 * row + 32] + datum for row, datum in enumerate(data) if datum is not None)
    return ColumnTally(
        data=_total(_digests(named, _DATUM)) if names else answers,
        answers=answers,
        examples=frozenset(_digests([datum], _DATUM).tobytes() for datum in itertools.islice(counts, 2)),
    )


def _named_codes(names: bytes, strata: IndexArray) -> Iterable[bytes]:
    """Everybody's id, if there is one, and stratum."""
    codes = strata.astype("<i8").tobytes()
    return (names[32 * row : 32 * row + 32] + codes[8 * row : 8 * row + 8] for row in range(strata.size))


def _digests(texts: Iterable[bytes], purpose: bytes) -> HashArray:
    fresh, found = hashlib.blake2b(digest_size=32, person=purpose).copy, []
    for text in texts:  # a copy is quicker than a new one
        one = fresh()
        one.update(text)
        found.append(one.digest())
    hashed = b"".join(found)
    return np.frombuffer(hashed, dtype="<u8").astype(np.uint64).reshape(-1, 4)


def _total(digests: HashArray) -> int:
    """The sum of hashes as whole numbers; halves of words add up without overflow below 2**32 rows."""
    low = (digests & np.uint64(0xFFFFFFFF)).sum(axis=0, dtype=np.uint64)
    high = (digests >> np.uint64(32)).sum(axis=0, dtype=np.uint64)
    total = 0
    for place in range(4):
        total += (int(low[place]) + (int(high[place]) << 32)) << (64 * place)
    return total % _MODULUS
