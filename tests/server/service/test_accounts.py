"""Log-in, sessions, tokens: who gets in, and how slowly guessing goes."""

import pytest
from argon2 import PasswordHasher

from hushbid.errors import Conflict, InputError, NotAllowed, NotFound, Throttled
from hushbid.server.service import Service, accounts
from tests.server.support import PASSWORD, Installation, on_both_stores, opened, user


def test_a_user_logs_in_and_out(service: Service) -> None:
    ann = user(service, "ann")
    session = service.log_in("ann", PASSWORD, "10.0.0.1")
    assert session.principal == ann == service.principal_of(session.token)
    assert service.session_of(session.token).csrf == session.csrf
    service.log_out(session.token)
    with pytest.raises(NotAllowed):
        service.session_of(session.token)


def test_a_session_ends_by_itself(installation: Installation) -> None:
    with installation.start() as service:
        user(service, "ann")
        session = service.log_in("ann", PASSWORD, "10.0.0.1")
        installation.clock.pass_(hours=11)
        assert service.session_of(session.token)
        installation.clock.pass_(hours=1)
        with pytest.raises(NotAllowed):
            service.session_of(session.token)
        with pytest.raises(NotAllowed):
            service.principal_of(session.token)


def test_a_wrong_password_and_an_unknown_name_are_refused_alike(service: Service) -> None:
    user(service, "ann")
    refusals = set()
    for name, password in (("ann", "wrong password"), ("nobody", PASSWORD), ("ann", ""), ("x" * 101, PASSWORD)):
        with pytest.raises((NotAllowed, InputError)) as refusal:
            service.log_in(name, password, "10.0.0.1")
        refusals.add(str(refusal.value))
    assert "The name or the password is wrong." in refusals
    assert len(refusals) == 2


def test_after_some_failures_every_attempt_waits_twice_as_long(installation: Installation) -> None:
    with installation.start() as service:
        user(service, "ann")
        for _ in range(5):
            with pytest.raises(NotAllowed):
                service.log_in("ann", "wrong password", "10.0.0.1")
        with pytest.raises(Throttled, match="in 2 seconds"):
            service.log_in("ann", PASSWORD, "10.0.0.2")
        with pytest.raises(Throttled):
            service.log_in("somebody else", PASSWORD, "10.0.0.1")
        waits = []
        for _ in range(3):
            installation.clock.pass_(hours=2)
            with pytest.raises(NotAllowed):
                service.log_in("ann", "wrong password", "10.0.0.1")
            with pytest.raises(Throttled) as refusal:
                service.log_in("ann", PASSWORD, "10.0.0.1")
            waits.append(int(str(refusal.value).split()[-2]))
        assert waits == [4, 8, 16]
        installation.clock.pass_(hours=2)
        assert service.log_in("ann", PASSWORD, "10.0.0.1")
        with pytest.raises(NotAllowed):
            service.log_in("ann", "wrong password", "10.0.0.1")
        assert service.log_in("ann", PASSWORD, "10.0.0.1")


@on_both_stores
def test_attempts_made_at_once_are_counted_like_attempts_made_in_turn(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While one password is being hashed, the next is tried already."""
    user(service, "ann")
    hashed: list[str] = []

    def slowly(_: object, password: str) -> bool:
        hashed.append(password)
        if len(hashed) < 20:
            with pytest.raises((NotAllowed, Throttled)):
                service.log_in("ann", f"guess number {len(hashed)}", "10.0.0.1")
        return False

    monkeypatch.setattr(accounts, "password_fits", slowly)
    with pytest.raises(NotAllowed):
        service.log_in("ann", "guess number 0", "10.0.0.1")
    assert len(hashed) == 5
    with pytest.raises(Throttled):
        service.log_in("ann", PASSWORD, "10.0.0.2")


def test_passwords_are_hashed_with_a_memory_hard_function() -> None:
    real = PasswordHasher()
    assert real.type.name == "ID"
    assert real.memory_cost >= 19 * 1024
    assert accounts.password_hash(PASSWORD).startswith("$argon2id$")


@pytest.mark.parametrize("password", ["short", "x" * 1001, None, 123456789012])
def test_a_password_that_is_too_short_or_no_text_is_refused(service: Service, password: object) -> None:
    with pytest.raises(InputError, match="password must have 12 to 1000"):
        service.create_user("bob", "analyst", password)  # type: ignore[arg-type]


def test_names_are_unique_and_roles_are_two(service: Service) -> None:
    user(service, "ann")
    with pytest.raises(Conflict):
        service.create_user(" ann ", "auditor", PASSWORD)
    with pytest.raises(InputError, match="role"):
        service.create_user("bob", "participant", PASSWORD)  # type: ignore[arg-type]
    for name in ("", "a\0b", "\ud800", 5):
        with pytest.raises(InputError, match="name"):
            service.create_user(name, "analyst", PASSWORD)  # type: ignore[arg-type]


def test_api_tokens_work_until_they_are_revoked_or_replaced(service: Service) -> None:
    ann = user(service, "ann")
    first = service.create_api_token("ann", "script")
    assert service.principal_of(first) == ann
    second = service.create_api_token("ann", "script")
    with pytest.raises(NotAllowed):
        service.principal_of(first)
    service.revoke_api_token("ann", "script")
    with pytest.raises(NotAllowed):
        service.principal_of(second)
    with pytest.raises(NotFound):
        service.revoke_api_token("ann", "script")


def test_a_new_password_ends_sessions_and_a_removed_user_stays_out(service: Service) -> None:
    user(service, "ann")
    session = service.log_in("ann", PASSWORD, "10.0.0.1")
    token = service.create_api_token("ann", "script")
    service.set_password("ann", "another good password")
    with pytest.raises(NotAllowed):
        service.session_of(session.token)
    service.log_in("ann", "another good password", "10.0.0.1")
    service.remove_user("ann")
    with pytest.raises(NotAllowed):
        service.principal_of(token)
    with pytest.raises(NotFound):
        service.set_password("ann", PASSWORD)


def test_a_token_that_is_none_is_refused(service: Service) -> None:
    for token in ("", "x", "hb_p_", "hb_d_", "hb_a_x", "hb_s_x", "hb_p_\ud800", "hb_d_\ud800", "\0"):
        with pytest.raises(NotAllowed):
            service.principal_of(token)


def test_no_token_or_password_is_stored_as_it_is(service: Service) -> None:
    play = opened(service, 2)
    secrets = [
        PASSWORD,
        play.token(0),
        play.link(0),
        service.log_in("ann", PASSWORD, "10.0.0.1").token,
        service.create_api_token("ann", "script"),
    ]
    with service._read() as connection:
        from hushbid.server.store.schema import metadata

        stored = "".join(str(row) for table in metadata.sorted_tables for row in connection.execute(table.select()))
    assert [secret for secret in secrets if secret in stored] == []
    assert "10.0.0.1" not in stored
