"""An analyst's side of a server: scripts a campaign from its draft to its payments.

Allocation and release run in the background; `wait` follows them. Every step may be repeated after a failure, and says
what is wrong if it comes at the wrong time.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any

from hushbid.client.calls import Call, asking, asking_object, delete, get, post, put
from hushbid.client.transport import ATTEMPTS, Transport
from hushbid.client.views import Campaign, Invitation, Job
from hushbid.errors import InputError, ServerFailed
from hushbid.record import Record
from hushbid.record.events import Event
from hushbid.record.signing import KeyList

MOVING = frozenset({"allocating", "releasing"})
_PAGE = 500
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0
CSRF_HEADER = "X-CSRF-Token"


class AnalystClient:
    """Speaks for an analyst, or for an auditor as far as reading goes.

    with AnalystClient("https://example.org", token=API_TOKEN) as analyst:
        campaign = analyst.draft({"title": "Sleep", ...})
        invitations = analyst.invite(campaign.id, count=200)
        analyst.open(campaign.id)
        # people report
        analyst.close_reporting(campaign.id)
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

    def change(self, campaign: str, settings: Mapping[str, Any]) -> Campaign:
        """Give a draft other settings."""
        return Campaign.from_dict(self._ask(put(f"/campaigns/{_id(campaign)}", settings)))

    def discard(self, campaign: str) -> None:
        """Throw a draft away."""
        self._ask(delete(f"/campaigns/{_id(campaign)}"))

    def preview(self, campaign: str) -> dict[str, Any]:
        """What a campaign would cost and how precise it would be, before it opens."""
        return self._object(post(f"/campaigns/{_id(campaign)}/preview"))

    def invite(
        self, campaign: str, *, count: int | None = None, people: Iterable[str | Mapping[str, Any]] | None = None
    ) -> list[Invitation]:
        """Make personal links, for so many unknown people or for people by their ids; shown this once only.

        One of ``people`` is an external id, or a mapping with ``id`` and ``group``.
        """
        if (count is None) == (people is None):
            raise InputError("Give either count or people.")
        if people is None:
            content: dict[str, Any] = {"count": count}
        else:
            content = {"people": [{"id": one} if isinstance(one, str) else dict(one) for one in people]}
        told = self._ask(post(f"/campaigns/{_id(campaign)}/participants", content))
        return [Invitation.from_dict(one, self.url) for one in _items(told, "invitations")]

    # conducting -----------------------------------------------------------------------------------------------------

    def open(self, campaign: str) -> Campaign:
        """Let people report; refused if it could cost more than the spending ceiling."""
        return Campaign.from_dict(self._ask(post(f"/campaigns/{_id(campaign)}/open")))

    def close_reporting(self, campaign: str) -> None:
        """Take no more reports and decide, in the background."""
        self._ask(post(f"/campaigns/{_id(campaign)}/close-reporting"))

    def release(self, campaign: str) -> None:
        """Take no more data and draw the estimate, once, in the background."""
        self._ask(post(f"/campaigns/{_id(campaign)}/release"))

    def mark_paid(self, campaign: str, labels: Sequence[str] | None = None) -> dict[str, Any]:
        """Say that these people, or all who are due, were paid."""
        content = {} if labels is None else {"labels": list(labels)}
        return self._object(post(f"/campaigns/{_id(campaign)}/payments", content))

    def close(self, campaign: str) -> Campaign:
        """End a campaign, whoever is unpaid."""
        return Campaign.from_dict(self._ask(post(f"/campaigns/{_id(campaign)}/close")))

    def cancel(self, campaign: str) -> Campaign:
        """Give a campaign up before anything was decided."""
        return Campaign.from_dict(self._ask(post(f"/campaigns/{_id(campaign)}/cancel")))

    def wait(self, campaign: str, *, progress: Callable[[Job], None] | None = None, most: float = 3600.0) -> Campaign:
        """Wait until nothing runs in the background any more; ``most`` seconds of pauses at most."""
        waited, pause = 0.0, _FIRST_PAUSE
        while True:
            found = self.campaign(campaign)
            if found.state not in MOVING:
                return found
            jobs = self.jobs(campaign)
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
        reporting: Callable[[list[Invitation]], None],
        delivering: Callable[[list[Invitation]], None],
        count: int | None = None,
        people: Iterable[str | Mapping[str, Any]] | None = None,
    ) -> Campaign:
        """A whole campaign: the two functions get the invitations and return when people have had their time."""
        campaign = self.draft(settings).id
        invitations = self.invite(campaign, count=count, people=people)
        self.open(campaign)
        reporting(invitations)
        self.close_reporting(campaign)
        found = self.wait(campaign)
        if found.state == "delivering":
            delivering(invitations)
            self.release(campaign)
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
        """Who is paid what, as CSV."""
        return str(self._ask(get(f"/campaigns/{_id(campaign)}/payments.csv", expect="text")))

    def record(self, campaign: str) -> Record:
        """The record, for whoever may see everything."""
        return Record.from_dict(self._ask(get(f"/campaigns/{_id(campaign)}/record")))

    def events(self, campaign: str) -> list[Event]:
        """The log, to be checked with `hushbid.record.trust.verify_log`."""
        return [Event.from_dict(event) for event in self._pages(f"/campaigns/{_id(campaign)}/events")]

    def ledger(self) -> Iterator[dict[str, Any]]:
        """What each person has given up in all campaigns, by pseudonym."""
        return self._pages("/ledger")

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
    raise ServerFailed(f"The answer has no list of {name}: this is not a Hushbid server, or not its version.")


def _id(campaign: str) -> str:
    """An identifier that can stand in a path as it is."""
    if not (
        isinstance(campaign, str)
        and campaign
        and campaign.isascii()
        and campaign.replace("-", "").replace("_", "").isalnum()
    ):
        raise InputError("A campaign's identifier holds letters, digits, - and _ only.")
    return campaign
