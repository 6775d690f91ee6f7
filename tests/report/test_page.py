"""The report as its readers get it: complete, true to the outcome, self-contained, and silent about individuals."""

import dataclasses
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from hushbid import (
    Budget,
    Empirical,
    Gamma,
    Grouped,
    HardBudget,
    LogNormal,
    Market,
    Outcome,
    Release,
    Uniform,
)
from hushbid.allocation import Goal
from hushbid.audit import PrivacyAudit, check_incentives, check_privacy, check_questions
from hushbid.audit.incentive_report import Violation
from hushbid.baselines import compare
from hushbid.common.numbers import cut_to
from hushbid.disclosure import noise
from hushbid.errors import InputError, OutputExists
from hushbid.mechanism.releasing import plan_of
from hushbid.report import AuditLine, Report, build_report, render_report, write_report
from hushbid.report.build import SECTIONS
from hushbid.report.page import SHEETS, footer, policy
from hushbid.report.rendering import stylesheet
from hushbid.report.sections.audits import audit_lines
from tests.brief import brief_reports

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\u202e"
N = 300


class Page(HTMLParser):
    """A page as text by section, and its elements; unbalanced markup is an error."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str, str]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(markup)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in {"meta", "br"}:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self._open or self._open[-1] != "style":
            self.text += data + " "


def words(page: str) -> str:
    return " ".join(Page(page).text.split())


def bought(n: int = N, *, seed: int = 1, **settings: Any) -> Outcome:
    prior = settings.pop("prior", LogNormal(0.0, 0.5))
    market = Market(prior=prior, **{"user_weight": 0.0, "buyer_weight": 3000.0, **settings})
    return market.acquire(prior.sample(n, rng=np.random.default_rng(seed)))


def released(outcome: Outcome) -> Release:
    """A release with a made-up estimate: what is drawn does not matter to a page."""
    from hushbid.disclosure import Grid, PromiseCheck
    from hushbid.report.material import planned_error

    error = planned_error(outcome)
    assert error is not None
    n = outcome.bids.size
    return Release(
        setting=outcome.market.setting,
        bounds=outcome.market.bounds,
        estimate=0.4567890123,
        privacy_loss=outcome.privacy_loss,
        error=error,
        planned_error=error,
        grid=Grid(data_bits=40, weight_exponent=10, total_weight=1000, noise_scale=1024.0),
        check=PromiseCheck(people=n, people_in_fractions=n, people_mapped=16, largest_share=1.0),
        clamped=7,
        dropped_out=(3, 5),
        versions={"hushbid": "0.1.0", "opendp": "0.16.0"},
        key="k",
    )


def page_of(outcome: Outcome, *args: Any, **settings: Any) -> str:
    return render_report(build_report(outcome, *args, **settings))


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    return bought(max_privacy_loss=0.3)


def whole_report(outcome: Outcome) -> Report:
    groups = ["north"] * 140 + ["south"] * 150 + ["isle"] * 10
    return build_report(
        outcome,
        released(outcome),
        title="Sleep",
        unit="hours",
        currency="EUR",
        groups=groups,
        record_hash="ab" * 32,
    )


@pytest.fixture(scope="module")
def report(outcome: Outcome) -> Report:
    return whole_report(outcome)


@pytest.fixture(scope="module")
def few() -> Outcome:
    """So few that baselines are not compared, which takes most of the time of a report."""
    return bought(19)


# -- true to the outcome -----------------------------------------------------------------------------------------------


def test_the_parts_of_the_payment_add_up_to_what_is_paid(outcome: Outcome, report: Report) -> None:
    cost, parts = report.cost, report.cost.parts
    assert parts is not None
    assert parts.compensation + parts.rent == pytest.approx(outcome.total_payment)
    assert parts.rent == pytest.approx(outcome.information_rent.sum())
    assert parts.error_term == 0.0
    assert parts.rounding is not None
    assert 0.0 <= parts.rounding < 0.01 * outcome.active
    assert cost.paid * 100 == pytest.approx(np.ceil(outcome.payments * 100).sum())
    assert cost.incentive_error == pytest.approx(outcome.incentive_error + 0.01)


def test_what_people_pay_for_the_estimate_is_a_part_of_its_own() -> None:
    outcome = bought(user_weight=1.0, buyer_weight=1.0, variance=0.25)
    report = build_report(outcome)
    cost = report.cost
    assert cost.payers > 0
    assert cost.parts is not None
    assert cost.parts.error_term == pytest.approx((outcome.mse - 0.25) * N)
    assert cost.paid == pytest.approx(cost.parts.compensation + cost.parts.rent + cost.parts.error_term)
    assert "pay for an estimate they value" in words(render_report(report))


def test_the_schedule_goes_through_everybodys_decision(outcome: Outcome, report: Report) -> None:
    (curve,) = report.privacy.curves
    for column, shown in ((outcome.privacy_loss, curve.privacy_loss), (outcome.information_rent, curve.rent)):
        order = np.argsort(outcome.bids)
        expected = np.interp(curve.bids, outcome.bids[order], column[order])
        assert np.asarray(shown) == pytest.approx(expected, abs=2e-3 * expected.max())
    assert np.all(np.diff(curve.privacy_loss) <= 1e-9)
    assert np.asarray(curve.compensation) == pytest.approx(np.array(curve.bids) * curve.privacy_loss, abs=1e-3)


def test_the_comparison_is_the_other_setting_on_the_same_bids(outcome: Outcome, report: Report) -> None:
    capped, free = (
        dataclasses.replace(outcome.market, setting="local", max_privacy_loss=cap).acquire(outcome.bids)
        for cap in (0.3, None)
    )
    here, there, without = report.comparison.settings
    assert (here.name, there.name, without.name) == ("central", "local", "local, no cap")
    assert there.standard_error == pytest.approx(math.sqrt(capped.mse))
    assert without.total == pytest.approx(free.total_payment)
    assert build_report(outcome, comparison=capped).comparison == report.comparison
    with pytest.raises(InputError, match="other setting"):
        build_report(outcome, comparison=outcome)


def test_the_price_of_the_cap_is_the_difference_to_the_optimum_without(outcome: Outcome, report: Report) -> None:
    cap = report.cap
    assert cap.capped is not None
    assert cap.uncapped is not None
    assert cap.capped.objective - cap.uncapped.objective == pytest.approx(outcome.cap_cost)
    assert cap.reached > 0
    levels, _, objectives = (np.array(column) for column in zip(*cap.curve, strict=True))
    assert np.all(np.diff(levels) > 0)
    assert np.all(np.diff(objectives) <= 1e-9)
    assert objectives[-1] == pytest.approx(cap.uncapped.objective)


@pytest.mark.parametrize("goal", [Budget(60), HardBudget(60, coin=0.01)], ids=["budget", "hard budget"])
def test_what_limits_did_is_told_and_nothing_is_compared_that_does_not_keep_them(goal: Goal) -> None:
    market = Market(prior=Uniform(1, 2), bounds=(0, 10), goal=goal, max_correlation=0.2, population=80)
    bids = np.linspace(1, 2, 60)
    outcome = market.acquire(bids, limits=np.where(bids < 1.2, 0.2, np.inf))
    report = build_report(outcome)
    text = Page(render_report(report)).text
    # both settings at their worst error, which is the accuracy that they share
    here, there = report.comparison.settings
    assert (here.standard_error, there.standard_error) == pytest.approx((math.sqrt(outcome.worst_mse),) * 2)
    assert "Standard error, at worst" in text
    assert "There nobody's loss is limited" in text
    assert not report.baselines.rows
    assert "Everybody has a limit of her own here" in text
    hard = isinstance(goal, HardBudget)
    assert ("This campaign is the best one that keeps them" in text) is not hard
    assert ("what it leaves is not spent on others" in text) is hard


def test_an_outcome_read_back_gives_the_same_report(outcome: Outcome, report: Report) -> None:
    again = Outcome.from_dict(outcome.to_dict())
    assert whole_report(again) == report


def test_the_interval_is_that_of_the_release(outcome: Outcome, report: Report) -> None:
    low, high = released(outcome).interval()
    [found] = report.estimate.answers
    ends = (found.values[0] - found.half_width, found.values[0] + found.half_width)
    assert cut_to(*ends, found.bounds) == pytest.approx((low, high))
    assert found.normal_half_width < found.half_width
    assert 0.0 < report.estimate.noise_share < 1.0


# -- complete ----------------------------------------------------------------------------------------------------------


def test_every_topic_has_its_section(report: Report) -> None:
    page = render_report(report)
    for section in SECTIONS.values():
        assert f'id="{section.ANCHOR}"' in page
        assert section.TITLE in words(page)
    text = words(page)
    for needed in (
        "The interval contains the truth with at least 95 % confidence",
        "Information rent",
        "Privacy loss promised to the",
        "What she is paid",
        "Who the estimate listens to",
        "between what people ask and what their data say would move the estimate by half an interval",
        "The same bids, bought both ways",
        "This campaign is the best one that keeps it",
        "This campaign was not protected against a relation between prices and data",
        "hushbid verify record.json",
        "Its verdict is",
        "if nothing that was checked is wrong but something could not be checked",
        "ab" * 32,
        "If not:",
    ):
        assert needed in text, needed


def test_every_chart_has_a_title_and_a_description(report: Report) -> None:
    page = render_report(report)
    charts = re.findall(r"<svg[^>]*>.*?</svg>", page, flags=re.DOTALL)
    images = [ET.fromstring(chart) for chart in charts if 'role="img"' in chart]
    assert len(images) == 1 + 2 * 11  # a result's bar, and charts, each wide and narrow
    for image in images:
        named = [image.find(tag) for tag in ("title", "desc")]
        assert all(part is not None and part.text for part in named)
        assert image.get("aria-labelledby") == " ".join(part.get("id", "") for part in named if part is not None)
    assert all('aria-hidden="true"' in chart for chart in charts if 'role="img"' not in chart)
    assert "NaN" not in page
    assert "nan" not in " ".join(re.findall(r'(?:d|x|y|width|height)="([^"]*)"', page))


def test_ids_are_unique_and_links_lead_somewhere(report: Report) -> None:
    attributes = Page(render_report(report)).attributes
    ids = [value for _, name, value in attributes if name == "id"]
    assert len(ids) == len(set(ids))
    links = [value for _, name, value in attributes if name == "href"]
    assert {link.removeprefix("#") for link in links} <= set(ids)


@pytest.mark.parametrize(
    "settings",
    [
        {"setting": "local", "buyer_weight": 2e4},
        {"bounds": (-1e6, 1e6), "buyer_weight": 1e-8},
        {"bounds": (0.0, 1e-6), "buyer_weight": 1e14},
        {"variance": tuple(np.linspace(0.05, 0.25, N))},
        {"prior": Grouped({"a": Uniform(1, 2), "b": Gamma(2, 1)}, ["a"] * 150 + ["b"] * 150)},
        {"prior": Empirical(np.linspace(0.5, 3, 40))},
        {"max_privacy_loss": 1e-3, "n": 40},
        {"max_privacy_loss": 1e3},
        {"user_weight": 1.0, "variance": 0.2, "outside_option": "estimate"},
    ],
    ids=lambda settings: ", ".join(settings),
)
def test_every_kind_of_market_has_a_report(settings: dict[str, Any]) -> None:
    with brief_reports():  # other ways to buy have tests of their own
        page = page_of(bought(**settings))
    assert Page(page).tags["section"] == len(SECTIONS)
    assert "not a number" not in page


@pytest.mark.parametrize("people", [1, 2, 19, 20])
def test_any_number_of_people_has_a_report(people: int) -> None:
    assert Page(page_of(bought(people), groups=["g"] * people)).tags["section"] == len(SECTIONS)


def test_equal_bids_have_a_report() -> None:
    outcome = Market(prior=Uniform(1, 2), user_weight=0.0, buyer_weight=3000.0).acquire(np.full(50, 1.3))
    report = build_report(outcome)
    assert report.privacy.curves == ()
    assert Page(render_report(report)).tags["section"] == len(SECTIONS)


def test_nothing_bought_is_said() -> None:
    outcome = Market(prior=Uniform(1, 2), user_weight=0.0, buyer_weight=1.0).acquire(np.full(30, 2.5))
    text = words(page_of(outcome, groups=["a"] * 30))
    assert "Nothing was bought: none of 30 people" in text
    assert "∞" not in text


def test_an_unlimited_loss_is_said() -> None:
    prior = Uniform(0, 1)
    outcome = Market(prior=prior, user_weight=0.0, buyer_weight=1.0).acquire([*np.zeros(30), 0.4, 0.5, 0.9])
    assert math.isinf(outcome.privacy_loss.max())
    assert "30 people accepted an unlimited" in words(page_of(outcome))


def test_a_prior_fitted_on_participants_is_said(few: Outcome) -> None:
    text = words(page_of(few, prior_from_participants=True, notices=["Bids are simulated."]))
    assert "fitted on people who also bid in this campaign" in text
    assert "Bids are simulated." in text


# -- silent about individuals ------------------------------------------------------------------------------------------


def test_below_twenty_people_no_chart_shows_individuals() -> None:
    outcome = bought(19)
    report = build_report(outcome, groups=["a", "b"] * 9 + ["a"])
    assert report.privacy.histogram is None
    assert report.privacy.quantiles == ()
    assert report.privacy.curves == ()
    assert report.cap.curve == ()
    assert report.groups == ()
    text = words(render_report(report))
    assert text.count("Not shown. Fewer than 20 people were bought from") == 2
    assert "The groups are too small" in text
    assert 'name="losses' not in render_report(report)


def test_a_menu_takes_the_place_of_a_schedule_that_few_people_are_behind() -> None:
    outcome = bought(12)
    menu = outcome.market.menu(12, rng=np.random.default_rng(0), repetitions=5, points=9)
    report = build_report(outcome, menu=menu)
    assert [curve.kind for curve in report.privacy.curves] == ["expected"]
    assert "before anybody bid" in words(render_report(report))
    assert build_report(bought(30), menu=menu).privacy.curves[0].kind == "exact"


def test_nobodys_number_is_on_the_page(outcome: Outcome, report: Report) -> None:
    page = render_report(report)
    cap = outcome.market.max_privacy_loss
    for column in (outcome.bids, outcome.payments, outcome.information_rent, outcome.privacy_loss, outcome.weights):
        for value in np.unique(column[(column > 0.0) & (column != cap)]).tolist():
            assert f"{value:.7g}" not in page
    facts = repr(dataclasses.asdict(report))
    assert not [value for value in outcome.bids.tolist() if repr(value) in facts]


def test_the_page_does_not_depend_on_who_is_who() -> None:
    first = bought(variance=0.2)
    order = np.random.default_rng(5).permutation(N)
    second = first.market.acquire(first.bids[order])
    groups = np.array(["x", "y", "z"])[np.arange(N) % 3]
    assert page_of(first, groups=groups) == page_of(second, groups=groups[order])


def test_drop_outs_and_clamped_values_are_not_counted_in_public(few: Outcome) -> None:
    text = words(page_of(few, released(few)))
    assert "Fewer than 20 people who were bought from did not deliver" in text
    assert "clamped" not in text
    assert "Amounts are those decided before delivery." in text


# -- audits ------------------------------------------------------------------------------------------------------------


def privacy_audit(**changes: Any) -> PrivacyAudit:
    found = {
        "user": 17,
        "promised": 0.5,
        "lower_bound": 0.44,
        "event": "output at most 0.3",
        "fit_p_value": 0.3,
        "confidence": 0.99,
        "samples": 20_000,
        "power": 0.97,
    }
    return PrivacyAudit(**{**found, **changes})


def audit_page(outcome: Outcome, audits: Sequence[object]) -> tuple[Report, str]:
    report = build_report(outcome, audits=audits, comparison="omit")
    return report, words(render_report(report))


def test_a_failed_privacy_audit_shows_as_failed_with_sample_size_and_power(few: Outcome) -> None:
    report, text = audit_page(few, [privacy_audit(lower_bound=0.61)])
    assert report.failed
    assert "An audit failed. At least one claim on this page is proved to be wrong." in text
    assert "Nobody loses more than ε" not in text.partition("Privacy loss of the")[0]
    assert "was promised, and not kept" in text
    assert "Failed Privacy: can the output tell one person's datum?" in text
    assert "certainly loses at least 1.22 times the ε that she was promised" in text
    assert "20,000 outputs on each of 4 synthetic data sets, at 99 % confidence" in text
    assert "97 % to catch a build that adds only 0.7 times the noise it should" in text
    assert "17" not in re.sub(r"\d+\.\d+", "", text.partition("An audit attacks")[2].partition("Assumptions")[0])


def test_noise_that_does_not_fit_shows_as_failed(few: Outcome) -> None:
    report, text = audit_page(few, [privacy_audit(fit_p_value=1e-9)])
    assert report.failed
    assert not report.privacy_failed  # nobody is proved to lose more than promised
    assert "The noise is not what it should be" in text


def test_no_fault_found_is_not_called_passed_and_a_weak_test_is_called_weak(few: Outcome) -> None:
    report, text = audit_page(few, [privacy_audit(), privacy_audit(power=0.2)])
    assert not report.failed
    assert [line.verdict for line in report.audits] == ["weak", "clear"]
    assert "No fault found, weak test" in text
    assert "passed" not in text.lower()
    assert "proves nothing by itself" in text


def test_no_audit_is_said(few: Outcome) -> None:
    _, text = audit_page(few, [])
    assert "No audit was run for this report." in text


@pytest.fixture(scope="module")
def small() -> Outcome:
    return bought(6, prior=Uniform(1, 2), buyer_weight=50.0)


def test_an_incentive_audit_shows_what_was_tried_and_what_it_could_have_found(small: Outcome) -> None:
    found = check_incentives(small.market, small.bids, people=2, points=3)
    report, text = audit_page(small, [found])
    assert not report.failed
    assert f"{found.bids_tried:,} bids tried, for 2 people drawn by lot" in text
    assert "19 % to catch a mistake of more than" in text
    assert report.audits[0].verdict == "weak"
    (line,) = audit_lines([dataclasses.replace(found, people=6)], people=6)
    assert (line.power, line.verdict) == (1.0, "clear")


def test_a_rule_that_can_be_gamed_shows_as_failed(small: Outcome) -> None:
    class PaysWhatIsAsked:
        def acquire(self, bids: np.ndarray) -> Outcome:
            decided = small.market.acquire(bids)
            return dataclasses.replace(decided, payments=bids * decided.privacy_loss)

    found = check_incentives(PaysWhatIsAsked(), small.bids, market=small.market, people=2, points=3)
    report, text = audit_page(small, [found])
    assert report.failed
    assert not report.privacy_failed
    assert "A misreport gains" in text
    assert not re.search(r"\brows? \d", text)


@pytest.mark.parametrize("claim", ["truth", "joining", "loss", "payment"])
def test_a_violation_names_its_row_to_the_analyst_and_not_in_the_report(small: Outcome, claim: Any) -> None:
    violation = Violation(claim=claim, row=17, amount=0.5)
    assert "row 17" in str(violation)
    honest = check_incentives(small.market, small.bids, people=1, points=3)
    (line,) = audit_lines([dataclasses.replace(honest, violations=(violation,))])
    assert line.verdict == "failed"
    assert line.finding == str(violation).replace("row 17", "one row")


def test_an_audit_that_is_not_ours_is_shown_in_its_own_words_or_refused(few: Outcome) -> None:
    line = AuditLine(title="By hand", verdict="clear", finding="Fine.", samples="1", power=None, power_against="")
    _, text = audit_page(few, [line])
    assert "By hand" in text
    assert "not known" in text
    with pytest.raises(InputError, match="audits must be"):
        build_report(few, audits=["fine"])


@pytest.mark.parametrize("setting", ["central", "local"])
def test_a_build_with_seven_tenths_of_the_noise_shows_as_failed(setting: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the sampler to the page: the noise itself is made too small, everything above it is as shipped."""
    outcome = bought(19, setting=setting, buyer_weight=300.0, max_privacy_loss=1.0)
    plan, user = plan_of(outcome), int(np.argmax(outcome.privacy_loss))
    honest = check_privacy(plan, user=user, samples=4000, confidence=1 - 1e-7)
    assert not build_report(outcome, audits=[honest]).failed

    draw = noise.draw_many
    monkeypatch.setattr(noise, "draw_many", lambda totals, *, scale: draw(totals, scale=0.7 * scale))
    report, text = audit_page(outcome, [check_privacy(plan, user=user, samples=4000)])
    assert report.failed
    assert "An audit failed." in text
    assert report.audits[0].power is not None
    assert report.audits[0].power > 0.5


