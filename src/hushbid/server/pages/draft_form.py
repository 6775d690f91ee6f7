"""Between a campaign and the form in which an analyst types it: money in units, times without a zone.

The form's fields are those of the schema, by their names; what may be typed into each, and how it is asked for, follows
from it (`FIELDS`, `ASKED`). What is asked for otherwise is here and in `form_rows` and `form_prices`: the goal in the
words of a buyer (*I can spend* so much, on average or never more, *I need this accuracy*, *an error costs me* so much),
and privacy and protection in three degrees each, with a number for experts. What is typed where it does not count (the
number of another goal, one visit or limits where noise is added in browsers) is left out, and kept.

A form is read as a whole (`filled`), and every field that is wrong is named, in the words of the page's language. A
choice that cannot be made together with what is typed is greyed out, with the reason, by the table of combinations. It
can still be made, as something else may be changed in the same step; then the form says at its field why not.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from hushbid.campaign.reading import SpecError
from hushbid.campaign.spec import LANGUAGES, choices_of, range_of
from hushbid.common.money import DECIMALS
from hushbid.mechanism.combinations import Combination, offered
from hushbid.server.model.checks import LONGEST
from hushbid.server.model.settings import LEAST_PEOPLE, MOST_PEOPLE, CampaignSettings
from hushbid.server.pages.form_fields import (
    AMOUNTS,
    DEGREES,
    EMPTY,
    FIELDS,
    GOALS,
    NEEDED,
    NUMBERS,
    OWN,
    SCHEMA,
    TEXTS,
    form_name,
    kind_of,
)
from hushbid.server.pages.form_prices import field_of as prices_field
from hushbid.server.pages.form_prices import prices_typed, read_prior
from hushbid.server.pages.form_reading import Reading, retyped, typed_value
from hushbid.server.pages.form_rows import (
    FIELD_PARTS,
    is_number,
    is_survey,
    part_of,
    read_questions,
    read_strata,
    rows_of,
    rows_typed,
)
from hushbid.server.pages.wording import FormError, Texts, Writing, languages

_LONGEST = 25_000


@dataclass(slots=True, kw_only=True)
class Filled:
    """A form that was read."""

    settings: CampaignSettings | None = None
    """What it says, if all of it can be read and is allowed."""

    problems: dict[str, str] = field(default_factory=dict)
    """Sentences by field; under ``form`` what concerns none in particular."""


def typed_fields(sent: Mapping[str, str]) -> dict[str, str]:
    """Return the fields that the form has, and no others."""
    return {name: text[:_LONGEST] for name, text in sent.items() if name in EMPTY or part_of(name)}


def first_form(write: Writing) -> dict[str, str]:
    """Return what stands in an empty form."""
    return in_language(EMPTY, "en", write)


def in_language(fields: Mapping[str, str], typed_in: str, write: Writing) -> dict[str, str]:
    """Return what was typed in one language as it is shown in another: numbers alone are written differently."""
    before = languages().get(typed_in)
    if before is None or typed_in == write.texts.language:
        return dict(fields)
    return retyped(fields, lambda name: name in NUMBERS or is_number(name), Writing(before), write)


def unavailable(typed: Mapping[str, str]) -> dict[str, str]:
    """Return the choices that do not go with what is typed, each with the code of the reason."""
    kinds = [one["kind"] for one in rows_of(typed, "q")]
    questions: Any = "several" if len(kinds) > 1 or "choice" in kinds else "yes_no" if "yes_no" in kinds else "none"
    spends = "hard_budget" if typed.get("never_exceed") == "yes" else "budget"
    goal: Any = {"accuracy": "accuracy", "cost": "price"}.get(typed.get("goal", ""), spends)
    setting: Any = "local" if typed.get("setting") == "local" else "central"
    strata = bool(rows_of(typed, "s"))
    here = Combination(setting=setting, goal=goal, cap="one", strata=strata, questions=questions)
    choices = {"relation": replace(here, correlation=0.1), "limits": replace(here, limits=True)}
    return {name: f"unavailable.{name}" for name, one in choices.items() if not offered(one)}


# -- from what is typed to a campaign ----------------------------------------------------------------------------------


def filled(
    typed: Mapping[str, str], write: Writing, *, least: int = LEAST_PEOPLE, now: datetime | None = None
) -> Filled:
    """Read a form; ``least`` people are the fewest that the server allows. With ``now`` it is to be saved:
    deadlines must be later, and money must cover the fees."""
    form = Reading(typed=typed, write=write)
    values = _values(form, least)
    settings = None
    try:
        settings = CampaignSettings.read(values)
    except SpecError as refused:
        for name, _ in refused.problems:
            _refuse(form, name)
    if now is not None:
        _refuse_what_cannot_open(form, values, now)
    return Filled(settings=None if form.problems else settings, problems=form.problems)


def _values(form: Reading, least: int) -> dict[str, Any]:
    """Return what is typed as plain values of a campaign, without what cannot be read."""
    values: dict[str, Any] = {"market": {}, "money": {}, "server": {"consent": {}}}
    market, server = values["market"], values["server"]
    read_questions(form, values)
    for name, full in FIELDS.items():
        _put(values, full, _read_field(form, name, least))
    server["single_visit"] = form.ticked("single_visit") and market["setting"] != "local"
    server["limits"] = None if form.ticked("limits") else False  # where people can
    texts = {one: form.text(f"consent_text_{one}", LONGEST["texts"]) for one in LANGUAGES}
    server["consent"]["texts"] = {language: text for language, text in texts.items() if text}
    goal = form.one_of("goal", GOALS)
    if goal == "spend":
        name = "hard_budget" if form.ticked("never_exceed") else "budget"
        _put(market, name, form.number("budget", gt=0.0))
    elif goal == "cost":
        _put(market, "buyer_weight", form.number("buyer_weight", gt=0.0))
    _put(market, "prior", read_prior(form))
    for name, (leaf, degrees, limits) in DEGREES.items():
        degree = form.one_of(name, (*degrees, OWN))
        _put(market, leaf, form.number(leaf, **limits) if degree == OWN else degrees[degree])  # type: ignore[arg-type]
    return {**values, **read_strata(form)}


def _put(values: dict[str, Any], name: str, value: Any) -> None:
    if value not in (None, ""):
        *tables, leaf = name.split(".")
        for table in tables:
            values = values[table]
        values[leaf] = value


def _read_field(form: Reading, name: str, least: int) -> Any:
    """Return one field of the schema as it was typed; None if it is left out, or cannot be read, which is said."""
    info, kind = SCHEMA[FIELDS[name]], kind_of(name)
    if kind == "tick":
        return form.ticked(name)
    if kind == "pick":
        return form.one_of(name, choices_of(info))
    if kind in ("text", "lines"):
        return form.text(name, LONGEST.get(name.removeprefix("consent_"), LONGEST["question"]), line=kind == "text")
    limits = {"people": {"ge": 1, "le": MOST_PEOPLE}, "minimum_people": {"ge": least, "le": MOST_PEOPLE}}
    allowed: dict[str, Any] = limits.get(name, range_of(info))
    return form.number(name, kind, optional=name not in NEEDED, **allowed)


def _refuse_what_cannot_open(form: Reading, values: Mapping[str, Any], now: datetime) -> None:
    """Refuse deadlines that have passed, and money that does not even cover the fees of the people planned."""
    server, market = values["server"], values["market"]
    for name in ("bid_by", "deliver_by"):
        if name in server and server[name] <= now:
            form.refuse(name, "form.past")
    fees = server.get("participation_fee", 0.0) * market.get("population", 0)
    amounts = {"budget": market.get("budget", market.get("hard_budget"))}
    amounts["spending_limit"] = values["money"].get("spending_limit")
    for name, amount in amounts.items():
        if fees > 0 and amount is not None and amount <= fees:
            form.refuse(name, "form.below_fees")


# -- where a problem is said, and how ----------------------------------------------------------------------------------

_SAID_AT = {
    "bounds": "q-0-high",
    "variance": "q-0-variance",
    "unit": "q-0-unit",
    "questions": "q-0-name",
    "question": "q-0-name",
    "hard_budget": "budget",
    "standard_error": "q-0-error",
    "market": "goal",
    "texts": "consent_text_en",
}
_FOLLOWS = {"price_high": ("price_low",), "goal": ("budget", "buyer_weight", "q-0-error"), "question": ("title",)}
"""What is said of a field need not be said if something is wrong with these."""

_EXACTLY = {
    "bounds": "form.range",
    "answers": "form.answers",
    "currency": "form.currency",
    "decimals": "form.currency",
}


def place_of(name: str, typed: Mapping[str, str]) -> str:
    """Return the field of the form at which a problem with a field of the schema is said."""
    leaf = name.rpartition(".")[2]
    if name.startswith("questions."):
        number, _, part = name.removeprefix("questions.").partition(".")
        return f"q-{int(number) - 1}-{FIELD_PARTS.get(part, part)}"
    if name.startswith("strata"):
        return "strata"
    if name == "question" and is_survey(typed):
        return name
    if leaf == "prior":
        return prices_field(typed)
    for degree, (number, _, _) in DEGREES.items():
        if leaf == number:
            return leaf if typed.get(degree) == OWN else degree
    found = _SAID_AT.get(leaf, form_name(name))
    return found if found in EMPTY or found in _SAID_AT.values() else "form"


def label_of(place: str, typed: Mapping[str, str], t: Texts) -> str:
    """Return what a field of the form is called, so that no two are called the same."""
    found = part_of(place)
    if found is None:
        name, _, language = place.partition("_text_")
        return (
            t.coded(f"label.{name}_text", language=languages()[language].name)
            if language
            else t.coded(f"label.{place}")
        )
    letter, row, part = found
    label = t.coded(f"label.{letter}.{part}")
    return label if len(rows_of(typed, letter)) == 1 else t.coded(f"label.{letter}", number=row + 1, label=label)


def said(name: str, t: Texts) -> str:
    """Return why a field of the schema is refused, in the words of a page's language."""
    code = f"refused_setting.{name.rpartition('.')[2].partition('[')[0]}"
    return t.coded(code if code in t else "refused_setting.form")


