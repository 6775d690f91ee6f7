"""Checking a campaign of this server as somebody would who does not trust it: from its record and its log alone."""

import asyncio
from dataclasses import dataclass

from hushbid.documents import parsed
from hushbid.receipts.log import Event
from hushbid.record import Record
from hushbid.server.api.state import AppState
from hushbid.server.domain.views import CampaignView, Principal
from hushbid.server.service import Service
from hushbid.verification.receipts import verify_log, verify_logged_record

_AT_ONCE = 1000
_SAMPLES, _TESTED, _AMONG = 12_000, 6, 8
_MOST_KEPT = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """One attack on a claim, in words."""

    title: str
    verdict: str
    finding: str
    samples: str
    power: float | None
    power_against: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """One check of one document."""

    document: str
    """``record`` or ``log``."""

    name: str
    status: str
    """``ok``, ``failed`` or ``skipped``."""

    sentence: str


def verified(service: Service, who: Principal, view: CampaignView) -> tuple[Checked, ...]:
    """Everything that can be checked without the data."""
    record, log = _record(service, who, view), _log(service, who, view)
    of_log = verify_log(log, root=view.root, record=record).checks
    logs = {check.name for check in of_log}
    found = [("record", one) for one in verify_logged_record(record, log=log).checks if one.name not in logs]
    found += [("log", one) for one in of_log]
    return tuple(
        Checked(document=document, name=check.name, status=check.status, sentence=check.sentence)
        for document, check in found
    )


def attacked(service: Service, who: Principal, view: CampaignView) -> tuple[Attack, ...]:
    """Look for misreports that pay, outputs that betray too much, and errors larger than stated. Takes some seconds.

    Smaller than what ``hushbid audit`` does with the record by default: other people wait for this server, too.
    """
    from hushbid.audit.suite import audits_of
    from hushbid.report.sections.audits import lines_of  # loads what computes

    outcome = _record(service, who, view).outcome
    return tuple(
        Attack(
            title=line.title,
            verdict=line.verdict,
            finding=line.finding,
            samples=line.samples,
            power=line.power,
            power_against=line.power_against,
        )
        for line in lines_of(list(audits_of(outcome, samples=_SAMPLES, tested=_TESTED, among=_AMONG)), outcome)
    )


class Attacks:
    """Attacks under way and done, by campaign and state; kept in memory, since anybody can repeat them."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], asyncio.Task[tuple[Attack, ...]]] = {}

    def begin(self, app: AppState, who: Principal, view: CampaignView) -> None:
        """Attack a campaign, unless that is happening already."""
        key = (view.id, view.state.value)
        task = self._known.get(key)
        if task is not None and not (task.done() and (task.cancelled() or task.exception() is not None)):
            return
        while len(self._known) >= _MOST_KEPT:
            self._known.pop(next(iter(self._known)))
        self._known[key] = asyncio.create_task(app.compute(attacked, app.service, who, view))

    def found(self, view: CampaignView) -> tuple[bool, tuple[Attack, ...] | None]:
        """Whether an attack is under way, and what came of it if it is over."""
        task = self._known.get((view.id, view.state.value))
        if task is None:
            return False, None
        if not task.done():
            return True, None
        return False, None if task.cancelled() or task.exception() is not None else task.result()


def _record(service: Service, who: Principal, view: CampaignView) -> Record:
    return Record.from_dict(parsed(service.record(who, view.id)))


def _log(service: Service, who: Principal, view: CampaignView) -> tuple[Event, ...]:
    found: list[Event] = []
    while True:
        some = service.events(who, view.id, after=found[-1].number if found else 0, limit=_AT_ONCE)
        found += some
        if len(some) < _AT_ONCE:
            return tuple(found)
