"""What the pages say is so: intervals hold, losses were lost, keys are destroyed, and nothing is done unasked."""

import math
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from babel.messages.pofile import read_po

from hushbid.common.documents import parsed
from hushbid.record import Record
from hushbid.server.pages import choice
from hushbid.server.pages.estimates import shown_estimates
from hushbid.server.pages.wording import Writing, languages, sureness
from hushbid.verification.verifying import verify
from tests.server.http.support import Live
from tests.server.pages.support import Visitor, words
from tests.server.support import PASSWORD, Play, decided, drafted, opened, released
from tools.catalogues import FOLDER

MARGIN = re.compile(r"± ([\d.,]+)")


def page(live: Live, path: str, *, name: str | None = None, token: str | None = None, language: str = "en") -> str:
    """A page in words, for staff, for a participant or for anybody."""
    with Visitor(live.url, **{"Accept-Language": language}) as visitor:
        if name is not None:
            visitor.log_in(name, PASSWORD)
        if token is not None:
            visitor.come_in(token)
        return words(visitor.get(path))


@pytest.fixture(scope="module")
def ann(shared: Live) -> Iterator[Visitor]:
    with Visitor(shared.url) as visitor:
        visitor.log_in("ann", PASSWORD)
        yield visitor


@pytest.fixture(scope="module")
def thinned(shared: Live) -> Play:
    """Forty people were bought from, and eight of them delivered; with so little noise that it decides nothing."""
    asked = {"question": "How long did you sleep?", "unit": "hours", "description": "For the sleep laboratory."}
    kept = {"participation_fee": 1, "retention_days": 7}
    play = decided(shared.service, 40, buyer_weight=5e6, max_privacy_loss=8.0, public_estimate=True, **asked, **kept)
    play.deliver(range(8))
    assert play.release().state == "done"
    return play


# -- the average -------------------------------------------------------------------------------------------------------


def test_every_interval_on_a_page_holds_for_what_was_delivered(shared: Live, thinned: Play) -> None:
    found = Record.from_dict(parsed(shared.service.record(thinned.who, thinned.id))).release
    assert found is not None
    real, planned = found.error.half_width(0.95), found.planned_error.half_width(0.95)
    assert real > 2 * planned, "or the test shows nothing"
    readers: list[tuple[dict[str, Any], str, float]] = [
        ({"name": "ann"}, f"/campaigns/{thinned.id}", 1.1),
        ({"name": "otto"}, f"/campaigns/{thinned.id}", 1.1),
        ({"token": thinned.fresh(0)}, "/p", math.inf),
        ({}, f"/c/{thinned.id}", math.inf),
    ]
    for reader, path, most in readers:
        shown = page(shared, path, **reader)
        [half] = MARGIN.findall(shown)
        assert real <= float(half) <= most * real, shown


def test_an_average_carries_no_digits_far_below_its_error(shared: Live, thinned: Play) -> None:
    shown = re.search(r"The estimate is (\S+) hours", page(shared, f"/campaigns/{thinned.id}", name="ann"))
    assert shown is not None
    assert len(shown[1].partition(".")[2]) <= 1, shown[1]
    assert "No usable result" in page(shared, "/campaigns", name="ann")


def test_the_public_page_names_the_question_and_the_unit(shared: Live, thinned: Play) -> None:
    shown = page(shared, f"/c/{thinned.id}")
    assert "How long did you sleep?" in shown
    assert "0 to 10 hours" in shown


def test_the_overview_shows_what_people_consented_to(shared: Live, thinned: Play) -> None:
    shown = page(shared, f"/campaigns/{thinned.id}", name="otto")
    for told in (
        "What people are told before they agree For the sleep laboratory.",
        "Days to keep the key to values after the release 7",
        "Whoever withdraws keeps the participation fee no",
        "Everybody may see the average yes",
    ):
        assert told in shown


# -- consent and choice ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("days", "told"),
    [
        (0, {"en": "as soon as the average has been drawn", "de": "sobald der Durchschnitt gezogen ist"}),
        (1, {"en": "one day after", "de": "einen Tag nach"}),
        (30, {"en": "30 days after", "de": "30 Tage nach"}),
    ],
)
def test_consent_says_when_the_key_is_destroyed(shared: Live, days: int, told: dict[str, str]) -> None:
    play = opened(shared.service, 2, retention_days=days)
    for language, sentence in told.items():
        shown = page(shared, "/p", token=play.fresh(0), language=language)
        assert sentence in shown


