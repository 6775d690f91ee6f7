"""The kernels of the passes that add up data: one number or a survey, of everybody or of each stratum."""

from dataclasses import dataclass

import numpy as np

from hushbid.arrays import FloatArray, IndexArray
from hushbid.disclosure.contrast_from_sums import Stratified, SummedContrast
from hushbid.disclosure.preparing_from_sums import Above, SummedPlan, Sums
from hushbid.disclosure.survey_from_sums import SummedSurvey, SurveySums
from hushbid.engine.adapter import Batch
from hushbid.engine.decisions import Decider
from hushbid.engine.delivered import DataColumns
from hushbid.engine.people import Rows


def used_losses(kernel: Decider, batch: Batch, plan: SummedPlan) -> tuple[Rows, FloatArray]:
    """The good rows of a batch, and what the estimate uses of their losses: no more of anybody's than of the others."""
    rows = kernel.people.read(batch)
    return rows, np.minimum(kernel.decide(batch, rows)[0], plan.largest_loss)


def _read(data: DataColumns, batch: Batch, start: int | None, rows: Rows) -> FloatArray:
    """What the people of the good rows delivered, people × columns."""
    table = data.read(batch, start)
    return table if rows.good is None else table[rows.good]


@dataclass(frozen=True, slots=True)
class SumsKernel:
    """From a batch to its sums."""

    kernel: Decider
    data: DataColumns
    plan: SummedPlan

    @property
    def columns(self) -> list[str]:
        """What it reads."""
        return list(dict.fromkeys([*self.kernel.columns, *self.data.names]))

    def __call__(self, batch: Batch, start: int | None) -> Sums:
        rows, losses = used_losses(self.kernel, batch, self.plan)
        return Sums.of(losses, _read(self.data, batch, start, rows)[:, 0], rows.variance, self.plan)


@dataclass(frozen=True, slots=True)
class SurveyKernel:
    """From a batch to the sums of a survey."""

    kernel: Decider
    data: DataColumns
    plan: SummedSurvey

    @property
    def columns(self) -> list[str]:
        """What it reads."""
        return list(dict.fromkeys([*self.kernel.columns, *self.data.names]))

    def __call__(self, batch: Batch, start: int | None) -> SurveySums:
        rows, losses = used_losses(self.kernel, batch, self.plan.people)
        return SurveySums.of(losses, _read(self.data, batch, start, rows), self.plan)


@dataclass(frozen=True, slots=True)
class AboveKernel:
    """From a batch to those in it who weigh more than an equal share."""

    kernel: Decider
    data: DataColumns
    plan: SummedPlan
    total: int
    """What the weights of those who delivered add up to."""

    @property
    def columns(self) -> list[str]:
        """What it reads."""
        return list(dict.fromkeys([*self.kernel.columns, *self.data.names]))

    def __call__(self, batch: Batch, start: int | None) -> Above:
        rows, losses = used_losses(self.kernel, batch, self.plan)
        # a row is missing as a whole
        return Above.of(losses, _read(self.data, batch, start, rows)[:, 0], self.plan, self.total)


# -- strata ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StrataSumsKernel:
    """From a batch to the sums of each stratum."""

    kernel: Decider
    data: DataColumns
    plan: SummedContrast

    @property
    def columns(self) -> list[str]:
        """What it reads."""
        return list(dict.fromkeys([*self.kernel.columns, *self.data.names]))

    def __call__(self, batch: Batch, start: int | None) -> Stratified[Sums]:
        rows, losses = used_losses(self.kernel, batch, self.plan.people)
        assert rows.strata is not None
        return self.plan.sums(losses, _read(self.data, batch, start, rows)[:, 0], rows.strata, rows.variance)


@dataclass(frozen=True, slots=True)
class StrataSurveyKernel:
    """From a batch to the sums of a survey of each stratum."""

    kernel: Decider
    data: DataColumns
    plan: SummedSurvey
    strata: int
    """How many there are."""

    @property
    def columns(self) -> list[str]:
        """What it reads."""
        return list(dict.fromkeys([*self.kernel.columns, *self.data.names]))

    def __call__(self, batch: Batch, start: int | None) -> Stratified[SurveySums]:
        rows, losses = used_losses(self.kernel, batch, self.plan.people)
        table = _read(self.data, batch, start, rows)

        def made(which: IndexArray) -> SurveySums:
            return SurveySums.of(losses[which], table[which], self.plan)

        assert rows.strata is not None
        return Stratified.of(rows.strata, self.strata, made)


@dataclass(frozen=True, slots=True)
class StrataAboveKernel:
    """From a batch to those in it who weigh more than an equal share of their stratum."""

    kernel: Decider
    data: DataColumns
    plan: SummedContrast
    totals: tuple[int, ...]
    """What the weights of those who delivered add up to in each stratum."""

    @property
    def columns(self) -> list[str]:
        """What it reads."""
        return list(dict.fromkeys([*self.kernel.columns, *self.data.names]))

    def __call__(self, batch: Batch, start: int | None) -> Stratified[Above]:
        rows, losses = used_losses(self.kernel, batch, self.plan.people)
        assert rows.strata is not None
        return self.plan.above(losses, _read(self.data, batch, start, rows)[:, 0], rows.strata, self.totals)
