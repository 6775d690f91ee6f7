"""Arrays of people's numbers: what they are called, how they are read, and one sentence for what is not allowed.

Generous inputs, strict outputs: a number, a list, a NumPy array or anything NumPy can read (a pandas or Polars series)
comes in; arrays of 64-bit floats go on. Everything is checked once, at the public edge, by a function of this module;
text, dates, complex numbers and masked entries are refused, never converted.
"""

import math
import numbers
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import fields
from fractions import Fraction
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from hushbid.errors import InputError

FloatArray = NDArray[np.float64]
"""Bids, costs, losses, payments, weights: one number per person, or one per point of a curve."""

IntArray = NDArray[np.int64]
"""Amounts in the smallest unit of a currency, steps of a grid, codes of groups."""

IndexArray = NDArray[np.intp]
"""Positions of people among all, or how many come before a position."""

BoolArray = NDArray[np.bool_]
"""A question answered for everybody."""

HashArray = NDArray[np.uint64]
"""Ids as hashes of 64 bits."""


class ArrayConvertible(Protocol):
    """Anything NumPy can turn into an array: a pandas or Polars series, for instance."""

    def __array__(self, *args: Any, **kwargs: Any) -> NDArray[Any]:
        """The values as a NumPy array."""
        ...


Numbers = Sequence[float] | NDArray[Any] | ArrayConvertible
"""A vector (or any other shape) of numbers."""

Rng = np.random.Generator | int
"""What draws: a generator, or the seed of a new one."""

ID_KINDS = "texts or integers"
"""What may name a person. Other kinds are written differently by every program that reads them: one person would have
several names."""

_SMALLEST_WIDTH, _LARGEST_BOUND = 1e-100, 1e100  # noise can be 2**54 times as wide, and is squared
_ROWS_SHOWN = 5
_PLURAL = {"is": "are", "does": "do"}


# -- one number --------------------------------------------------------------------------------------------------------


def as_number(value: Any, name: str) -> float:
    """One number; text and truth values are refused, not converted."""
    try:
        if isinstance(value, (str, bytes, bool, np.bool_)) or np.ndim(value) > 0:
            raise TypeError
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} must be a number, got {value!r}.", field=name) from None


def as_count(value: object, name: str, *, least: int) -> int:
    """A whole number of people, campaigns or points."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise InputError(f"{name} must be a whole number of at least {least}, got {value!r}.", field=name)
    return int(value)


def as_row(value: object, n: int) -> int:
    """A person's place among ``n``; as usual, -1 is the last."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not -n <= value < n:
        raise InputError(f"user must be a row from 0 to {n - 1}, got {value!r}.", field="user")
    return int(value) % n


def as_generator(rng: object) -> np.random.Generator:
    """Return the generator itself, or a new one with this seed."""
    if isinstance(rng, int | np.integer) and not isinstance(rng, bool) and rng >= 0:
        return np.random.default_rng(int(rng))
    if not isinstance(rng, np.random.Generator):
        raise InputError(f"rng must be a numpy.random.Generator or a seed, got {type(rng).__name__}.", field="rng")
    return rng


def as_bounds(bounds: object) -> tuple[float, float]:
    """The public range of the data: two numbers, the lower first, of a size that noise and squares can be computed of.

    Everything that takes a range asks here, so that what can be decided can be released.
    """
    try:
        low, high = (_end_of_range(bound) for bound in bounds)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        raise InputError(f"bounds must be two numbers (low, high), got {bounds!r}.", field="bounds") from None
    if not (max(abs(low), abs(high)) <= _LARGEST_BOUND and high - low >= _SMALLEST_WIDTH):
        raise InputError(
            f"bounds must be two numbers low < high of size at most {_LARGEST_BOUND:g}, at least {_SMALLEST_WIDTH:g}"
            f" apart, got {(low, high)}.",
            field="bounds",
        )
    return low + 0.0, high + 0.0


def _end_of_range(value: object) -> float:
    if isinstance(value, (str, bytes, bool)) or np.ma.is_masked(value):
        raise TypeError
    try:
        return float(value)  # type: ignore[arg-type]
    except OverflowError:  # an integer beyond every float, too large for a bound whatever its sign
        return math.inf


# -- one number per person ---------------------------------------------------------------------------------------------


def as_floats(values: object, name: str, error: type[InputError] = InputError) -> FloatArray:
    """Numbers of any shape; the caller's own array if it holds 64-bit floats already."""
    if type(values) is np.ndarray and values.dtype == np.float64:
        return values
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        refuse_rows(np.ma.getmaskarray(values), f"{name} must be numbers", end="masked", field=name, error=error)
    try:
        array = np.asarray(values)
        if values is None or array.dtype.kind not in "fiubO":
            raise TypeError
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        told = f"{name} must be numbers, got {type(values).__name__} that does not convert."
        raise error(told, field=name) from None


