"""What is asked of whom, under the key of a release ledger: names, fingerprints of data, and what was promised.

A fingerprint is a keyed scrypt of the finished sum of a column's row hashes: one slow hash for each column, none for a
row. With ids the rows are (id, value), and nothing about the values alone is kept. Without ids the rows are values.
Slow is not secret: a person who holds the ledger holds its key, and can try every column that they think possible, at
one scrypt each. Names of people and questions are keyed BLAKE2b hashes.
"""

import hashlib
import json
import math
from dataclasses import dataclass
from datetime import date

from hushbid.common.arrays import HashArray
from hushbid.disclosure.ledger.question import LAST_WAVE, Ask, as_question
from hushbid.errors import AlreadyReleased, RecordError

_SUMS = ("losses", "marked"), ("variances", "marked_variances")
"""What was promised where only sums are known: a plain one, and one that ids weigh."""
_ROUNDING = 1e-8
"""Sums of losses that differ by less, relative to their size, are equal: engines add up in different orders."""
_WORK, _BLOCKS, _MEMORY = 2**14, 8, 2**25
"""Of scrypt: 16 MiB for each try."""
_IDS, _DATA = "ids", "data"


class Keyed:
    """Hashes under a key, each computed once; ``slow`` ones are for what is stored."""

    def __init__(self, key: bytes, *, slow: bool = True) -> None:
        self._key, self._slow = key, slow
        self._known: dict[tuple[str, int], str] = {}

    def name(self, purpose: str, content: bytes) -> str:
        """A hash of something that is no datum."""
        return hashlib.blake2b(json.dumps(purpose).encode() + content, digest_size=16, key=self._key).hexdigest()

    def people(self, digests: HashArray) -> list[str]:
        """A hash of each person, by those of their ids."""
        return [self.name("person", one.astype("<u8").tobytes()) for one in digests]

    def fingerprint(self, purpose: str, total: int) -> str:
        """A hash of the sum of a column's row hashes."""
        found = self._known.get((purpose, total))
        if found is None:
            content = total.to_bytes(32, "little")
            found = self._slowly(purpose, content) if self._slow else self.name(purpose, content)
            self._known[purpose, total] = found
        return found

    def _slowly(self, purpose: str, content: bytes) -> str:
        salt = self._key + purpose.encode()
        return hashlib.scrypt(content, salt=salt, n=_WORK, r=_BLOCKS, p=1, maxmem=_MEMORY, dklen=16).hex()


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """An estimate that was drawn before."""

    question: str
    wave: int
    date: str

    def __post_init__(self) -> None:
        try:
            date.fromisoformat(self.date)
        except ValueError:
            raise RecordError("date must be one such as 2026-03-01.") from None
        if not 1 <= self.wave <= LAST_WAVE:
            raise RecordError(f"wave must be a whole number from 1 to {LAST_WAVE}.")

    def __str__(self) -> str:
        day = date.fromisoformat(self.date)
        return f"(question {self.question!r}, wave {self.wave}, {day.day} {day:%B %Y})"

    def refused(self, why: str) -> AlreadyReleased:
        """Refuse to draw, for one of the reasons in `REFUSALS`."""
        return AlreadyReleased(REFUSALS[why].format(estimate=self, wave=self.wave + 1))


