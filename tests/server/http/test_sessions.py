"""Logging in: cookies that only this site can use, forged requests refused, guessing slowed down."""

import json
from contextlib import closing
from http.cookies import SimpleCookie

import httpx
import pytest

from hushbid.server.service import Service
from tests.server.http.support import SETTINGS, Live, live, sentence, serving
from tests.server.support import PASSWORD, Installation, user

NAME = {"name": "ann", "password": PASSWORD}


def logged_in(live: Live) -> tuple[httpx.Client, str]:
    """A client with a session cookie, and its CSRF token."""
    client = live.client()
    response = client.post("/session", json=NAME)
    assert response.status_code == 200
    return client, response.json()["csrf"]


def cookie_of(response: httpx.Response) -> SimpleCookie:
    return SimpleCookie(response.headers["set-cookie"])


def test_logging_in_gives_a_cookie_that_scripts_and_other_sites_cannot_use(shared: Live) -> None:
    with shared.client() as client:
        response = client.post("/session", json=NAME)
    [(name, cookie)] = cookie_of(response).items()
    assert name == "hushbid"
    assert cookie["httponly"] is True
    assert cookie["samesite"] == "strict"
    assert (cookie["path"], cookie["domain"]) == ("/", "")
    assert 0 < int(cookie["max-age"]) <= 12 * 3600
    assert cookie.value not in response.text
    assert response.json() | {"csrf": "", "expires_at": ""} == {
        "name": "ann",
        "role": "analyst",
        "csrf": "",
        "expires_at": "",
    }


def test_over_https_the_cookie_is_secure_and_bound_to_the_host(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("https")
    with (
        Installation(folder, None).start() as service,
        live(service, https=True) as running,
        running.client() as client,
    ):
        response = client.post("/session", json=NAME)
        [(name, cookie)] = cookie_of(response).items()
        assert name == "__Host-hushbid"
        assert cookie["secure"] is True
        assert response.headers["strict-transport-security"].startswith("max-age=")
        client.cookies.clear()
        client.cookies.set("hushbid", cookie.value)
        sentence(client.get("/session"), 401)


def test_a_change_with_a_cookie_needs_the_sessions_csrf_token(shared: Live) -> None:
    client, csrf = logged_in(shared)
    other, other_csrf = logged_in(shared)
    with closing(client), closing(other):
        assert client.get("/campaigns").status_code == 200
        for headers in ({}, {"X-CSRF-Token": ""}, {"X-CSRF-Token": other_csrf}, {"X-CSRF-Token": "ü"}):
            encoded = {name: value.encode() for name, value in headers.items()}
            refused = client.post("/campaigns", json=SETTINGS, headers=encoded)  # type: ignore[arg-type]
            assert "X-CSRF-Token" in sentence(refused, 403)
            sentence(client.delete("/session", headers=encoded), 403)  # type: ignore[arg-type]
        assert client.post("/campaigns", json=SETTINGS, headers={"X-CSRF-Token": csrf}).status_code == 201
        assert other.get("/session").json()["csrf"] == other_csrf


def test_another_site_cannot_log_somebody_in_with_a_form(shared: Live) -> None:
    with shared.client() as client:
        for kind in ("application/x-www-form-urlencoded", "text/plain", "multipart/form-data; boundary=x"):
            content = json.dumps(NAME)
            response = client.post("/session", content=content, headers={"Content-Type": kind})
            sentence(response, 422)
            assert "set-cookie" not in response.headers


def test_a_bearer_token_needs_no_csrf_token_and_goes_before_a_cookie(shared: Live) -> None:
    client, _ = logged_in(shared)
    with closing(client):
        bearer = {"Authorization": f"Bearer {shared.analyst}"}
        assert client.post("/campaigns", json=SETTINGS, headers=bearer).status_code == 201
        sentence(client.post("/campaigns", json=SETTINGS, headers={"Authorization": f"Bearer {shared.auditor}"}), 403)
        sentence(client.get("/campaigns", headers={"Authorization": "Bearer nonsense"}), 401)


def test_after_logging_out_the_cookie_is_worth_nothing(shared: Live) -> None:
    client, csrf = logged_in(shared)
    kept = dict(client.cookies)
    with closing(client):
        response = client.delete("/session", headers={"X-CSRF-Token": csrf})
        assert response.status_code == 204
        assert not client.cookies
        assert client.delete("/session").status_code == 204, "again is harmless"
    with shared.client() as thief:
        thief.cookies.update(kept)
        sentence(thief.get("/session"), 401)
        sentence(thief.get("/campaigns"), 401)


def test_an_api_token_has_no_session(shared: Live) -> None:
    with shared.client(shared.analyst) as client:
        assert "no session" in sentence(client.get("/session"), 401)


def test_a_session_cannot_be_chosen_by_somebody_else(shared: Live) -> None:
    with shared.client() as client:
        client.cookies.set("hushbid", "hb_s_chosen-by-an-attacker")
        response = client.post("/session", json=NAME)
        assert cookie_of(response)["hushbid"].value != "hb_s_chosen-by-an-attacker"


def test_an_address_is_taken_from_a_trusted_proxy_only(installation: Installation) -> None:
    def failures_until_throttled(service: Service, trusted: tuple[str, ...]) -> int:
        with serving(service, proxies=trusted) as url, httpx.Client(base_url=f"{url}/api/v1") as client:
            for attempt in range(12):
                wrong = {"name": f"guess {attempt} {trusted}", "password": "a wrong password"}
                forwarded = {"X-Forwarded-For": f"198.51.100.{attempt}"}
                if client.post("/session", json=wrong, headers=forwarded).status_code == 429:
                    return attempt
        return 12

    with installation.start() as service:
        user(service, "ann")
        assert failures_until_throttled(service, ("127.0.0.1",)) == 12, "each came from another address"
        assert failures_until_throttled(service, ()) < 12, "all came from this machine, whatever they said"


def test_one_network_of_ipv6_counts_as_one_address(installation: Installation) -> None:
    with installation.start() as service:
        user(service, "ann")
        with serving(service, proxies=("127.0.0.1",)) as url, httpx.Client(base_url=f"{url}/api/v1") as client:
            codes = [
                client.post(
                    "/session",
                    json={"name": f"guess {attempt}", "password": "a wrong password"},
                    headers={"X-Forwarded-For": f"2001:db8:1:2::{attempt + 1:x}"},
                ).status_code
                for attempt in range(8)
            ]
    assert codes[-1] == 429
