"""Attacks on a campaign's claims that somebody asked for, while they run and when they are done."""

import asyncio

from hushbid.report.sections.audits import AuditLine
from hushbid.server.api.state import AppState
from hushbid.server.domain.views import CampaignView, Principal

_MOST_KEPT = 32


class Attacks:
    """Attacks under way and done, by campaign and state; kept in memory, since anybody can repeat them."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], asyncio.Task[tuple[AuditLine, ...]]] = {}

    def begin(self, app: AppState, who: Principal, view: CampaignView) -> None:
        """Attack a campaign, unless that is happening already."""
        key = (view.id, view.state.value)
        task = self._known.get(key)
        if task is not None and not (task.done() and (task.cancelled() or task.exception() is not None)):
            return
        while len(self._known) >= _MOST_KEPT:
            self._known.pop(next(iter(self._known)))
        self._known[key] = asyncio.create_task(app.compute(who, app.service.attacks, who, view.id))

    def found(self, view: CampaignView) -> tuple[bool, tuple[AuditLine, ...] | None]:
        """Whether an attack is under way, and what came of it if it is over."""
        task = self._known.get((view.id, view.state.value))
        if task is None:
            return False, None
        if not task.done():
            return True, None
        return False, None if task.cancelled() or task.exception() is not None else task.result()
