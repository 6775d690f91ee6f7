"""The sections of a report about alternatives, checks and assumptions: facts in, elements out."""

from collections.abc import Callable

from hushbid import __version__
from hushbid.money import money
from hushbid.report.charts_compare import Measure, audit_chart, cap_chart, settings_chart
from hushbid.report.html import Markup, element, join
from hushbid.report.model import AuditLine, Report, SettingFacts
from hushbid.report.sections import bold, paragraph, withheld
from hushbid.report.suppression import FEW, SMALLEST_CELL, SMALLEST_CHART, too_few
from hushbid.report.svg import Table, figure, plain_table
from hushbid.wording import NBSP, at_most, count, level_text, number, people, percent, with_unit

_VERDICTS = {"failed": "Failed", "clear": "No fault found", "weak": "No fault found, weak test"}
_SIGNS = {"failed": "✕", "clear": "✓", "weak": "!"}


def comparison_section(report: Report) -> Markup:
    """Central against local on the same reports."""
    settings = report.comparison.settings
    explained = paragraph(
        element("b", "Central"),
        " means that an operator who is trusted with the data adds noise once. ",
        element("b", "Local"),
        " means that every device adds its own before anything leaves it. Trusting nobody costs accuracy, money or"
        f" both. This campaign is {report.setting}.",
    )
    if report.bought_from == 0:
        return join([explained, paragraph("Nothing was bought, in either setting.")])
    if len(settings) < 2:
        return join([explained, withheld(report.comparison.missing)])
    chosen, other, *rest = settings
    measures = _measures(report)
    chart = figure(
        lambda width: settings_chart(settings, measures, width),
        name="settings",
        title="The same reports, bought both ways",
        description="Bars: " + "; ".join(_compared(settings, measure) for measure in measures) + ".",
        caption=(
            f"Each block has its own scale. The {other.name} campaign was computed, not carried out; payments are shown"
            " before rounding to coins."
        ),
        table=_settings_table(settings, report, "Setting"),
    )
    ending = paragraph(
        "Error and payments together, as this campaign values them, would cost ",
        bold(_dearer(other, chosen, report)),
        f" in the {other.name} setting" + (", both under the cap" if rest else ""),
        [f", and {_dearer(one, chosen, report)} there without one" for one in rest],
        ".",
    )
    return join([explained, chart, ending])


def _dearer(one: SettingFacts, chosen: SettingFacts, report: Report) -> str:
    more = one.objective - chosen.objective
    return f"{money(abs(more), report.currency)} {'more' if more >= 0 else 'less'}"


