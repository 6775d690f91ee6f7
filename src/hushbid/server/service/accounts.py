"""Who may come in: users with passwords, sessions, tokens, and participants by their devices' secrets.

Passwords are hashed with argon2id. After some failures, for a name or an address, every further attempt must wait twice
as long as the one before; a name that does not exist takes as long to refuse as a wrong password. An attempt counts as
a failure from the moment it is made, before the slow hash, so attempts made at once count like those made in turn.
"""

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal

from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError
from sqlalchemy import Connection

from hushbid.errors import Conflict, InputError, NotAllowed, NotFound, Throttled
from hushbid.server.model.access import SECRET_PREFIX
from hushbid.server.model.checks import checked_text
from hushbid.server.model.entities import User
from hushbid.server.model.views import Principal, Session
from hushbid.server.service.use_case import ServiceContext, changes, reads, steps
from hushbid.server.store import accounts, participants, schema
from hushbid.server.store.database import Transaction
from hushbid.server.store.schema import hashed, new_id, new_token, stamp

Role = Literal["analyst", "auditor"]
SESSION_LENGTH = timedelta(hours=12)
LEAST_PASSWORD, _MOST_PASSWORD, _LONGEST_NAME = 12, 1000, 100
_FREE_FAILURES = 4
_LONGEST_WAIT = timedelta(hours=1)
_ROLES = ("analyst", "auditor")
_hasher = PasswordHasher()
_nobody = ""


@reads()
def users(connection: Connection) -> tuple[Principal, ...]:
    """Everybody who can log in, by name."""
    return tuple(_principal(user) for user in accounts.all_users(connection))


@steps()
def create_user(context: ServiceContext, name: str, role: Role, password: str) -> Principal:
    """Let somebody in."""
    known, secret = _checked_name(name), password_hash(password)  # slow, so before the transaction

    def create(tx: Transaction) -> Principal:
        if role not in _ROLES:
            raise InputError(f"role must be analyst or auditor, got {role!r}.", field="role")
        if accounts.user_named(tx.connection, known) is not None:
            raise Conflict(f"There is a user {known!r} already.")
        user_id = new_id("u")
        row = {"id": user_id, "name": known, "role": role, "password": secret, "created_at": tx.at}
        schema.add(tx.connection, schema.users, row)
        return Principal(role=role, id=user_id, name=known)

    return context.write("user", create)


@steps()
def set_password(context: ServiceContext, name: str, password: str) -> None:
    """Give a user another password; ends her sessions."""
    known, secret = _checked_name(name), password_hash(password)
    context.write("user", lambda tx: accounts.set_password(tx.connection, _user(tx.connection, known).id, secret))


@changes("user")
def remove_user(tx: Transaction, name: str) -> None:
    """Remove a user with all sessions and tokens; what they did stays in the logs, and their drafts stay."""
    accounts.remove_user(tx.connection, _user(tx.connection, _checked_name(name)).id)


@changes("token")
def create_api_token(tx: Transaction, name: str, label: str) -> str:
    """A token for programs, shown once; an earlier one with the same label is worth nothing from now on."""
    user = _user(tx.connection, _checked_name(name))
    token = new_token("a")
    accounts.add_api_token(
        tx.connection,
        token=token,
        user_id=user.id,
        label=checked_text(label, "label", needed=True, longest=_LONGEST_NAME),
        created_at=tx.at,
    )
    return token


@changes("token")
def revoke_api_token(tx: Transaction, name: str, label: str) -> None:
    """Make a token worth nothing."""
    user = _user(tx.connection, _checked_name(name))
    if not schema.remove(tx.connection, schema.api_tokens, user_id=user.id, label=label):
        raise NotFound(f"{user.name!r} has no token labelled {label!r}.")


@steps()
def log_in(context: ServiceContext, name: str, password: str, address: str) -> Session:
    """Begin a session; refused, and ever later, after failures."""
    known = _checked_name(name)
    counted = subjects(context.installation.identity_key, known, address)
    context.write("login", lambda tx: attempt(tx, counted))  # a failure until it succeeds
    with context.read() as connection:
        user = accounts.user_named(connection, known)
    if not password_fits(user, password) or user is None:
        raise NotAllowed("The name or the password is wrong.")
    return context.write("login", lambda tx: begin_session(tx, user, counted))


@changes("logout")
def log_out(tx: Transaction, token: str) -> None:
    """End a session."""
    schema.remove(tx.connection, schema.sessions, token=hashed(token))


