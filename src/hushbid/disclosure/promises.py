"""What a release is about: who was promised which privacy loss, on which public range. No data, no market."""

import hashlib
import json
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from hushbid.arrays import FloatArray, as_bounds, as_losses, as_variance, first_row, rows_text
from hushbid.disclosure.relation import Relation
from hushbid.errors import InputError, MarketError
from hushbid.estimation import Setting, is_central

SMALLEST_LOSS = 2.0**-53
"""A smaller privacy loss takes more noise than 64 bits hold, so nothing can be released for it."""


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

    relation: Relation | None = None
    """How closely price and datum may be related, among how many people; None: not at all."""

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
        relation: Relation | None = None,
    ) -> "ReleasePlan":
        """A validated plan. By default all that is promised is used, and the variance is the largest possible.

        The key is a hash of all other arguments unless given; ``label`` tells campaigns with equal promises apart.
        """
        is_central(setting)
        bounds = as_bounds(bounds)
        allowed = as_losses(promised, some_positive=False, name="promised")
        used = allowed if delivered is None else as_losses(delivered, some_positive=False, name="delivered")
        if used.shape != allowed.shape:
            told = f"delivered must have one entry per person ({allowed.size}), got {used.size}."
            raise InputError(told, field="delivered")
        over = used > allowed
        if over.any():
            told = f"delivered must not exceed promised, but does in {rows_text(over)}."
            raise InputError(told, field="delivered", row=first_row(over))
        stated = ((bounds[1] - bounds[0]) / 2.0) ** 2 if variance is None else as_variance(variance, allowed.size)
        spread = np.array(np.broadcast_to(stated, allowed.shape))
        # promises do not change any more
        for array in (allowed, used, spread):
            array.setflags(write=False)
        if relation is not None and relation.roster < allowed.size:
            told = f"relation must count everybody, {allowed.size} people or more, got {relation.roster}."
            raise InputError(told, field="relation")
        if key is None:
            key = _content_hash(setting, label, bounds, relation, (allowed, used, spread))
        if not key or len(key) > 128 or not all(c.isascii() and (c.isalnum() or c in "-_") for c in key):
            raise InputError("key must be 1 to 128 ASCII letters, digits, '-' or '_'.", field="key")
        return cls(
            setting=setting,
            promised=allowed,
            delivered=used,
            bounds=bounds,
            variance=spread,
            key=key,
            from_engine=from_engine,
            relation=relation,
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
    def weighing_variance(self) -> FloatArray:
        """What weights are chosen with: everybody's declared variance, and what a relation adds to it."""
        return self.variance if self.relation is None else self.variance + self.relation.variance

    @property
    def unit_variance(self) -> FloatArray:
        """The same for a range of width 1."""
        return self.weighing_variance / self.width / self.width


def refuse_unreleasable(least: float) -> None:
    """What is decided and paid must be possible to release: one sum with noise, or everybody's own noisy value."""
    if least < SMALLEST_LOSS:
        raise MarketError(
            f"A privacy loss of {least:.2g} is too small to release anything: it must be at least 2**-53 ="
            f" {SMALLEST_LOSS:.2g}, so the goal asks for too little from these people."
        )


def _content_hash(
    setting: str, label: str, bounds: tuple[float, float], relation: Relation | None, arrays: tuple[FloatArray, ...]
) -> str:
    header = ["hushbid release plan 1", setting, label, *(bound.hex() for bound in bounds)]
    if relation is not None:
        header += [relation.spread.hex(), str(relation.roster)]
    digest = hashlib.sha256(json.dumps(header).encode())
    for array in arrays:
        digest.update(array.astype("<f8").tobytes())
    return digest.hexdigest()
