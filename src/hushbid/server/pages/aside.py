"""What a page shows after a form was sent, kept beside for an hour: so the answer to a form is always a redirect, and
Back and Reload send nothing again and never end in a browser's own page.

It is kept in memory alone, for the session that sent it: a name in an address opens nothing for anybody else, and
nothing once the session is over. Links that were made are not among it, but the key of the form that made them, under
which they are sealed for a day (`hushbid.server.service.idempotency`).
"""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from secrets import token_hex
from typing import Any

from hushbid.server.pages.visit import Visit

KEPT_FOR = timedelta(hours=1)
_MOST = 1_000
_MOST_LETTERS = 64 * 1024 * 1024


@dataclass(slots=True)
class _Shelf:
    """All that is kept, the oldest first."""

    kept: OrderedDict[tuple[str, str], tuple[datetime, int, Mapping[str, Any]]] = field(default_factory=OrderedDict)
    letters: int = 0

    def drop_oldest(self) -> None:
        self.letters -= self.kept.popitem(last=False)[1][1]

    def tidy(self, now: datetime) -> None:
        while self.kept:
            since = next(iter(self.kept.values()))[0]
            if now - since < KEPT_FOR and len(self.kept) <= _MOST and self.letters <= _MOST_LETTERS:
                return
            self.drop_oldest()


def keep(visit: Visit, **values: Any) -> str:
    """Keep something for a page that this session is sent to; its name, which stands in that page's address."""
    shelf, name, now = _shelf(visit), token_hex(10), visit.app.service.clock()
    letters = len(repr(values))
    shelf.kept[visit.form_token, name] = (now, letters, values)
    shelf.letters += letters
    shelf.tidy(now)
    return name


def kept(visit: Visit, name: str) -> Mapping[str, Any] | None:
    """What this session keeps under a name; None if it was never there, or is gone."""
    shelf = _shelf(visit)
    shelf.tidy(visit.app.service.clock())
    found = shelf.kept.get((visit.form_token, name))
    return None if found is None else found[2]


def _shelf(visit: Visit) -> _Shelf:
    found = visit.request.app.state.__dict__.setdefault("aside", _Shelf())
    assert isinstance(found, _Shelf)
    return found