def test_no_sentence_promises_more_than_what_taking_part_adds() -> None:
    with (FOLDER / "de.po").open("rb") as file:
        told = " ".join(f"{one.id} {one.string}" for one in read_po(file))
    for false in ("whatever else she knows", "was immer sie sonst weiß", "more is impossible", "mehr ist unmöglich"):
        assert false not in told
    offered = (
        "Something is bought from you. Whoever is unsure about your answers, at even odds, could become at most"
        " %(sure)s sure through what you give: that is promised."
    )
    for code, words_of_it in {"en": "hat you give", "de": "Sie geben"}.items():
        texts = languages()[code]
        for sentence in (texts.coded("risk.start"), texts.coded("risk.picture_text"), texts(offered)):
            assert words_of_it in sentence


@pytest.mark.parametrize("cap", [0.99, 1.0, 1.5, 2.0, 5.0])
def test_the_choice_shows_no_loss_above_the_limit_and_one_limit_only(shared: Live, cap: float) -> None:
    play = opened(shared.service, 3, max_privacy_loss=cap)
    write = Writing(languages()["en"])
    with Visitor(shared.url) as her:
        her.come_in(play.fresh(0))
        her.agree()
        step = choice.step_of(shared.service.participation(play.token(0)))
        shown = words(her.send("/p/choice", "/p/choice", price=str(1.4 * step)))
    losses = [float(one) for one in re.findall(r"privacy loss ([\d.]+)", shown)]
    assert step in losses
    assert max(losses) <= cap
    assert (
        max(float(one) for one in re.findall(r"([\d.]+) %", shown.partition("All prices, and what they lead to")[2]))
        <= 100
    )
    assert f"Never more than {write.out_of_100(cap)} out of 100" in shown
    assert "could become sure at most" not in shown
    assert "Then sure at most" not in shown


def test_bounds_are_rounded_up() -> None:
    write = Writing(languages()["en"])
    for loss in (0.1, 0.123456, 0.5, 0.9999, 1.0, 1.2345678, 2.0, 4.99, 6.5):
        assert float(write.sure(loss).removesuffix("\u00a0%")) >= 100 * sureness(loss)
        assert loss <= float(write.at_most(loss)) <= 1.01 * loss


def test_what_is_only_reserved_is_not_given_up(shared: Live) -> None:
    people = [f"given-up-{number}@example.org" for number in range(3)]
    opened(shared.service, people, max_privacy_loss=0.5)
    play = released(shared.service, people)
    privacy_account = shared.service.personal_account(play.token(0))
    lost = shared.service.participation(play.token(0)).delivered_loss
    assert (privacy_account.given_up, privacy_account.reserved) == (lost, 0.5)
    assert privacy_account.total == pytest.approx(privacy_account.given_up + 0.5)
    shown = page(shared, "/p/given-up", token=play.fresh(0))
    assert f"A privacy loss of {Writing(languages()['en']).at_most(privacy_account.given_up)} in all" in shown
    assert "A further 0.5 is reserved or promised: you have not given it up" in shown
    only = opened(shared.service, ["reserved-only@example.org", "somebody@example.org"])
    shown = page(shared, "/p/given-up", token=only.fresh(0))
    assert "What you have given up Nothing so far." in shown


def test_whoever_withdrew_after_the_decision_is_told_that_her_price_stays(shared: Live) -> None:
    play = decided(shared.service, 3)
    shared.service.withdraw(play.token(0))
    shown = page(shared, "/p", token=play.fresh(0))
    assert "What you had given has been erased" not in shown
    assert "Your price stays in the confidential record" in shown


# -- staff -------------------------------------------------------------------------------------------------------------


def test_nobody_is_said_to_have_been_told_anything(shared: Live) -> None:
    play = decided(shared.service, 3)
    shown = page(shared, f"/campaigns/{play.id}", name="ann")
    assert "has been told" not in shown
    assert "This server writes to nobody" in shown


def test_checks_of_the_log_are_labelled_so(shared: Live, thinned: Play) -> None:
    shown = page(shared, f"/campaigns/{thinned.id}/audit", name="otto")
    labels = re.findall(r"(record|log) / ([a-z][a-z -]*) ", shown)
    record = Record.from_dict(parsed(shared.service.record(thinned.who, thinned.id)))
    assert [name for kind, name in labels if kind == "record"] == [check.name for check in verify(record).checks]
    assert len([name for kind, name in labels if kind == "log"]) >= 4


