"""The rows of a draft's form: its questions in order, and the strata whose means are combined.

Question number k has the fields ``q-k-kind``, ``q-k-name`` and so on, stratum number k ``s-k-name`` and ``s-k-weight``;
how many there are stands in ``questions`` and ``strata``. Buttons that add, remove and move them work on what was
typed, so they need no script.

One question for a number, without a sentence about all of them, is the simple campaign: its range, unit and variance
are the campaign's. Anything else is a survey. Errors of shares, and strata's shares, are typed in per cent.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hushbid.campaign.spec import QuestionTable, range_of
from hushbid.questions import LONGEST_NAME, MOST_QUESTIONS
from hushbid.server.model.checks import LONGEST
from hushbid.server.model.settings import MOST_STRATA
from hushbid.server.pages.form_reading import Reading, percent_typed, typed_value
from hushbid.server.pages.wording import Writing

KINDS = ("number", "yes_no", "choice")
PARTS = ("kind", "name", "low", "high", "unit", "variance", "importance", "answers", "error")
"""What is typed about a question; ``error`` is the standard error that is wanted of it."""

FIELD_PARTS = {"bounds": "high", "standard_error": "error", "": "error"}
"""The part at which a problem of a question's field is said, where its name is another."""

_STRATUM = ("name", "weight")
_NUMBERS = frozenset({"low", "high", "variance", "importance", "error", "weight"})
_ANY = {"gt": 0.0}


def empty_question(place: int, kind: str = "number") -> dict[str, str]:
    """Return the fields of a question of which nothing was typed."""
    return {f"q-{place}-{part}": kind if part == "kind" else "" for part in PARTS}


def question_count(typed: Mapping[str, str]) -> int:
    """Return how many questions a form has: at least one."""
    return max(_count(typed, "questions", MOST_QUESTIONS), 1)


def stratum_count(typed: Mapping[str, str]) -> int:
    """Return how many strata a form has."""
    return _count(typed, "strata", MOST_STRATA)


def _count(typed: Mapping[str, str], name: str, most: int) -> int:
    text = typed.get(name, "")
    return min(int(text), most) if text.isascii() and text.isdigit() and len(text) <= 4 else 0


def is_part(name: str) -> bool:
    """Return whether a field belongs to a question or a stratum."""
    letter, _, rest = name.partition("-")
    place, _, part = rest.partition("-")
    known = {"q": PARTS, "s": _STRATUM}.get(letter, ())
    return part in known and place.isascii() and place.isdigit() and len(place) <= 3


def is_number(name: str) -> bool:
    """Return whether a field of a question or a stratum holds a number."""
    return is_part(name) and name.rpartition("-")[2] in _NUMBERS


# -- buttons -----------------------------------------------------------------------------------------------------------


def pressed(typed: Mapping[str, str], action: str) -> tuple[dict[str, str], str] | None:
    """Return the form after a button that changes its rows, and where to look; None for any other button."""
    what, _, place = action.partition(":")
    row, _, change = what.partition("-")
    if row == "question" and change in ("add", "remove", "up", "down"):
        rows = [_row(typed, "q", k, PARTS) for k in range(question_count(typed))]
        new = {**dict.fromkeys(PARTS, ""), "kind": place if place in KINDS else "number"}
        after, at = _changed(rows, new, change, place, MOST_QUESTIONS)
        return _with_rows(typed, "q", "questions", after or [{**new, "kind": "number"}]), f"q-{at}"
    if row == "stratum" and change in ("add", "remove"):
        rows = [_row(typed, "s", k, _STRATUM) for k in range(stratum_count(typed))]
        after, _ = _changed(rows, {}, change, place, MOST_STRATA)
        return _with_rows(typed, "s", "strata", after), "strata-group"
    return None


def _row(typed: Mapping[str, str], letter: str, place: int, parts: Sequence[str]) -> dict[str, str]:
    return {part: typed.get(f"{letter}-{place}-{part}", "") for part in parts}


def _changed(
    rows: list[dict[str, str]], new: dict[str, str], what: str, place: str, most: int
) -> tuple[list[dict[str, str]], int]:
    """Return rows after one was added, removed or moved, and which one to look at."""
    if what == "add":
        return ([*rows, new], len(rows)) if len(rows) < most else (rows, len(rows) - 1)
    at = int(place) if place.isascii() and place.isdigit() and len(place) <= 4 else -1
    if not 0 <= at < len(rows):
        return rows, 0
    if what == "remove":
        return rows[:at] + rows[at + 1 :], max(at - 1, 0)
    other = at - 1 if what == "up" else at + 1
    if not 0 <= other < len(rows):
        return rows, at
    rows[at], rows[other] = rows[other], rows[at]
    return rows, other


def _with_rows(typed: Mapping[str, str], letter: str, count: str, rows: Sequence[Mapping[str, str]]) -> dict[str, str]:
    rest = {name: text for name, text in typed.items() if not name.startswith(f"{letter}-")}
    fields = {f"{letter}-{place}-{part}": text for place, row in enumerate(rows) for part, text in row.items()}
    return {**rest, **fields, count: str(len(rows))}


