"""Reading a form field by field: each that is wrong gets one sentence of the pages', and all are found at once.

What may be typed into a field follows from the schema (`hushbid.server.model.settings`): its kind and its range. What
does not go together is found by the schema itself, and worded by the field that it names.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, TypeVar

from hushbid.errors import InputError
from hushbid.server.model.checks import LONGEST, checked_text
from hushbid.server.pages.wording import FormError, Writing

T = TypeVar("T")
MINUTES = "%Y-%m-%dT%H:%M"
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

    def number(self, name: str, **limits: float) -> float | None:
        """Return a number above ``gt``, of at least ``ge`` and at most ``le``; None if there is none, which is said."""
        found = self._read(name, self.write.read)
        return None if found is None else self._within(name, float(found), limits)

    def whole(self, name: str, **limits: float) -> int | None:
        """Return a whole number between others."""
        found = self._read(name, _whole)
        return None if found is None else self._within(name, found, limits)

    def percent(self, name: str, *, most: float = 100.0) -> float | None:
        """Return a share that was typed in per cent; above 0."""
        found = self._read(name, self.write.read)
        if found is not None and not 0 < found <= most:
            self.refuse(name, "form.percent", most=self.write.number(most, 9))
        return None if found is None or name in self.problems else float(found / _HUNDRED)

    def moment(self, name: str) -> datetime | None:
        """Return a time as a browser sends it, which is meant in UTC."""
        return self._read(name, _moment)

    def optional(self, name: str, read: Callable[..., T | None], **limits: float) -> T | None:
        """Return what may be left empty."""
        return read(name, **limits) if self.given(name) else None

    def _within(self, name: str, value: T, limits: Mapping[str, float]) -> T | None:
        above, low, high = (limits.get(one) for one in ("gt", "ge", "le"))
        wrong = [
            above is not None and not value > above,  # type: ignore[operator]
            low is not None and value < low,  # type: ignore[operator]
            high is not None and value > high,  # type: ignore[operator]
        ]
        if any(wrong):
            both = low is not None and high is not None
            code = "form.above" if wrong[0] else "form.between" if both else "form.least" if wrong[1] else "form.most"
            shown = zip(("above", "low", "high"), (above, low, high), strict=True)
            self.refuse(name, code, **{at: "" if one is None else self.write.number(one, 9) for at, one in shown})
        return None if name in self.problems else value

    def _read(self, name: str, read: Callable[[str], T]) -> T | None:
        try:
            return read(self.given(name))
        except FormError as problem:
            self.refuse(name, problem.code)
            return None


def retyped(fields: Mapping[str, str], numbers: Callable[[str], bool], before: Writing, now: Writing) -> dict[str, str]:
    """Return what was typed in one language as it would be typed in another: numbers alone differ."""
    found = dict(fields)
    for name, text in fields.items():
        if numbers(name):
            try:
                found[name] = as_number_typed(before.read(text), now)
            except FormError:  # whatever it is, it stays
                continue
    return found


def as_number_typed(value: Decimal, write: Writing) -> str:
    """Return an exact number as one would type it."""
    text = f"{value:f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return text.replace(".", write.texts.decimal)


def typed_value(value: Any, write: Writing) -> str:
    """Return a plain value of a campaign as one would type it; whatever cannot be typed as its text."""
    if value is None or value is False:
        return ""
    if value is True:
        return "yes"
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime(MINUTES)
    return as_number_typed(Decimal(repr(value)), write) if isinstance(value, int | float) else str(value)


def percent_typed(share: Any, write: Writing) -> str:
    """Return a share as one would type it in per cent; `Reading.percent` gives it back."""
    known = isinstance(share, int | float) and not isinstance(share, bool)
    return as_number_typed(Decimal(repr(share)) * _HUNDRED, write) if known else typed_value(share, write)


def _whole(text: str) -> int:
    if not text:
        raise FormError("field.missing")
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise FormError("field.whole")
    return int(text)


def _moment(text: str) -> datetime:
    try:
        return datetime.strptime(text[:16], MINUTES).replace(tzinfo=UTC)
    except ValueError:
        raise FormError("field.time") from None