def test_the_power_of_an_accuracy_check_is_that_against_too_little_noise(few: Outcome) -> None:
    check = check_questions(plan_of(few), rng=np.random.default_rng(0), repetitions=400)[0]
    (line,) = build_report(few, audits=[check], comparison="omit").audits
    assert line.power is not None
    assert line.samples == "400 simulated campaigns on synthetic data"
    sharper = dataclasses.replace(check, mse_uncertainty=check.mse_uncertainty / 10)
    assert build_report(few, audits=[sharper], comparison="omit").audits[0].power > line.power  # type: ignore[operator]


# -- one safe file -----------------------------------------------------------------------------------------------------


def test_hostile_names_stay_text() -> None:
    outcome = bought()
    page = page_of(
        outcome,
        released(outcome),
        title=HOSTILE,
        question=HOSTILE,
        unit=HOSTILE,
        groups=[HOSTILE] * 150 + ["b"] * 150,
        audits=[
            AuditLine(title=HOSTILE, verdict="clear", finding=HOSTILE, samples=HOSTILE, power=None, power_against="")
        ],
        record_name=HOSTILE,
        record_hash=HOSTILE,
        notices=[HOSTILE],
        date=HOSTILE,
    )
    assert Page(page).tags.keys().isdisjoint({"script", "img", "link", "iframe", "object"})
    assert not [name for _, name, _ in Page(page).attributes if name.startswith("on") or name in {"src", "style"}]
    assert "\u202e" not in page


