"""The whole way of one purchase, however it is stated: read, decide, release, record, report.

`buy` takes people and a market, `run_campaign` a campaign file. `price_people` stops after the decisions.

Everything is computed before anything takes its name, and then appears together. The one exception is the estimate: it
is drawn once and kept in the release ledger, under what is asked of whom, before it is shown, so that whatever happens
afterwards, and whatever options and folders are given, asking again gives the same one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from hushbid.allocation import Budget, Goal, HardBudget
from hushbid.campaign import deciding
from hushbid.campaign.deciding import Decision, DecisionInMemory, Step, decide
from hushbid.campaign.people import AT_ONCE, DataSource, Kind, Reading
from hushbid.campaign.reading import field_problem
from hushbid.campaign.releasing import Place, Released, release, stamps_of
from hushbid.campaign.results import Purchase
from hushbid.campaign.spec import BidsTable, CampaignSpec, DataTable, MarketTable, MoneyTable
from hushbid.campaign.terms import Campaign, read_campaign
from hushbid.campaign.writing import Names, complete, notes_of, record_of
from hushbid.common.arrays import as_count, as_number
from hushbid.common.money import NO_CURRENCY, Currency
from hushbid.common.staging import STREAM, Staging, refuse_clashes, refuse_existing
from hushbid.common.tables import is_table, read_again, table_writer
from hushbid.disclosure.ledger.store import ledger_folder
from hushbid.errors import InputError, MissingExtra
from hushbid.mechanism import Market
from hushbid.mechanism.people import groups_of
from hushbid.priors.pilot import PriorSource
from hushbid.record import folder as record_folder


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
    _refuse_other_kinds(locals())
    shared = data is None or data is people
    people = read_again(people)
    source = people if shared else read_again(data)
    has_data = not (data is None and value is None)
    if spending_limit is not None and not as_number(spending_limit, "spending_limit") > 0.0:
        raise InputError(f"spending_limit must be above 0, got {spending_limit!r}.", field="spending_limit")
    as_count(wave, "wave", least=1)
    if question is None and not synthetic and has_data:
        raise InputError("question must say what is asked, since an estimate is drawn once for it.", field="question")
    coins = NO_CURRENCY if currency is None else Currency.of(currency)
    spec = CampaignSpec.model_construct(
        title=title,
        question=question or "the mean",
        wave=wave,
        synthetic=synthetic,
        market=MarketTable.model_construct(accept_infinite_loss=accept_infinite_loss, accept_rounding=accept_rounding),
        money=MoneyTable.model_construct(spending_limit=spending_limit),
        bids=BidsTable.model_construct(file=people, id=id, bid=bid, group=group, limit=limit),
    )
    wanted = Campaign(
        spec=spec,
        prior=prior_of(market, group),
        market=fields_of(market) | {"goal": with_coin(market.stated_goal, coins)},
        currency=coins,
        data=_data_of(market, source, id, value, kind, late) if has_data else None,
        folder=None if folder is None else Path(folder),
    )
    return run_campaign(wanted, reading=reading, audit=False, ledger=ledger, force=force)


def _data_of(market: Market, file: Any, ids: str, value: object, kind: Any, late: Any) -> DataSource:
    """Return where the data are; ``value`` may be left to its usual name."""
    for name, stated in (("kind", kind), ("late", late)):
        if stated is not None and (problem := field_problem(f"data.{name}", stated)):
            raise InputError(f"{name} {problem}", field=name)
    asked = [one.name for one in market.survey or ()]
    if asked and value is not None and not (market.setting == "local" and kind in (None, "messages")):
        given = list(value) if isinstance(value, Iterable) and not isinstance(value, str) else []
        if len(given) != len(asked):
            message = f"value must name one column for each question ({len(asked)}), got {value!r}."
            raise InputError(message, field="value")
        asked, value = given, None
    if not isinstance(value, str | None):
        raise InputError(f"value must name one column, got {value!r}.", field="value")
    table = DataTable.model_construct(value=value, kind=kind, late=late)
    return DataSource.of(table, file, setting=market.setting, ids=ids, questions=asked)


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


_PASSES = 10
"""Steps in which an engine decides, at most."""


def steps_of(reading: Reading, others: int = 4) -> int:
    """Return how many steps a purchase tells of, at most, with so many besides reading and deciding."""
    return others + (2 if reading.engine == "memory" else _PASSES)


def _refuse_other_kinds(given: dict[str, object]) -> None:
    """Refuse arguments of other kinds, and show only the kind: one may be the people, in the wrong place."""
    for name, (kind, words) in _KINDS.items():
        if not isinstance(given[name], kind):
            raise InputError(f"{name} must be {words}, got {type(given[name]).__name__}.", field=name)


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
    step: Step = lambda message: None,
) -> Purchase:
    """Run a campaign, and write what it comes to into its folder.

    Parameters
    ----------
    campaign
        A campaign, or its file.
    bids, data
        Take the place of the files that a campaign file names: whatever `buy` takes as people and data. If only
        ``bids`` are given, the data are a column of theirs.
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
    if not isinstance(campaign, Campaign):
        campaign = read_campaign(Path(campaign), bids=read_again(bids), data=data)
    # refuse at once what cannot be done or would be lost
    if campaign.each:
        raise InputError(
            f"{campaign.called}: strata.each asks for an estimate for each stratum: run_by_stratum() buys them, and"
            " hushbid run.",
            field="strata.each",
        )
    if not is_table(campaign.bids.file) and reading.engine == "memory":
        reading = replace(reading, engine="auto")  # it stays where it is, and says itself which engine reads it
    refuse_clashes(campaign.outputs, campaign.inputs)
    if reading.engine != "memory":
        _refuse_other_table(campaign)
    names = None if campaign.folder is None else Names.of(campaign, campaign.folder, reading)
    if names is not None and not force:
        refuse_existing([*names.last])
    # from here on files wait under temporary names and appear together
    with Staging(force=force, folder=campaign.folder) as files:
        decision = _decided(campaign, reading, files, None if names is None else names.decisions, step)
        record_folder.require_table_library(decision.figures.people)
        step("releasing")
        place = Place(ledger=None if ledger is None else ledger_folder(ledger))
        if names is not None:
            place = replace(place, folder=campaign.folder, record=names.record, summary=names.summary)
        released = _released(campaign, decision, place, needed=estimate_needed)
        return complete(files, names, campaign, decision, released, audit=audit, step=step)


