"""Every assumption that the numbers of a report rest on, in words, and what follows where one does not hold."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hushbid.allocation import Accuracy, Budget, Price
from hushbid.common.numbers import at_most
from hushbid.languages import noted
from hushbid.mechanism import Market
from hushbid.priors.forms import prior_words
from hushbid.questions import Number, Question
from hushbid.report.language import number, say, say_plural
from hushbid.report.material import Material

ANCHOR, TITLE = "assumptions", noted("Assumptions")


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """Something the numbers rest on."""

    title: str
    """In a few words."""

    text: str
    """In full."""

    if_wrong: str
    """What follows if it does not hold."""


def facts_of(material: Material) -> tuple[Assumption, ...]:
    """What has to be believed about this campaign."""
    return assumptions_of(
        material.outcome.market,
        people=material.outcome.bids.size,
        prior_from_participants=material.prior_from_participants,
        account_kept=material.settlement is not None,
    )


def assumptions_of(
    market: Market, *, people: int, prior_from_participants: bool, account_kept: bool = False
) -> tuple[Assumption, ...]:
    """What has to be believed about this market, in the order in which it matters."""
    account = (
        say("The server keeps an account of them over its campaigns, for people who were invited under an id.")
        if account_kept
        else say("No account is kept across campaigns.")
    )
    return (
        _trust(market),
        *_strata(market),
        _range(market),
        _variance(market),
        Assumption(
            title=say("Independent people"),
            text=say("One person's datum says nothing about another's, and each person appears once."),
            if_wrong=say(
                "The interval is too narrow, and relatives, or two rows of one person, lose the sum of their ε."
            ),
        ),
        _relation(market),
        Assumption(
            title=say("Data cannot be faked, prices can"),
            text=say("People deliver their true datum. They may name any price for privacy, and are expected to try."),
            if_wrong=say("False data bias the estimate; nothing here would notice."),
        ),
        _prior(market, prior_from_participants),
        Assumption(
            title=say("Cost proportional to privacy loss"),
            text=say("A privacy loss of ε costs a person ε times her cost per unit, in money, and nothing else."),
            if_wrong=say("Payments no longer match what people mind, and the truth may no longer be their best bid."),
        ),
        Assumption(
            title=say("Everybody bids alone"),
            text=say("Nobody can bid under several names, and people do not agree on bids among themselves."),
            if_wrong=say(
                "Truth is each person's best bid, whatever the others do; for a group together it need not be."
            ),
        ),
        _weights(market, people),
        Assumption(
            title=say("One release"),
            text=say("The estimate is drawn once, and nothing else is computed from the same data."),
            if_wrong=say("Losses add up: two releases of a datum at ε cost 2 ε. {account}", account=account),
        ),
        Assumption(
            title=say("Good randomness"),
            text=say(
                "The operating system's random numbers cannot be predicted, and nobody outside can time the release."
            ),
            if_wrong=say("Whoever can predict the noise can subtract it.")
            if not market.strategy.response
            else say("Whoever can predict a coin knows the true answer."),
        ),
        Assumption(
            title=say("Bids stay confidential"),
            text=say(
                "ε limits what the estimate tells about data. It does not protect bids: a person's"
                " payment and privacy loss reveal what she bid, so only she and whoever runs or audits the"
                " campaign may see them."
            ),
            if_wrong=say("Whoever sees decisions learns people's bids, and whatever those tell about data."),
        ),
    )


def _trust(market: Market) -> Assumption:
    if market.setting == "central":
        return Assumption(
            title=say("The operator is trusted with the data"),
            text=say(
                "In the central setting the operator sees the data and adds noise once, to the weighted sum. ε protects"
                " against everybody who sees the estimate, not against the operator."
            ),
            if_wrong=say(
                "An operator who keeps, sells or loses the data breaks no promise that this report can check."
            ),
        )
    if market.strategy.response:
        return Assumption(
            title=say("Nobody is trusted with the data"),
            text=say(
                "In the local setting every person's device answers the yes/no question by a coin, sometimes with the"
                " opposite of the truth, before anything leaves it. ε protects against everybody, also the operator."
            ),
            if_wrong=say("A device that always sends the truth protects nothing; each person must trust her own."),
        )
    return Assumption(
        title=say("Nobody is trusted with the data"),
        text=say(
            "In the local setting every person's device adds noise before anything leaves it. ε protects against"
            " everybody, the operator included."
        ),
        if_wrong=say("A device that sends the datum without noise protects nothing; each person must trust her own."),
    )


def _ranges(questions: Sequence[Question]) -> Assumption:
    """What is asked in a survey."""
    kinds = {
        "number": say(
            "numbers in ranges that were chosen without looking at anybody's answers; answers outside count as"
            " the nearer"
            " end"
        ),
        "yes_no": say("yes or no"),
        "choice": say("one of a few answers"),
    }
    asked = [words for kind, words in kinds.items() if any(one.kind == kind for one in questions)]
    count = say_plural("One question", "{count} questions", len(questions), count=len(questions))
    return Assumption(
        title=say("Questions fixed in advance"),
        text=say(
            "{count}, answered by {asked}. Whoever left one open has dropped out of the whole.",
            count=count,
            asked="; ".join(asked),
        ),
        if_wrong=say("Ranges set from the answers leak them; answers outside pull an estimate towards its range."),
    )


def _variances(questions: Sequence[Question]) -> Assumption:
    """How much a survey's answers may vary."""
    declared = sum(isinstance(one, Number) and one.variance is not None for one in questions)
    said = say("declared for {count} of the questions, and for the others ", count=declared) if declared else ""
    return Assumption(
        title=say("How much answers vary"),
        text=say(
            "The variance of answers around their mean was {said}taken for the largest that their ranges allow. It was"
            " never computed from the answers.",
            said=said,
        ),
        if_wrong=say("A larger one than declared makes an interval too narrow; payments and privacy are not affected."),
    )


