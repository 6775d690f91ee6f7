"""Drafting on the pages: nothing that was typed is lost, whatever is pressed, and nothing comes of it unasked."""

import re
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser

from hushbid.campaign.drafting import draft_text
from hushbid.questions import Choice, Number, YesNo
from hushbid.server.model.settings import CampaignSettings
from hushbid.server.pages.form_prices import typical_prior
from hushbid.server.pages.wording import languages
from tests.server.http.support import Live
from tests.server.pages.support import Visitor, keep, too_wide, watched, words
from tests.server.support import PASSWORD, analyst, drafted, open_now, opened, stated, user, with_fields

SLEEP = {
    "title": "Sleep",
    "q-0-name": "How many hours?",
    "q-0-low": "0",
    "q-0-high": "12",
    "q-0-unit": "hours",
    "people": "40",
    "minimum_people": "2",
    "budget": "60",
}
SAME_ORIGIN = {"Sec-Fetch-Site": "same-origin"}


@pytest.fixture
def ann(shared: Live) -> Iterator[Visitor]:
    with Visitor(shared.url) as visitor:
        visitor.log_in("ann", PASSWORD)
        yield visitor


def press(visitor: Visitor, page: str, action: str, **typed: str) -> Any:
    """Press a button of a draft's form, as it stands on a page, after typing something; where that leads."""
    path, form = visitor.draft(page)
    answer = visitor.client.post(path, data={**form, **typed, "action": action})
    assert answer.status_code == 303, "post, redirect, get: Back and Reload send nothing again"
    return answer.headers["location"]


# -- kept --------------------------------------------------------------------------------------------------------------


def test_a_survey_is_drafted_button_by_button_and_saved_once_it_is_whole(ann: Visitor, shared: Live) -> None:
    at = press(ann, "/campaigns/new", "question-add:yes_no", **SLEEP)
    assert at.endswith("#q-1")
    at = press(ann, at, "question-add:choice", **{"q-1-name": "Do you smoke?"})
    at = press(ann, at, "question-up:2", **{"q-2-name": "Shift", "q-2-answers": "days\nnights"})
    at = press(ann, at, "save", title="")
    assert "check=yes" in at
    page = ann.get(at)
    assert page.status_code == 200
    assert page.text.count("field-problem") == 2, "of the title; the forecast has a place for one"
    assert 'aria-describedby="title-problem' in page.text
    assert "Without a title Draft Not complete yet" in words(ann.get("/campaigns"))
    at = press(ann, at, "save", title="Sleep and shifts")
    view = shared.service.campaign(analyst(shared.service), at.removeprefix("/campaigns/"))
    assert view.settings.asked == (
        Number(name="How many hours?", bounds=(0, 12), unit="hours"),
        Choice(name="Shift", answers=("days", "nights")),
        YesNo(name="Do you smoke?"),
    )
    assert (view.settings.question, view.settings.server.single_visit) == ("Sleep and shifts", True)
    copied = ann.send(f"{at}/copy", f"{at}/copy", title="Again", once="k" * 24).headers["location"]
    again = shared.service.campaign(analyst(shared.service), copied.removeprefix("/campaigns/")).settings
    assert (again.title, again.asked) == ("Again", view.settings.asked)


def test_what_was_typed_is_there_after_logging_in_again_and_for_other_analysts(ann: Visitor, shared: Live) -> None:
    path, form = ann.draft("/campaigns/new")
    form |= {**SLEEP, "title": "Half a thought", "budget": "1,"}
    kept = ann.client.post(path.replace("/edit", "/keep"), data=form).json()
    assert kept["here"] == path
    assert kept["kept"].endswith("UTC"), "plain text, which the script shows as it is"
    user(shared.service, "bea")
    with Visitor(shared.url) as bea:
        bea.log_in("bea", PASSWORD)
        assert "Half a thought" in words(bea.get("/campaigns"))
        assert bea.fields(path)["budget"] == "1,"
        for part in ("", "/people", "/participants", "/steps/open", "/copy"):
            answer = bea.get(path.replace("/edit", part))
            assert answer.status_code in (200, 303), part
            assert answer.headers.get("location", path).startswith(path), "a draft that is not complete has its form"
    with Visitor(shared.url) as otto:
        otto.log_in("otto", PASSWORD)
        assert "Half a thought" in words(otto.get("/campaigns"))
        assert otto.get(path.replace("/edit", "")).status_code == 409
    discard = path.replace("/edit", "/steps/discard")
    assert "Discard the draft?" in words(ann.get(discard))
    assert ann.send(discard, discard).headers["location"] == "/campaigns"
    assert "Half a thought" not in words(ann.get("/campaigns"))


