"""The kernels of the passes that add up what people delivered."""

from dataclasses import dataclass

from hushbid.common.arrays import FloatArray
from hushbid.disclosure.sum_plan import SumPlan
from hushbid.disclosure.sums import Above, Sums
from hushbid.engine.adapter import Batch
from hushbid.engine.decisions import Decider
from hushbid.engine.delivered import DataColumns
from hushbid.engine.people import Rows


@dataclass(frozen=True, slots=True)
class DataKernel:
    """What reads decisions and data together."""

    kernel: Decider
    data: DataColumns

    @property
    def columns(self) -> list[str]:
        """What it reads."""
        return list(dict.fromkeys([*self.kernel.columns, *self.data.names]))

    def used(self, batch: Batch, start: int | None) -> tuple[Rows, FloatArray, FloatArray]:
        """The good rows, what the estimate uses of their losses, and what they delivered, people × columns."""
        rows, table = self.kernel.people.read(batch), self.data.read(batch, start)
        return rows, self.kernel.details(batch, rows).used, table if rows.good is None else table[rows.good]


@dataclass(frozen=True, slots=True)
class SumsKernel(DataKernel):
    """From a batch to its sums."""

    plan: SumPlan

    def __call__(self, batch: Batch, start: int | None) -> Sums:
        rows, losses, table = self.used(batch, start)
        return Sums.of(losses, table, rows.strata, self.plan, rows.variance)


@dataclass(frozen=True, slots=True)
class AboveKernel(DataKernel):
    """From a batch to those in it who weigh more than an equal share of their stratum."""

    plan: SumPlan
    totals: tuple[int, ...]
    """What the weights of those who delivered add up to in each stratum."""

    def __call__(self, batch: Batch, start: int | None) -> Above:
        rows, losses, table = self.used(batch, start)
        return Above.of(losses, table, rows.strata, self.plan, self.totals)
