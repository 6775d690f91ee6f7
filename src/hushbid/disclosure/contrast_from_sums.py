"""A combination of stratum means from sums that somebody else added up, batch by batch, wherever the data are.

Each stratum has the sums of :mod:`hushbid.disclosure.preparing_from_sums`, or of a survey those of
:mod:`hushbid.disclosure.survey_from_sums`; here they become one as :mod:`hushbid.disclosure.contrast` says, and get one
noise. Everybody's integer weight follows from her own loss alone, so if some do not deliver, strata are brought into
proportion by their sums: the noise is that of the stratum that has least left of what it should give, which may be
more than with the best contrast that is found where everybody's figures are known.

    plan = SummedContrast(people=SummedPlan(...), weights=(0.6, 0.4), losses=(3.0, 2.0), active=(40, 60))
    sums = plan.no_sums()
    for losses, values, codes in batches:
        sums += plan.sums(losses, values, codes)
    release = prepare_summed_contrast(plan, sums)(key)
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from hushbid.arrays import FloatArray, IndexArray
from hushbid.disclosure import noise
from hushbid.disclosure.contrast import Blend, Combined
from hushbid.disclosure.error import ErrorModel
from hushbid.disclosure.grid import DATA_BITS, ESTIMATE_BITS, to_data_units
from hushbid.disclosure.preparing_from_sums import (
    Above,
    Heavy,
    SummedPlan,
    Sums,
    facts_of,
    refuse_unreleasable_sums,
    squared_unit,
)
from hushbid.disclosure.relation import NO_BIAS, Unevenness, bias_of
from hushbid.disclosure.release import Release
from hushbid.disclosure.survey import Weighing, answers_of, drawn, errors_of, rounding_of, values_of
from hushbid.disclosure.survey_from_sums import SummedSurvey, SurveySums, refuse_unsharable
from hushbid.errors import NothingDelivered


class _Adds(Protocol):
    """What adds up, batch by batch."""

    def __add__(self: "S", other: "S") -> "S": ...


S = TypeVar("S", bound=_Adds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stratified(Generic[S]):
    """Something of each stratum, in the strata's order."""

    parts: tuple[S, ...]

    def __add__(self, other: "Stratified[S]") -> "Stratified[S]":
        """Both populations together."""
        return Stratified(parts=tuple(a + b for a, b in zip(self.parts, other.parts, strict=True)))

    @classmethod
    def of(cls, codes: IndexArray, count: int, make: Callable[[IndexArray], S]) -> "Stratified[S]":
        """What is made of the rows of each stratum."""
        return Stratified(parts=tuple(make(np.flatnonzero(codes == stratum)) for stratum in range(count)))


