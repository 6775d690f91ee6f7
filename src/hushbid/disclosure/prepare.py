"""From sums to a release that only has to be drawn: checks, proportions of strata, errors; then noise, once.

The sums may come from one table in memory or from any engine, in any batches. Everybody's integer weight follows from
their own loss alone, so if some do not deliver, strata are brought into proportion by their sums
(`hushbid.disclosure.combination`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from hushbid.disclosure import noise
from hushbid.disclosure.combination import Blend, nobody_left, too_small
from hushbid.disclosure.error import ErrorModel
from hushbid.disclosure.grid import DATA_BITS, ESTIMATE_BITS, TOTAL_BITS, PromiseCheck, to_data_units
from hushbid.disclosure.release import Grid, Release, Summed
from hushbid.disclosure.sum_plan import LEAST_EXPONENT, SumPlan
from hushbid.disclosure.sums import TERM_BITS, Above, Sums
from hushbid.disclosure.weighing import Weighing, cell_bounds, expected_errors, question_errors
from hushbid.errors import NothingDelivered, ReleaseError
from hushbid.questions import NoiseGroup

Totals = Sequence[Sequence[int]]
"""The exact sums of every group's cells, strata in proportion."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedSums:
    """Sums that were found to be in order; only the drawing is left."""

    plan: SumPlan
    """What was added up, and by what."""

    sums: Sums
    """What it came to."""

    blends: tuple[Blend, ...]
    """How the sums of strata become one in each group of questions."""

    delivered: Weighing
    """How the weights of those who delivered are spread, and the noise they get if no question takes from another."""

    planned: Weighing
    """How they would be, had everybody delivered."""

    @property
    def totals(self) -> list[list[int]]:
        """The exact sums of every group's cells, strata in proportion."""
        return self.totals_of(self.sums)

    def totals_of(self, sums: Sums) -> list[list[int]]:
        """The same of other data of the same people."""
        found = []
        for place, (group, blend) in enumerate(zip(self.plan.layout.groups, self.blends, strict=True)):
            cells = [one.cells[place] for one in sums.strata]
            split = [blend.floor(one, DATA_BITS) for one in zip(*cells, strict=True)]
            found.append(blend.floors(cells) if group.choice else split)
        return found

    @property
    def error(self) -> ErrorModel:
        """How far the estimate may lie from the truth; of a survey, as a whole."""
        return self.delivered.error(self.plan.width, self.plan.relation)

    @property
    def planned_error(self) -> ErrorModel:
        """How far it might have lain, had everybody delivered."""
        return self.planned.error(self.plan.width, self.plan.relation)

    @property
    def grid(self) -> Grid:
        """The integers, for the record."""
        return Grid(
            data_bits=DATA_BITS,
            weight_exponent=None if self.plan.noiseless else self.plan.exponent,
            total_weight=self.sums.total("weight"),
            noise_scale=self.plan.noise_scale,
        )

    def errors(self) -> list[ErrorModel]:
        """Return how far each question's values may lie from the truth."""
        # a group's weights are as everybody's are before they are split, but for rounding
        return question_errors(
            self.plan,
            [
                replace(self.delivered, noise=self.plan.noise_scale * blend.step, rounding=_rounding(blend, group))
                for group, blend in zip(self.plan.layout.groups, self.blends, strict=True)
            ],
        )

    def values(self, many: Sequence[Totals]) -> list[list[list[float]]]:
        """Of each of many totals: these with noise of their own, as values in data units, by group and cell."""
        by_group = []
        for place, (group, blend) in enumerate(zip(self.plan.layout.groups, self.blends, strict=True)):
            above, below = blend.total.as_integer_ratio()
            ranges = cell_bounds(group, self.plan.questions)
            exact = [totals[place] for totals in many]
            noisy = (
                exact
                if self.plan.noiseless
                else noise.draw_cells(exact, scale=self.plan.noise_scale, choice=group.choice)
            )
            by_group.append(
                [
                    [
                        to_data_units(cell * below, above, bounds, blend.level)
                        for cell, bounds in zip(row, ranges, strict=True)
                    ]
                    for row in noisy
                ]
            )
        return [list(found) for found in zip(*by_group, strict=True)]

    def draw(self, key: str) -> Release:
        """Draw the noise, under a key. Who the people are is not known here."""
        plan, sums = self.plan, self.sums
        [values] = self.values([self.totals])
        return Release.of(
            plan,
            values,
            errors=self.errors(),
            planned_errors=expected_errors(plan, self.planned),
            key=key,
            setting="central",
            error=self.error,
            planned_error=self.planned_error,
            grid=self.grid,
            check=PromiseCheck(
                people=sums.total("delivered"),
                people_in_fractions=0,
                people_mapped=0 if plan.noiseless else 1,
                largest_share=1.0 if plan.noiseless else max(one.share for one in sums.strata),
            ),
            clamped=sums.total("clamped"),
            summed=Summed(delivered=sums.total("delivered"), dropped_out=sums.total("dropped_out")),
        )