def test_a_form_sent_after_the_session_ended_comes_through_the_log_in(shared: Live) -> None:
    with Visitor(shared.url) as ann:
        ann.log_in("ann", PASSWORD)
        path, form = ann.draft("/campaigns/new")
        form |= {**SLEEP, "title": "Late", "action": "save"}
        ann.client.cookies.delete("hushbid")
        elsewhere = ann.client.post(path, data=form, headers={"Sec-Fetch-Site": "cross-site"})
        assert elsewhere.headers["location"] == "/login", "nothing of another site's is carried"
        page = ann.client.post(path, data=form, headers=SAME_ORIGIN)
        assert "what you typed comes with you" in words(page)
        hidden = dict(re.findall(r'name="(csrf|carried)" value="([^"]+)"', page.text))
        hidden["carried"] = hidden["carried"].replace("&#34;", '"')
        wrong = ann.client.post("/login", data={**hidden, "name": "ann", "password": "wrong"})
        assert 'name="carried"' in wrong.text
        onwards = ann.client.post("/login", data={**hidden, "name": "ann", "password": PASSWORD}).headers["location"]
        assert onwards == path
        assert ann.fields(onwards)["title"] == "Late"
        for strange in ("{", "[]", '{"campaign": 1}', '{"campaign": "x", "fields": {}}'):
            sent = {**ann.hidden("/login"), "name": "ann", "password": PASSWORD, "carried": strange}
            assert ann.client.post("/login", data=sent).headers["location"] == "/campaigns"


def test_a_change_of_language_keeps_texts_and_writes_numbers_anew(ann: Visitor) -> None:
    typed = {**SLEEP, "budget": "1500.5", "description": "1.5 h", "price_low": "x.5"}
    at = press(ann, "/campaigns/new", "language:de", **typed)
    assert at.endswith("?lang=de")
    found = ann.fields(at)
    assert (found["budget"], found["price_low"], found["price_high"]) == ("1500,5", "x.5", "5")
    assert found["description"] == "1.5 h"
    german = ann.get(press(ann, at.partition("?")[0], "save", **{"q-0-high": ""}))
    shown = words(german)
    assert "Bitte füllen Sie dieses Feld aus." in shown
    assert "Bitte schreiben Sie eine Zahl in Ziffern" in shown
    for texts in (languages()["en"].coded("field.missing"), " must ", "Please"):
        assert texts not in shown


def test_a_draft_is_what_was_typed_last_until_it_opens(ann: Visitor, shared: Live) -> None:
    play = drafted(shared.service, 3)
    edit = f"/campaigns/{play.id}/edit"
    form = {**ann.fields(edit), "title": "Other"}
    assert ann.client.post(f"/campaigns/{play.id}/keep", data=form).json()["kept"]
    assert (play.view.title, play.view.settings.title) == ("Other", "Other")
    assert press(ann, edit, "save", title="Third") == f"/campaigns/{play.id}"
    assert play.view.settings.title == "Third"
    late = ann.client.post(f"/campaigns/{play.id}/keep", data={**form, "title": "Too late"})
    assert late.status_code == 200
    assert ann.fields(edit)["title"] == "Third", "what was sent before it was saved is no change after it"
    assert open_now(play.service, play.who, play.id).state.value == "bidding"
    assert ann.get(edit).headers["location"] == f"/campaigns/{play.id}"
    for path in ("edit", "keep"):
        sent = ann.client.post(f"/campaigns/{play.id}/{path}", data={**form, "action": "save"})
        assert sent.status_code in (200, 303)
    assert play.view.settings.title == "Third"


def test_what_a_script_sent_before_a_button_was_pressed_undoes_nothing(ann: Visitor) -> None:
    path, before = ann.draft("/campaigns/new")
    keep = path.replace("/edit", "/keep")
    before |= {**SLEEP, "title": "Race"}
    assert ann.client.post(keep, data=before).json()["kept"]
    pressed = ann.client.post(path, data={**before, "action": "question-add:yes_no"})
    assert pressed.headers["location"] == f"{path}#q-1"
    assert ann.client.post(keep, data=before).json()["kept"]
    after = ann.fields(path)
    assert after["questions"] == "2"
    assert ann.client.post(keep, data={**after, "title": "Later"}).json()["kept"]
    assert ann.fields(path)["title"] == "Later"