def _decided(campaign: Campaign, reading: Reading, files: Staging, out: Path | None, step: Step) -> Decision:
    if reading.engine == "memory":
        return decide(campaign, reading, step)
    from hushbid.campaign.on_engine import decide_on_engine

    data, most = None if campaign.data is None else campaign.data.names, deciding.LARGEST_HERE
    return decide_on_engine(campaign, reading, files, step, out=out, most_here=most, data=data)


def _released(campaign: Campaign, decision: Decision, place: Place, *, needed: bool) -> Released:
    """Draw the estimate, if there are data; unless it is ``needed``, a missing package leaves it out."""
    if campaign.data is None or not decision.figures.active:
        return Released()
    try:
        if isinstance(decision, DecisionInMemory):
            late_field = "late" if campaign.path is None else "data.late"
            from_engine, delivered = decision.passes is not None, decision.delivered
            people, outcome = decision.people, decision.outcome
            how: dict[str, Any] = {"delivered": delivered, "from_engine": from_engine, "late_field": late_field}
            return release(campaign, people, outcome, place, **how)
        from hushbid.campaign.on_engine import answer_from_sums

        if not campaign.spec.synthetic:
            place.refuse_former()
        check = partial(place.refuse_other_summary, campaign, decision.figures.people)
        return Released(answer=answer_from_sums(campaign, decision, place.ledger, check))
    except MissingExtra as problem:
        if needed:
            raise
        return Released(missing=str(problem))


def _refuse_other_table(campaign: Campaign) -> None:
    """Refuse data in another table than the bids: an engine does not join."""
    data = campaign.data
    if data is not None and not _same_table(data.file, campaign.bids.file):
        columns = f"a column {data.names[0]!r}" if not data.answers else "a column for each question"
        raise InputError(
            f"{campaign.called}: on an engine data.file must be the table of bids.file, with"
            f" {columns} of data; join the two first, or use engine='memory'.",
            field="data.file",
        )
    if data is not None and data.kind == "simulated_values":
        raise InputError(f"{campaign.called}: data.kind 'simulated_values' needs engine='memory'.", field="data.kind")


def _same_table(one: Any, other: Any) -> bool:
    if isinstance(one, str | Path) and isinstance(other, str | Path):
        return Path(one).resolve() == Path(other).resolve()
    return one is other


def price_people(
    campaign: Campaign, reading: Reading, *, out: str, record: Path | None, force: bool, step: Step, ids_needed: bool
) -> Decision:
    """Decide how much privacy to buy from whom, write it to ``out``, unless that is a stream, and the record.

    Unless ``ids_needed``, bids may be without the column of ids.
    """
    with Staging(force=force) as files:
        if reading.engine == "memory":
            decision: Decision = decide(campaign, reading, step, ids_needed=ids_needed)
            step("writing")
        else:
            from hushbid.campaign.on_engine import decide_on_engine, refuse_existing_out

            if not force:
                refuse_existing_out(out, reading.engine)
            most_here = 0 if record is None else record_folder.LARGEST_FILE
            decision = decide_on_engine(campaign, reading, files, step, out=out, most_here=most_here)
        stamps = stamps_of(decision, campaign)
        notes = [] if campaign.path is None else notes_of(campaign, None)
        if isinstance(decision, DecisionInMemory) and out != STREAM and "://" not in out:
            files.add(out, table_writer(out, decision.columns()))
        if record is not None and isinstance(decision, DecisionInMemory):
            record_of(decision, stamps=stamps, notes=notes).stage(files, record)
        elif record is not None:
            from hushbid.campaign.on_engine import stage_record

            stage_record(files, record, campaign, decision, None, stamps=stamps, notes=notes)
    return decision