def as_losses(privacy_loss: object, *, some_positive: bool = True, name: str = "privacy_loss") -> FloatArray:
    """Privacy losses, as a copy: one-dimensional, nonnegative, ``inf`` allowed, not all zero unless said so."""
    losses = as_floats(privacy_loss, name)
    if losses.ndim != 1 or losses.size == 0:
        told = f"{name} must be a nonempty one-dimensional array, got shape {losses.shape}."
        raise InputError(told, field=name)
    refuse_rows(~(losses >= 0), f"{name} must be nonnegative", field=name)
    if some_positive and not losses.any():
        told = f"{name} must be positive for at least one person, got zero for all {losses.size}."
        raise InputError(told, field=name)
    return losses + 0.0  # without negative zeros


def as_nonnegative(value: object, name: str, *, per_person: bool = True) -> float | FloatArray:
    """One finite number of at least 0, or (``per_person``) an array of them that cannot be changed any more."""
    return _as_amounts(value, name, per_person=per_person, zero=True)


def as_positive(value: object, name: str) -> float | FloatArray:
    """One finite number above 0, or an array of them that cannot be changed any more."""
    return _as_amounts(value, name, per_person=True, zero=False)


def _as_amounts(value: object, name: str, *, per_person: bool, zero: bool) -> float | FloatArray:
    if value is None or isinstance(value, (str, bytes, bool, np.bool_)):
        raise InputError(f"{name} must be a number, got {value!r}.", field=name)
    array = as_floats(value, name)
    if array.ndim > (1 if per_person else 0) or array.size == 0:
        told = f"{name} must be one number{' or one per person' if per_person else ''}, got shape {array.shape}."
        raise InputError(told, field=name)
    _refuse_outside(array, name, zero=zero)
    if array.ndim == 0:
        return float(array)
    array = array.copy()
    array.setflags(write=False)
    return array


def as_variance(variance: object, n: int) -> float | FloatArray:
    """A variance for all of ``n`` people, or one for each: above 0 and finite."""
    if isinstance(variance, float) and 0.0 < variance < math.inf:  # as the solvers ask, a thousand times over
        return float(variance)
    spread = as_floats(variance, "variance")
    if spread.shape not in ((), (n,)):
        told = f"variance must be one number or one per person ({n}), got shape {spread.shape}."
        raise InputError(told, field="variance")
    _refuse_outside(spread, "variance", zero=False)
    return spread if spread.ndim else float(spread)


def varies_too_much(variance: float, bounds: tuple[float, float]) -> bool:
    """Whether data within bounds cannot vary so much: at most by a quarter of the squared width, but for rounding."""
    return variance > (bounds[1] - bounds[0]) ** 2 / 4.0 * (1.0 + 1e-12)


TOO_MUCH_VARIANCE = "must not exceed a quarter of the squared width of bounds: no data vary more."
"""What is said of a variance that `varies_too_much`."""


def _refuse_outside(array: FloatArray, name: str, *, zero: bool) -> None:
    bad = ~(((array >= 0.0) if zero else (array > 0.0)) & (array < math.inf))
    allowed = "nonnegative and finite" if zero else "above 0 and finite"
    if array.ndim == 0 and bad.any():
        raise InputError(f"{name} must be {allowed}, got {float(array)}.", field=name)
    refuse_rows(bad, f"{name} must be {allowed}", field=name)


def rounded_sum(values: FloatArray) -> float:
    """The correctly rounded sum: ``math.fsum``, but for many zeros, and one number many times, quicker.

    >>> rounded_sum(np.array([1e16, 1.0, 0.0, -1e16])), rounded_sum(np.broadcast_to(0.1, (10,)))
    (1.0, 1.0)
    """
    if values.size and math.isfinite(first := float(values.flat[0])) and (values == first).all():
        return float(Fraction(first) * values.size)
    return math.fsum(values[values != 0.0].tolist())


def spread(people: int, rows: IndexArray, *columns: FloatArray) -> list[FloatArray]:
    """Columns of everybody from those of some people; nobody else has anything.

    >>> [column.tolist() for column in spread(3, np.array([1]), np.array([0.5]))]
    [[0.0, 0.5, 0.0]]
    """
    found = [np.zeros(people) for _ in columns]
    for whole, column in zip(found, columns, strict=True):
        whole[rows] = column
    return found


