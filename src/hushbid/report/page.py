"""The page: one file, no script, no request, and a policy that forbids both."""

import base64
import hashlib
import math
import re
from functools import cache
from typing import TYPE_CHECKING

from markupsafe import Markup

from hushbid import wording
from hushbid.money import money, money_at_most
from hushbid.report import conduct
from hushbid.report.build import SECTIONS, Report
from hushbid.report.rendering import environment, stylesheet
from hushbid.report.suppression import SMALLEST_CELL, SMALLEST_CHART

if TYPE_CHECKING:
    from jinja2 import Template

_HASH = re.compile(r"[0-9a-f]{64}", flags=re.ASCII)
_FOOTER = """
@page {
  @bottom-left { content: "RECORD"; font: 6.5pt monospace; color: #59616d; white-space: nowrap; }
  @bottom-right { content: counter(page) " / " counter(pages); font: 6.5pt monospace; color: #59616d; }
}
"""

_FILTERS = (
    *(wording.at_most, wording.count, wording.factor_at_most, wording.level_text, money),
    *(money_at_most, wording.number, wording.people, wording.percent, wording.with_unit),
)


def render_report(report: Report) -> str:
    """The whole page as text."""
    style = stylesheet("theme.css", "page.css", "chart.css") + footer(report.verify.record_hash)
    return _page().render(report=report, style=style, policy=policy(style))


def footer(record_hash: str | None) -> Markup:
    """What makes every printed page name the record and its own number; a hash that is none is not put into a style."""
    named = "" if record_hash is None or not _HASH.fullmatch(record_hash) else f"Record {record_hash}"
    return Markup(_FOOTER).replace("RECORD", named)


def policy(style: str) -> str:
    """Nothing may be loaded or run; this very style sheet may style."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


@cache
def _page() -> "Template":
    """The template, with what those of all sections may use."""
    templates = environment("hushbid.report")
    templates.filters.update({write.__name__: write for write in _FILTERS})
    templates.tests["finite"] = math.isfinite
    templates.globals.update(smallest_cell=SMALLEST_CELL, smallest_chart=SMALLEST_CHART, interval=wording.interval)
    templates.globals.update(conduct_table=conduct.table)
    sections = [(name, section.__name__.rpartition(".")[2], section) for name, section in SECTIONS.items()]
    return templates.get_template("page.html", globals={"sections": sections})
