"""`Service`: everything the campaign server can do, for the HTTP interface, the pages, the command line and tests."""

import math
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

from sqlalchemy import Connection

from hushbid.errors import Conflict, HushbidError, InputError, NotAllowed, NotFound
from hushbid.receipts.keys import KeyList
from hushbid.receipts.log import Event
from hushbid.receipts.receipt import Receipt
from hushbid.server.domain.settings import LEAST_PEOPLE, MOST_PEOPLE, CampaignSettings, checked_text
from hushbid.server.domain.views import (
    AccountView,
    CampaignView,
    DevicesView,
    Invitation,
    JobView,
    LedgerRow,
    MenuView,
    OwnLink,
    Page,
    ParticipantView,
    ParticipationView,
    PaymentRow,
    PersonalLedger,
    Preview,
    Principal,
    PublicView,
    Session,
)
from hushbid.server.failpoints import Crash, no_crash
from hushbid.server.installation import Home
from hushbid.server.service import (
    accounts,
    decision,
    delivering,
    drafts,
    ending,
    forecast,
    idempotency,
    links,
    participation,
    paying,
    personal,
    release,
    ticking,
    upkeep,
    views_of,
)
from hushbid.server.service.context import Context, Desk
from hushbid.server.service.forecast import Effort
from hushbid.server.service.jobs import Jobs
from hushbid.server.service.writer import Writer
from hushbid.server.store import accounts as stored_accounts
from hushbid.server.store import campaigns, events, ledger, participants
from hushbid.server.store import jobs as stored_jobs
from hushbid.server.store.database import Database, lock_file
from hushbid.server.store.migrate import migrate
from hushbid.server.store.rows import stamp
from hushbid.server.store.transaction import Clock, Transaction
from hushbid.server.vault import Vault

T = TypeVar("T")
MOST_ON_A_PAGE = 1000
_LONGEST_REASON = 500
_MOST_CAP = 1e6


def utc_now() -> datetime:
    """The time."""
    return datetime.now(UTC)


