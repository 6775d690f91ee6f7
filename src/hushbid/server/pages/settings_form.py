"""Between a campaign's settings and the form in which an analyst types them: money in units, times without a zone."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from hushbid.errors import HushbidError
from hushbid.priors import Prior
from hushbid.server.domain.goal import BUDGETS, GOALS
from hushbid.server.domain.settings import MOST_PEOPLE, CampaignSettings
from hushbid.server.pages.numbers import Unreadable, Writing
from hushbid.server.pages.texts import Texts

EMPTY: dict[str, str] = {
    "title": "",
    "question": "",
    "description": "",
    "unit": "",
    "low": "",
    "high": "",
    "setting": "central",
    "prior": "uniform:1,3",
    "goal": "budget",
    "budget": "200",
    "hard_budget": "",
    "standard_error": "",
    "buyer_weight": "",
    "max_relation": "0.1",
    "max_privacy_loss": "1",
    "variance": "",
    "currency": "EUR",
    "decimals": "2",
    "participation_fee": "0",
    "fee_after_withdrawal": "",
    "spending_ceiling": "",
    "minimum_people": "10",
    "report_by": "",
    "deliver_by": "",
    "automatic": "",
    "retention_days": "0",
    "public_estimate": "",
    "limits": "yes",
    "people": "100",
}
"""The form's fields, and what stands in them first."""

_TICKS = ("fee_after_withdrawal", "automatic", "public_estimate", "limits")
_MINUTES = "%Y-%m-%dT%H:%M"


@dataclass(slots=True, kw_only=True)
class Filled:
    """A form that was sent."""

    settings: CampaignSettings | None = None
    """What it says, if all of it can be read and is allowed."""

    people: int = 0
    """For how many people to look ahead."""

    problems: dict[str, str] = field(default_factory=dict)
    """Sentences by field; under ``form`` what concerns none in particular."""

    def first_problem(self, t: Texts) -> str:
        """One sentence about what is wrong."""
        name, sentence = next(iter(self.problems.items()))
        label = f"draft.{name}"
        return f"{t(label)}: {sentence}" if label in t else sentence


def as_typed(settings: CampaignSettings, write: Writing) -> dict[str, str]:
    """Settings as an analyst would have typed them."""
    minor = Decimal(10) ** settings.decimals

    def money(amount: int | None) -> str:
        return "" if amount is None else write.typed(float(Decimal(amount) / minor))

    def number(value: float | None) -> str:
        return "" if value is None else write.typed(float(value))

    def moment(at: datetime | None) -> str:
        return "" if at is None else at.astimezone(UTC).strftime(_MINUTES)

    plain = {name: str(getattr(settings, name)) for name in ("title", "question", "description", "unit", "setting")}
    return plain | {
        "low": write.typed(settings.one_range[0]),
        "high": write.typed(settings.one_range[1]),
        "prior": prior_typed(settings.prior),
        "goal": settings.stated,
        **{name: money(getattr(settings, name)) for name in BUDGETS},
        **{name: number(getattr(settings, name)) for name in ("standard_error", "buyer_weight")},
        "max_relation": write.typed(settings.max_relation),
        "max_privacy_loss": number(settings.max_privacy_loss),
        "variance": number(settings.variance),
        "currency": settings.currency,
        "decimals": str(settings.decimals),
        "participation_fee": money(settings.participation_fee),
        "spending_ceiling": money(settings.spending_ceiling),
        "minimum_people": str(settings.minimum_people),
        "retention_days": str(settings.retention_days),
        "report_by": moment(settings.report_by),
        "deliver_by": moment(settings.deliver_by),
        **{name: "yes" if getattr(settings, name) else "" for name in _TICKS},
    }


