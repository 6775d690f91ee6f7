"""Every error is problem+json with one sentence, and no error repeats what was sent."""

import logging
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from hushbid.client.refusals import LinkInvalid, refusal
from hushbid.errors import (
    AlreadyReleased,
    CampaignError,
    Conflict,
    HushbidError,
    InputError,
    NobodyToBuyFrom,
    RecordError,
    ServerFailed,
    Throttled,
    Unwritable,
)
from hushbid.server.http import serve
from hushbid.server.http.middleware import BODY_LIMIT, SECURITY_HEADERS
from hushbid.server.service import Service
from tests.extent import each
from tests.server.http.support import Live, sentence
from tests.server.support import NONCE, opened, stated

JSON = {"Content-Type": "application/json"}


def raw(live: Live, *parts: bytes) -> bytes:
    """Send bytes that no HTTP library would send, and read what comes back until the server closes."""
    address = urlsplit(live.url)
    with socket.create_connection((address.hostname, address.port), timeout=60) as connection:
        for part in parts:
            connection.sendall(part)
        found = b""
        while chunk := connection.recv(65536):
            found += chunk
    return found


def test_what_does_not_exist_is_not_found(shared: Live) -> None:
    with shared.client() as client:
        for path in ("/nothing", "/../../etc/passwd", "/campaigns/", "//", "/session/"):
            sentence(client.get(path), 404)
        root = httpx.get(f"{shared.url}/docs")
        sentence(root, 404)


@each(
    ("method", "path", "allowed"),
    [
        ("PATCH", "/campaigns", "GET, POST"),
        ("DELETE", "/session", None),
        ("PUT", "/session", "DELETE, GET, POST"),
        ("POST", "/participation/bid", "PUT"),
        ("HEAD", "/health", "GET"),
        ("OPTIONS", "/campaigns/c1", "DELETE, GET, PUT"),
        ("TRACE", "/health", "GET"),
    ],
)
def test_a_wrong_method_names_the_right_ones(shared: Live, method: str, path: str, allowed: str | None) -> None:
    with shared.client() as client:
        response = client.request(method, path)
    if allowed is None:
        assert response.status_code == 204
        return
    assert response.status_code == 405
    assert response.headers["allow"] == allowed
    if method != "HEAD":
        sentence(response, 405)


@pytest.mark.parametrize("path", ["/participation/bid", "/session", "/campaigns", "/campaigns/c1/payments"])
def test_a_body_that_says_it_is_too_large_is_not_read(shared: Live, path: str) -> None:
    told = raw(
        shared,
        f"PUT /api/v1{path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {BODY_LIMIT + 1}\r\n\r\n".encode(),
    )
    head, _, body = told.partition(b"\r\n\r\n")
    assert b" 413 " in head.splitlines()[0]
    assert b"application/problem+json" in head
    assert str(BODY_LIMIT).encode() in body


def test_a_body_that_grows_too_large_is_cut_off(shared: Live) -> None:
    def endless() -> Iterator[bytes]:
        yield b'{"bid": "'
        for _ in range(80):
            yield b"1" * 1024

    with shared.client(opened(shared.service).token(0)) as client:
        assert str(BODY_LIMIT) in sentence(client.put("/participation/bid", content=endless(), headers=JSON), 413)


def test_an_upload_of_people_may_be_large_but_only_an_analyst_is_listened_to(shared: Live) -> None:
    people = {"people": [{"id": f"person-{row:06d}@example.org"} for row in range(3000)]}
    assert len(str(people)) > BODY_LIMIT
    with shared.client() as nobody:
        sentence(nobody.post("/campaigns/c1/participants", json=people), 401)
    with shared.client(shared.auditor) as auditor:
        sentence(auditor.post("/campaigns/c1/participants", json=people), 403)
    campaign = opened(shared.service).id
    with shared.client(shared.analyst) as analyst:
        assert "has not" not in sentence(analyst.post(f"/campaigns/{campaign}/participants", json=people), 409)


def test_a_request_that_does_not_go_on_is_given_up(shared: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "PATIENCE", 0.05)
    assert raw(shared) == b""
    assert raw(shared, b"GET /api/v1/health HTTP/1.1\r\nHost: ") == b""
    head = b"PUT /api/v1/participation/bid HTTP/1.1\r\nHost: localhost\r\nContent-Length: 20\r\n"
    head += b"Content-Type: application/json\r\n"
    token = opened(shared.service).token(0).encode()
    assert raw(shared, head, b"Authorization: Bearer " + token + b"\r\n\r\n", b"{") == b""


