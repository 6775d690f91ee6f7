"""A draft's form and settings: each gives the other back, and whatever is wrong is told at its field, all at once."""

import math
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hushbid.campaign.reading import SpecError
from hushbid.priors import Exponential, LogNormal, Uniform
from hushbid.priors.fitting import fit_priors
from hushbid.questions import MOST_QUESTIONS, Choice, Number, YesNo
from hushbid.server.model.settings import CampaignSettings
from hushbid.server.pages.draft_form import Filled, as_typed, filled, first_form, in_language, unavailable
from hushbid.server.pages.form_fields import EMPTY, PRIVACY, RELATIONS
from hushbid.server.pages.form_prices import MOST_BYTES, PilotRefused, Z, fitted_pilot, typical_prices, typical_prior
from hushbid.server.pages.form_rows import pressed
from hushbid.server.pages.wording import CODES, Writing, languages
from tests.extent import each
from tests.server.support import Clock, settings, stated

EN, DE = (Writing(languages()[language]) for language in ("en", "de"))
SURVEY = (
    Number(name="hours", bounds=(0, 12.5), unit="h", variance=4.25),
    YesNo(name="Do you smoke?", importance=2.5),
    Choice(name="Shift", answers=("days", "nights", "no answer")),
)
FULL: dict[str, Any] = {
    "single_visit": True,
    "consent": {
        "controller": "Sleep Lab\nMain St 1",
        "contact": "a@x.org",
        "purpose": "x",
        "texts": {"de": "Guten Tag"},
    },
    "observer": "your employer",
    "statement": "Did you sleep less than 6 hours?",
    "payout": "iban",
    "payout_days": 30,
    "limits": True,
}


SLEEP = {"title": "Sleep", "q-0-name": "How long?", "q-0-low": "0", "q-0-high": "10"}


def read(typed: dict[str, str], write: Writing = EN) -> Filled:
    return filled({**first_form(write), "title": "Sleep", "q-0-name": "How long?", **typed}, write, least=2)


def simple(**typed: str) -> Filled:
    return read({"q-0-low": "0", "q-0-high": "10", **typed})


# -- there and back ----------------------------------------------------------------------------------------------------


@each("write", [EN, DE])
@each(
    "changes",
    [
        {},
        {"participation_fee": 1.5, "spending_limit": 1234.56, "automatic": True, "public_estimate": True},
        {"currency": "JPY", "participation_fee": 150},
        {"currency": "PTS", "decimals": 1, "participation_fee": 1.5},
        {"prior": {"days": Uniform(1, 2), "nights": Exponential(0.5)}, "variance": 1.125},
        {"bounds": (-0.125, 1234.5), "buyer_weight": 0.001, "max_privacy_loss": 0.125, "retention_days": 30},
        {"budget": 1234.5, "max_correlation": 0.125, "prior": typical_prior(0.25, 12.5)},
        {"hard_budget": 200, "currency": "JPY", "prior": LogNormal(0.1, 0.3)},
        {"standard_error": 0.25, "max_correlation": 1.0},
        {"bounds": None, "questions": SURVEY, "budget": 500, **FULL},
        {"bounds": None, "questions": SURVEY, "standard_error": (0.3, 0.07, 0.123456789), "max_privacy_loss": 2.0},
        {"bounds": None, "questions": SURVEY[:1], "budget": 500},
        {"strata": {"shares": {"old": 0.335, "young": 0.665}}, "budget": 50, "max_privacy_loss": 2.0},
        {"strata": {"contrast": {"old": 1, "young": -1}}, "budget": 50, "expected_share": 0.75},
        {"setting": "local", "standard_error": 0.9, "max_privacy_loss": 2.0, "limits": False, "single_visit": False},
    ],
)
def test_settings_survive_the_form(write: Writing, changes: dict[str, Any]) -> None:
    if changes.get("automatic"):
        later = Clock()().replace(second=0, microsecond=0)
        changes = {**changes, "bid_by": later, "deliver_by": later + timedelta(days=1)}
    given = settings(**changes)
    found = filled({**as_typed(given.to_dict(), write), "people": "5"}, write, least=2)
    assert found.problems == {}
    assert found.settings == given.changed(
        {"market.population": 5, "server.limits": None if given.takes_limits else False}
    )


