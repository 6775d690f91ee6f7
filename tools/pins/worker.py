"""Make every page of the version that is installed or on the path, as normalised text: ``worker.py TREE TARGET``.

Pages of the server are those of campaigns in many states, for each role, in both languages. Reports are built from
outcomes without noise, and each template is also filled in with facts that lead it through all its branches.
"""

import html
import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

LANGUAGES = ("en", "de")
SEEDS = 150
Pages = dict[str, str]


def main() -> None:
    tree, target = sys.argv[1:3]
    sys.path[:0] = [f"{tree}/src", tree, str(Path(__file__).resolve().parents[2])]
    from tests.server.pages.tour import server_pages

    found = {**template_pages(), **report_pages()}
    with tempfile.TemporaryDirectory() as folder:
        found |= server_pages(Path(folder), LANGUAGES)
        found["openapi"] = openapi(Path(folder))
    Path(target).write_text(json.dumps({name: normal(page) for name, page in found.items()}, ensure_ascii=False))


def openapi(folder: Path) -> str:
    """The description of the HTTP interface, one fact a line."""
    try:
        from hushbid.server.http import create_app
    except ImportError:  # an earlier version
        from hushbid.server.api import create_app  # type: ignore[import-not-found,no-redef]
    from hushbid.server.pages import add_pages
    from hushbid.server.service import Service

    with Service.at(folder / "openapi") as service:
        return json.dumps(create_app(service, pages=add_pages).openapi(), indent=1, sort_keys=True)


def normal(page: str) -> str:
    """A page with one element a line, characters instead of entities, and without what is drawn by chance."""
    page = re.sub(r"<style>.*?</style>|<meta http-equiv[^>]*>", "", page, flags=re.DOTALL)
    page = re.sub(r"https?://[\w.:]+", "http://host", page)
    page = re.sub(r"/static/[\w.-]+\?[^\"]*|/static/[\w.-]+", "/static/x", page)
    page = re.sub(r"hb_(\w)_[\w-]+", r"hb_\1_x", page)
    page = re.sub(r'(name="(?:csrf|once|nonce|version|kept|campaign)" value=")[^"]*', r"\1x", page)
    page = re.sub(r'data-(csrf|key|once|version)="[^"]*"', r'data-\1="x"', page)
    page = re.sub(r"(T\d\d:\d\d):\d\d(?:\.\d+)?(?:Z|\+00:00)", r"\1", page)
    names: dict[str, str] = {}
    page = re.sub(r"HB-\w{4}-\w{4}-\w{4}|\bh?[0-9a-f]{12,40}(?=…|\b)", "x", page)
    random = r"\b(?:[0-9a-f]{64}|[cp][0-9a-z]{20,30})\b"
    page = re.sub(random, lambda one: names.setdefault(one[0], f"id{len(names)}"), page)
    page = html.unescape(page).replace("\u00a0", "~")
    lines = (
        " ".join(line.split()) for line in re.sub(r"\s*(<[^>]*>)\s*", r"\n\1\n", " ".join(page.split())).split("\n")
    )
    return "\n".join(line for line in lines if line)


def template_pages() -> Pages:
    """Each template of the report with facts that nobody found out."""
    from hushbid.report import language as spoken
    from hushbid.report import page as report_page
    from tools.pins.report_facts import Fact

    found = {}
    for language in LANGUAGES:
        environment = report_page._page(language).environment.overlay()
        environment.filters = {**environment.filters, **{name: shown_as(name) for name in FAKED}}
        for name in ("count", "people"):
            environment.filters[name] = lambda n, write=environment.filters[name]: write(int(n or 0))
        environment.tests = {**environment.tests, "finite": lambda value: value is not None and int(value) != 7}
        environment.cache = {}
        for template in sorted(one for one in environment.list_templates() if one.endswith(".html") and "/" not in one):
            for seed in range(SEEDS):
                facts = {name: Fact.sure(name, seed) for name in ("report", "section", "facts")}
                facts["facts"] = Fact.at("facts", seed)
                facts["conduct_table"] = facts["interval"] = Fact.sure("interval", seed)
                with spoken.speaking(language):
                    try:
                        text = environment.get_template(template).render(
                            **facts, smallest_cell=5, smallest_chart=20, sections=[], style="", policy=""
                        )
                        text += macros_of(environment, template, seed)
                    except Exception as problem:  # noqa: BLE001 - a fact that is missing is as good as one that is there
                        text = f"not with these facts: {type(problem).__name__}"
                found[f"template/{template}/{seed:03}/{language}"] = text
    return found


FAKED = ("at_most", "factor_at_most", "level_text", "money", "money_at_most", "number", "percent", "with_unit")


def macros_of(environment: Any, template: str, seed: int) -> str:
    """What the macros say that other templates use."""
    from tools.pins.report_facts import Fact

    if template != "settlement.html":
        return ""
    module = environment.get_template(template).make_module({"smallest_chart": 20})
    report = Fact.sure("report", seed)
    return f"{module.settled_sentence(report)}{module.delivered_words(report)}"


def shown_as(name: str) -> Callable[..., str]:
    """A filter that only says what it was given."""
    return lambda value, *more: f"{name}({value}{''.join(f', {one}' for one in more)})"


