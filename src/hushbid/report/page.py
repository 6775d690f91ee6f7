"""The page: one file, no script, no request, and a policy that forbids both."""

import base64
import hashlib
import math
import re
from functools import cache
from typing import TYPE_CHECKING

from markupsafe import Markup

from hushbid.common import numbers
from hushbid.report import answers, conduct, language
from hushbid.report.build import SECTIONS, Report
from hushbid.report.rendering import environment, stylesheet
from hushbid.report.suppression import SMALLEST_CELL, SMALLEST_CHART

if TYPE_CHECKING:
    from jinja2 import Template

SHEETS = ("theme.css", "results.css", "page.css", "chart.css")
"""The style sheets of a report, in their order."""

_HASH = re.compile(r"[0-9a-f]{64}", flags=re.ASCII)
_FOOTER = """
@page {
  @bottom-left { content: "RECORD"; font: 6.5pt monospace; color: #59616d; white-space: nowrap; }
  @bottom-right { content: counter(page) " / " counter(pages); font: 6.5pt monospace; color: #59616d; }
}
"""

_FILTERS = (
    *(numbers.at_most, numbers.with_unit, language.count, language.factor_at_most, language.level_text, language.money),
    *(language.money_at_most, language.number, language.people, language.percent, language.say),
)


def render_report(report: Report) -> str:
    """The whole page as text."""
    with language.speaking(report.language):
        style = stylesheet(*SHEETS) + footer(report.verify.record_hash)
        return _page(report.language).render(report=report, style=style, policy=policy(style))


def footer(record_hash: str | None) -> Markup:
    """What makes every printed page name the record and its own number; a hash that is none is not put into a style."""
    known = record_hash is not None and _HASH.fullmatch(record_hash)
    named = language.say("Record {hash}", hash=record_hash) if known else ""
    return Markup(_FOOTER).replace("RECORD", named)


def policy(style: str) -> str:
    """Nothing may be loaded or run; this very style sheet may style."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


@cache
def _page(spoken: str) -> "Template":
    """The template in a language, with what those of all sections may use."""
    templates = environment("hushbid.report", spoken)
    templates.filters.update({write.__name__: write for write in _FILTERS})
    templates.tests["finite"] = math.isfinite
    templates.globals.update(smallest_cell=SMALLEST_CELL, smallest_chart=SMALLEST_CHART)
    templates.globals.update(conduct_table=conduct.table, say=language.say, result_rows=answers.result_rows)
    sections = [(name, section.__name__.rpartition(".")[2], section) for name, section in SECTIONS.items()]
    return templates.get_template("page.html", globals={"sections": sections})