def test_what_was_typed_in_one_language_means_the_same_in_another() -> None:
    typed = {**as_typed(stated(questions=SURVEY, budget=1234.5), EN), "people": "5"}
    typed |= {"participation_fee": "1.500", "spending_limit": "twelve", "description": "1.5 hours"}
    german = in_language(typed, "en", DE)
    assert (german["participation_fee"], german["q-0-high"], german["budget"]) == ("1,5", "12,5", "1234,5")
    assert (german["spending_limit"], german["description"]) == ("twelve", "1.5 hours"), "text stays as it is"
    assert filled({**german, "spending_limit": ""}, DE, least=2).settings == (
        filled({**typed, "spending_limit": ""}, EN, least=2).settings
    )
    assert in_language(german, "de", EN) == {**typed, "participation_fee": "1.5"}


# -- what is wrong -----------------------------------------------------------------------------------------------------


@each(
    ("typed", "field"),
    [
        ({"goal": ""}, "goal"),
        ({"goal": "profit"}, "goal"),
        ({"goal": "accuracy", "q-0-error": "little"}, "q-0-error"),
        ({"goal": "accuracy"}, "q-0-error"),
        ({"goal": "cost", "buyer_weight": "0"}, "buyer_weight"),
        ({"budget": "1.005"}, "budget"),
        ({"budget": "-3"}, "budget"),
        ({"relation": "own", "max_correlation": "1.5"}, "max_correlation"),
        ({"privacy": "own", "max_privacy_loss": "0"}, "max_privacy_loss"),
        ({"price_low": "6"}, "price_high"),
        ({"price_low": "0"}, "price_low"),
        ({"prices": "pilot"}, "pilot_file"),
        ({"prices": "text", "prior": "uniform:2,1"}, "prior"),
        ({"prices": "text"}, "prior"),
        ({"q-0-high": "0"}, "q-0-high"),
        ({"q-0-variance": "26"}, "q-0-variance"),
        ({"q-0-kind": "choice", "q-0-answers": "one"}, "q-0-answers"),
        ({"questions": "2", "q-1-kind": "yes_no", "q-1-name": "How long?"}, "q-1-name"),
        ({"strata": "1", "s-0-name": "old", "s-0-weight": "50"}, "strata"),
        ({"strata": "1", "s-0-weight": "100"}, "s-0-name"),
        ({"currency": "eur"}, "currency"),
        ({"decimals": "7"}, "decimals"),
        ({"minimum_people": "1"}, "minimum_people"),
        ({"people": "0"}, "people"),
        ({"payout": "gold"}, "payout"),
        ({"payout_days": "0"}, "payout_days"),
        ({"retention_days": "9999"}, "retention_days"),
        ({"bid_by": "soon"}, "bid_by"),
        ({"bid_by": "2026-01-02T00:00", "deliver_by": "2026-01-01T00:00"}, "deliver_by"),
        ({"automatic": "yes", "bid_by": "2026-01-02T00:00", "single_visit": ""}, "deliver_by"),
        ({"observer": "x" * 101}, "observer"),
        ({"consent_contact": "x" * 501}, "consent_contact"),
        ({"consent_text_de": "a\x07b"}, "consent_text_de"),
        ({"title": "x" * 201}, "title"),
        ({"spending_limit": "0"}, "spending_limit"),
        # found by the settings themselves, and told in the form's words
        ({"setting": "local", "q-0-kind": "yes_no", "goal": "cost", "buyer_weight": "5"}, "relation"),
    ],
)
def test_a_problem_is_told_at_its_field_in_either_language(typed: dict[str, str], field: str) -> None:
    english = simple(**typed)
    assert list(english.problems) == [field]
    german = filled(
        in_language({**first_form(EN), **SLEEP, **typed}, "en", DE),
        DE,
        least=2,
    )
    assert list(german.problems) == [field]
    assert german.problems[field] != english.problems[field]
    assert "must" not in german.problems[field]
    assert not any(word in english.problems[field] for word in ("_", "got ", "goal must", "field"))


def test_all_problems_are_found_at_once() -> None:
    found = read({"title": "", "q-0-name": "", "budget": "much", "price_low": "", "payout_days": "x", "currency": ""})
    assert set(found.problems) == {
        *("title", "q-0-name", "q-0-low", "q-0-high", "budget", "price_low", "payout_days", "currency")
    }