def filled(typed: Mapping[str, str], write: Writing) -> Filled:
    """Read a form: every field that is wrong is named, and none is changed."""
    found = Filled()
    values: dict[str, Any] = {}

    def take(name: str, read: Callable[[str], Any], *, field_name: str | None = None) -> None:
        try:
            values[name] = read(typed.get(name, ""))
        except Unreadable as problem:
            found.problems[field_name or name] = write.texts(problem.text)

    for name in ("title", "question"):
        take(name, _needed)
    for name in ("description", "unit", "setting", "currency"):
        take(name, str)
    for name in ("low", "high"):
        take(name, lambda text: float(write.read(text)))
    take("max_relation", lambda text: float(write.read(text)) if text.strip() else 0.0)
    take("goal", _goal)
    goal = values.pop("goal", None)
    if goal is not None:  # the other numbers are not meant
        take(goal, write.read if goal in BUDGETS else lambda text: float(write.read(text)))
    for name in ("variance", "max_privacy_loss"):
        take(name, lambda text: float(write.read(text)) if text.strip() else None)
    for name in ("decimals", "minimum_people", "retention_days", "people"):
        take(name, _whole)
    for name in ("report_by", "deliver_by"):
        take(name, _moment)
    for name in ("participation_fee", "spending_ceiling"):
        take(name, lambda text: write.read(text) if text.strip() else None)
    people = values.pop("people", 0)
    if "people" not in found.problems and not 1 <= people <= MOST_PEOPLE:
        found.problems["people"] = write.texts("draft.people_range", most=write.number(MOST_PEOPLE, 9))
    found.people = people
    _in_minor_units(values, found, write)
    prior = typed.get("prior", "")
    if not found.problems:
        _checked(found, values, prior, typed)
    return found


def _checked(found: Filled, values: dict[str, Any], prior: str, typed: Mapping[str, str]) -> None:
    """Let the settings check themselves; a refusal of theirs names the field it is about."""
    bounds = [values.pop("low"), values.pop("high")]
    ticks = {name: typed.get(name) == "yes" for name in _TICKS}
    ticks["limits"] &= values["setting"] != "local"  # where nobody can state one
    try:
        found.settings = CampaignSettings.from_dict({**values, **ticks, "bounds": bounds, "prior": _prior_form(prior)})
    except HushbidError as problem:
        name = "low" if problem.field == "bounds" else problem.field
        found.problems[name if name in EMPTY else "form"] = str(problem)


def _in_minor_units(values: dict[str, Any], found: Filled, write: Writing) -> None:
    decimals = values.get("decimals", 0)
    for name in ("participation_fee", "spending_ceiling", *BUDGETS):
        amount = values.get(name)
        if amount is None:
            if name == "participation_fee":
                values[name] = 0
            continue
        minor = amount.scaleb(min(decimals, 18))
        if minor != minor.to_integral_value() or abs(minor) > 10**18:
            found.problems[name] = write.texts("field.too_fine", decimals=str(decimals))
        else:
            values[name] = int(minor)


def _prior_form(text: str) -> str | dict[str, Any]:
    """One prior, or one for each line ``group = prior``."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not any(_names_group(line) for line in lines):
        return " ".join(lines)
    groups: dict[str, str] = {}
    for line in lines:
        name, _, prior = line.partition("=")
        groups[name.strip()] = prior.strip()
    return {"groups": groups}


def _names_group(line: str) -> bool:
    before, equals, _ = line.partition("=")
    return bool(equals) and ":" not in before


def prior_typed(prior: Prior | Mapping[str, Prior]) -> str:
    """What is believed, as it is typed: one text, or a line for each group."""
    if isinstance(prior, Mapping):
        return "\n".join(f"{name} = {one.to_text()}" for name, one in prior.items())
    return prior.to_text()


def _goal(text: str) -> str:
    if text not in GOALS:
        raise Unreadable("field.missing")
    return text


def _needed(text: str) -> str:
    if not text.strip():
        raise Unreadable("field.missing")
    return text


def _whole(text: str) -> int:
    plain = text.strip()
    if not plain:
        raise Unreadable("field.missing")
    if not (plain.isascii() and plain.isdigit() and len(plain) <= 9):
        raise Unreadable("field.whole")
    return int(plain)


def _moment(text: str) -> datetime | None:
    """A time as a browser sends it, which is meant in UTC."""
    if not text.strip():
        return None
    try:
        return datetime.strptime(text.strip()[:16], _MINUTES).replace(tzinfo=UTC)
    except ValueError:
        raise Unreadable("field.time") from None
