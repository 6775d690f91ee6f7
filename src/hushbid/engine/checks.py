"""What is refused before anybody is priced: options that do not go together, columns and rows that cannot be read."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from hushbid.allocation.histogram import MOST_PEOPLE
from hushbid.common.tables import refusal, refused_kind
from hushbid.engine.adapter import Engine, pyarrow
from hushbid.engine.decisions import PRICED
from hushbid.engine.passes import Census, Named, NamesKernel
from hushbid.engine.people import PROBLEMS, People, Run
from hushbid.errors import BidError, InputError
from hushbid.mechanism import Market
from hushbid.mechanism.combinations import refuse, state_of
from hushbid.mechanism.people import groups_of

_OWN = ("stratum", "variance", "limit", "cap")


def check_options(market: Market, on_bad_rows: str, check_ids: str, columns: Mapping[str, str | None]) -> None:
    """Refuse what the market and the columns, named by what they hold, cannot be together."""
    if not isinstance(market, Market):
        raise InputError(f"market must be a Market, got {type(market).__name__}.", field="market")
    for name, value, allowed in (
        ("on_bad_rows", on_bad_rows, ("fail", "drop")),
        ("check_ids", check_ids, ("exact", "off")),
    ):
        if value not in allowed:
            raise InputError(f"{name} must be {allowed[0]!r} or {allowed[1]!r}, got {value!r}.", field=name)
    _check_strata(market, columns.get("stratum"))
    variance, limit, cap = (columns.get(name) for name in ("variance", "limit", "cap"))
    if market.survey is not None and variance is not None:
        told = f"variance must not name a column ({variance!r}) beside questions, each of which has its own."
        raise InputError(told, field="variance")
    for name in ("variance", "user_weight", "max_privacy_loss"):
        if isinstance(getattr(market, name), np.ndarray):
            told = f"{name} of the market must be one number here; variances and caps may come from columns."
            raise InputError(told, field=name)
    stated = replace(market.combination, limits=limit is not None, limits_name="limit")
    if variance is not None:
        stated = replace(stated, variances=True)
    if cap is not None:
        stated = replace(stated, cap="each", cap_name="cap")
    refuse(stated)
    for name, column, one in (("cap", cap, "max_privacy_loss"), ("variance", variance, "variance")):
        if column is not None and state_of(stated) == "on average":
            told = f"{name} must not name a column ({column!r}) with a budget that is met on average: state one {one}."
            raise InputError(told, field=name)


def _check_strata(market: Market, stratum: str | None) -> None:
    if (market.strata is not None) != (stratum is not None):
        told = "stratum must name the column of strata if, and only if, the market states shares or a contrast of them."
        raise InputError(told, field="stratum")
    if market.strata:
        told = "strata of the market must be empty here: the column that stratum names says who is in which."
        raise InputError(told, field="strata")


def people_of(market: Market, engine: Engine, columns: Mapping[str, str | None], *, tie_seed: bytes) -> People:
    """Which columns say what, named by what they hold; refused if one is not there, or cannot say it."""
    names, id, group = engine.names, columns.get("id"), columns.get("group")
    stated: dict[str, Any] = {"bid": columns["bid"] or "bid", **{name: columns.get(name) for name in _OWN}}
    if id is not None and id not in names and id == "id":
        id = None  # the usual name, and no such column: there are no ids
    wanted = (stated["bid"], id, group, *(stated[name] for name in _OWN))
    missing = [name for name in wanted if name is not None and name not in names]
    if missing:
        told = f"There is no column {missing[0]!r}; the columns are {', '.join(map(repr, names))}."
        raise InputError(told, field=missing[0])
    for name in (id, group, stated["stratum"]):
        held = None if name is None else refused_kind(pyarrow().types, engine.kind(name))
        if held is not None:
            raise refusal(str(name), held)
    taken = [name for name, _ in PRICED if name in names]
    if taken:
        raise InputError(f"The table must not have a column {taken[0]!r} yet: pricing appends it.", field=taken[0])
    if market.grouped != (group is not None):
        raise InputError(
            "group must name the column of labels if, and only if, the market's prior is Grouped.", field="group"
        )
    priors = {one.name: one.prior for one in groups_of(market.prior, None)}
    if len(tie_seed) > 64:
        raise InputError(f"tie_seed must have at most 64 bytes, got {len(tie_seed)}.", field="tie_seed")
    return People(
        **stated,
        id=id,
        group=group,
        strata=market.strata_names,
        priors=priors,
        tie_seed=tie_seed,
    )


def refuse_rows(run: Run, census: Census, on_bad_rows: str) -> None:
    """Rows that cannot be priced, too many of them, or none."""
    if census.rows == 0:
        raise InputError("The table has no rows: there is nobody to price.")
    if census.rows >= MOST_PEOPLE:
        raise InputError(f"The table must have fewer than {MOST_PEOPLE} rows, got {census.rows}.")
    if census.bad and on_bad_rows == "fail":
        counts = ", ".join(f"{count} {PROBLEMS[code]}" for code, count in sorted(census.problems.items()))
        examples = [text for _, text in census.examples]
        if not examples and run.people.id is not None:
            examples = list(run.reduce("naming bad rows", NamesKernel(run.people), Named()).texts)
        raise BidError(
            f"{census.bad} of {census.rows} rows cannot be priced by column {run.people.bid!r} ({counts})"
            f"{': ' * bool(examples)}{'; '.join(examples)}. Leave them out with on_bad_rows='drop'.",
            field=run.people.bid,
            row=census.examples[0][0] if census.examples else None,
        )
    if census.people == 0:
        raise InputError("No row can be priced: there is nobody to buy from.")


def refuse_repeated_ids(run: Run, census: Census) -> None:
    """Ids that name two people, or nobody."""
    if run.people.id is None:
        raise InputError("check_ids='exact' needs id, the name of a column.", field="id")
    run.starts("looking for repeated ids")
    different = run.engine.distinct(run.people.id)
    if different != census.rows:
        raise InputError(
            f"Column {run.people.id!r} must name everybody once, but {census.rows} rows have {different} different"
            " ids (missing ones not counted).",
            field=run.people.id,
        )
