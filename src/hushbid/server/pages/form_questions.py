"""What a draft's form asks of people: its questions in order, and the strata whose means are combined.

Question number k has the fields ``q-k-kind``, ``q-k-name`` and so on, stratum number k ``s-k-name`` and ``s-k-weight``;
how many there are stands in ``questions`` and ``strata``. Buttons that add, remove and move them work on what was
typed, so they need no script.

One question for a number, without a sentence of its own about all of them, is the simple campaign: its range, unit and
variance are the campaign's. Anything else is a survey. Errors of shares, and strata's shares, are typed in per cent.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from hushbid.questions import LONGEST_NAME, MOST_ANSWERS, MOST_QUESTIONS, Choice, Number, Question
from hushbid.server.model.checks import LONGEST
from hushbid.server.model.settings import CampaignSettings
from hushbid.server.model.terms import MOST_STRATA
from hushbid.server.pages.form_reading import Reading, percent_typed
from hushbid.server.pages.wording import Writing

KINDS = ("number", "yes_no", "choice")
PARTS = ("kind", "name", "low", "high", "unit", "variance", "importance", "answers", "error")
"""What is typed about a question; ``error`` is the standard error that is wanted of it."""

NUMBERS = frozenset({"low", "high", "variance", "importance", "error", "weight"})
_STRATUM = ("name", "weight")
_NEARLY_ALL = 1e-9


def empty_question(place: int, kind: str = "number") -> dict[str, str]:
    """The fields of a question of which nothing was typed."""
    return {f"q-{place}-{part}": kind if part == "kind" else "" for part in PARTS}


def many(typed: Mapping[str, str], name: str, most: int) -> int:
    """How many questions or strata a form has."""
    text = typed.get(name, "")
    return min(int(text), most) if text.isascii() and text.isdigit() and len(text) <= 4 else 0


def question_count(typed: Mapping[str, str]) -> int:
    """How many questions a form has: at least one."""
    return max(many(typed, "questions", MOST_QUESTIONS), 1)


def stratum_count(typed: Mapping[str, str]) -> int:
    """How many strata a form has."""
    return many(typed, "strata", MOST_STRATA)


# -- buttons -----------------------------------------------------------------------------------------------------------


def pressed(typed: Mapping[str, str], action: str) -> tuple[dict[str, str], str] | None:
    """The form after a button that changes its questions or strata, and where to look; None for any other button."""
    what, _, place = action.partition(":")
    if what in ("question-add", "question-remove", "question-up", "question-down"):
        rows = [_row(typed, "q", k, PARTS) for k in range(question_count(typed))]
        after, at = _changed(rows, what.partition("-")[2], place, MOST_QUESTIONS)
        if len(after) > len(rows):
            after[-1:] = [{**dict.fromkeys(PARTS, ""), "kind": place if place in KINDS else "number"}]
        return _with_rows(typed, "q", "questions", after or [dict.fromkeys(PARTS, "") | {"kind": "number"}]), f"q-{at}"
    if what in ("stratum-add", "stratum-remove"):
        rows = [_row(typed, "s", k, _STRATUM) for k in range(stratum_count(typed))]
        after, at = _changed(rows, what.partition("-")[2], place, MOST_STRATA)
        return _with_rows(typed, "s", "strata", after), "strata-group"
    return None


def _row(typed: Mapping[str, str], letter: str, place: int, parts: Sequence[str]) -> dict[str, str]:
    return {part: typed.get(f"{letter}-{place}-{part}", "") for part in parts}


def _changed(rows: list[dict[str, str]], what: str, place: str, most: int) -> tuple[list[dict[str, str]], int]:
    """Rows after one was added, removed or moved, and which one to look at."""
    if what == "add":
        return ([*rows, {}], len(rows)) if len(rows) < most else (rows, len(rows) - 1)
    at = int(place) if place.isascii() and place.isdigit() and len(place) <= 4 else -1
    if not 0 <= at < len(rows):
        return rows, 0
    if what == "remove":
        return rows[:at] + rows[at + 1 :], max(at - 1, 0)
    other = at - 1 if what == "up" else at + 1
    if 0 <= other < len(rows):
        rows[at], rows[other] = rows[other], rows[at]
        return rows, other
    return rows, at


def _with_rows(typed: Mapping[str, str], letter: str, count: str, rows: Sequence[Mapping[str, str]]) -> dict[str, str]:
    rest = {name: text for name, text in typed.items() if not name.startswith(f"{letter}-")}
    fields = {f"{letter}-{place}-{part}": text for place, row in enumerate(rows) for part, text in row.items()}
    return {**rest, **fields, count: str(len(rows))}


# -- questions ---------------------------------------------------------------------------------------------------------


def read_questions(form: Reading) -> dict[str, Any]:
    """What is asked, as settings: one number, or questions."""
    count = question_count(form.typed)
    title = form.line("title", LONGEST["title"], needed=True)
    about = form.text("question", LONGEST["question"])
    found: dict[str, Any] = {"title": title, "question": about or title}
    asked = [_read_question(form, place, alone=count == 1, about=bool(about)) for place in range(count)]
    names = [one.get("name") for one in asked]
    for place, name in enumerate(names):
        if name and name in names[:place]:
            form.refuse(f"q-{place}-name", "form.twice")
    if count > 1 or about or asked[0]["kind"] != "number":
        return {**found, "questions": asked}
    number = asked[0]
    simple = {name: number[name] for name in ("bounds", "variance", "unit")}
    return {**found, "question": number["name"], **simple}


def _read_question(form: Reading, place: int, *, alone: bool, about: bool) -> dict[str, Any]:
    at = f"q-{place}-"
    kind = form.one_of(f"{at}kind", KINDS)
    simple = alone and not about and kind == "number"
    name = f"{at}name"
    asked = form.text(name, LONGEST["question"], needed=True) if simple else form.line(name, LONGEST_NAME, needed=True)
    one: dict[str, Any] = {"kind": kind, "name": asked}
    importance = None if alone else form.optional(f"{at}importance", lambda name: form.number(name, low=1e-6, high=1e6))
    one["importance"] = 1.0 if importance is None else importance
    if kind == "number":
        low, high = form.number(f"{at}low"), form.number(f"{at}high")
        one["unit"] = form.line(f"{at}unit", LONGEST["unit"])
        if low is not None and high is not None and not low < high:
            form.refuse(f"{at}high", "form.range")
        one["bounds"] = (low, high)
        one["variance"] = form.optional(f"{at}variance", lambda name: form.number(name, above=0.0))
        if low is not None and high is not None and one["variance"] is not None:
            most = (high - low) ** 2 / 4.0
            if one["variance"] > most:
                form.refuse(f"{at}variance", "form.variance", most=form.write.number(most, 9))
    elif kind == "choice":
        one["answers"] = _answers(form, f"{at}answers")
    return one


def _answers(form: Reading, name: str) -> list[str]:
    found = [line.strip() for line in form.typed.get(name, "").splitlines() if line.strip()]
    if not found:
        form.refuse(name, "field.missing")
    elif not 2 <= len(found) <= MOST_ANSWERS or len(set(found)) < len(found):
        form.refuse(name, "form.answers", most=str(MOST_ANSWERS))
    elif any(len(one) > LONGEST_NAME or not one.isprintable() for one in found):
        form.refuse(name, "form.too_long", most=str(LONGEST_NAME), got=str(max(map(len, found))))
    return found


def read_errors(form: Reading) -> float | tuple[float, ...] | None:
    """The standard error that is wanted of each question; of shares it was typed in percentage points."""
    found = []
    for place in range(question_count(form.typed)):
        name = f"q-{place}-error"
        share = form.typed.get(f"q-{place}-kind") != "number"
        found.append(form.percent(name) if share else form.number(name, above=0.0))
    if any(one is None for one in found):
        return None
    return tuple(one for one in found if one is not None)


# -- strata ------------------------------------------------------------------------------------------------------------


def read_strata(form: Reading) -> dict[str, Any] | None:
    """Which combination of strata's means is wanted; None if there are no strata."""
    count = stratum_count(form.typed)
    if not count:
        return None
    kind = form.one_of("strata_kind", ("shares", "contrast"))
    weights: dict[str, float] = {}
    total = 0.0
    for place in range(count):
        name = form.line(f"s-{place}-name", LONGEST["stratum"], needed=True)
        at = f"s-{place}-weight"
        weight = form.percent(at) if kind == "shares" else form.number(at)
        if weight == 0.0:
            form.refuse(at, "form.not_zero")
        if name in weights:
            form.refuse(f"s-{place}-name", "form.twice")
        weights[name] = weight or 0.0
        total = math.fsum((total, weight or 0.0))
    known = not any(name.startswith("s-") for name in form.problems)
    if kind == "shares" and known and abs(total - 1.0) > _NEARLY_ALL:
        form.refuse(f"s-{count - 1}-weight", "form.all_shares", total=percent_typed(round(total, 9), form.write))
    return {kind: weights}