def test_the_planned_number_of_people_is_still_there_when_a_draft_is_edited(ann: Visitor, shared: Live) -> None:
    at = press(ann, "/campaigns/new", "save", **{**SLEEP, "title": "Thirty", "people": "30"})
    assert ann.fields(f"{at}/edit")["people"] == "30"
    assert press(ann, f"{at}/edit", "save", people="31") == at
    assert ann.fields(f"{at}/edit")["people"] == "31"
    shared.service.invite(analyst(shared.service), at.removeprefix("/campaigns/"), count=2)
    assert ann.fields(f"{at}/edit")["people"] == "2", "those who are invited count, once there are any"


@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.parametrize(
    ("field", "typed"),
    [
        ("bid_by", {"bid_by": "2020-01-01T10:00"}),
        ("budget", {"participation_fee": "2", "people": "30"}),
        ("spending_limit", {"participation_fee": "1", "people": "30", "spending_limit": "29"}),
    ],
)
def test_a_draft_that_could_never_open_is_not_complete_and_its_field_says_why(
    ann: Visitor, shared: Live, field: str, typed: dict[str, str], language: str
) -> None:
    at = press(ann, "/campaigns/new", "save", **{**SLEEP, "title": "Never", **typed})
    assert "check=yes" in at
    path = at.partition("#")[0]
    page = ann.get(f"{path}&lang={language}")
    assert f'id="{field}-problem"' in page.text
    assert page.text.count("field-problem") == 2, "the forecast has a place for one"
    campaign = path.removeprefix("/campaigns/").partition("/")[0]
    assert shared.service.campaign(analyst(shared.service), campaign).settings is None


# -- the forecast and prices -------------------------------------------------------------------------------------------


def test_the_forecast_is_in_words_of_the_page_for_each_question(ann: Visitor) -> None:
    at = press(ann, "/campaigns/new", "question-add:yes_no", **SLEEP)
    page = ann.get(press(ann, at, "preview"))
    shown = words(page)
    assert "With 40 people you get the errors below for about" in shown
    assert re.search(r"How many hours\? ± [\d.]+ hours 2 ± [\d.]+ percentage points", shown), "names may be missing"
    live = ann.client.post("/campaigns/preview", data=ann.fields(at)).json()
    assert live["problem"] is None
    assert [name for name, _ in live["errors"]] == ["How many hours?", "2"]
    assert live["sentences"][0].startswith("With 40 people")
    unread = ann.client.post("/campaigns/preview", data={**ann.fields(at), "budget": "x"}).json()
    assert unread["problem"].startswith("The forecast appears here once")
    fees = ann.client.post("/campaigns/preview", data={**ann.fields(at), "participation_fee": "100"}).json()
    assert "above the fees" in fees["problem"]
    far = {**ann.fields(at), "goal": "accuracy", "q-0-error": "0.5", "q-1-error": "3"}
    assert (
        "40 people cannot reach this accuracy" in ann.client.post("/campaigns/preview", data=far).json()["sentences"][0]
    )


def test_a_pilot_leaves_nothing_but_its_distribution(ann: Visitor, shared: Live) -> None:
    rows = "\n".join(f"secret{k}@x.org,{1 + k % 7}.5" for k in range(40))
    path, form = ann.draft("/campaigns/new")
    path, form = path.replace("/edit", "/pilot"), {**form, **SLEEP, "prices": "pilot"}
    for content, told in ((f"id,price\n{rows}\nx,many", "Line 42 of the file"), ("id\n1", "a column called price")):
        sent = ann.client.post(path, data=form, files={"pilot_file": ("p.csv", content)})
        refused = ann.get(sent.headers["location"])
        assert told in words(refused)
        assert 'aria-describedby="pilot_file-problem' in refused.text
    sent = ann.client.post(path, data=form, files={"pilot_file": ("p.csv", f"id,price\n{rows}")})
    at = sent.headers["location"]
    assert "Fitted to 40 people: " in words(ann.get(at))
    saved = press(ann, at.partition("#")[0], "save")
    prior = shared.service.campaign(analyst(shared.service), saved.removeprefix("/campaigns/")).settings.prior
    assert not isinstance(prior, dict)
    assert 1.0 < float(prior.quantile(0.5)) < 8.0
    with shared.service._read() as connection:
        dumped = " ".join(str(row) for row in connection.exec_driver_sql("SELECT typed, stated FROM campaigns"))
    assert "secret" not in dumped


