"""What is sent with a form, and what is kept of it for the page that the answer leads to."""

from collections import OrderedDict
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from starlette.datastructures import FormData

CSRF_FIELD = "csrf"


class CsrfError(Exception):
    """A form came without its token, or with another's."""


KEPT_FOR = timedelta(hours=1)
_MOST = 1_000
_MOST_LETTERS = 64 * 1024 * 1024


class Shelf:
    """What sessions keep aside, the oldest first."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str], tuple[datetime, int, Mapping[str, Any]]] = OrderedDict()

    def put(self, place: tuple[str, str], values: Mapping[str, Any], now: datetime) -> None:
        """Keep something."""
        self._kept[place] = (now, len(repr(values)), values)
        self._tidy(now)

    def get(self, place: tuple[str, str], now: datetime) -> Mapping[str, Any] | None:
        """Return what is kept there; None if there was never anything, or it is gone."""
        self._tidy(now)
        found = self._kept.get(place)
        return None if found is None else found[2]

    def _tidy(self, now: datetime) -> None:
        letters = sum(size for _, size, _ in self._kept.values())
        while self._kept:
            since, size, _ = next(iter(self._kept.values()))
            if now - since < KEPT_FOR and len(self._kept) <= _MOST and letters <= _MOST_LETTERS:
                return
            letters -= size
            self._kept.popitem(last=False)


class Form:
    """The fields of a form, as texts."""

    def __init__(self, content: FormData) -> None:
        self._content = content
        self.file = b""
        """The content of the file that came with it, if one did."""

    def text(self, name: str) -> str:
        """What was typed, with line ends as they should be; nothing if the field is missing."""
        value = self._content.get(name, "")
        return value.replace("\r\n", "\n").replace("\0", "") if isinstance(value, str) else ""

    def chosen(self, name: str) -> list[str]:
        """Everything that was chosen under one name."""
        return [value.replace("\0", "") for value in self._content.getlist(name) if isinstance(value, str)]

    def ticked(self, name: str) -> bool:
        """Whether a box was ticked."""
        return self.text(name) == "yes"

    def all(self) -> Mapping[str, str]:
        """Every field but the token."""
        return {name: self.text(name) for name in self._content if name != CSRF_FIELD}
