"""Who may do what: every endpoint for every role, and nobody ever sees another participant's anything."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from hushbid.server.api import create_app
from hushbid.server.pages import add_pages
from tests.server.api.support import SETTINGS, Live, sentence
from tests.server.support import NONCE, Play, drafted, opened, released

EVERYBODY = frozenset({"nobody", "analyst", "auditor", "participant"})
STAFF = frozenset({"analyst", "auditor"})
ANALYST = frozenset({"analyst"})
PARTICIPANT = frozenset({"participant"})

# Every operation of the interface, with a body that has the right form, and who may use it.
MATRIX: dict[tuple[str, str], tuple[frozenset[str], Any]] = {
    ("GET", "/health"): (EVERYBODY, None),
    ("GET", "/keys"): (EVERYBODY, None),
    ("GET", "/campaigns/{campaign}/public"): (EVERYBODY, None),
    ("GET", "/campaigns"): (STAFF, None),
    ("GET", "/campaigns/{campaign}"): (STAFF, None),
    ("GET", "/campaigns/{campaign}/participants"): (STAFF, None),
    ("GET", "/campaigns/{campaign}/jobs"): (STAFF, None),
    ("GET", "/campaigns/{campaign}/events"): (STAFF, None),
    ("GET", "/campaigns/{campaign}/events.jsonl"): (STAFF, None),
    ("GET", "/campaigns/{campaign}/record"): (STAFF, None),
    ("GET", "/campaigns/{campaign}/release"): (STAFF, None),
    ("GET", "/campaigns/{campaign}/report"): (STAFF, None),
    ("GET", "/campaigns/{campaign}/payments.csv"): (ANALYST, None),
    ("GET", "/campaigns/{campaign}/payments.xlsx"): (ANALYST, None),
    ("GET", "/campaigns/{campaign}/awaited.csv"): (ANALYST, None),
    ("GET", "/campaigns/{campaign}/awaited.xlsx"): (ANALYST, None),
    ("GET", "/campaigns/{campaign}/account"): (STAFF, None),
    ("GET", "/campaigns/{campaign}/agreements.csv"): (STAFF, None),
    ("GET", "/campaigns/{campaign}/agreements.json"): (STAFF, None),
    ("GET", "/privacy-account"): (STAFF, None),
    ("POST", "/campaigns"): (ANALYST, SETTINGS),
    ("POST", "/preview"): (ANALYST, {"settings": SETTINGS, "people": 3}),
    ("POST", "/campaigns/{campaign}/copy"): (ANALYST, {"title": "Again"}),
    ("PUT", "/campaigns/{campaign}"): (ANALYST, SETTINGS),
    ("DELETE", "/campaigns/{campaign}"): (ANALYST, None),
    ("POST", "/campaigns/{campaign}/preview"): (ANALYST, {"people": 3}),
    ("POST", "/campaigns/{campaign}/participants"): (ANALYST, {"count": 2}),
    ("DELETE", "/campaigns/{campaign}/participants/{participant}"): (ANALYST, None),
    ("POST", "/campaigns/{campaign}/open"): (ANALYST, None),
    ("POST", "/campaigns/{campaign}/close-bidding"): (ANALYST, None),
    ("POST", "/campaigns/{campaign}/release"): (ANALYST, {}),
    ("POST", "/campaigns/{campaign}/payments"): (ANALYST, {}),
    ("POST", "/campaigns/{campaign}/unpaid"): (ANALYST, {"labels": ["P-00001"]}),
    ("POST", "/campaigns/{campaign}/links"): (ANALYST, {"label": "P-00001"}),
    ("POST", "/campaigns/{campaign}/close"): (ANALYST, {}),
    ("POST", "/campaigns/{campaign}/cancel"): (ANALYST, {}),
    ("GET", "/participation"): (PARTICIPANT, None),
    ("GET", "/participation/menu"): (PARTICIPANT, None),
    ("GET", "/participation/receipt"): (PARTICIPANT, None),
    ("GET", "/participation/export"): (PARTICIPANT, None),
    ("GET", "/participation/privacy-account"): (PARTICIPANT, None),
    ("GET", "/participation/payout"): (PARTICIPANT, None),
    ("PUT", "/participation/payout"): (PARTICIPANT, {"payout": "ann@example.org"}),
    ("DELETE", "/participation/payout"): (PARTICIPANT, None),
    ("POST", "/participation/link"): (PARTICIPANT, None),
    ("GET", "/participation/devices"): (PARTICIPANT, None),
    ("DELETE", "/participation/devices"): (PARTICIPANT, None),
    ("GET", "/participation/consent"): (PARTICIPANT, None),
    ("PUT", "/participation/agreement"): (PARTICIPANT, {"version": "0" * 64}),
    ("PUT", "/participation/bid"): (PARTICIPANT, {"bid": 1.5}),
    ("PUT", "/participation/delivery"): (PARTICIPANT, {"value": 5, "nonce": NONCE}),
    ("POST", "/participation/decline"): (PARTICIPANT, None),
    ("POST", "/participation/withdrawal"): (PARTICIPANT, None),
}
# A browser's log-in and a link's exchange have rules of their own, tested in test_sessions.py and test_links.py.
ELSEWHERE = {("POST", "/session"), ("GET", "/session"), ("DELETE", "/session"), ("PUT", "/participation/secret")}
ELSEWHERE |= {("DELETE", "/participation/secret")}
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


def test_the_matrix_names_every_operation(shared: Live) -> None:
    paths = create_app(shared.service, pages=add_pages).openapi()["paths"]
    operations = {
        (method.upper(), path.removeprefix("/api/v1")) for path, methods in paths.items() for method in methods
    }
    assert operations == set(MATRIX) | ELSEWHERE


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("operation", MATRIX, ids=" ".join)
def test_every_endpoint_is_open_to_its_roles_and_to_nobody_else(
    shared: Live, play: Play, tokens: dict[str, str | None], operation: tuple[str, str], role: str
) -> None:
    allowed, body = MATRIX[operation]
    campaign = drafted(shared.service, 3).id if role == "analyst" and operation[0] != "GET" else play.id
    with shared.client(tokens[role]) as client:
        response = ask(client, *operation, body, campaign)
    if role in allowed or allowed == EVERYBODY:
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