def test_the_page_asks_for_nothing_and_its_policy_forbids_asking(report: Report) -> None:
    page = render_report(report)
    assert not re.search(r"https?://|//[a-z]|url\(|@import|javascript:", page)
    rules = policy(stylesheet(*SHEETS) + footer(report.verify.record_hash))
    assert rules.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in rules
    assert "<" not in stylesheet(*SHEETS)  # CSS is not escaped
    assert len(page.encode()) < 200_000


def test_the_same_report_is_the_same_page(outcome: Outcome, report: Report) -> None:
    assert render_report(report) == render_report(dataclasses.replace(report))


def test_a_report_is_written_completely_and_never_over_another(report: Report, tmp_path: Path) -> None:
    path = tmp_path / "out" / "report.html"
    write_report(path, report)
    assert path.read_text(encoding="utf-8") == render_report(report)
    other = dataclasses.replace(report, title="Another")
    with pytest.raises(OutputExists, match="exists already"):
        write_report(path, other)
    write_report(path, other, force=True)
    assert "Another" in path.read_text(encoding="utf-8")
    assert [one.name for one in path.parent.iterdir()] == ["report.html"]


def test_a_level_outside_zero_and_one_is_refused(outcome: Outcome) -> None:
    with pytest.raises(InputError, match="level"):
        build_report(outcome, level=95)


