"""Reading a form field by field: each that is wrong gets one sentence of the pages', and all are found at once.

Whatever stands behind an answer (`hushbid.server.model`) checks itself again and tells it in English; what it refuses
that was not found here is told in the words of the field that it names.
"""

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import TypeVar

from hushbid.server.pages.wording import FormError, Writing

T = TypeVar("T")
MINUTES = "%Y-%m-%dT%H:%M"
_HUNDRED = Decimal(100)
_MOST_MINOR = 10**15


@dataclass(slots=True, kw_only=True)
class Reading:
    """A form that is being read."""

    typed: Mapping[str, str]
    write: Writing
    problems: dict[str, str] = field(default_factory=dict)
    """Sentences by the names of fields."""

    def given(self, name: str) -> str:
        """What was typed, without spaces around it."""
        return self.typed.get(name, "").strip()

    def ticked(self, name: str) -> bool:
        """Whether a box is ticked."""
        return self.typed.get(name, "") == "yes"

    def refuse(self, name: str, code: str, **values: str) -> None:
        """Say what is wrong with a field, unless something was said already."""
        self.problems.setdefault(name, self.write.texts.coded(code, **values))

    def text(self, name: str, longest: int, *, needed: bool = False) -> str:
        """A text of limited length, which every store and every page can hold."""
        cleaned = unicodedata.normalize("NFC", self.given(name))
        if needed and not cleaned:
            self.refuse(name, "field.missing")
        if len(cleaned) > longest:
            self.refuse(
                name, "form.too_long", most=self.write.number(longest, 9), got=self.write.number(len(cleaned), 9)
            )
        if any(unicodedata.category(letter) in ("Cc", "Cs") and letter not in "\n\r\t" for letter in cleaned):
            self.refuse(name, "form.control")
        return cleaned

    def line(self, name: str, longest: int, *, needed: bool = False) -> str:
        """A text in one line."""
        found = self.text(name, longest, needed=needed)
        if not found.isprintable():
            self.refuse(name, "form.one_line")
        return found

    def one_of(self, name: str, known: Sequence[str]) -> str:
        """One of a few answers."""
        if self.given(name) not in known:
            self.refuse(name, "form.pick")
            return known[0]
        return self.given(name)

    def decimal(self, name: str) -> Decimal | None:
        """A number, exactly; None if there is none, which is told."""
        return self._read(name, self.write.read)

    def number(
        self, name: str, *, low: float | None = None, high: float | None = None, above: float | None = None
    ) -> float | None:
        """A number between others; None if there is none, which is told."""
        found = self.decimal(name)
        if found is None:
            return None
        value = float(found)
        shown = {"low": low, "high": high, "above": above}
        told = {name: "" if one is None else self.write.number(one, 9) for name, one in shown.items()}
        if above is not None and not value > above:
            self.refuse(name, "form.above", **told)
        elif (low is not None and value < low) or (high is not None and value > high):
            both = low is not None and high is not None
            self.refuse(name, "form.between" if both else "form.least" if high is None else "form.most", **told)
        return None if name in self.problems else value

    def percent(self, name: str, *, most: float = 100.0) -> float | None:
        """A share that was typed in per cent; above 0."""
        found = self.decimal(name)
        if found is not None and not 0 < found <= most:
            self.refuse(name, "form.percent", most=self.write.number(most, 9))
        return None if found is None or name in self.problems else float(found / _HUNDRED)

    def optional(self, name: str, read: Callable[[str], T | None]) -> T | None:
        """What may be left empty."""
        return read(name) if self.given(name) else None

    def whole(self, name: str, low: int, high: int) -> int | None:
        """A whole number between others."""
        found = self._read(name, _whole)
        if found is not None and not low <= found <= high:
            self.refuse(name, "form.between", low=self.write.number(low, 9), high=self.write.number(high, 9))
        return None if name in self.problems else found

    def money(self, name: str, decimals: int | None, *, least: int = 0) -> int | None:
        """An amount in units of the currency, as minor units."""
        found = self.decimal(name)
        if found is None or decimals is None:
            return None
        minor = found.scaleb(decimals)
        if minor != minor.to_integral_value() or abs(minor) > _MOST_MINOR:
            self.refuse(name, "field.too_fine", decimals=str(decimals))
        elif minor < least:
            self.refuse(name, "form.least", low=self.write.exactly(Decimal(least).scaleb(-decimals)), high="", above="")
        return None if name in self.problems else int(minor)

    def moment(self, name: str) -> datetime | None:
        """A time as a browser sends it, which is meant in UTC; None if it is empty or cannot be read."""
        return self._read(name, _moment) if self.given(name) else None

    def _read(self, name: str, read: Callable[[str], T]) -> T | None:
        try:
            return read(self.typed.get(name, ""))
        except FormError as problem:
            self.refuse(name, problem.code)
            return None


def retyped(fields: Mapping[str, str], numbers: Callable[[str], bool], before: Writing, now: Writing) -> dict[str, str]:
    """What was typed in one language as it would be typed in another: numbers alone differ."""
    found = dict(fields)
    for name, text in fields.items():
        if numbers(name):
            try:
                found[name] = as_number_typed(before.read(text), now)
            except FormError:  # whatever it is, it stays
                continue
    return found


def as_number_typed(value: Decimal, write: Writing) -> str:
    """An exact number as somebody would type it."""
    text = f"{value:f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return text.replace(".", write.texts.decimal)


def percent_typed(share: float, write: Writing) -> str:
    """A share as somebody would type it in per cent; `Reading.percent` gives it back."""
    return as_number_typed(Decimal(repr(float(share))) * _HUNDRED, write)


def money_typed(minor: int | None, decimals: int, write: Writing) -> str:
    """An amount in minor units as somebody would type it."""
    return "" if minor is None else as_number_typed(Decimal(minor).scaleb(-decimals), write)


def moment_typed(at: datetime | None) -> str:
    """A time as a browser shows it in a field, in UTC."""
    return "" if at is None else at.astimezone(UTC).strftime(MINUTES)


def _whole(text: str) -> int:
    plain = text.strip()
    if not plain:
        raise FormError("field.missing")
    if not (plain.isascii() and plain.isdigit() and len(plain) <= 9):
        raise FormError("field.whole")
    return int(plain)


def _moment(text: str) -> datetime:
    try:
        return datetime.strptime(text.strip()[:16], MINUTES).replace(tzinfo=UTC)
    except ValueError:
        raise FormError("field.time") from None
