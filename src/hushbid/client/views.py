"""What a server tells its clients, read strictly where it matters and leniently where it may grow."""

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from hushbid.client.calls import an_object, strange
from hushbid.common.arrays import as_bounds
from hushbid.common.money import MOST_DECIMALS
from hushbid.errors import InputError, ServerFailed
from hushbid.estimation import Setting
from hushbid.questions import Layout, Question, as_questions, layout_with, question_from_dict

OVER = frozenset({"released", "closed", "cancelled", "nothing_bought", "undelivered"})
"""The states of a campaign in which nobody is asked for anything any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Campaign:
    """A campaign as an analyst or an auditor sees it."""

    id: str
    """Its identifier."""

    state: str
    """draft, bidding, allocating, delivering, releasing, released, closed, nothing_bought, undelivered, cancelled."""

    content: Mapping[str, Any] = field(repr=False)
    """All that the server says, as plain values."""

    @classmethod
    def from_dict(cls, values: Any) -> "Campaign":
        """Read an answer."""
        found = an_object(values)
        return cls(id=_text(found, "id"), state=_text(found, "state"), content=found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Work in the background."""

    id: str
    """Its identifier."""

    kind: str
    """What it does: allocation or release."""

    state: str
    """running, done or failed."""

    step: str
    """What is being done, in a few words."""

    done: int
    """So many parts of the step are done."""

    total: int
    """The step has so many parts."""

    problem: str | None
    """Why it failed, in a sentence."""

    @classmethod
    def from_dict(cls, values: Any) -> "Job":
        """Read an answer."""
        found = an_object(values)
        problem = found.get("problem")
        return cls(
            **{name: _text(found, name) for name in ("id", "kind", "state", "step")},
            done=_whole(found, "done") or 0,
            total=_whole(found, "total") or 0,
            problem=None if problem is None else str(problem),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation:
    """One participant's way in; the server shows it once and keeps only a hash."""

    id: str
    """Her pseudonym."""

    label: str
    """By which the analyst knows her: her external id, or a number."""

    group: str | None
    """Her group, if there are groups."""

    token: str = field(repr=False)
    """What stands behind the # of her link; it opens once."""

    url: str
    """The server."""

    reads_only: bool = False
    """Whether it may change nothing, because it was made after a delivery."""

    stratum: str | None = None
    """Her stratum, if there are strata."""

    @classmethod
    def from_dict(cls, values: Any, url: str) -> "Invitation":
        """Read an answer."""
        found = an_object(values)
        group, stratum = found.get("group"), found.get("stratum")
        return cls(
            **{name: _text(found, name) for name in ("id", "label", "token")},
            group=None if group is None else str(group),
            stratum=None if stratum is None else str(stratum),
            url=url,
            reads_only=found.get("reads_only") is True,
        )

    @property
    def link(self) -> str:
        """What to send her. The secret stands behind the #, which no browser sends to a server or puts into its log."""
        return link_to(self.url, self.token)


def link_to(url: str, token: str) -> str:
    """The link with that token on a server."""
    return f"{url}/p#{token}"


def split_link(link: str) -> tuple[str, str]:
    """The server's address and the token in a link.

    >>> split_link("https://example.org/hushbid/p#abc")
    ('https://example.org/hushbid', 'abc')
    """
    address, _, token = link.strip().partition("#")
    parts = urlsplit(address)
    if not token or parts.scheme not in ("http", "https") or not parts.netloc or parts.query:
        raise InputError("A link must look like https://example.org/p#SECRET.")
    path = parts.path.rstrip("/").removesuffix("/p")
    return f"{parts.scheme}://{parts.netloc}{path}", token


@dataclass(frozen=True, slots=True, kw_only=True)
class Participation:
    """A campaign as one participant sees it, and where she stands in it."""

    campaign: str
    """The campaign's identifier."""

    title: str
    """What it is about."""

    campaign_state: str
    """Where the campaign stands."""

    participant: str
    """Her pseudonym."""

    state: str
    """Where she stands: invited, declined, bid, promised, delivered, withdrawn and so on."""

    setting: Setting
    """Whether the platform adds the noise, or her own device."""

    bounds: tuple[float, float] | None
    """The public range of the data; None where there are questions."""

    questions: tuple[Question, ...]
    """What is asked, where it is more than one number; empty otherwise."""

    layout: Layout | None
    """How the questions share her privacy loss; None without questions."""

    max_privacy_loss: float | None
    """The largest privacy loss that the campaign asks of anybody; None if the server does not say."""

    bid: float | None = field(repr=False)
    """The bid she made last."""

    takes_limits: bool
    """Whether a bid may name the largest privacy loss that she accepts."""

    limit: float | None = field(repr=False)
    """The one that her last bid named; None if it named none."""

    must_agree: bool
    """Whether a bid is refused until she has agreed to what the campaign states."""

    agreed: bool
    """Whether she has."""

    promised: float | None
    """The privacy loss she is promised at most; None before it is decided."""

    payment: int | None
    """What she gets for delivering, in minor units; None before it is decided."""

    due: int
    """What she is owed now, in minor units, the fee for taking part included."""

    single_visit: bool
    """Whether a bid comes with her value or answers, and nothing is delivered later."""

    currency: str
    """Of payment and what is due."""

    decimals: int
    """One unit of the currency is ``10**decimals`` minor units."""

    content: Mapping[str, Any] = field(repr=False)
    """All that the server says."""

    @property
    def wanted(self) -> bool:
        """Whether her data are bought and still awaited."""
        return self.campaign_state == "delivering" and self.state == "promised"

    def cost(self, bid: float) -> float:
        """What the promised privacy loss costs somebody with that cost at most, in minor units."""
        return bid * (self.promised or 0.0) * 10.0**self.decimals

    @classmethod
    def from_dict(cls, values: Any) -> "Participation":
        """Read an answer."""
        found = an_object(values)
        setting = found.get("setting")
        if setting not in ("central", "local"):
            raise strange("The server names no setting")
        questions = _questions(found.get("questions"))
        return cls(
            **{name: _text(found, name) for name in ("campaign", "title", "campaign_state", "participant", "state")},
            setting=setting,
            bounds=None if questions else _bounds(found.get("bounds")),
            questions=questions,
            layout=_layout(questions, found.get("noise_groups")) if questions else None,
            max_privacy_loss=_number(found, "max_privacy_loss"),
            bid=_number(found, "bid"),
            takes_limits=found.get("takes_limits") is True,
            limit=_number(found, "limit"),
            must_agree=found.get("must_agree") is True,
            agreed=found.get("agreement") is not None,
            promised=_number(found, "promised"),
            payment=_whole(found, "payment"),
            due=_whole(found, "due") or 0,
            single_visit=found.get("single_visit") is True,
            currency=_text(found, "currency"),
            decimals=_decimals(found),
            content=found,
        )


def _text(values: Mapping[str, Any], name: str) -> str:
    found = values.get(name)
    if isinstance(found, str):
        return found
    raise strange(f"The answer has no {name}")


def _number(values: Mapping[str, Any], name: str) -> float | None:
    found = values.get(name)
    if found is None:
        return None
    if found == "inf":
        return math.inf
    if isinstance(found, (int, float)) and not isinstance(found, bool) and abs(found) < math.inf:
        with suppress(OverflowError):
            return float(found)
    raise ServerFailed(f"The answer's {name} is not a number.")


def _whole(values: Mapping[str, Any], name: str) -> int | None:
    found = values.get(name)
    if found is None or type(found) is int:
        return found
    raise ServerFailed(f"The answer's {name} is not a whole number.")


def _decimals(values: Mapping[str, Any]) -> int:
    found = _whole(values, "decimals")
    if found is not None and 0 <= found <= MOST_DECIMALS:
        return found
    raise ServerFailed(f"The answer's decimals are not a whole number from 0 to {MOST_DECIMALS}.")


def _bounds(found: Any) -> tuple[float, float]:
    if isinstance(found, (list, tuple)) and len(found) == 2 and all(type(end) in (int, float) for end in found):
        with suppress(InputError):
            return as_bounds(found)
    raise ServerFailed("The answer's bounds are not two numbers, the smaller first, of a size that noise fits.")


def _questions(found: Any) -> tuple[Question, ...]:
    """The questions; none where one number is asked for."""
    if found == []:
        return ()
    with suppress(InputError):
        if isinstance(found, list):
            return as_questions(map(question_from_dict, found))
    raise ServerFailed("The answer's questions are none that can be asked.")


def _layout(questions: tuple[Question, ...], found: Any) -> Layout:
    with suppress(InputError, KeyError, TypeError):
        if isinstance(found, list):
            return layout_with(questions, [(one["rows"], one["parts"]) for one in found])
    raise ServerFailed("The answer's noise_groups do not share a privacy loss out among its questions.")