# -- other ways to buy -------------------------------------------------------------------------------------------------


def test_the_baselines_of_a_report_are_those_of_the_comparison(outcome: Outcome, report: Report) -> None:
    found = compare(outcome.market, outcome.bids)
    ours, *others = report.baselines.rows
    assert ours.payment == pytest.approx(outcome.total_payment)
    assert ours.standard_error == pytest.approx(math.sqrt(outcome.mse))
    assert [row.name for row in others] == [row.name for row in found.baselines]
    assert [row.payment for row in others] == [row.payment_for_same_error for row in found.baselines]
    text = words(render_report(report))
    for row in found.baselines:
        assert row.name in text
    assert "For the accuracy of this campaign it would have paid" in text
    assert "with the money of this campaign it would have reached a standard error of" in text
    assert "out of reach" in text  # the same loss for all has no price under a prior without an upper end


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"n": 19}, "With fewer than 20 people"),
        ({"variance": np.linspace(0.1, 0.2, N)}, "cannot be computed here: variance must be one number"),
        ({"user_weight": 50.0, "variance": 0.25}, "People pay on balance"),
    ],
)
def test_where_baselines_cannot_be_compared_the_report_says_why(settings: dict[str, Any], reason: str) -> None:
    report = build_report(bought(**settings))
    assert reason in words(render_report(report))
    assert report.baselines.rows == ()


