"""The kernels of the passes that add up what people delivered."""

from dataclasses import dataclass

import numpy as np

from hushbid.common.arrays import FloatArray
from hushbid.disclosure.sum_plan import SumPlan
from hushbid.disclosure.sums import Above, Sums
from hushbid.engine.adapter import Batch
from hushbid.engine.decisions import Decider
from hushbid.engine.delivered import DataColumns
from hushbid.engine.people import Rows


@dataclass(frozen=True, slots=True)
class SumsKernel:
    """From a batch to its sums."""

    kernel: Decider
    data: DataColumns
    plan: SumPlan

    @property
    def columns(self) -> list[str]:
        """What it reads."""
        return list(dict.fromkeys([*self.kernel.columns, *self.data.names]))

    def __call__(self, batch: Batch, start: int | None) -> Sums:
        rows = self.kernel.people.read(batch)
        losses = _used_losses(self.kernel, batch, rows, self.plan)
        return Sums.of(losses, _read(self.data, batch, start, rows), rows.strata, self.plan, rows.variance)


@dataclass(frozen=True, slots=True)
class AboveKernel:
    """From a batch to those in it who weigh more than an equal share of their stratum."""

    kernel: Decider
    data: DataColumns
    plan: SumPlan
    totals: tuple[int, ...]
    """What the weights of those who delivered add up to in each stratum."""

    @property
    def columns(self) -> list[str]:
        """What it reads."""
        return list(dict.fromkeys([*self.kernel.columns, *self.data.names]))

    def __call__(self, batch: Batch, start: int | None) -> Above:
        rows = self.kernel.people.read(batch)
        losses, table = _used_losses(self.kernel, batch, rows, self.plan), _read(self.data, batch, start, rows)
        return Above.of(losses, table, rows.strata, self.plan, self.totals)


def _used_losses(kernel: Decider, batch: Batch, rows: Rows, plan: SumPlan) -> FloatArray:
    """What the estimate uses of the losses of the good rows: no more of anybody's than of the others."""
    return np.minimum(kernel.decide(batch, rows)[0], plan.largest_loss)


def _read(data: DataColumns, batch: Batch, start: int | None, rows: Rows) -> FloatArray:
    """What the people of the good rows delivered, people × columns."""
    table = data.read(batch, start)
    return table if rows.good is None else table[rows.good]
