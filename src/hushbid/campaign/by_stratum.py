"""A campaign with an estimate for each stratum: a loop of ordinary purchases, one market in each stratum.

Everybody is in one stratum, so the sum of the strata's costs is least where each stratum's is: the best purchase is the
ordinary one in each, which nobody outside it can change.

Whatever can be refused is refused before the first estimate is drawn: an accuracy out of reach in one stratum, payments
above the spending limit for all together, rows and data that are none, names of which no folder can be made. Each
stratum has the ordinary files in its folder, and its estimate is kept under the question, the stratum and its people's
ids, so that record, release, verification and report know nothing of other strata; a table puts them side by side. All
files appear together.
"""

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hushbid.campaign.conducting import Bought, Found, complete
from hushbid.campaign.deciding import Decided, Everybody, Step, decide_about, read_everybody
from hushbid.campaign.people import AT_ONCE, Delivered, People, Reading, rows_of
from hushbid.campaign.releasing import Place, delivered_in, drawn_from, refuse_unsaid_late
from hushbid.campaign.results import DecidedByStratum, Purchase, PurchaseByStratum, campaign_estimate, payment_columns
from hushbid.campaign.spending import forecast, refuse_above_spending_limit
from hushbid.campaign.terms import Campaign, of_stratum, read_campaign, refuse_terms
from hushbid.campaign.writing import Names
from hushbid.common.arrays import IndexArray
from hushbid.common.staging import Staging, refuse_clashes, refuse_existing
from hushbid.common.tables import Raw, is_table, table_writer
from hushbid.disclosure import ReleasePlan
from hushbid.disclosure.delivery import prepare_release
from hushbid.disclosure.ledger.store import ledger_folder
from hushbid.errors import HushbidError, InputError, MarketError, NobodyToBuyFrom, NothingDelivered
from hushbid.mechanism import Market
from hushbid.mechanism.releasing import plan_of

_MOST = 1000
"""More strata than this are rather a column of something else."""

_LONGEST = 200
"""So many bytes may a folder's name have; most systems take 255."""

NO_ENGINE = (
    "engine must be 'memory' with each = true: an engine makes one purchase, and each stratum is one; for more people"
    " than memory holds, make a table and a campaign of each stratum."
)

_RESERVED = {"CON", "PRN", "AUX", "NUL", *(f"{port}{number}" for port in ("COM", "LPT") for number in range(10))}
"""Names of devices on some systems, in any capitals."""


def run_by_stratum(
    campaign: Campaign | str | Path,
    *,
    bids: Any = None,
    data: Any = None,
    reading: Reading = AT_ONCE,
    audit: bool = True,
    ledger: str | Path | None = None,
    force: bool = False,
    step: Step = lambda told: None,
) -> PurchaseByStratum:
    """Run a campaign with an estimate for each stratum, and write each into a folder of its own.

    The arguments are those of `buy`; people are read into memory.
    """
    wanted = campaign if isinstance(campaign, Campaign) else read_campaign(Path(campaign), bids=bids, data=data)
    if wanted.strata is None or not wanted.strata.each or wanted.folder is None:
        raise InputError(f"{wanted.called}: strata.each must be true for an estimate for each stratum.", field="strata")
    if reading.engine != "memory" or not is_table(wanted.bids.file):
        raise InputError(NO_ENGINE, field="engine")
    table = wanted.folder / ("decided.csv" if wanted.data is None else "strata.csv")  # where it is, all are
    refuse_clashes([table], wanted.inputs)
    if not force:
        refuse_existing([table])
    with Staging(force=force, folder=wanted.folder) as files:
        # nobody may be in two strata, or their losses would add up
        people, _ = read_everybody(wanted, replace(reading, check_ids="exact"), step)
        step("deciding")
        parts = _parts(wanted, people, wanted.folder)
        refuse_clashes([table, *(path for part in parts for path in part.campaign.outputs)], wanted.inputs)
        step("releasing")
        delivered = _delivered(wanted, people, parts)
        found = _found(wanted, people, parts, delivered, None if ledger is None else ledger_folder(ledger))
        step("recording, attacking and writing")
        bought = {
            part.name: complete(
                files,
                Names.of(part.campaign, part.folder, reading),
                part.campaign,
                Bought(decided=part.decided),
                one,
                audit=audit,
                step=lambda told: None,
            )
            for part, one in zip(parts, found, strict=True)
        }
        files.add(table, table_writer(table, _side_by_side(bought)))
    return PurchaseByStratum(
        campaign=wanted,
        decided=DecidedByStratum(
            parts={part.name: part.decided for part in parts}, currency=wanted.currency, reading_notes=people.notes
        ),
        parts=bought,
        strangers=0 if delivered is None else delivered.strangers,
        data_notes=() if delivered is None else delivered.notes,
        table=table,
    )