# -- who ---------------------------------------------------------------------------------------------------------------


def rows_text(bad: NDArray[Any], verb: Literal["is", "does", ""] = "", *, numbered: IntArray | None = None) -> str:
    """The rows where ``bad`` is true, as the subject of a sentence, with its verb if one is given; never the values.

    ``numbered`` are the numbers by which the reader knows the rows, if those are not 0, 1, 2, ...

    >>> rows_text(np.array([False, True])), rows_text(np.arange(9) > 1, "does")
    ('row 1', 'rows 2, 3, 4, 5, 6 and 2 more do')
    """
    rows = np.unique(np.nonzero(np.atleast_1d(bad))[0])
    known = rows if numbered is None else numbered[rows]
    text = ", ".join(str(row) for row in known[:_ROWS_SHOWN].tolist())
    if rows.size == 1:
        return f"row {text} {verb}".rstrip()
    more = f" and {rows.size - _ROWS_SHOWN} more" if rows.size > _ROWS_SHOWN else ""
    return f"rows {text}{more} {_PLURAL.get(verb, '')}".rstrip()


def refuse_rows(
    bad: NDArray[Any],
    rule: str,
    verb: Literal["is", "does"] = "is",
    *,
    field: str,
    end: str = "not",
    error: type[InputError] = InputError,
) -> None:
    """Refuse rows where ``bad`` is true, by a rule that they break.

    >>> refuse_rows(np.array([False, True]), "bids must be numbers", field="bids")
    Traceback (most recent call last):
    hushbid.errors.InputError: bids must be numbers, but row 1 is not.
    """
    if bad.any():
        raise error(f"{rule}, but {rows_text(bad, verb)} {end}".rstrip() + ".", field=field, row=first_row(bad))


def first_row(bad: NDArray[Any]) -> int:
    """The first row where ``bad`` is true."""
    return int(np.nonzero(np.atleast_1d(bad))[0][0])


def id_texts(ids: Iterable[object]) -> list[str]:
    """Ids in the one form in which they are compared and hashed: texts in Unicode's composed form (NFC) without spaces
    around; empty where one is missing. One with a character that nobody sees is refused.

    >>> id_texts([" ann ", "Zoe\\u0308", 7, None])
    ['ann', 'Zoë', '7', '']
    """
    known: list[Any] = list(ids)
    try:
        whole = "".join(known)
    except TypeError:  # not all are texts
        return [_id_text(one) for one in known]
    if not whole.isascii():
        return [_id_text(one) for one in known]
    # the usual case, all at once: often there is not a space in any of them
    return known if whole.split(maxsplit=1) == [whole] else [one.strip() for one in known]


def are_ascii(ids: list[Any]) -> bool:
    """Whether all are texts of the plainest letters, of which none is hidden."""
    try:
        return "".join(ids).isascii()
    except TypeError:  # not all are texts
        return False


def has_no_width(text: str) -> bool:
    """Whether a text holds a character that nobody sees: of no width, or one that only directs others.

    Two ids that differ in it alone look the same.

    >>> has_no_width("ann"), has_no_width("an\u200bn"), has_no_width("Zoë")
    (False, True, False)
    """
    return not text.isascii() and any(unicodedata.category(sign) == "Cf" for sign in text)


def _id_text(one: object) -> str:
    if one is None or (isinstance(one, float) and math.isnan(one)):
        return ""
    if isinstance(one, str):
        if has_no_width(one):
            raise InputError("ids must not hold characters that nobody sees, but one does.", field="ids")
        return one.strip() if one.isascii() else unicodedata.normalize("NFC", one).strip()
    if isinstance(one, numbers.Integral) and not isinstance(one, bool):
        return str(int(one))
    raise InputError(f"ids must hold {ID_KINDS}, not {type(one).__name__}.", field="ids")


# -- what is shown -----------------------------------------------------------------------------------------------------


def counted_repr(thing: Any) -> str:
    """Return the repr of a dataclass with its arrays counted: their numbers may belong to people, and end up in a log.

    >>> from dataclasses import dataclass
    >>> @dataclass(repr=False)
    ... class Losses:
    ...     limit: float
    ...     all: FloatArray
    >>> counted_repr(Losses(0.5, np.array([0.1, 0.2])))
    'Losses(limit=0.5, all=<2 numbers>)'
    """
    shown = ((one.name, getattr(thing, one.name)) for one in fields(thing) if one.repr)
    texts = (f"{name}={f'<{x.size:,} numbers>' if isinstance(x, np.ndarray) else repr(x)}" for name, x in shown)
    return f"{type(thing).__name__}({', '.join(texts)})"