def test_typed_ids_are_invited_and_nothing_typed_is_left_aside(ann: Visitor, shared: Live) -> None:
    play = drafted(shared.service, 2)
    path = f"/campaigns/{play.id}/participants"
    assert 'type="radio"' not in ann.get(path).text
    made = ann.sent(path, path, people="one@example.org\ntwo@example.org", once="i" * 32, count="")
    assert "2 links" in words(made)
    labels = [one.label for one in shared.service.participants(play.who, play.id).items]
    assert labels[2:] == ["one@example.org", "two@example.org"]
    for unclear in ({"people": "three@example.org", "count": "20"}, {"people": " ", "count": ""}):
        refused = ann.sent(path, path, once="j" * 32, **unclear)
        assert unclear["people"].strip() in refused.text, "what was typed is there again"
        assert "Fill in one of the three" in words(refused)
    assert sum(shared.service.campaign(play.who, play.id).people.values()) == 4


def test_nobody_is_marked_as_paid_unasked(ann: Visitor, shared: Live) -> None:
    play = released(shared.service, 3)
    payments, pay = f"/campaigns/{play.id}/payments", f"/campaigns/{play.id}/steps/pay"
    due = shared.service.campaign(play.who, play.id).due
    for fields in ({"who": "everybody"}, {"who": "chosen", "label": play.links[0].label}):
        asked = ann.sent(pay, payments, **fields)
        assert asked.status_code == 200
        assert "It can be taken back" in words(asked)
        assert shared.service.campaign(play.who, play.id).paid == 0
    assert "1 person" in words(asked)
    assert "Nobody was chosen" in words(ann.sent(pay, payments, who="chosen"))
    again = hidden(asked.text)
    assert [ann.client.post(pay, data=again).status_code for _ in range(2)] == [303, 303], "a second click is harmless"
    first = next(row for row in shared.service.payments(play.who, play.id) if row.label == play.links[0].label)
    assert shared.service.campaign(play.who, play.id).paid == first.paid < due
    assert [event.kind for event in shared.service.events(play.who, play.id)].count("paid") == 1


def hidden(page: str) -> dict[str, str]:
    """What a page's form sends by itself."""
    return dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page))


def test_a_mark_is_taken_back_once_it_was_asked_about_and_not_made_for_another_sum(ann: Visitor, shared: Live) -> None:
    play = decided(shared.service, 3)
    payments, steps = f"/campaigns/{play.id}/payments", f"/campaigns/{play.id}/steps"
    play.deliver([0, 1])
    label, asked = play.links[0].label, hidden(ann.sent(f"{steps}/pay", payments, who="everybody").text)
    play.deliver([2])
    late = ann.client.post(f"{steps}/pay", data=asked, follow_redirects=True)
    assert "What is due has changed since you looked, so nothing was marked." in words(late)
    shared.service.mark_paid(play.who, play.id, [label])
    paid = shared.service.campaign(play.who, play.id).paid
    assert "Nobody was chosen who is marked as paid." in words(ann.sent(f"{steps}/unpay", payments))
    unpaying = ann.sent(f"{steps}/unpay", payments, label=label)
    assert "Take the marks back?" in words(unpaying)
    assert shared.service.campaign(play.who, play.id).paid == paid > 0
    assert [ann.client.post(f"{steps}/unpay", data=hidden(unpaying.text)).status_code for _ in range(2)] == [303, 303]
    assert shared.service.campaign(play.who, play.id).paid == 0
    assert "How it adds up" in words(ann.get(payments))


def test_a_link_is_not_replaced_unasked(ann: Visitor, shared: Live) -> None:
    play = opened(shared.service, 2)
    path = f"/campaigns/{play.id}/people/{play.links[0].id}/link"
    assert f'href="{path}"' in ann.get(f"/campaigns/{play.id}/people").text
    asked = ann.get(path)
    assert "worth nothing from then on" in words(asked)
    assert "hb_p_" not in asked.text
    assert shared.service.participation(play.token(0)).title, "her link still works"
    once = hidden(asked.text)["once"]
    assert "/p#hb_p_" not in ann.sent(path, path, once="short").text
    made = [re.findall(r"/p#(hb_p_[\w-]+)", ann.sent(path, path, once=once).text) for _ in range(2)]
    assert made[0] == made[1], "a second click is harmless"
    assert len(made[0]) == 1


