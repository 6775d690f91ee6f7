"""What the buyer has, what is asked of whom, and what is believed about prices."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, Discriminator, Field, Tag, WithJsonSchema

from hushbid.campaign.spec.kinds import (
    About,
    Bounds,
    Correlation,
    Count,
    CountByStratum,
    Flag,
    NotNegative,
    NumberByStratum,
    Portion,
    Positive,
    Table,
    Text,
    by_stratum,
)

GOALS = ("budget", "hard_budget", "standard_error", "buyer_weight")
"""What a buyer has: a campaign states exactly one, or a standard error for each question."""

_TEXT_OR_TABLE = WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "object"}]})
_ONE_OF_GOALS = "one of the four"


def _number_or_table(value: object) -> str:
    """Which of the two was meant, so that only its problems are named."""
    return "table" if isinstance(value, Mapping | BaseModel) else "number"


class Worth(Table):
    """What a smaller error is worth."""

    is_section = False

    payment: Positive
    """What you would pay."""

    from_standard_error: Positive
    """For a standard error that falls from here."""

    to_standard_error: NotNegative
    """To here."""


class MarketTable(Table):
    """What you have, what the data are like, and what you believe about prices."""

    setting: Literal["central", "local"]
    """Who adds the noise: a trusted platform (central), or each person's own device (local).

    [How to choose](../how-to/choose-a-setting.md).
    """

    prior: Annotated[
        Any,
        _TEXT_OR_TABLE,
        About(
            allowed='a text such as "uniform:1,2", a table with family or file, or a table of groups',
            example="uniform:1,3",
        ),
    ]
    """What you believe about prices for privacy, before anyone names one.

    See below.
    """

    bounds: Annotated[Bounds | None, About(absent="required without questions", example=[0, 1])] = None
    """The public range of the data.

    A datum outside is moved to the nearer end.
    """

    variance: Annotated[Positive | None, About(absent="the largest the bounds allow", example=0.1)] = None
    """An upper bound on the variance of the data around their mean; not computed from the data.

    At most a quarter of the squared width of `bounds`.
    """

    budget: Annotated[Positive | None, About(absent=_ONE_OF_GOALS, example=500)] = None
    """Spend this much on average over what people may bid, as accurately as possible.

    Rounding up to coins is included. In the local setting, and with strata and caps or limits, by a
    [planned price](../concepts/purchase.md#budgets-that-are-met-on-average), for which `population` must be stated.
    """

    hard_budget: Annotated[Positive | None, About(absent=_ONE_OF_GOALS, example=500)] = None
    """Never spend more than this, whatever people bid.

    To the last coin of the currency.
    """

    standard_error: Annotated[
        Annotated[
            Annotated[Positive, Tag("number")]
            | Annotated[dict[str, Positive], AfterValidator(by_stratum), Tag("table")],
            Discriminator(_number_or_table),
        ]
        | None,
        About(
            allowed="a number above 0, or one for each stratum: { north = 0.4, south = 0.6 }",
            absent=_ONE_OF_GOALS,
            example=0.3,
        ),
    ] = None
    """Reach this standard error at the lowest cost (data units).

    The root mean squared error of the estimate; under `max_correlation`, at worst. With
    [`strata.each`](#an-estimate-for-each-stratum) also one for each stratum.
    """

    buyer_weight: Annotated[
        Annotated[Annotated[Positive, Tag("number")] | Annotated[Worth, Tag("table")], Discriminator(_number_or_table)]
        | None,
        About(absent=_ONE_OF_GOALS, example=20),
    ] = None
    """What one unit of squared error costs you, in money.

    With questions, of squared errors relative to ranges, times importance, added up. Or as a sentence, *I would pay 500
    to bring the standard error from 1 down to 0.5*: `{ payment = 500, from_standard_error = 1, to_standard_error = 0.5
    }`. [How to set it](../how-to/state-a-goal.md#a-cap-and-limits).
    """

    user_weight: NotNegative = 0.0
    """What one unit of squared error costs each person; above 0, people may owe money.

    Then a person who values the estimate may have to pay for it, so the campaign is refused unless it says
    `people_may_owe_money = true` and states `variance`.
    """

    people_may_owe_money: Flag = False
    """Allow a user weight, under which people may owe money."""

    outside_option: Literal["own_data", "estimate"] = "own_data"
    """What a person who does not take part has: their own datum, or the estimate.

    Matters under a user weight only.
    """

    max_privacy_loss: Annotated[Positive | None, About(absent="none", example=2)] = None
    """A cap on everyone's privacy loss ε.

    [What it costs](../how-to/state-a-goal.md#a-cap-and-limits).
    """

    max_correlation: Annotated[Correlation, About(example=0.1)] = 0.0
    """How closely prices and data may be related, from 0 to 1, as a correlation.

    Its square is the largest share of the variance that prices, groups and whatever else is known of people may
    explain. The purchase is then the best against the worst such relation. 0 is the paper's assumption that there is
    none. Needs `user_weight = 0`.
    """

    population: Annotated[Count | None, About(absent="the rows of `[bids]`", example=5000)] = None
    """How many people were asked: with max_correlation, or (needed there) a budget met by a planned price.

    At least the rows of the file. It counts with `max_correlation`, for what rounding takes of a `budget`, and for a
    `budget` that is met by a planned price, which requires it. Rows that cannot be priced count.
    """

    expected_share: Annotated[Portion, About(example=0.8)] = 1.0
    """How likely people who were asked are to bid, where a price is planned for them.

    It must be fixed before anybody bids. If fewer people bid than the price was planned for, usually more is spent.
    """

    tolerance: Annotated[float, Field(gt=0, le=1e-6, allow_inf_nan=False)] = 1e-6
    """How exactly payments are integrated, relative to the largest payment.

    What is left is stated as `incentive_error`.
    """

    accept_pilot_overlap: Flag = False
    """Use a prior although people of its pilot bid.

    The truth is then no longer their best bid; record and report say so.
    """

    accept_infinite_loss: Flag = False
    """Release although someone named no price and loses all privacy."""

    accept_rounding: Flag = False
    """Buy although rounding payments up takes more than 5 % of the budget.

    The record says so.
    """


class QuestionTable(Table):
    """One question of a survey."""

    kind: Literal["number", "yes_no", "choice"]
    """A number in a range, yes or no, or one of several answers."""

    name: Annotated[Text, About(example="sleep")]
    """What the question is called; each name once."""

    bounds: Annotated[Bounds | None, About(absent="required of a number", example=[0, 12])] = None
    """The public range of a number.

    An answer outside is moved to the nearer end.
    """

    variance: Annotated[Positive | None, About(absent="the largest the bounds allow", example=2.5)] = None
    """An upper bound on the variance of a number around its mean.

    At most a quarter of the squared width of `bounds`.
    """

    unit: Annotated[Text | None, About(absent="none", example="hours")] = None
    """The unit of a number."""

    answers: Annotated[
        list[str] | None,
        About(allowed='a list of texts: ["yes", "no", "no answer"]', absent="required of a choice"),
    ] = None
    """What a choice is made among.

    From 2 to 100 texts.
    """

    importance: Annotated[float, Field(ge=1e-6, le=1e6, allow_inf_nan=False)] = 1.0
    """How much an error of this question counts relative to the others', each relative to its range."""

    standard_error: Annotated[Positive | None, About(absent="none", example=0.5)] = None
    """Reach this standard error at the lowest cost (in the unit of the answers).

    Of a choice, for every share; under `max_correlation`, at worst. All questions state it, and then `[market]` states
    no goal; or none does.
    """

    column: Annotated[Text | None, About(absent="the `name`", example="sleep")] = None
    """The column of its answers in `[data]`.

    Yes or no is written yes/no, true/false or 1/0. Who leaves a cell empty has dropped out of the whole.
    """


class StrataTable(Table):
    """Into which public strata people fall, and what is wanted of the strata's means."""

    column: Annotated[Text, About(example="region")] = "stratum"
    """The column of each person's public stratum, which nobody chooses."""

    shares: Annotated[
        NumberByStratum | None, About(absent="one of the three", example={"north": 0.4, "south": 0.6})
    ] = None
    """What share of the population each stratum is; above 0, adding up to 1.

    The estimate is a mean for the population, though the panel has other shares.
    """

    contrast: Annotated[
        NumberByStratum | None, About(absent="one of the three", example={"treated": 1, "control": -1})
    ] = None
    """What each stratum's mean is multiplied by before they are added up; any numbers but 0.

    `{ treated = 1, control = -1 }` is a difference.
    """

    each: Annotated[Flag, About(absent="one of the three", example=True)] = False
    """Estimate the mean of each stratum.

    [How](#an-estimate-for-each-stratum).
    """

    population: Annotated[
        CountByStratum | None, About(absent="the rows of each stratum", example={"north": 4000, "south": 6000})
    ] = None
    """How many people of each stratum were asked.

    With `max_correlation`, and for a `budget` that is met by a planned price, which requires it. It takes the place of
    `market.population`.
    """

    @property
    def wanted(self) -> dict[str, dict[str, float]]:
        """Return the linear combination of the strata's means that is wanted, under its name."""
        return {name: weights for name in ("shares", "contrast") if (weights := getattr(self, name)) is not None}

    @property
    def weights(self) -> dict[str, float]:
        """Return the weight of each stratum's mean; none where each has an estimate."""
        return next(iter(self.wanted.values()), {})
