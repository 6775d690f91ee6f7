"""Every sentence of the consent page follows from settings and is kept; agreeing through the pages is an act.

`PROMISES` names for each sentence the tests of what it promises. The tests here are of what is tested nowhere else.
"""

import ast
import hashlib
import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from hushbid.errors import NotFound
from hushbid.priors import Uniform
from hushbid.questions import Choice, Number, YesNo
from hushbid.server.model.agreement import Passage, stated_of
from hushbid.server.model.settings import CampaignSettings
from hushbid.server.model.states import CampaignState, ParticipantState
from hushbid.server.model.views import MenuView
from hushbid.server.pages import consent
from hushbid.server.pages.wording import CODES, Texts, languages
from hushbid.server.service.views_of import participation_view
from hushbid.server.store.schema import new_id
from tests.server.http.support import Live
from tests.server.pages.support import Visitor, words
from tests.server.support import PASSWORD, Installation, decided, opened, released, settings

TESTS = Path(__file__).parents[1]
SOURCE = TESTS.parents[1] / "src" / "hushbid"
CONSENT = {
    "controller": "Institute for Sleep Research",
    "contact": "privacy@example.org",
    "purpose": "A study of night shifts",
    "storage": "Proofs of payment: ten years.",
    "texts": {"de": "Wir fragen <b>Pflegekräfte</b>."},
}
HERE = "pages/test_consent.py::"
LIFE = "service/test_life_cycle.py::"
REST = "test_at_rest.py::"
AGREEING = "service/test_agreeing.py::"
FIGURES = "pages/test_figures.py::"
SETTINGS_DECIDE = HERE + "test_which_sentence_is_said_follows_from_settings"
NO_VALUE = REST + "test_no_value_is_on_disk_before_or_after_the_release"
GONE = REST + "test_after_the_release_no_copy_of_the_database_can_be_opened"
KEPT = REST + "test_a_key_is_kept_as_long_as_the_settings_say"
PAID_WHERE = "service/test_payouts.py::test_a_handle_is_stored_shown_masked_taken_by_analysts_alone_and_destroyed"
VISIT = "test_single_visit.py::"
OPENED = VISIT + "test_what_is_bought_is_delivered_at_once_and_nothing_else_is_ever_opened"
ONLY_NOISE = "pages/test_surveys.py::test_in_the_local_setting_only_a_message_leaves_the_browser"
NOISE_ALONE = LIFE + "test_a_local_message_must_be_made_with_exactly_the_promised_loss"
ANSWERS = "pages/test_surveys.py::test_a_plain_form_asks_every_question_and_takes_all_answers_or_none"
STATED = HERE + "test_what_the_analyst_states_is_shown_where_it_is_stated"
NOT_A_PROMISE = "a heading or a term"

