"""Who may do what: every endpoint for every role, and nobody ever sees another participant's anything."""

import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from hushbid.server.http import create_app
from hushbid.server.http.app import all_routes
from hushbid.server.pages import add_pages
from tests.extent import each
from tests.server.http.support import PATIENCE, SETTINGS, Live, sentence
from tests.server.support import NONCE, Play, drafted, opened, released

ALLOWED = {
    "anybody": frozenset({"nobody", "analyst", "auditor", "participant"}),
    "staff": frozenset({"analyst", "auditor"}),
    "analyst": frozenset({"analyst"}),
    "secret": frozenset({"participant"}),
}
# A body that has the right form, where one is needed.
BODIES: dict[str, Any] = {
    "draft": SETTINGS,
    "change": SETTINGS,
    "preview": {"settings": SETTINGS, "people": 3},
    "copy": {"title": "Again"},
    "preview_campaign": {"people": 3},
    "invite": {"count": 2},
    "release": {},
    "mark_paid": {},
    "mark_unpaid": {"labels": ["P-00001"]},
    "renew_link": {"label": "P-00001"},
    "close_campaign": {},
    "cancel": {},
    "state_payout": {"payout": "ann@example.org"},
    "agree": {"version": "0" * 64},
    "bid": {"bid": 1.5},
    "deliver": {"value": 5, "nonce": NONCE},
}
# A browser's log-in and a link's exchange have rules of their own, tested in test_sessions.py and test_links.py.
ELSEWHERE = {("POST", "/session"), ("GET", "/session"), ("DELETE", "/session"), ("PUT", "/participation/secret")}
ELSEWHERE |= {("DELETE", "/participation/secret")}
OPERATIONS = {
    (method, route.path.removeprefix("/api/v1")): route for route in all_routes() for method in route.methods or ()
}
# Every other operation of the interface, with a body, and who may use it.
MATRIX: dict[tuple[str, str], tuple[frozenset[str], Any]] = {
    operation: (ALLOWED[route.by], BODIES.get(route.name))
    for operation, route in OPERATIONS.items()
    if operation not in ELSEWHERE
}
ROLES = ("nobody", "analyst", "auditor", "participant", "forged", "revoked")


@pytest.fixture(scope="module")
def play(shared: Live) -> Play:
    return opened(shared.service, 3)


@pytest.fixture(scope="module")
def tokens(shared: Live, play: Play) -> dict[str, str | None]:
    service = shared.service
    revoked = play.token(2)
    service.renew_link(play.who, play.id, play.links[2].label)
    return {
        "nobody": None,
        "analyst": shared.analyst,
        "auditor": shared.auditor,
        "participant": play.token(0),
        "forged": play.token(0)[:-4] + "AAAA",
        "revoked": revoked,
    }


def ask(client: httpx.Client, method: str, path: str, body: Any, campaign: str) -> httpx.Response:
    content = {} if body is None else {"json": body}
    return client.request(method, path.format(campaign=campaign, participant="p0"), **content)


def test_the_description_has_every_operation_with_who_may_use_it(shared: Live) -> None:
    paths = create_app(shared.service, pages=add_pages).openapi()["paths"]
    described = {
        (method.upper(), path.removeprefix("/api/v1")): operation.get("security", [])
        for path, methods in paths.items()
        for method, operation in methods.items()
    }
    staff = ["token", "session"]
    schemes = {"anybody": [], "staff": staff, "analyst": staff, "link": ["link"], "secret": ["secret"]}
    expected = {operation: [{name: []} for name in schemes[route.by]] for operation, route in OPERATIONS.items()}
    assert described == expected


def test_only_analysts_change_campaigns_and_only_participants_their_part() -> None:
    """By address and method alone, whatever the registry says."""
    public = {("GET", "/health"), ("GET", "/keys"), ("GET", "/campaigns/{campaign}/public")}
    public |= {("POST", "/session"), ("DELETE", "/session")}
    names = {"payments.csv", "payments.xlsx", "awaited.csv", "awaited.xlsx"}  # what names people
    for operation, route in OPERATIONS.items():
        method, path = operation
        if operation in public:
            assert route.by == "anybody", operation
        elif path.startswith("/participation"):
            assert route.by == ("link" if operation == ("PUT", "/participation/secret") else "secret"), operation
        else:
            assert route.by == ("analyst" if method != "GET" or path.split("/")[-1] in names else "staff"), operation


WITH_BODIES = [operation for operation, route in OPERATIONS.items() if route.body_field is not None]