# -- from what is typed to a campaign ----------------------------------------------------------------------------------


def is_survey(typed: Mapping[str, str]) -> bool:
    """Return whether a form asks anything but one number."""
    return question_count(typed) > 1 or bool(typed.get("question", "").strip()) or typed.get("q-0-kind") != "number"


def read_questions(form: Reading, values: dict[str, Any]) -> None:
    """Put what is asked into the values of a campaign: one number, or questions."""
    typed, survey = form.typed, is_survey(form.typed)
    asked = [_read_question(form, place, survey=survey) for place in range(question_count(typed))]
    _refuse_twice(form, [(f"q-{place}-name", one.get("name", "")) for place, one in enumerate(asked)])
    title = form.text("title", LONGEST["title"], needed=True, line=True)
    about = form.text("question")
    values |= {"title": title, "question": (about or title) if survey else asked[0].get("name")}
    if survey:
        values["questions"] = asked
        return
    number = asked[0]
    values |= {"unit": number["unit"]} if "unit" in number else {}
    values["market"] |= {name: number[name] for name in ("bounds", "variance", "standard_error") if name in number}


def _read_question(form: Reading, place: int, *, survey: bool) -> dict[str, Any]:
    at, tables = f"q-{place}-", QuestionTable.model_fields
    kind = form.one_of(f"{at}kind", KINDS)
    longest = LONGEST_NAME if survey else LONGEST["question"]
    one: dict[str, Any] = {"kind": kind, "name": form.text(f"{at}name", longest, needed=True, line=survey)}
    if question_count(form.typed) > 1:
        one["importance"] = form.optional(f"{at}importance", form.number, **range_of(tables["importance"]))
    if kind == "number":
        low, high = form.number(f"{at}low"), form.number(f"{at}high")
        one["bounds"] = None if low is None or high is None else [low, high]
        one["unit"] = form.text(f"{at}unit", LONGEST["unit"], line=True)
        one["variance"] = form.optional(f"{at}variance", form.number, **_ANY)
    elif kind == "choice":
        one["answers"] = [line.strip() for line in form.given(f"{at}answers").splitlines() if line.strip()]
        if not one["answers"]:
            form.refuse(f"{at}answers", "field.missing")
    if form.typed.get("goal") == "accuracy":
        name = f"{at}error"
        one["standard_error"] = form.number(name, **_ANY) if kind == "number" else form.percent(name)
    return {name: value for name, value in one.items() if value not in (None, "")}


def read_strata(form: Reading) -> dict[str, Any]:
    """Return which linear combination of strata's means is wanted; nothing if there are no strata."""
    if not stratum_count(form.typed):
        return {}
    kind, weights, names = form.one_of("strata_kind", ("shares", "contrast")), {}, []
    for place in range(stratum_count(form.typed)):
        name, at = form.text(f"s-{place}-name", LONGEST["stratum"], needed=True, line=True), f"s-{place}-weight"
        weights[name] = (form.percent(at) if kind == "shares" else form.number(at)) or 0.0
        names.append((f"s-{place}-name", name))
        if weights[name] == 0.0:
            form.refuse(at, "form.not_zero")
    _refuse_twice(form, names)
    return {"strata": {kind: weights}}


def _refuse_twice(form: Reading, names: Sequence[tuple[str, str]]) -> None:
    known: set[str] = set()
    for field, name in names:
        if name and name in known:
            form.refuse(field, "form.twice")
        known.add(name)


# -- a campaign as it would have been typed ----------------------------------------------------------------------------


def rows_typed(values: Mapping[str, Any], write: Writing) -> Iterator[tuple[str, str]]:
    """Yield the fields of what is asked, and of whom."""
    market, asked = values.get("market", {}), values.get("questions", [])
    yield "question", values.get("question", "") if asked else ""
    simple = {"kind": "number", "name": values.get("question", ""), "unit": values.get("unit")}
    simple |= {name: market.get(name) for name in ("bounds", "variance", "standard_error")}
    yield "questions", str(len(asked) or 1)
    for place, one in enumerate(asked or [simple]):
        low, high = one.get("bounds") or (None, None)
        shown = percent_typed if one.get("kind") != "number" else typed_value
        row = {**dict.fromkeys(PARTS), **one, "low": low, "high": high, "error": None}
        row["importance"] = None if row["importance"] == 1.0 else row["importance"]
        row["answers"] = "\n".join(row["answers"] or ())
        fields = {part: typed_value(row[part], write) for part in PARTS}
        fields["error"] = shown(one.get("standard_error"), write)
        yield from ((f"q-{place}-{part}", text) for part, text in fields.items())
    strata = values.get("strata", {})
    kind = "contrast" if "contrast" in strata else "shares"
    yield from (("strata_kind", kind), ("strata", str(len(strata.get(kind, ())))))
    for place, (name, weight) in enumerate(strata.get(kind, {}).items()):
        yield f"s-{place}-name", name
        yield f"s-{place}-weight", (percent_typed if kind == "shares" else typed_value)(weight, write)
