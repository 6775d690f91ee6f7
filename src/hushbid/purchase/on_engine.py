"""``run`` and ``price`` for populations that do not fit in memory: the same decisions, made by an engine.

An engine reads Parquet, files or folders, and writes Parquet; there is no record of everybody's figures and no report,
which would not fit in memory either, but a summary. All is decided and written under temporary names, counted and
checked there, and only then takes its name.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hushbid.engine import Priced
    from hushbid.engine.payouts import Paid
    from hushbid.engine.releasing import TableAnswer
    from hushbid.mechanism import Market
    from hushbid.money import Currency
    from hushbid.priors.pilot import PriorSource
    from hushbid.purchase.campaign_file import Campaign
    from hushbid.purchase.people import Reading

Step = Callable[[str], object]
PASSES = 7
"""Steps of the progress bar: three to decide, one each for ids, pilot, writing and counting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """What was decided and written, in figures about the whole population."""

    priced: "Priced"
    paid: "Paid"
    currency: "Currency"
    origin: Mapping[str, Any]

    def facts(self) -> dict[str, Any]:
        """For programs; nothing in it belongs to one person."""
        from hushbid.money import with_rounding

        summary = self.priced.summary
        shown = summary.facts(
            dropped=summary.dropped,
            currency=self.currency,
            total_minor=self.paid.total_minor,
            paying=self.paid.paying,
            incentive_error=with_rounding(summary.incentive_error, self.currency.decimals),
        )
        return {**shown, "passes": summary.passes}

    def text(self) -> str:
        """What was decided, in sentences."""
        from hushbid.purchase.deciding import decided_text

        return decided_text(self.facts(), self.currency)


# -- price -------------------------------------------------------------------------------------------------------------


def price_on_engine(
    reports: str,
    market: "Market",
    source: "PriorSource",
    currency: "Currency",
    reading: "Reading",
    *,
    columns: Mapping[str, str | None],
    out: str,
    ceiling: float | None,
    accept_overlap: bool,
    force: bool,
    step: Step,
) -> Decided:
    """Decide and write: what ``price`` does when it does not read everything at once."""
    from hushbid.engine.opening import is_url, refuse_existing_address

    if is_url(out) and not force:
        refuse_existing_address(out, reading.engine)
    priced, origin = _priced(reports, market, source, reading, columns, accept_overlap, step)

    def check(paid: "Paid") -> None:
        _refuse_above_ceiling(paid, currency, ceiling)

    if is_url(out):
        paid = _write_to_url(out, priced, currency, step, check, force=force)
    else:
        from hushbid.durable import Staging

        with Staging(force=force) as files:
            paid = _write_decisions(files, Path(out), priced, currency, step)
            check(paid)
    return Decided(priced=priced, paid=paid, currency=currency, origin=origin)


# -- run ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineResults:
    """What a campaign came to."""

    campaign: "Campaign"
    decided: Decided
    answer: "TableAnswer | None"
    files: tuple[Path, ...]

    def facts(self) -> dict[str, Any]:
        """For programs; nothing in it belongs to one person."""
        from hushbid.purchase.asking import stamps_of

        facts: dict[str, Any] = {"campaign": self.campaign.name, **self.decided.facts()}
        if self.answer is not None:
            facts["estimate"] = _estimate_facts(self.campaign, self.answer)
            facts["drawn_before"] = self.answer.before
        facts["made_up"] = self.campaign.made_up
        facts["stamps"] = stamps_of(self.campaign, self.answer)
        facts["files"] = [str(path) for path in self.files]
        return facts

    def text(self) -> str:
        """For people."""
        from hushbid.purchase.asking import BEFORE, stamps_of
        from hushbid.purchase.buying import interval_text

        lines = [self.decided.text()]
        answer, campaign = self.answer, self.campaign
        if answer is not None:
            release = answer.release
            level, ends = campaign.level, release.interval(campaign.level)
            about = (campaign.quantity, campaign.unit, release.dropped_out)
            lines.append(interval_text(release.estimate, ends, level, *about))
            if answer.before:
                lines.append(BEFORE)
        lines += [f"STAMPED in the summary: {stamp}." for stamp in stamps_of(campaign, answer)]
        lines.append(f"Written to {campaign.folder}: {', '.join(path.name for path in self.files)}.")
        if campaign.data is None:
            lines.append(
                "Next: collect the data, put them into a column of the same table, add [data] with that file to the"
                " campaign file and run it again."
            )
        return "\n".join(lines)


def conduct_on_engine(campaign: "Campaign", reading: "Reading", *, force: bool, step: Step) -> EngineResults:
    """Run a campaign: what ``run`` does when it does not read everything at once."""
    from hushbid.durable import Staging, refuse_existing
    from hushbid.engine.payouts import checked, due
    from hushbid.purchase.asking import table_answer

    source, data = campaign.reports, campaign.data
    _refuse_other_table(campaign)
    summary = campaign.folder / ("summary.json" if data else "decided.json")
    if not force:
        refuse_existing([summary])
    columns = {"report": source.sensitivity, "id": source.id, "group": source.group}
    market = campaign.market_for([] if campaign.prior.is_grouped else None)
    priced, origin = _priced(source.file, market, campaign.prior, reading, columns, campaign.accept_pilot_overlap, step)
    answer = None
    paths = [campaign.folder / "decisions.parquet"]
    with Staging(force=force) as files:
        paid = _write_decisions(files, paths[0], priced, campaign.currency, step, made_up=campaign.made_up)
        _refuse_above_ceiling(paid, campaign.currency, campaign.ceiling)
        if data is not None and priced.summary.active:
            step("releasing")
            answer = table_answer(campaign, priced, data.value)
            paths.append(campaign.folder / "payments.parquet")
            frame = due(priced, data.value, campaign.currency, mse=answer.release.error.mse, made_up=campaign.made_up)
            made = files.make(paths[-1], lambda place: priced._engine.write(frame, str(place)))
            checked(made, priced)
            paths.append(campaign.folder / "estimate.json")
            files.add(paths[-1], _json_writer(_estimate_facts(campaign, answer)))
        decided = Decided(priced=priced, paid=paid, currency=campaign.currency, origin=origin)
        paths.append(summary)
        files.add(summary, _json_writer(_summary(campaign, decided, answer)))
    return EngineResults(campaign=campaign, decided=decided, answer=answer, files=tuple(paths))


