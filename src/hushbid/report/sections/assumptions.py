"""What the numbers of a report rest on; the template has every assumption, and what follows where it does not hold."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from hushbid.allocation import Accuracy, Budget, Price
from hushbid.allocation.goals import PlannedPrice
from hushbid.languages import noted
from hushbid.mechanism import Market
from hushbid.priors.forms import prior_words
from hushbid.questions import Number
from hushbid.report.language import say
from hushbid.report.material import Material

ANCHOR, TITLE = "assumptions", noted("Assumptions")


@dataclass(frozen=True, slots=True, kw_only=True)
class AssumptionFacts:
    """What the words about a campaign's assumptions depend on."""

    setting: Literal["central", "local"]
    by_coin: bool
    """Whether one yes/no question was answered by a coin on each person's device."""

    strata: int
    """How many strata are combined; 0 without strata."""

    shares_stated: bool
    """Whether they are combined by shares of the population."""

    bounds: tuple[float, float] | None
    """The public range; None for a survey."""

    kinds: tuple[str, ...]
    """What kinds of questions a survey has."""

    questions: int
    declared: int
    """For how many questions a variance was declared."""

    variance: float | None
    """The declared variance, if it is one number."""

    deviation: float | None
    """The standard deviation that was declared, on average; None if none was."""

    max_correlation: float
    prior: str
    """The prior in words; one that is made of a sample is described, not shown."""

    prior_from_participants: bool
    goal: str
    """The kind of goal that the buyer stated."""

    amounts: tuple[float, ...]
    """What the buyer stated: an amount, a price, or a standard error for each question."""

    planned: PlannedPrice | None
    """The price that meets a budget, where it was planned."""

    user_weight: float | None
    """What an error costs each person; None if people differ."""

    weighted: bool
    """Whether an error costs anyone anything."""

    outside_option: str
    account_kept: bool
    """Whether a server keeps an account of privacy losses."""


def facts_of(material: Material) -> AssumptionFacts:
    """What has to be believed about this campaign."""
    return facts_about(
        material.outcome.market,
        prior_from_participants=material.prior_from_participants,
        account_kept=material.settlement is not None,
    )


def facts_about(market: Market, *, prior_from_participants: bool, account_kept: bool = False) -> AssumptionFacts:
    """What has to be believed about a market."""
    goal, survey = market.stated_goal, market.survey or ()
    declared = None if market.variance is None else np.asarray(market.variance, dtype=float)
    weights = np.asarray(market.user_weight, dtype=float)
    return AssumptionFacts(
        setting=market.setting,
        by_coin=bool(market.strategy.response),
        strata=0 if market.stratified is None else market.stratified.count,
        shares_stated=market.shares is not None,
        bounds=None if survey else market.bounds,
        kinds=tuple(kind for kind in ("number", "yes_no", "choice") if any(one.kind == kind for one in survey)),
        questions=len(survey),
        declared=sum(isinstance(one, Number) and one.variance is not None for one in survey),
        variance=None if declared is None or declared.ndim else float(declared),
        deviation=None if declared is None else float(np.sqrt(declared.mean())),
        max_correlation=market.max_correlation,
        prior=prior_words(market.prior, say=say),
        prior_from_participants=prior_from_participants,
        goal="price" if isinstance(market.goal, Price) else goal.kind,
        amounts=goal.targets if isinstance(goal, Accuracy) else (goal.number,),
        planned=goal.planned if isinstance(goal, Budget) else None,
        user_weight=float(weights.flat[0]) if np.all(weights == weights.flat[0]) else None,
        weighted=bool(weights.any()),
        outside_option=market.outside_option,
        account_kept=account_kept,
    )
