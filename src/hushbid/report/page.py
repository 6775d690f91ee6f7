"""The page: one file, no script, no request, and a policy that forbids both."""

import base64
import hashlib
import math
from functools import cache
from typing import TYPE_CHECKING

from hushbid import wording
from hushbid.disclosure.error import FEW
from hushbid.money import money, money_at_most
from hushbid.report.build import SECTIONS, Report
from hushbid.report.rendering import environment, stylesheet
from hushbid.report.suppression import SMALLEST_CELL, SMALLEST_CHART

if TYPE_CHECKING:
    from jinja2 import Template

_FILTERS = (
    *(wording.at_most, wording.count, wording.factor_at_most, wording.level_text, money),
    *(money_at_most, wording.number, wording.people, wording.percent, wording.with_unit),
)


def render_report(report: Report) -> str:
    """The whole page as text."""
    style = stylesheet("theme.css", "page.css", "chart.css")
    return _page().render(report=report, style=style, policy=policy(style))


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
    templates.globals.update(
        few_people=FEW, smallest_cell=SMALLEST_CELL, smallest_chart=SMALLEST_CHART, interval=wording.interval
    )
    sections = [(name, section.__name__.rpartition(".")[2], section) for name, section in SECTIONS.items()]
    return templates.get_template("page.html", globals={"sections": sections})
