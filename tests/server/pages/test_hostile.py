"""Hostile input in every field of every form: escaped, refused with a sentence, nothing lost, nothing changed.

And forms that did not come from us: without a token, with another's, from another site, twice.
"""

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import httpx
import pytest

from tests.extent import ALL_CASES, each
from tests.server.http.support import Live, serving
from tests.server.pages.support import PAGE_HEADERS, Visitor, words
from tests.server.support import PASSWORD, Play, decided, drafted, on_the_strict_store, opened, released

pytestmark = on_the_strict_store  # that both keep what they take is tests/server/http's claim

MARKUP = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'><svg/onload=alert(3)>{{7*7}}${7*7}"
HOSTILE = {
    "markup": MARKUP,
    "long": "9" * 20_000,
    "reordering": "\u202eevil\u202c\u2066 \u200f",
    "unicode": "ﷺ𝕊é\u0301🧑‍🔬\ufeff",
    "control": "a\x00b\x07\x1b[31m",
    "digits": "１２３",
    "formula": "=HYPERLINK(1)",
    "huge": "1e999",
    "negative": "-1",
    "nan": "nan",
    "template": "%(x)s {csrf} {0}",
}
NEW = "/campaigns/c000000000000{}/edit"
"""Where the form of a new draft is sent, by the end of the name that its page gave it."""

DRAFT = {
    "title": "Fine",
    "question": "",
    "description": "",
    "questions": "1",
    "q-0-kind": "number",
    "q-0-name": "How many?",
    "q-0-unit": "",
    "q-0-low": "0",
    "q-0-high": "10",
    "q-0-variance": "",
    "strata": "0",
    "strata_kind": "shares",
    "setting": "central",
    "prices": "text",
    "prior": "uniform:1,2",
    "goal": "cost",
    "buyer_weight": "50",
    "privacy": "own",
    "max_privacy_loss": "1",
    "relation": "none",
    "payout": "none",
    "payout_days": "90",
    "currency": "EUR",
    "decimals": "2",
    "participation_fee": "0",
    "spending_limit": "",
    "minimum_people": "2",
    "retention_days": "0",
    "bid_by": "",
    "deliver_by": "",
    "people": "5",
}


@pytest.fixture
def ann(either: Live) -> Iterator[Visitor]:
    with Visitor(either.url) as visitor:
        visitor.log_in("ann", PASSWORD)
        yield visitor


def harmless(response: httpx.Response) -> httpx.Response:
    """A page that repeats nothing dangerous; whatever was typed stands in it escaped, or not at all."""
    assert response.status_code < 500, response.text[:500]
    page = response.text
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert "<svg/onload" not in page
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u0000\u0007\u001b]", page)
    assert "49${" not in page
    assert response.status_code in (200, 303) or len(words(response)) > 100
    return response


# -- every field -------------------------------------------------------------------------------------------------------


def test_a_draft_refuses_or_escapes_whatever_is_typed(ann: Visitor) -> None:
    token = ann.csrf("/campaigns/new")
    for number, (kind, text) in enumerate(HOSTILE.items()):
        for place, name in enumerate(DRAFT):
            if not (ALL_CASES or kind == "markup" or (number + place) % 6 == 0):
                continue  # markup in every field, and of the others every sixth
            form = {**DRAFT, name: text, "csrf": token, "action": "save"}
            sent = harmless(ann.client.post(NEW.format(f"{number:04x}{place:04x}"), data=form))
            assert sent.status_code == 303
            answer = harmless(ann.get(sent.headers["location"]))
            if "/edit" not in sent.headers["location"]:
                harmless(ann.get(f"{sent.headers['location']}/edit"))
                continue
            assert "the draft is not complete yet" in words(answer), name
            assert "field-problem" in answer.text, name
            assert 'value="Fine"' in answer.text or name == "title", "what was typed elsewhere is not lost"
    harmless(ann.get("/campaigns"))


