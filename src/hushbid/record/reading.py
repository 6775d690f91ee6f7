"""From the plain values of a record to its fields, strictly: a value of another type or form is refused.

Plain values have one meaning only: what is read must be written again exactly as it stands, so that ``true`` for 1.0,
``"0.5"`` for 0.5, or a field that is left out because it has its usual value are no second way to say the same.
"""

from collections.abc import Mapping
from typing import Any

from hushbid.disclosure import Release
from hushbid.disclosure.fields import Fields
from hushbid.errors import RecordError
from hushbid.mechanism import Outcome
from hushbid.priors import Grouped
from hushbid.record.money import Money

FORMAT, VERSION = "hushbid record", 1
_FIELDS = (
    *("format", "version", "outcome", "outcome_key", "lower_bound", "totals", "people", "money", "release"),
    *("stamps", "notes", "versions"),
)
_OUTCOME = (
    *("format", "version", "market", "columns", "rent_lower", "rent_upper", "mse", "objective", "incentive_error"),
    "tie_order",
)
_COLUMNS = ("report", "virtual_cost", "privacy_loss", "weight", "payment", "information_rent", "outside_error")


def check_version(values: Any) -> None:
    """Refuse what is not a record of this version."""
    stated = (values.get("format"), values.get("version")) if isinstance(values, Mapping) else None
    if stated != (FORMAT, VERSION) or type(stated[1]) is not int:
        raise RecordError(f"A record must have format {FORMAT!r} and version {VERSION}, got {stated!r}.")


def fields_of(content: Mapping[str, Any], known: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Every field of a record but the hash; ``known`` are outcome, money and release, if they need not be read."""
    given = Fields(content, "record", _FIELDS)
    outcome: Outcome = _outcome(content["outcome"]) if known is None else known["outcome"]
    n = outcome.reports.size
    if known is None:
        money = None if content["money"] is None else Money.from_dict(content["money"], n)
        release = None if content["release"] is None else _release(content["release"])
    else:
        money, release = known["money"], known["release"]
    if release is not None and release.privacy_loss.size != n:
        raise RecordError(f"release must be about {n} people, got {release.privacy_loss.size}.")
    people = Fields(content["people"], "people", ("ids", "groups"))
    groups = people.listed_texts("groups", n)
    # labels may be stated once, in the prior
    if groups is None and isinstance(outcome.market.prior, Grouped):
        groups = list(outcome.market.prior.labels)
    ids = people.listed_texts("ids", n)
    if ids is not None and len(set(ids)) < n:
        raise RecordError("people: ids must all be different, but one occurs twice.")
    return {
        "outcome": outcome,
        "outcome_key": given.text("outcome_key"),
        "lower_bound": given.number("lower_bound"),
        "totals": given.named_numbers("totals"),
        "ids": None if ids is None else tuple(ids),
        "groups": None if groups is None else tuple(groups),
        "money": money,
        "release": release,
        "stamps": tuple(given.listed_texts("stamps") or ()),
        "notes": tuple(given.listed_texts("notes") or ()),
        "versions": given.texts("versions"),
    }


def _outcome(values: Any) -> Outcome:
    given = Fields(values, "outcome", _OUTCOME)
    columns = Fields(values["columns"], "columns", _COLUMNS)
    sizes = [len(columns.numbers(name)) for name in _COLUMNS]
    sizes += [len(given.numbers(name)) for name in ("rent_lower", "rent_upper")]
    if min(sizes) < 1 or min(sizes) < max(sizes):
        raise RecordError(
            "outcome: columns and bounds on rents must have one number per person, and somebody must be there."
        )
    if values["tie_order"] is not None and sorted(given.integers("tie_order")) != list(range(sizes[0])):
        raise RecordError(f"outcome: tie_order must hold every place from 0 to {sizes[0] - 1} once.")
    outcome = Outcome.from_dict(values)
    # what is read must be written again exactly as it stands
    if not _same(values, outcome.to_dict()):
        raise RecordError("outcome: every field must be there, and in the form in which it is written.")
    return outcome


def _release(values: Any) -> Release:
    release = Release.from_dict(values)
    if not _same(values, release.to_dict()):
        raise RecordError("release: every field must be in the form in which it is written.")
    return release


def _same(left: Any, right: Any) -> bool:
    """Equal, types included: 1, 1.0 and true are three things here. (NumPy's doubles are doubles.)"""
    if isinstance(left, float):
        return isinstance(right, float) and bool(left == right)
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(_same(left[name], right[name]) for name in left)
    if isinstance(left, list):
        if set(map(type, left)) == set(map(type, right)) == {float}:
            return bool(left == right)
        return len(left) == len(right) and all(map(_same, left, right))
    return bool(left == right)