@each(
    ("field", "place"),
    [
        *(("market.prior", "price_high"), ("market.bounds", "q-0-high"), ("questions.4.bounds", "q-3-high")),
        *(("strata.shares", "strata"), ("market.hard_budget", "budget"), ("market.max_correlation", "relation")),
        *(("server.consent.contact", "consent_contact"), ("market.population", "people"), ("wave", "form")),
    ],
)
def test_whatever_settings_refuse_is_told_without_their_english(
    monkeypatch: pytest.MonkeyPatch, field: str, place: str
) -> None:
    def refuse(values: object) -> None:
        raise SpecError("title must be different.", [(field, "must be different.")])

    monkeypatch.setattr(CampaignSettings, "read", refuse)
    found = filled({**first_form(DE), "title": "S", "q-0-name": "?", "q-0-low": "0", "q-0-high": "9"}, DE, least=2)
    assert list(found.problems) == [place]
    assert "different" not in found.problems[place]
    codes = [code for code in CODES if code.startswith(("refused_setting.", "form.range"))]
    assert found.problems[place] in {DE.texts.coded(code) for code in codes}


def test_every_refusal_of_a_setting_has_words_for_its_field() -> None:
    names = {name.removeprefix("refused_setting.") for name in CODES if name.startswith("refused_setting.")}
    assert {"prior", "bounds", "strata", "budget", "hard_budget", "standard_error", "max_correlation", "form"} <= names


def test_only_the_number_of_the_chosen_goal_is_meant() -> None:
    found = simple(goal="cost", budget="x", buyer_weight="7").settings
    assert found is not None
    assert (found.stated, found.market.buyer_weight) == ("buyer_weight", 7.0)


@pytest.mark.parametrize(
    ("typed", "greyed"),
    [
        ({}, set()),
        ({"strata": "2"}, set()),
        ({"setting": "local"}, {"limits"}),
        ({"setting": "local", "q-0-kind": "yes_no"}, {"limits", "relation"}),
    ],
    ids=["central", "strata", "local", "yes or no"],
)
def test_what_does_not_go_with_what_is_typed_is_greyed_out_and_refused(typed: dict[str, str], greyed: set[str]) -> None:
    here = {**first_form(EN), **SLEEP, **typed}
    found = unavailable(here)
    assert set(found) == greyed
    assert all(EN.texts.coded(code).startswith("Not possible here") for code in found.values())


def test_an_empty_form_says_what_is_missing_and_nothing_else() -> None:
    assert set(filled(EMPTY, EN).problems) == {"title", "q-0-name", "q-0-low", "q-0-high"}


def test_single_visit_and_limits_are_left_aside_where_noise_is_added_in_browsers() -> None:
    local = {"setting": "local", "goal": "cost", "buyer_weight": "9", "relation": "none"}
    found = simple(**local).settings
    assert found is not None
    assert (found.server.single_visit, found.takes_limits, found.market.max_privacy_loss) == (False, False, 1.0)
    central = simple().settings
    assert central is not None
    assert (central.server.single_visit, central.takes_limits) == (True, True), "the defaults of the central setting"


# -- questions and strata ----------------------------------------------------------------------------------------------


def test_buttons_add_move_and_remove_questions_with_all_that_was_typed() -> None:
    typed = {**EMPTY, "q-0-name": "first", "q-0-low": "1"}
    typed, at = pressed(typed, "question-add:choice") or ({}, "")
    assert (at, typed["questions"], typed["q-1-kind"]) == ("q-1", "2", "choice")
    typed = {**typed, "q-1-name": "second", "q-1-answers": "a\nb"}
    typed, at = pressed(typed, "question-up:1") or ({}, "")
    assert (at, typed["q-0-name"], typed["q-0-answers"], typed["q-1-low"]) == ("q-0", "second", "a\nb", "1")
    typed, _ = pressed(typed, "question-remove:0") or ({}, "")
    assert (typed["questions"], typed["q-0-name"], typed["q-0-low"]) == ("1", "first", "1")
    assert "q-1-name" not in typed
    typed, _ = pressed(typed, "question-remove:0") or ({}, "")
    assert (typed["questions"], typed["q-0-kind"], typed["q-0-name"]) == ("1", "number", ""), "one is always there"
    typed, _ = pressed(typed, "stratum-add:") or ({}, "")
    assert typed["strata"] == "1"
    for nothing in ("question-up:0", "question-down:9", "question-remove:x", "question-remove:-1"):
        assert (pressed(typed, nothing) or ({}, ""))[0]["questions"] == "1"
    assert pressed(typed, "save") is None