def test_a_participant_may_type_anything_for_a_price(either: Live) -> None:
    texts = list(HOSTILE.values())[:: 1 if ALL_CASES else 2]
    play = opened(either.service, len(texts))
    with Visitor(either.url) as her:
        for row, text in enumerate(texts):
            harmless(her.send("/p/enter", "/p/other", link=text))
            her.come_in(play.fresh(row))
            for fields in ({"agreed": text}, {"agreed": "yes", "version": text}, {"agreed": "yes", "language": text}):
                assert harmless(her.send("/p/agree", "/p", **fields)).status_code in (409, 422)
            assert harmless(her.send("/p/bid", "/p", price="1.5")).status_code == 422
            assert either.service.participation(play.token(row)).agreement is None
            her.agree()
            for path in ("/p/choice", "/p/bid"):
                answer = harmless(her.send(path, "/p/choice", price=text))
                assert answer.status_code == 422
                assert "field-problem" in answer.text
                limited = {"price": "1.5", "limit": text}
                answer = harmless(her.send(path, "/p/choice", **limited))
                assert answer.status_code == 422
                assert 'id="limit-problem"' in answer.text
                assert 'id="price-problem"' not in answer.text
            assert either.service.participation(play.token(row)).bid is None


def test_a_participant_may_type_anything_for_a_value(either: Live) -> None:
    play = decided(either.service, len(HOSTILE))
    with Visitor(either.url) as her:
        for row, text in enumerate(HOSTILE.values()):
            her.come_in(play.fresh(row))
            if not either.service.participation(play.token(row)).promised:
                continue
            answer = harmless(her.send("/p/deliver", "/p", value=text, sure="yes"))
            assert answer.status_code == 422
            assert "field-problem" in answer.text
            assert either.service.participation(play.token(row)).delivered_at is None


def test_a_participant_may_type_anything_for_where_she_is_paid(either: Live) -> None:
    plays = {kind: decided(either.service, 2, payout=kind) for kind in ("email", "iban", "panel")}
    with Visitor(either.url) as her:
        for kind, play in plays.items():
            her.come_in(play.fresh(0))
            for name, text in HOSTILE.items():
                answer = harmless(her.send("/p/payout", "/p/payout", handle=text))
                refused = kind != "panel" or name in ("long", "control", "reordering", "unicode")
                assert answer.status_code == (422 if refused else 303), (kind, name)
                assert len(text) < 4 or text not in answer.text, "what was refused is not shown again"
            harmless(her.get("/p"))
            shown = either.service.payout(play.token(0)).shown
            assert shown == (None if kind != "panel" else "\u2022\u2022\u2022\u2022 {0}")
            assert her.send("/p/payout", "/p/payout", do="forget").status_code == 303
            assert either.service.payout(play.token(0)).shown is None
            assert her.get("/p/payout").status_code == 200


def test_other_fields_of_an_analyst_may_hold_anything(ann: Visitor, either: Live) -> None:
    over = released(either.service, 2)
    for number, text in enumerate(list(HOSTILE.values())[:: 1 if ALL_CASES else 2]):
        play = drafted(either.service, 2)
        invite, once = f"/campaigns/{play.id}/participants", f"a key that is long {number}".replace(" ", "-")
        harmless(ann.send(invite, invite, count=text, once=once))
        invited = ann.send(invite, invite, people=text, once=f"{once}x")
        assert invited.status_code == 303
        harmless(ann.get(invited.headers["location"]))
        harmless(ann.send(invite, invite, count="1", once=text))
        harmless(ann.sent(f"/campaigns/{play.id}/steps/cancel", f"/campaigns/{play.id}/copy", reason=text))
        place = f"/campaigns/{over.id}/people/{over.links[0].id}/link"
        harmless(ann.sent(place, place, once=text))
        for sure in ("", "yes"):
            paid = {"label": text, "who": "chosen", "sure": sure}
            harmless(ann.sent(f"/campaigns/{over.id}/steps/pay", f"/campaigns/{over.id}/payments", **paid))
        for path in ("", "/log", "/people"):
            harmless(ann.get(f"/campaigns/{play.id}{path}"))
    assert either.service.campaign(over.who, over.id).paid == 0


