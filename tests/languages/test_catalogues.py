"""Every sentence of pages, reports and messages is in every catalogue, and each translation says as much."""

import copy
import re
from pathlib import Path
from string import Formatter

import pytest
from babel.messages.catalog import Catalog, Message
from babel.messages.pofile import read_po

from hushbid.errors import InputError
from hushbid.languages.catalogue import read_catalogue
from tests.extent import each
from tools.catalogues import FOLDER, extracted, updated

CATALOGUES = sorted(FOLDER.glob("*.po"))
TAG = re.compile(r"<[^>]*>")


def read(path: Path) -> Catalog:
    with path.open("rb") as file:
        return read_po(file, locale=path.stem)


def texts(message: Message, text: object) -> tuple[str, ...]:
    return (text,) if isinstance(text, str) else tuple(text)  # type: ignore[arg-type]


def values(text: str) -> set[str]:
    """The values that a sentence names: as Jinja has them, or in braces."""
    named = set(re.findall(r"%\((\w+)\)s", text))
    return named or {name for _, name, _, _ in Formatter().parse(text) if name is not None}


@pytest.fixture(scope="module")
def messages() -> Catalog:
    return extracted()


@pytest.mark.parametrize("path", CATALOGUES, ids=lambda path: path.stem)
def test_a_catalogue_has_every_sentence_translated_and_no_other(path: Path, messages: Catalog) -> None:
    catalogue = read(path)
    assert {(one.context, one.id) for one in catalogue} == {(one.context, one.id) for one in messages}
    assert [one.id for one in catalogue if one.fuzzy and one.id] == []
    assert [one.id for one in catalogue if not all(texts(one, one.string))] == []
    assert list(catalogue.obsolete) == []


@pytest.mark.parametrize("path", CATALOGUES, ids=lambda path: path.stem)
def test_a_translation_has_the_values_and_the_markup_of_its_sentence(path: Path) -> None:
    for one in read(path):
        if not one.id:
            continue
        told, translated = texts(one, one.id), texts(one, one.string)
        assert set().union(*map(values, translated)) == set().union(*map(values, told)), told
        for text in translated:
            assert sorted(TAG.findall(text)) == sorted(TAG.findall(told[-1])), text
            assert '"' not in TAG.sub("", text), f"{text}: it may stand in an attribute"
            if any(place.endswith(".html") for place, _ in one.locations):
                assert text % dict.fromkeys(values(text), "x"), "Jinja can fill it in"


@pytest.mark.parametrize("path", CATALOGUES, ids=lambda path: path.stem)
def test_an_update_changes_nothing_while_no_sentence_changes(path: Path, messages: Catalog) -> None:
    assert updated(path, messages).decode() == path.read_text(encoding="utf-8")


def test_a_new_sentence_is_noticed(messages: Catalog) -> None:
    changed = copy.deepcopy(messages)
    changed.add("A sentence that nobody has translated.")
    for path in CATALOGUES:
        with pytest.raises(InputError, match=r"a msgstr that is not empty|neither fuzzy"):
            read_catalogue(updated(path, changed).decode(), path.name)


HEAD = (
    'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=utf-8\\n"\n'
    '"Plural-Forms: nplurals=2; plural=(n != 1);\\n"\n'
)


def test_texts_plurals_and_contexts_are_read() -> None:
    found = read_catalogue(
        f'# ours\n{HEAD}\nmsgid "a \\"b\\"\\n"\nmsgstr "c"\n" d"\n\nmsgctxt "here"\nmsgid "a"\nmsgstr "b"\n\n'
        'msgid "one"\nmsgid_plural "many"\nmsgstr[0] "eins"\nmsgstr[1] "viele"\n',
        "x.po",
    )
    assert found.gettext('a "b"\n') == "c d"
    assert (found.pgettext("here", "a"), found.gettext("a")) == ("b", "a")
    assert [found.ngettext("one", "many", n) for n in (0, 1, 2)] == ["viele", "eins", "viele"]


@each(
    ("entry", "problem"),
    [
        ('#, fuzzy\nmsgid "a"\nmsgstr "b"\n', "neither fuzzy nor obsolete"),
        ('#~ msgid "a"\n#~ msgstr "b"\n', "neither fuzzy nor obsolete"),
        ('msgid "a"\nmsgstr ""\n', "a msgstr that is not empty"),
        ('msgid "a"\nmsgid_plural "b"\nmsgstr[0] "c"\nmsgstr[1] ""\n', "a msgstr that is not empty"),
        ('msgid "a"\n', "a msgstr that is not empty"),
        ('msgid "a\nmsgstr "b"\n', "quotation marks"),
        ('msgid "a"\nmsgid "b"\nmsgstr "c"\n', "once in an entry"),
        ("hello\n", "not a line of a catalogue"),
        ('"hello"\n', "not a line of a catalogue"),
        ('msgid "a\\x"\nmsgstr "b"\n', "quotation marks"),
    ],
)
def test_what_is_wrong_with_a_catalogue_is_refused_by_its_line(entry: str, problem: str) -> None:
    with pytest.raises(InputError, match=rf"x\.po, line \d+: .*{problem}"):
        read_catalogue(f"{HEAD}\n{entry}", "x.po")