# -- prices ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("low", "high"), [(0.5, 5.0), (0.01, 1000.0), (3.0, 3.5), (1e-6, 123456.0)])
def test_one_in_ten_asks_less_than_the_low_price_and_one_in_ten_more_than_the_high_one(low: float, high: float) -> None:
    prior = typical_prior(low, high)
    assert float(prior.prior.cdf(low)) == pytest.approx(0.1)
    assert 1.0 - float(prior.prior.cdf(high)) == pytest.approx(0.1)
    assert float(prior.prior.quantile(0.5)) == pytest.approx(math.sqrt(low * high))
    assert typical_prices(prior) == (low, high)
    # cut where one in a thousand is beyond, rounded outwards: what people ask is hardly another distribution
    least, most = prior.support
    assert 8e-4 < float(prior.prior.cdf(least)) <= 1e-3
    assert 8e-4 < 1.0 - float(prior.prior.cdf(most)) <= 1e-3 * (1.0 + 1e-9)
    assert [float(f"{end:.3g}") for end in prior.support] == list(prior.support)
    assert float(prior.cdf(low)) == pytest.approx(0.1, abs=1e-3)


def test_a_lognormal_prior_of_other_numbers_is_shown_as_a_text() -> None:
    assert typical_prices(LogNormal(0.123, 0.456)) is None
    assert as_typed(stated(prior=LogNormal(0.123, 0.456)), EN)["prices"] == "text"


def pilot(values: list[object], head: str = "price") -> bytes:
    return "\n".join([head, *map(str, values)]).encode()


def test_a_pilot_is_fitted_as_the_command_does_but_never_by_its_own_answers() -> None:
    values = np.random.default_rng(7).lognormal(0.5, 0.6, 60)
    found = fitted_pilot(pilot(values.tolist(), "id;Bid").replace(b"\n", b"\nx;").replace(b"x;id", b"id"))
    best = next(fit for fit in fit_priors(values) if fit.family != "empirical")
    assert (found.prior, found.people) == (best.prior.to_text(), 60)
    few = fitted_pilot(pilot([1, 1, 1, 1, 2, 2, 2, 9, 9, 9, 9, 9]))
    assert not few.prior.startswith("empirical")


@each(
    ("content", "text", "values"),
    [
        (b"", "pilot_missing", {}),
        (pilot([1] * 12, "euros"), "pilot_column", {}),
        (pilot([1, 2, 3]), "pilot_few", {"least": "10", "got": "3"}),
        (pilot([2] * 12), "pilot_same", {}),
        (pilot([1, 2, "secret", *range(10)]), "pilot_row", {"row": "4"}),
        (pilot([1, -2, *range(1, 12)]), "pilot_row", {"row": "3"}),
        (b"\x00\x01\x02\xff" * 9, "pilot_unreadable", {}),
        (b"x" * (2 << 20) + b"y", "pilot_large", {"most": "2"}),
    ],
)
def test_a_pilot_that_cannot_be_used_is_told_by_its_row_and_never_by_what_it_holds(
    content: bytes, text: str, values: dict[str, str]
) -> None:
    with pytest.raises(PilotRefused) as refused:
        fitted_pilot(content)
    assert refused.value.code == f"form.{text}"
    assert refused.value.values == values
    for language in languages().values():
        assert "secret" not in language.coded(refused.value.code, **values)


def test_the_form_has_a_field_for_every_setting() -> None:
    assert set(EMPTY) == set(as_typed(stated(), EN))
    assert EMPTY["single_visit"] == "yes"


def test_the_how_to_names_the_numbers_of_the_form() -> None:
    page = " ".join((Path(__file__).parents[3] / "docs" / "how-to" / "conduct-a-campaign.md").read_text().split())
    assert f"(ln high − ln low)/{2 * Z:.4f}" in page
    strong, medium, light = PRIVACY.values()
    assert f"{strong:g} (strong), {medium:g} (medium), {light:g} (light)" in page
    assert " is {:g}, {:g}, {:g} or a number of yours".format(*RELATIONS.values()) in page
    assert f"even odds become at most {EN.sure(1.0)}".replace("\u00a0", " ") in page
    assert f"up to {MOST_BYTES >> 20} MB" in page


def test_a_question_too_many_erases_none() -> None:
    full = {"questions": str(MOST_QUESTIONS), **{f"q-{place}-name": f"Q{place}" for place in range(MOST_QUESTIONS)}}
    after = pressed(full, "question-add:choice")
    assert after is not None
    assert {name: after[0][name] for name in full} == full
