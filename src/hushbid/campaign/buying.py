"""The two ways to say what is wanted: `buy` takes people and a market, `run_campaign` a campaign file.

Both go the same way from there, that of `hushbid.campaign.conducting`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from hushbid.campaign.conducting import conduct
from hushbid.campaign.deciding import Step
from hushbid.campaign.people import AT_ONCE, Kind, Reading
from hushbid.campaign.results import Purchase
from hushbid.campaign.spec import BidsTable
from hushbid.campaign.terms import Campaign, data_source, fields_of, prior_of, read_campaign, with_coin
from hushbid.common.arrays import as_count, as_number
from hushbid.common.money import NO_CURRENCY, Currency
from hushbid.common.tables import read_again
from hushbid.disclosure.ledger.store import ledger_folder
from hushbid.errors import InputError
from hushbid.mechanism import Market


def _silent(told: str) -> None:
    """Nobody is told what is done next."""


def steps_of(reading: Reading) -> int:
    """How many steps `run_campaign` tells of, at most."""
    if reading.engine == "memory":
        return 6
    from hushbid.campaign.on_engine import PASSES

    return 4 + PASSES


def buy(
    people: Any,
    market: Market,
    *,
    data: Any = None,
    id: str = "id",
    bid: str = "bid",
    group: str | None = None,
    limit: str | None = None,
    value: str | Sequence[str] | None = None,
    kind: Kind | None = None,
    late: Literal["paid", "unpaid"] | None = None,
    title: str = "purchase",
    question: str | None = None,
    wave: int = 1,
    synthetic: bool = False,
    currency: str | None = None,
    spending_limit: float | None = None,
    accept_infinite_loss: bool = False,
    accept_rounding: bool = False,
    reading: Reading = AT_ONCE,
    folder: str | Path | None = None,
    ledger: str | Path | None = None,
    force: bool = False,
) -> Purchase:
    """Buy from people in files, arrays or frames: decide, and, if there are data, draw the one estimate.

    Parameters
    ----------
    people
        The path of a CSV, Parquet or Excel file, a mapping of arrays by column name, or any table that speaks Arrow:
        a pandas or Polars frame, a ``pyarrow.Table``, a DuckDB relation, narwhals' frames and others. What does not, a
        lazy Polars frame or Spark's, is left where it is and priced by its engine. Arrays go by position: the index of
        a series is not looked at.
    market
        What is fixed before anybody bids. For different priors by group, its prior is ``Grouped(priors, [])`` and
        ``group`` names the column of labels.
    data
        The table of what people delivered, of any of those kinds; people find their rows by ``id``. If it is left out
        and ``value`` is not, the data are a column of ``people``; without either, only decisions are made.
    id, bid, group, limit
        The columns that name people, hold their bids, their groups and the largest losses that they accept.
    value
        The column of data; of a survey, one for each question. Left out, it is ``"value"``, ``"message"`` in the local
        setting, or the questions' names.
    kind, late, wave, synthetic
        As in a campaign file: see docs/reference/campaign-file.md.
    title, question
        What the purchase is called, and what is asked, which is required to draw an estimate of real people. The
        question and the people's ids name the one estimate that is ever drawn: asked again, it is shown again.
    currency, spending_limit
        An ISO 4217 code, whose minor units payments are rounded up to, and the most that may be spent.
    accept_infinite_loss
        Release although somebody named no price and loses all privacy.
    accept_rounding
        Buy although rounding payments up is expected to take more than 5 % of a budget.
    reading
        Which engine reads the people, and what becomes of rows that cannot be priced.
    folder, force
        Where to write tables, record and report, as ``hushbid run`` does; nothing is written if it is left out.
        ``force`` replaces files.
    ledger
        The folder of the release ledger, which keeps the estimate: by default ``HUSHBID_LEDGER``, or the user's.

    >>> from hushbid import Market, Uniform
    >>> people = {"id": ["ann", "bob", "cem"], "bid": [1.1, 1.2, 1.9]}
    >>> bought = buy(people, Market(prior=Uniform(1, 2), buyer_weight=10, user_weight=0), currency="EUR")
    >>> bought.to_frame("pandas")[["id", "payment", "currency"]].values.tolist()
    [['ann', 2.73, 'EUR'], ['bob', 2.13, 'EUR'], ['cem', 0.0, 'EUR']]
    """
    given: dict[str, object] = {"market": market, "reading": reading, "folder": folder, "ledger": ledger}
    given |= {"title": title, "question": question, "id": id, "bid": bid, "group": group, "limit": limit}
    given |= {"synthetic": synthetic, "accept_infinite_loss": accept_infinite_loss, "force": force}
    given |= {"accept_rounding": accept_rounding}
    _refuse_other_kinds(given)
    shared = data is None or data is people
    people = read_again(people)
    source = people if shared else read_again(data)
    if spending_limit is not None and not as_number(spending_limit, "spending_limit") > 0.0:
        raise InputError(f"spending_limit must be above 0, got {spending_limit!r}.", field="spending_limit")
    as_count(wave, "wave", least=1)
    if question is None and not synthetic and not (data is None and value is None):
        raise InputError("question must say what is asked, since an estimate is drawn once for it.", field="question")
    coins = NO_CURRENCY if currency is None else Currency.of(currency)
    wanted = Campaign(
        title=title,
        question="the mean" if question is None else question,
        wave=wave,
        synthetic=synthetic,
        prior=prior_of(market, group),
        market=fields_of(market) | {"goal": with_coin(market.stated_goal, coins)},
        currency=coins,
        spending_limit=spending_limit,
        bids=BidsTable.model_construct(file=people, id=id, bid=bid, group=group, limit=limit),
        data=None
        if data is None and value is None
        else data_source(market, source, id=id, value=value, kind=kind, late=late),
        folder=None if folder is None else Path(folder),
        accept_infinite_loss=accept_infinite_loss,
        accept_rounding=accept_rounding,
    )
    return conduct(
        wanted,
        reading,
        ledger=None if ledger is None else ledger_folder(ledger),
        audit=False,
        force=force,
        estimate_needed=True,
        step=_silent,
    )


_TEXT, _TRUTH = (str, "a text"), (bool | np.bool_, "True or False")
_KINDS: dict[str, tuple[Any, str]] = {
    "market": (Market, "a Market"),
    "reading": (Reading, "a Reading"),
    **dict.fromkeys(("folder", "ledger"), (str | Path | None, "a path")),
    **dict.fromkeys(("title", "id", "bid"), _TEXT),
    "question": (str | None, "a text"),
    **dict.fromkeys(("group", "limit"), (str | None, "the name of a column")),
    **dict.fromkeys(("synthetic", "accept_infinite_loss", "accept_rounding", "force"), _TRUTH),
}


def _refuse_other_kinds(given: dict[str, object]) -> None:
    """Arguments of other kinds, of which only the kind is told: one may be the people, in the wrong place."""
    for name, value in given.items():
        kind, words = _KINDS[name]
        if not isinstance(value, kind):
            raise InputError(f"{name} must be {words}, got {type(value).__name__}.", field=name)


def run_campaign(
    campaign: Campaign | str | Path,
    *,
    bids: Any = None,
    data: Any = None,
    reading: Reading = AT_ONCE,
    audit: bool = True,
    ledger: str | Path | None = None,
    force: bool = False,
    estimate_needed: bool = True,
    step: Step = _silent,
) -> Purchase:
    """Run a campaign, and write what it comes to into its folder.

    Parameters
    ----------
    campaign
        A campaign, or its file.
    bids, data
        Stand in for the files that a campaign file names: whatever `buy` takes as people and data. If only ``bids``
        are given, the data are a column of theirs.
    reading
        Who reads the people, and what becomes of rows that cannot be priced.
    audit
        Whether our own claims are attacked for the report.
    ledger
        The folder of the release ledger; by default ``HUSHBID_LEDGER``, or the user's.
    force
        Files may be written again; the estimate is not drawn again.
    estimate_needed
        If not, a missing package that draws noise leaves the estimate out.
    step
        Told what is done next.
    """
    wanted = campaign
    if not isinstance(wanted, Campaign):
        wanted = read_campaign(Path(wanted), bids=read_again(bids), data=data)
    return conduct(
        wanted,
        reading,
        ledger=None if ledger is None else ledger_folder(ledger),
        audit=audit,
        force=force,
        estimate_needed=estimate_needed,
        step=step,
    )
