"""What a campaign is: every field once, with one name, one unit, one range and one sentence of help.

From these tables come the reader of campaign files and its messages (`hushbid.campaign.reading`), the options of the
command line (`hushbid.cli.options`), the commented file of ``hushbid new`` (`hushbid.campaign.drafting`) and the
tables of docs/reference/campaign-file.md (``python -m tools.campaign_fields``).

The first paragraph of a field's docstring is its help, wherever that is shown; the rest is for the reference page, in
Markdown. `About` says what cannot be seen from the type: what is allowed, in words; what holds if the field is left
out; an example. Amounts of money are in units of the currency, everywhere. Minor units stand only where a name says so
(``payment_minor``).

**Extending it.** What only a server has (fees, deadlines, consent, payout) is one more table, ``[server]``. Here it is
any table, so that ``plan`` and ``run`` take a server's file and leave the table unread. A server states what is in it
by a subclass that replaces the one field::

    class ServerTable(Table):
        participation_fee: NotNegative = 0.0
        \"""For everyone whose bid counts, in units of the currency.\"""

    class ServerCampaign(CampaignSpec):
        server: ServerTable = ServerTable()

``reading.checked(values, ServerCampaign)`` then returns such a campaign from a mapping (of a file, a form or a request)
or refuses it with all its problems; ``ServerCampaign.model_json_schema()`` is the schema of a request. `fields_of`
walks the fields with their full names (``market.budget``), `help_of`, `allowed_of` and `about` say what a form shows.
A field that a table of the server has is a field of the file's table ``[server]``; nothing else has to name it.
"""

import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    WithJsonSchema,
)
from pydantic.fields import FieldInfo

from hushbid.errors import InputError

MOST_PEOPLE = 10**12
_LAST_WAVE, _MOST_DECIMALS = 1_000_000, 6  # as the release ledger and money have them; a test compares
GOALS = ("budget", "hard_budget", "standard_error", "buyer_weight")
"""What a buyer has: a campaign states exactly one, or a standard error for each question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What is to be said of a field or a type of fields beyond its help."""

    allowed: str = ""
    """What may be stated, after "must be"."""

    absent: str = ""
    """What holds if the field is left out, where that is no value of its own."""

    example: Any = None
    """What one might state."""


