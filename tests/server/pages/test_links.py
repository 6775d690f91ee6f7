"""A participant's way in, through the pages: once, for one browser, and from there to others."""

import re

import pytest
from playwright.sync_api import Browser

from tests.server.http.support import Live
from tests.server.pages.support import PICTURES, Visitor, keep, watched, words
from tests.server.support import decided, opened

USED = {
    "en": ("This link was used before, on", "go on where you opened it", "Ask for a new link"),
    "de": ("Dieser Link wurde am", "machen Sie dort weiter", "Bitten Sie um einen neuen Link"),
}


def test_a_link_opens_one_browser_again_and_again_and_no_other(shared: Live) -> None:
    play, other = opened(shared.service, 3), opened(shared.service, 3, title="Another campaign")
    with Visitor(shared.url) as her, Visitor(shared.url) as eve:
        her.come_in(play.link(0))
        secret = her.client.cookies["hushbid-participant"]
        assert re.fullmatch(r"hb_d_[A-Za-z0-9_-]{43}", secret)
        her.come_in(play.link(0))  # the answer got lost, or she opens her mail again
        assert her.client.cookies["hushbid-participant"] == secret
        her.come_in(other.link(0))
        assert "Another campaign" in words(her.get("/p"))
        her.come_in(play.link(0))
        assert "Hours of sleep" in words(her.get("/p"))
        assert eve.send("/p/enter", "/p/other", link=play.link(0)).status_code == 403
        assert "hushbid-participant" not in eve.client.cookies
        assert her.send("/p/leave", "/p").status_code == 303
        assert "Come in with your link" in words(her.get("/p"))
    with Visitor(shared.url) as copy:  # a stolen form cookie alone, or a secret that was made up, opens nothing
        copy.client.cookies.set("hushbid-participant", secret[:-2] + "AA")
        assert copy.get("/p").status_code == 403


@pytest.mark.parametrize("language", ["en", "de"])
def test_a_dead_link_says_when_it_was_used_and_what_to_do(shared: Live, language: str) -> None:
    play = opened(shared.service, 2)
    with Visitor(shared.url) as first, Visitor(shared.url, **{"Accept-Language": language}) as second:
        first.come_in(play.link(0))
        dead = second.send("/p/enter", "/p/other", link=play.link(0))
    assert dead.status_code == 403
    for sentence in USED[language]:
        assert sentence in words(dead)
    assert str(shared.service.clock().year) in words(dead)
    assert "hb_p_" not in dead.text.replace("hb_p_.", "").replace("hb_p_ ", "")


def test_she_makes_a_link_for_another_device_which_opens_once(shared: Live) -> None:
    play = opened(shared.service, 2)
    with Visitor(shared.url) as here, Visitor(shared.url) as there, Visitor(shared.url) as eve:
        here.come_in(play.link(0))
        assert "hb_p_" not in here.get("/p/device").text
        made = here.send("/p/device", "/p/device")
        [token] = re.findall(r"/p#(hb_device_[\w-]+)", made.text)
        there.come_in(token)
        there.agree()
        assert there.send("/p/bid", "/p/choice", price="1.5").status_code == 303
        assert "Your price is in" in words(here.get("/p"))
        assert eve.send("/p/enter", "/p/other", link=token).status_code == 403
        assert there.client.post("/p/device", data={"csrf": here.csrf("/p")}).status_code == 403


NOT_AN_INVITATION = {
    "en": ("a link for another device, not with an invitation", "If that was not you", "part is open: 2."),
    "de": ("einem Link für ein weiteres Gerät", "Wenn Sie das nicht waren", "Ihr Teil offen ist: 2."),
}


@pytest.mark.parametrize("language", ["en", "de"])
def test_whoever_was_sent_a_link_for_another_device_is_told_and_can_end_the_other_one(
    shared: Live, language: str
) -> None:
    play = opened(shared.service, 2)
    with Visitor(shared.url) as analyst, Visitor(shared.url, **{"Accept-Language": language}) as her:
        analyst.come_in(play.link(0))
        [token] = re.findall(r"/p#(hb_device_[\w-]+)", analyst.send("/p/device", "/p/device").text)
        her.come_in(token)
        for sentence in NOT_AN_INVITATION[language]:
            assert sentence in words(her.get("/p"))
        assert 'href="/p/others"' in her.get("/p").text
        assert 'action="/p/others"' in her.get("/p/others").text
        assert her.send("/p/others", "/p/others").status_code == 303
        assert analyst.get("/p").status_code == 403
        assert analyst.send("/p/enter", "/p/other", link=play.link(0)).status_code == 403
        assert her.get("/p").status_code == 200


def test_leaving_says_what_it_ends_and_no_used_link_opens_anything_in_that_browser(shared: Live) -> None:
    play, other = opened(shared.service, 2), opened(shared.service, 2)
    with Visitor(shared.url) as her:
        her.come_in(other.link(0))
        her.come_in(play.link(0))
        asked = her.get("/p/leave")
        assert "opens nothing any more, here neither" in words(asked)
        assert 'href="/p/device"' in asked.text
        [back] = re.findall(r"/p#(hb_device_[\w-]+)", her.send("/p/device", "/p/device").text)
        secret = her.client.cookies["hushbid-participant"]
        assert her.send("/p/leave", "/p/leave").status_code == 303
        assert "hushbid-participant" not in her.client.cookies
        assert "Whoever had opened this left on" in words(her.send("/p/enter", "/p/other", link=play.link(0)))
        assert her.send("/p/enter", "/p/other", link=other.link(0)).status_code == 403
        her.come_in(back)
        assert len(shared.service.devices(her.client.cookies["hushbid-participant"]).devices) == 1
        her.client.cookies.set("hushbid-participant", secret)
        assert her.get("/p").status_code == 403


def test_a_link_renewed_after_a_delivery_shows_everything_and_offers_no_change(shared: Live) -> None:
    play = decided(shared.service, ["a@x", "b@x", "c@x"])
    play.deliver([0])
    new = shared.service.renew_link(play.who, play.id, "a@x")
    with Visitor(shared.url) as reader:
        reader.come_in(new.token)
        page = reader.get("/p")
        assert "change nothing" in words(page)
        assert "made new links for you: 1" in words(page)
        assert "/p/withdraw" not in page.text
        assert reader.send("/p/withdraw", "/p").status_code == 403
        assert "Make a link" not in words(reader.get("/p/device"))
        assert reader.send("/p/device", "/p").status_code == 403
    assert shared.service.participation(play.token(0)).delivered_at is not None


def test_in_a_browser_a_link_opens_once_and_another_device_gets_its_own(browser: Browser, shared: Live) -> None:
    play = opened(shared.service, 2)
    for language in ("en",) if PICTURES is None else ("en", "de"):
        with (
            watched(browser, shared.url, locale=language) as hers,
            watched(browser, shared.url, locale=language) as eve,
        ):
            page = hers.page()
            page.goto(f"{shared.url}/p")
            keep(page, f"links-{language}-1-entry")
            page.goto(f"{shared.url}/p#{play.link(0) if language == 'en' else play.fresh(0)}")
            page.wait_for_url(f"{shared.url}/p")
            page.wait_for_selector("a[href='/p/device']")
            keep(page, f"links-{language}-2-came-in")
            page.click("a[href='/p/device']")
            page.click("main form button")
            page.wait_for_selector("code.link-text")
            keep(page, f"links-{language}-3-device")
            other = eve.page()
            other.goto(f"{shared.url}/p#{play.link(0)}")
            other.wait_for_selector(".notice.bad")
            keep(other, f"links-{language}-4-dead")
            assert hers.complaints == eve.complaints == []
