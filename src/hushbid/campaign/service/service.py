"""`Service`: everything the campaign server can do, for the HTTP interface, the pages, the command line and tests."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Self, TypeVar

from sqlalchemy import Connection

from hushbid.campaign.crash import Crash, no_crash
from hushbid.campaign.domain.settings import CampaignSettings
from hushbid.campaign.domain.views import (
    CampaignView,
    Invitation,
    MenuView,
    Page,
    ParticipantView,
    ParticipationView,
    Preview,
    Principal,
    PublicView,
    Session,
)
from hushbid.campaign.home import Home
from hushbid.campaign.service import accounts, drafts, forecasting, reporting, shown
from hushbid.campaign.service.context import Context
from hushbid.campaign.service.forecasting import Effort
from hushbid.campaign.service.starting import bind_installation
from hushbid.campaign.store import accounts as stored_accounts
from hushbid.campaign.store import campaigns, participants
from hushbid.campaign.store.database import Database
from hushbid.campaign.store.migrate import migrate
from hushbid.campaign.store.rows import stamp
from hushbid.campaign.vault import Vault
from hushbid.campaign.writer import Clock, Transaction, Writer
from hushbid.errors import InputError, NotAllowed

T = TypeVar("T")
MOST_ON_A_PAGE = 1000


def utc_now() -> datetime:
    """The time."""
    return datetime.now(UTC)


class Service:
    """A running installation. Close it when done; only one may run on a database."""

    def __init__(
        self,
        home: Home,
        database: Database,
        *,
        clock: Clock = utc_now,
        crash: Crash = no_crash,
        privacy_cap: float | None = None,
        effort: Effort | None = None,
    ) -> None:
        if privacy_cap is not None and not 0.0 < privacy_cap < 1e6:
            raise InputError(f"privacy_cap must be positive and below a million, got {privacy_cap}.")
        self.home = home
        self.clock = clock
        self._database = database
        self._effort = effort or Effort()
        self._context = Context(
            home=home,
            vault=Vault(home.data_keys),
            identity_key=home.identity_key(),
            privacy_cap=privacy_cap,
            crash=crash,
        )
        with database.writer.begin():
            migrate(database.writer)
            bind_installation(database.writer, home)
        self._writer = Writer(database, clock=clock, crash=crash)

    @classmethod
    def at(cls, home: str, *, database: str | None = None, privacy_cap: float | None = None) -> Self:
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
        self._writer.close()
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

    def log_in(self, name: str, password: str, address: str) -> Session:
        """Begin a session; refused, and ever later, after failures."""
        known = accounts.checked_name(name)
        with self._read() as connection:
            accounts.refuse_throttled(connection, known, address, self.clock())
            user = stored_accounts.user_named(connection, known)
        if user is None or not accounts.password_fits(user, password):
            if user is None:
                accounts.password_fits(None, password)
            self._write("login", lambda tx: accounts.failed(tx, known, address))
            raise NotAllowed("The name or the password is wrong.")
        return self._write("login", lambda tx: accounts.begin_session(tx, user, address))

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

    def principal_of(self, token: str) -> Principal:
        """Whose bearer token this is: an API token, a session's, or a participant's link."""
        with self._read() as connection:
            return accounts.principal_of(connection, token, self.clock())

    # -- the analyst, before a campaign opens --------------------------------------------------------------------------

    def draft(self, who: Principal, settings: CampaignSettings) -> CampaignView:
        """Create a campaign that has not opened."""
        _require_analyst(who)
        return self._write("draft", lambda tx: drafts.draft(tx, who, settings))

    def change(self, who: Principal, campaign_id: str, settings: CampaignSettings) -> CampaignView:
        """Replace a draft's settings."""
        _require_analyst(who)
        return self._write("change", lambda tx: drafts.change(tx, campaign_id, settings))

    def discard(self, who: Principal, campaign_id: str) -> None:
        """Remove a draft."""
        _require_analyst(who)
        self._write("discard", lambda tx: drafts.discard(tx, campaign_id))

    def preview(self, settings: CampaignSettings, people: int | Sequence[str | None]) -> Preview:
        """What a campaign may cost: for so many people, or for people of these groups."""
        groups: list[str | None] = [None] * people if isinstance(people, int) else list(people)
        if not groups:
            raise InputError("people must be at least 1.")
        return forecasting.preview(settings, groups, self._effort)

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
        """A new link for somebody who lost hers."""
        _require_analyst(who)
        return self._write("renew", lambda tx: drafts.renew(tx, campaign_id, label))

    def open(self, who: Principal, campaign_id: str) -> CampaignView:
        """Open a campaign for reports, if the most it can cost is within its ceiling. Takes a few seconds."""
        _require_analyst(who)
        with self._read() as connection:
            campaign = campaigns.get(connection, campaign_id)
            groups = participants.groups(connection, campaign_id)
        drafts.may_open(campaign, groups, self._context.privacy_cap)
        forecast = forecasting.preview(campaign.settings, groups, self._effort)
        menus = forecasting.menus(campaign.settings, groups, self._effort)
        return self._write("open", lambda tx: drafts.open_campaign(tx, self._context, campaign, forecast, menus))

    # -- what analysts and auditors see --------------------------------------------------------------------------------

    def campaigns(self, who: Principal, *, cursor: str | None = None, limit: int = 100) -> Page[CampaignView]:
        """All campaigns, newest first."""
        _require_staff(who)
        before = None if cursor is None else _two(cursor)
        with self._read() as connection:
            found = campaigns.newest(connection, before=before, limit=_checked_limit(limit) + 1)
            views = tuple(shown.campaign_view(connection, one) for one in found[:limit])
        last = found[limit - 1] if len(found) > limit else None
        return Page(items=views, cursor=None if last is None else f"{stamp(last.created_at)},{last.id}")

    def campaign(self, who: Principal, campaign_id: str) -> CampaignView:
        """One campaign."""
        _require_staff(who)
        with self._read() as connection:
            return shown.campaign_view(connection, campaigns.get(connection, campaign_id))

    def participants(
        self, who: Principal, campaign_id: str, *, cursor: str | None = None, limit: int = 100
    ) -> Page[ParticipantView]:
        """A campaign's people in the order of invitation; auditors do not see labels."""
        _require_staff(who)
        after = _number(cursor)
        with self._read() as connection:
            campaign = campaigns.get(connection, campaign_id)
            found = participants.listed(connection, campaign_id, after=after, limit=_checked_limit(limit) + 1)
        views = tuple(shown.participant_view(campaign, one, labelled=who.role == "analyst") for one in found[:limit])
        return Page(items=views, cursor=str(found[limit - 1].number) if len(found) > limit else None)

    def public(self, campaign_id: str) -> PublicView:
        """What anybody may see of a campaign."""
        with self._read() as connection:
            return shown.public_view(connection, campaigns.get(connection, campaign_id))

    # -- the participant -----------------------------------------------------------------------------------------------

    def participation(self, token: str) -> ParticipationView:
        """What a participant sees."""
        with self._read() as connection:
            participant = participants.by_token(connection, token)
            return shown.own_view(connection, campaigns.get(connection, participant.campaign_id), participant)

    def menu(self, token: str) -> MenuView:
        """What a participant can expect as a function of her report."""
        with self._read() as connection:
            participant = participants.by_token(connection, token)
            return shown.menu_view(campaigns.get(connection, participant.campaign_id), participant.group_name)

    def report(self, token: str, sensitivity: object) -> ParticipationView:
        """Report what one unit of privacy loss costs."""
        return self.report_soon(token, sensitivity).result()

    def report_soon(self, token: str, sensitivity: object) -> "Future[ParticipationView]":
        """The same without waiting; the future's result is there once the report is durable."""
        return self._writer.submit("report", lambda tx: reporting.report(tx, token, sensitivity))

    def decline(self, token: str) -> ParticipationView:
        """Do not take part."""
        return self._write("decline", lambda tx: reporting.decline(tx, token))

    def withdraw(self, token: str) -> ParticipationView:
        """Take back what was given."""
        return self._write("withdraw", lambda tx: reporting.withdraw(tx, token))

    # -- within --------------------------------------------------------------------------------------------------------

    def _write(self, name: str, operation: Callable[[Transaction], T]) -> T:
        return self._writer.run(name, operation)

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
        raise InputError(f"limit must be a whole number from 1 to {MOST_ON_A_PAGE}, got {limit!r}.")
    return limit


def _number(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) <= 9):
        raise InputError("cursor must be one that an earlier page gave.")
    return int(cursor)


def _two(cursor: str) -> tuple[str, str]:
    first, comma, second = cursor.partition(",")
    if not comma or not cursor.isascii() or not cursor.isprintable() or len(cursor) > 200:
        raise InputError("cursor must be one that an earlier page gave.")
    return first, second
