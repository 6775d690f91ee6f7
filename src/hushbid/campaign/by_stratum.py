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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hushbid.campaign.deciding import DecisionInMemory, Step, decide_about, read_everybody
from hushbid.campaign.people import AT_ONCE, Delivered, People, Reading, delivered_in, rows_of
from hushbid.campaign.releasing import Place, Released, refuse_unsaid_late, release
from hushbid.campaign.results import Purchase, PurchaseByStratum, payment_columns
from hushbid.campaign.telling import campaign_estimate, forecast, refuse_above_spending_limit
from hushbid.campaign.terms import Campaign, of_stratum, read_campaign, refuse_terms
from hushbid.campaign.writing import Names, complete
from hushbid.common.arrays import IndexArray
from hushbid.common.staging import Staging, refuse_clashes, refuse_existing
from hushbid.common.tables import Raw, is_table, table_writer
from hushbid.disclosure import ReleasePlan
from hushbid.disclosure.delivery import prepare_release
from hushbid.disclosure.ledger.store import ledger_folder
from hushbid.disclosure.promises import about
from hushbid.errors import HushbidError, InputError, NobodyToBuyFrom, NothingDelivered

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
    step: Step = lambda message: None,
) -> PurchaseByStratum:
    """Run a campaign with an estimate for each stratum, and write each into a folder of its own.

    The arguments are those of `run_campaign`; people are read into memory.
    """
    wanted = campaign if isinstance(campaign, Campaign) else read_campaign(Path(campaign), bids=bids, data=data)
    if not wanted.each or wanted.folder is None:
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
        released = _released(wanted, people, parts, delivered, None if ledger is None else ledger_folder(ledger))
        step("recording, attacking and writing")
        bought = {}
        for part, one in zip(parts, released, strict=True):
            names = Names.of(part.campaign, part.folder, reading)
            bought[part.name] = complete(
                files, names, part.campaign, part.decision, one, audit=audit, step=lambda message: None
            )
        files.add(table, table_writer(table, _side_by_side(bought)))
    of_all = Released() if delivered is None else Released(strangers=delivered.strangers, notes=delivered.notes)
    return PurchaseByStratum(campaign=wanted, parts=bought, reading_notes=people.notes, released=of_all, table=table)


# -- each stratum as a campaign ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Part:
    """One stratum as a campaign."""

    name: str
    campaign: Campaign
    decision: DecisionInMemory
    rows: IndexArray
    """Which rows are its people, among everybody."""

    @property
    def folder(self) -> Path:
        assert self.campaign.folder is not None
        return self.campaign.folder


def _parts(campaign: Campaign, people: People, folder: Path) -> list[_Part]:
    """Decide about each stratum; refused if one cannot be bought in, or if all together cost too much."""
    strata = campaign.spec.strata
    assert strata is not None
    labels, names = np.array(people.strata), sorted(set(people.strata or ()))
    folders = folders_of(names)
    refuse_terms(strata, campaign.market, names)
    if lost := sorted(set(people.roster_by_stratum or ()) - set(names)):  # rows that were left out
        raise InputError(
            f"{people.source}: the mean of stratum {lost[0]!r} cannot be estimated: no row of it can be priced.",
            field="strata",
        )
    with rows_of(people.source, people.lines):  # a bid is refused by its row in the file, not in its stratum
        campaign.prior.prior_for(people.groups).virtual_cost(people.bids)
    parts = []
    for name in names:
        alone = replace(
            campaign.stating(
                title=f"{campaign.title}, {name}",
                question=f"{campaign.question}, {name}",
                strata=None,
                money=campaign.spec.money.model_copy(update={"spending_limit": None}),  # it was of all together
            ),
            folder=folder / folders[name],
            part_of=(campaign.title, len(names)),
            market=of_stratum(strata, campaign.market, name),
        )
        rows = np.flatnonzero(labels == name)
        mine = people.only(rows, name)
        with _naming(name):
            decision = decide_about(mine, alone, {})
        if not decision.figures.active:
            raise NobodyToBuyFrom(
                f"The mean of stratum {name!r} cannot be estimated: nobody in it bid within the prior's support."
            )
        origin = campaign.prior.origin(mine.ids, accepted=campaign.spec.market.accept_pilot_overlap)
        parts.append(_Part(name=name, campaign=alone, decision=replace(decision, origin=origin), rows=rows))
    refuse_above_spending_limit(
        sum(part.decision.total_minor for part in parts),
        campaign,
        lambda: forecast([(part.decision.market, part.rows.size) for part in parts], campaign.currency),
    )
    return parts


@contextmanager
def _naming(stratum: str) -> Iterator[None]:
    """Name the stratum in a problem."""
    try:
        yield
    except HushbidError as problem:
        raise type(problem)(f"Stratum {stratum!r}: {problem}", field=problem.field, row=problem.row) from problem


