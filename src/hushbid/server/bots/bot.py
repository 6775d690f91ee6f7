"""One bot: a simulated participant at the other end of a link.

It has a cost, a value and a strategy, and speaks to the server as any participant does, through
`hushbid.client`; the server cannot distinguish it from a person. Strategies:

    truthful      bids its cost and delivers what is bought
    overstate     bids half as much again
    understate    bids two thirds of it
    drop-out      bids, and never delivers
    decline       takes no part
    withdraw      bids and withdraws, at once or after having delivered
    late          bids after bidding has closed, or delivers after the release; is refused
    mixed         some of each

Where a campaign asks for price and answers in one visit, all of them give both at once; a drop-out has nothing left to
drop out of, and nobody comes back but to withdraw or to be late.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from hushbid.client import ParticipantClient, Participation
from hushbid.errors import Conflict, InputError, NotAllowed
from hushbid.priors import Prior
from hushbid.questions import Choice, Number, Question
from hushbid.receipts.receipt import Receipt

T = TypeVar("T")
MIXTURE = {
    "truthful": 0.6,
    "overstate": 0.1,
    "understate": 0.05,
    "drop-out": 0.08,
    "decline": 0.07,
    "withdraw": 0.05,
    "late": 0.05,
}
STRATEGIES = (*MIXTURE, "mixed")
_FACTORS = {"overstate": 1.5, "understate": 2.0 / 3.0}
_LIMITED, _LIMIT = 4, 0.2
"""One bot in so many accepts no larger loss than that."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Person:
    """What one bot is like."""

    strategy: str
    """One of the strategies, not ``mixed``."""

    cost: float
    """What one unit of privacy loss really costs her."""

    bid: float
    """What she will say it costs her."""

    limit: float | None
    """The largest loss that she accepts, if she has such a limit; told where the campaign takes limits."""

    value: float | dict[str, object]
    """Her datum, or her answers by the questions' names."""

    early: bool
    """Of two ways to withdraw or be late, whether she takes the earlier."""

    comes_back: bool = True
    """Whether she comes a second time, if that is needed."""


def people(
    strategies: str,
    priors: Sequence[Prior],
    asked: tuple[float, float] | Sequence[Question],
    *,
    rng: np.random.Generator,
    stay_away: float = 0.0,
) -> list[Person]:
    """One person for each prior, from which her cost is drawn; asked for a number in a range, or questions.

    A share of about ``stay_away`` comes once and not again.
    """
    if strategies not in STRATEGIES:
        raise InputError(f"strategy must be one of {', '.join(STRATEGIES)}, got {strategies!r}.", field="strategy")
    n = len(priors)
    chosen = (
        list(rng.choice(list(MIXTURE), size=n, p=list(MIXTURE.values()))) if strategies == "mixed" else [strategies] * n
    )
    found = []
    for place, (prior, strategy) in enumerate(zip(priors, chosen, strict=True)):
        cost = float(prior.sample(1, rng=rng)[0])
        least, most = prior.support
        told = min(max(cost * _FACTORS.get(strategy, 1.0), least), most)  # within the support, or it is refused
        found.append(
            Person(
                strategy=str(strategy),
                cost=cost,
                bid=told,
                limit=_LIMIT if place % _LIMITED == 0 else None,
                value=_datum(asked, rng),
                early=place % 2 == 0,
            )
        )
    if stay_away > 0.0:
        back = rng.random(n) >= stay_away
        found = [replace(one, comes_back=bool(again)) for one, again in zip(found, back, strict=True)]
    return found


def _datum(asked: tuple[float, float] | Sequence[Question], rng: np.random.Generator) -> float | dict[str, object]:
    """A number in a range, or an answer to every question."""
    questions = [one for one in asked if isinstance(one, Question)]
    if questions:
        return {one.name: _answer(one, rng) for one in questions}
    low, high = (float(end) for end in asked if not isinstance(end, Question))
    return low + (high - low) * float(rng.beta(5.0, 4.0))


def _answer(question: Question, rng: np.random.Generator) -> object:
    if isinstance(question, Number):
        return _datum(question.bounds, rng)
    share = float(rng.beta(5.0, 4.0))
    if isinstance(question, Choice):
        return question.answers[min(int(share * len(question.answers)), len(question.answers) - 1)]
    return share > 0.5