_TWICE = "Drawing again would double the privacy loss."
_SAME = (
    f"already produced an estimate {{estimate}}. {_TWICE} Repeat that question, or collect new data as wave {{wave}}."
)
_OTHER = (
    "The estimate {estimate} was drawn from other data: a person's datum is another one now, or is gone%s. "
    f"{_TWICE} Ask again with those data, or collect new data as wave {{wave}}."
)
REFUSALS = {
    "same data": f"These data {_SAME}",
    "same answers": f"The answers to one of these questions {_SAME}",
    "maybe the same people": (
        "An estimate was drawn {estimate} from people who were promised the same. One of the two times these are people"
        " without ids, so they may be the same ones, and drawing again would double their privacy loss. If they are"
        " others, give the ids of both; if it is another question, its text and the ids."
    ),
    "other promises": (
        "These people already answered this question {estimate} under other promises (setting, bounds or questions,"
        " strata, variance, relation or privacy losses). Drawing again would double the privacy loss, so it is refused,"
        " with force=True too. Go back to the market and the bids of that release, or collect new data as wave {wave}."
    ),
    "other data": _OTHER % "",
    "other or late data": _OTHER % ", or came after it was drawn, which sums cannot tell apart (engine='memory' can)",
    "not synthetic": (
        "The release ledger knows these people, data or privacy losses from a real estimate {estimate}, so they cannot"
        " be drawn from as synthetic ones: each draw would add to the privacy loss. Use synthetic people and data."
    ),
}
"""Why nothing is drawn, by what was drawn before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """What was promised, as an entry keeps it."""

    setting: str
    bounds: tuple[float, float]
    losses: float
    marked: float
    variances: float
    marked_variances: float

    exact: str | None
    """A hash of everybody's losses and variance to the last bit; None where only sums are known."""

    relation: tuple[float, ...] | None = None
    """How closely price and datum may be related, and among how many people; None: not at all."""

    survey: str | None = None
    """A hash of a survey's questions and of how they share everybody's loss; None where one number is asked for."""

    strata: str | None = None
    """A hash of which combination of stratum means is estimated and who is in which; None where it is one mean."""

    @classmethod
    def of(cls, ask: Ask, key: Keyed) -> "Promise":
        """Key what was promised."""
        tally, asked, relation = ask.tally, ask.asked, ask.asked.relation
        who = key.fingerprint("strata", tally.strata) if ask.strata else ""
        return cls(
            setting=ask.setting,
            bounds=asked.bounds,
            **{name: getattr(tally, name) for pair in _SUMS for name in pair},
            exact=None if ask.exact is None else key.name("losses", ask.exact),
            relation=None if relation is None else (relation.spread, float(relation.roster)),
            survey=key.name("survey", json.dumps(asked.terms).encode()) if asked.survey else None,
            strata=key.name("strata", json.dumps([*ask.strata, who]).encode()) if ask.strata else None,
        )

    def same_as(self, other: "Promise") -> bool:
        """Return whether two are the same: to the last bit if both know it, else up to rounding."""
        if not self._same_terms(other) or self.strata != other.strata or not self._equally_related(other):
            return False
        if self.exact is not None and other.exact is not None:
            return self.exact == other.exact
        return all(self._equal(other, plain, name) for plain, marked in _SUMS for name in (plain, marked))

    def may_be(self, other: "Promise") -> bool:
        """Return whether both may have been made to the same people, for all that can be said without ids."""
        return self._same_terms(other) and self._equal(other, "losses", "losses")

    def same_losses(self, setting: str, losses: float) -> bool:
        """Return whether everybody together was promised so much, whatever was asked."""
        return self.setting == setting and math.isclose(self.losses, losses, rel_tol=_ROUNDING)

    def _same_terms(self, other: "Promise") -> bool:
        """Return whether the setting is the same, and the range or, of a survey, the questions."""
        return (self.setting, self.bounds, self.survey) == (other.setting, other.bounds, other.survey)

    def _equally_related(self, other: "Promise") -> bool:
        if self.relation is None or other.relation is None:
            return self.relation == other.relation
        (spread, roster), (its, among) = self.relation, other.relation
        return roster == among and math.isclose(spread, its, rel_tol=_ROUNDING)

    def _equal(self, other: "Promise", plain: str, name: str) -> bool:
        room = _ROUNDING * max(getattr(self, plain), getattr(other, plain))
        return math.isclose(getattr(self, name), getattr(other, name), abs_tol=room)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """What an entry keeps of what was asked."""

    asked: Earlier
    """The question as it was written, its wave, and the day."""

    promise: Promise
    """What was promised."""

    data: str
    """The fingerprint of all that was delivered, with the ids it belongs to."""

    absent: tuple[str, ...] | None
    """A hash of each person who should have delivered and did not, sorted; None where nobody knows who they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """What is asked of whom, and what was promised, under a key."""

    people: str
    """``ids-`` or ``data-`` and a hash."""

    question: str
    """A hash of the question."""

    stated: Stated
    """What an entry keeps."""

    seen: tuple[str, ...]
    """The fingerprint of all data, and of each column that is not constant."""

    answers: tuple[str, ...]
    """The same without ids, where they are wanted; looked up among what was drawn without ids, never stored."""

    @classmethod
    def of(cls, ask: Ask, key: Keyed, day: date, *, answers: bool) -> "Marks":
        """Key something asked; ``answers`` says whether fingerprints without ids are wanted."""
        tally, kind = ask.tally, _IDS if ask.by_ids else _DATA
        # a lone person's answers are all there is: they never vary
        columns = [one for one in tally.columns if one.varies or tally.delivered == 1]
        data = key.fingerprint(kind, tally.whole.data)
        seen = (data, *(key.fingerprint(kind, one.data) for one in columns))
        totals = (tally.whole.answers, *(one.answers for one in columns)) if answers or not ask.by_ids else ()
        people = key.name(_IDS, tally.people.to_bytes(32, "little")) if ask.by_ids else data
        return cls(
            people=f"{kind}-{people}",
            question=key.name("question", as_question(ask.question).encode("utf-8", "surrogatepass")),
            stated=Stated(
                asked=Earlier(question=ask.question, wave=ask.wave, date=day.isoformat()),
                promise=Promise.of(ask, key),
                data=data,
                absent=None if ask.absent is None else tuple(sorted(key.people(ask.absent))),
            ),
            seen=tuple(dict.fromkeys(seen)),
            answers=tuple(dict.fromkeys(key.fingerprint(_DATA, total) for total in totals)),
        )

    @property
    def name(self) -> str:
        """The name of the entry."""
        return f"{self.people}-{self.question}-{self.stated.asked.wave}"

    @property
    def kind(self) -> str:
        """``ids``, or ``data`` where people are known by their data alone."""
        return self.people.partition("-")[0]

    @property
    def nameless(self) -> bool:
        """Whether people are known by their data alone."""
        return self.kind == _DATA


def refuse_alike(ours: Marks, other: Marks) -> None:
    """Refuse to draw if these data, or people who may be these, were drawn from under another name."""
    promise, drawn = ours.stated.promise, other.stated
    shared = set(ours.seen) & set(other.seen)
    if ours.nameless or other.nameless:
        shared |= set(ours.answers) & set(other.answers)
    if shared:
        raise drawn.asked.refused("same data" if {ours.seen[0], ours.answers[0]} & shared else "same answers")
    if not (ours.nameless or other.nameless):
        return
    same_question = (other.question, drawn.asked.wave) == (ours.question, ours.stated.asked.wave)
    if same_question and promise.may_be(drawn.promise):
        raise drawn.asked.refused("maybe the same people")
    if ours.nameless and not other.nameless and promise.same_losses(drawn.promise.setting, drawn.promise.losses):
        raise drawn.asked.refused("maybe the same people")
