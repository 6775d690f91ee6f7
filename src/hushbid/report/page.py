"""The page: one file, no script, no request, and a policy that forbids both."""

import base64
import hashlib
import math
from collections.abc import Callable
from importlib.resources import files

from hushbid.money import money
from hushbid.report.html import Markup, element, join, style_element
from hushbid.report.model import Report
from hushbid.report.sections import (
    cost_section,
    estimate_section,
    privacy_section,
)
from hushbid.report.sections_checks import (
    assumptions_section,
    audits_section,
    cap_section,
    comparison_section,
    verify_section,
)
from hushbid.report.sections_people import groups_section, selection_section
from hushbid.report.sections_rivals import rivals_section
from hushbid.report.sections_settled import (
    cost_amount,
    cost_name,
    delivered_words,
    everybody_delivered,
    no_estimate_ever,
    settled_sentence,
)
from hushbid.wording import NBSP, count, interval, level_text, number, people, percent, with_unit

SECTIONS: tuple[tuple[str, str, Callable[[Report], Markup]], ...] = (
    ("estimate", "The estimate", estimate_section),
    ("cost", "What it cost, and why", cost_section),
    ("privacy", "Who gave up how much privacy", privacy_section),
    ("people", "Who was bought from", groups_section),
    ("selection", "Could prices mislead?", selection_section),
    ("settings", "Central against local", comparison_section),
    ("rivals", "Other ways to buy", rivals_section),
    ("cap", "What a cap costs", cap_section),
    ("audits", "Audits", audits_section),
    ("assumptions", "Assumptions", assumptions_section),
    ("verify", "How to verify", verify_section),
)


def render_report(report: Report) -> str:
    """The whole page as text."""
    style = stylesheet("theme.css", "page.css", "chart.css")
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy(style)),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("meta", name="generator", content="Hushbid"),
        element("title", f"{report.campaign_name} · Hushbid report"),
        style_element(style),
    )
    body = element(
        "body", element("a", "Skip to the report", href="#estimate", class_="skip"), _top(report), _main(report)
    )
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def stylesheet(*names: str) -> str:
    """Our own style sheets, one after the other."""
    return "\n".join(files("hushbid.report").joinpath(name).read_text(encoding="utf-8") for name in names)


