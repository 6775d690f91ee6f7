"""Text that somebody typed stays text, in templates and in pictures."""

from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from hushbid.report.rendering import environment, plain
from hushbid.report.svg import mark

HOSTILE = "<script>alert('x')</script> \" & ' \u202e\x00"


IN_SENTENCES = (
    '<p title="{{ text }}">{{ text }}</p>',
    '<p title="{% trans text=text %}{{ text }}{% endtrans %}">{% trans text=text %}{{ text }}{% endtrans %}</p>',
    '<p title="{{ _("%(text)s", text=text) }}">{{ ngettext("%(text)s", "many", 1, text=text) }}</p>',
    '<p title="{{ pgettext("here", "%(text)s", text=text) }}">{{ _("%(text)s", text=text) }}</p>',
)


@given(st.text())
def test_text_never_becomes_markup(text: str) -> None:
    templates = map(environment("hushbid.report", "de").from_string, IN_SENTENCES)
    for made in (mark("p", text, title=text), *(template.render(text=text) for template in templates)):
        value, _, inside = made.removeprefix('<p title="').removesuffix("</p>").partition('">')
        assert not set('<"') & {*value, *inside}
        assert not any(character in made for character in ("\x00", "\x08", "\ud800", "\u202e"))


def test_only_marks_pass_as_markup() -> None:
    made = mark("g", mark("text", HOSTILE), mark("text", "x"), class_="a", lang=None)
    assert isinstance(made, Markup)
    assert made.startswith('<g class="a"><text>&lt;script&gt;')
    assert "<script" not in made


def test_a_name_cannot_reorder_the_sentence_around_it() -> None:
    assert plain(HOSTILE) == "<script>alert('x')</script> \" & '"
    assert plain("a\n\tb  c") == "a b c"