def test_baselines_of_very_many_people_are_left_to_a_command(monkeypatch: pytest.MonkeyPatch, outcome: Outcome) -> None:
    monkeypatch.setattr("hushbid.report.sections.baselines.MOST_PEOPLE", N - 1)
    assert "the command hushbid compare does it" in words(page_of(outcome))


def test_of_fewer_than_five_people_no_amount_is_told_and_errors_are_coarse() -> None:
    outcome = bought(3, prior=Uniform(1, 3), max_privacy_loss=0.3)
    text = words(page_of(outcome, currency="KWD"))
    assert text.lower().count("fewer than 5 people") >= 4
    assert "information rent" not in text.partition("How to verify")[0].partition("The estimate")[0]
    paying = outcome.privacy_loss > 0
    compensation = float((outcome.bids * outcome.privacy_loss)[paying].sum())
    total = float(np.ceil(outcome.payments * 1000).sum() / 1000)
    rents = float(outcome.information_rent.sum())
    for told in (compensation, compensation / outcome.privacy_loss.sum(), rents, total):
        assert f"{told:.3f}" not in text
    assert "too few to say for how much" in text
    report = build_report(outcome, currency="KWD")
    assert report.cost.paid is None
    assert report.privacy.largest == 0.3
    free = build_report(bought(3, prior=Uniform(1, 3)))
    for value in (report.estimate.answers[0].half_width, report.estimate.standard_error, free.privacy.largest):
        assert f"{value:.1e}"[:3] in ("1.0", "2.0", "2.5", "5.0")
    assert "Some privacy is bought from everybody." in text


