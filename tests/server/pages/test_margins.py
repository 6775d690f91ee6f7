"""± is half of a 95 % interval wherever it stands, and what an interval makes useless is called so first."""

import math
import re
from typing import Any

import pytest

from hushbid.common.documents import parsed
from hushbid.record import Record
from hushbid.server.pages.estimates import shown_estimates
from hushbid.server.pages.wording import Writing, languages
from tests.server.http.support import Live
from tests.server.pages.support import Visitor, words
from tests.server.support import PASSWORD, drafted, open_now

MARGIN = re.compile(r"± ([\d.,]+)")


def test_the_margin_of_a_forecast_is_the_margin_of_the_result(shared: Live) -> None:
    play = drafted(shared.service, 60, buyer_weight=5_000.0, unit="hours")
    with Visitor(shared.url) as ann:
        ann.log_in("ann", PASSWORD)
        opening = words(ann.get(f"/campaigns/{play.id}/steps/open"))
        typed = {**ann.fields(f"/campaigns/{play.id}/edit"), "people": "60"}
        live = ann.client.post("/campaigns/preview", data=typed).json()
        assert not any("standard error" in one for one in live["sentences"])
        open_now(shared.service, play.who, play.id)
        play.bid()
        assert play.decide().state == "done"
        play.deliver()
        assert play.release().state == "done"
        result = words(ann.get(f"/campaigns/{play.id}"))
    release = Record.from_dict(parsed(shared.service.record(play.who, play.id))).release
    assert release is not None
    real, standard_error = release.error.half_width(0.95), release.standard_error
    assert real > 1.9 * standard_error, "or the test shows nothing"
    forecast, opened, shown = (float(MARGIN.findall(text)[0]) for text in (live["sentences"][0], opening, result))
    assert shown == pytest.approx(real, rel=0.1)
    assert forecast == opened == pytest.approx(real, rel=0.2)


def released(estimate: float, half: float | None, **more: Any) -> dict[str, Any]:
    return {"estimate": estimate, "half_width": {"level": 0.95, "value": half}, **more}


@pytest.mark.parametrize("language", ["en", "de"])
def test_a_result_whose_interval_covers_most_of_the_range_is_called_unusable_first(language: str) -> None:
    t = languages()[language]
    w = Writing(t)
    for estimate, half, usable in ((3.0, 11.0, False), (3.0, 2.0, True), (6.0, 3.5, False), (11.0, 3.5, True)):
        [shown] = shown_estimates(t, w, released(estimate, half), (0.0, 12.0), "hours")
        assert (shown.rows[0].value == t("No usable result")) == shown.unusable != usable
        assert shown.rows[0].drawn in (shown.rows[0].value if usable else shown.sentence)
    [bare] = shown_estimates(t, w, released(3.0, None), (0.0, 12.0), "hours")
    assert bare.rows[0].value == t("No usable result")
    assert (bare.rows[0].low, bare.rows[0].high) == ("", "")


def test_shares_are_possible_percentages_in_the_buyers_order() -> None:
    t = languages()["en"]
    drawn, likely = {"b": 0.7, "a": -0.2, "c": 0.5}, {"a": 0.0, "b": 0.6, "c": 0.4}
    choice = {"kind": "choice", "name": "Shift", "answers": ["c", "b", "a"]}
    smoke = {"kind": "yes_no", "name": "Smoke?"}
    margin = {"level": 0.95, "value": 0.2}
    answers = [
        {"question": choice, "shares": drawn, "projected": likely, "half_width": margin},
        {"question": smoke, "estimate": -0.1, "projected": 0.0, "half_width": margin},
    ]
    shift, yes = shown_estimates(t, Writing(t), {"answers": answers}, None, "")
    shown = [(row.name, row.value, row.low, row.high) for row in shift.rows]
    percent = "\u00a0%"
    assert shown == [
        ("c", f"40{percent}", "30", f"70{percent}"),
        ("b", f"60{percent}", "50", f"90{percent}"),
        ("a", f"0{percent}", "0", f"0{percent}"),
    ]
    assert f"c 50{percent}; b 70{percent}; a \u221220{percent}" in shift.sentence
    assert "± 20\u00a0percentage points" in shift.sentence
    assert yes.rows[0].value == f"0{percent}"
    assert not math.isnan(float(MARGIN.findall(yes.sentence)[0]))


@pytest.mark.parametrize("language", ["en", "de"])
def test_shares_without_a_usable_result_are_named_once_with_the_reason_first(language: str) -> None:
    t = languages()[language]
    choice = {"kind": "choice", "name": "Shift", "answers": ["day", "night", "both"]}
    for half, shares in ((0.9, (0.9, 0.5, -0.4)), (None, (0.9, 0.5, -0.4)), (0.3, (0.0, 0.5, 0.5))):
        drawn = dict(zip(choice["answers"], shares, strict=True))
        answer = {"question": choice, "shares": drawn, "half_width": {"level": 0.95, "value": half}}
        [shown] = shown_estimates(t, Writing(t), {"answers": [answer]}, None, "")
        assert {row.value for row in shown.rows} == {t("No usable result")}
        drawn_words = "; ".join(f"{row.name} {row.drawn}" for row in shown.rows)
        number = t("The estimate is {value}: a hint at most.", value=drawn_words)
        covers = "The interval covers more than half of the range from {low} to {high}."
        why = "" if half is None else f"{t(covers, low='0', high='100 %')} "
        assert shown.sentence.startswith(f"{why}{number} ")
        assert shown.sentence.count(number[:10]) == 1