def report_pages() -> Pages:
    """Whole reports of campaigns that were really computed."""
    from hushbid.errors import HushbidError
    from hushbid.report import build_report, render_report

    found = {}
    for name, outcome, options in outcomes():
        for language in LANGUAGES:
            try:
                page = render_report(build_report(outcome, **options, language=language))
            except HushbidError as problem:
                page = f"refused: {problem}"
            found[f"{name}/{language}"] = page
    return found


def notices() -> list[Any]:
    """Every notice of ours, and one of a campaign's own; an earlier version recognised ours by their words."""
    try:
        from hushbid.campaign import notices as ours
    except ImportError:
        from hushbid.campaign.by_stratum import _one_of
        from hushbid.campaign.releasing import SYNTHETIC_NOTICE, wave_stamps
        from hushbid.campaign.writing import SIMULATED

        late = "Late: the data of {} came after the estimate was drawn and were not used; they are {}."
        return [
            *(SYNTHETIC_NOTICE, SIMULATED, "Own words.", _one_of("Sleep", 1), _one_of("Sleep", 3)),
            *(f"{one[0].upper()}{one[1:]}." for before in (0, 1, 3) for one in wave_stamps(4, before)),
            *(late.format("1 person", "paid"), late.format("2 people", "unpaid")),
        ]
    return [
        *(ours.SYNTHETIC, ours.SIMULATED, "Own words.", ours.stratum_notice("Sleep", 1)),
        ours.stratum_notice("Sleep", 3),
        *(one for before in (0, 1, 3) for one in ours.wave_notices(4, before)),
        *(ours.late_notice(1, "paid"), ours.late_notice(2, "unpaid")),
    ]


def outcomes() -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Campaigns of all kinds."""
    import numpy as np

    from hushbid import Accuracy, Budget, HardBudget, LogNormal, Market, Uniform
    from hushbid.audit import PrivacyAudit, check_incentives, check_questions
    from hushbid.mechanism.releasing import plan_of
    from hushbid.questions import Choice, Number, YesNo
    from tests.report.test_page import released

    prior = LogNormal(0.0, 0.5)

    def market(n: int = 120, **terms: Any) -> Any:
        if "goal" not in terms:
            terms = {"buyer_weight": 3000.0, **terms}
        bids = prior.sample(n, rng=np.random.default_rng(5))
        return Market(prior=terms.pop("prior", prior), **{"user_weight": 0.0, **terms}).acquire(bids)

    privacy = {"user": 17, "promised": 0.5, "lower_bound": 0.44, "event": "output at most 0.3", "fit_p_value": 0.3}
    audit = PrivacyAudit(**privacy, confidence=0.999999, samples=50_000, power=0.97)
    broken = PrivacyAudit(**{**privacy, "lower_bound": 0.9}, confidence=0.99, samples=50_000, power=0.4)
    groups = ["north"] * 50 + ["south"] * 65 + ["isle"] * 5
    ours = notices()
    plain = market()
    told = {"title": "Sleep", "unit": "hours", "currency": "EUR", "record_hash": "ab" * 32, "date": "2026-03-01"}
    yield "report plain", plain, {**told, "groups": groups, "audits": [audit, broken], "notices": ours}
    yield "report released", plain, {"release": released(plain), **told, "spending_limit": 500.0, "comparison": "omit"}
    yield "report few", market(4), {}
    yield "report nineteen", market(19), {"currency": "EUR"}
    yield "report nobody", market(6, prior=Uniform(1e-9, 2e-9)), {}
    yield "report capped", market(max_privacy_loss=0.1), told
    yield "report valued", market(user_weight=3.0, variance=0.05), told
    yield "report large", market(user_weight=300.0, variance=0.05), told
    yield "report accuracy", market(goal=Accuracy(0.05)), told
    yield "report budget", market(goal=Budget(50.0)), told
    yield "report hard", market(goal=HardBudget(50.0)), told
    yield "report local", market(setting="local", buyer_weight=30000.0), told
    yield "report local capped", market(setting="local", buyer_weight=30000.0, max_privacy_loss=0.4), told
    yield "report protected", market(max_correlation=0.2), told
    labels = ["old"] * 60 + ["young"] * 60
    yield "report strata", market(shares={"old": 0.3, "young": 0.7}, strata=labels), told
    yield "report contrast", market(contrast={"old": 1.0, "young": -1.0}, strata=labels), told
    survey = (
        Number(name="Hours?", bounds=(0, 12), unit="h"),
        YesNo(name="Tired?"),
        Choice(name="Rested?", answers=("yes", "so-so", "no")),
    )
    yield "report survey", market(questions=survey), {"currency": "EUR"}
    yield "report survey accuracy", market(questions=survey[:2], goal=Accuracy((1.5, 0.15))), {"currency": "EUR"}
    small = market(30, buyer_weight=300.0)
    attacks = [check_incentives(small.market, small.bids, people=3, rng=np.random.default_rng(1))]
    attacks += check_questions(plan_of(small, key="k"), rng=np.random.default_rng(1), repetitions=50)
    yield "noisy report attacks", small, {"audits": attacks, "comparison": "omit"}


if __name__ == "__main__":
    main()