def _refuse_other_table(campaign: "Campaign") -> None:
    """An engine does not join: the data must stand beside the reports."""
    from hushbid.errors import InputError

    data = campaign.data
    if data is not None and Path(data.file).resolve() != Path(campaign.reports.file).resolve():
        raise InputError(
            f"{campaign.path}: on an engine data.file must be the table of reports.file, with a column"
            f" {data.value!r} of data; join the two first, or use --engine memory."
        )
    if data is not None and data.kind == "simulated_values":
        raise InputError(f"{campaign.path}: data.kind 'simulated_values' needs --engine memory.")


# -- what both do ------------------------------------------------------------------------------------------------------


def _priced(
    reports: str,
    market: "Market",
    source: "PriorSource",
    reading: "Reading",
    columns: Mapping[str, Any],
    accept_overlap: bool,
    step: Step,
) -> tuple["Priced", dict[str, Any]]:
    from hushbid.engine import price
    from hushbid.errors import ReportError
    from hushbid.tables import ROWS_NOTE

    try:
        priced = price(
            reports,
            market,
            **columns,
            engine=reading.engine,
            on_bad_rows=reading.on_bad_rows,
            check_ids=reading.check_ids,
            progress=lambda told: step(told.what),
        )
    except ReportError as problem:
        sentence = str(problem).replace("on_bad_rows='drop'", "--on-bad-rows=drop")
        raise ReportError(f"{reports}: {sentence[:-1]} ({ROWS_NOTE}).") from problem
    counted = None
    if source.pilots:
        step("looking for people of the pilot")
        counted = _overlap(priced, source)
    return priced, source.origin(None, accepted=accept_overlap, counted=counted)


def _overlap(priced: "Priced", source: "PriorSource") -> int:
    """How many people were in any pilot."""
    from hushbid.engine.overlaps import OverlapKernel
    from hushbid.errors import InputError

    id = priced._kernel.people.id
    if id is None:
        raise InputError("--id-column must name a column: decisions are written beside it.")
    return priced._engine.reduce(OverlapKernel(id, tuple(source.pilots.values())), 0)


def _write_decisions(
    files: Any, path: Path, priced: "Priced", currency: "Currency", step: Step, *, made_up: bool = False
) -> "Paid":
    from hushbid.engine.payouts import checked, decisions

    frame = decisions(priced, currency, made_up=made_up)
    step("pricing and writing")
    made = files.make(path, lambda place: priced._engine.write(frame, str(place)))
    step("checking what was written")
    return checked(made, priced)


def _write_to_url(
    url: str, priced: "Priced", currency: "Currency", step: Step, check: Callable[["Paid"], None], *, force: bool
) -> "Paid":
    from hushbid.engine.payouts import checked, decisions
    from hushbid.engine.spark import moved

    frame = decisions(priced, currency)
    step("pricing and writing")
    with moved(url, force=force) as temporary:
        priced._engine.write(frame, temporary)
        step("checking what was written")
        paid = checked(temporary, priced)
        check(paid)
    return paid


def _refuse_above_ceiling(paid: "Paid", currency: "Currency", ceiling: float | None) -> None:
    from hushbid.errors import MarketError

    if ceiling is not None and paid.total_minor > ceiling * currency.per_unit:
        raise MarketError(
            f"The payments come to {currency.text(paid.total_minor)}, above the ceiling of {currency.text_of(ceiling)}:"
            " nothing was bought and nothing was written. What such a campaign costs is told by hushbid plan."
        )


def _estimate_facts(campaign: "Campaign", answer: "TableAnswer") -> dict[str, Any]:
    from hushbid.purchase.asking import estimate_origin
    from hushbid.purchase.buying import estimate_and_error, public_part

    release = answer.release
    return {
        **estimate_and_error(release, campaign.level),
        "dropped_out": release.dropped_out,
        **estimate_origin(campaign, answer),
        "public": {**public_part(release), "made_up": campaign.made_up},
    }


def _summary(campaign: "Campaign", decided: Decided, answer: "TableAnswer | None") -> dict[str, Any]:
    """What stands in the place of a record, of which it holds the figures that are not about one person."""
    from importlib.metadata import version

    from hushbid.purchase.asking import stamps_of

    return {
        "format": "hushbid summary",
        "version": 1,
        "campaign": campaign.name,
        "market": decided.priced.market.to_dict(),
        "prior": dict(decided.origin),
        "decided": decided.facts(),
        "release": None if answer is None else _estimate_facts(campaign, answer),
        "question": campaign.quantity,
        "stamps": stamps_of(campaign, answer),
        "notices": list(campaign.notices),
        "versions": {name: version(name) for name in ("hushbid", "numpy", "scipy")},
    }


def _json_writer(values: Mapping[str, Any]) -> Callable[[Any], object]:
    from hushbid.documents import plain

    content = json.dumps(plain(values), indent=2) + "\n"
    return lambda file: file.write(content.encode())