def _refuse(form: Reading, name: str) -> None:
    """Say a problem that the schema found, unless it follows from what could not be read."""
    place, leaf = place_of(name, form.typed), name.rpartition(".")[2]
    parts = (*_FOLLOWS.get(place, ()), place, place.replace("-high", "-low"))
    rows = "s-" if place == "strata" else "q-" if leaf == "questions" else None
    if any(one in parts or (rows is not None and one.startswith(rows)) for one in form.problems):
        return
    code, values = _code_of(form, place, leaf)
    form.problems[place] = form.write.texts.coded(code, **values) if code else said(name, form.write.texts)


def _code_of(form: Reading, place: str, leaf: str) -> tuple[str, dict[str, str]]:
    """Return the code of a more exact sentence than a field's usual one, with its values; empty if there is none."""
    amount = form.given(place)
    if leaf == "variance" and (width := _width(form, place)) is not None:
        return "form.variance", {"most": form.write.number(width**2 / 4.0, 9)}
    if leaf in ("budget", "hard_budget", *AMOUNTS) and amount:
        decimals = decimals_of(form.typed)
        if form.write.read(amount) % Decimal(1).scaleb(-decimals):
            return "field.too_fine", {"decimals": str(decimals)}
    if leaf in ("bid_by", "deliver_by"):
        return ("form.later" if amount else "form.needs_deadline"), {}
    return _EXACTLY.get(leaf, ""), {"most": "100"} if leaf == "answers" else {}


