"""From what is stated to a `Market`: its terms, before anyone has bid and for the people who did."""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from hushbid.allocation import Accuracy, Budget, Goal, HardBudget
from hushbid.allocation.goals import goal_named
from hushbid.campaign.people import People
from hushbid.campaign.reading import Problems, question_of, validated
from hushbid.campaign.spec import GOALS, CampaignSpec, StrataTable, Worth
from hushbid.campaign.stated import Stated
from hushbid.common.money import Currency
from hushbid.errors import HushbidError, InputError
from hushbid.mechanism import Market, buyer_weight_for
from hushbid.mechanism.combinations import Combination, refuse
from hushbid.mechanism.population import groups_of
from hushbid.mechanism.strata import listed
from hushbid.priors.pilot import PriorSource
from hushbid.questions import Question

_SAME = (
    *("setting", "user_weight", "outside_option", "max_privacy_loss", "max_correlation", "population"),
    *("expected_share", "tolerance"),
)
"""Fields that a market has under the names of the campaign's table."""


def market_terms(spec: CampaignSpec, currency: Currency) -> dict[str, Any]:
    """Return the fields of a market but for prior and strata."""
    questions = questions_of(spec)
    asked = (
        {"questions": questions} if questions else {name: getattr(spec.market, name) for name in ("bounds", "variance")}
    )
    return {"goal": goal_of(spec, currency), **asked, **{name: getattr(spec.market, name) for name in _SAME}}


def questions_of(spec: CampaignSpec) -> tuple[Question, ...]:
    """Return what is asked, if it is more than one number."""
    return tuple(question_of(one) for one in spec.questions)


def goal_of(spec: CampaignSpec, currency: Currency) -> Goal:
    """Return what the buyer has; of a survey, perhaps a standard error for each question."""
    if targets := _targets(spec):
        return Accuracy(targets)
    name = next(name for name in GOALS if getattr(spec.market, name) is not None)
    number = getattr(spec.market, name)
    if isinstance(number, Worth):
        number = buyer_weight_for(**number.model_dump())
    return goal_named(name, number, coin=currency.coin)


def survey_in(path: Path) -> tuple[tuple[Question, ...], tuple[float, ...]]:
    """Return the questions of a file, of which nothing else is read, and the standard errors that they state."""
    stated = Stated(values={}).with_table("questions", path)
    problems = Problems(stated)
    spec = validated(stated, problems, CampaignSpec)
    problems.refuse(within="questions")
    return questions_of(spec), _targets(spec)


def _targets(spec: CampaignSpec) -> tuple[float, ...]:
    return tuple(one.standard_error for one in spec.questions if one.standard_error is not None)


def refuse_contradicting(
    spec: CampaignSpec, terms: dict[str, Any], prior: PriorSource, problems: Problems, *, planned: bool
) -> None:
    """Keep what does not go together as a problem of the field that states it."""
    strata = spec.strata
    if strata is not None and spec.market.population is not None:
        message = "must stand in the table [strata], a number for each stratum, where there are strata."
        problems.add("market.population", message)
        return
    of_strata = fields_of_strata(strata, None, terms["max_correlation"])
    try:
        whole = terms | of_strata
        if strata is not None and strata.each:
            refuse_terms(strata, terms)
            whole = of_stratum(strata, terms, _some_stratum(terms, strata))
        for one in prior.priors.values():
            market = Market(prior=one, **whole)
            if not planned:
                market.require_roster()
    except HushbidError as problem:
        goal = next((name for name in GOALS if getattr(spec.market, name) is not None), "")
        stated = problem.field == "population" or (
            problem.field in terms and problem.field in spec.market.model_fields_set
        )
        name = problem.field if stated else goal
        place = f"market.{name}" if name else "questions"
        if problem.field in of_strata or (strata is not None and problem.field == "population"):
            place = f"strata.{problem.field}"
        problems.add(place, str(problem).removeprefix(f"{place.rpartition('.')[2]} "))


def _some_stratum(terms: Mapping[str, Any], strata: StrataTable) -> str:
    """The name of a stratum, as far as one is stated."""
    goal = terms["goal"]
    named = goal.standard_error if isinstance(goal, Accuracy) else None
    return next(iter(named if isinstance(named, Mapping) else strata.population or ("all",)))


# -- strata ------------------------------------------------------------------------------------------------------------


def fields_of_strata(strata: StrataTable | None, people: People | None, relation: float) -> dict[str, Any]:
    """Return the market's fields for people who are at hand, or, before any are, as far as they are known."""
    if strata is None or strata.each:
        return {}
    counts = strata.population if people is None or strata.population else people.roster_by_stratum
    return {
        **({"shares": strata.shares} if strata.shares is not None else {"contrast": strata.contrast}),
        "strata": [] if people is None else people.strata,
        **({"population": counts} if counts is not None and (strata.population or relation > 0.0) else {}),
    }


def of_stratum(strata: StrataTable, terms: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the terms of the market of one stratum, from those of the campaign, where each has an estimate."""
    goal = terms["goal"]
    if isinstance(goal, Accuracy) and isinstance(goal.standard_error, Mapping):
        goal = Accuracy(goal.standard_error[name])
    counts = strata.population if terms["max_correlation"] > 0.0 else None
    return {**terms, "goal": goal, "population": None if counts is None else counts[name]}


def refuse_terms(strata: StrataTable, terms: Mapping[str, Any], names: Iterable[str] | None = None) -> None:
    """Refuse terms that markets of single strata cannot have, or that name other strata than there are.

    Before people are read there are no ``names``: then the strata that the terms name must be the same.
    """
    goal = terms["goal"]
    cares = bool(np.any(np.asarray(terms["user_weight"]) > 0.0))
    refuse(Combination(setting=terms["setting"], goal=goal.kind, each=True, user_weight=cares))
    stated = {}
    if isinstance(goal, Accuracy) and isinstance(goal.standard_error, Mapping):
        stated["standard_error"] = list(goal.standard_error)
    if strata.population is not None and terms["max_correlation"] > 0.0:
        stated["population"] = list(strata.population)
    there = sorted(names or next(iter(stated.values()), []))
    for name, given in stated.items():
        if sorted(given) != there:
            raise InputError(f"{name} must name each stratum, {listed(there)}, and no other.", field=name)


def counts_of(strata: StrataTable) -> Mapping[str, int]:
    """Return how many people each stratum has, where nobody has bid yet."""
    if strata.population is not None:
        return strata.population
    message = "strata.population must say how many people each stratum has, where nobody has bid yet."
    raise InputError(message, field="strata.population")


# -- from a market -----------------------------------------------------------------------------------------------------


def fields_of(market: Market) -> dict[str, Any]:
    """Return the market's fields but for the prior."""
    return {one.name: getattr(market, one.name) for one in fields(market) if one.init and one.name != "prior"}


def with_coin(goal: Goal, currency: Currency) -> Goal:
    """Return the goal with the currency's coin, if it is a budget that states none."""
    if isinstance(goal, (Budget, HardBudget)) and goal.coin == 0.0:
        return type(goal)(goal.amount, coin=currency.coin)
    return goal


def prior_of(market: Market, group: str | None) -> PriorSource:
    """Return the market's prior, by group if it has groups; then ``group`` names the column of them."""
    if market.grouped and group is None:
        raise InputError(
            "group must name the column of people's groups if the market's prior is Grouped.", field="group"
        )
    return PriorSource(priors={one.name: one.prior for one in groups_of(market.prior, None)})
