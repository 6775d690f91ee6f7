"""An analyst's side of a server: scripts for a campaign from its draft to its payments.

Allocation and release run in the background; `wait` follows them. Every step may be repeated after a failure, and says
what is wrong if it comes at the wrong time.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hushbid.client.files import stated_in
from hushbid.client.refusals import ConflictAfterRetry, an_object, strange
from hushbid.client.transport import Transport
from hushbid.client.views import Campaign, Invitation, Job, answer_of
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

    def __init__(self, url: str, *, token: str | None = None, **more: Any) -> None:
        """``token`` is an API token; without one, `log_in`. ``more`` are the options of a `Transport`."""
        self._transport = Transport(url, token=token, **more)
        self._ask = self._transport.ask

    @property
    def url(self) -> str:
        """Return the server's address."""
        return self._transport.url

    def log_in(self, name: str, password: str) -> None:
        """Log in with a password; the session lives as long as this object, or until `log_out`."""
        answer = an_object(self._ask("log_in", content={"name": name, "password": password}))
        if not isinstance(answer.get("csrf"), str):
            raise strange("The server gave no token against forged requests")
        self._transport.headers[CSRF_HEADER] = answer["csrf"]

    def log_out(self) -> None:
        """End the session."""
        self._ask("log_out")
        self._transport.headers.pop(CSRF_HEADER, None)

    # drafting -------------------------------------------------------------------------------------------------------

    def draft(self, settings: Mapping[str, Any] | Path) -> Campaign:
        """Create a draft, which participants do not see, from settings or from a campaign file."""
        stated = stated_in(settings) if isinstance(settings, Path) else settings
        return answer_of(Campaign, self._ask("draft", content=stated))

    def campaign_file(self, campaign: str) -> str:
        """Return a campaign's settings as a campaign file."""
        return str(self._ask("campaign_file", campaign, expect="text"))

    def copy(self, campaign: str, title: str) -> Campaign:
        """Create a draft with the settings of another campaign, without its people, results and deadlines."""
        return answer_of(Campaign, self._ask("copy", campaign, content={"title": title}))

    def change(self, campaign: str, settings: Mapping[str, Any]) -> Campaign:
        """Give a draft other settings."""
        return answer_of(Campaign, self._ask("change", campaign, content=settings))

    def discard(self, campaign: str) -> None:
        """Delete a draft."""
        self._ask("discard", campaign)

    def preview(self, campaign: str, *, people: int | None = None) -> dict[str, Any]:
        """Forecast cost and precision of a campaign: with those who are invited, or with so many people."""
        return an_object(self._ask("preview_campaign", campaign, content={"people": people}))

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
        answer = self._ask("invite", campaign, content=content)
        return [Invitation.from_dict(one, self.url) for one in _items(answer, "invitations")]

    def remove(self, campaign: str, participant: str) -> Campaign:
        """Remove a person from a draft, by the ``id`` of their invitation; their link stops working."""
        return answer_of(Campaign, self._ask("remove", campaign, participant))

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
        return self._step(campaign, "close_bidding", before=frozenset({"draft", "bidding", "cancelled"}))

    def release(self, campaign: str, *, accept_nobody: bool = False) -> Campaign:
        """Take no more data and draw the estimate, once, in the background.

        Where nobody has delivered, it ends without an estimate, which must be accepted by name.
        """
        before = frozenset({"draft", "bidding", "allocating", "nothing_bought", "delivering", "cancelled"})
        return self._step(campaign, "release", {"accept_nobody": accept_nobody}, before=before)

    def mark_paid(
        self, campaign: str, labels: Sequence[str] | None = None, *, total: int | None = None
    ) -> dict[str, Any]:
        """Mark these people, or all who are due, as paid; refused if that is not ``total``, in minor units."""
        asked = {"labels": None if labels is None else list(labels), **({} if total is None else {"total": total})}
        return an_object(self._ask("mark_paid", campaign, content=asked))

    def mark_unpaid(self, campaign: str, labels: Sequence[str]) -> dict[str, Any]:
        """Take back the marks of these people's payments."""
        return an_object(self._ask("mark_unpaid", campaign, content={"labels": list(labels)}))

    def renew_link(self, campaign: str, label: str) -> Invitation:
        """Make a new link for a person who lost theirs; the log and their page show that it was made.

        Before they have delivered, their old links and all that was opened with them end. Afterwards, what they opened
        goes on working, and the new link only reads: see ``reads_only``.
        """
        return Invitation.from_dict(self._ask("renew_link", campaign, content={"label": label}), self.url)

    def close(self, campaign: str, *, accept_unpaid: bool = False) -> Campaign:
        """End a campaign whose estimate is out; people who are still to be paid must be accepted by name."""
        before = frozenset({"draft", "bidding", "allocating", "delivering", "releasing", "released"})
        return self._step(campaign, "close_campaign", {"accept_unpaid": accept_unpaid}, before=before)

    def cancel(self, campaign: str, *, reason: str | None = None) -> Campaign:
        """Cancel a campaign before people know what is bought; participants may read the reason."""
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
                if jobs and jobs[-1].state == "failed":
                    raise Conflict(jobs[-1].get("problem") or "The campaign could not be opened.")
                return self.campaign(campaign)
            # it will not move by itself
            if jobs and jobs[-1].state == "failed":
                raise ServerFailed(f"The {jobs[-1].kind} failed: {jobs[-1].get('problem') or 'no reason was given.'}")
            if progress is not None and jobs:
                progress(jobs[-1])
            if waited >= most:
                raise ServerFailed(f"The campaign is still {found.state} after waiting for {most:g} seconds.")
            self._transport.pause(pause)
            waited, pause = waited + pause, min(2.0 * pause, _LONGEST_PAUSE)

    # reading --------------------------------------------------------------------------------------------------------

    def campaign(self, campaign: str) -> Campaign:
        """Return a campaign."""
        return answer_of(Campaign, self._ask("campaign", campaign))

    def campaigns(self) -> Iterator[Campaign]:
        """Iterate over all campaigns."""
        return (answer_of(Campaign, one) for one in self._pages("campaigns"))

    def participants(self, campaign: str) -> Iterator[dict[str, Any]]:
        """Iterate over everybody's state, by pseudonym."""
        return self._pages("participants", campaign)

    def jobs(self, campaign: str) -> list[Job]:
        """Return what ran or runs in the background, the latest last."""
        return [answer_of(Job, job) for job in self._pages("page_of_jobs", campaign)]

    def estimate(self, campaign: str) -> dict[str, Any]:
        """Return the released estimate with its error."""
        return an_object(self._ask("estimate", campaign))

    def payments_csv(self, campaign: str) -> str:
        """Return who is paid what and, if the campaign asked, where; as CSV. The log says who read it."""
        return str(self._ask("payments", campaign, expect="text"))

    def awaited_csv(self, campaign: str, what: str | None = None) -> str:
        """Return whose bid, delivery, payment details or payment are pending, all or one of them; as CSV."""
        return str(self._ask("awaited", campaign, query={"what": what}, expect="text"))

    def account(self, campaign: str) -> dict[str, Any]:
        """Return what a campaign owes, and how that follows from what was decided."""
        return an_object(self._ask("account", campaign))

    def record(self, campaign: str) -> Record:
        """Return the record, for auditors, who may see everything."""
        return Record.from_dict(self._ask("record", campaign))

    def events(self, campaign: str) -> list[Event]:
        """Return the log, to be checked with `hushbid.verification.receipts.verify_log`."""
        return [Event.from_dict(event) for event in self._pages("page_of_events", campaign)]

    def privacy_account(self) -> Iterator[dict[str, Any]]:
        """Iterate over each person's privacy loss in all campaigns, by pseudonym."""
        return self._pages("privacy_account")

    def keys(self) -> KeyList:
        """Return the server's list of keys."""
        return KeyList.from_dict(self._ask("keys"))

    def public(self, campaign: str) -> dict[str, Any]:
        """Return the public part of a campaign."""
        return an_object(self._ask("public", campaign))

    def disconnect(self) -> None:
        """Close the connection."""
        self._transport.close()

    def __enter__(self) -> "AnalystClient":
        return self

    def __exit__(self, *problem: object) -> None:
        self.disconnect()

    def _step(
        self, campaign: str, step: str, content: Mapping[str, Any] | None = None, *, before: frozenset[str]
    ) -> Campaign:
        """Move a campaign on; the campaign afterwards.

        If the server refuses a second attempt, the first one may have been carried out although its answer got lost:
        then the campaign is no longer in one of the states ``before`` the step.
        """
        try:
            self._ask(step, campaign, content=content)
        except ConflictAfterRetry:
            found = self.campaign(campaign)
            if found.state in before:
                raise
            return found
        return self.campaign(campaign)

    def _pages(self, name: str, *identifiers: str) -> Iterator[dict[str, Any]]:
        """All items of a list, page by page."""
        cursor: str | None = None
        while True:
            page = self._ask(name, *identifiers, query={"limit": _PAGE, "cursor": cursor})
            yield from _items(page, "items")
            cursor = page.get("cursor")
            if cursor is None:
                return


def _items(answer: Any, name: str) -> list[dict[str, Any]]:
    items = answer.get(name) if isinstance(answer, Mapping) else None
    if isinstance(items, list) and all(isinstance(item, dict) for item in items):
        return items
    raise strange(f"The answer has no list of {name}")
