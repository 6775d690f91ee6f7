"""The released estimate, and what its operator may know about how it was made."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np

from hushbid.arrays import FloatArray
from hushbid.codec import Codec
from hushbid.disclosure import noise
from hushbid.disclosure.error import ErrorModel, published_errors
from hushbid.disclosure.grid import PromiseCheck
from hushbid.estimation import Setting

FORMAT, VERSION = "hushbid release", 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """The integers a release was computed in; with them anybody can check the promises again."""

    data_bits: int
    """A datum is an integer between 0 and 2**data_bits (local: the coarsest grid among the messages)."""

    weight_exponent: int | None
    """Central: person i's weight is the integer ``privacy_loss_i · 2**weight_exponent``; None without noise."""

    total_weight: int | None
    """Central: the sum of all integer weights."""

    noise_scale: float | None
    """Central: the scale, in steps of the weighted sum, that the sampler received; 0 if no noise was drawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summed:
    """How many people a release is about that was made from sums, without anybody's figures."""

    delivered: int
    """How many people's data were used."""

    dropped_out: int
    """How many people who should have delivered did not."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Release:
    """One estimate, drawn once. All of it is for the operator; :meth:`public` is what may be shown."""

    key: str
    """The key of the plan."""

    setting: Setting
    """Where noise was added."""

    bounds: tuple[float, float]
    """The public range of the data."""

    privacy_loss: FloatArray
    """What each person really lost, exactly; 0 for those whose data were not used. At most what she was promised.

    Empty if the release was made from sums."""

    error: ErrorModel
    """How far the estimate may lie from the mean, given who delivered."""

    planned_error: ErrorModel
    """How far the estimate might have lain from the mean, had everybody delivered."""

    grid: Grid
    """The integers it was computed in."""

    check: PromiseCheck
    """The verification of all promises, made before the noise was drawn."""

    clamped: int
    """How many values lay outside the range. For the operator only (not known in the local setting: 0)."""

    dropped_out: tuple[int, ...]
    """The rows that should have delivered and did not. For the operator only. Empty if it was made from sums."""

    versions: dict[str, str]
    """Of this library and of the sampler."""

    summed: Summed | None = None
    """How many people it is about, if it was made from sums; None if it is known who they are."""

    estimate: float
    """The noisy weighted mean. It is not clamped to the range: that would bias it."""

    @property
    def standard_error(self) -> float:
        """Root mean squared error from the declared variance and the noise, never from the data.

        If price and datum are unrelated; `worst_standard_error` says how large it is at worst.
        """
        return math.sqrt(self.error.mse)

    @property
    def worst_standard_error(self) -> float:
        """The same if price and datum are related as closely as the market allows for."""
        return math.sqrt(self.error.worst_mse)

    @property
    def delivered(self) -> int:
        """How many people's data were used."""
        return int(np.count_nonzero(self.privacy_loss)) if self.summed is None else self.summed.delivered

    @property
    def absent(self) -> int:
        """How many people who should have delivered did not."""
        return len(self.dropped_out) if self.summed is None else self.summed.dropped_out

    @property
    def bought_from(self) -> int:
        """How many people should have delivered."""
        return self.delivered + self.absent

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """An interval that contains the mean with probability at least ``level``, whatever the distribution.

        It holds for independent data whose variance is at most the declared one, at every sample size, accounts for the
        Laplace tail, and holds for every relation of price and datum that the market allows for; see
        :mod:`hushbid.disclosure.error`.
        """
        half = self.error.half_width(level)
        return self.estimate - half, self.estimate + half

    def public(self) -> dict[str, Any]:
        """What may be shown to anybody: the noisy estimate, and facts that were fixed before any data were seen.

        The errors are the planned ones. Drop-outs make the real ones larger, but real ones would tell who dropped out.
        They are rounded, and None where so few people are behind them that they would tell a report.
        """
        return {
            "format": "hushbid public release",
            "version": VERSION,
            "setting": self.setting,
            "bounds": list(self.bounds),
            **published_errors(self.planned_error, people=self.bought_from),
            "estimate": self.estimate,
        }

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain JSON values; confidential.

        The estimate comes last: a file torn before it does not hold it; one that lacks only its closing bytes does.
        """
        return RELEASE.write(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Release":
        """The inverse of :meth:`to_dict`. Strict: exactly the fields of this version, each of its type."""
        return RELEASE.read(values)

    def __repr__(self) -> str:
        return f"Release(estimate={self.estimate!r}, standard_error={self.standard_error!r}, setting={self.setting!r})"


def versions(setting: Setting) -> dict[str, str]:
    """Of this library and, where the noise is drawn here, of the sampler."""
    found = {"hushbid": version("hushbid")}
    return {**found, "opendp": noise.sampler_version()} if setting == "central" else found


RELEASE = Codec(Release, "release", header={"format": FORMAT, "version": VERSION})