def prepare(plan: SumPlan, sums: Sums, above: Above | None = None) -> PreparedSums:
    """Check everything; what is returned only has to draw. Under a relation ``above`` is needed."""
    _refuse_unreleasable(plan, sums)
    totals = zip(*(one.groups for one in sums.strata), strict=True)
    blends = tuple(Blend.of(list(of_group), plan.weights) for of_group in totals)
    planned = plan.planned
    if above is not None and planned.uneven is None:
        heavier = plan.unevenness(Fraction(planned.squares), above.planned, plan.planned_totals)
        planned = replace(planned, uneven=heavier)
    return PreparedSums(plan=plan, sums=sums, blends=blends, delivered=_delivered(plan, sums, above), planned=planned)


def _delivered(plan: SumPlan, sums: Sums, above: Above | None) -> Weighing:
    """How the weights are spread that these sums are of, before they are split over groups."""
    blend = Blend.of(sums.weights, plan.weights)
    # what one of the sums' squares is as a square of a weight
    largest = Fraction(1 << (2 * plan.weight_bits), 1 << TERM_BITS)
    sized = list(zip(plan.weights, sums.strata, strict=True))
    units = [largest * (Fraction(size) / one.weight) ** 2 for size, one in sized]
    squares = sum((one.squares * unit for one, unit in zip(sums.strata, units, strict=True)), Fraction(0))
    spreads = sum((one.spreads * unit for one, unit in zip(sums.strata, units, strict=True)), Fraction(0))
    return Weighing(
        squares=float(squares),
        spread=plan.largest_variance * float(spreads),
        largest=max(abs(size) * (one.heaviest / one.weight) for size, one in sized),
        noise=plan.noise_scale * blend.step,
        rounding=_rounding(blend),
        uneven=None if above is None else plan.unevenness(squares, above.delivered, sums.weights),
    )


def _rounding(blend: Blend, group: NoiseGroup | None = None) -> float:
    """Bound on what the integers add to a value on a range of width 1."""
    # a choice's last answer is off by what all others are, where strata are brought into proportion
    more = group.cells if group is not None and group.choice and len(blend.factors) > 1 else 0
    return blend.size * 2.0**-DATA_BITS + 2.0**-ESTIMATE_BITS + (2.0 + more) * blend.step


def _refuse_unreleasable(plan: SumPlan, sums: Sums) -> None:
    """Nothing can be drawn from nobody, or from losses too small; and those who weigh most keep their promise."""
    if sums.total("delivered") == 0:
        raise NothingDelivered(f"None of the {plan.active} people with a positive privacy loss delivered data.")
    for stratum, one in enumerate(sums.strata):
        whose = "" if plan.combined is None else f" of stratum {plan.label(stratum)}"
        if one.delivered == 0:
            raise nobody_left(plan.label(stratum))
        if one.weight == 0:
            raise too_small(whose)
    if plan.noiseless:
        return
    if sums.total("weight") > 1 << TOTAL_BITS:
        raise ReleaseError("The privacy losses of those who delivered add up to more than was promised to all.")
    # those who weigh most: OpenDP's own bound, too
    heaviest = max(one.heaviest for one in sums.strata)
    if not noise.loss_bounds([heaviest], scale=math.ldexp(1.0, plan.exponent))[0] <= plan.largest_loss:
        raise ReleaseError("OpenDP's bound on somebody's privacy loss exceeds the promise; nothing was drawn.")
    if plan.survey and plan.exponent < LEAST_EXPONENT:
        raise ReleaseError("The privacy losses of a survey must be infinite, or add up to at most 2**43.")
    if any(0 in one.groups for one in sums.strata):
        raise ReleaseError(
            "The privacy losses of those who delivered are too small to share among the questions: nothing can be"
            " released."
        )