def _width(form: Reading, place: str) -> float | None:
    """Return the width of a question's range, as typed."""
    at = place.removesuffix("variance")
    try:
        return float(form.write.read(form.given(f"{at}high")) - form.write.read(form.given(f"{at}low")))
    except FormError:
        return None


def decimals_of(typed: Mapping[str, str]) -> int:
    """Return how many decimals amounts have, as far as that is typed."""
    stated = typed.get("decimals", "")
    return int(stated) if stated in tuple("0123456") else DECIMALS.get(typed.get("currency", ""), 2)


# -- a campaign as it would have been typed ----------------------------------------------------------------------------


def as_typed(values: Mapping[str, Any], write: Writing) -> dict[str, str]:
    """Return a campaign's plain values, complete or not, as an analyst would have typed them."""
    market, found = values.get("market", {}), {}
    for name, full in FIELDS.items():
        stated = _value(values, full)
        if kind_of(name) == "moment" and isinstance(stated, str):
            stated = datetime.fromisoformat(stated)
        keeps_default = stated is None and name not in ("single_visit", "currency")
        found[name] = EMPTY[name] if keeps_default else typed_value(stated, write)
    texts = _value(values, TEXTS) or {}
    found |= {f"consent_text_{language}": texts.get(language, "") for language in LANGUAGES}
    found |= {"title": str(values.get("title", "")), **dict(rows_typed(values, write)), **prices_typed(market, write)}
    for name, (leaf, degrees, _) in DEGREES.items():
        stated = market.get(leaf, 0.0 if name == "relation" else None)
        known = next((degree for degree, one in degrees.items() if one == stated), OWN)
        found[name] = "medium" if stated is None else known
        found[leaf] = typed_value(stated, write) if found[name] == OWN else ""
    spends = market.get("budget", market.get("hard_budget"))
    return {
        **found,
        "limits": "yes" if values.get("server", {}).get("limits", True) else "",
        "goal": "spend" if spends is not None else "cost" if market.get("buyer_weight") is not None else "accuracy",
        "budget": typed_value(spends, write),
        "never_exceed": "yes" if "hard_budget" in market else "",
        "buyer_weight": typed_value(market.get("buyer_weight"), write),
    }


def _value(values: Mapping[str, Any], name: str) -> Any:
    """Return a plain value by its full name; None if it is not stated."""
    found: Any = values
    for part in name.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found
