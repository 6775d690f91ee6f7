"""A result whose interval covers more than half of the range is called unusable first, wherever it is shown."""

from dataclasses import replace

import numpy as np
import pytest

from hushbid import Budget, Market, Outcome, Release, Uniform, release
from hushbid.campaign.telling import estimate_text
from hushbid.report import build_report, render_report


def drawn(budget: float) -> tuple[Outcome, Release]:
    rng = np.random.default_rng(3)
    market = Market(prior=Uniform(1, 2), goal=Budget(budget), bounds=(0, 12))
    outcome = market.acquire(rng.uniform(1, 2, 200))
    found = release(outcome, rng.uniform(5, 7, 200), question=f"for {budget}")
    return outcome, replace(found, estimate=6.0)  # whatever the noise was


@pytest.mark.parametrize(("budget", "usable"), [(5.0, False), (500.0, True)])
def test_report_command_line_and_notebook_name_an_unusable_result_first(budget: float, usable: bool) -> None:
    outcome, found = drawn(budget)
    low, high = found.interval()
    assert (high - low <= 6.0) == usable, "or the test shows nothing"
    for language, words in (("en", "No usable result"), ("de", "Kein brauchbares Ergebnis")):
        page = render_report(build_report(outcome, found, language=language))
        assert (words.lower() in page.lower().partition('class="appendix"')[0]) != usable
    assert estimate_text(found, 0.95).startswith("Estimate of the mean: no usable result") != usable
    assert ("no usable result: " in found._repr_html_()) != usable
