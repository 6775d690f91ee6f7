"""What a release is about: who was promised which privacy loss, on which public range. No data, no market."""

import hashlib
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hushbid.arrays import BoolArray, FloatArray
from hushbid.errors import DataError, InputError
from hushbid.estimation import Setting, as_losses, is_central

_SMALLEST_WIDTH, _LARGEST_BOUND = 1e-100, 1e100  # noise can be 2**54 times as wide, and is squared
SMALLEST_LOSS = 2.0**-53
"""A smaller privacy loss takes more noise than 64 bits hold, so nothing can be released for it."""

_ROWS_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ReleasePlan:
    """A promise to everybody, made before any data are seen.

    >>> plan = ReleasePlan.of([0.5, 1.0], setting="central", bounds=(0, 10))
    >>> plan.people, plan.width, len(plan.key)
    (2, 10.0, 64)
    """

    setting: Setting
    """Where noise is added: "central" (once, to the sum) or "local" (by everybody, before sending)."""

    promised: FloatArray
    """The privacy loss promised to each person, an upper bound; ``inf`` promises nothing, 0 means no data are used."""

    delivered: FloatArray
    """The privacy loss planned for each person, at most the promised one (an estimator may need less)."""

    bounds: tuple[float, float]
    """The public range of the data, chosen without looking at them."""

    variance: FloatArray
    """Declared variance of everybody's data, in squared data units; never taken from the data."""

    key: str
    """Identifies the one release that may ever be drawn from this plan."""

    from_engine: bool = False
    """Whether an engine decided: then the integer grid follows from the promises, not from who delivers, and promises
    are compared by their sums, as their last bits may be others."""

    @classmethod
    def of(
        cls,
        promised: ArrayLike,
        *,
        setting: Setting,
        bounds: tuple[float, float],
        delivered: ArrayLike | None = None,
        variance: ArrayLike | None = None,
        label: str = "",
        key: str | None = None,
        from_engine: bool = False,
    ) -> "ReleasePlan":
        """A validated plan. By default all that is promised is used, and the variance is the largest possible.

        The key is a hash of all other arguments unless given; ``label`` tells campaigns with equal promises apart.
        """
        is_central(setting)
        bounds = as_bounds(bounds)
        allowed = as_losses(promised, some_positive=False, name="promised")
        used = allowed if delivered is None else as_losses(delivered, some_positive=False, name="delivered")
        if used.shape != allowed.shape:
            raise InputError(f"delivered must have one entry per person ({allowed.size}), got {used.size}.")
        if (used > allowed).any():
            raise InputError(f"delivered must not exceed promised, but does in {rows_text(used > allowed)}.")
        spread = _as_variance(variance, bounds, allowed.size)
        # promises do not change any more
        for array in (allowed, used, spread):
            array.setflags(write=False)
        if key is None:
            key = _content_hash(setting, label, bounds, (allowed, used, spread))
        if not key or len(key) > 128 or not all(c.isascii() and (c.isalnum() or c in "-_") for c in key):
            raise InputError("key must be 1 to 128 ASCII letters, digits, '-' or '_'.")
        return cls(
            setting=setting,
            promised=allowed,
            delivered=used,
            bounds=bounds,
            variance=spread,
            key=key,
            from_engine=from_engine,
        )

    def __repr__(self) -> str:  # losses reveal what people reported: not for a log
        return f"ReleasePlan(setting={self.setting!r}, people={self.people}, bounds={self.bounds}, key={self.key!r})"

    @property
    def people(self) -> int:
        """How many people the plan is about."""
        return self.promised.size

    @property
    def width(self) -> float:
        """Width of the public range."""
        low, high = self.bounds
        return high - low

    @property
    def unit_variance(self) -> FloatArray:
        """Everybody's declared variance for a range of width 1."""
        return self.variance / self.width / self.width


def as_bounds(bounds: object) -> tuple[float, float]:
    """The public range of the data: two numbers, the lower first, of a size that noise and squares can be computed of.

    Everything that takes a range asks here, so that what can be decided can be released.
    """
    try:
        low, high = (_end_of_range(bound) for bound in bounds)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        raise InputError(f"bounds must be two numbers (low, high), got {bounds!r}.") from None
    if not (max(abs(low), abs(high)) <= _LARGEST_BOUND and high - low >= _SMALLEST_WIDTH):
        raise InputError(
            f"bounds must be two numbers low < high of size at most {_LARGEST_BOUND:g}, at least {_SMALLEST_WIDTH:g}"
            f" apart, got {(low, high)}."
        )
    return low + 0.0, high + 0.0


