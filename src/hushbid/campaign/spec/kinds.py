"""What a field of a campaign may hold, and what is said of it."""

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, ClassVar, Literal, Union, get_args, get_origin

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic.fields import FieldInfo

from hushbid.errors import InputError

MOST_PEOPLE = 10**12


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What is to be said of a field or a type of fields beyond its help."""

    allowed: str = ""
    """What may be stated, after "must be", where no type and no limits say it."""

    absent: str = ""
    """What holds if the field is left out, where that is no value of its own."""

    example: Any = None
    """What one might state."""


class Table(BaseModel):
    """A table of a campaign file."""

    is_section: ClassVar[bool] = True
    """Whether it has a head of its own in a file; if not, it is the value of a field."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True)


# -- what fields may hold; a ValueError without a sentence means: not what is allowed ----------------------------------


def as_stratum(label: str) -> str:
    """Return the name of a stratum in the form in which two are compared: as ids are, so capitals differ."""
    return unicodedata.normalize("NFC", label).strip()


def _text(value: str) -> str:
    if "\0" in value:
        raise ValueError("must be a text without zero characters")
    if not value.strip():
        raise ValueError
    return value.strip()


def _bounds(value: object) -> tuple[float, float]:
    given = value if isinstance(value, list | tuple) else ()
    if len(given) != 2 or any(isinstance(one, bool) or not isinstance(one, int | float) for one in given):
        raise ValueError
    if not given[0] < given[1] or not all(abs(one) < 1e400 for one in given):
        raise ValueError
    from hushbid.common.arrays import as_bounds  # NumPy is loaded where there is something to read

    try:
        return as_bounds(given)
    except InputError as problem:
        raise ValueError(str(problem).removeprefix(f"{problem.field} ").rstrip(".")) from None
    except OverflowError:
        raise ValueError from None


def by_stratum(value: dict[str, Any]) -> dict[str, Any]:
    """Return a table with a value for each stratum, by names that can be compared."""
    if not value:
        raise ValueError
    found = {as_stratum(label): one for label, one in value.items()}
    if len(found) < len(value) or "" in found:
        raise ValueError("must name every stratum once, and none by an empty text")
    return found


_Finite = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Correlation = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Portion = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=MOST_PEOPLE)]
Flag = Annotated[bool, About(allowed="true or false")]
Text = Annotated[str, AfterValidator(_text), About(allowed="a text in quotes")]
Bounds = Annotated[
    tuple[float, float],
    BeforeValidator(_bounds),
    WithJsonSchema({"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}),
    About(allowed="two numbers, the smaller first: [0, 10]"),
]
NumberByStratum = Annotated[
    dict[str, _Finite],
    AfterValidator(by_stratum),
    About(allowed="a number for each stratum: { north = 0.4, south = 0.6 }"),
]
CountByStratum = Annotated[
    dict[str, Annotated[int, Field(ge=1, le=MOST_PEOPLE)]],
    AfterValidator(by_stratum),
    About(allowed="a whole number of people for each stratum: { north = 4000, south = 6000 }"),
]


# -- what is said of fields --------------------------------------------------------------------------------------------


def table_of(field: FieldInfo, *, sections: bool = True) -> type[Table] | None:
    """Return the table that a field holds, or each of a list of tables; None for any other field.

    Unless only ``sections`` of a file are wanted, also a table that may stand in the place of a number.
    """
    for kind in _kinds(field.annotation):
        if isinstance(kind, type) and issubclass(kind, Table) and (kind.is_section or not sections):
            return kind
    return None


def fields_of(model: type[Table], before: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Walk all fields that hold a value, by their full names: ``market.budget``."""
    for name, field in model.model_fields.items():
        inner = table_of(field)
        if inner is None:
            yield f"{before}{name}", field
        else:
            yield from fields_of(inner, f"{before}{name}.")


def help_of(field: FieldInfo) -> str:
    """Return the sentence of help of a field."""
    return " ".join((field.description or "").partition("\n\n")[0].split())


def about(field: FieldInfo) -> About:
    """Return what is said of a field beyond its help."""
    said = [one for one in field.metadata if isinstance(one, About)]
    return About(
        allowed=allowed_of(field),
        absent=next((one.absent for one in said if one.absent), ""),
        example=next((one.example for one in said if one.example is not None), None),
    )


def allowed_of(field: FieldInfo) -> str:
    """Return what a field may hold, after "must be"."""
    for said in (one.allowed for one in field.metadata if isinstance(one, About)):
        if said:
            return said
    for kind in _kinds(field.annotation):
        if get_origin(kind) is Literal:
            return " or ".join(f'"{word}"' for word in get_args(kind))
        if isinstance(kind, About) and kind.allowed:
            return kind.allowed
    if limits := range_of(field):
        if int in _kinds(field.annotation):
            return f"a whole number from {limits['ge']} to {limits['le']}"
        words = {"gt": "above", "ge": "of at least", "le": "at most"}
        return f"a number {' and '.join(f'{words[name]} {limit:g}' for name, limit in limits.items())}"
    return "a table" if table_of(field) else "a text in quotes"


def range_of(field: FieldInfo) -> dict[str, float]:
    """Return the limits of a number, as far as it has any: ``gt``, ``ge`` and ``le``."""
    kinds = (*field.metadata, *_kinds(field.annotation))
    inner = [one for kind in kinds for one in (*getattr(kind, "metadata", ()), kind)]
    return {name: getattr(one, name) for name in ("gt", "ge", "le") for one in inner if hasattr(one, name)}


def choices_of(field: FieldInfo) -> tuple[str, ...]:
    """Return the words of which a field holds one; none if it may hold anything else."""
    return next((get_args(kind) for kind in _kinds(field.annotation) if get_origin(kind) is Literal), ())


def _kinds(annotation: Any) -> Iterator[Any]:
    """Walk a type from outside to inside, with what annotates it."""
    yield annotation
    if get_origin(annotation) in (Annotated, Union, UnionType, list):
        for one in get_args(annotation):
            yield from _kinds(one)