PROMISES: dict[str, tuple[str, ...] | str] = {
    **dict.fromkeys(
        (
            *("told.short", "told.give", "told.earn", "told.come", "told.paid", "told.until", "told.asks", "told.how"),
            *("risk.heading", "sees.heading", "kept.heading", "consent.rights", "risk.without", "risk.with"),
            *("sees.buyer", "sees.server", "sees.hacker", "sees.court", "sees.price", "sees.world"),
            *("kept.answer_central", "kept.answer_local", "kept.price", "kept.agreement", "kept.payout"),
            "asked.heading",
        ),
        NOT_A_PROMISE,
    ),
    "told.give_later": (LIFE + "test_nobody_delivers_from_whom_nothing_is_bought", SETTINGS_DECIDE),
    "told.give_once": (OPENED, SETTINGS_DECIDE),
    "told.one_question": (SETTINGS_DECIDE,),
    "told.questions": (SETTINGS_DECIDE,),
    "told.earn_text": (
        FIGURES + "test_every_figure_of_the_choice_is_what_the_market_would_do",
        LIFE + "test_if_everybody_asks_for_too_much_nothing_is_bought_and_the_record_says_so",
    ),
    "consent.fee": (LIFE + "test_with_too_few_bids_nothing_is_bought_and_fees_are_due",),
    "told.come_twice": (
        LIFE + "test_states_of_people_after_every_step",
        HERE + "test_this_server_writes_to_nobody_and_moves_no_money",
    ),
    "told.come_by": (LIFE + "test_deliveries_after_the_deadline_are_refused_but_a_repeated_one_is_acknowledged",),
    "told.come_same": ("pages/test_agreed.py::test_the_limit_typed_on_another_device_is_the_limit",),
    "told.come_once": (OPENED, SETTINGS_DECIDE),
    "told.paid_text": (HERE + "test_this_server_writes_to_nobody_and_moves_no_money",),
    "told.payout_none": (HERE + "test_without_a_payout_nobody_is_asked_where_to_pay_her",),
    **dict.fromkeys(("told.payout_email", "told.payout_iban", "told.payout_panel"), (PAID_WHERE, SETTINGS_DECIDE)),
    "kept.payout_text": (PAID_WHERE,),
    "consent.until": (LIFE + "test_bids_after_the_deadline_or_the_decision_are_refused",),
    **dict.fromkeys(("told.controller", "told.purpose", "told.contact", "kept.storage"), (STATED,)),
    "told.how_price": (FIGURES + "test_asking_for_more_never_gets_more",),
    "told.how_decide": (
        "service/test_limits.py::test_a_limit_is_kept_recorded_receipted_and_verified",
        LIFE + "test_nobody_delivers_from_whom_nothing_is_bought",
    ),
    "told.how_central": (NO_VALUE, "service/test_release_once.py::test_a_campaign_opens_once_and_decides_once"),
    "told.how_local": (ONLY_NOISE,),
    "told.how_paid": (
        LIFE + "test_a_person_is_paid_as_soon_as_she_delivered_whatever_the_others_do",
        FIGURES + "test_asking_for_more_never_gets_more",
    ),
    "risk.imagine": (STATED,),
    "risk.observer": (STATED,),
    "risk.statement": (STATED,),
    **dict.fromkeys(
        ("risk.start", "risk.without_text", "risk.with_text", "risk.limit"),
        (FIGURES + "test_the_contrast_is_the_bound_on_odds_and_holds_against_the_best_observer",),
    ),
    "risk.others": (FIGURES + "test_what_an_average_tells_about_people_it_tells_with_or_without_her",),
    "risk.all": ("test_surveys.py::test_a_survey_is_answered_released_verified_and_received_on_every_store",),
    "risk.factor": (HERE + "test_the_odds_grow_by_the_factor_that_is_said",),
    "risk.picture": ("pages/test_wording.py::test_the_picture_fills_as_many_dots_as_the_sentence_says",),
    "risk.picture_text": ("pages/test_wording.py::test_the_picture_fills_as_many_dots_as_the_sentence_says",),
    "sees.buyer_central": (REST + "test_messages_and_logs_hold_no_value_no_bid_and_no_token", NO_VALUE),
    "sees.buyer_local": (ONLY_NOISE,),
    "sees.server_central": (KEPT, NO_VALUE),
    "sees.server_once": (
        OPENED,
        VISIT + "test_no_answer_and_no_key_is_in_any_backup_and_none_is_on_disk_in_the_clear",
        SETTINGS_DECIDE,
    ),
    "sees.server_local": (
        ONLY_NOISE,
        NOISE_ALONE,
        "../client/test_conversations.py::test_a_local_value_leaves_only_with_noise",
    ),
    "sees.hacker_central": (NO_VALUE, GONE),
    "sees.hacker_local": (ONLY_NOISE, NOISE_ALONE),
    "sees.court_central": (KEPT, GONE, REST + "test_a_destroyed_key_is_never_made_anew"),
    "sees.court_local": (ONLY_NOISE, NOISE_ALONE),
    "sees.price_text": ("http/test_roles.py::test_an_auditor_sees_pseudonyms_where_an_analyst_sees_names",),
    "sees.world_public": (HERE + "test_everybody_else_sees_what_the_page_says",),
    "sees.world_invited": (HERE + "test_everybody_else_sees_what_the_page_says",),
    "consent.key_at_once": (GONE,),
    "consent.key_next_day": (KEPT,),
    "consent.key_later": (KEPT,),
    "kept.answer_text": (GONE, KEPT, HERE + "test_what_is_kept_is_kept_as_long_as_the_page_says"),
    "kept.answer_unbought": (OPENED, SETTINGS_DECIDE),
    "visit.how_both": (OPENED, VISIT + "test_no_answer_and_no_key_is_in_any_backup_and_none_is_on_disk_in_the_clear"),
    "visit.how_opened": (OPENED, VISIT + "test_every_end_without_a_purchase_destroys_all_keys"),
    "visit.deadline": (VISIT + "test_every_end_without_a_purchase_destroys_all_keys",),
    "kept.price_text": (
        HERE + "test_what_is_kept_is_kept_as_long_as_the_page_says",
        LIFE + "test_withdrawing_before_the_decision_erases_the_bid",
    ),
    "kept.agreement_text": (AGREEING + "test_an_agreement_is_in_the_log_on_the_receipt_and_in_her_export",),
    "consent.right_decline": (LIFE + "test_states_of_people_after_every_step",),
    "consent.right_withdraw": (
        LIFE + "test_withdrawing_after_delivery_counts_as_dropping_out_and_is_too_late_after_the_release",
        LIFE + "test_withdrawing_before_the_decision_erases_the_bid",
    ),
    "consent.fee_kept": (LIFE + "test_whoever_withdraws_keeps_the_fee_only_if_the_settings_say_so",),
    "consent.fee_lost": (LIFE + "test_whoever_withdraws_keeps_the_fee_only_if_the_settings_say_so",),
    "consent.right_export": (
        REST + "test_a_key_is_kept_as_long_as_the_settings_say",
        "test_clients.py::test_everything_a_campaign_leaves_behind_verifies_together",
    ),
    "consent.right_export_payout": (PAID_WHERE, SETTINGS_DECIDE),
    **dict.fromkeys(("asked.yes_no", "asked.choice", "offer.range"), (ANSWERS,)),
    "asked.all": (ANSWERS, "test_surveys.py::test_a_survey_is_answered_released_verified_and_received_on_every_store"),
    "strata.hers": ("test_strata.py::test_a_combination_of_strata_is_bought_released_verified_and_on_every_receipt",),
    "consent.agree": (HERE + "test_no_price_is_taken_through_the_pages_without_an_agreement",),
    "consent.needs_script": ("pages/test_everybody.py::test_without_scripts_a_local_delivery_says_what_it_needs",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening(Texts):
    """Texts that note which of them are asked for."""

    heard: set[str] = field(default_factory=set)

    def coded(self, code: str, n: int = 1, /, **values: object) -> str:
        self.heard.add(code)
        return Texts.coded(self, code, n, **values)


MENU = MenuView(
    bids=(1.0, 2.0), usual=2, privacy_loss=(1.0, 0.5), payment=(2.0, 0.75), chance=(1.0, 0.5), repetitions=4
)
TIMES = {"bid_by": datetime(2026, 12, 1, tzinfo=UTC), "deliver_by": datetime(2026, 12, 2, tzinfo=UTC)}
HOURS = Number(name="Hours", bounds=(0, 10), unit="h")
TWO = {"bounds": None, "questions": (HOURS, YesNo(name="Tired?"))}
THREE = {"bounds": None, "questions": (*TWO["questions"], Choice(name="Shift", answers=("days", "nights <b>")))}
STRATA = {"strata": {"shares": {"old": 0.335, "young & new": 0.665}}}
EVERY: list[dict[str, Any]] = [
    {},
    {"setting": "local"},
    {"single_visit": True, **TIMES},
    TWO,
    {"retention_days": 1},
    {"retention_days": 30, **TIMES},
    {"consent": CONSENT, "observer": "your employer", "statement": "Do you smoke?"},
    {"participation_fee": 1.5, "payout": "email"},
    {"participation_fee": 1.5, "fee_after_withdrawal": True},
    {"payout": "iban", "public_estimate": True},
    {"payout": "panel"},
    THREE,
    STRATA,
]


def said(stated: CampaignSettings, texts: Texts) -> tuple[Passage, ...]:
    """What the page of a campaign with these settings says."""
    from hushbid.server.model.entities import Campaign, Participant

    now = datetime(2026, 3, 1, tzinfo=UTC)
    empty: dict[str, Any] = dict.fromkeys(Campaign.__dataclass_fields__) | {"id": "c1", "created_at": now}
    campaign = Campaign(**{**empty, "state": CampaignState.BIDDING, "stated": stated, "opened_at": now})
    nothing: dict[str, Any] = dict.fromkeys(Participant.__dataclass_fields__) | {"id": new_id("p"), "paid": 0}
    lists = {"renewed": (), "own_links": (), "own_links_used": ()}
    stratum = None if stated.strata is None else next(iter(stated.weights))
    stands = {"state": ParticipantState.INVITED, "salt": bytes(32), "stratum": stratum}
    she = Participant(**{**nothing, **stands, **lists})
    view = participation_view(campaign, she)
    return consent.passages(texts, view, stated_of(stated, stratum=stratum, language=texts.language), MENU)


def plain(told: tuple[Passage, ...]) -> str:
    return " ".join(f"{term} {text}" for passage in told for term, text in passage.texts)


@pytest.mark.parametrize("language", ["en", "de"])
def test_every_sentence_has_a_test_for_what_it_promises(language: str) -> None:
    spoken = languages()[language]
    texts = Listening(spoken.code, spoken.catalogue)
    for stated in EVERY:
        said(settings(**stated), texts)
    assert texts.heard == set(PROMISES)
    named = {name for tests in PROMISES.values() if isinstance(tests, tuple) for name in tests}
    for name in named:
        path, _, test = name.partition("::")
        defined = {one.name for one in ast.parse((TESTS / path).read_text()).body if isinstance(one, ast.FunctionDef)}
        assert test in defined, name


def test_a_deadline_is_agreed_to_in_words_and_shown_with_the_readers_own_time(shared: Live) -> None:
    now = shared.service.clock()
    later = {"bid_by": now.replace(year=now.year + 1), "deliver_by": now.replace(year=now.year + 2)}
    play = opened(shared.service, 3, **later)
    with Visitor(shared.url) as she:
        she.come_in(play.fresh(0))
        page = she.get("/p").text
        for at in later.values():
            assert f'<time datetime="{at.isoformat(timespec="seconds")}">' in page
        assert "&lt;time" not in page
        she.agree()
        agreed = json.dumps(shared.service.agreed_to(play.token(0)))
        assert "UTC" in agreed
        assert "<time" not in agreed


def test_which_sentence_is_said_follows_from_settings() -> None:
    english = languages()["en"]

    def page(**changes: Any) -> str:
        return plain(said(settings(**changes), english))

    pairs: list[tuple[dict[str, Any], str, dict[str, Any], str]] = [
        ({}, "told.come_twice", {"single_visit": True}, "told.come_once"),
        ({}, "told.give_later", {"single_visit": True}, "told.give_once"),
        ({}, "told.one_question", TWO, "told.questions"),
        ({}, "told.payout_none", {"payout": "iban"}, "told.payout_iban"),
        ({"payout": "email"}, "told.payout_email", {"payout": "panel"}, "told.payout_panel"),
        (
            {"participation_fee": 0.01},
            "consent.fee_lost",
            {"fee_after_withdrawal": True, "participation_fee": 0.01},
            "consent.fee_kept",
        ),
        ({}, "sees.world_invited", {"public_estimate": True}, "sees.world_public"),
        ({}, "sees.hacker_central", {"setting": "local"}, "sees.hacker_local"),
        ({}, "told.how_central", {"setting": "local"}, "told.how_local"),
        ({}, "consent.right_export", {"payout": "iban"}, "consent.right_export_payout"),
        ({}, "sees.server_central", {"single_visit": True}, "sees.server_once"),
    ]
    for one, first, other, second in pairs:
        for stated, name, absent in ((one, first, second), (other, second, first)):
            shown = page(**stated)
            at_once = CODES["consent.key_at_once"]
            assert english.coded(name, number=2, key=at_once) in shown, name
            assert str(CODES[absent]).partition("{")[0] not in shown, absent
    for only, name in (
        ({"single_visit": True}, "kept.answer_unbought"),
        ({"setting": "local"}, "told.come_same"),
        (TWO, "risk.all"),
    ):
        assert english.coded(name) in page(**only)
        assert english.coded(name) not in page()
    assert "Destroyed 45 days after the campaign is over." in page(payout="email", payout_days=45)
    assert "Destroyed 1 day after the campaign is over." in page(payout="email", payout_days=1)
    assert "Destroyed" not in page()


def test_the_odds_grow_by_the_factor_that_is_said() -> None:
    for loss, factor in ((1.0, "2.8"), (2.0, "7.4"), (0.1, "1.2")):
        told = said(settings(max_privacy_loss=loss), languages()["en"])
        assert f"the odds grow to at most {factor} times what they were" in plain(told)


def test_what_the_analyst_states_is_shown_where_it_is_stated(shared: Live) -> None:
    play = opened(
        shared.service,
        2,
        consent=CONSENT,
        observer="your <b>employer</b>",
        statement="Did you sleep less than 6 hours?",
    )
    bare = opened(shared.service, 2)
    for language in ("en", "de"):
        with Visitor(shared.url, **{"Accept-Language": language}) as her:
            her.come_in(play.fresh(0))
            page = her.get("/p").text
            shown = words(her.get("/p"))
            for told in (CONSENT["controller"], CONSENT["contact"], CONSENT["purpose"], CONSENT["storage"]):
                assert told in shown
            assert '<div class="told" lang="de">Wir fragen &lt;b&gt;Pflegekräfte&lt;/b&gt;.</div>' in page
            assert "your &lt;b&gt;employer&lt;/b&gt;" in page
            assert "Did you sleep less than 6 hours?" in shown
            her.agree()
            assert "Did you sleep less than 6 hours?" in words(her.get("/p/choice"))
            her.come_in(bare.fresh(0))
            shown = words(her.get("/p"))
            for name in ("told.asks", "kept.storage"):
                assert languages()[language].coded(name) not in shown
            assert languages()[language].coded("risk.statement") in shown
    with Visitor(shared.url) as otto:
        otto.log_in("otto", PASSWORD)
        overview = words(otto.get(f"/campaigns/{play.id}"))
        for told in (
            CONSENT["controller"],
            CONSENT["contact"],
            CONSENT["purpose"],
            CONSENT["storage"],
            CONSENT["texts"]["de"],
            "your <b>employer</b>: Did you sleep less than 6 hours?",
        ):
            assert told in overview
        assert "/agreements.csv" in otto.get(f"/campaigns/{play.id}").text


def test_this_server_writes_to_nobody_and_moves_no_money() -> None:
    """Nothing in it speaks to mail servers or banks: no module of ours loads what could."""
    for path in (SOURCE / "server").rglob("*.py"):
        loaded = {
            name.split(".")[0]
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Import | ast.ImportFrom)
            for name in ([one.name for one in node.names] if isinstance(node, ast.Import) else [node.module or ""])
        }
        assert loaded.isdisjoint({"smtplib", "aiosmtplib", "requests", "urllib3", "ftplib", "telnetlib"}), path


def test_without_a_payout_nobody_is_asked_where_to_pay_her(shared: Live) -> None:
    play = opened(shared.service, 3)
    with Visitor(shared.url) as her:
        her.come_in(play.fresh(0))
        her.agree()
        asked = set(re.findall(r'<(?:input|textarea)[^>]* name="(\w+)"', her.get("/p/choice").text))
        assert asked <= {"csrf", "price", "limit"}
        her.send("/p/bid", "/p/choice", price="1.5")
        play.bid([1, 2])
        play.decide()
        asked = set(re.findall(r'<(?:input|textarea)[^>]* name="(\w+)"', her.get("/p").text))
        assert asked == {"csrf", "nonce", "value"}


def test_everybody_else_sees_what_the_page_says(shared: Live) -> None:
    for public in (False, True):
        play = released(shared.service, 3, public_estimate=public)
        view = shared.service.public(play.id)
        assert (view.people, view.question) == (3, "How many hours did you sleep last night?")
        assert (view.release is not None) == public
        assert shared.service.participation(play.token(0)).estimate is not None


def test_what_is_kept_is_kept_as_long_as_the_page_says(installation: Installation) -> None:
    with installation.start() as service:
        over, cancelled, nobody = released(service, 3), opened(service, 2), decided(service, 2, retention_days=30)
        waiting = decided(service, 2)
        waiting.deliver()
        service.cancel(cancelled.who, cancelled.id, "Not today.")
        assert nobody.release(accept_nobody=True).state == "done"
        service.tick()
        for play in (over, cancelled, nobody):
            assert not (installation.folder / "keys" / "data" / f"{play.id}.key").exists()
        installation.clock.pass_(days=3650)
        service.tick()
        assert service.record(over.who, over.id), "a price stays in the record"
        key = installation.folder / "keys" / "data" / f"{waiting.id}.key"
        assert key.exists(), "nobody has drawn the average, or ended the campaign"
        with pytest.raises(NotFound):
            service.record(over.who, cancelled.id)


# -- agreeing through the pages ----------------------------------------------------------------------------------------


KINDS: dict[str, tuple[dict[str, Any], Any]] = {
    "central": ({}, 2),
    "local": ({"setting": "local"}, 2),
    "one visit with deadlines": ({"single_visit": True, "deadlines": True}, 2),
    "local survey": ({**THREE, "setting": "local"}, 2),
    "survey with limits": ({**THREE, "limits": True, "description": "All\nabout\t<i>sleep</i>."}, 2),
    "strata": (STRATA, [("a", None, "old"), ("b", None, "young & new")]),
    "groups": ({"prior": {"days": Uniform(1, 2), "nights": Uniform(1, 3)}}, [("a", "days"), ("b", "nights")]),
    "fees and payout": ({"participation_fee": 1.5, "payout": "iban", "public_estimate": True}, 2),
    "everything stated": (
        {
            **TWO,
            **STRATA,
            "consent": CONSENT,
            "participation_fee": 1.5,
            "fee_after_withdrawal": True,
            "observer": "your <b>employer</b>",
            "statement": "Do you smoke?",
            "retention_days": 30,
            "deadlines": True,
        },
        [("a", None, "old"), ("b", None, "young & new")],
    ),
}


class _Main(HTMLParser):
    """All letters of a page's main part, those of the agreement and all others; labels must be words."""

    def __init__(self) -> None:
        super().__init__()
        self.agreed: list[str] = []
        self.beside: list[str] = []
        self._into: list[str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "main":
            self._into = self.beside
        if tag == "article":
            self._into = self.agreed
        if self._into is self.agreed:
            assert not {"alt", "title", "aria-label", "placeholder", "aria-description"} & dict(attrs).keys()

    def handle_endtag(self, tag: str) -> None:
        if tag in ("main", "article"):
            self._into = self.beside if tag == "article" else None

    def handle_data(self, data: str) -> None:
        if self._into is not None:
            self._into += letters(data)


def letters(text: str) -> list[str]:
    """A text without its spaces, which are markup's."""
    return list("".join(text.split()))


def words_of(document: dict[str, Any]) -> list[str]:
    """Everything in an agreement's document that is meant for people, in order."""
    stated, told = document["stated"], document["told"]
    texts = [stated["title"], stated["question"], stated["description"], stated["consent"]["text"]]
    for passage in told:
        texts += [passage["heading"], *(one[name] for one in passage["texts"] for name in ("term", "text"))]
    return letters(" ".join(texts))


@pytest.mark.parametrize("kind", KINDS)
def test_the_stored_agreement_has_every_word_of_the_page_and_no_other(shared: Live, kind: str) -> None:
    changes, people = KINDS[kind]
    now = shared.service.clock()
    if changes.get("deadlines"):
        times = {"bid_by": now.replace(year=now.year + 1), "deliver_by": now.replace(year=now.year + 2)}
        changes = {name: value for name, value in changes.items() if name != "deadlines"} | times
    play = opened(shared.service, people, **changes)
    for row, language in enumerate(("en", "de")):
        texts = languages()[language]
        with Visitor(shared.url, **{"Accept-Language": language}) as her:
            her.come_in(play.link(row))
            page, again = _Main(), _Main()
            page.feed(her.get("/p").text)
            assert her.agree().headers["location"] == "/p/choice"
            # in another language than she agreed in: her words stay
            again.feed(her.get(f"/p/agreement?lang={'de' if language == 'en' else 'en'}").text)
        document = shared.service.agreed_to(play.token(row))
        assert document is not None
        act = letters(texts.coded("consent.agree"))
        assert page.agreed + act == words_of(document) == again.agreed
        steps = [texts.coded(f"progress.{name}") for name in ("consent", "price", "value", "receipt")]
        buttons = [texts.coded("consent.agree"), texts("Agree and continue"), texts("I decline")]
        assert page.beside == letters("".join((*steps, *buttons))), "beside it are the path, the act and two buttons"


def test_the_version_agreed_to_is_the_hash_of_the_stored_document(shared: Live) -> None:
    play = opened(shared.service, 2, consent=CONSENT, participation_fee=1.5)
    for row, language in enumerate(("en", "de")):
        with Visitor(shared.url, **{"Accept-Language": language}) as her:
            her.come_in(play.fresh(row))
            her.agree()
            again = words(her.get("/p/agreement"))
        document = shared.service.agreed_to(play.token(row))
        agreed = shared.service.participation(play.token(row)).agreement
        assert document is not None
        assert agreed is not None
        version = hashlib.sha256(json.dumps(document, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
        assert (agreed.version, agreed.language, document["language"]) == (version, language, language)
        assert version in again


def test_no_price_is_taken_through_the_pages_without_an_agreement(shared: Live) -> None:
    play = opened(shared.service, 2)
    with Visitor(shared.url) as her:
        her.come_in(play.fresh(0))
        for path in ("/p/choice", "/p/choice?agreed=yes"):
            refused = her.get(path)
            assert refused.status_code == 422
            assert "Please tick that you have read this" in words(refused)
        for path in ("/p/choice", "/p/bid"):
            assert her.send(path, "/p", price="1.5", agreed="yes").status_code == 422
        assert her.client.get("/p/agree").status_code == 405
        assert her.send("/p/agree", "/p").status_code == 422
        assert her.send("/p/agree", "/p", agreed="yes", version="0" * 64, language="en").status_code == 409
        assert shared.service.participation(play.token(0)).agreement is None
        assert her.agree().status_code == 303
        assert "You agreed to this on" in words(her.get("/p"))
        german = words(her.get("/p?lang=de"))
        assert "was diese Seite auf English sagt" in german
        assert her.send("/p/bid", "/p/choice", price="1.5").status_code == 303
        assert her.send("/p/agree", "/p/choice", agreed="yes").status_code == 409, "she has named her price"