def _end_of_range(value: object) -> float:
    if isinstance(value, (str, bytes, bool)) or np.ma.is_masked(value):
        raise TypeError
    try:
        return float(value)  # type: ignore[arg-type]
    except OverflowError:  # an integer beyond every float, too large for a bound whatever its sign
        return math.inf


def as_column(data: object, *, needed: BoolArray) -> FloatArray:
    """Everybody's datum as a float, NaN where it is missing; only ``needed`` rows have to be numbers.

    An error names rows, never values.
    """
    if isinstance(data, np.ma.MaskedArray):
        data = np.ma.filled(data.astype(np.float64), math.nan)
    array = np.asarray(data) if hasattr(data, "__array__") else None
    if array is None or array.dtype == object:
        array = _from_objects(data if array is None else array, needed)
    if array.ndim != 1 or array.dtype.kind not in "fiub":
        raise DataError(f"data must be one number per person, got {array.ndim} dimensions of type {array.dtype}.")
    if array.size != needed.size:
        raise DataError(_wrong_length(needed.size, array.size))
    return array.astype(np.float64)


def rows_text(bad: BoolArray) -> str:
    """``row 3``, or ``rows 3, 5, 8 and 12 more``."""
    rows = [str(row) for row in np.flatnonzero(bad)[: _ROWS_SHOWN + 1]]
    total = int(bad.sum())
    if total == 1:
        return f"row {rows[0]}"
    more = f" and {total - _ROWS_SHOWN} more" if total > _ROWS_SHOWN else ""
    return f"rows {', '.join(rows[:_ROWS_SHOWN])}{more}"


def _wrong_length(people: int, got: int) -> str:
    return f"data must have one entry per person ({people}), got {got}."


def _from_objects(data: Any, needed: BoolArray) -> FloatArray:
    if isinstance(data, (str, bytes)) or not isinstance(data, (Iterable, np.ndarray)):
        raise DataError(f"data must be one number per person, got {type(data).__name__}.")
    values = list(data)
    if len(values) != needed.size:
        raise DataError(_wrong_length(needed.size, len(values)))
    column = np.full(len(values), math.nan)
    bad = np.zeros(len(values), dtype=np.bool_)
    # nobody else's datum is even looked at
    for row in np.flatnonzero(needed):
        try:
            column[row] = _as_number(values[row])
        except (TypeError, ValueError):
            bad[row] = True
    if bad.any():
        raise DataError(
            f"data must be numbers (None or NaN where missing), but {rows_text(bad)} cannot be read as one."
        )
    return column


def _as_number(value: Any) -> float:
    missing = value is None or value is np.ma.masked
    if missing or type(value).__name__ == "NAType":  # pandas' missing value, without importing pandas
        return math.nan
    if isinstance(value, (str, bytes)):
        raise TypeError
    try:
        return float(value)
    except OverflowError:  # an integer beyond every float; the bounds will clamp it
        return math.inf if value > 0 else -math.inf


def _as_variance(variance: ArrayLike | None, bounds: tuple[float, float], n: int) -> FloatArray:
    if variance is None:
        return np.full(n, ((bounds[1] - bounds[0]) / 2.0) ** 2)
    if np.ma.is_masked(variance):
        raise InputError("variance must be one number or one per person, but some are masked.")
    try:
        spread = np.array(variance, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"variance must be one number or one per person, got {type(variance).__name__}.") from None
    if spread.shape not in ((), (n,)):
        raise InputError(f"variance must be one number or one per person ({n}), got shape {spread.shape}.")
    if not ((spread >= 0) & (spread < math.inf)).all():
        raise InputError("variance must be nonnegative and finite.")
    return np.array(np.broadcast_to(spread, (n,)))


def _content_hash(setting: str, label: str, bounds: tuple[float, float], arrays: tuple[FloatArray, ...]) -> str:
    header = ["hushbid release plan 1", setting, label, *(bound.hex() for bound in bounds)]
    digest = hashlib.sha256(json.dumps(header).encode())
    for array in arrays:
        digest.update(array.astype("<f8").tobytes())
    return digest.hexdigest()
