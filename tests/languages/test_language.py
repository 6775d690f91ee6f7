"""A language says sentences with values, one and many, and writes numbers with its own signs."""

import pytest

from hushbid.errors import InputError
from hushbid.languages import Sentence, language, languages, noted_plural


def test_english_comes_first_and_others_are_refused_by_name() -> None:
    assert next(iter(languages())) == "en"
    with pytest.raises(InputError, match="language must be one of en, de, got 'fr'") as refused:
        language("fr")
    assert refused.value.field == "language"


def test_each_language_calls_itself_by_its_own_name_and_has_its_own_signs() -> None:
    assert [(one.name, one.number("1,234.5")) for one in languages().values()] == [
        ("English", "1,234.5"),
        ("Deutsch", "1.234,5"),
    ]


def test_a_name_that_holds_braces_is_said_as_it_is() -> None:
    assert language("de")("{no value}") == "{no value}"


def test_a_sentence_is_kept_until_the_language_is_known() -> None:
    kept = Sentence("median {median}", {"median": 3})
    assert (str(kept), kept.said(language("de"))) == ("median 3", "Median 3")
    one, many = (noted_plural("{number} person", "{number} people", n, number=n) for n in (1, 2))
    assert [str(one), str(many)] == ["1 person", "2 people"]
    assert [kept.said(language("de")) for kept in (one, many)] == ["1 Person", "2 Personen"]