def test_a_log_in_may_be_anything(site: Live) -> None:
    with Visitor(site.url) as anybody:
        for text in HOSTILE.values():
            for form in ({"name": text, "password": "x"}, {"name": "ann", "password": text}):
                answer = harmless(anybody.send("/login", "/login", **form))
                assert answer.status_code in (403, 429)


@each(
    "path",
    [
        *("/campaigns/%00", "/campaigns/%F0%9F%98%80", "/campaigns/../../etc/passwd", "/campaigns/x/steps/%3Cb%3E"),
        *(
            "/static/../texts.py",
            "/static/%2e%2e/texts.py",
            "/static/pages.css%00",
            "/c/%3Cscript%3E",
            "/campaigns?cursor=%00",
        ),
        *(
            "/privacy-account?cursor=%3Cscript%3E",
            "/campaigns/c1/log?after=%C3%A9",
            "/login?next=//evil.example",
            "/?lang=%00",
        ),
    ],
)
def test_addresses_may_be_anything(ann: Visitor, path: str) -> None:
    harmless(ann.get(path))


def test_nobody_is_sent_to_another_site_after_a_log_in(either: Live) -> None:
    for onwards in ("//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)", "/\nx"):
        with Visitor(either.url) as visitor:
            answer = visitor.send("/login", "/login", name="ann", password=PASSWORD, next=onwards)
            assert answer.headers["location"] == "/campaigns"


def test_what_is_too_large_is_refused_with_a_page(ann: Visitor) -> None:
    answer = ann.client.post(
        NEW.format("f" * 8), data={**DRAFT, "csrf": ann.csrf("/campaigns/new"), "title": "x" * 600_000}
    )
    assert answer.status_code == 413
    assert "Nothing was stored" in words(answer)


# -- forms that are not ours -------------------------------------------------------------------------------------------


def changes_of_a_participant() -> dict[str, dict[str, str]]:
    return {
        "/p/agree": {"agreed": "yes"},
        "/p/bid": {"price": "1.5"},
        "/p/decline": {},
        "/p/choice": {"price": "1.5"},
        "/p/withdraw": {},
        "/p/deliver": {"value": "5", "sure": "yes"},
    }


def test_a_participants_forms_need_their_token_and_nobody_elses(either: Live) -> None:
    play = opened(either.service, 3)
    with Visitor(either.url) as eve, Visitor(either.url) as her:
        eve.come_in(play.fresh(1))
        foreign = eve.csrf("/p")
        her.come_in(play.fresh(0))
        own = her.csrf("/p")
        for path, fields in changes_of_a_participant().items():
            for forged in ({}, {"csrf": ""}, {"csrf": "x" * 64}, {"csrf": foreign}):
                answer = her.client.post(path, data={**fields, **forged})
                assert answer.status_code == 403, path
                assert "not valid any more" in words(answer)
            elsewhere = her.client.post(path, data={**fields, "csrf": own}, headers={"Sec-Fetch-Site": "cross-site"})
            assert elsewhere.status_code == 403
        message = her.client.put("/p/delivery", json={"message": {}}, headers={"X-CSRF-Token": foreign})
        assert message.status_code == 403
    seen = either.service.participation(play.token(0))
    assert (seen.state.value, seen.bid) == ("invited", None)