# -- each stratum as a campaign ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Part:
    """One stratum as a campaign of its own."""

    name: str
    folder: Path
    campaign: Campaign
    decided: Decided
    rows: IndexArray
    """Whose it is, among everybody."""

    @property
    def everybody(self) -> Everybody:
        """What was decided about each of its people."""
        assert self.decided.everybody is not None
        return self.decided.everybody


def _parts(campaign: Campaign, people: People, folder: Path) -> list[_Part]:
    """Decide about each stratum; refused if one cannot be bought in, or if all together cost too much."""
    assert campaign.strata is not None
    labels = np.array(people.strata)
    names = sorted(set(people.strata or ()))
    folders = folders_of(names)
    refuse_terms(campaign.strata, campaign.market, names)
    _refuse_lost_strata(people, names)
    parts = []
    for name in names:
        rows, alone = np.flatnonzero(labels == name), _campaign_of(campaign, name, folder / folders[name], len(names))
        decided = _decided(alone, name, people.only(rows, name))
        parts.append(_Part(name=name, folder=folder / folders[name], campaign=alone, decided=decided, rows=rows))
    refuse_above_spending_limit(
        sum(part.decided.total_minor for part in parts),
        campaign.currency,
        campaign.spending_limit,
        lambda: forecast([(part.decided.market, part.rows.size) for part in parts], campaign.currency),
    )
    return parts


def _refuse_lost_strata(people: People, names: Sequence[str]) -> None:
    """No stratum may go without a word because its rows were left out."""
    lost = sorted(set(people.roster_by_stratum or ()) - set(names))
    if lost:
        raise InputError(
            f"{people.source}: the mean of stratum {lost[0]!r} cannot be estimated: no row of it can be priced.",
            field="strata",
        )


def _campaign_of(campaign: Campaign, name: str, folder: Path, count: int) -> Campaign:
    """The campaign of one stratum."""
    assert campaign.strata is not None
    return replace(
        campaign,
        title=f"{campaign.title}, {name}",
        question=f"{campaign.question}, {name}",
        folder=folder,
        part_of=(campaign.title, count),
        market=of_stratum(campaign.strata, campaign.market, name),
        strata=None,
        spending_limit=None,  # it was of all together
    )


def _decided(campaign: Campaign, name: str, people: People) -> Decided:
    """What is decided in one stratum; a problem is named with it."""
    try:
        _, everybody = decide_about(people, campaign)
    except (InputError, MarketError) as problem:
        raise type(problem)(f"Stratum {name!r}: {problem}", field=problem.field, row=problem.row) from None
    if everybody.outcome.active == 0:
        raise NobodyToBuyFrom(
            f"The mean of stratum {name!r} cannot be estimated: nobody in it bid within the prior's support."
        )
    origin = campaign.prior.origin(people.ids, accepted=campaign.accept_pilot_overlap)
    return Decided.of(everybody, campaign.currency, origin)


def folders_of(strata: Sequence[str] | Mapping[str, object]) -> dict[str, str]:
    """What the folder of each stratum is called; refused where two would be one on some system, or none can be made."""
    if len(strata) > _MOST:
        told = f"strata.column must hold at most {_MOST} different strata with strata.each, got {len(strata):,}."
        raise InputError(told, field="strata.column")
    found, taken = dict[str, str](), dict[str, str]()
    for name in strata:
        folder = _folder(name)
        same = taken.setdefault(unicodedata.normalize("NFKC", folder).casefold(), name)
        if same != name:
            raise InputError(
                f"strata {same!r} and {name!r} must differ in more than capitals with strata.each: on some systems"
                " their folders would be one.",
                field="strata.column",
            )
        found[name] = folder
    return found


def _folder(name: str) -> str:
    """Letters, digits, spaces, - and _ as they are; everything else as in addresses: ``a%2Fb``."""
    if not name.isprintable():
        told = f"strata must be called by texts without control characters with strata.each, got {name!a}."
        raise InputError(told, field="strata.column")
    folder = "".join(one if one.isalnum() or one in " -_" else _escaped(one) for one in name)
    if unicodedata.normalize("NFKC", folder).upper() in _RESERVED:
        folder = _escaped(folder[0]) + folder[1:]
    if len(folder.encode()) > _LONGEST:
        told = f"strata must have names of at most {_LONGEST} bytes with strata.each, got {name[:40]!r} and more."
        raise InputError(told, field="strata.column")
    return folder


def _escaped(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode())


# -- an estimate for each ----------------------------------------------------------------------------------------------


def _delivered(campaign: Campaign, people: People, parts: Sequence[_Part]) -> Delivered | None:
    """Everybody's data, if there are any; refused, before anything is drawn, if they cannot be used."""
    if campaign.data is None:
        return None
    found = delivered_in(campaign.data, people, parts[0].decided.market)
    _refuse_bad_data(campaign, people, parts, found)
    return found


