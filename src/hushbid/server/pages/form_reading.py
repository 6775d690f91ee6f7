"""Reading a form field by field: each that is wrong gets one sentence of the pages', and all are found at once.

What may be typed into a field follows from the schema (`hushbid.server.model.settings`): its kind and its range. What
does not go together is found by the schema itself, and worded by the field that it names.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from hushbid.errors import InputError
from hushbid.server.model.checks import LONGEST, checked_text
from hushbid.server.pages.wording import FormError, Writing

_MINUTES = "%Y-%m-%dT%H:%M"
_HUNDRED = Decimal(100)


@dataclass(slots=True, kw_only=True)
class Reading:
    """A form that is being read."""

    typed: Mapping[str, str]
    write: Writing
    problems: dict[str, str] = field(default_factory=dict)
    """Sentences by the names of fields."""

    def given(self, name: str) -> str:
        """Return what was typed, without spaces around it."""
        return self.typed.get(name, "").strip()

    def ticked(self, name: str) -> bool:
        """Return whether a box is ticked."""
        return self.typed.get(name, "") == "yes"

    def refuse(self, name: str, code: str, **values: str) -> None:
        """Say what is wrong with a field, unless something was said already."""
        self.problems.setdefault(name, self.write.texts.coded(code, **values))

    def text(self, name: str, longest: int = LONGEST["question"], *, needed: bool = False, line: bool = False) -> str:
        """Return a text of limited length, which every store and every page can hold; perhaps in one line."""
        found = self.given(name)
        if needed and not found:
            self.refuse(name, "field.missing")
        if line and not found.isprintable():
            self.refuse(name, "form.one_line")
        if len(found) > longest:
            most, got = (self.write.number(one, 9) for one in (longest, len(found)))
            self.refuse(name, "form.too_long", most=most, got=got)
        try:
            return checked_text(found, name, longest=len(found))
        except InputError:
            self.refuse(name, "form.control")
            return ""

    def one_of(self, name: str, known: Sequence[str]) -> str:
        """Return one of a few answers."""
        if self.given(name) not in known:
            self.refuse(name, "form.pick")
            return known[0]
        return self.given(name)

    def number(self, name: str, kind: str = "number", *, optional: bool = False, **limits: float) -> Any:
        """Return a number, a whole number, a time in UTC or a share in percent; None if there is none, which is said.

        A number is above ``gt``, at least ``ge`` and at most ``le``. What is ``optional`` may be left empty.
        """
        if optional and not self.given(name):
            return None
        readers: dict[str, Callable[[str], Any]] = {"whole": _whole, "moment": _moment}
        try:
            found = readers.get(kind, self.write.read)(self.given(name))
        except FormError as problem:
            self.refuse(name, problem.code)
            return None
        if kind == "percent" and not 0 < found <= _HUNDRED:
            self.refuse(name, "form.percent", most=self.write.number(float(_HUNDRED), 9))
        value = found if kind in readers else float(found / _HUNDRED if kind == "percent" else found)
        self._require_within(name, value, **limits)
        return None if name in self.problems else value

    def _require_within(self, name: str, value: Any, *, gt: Any = None, ge: Any = None, le: Any = None) -> None:
        low, high = ge is not None and value < ge, le is not None and value > le
        shown = {
            at: "" if one is None else self.write.number(one, 9)
            for at, one in (("above", gt), ("low", ge), ("high", le))
        }
        if gt is not None and not value > gt:
            self.refuse(name, "form.above", **shown)
        elif low or high:
            both = ge is not None and le is not None
            self.refuse(name, "form.between" if both else "form.least" if low else "form.most", **shown)


def retyped(fields: Mapping[str, str], numbers: Callable[[str], bool], before: Writing, now: Writing) -> dict[str, str]:
    """Return what was typed in one language as it would be typed in another: numbers alone differ."""
    found = dict(fields)
    for name in filter(numbers, fields):
        try:
            found[name] = typed_value(before.read(fields[name]), now)
        except FormError:  # whatever it is, it stays
            continue
    return found


def typed_value(value: Any, write: Writing, *, percent: bool = False) -> str:
    """Return a plain value of a campaign, perhaps a share in percent, as one would type it; whatever cannot be typed as
    its text."""
    if value is None or isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime(_MINUTES)
    if not isinstance(value, int | float | Decimal):
        return str(value)
    exact = value if isinstance(value, Decimal) else Decimal(repr(float(value)))
    return write.typed(exact * _HUNDRED if percent else exact)


def _whole(text: str) -> int:
    if not text:
        raise FormError("field.missing")
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise FormError("field.whole")
    return int(text)


def _moment(text: str) -> datetime:
    try:
        return datetime.strptime(text[:16], _MINUTES).replace(tzinfo=UTC)
    except ValueError:
        raise FormError("field.time") from None