# -- people, and how it looks to them ----------------------------------------------------------------------------------


def test_somebody_is_removed_before_it_opens_and_nobody_after(ann: Visitor, shared: Live) -> None:
    play = drafted(shared.service, ["a@x.org", "b@x.org", "c@x.org", "d@x.org"])
    people, path = f"/campaigns/{play.id}/people", f"/campaigns/{play.id}/people/{play.links[1].id}/remove"
    assert f'href="{path}"' in ann.get(people).text
    assert "Remove b@x.org?" in words(ann.get(path))
    assert sum(play.view.people.values()) == 4, "asked about first"
    token = ann.csrf(path)
    assert ann.client.post(path, data={"csrf": token}).headers["location"] == people
    assert "b@x.org" not in words(ann.get(people))
    assert ann.get(path).headers["location"] == f"{people}?told=gone"
    twice = ann.client.post(path, data={"csrf": token})
    assert "Nobody of that name" in words(ann.get(twice.headers["location"]))
    with Visitor(shared.url) as her:
        assert her.send("/p/enter", "/p/other", link=play.links[1].token).status_code == 403
    open_now(shared.service, play.who, play.id)
    assert "/remove" not in ann.get(people).text
    refused = ann.client.post(path.replace(play.links[1].id, play.links[0].id), data={"csrf": token})
    assert "the campaign has opened" in words(ann.get(refused.headers["location"]))
    assert sum(play.view.people.values()) == 3


def test_a_list_that_cannot_be_used_is_told_by_its_row_in_the_pages_language(shared: Live) -> None:
    plain = drafted(shared.service, ["a@x.org"])
    shares: Any = {"shares": {"old": 0.5, "young": 0.5}}
    strata = shared.service.draft(plain.who, plain.view.settings.changed({"strata": shares}))
    with Visitor(shared.url, **{"Accept-Language": "de"}) as ann:
        ann.log_in("ann", PASSWORD)
        for campaign, typed, told in (
            (plain.id, {"people": "b@x.org\nB@x.org"}, "Person Nummer 2 auf der Liste steht zweimal"),
            (plain.id, {"people": "b@x.org\nP-00007"}, "Kennung der Person Nummer 2"),
            (plain.id, {"people": "a@x.org"}, "ist schon in der Kampagne"),
            (plain.id, {"people": "b@x.org,days"}, "Gruppe der Person Nummer 1"),
            (plain.id, {"people": "id\n"}, "eine Kennung je Zeile"),
            (strata.id, {"people": "b@x.org,old\nc@x.org,odd"}, "Art (Schicht) der Person Nummer 2"),
            (strata.id, {"count": "3"}, "lädt man mit Kennungen ein"),
        ):
            path = f"/campaigns/{campaign}/participants"
            refused = ann.sent(path, path, once="k" * 30, **typed)
            at = next(iter(typed))
            assert told in words(refused)
            assert f'aria-describedby="{at}-problem' in refused.text, "at its field"
            assert "must" not in words(refused)


@pytest.mark.parametrize(
    ("changes", "last"),
    [({}, "EUR for"), ({"setting": "local"}, "EUR for"), ({"single_visit": True}, "Nothing is stored yet.")],
)
def test_a_draft_can_be_seen_as_a_participant_which_changes_nothing(
    ann: Visitor, shared: Live, changes: dict[str, Any], last: str
) -> None:
    play = drafted(shared.service, 3, **changes)
    before = (play.view, shared.service.events(play.who, play.id))
    base = f"/campaigns/{play.id}/as-participant"
    for page, heading in (
        ("consent", "Hours of sleep"),
        ("choice", "at most 74 out of 100"),
        ("offer", last),
    ):
        shown = ann.get(f"{base}/{page}")
        assert shown.status_code == 200
        assert "somebody who is made up" in words(shown)
        assert heading in words(shown)
        assert not re.findall(r'(?:href|action|formaction)="/p[/"?]', shown.text), "no way to a participant's own pages"
    assert ann.client.post(f"{base}/offer", data={"price": "1"}).headers["location"] == f"{base}/offer"
    assert ann.get(f"{base}/receipt").status_code == 404
    assert (play.view, shared.service.events(play.who, play.id)) == before