@dataclass(slots=True)
class Tally:
    """What happened, counted."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    """How long each acknowledged submission took, by kind."""

    refusals: Counter[str] = field(default_factory=Counter)
    """Refusals that had to come, by the strategy that earned them."""

    problems: list[str] = field(default_factory=list)
    """What should not have happened, each in a sentence without anybody's numbers."""

    requests: dict[str, int] = field(default_factory=dict)
    """How many requests bots made, by phase."""

    roots: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Root and key fingerprint on how many receipts."""

    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    """Held to count, because bots act in several threads."""

    def submit(self, kind: str, call: Callable[[], T]) -> T:
        """Make a submission, and note how long it took."""
        began = time.perf_counter()
        answer = call()
        took = time.perf_counter() - began
        with self.lock:
            self.seconds.setdefault(kind, []).append(took)
        return answer

    def refused(self, strategy: str, call: Callable[[], object]) -> None:
        """Make a submission that must be refused."""
        try:
            call()
        except (Conflict, NotAllowed):
            with self.lock:
                self.refusals[strategy] += 1
        else:
            self.problems.append(f"A {strategy} bot was not refused")


class Bot:
    """One person at the other end of a link."""

    def __init__(self, person: Person, client: ParticipantClient, tally: Tally) -> None:
        self.person = person
        self.has_bid = False
        self.delivered = False
        self.withdrew = False
        self.visits = 0
        self.single_visit = False
        self.limit: float | None = None
        self.agreed: str | None = None
        self.offer: Participation | None = None
        self.receipt: Receipt | None = None
        self._client = client
        self._tally = tally

    def bid(self) -> None:
        """While bids are taken."""
        person = self.person
        self.visits += 1
        if person.strategy == "decline":
            self._tally.submit("decline", self._client.decline)
        elif not (person.strategy == "late" and person.early):
            shown = self._client.participation()
            if shown.must_agree:
                read = self._client.consent()
                self._tally.submit("agree", lambda: self._client.agree(read["document"]))
                self.agreed = read["version"]
            self.limit = person.limit if shown.takes_limits else None
            self.single_visit = shown.single_visit
            value = person.value if shown.single_visit else None
            self._tally.submit("bid", lambda: self._client.bid(person.bid, value=value, limit=self.limit, offer=shown))
            self.has_bid = True
            if person.strategy == "withdraw" and person.early:
                self._withdraw()

    def deliver(self) -> None:
        """While deliveries are taken."""
        person = self.person
        if person.strategy == "late" and person.early:
            shown = self._client.participation()
            value = person.value if shown.single_visit else None
            self._tally.refused("late", lambda: self._client.bid(person.bid, value=value))  # bidding is over
        if not self.has_bid or self.withdrew or not self._has_a_reason_to_come():
            return
        self.visits += 1
        offer = self.offer = self._client.participation()
        if self.single_visit:
            if offer.state == "delivered":
                self._withdraw()
        elif offer.wanted and person.strategy not in ("drop-out", "late"):
            self._tally.submit("deliver", lambda: self._send(offer))
            self.delivered = True
            if person.strategy == "withdraw":
                self._withdraw()

    def finish(self) -> None:
        """When the campaign is over."""
        offer = self.offer
        if self.person.strategy == "late" and not self.person.early and offer is not None and offer.wanted:
            self._tally.refused("late", lambda: self._send(offer))
        self.receipt = self._client.receipt()
        if self.single_visit:  # it has not looked since
            self.delivered = self.receipt.body.state == "delivered"
        with self._tally.lock:
            self._tally.roots[self.receipt.root.hex(), self.receipt.fingerprint] += 1
        self._tally.problems += [f"A {self.person.strategy} bot's {wrong}" for wrong in self._wrong(self.receipt)]

    @property
    def gain(self) -> float:
        """What it got out of the campaign, the fee apart: payment less what the privacy loss really cost."""
        if self.receipt is None:
            return 0.0
        body = self.receipt.body
        return body.payment / 10.0**body.decimals - self.person.cost * (body.delivered or 0.0)

    def _has_a_reason_to_come(self) -> bool:
        """Whether it comes a second time: to learn what is bought and deliver it, or to take it back."""
        return self.person.comes_back and (not self.single_visit or self.person.strategy == "withdraw")

    def _send(self, offer: Participation) -> Participation:
        if offer.setting == "local":
            return self._client.deliver_privately(self.person.value, offer=offer)
        return self._client.deliver_value(self.person.value, offer=offer)

    def _withdraw(self) -> None:
        self._tally.submit("withdraw", self._client.withdraw)
        self.withdrew = True

    def _wrong(self, receipt: Receipt) -> Iterable[str]:
        """Where a receipt differs from what the server acknowledged."""
        body, counts = receipt.body, self.has_bid and not self.withdrew
        if counts and body.bid != self.person.bid:
            yield "acknowledged bid is not on its receipt"
        if counts and body.limit != self.limit:
            yield "acknowledged limit is not on its receipt"
        if counts and self.limit is not None and (body.promised or 0.0) > self.limit:
            yield "receipt promises a larger privacy loss than it accepted"
        if self.agreed != (None if body.agreement is None else body.agreement.version):
            yield "acknowledged agreement is not on its receipt"
        if not counts and body.payment:
            yield "receipt pays for nothing"
        if not self.has_bid and (body.bid is not None or body.promised):
            yield "receipt has a bid that it never made"
        offer = self.offer
        if offer is None or not counts:
            return
        if body.promised != offer.promised:
            yield "receipt promises another privacy loss than it was told"
        if self.delivered and (not body.delivered or body.payment != offer.payment):
            yield "acknowledged delivery is not on its receipt, or not paid as was told"
        if not self.delivered and (body.delivered or body.payment):
            yield "receipt pays for a delivery that it did not make"