class Service:
    """A running installation. Close it when done; only one may run on a database, and only one in a folder.

    ``privacy_cap``: nobody may give up more over all campaigns, from now on; infinity lifts the limit. Without it the
    limit stays what it was, so that a server started carelessly keeps it.
    """

    def __init__(
        self,
        home: Home,
        database: Database,
        *,
        clock: Clock = utc_now,
        crash: Crash = no_crash,
        privacy_cap: float | None = None,
        effort: Effort | None = None,
        least_people: int = LEAST_PEOPLE,
    ) -> None:
        """``least_people`` may be lower for people who do not exist: figures of few tell what they reported."""
        if privacy_cap is not None and not (0.0 < privacy_cap < _MOST_CAP or privacy_cap == math.inf):
            raise InputError(
                f"privacy_cap must be positive and below a million, or inf for none, got {privacy_cap}.",
                field="privacy_cap",
            )
        self.home = home
        self.clock = clock
        self._database = database
        self._effort = effort or Effort()
        self._context = Context(
            home=home,
            vault=Vault(home.data_keys),
            identity_key=home.identity_key(),
            privacy_cap=None,
            crash=crash,
            least_people=least_people,
        )
        self._tree_of = personal.TreeOf()
        self._forgot_at: datetime | None = None
        # the order matters: the folder, the cap, the tables, the writer, then what a crash left
        with ExitStack() as held:
            lock = lock_file(home.path / "lock", "Another server is running in this folder: stop it first.")
            held.callback(os.close, lock)
            if privacy_cap is not None:
                home.keep_privacy_cap(None if privacy_cap == math.inf else privacy_cap)
            self._context = replace(self._context, privacy_cap=home.privacy_cap())
            with database.writer.begin():
                migrate(database.writer)
                upkeep.bind_installation(database.writer, home)
            self._writer = Writer(database, clock=clock, crash=crash)
            held.callback(self._writer.close)
            self._desk = Desk(context=self._context, write=self._write, read=self._read)
            self._jobs = Jobs(self._run_job, self._job_failed)
            held.callback(self._jobs.close)
            # before anybody is answered
            for job in upkeep.take_up(self._desk):
                self._jobs.start(job)
            self._held = held.pop_all()

    @classmethod
    def at(cls, home: str | Path, *, database: str | None = None, privacy_cap: float | None = None) -> Self:
        """Start the installation in a folder; on its own SQLite file unless an address is given."""
        folder = Home.at(home)
        opened = Database.sqlite(folder.database) if database is None else Database(database)
        try:
            return cls(folder, opened, privacy_cap=privacy_cap)
        except BaseException:
            opened.close()
            raise

    def close(self) -> None:
        """Finish what was begun, and let go of the database."""
        self._held.close()
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- accounts ------------------------------------------------------------------------------------------------------

    def create_user(self, name: str, role: accounts.Role, password: str) -> Principal:
        """Let somebody in."""
        known, secret = accounts.checked_name(name), accounts.password_hash(password)
        return self._write("user", lambda tx: accounts.create_user(tx, name=known, role=role, password=secret))

    def users(self) -> tuple[Principal, ...]:
        """Everybody who can log in, by name."""
        with self._read() as connection:
            found = stored_accounts.all_users(connection)
        return tuple(Principal(role=user.role, id=user.id, name=user.name) for user in found)

    def set_password(self, name: str, password: str) -> None:
        """Give a user another password; ends her sessions."""
        secret = accounts.password_hash(password)
        self._write("user", lambda tx: accounts.set_password(tx, accounts.checked_name(name), secret))

    def remove_user(self, name: str) -> None:
        """Let somebody in no more."""
        self._write("user", lambda tx: accounts.remove_user(tx, accounts.checked_name(name)))

    def log_in(self, name: str, password: str, address: str) -> Session:
        """Begin a session; refused, and ever later, after failures."""
        known = accounts.checked_name(name)
        counted = accounts.subjects(self._context.identity_key, known, address)
        self._write("login", lambda tx: accounts.attempt(tx, counted))  # a failure until it succeeds
        with self._read() as connection:
            user = stored_accounts.user_named(connection, known)
        if not accounts.password_fits(user, password) or user is None:
            raise NotAllowed("The name or the password is wrong.")
        return self._write("login", lambda tx: accounts.begin_session(tx, user, counted))

    def log_out(self, token: str) -> None:
        """End a session."""
        self._write("logout", lambda tx: stored_accounts.end_session(tx.connection, token))

    def session_of(self, token: str) -> Session:
        """The session with that token."""
        with self._read() as connection:
            return accounts.session_of(connection, token, self.clock())

    def create_api_token(self, name: str, label: str) -> str:
        """A token for programs, shown once."""
        return self._write("token", lambda tx: accounts.create_api_token(tx, accounts.checked_name(name), label))

    def revoke_api_token(self, name: str, label: str) -> None:
        """Make a token worth nothing."""
        self._write("token", lambda tx: accounts.revoke_api_token(tx, accounts.checked_name(name), label))

    def principal_of(self, token: str) -> Principal:
        """Whose bearer token this is: an API token, a session's, or a participant's secret."""
        with self._read() as connection:
            return accounts.principal_of(connection, token, self.clock())

    # -- the analyst, before a campaign opens --------------------------------------------------------------------------

    def draft(self, who: Principal, settings: CampaignSettings) -> CampaignView:
        """Create a campaign that has not opened."""
        _require_analyst(who)
        settings.require_people(self._context.least_people)
        return self._write("draft", lambda tx: drafts.draft(tx, who, settings))

    def change(self, who: Principal, campaign_id: str, settings: CampaignSettings) -> CampaignView:
        """Replace a draft's settings."""
        _require_analyst(who)
        settings.require_people(self._context.least_people)
        return self._write("change", lambda tx: drafts.change(tx, campaign_id, settings))

    def discard(self, who: Principal, campaign_id: str) -> None:
        """Remove a draft."""
        _require_analyst(who)
        self._write("discard", lambda tx: drafts.discard(tx, campaign_id))

    def preview(self, settings: CampaignSettings, people: int | Sequence[str | None]) -> Preview:
        """What a campaign may cost: for so many people, or for people of these groups."""
        size = people if isinstance(people, int) else len(people)
        if not 1 <= size <= MOST_PEOPLE:
            raise InputError(f"people must be from 1 to {MOST_PEOPLE}, got {size}.", field="people")
        groups: list[str | None] = [None] * size if isinstance(people, int) else list(people)
        return forecast.preview(settings, groups, self._effort)

    def invite(
        self,
        who: Principal,
        campaign_id: str,
        *,
        count: int | None = None,
        people: Sequence[drafts.Person] | None = None,
    ) -> tuple[Invitation, ...]:
        """Add people to a draft; their links are shown this once."""
        _require_analyst(who)
        return self._write(
            "invite", lambda tx: drafts.invite(tx, self._context, campaign_id, count=count, people=people)
        )

    def renew_link(self, who: Principal, campaign_id: str, label: str) -> Invitation:
        """A new link for somebody who lost hers; it only reads once she has delivered, and ends the old ones before."""
        _require_analyst(who)
        return self._write("renew", lambda tx: drafts.renew(tx, campaign_id, label))

    def open(self, who: Principal, campaign_id: str) -> CampaignView:
        """Open a campaign for reports, if the most it can cost is within its ceiling. Takes a few seconds."""
        _require_analyst(who)
        with self._read() as connection:
            campaign = campaigns.get(connection, campaign_id)
            groups = participants.groups(connection, campaign_id)
        drafts.may_open(campaign, groups, self._context.privacy_cap)
        campaign.settings.require_people(self._context.least_people)
        most = forecast.preview(campaign.settings, groups, self._effort)
        menus = forecast.menus(campaign.settings, groups, self._effort)
        return self._write("open", lambda tx: drafts.open_campaign(tx, self._context, campaign, most, menus))

    # -- the analyst, from the reports to the end ----------------------------------------------------------------------

    def close_reporting(self, who: Principal, campaign_id: str) -> JobView:
        """Close reporting and decide, in the background; begins again if the last attempt failed."""
        _require_analyst(who)
        return self._started(self._write("allocation.start", lambda tx: decision.start(tx, campaign_id)))

    def release(self, who: Principal, campaign_id: str, *, accept_nobody: bool = False) -> JobView:
        """Stop deliveries and release the estimate, in the background, once.

        If nobody has delivered and could still do so, ``accept_nobody`` must say that there shall be no estimate.
        """
        _require_analyst(who)
        return self._started(
            self._write("release.start", lambda tx: release.start(tx, campaign_id, accept_nobody=accept_nobody))
        )

    def mark_paid(
        self, who: Principal, campaign_id: str, labels: Sequence[str] | None = None
    ) -> tuple[PaymentRow, ...]:
        """Note that everybody, or those with these labels, were paid what is due; returns what was due to whom."""
        _require_analyst(who)
        return self._write("payment", lambda tx: paying.mark_paid(tx, campaign_id, labels))

    def close_campaign(self, who: Principal, campaign_id: str, *, accept_unpaid: bool = False) -> CampaignView:
        """Close a campaign whose people are paid, or listed as unpaid by the analyst's will."""
        _require_analyst(who)
        return self._write("close", lambda tx: ending.close(tx, campaign_id, accept_unpaid=accept_unpaid))

    def cancel(self, who: Principal, campaign_id: str, reason: str) -> CampaignView:
        """End a campaign before its decision."""
        _require_analyst(who)
        sentence = checked_text(reason, "reason", needed=True, longest=_LONGEST_REASON)
        return self._write("cancel", lambda tx: ending.cancel(tx, campaign_id, sentence))

    # -- what analysts and auditors see --------------------------------------------------------------------------------

    def campaigns(self, who: Principal, *, cursor: str | None = None, limit: int = 100) -> Page[CampaignView]:
        """All campaigns, newest first."""
        _require_staff(who)
        before = None if cursor is None else _two(cursor)
        with self._read() as connection:
            found = campaigns.newest(connection, before=before, limit=_checked_limit(limit) + 1)
            views = tuple(views_of.campaign_view(connection, one) for one in found[:limit])
        last = found[limit - 1] if len(found) > limit else None
        return Page(items=views, cursor=None if last is None else f"{stamp(last.created_at)},{last.id}")

    def campaign(self, who: Principal, campaign_id: str) -> CampaignView:
        """One campaign."""
        _require_staff(who)
        with self._read() as connection:
            return views_of.campaign_view(connection, campaigns.get(connection, campaign_id))

    def participants(
        self, who: Principal, campaign_id: str, *, cursor: str | None = None, limit: int = 100
    ) -> Page[ParticipantView]:
        """A campaign's people in the order of invitation; auditors do not see labels."""
        _require_staff(who)
        after = _number(cursor)
        with self._read() as connection:
            campaign = campaigns.get(connection, campaign_id)
            found = participants.listed(connection, campaign_id, after=after, limit=_checked_limit(limit) + 1)
        views = tuple(views_of.participant_view(campaign, one, labelled=who.role == "analyst") for one in found[:limit])
        return Page(items=views, cursor=str(found[limit - 1].number) if len(found) > limit else None)

    def jobs(self, who: Principal, campaign_id: str) -> tuple[JobView, ...]:
        """A campaign's work in the background, newest first."""
        _require_staff(who)
        with self._read() as connection:
            campaigns.get(connection, campaign_id)
            return tuple(stored_jobs.of_campaign(connection, campaign_id))

    def job(self, who: Principal, job_id: str) -> JobView:
        """One piece of work in the background."""
        _require_staff(who)
        with self._read() as connection:
            return stored_jobs.get(connection, job_id)

    def events(self, who: Principal, campaign_id: str, *, after: int = 0, limit: int = 1000) -> tuple[Event, ...]:
        """A campaign's log, after an event's number."""
        _require_staff(who)
        with self._read() as connection:
            campaigns.get(connection, campaign_id)
            return tuple(events.listed(connection, campaign_id, after=after, limit=_checked_limit(limit)))

    def record(self, who: Principal, campaign_id: str) -> bytes:
        """A campaign's record as a file: every report, promise and payment by pseudonym, and the release."""
        _require_staff(who)
        with self._read() as connection:
            campaign = campaigns.get(connection, campaign_id)
            if not campaign.state.is_decided:
                raise NotFound("This campaign has no record: no decision was made.")
            return campaigns.record_bytes(connection, campaign_id)

    def payments(self, who: Principal, campaign_id: str) -> tuple[PaymentRow, ...]:
        """Who is or was owed what, in the order of invitation."""
        _require_analyst(who)
        with self._read() as connection:
            return paying.rows(connection, campaign_id)

    def account(self, who: Principal, campaign_id: str) -> AccountView:
        """What a campaign owes in all, paid or not."""
        _require_staff(who)
        with self._read() as connection:
            return paying.account(connection, campaign_id)

    def ledger(self, who: Principal, *, cursor: str | None = None, limit: int = 100) -> Page[LedgerRow]:
        """What everybody has given up, by pseudonym."""
        _require_staff(who)
        after = None if cursor is None else _two(cursor)
        with self._read() as connection:
            found = ledger.listed(connection, after=after, limit=_checked_limit(limit) + 1)
        last = found[limit - 1] if len(found) > limit else None
        return Page(items=tuple(found[:limit]), cursor=None if last is None else f"{last.person},{last.campaign}")

    def public(self, campaign_id: str) -> PublicView:
        """What anybody may see of a campaign."""
        with self._read() as connection:
            return views_of.public_view(connection, campaigns.get(connection, campaign_id))

    # -- the participant -----------------------------------------------------------------------------------------------

    def enter(self, link: str, secret: object) -> ParticipationView:
        """Exchange a link, which is used once, for a secret that a device drew; all that follows goes by the secret."""
        return self.enter_soon(link, secret).result()

    def enter_soon(self, link: str, secret: object) -> "Future[ParticipationView]":
        """What `enter` does, without waiting: the future's result is there once the exchange is durable."""
        return self._writer.submit("enter", lambda tx: links.enter(tx, link, secret), checks_first=True)

    def own_link(self, secret: str) -> OwnLink:
        """A link for another device of hers, shown this once."""
        return self._write("own-link", lambda tx: links.own_link(tx, secret))

    def require_open(self, secret: str) -> None:
        """Refuse a secret that opens nothing, or nothing any more."""
        with self._read() as connection:
            participants.holder(connection, secret)

    def devices(self, secret: str) -> DevicesView:
        """On which devices a participant's part is open; refused, as everything is, to a secret that has ended."""
        with self._read() as connection:
            return links.devices(connection, secret)

    def end_other_devices(self, secret: str) -> DevicesView:
        """End all of a participant's other devices, and links that nobody has used."""
        return self._write("end-others", lambda tx: links.end_others(tx, secret))

    def leave(self, secret: str) -> None:
        """End this device's own secret."""
        self._write("leave", lambda tx: links.leave(tx, secret))

    def participation(self, secret: str) -> ParticipationView:
        """What a participant sees."""
        with self._read() as connection:
            holder = participants.holder(connection, secret)
            return views_of.own_view(connection, campaigns.get(connection, holder.participant.campaign_id), holder)

    def menu(self, secret: str) -> MenuView:
        """What a participant can expect as a function of her report."""
        with self._read() as connection:
            participant = participants.by_secret(connection, secret)
            return views_of.menu_view(campaigns.get(connection, participant.campaign_id), participant.group_name)

    def report(self, secret: str, sensitivity: object) -> ParticipationView:
        """Report what one unit of privacy loss costs."""
        return self.report_soon(secret, sensitivity).result()

    def report_soon(self, secret: str, sensitivity: object) -> "Future[ParticipationView]":
        """What `report` does, without waiting: the future's result is there once the report is durable."""
        return self._writer.submit(
            "report", lambda tx: participation.report(tx, secret, sensitivity), checks_first=True, secret=secret
        )

    def decline(self, secret: str) -> ParticipationView:
        """Do not take part."""
        return self._write("decline", lambda tx: participation.decline(tx, secret))

    def withdraw(self, secret: str) -> ParticipationView:
        """Take back what was given."""
        return self._write("withdraw", lambda tx: participation.withdraw(tx, self._context, secret))

    def deliver(self, secret: str, given: object, *, nonce: object) -> ParticipationView:
        """Deliver the value (central) or the message made from it (local); ``nonce`` names this delivery."""
        return self.deliver_soon(secret, given, nonce=nonce).result()

    def deliver_soon(self, secret: str, given: object, *, nonce: object) -> "Future[ParticipationView]":
        """What `deliver` does, without waiting: the future's result is there once the delivery is durable."""
        return self._writer.submit(
            "delivery",
            lambda tx: delivering.deliver(tx, self._context, secret, given, nonce),
            checks_first=True,
            secret=secret,
        )

    def receipt(self, secret: str) -> Receipt:
        """A participant's signed receipt, once the campaign is over."""
        key = self.home.signing.current()
        with self._read() as connection:
            return personal.receipt(connection, secret, tree_of=self._tree_of, key=key)

    def export(self, secret: str) -> dict[str, Any]:
        """Everything that is stored about a participant, as plain JSON values."""
        with self._read() as connection:
            return personal.export(connection, self._context, secret)

    def personal_ledger(self, secret: str) -> PersonalLedger:
        """What a participant has given up over all campaigns."""
        with self._read() as connection:
            return personal.personal_ledger(connection, self._context, secret)

    # -- the server itself ---------------------------------------------------------------------------------------------

    def keys(self) -> KeyList:
        """The public keys by which receipts are checked."""
        return self.home.signing.listed()

    def tick(self) -> None:
        """What happens by itself as time passes; to be called every second or so."""
        now = self.clock()
        reports, data = ticking.overdue(self._desk, now)
        for campaign_id in reports:
            self._unless_late("allocation.start", partial(decision.start, campaign_id=campaign_id))
        for campaign_id in data:
            self._unless_late("release.start", partial(release.start, campaign_id=campaign_id, accept_nobody=True))
        ticking.destroy_keys(self._desk, now)
        if self._forgot_at is None or abs(now - self._forgot_at) >= ticking.FORGETTING:
            ticking.forget(self._desk)
            self._forgot_at = now

    def wait(self, job: JobView, timeout: float | None = None) -> JobView:
        """Wait until a job is done or has failed."""
        self._jobs.wait(job.id, timeout)
        with self._read() as connection:
            return stored_jobs.get(connection, job.id)

    def once(
        self, who: str, key: str, asked: bytes, do: Callable[[], T], encode: Callable[[T], bytes]
    ) -> tuple[bytes, bool]:
        """Carry a request out unless that was done before under the same key: its answer, and whether it was.

        ``do`` is one of the use cases above that change something. What it changes and the answer, as ``encode`` makes
        it, become durable together, so a request is carried out once even if the server is killed in the middle of it.
        """
        request = idempotency.Request(who=who, key=key, asked=asked, encode=encode)
        before = self._answered(request)
        if before is not None:
            return before, True
        outer = idempotency.current.set(request)
        try:
            do()
        except idempotency.AlreadyDone as done:
            return done.answer, True
        except HushbidError:  # perhaps because the same request has just been carried out
            before = self._answered(request)
            if before is None:
                raise
            return before, True
        finally:
            idempotency.current.reset(outer)
        assert request.answer is not None, "whatever may be asked for once writes"
        return request.answer, False

    # -- within --------------------------------------------------------------------------------------------------------

    def _write(self, name: str, operation: Callable[[Transaction], T]) -> T:
        request = idempotency.current.get()
        return self._writer.run(name, operation if request is None else request.around(operation))

    def _answered(self, request: idempotency.Request) -> bytes | None:
        with self._read() as connection:
            return request.before(connection)

    def _started(self, job: JobView) -> JobView:
        self._jobs.start(job)
        return job

    def _unless_late(self, name: str, begin: Callable[[Transaction], JobView]) -> None:
        """Begin something by itself, unless somebody was faster."""
        with suppress(Conflict):
            self._started(self._write(name, begin))

    def _run_job(self, job: JobView) -> None:
        if job.kind == "release":
            release.run(self._desk, job)
            return
        decision.run(self._desk, job)
        with self._read() as connection:
            campaign = campaigns.get(connection, job.campaign)
        upkeep.take_up_withdrawals(self._desk, campaign)
        # a restored database may be behind: the estimate drawn, or the key destroyed, before
        again = upkeep.take_up_delivering(self._desk, campaign)
        if again is not None:
            release.run(self._desk, again)

    def _job_failed(self, job: JobView, problem: str) -> None:
        failed = {"state": "failed", "problem": problem}
        self._write("job", lambda tx: stored_jobs.change(tx.connection, job.id, **failed, finished_at=tx.at))

    @contextmanager
    def _read(self) -> Iterator[Connection]:
        with self._database.reading() as connection:
            yield connection


def _require_analyst(who: Principal) -> None:
    if who.role != "analyst":
        raise NotAllowed("Only an analyst may do this.")


def _require_staff(who: Principal) -> None:
    if who.role not in ("analyst", "auditor"):
        raise NotAllowed("Only analysts and auditors may see this.")


def _checked_limit(limit: int) -> int:
    if type(limit) is not int or not 1 <= limit <= MOST_ON_A_PAGE:
        raise InputError(f"limit must be a whole number from 1 to {MOST_ON_A_PAGE}, got {limit!r}.", field="limit")
    return limit


def _number(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) <= 9):
        raise InputError("cursor must be one that an earlier page gave.", field="cursor")
    return int(cursor)


def _two(cursor: str) -> tuple[str, str]:
    first, comma, second = cursor.partition(",")
    if not comma or not cursor.isascii() or not cursor.isprintable() or len(cursor) > 200:
        raise InputError("cursor must be one that an earlier page gave.", field="cursor")
    return first, second
