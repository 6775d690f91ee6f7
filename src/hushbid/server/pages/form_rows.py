"""The rows of a draft's form: its questions in order, and the strata whose means are combined.

Question number k has the fields ``q-k-kind``, ``q-k-name`` and so on, stratum number k ``s-k-name`` and ``s-k-weight``;
how many there are stands in ``questions`` and ``strata``. Buttons that add, remove and move them work on what was
typed, so they need no script.

One question for a number, without a sentence about all of them, is the simple campaign: its range, unit and variance
are the campaign's. Anything else is a survey. Errors of shares, and strata's shares, are typed in per cent.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from hushbid.campaign.spec import QuestionTable, range_of
from hushbid.questions import LONGEST_NAME, MOST_QUESTIONS
from hushbid.server.model.checks import LONGEST
from hushbid.server.model.settings import MOST_STRATA
from hushbid.server.pages.form_reading import Reading, typed_value
from hushbid.server.pages.wording import Writing

KINDS = ("number", "yes_no", "choice")
PARTS = ("kind", "name", "low", "high", "unit", "variance", "importance", "answers", "error")
"""What is typed about a question; ``error`` is the standard error that is wanted of it."""

FIELD_PARTS = {"bounds": "high", "standard_error": "error", "": "error"}
"""The part at which a problem of a question's field is said, where its name is another."""

_ROWS = {"q": ("questions", PARTS, MOST_QUESTIONS), "s": ("strata", ("name", "weight"), MOST_STRATA)}
"""By the letter of a row: the field with their number, their parts, and how many there may be."""

_NUMBERS = frozenset({"low", "high", "variance", "importance", "error", "weight"})


def empty_question(place: int) -> dict[str, str]:
    """Return the fields of a question of which nothing was typed."""
    return {f"q-{place}-{part}": "number" if part == "kind" else "" for part in PARTS}


def rows_of(typed: Mapping[str, str], letter: str) -> list[dict[str, str]]:
    """Return the rows of questions or strata, by their parts; there is one question at least."""
    name, parts, most = _ROWS[letter]
    text = typed.get(name, "")
    count = min(int(text), most) if text.isascii() and text.isdigit() and len(text) <= 4 else 0
    count = max(count, int(letter == "q"))
    return [{part: typed.get(f"{letter}-{place}-{part}", "") for part in parts} for place in range(count)]


def part_of(name: str) -> tuple[str, int, str] | None:
    """Return the letter, the place and the part that a field of a row names; None for any other field."""
    letter, _, rest = name.partition("-")
    place, _, part = rest.partition("-")
    known = letter in _ROWS and part in _ROWS[letter][1] and place.isascii() and place.isdigit() and len(place) <= 3
    return (letter, int(place), part) if known else None


def is_number(name: str) -> bool:
    """Return whether a field of a question or a stratum holds a number."""
    found = part_of(name)
    return found is not None and found[2] in _NUMBERS


def pressed(typed: Mapping[str, str], action: str) -> tuple[dict[str, str], str] | None:
    """Return the form after a button that changes its rows, and where to look; None for any other button."""
    what, _, place = action.partition(":")
    row, _, change = what.partition("-")
    letter = {"question": "q", "stratum": "s"}.get(row)
    if letter is None or change not in ("add", "remove", "up", "down"):
        return None
    name, parts, most = _ROWS[letter]
    rows, at = rows_of(typed, letter), int(place) if place.isascii() and place.isdigit() and len(place) <= 4 else -1
    if change == "add" and len(rows) < most:
        kind = {"kind": place if place in KINDS else "number"} if letter == "q" else {}
        rows.append({**dict.fromkeys(parts, ""), **kind})
    if change == "add":
        at = len(rows) - 1
    elif not 0 <= at < len(rows):
        at = 0
    elif change == "remove":
        del rows[at]
        at = max(at - 1, 0)
    elif 0 <= (other := at - 1 if change == "up" else at + 1) < len(rows):
        rows[at], rows[other], at = rows[other], rows[at], other
    rest = {field: text for field, text in typed.items() if not field.startswith(f"{letter}-")}
    rest |= {} if rows or letter == "s" else empty_question(0)
    fields = {f"{letter}-{place}-{part}": text for place, one in enumerate(rows) for part, text in one.items()}
    count = max(len(rows), int(letter == "q"))
    return {**rest, **fields, name: str(count)}, f"q-{at}" if letter == "q" else "strata-group"


# -- from what is typed to a campaign ----------------------------------------------------------------------------------


def is_survey(typed: Mapping[str, str]) -> bool:
    """Return whether a form asks anything but one number."""
    asked = rows_of(typed, "q")
    return len(asked) > 1 or bool(typed.get("question", "").strip()) or asked[0]["kind"] != "number"