def test_an_analysts_forms_need_their_token(ann: Visitor, either: Live) -> None:
    play = drafted(either.service, 3)
    before = len(either.service.campaigns(play.who).items)
    forms: dict[str, dict[str, Any]] = {
        NEW.format("e" * 8): DRAFT,
        f"/campaigns/{play.id}/edit": {**DRAFT, "title": "Forged"},
        f"/campaigns/{play.id}/copy": {"title": "Forged", "once": "k" * 24},
        f"/campaigns/{play.id}/participants": {"count": "3", "once": "k" * 24},
        f"/campaigns/{play.id}/steps/open": {},
        f"/campaigns/{play.id}/steps/discard": {},
        f"/campaigns/{play.id}/steps/cancel": {"reason": "Forged."},
        f"/campaigns/{play.id}/people/{play.links[0].id}/link": {"once": "k" * 24},
        f"/campaigns/{play.id}/audit": {},
        "/campaigns/preview": DRAFT,
        NEW.format("e" * 8).replace("edit", "keep"): DRAFT,
        NEW.format("e" * 8).replace("edit", "pilot"): DRAFT,
        f"/campaigns/{play.id}/keep": {**DRAFT, "title": "Forged"},
        f"/campaigns/{play.id}/people/{play.links[0].id}/remove": {},
        "/logout": {},
    }
    for path, fields in forms.items():
        for forged in ({}, {"csrf": "x" * 43}):
            assert ann.client.post(path, data={**fields, **forged}).status_code == 403, path
        with httpx.Client(base_url=either.url, headers=PAGE_HEADERS) as nobody:
            answer = nobody.post(path, data=fields)
            assert answer.headers.get("location") in ("/login", "/"), path
    assert len(either.service.campaigns(play.who).items) == before
    view = either.service.campaign(play.who, play.id)
    assert (view.state.value, view.settings.title, sum(view.people.values())) == ("draft", "Hours of sleep", 3)
    assert ann.get("/campaigns").status_code == 200, "still logged in"


def test_an_auditor_can_send_nothing(either: Live) -> None:
    play = drafted(either.service, 3)
    with Visitor(either.url) as otto:
        otto.log_in("otto", PASSWORD)
        for path in (NEW.format("d" * 8), f"/campaigns/{play.id}/steps/open", f"/campaigns/{play.id}/steps/discard"):
            answer = otto.client.post(path, data={**DRAFT, "csrf": otto.csrf("/campaigns")})
            assert answer.status_code == 403
    assert either.service.campaign(play.who, play.id).state.value == "draft"


# -- forms that come twice ---------------------------------------------------------------------------------------------


def test_the_same_copy_sent_twice_is_made_once(ann: Visitor, either: Live) -> None:
    play = opened(either.service, 3)
    assert f'href="/campaigns/{play.id}/copy"' in ann.get(f"/campaigns/{play.id}").text
    path, fields = f"/campaigns/{play.id}/copy", {"title": "Once more", "once": "k" * 24}
    twice = [ann.send(path, path, **fields) for _ in range(2)]
    [made] = {answer.headers["location"] for answer in twice}
    assert "Once more" in ann.get(made).text
    refused = ann.get(ann.send(path, path, title="", once="j" * 24).headers["location"])
    assert "Please give a title of 1 to 200 characters." in refused.text
    assert 'aria-describedby="title-problem' in refused.text
    keyless = ann.sent(path, path, title="Without a key")
    assert ("Please send it again" in keyless.text, "Idempotency" in keyless.text) == (True, False)


def test_the_same_draft_sent_twice_is_stored_once(ann: Visitor, either: Live) -> None:
    path, form = ann.draft("/campaigns/new")
    form = {**DRAFT, "title": "Twice", "csrf": form["csrf"], "action": "save"}
    first, second = (ann.client.post(path, data=form) for _ in range(2))
    assert first.headers["location"] == second.headers["location"] == path.removesuffix("/edit")
    assert words(ann.get("/campaigns")).count("Twice") == 1
    again = ann.client.post(path, data={**form, "title": "Thrice"})
    assert again.headers["location"] == first.headers["location"], "gone back, changed and saved: the same draft"
    assert words(ann.get("/campaigns")).count("Twice") == 0


