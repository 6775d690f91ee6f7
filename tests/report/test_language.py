"""A report in another language says the same as in English, and all of it."""

import ast
import re
from functools import cache
from html import unescape
from importlib.resources import files
from pathlib import Path
from string import Formatter

import numpy as np
import pytest
from jinja2 import nodes

import hushbid
from hushbid import LogNormal, Market
from hushbid.audit import PrivacyAudit
from hushbid.audit.incentive_report import SENTENCES
from hushbid.baselines import BASELINES
from hushbid.disclosure.error import FEW, FEW_IN_STRATUM
from hushbid.errors import InputError
from hushbid.purchase.by_stratum import _one_of
from hushbid.purchase.releasing import SYNTHETIC_NOTICE, wave_stamps
from hushbid.purchase.writing import SIMULATED
from hushbid.report import build_report, render_report
from hushbid.report.build import SECTIONS
from hushbid.report.language import LANGUAGES, retold, say, sentences, speaking
from hushbid.report.rendering import environment
from hushbid.report.schedule_chart import PAYMENT_PARTS
from hushbid.report.sections.privacy import FEW_FOR_A_CHART
from hushbid.report.suppression import NOT_STATED

SOURCE = Path(hushbid.__file__).parent
SPEAKING = [*sorted((SOURCE / "report").rglob("*.py")), SOURCE / "wording.py", SOURCE / "priors" / "forms.py"]
OTHERS = [language for language in LANGUAGES if language != "en"]
UNSAID = {"{sure:.7g}"}
"""Nothing but a number."""

ENGLISH = re.compile(
    r"\b(the|of|and|is|are|were|to|from|with|without|people|what|nobody|everybody|not|for|by|each|if|than|more|less|loss|"
    r"price|report|share|who|bought|paid|payment|error|noise|data|datum|campaign|setting|yes|no|value)\b"
)


def said() -> set[str]:
    """Every sentence that the code of bids says."""
    calls = (node for path in SPEAKING for node in ast.walk(ast.parse(path.read_text("utf-8"))))
    named = (node for node in calls if isinstance(node, ast.Call) and node.args)
    return {
        node.args[0].value
        for node in named
        if "say" in (getattr(node.func, "id", ""), getattr(node.func, "attr", ""))
        and isinstance(node.args[0], ast.Constant)
    }


def by_name() -> set[str]:
    """Sentences that are kept elsewhere, and said by their names."""
    return {
        *(section.TITLE for section in SECTIONS.values()),
        *(baseline.name for baseline in BASELINES if baseline.name != "Hushbid"),
        *(part.name for part in PAYMENT_PARTS),
        *SENTENCES.values(),
        *("central", "local", "in money", "under 1\u00a0%", "over 99\u00a0%"),
        *(FEW, FEW_IN_STRATUM, FEW_FOR_A_CHART, NOT_STATED, SYNTHETIC_NOTICE, SIMULATED),
    }


def values_in(text: str) -> set[str | None]:
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


@pytest.mark.parametrize("language", OTHERS)
def test_every_sentence_has_a_translation_with_the_same_values(language: str) -> None:
    known = sentences(language)
    assert said() | by_name() <= known.keys()
    assert {key: values_in(key) for key in known} == {key: values_in(told) for key, told in known.items()}
    assert all(key != told for key, told in known.items() if key not in UNSAID)


def conditions(name: str, folder: str) -> tuple[set[str], set[str]]:
    """What a template asks, and which values it looks at."""
    text = files("hushbid.report").joinpath(folder, name).read_text("utf-8")
    tree = environment("hushbid.report", folder).parse(text)
    asked = {str(node.test) for node in tree.find_all((nodes.If, nodes.CondExpr))}
    looked = {f"{node.node}.{node.attr}" for node in tree.find_all(nodes.Getattr)}
    return asked, looked


@pytest.mark.parametrize("language", OTHERS)
def test_templates_of_all_languages_tell_the_same(language: str) -> None:
    folder = f"templates/{language}"
    names = {one.name for one in files("hushbid.report").joinpath("templates").iterdir() if one.name.endswith(".html")}
    assert {one.name for one in files("hushbid.report").joinpath(folder).iterdir()} == names
    for name in names:
        asked, looked = conditions(name, "templates")
        asked_there, looked_there = conditions(name, folder)
        assert looked_there == looked, name
        assert asked <= asked_there, name  # and where one person is another word than two


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
        notices=[SYNTHETIC_NOTICE, "Our own words."],
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


def test_notices_that_were_written_down_are_told_again_and_others_are_not() -> None:
    stamps = [f"{stamp[0].upper()}{stamp[1:]}." for before in (0, 1, 3) for stamp in wave_stamps(4, before)]
    late = "Late: the data of 2 people came after the estimate was drawn and were not used; they are unpaid."
    ours = [*stamps, late, _one_of("Schlaf", 1), _one_of("Schlaf", 3), SIMULATED]
    with speaking("de"):
        assert [one for one in map(retold, ours) if ENGLISH.search(one)] == []
        assert "2 Personen" in retold(late)
        assert "Schlaf" in retold(_one_of("Schlaf", 3))
        assert retold("Either this or that.") == "Either this or that."
    assert [retold(one) for one in ours] == ours


def test_outside_of_it_everything_is_english_and_other_languages_are_refused() -> None:
    with speaking("de"):
        assert say("the mean") == "der Mittelwert"
    assert say("the mean") == "the mean"
    with pytest.raises(InputError, match="language must be one of en, de, got 'fr'") as refused, speaking("fr"):
        pass
    assert refused.value.field == "language"
