"""Hostile input in every field: refused with a sentence or stored as it is, on both stores; nothing breaks."""

import json
from typing import Any

from tests.extent import each
from tests.server.http.support import SETTINGS, Live, sentence
from tests.server.support import drafted, on_both_stores, stated, with_fields

pytestmark = on_both_stores

TEXTS = [
    "<script>alert(1)</script>",
    "'; DROP TABLE participants; --",
    "{{7*7}} ${7*7} %s %n %00",
    "\u202eright to left\u202c",
    "\U0001f4a9" * 20,
    "e\u0301" * 50,
    "../../../etc/passwd",
    "a\tb\nc",
]
REFUSED = ["\x00", "a\x00b", "\ud800", "\x1b[31m", "x" * 20_001, "", " "]


def asked(live: Live, method: str, path: str, body: Any) -> Any:
    """The answer, which is never a fault."""
    with live.client(live.analyst) as client:
        content = json.dumps(body, ensure_ascii=True).encode()
        response = client.request(method, path, content=content, headers={"Content-Type": "application/json"})
    assert response.status_code < 500, response.text
    if response.status_code >= 400:
        sentence(response, response.status_code)
    return response


@each("text", TEXTS)
def test_text_is_kept_as_it_is(either: Live, text: str) -> None:
    settings = stated(title=text, question=text, description=text)
    drafted_one = asked(either, "POST", "/campaigns", settings)
    assert drafted_one.status_code == 201
    path = f"/campaigns/{drafted_one.json()['id']}"
    assert asked(either, "GET", path, None).json()["settings"]["title"] == drafted_one.json()["settings"]["title"]
    people = {"people": [{"id": text}, {"id": "somebody else"}]}
    invited = asked(either, "POST", f"{path}/participants", people)
    assert invited.status_code in (201, 422)
    if invited.status_code == 201:
        label = invited.json()["invitations"][0]["label"]
        assert asked(either, "POST", f"{path}/links", {"label": label}).status_code in (201, 422)


@each("text", REFUSED)
def test_text_that_no_store_or_page_can_hold_is_refused(either: Live, text: str) -> None:
    play = drafted(either.service, 2)
    for method, path, body in (
        ("POST", "/campaigns", stated(title=text)),
        ("POST", "/campaigns", stated(prior=text)),
        ("POST", "/campaigns", stated(prior={text: "uniform:1,2"})),
        ("POST", "/campaigns", stated(currency=text)),
        ("POST", "/campaigns", stated(bid_by=text)),
        ("POST", f"/campaigns/{play.id}/participants", {"people": [{"id": text}]}),
        ("POST", f"/campaigns/{play.id}/participants", {"people": [{"id": "a", "group": text or "x"}]}),
        ("POST", f"/campaigns/{play.id}/links", {"label": text}),
        ("POST", f"/campaigns/{play.id}/cancel", {"reason": text}),
        ("POST", "/session", {"name": text, "password": "x"}),
        ("POST", "/session", {"name": "ann", "password": text or "\x00"}),
        ("POST", f"/campaigns/{play.id}/payments", {"labels": [text]}),
    ):
        assert asked(either, method, path, body).status_code in (401, 404, 409, 422, 429), (path, body)


@each(
    "changes",
    [
        {"buyer_weight": 1e308},
        {"buyer_weight": 5e-324},
        {"buyer_weight": 10**400},
        {"buyer_weight": -1},
        *(
            {"buyer_weight": None, name: 10**400}
            for name in ("budget", "hard_budget", "standard_error", "max_correlation")
        ),
        {"buyer_weight": None},
        {"buyer_weight": None, "budget": 0.05, "hard_budget": 0.05},
        {"buyer_weight": None, "budget": 1e3},
        {"buyer_weight": None, "hard_budget": 0},
        {"buyer_weight": None, "standard_error": "small"},
        {"buyer_weight": None, "budget": 1, "setting": "local"},
        {"max_correlation": 1.5},
        {"max_correlation": True},
        {"bounds": [0, 1e308]},
        {"bounds": [1, 1]},
        {"bounds": [2, 1]},
        {"bounds": [0, 1, 2]},
        {"bounds": "0,1"},
        {"max_privacy_loss": 1e-9},
        {"max_privacy_loss": 1e9},
        {"variance": 1e9},
        {"decimals": 2**70},
        {"decimals": -1},
        {"participation_fee": 2**63},
        {"spending_limit": -5},
        {"minimum_people": 0},
        {"retention_days": 10**9},
        *({name: 10**400} for name in ("spending_limit", "participation_fee", "minimum_people", "retention_days")),
        *({name: 10**400} for name in ("decimals", "max_privacy_loss", "variance")),
        {"bounds": [0, 10**400]},
        {"minimum_people": 10**4299},
        {"prior": {"family": "uniform", "low": 0, "high": 10**400}},
        {"prior": {"family": "empirical", "samples": [1, 10**400]}},
        {"prior": "uniform:1e308,1e309"},
        {"prior": "uniform:" + "1" * 5000},
        {"prior": "uniform:0,1e308"},
        {"prior": "uniform:0,1e-300"},
        {"prior": "lognormal:700,1"},
        {"prior": "lognormal:0,1e160"},
        {"prior": "lognormal:0,1e-13"},
        {"prior": "gamma:1e160,1e-300"},
        {"prior": "exponential:1e300"},
        {"prior": {"groups": {"a": "uniform:1,2", "b": "uniform:0,1e308"}}},
        {"prior": {"kind": "empirical", "samples": []}},
        {"prior": {"groups": {}}},
        {"prior": {"a": {"b": {"c": []}}}},
        {"bid_by": "9999-12-31T23:59:59+14:00"},
        {"bid_by": "0001-01-01T00:00:00-14:00"},
        {"bid_by": "0001-01-01T00:00:00+14:00"},
        {"bid_by": "9999-12-31T23:59:59-14:00"},
        {"deliver_by": "0001-01-01T00:00:00+00:01"},
        {"bid_by": "2026-03-01"},
        {"automatic": True},
        {"automatic": 1},
        {"setting": "either"},
        {"currency": "€"},
        {"nonsense": 1},
    ],
)
def test_numbers_out_of_all_proportion_are_refused(shared: Live, changes: dict[str, Any]) -> None:
    response = asked(shared, "POST", "/campaigns", with_fields(SETTINGS, **changes))
    if response.status_code == 201:  # odd, but allowed
        asked(shared, "POST", f"/campaigns/{response.json()['id']}/preview", {"people": 5})
        assert asked(shared, "GET", f"/campaigns/{response.json()['id']}", None).status_code == 200
    else:
        assert response.status_code == 422


@each("count", [0, -1, 100_001, 10**30, 10**400, 1.5, "3", True])
def test_a_number_of_people_that_cannot_be_is_refused(shared: Live, count: Any) -> None:
    play = drafted(shared.service, 2)
    assert asked(shared, "POST", f"/campaigns/{play.id}/participants", {"count": count}).status_code == 422


@each("token", ["x", "x" * 10_000, "x y", "hb_a_", "hb_p_", "hb_p_é", "hb_s_ü"])
def test_odd_tokens_are_refused(shared: Live, token: str) -> None:
    with shared.client() as client:
        for path in ("/participation", "/campaigns"):
            authorization = f"Bearer {token}".encode("latin-1")
            sentence(client.get(path, headers={"Authorization": authorization}), 401)  # type: ignore[dict-item]
            client.cookies.set("hushbid", "x" * 5000)
            sentence(client.get("/campaigns"), 401)