@each("operation", [one for one in WITH_BODIES if one != ("POST", "/session")])
def test_nothing_of_a_body_is_read_before_it_is_clear_who_sends_it(
    shared: Live, play: Play, operation: tuple[str, str]
) -> None:
    """The body is announced and never sent: whoever waits for it gets no answer."""
    method, path = operation
    address = urlsplit(shared.url)
    head = f"{method} /api/v1{path.format(campaign=play.id)} HTTP/1.1\r\nHost: {address.netloc}\r\n"
    head += "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n"
    with socket.create_connection((address.hostname, address.port), timeout=PATIENCE) as connection:
        connection.sendall(head.encode())
        assert connection.recv(12) == b"HTTP/1.1 401"


@each("role", ROLES)
@each("operation", MATRIX)
def test_every_endpoint_is_open_to_its_roles_and_to_nobody_else(
    shared: Live, play: Play, tokens: dict[str, str | None], operation: tuple[str, str], role: str
) -> None:
    allowed, body = MATRIX[operation]
    campaign = drafted(shared.service, 3).id if role == "analyst" and operation[0] != "GET" else play.id
    with shared.client(tokens[role]) as client:
        response = ask(client, *operation, body, campaign)
    if role in allowed or "nobody" in allowed:
        assert response.status_code not in (401, 403), response.text
        assert response.status_code < 500
    elif role in ("nobody", "forged", "revoked"):
        sentence(response, 401)
        assert response.headers["www-authenticate"] == "Bearer"
    else:
        sentence(response, 403)


@pytest.mark.parametrize("role", ["nobody", "auditor", "participant", "forged"])
def test_who_may_not_see_campaigns_cannot_find_out_which_exist(
    shared: Live, play: Play, tokens: dict[str, str | None], role: str
) -> None:
    with shared.client(tokens[role]) as client:
        answers = [client.post(f"/campaigns/{name}/open") for name in (play.id, "c00000000000000000000")]
    assert answers[0].status_code == answers[1].status_code in (401, 403)
    assert answers[0].content == answers[1].content


def test_a_draft_does_not_exist_for_the_public(shared: Live) -> None:
    with shared.client() as client:
        sentence(client.get(f"/campaigns/{drafted(shared.service).id}/public"), 404)


def everything_she_sees(live: Live, token: str) -> Iterator[bytes]:
    with live.client(token) as client:
        for method, path in MATRIX:
            if method == "GET" and path.startswith("/participation"):
                yield client.get(path).content


BIDS = {"xanthippe@example.org": 1.13719, "bartholomew@example.org": 1.25937, "quentin@example.org": 1.41593}


def conducted(live: Live, setting: str, title: str) -> Play:
    """A released campaign in which everybody bid something that stands nowhere else."""
    play = opened(live.service, list(BIDS), setting=setting, title=title)
    for link, bid in zip(play.seats, BIDS.values(), strict=True):
        live.service.bid(link.token, bid)
    assert play.decide().state == "done"
    play.deliver()
    assert play.release().state == "done"
    return play


@pytest.mark.parametrize("setting", ["central", "local"])
def test_a_participant_never_sees_anything_of_another(either: Live, setting: str) -> None:
    play, other = conducted(either, setting, "First"), conducted(either, setting, "Second")
    secrets = []
    for link, second in zip(play.seats, other.seats, strict=True):
        with either.client(link.token) as client:
            held = client.get("/participation/export").json()
        own = held["participant"]
        names = {link.label, link.label.partition("@")[0], str(BIDS[link.label])}
        secrets.append(
            names | {own["id"], own["salt"], held["privacy_account"]["person"], link.token, second.id, second.token}
        )
    everywhere = set().union(*secrets)
    assert len(everywhere) == sum(map(len, secrets)), "people differ in everything"
    for link, own in zip(play.seats, secrets, strict=True):
        seen = b"\n".join(everything_she_sees(either, link.token))
        assert [value for value in everywhere - own if value.encode() in seen] == []
        assert len([value for value in own if value.encode() in seen]) == 6, "the search finds what is there"


def test_an_auditor_sees_pseudonyms_where_an_analyst_sees_names(either: Live) -> None:
    play = released(either.service, ["ann@example.org", "bob@example.org", "cy@example.org"])
    found = {}
    for role, token in (("analyst", either.analyst), ("auditor", either.auditor)):
        with either.client(token) as client:
            pages = [
                ask(client, method, path, None, play.id)
                for (method, path), (allowed, _) in MATRIX.items()
                if method == "GET" and role in allowed and path != "/health"
            ]
        assert [page.status_code for page in pages] == [200] * len(pages)
        found[role] = b"\n".join(page.content for page in pages)
    assert b"bob@example.org" in found["analyst"]
    assert b"bob@example.org" not in found["auditor"]
    assert b"hb_p_" not in found["auditor"] + found["analyst"], "links are shown once, to whoever made them"
