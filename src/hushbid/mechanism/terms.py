"""The terms of a market: what is fixed before anybody reports, in the user's units, and what is allowed.

Units: bounds and variance in data units, weights in money per squared data unit, sensitivities in money per unit of
privacy loss.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np

from hushbid.allocation.problem import ONE_LOCAL_VARIANCE
from hushbid.arrays import FloatArray, as_bounds, as_count, as_nonnegative, as_number
from hushbid.disclosure.promises import SMALLEST_LOSS
from hushbid.errors import InputError
from hushbid.estimation import Setting
from hushbid.mechanism.population import Group, OutsideOption, Population, groups_of, total_weight
from hushbid.mechanism.setting import SETTINGS
from hushbid.mechanism.setting import Setting as Strategy
from hushbid.priors import Grouped, Prior, prior_from_dict


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a market states, and the population it is for.

    Each field is checked by itself, and together only what decides whether the mechanism works: that somebody cares
    about the estimate, that a variance is stated where payments depend on it and is one number in the local setting. A
    variance above what the bounds allow (`hushbid.arrays.varies_too_much`) is not refused here; campaign files and the
    server refuse it.
    """

    prior: Prior | Grouped
    """What the platform believes about sensitivities; it must not be estimated from the reports it prices."""

    setting: Setting = "central"
    """Where noise is added: once by a trusted platform, or on each person's device."""

    bounds: tuple[float, float] = (0.0, 1.0)
    """The public range of the data."""

    variance: float | Sequence[float] | FloatArray | None = None
    """Of the data around the mean; in the central setting also one per person. None means the worst case for the bounds
    (a quarter of the squared width), allowed only while every user weight is 0: otherwise payments depend on it."""

    buyer_weight: float = 1.0
    """What one unit of squared error costs the platform."""

    user_weight: float | Sequence[float] | FloatArray = 1.0
    """What one unit of squared error costs a person: one number, or one per person."""

    outside_option: OutsideOption = "own_data"
    """What somebody who stays out has: her own datum, or the estimate made without her."""

    max_privacy_loss: float | None = None
    """A cap on everybody's privacy loss; the capped rule is still truthful, though no longer optimal."""

    tolerance: float = 1e-6
    """How far a payment may be from the exact one, relative to the largest payment, where rounding allows it (about
    1e-8 with smooth priors); `Outcome.incentive_error` says what was reached."""

    def __post_init__(self) -> None:
        as_prior(self.prior, "prior")
        if self.setting not in ("central", "local"):
            raise InputError(f"setting must be 'central' or 'local', got {self.setting!r}.", field="setting")
        if self.outside_option not in ("own_data", "estimate"):
            raise InputError(
                f"outside_option must be 'own_data' or 'estimate', got {self.outside_option!r}.", field="outside_option"
            )
        object.__setattr__(self, "bounds", as_bounds(self.bounds))
        object.__setattr__(self, "buyer_weight", as_nonnegative(self.buyer_weight, "buyer_weight", per_person=False))
        object.__setattr__(self, "user_weight", as_nonnegative(self.user_weight, "user_weight"))
        if self.variance is not None:
            object.__setattr__(self, "variance", as_nonnegative(self.variance, "variance"))
        if isinstance(self.variance, np.ndarray) and self.strategy.one_variance:
            raise InputError(ONE_LOCAL_VARIANCE, field="variance")
        if self.buyer_weight == 0.0 and not np.any(self.user_weight):
            told = "buyer_weight and user_weight must not all be 0: nobody would care about the estimate."
            raise InputError(told, field="buyer_weight")
        if self.variance is None and np.any(np.asarray(self.user_weight) > 0):
            raise InputError(
                "variance must be stated when user_weight is not 0: a wrong one would make lying or staying out pay.",
                field="variance",
            )
        if self.max_privacy_loss is not None:
            object.__setattr__(self, "max_privacy_loss", as_number(self.max_privacy_loss, "max_privacy_loss"))
            if not 0.0 < self.max_privacy_loss < math.inf:
                raise InputError(
                    f"max_privacy_loss must be positive and finite, got {self.max_privacy_loss}.",
                    field="max_privacy_loss",
                )
            if self.max_privacy_loss < SMALLEST_LOSS:
                raise InputError(
                    f"max_privacy_loss must be at least 2**-53 = {SMALLEST_LOSS:.2g}, so that something can be"
                    f" released, got {self.max_privacy_loss}.",
                    field="max_privacy_loss",
                )
        object.__setattr__(self, "tolerance", as_number(self.tolerance, "tolerance"))
        if not 0.0 < self.tolerance <= 0.1:
            raise InputError(f"tolerance must be in (0, 0.1], got {self.tolerance}.", field="tolerance")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Terms):
            return NotImplemented
        return all(np.array_equal(mine, theirs) for mine, theirs in zip(self._values(), other._values(), strict=True))

    def __hash__(self) -> int:
        return hash(tuple(_plain(value) if np.ndim(value) == 0 else tuple(_plain(value)) for value in self._values()))

    def _values(self) -> list[Any]:
        return [getattr(self, one.name) for one in fields(self)]

    @property
    def grouped(self) -> bool:
        """Whether there is one prior per group of people."""
        return isinstance(self.prior, Grouped)

    @property
    def width(self) -> float:
        """The width of the public range."""
        return self.bounds[1] - self.bounds[0]

    @property
    def stated_variance(self) -> float | FloatArray:
        """The variance in data units, with the worst case filled in."""
        spread = self.variance
        if spread is None:
            return self.width**2 / 4.0
        return spread if isinstance(spread, np.ndarray) else float(spread)  # type: ignore[arg-type]

    @property
    def identity_decides(self) -> bool:
        """Whether some of several people with equal virtual costs may be bought from and others not."""
        return SETTINGS[self.setting].identity_decides(self.stated_variance)

    def error_weight(self, n: int) -> float:
        """``A``: what one unit of squared error costs everybody together, for ``n`` people."""
        return total_weight(self.buyer_weight, self.user_weight, n)  # type: ignore[arg-type]

    @property
    def strategy(self) -> Strategy:
        """What depends on the setting."""
        return SETTINGS[self.setting]

    def for_people(self, n: int) -> Population:
        """The market for ``n`` people who are at hand, on a data range of width 1: what the mechanism works on."""
        people = as_count(n, "n", least=1)
        for name in ("variance", "user_weight"):
            value = getattr(self, name)
            if isinstance(value, np.ndarray) and value.shape != (people,):
                raise InputError(
                    f"{name} must have one entry per person ({people} people), got {value.size}.", field=name
                )
        return self._population(people, groups_of(self.prior, people))

    def for_count(self, n: int) -> Population:
        """The market for ``n`` people who are counted, but not listed: groups have priors, and no rows."""
        return self._population(n, groups_of(self.prior, None))

    def _population(self, people: int, groups: tuple[Group, ...]) -> Population:
        if self.outside_option == "estimate" and people == 1:
            raise InputError("outside_option='estimate' needs at least two people: without her there is no estimate.")
        return Population(
            people=people,
            setting=self.strategy,
            groups=groups,
            grouped=self.grouped,
            width=self.width,
            variance=self.stated_variance / self.width**2,
            cap=math.inf if self.max_privacy_loss is None else self.max_privacy_loss,
            buyer_weight=self.buyer_weight,
            user_weight=self.user_weight,  # type: ignore[arg-type]
            own_error=self.stated_variance,
            outside_option=self.outside_option,
            tolerance=self.tolerance,
        )

    def to_dict(self) -> dict[str, Any]:
        """The market as plain values that `from_dict` reads back."""
        return {
            "prior": self.prior.to_dict(),
            "setting": self.setting,
            "bounds": list(self.bounds),
            "variance": _plain(self.variance),
            "buyer_weight": self.buyer_weight,
            "user_weight": _plain(self.user_weight),
            "outside_option": self.outside_option,
            "max_privacy_loss": self.max_privacy_loss,
            "tolerance": self.tolerance,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`."""
        if not isinstance(values, Mapping):
            raise InputError(f"a market must be a mapping of its fields, got {type(values).__name__}.")
        names = [one.name for one in fields(cls)]
        known = {name: values[name] for name in names if name in values}
        unknown = sorted(set(values) - set(known))
        if unknown or "prior" not in known:
            raise InputError(f"a market has the fields {', '.join(names)}, got {', '.join(map(str, values))}.")
        prior = known.pop("prior")
        return cls(prior=prior_from_dict(prior) if isinstance(prior, Mapping) else prior, **known)


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


def as_prior(value: Any, name: str) -> Prior | Grouped:
    """A prior, or one per group of people."""
    if not isinstance(value, (Prior, Grouped)):
        raise InputError(f"{name} must be a prior such as Uniform(1, 2), got {type(value).__name__}.", field=name)
    return value