def test_drops_that_keep_falling_gain_a_request_no_time(shared: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte every few milliseconds: each is in time, all together are not."""
    monkeypatch.setattr(serve, "PATIENCE", 0.2)
    head = b"GET /api/v1/health HTTP/1.1\r\nX-Long: " + b"x" * 20_000
    with socket.create_connection(("127.0.0.1", int(shared.url.rpartition(":")[2])), timeout=60.0) as slow:
        slow.settimeout(0.01)
        for row in range(len(head)):
            slow.send(head[row : row + 1])
            try:
                told = slow.recv(1)
            except TimeoutError:
                continue
            except ConnectionError:
                told = b""
            assert told == b""
            break
        assert 0 < row < 5_000


def test_slow_connections_cannot_keep_others_out(shared: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "MOST_CONNECTIONS", 12)
    port = int(shared.url.rpartition(":")[2])
    with ExitStack() as all_:
        slow = [all_.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60.0)) for _ in range(40)]
        for one in slow:
            with suppress(ConnectionError):
                one.sendall(b"GET /api/v1/health HTTP/1.1\r\nX-Slow: ")
        for _ in range(3):
            with shared.client() as client:
                assert client.get("/health").status_code == 200
        gone = 0
        for one in slow:
            one.setblocking(False)
            try:
                gone += one.recv(1) == b""
            except BlockingIOError:
                pass
            except ConnectionError:
                gone += 1
        assert gone >= 28  # the newest dozen at most may still be waited for


def test_a_connection_serves_one_request_after_the_other(shared: Live) -> None:
    one = b"GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    last = b"GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    assert raw(shared, one, one[:20], one[20:], one + last).count(b"HTTP/1.1 200 OK") == 4


def test_a_head_that_grows_too_large_is_refused(shared: Live) -> None:
    # The last line is the one too many: bytes that nobody reads any more would reset the connection under the answer.
    line = b"X-Long: " + b"x" * 1000 + b"\r\n"
    told = raw(shared, b"GET /api/v1/health HTTP/1.1\r\n", *[line] * 65)
    head, _, body = told.partition(b"\r\n\r\n")
    assert b" 431 " in head.splitlines()[0]
    assert b"application/problem+json" in head
    assert b"too large" in body
    one = raw(shared, b"GET /api/v1/health HTTP/1.1\r\nX-Long: ", b"x" * 70_000)
    assert b" 431 " in one.splitlines()[0]


@pytest.mark.parametrize(
    "garbage", [b"\x16\x03\x01\x02\x00\x01", b"GET / HTTP/9.9\r\n\r\n", b"hb_p_secret \r\n\r\n", b"GET\r\n\r\n"]
)
def test_what_is_not_http_is_refused_as_a_problem(shared: Live, garbage: bytes) -> None:
    head, _, body = raw(shared, garbage).partition(b"\r\n\r\n")
    assert b" 400 " in head.splitlines()[0]
    assert b"application/problem+json" in head
    assert b"secret" not in head + body


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (Conflict("So."), 409),
        (AlreadyReleased("So."), 409),
        (NobodyToBuyFrom("So."), 422),
        (Throttled("So."), 429),
        (ServerFailed("So."), 503),
        (Unwritable("So."), 503),
        (CampaignError("So."), 500),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_refusal_of_the_service_has_its_status(
    shared: Live, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(Service, "campaign", refuse)
    with shared.client(shared.analyst) as client:
        response = client.get("/campaigns/c1")
    assert sentence(response, status) == "So."
    assert ("retry-after" in response.headers) == (status == 503)


def test_a_problem_has_field_and_waiting_time_from_the_error_and_not_from_its_sentence(
    shared: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(error: HushbidError) -> httpx.Response:
        def refuse(*_: object, **__: object) -> None:
            raise error

        monkeypatch.setattr(Service, "campaign", refuse)
        with shared.client(shared.analyst) as client:
            return client.get("/campaigns/c1")

    told = "Something must be else, in 5 seconds."
    assert "errors" not in refused(InputError(told)).json()
    found = refused(InputError(told, field="bounds"))
    assert found.json()["errors"] == [{"field": "bounds", "problem": told}]
    found = refused(InputError(told, field="people", row=3))
    assert found.json()["errors"] == [{"field": "people", "problem": told, "row": 3}]
    assert "retry-after" not in refused(Throttled(told)).headers
    assert refused(Throttled(told, retry_after=6.5)).headers["retry-after"] == "7"


@pytest.mark.parametrize("title", ["", "  ", "x" * 201])
def test_a_field_has_one_name_and_one_sentence_wherever_it_is_sent(shared: Live, title: str) -> None:
    campaign = opened(shared.service).id
    with shared.client(shared.analyst) as client:
        draft = client.post("/campaigns", json=stated(title=title)).json()
        copy = client.post(f"/campaigns/{campaign}/copy", json={"title": title}).json()
        ahead = client.post("/preview", json={"settings": stated(title=title), "people": 5}).json()
    assert draft["errors"] == copy["errors"]
    [fault] = draft["errors"]
    assert fault["field"] == "title"
    assert fault["problem"].startswith("The title must be a text of 1 to 200 characters")
    assert [one["field"] for one in ahead["errors"]] == ["settings.title"]


def test_a_refused_secret_says_why_and_since_when_for_programs_too(shared: Live) -> None:
    def told(secret: str) -> tuple[str, bool]:
        with shared.client(secret) as client:
            response = client.get("/participation")
        found = refusal(response.status_code, response.content)
        assert isinstance(found, LinkInvalid)
        return found.reason, found.at is not None

    play = opened(shared.service)
    ended = play.token(0)
    shared.service.renew_link(play.who, play.id, play.links[0].label)
    assert told(ended) == ("ended", True)
    assert told("hb_d_" + 43 * "x") == ("unknown", False)


@pytest.mark.parametrize("error", [ZeroDivisionError("bid was 1.23456"), RecordError("bid was 1.23456")])
def test_a_fault_is_told_and_logged_without_what_it_says(
    shared: Live, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(Service, "participation", fail)
    with shared.client(opened(shared.service).token(0)) as client, caplog.at_level(logging.INFO):
        told = sentence(client.get("/participation"), 500)
    assert "1.23456" not in told
    assert "1.23456" not in caplog.text
    assert f"fault {type(error).__name__} at /api/v1/participation" in caplog.text
    assert "test_problems.py" in caplog.text, "the way through the code is there"


SECRET = "8.675309"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/participation/bid", {"bid": SECRET}),
        ("/participation/bid", {"bid": [float(SECRET)]}),
        ("/participation/bid", {SECRET: 1.5}),
        ("/participation/bid", {"bid": {SECRET: SECRET}}),
        ("/participation/bid", [SECRET]),
        ("/participation/bid", SECRET),
        ("/participation/bid", {"bid": -float(SECRET)}),
        ("/participation/bid", {"bid": 1.5, "limit": SECRET}),
        ("/participation/bid", {"bid": 1.5, "limit": -float(SECRET)}),
        ("/participation/bid", {"bid": 1.5, "limit": [float(SECRET)]}),
        ("/participation/bid", {"bid": 1.5, "value": float(SECRET)}),
        ("/participation/delivery", {"nonce": NONCE, "value": SECRET}),
        ("/participation/delivery", {"nonce": NONCE, "message": SECRET}),
        ("/participation/delivery", {"nonce": NONCE, "value": float(SECRET), "message": {}}),
        ("/participation/delivery", {"nonce": NONCE, "message": {SECRET: SECRET}}),
        ("/participation/delivery", {"nonce": SECRET, "value": 5.0}),
    ],
    ids=str,
)
def test_a_refusal_never_repeats_a_value(shared: Live, caplog: pytest.LogCaptureFixture, path: str, body: Any) -> None:
    with shared.client(opened(shared.service).token(0)) as client, caplog.at_level(logging.DEBUG):
        response = client.put(path, json=body)
        client.get("/health")  # its answer comes after the first one's line in the log
    assert response.status_code in (409, 422)
    assert SECRET not in response.text + str(response.headers)
    sentence(response, response.status_code)
    ours = [record.getMessage() for record in caplog.records if record.name.startswith(("hushbid", "uvicorn"))]
    assert ours
    assert SECRET not in "\n".join(ours)


def test_a_body_that_is_not_json_is_refused_without_a_word_of_it(shared: Live) -> None:
    with shared.client(opened(shared.service).token(0)) as client:
        for content, headers in (
            (b'{"bid": 8.675309', JSON),
            (b"bid=8.675309", {"Content-Type": "application/x-www-form-urlencoded"}),
            (b'{"bid": 8.675309}', {"Content-Type": "text/plain"}),
            (b'{"bid": 8.675309}', {}),
            (b"\xff\xfe8.675309", JSON),
            (b'{"bid": 1e999}', JSON),
            (b'{"bid": ' + b"8" * 5000 + b"}", JSON),
            (b"[" * 60_000, JSON),
            (b"", JSON),
        ):
            response = client.put("/participation/bid", content=content, headers=headers)
            sentence(response, response.status_code)
            assert response.status_code in (400, 422), content[:40]
            assert "675309" not in response.text


def test_every_response_has_the_security_headers(shared: Live) -> None:
    with shared.client() as client:
        for response in (client.get("/health"), client.get("/nothing"), client.get("/campaigns")):
            for name, value in SECURITY_HEADERS.items():
                assert response.headers[name] == value
            assert "server" not in response.headers
            assert "strict-transport-security" not in response.headers