@steps()
def session_of(context: ServiceContext, token: str) -> Session:
    """The session with that token."""
    with context.read() as connection:
        return _session(connection, token, context.clock())


@steps()
def principal_of(context: ServiceContext, token: str) -> Principal:
    """Whose bearer token this is: an API token's, a session's, or a participant's secret; its beginning tells which."""
    with context.read() as connection:
        if token.startswith(SECRET_PREFIX):
            found = participants.by_secret(connection, token)
            return Principal(role="participant", id=found.id, name="", campaign=found.campaign_id)
        if token.startswith("hb_s_"):
            return _session(connection, token, context.clock()).principal
        user = accounts.token_user(connection, token) if token.startswith("hb_a_") else None
        if user is None:
            raise NotAllowed("This token is not valid.")
        return _principal(user)


def subjects(key: bytes, name: str, address: str) -> tuple[str, ...]:
    """What failures are counted for; hashed with a key, because people type passwords into the wrong field."""
    texts = (f"log-in name {name}", f"log-in address {address}")
    return tuple(hmac.new(key, text.encode(), hashlib.sha256).hexdigest() for text in texts)


def password_fits(user: User | None, password: object) -> bool:
    """Whether a password is a user's; takes as long if there is no such user."""
    global _nobody
    if not _nobody:
        _nobody = _hasher.hash(secrets.token_bytes(16))
    given = password.encode("utf-8", "surrogatepass") if isinstance(password, str) else b""
    try:
        fits = _hasher.verify(_nobody if user is None else user.password, given[: 4 * _MOST_PASSWORD])
    except (Argon2Error, InvalidHashError):
        return False
    return fits and user is not None


def attempt(tx: Transaction, counted: Sequence[str]) -> None:
    """Refuse an attempt that comes too early after failures; count any other as one more, until it succeeds."""
    found = {subject: accounts.failures(tx.connection, subject) for subject in counted}
    # by name and by address: either may block
    for _, blocked_until in found.values():
        if blocked_until > stamp(tx.now):
            seconds = int((datetime.fromisoformat(blocked_until) - tx.now).total_seconds()) + 1
            raise Throttled(f"Too many failed attempts: try again in {seconds} seconds.", retry_after=seconds)
    # counted before the slow hash, so that attempts made at once count
    for subject, (before, _) in found.items():
        wait = timedelta(0)
        if before >= _FREE_FAILURES:
            wait = min(timedelta(seconds=2 ** min(before + 1 - _FREE_FAILURES, 20)), _LONGEST_WAIT)
        accounts.set_failures(tx.connection, subject, before + 1, stamp(tx.now + wait))


def begin_session(tx: Transaction, user: User, counted: Sequence[str]) -> Session:
    """Log a user in whose password fits."""
    for subject in counted:
        accounts.set_failures(tx.connection, subject, 0, "")
    accounts.end_old_sessions(tx.connection, tx.at)
    token, csrf, end = new_token("s"), secrets.token_urlsafe(32), tx.now + SESSION_LENGTH
    row = {"token": hashed(token), "user_id": user.id, "csrf": csrf, "expires_at": stamp(end)}
    schema.add(tx.connection, schema.sessions, row)
    return Session(token=token, csrf=csrf, principal=_principal(user), expires_at=end)


def _session(connection: Connection, token: str, now: datetime) -> Session:
    found = accounts.session(connection, token, stamp(now))
    if found is None:
        raise NotAllowed("You are not logged in, or your session has ended.")
    user, csrf, end = found
    return Session(token=token, csrf=csrf, principal=_principal(user), expires_at=datetime.fromisoformat(end))


def _user(connection: Connection, name: str) -> User:
    user = accounts.user_named(connection, name)
    if user is None:
        raise NotFound(f"There is no user {name!r}.")
    return user


def _principal(user: User) -> Principal:
    return Principal(role=user.role, id=user.id, name=user.name)


def _checked_name(name: object) -> str:
    """A user's name."""
    return " ".join(checked_text(name, "name", needed=True, longest=_LONGEST_NAME).split())


def password_hash(password: object) -> str:
    """What is stored of a password."""
    if not isinstance(password, str) or not LEAST_PASSWORD <= len(password) <= _MOST_PASSWORD:
        raise InputError(f"password must have {LEAST_PASSWORD} to {_MOST_PASSWORD} characters.", field="password")
    return _hasher.hash(password.encode("utf-8", "surrogatepass"))