# -- settings as they would have been typed ----------------------------------------------------------------------------


def questions_typed(settings: CampaignSettings, write: Writing) -> dict[str, str]:
    """What is asked, as it would have been typed."""
    asked: Sequence[Question] = settings.questions
    found = {"title": settings.title, "question": settings.question if asked else ""}
    if not asked:
        low, high = settings.one_range
        simple = Number(name="?", bounds=(low, high), variance=settings.variance, unit=settings.unit)
        asked = (simple,)
    stated = settings.standard_error
    errors = stated if isinstance(stated, tuple) else (stated,) * len(asked)
    for place, (one, error) in enumerate(zip(asked, errors, strict=True)):
        row = {**dict.fromkeys(PARTS, ""), "kind": one.kind, "name": one.name}
        row["importance"] = "" if one.importance == 1.0 else write.typed(one.importance)
        if isinstance(one, Number):
            row |= {"low": write.typed(one.bounds[0]), "high": write.typed(one.bounds[1]), "unit": one.unit}
            row["variance"] = "" if one.variance is None else write.typed(one.variance)
        if isinstance(one, Choice):
            row["answers"] = "\n".join(one.answers)
        if error is not None:
            row["error"] = write.typed(error) if isinstance(one, Number) else percent_typed(error, write)
        found |= {f"q-{place}-{part}": text for part, text in row.items()}
    if not settings.questions:
        found["q-0-name"] = settings.question
    return {**found, "questions": str(len(asked))}


def strata_typed(settings: CampaignSettings, write: Writing) -> dict[str, str]:
    """The strata, as they would have been typed."""
    wanted = settings.strata
    if wanted is None:
        return {"strata": "0", "strata_kind": "shares"}
    found = {"strata": str(len(wanted.names)), "strata_kind": wanted.kind}
    for place, (name, weight) in enumerate(wanted.weights.items()):
        found[f"s-{place}-name"] = name
        found[f"s-{place}-weight"] = percent_typed(weight, write) if wanted.kind == "shares" else write.typed(weight)
    return found


def is_part(name: str) -> bool:
    """Whether a field belongs to a question or a stratum."""
    letter, _, rest = name.partition("-")
    place, _, part = rest.partition("-")
    known = {"q": PARTS, "s": _STRATUM}.get(letter, ())
    return part in known and place.isascii() and place.isdigit() and len(place) <= 3


def is_number(name: str) -> bool:
    """Whether a field of a question or a stratum holds a number."""
    letter, _, rest = name.partition("-")
    return letter in ("q", "s") and rest.partition("-")[2] in NUMBERS
