"""What is asked of whom, under the key of a release ledger: names, fingerprints of data, and what was promised.

A fingerprint is a keyed scrypt of the finished sum of a column's row hashes: one slow hash for each column, none for a
row. With ids the rows are (id, value), and nothing about the values alone is kept. Without ids the rows are values.
Slow is not secret: a person who holds the ledger holds its key, and can try every column that they think possible, at
one scrypt each. Names of people and questions are keyed BLAKE2b hashes.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from hushbid.disclosure.ledger.question import Ask, as_question
from hushbid.errors import AlreadyReleased

SUMS = ("losses", "marked"), ("variances", "marked_variances")
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
class Marks:
    """What is asked of whom, and what was promised, under a key."""

    ask: Ask
    """The same without a key, and without what was promised to the last bit."""

    people: str
    """``ids-`` or ``data-`` and a hash."""

    question: str
    """A hash of the question."""

    asked: Earlier
    """The question as it was written, its wave, and today."""

    data: str
    """The fingerprint of all that was delivered, with the ids it belongs to."""

    seen: tuple[str, ...]
    """``data``, and the fingerprint of each column that is not constant."""

    answers: tuple[str, ...]
    """The same without ids, where they are wanted; looked up among what was drawn without ids, never stored."""

    survey: str | None
    """A hash of a survey's questions and of how they share everybody's loss; None where one number is asked for."""

    strata: str | None
    """A hash of which combination of stratum means is estimated and who is in which; None where it is one mean."""

    exact: str | None
    """A hash of everybody's losses and variance to the last bit; None where only sums are known."""

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
        who = key.fingerprint("strata", tally.strata) if ask.strata else ""
        return cls(
            ask=replace(ask, exact=None),
            people=f"{kind}-{people}",
            question=key.name("question", as_question(ask.question).encode("utf-8", "surrogatepass")),
            asked=Earlier(question=ask.question, wave=ask.wave, date=day.isoformat()),
            data=data,
            seen=tuple(dict.fromkeys(seen)),
            answers=tuple(dict.fromkeys(key.fingerprint(_DATA, total) for total in totals)),
            survey=key.name("survey", json.dumps(ask.survey).encode()) if ask.survey else None,
            strata=key.name("strata", json.dumps([*ask.strata, who]).encode()) if ask.strata else None,
            exact=None if ask.exact is None else key.name("losses", ask.exact),
        )

    @property
    def wave(self) -> int:
        """Which time it is asked of these people."""
        return self.asked.wave

    @property
    def name(self) -> str:
        """The name of the entry."""
        return f"{self.people}-{self.question}-{self.wave}"

    @property
    def kind(self) -> str:
        """``ids``, or ``data`` where people are known by their data alone."""
        return self.people.partition("-")[0]

    @property
    def nameless(self) -> bool:
        """Whether people are known by their data alone."""
        return self.kind == _DATA

    def promises(self) -> dict[str, Any]:
        """What was promised, as it is stored; a relation, questions and strata only where there are some."""
        ask, tally = self.ask, self.ask.tally
        relation = None if ask.relation is None else [ask.relation.spread, ask.relation.roster]
        some = {"relation": relation, "survey": self.survey, "strata": self.strata}
        return {
            "setting": ask.setting,
            "bounds": list(ask.bounds),
            **{name: getattr(tally, name) for pair in SUMS for name in pair},
            **{name: value for name, value in some.items() if value is not None},
            "exact": self.exact,
        }

    def promised_alike(self, promise: Mapping[str, Any]) -> bool:
        """Whether this is what an entry says was promised: to the last bit if both know it, else up to rounding."""
        if not self._same_terms(promise) or self.strata != promise.get("strata"):
            return False
        if not self._equally_related(promise):
            return False
        if self.exact is not None and promise["exact"] is not None:
            return bool(self.exact == promise["exact"])
        return all(self._equal(promise, plain, name) for plain, marked in SUMS for name in (plain, marked))

    def might_be(self, promise: Mapping[str, Any]) -> bool:
        """Whether it may have been promised to the same people, for all that can be said without ids."""
        return self._same_terms(promise) and self._equal(promise, "losses", "losses")

    def same_losses(self, setting: str, losses: float) -> bool:
        """Whether everybody together was promised so much, whatever was asked."""
        return self.ask.setting == setting and self._equal({"losses": losses}, "losses", "losses")

    def _same_terms(self, promise: Mapping[str, Any]) -> bool:
        """Whether the setting is the same, and the range or, of a survey, the questions."""
        stated = [promise["setting"], promise["bounds"], promise.get("survey")]
        return [self.ask.setting, list(self.ask.bounds), self.survey] == stated

    def _equally_related(self, promise: Mapping[str, Any]) -> bool:
        """Whether price and datum may be as closely related, among as many people."""
        spread, roster = promise.get("relation", (0.0, None))
        ours = self.ask.relation
        if ours is None:
            return roster is None
        return bool(ours.roster == roster and math.isclose(ours.spread, spread, rel_tol=_ROUNDING))

    def _equal(self, promise: Mapping[str, Any], plain: str, name: str) -> bool:
        room = _ROUNDING * max(getattr(self.ask.tally, plain), promise[plain])
        return math.isclose(getattr(self.ask.tally, name), promise[name], abs_tol=room)


def refuse_alike(ours: Marks, other: Marks) -> None:
    """Refuse to draw if these data, or people who may be these, were drawn from under another name."""
    shared = set(ours.seen) & set(other.seen)
    if ours.nameless or other.nameless:
        shared |= set(ours.answers) & set(other.answers)
    if shared:
        raise other.asked.refused("same data" if {ours.data, ours.answers[0]} & shared else "same answers")
    if not (ours.nameless or other.nameless):
        return
    if (other.question, other.wave) == (ours.question, ours.wave) and ours.might_be(other.promises()):
        raise other.asked.refused("maybe the same people")
    if ours.nameless and not other.nameless and ours.same_losses(other.ask.setting, other.ask.tally.losses):
        raise other.asked.refused("maybe the same people")
