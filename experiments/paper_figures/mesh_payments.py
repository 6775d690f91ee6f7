"""[F]'s mesh method: payments by summing one person's privacy loss over a fixed mesh of bids.

[F] (Lemma A4) pays

    t_i = MSE - V + c_i y_i(c) + integral of y_i(z, c_{-i}) over z from c_i to infinity,

and approximates the integral to within ``accuracy`` in two halves:

1. Tail. The loss at z is at most M / psi_i(z) <= M f_i(z) / F_i(z), where M is the cost of ignoring person i. So with
   F_i(top) >= 1 - tail, the part above ``top`` is at most M tail / (1 - tail), and tail is chosen to make that
   accuracy / 2. Where the support ends, there is no tail. (Nobody else to buy from means no finite M: erratum 21.)
2. Mesh. From c_i to ``top`` in steps of at most delta = accuracy / (2 (y_i(c_i) - y_i(top))), the lower sum is within
   accuracy / 2 of the integral because y_i is nonincreasing. The printed sum starts at a node that does not exist and
   leaves out the last interval: :func:`printed_mesh_sum` keeps that (erratum 19).

Every node is one full allocation of all n people, and every person has a mesh of her own: n / accuracy allocations in
all, which is what the payments of this library avoid. See docs/reference/errata.md.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from hushbid.common.arrays import FloatArray, IndexArray, as_floats
from hushbid.errors import BidError, InputError

__all__ = ["BidPrior", "MeshPayments", "PricedAllocation", "mesh_payments", "mesh_sum", "printed_mesh_sum"]


class PricedAllocation(Protocol):
    """What the mesh method needs of an allocation: ours and every baseline's have it."""

    @property
    def privacy_loss(self) -> FloatArray: ...
    @property
    def mse(self) -> float: ...
    @property
    def objective(self) -> float: ...


class BidPrior(Protocol):
    """What the mesh method needs of the common prior of all bids."""

    @property
    def support(self) -> tuple[float, float]: ...
    def quantile(self, q: float, /) -> float | np.floating | FloatArray: ...
    def virtual_cost(self, c: FloatArray, /) -> FloatArray: ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MeshPayments:
    """Payments by the mesh method, for the rows asked for, with what they cost to compute."""

    rows: IndexArray
    """Whose payments these are."""
    payments: FloatArray
    """The payment of each of these rows, with the lower sum for the integral."""
    information_rent: FloatArray
    """The lower sum alone."""
    accuracy: float
    """The integral exceeds the lower sum by at most this much."""
    allocations: int
    """How many full allocations were computed."""


def mesh_payments(
    bids: ArrayLike,
    *,
    prior: BidPrior,
    rule: Callable[[FloatArray], PricedAllocation],
    variance: float,
    accuracy: float,
    rows: Sequence[int] | None = None,
) -> MeshPayments:
    """[F]'s payments for ``rows`` (default: everybody), where ``rule`` maps virtual costs to an allocation.

    ``variance`` and the money are for a data range of width 1, and everybody's weight on the error is 1, as in [F].
    """
    if not (np.isfinite(accuracy) and accuracy > 0):
        raise InputError(f"accuracy must be positive and finite, got accuracy={accuracy!r}.", field="accuracy")
    sensitivities = as_floats(bids, "bids", BidError)
    chosen = np.arange(sensitivities.size) if rows is None else np.asarray(rows, dtype=np.intp)
    if np.any((chosen < 0) | (chosen >= sensitivities.size)):
        raise InputError(
            f"rows must be between 0 and {sensitivities.size - 1}, got rows={chosen.tolist()!r}.", field="rows"
        )
    virtual_costs = prior.virtual_cost(sensitivities)
    truthful = rule(virtual_costs)
    rents = np.zeros(chosen.size)
    allocations = 1
    for at, row in enumerate(chosen):
        # person by person: one allocation for every node of her mesh
        own = _OwnLoss(int(row), virtual_costs, prior, rule)
        # half 1: where the tail is small enough
        top = _top_of_mesh(own, accuracy)
        # half 2: the mesh up to there
        rents[at] = _rent(own, float(sensitivities[row]), top, float(truthful.privacy_loss[row]), accuracy)
        allocations += own.calls
    loss = truthful.privacy_loss[chosen]
    return MeshPayments(
        rows=chosen,
        payments=truthful.mse - variance + sensitivities[chosen] * loss + rents,
        information_rent=rents,
        accuracy=accuracy,
        allocations=allocations,
    )


def mesh_sum(nodes: FloatArray, losses: FloatArray) -> float:
    """The lower sum of a nonincreasing loss: every interval at its right end, j = 1..M."""
    return float(np.sum(np.diff(nodes) * losses[1:]))


def printed_mesh_sum(nodes: FloatArray, losses: FloatArray) -> float:
    """[F]'s printed sum, j = 0..M-1: its first interval needs a node I_{-1} (taken as I_0), its last is left out."""
    return float(np.sum(np.diff(nodes)[:-1] * losses[1:-1]))


class _OwnLoss:
    """How one person's privacy loss moves with her own bid; counts the allocations it takes."""

    def __init__(
        self,
        row: int,
        virtual_costs: FloatArray,
        prior: BidPrior,
        rule: Callable[[FloatArray], PricedAllocation],
    ) -> None:
        self.row, self.prior, self.calls = row, prior, 0
        self._costs, self._rule = virtual_costs, rule

    def at(self, report: float) -> float:
        return float(self._allocate(float(self.prior.virtual_cost(np.array([report]))[0])).privacy_loss[self.row])

    def cost_of_ignoring_her(self) -> float:
        return self._allocate(np.inf).objective

    def _allocate(self, virtual_cost: float) -> PricedAllocation:
        self.calls += 1
        costs = self._costs.copy()
        costs[self.row] = virtual_cost
        return self._rule(costs)


def _top_of_mesh(own: _OwnLoss, accuracy: float) -> float:
    """Half one: where the tail may be cut off."""
    top = own.prior.support[1]
    if np.isfinite(top):
        return float(top)
    bound = own.cost_of_ignoring_her()
    tail = (accuracy / 2.0) / (bound + accuracy / 2.0)  # M·tail/(1 − tail) = accuracy/2
    return float(own.prior.quantile(1.0 - tail))


def _rent(own: _OwnLoss, report: float, top: float, loss_at_bid: float, accuracy: float) -> float:
    """Half two: the lower sum on the mesh."""
    if top <= report:
        return 0.0
    loss_at_top = own.at(top)
    fall = loss_at_bid - loss_at_top
    intervals = max(1, int(np.ceil((top - report) * 2.0 * fall / accuracy)))
    nodes = np.linspace(report, top, intervals + 1)
    inner = [own.at(float(z)) for z in nodes[1:-1]]
    return mesh_sum(nodes, np.array([loss_at_bid, *inner, loss_at_top]))
