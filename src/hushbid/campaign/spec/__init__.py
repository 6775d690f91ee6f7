"""What a campaign is: every field once, with one name, one unit, one range and one sentence of help.

From these tables come the reader of campaign files and its messages (`hushbid.campaign.reading`), the options of the
command line (`hushbid.cli.options`), the commented file of ``hushbid new`` (`hushbid.campaign.drafting`), the tables of
docs/reference/campaign-file.md (``python -m tools.campaign_fields``), and a server's settings, their form and the
schema of its requests (`hushbid.server.model.settings`).

The first paragraph of a field's docstring is its help, wherever that is shown; the rest is for the reference page, in
Markdown. `About` says what cannot be seen from the type: what is allowed, in words; what holds if the field is left
out; an example. Amounts of money are in units of the currency, everywhere. Minor units stand only where a name says so
(``payment_minor``).

- `kinds`: what fields may hold, and what is said of them
- `market`: goal, market, questions and strata
- `server`: what only a server decides, the table ``[server]``
"""

from typing import Annotated, Literal

from pydantic import Field

from hushbid.campaign.spec.kinds import (
    MOST_PEOPLE,
    About,
    Flag,
    NotNegative,
    Positive,
    Table,
    Text,
    about,
    allowed_of,
    as_stratum,
    choices_of,
    fields_of,
    help_of,
    range_of,
    table_of,
)
from hushbid.campaign.spec.market import GOALS, MarketTable, QuestionTable, StrataTable, Worth
from hushbid.campaign.spec.server import LANGUAGES, MOST_INVITED, Consent, ServerTable

__all__ = [
    "GOALS",
    "LANGUAGES",
    "MOST_INVITED",
    "MOST_PEOPLE",
    "About",
    "BidsTable",
    "CampaignSpec",
    "Consent",
    "DataTable",
    "Flag",
    "MarketTable",
    "MoneyTable",
    "NotNegative",
    "OutputTable",
    "Positive",
    "QuestionTable",
    "ServerTable",
    "StrataTable",
    "Table",
    "Text",
    "Worth",
    "about",
    "allowed_of",
    "as_stratum",
    "choices_of",
    "fields_of",
    "help_of",
    "range_of",
    "table_of",
]
_LAST_WAVE, _MOST_DECIMALS = 1_000_000, 6  # as the release ledger and money have them; a test compares


class MoneyTable(Table):
    """What prices and payments are in."""

    currency: Annotated[Text | None, About(allowed="an ISO 4217 code", absent="none", example="EUR")] = None
    """What prices and payments are in, by its ISO 4217 code.

    `"EUR"` has two decimals, `"JPY"` none, `"KWD"` three. Without it, hundredths of the unit of the bids.
    """

    decimals: Annotated[
        Annotated[int, Field(ge=0, le=_MOST_DECIMALS)] | None, About(absent="of the currency", example=2)
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

    [What is recognised](../how-to/buy-from-a-table.md#what-is-recognised).
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
    Central setting, or with a hard budget; [on an engine](../concepts/purchase.md#what-engines-cannot-do) up to 4·10⁶
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

    level: Annotated[float, Field(gt=0, le=0.999999, allow_inf_nan=False)] = 0.95
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
    drawn](../concepts/ledger.md#drawn-once). Capitals and spaces make no difference. Another question to the same
    people needs another text. Without ids people are known by their data, and leaving ids out does not make them
    others.
    """

    unit: Annotated[Text | None, About(absent="none", example="hours")] = None
    """The unit of the data."""

    wave: Annotated[int, Field(ge=1, le=_LAST_WAVE), About(example=2)] = 1
    """Which time the same people are asked the same.

    A later wave brings new data; the very data of another wave are refused. Record and report say which wave it is and
    how many were drawn from these people before; what they lose adds up.
    """

    synthetic: Annotated[Flag, About(example=True)] = False
    """For a test or a lesson: nobody in the campaign was promised anything.

    People, prices or data are synthetic. The estimate is then drawn again at every run (refused if the [release
    ledger](../concepts/ledger.md) knows these people or data from a real release), and record,
    report, tables, `estimate.json` and terminal say so. Never for people who were promised privacy.
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

    server: ServerTable = ServerTable()
    """What only a server decides; plan and run check it and do not use it."""
