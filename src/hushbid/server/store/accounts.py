"""Users, their sessions and tokens, and failed log-ins."""

from sqlalchemy import Connection, select

from hushbid.server.model.entities import User
from hushbid.server.store.schema import (
    add,
    all_of,
    api_tokens,
    change,
    hashed,
    login_failures,
    one_of,
    remove,
    sessions,
    users,
)


def user_named(connection: Connection, name: str) -> User | None:
    """The user with that name."""
    return one_of(connection, User, select(users).where(users.c.name == name))


def all_users(connection: Connection) -> list[User]:
    """Everybody who can log in, by name."""
    return all_of(connection, User, select(users).order_by(users.c.name))


def set_password(connection: Connection, user_id: str, password: str) -> None:
    """Store another password hash, and end the user's sessions."""
    change(connection, users, user_id, password=password)
    remove(connection, sessions, user_id=user_id)


def remove_user(connection: Connection, user_id: str) -> None:
    """Remove a user with all sessions and tokens."""
    remove(connection, sessions, user_id=user_id)
    remove(connection, api_tokens, user_id=user_id)
    remove(connection, users, id=user_id)


def session(connection: Connection, token: str, now: str) -> tuple[User, str, str] | None:
    """Whose session this is, its CSRF token and its end; None if there is none or it has ended."""
    query = select(users, sessions.c.csrf, sessions.c.expires_at).join(sessions, sessions.c.user_id == users.c.id)
    row = connection.execute(query.where(sessions.c.token == hashed(token), sessions.c.expires_at > now)).one_or_none()
    return (
        None if row is None else (User(**dict(zip(users.columns.keys(), row, strict=False))), row.csrf, row.expires_at)
    )


def end_old_sessions(connection: Connection, now: str) -> None:
    """Forget sessions that have ended."""
    connection.execute(sessions.delete().where(sessions.c.expires_at <= now))


def add_api_token(connection: Connection, *, token: str, user_id: str, label: str, created_at: str) -> None:
    """Store a token by its hash, in place of an earlier one with the same label."""
    remove(connection, api_tokens, user_id=user_id, label=label)
    add(connection, api_tokens, {"token": hashed(token), "user_id": user_id, "label": label, "created_at": created_at})


def token_user(connection: Connection, token: str) -> User | None:
    """Whose token this is."""
    query = select(users).join(api_tokens, api_tokens.c.user_id == users.c.id)
    return one_of(connection, User, query.where(api_tokens.c.token == hashed(token)))


def failures(connection: Connection, subject: str) -> tuple[int, str]:
    """How often logging in failed for a name or an address, and until when it is refused."""
    query = select(login_failures.c.failures, login_failures.c.blocked_until)
    row = connection.execute(query.where(login_failures.c.subject == subject)).one_or_none()
    return (0, "") if row is None else (row.failures, row.blocked_until)


def set_failures(connection: Connection, subject: str, count: int, blocked_until: str) -> None:
    """Remember how often logging in failed; 0 forgets."""
    remove(connection, login_failures, subject=subject)
    if count:
        add(connection, login_failures, {"subject": subject, "failures": count, "blocked_until": blocked_until})
