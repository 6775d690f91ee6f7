"""A language that nobody speaks: English in letters that no English text has; and what says something else.

``python -m tests.languages.pseudo FOLDER TARGET`` writes every page of the server and a report in that language, with
the copy of Hushbid in FOLDER. What is left in plain letters was not translated.
"""

import json
import re
import sys
import tempfile
from html.parser import HTMLParser
from pathlib import Path

from babel.messages.catalog import Catalog

CODE = "qps"
_PLAIN = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_MARKED = "áƀćđéƒǥħíĵķłɱńóƥɋŕšŧúṽŵẋýžÁƁĆĐÉƑǤĦÍĴĶŁṀŃÓṔɊŔŠŦÚṼŴẊÝŽ"
_LETTERS = str.maketrans(_PLAIN, _MARKED)
_KEPT = re.compile(r"%\(\w+\)s|%%|%[a-zA-Z]|\{[^}]*\}|<[^>]*>|&\w+;")
_SIGNS = (
    "the sign before decimals",
    "the sign between thousands",
    "whether nouns are capital inside a sentence: yes or no",
)
_READ = ("aria-label", "title", "alt", "placeholder", "aria-valuetext")


def pseudo(text: str) -> str:
    """A sentence in other letters; values and markup stay.

    >>> pseudo("<b>Price</b>: %(amount)s")
    '<b>Ṕŕíćé</b>: %(amount)s'
    """
    kept = iter([*_KEPT.findall(text), ""])
    return "".join(piece.translate(_LETTERS) + next(kept) for piece in _KEPT.split(text))


def pseudo_catalogue(messages: Catalog) -> Catalog:
    """Every sentence of a catalogue in other letters."""
    found = Catalog(locale="de", charset="utf-8", fuzzy=False)
    for one in messages:
        if one.id:
            ids = (one.id,) if isinstance(one.id, str) else tuple(one.id)
            said = tuple(text if one.context in _SIGNS else pseudo(text) for text in ids)
            found.add(one.id, said[0] if len(said) == 1 else said, context=one.context)
    return found


class Visible(HTMLParser):
    """Every text that a page shows or that a screen reader says; not what is marked as being in another language."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._silent: list[str] = []
        self._open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in ("meta", "link", "input", "img", "br"):
            self.texts += [given[name] or "" for name in _READ if name in given]
            return
        self._open.append(tag)
        elsewhere = given.get("lang", CODE) != CODE
        if self._silent or tag in ("script", "style", "code", "pre", "textarea") or elsewhere:
            self._silent.append(tag)
            return
        self.texts += [given[name] or "" for name in _READ if name in given]

    def handle_endtag(self, tag: str) -> None:
        if self._open and self._open[-1] == tag:
            self._open.pop()
            if self._silent:
                self._silent.pop()

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.texts.append(data)


def main() -> None:
    """Write the pages."""
    from tests.languages.test_pseudo import report_pages
    from tests.server.pages.tour import server_pages

    with tempfile.TemporaryDirectory() as folder:
        pages = {**report_pages(CODE), **server_pages(Path(folder), (CODE,), rows_that_type=1)}
    Path(sys.argv[2]).write_text(json.dumps(pages), encoding="utf-8")


if __name__ == "__main__":
    main()