def test_links_that_were_made_are_shown_to_their_session_alone_and_for_an_hour(ann: Visitor, shared: Live) -> None:
    play = drafted(shared.service, 2)
    path = f"/campaigns/{play.id}/participants"
    shown = ann.send(path, path, people="one@example.org", once="q" * 32).headers["location"]
    assert [ann.get(shown).text.count("/p#hb_p_") for _ in range(2)] == [1, 1], "Reload and Back are harmless"
    assert "one@example.org,,http" in ann.get(f"{shown}/file").text
    with Visitor(shared.url) as again:
        again.log_in("ann", PASSWORD)  # the same analyst, in another session
        for one in (shown, f"{shown}/file"):
            gone = again.client.get(one, follow_redirects=True)
            assert "These links are not shown any more." in words(gone)
            assert "hb_p_" not in gone.text
    shared.service.clock.pass_(hours=1)  # type: ignore[attr-defined]
    assert ann.get(shown).headers["location"] == f"/campaigns/{play.id}/people?told=links"


def test_a_refused_step_is_told_in_the_pages_language(shared: Live) -> None:
    now = shared.service.clock()
    late = drafted(shared.service, 3, bid_by=now + timedelta(minutes=1))
    few, dear = drafted(shared.service, 1), drafted(shared.service, 3, spending_limit=0.01)
    bidding, over = opened(shared.service, 2), released(shared.service, 2)
    shared.service.clock.pass_(minutes=2)  # type: ignore[attr-defined]
    with Visitor(shared.url, **{"Accept-Language": "de"}) as ann:
        ann.log_in("ann", PASSWORD)
        for play, step, told in (
            (late, "open", "bis zu der Preise angenommen werden, ist schon vorbei"),
            (few, "open", "Es müssen mindestens 2 Personen eingeladen sein"),
            (dear, "open", "teurer machen, als der Entwurf auszugeben erlaubt"),
            (bidding, "cancel", "Bitte geben Sie einen Grund von 1 bis 500 Zeichen an."),
            (over, "close", "Noch sind nicht alle bezahlt"),
            (over, "open", "Die Kampagne ist weiter, und nichts wurde geändert."),
        ):
            page = f"/campaigns/{play.id}"
            refused = ann.sent(f"{page}/steps/{step}", f"{page}/copy", reason=" " * 600)
            if play is dear:  # what it may cost is computed in the background
                shared.service.wait(shared.service.jobs(play.who, play.id)[0], timeout=300)
                refused = ann.get(page)
            assert told in words(refused)
            assert 'lang="en"' not in refused.text.partition("<footer")[0]
        assert 'aria-invalid="true"' in ann.sent(f"/campaigns/{bidding.id}/steps/cancel", f"{page}/copy").text


@pytest.mark.parametrize("field", ["privacy_cap", "draft", "spending_limit", "accept_rounding", "people", "strata"])
def test_whatever_an_opening_is_refused_for_has_words_of_its_own(field: str) -> None:
    for texts in languages().values():
        assert f"refused_step.{field}" in texts


def test_a_value_that_cannot_be_changed_is_asked_about(shared: Live) -> None:
    play = decided(shared.service, 3, unit="hours")
    with Visitor(shared.url, **{"Accept-Language": "de"}) as her:
        her.come_in(play.fresh(0))
        asked = her.send("/p/deliver", "/p", value="7.5")
        assert "Diese Antwort abgeben? 7,5 hours" in words(asked)
        assert shared.service.participation(play.token(0)).delivered_at is None
        again = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', asked.text))
        assert her.client.post("/p/deliver", data=again).status_code == 303
    assert shared.service.participation(play.token(0)).delivered_at is not None


@pytest.mark.parametrize("language", languages().values(), ids=lambda texts: texts.language)
def test_where_no_margin_may_be_told_the_page_says_so(language: Any) -> None:
    release = {"estimate": 6.318234, "half_width": {"level": 0.95, "value": None}}
    [shown] = shown_estimates(language, Writing(language), release, (0.0, 10.0), "")
    assert shown.rows[0].value == language("No usable result")
    assert shown.rows[0].drawn in ("6", "6.3", "6,3")
    anywhere = (
        "No margin is shown with this number: one that holds and tells nothing about single people would be as wide as"
        " the range of values, or fewer than five people are behind it. Take it as a hint at most."
    )
    assert shown.sentence.endswith(language(anywhere))
    assert "band2" not in shown.rows[0].bar


def test_a_simulated_cost_is_not_shown_above_its_bound() -> None:
    write = Writing(languages()["en"])
    assert write.roughly(15_021, "EUR", 2) == "151.00\u00a0EUR"
    assert write.roughly(15_021, "EUR", 2, most=15_030) == "150.30\u00a0EUR"
