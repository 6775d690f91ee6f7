"""A report in another language says the same as in English, and all of it."""

import re
from functools import cache
from html import unescape

import numpy as np
import pytest

from hushbid import LogNormal, Market
from hushbid.audit import PrivacyAudit
from hushbid.campaign.notices import SIMULATED, SYNTHETIC, late_notice, stratum_notice, wave_notices
from hushbid.errors import InputError
from hushbid.languages import languages
from hushbid.report import build_report, render_report
from hushbid.report.build import LESS_EXACT_PAYMENTS
from hushbid.report.language import say, say_sentence, speaking

OTHERS = [language for language in languages() if language != "en"]
ENGLISH = re.compile(
    r"\b(the|of|and|is|are|were|to|from|with|without|people|what|nobody|everybody|not|for|by|each|if|than|more|less|loss|"
    r"price|report|share|who|bought|paid|payment|error|noise|data|datum|campaign|setting|yes|no|value)\b"
)


def shown(page: str) -> list[str]:
    """The texts of a page, without what is typed into a terminal."""
    text = re.sub(r"<style>.*?</style>|<code.*?</code>|<title>Sleep.*?</title>", "", page, flags=re.DOTALL)
    named = re.findall(r'aria-label="([^"]*)"', text)
    return [unescape(one) for one in (*re.split(r"<[^>]*>", text), *named) if one.strip()]


@cache
def page_in(language: str) -> str:
    prior = LogNormal(0.0, 0.5)
    market = Market(prior=prior, user_weight=0.0, buyer_weight=3000.0, max_privacy_loss=0.4)
    outcome = market.acquire(prior.sample(300, rng=np.random.default_rng(5)))
    audit = PrivacyAudit(
        user=17,
        promised=0.5,
        lower_bound=0.44,
        event="output at most 0.3",
        fit_p_value=0.3,
        confidence=0.999999,
        samples=50_000,
        power=0.97,
    )
    report = build_report(
        outcome,
        title="Schlaf",
        unit="Stunden",
        currency="EUR",
        groups=["Nord"] * 140 + ["Süd"] * 160,
        audits=[audit],
        notices=[SYNTHETIC, "Our own words."],
        record_hash="ab" * 32,
        language=language,
    )
    return render_report(report)


@pytest.mark.parametrize("language", OTHERS)
def test_a_page_is_wholly_in_its_language(language: str) -> None:
    page = page_in(language)
    assert f'<html lang="{language}">' in page
    texts = shown(page)
    assert [one for one in texts if ENGLISH.search(one)] == []
    assert "Our own words." in texts  # what the caller words stays


def test_german_numbers_have_commas_and_amounts_come_before_the_currency() -> None:
    page = unescape(page_in("de"))
    assert re.search(r"\d{1,3},\d\d\u00a0EUR", page)
    assert not re.search(r"EUR\u00a0\d", page)
    assert "50.000 Ergebnisse" in page
    assert "99,9999\u00a0%" in page


def test_notices_of_ours_are_said_in_the_pages_language_and_others_stay() -> None:
    ours = [
        *(notice for before in (0, 1, 3) for notice in wave_notices(4, before)),
        *(late_notice(2, "unpaid"), late_notice(1, "paid"), SIMULATED, SYNTHETIC, LESS_EXACT_PAYMENTS),
        *(stratum_notice("Schlaf", 1), stratum_notice("Schlaf", 3)),
    ]
    with speaking("de"):
        told = [say_sentence(one) for one in ours]
    assert [one for one in told if ENGLISH.search(one)] == []
    assert "2 Personen" in told[3]
    assert "Schlaf" in told[-1]
    assert [say_sentence(one) for one in ours] == [str(one) for one in ours]


def test_what_somebody_typed_cannot_become_markup_inside_a_translated_sentence() -> None:
    hostile = "<script>alert(1)</script>\u202e%(name)s {name}"
    outcome = Market(prior=LogNormal(0.0, 0.5), buyer_weight=300.0).acquire([1.0] * 30)
    for language in languages():
        report = build_report(
            outcome, title=hostile, question=hostile, unit=hostile, comparison="omit", language=language
        )
        page = render_report(report)
        assert "<script" not in page
        assert "\u202e" not in page
        assert "&lt;script&gt;alert(1)&lt;/script&gt;%(name)s {name}" in page


def test_outside_of_it_everything_is_english_and_other_languages_are_refused() -> None:
    with speaking("de"):
        assert say("the mean") == "der Mittelwert"
    assert say("the mean") == "the mean"
    with pytest.raises(InputError, match="language must be one of en, de, got 'fr'") as refused, speaking("fr"):
        pass
    assert refused.value.field == "language"
