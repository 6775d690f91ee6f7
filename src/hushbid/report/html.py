"""HTML and SVG that cannot be injected into: everything is text until it is made an element.

``element("p", "a < b")`` escapes its children and its attribute values; only what another element returned passes as it
is. There is no way to write markup from a string of somebody else's, because `Markup` is made here alone.

    >>> element("p", "a < b & ", element("b", "c"), class_="note")
    '<p class="note">a &lt; b &amp; <b>c</b></p>'
"""

import re
from collections.abc import Iterable
from html import escape

from hushbid.errors import InputError

# What neither HTML nor XML allows in a document, not even escaped; and invisible characters that reorder what stands
# around them: a name must not rewrite the sentence it is shown in.
_FORBIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
_VOID = frozenset({"meta", "br", "hr"})


class Markup(str):
    """Text that is markup already; made by `element` and `join` only."""

    __slots__ = ()


Child = str | float | None | Iterable["Child"]
"""What may stand inside an element: text, numbers, nothing, other elements, or any sequence of these."""


def element(tag: str, *children: Child, **attributes: str | float | bool | None) -> Markup:
    """One element. ``class_`` gives ``class``, ``aria_label`` gives ``aria-label``; None and False are left out."""
    names = "".join(_attribute(name, value) for name, value in attributes.items())
    if tag in _VOID:
        return Markup(f"<{tag}{names}>")
    return Markup(f"<{tag}{names}>{join(children)}</{tag}>")


def join(children: Iterable[Child]) -> Markup:
    """Children one after the other, without an element around them."""
    return Markup("".join(_text(child) for child in children))


def style_element(rules: str) -> Markup:
    """A style sheet of our own: CSS is not escaped in HTML, so nothing of anybody else's may be in it."""
    if "<" in rules:
        raise InputError("a style sheet must not contain '<'.")
    return Markup(f"<style>{rules}</style>")


def plain(text: object) -> str:
    """Text as it may be shown: on one line, without control and reordering characters."""
    return " ".join(_FORBIDDEN.sub("", str(text)).split())


def _text(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Markup):
        return str(child)
    if isinstance(child, (str, int, float)):
        return escape(_FORBIDDEN.sub("", str(child)), quote=False)
    return join(child)


def _attribute(name: str, value: str | float | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = name.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(_FORBIDDEN.sub("", str(value)))}"'
