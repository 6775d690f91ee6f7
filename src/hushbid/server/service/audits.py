"""Checking a campaign as somebody would who does not trust this server, and attacking its claims.

Both from its record and its log alone, which anybody who was given them can repeat.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from hushbid.common.documents import parsed
from hushbid.record import Record
from hushbid.server.model.views import Principal
from hushbid.server.service.use_case import ServiceContext, steps
from hushbid.server.service.views_of import read_log, read_record
from hushbid.server.store import campaigns
from hushbid.verification.findings import Check
from hushbid.verification.receipts import verify_log, verify_logged_record

if TYPE_CHECKING:
    from hushbid.report.sections.audits import AuditLine

_SAMPLES, _TESTED, _AMONG = 12_000, 6, 8


@steps(by="staff")
def checks(context: ServiceContext, who: Principal, campaign_id: str) -> Mapping[str, tuple[Check, ...]]:
    """Everything that can be checked without the data: of the record, and of the log."""
    with context.read() as connection:
        record = _record(connection, who, campaign_id)
        log = read_log(connection, who, campaign_id)
        root = campaigns.get(connection, campaign_id).root
    of_log = verify_log(log, root=root, record=record).checks
    known = {check.name for check in of_log}
    of_record = tuple(check for check in verify_logged_record(record, log=log).checks if check.name not in known)
    return {"record": of_record, "log": tuple(of_log)}


@steps(by="staff")
def attacks(context: ServiceContext, who: Principal, campaign_id: str) -> "tuple[AuditLine, ...]":
    """Look for misreports that pay, outputs that betray too much, and errors larger than stated. Takes some seconds.

    Smaller than what ``hushbid audit`` does with the record by default: other people wait for this server, too.
    """
    from hushbid.audit.suite import audits_of
    from hushbid.report.sections.audits import lines_of  # loads what computes

    with context.read() as connection:
        outcome = _record(connection, who, campaign_id).outcome
    samples = _SAMPLES if outcome.market.survey is None else None  # for a survey fewer are enough
    return lines_of(list(audits_of(outcome, samples=samples, tested=_TESTED, among=_AMONG)), outcome)


def _record(connection: Connection, who: Principal, campaign_id: str) -> Record:
    return Record.from_dict(parsed(read_record(connection, who, campaign_id)))