def folders_of(strata: Sequence[str] | Mapping[str, object]) -> dict[str, str]:
    """What the folder of each stratum is called; refused where two would be one on some system, or none can be made."""
    if len(strata) > _MOST:
        message = f"strata.column must hold at most {_MOST} different strata with strata.each, got {len(strata):,}."
        raise InputError(message, field="strata.column")
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
        message = f"strata must be called by texts without control characters with strata.each, got {name!a}."
        raise InputError(message, field="strata.column")
    folder = "".join(one if one.isalnum() or one in " -_" else _escaped(one) for one in name)
    if unicodedata.normalize("NFKC", folder).upper() in _RESERVED:
        folder = _escaped(folder[0]) + folder[1:]
    if len(folder.encode()) > _LONGEST:
        message = f"strata must have names of at most {_LONGEST} bytes with strata.each, got {name[:40]!r} and more."
        raise InputError(message, field="strata.column")
    return folder


def _escaped(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode())


# -- an estimate for each ----------------------------------------------------------------------------------------------


def _delivered(campaign: Campaign, people: People, parts: Sequence[_Part]) -> Delivered | None:
    """Return everybody's data, if there are any; before anything is drawn, refuse them by the rows of the file."""
    if campaign.data is None:
        return None
    market, losses = parts[0].decision.market, np.zeros(len(people))
    found = delivered_in(campaign.data, people, market.survey)
    for part in parts:
        losses[part.rows] = part.decision.outcome.privacy_loss
    asked = about(market.survey, market.layout, market.bounds)
    plan = ReleasePlan.of(losses, setting=market.setting, **asked)  # from which nothing is ever drawn
    with rows_of(people.source, people.lines):
        prepare_release(plan, found.data, campaign.spec.market.accept_infinite_loss, simulated=campaign.simulated)
    return found


def _released(
    campaign: Campaign, people: People, parts: Sequence[_Part], delivered: Delivered | None, ledger: Path | None
) -> list[Released]:
    """Draw the estimate of each stratum."""
    if delivered is None:
        return [Released() for _ in parts]
    found = [_released_in(part, delivered, ledger) for part in parts]
    late = [
        int(part.rows[row])
        for part, one in zip(parts, found, strict=True)
        for row in (() if one.answer is None else one.answer.late)
    ]
    refuse_unsaid_late(sorted(late), len(people), campaign.late, "data.late")
    return found


def _released_in(part: _Part, delivered: Delivered, ledger: Path | None) -> Released:
    """Draw an estimate; there is none if nobody in it delivered, which does not keep the others from theirs."""
    data, whose = delivered.data, part.decision
    mine = data[part.rows] if isinstance(data, np.ndarray) else [data[row] for row in part.rows.tolist()]
    place = Place(ledger=ledger, folder=part.folder.parent, record=part.folder / "record.json")
    here = Delivered(data=mine, strangers=0)
    with _naming(part.name):
        try:
            return release(part.campaign, whose.people, whose.outcome, place, delivered=here, late_field=None)
        except NothingDelivered as problem:
            return Released(missing=str(problem))


# -- side by side ------------------------------------------------------------------------------------------------------


def _side_by_side(bought: Mapping[str, Purchase]) -> dict[str, Raw]:
    """One row for each stratum, or for each of its questions, and of a choice for each answer."""
    rows = [row for name, one in bought.items() for row in _rows(name, one)]
    columns = dict.fromkeys(column for row in rows for column in row)
    return {column: [row.get(column, "") for row in rows] for column in columns}


def _rows(name: str, one: Purchase) -> Iterator[dict[str, Any]]:
    decision, answer = one.decided, one.answer
    assert isinstance(decision, DecisionInMemory)
    facts, paid = decision.facts(), decision.total_minor if one.campaign.data is None else 0
    if answer is not None:  # for what they delivered
        owed = payment_columns(decision, answer, late_is_paid=one.campaign.late == "paid")
        facts, paid = campaign_estimate(one.campaign, answer), int(np.sum(owed["payment_minor"]))
    head = {
        "stratum": name,
        "folder": "" if one.campaign.folder is None else one.campaign.folder.name,
        "people": decision.figures.people,
        "bought_from": decision.figures.active,
        "payment_minor": paid,
        "currency": decision.currency.code,
        **({} if answer is None else {"dropped_out": facts["dropped_out"]}),
    }
    if answer is None and one.campaign.data is not None:
        facts = {}
    for question in facts.get("answers") or facts.get("questions") or [facts]:
        errors = {error: question[error] for error in ("standard_error", "worst_standard_error") if error in question}
        for answered, found in question.get("shares", {None: question}).items():
            named = {"question": question.get("name"), "answer": answered}
            named = {key: value for key, value in named.items() if value is not None}
            if "interval" not in found:
                yield {**head, **named, **errors}
                continue
            ends = {end: found["interval"][end] for end in ("low", "high")}
            normal = {f"normal_{end}": found["normal_interval"][end] for end in ("low", "high")}
            level = found["interval"]["level"]
            yield {**head, **named, "estimate": found["estimate"], **errors, **ends, **normal, "level": level}
