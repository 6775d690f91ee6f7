"""The answers of a server, read strictly where it matters and leniently where it may grow.

A field of a plain type is read by its type (`_plain`); fields that decide on noise have readers of their own.
"""

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar
from urllib.parse import urlsplit

from hushbid.client.messages import Bounds
from hushbid.client.refusals import an_object, strange
from hushbid.common.arrays import as_bounds
from hushbid.common.money import MOST_DECIMALS
from hushbid.errors import InputError, ServerFailed
from hushbid.estimation import Setting
from hushbid.questions import Layout, Question, as_questions, layout_with, question_from_dict

OVER = frozenset({"released", "closed", "cancelled", "nothing_bought", "undelivered"})
"""The states of a campaign that asks participants for nothing any more."""


class Answer(dict[str, Any]):
    """What a server says: a dictionary whose entries can also be read as attributes, ``campaign.state``."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"The answer has no {name}.") from None


class Campaign(Answer):
    """A campaign as an analyst or an auditor sees it: its ``id``, its ``state``, and all else that the server says.

    States: draft, bidding, allocating, delivering, releasing, released, closed, nothing_bought, undelivered, cancelled.
    """


class Job(Answer):
    """Work in the background: its ``kind`` and ``state``, its ``step``, and of that so many ``done`` of a ``total``."""


A = TypeVar("A", bound=Answer)


def answer_of(kind: type[A], values: Any) -> A:
    """Read an answer, which must say which one it is and how it stands."""
    found = kind(an_object(values))
    for name in ("id", "state"):
        _plain(found, name, str)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation:
    """One participant's way in; the server shows it once and keeps only a hash."""

    id: str
    """Their pseudonym."""

    label: str
    """By which the analyst knows them: an external id, or a number."""

    group: str | None
    """Their group, if there are groups."""

    token: str = field(repr=False)
    """What follows the # of the link; it opens once."""

    url: str
    """The server."""

    reads_only: bool = False
    """Whether it may change nothing, because it was made after a delivery."""

    stratum: str | None = None
    """Their stratum, if there are strata."""

    @classmethod
    def from_dict(cls, values: Any, url: str) -> "Invitation":
        """Read an answer."""
        return cls(**_fields(cls, {**an_object(values), "url": url}))

    @property
    def link(self) -> str:
        """Return what to send them. No browser sends the secret, which follows the #, to a server."""
        return link_to(self.url, self.token)


def link_to(url: str, token: str) -> str:
    """Return the link with that token on a server."""
    return f"{url}/p#{token}"


def split_link(link: str) -> tuple[str, str]:
    """Split a link into the server's address and the token.

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
    """A campaign as one participant sees it, and their part in it."""

    campaign: str
    """The campaign's identifier."""

    title: str
    """What it is about."""

    campaign_state: str
    """The campaign's state, as in `Campaign`."""

    participant: str
    """Their pseudonym."""

    state: str
    """The participant's state: invited, declined, bid, promised, delivered, withdrawn and so on."""

    setting: Setting
    """Whether the platform adds the noise, or the participant's own device."""

    bounds: Bounds | None
    """The public range of the data; None where there are questions."""

    questions: tuple[Question, ...]
    """What is asked, where it is more than one number; empty otherwise."""

    layout: Layout | None
    """How the questions share the privacy loss; None without questions."""

    max_privacy_loss: float | None
    """The largest privacy loss that the campaign asks of anybody; None if the server does not say."""

    bid: float | None = field(repr=False)
    """Their last bid."""

    takes_limits: bool
    """Whether a bid may name the largest privacy loss that the participant accepts."""

    limit: float | None = field(repr=False)
    """The one that their last bid named; None if it named none."""

    must_agree: bool
    """Whether a bid is refused before an agreement to what the campaign states."""

    agreed: bool
    """Whether the participant has agreed."""

    promised: float | None
    """The privacy loss that is promised at most; None before it is decided."""

    payment: int | None
    """What a delivery is paid, in minor units; None before it is decided."""

    due: int
    """What is owed now, in minor units, the fee for taking part included."""

    single_visit: bool
    """Whether a bid comes with the value or answers, and nothing is delivered later."""

    currency: str
    """Of payment and what is due."""

    decimals: int
    """One unit of the currency is ``10**decimals`` minor units."""

    content: Mapping[str, Any] = field(repr=False)
    """All that the server says."""

    @property
    def wanted(self) -> bool:
        """Return whether data are bought from the participant and still pending."""
        return self.campaign_state == "delivering" and self.state == "promised"

    def cost(self, bid: float) -> float:
        """Return what the promised privacy loss costs at most, in minor units, at that cost per unit."""
        return bid * (self.promised or 0.0) * 10.0**self.decimals

    @classmethod
    def from_dict(cls, values: Any) -> "Participation":
        """Read an answer."""
        answer = an_object(values)
        setting = answer.get("setting")
        if setting not in ("central", "local"):
            raise strange("The server names no setting")
        questions = _questions(answer.get("questions"))
        return cls(
            **{**_fields(cls, answer), "agreed": answer.get("agreement") is not None},
            setting=setting,
            bounds=None if questions else _bounds(answer.get("bounds")),
            questions=questions,
            layout=_layout(questions, answer.get("noise_groups")) if questions else None,
            content=answer,
        )


def _fields(kind: type[Any], answer: Mapping[str, Any]) -> dict[str, Any]:
    """Read the fields of a dataclass whose types are plain."""
    return {one.name: _plain(answer, one.name, one.type) for one in fields(kind) if one.type in _PLAIN}


_PLAIN: tuple[Any, ...] = (str, str | None, float | None, int | None, int, bool)


def _plain(answer: Mapping[str, Any], name: str, kind: Any) -> Any:
    """Read one entry by its type; what need not be there may be missing, and a sum is then 0."""
    found = answer.get(name)
    if kind is bool:
        return found is True
    if kind is str and not isinstance(found, str):
        raise strange(f"The answer has no {name}")
    if name == "decimals" and not (type(found) is int and 0 <= found <= MOST_DECIMALS):
        raise ServerFailed(f"The answer's decimals are not a whole number from 0 to {MOST_DECIMALS}.")
    if found is None:
        return 0 if kind is int else None
    if kind == float | None:
        if found == "inf":
            return math.inf
        with suppress(OverflowError):
            if isinstance(found, (int, float)) and not isinstance(found, bool) and math.isfinite(found):
                return float(found)
        raise ServerFailed(f"The answer's {name} is not a number.")
    if kind in (int, int | None) and type(found) is not int:
        raise ServerFailed(f"The answer's {name} is not a whole number.")
    return found if kind in (int, int | None) else str(found)


def _bounds(found: Any) -> Bounds:
    if isinstance(found, (list, tuple)) and len(found) == 2 and all(type(end) in (int, float) for end in found):
        with suppress(InputError):
            return as_bounds(found)
    raise ServerFailed("The answer's bounds are not two numbers, the smaller first, of a size that noise fits.")


def _questions(found: Any) -> tuple[Question, ...]:
    """Read the questions; there are none where one number is asked for."""
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