def policy(style: str) -> str:
    """Nothing may be loaded or run; this very style sheet may style."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def _top(report: Report) -> Markup:
    facts = [f"{report.setting} setting", *([report.date] if report.date else [])]
    return element(
        "header",
        element(
            "p",
            element("b", "Hushbid"),
            element("span", "Campaign report"),
            *[element("span", one) for one in facts],
            class_="brand",
        ),
        element("h1", report.campaign_name),
        _warning(report),
        [element("p", notice, class_="notice") for notice in report.notices],
        element("p", _lede(report), class_="lede"),
        _key_figures(report),
        element(
            "nav",
            element("ol", [element("li", element("a", title, href=f"#{name}")) for name, title, _ in SECTIONS]),
            aria_label="Sections",
        ),
        class_="top",
    )


def _warning(report: Report) -> Markup | None:
    if not report.failed:
        return None
    failed = sum(audit.verdict == "failed" for audit in report.audits)
    return element(
        "p",
        element("b", "An audit failed. " if failed == 1 else f"{failed} audits failed. "),
        "At least one claim on this page is proved to be wrong. Do not rely on it; see ",
        element("a", "the audits", href="#audits"),
        ".",
        class_="alarm",
        role="alert",
    )


def _lede(report: Report) -> Markup:
    facts = report.estimate
    if report.bought_from == 0:
        return join([f"Nothing was bought: none of {people(report.people)} reported within the range of the prior."])
    loses = f"Nobody loses more than ε{NBSP}={NBSP}{number(report.privacy.largest)} of privacy."
    if report.privacy_failed:
        loses = f"A privacy loss of at most ε{NBSP}={NBSP}{number(report.privacy.largest)} was promised, and not kept."
    elif math.isinf(report.privacy.largest):
        loses = f"{people(report.privacy.unlimited)} accepted an unlimited loss of privacy."
    if facts.value is None:
        if no_estimate_ever(report):
            return join([f"There is no estimate of {report.quantity}: nobody delivered. {_price(report)}"])
        return join([f"Data on {report.quantity} are bought. {_price(report)} {loses} Nothing is released yet."])
    text, low, high = interval(facts.value, facts.half_width)
    return join(
        [
            f"We estimate {report.quantity} at ",
            element("b", with_unit(text, report.unit)),
            f", with {level_text(facts.level)} confidence between {low} and {high}. {_price(report)} {loses}",
        ]
    )


def _price(report: Report) -> str:
    cost, whom = report.cost, f"{count(report.bought_from)} of {people(report.people)}"
    if cost.paid is None:
        return f"Data were bought from {whom}: too few to say for how much."
    if cost.settled is not None:
        return settled_sentence(report)
    if not cost.payers and not everybody_delivered(report):
        return (
            f"Payments of {money(cost.paid, report.currency)} were decided for {whom}; those who do not deliver are not"
            " paid."
        )
    if not cost.payers:
        return f"It cost {money(cost.paid, report.currency)}, paid to {whom}."
    verb = "cost" if cost.paid >= 0.0 else "brought in"
    return (
        f"On balance it {verb} {money(abs(cost.paid), report.currency)}: data were bought from {whom}, and"
        f" {people(cost.payers)} pay for an estimate they value."
    )


def _amount(report: Report) -> str:
    amount = cost_amount(report)
    return "withheld" if amount is None else money(amount, report.currency)


def _key_figures(report: Report) -> Markup:
    facts, cost = report.estimate, report.cost
    figures: list[tuple[str, str, str]] = []
    if facts.value is not None:
        text, low, high = interval(facts.value, facts.half_width)
        figures.append(("Estimate", with_unit(text, report.unit), f"{low} to {high}"))
    elif math.isfinite(facts.half_width):
        figures.append(("Standard error", with_unit(number(facts.standard_error), report.unit), "expected"))
    note = f"{people(cost.payers)} pay" if cost.payers else ""
    if not note and cost.parts is not None and cost.parts.rent > 0.0:
        parts = cost.parts
        note = f"{percent(parts.rent / (parts.compensation + parts.rent + (parts.rounding or 0.0)))} information rent"
    figures += [
        (cost_name(report), _amount(report), note),
        ("Bought from", count(report.bought_from), f"of {people(report.people)}{delivered_words(report)}"),
    ]
    if report.bought_from:
        figures.append(
            (
                "Privacy loss",
                f"ε{NBSP}≤{NBSP}{number(report.privacy.largest)}",
                "promised, not kept" if report.privacy_failed else "for everybody",
            )
        )
    figures.append(("Audits", *_audit_figure(report)))
    items = [
        element("div", element("dt", name), element("dd", value, class_="value"), element("dd", note, class_="note"))
        for name, value, note in figures
    ]
    return element("dl", items, class_="key" + (" failed" if report.failed else ""))


def _audit_figure(report: Report) -> tuple[str, str]:
    if not report.audits:
        return "None", "no audit was run"
    failed = sum(audit.verdict == "failed" for audit in report.audits)
    weak = sum(audit.verdict == "weak" for audit in report.audits)
    if failed:
        return "Failed", f"{failed} of {len(report.audits)}"
    return "No fault", f"in {len(report.audits)}" + (f", {weak} weak" if weak else "")


def _main(report: Report) -> Markup:
    sections = [
        element(
            "section",
            element(
                "div",
                element("p", str(place), class_="place", aria_hidden="true"),
                element("h2", title, id=f"{name}-heading"),
                class_="side",
            ),
            element("div", render(report), class_="text"),
            id=name,
            aria_labelledby=f"{name}-heading",
        )
        for place, (name, title, render) in enumerate(SECTIONS, start=1)
    ]
    return element("main", sections)
