"""Checking a campaign of this server as somebody would who does not trust it: from its record and its log alone."""

from dataclasses import dataclass

from hushbid.campaign.domain.views import CampaignView, Principal
from hushbid.campaign.service import Service
from hushbid.record import Record
from hushbid.record.canonical import parsed
from hushbid.record.events import Event
from hushbid.record.trust import verify_log, verify_logged_record

_AT_ONCE = 1000
_SAMPLES = 20_000


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
    found = [("record", one) for one in verify_logged_record(record, log=log).checks]
    known = {check.name for _, check in found}
    of_log = verify_log(log, root=view.root, record=record).checks
    found += [("log", one) for one in of_log if one.name not in known]
    return tuple(
        Checked(document=document, name=check.name, status=check.status, sentence=check.sentence)
        for document, check in found
    )


def attacked(service: Service, who: Principal, view: CampaignView) -> tuple[Attack, ...]:
    """Look for misreports that pay, outputs that betray too much, and errors larger than stated. Takes some seconds."""
    from hushbid.report.attacks import audits_of, lines_of  # loads what computes

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
        for line in lines_of(list(audits_of(outcome, samples=_SAMPLES)), outcome)
    )


def _record(service: Service, who: Principal, view: CampaignView) -> Record:
    return Record.from_dict(parsed(service.record(who, view.id)))


def _log(service: Service, who: Principal, view: CampaignView) -> tuple[Event, ...]:
    found: list[Event] = []
    while True:
        some = service.events(who, view.id, after=found[-1].number if found else 0, limit=_AT_ONCE)
        found += some
        if len(some) < _AT_ONCE:
            return tuple(found)