def _range(market: Market) -> Assumption:
    if market.survey is not None:
        return _ranges(market.survey)
    low, high = (number(bound, 6) for bound in market.bounds)
    return Assumption(
        title=say("A range chosen in advance"),
        text=say(
            "Data lie between {low} and {high}. The range was chosen without looking at them; values outside"
            " count as the"
            " nearer end.",
            low=low,
            high=high,
        ),
        if_wrong=say("A range set from the data leaks them; values outside it pull the estimate towards the range."),
    )


def _variance(market: Market) -> Assumption:
    if market.survey is not None:
        return _variances(market.survey)
    if market.variance is None:
        return Assumption(
            title=say("The variance is the worst case"),
            text=say(
                "None was declared, so the largest that the range allows is used: a quarter of its squared width."
            ),
            if_wrong=say("It cannot be wrong; if data vary less, the interval is wider than it need be."),
        )
    declared = np.asarray(market.variance, dtype=float)
    said = (
        say("is at most {variance}", variance=number(at_most(float(declared), 4), 4))
        if declared.ndim == 0
        else say("is declared for each person")
    )
    weighted = bool(np.any(np.asarray(market.user_weight) > 0))
    return Assumption(
        title=say("A declared variance"),
        text=say(
            "The variance of the data around their mean {said} (standard deviation {deviation}). It was declared, never"
            " computed from the data.",
            said=said,
            deviation=number(float(np.sqrt(declared.mean())), 4),
        ),
        if_wrong=say("A larger one makes the interval too narrow, and lying or staying out may pay.")
        if weighted
        else say("A larger one makes the interval too narrow; payments and privacy are not affected."),
    )


def _prior(market: Market, from_participants: bool) -> Assumption:
    text = say(
        "Costs are independent draws from a known distribution ({prior}).",
        prior=prior_words(market.prior, say=say),
    )
    if from_participants:
        return Assumption(
            title=say("A prior fitted on participants"),
            text=text + say(" It was fitted on people who also bid in this campaign, against the rules."),
            if_wrong=say("It is wrong already: a person's bid moved her own price, so the truth need not pay best."),
        )
    return Assumption(
        title=say("A prior from elsewhere"),
        text=text + say(" It was fixed before anybody bid, from other people than those who bid."),
        if_wrong=say(
            "A distribution that is merely inaccurate makes the purchase dearer than need be; truth stays everybody's"
            " best bid. One estimated from these very bids would destroy that."
        ),
    )


def _strata(market: Market) -> tuple[Assumption, ...]:
    """What is taken to be known of strata."""
    strata = market.stratified
    if strata is None:
        return ()
    known = say("the weights of the combination were chosen beforehand")
    wrong = ""
    if market.shares is not None:
        known = say("the shares of the population that were stated are true")
        wrong = say(" Wrong shares bias the estimate, and nothing here would notice.")
    return (
        Assumption(
            title=say("Strata known beforehand"),
            text=say(
                "Who is in which of the {count} strata was known of people and not told by them, it is no secret, and"
                " {known}. Those who bid in a stratum stand for all of it.",
                count=strata.count,
                known=known,
            ),
            if_wrong=say(
                "Who could choose her stratum would choose the one that pays best, and the truth need not pay."
            )
            + wrong,
        ),
    )


