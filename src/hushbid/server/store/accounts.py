"""Users, their sessions and tokens, and failed log-ins."""

from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Connection, Row, delete, insert, select, update

from hushbid.server.store.schema import api_tokens, hashed, login_failures, sessions, users


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class User:
    """Somebody who logs in."""

    id: str
    name: str
    role: Literal["analyst", "auditor"]
    password: str


def add_user(connection: Connection, **columns: Any) -> None:
    """Store a new user."""
    connection.execute(insert(users).values(**columns))


def user_named(connection: Connection, name: str) -> User | None:
    """The user with that name."""
    return _user(connection.execute(select(users).where(users.c.name == name)).one_or_none())


def all_users(connection: Connection) -> list[User]:
    """Everybody who can log in, by name."""
    found = (_user(row) for row in connection.execute(select(users).order_by(users.c.name)))
    return [user for user in found if user is not None]


def set_password(connection: Connection, user_id: str, password: str) -> None:
    """Store another password hash, and end the user's sessions."""
    connection.execute(update(users).where(users.c.id == user_id).values(password=password))
    connection.execute(delete(sessions).where(sessions.c.user_id == user_id))


def remove_user(connection: Connection, user_id: str) -> None:
    """Remove a user with all sessions and tokens."""
    connection.execute(delete(sessions).where(sessions.c.user_id == user_id))
    connection.execute(delete(api_tokens).where(api_tokens.c.user_id == user_id))
    connection.execute(delete(users).where(users.c.id == user_id))


def add_session(connection: Connection, *, token: str, user_id: str, csrf: str, expires_at: str) -> None:
    """Store a session by its token's hash."""
    columns = {"token": hashed(token), "user_id": user_id, "csrf": csrf, "expires_at": expires_at}
    connection.execute(insert(sessions).values(**columns))


def session(connection: Connection, token: str, now: str) -> tuple[User, str, str] | None:
    """Whose session this is, its CSRF token and its end; None if there is none or it has ended."""
    query = select(users, sessions.c.csrf, sessions.c.expires_at).join(sessions, sessions.c.user_id == users.c.id)
    row = connection.execute(query.where(sessions.c.token == hashed(token), sessions.c.expires_at > now)).one_or_none()
    user = _user(row)
    return None if row is None or user is None else (user, row.csrf, row.expires_at)


def end_session(connection: Connection, token: str) -> None:
    """Forget a session."""
    connection.execute(delete(sessions).where(sessions.c.token == hashed(token)))


def end_old_sessions(connection: Connection, now: str) -> None:
    """Forget sessions that have ended."""
    connection.execute(delete(sessions).where(sessions.c.expires_at <= now))


def add_api_token(connection: Connection, *, token: str, user_id: str, label: str, created_at: str) -> None:
    """Store a token by its hash, in place of an earlier one with the same label."""
    connection.execute(delete(api_tokens).where(api_tokens.c.user_id == user_id, api_tokens.c.label == label))
    columns = {"token": hashed(token), "user_id": user_id, "label": label, "created_at": created_at}
    connection.execute(insert(api_tokens).values(**columns))


def remove_api_token(connection: Connection, *, user_id: str, label: str) -> bool:
    """Forget a token; whether there was one."""
    query = delete(api_tokens).where(api_tokens.c.user_id == user_id, api_tokens.c.label == label)
    return connection.execute(query).rowcount > 0


def token_user(connection: Connection, token: str) -> User | None:
    """Whose token this is."""
    query = select(users).join(api_tokens, api_tokens.c.user_id == users.c.id)
    return _user(connection.execute(query.where(api_tokens.c.token == hashed(token))).one_or_none())


def failures(connection: Connection, subject: str) -> tuple[int, str]:
    """How often logging in failed for a name or an address, and until when it is refused."""
    query = select(login_failures.c.failures, login_failures.c.blocked_until)
    row = connection.execute(query.where(login_failures.c.subject == subject)).one_or_none()
    return (0, "") if row is None else (row.failures, row.blocked_until)


def set_failures(connection: Connection, subject: str, count: int, blocked_until: str) -> None:
    """Remember how often logging in failed; 0 forgets."""
    connection.execute(delete(login_failures).where(login_failures.c.subject == subject))
    if count:
        connection.execute(insert(login_failures).values(subject=subject, failures=count, blocked_until=blocked_until))


def _user(row: Row[Any] | None) -> User | None:
    if row is None:
        return None
    return User(id=row.id, name=row.name, role=row.role, password=row.password)
