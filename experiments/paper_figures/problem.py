"""What every baseline allocation looks like, and the one function that scores it.

A baseline is a function ``baseline(virtual_costs, *, variance, error_weight=None, ...) -> PaperAllocation``. Whatever
score a baseline uses inside, :func:`score` evaluates the true objective at the privacy losses it returns, with the
formulas of the model and none of the code of :mod:`hushbid.allocation`, so that "never worse than theirs" compares like
with like:

- central: weights ``y_i / S``, ``S = sum y``, ``mse = (2 + V sum y_i**2) / S**2``       ([F] Thm 3)
- local:   weights ``q_i / Q``, ``q_i = y_i**2 / (V y_i**2 + 2)``, ``mse = 1 / Q``       ([F] Thm 4)
- objective: ``error_weight * mse + sum virtual_cost_i * y_i``, [F]'s error weight being ``n + 1``.

Everything is on a data range of width 1. [F] = Fallah, Makhdoumi, Malekian, Ozdaglar, EC 2022, arXiv 2201.03968.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from hushbid.common.arrays import FloatArray, IndexArray, as_floats
from hushbid.errors import InputError, NobodyToBuyFrom
from hushbid.estimation import Setting

__all__ = ["PaperAllocation", "PaperProblem", "read_problem", "score"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PaperAllocation:
    """What a baseline decided, and what that costs."""

    name: str
    """The baseline, as a reader would cite it."""
    setting: Setting
    """Who adds the noise: the platform (central) or each person (local)."""
    privacy_loss: FloatArray = field(repr=False)
    """Privacy loss of every person, in the order of the input."""
    weights: FloatArray = field(repr=False)
    """Weight of every person's datum in the estimate; they sum to one, or are all zero if nobody is bought from."""
    mse: float
    """Mean squared error of the estimate, on a data range of width 1; infinite if nobody is bought from."""
    objective: float
    """The true objective at ``privacy_loss``, whatever the baseline itself minimised."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PaperProblem:
    """A validated problem, sorted by virtual cost; people with an infinite one are left out."""

    virtual_costs: FloatArray = field(repr=False)
    """Finite virtual costs in ascending order."""
    rows: IndexArray = field(repr=False)
    """Where each of them stood in the input."""
    n: int
    """How many people there are in all, those never bought from included."""
    variance: float
    """Variance of one datum."""
    error_weight: float
    """Weight of the mean squared error; [F]'s n + 1 unless stated."""

    def unsorted(self, privacy_loss: Sequence[float] | FloatArray) -> FloatArray:
        """Privacy losses of the cheapest people, ascending by virtual cost, back in the order of the input."""
        everybody = np.zeros(self.n)
        everybody[self.rows[: len(privacy_loss)]] = privacy_loss
        return everybody


def read_problem(virtual_costs: ArrayLike, *, variance: float, error_weight: float | None) -> PaperProblem:
    """Check the input of one of [F]'s algorithms and sort it: the first step of both."""
    costs = as_floats(virtual_costs, "virtual_costs")
    if costs.ndim != 1 or costs.size == 0:
        raise InputError(
            f"virtual_costs must be a non-empty vector, got an array of shape {costs.shape}.", field="virtual_costs"
        )
    bad = np.flatnonzero(~(costs > 0))
    if bad.size:
        raise InputError(
            f"virtual_costs must be positive for [F]'s algorithms, which row {bad[0]} is not.",
            field="virtual_costs",
            row=int(bad[0]),
        )
    if not (np.isfinite(variance) and variance > 0):
        raise InputError(
            f"variance must be positive and finite for [F]'s algorithms, got variance={variance!r}.", field="variance"
        )
    weight = float(costs.size + 1) if error_weight is None else float(error_weight)
    if not (np.isfinite(weight) and weight > 0):
        raise InputError(
            f"error_weight must be positive and finite, got error_weight={error_weight!r}.", field="error_weight"
        )
    # step "sort" of both algorithms, without people who are never bought from
    rows = np.argsort(costs, kind="stable")
    rows = rows[np.isfinite(costs[rows])]
    if rows.size == 0:
        raise NobodyToBuyFrom("every virtual cost is infinite, so there is nobody to buy from.")
    return PaperProblem(
        virtual_costs=costs[rows], rows=rows, n=costs.size, variance=float(variance), error_weight=weight
    )


def score(
    privacy_loss: FloatArray,
    *,
    name: str,
    setting: Setting,
    virtual_costs: ArrayLike,
    variance: float,
    error_weight: float | None = None,
) -> PaperAllocation:
    """The true mean squared error and objective of given privacy losses; ``error_weight=None`` means n + 1."""
    costs = as_floats(virtual_costs, "virtual_costs")
    used = privacy_loss > 0
    loss = privacy_loss[used]
    weights = np.zeros_like(privacy_loss)
    if loss.size == 0:
        mse = np.inf
    elif setting == "central":
        total = loss.sum()
        weights[used] = loss / total
        mse = 2.0 / total**2 + variance * float(np.sum(weights**2))
    else:
        precision = 1.0 / (variance + 2.0 / loss**2)  # q(y), written so that a large loss does not overflow
        weights[used] = precision / precision.sum()
        mse = 1.0 / float(precision.sum())
    weight = costs.size + 1.0 if error_weight is None else error_weight
    return PaperAllocation(
        name=name,
        setting=setting,
        privacy_loss=privacy_loss,
        weights=weights,
        mse=float(mse),
        objective=float(weight * mse + np.sum(costs[used] * loss)),
    )