def numbers_in(values: Any) -> Iterator[float]:
    if isinstance(values, dict | list | tuple):
        for value in values.values() if isinstance(values, dict) else values:
            yield from numbers_in(value)
    elif isinstance(values, int | float):
        yield float(values)


@pytest.mark.parametrize("setting", ["central", "local"])
@pytest.mark.parametrize("cap", [None, 0.3])
def test_what_the_page_withholds_is_not_in_the_object_either(setting: str, cap: float | None) -> None:
    outcome = bought(3, prior=Uniform(1, 3), setting=setting, max_privacy_loss=cap)
    report = build_report(outcome, currency="KWD")
    assert (report.cost.parts, report.selection, report.comparison.settings) == (None, None, ())
    assert (report.cap.capped, report.cap.uncapped, report.baselines.rows) == (None, None, ())
    paying = outcome.privacy_loss > 0
    compensation = float((outcome.bids * outcome.privacy_loss)[paying].sum())
    secret = [*outcome.bids, *outcome.payments, *outcome.privacy_loss, compensation, outcome.objective]
    secret += [float(outcome.information_rent.sum()), float(outcome.privacy_loss.sum()), outcome.total_payment]
    told = list(numbers_in(dataclasses.asdict(report)))
    assert not [one for one in secret if one not in (0.0, cap) and any(one == pytest.approx(x, rel=1e-9) for x in told)]


def test_few_drop_outs_are_not_counted_in_the_object_either(report: Report) -> None:
    assert report.estimate.dropped_out is None


@pytest.mark.parametrize("setting", ["central", "local"])
def test_how_many_promises_were_checked_does_not_tell_how_many_dropped_out(setting: str) -> None:
    """Locally the messages that came are checked, centrally the sampler is asked about some of those who delivered."""
    outcome = bought(setting=setting)
    report = build_report(outcome, released(outcome), comparison="omit")
    assert report.privacy.checked is None
    assert "checked in whole-number arithmetic" not in words(render_report(report))


def test_what_is_no_hash_is_not_put_into_a_style() -> None:
    assert f"Record {'5c' * 32}" in footer("5c" * 32)
    for other in (None, '"; } body { display: none', "</style><script>", "5C" * 32, "5c" * 32 + "\n"):
        assert 'content: "";' in footer(other)
