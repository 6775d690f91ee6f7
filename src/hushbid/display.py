"""How results look in a notebook: small cards, in one style; and progress while something long runs there.

Every object that a notebook shows says itself what its card holds (``_repr_html_``), and `card` writes it: a title,
facts, tables and sentences, all of them text that is escaped here and nowhere else. A card has no script, asks for
nothing from outside, takes its colours from the notebook, light or dark, and can be read where a notebook strips its
style.
"""

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape, unescape
from typing import Any, Literal

from hushbid.common.numbers import showable

WITHHELD = "withheld"
"""What stands in the place of a figure that would tell about one person."""

_STYLE = """<style>
div.hushbid-card { max-width: 54em; padding: .1em 0 .1em .9em; border-left: 3px solid #0a8f83;
  line-height: 1.45; color: inherit }
div.hushbid-card.failed { border-left-color: #d4551f }
div.hushbid-card p { margin: .35em 0 }
div.hushbid-card p.title { font-weight: 650 }
div.hushbid-card div.scroll { overflow-x: auto }
div.hushbid-card table { border-collapse: collapse; margin: .3em 0 .6em; font-size: .95em; color: inherit;
  background: none }
div.hushbid-card caption { caption-side: top; text-align: left; padding: .2em 0; color: inherit; opacity: .8;
  white-space: nowrap }
div.hushbid-card tr, div.hushbid-card tr:hover { background: none }
div.hushbid-card th, div.hushbid-card td { padding: .15em 1.3em .15em 0; border: 0; text-align: left;
  vertical-align: top; font-variant-numeric: tabular-nums; white-space: normal; max-width: none }
div.hushbid-card th { font-weight: 400; opacity: .8 }
div.hushbid-card thead th { border-bottom: 1px solid; white-space: nowrap }
</style>"""

_STEPS = 100
_WIDTH = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows under a head."""

    caption: str
    """What it is about."""

    head: tuple[str, ...]
    """The names of the columns."""

    rows: tuple[tuple[str, ...], ...]
    """One text for each column."""


def card(
    title: str,
    *,
    facts: Sequence[tuple[str, str]] = (),
    tables: Sequence[Table] = (),
    notes: Sequence[str] = (),
    failed: bool = False,
) -> str:
    """HTML of a title, of facts by their names, of tables that have rows, and of sentences.

    >>> "<b>" in card("a <b>", facts=[("<b>", "<b>")])
    False
    """
    parts = [_STYLE, f'<div class="hushbid-card{" failed" if failed else ""}"><p class="title">{_text(title)}</p>']
    if facts:
        parts.append(_table("", [_row(one, first="th") for one in facts]))
    for table in tables:
        if table.rows:
            head = f"<thead>{_row(table.head, cell='th', first='th')}</thead>"
            caption = f"<caption>{_text(table.caption)}</caption>"
            parts.append(_table(caption + head, [_row(one) for one in table.rows]))
    parts += [f"<p>{_text(one)}</p>" for one in notes]
    return "\n".join([*parts, "</div>"])


def pretty(shown: Any, printer: Any, cycle: bool) -> None:
    """The ``_repr_pretty_`` of what has a card: its text. A notebook keeps it beside the HTML: it tells no more."""
    body = shown._repr_html_().removeprefix(_STYLE)
    lines = re.sub(r"</(?:p|tr|caption)>", "\n", re.sub(r"</t[hd]>(?=<t)", "  ", body.replace("\n", "")))
    printer.text(unescape(re.sub(r"<[^>]*>", "", lines)).strip())


def _table(head: str, rows: Sequence[str]) -> str:
    return f'<div class="scroll"><table>{head}<tbody>{"".join(rows)}</tbody></table></div>'


def _row(cells: Sequence[str], *, cell: str = "td", first: str = "td") -> str:
    kinds = [first, *[cell] * (len(cells) - 1)]
    return f"<tr>{''.join(f'<{kind}>{_text(one)}</{kind}>' for kind, one in zip(kinds, cells, strict=True))}</tr>"


def _text(text: str) -> str:
    return escape(showable(text))


# -- progress ----------------------------------------------------------------------------------------------------------


def progress(label: str = "working") -> Callable[[int, int], None]:
    """A bar for ``progress=`` of `Market.plan` and `Market.simulate`, which is gone when all is done.

    In a notebook it is drawn below the cell, on a terminal on standard error; elsewhere, as in a pipe, nothing is
    shown.
    """
    return _Bar(label, _place())


class _Bar:
    """Called with how much is done and how much there is to do; draws at most `_STEPS` times for each of these."""

    def __init__(self, label: str, place: Literal["notebook", "terminal", "nowhere"]) -> None:
        self._label, self._where = label, place
        self._drawn = (-1, -1)
        self._shown: Any = None

    def __call__(self, done: int, of: int) -> None:
        part = min(max(done, 0), of) * _STEPS // max(of, 1)
        if self._where == "nowhere" or (part, of) == self._drawn:
            return
        self._drawn = (part, of)
        if self._where == "terminal":
            self._write("" if part == _STEPS else f"  {_line(part)}  {self._label} ...")
        else:
            self._display({"text/plain": "", "text/html": ""} if part == _STEPS else self._bundle(part))

    def _bundle(self, part: int) -> dict[str, str]:
        bar = f'<label>{_text(self._label)} <progress max="{_STEPS}" value="{part}">{part} %</progress></label>'
        return {"text/plain": f"{_line(part)} {self._label}", "text/html": bar}

    def _display(self, bundle: dict[str, str]) -> None:
        from IPython.display import display

        if self._shown is None:
            self._shown = display(bundle, raw=True, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._shown.update(bundle, raw=True)

    def _write(self, text: str) -> None:
        sys.stderr.write(f"\r\033[2K{text}")
        sys.stderr.flush()


def _line(part: int) -> str:
    filled = _WIDTH * part // _STEPS
    return "━" * filled + "─" * (_WIDTH - filled)


def _place() -> Literal["notebook", "terminal", "nowhere"]:
    """Where a bar can be seen; IPython is asked only where it runs already."""
    running = sys.modules.get("IPython")
    shell = None if running is None else running.get_ipython()
    if getattr(shell, "kernel", None) is not None:
        return "notebook"
    return "terminal" if sys.stderr.isatty() else "nowhere"
