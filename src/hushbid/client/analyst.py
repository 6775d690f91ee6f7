"""An analyst's side of a server: scripts a campaign from its draft to its payments.

Allocation and release run in the background; `wait` follows them. Every step may be repeated after a failure, and says
what is wrong if it comes at the wrong time.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any

from hushbid.client.calls import Call, ConflictAfterRetry, asking, asking_object, delete, get, post, put, strange
from hushbid.client.transport import ATTEMPTS, Transport
from hushbid.client.views import Campaign, Invitation, Job
from hushbid.errors import Conflict, InputError, ServerFailed
from hushbid.receipts.keys import KeyList
from hushbid.receipts.log import Event
from hushbid.record import Record

MOVING = frozenset({"draft", "allocating", "releasing"})
"""States that a job ends: a draft's opening, a decision, a release."""

_PAGE = 500
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0
CSRF_HEADER = "X-CSRF-Token"


class AnalystClient:
    """Speaks for an analyst, or for an auditor as far as reading goes.

    with AnalystClient("https://example.org", token=API_TOKEN) as analyst:
        campaign = analyst.draft({"title": "Sleep", ...})
        invitations = analyst.invite(campaign.id, count=200)
        analyst.open(campaign.id)
        # people bid
        analyst.close_bidding(campaign.id)
        analyst.wait(campaign.id)
        # people deliver
        analyst.release(campaign.id)
        analyst.wait(campaign.id)
        print(analyst.estimate(campaign.id), analyst.payments_csv(campaign.id))
    """

    def __init__(self, url: str, *, token: str | None = None, attempts: int = ATTEMPTS, **more: Any) -> None:
        """``token`` is an API token; without one, `log_in`."""
        self._transport = Transport(url, token=token, attempts=attempts, **more)

    @property
    def url(self) -> str:
        """The server's address."""
        return self._transport.url

    def log_in(self, name: str, password: str) -> None:
        """Log in with a password; the session lives as long as this object, or until `log_out`."""
        told = self._ask(Call(method="POST", path="/session", content={"name": name, "password": password}))
        found = told.get("csrf")
        if not isinstance(found, str):
            raise ServerFailed(
                "The server gave no token against forged requests: not a Hushbid server, or not its version."
            )
        self._transport.headers[CSRF_HEADER] = found

    def log_out(self) -> None:
        """End the session."""
        self._ask(delete("/session"))
        self._transport.headers.pop(CSRF_HEADER, None)

    # drafting -------------------------------------------------------------------------------------------------------

    def draft(self, settings: Mapping[str, Any]) -> Campaign:
        """Begin a campaign, which nobody sees yet."""
        return Campaign.from_dict(self._ask(post("/campaigns", settings)))

    def copy(self, campaign: str, title: str) -> Campaign:
        """Begin a campaign with the settings of another, without its people, results and deadlines."""
        return Campaign.from_dict(self._ask(post(f"/campaigns/{_id(campaign)}/copy", {"title": title})))

    def change(self, campaign: str, settings: Mapping[str, Any]) -> Campaign:
        """Give a draft other settings."""
        return Campaign.from_dict(self._ask(put(f"/campaigns/{_id(campaign)}", settings)))

    def discard(self, campaign: str) -> None:
        """Throw a draft away."""
        self._ask(delete(f"/campaigns/{_id(campaign)}"))

    def preview(self, campaign: str, *, people: int | None = None) -> dict[str, Any]:
        """What a campaign would cost and how precise it would be: with those who are invited, or with so many."""
        return self._object(post(f"/campaigns/{_id(campaign)}/preview", {"people": people}))

    def invite(
        self, campaign: str, *, count: int | None = None, people: Iterable[str | Mapping[str, Any]] | None = None
    ) -> list[Invitation]:
        """Make personal links, for so many unknown people or for people by their ids; shown this once only.

        One of ``people`` is an external id, or a mapping with ``id`` and, where there are any, ``group`` and
        ``stratum``.
        """
        if (count is None) == (people is None):
            raise InputError("Give either count or people.")
        if people is None:
            content: dict[str, Any] = {"count": count}
        else:
            content = {"people": [{"id": one} if isinstance(one, str) else dict(one) for one in people]}
        told = self._ask(post(f"/campaigns/{_id(campaign)}/participants", content))
        return [Invitation.from_dict(one, self.url) for one in _items(told, "invitations")]

    def remove(self, campaign: str, participant: str) -> Campaign:
        """Take somebody off a draft's list, by the ``id`` of her invitation; her link opens nothing any more."""
        return Campaign.from_dict(
            self._ask(delete(f"/campaigns/{_id(campaign)}/participants/{_id(participant, 'participant')}"))
        )

    # conducting -----------------------------------------------------------------------------------------------------

    def open(self, campaign: str) -> Campaign:
        """Let people bid, once the server has computed what it may cost; refused if that is above the spending
        limit."""
        found = self._step(campaign, "open", before=frozenset({"cancelled"}))
        if found.state == "draft":
            found = self.wait(campaign)
        if found.state == "draft":
            raise Conflict("The campaign was not opened.")
        return found

    def close_bidding(self, campaign: str) -> Campaign:
        """Take no more bids and decide, in the background."""
        return self._step(campaign, "close-bidding", before=frozenset({"draft", "bidding", "cancelled"}))

    def release(self, campaign: str, *, accept_nobody: bool = False) -> Campaign:
        """Take no more data and draw the estimate, once, in the background.

        Where nobody has delivered, it ends without an estimate, which must be accepted by name.
        """
        before = frozenset({"draft", "bidding", "allocating", "nothing_bought", "delivering", "cancelled"})
        return self._step(campaign, "release", {"accept_nobody": accept_nobody}, before=before)

    def mark_paid(
        self, campaign: str, labels: Sequence[str] | None = None, *, total: int | None = None
    ) -> dict[str, Any]:
        """Say that these people, or all who are due, were paid; refused if it is not ``total``, in minor units."""
        asked = {"labels": None if labels is None else list(labels), **({} if total is None else {"total": total})}
        return self._object(post(f"/campaigns/{_id(campaign)}/payments", asked))

    def mark_unpaid(self, campaign: str, labels: Sequence[str]) -> dict[str, Any]:
        """Take back that these people were paid."""
        return self._object(post(f"/campaigns/{_id(campaign)}/unpaid", {"labels": list(labels)}))

    def renew_link(self, campaign: str, label: str) -> Invitation:
        """A new link for somebody who lost hers; the log and her page show that it was made.

        Before she has delivered, her old links and all that was opened with them end. Once she has, what she opened
        goes on working, and the new link only reads: see ``reads_only``.
        """
        return Invitation.from_dict(self._ask(post(f"/campaigns/{_id(campaign)}/links", {"label": label})), self.url)

    def close(self, campaign: str, *, accept_unpaid: bool = False) -> Campaign:
        """End a campaign whose estimate is out; people who are still to be paid must be accepted by name."""
        before = frozenset({"draft", "bidding", "allocating", "delivering", "releasing", "released"})
        return self._step(campaign, "close", {"accept_unpaid": accept_unpaid}, before=before)

    def cancel(self, campaign: str, *, reason: str | None = None) -> Campaign:
        """Give a campaign up before people were told what is bought; participants may read the reason."""
        content = {} if reason is None else {"reason": reason}
        return self._step(campaign, "cancel", content, before=frozenset({"draft", "bidding", "allocating"}))

    def wait(self, campaign: str, *, progress: Callable[[Job], None] | None = None, most: float = 3600.0) -> Campaign:
        """Wait until nothing runs in the background any more; ``most`` seconds of pauses at most."""
        waited, pause = 0.0, _FIRST_PAUSE
        while True:
            found = self.campaign(campaign)
            if found.state not in MOVING:
                return found
            jobs = self.jobs(campaign)
            if found.state == "draft" and not any(job.state == "running" for job in jobs):
                return self._opened(campaign, jobs)
            # it will not move by itself
            if jobs and jobs[-1].state == "failed":
                raise ServerFailed(f"The {jobs[-1].kind} failed: {jobs[-1].problem or 'no reason was given.'}")
            if progress is not None and jobs:
                progress(jobs[-1])
            if waited >= most:
                raise ServerFailed(f"The campaign is still {found.state} after waiting for {most:g} seconds.")
            self._transport.pause(pause)
            waited, pause = waited + pause, min(2.0 * pause, _LONGEST_PAUSE)

    def conduct(
        self,
        settings: Mapping[str, Any],
        *,
        bidding: Callable[[list[Invitation]], None],
        delivering: Callable[[list[Invitation]], None],
        count: int | None = None,
        people: Iterable[str | Mapping[str, Any]] | None = None,
    ) -> Campaign:
        """A whole campaign: the two functions get the invitations and return when people have had their time."""
        campaign = self.draft(settings).id
        invitations = self.invite(campaign, count=count, people=people)
        self.open(campaign)
        bidding(invitations)
        self.close_bidding(campaign)
        found = self.wait(campaign)
        if found.state == "delivering":
            delivering(invitations)
            self.release(campaign, accept_nobody=True)
            found = self.wait(campaign)
        return found

    # reading --------------------------------------------------------------------------------------------------------

    def campaign(self, campaign: str) -> Campaign:
        """One campaign."""
        return Campaign.from_dict(self._ask(get(f"/campaigns/{_id(campaign)}")))

    def campaigns(self) -> Iterator[Campaign]:
        """All campaigns."""
        return map(Campaign.from_dict, self._pages("/campaigns"))

    def participants(self, campaign: str) -> Iterator[dict[str, Any]]:
        """Everybody's state, by pseudonym."""
        return self._pages(f"/campaigns/{_id(campaign)}/participants")

    def jobs(self, campaign: str) -> list[Job]:
        """What ran or runs in the background, the latest last."""
        return [Job.from_dict(job) for job in self._pages(f"/campaigns/{_id(campaign)}/jobs")]

    def estimate(self, campaign: str) -> dict[str, Any]:
        """The released estimate with its error."""
        return self._object(get(f"/campaigns/{_id(campaign)}/release"))

    def payments_csv(self, campaign: str) -> str:
        """Who is paid what and, if the campaign asked, where; as CSV. The log says who took it."""
        return str(self._ask(get(f"/campaigns/{_id(campaign)}/payments.csv", expect="text")))

    def awaited_csv(self, campaign: str, what: str | None = None) -> str:
        """Who is awaited for a bid, a delivery, a payout or a payment, all or one of them; as CSV."""
        return str(self._ask(get(f"/campaigns/{_id(campaign)}/awaited.csv", expect="text", what=what)))

    def account(self, campaign: str) -> dict[str, Any]:
        """What a campaign owes, and how that follows from what was decided."""
        return self._object(get(f"/campaigns/{_id(campaign)}/account"))

    def record(self, campaign: str) -> Record:
        """The record, for whoever may see everything."""
        return Record.from_dict(self._ask(get(f"/campaigns/{_id(campaign)}/record")))

    def events(self, campaign: str) -> list[Event]:
        """The log, to be checked with `hushbid.verification.receipts.verify_log`."""
        return [Event.from_dict(event) for event in self._pages(f"/campaigns/{_id(campaign)}/events")]

    def privacy_account(self) -> Iterator[dict[str, Any]]:
        """What each person has given up in all campaigns, by pseudonym."""
        return self._pages("/privacy-account")

    def keys(self) -> KeyList:
        """The server's list of keys."""
        return KeyList.from_dict(self._ask(get("/keys")))

    def public(self, campaign: str) -> dict[str, Any]:
        """What everybody may see of a campaign."""
        return self._object(get(f"/campaigns/{_id(campaign)}/public"))

    def disconnect(self) -> None:
        """Close the connection."""
        self._transport.close()

    def __enter__(self) -> "AnalystClient":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.disconnect()

    def _step(
        self, campaign: str, what: str, content: Mapping[str, Any] | None = None, *, before: frozenset[str]
    ) -> Campaign:
        """Move a campaign on; the campaign afterwards.

        If the server refuses a second attempt, the first one may have been carried out although its answer got lost:
        then the campaign is no longer in one of the states ``before`` the step.
        """
        try:
            self._ask(post(f"/campaigns/{_id(campaign)}/{what}", content))
        except ConflictAfterRetry:
            found = self.campaign(campaign)
            if found.state in before:
                raise
            return found
        return self.campaign(campaign)

    def _opened(self, campaign: str, jobs: list[Job]) -> Campaign:
        """A draft that is not being opened; refused as the server refused to open it, if that was the last it did."""
        if jobs and jobs[-1].state == "failed":
            raise Conflict(jobs[-1].problem or "The campaign could not be opened.")
        return self.campaign(campaign)

    def _ask(self, call: Call) -> Any:
        return self._transport.run(asking(call))

    def _object(self, call: Call) -> dict[str, Any]:
        return self._transport.run(asking_object(call))

    def _pages(self, path: str) -> Iterator[dict[str, Any]]:
        """All items of a list, page by page."""
        cursor: str | None = None
        while True:
            told = self._ask(get(path, limit=_PAGE, cursor=cursor))
            yield from _items(told, "items")
            cursor = told.get("cursor")
            if cursor is None:
                return


def _items(told: Any, name: str) -> list[dict[str, Any]]:
    found = told.get(name) if isinstance(told, Mapping) else None
    if isinstance(found, list) and all(isinstance(one, dict) for one in found):
        return found
    raise strange(f"The answer has no list of {name}")


def _id(name: str, whose: str = "campaign") -> str:
    """An identifier that can stand in a path as it is."""
    if not (isinstance(name, str) and name and name.isascii() and name.replace("-", "").replace("_", "").isalnum()):
        raise InputError(f"A {whose}'s identifier holds letters, digits, - and _ only.")
    return name