def cap_section(report: Report) -> Markup:
    """What the cap costs, and what others would."""
    facts, cap = report.cap, report.privacy.cap
    if report.bought_from == 0:
        return paragraph("Nothing was bought, so there is nothing to cap.")
    if too_few(report.bought_from):
        return withheld(FEW)
    shown = []
    if facts.capped is None or facts.uncapped is None:
        shown.append(
            paragraph(
                "No cap was set on anybody's privacy loss. A cap keeps the purchase truthful, makes the estimate less"
                " accurate and pays people less; the picture shows what one would have cost."
            )
        )
    elif not facts.reached:
        shown.append(
            paragraph(
                f"Nobody may lose more than ε{NBSP}={NBSP}{number(at_most(cap or 0.0, 3))}. Nobody would have lost more"
                " without that cap, so it costs nothing."
            )
        )
    else:
        extra = facts.capped.objective - facts.uncapped.objective
        shown += [
            paragraph(
                f"Nobody may lose more than ε{NBSP}={NBSP}{number(at_most(cap or 0.0, 3))}; without that cap,"
                f" {people(facts.reached)} would have. It costs ",
                bold(money(max(extra, 0.0), report.currency)),
                " in error and payments together, as this campaign values them.",
            ),
            plain_table(_settings_table((facts.capped, facts.uncapped), report, "Cap"), class_="figures"),
        ]
    if not facts.curve:
        return join([*shown, withheld(f"A curve of caps is drawn from at least {SMALLEST_CHART} people.")])
    best = min(objective for _, _, objective in facts.curve)
    rows = tuple(
        (number(level), with_unit(number(error), report.unit), money(objective - best, report.currency))
        for level, error, objective in facts.curve[:: max(len(facts.curve) // 12, 1)]
    )
    chart = figure(
        lambda width: cap_chart(facts, cap, report.currency, width),
        name="caps",
        title="The lower the cap, the dearer the error",
        description=f"Extra cost against the cap: it falls to nothing at ε = {number(facts.curve[-1][0])}.",
        caption="Extra cost of error and payments together, compared with no cap.",
        table=Table(head=("Cap on ε", "Standard error", "Extra cost"), rows=rows),
    )
    return join([*shown, chart])


def audits_section(report: Report) -> Markup:
    """Attacks on our own claims, with sample size and power."""
    if not report.audits:
        return join(
            [
                withheld("No audit was run for this report."),
                paragraph(
                    "Anybody with the record can run one: ",
                    element("code", f"hushbid audit {report.record_name}"),
                    ".",
                ),
            ]
        )
    opening = paragraph(
        "An audit attacks a claim and tries to prove it wrong. ",
        element("b", "A failed audit is proof, up to the confidence stated. "),
        "One that found no fault proves nothing by itself, which is why each says how likely it would have caught a"
        " fault planted on purpose.",
    )
    cards = [_audit(line) for line in report.audits]
    drawn = [line for line in report.audits if line.bar is not None]
    chart = None
    if drawn:
        listed = "; ".join(f"proved {number(line.bar[0])} times what was promised" for line in drawn if line.bar)
        chart = figure(
            lambda width: audit_chart(drawn, width),
            name="audits",
            title="Privacy loss that the attack could prove, against the promise",
            description=f"For each privacy audit: {listed}.",
            caption="A bar beyond its line proves that the promise is broken.",
        )
    return join([opening, element("div", cards, class_="audits"), chart])


def _audit(line: AuditLine) -> Markup:
    against = f" to catch {line.power_against}" if line.power_against else ""
    power = "not known" if line.power is None else f"{percent(min(line.power, 0.999))}{against}"
    return element(
        "article",
        element(
            "p",
            element("span", _SIGNS[line.verdict], aria_hidden="true", class_="sign"),
            _VERDICTS[line.verdict],
            class_="verdict",
        ),
        element("h3", line.title),
        paragraph(line.finding),
        element(
            "dl",
            element("dt", "Sample size"),
            element("dd", line.samples),
            element("dt", "Power"),
            element("dd", power),
        ),
        class_=f"audit {line.verdict}",
    )


def assumptions_section(report: Report) -> Markup:
    """Every assumption, and what follows if it is wrong."""
    items = [
        element(
            "div",
            element("dt", one.title),
            element("dd", one.text, " ", element("span", element("b", "If not: "), one.if_wrong, class_="otherwise")),
        )
        for one in report.assumptions
    ]
    return join(
        [
            paragraph(
                "Everything above rests on what follows. Under each assumption stands what happens where it does not"
                " hold."
            ),
            element("dl", items, class_="assumptions"),
        ]
    )


def verify_section(report: Report) -> Markup:
    """How a reader checks it without trusting us."""
    fingerprint = (
        ["Compare its fingerprint (SHA-256) with this one:", element("code", report.record_hash, class_="hash")]
        if report.record_hash
        else ["No fingerprint of the record was given to this page; ask for it along with the record."]
    )
    versions = ", ".join(f"{name} {version}" for name, version in report.versions)
    return join(
        [
            paragraph(
                "This page is a summary. The record behind it holds every report and decision. It is confidential,"
                " but a supervisor can ask for it and compute everything again:"
            ),
            element(
                "ol",
                element("li", "Obtain the record, ", element("code", report.record_name), ", from the operator."),
                element("li", *fingerprint),
                element(
                    "li",
                    f"Let Hushbid {__version__}, which is free software, compute every privacy loss,"
                    " weight and payment again from the reports, and check every promise:",
                    element("pre", element("code", f"hushbid verify {report.record_name}"), tabindex="0"),
                ),
                element(
                    "li",
                    "Attack it yourself, on made-up data:",
                    element("pre", element("code", f"hushbid audit {report.record_name}"), tabindex="0"),
                ),
                class_="steps",
            ),
            paragraph(
                element("b", "What no one can verify afterwards: "),
                "that data were true, that the noise was drawn by chance and only once, and that nobody kept a copy"
                " of the data. For these the operator has to be trusted, or in the local setting each person's own"
                " device.",
            ),
            element("h3", "How this page protects people"),
            element(
                "ul",
                element(
                    "li",
                    "It holds no names, no data and nobody's report, payment or privacy loss, unless so few were"
                    " bought from that what they were paid in all is known.",
                ),
                element(
                    "li",
                    f"Charts, quantiles and groups have at least {SMALLEST_CHART} people behind them, bars at least"
                    f" {SMALLEST_CELL}. Smaller groups are pooled.",
                ),
                element(
                    "li",
                    "The largest privacy loss is rounded up and intervals are rounded outwards: true, but not exact.",
                ),
                element(
                    "li",
                    "What it tells about prices comes from reports, not from data; ε limits what the estimate tells"
                    " about data.",
                ),
            ),
            paragraph(
                f"Made with {versions}. Prior: {report.prior}. This page needs no connection and runs no program.",
                class_="small",
            ),
        ]
    )


def _measures(report: Report) -> tuple[Measure, ...]:
    return (
        ("Standard error", lambda one: one.standard_error, lambda value: with_unit(number(value), report.unit)),
        ("Total payment", lambda one: one.total, lambda value: money(value, report.currency)),
        ("Largest privacy loss", lambda one: one.largest_loss, lambda value: f"ε{NBSP}≤{NBSP}{number(value)}"),
        ("Bought from", lambda one: float(one.bought_from), lambda value: people(int(value))),
    )


def _compared(settings: tuple[SettingFacts, ...], measure: Measure) -> str:
    name, get, write = measure
    return f"{name.lower()} " + ", ".join(f"{one.name} {write(get(one))}" for one in settings)


def _settings_table(settings: tuple[SettingFacts, ...], report: Report, corner: str) -> Table:
    def row(name: str, get: Callable[[SettingFacts], str]) -> tuple[str, ...]:
        return (name, *(get(one) for one in settings))

    return Table(
        head=(corner, *(one.name for one in settings)),
        rows=(
            row("Bought from", lambda one: count(one.bought_from)),
            row("Largest privacy loss, at most", lambda one: number(one.largest_loss)),
            row("Standard error", lambda one: with_unit(number(one.standard_error), report.unit)),
            row(
                f"Half of the {level_text(report.estimate.level)} interval",
                lambda one: with_unit(number(one.half_width), report.unit),
            ),
            row("Total payment", lambda one: money(one.total, report.currency)),
            row("Error and payments together", lambda one: money(one.objective, report.currency)),
        ),
    )
