"""A campaign file from what is known of a campaign before it runs: TOML with a comment for each field.

What is stated is written as a line; what is left open stands there as a comment, with what one would write. It is read
as a campaign file before it is written anywhere (`checked_text`), so what is written can be run.
"""

import json
import os
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo

from hushbid.campaign.spec import CampaignSpec, Table, about, choices_of, help_of, table_of
from hushbid.campaign.stated import Stated
from hushbid.campaign.terms import campaign_of
from hushbid.common.numbers import count, four_digits
from hushbid.common.staging import STREAM
from hushbid.errors import InputError
from hushbid.priors import Prior

_WIDTH = 110
_MOST_NUMBERS = 8
"""A longer list is not shown."""

_HEAD = (
    "# A campaign for Hushbid. Lines that begin with # are comments; a field behind a # is not stated.",
    "# Paths are relative to this file. Check it and buy with: hushbid run FILE",
)
_BEFORE = {
    "market": "# What you have: exactly one of budget, hard_budget, standard_error and buyer_weight; or each question"
    " states it.",
    "strata": "# What is wanted of the strata: exactly one of shares, contrast and each.",
    "data": "# Until people have delivered, the campaign stops after its decisions.",
}
"""What is said at the top of a table."""


def draft_text(values: Mapping[str, Any], planned: str = "") -> str:
    """Return the file that states these values, after what a plan says of it."""
    lines = [*_HEAD, *textwrap.wrap(planned, width=100, initial_indent="# ", subsequent_indent="# "), ""]
    tables = []
    for name, info in CampaignSpec.model_fields.items():
        table = table_of(info)
        if table is not None:
            tables.append((name, table))
        elif not (name == "unit" and "questions" in values):
            lines += _field(name, info, values.get(name))
    for name, table in tables:
        lines += _table(name, table, values)
    return "\n".join(lines) + "\n"


def _table(name: str, table: type[Table], values: Mapping[str, Any]) -> Iterator[str]:
    stated = values.get(name)
    if name == "questions":
        for one in stated or ():
            yield from ("", "[[questions]]", *(f"{key} = {toml_value(value)}" for key, value in one.items()))
        return
    if name == "strata" and stated is None:
        return
    if name == "server":
        yield from (
            ("", "[server]", *(f"{key} = {toml_value(value)}" for key, value in stated.items())) if stated else ()
        )
        return
    absent = name == "data" and stated is None
    yield from ("", *([_BEFORE[name]] if name in _BEFORE else []), f"{'# ' * absent}[{name}]")
    per_question = ("bounds", "variance") if name == "market" and "questions" in values else ()
    for key, info in table.model_fields.items():
        if key not in per_question:
            yield from _field(key, info, (stated or {}).get(key))


def _field(name: str, info: FieldInfo, value: Any) -> Iterator[str]:
    """Yield a field under its help; if it is not stated, as a comment."""
    yield from textwrap.wrap(help_of(info), width=_WIDTH, initial_indent="# ", subsequent_indent="# ")
    example = about(info).example
    if example is None:
        example = choices_of(info)[0] if info.is_required() else info.default
    yield f"# {name} = {toml_value(example)}" if value is None else f"{name} = {toml_value(value)}"


def checked_text(values: Mapping[str, Any], path: Path, planned: str = "") -> str:
    """Return what the file at this path is to hold, which is read first; a file of people may come later.

    Where one is there, its columns are looked at, too.
    """
    text = draft_text(values, planned)
    named = [values.get(table, {}).get("file") for table in ("bids", "data")]
    there = [name is not None and (path.parent / name).exists() for name in named]
    # columns by name take the place of a file that is to come
    stated = Stated.of_text(text, path)
    campaign_of(stated, bids=None if there[0] else {}, data=None if there[1] or not there[0] else {})
    return text


def moved(values: Mapping[str, Any], home: Path, folder: Path) -> dict[str, Any]:
    """Return what a file in ``folder`` states for what one in ``home`` did: paths are relative to the file."""

    def path(name: str) -> str:
        return name if name == STREAM or Path(name).is_absolute() else os.path.relpath(home / name, folder)

    def prior(form: Any) -> Any:
        if not isinstance(form, Mapping) or "family" in form:
            return form
        return {name: path(one) if name == "file" else prior(one) for name, one in form.items()}

    found = dict(values)
    for table in ("bids", "data"):
        if "file" in found.get(table, {}):
            found[table] = {**found[table], "file": path(found[table]["file"])}
    market = found.get("market", {})
    return {**found, "market": {**market, "prior": prior(market.get("prior"))}}


def toml_value(value: Any) -> str:
    """Return a value in TOML."""
    match value:
        case bool():
            return str(value).lower()
        case str():
            # a text of JSON is one of TOML, but for a character that TOML wants escaped
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case int():
            return str(value)
        case float():
            return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
        case list() | tuple():
            return f"[{', '.join(map(toml_value, value))}]"
        case Mapping():
            return f"{{ {', '.join(f'{toml_value(str(name))} = {toml_value(one)}' for name, one in value.items())} }}"
    raise InputError(f"A campaign file cannot hold a {type(value).__name__}.")


def setting_text(value: Any) -> str:
    """Return a setting for people, as a campaign file states it."""
    if value is None:
        return "not stated"
    if isinstance(value, Prior):
        return four_digits(prior_text(value))
    if isinstance(value, list) and len(value) > _MOST_NUMBERS:
        return f"{count(len(value))} values"
    return toml_value(value)


def prior_text(prior: Prior) -> str:
    """Return a prior as a file states it; of one that holds values from a pilot only its family."""
    form = prior.to_dict()
    return str(form["family"]) if _holds_values(form) else prior.to_text()


def _holds_values(form: Any) -> bool:
    """Whether a prior's form holds values that were observed, or a long list of anything."""
    if isinstance(form, Mapping):
        return "values" in form or any(map(_holds_values, form.values()))
    return isinstance(form, list) and (len(form) > _MOST_NUMBERS or any(map(_holds_values, form)))