class Table(BaseModel):
    """A table of a campaign file."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True)


# -- what fields may hold; a ValueError without a sentence means: not what is allowed ----------------------------------


def as_stratum(label: str) -> str:
    """Return the name of a stratum in the form in which two are compared: as ids are, so capitals differ."""
    return unicodedata.normalize("NFC", label).strip()


def _text(value: str) -> str:
    if "\0" in value:
        raise ValueError("must be a text without zero characters")
    if not value.strip():
        raise ValueError
    return value.strip()


def _bounds(value: object) -> tuple[float, float]:
    given = value if isinstance(value, list | tuple) else ()
    if len(given) != 2 or any(isinstance(one, bool) or not isinstance(one, int | float) for one in given):
        raise ValueError
    if not given[0] < given[1] or not all(abs(one) < 1e400 for one in given):
        raise ValueError
    from hushbid.common.arrays import as_bounds  # NumPy is loaded where there is something to read

    try:
        return as_bounds(given)
    except InputError as problem:
        raise ValueError(str(problem).removeprefix(f"{problem.field} ").rstrip(".")) from None
    except OverflowError:
        raise ValueError from None


def _by_stratum(value: dict[str, Any]) -> dict[str, Any]:
    if not value:
        raise ValueError
    found = {as_stratum(label): one for label, one in value.items()}
    if len(found) < len(value) or "" in found:
        raise ValueError("must name every stratum once, and none by an empty text")
    return found


def _number_or_table(value: object) -> str:
    """Which of the two was meant, so that only its problems are named."""
    return "table" if isinstance(value, Mapping | BaseModel) else "number"


_Finite = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False), About(allowed="a number above 0")]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False), About(allowed="a number of at least 0")]
Correlation = Annotated[
    float, Field(ge=0, le=1, allow_inf_nan=False), About(allowed="a number of at least 0 and at most 1")
]
Portion = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False), About(allowed="a number above 0 and at most 1")]
Count = Annotated[int, Field(ge=1, le=MOST_PEOPLE), About(allowed=f"a whole number from 1 to {MOST_PEOPLE}")]
Flag = Annotated[bool, About(allowed="true or false")]
Text = Annotated[str, AfterValidator(_text), About(allowed="a text in quotes")]
Bounds = Annotated[
    tuple[float, float],
    BeforeValidator(_bounds),
    WithJsonSchema({"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}),
    About(allowed="two numbers, the smaller first: [0, 10]"),
]
NumberByStratum = Annotated[
    dict[str, _Finite],
    AfterValidator(_by_stratum),
    About(allowed="a number for each stratum: { north = 0.4, south = 0.6 }"),
]
CountByStratum = Annotated[
    dict[str, Annotated[int, Field(ge=1, le=MOST_PEOPLE)]],
    AfterValidator(_by_stratum),
    About(allowed="a whole number of people for each stratum: { north = 4000, south = 6000 }"),
]
_TEXT_OR_TABLE = WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "object"}]})
_ONE_OF_GOALS = "one of the four"


class Worth(Table):
    """What a smaller error is worth."""

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
    [planned price](../explanation/planned-price.md), for which `population` must be stated.
    """

    hard_budget: Annotated[Positive | None, About(absent=_ONE_OF_GOALS, example=500)] = None
    """Never spend more than this, whatever people bid.

    To the last coin of the currency.
    """

    standard_error: Annotated[
        Annotated[
            Annotated[Positive, Tag("number")]
            | Annotated[dict[str, Positive], AfterValidator(_by_stratum), Tag("table")],
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
        About(allowed="a number above 0", absent=_ONE_OF_GOALS, example=20),
    ] = None
    """What one unit of squared error costs you, in money.

    With questions, of squared errors relative to ranges, times importance, added up. Or as a sentence, *I would pay 500
    to bring the standard error from 1 down to 0.5*: `{ payment = 500, from_standard_error = 1, to_standard_error = 0.5
    }`. [How to set it](../how-to/set-weights-and-cap.md).
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

    [What it costs](../how-to/set-weights-and-cap.md).
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

    tolerance: Annotated[
        float,
        Field(gt=0, le=1e-6, allow_inf_nan=False),
        About(allowed="a number above 0 and at most 1e-06"),
    ] = 1e-6
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

    importance: Annotated[
        float,
        Field(ge=1e-6, le=1e6, allow_inf_nan=False),
        About(allowed="a number of at least 1e-06 and at most 1e+06"),
    ] = 1.0
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


class MoneyTable(Table):
    """What prices and payments are in."""

    currency: Annotated[Text | None, About(allowed="an ISO 4217 code", absent="none", example="EUR")] = None
    """What prices and payments are in, by its ISO 4217 code.

    `"EUR"` has two decimals, `"JPY"` none, `"KWD"` three. Without it, hundredths of the unit of the bids.
    """

    decimals: Annotated[
        Annotated[int, Field(ge=0, le=_MOST_DECIMALS)] | None,
        About(allowed=f"a whole number from 0 to {_MOST_DECIMALS}", absent="of the currency", example=2),
    ] = None
    """How many decimals the smallest coin has, of a code that is not on ISO's list.

    Such as points of your own: `"PTS"`.
    """

    spending_limit: Annotated[Positive | None, About(absent="none", example=1000)] = None
    """Refuse to spend more than this.

    The refusal says what such a campaign costs: expected, in 95 of 100 cases, and at worst (on an engine, only what the
    payments come to: `hushbid plan` forecasts).
    """


class BidsTable(Table):
    """Where the bids are."""

    file: Annotated[Text | None, About(absent="required", example="bids.csv")] = None
    """CSV, Parquet or Excel, one row per person; "-" for standard input.

    [What is recognised](../how-to/buy-from-a-spreadsheet.md#what-is-recognised).
    """

    id: Text = "id"
    """The column that names people, each once.

    Texts or integers. Spaces around and the two ways in which Unicode writes *ë* make no difference; characters that
    nobody sees, such as a space of no width, are refused. In Parquet floats, decimals, dates, timestamps, truth values
    and bytes are refused: programs write them differently, and one person would have several names; store them as
    texts. The same holds for `group`.
    """

    bid: Text = "bid"
    """The column of bids: what one unit of privacy loss costs each person."""

    group: Annotated[Text | None, About(absent="none", example="shift")] = None
    """The column of groups, for priors by group.

    Also used by the report.
    """

    limit: Annotated[Text | None, About(absent="none", example="limit")] = None
    """The column of the largest privacy loss that each person accepts.

    A positive number, 0 to sell nothing, or nothing for no limit. Stating it truthfully is best, as with the price.
    Central setting, or with a hard budget; [on an engine](../explanation/scale.md#what-it-cannot-do) up to 4·10⁶
    people.
    """


class DataTable(Table):
    """Where the data are."""

    file: Annotated[Text | None, About(absent="required", example="data.csv")] = None
    """CSV, Parquet or Excel, or "-" for standard input.

    The order of rows does not matter. Who is not in it, or has an empty cell, has dropped out and is not paid.
    """

    id: Annotated[Text | None, About(absent="that of `[bids]`", example="id")] = None
    """The column that names people."""

    value: Annotated[Text | None, About(absent='`"value"`; `"message"` in the local setting', example="value")] = None
    """The column of data."""

    kind: Annotated[
        Literal["values", "messages", "simulated_values"] | None,
        About(absent='`"values"`; `"messages"` in the local setting', example="values"),
    ] = None
    """What the data are: values, or in the local setting messages or simulated values.

    `"values"`: the data themselves, central setting. `"messages"`: what people's devices sent
    ([`hushbid privatize`](command-line.md#hushbid-privatize)), local setting. `"simulated_values"`: local setting,
    synthetic data to which the noise is added here; record and report say so.
    """

    late: Annotated[Literal["paid", "unpaid"] | None, About(absent="none", example="unpaid")] = None
    """What people are paid whose data came after the estimate was drawn.

    `"paid"` like the others, or `"unpaid"`. Their data are not used; `payments` names them as `late`. As long as the
    file does not say, such data are refused.
    """


class OutputTable(Table):
    """Where results go."""

    folder: Annotated[Text | None, About(absent="the campaign file's name", example="results")] = None
    """Where results go.

    [What is written](command-line.md#hushbid-run).
    """

    decisions: Literal["csv", "csv.gz", "parquet", "xlsx"] = "csv"
    """The format of the tables."""

    level: Annotated[
        float, Field(gt=0, le=0.999999, allow_inf_nan=False), About(allowed="a number above 0 and at most 0.999999")
    ] = 0.95
    """How sure the interval is to be."""


class CampaignSpec(Table):
    """A campaign."""

    title: Annotated[Text | None, About(absent="the file's name", example="Sleep")] = None
    """What people call the campaign."""

    question: Annotated[
        Text | None,
        About(absent='`"the mean"`, with questions `"the answers"`', example="mean sleep per night"),
    ] = None
    """What is estimated, as it stands in a sentence.

    *Mean sleep per night*. It is the question: with the people's ids it names the one estimate that is [ever
    drawn](../explanation/privacy.md#once). Capitals and spaces make no difference. Another question to the same people
    needs another text. Without ids people are known by their data, and leaving ids out does not make them others.
    """

    unit: Annotated[Text | None, About(absent="none", example="hours")] = None
    """The unit of the data."""

    wave: Annotated[
        int, Field(ge=1, le=_LAST_WAVE), About(allowed=f"a whole number from 1 to {_LAST_WAVE}", example=2)
    ] = 1
    """Which time the same people are asked the same.

    A later wave brings new data; the very data of another wave are refused. Record and report say which wave it is and
    how many were drawn from these people before; what they lose adds up.
    """

    synthetic: Annotated[Flag, About(example=True)] = False
    """For a test or a lesson: nobody in the campaign was promised anything.

    People, prices or data are synthetic. The estimate is then drawn again at every run (refused if the [release
    ledger](../explanation/release-ledger.md) knows these people or data from a real release), and record, report,
    tables, `estimate.json` and terminal say so. Never for people who were promised privacy.
    """

    notices: Annotated[
        list[str],
        About(allowed='a list of texts: ["..."]', absent="none", example=["Approved by the ethics board on 3 May."]),
    ] = Field(default_factory=list)
    """Sentences at the top of the report and in the record."""

    market: MarketTable
    """What you have, what the data are like, and what you believe about prices."""

    questions: Annotated[list[QuestionTable], About(allowed="tables, one for each question: [[questions]]")] = Field(
        default_factory=list
    )
    """Several questions instead of one number."""

    strata: StrataTable | None = None
    """People of public strata instead of people alike."""

    money: MoneyTable = MoneyTable()
    """What prices and payments are in."""

    bids: BidsTable | None = None
    """Where the bids are."""

    data: DataTable | None = None
    """Where the data are, once people have delivered them."""

    output: OutputTable = OutputTable()
    """Where results go."""

    server: dict[str, Any] = Field(default_factory=dict)
    """What only a server uses; plan and run do not read it."""


# -- what is said of fields --------------------------------------------------------------------------------------------


def table_of(field: FieldInfo) -> type[Table] | None:
    """Return the table that a field holds, or each of a list of tables; None for any other field."""
    for kind in _kinds(field.annotation):
        if isinstance(kind, type) and issubclass(kind, Table) and kind is not Worth:
            return kind
    return None


def fields_of(model: type[Table], before: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Walk all fields that hold a value, by their full names: ``market.budget``."""
    for name, field in model.model_fields.items():
        inner = table_of(field)
        if inner is None:
            yield f"{before}{name}", field
        else:
            yield from fields_of(inner, f"{before}{name}.")


def help_of(field: FieldInfo) -> str:
    """Return the sentence of help of a field."""
    return " ".join((field.description or "").partition("\n\n")[0].split())


def about(field: FieldInfo) -> About:
    """Return what is said of a field beyond its help."""
    said = [one for one in field.metadata if isinstance(one, About)]
    return About(
        allowed=allowed_of(field),
        absent=next((one.absent for one in said if one.absent), ""),
        example=next((one.example for one in said if one.example is not None), None),
    )


def allowed_of(field: FieldInfo) -> str:
    """Return what a field may hold, after "must be"."""
    for said in (one.allowed for one in field.metadata if isinstance(one, About)):
        if said:
            return said
    for kind in _kinds(field.annotation):
        if get_origin(kind) is Literal:
            return " or ".join(f'"{word}"' for word in get_args(kind))
        if isinstance(kind, About) and kind.allowed:
            return kind.allowed
    return "a table" if table_of(field) else "a text in quotes"


def range_of(field: FieldInfo) -> dict[str, float]:
    """Return the limits of a number, as far as it has any: ``gt``, ``ge`` and ``le``."""
    kinds = (*field.metadata, *_kinds(field.annotation))
    inner = [one for kind in kinds for one in (*getattr(kind, "metadata", ()), kind)]
    return {name: getattr(one, name) for name in ("gt", "ge", "le") for one in inner if hasattr(one, name)}


def choices_of(field: FieldInfo) -> tuple[str, ...]:
    """Return the words of which a field holds one; none if it may hold anything else."""
    return next((get_args(kind) for kind in _kinds(field.annotation) if get_origin(kind) is Literal), ())


def _kinds(annotation: Any) -> Iterator[Any]:
    """Walk a type from outside to inside, with what annotates it."""
    yield annotation
    if get_origin(annotation) in (Annotated, Union, UnionType, list):
        for one in get_args(annotation):
            yield from _kinds(one)