def _relation(market: Market) -> Assumption:
    inside = "" if market.stratified is None else say(" of the same stratum")
    if market.max_correlation == 0.0:
        return Assumption(
            title=say("Prices unrelated to data"),
            text=say("What people{inside} ask for privacy is not related to what their data say.", inside=inside),
            if_wrong=say(
                "The estimate leans towards those who ask little; another section says how strong the relation would"
                " have to be. And who was bought from tells something about data, which ε does not cover."
            ),
        )
    return Assumption(
        title=say("Prices hardly related to data"),
        text=say(
            "What people{inside} ask, their groups, declared variances and limits explain at most {share} % of the"
            " variance of their data (a relation of {relation}). Stated worst errors and intervals hold up to there.",
            inside=inside,
            share=number(100.0 * market.max_correlation**2, 3),
            relation=number(market.max_correlation),
        ),
        if_wrong=say(
            "With a closer relation the error is larger than stated; another section says how much. And who was bought"
            " from tells something about data, which ε does not cover."
        ),
    )


def _goal(market: Market) -> Assumption:
    """What was stated instead of a price for the error."""
    goal = market.stated_goal
    aims = goal.targets if isinstance(goal, Accuracy) else (goal.number,)
    amount = say(", ").join(number(one, 6) for one in aims)
    each = {
        "accuracy": say(
            "The buyer stated a standard error of {amount} for the questions in their order, which is kept"
            " whatever people"
            " bid.",
            amount=amount,
        )
        if market.survey is not None
        else say(
            "The buyer stated a standard error of {amount}, which is kept whatever people bid.",
            amount=amount,
        ),
        "budget": say(
            "The buyer stated a budget of {amount}, which payments come to on average if the prior is right.",
            amount=amount,
        ),
        "hard_budget": say("The buyer stated a budget of {amount}, which payments never exceed.", amount=amount),
    }
    wrong = {
        "accuracy": say("If people who were bought from do not deliver, the error is larger, and is stated again."),
        "budget": say("If the prior is wrong, payments come to more or less on average. The truth stays the best bid."),
        "hard_budget": say("If the prior is wrong, more of the budget is left, or the error is larger than need be."),
    }
    stated = each[goal.kind]
    if isinstance(goal, Budget) and goal.planned is not None:
        stated = say(
            "{stated} No exact rule for it is truthful here, so the purchase is for a price of {price} per unit of"
            " squared error, planned for everybody who was asked: it costs {mean} on average over draws, with a"
            " standard error of {error}. Limits that people state are in no draw, and may make it more.",
            stated=stated,
            price=number(goal.planned.price, 4),
            mean=number(goal.planned.mean, 4),
            error=number(goal.planned.standard_error, 2),
        )
    return Assumption(
        title=say("What the buyer stated"),
        text=say("{stated} People themselves do not care about the estimate, so nobody ever pays.", stated=stated),
        if_wrong=wrong[goal.kind],
    )


def _weights(market: Market, people: int) -> Assumption:
    weight = np.broadcast_to(np.asarray(market.user_weight, dtype=float), (people,))
    if not isinstance(market.goal, Price):
        return _goal(market)
    buyer = number(market.stated_goal.number, 4)
    if not weight.any():
        counted = say(" (each relative to its range, times its importance)") if market.survey is not None else ""
        return Assumption(
            title=say("What accuracy is worth"),
            text=say(
                "One unit of squared error{counted} costs the buyer {buyer} in money. People themselves do not"
                " care about"
                " the estimate, so nobody ever pays.",
                counted=counted,
                buyer=buyer,
            ),
            if_wrong=say(
                "Another worth would have bought another accuracy. Truthfulness and privacy do not depend on it."
            ),
        )
    said = number(float(weight[0]), 4) if np.all(weight == weight[0]) else say("a declared amount")
    outside = (
        say("only her own datum")
        if market.outside_option == "own_data"
        else say("the estimate that is made without her")
    )
    return Assumption(
        title=say("What accuracy is worth"),
        text=say(
            "One unit of squared error costs the buyer {buyer} and each person {said} in money. Who stays out"
            " has {outside}."
            " So a person may owe money for an estimate she values.",
            buyer=buyer,
            said=said,
            outside=outside,
        ),
        if_wrong=say("If people value the estimate differently, the truth need not be their best bid, nor joining."),
    )