def read_questions(form: Reading, values: dict[str, Any]) -> None:
    """Put what is asked into the values of a campaign: one number, or questions."""
    survey, count = is_survey(form.typed), len(rows_of(form.typed, "q"))
    asked = [_read_question(form, place, survey=survey, several=count > 1) for place in range(count)]
    _refuse_twice(form, {f"q-{place}-name": one.get("name", "") for place, one in enumerate(asked)})
    title = form.text("title", LONGEST["title"], needed=True, line=True)
    about = form.text("question")
    values |= {"title": title, "question": (about or title) if survey else asked[0].get("name")}
    if survey:
        values["questions"] = asked
        return
    [number] = asked
    values |= {"unit": number["unit"]} if "unit" in number else {}
    values["market"] |= {name: number[name] for name in ("bounds", "variance", "standard_error") if name in number}


def _read_question(form: Reading, place: int, *, survey: bool, several: bool) -> dict[str, Any]:
    at = f"q-{place}-"
    kind = form.one_of(f"{at}kind", KINDS)
    longest = LONGEST_NAME if survey else LONGEST["question"]
    one: dict[str, Any] = {"kind": kind, "name": form.text(f"{at}name", longest, needed=True, line=survey)}
    if several:
        allowed: dict[str, Any] = range_of(QuestionTable.model_fields["importance"])
        one["importance"] = form.number(f"{at}importance", optional=True, **allowed)
    if kind == "number":
        low, high = form.number(f"{at}low"), form.number(f"{at}high")
        one["bounds"] = None if low is None or high is None else [low, high]
        one["unit"] = form.text(f"{at}unit", LONGEST["unit"], line=True)
        one["variance"] = form.number(f"{at}variance", optional=True, gt=0.0)
    elif kind == "choice":
        one["answers"] = [line.strip() for line in form.given(f"{at}answers").splitlines() if line.strip()]
        if not one["answers"]:
            form.refuse(f"{at}answers", "field.missing")
    if form.typed.get("goal") == "accuracy":
        share: dict[str, Any] = {"kind": "percent"} if kind != "number" else {"gt": 0.0}
        one["standard_error"] = form.number(f"{at}error", **share)
    return {name: value for name, value in one.items() if value not in (None, "")}


def read_strata(form: Reading) -> dict[str, Any]:
    """Return which linear combination of strata's means is wanted; nothing if there are no strata."""
    rows = rows_of(form.typed, "s")
    if not rows:
        return {}
    kind, weights, names = form.one_of("strata_kind", ("shares", "contrast")), {}, {}
    for place in range(len(rows)):
        field, at = f"s-{place}-name", f"s-{place}-weight"
        name = names[field] = form.text(field, LONGEST["stratum"], needed=True, line=True)
        weights[name] = form.number(at, "percent" if kind == "shares" else "number") or 0.0
        if weights[name] == 0.0:
            form.refuse(at, "form.not_zero")
    _refuse_twice(form, names)
    return {"strata": {kind: weights}}


def _refuse_twice(form: Reading, names: Mapping[str, str]) -> None:
    known: set[str] = set()
    for field, name in names.items():
        if name and name in known:
            form.refuse(field, "form.twice")
        known.add(name)


# -- a campaign as it would have been typed ----------------------------------------------------------------------------


def rows_typed(values: Mapping[str, Any], write: Writing) -> Iterator[tuple[str, str]]:
    """Yield the fields of what is asked, and of whom."""
    market, asked = values.get("market", {}), values.get("questions", [])
    simple = {"kind": "number", "name": values.get("question", ""), "unit": values.get("unit")}
    simple |= {name: market.get(name) for name in ("bounds", "variance", "standard_error")}
    yield from (("question", values.get("question", "") if asked else ""), ("questions", str(len(asked) or 1)))
    for place, one in enumerate(asked or [simple]):
        low, high = one.get("bounds") or (None, None)
        row = {**dict.fromkeys(PARTS), **one, "low": low, "high": high, "error": one.get("standard_error")}
        row["importance"] = None if row["importance"] == 1.0 else row["importance"]
        row["answers"] = "\n".join(row["answers"] or ())
        for part in PARTS:
            percent = part == "error" and one.get("kind") != "number"
            yield f"q-{place}-{part}", typed_value(row[part], write, percent=percent)
    strata = values.get("strata", {})
    kind = "contrast" if "contrast" in strata else "shares"
    yield from (("strata_kind", kind), ("strata", str(len(strata.get(kind, ())))))
    for place, (name, weight) in enumerate(strata.get(kind, {}).items()):
        yield from (
            (f"s-{place}-name", name),
            (f"s-{place}-weight", typed_value(weight, write, percent=kind == "shares")),
        )
