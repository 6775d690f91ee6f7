"""The table [market] of a campaign file: what the buyer has, what the data are like and what she believes of prices.

She states exactly one of a budget, a hard budget, a standard error and a buyer weight; amounts are in units of the
currency. Where each stratum has an estimate of its own, it may have a standard error of its own. In a survey ranges,
variances and standard errors are stated with the questions. What each field allows is checked by itself, and what does
not go together by the market itself.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hushbid.allocation.goals import STATED, Accuracy, Goal, Price, goal_named
from hushbid.common.arrays import TOO_MUCH_VARIANCE, varies_too_much
from hushbid.common.money import Currency
from hushbid.errors import HushbidError, InputError
from hushbid.mechanism import Market, buyer_weight_for
from hushbid.priors.pilot import PriorSource, prior_source
from hushbid.purchase.questions_section import Survey, read_bounds
from hushbid.purchase.strata_section import Stratification, numbers_by_stratum
from hushbid.purchase.toml_sections import Section

_MOST_PEOPLE = 10**12
_TABLES = ("buyer_weight", "standard_error")
"""What may be stated as a table."""


def read_market(
    section: Section,
    home: Path,
    currency: Currency,
    *,
    asked: bool,
    survey: Survey | None,
    strata: Stratification | None,
) -> tuple[dict[str, Any], PriorSource | None]:
    """The market's fields without its prior, and where the prior comes from; None if that is wrong.

    ``asked`` says whether the file has questions, and ``survey`` are these, unless they are wrong; so are ``strata``.
    """
    before = len(section.problems)
    setting = section.choice("setting", ("central", "local"), needed=True, default="central")
    user_weight = section.number("user_weight", default=0.0)
    options: dict[str, Any] = {
        "setting": setting,
        **(_asked(section, survey) if asked else _one_number(section)),
        "goal": _goal(section, currency, asked, survey),
        "user_weight": user_weight,
        "outside_option": section.choice("outside_option", ("own_data", "estimate"), default="own_data"),
        "max_privacy_loss": section.number("max_privacy_loss", default=None, open_low=True),
        "max_correlation": section.number("max_correlation", default=0.0, high=1.0),
        "population": section.count("population", most=_MOST_PEOPLE),
        "tolerance": section.number("tolerance", default=1e-6, open_low=True, high=1e-6),
    }
    may_owe = section.flag("people_may_owe_money")
    if user_weight and not asked and not section.given("variance"):
        section.wrong("variance", "stated when user_weight is not 0: a wrong one would make lying or staying out pay")
    if user_weight and not may_owe:
        section.problems.add(
            section.field("user_weight"),
            "lets people owe money: whoever values the estimate may have to pay for it. Leave it at 0, or write"
            " people_may_owe_money = true.",
        )
    prior = _prior(section, home)
    if prior is not None and len(section.problems) == before:
        _check_terms(section, options, prior, strata)
    return options, prior


def _check_terms(section: Section, options: dict[str, Any], prior: PriorSource, strata: Stratification | None) -> None:
    """What does not go together is a problem of the field that states it."""
    if strata is not None and options["population"] is not None:
        place = section.field("population")
        section.problems.add(
            place, "must stand in the table [strata], a number for each stratum, where there are strata."
        )
        return
    of_strata = {} if strata is None or strata.each else strata.fields(None, options["max_correlation"])
    try:
        terms = options | of_strata
        if strata is not None and strata.each:
            strata.refuse_terms(options)
            terms = strata.of_stratum(options, _some_stratum(options, strata))
        for one in prior.priors.values():
            Market(prior=one, **terms).require_roster()
    except HushbidError as problem:
        goal = next((name for name in STATED if section.given(name)), "")
        field = problem.field if problem.field in options and section.given(problem.field) else goal
        place = section.field(field) if field else "questions"
        if problem.field in of_strata or (strata is not None and problem.field == "population"):
            place = f"strata.{problem.field}"
        section.problems.add(place, str(problem).removeprefix(f"{place.rpartition('.')[2]} "))


def _some_stratum(options: Mapping[str, Any], strata: Stratification) -> str:
    """The name of a stratum, as far as one is stated."""
    goal = options["goal"]
    named = goal.standard_error if isinstance(goal, Accuracy) else None
    return next(iter(named)) if isinstance(named, Mapping) else strata.known


def _one_number(section: Section) -> dict[str, Any]:
    """The range and variance of the one number that is asked for."""
    bounds, variance = read_bounds(section), section.number("variance", default=None, open_low=True)
    if bounds and variance and varies_too_much(variance, bounds):
        section.problems.add(section.field("variance"), TOO_MUCH_VARIANCE)
    return {"bounds": bounds or (0.0, 1.0), "variance": variance}


def _asked(section: Section, survey: Survey | None) -> dict[str, Any]:
    """The questions, which have ranges and variances of their own."""
    for name in ("bounds", "variance"):
        section.raw(name)
        if section.given(name):
            section.problems.add(section.field(name), "cannot be stated beside questions, each of which has its own.")
    return {} if survey is None else {"questions": survey.questions}


def _goal(section: Section, currency: Currency, asked: bool, survey: Survey | None) -> Goal:
    """The one thing that the buyer states: what she may spend, how accurate she must be, or what an error costs.

    In a survey the questions may state it.
    """
    each = None if survey is None else survey.goal
    given = [name for name in STATED if section.given(name)]
    if asked and "standard_error" in given:
        section.problems.add(
            section.field("standard_error"), "must stand in the table of each question, where there are questions."
        )
    numbers: dict[str, Any] = {name: section.number(name, open_low=True) for name in STATED if name not in _TABLES}
    numbers |= {"buyer_weight": _buyer_weight(section), "standard_error": _standard_error(section)}
    allowed = "exactly one of budget, hard_budget, standard_error and buyer_weight"
    if each is not None:
        for name in (name for name in given if name != "standard_error"):
            section.problems.add(
                section.field(name), f"cannot be stated beside the questions' standard errors: state {allowed}."
            )
        return each
    if not given and (survey is not None or not asked):  # what is wrong with questions is told already
        section.problems.add(section.name, f"must state what the buyer has: {allowed}.")
    for name in given[1:]:
        section.problems.add(
            section.field(name), f"cannot be stated beside {section.field(given[0])}: state {allowed}."
        )
    number = numbers[given[0]] if given else None
    if isinstance(number, Mapping):
        return _by_stratum(section, number)
    return Price(1.0) if number is None else goal_named(given[0], number, coin=currency.coin)


def _standard_error(section: Section) -> float | Mapping[str, float] | None:
    """One number, or one for each stratum."""
    if not isinstance(section.raw("standard_error"), dict):
        return section.number("standard_error", open_low=True)
    return numbers_by_stratum(section, "standard_error")


def _by_stratum(section: Section, stated: Mapping[str, float]) -> Goal:
    try:
        return Accuracy(stated)
    except InputError:
        section.wrong("standard_error", "a number above 0, or one for each stratum: { north = 0.4, south = 0.6 }")
        return Price(1.0)


def _buyer_weight(section: Section) -> float | None:
    if not isinstance(section.raw("buyer_weight"), dict):
        return section.number("buyer_weight", open_low=True)
    table = section.section("buyer_weight")
    payment = table.number("payment", needed=True, open_low=True)
    before = table.number("from_standard_error", needed=True, open_low=True)
    after = table.number("to_standard_error", needed=True)
    table.finish()
    if payment is None or before is None or after is None:
        return None
    try:
        return buyer_weight_for(payment, from_standard_error=before, to_standard_error=after)
    except InputError as problem:
        section.problems.add(section.field("buyer_weight"), str(problem))
        return None


def _prior(section: Section, home: Path) -> PriorSource | None:
    form = section.raw("prior")
    if form is None:
        section.wrong("prior", 'a text such as "uniform:1,2", a table with family or file, or a table of groups')
        return None
    try:
        return prior_source(form, folder=home)
    except HushbidError as problem:
        section.problems.add(section.field("prior"), str(problem))
        return None