def test_the_same_invitation_sent_twice_makes_the_same_links(ann: Visitor, either: Live) -> None:
    play = drafted(either.service, ["old@example.org"])
    path = f"/campaigns/{play.id}/participants"
    form = {"people": "new@example.org", "once": "k" * 32}
    pages = [ann.sent(path, path, **form) for _ in range(2)]
    links = [re.findall(r"/p#(hb_p_[\w-]+)", page.text) for page in pages]
    assert links[0] == links[1]
    assert len(links[0]) == 1
    assert sum(either.service.campaign(play.who, play.id).people.values()) == 2
    uploaded = ann.client.post(
        path,
        data={"csrf": ann.csrf(path), "once": "m" * 32},
        files={"file": ("people.csv", "id;group\nx@example.org;\n", "text/csv")},
        follow_redirects=True,
    )
    assert uploaded.text.count("/p#hb_p_") == 1
    assert "is in the campaign already" in words(ann.sent(path, path, people="new@example.org", once="n" * 32))


def test_a_request_that_names_another_host_is_refused_as_page_and_as_problem(shared: Live) -> None:
    """Links begin with the host where no address is configured, and another site may let its name lead here."""
    port = shared.url.rpartition(":")[2]
    evil = ("evil.example.net", f"evil.example.net:{port}", "127.0.0.1.evil.example.net", "localhost@evil")
    # links would lead there, though a part of it is a name of this server
    tricks = (
        "localhost:x@evil.example.net",
        "evil.example.net//localhost",
        "localhost/evil",
        "[::1]@evil",
        "[::1]evil",
    )
    for name in (*evil, *tricks, ""):
        with Visitor(shared.url, Host=name) as visitor:
            refused = visitor.get("/login")
            assert (refused.status_code, refused.headers["content-type"][:9]) == (421, "text/html")
            assert "evil" not in refused.text
            problem = visitor.client.get("/api/v1/health", headers={"Accept": "application/json"})
            assert (problem.status_code, problem.headers["content-type"]) == (421, "application/problem+json")
    for name in ("localhost", f"LOCALHOST:{port}", f"127.0.0.1:{port}", f"[::1]:{port}", "localhost:9"):
        with Visitor(shared.url, Host=name) as visitor:
            assert visitor.get("/login").status_code == 200


def test_links_begin_with_the_configured_address_whatever_host_a_request_names(either: Live) -> None:
    play = drafted(either.service, ["old@example.org"])
    path = f"/campaigns/{play.id}"
    with (
        serving(either.service, address="https://campaign.example.org/") as url,
        Visitor(url, Host="localhost:9") as ann,
    ):
        ann.log_in("ann", PASSWORD)
        invited = ann.sent(
            f"{path}/participants", f"{path}/participants", kind="ids", people="new@example.org", once="p" * 32
        )
        place = f"{path}/people/{play.links[0].id}/link"
        renewed = ann.sent(place, place, once="r" * 32)
    for page in (invited, renewed):
        assert re.findall(r"(\S+)/p#hb_p_", page.text)[0].endswith("https://campaign.example.org")


def test_a_second_value_is_refused_and_the_first_stands(either: Live) -> None:
    play = decided(either.service, 3)
    with Visitor(either.url) as her:
        her.come_in(play.fresh(0))
        page = her.hidden("/p")
        assert her.client.post("/p/deliver", data={**page, "value": "5", "sure": "yes"}).status_code == 303
        answers = set()
        for value in ("5", "6", "11", "nonsense", ""):  # the same page again is an answer that got lost
            assert her.client.post("/p/deliver", data={**page, "value": value, "sure": "yes"}).status_code == 303
            refused = her.client.post("/p/deliver", data={**page, "value": value, "sure": "yes", "nonce": "f0" * 16})
            assert refused.status_code == 409
            answers.add(words(refused))
        assert len(answers) == 1, "what is sent must not change the answer"
        assert "nothing was changed" in answers.pop()
        assert her.send("/p/bid", "/p", price="1.5").status_code == 409
        assert her.send("/p/decline", "/p").status_code == 409