def _found(
    campaign: Campaign, people: People, parts: Sequence[_Part], delivered: Delivered | None, ledger: Path | None
) -> list[Found]:
    """The estimate of each stratum."""
    if delivered is None or campaign.data is None:
        return [Found() for _ in parts]
    places = [Place(ledger=ledger, folder=campaign.folder, record=part.folder / "record.json") for part in parts]
    found = [_found_in(part, delivered, place) for part, place in zip(parts, places, strict=True)]
    late = [
        int(part.rows[row])
        for part, one in zip(parts, found, strict=True)
        if one.answer is not None
        for row in one.answer.late
    ]
    refuse_unsaid_late(sorted(late), len(people), campaign.data.late, "data.late")
    return found


def _refuse_bad_data(campaign: Campaign, people: People, parts: Sequence[_Part], found: Delivered) -> None:
    """Name the rows of the file, not of a stratum; nothing is ever drawn from this plan."""
    market, asked = parts[0].decided.market, campaign
    losses = np.zeros(len(people))
    for part in parts:
        losses[part.rows] = part.everybody.outcome.privacy_loss
    plan = ReleasePlan.of(losses, setting=market.setting, **_asked_in(market))
    with rows_of(people.source, people.lines):
        prepare_release(plan, found.data, asked.accept_infinite_loss, simulated=asked.simulated)


def _asked_in(market: Market) -> dict[str, Any]:
    if market.survey is not None:
        return {"questions": market.survey, "layout": market.layout}
    return {"bounds": market.bounds}


def _found_in(part: _Part, delivered: Delivered, place: Place) -> Found:
    """The estimate of one stratum; none if nobody in it delivered, which does not keep the others from theirs."""
    data = delivered.data
    mine = data[part.rows] if isinstance(data, np.ndarray) else [data[row] for row in part.rows.tolist()]
    plan, people = plan_of(part.everybody.outcome), part.everybody.people
    try:
        return Found(answer=drawn_from(plan, mine, part.campaign, people, place))
    except NothingDelivered as problem:
        return Found(missing=str(problem))
    except HushbidError as problem:
        raise type(problem)(f"Stratum {part.name!r}: {problem}", field=problem.field) from problem


# -- side by side ------------------------------------------------------------------------------------------------------


def _side_by_side(bought: Mapping[str, Purchase]) -> dict[str, Raw]:
    """One row for each stratum, or for each of its questions, and of a choice for each answer."""
    rows = [row for name, one in bought.items() for row in _rows(name, one)]
    columns = dict.fromkeys(column for row in rows for column in row)
    return {column: [row.get(column, "") for row in rows] for column in columns}


def _rows(name: str, one: Purchase) -> list[dict[str, Any]]:
    decided = one.decided
    head = {
        "stratum": name,
        "folder": "" if one.campaign.folder is None else one.campaign.folder.name,
        "people": decided.figures.people,
        "bought_from": decided.figures.active,
        "payment_minor": _owed(one),
        "currency": decided.currency.code,
    }
    if one.campaign.data is None:
        facts = decided.facts()
        return [
            {**head, "question": asked["name"], **_numbers(asked)} if "name" in asked else {**head, **_numbers(asked)}
            for asked in facts.get("questions", [facts])
        ]
    if one.answer is None:
        return [head]
    facts = campaign_estimate(one.campaign, one.answer)
    head["dropped_out"] = facts["dropped_out"]
    return [{**head, **row} for row in _estimates(facts)]


def _owed(one: Purchase) -> int:
    """What the people of a stratum are paid: as decided, or, where data were asked for, for what they delivered."""
    everybody = one.decided.everybody
    if one.campaign.data is None or everybody is None:
        return one.decided.total_minor
    if one.answer is None:
        return 0
    owed = payment_columns(everybody, one.answer, late_is_paid=one.campaign.late == "paid")
    return int(np.sum(owed["payment_minor"]))


def _estimates(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The estimates of a stratum, a row each."""
    if "answers" not in facts:
        return [_estimate(facts, facts)]
    return [
        {"question": asked["name"], **({"answer": answer} if answer is not None else {}), **_estimate(found, asked)}
        for asked in facts["answers"]
        for answer, found in asked.get("shares", {None: asked}).items()
    ]


def _estimate(found: Mapping[str, Any], errors: Mapping[str, Any]) -> dict[str, Any]:
    interval = found["interval"]
    return {
        "estimate": found["estimate"],
        **_numbers(errors),
        "low": interval["low"],
        "high": interval["high"],
        "normal_low": found["normal_interval"]["low"],
        "normal_high": found["normal_interval"]["high"],
        "level": interval["level"],
    }


def _numbers(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: facts[name] for name in ("standard_error", "worst_standard_error") if name in facts}