@dataclass(frozen=True, slots=True, kw_only=True)
class SummedContrast:
    """A promise to everybody, of whom only figures about strata are known."""

    people: SummedPlan
    """The promise to all of them: ``mse`` and ``squared_weights`` are those of the combination, losses those that it
    uses. Under a relation, it counts the people of each stratum."""

    weights: tuple[float, ...]
    """Each stratum's ``ℓ``."""

    losses: tuple[float, ...]
    """What is used of the losses of each stratum, in sum: as the ``|ℓ|`` to each other."""

    active: tuple[int, ...]
    """How many people of each were promised a positive privacy loss."""

    names: tuple[str, ...] = ()
    """What the strata are called; by default their numbers."""

    @property
    def combined(self) -> Combined:
        """Which combination it is, from how many people."""
        return Combined(weights=self.weights, bought_from=self.active, names=self.names)

    @property
    def noise(self) -> float:
        """The scale of the noise that is planned, on a range of width 1."""
        return max(abs(weight) / loss for weight, loss in zip(self.weights, self.losses, strict=True))

    def no_sums(self) -> Stratified[Sums]:
        """Of nobody."""
        return Stratified(parts=(Sums(),) * len(self.weights))

    def sums(
        self, losses: FloatArray, values: FloatArray, codes: IndexArray, variance: FloatArray | None = None
    ) -> Stratified[Sums]:
        """Of some people: what is used of their losses, their data (NaN: did not deliver) and strata."""

        def made(rows: IndexArray) -> Sums:
            return Sums.of(losses[rows], values[rows], None if variance is None else variance[rows], self.people)

        return Stratified.of(codes, len(self.weights), made)

    def above(
        self, losses: FloatArray, values: FloatArray, codes: IndexArray, totals: Sequence[int]
    ) -> Stratified[Above]:
        """Who weighs more than an equal share of her stratum, where its weights add up to ``totals``."""
        relation, exponent = self.people.relation, self.people.exponent
        assert relation is not None
        whole = [math.floor(Fraction(loss) * Fraction(2) ** exponent) for loss in self.losses]
        shares = {g: (totals[g] // count, whole[g] // count) for g, count in enumerate(relation.strata)}

        def made(stratum: int) -> Above:
            rows = np.flatnonzero(codes == stratum)
            return Above.over(losses[rows], values[rows], exponent, *shares[stratum])

        return Stratified(parts=tuple(made(stratum) for stratum in range(len(self.weights))))

    def planned_error(self, above: Stratified[Above] | None = None) -> ErrorModel:
        """How far the estimate may lie from the combination if everybody delivers."""
        plan, scale = self.people, self.people.width * self.noise
        totals = [Fraction(loss) * Fraction(2) ** plan.exponent for loss in self.losses]
        heavy = None if above is None else [one.planned for one in above.parts]
        return self._error(
            sampling=max(plan.mse - 2.0 * scale**2, 0.0),
            squares=plan.squared_weights,
            largest=self.noise * plan.largest_loss,
            noise=self.noise,
            rounding=0.0,
            uneven=self.unevenness(plan.squared_weights, heavy, totals),
        )

    def unevenness(
        self, squares: float, heavy: Sequence[Heavy] | None, totals: Sequence[int | Fraction]
    ) -> Unevenness | None:
        """How far weights with these squares are from equal ones in each stratum, where there may be a relation."""
        relation = self.people.relation
        if relation is None:
            return None
        assert heavy is not None
        terms = list(zip(self.weights, relation.strata, heavy, totals, strict=True))
        equal = math.fsum(weight**2 / count for weight, count, _, _ in terms)
        return Unevenness(
            squares=relation.roster * max(squares - equal, 0.0),
            excess=math.fsum(
                abs(weight) * max(float(one.weight / Fraction(total) - Fraction(one.people, count)), 0.0)
                for weight, count, one, total in terms
            ),
        )

    def _error(
        self,
        *,
        sampling: float,
        squares: float,
        largest: float,
        noise: float,
        rounding: float,
        uneven: Unevenness | None,
    ) -> ErrorModel:
        width, relation = self.people.width, self.people.relation
        bias = NO_BIAS if relation is None or uneven is None else bias_of(relation, uneven, width)
        return ErrorModel(
            sampling_variance=sampling,
            squared_steps=width**2 * squares,
            largest_step=width * largest,
            largest_noise=width * noise,
            next_noise=0.0,
            other_noise_squared=0.0,
            rounding=rounding,
            squared_bias=bias.squared,
            largest_bias=bias.largest,
        )

    def errors(
        self, sums: Sequence[Sums], above: Stratified[Above] | None
    ) -> tuple[Weighing, tuple[ErrorModel, ErrorModel]]:
        """How the delivered weights are spread, and the errors that they have and that were planned."""
        plan, blend = self.people, Blend.of([one.weight for one in sums], self.weights)
        units = [w**2 * squared_unit(plan, one) for w, one in zip(map(Fraction, self.weights), sums, strict=True)]
        squares = float(sum(one.squares * unit for one, unit in zip(sums, units, strict=True)))
        spreads = float(sum(one.spreads * unit for one, unit in zip(sums, units, strict=True)))
        heavy = None if above is None else [one.delivered for one in above.parts]
        whole = Weighing(
            squares=squares,
            largest=max(abs(w) * one.heaviest / one.weight for w, one in zip(self.weights, sums, strict=True)),
            uneven=self.unevenness(squares, heavy, [one.weight for one in sums]),
            noise=math.ldexp(1.0, plan.exponent) * blend.step,
            rounding=blend.size * 2.0**-DATA_BITS + 2.0**-ESTIMATE_BITS + 2.0 * blend.step,
        )
        error = self._error(
            sampling=plan.largest_variance * spreads,
            squares=squares,
            largest=whole.largest,
            noise=whole.noise,
            rounding=plan.width * whole.rounding,
            uneven=whole.uneven,
        )
        return whole, (error, self.planned_error(above))


def prepare_summed_contrast(
    plan: SummedContrast, sums: Stratified[Sums], above: Stratified[Above] | None = None
) -> Callable[[str], Release]:
    """Check everything; what is returned only has to draw, under a key. Under a relation ``above`` is needed."""
    _refuse_unreleasable(plan, sums.parts)
    blend = Blend.of([one.weight for one in sums.parts], plan.weights)
    total = blend.floor([one.weighted for one in sums.parts], DATA_BITS)
    facts = _facts(plan, sums.parts, above)

    def draw(key: str) -> Release:
        [noisy] = noise.draw_many([total], scale=math.ldexp(1.0, plan.people.exponent))
        estimate = to_data_units(Fraction(noisy) / blend.total, plan.people.bounds, blend.level)
        return Release(estimate=estimate, key=key, **facts)

    return draw


def prepare_summed_survey_contrast(
    plan: SummedContrast,
    survey: SummedSurvey,
    sums: Stratified[SurveySums],
    above: Stratified[Above] | None = None,
) -> Callable[[str], Release]:
    """The same of a survey, all of whose answers are combinations with the same weights."""
    people, questions, layout = [one.people for one in sums.parts], survey.questions, survey.layout
    _refuse_unreleasable(plan, people)
    for one in sums.parts:
        refuse_unsharable(survey, one)
    groups, exponent = list(enumerate(layout.groups)), plan.people.exponent
    blends = [Blend.of([one.weights[place] for one in sums.parts], plan.weights) for place, _ in groups]
    totals = []
    for place, group in groups:
        cells = [one.cells[place] for one in sums.parts]
        split = [blends[place].floor(list(one), DATA_BITS) for one in zip(*cells, strict=True)]
        totals.append(blends[place].floors(cells) if group.choice else split)
    whole, _ = plan.errors(people, above)
    weighings = [
        _of_group(whole, 2.0**exponent * blends[place].step, rounding_of(group, blends[place]))
        for place, group in groups
    ]
    relation, facts = plan.people.relation, _facts(plan, people, above)
    errors = errors_of(questions, layout, relation, weighings)
    planned = errors_of(questions, layout, relation, [_planned(plan, above).share(group) for _, group in groups])

    def draw(key: str) -> Release:
        values = []
        for place, group in groups:
            [noisy] = drawn(group, [totals[place]], exponent)
            values.append(values_of(group, noisy, blends[place], questions))
        answers = answers_of(questions, layout, values, errors, planned, plan.combined)
        return Release(answers=answers, key=key, **facts)

    return draw


def _of_group(whole: Weighing, noise: float, rounding: float) -> Weighing:
    """A group's weights are as everybody's are before they are split, but for rounding."""
    return Weighing(squares=whole.squares, largest=whole.largest, uneven=whole.uneven, noise=noise, rounding=rounding)


def _planned(plan: SummedContrast, above: Stratified[Above] | None) -> Weighing:
    totals = [Fraction(loss) * Fraction(2) ** plan.people.exponent for loss in plan.losses]
    heavy = None if above is None else [one.planned for one in above.parts]
    return Weighing(
        squares=plan.people.squared_weights,
        largest=plan.noise * plan.people.largest_loss,
        uneven=plan.unevenness(plan.people.squared_weights, heavy, totals),
        noise=plan.noise,
        rounding=0.0,
    )


def _facts(plan: SummedContrast, sums: Sequence[Sums], above: Stratified[Above] | None) -> dict[str, Any]:
    """All of a release but what is drawn and under which key."""
    _, errors = plan.errors(sums, above)
    return {**facts_of(plan.people, sum(sums, Sums()), *errors), "strata": plan.combined}


def _refuse_unreleasable(plan: SummedContrast, sums: Sequence[Sums]) -> None:
    """Nothing can be drawn from nobody of a stratum, or from losses too small."""
    for stratum, one in enumerate(sums):
        if one.delivered == 0:
            name = repr(plan.names[stratum]) if plan.names else str(stratum)
            raise NothingDelivered(f"Nobody of stratum {name} is left: its mean cannot be estimated.")
        refuse_unreleasable_sums(plan.people, one)
    refuse_unreleasable_sums(plan.people, sum(sums, Sums()))