def test_the_synthetic_participant_sees_the_very_pages_of_a_real_one(ann: Visitor, shared: Live) -> None:
    settings = {"bounds": None, "questions": (YesNo(name="Do you smoke?"), YesNo(name="Do you snore?"))}
    draft, play = drafted(shared.service, 3, **settings), opened(shared.service, 3, **settings)
    with Visitor(shared.url) as her:
        her.come_in(play.fresh(0))
        real = words(her.get("/p"))
    sample = words(ann.get(f"/campaigns/{draft.id}/as-participant/consent"))
    _, _, promised = real.partition("What is the risk?")
    assert promised
    assert promised.split("Data bought fairly")[0].strip() in sample


# -- in a browser ------------------------------------------------------------------------------------------------------


def test_typing_keeps_itself_sliders_move_prices_and_a_small_screen_is_enough(browser: Browser, shared: Live) -> None:
    with watched(browser, shared.url, locale="de", viewport={"width": 320, "height": 700}) as hers:
        page = hers.page()
        page.goto(f"{shared.url}/login")
        page.fill("#name", "ann")
        page.fill("#password", PASSWORD)
        page.click("form.card button")
        page.wait_for_url("**/campaigns")
        page.goto(f"{shared.url}/campaigns/new")
        page.fill("#title", "Schlaf")
        page.wait_for_url(re.compile("/campaigns/c.*/edit"))
        assert page.inner_text("#kept").startswith("Aufgehoben am")
        page.focus("#slider-high")
        page.keyboard.press("ArrowRight")
        assert page.input_value("#price_high") == "5,3"
        page.fill("#price_low", "0,1")
        assert int(page.input_value("#slider-low")) == 200
        page.select_option("#q-0-kind", "choice")
        assert page.locator("#q-0-low").is_hidden()
        assert page.locator("#q-0-answers").is_visible()
        page.fill("#q-0-name", "Schicht?")
        asked: list[str] = []
        page.on("dialog", lambda dialog: (asked.append(dialog.type), dialog.dismiss()))
        page.evaluate("document.querySelector('nav.main a').click()")
        page.wait_for_selector("#kept:has-text('Aufgehoben')")
        assert asked == ["beforeunload"], "what is not kept yet is not left unasked"
        page.click("button[value='question-add:number']")
        page.wait_for_selector("#q-1-low")
        page.go_back()
        page.wait_for_selector("#q-0-name")
        assert page.input_value("#title") == "Schlaf"
        assert too_wide(page) <= 0
        keep(page, "draft-german-phone")
        assert hers.complaints == []


# -- campaign files ----------------------------------------------------------------------------------------------------


def test_a_campaign_file_becomes_a_draft_and_a_draft_a_campaign_file(ann: Visitor, shared: Live) -> None:
    def sent(values: dict[str, Any]) -> str:
        path, form = ann.draft("/campaigns/new")
        file = {"campaign_file": ("campaign.toml", draft_text(values))}
        answer = ann.client.post(path.replace("/edit", "/import"), data={"csrf": form["csrf"]}, files=file)
        return str(answer.headers["location"])

    strata = {"shares": {"old": 0.6, "young": 0.4}}
    values = stated(title="From a file", budget=60, strata=strata, prior=typical_prior(0.5, 2.0), population=40)
    at = sent({**values, "bids": {"file": "bids.csv"}})
    campaign = at.removeprefix("/campaigns/")
    found = shared.service.campaign(analyst(shared.service), campaign).settings
    assert found.changed({"server.single_visit": False}) == CampaignSettings.read(values)
    file = ann.get(f"/api/v1{at}/campaign.toml")
    assert CampaignSettings.read(tomllib.loads(file.text)) == found
    del values["money"]
    incomplete = sent(values)
    assert "check=yes" in incomplete
    assert 'href="#currency"' in ann.get(incomplete).text, "the list of problems leads to the field"
    assert "market.user_weight" in words(ann.get(sent(with_fields(values, user_weight=1.0, people_may_owe_money=True))))