def test_every_step_that_comes_too_late_is_refused_with_a_sentence(ann: Visitor, either: Live) -> None:
    play = released(either.service, 2)
    for step in ("open", "close-bidding", "release", "cancel", "discard"):
        answer = ann.sent(f"/campaigns/{play.id}/steps/{step}", f"/campaigns/{play.id}/copy", reason="Late.")
        assert "This is not possible any more" in words(answer)
    unpaid = ann.sent(f"/campaigns/{play.id}/steps/close", f"/campaigns/{play.id}/copy")
    assert "People are still unpaid" in words(unpaid)


def test_deadlines_are_shown_as_pages(either: Live) -> None:
    now = either.service.clock()
    play = opened(either.service, 3, bid_by=now + timedelta(hours=1), deliver_by=now + timedelta(hours=2))
    with Visitor(either.url) as her:
        her.come_in(play.fresh(0))
        token = her.csrf("/p")
        either.service.clock.pass_(hours=1.5)  # type: ignore[attr-defined]
        assert "Too late to name a price" in words(her.get("/p"))
        late = her.client.post("/p/bid", data={"csrf": token, "price": "1.5"})
        assert late.status_code == 409
        assert "Too late to name a price" in words(late)


# -- links -------------------------------------------------------------------------------------------------------------


def test_a_lost_link_is_replaced_and_the_old_one_leads_to_a_page_that_says_so(ann: Visitor, either: Live) -> None:
    play = opened(either.service, 3)
    with Visitor(either.url) as her:
        her.come_in(play.fresh(0))
        path = f"/campaigns/{play.id}/people/{play.links[0].id}/link"
        renewed = ann.sent(path, path, once="s" * 32)
        fresh = re.search(r"/p#(hb_p_[\w-]+)", renewed.text)
        assert fresh is not None
        expired = her.get("/p")
        assert expired.status_code == 403
        assert "A new link was made for you on" in words(expired)
        assert "ask whoever runs the campaign why" in words(expired)
        assert "hushbid-participant" not in her.client.cookies
        her.come_in(fresh[1])
        assert "made new links for you: 1" in words(her.get("/p"))
        assert her.client.post("/p/leave", data={}).status_code == 403, "another site cannot end her part"
        assert her.send("/p/leave", "/p/leave").status_code == 303
        assert "Come in with your link" in words(her.get("/p"))


def test_one_participant_sees_nothing_of_another(either: Live) -> None:
    play: Play = released(either.service, ["ann@example.org", "bob@example.org"])
    own, others = (either.service.participation(play.token(row)).participant for row in (0, 1))
    with Visitor(either.url) as her:
        her.come_in(play.fresh(0))
        for path in ("/p", "/p/given-up", "/p/receipt", "/p/export", f"/c/{play.id}"):
            found = her.get(path).text
            assert others not in found
            assert "bob@example.org" not in found
        assert own in her.get("/p/export").text
        for path in ("/campaigns", "/privacy-account", f"/campaigns/{play.id}", f"/campaigns/{play.id}/people"):
            assert her.get(path).status_code == 303, "a participant is not logged in"


def test_every_page_comes_with_a_strict_policy_and_is_never_stored(ann: Visitor, either: Live) -> None:
    play = opened(either.service, 3)
    ann.come_in(play.fresh(0))
    for path in ("/", "/p", "/p/choice", "/login", "/campaigns", f"/campaigns/{play.id}", "/nothing"):
        page = ann.get(path)
        policy = page.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert (page.headers["cache-control"], page.headers["referrer-policy"]) == ("no-store", "no-referrer")
        assert not re.search(r"<script(?![^>]*\bsrc=)|<style|<[^>]*\s(?:style|on\w+)=|<[^>]*javascript:", page.text), (
            path
        )
        assert not re.findall(r'(?:src|href|action)="(?:https?:)?//', page.text), path
    for cookie in ann.client.cookies.jar:
        assert cookie.has_nonstandard_attr("HttpOnly")
        assert cookie.get_nonstandard_attr("SameSite") == "strict"
