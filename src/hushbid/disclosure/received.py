"""Local setting, on the platform: messages are read, weighed by their precision and added up; nothing is added to them.

Messages with noise weigh ``w_i ∝ 1/(V_i + 2/ε_i²)``, of a survey with the layout's width and variance and one weight
for all questions. Where price and datum may be related, V_i is larger by what protects against that
(`hushbid.disclosure.relation`). The weights of each stratum add up to its ``|ℓ|`` and have its sign.

**Randomised response.** Each answer b is made unbiased, ``½ + coth(ε/2)·(b − ½)``, and weighs ``w ∝ tanh²(ε/2)``. It
takes two values that are ``coth(ε/2)`` apart, so its variance is at most ``coth²(ε/2)/4`` whatever the share of yes,
and the estimate's error at most ``Σ w²·coth²(ε/2)/4``. By Hoeffding's inequality the half-width of an interval is
``√(2·ln(2/δ)·MSE)``, for all data. Both are what an `ErrorModel` says of data on ranges of the widths ``coth(ε/2)`` to
which nothing is added: its terms of noise are 0 here.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hushbid.common.arrays import FloatArray, IndexArray, refuse_rows
from hushbid.disclosure import noise
from hushbid.disclosure.combination import level_of, local_shares
from hushbid.disclosure.error import ErrorModel
from hushbid.disclosure.grid import ESTIMATE_BITS, PromiseCheck, to_data_units
from hushbid.disclosure.local import UNIT_SCALE, steps_of
from hushbid.disclosure.messages import LARGEST_GRID_BITS, Kind, Message, as_ratio
from hushbid.disclosure.promises import ReleasePlan
from hushbid.disclosure.release import Grid, Release, Summed
from hushbid.disclosure.weighing import Weighing, cell_bounds, expected_errors
from hushbid.errors import DataError, InputError, ReleaseError
from hushbid.estimation import WORST_VARIANCE

_ROUNDED = 2.0**-50
"""What is lost, relatively, where an answer by coin is made unbiased and weighed."""


# -- reading -----------------------------------------------------------------------------------------------------------


def read_messages(plan: ReleasePlan, data: object) -> list[Message | None]:
    """Everybody's message or None; those of people with a zero planned loss are not read."""
    if isinstance(data, (str, bytes, Mapping)) or not isinstance(data, Iterable):
        raise DataError(f"data must be one message per person, got {type(data).__name__}.", field="data")
    rows = list(data)
    if len(rows) != plan.people:
        raise DataError(f"data must have one entry per person ({plan.people}), got {len(rows)}.", field="data")
    kind = plan.kind
    messages: list[Message | None] = [None] * len(rows)
    for row in np.flatnonzero(plan.delivered > 0).tolist():
        messages[row] = _message(rows[row], row, kind, "privatize_answers" if plan.survey else "privatize")
    # promised to the last bit, and of these questions: a message of another loss is another promise
    wrong = np.array(
        [
            one is not None and (one.epsilon != as_ratio(loss) or not one.fits(plan.layout))
            for one, loss in zip(messages, plan.delivered.tolist(), strict=True)
        ]
    )
    about = "be about the survey's questions and " if kind == "answers" else ""
    rule = f"A message must {about}state the planned privacy loss exactly"
    refuse_rows(wrong, rule, "does", field="data", error=DataError)
    return messages


def _message(message: object, row: int, kind: Kind, maker: str) -> Message | None:
    if message is None or message is np.ma.masked or (isinstance(message, float) and math.isnan(message)):
        return None
    if isinstance(message, Message) and message.kind == kind:
        message = message.to_dict()  # to be read as any other
    try:
        if isinstance(message, (str, bytes)):
            return Message.from_json(message, kind)
        if isinstance(message, Mapping):
            return Message.from_dict(message, kind)
    except InputError as wrong:
        raise DataError(f"The message in row {row} cannot be read: {wrong}", field="data", row=row) from None
    problem = f"data in the local setting must be messages made by {maker}, but row {row} is not one."
    raise DataError(problem, field="data", row=row)


# -- weighing ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Sent:
    """Messages sent by the people in some rows of a plan."""

    plan: ReleasePlan
    rows: IndexArray

    @property
    def weights(self) -> FloatArray:
        """How much each message counts, the most precise most; without signs."""
        plan, rows = self.plan, self.rows
        strata = plan.strata.of(rows)
        return local_shares(plan.delivered[rows], plan.unit_variance[rows], strata, response=plan.response)

    @property
    def signed_weights(self) -> FloatArray:
        """The same with the sign of each one's stratum."""
        strata = self.plan.strata.of(self.rows)
        return np.asarray(np.sign(strata.weights)[strata.codes] * self.weights)

    def error(self, rounding: float = 0.0) -> ErrorModel:
        """Return how far the estimate may lie from the mean; of a survey, as a whole."""
        return self.weighing(rounding).error(self.plan.width, self.plan.relation)

    def errors(self, rounding: float = 0.0) -> list[ErrorModel]:
        """Return how far each question's values may lie from the truth."""
        return expected_errors(self.plan, self.weighing(rounding))

    def rounding(self, messages: Sequence[Message]) -> float:
        """Bound on what the grids add on a range of width 1, or on what is lost where answers are made unbiased."""
        if self.plan.response:
            return 2.0**-ESTIMATE_BITS + _ROUNDED * float(np.sum(self.weights * self._steps))
        bits = np.array([message.grid_bits for message in messages])
        return 2.0 * float(np.sum(self.weights * np.ldexp(1.0, -bits))) + 2.0**-ESTIMATE_BITS

    def simulate(self, tables: FloatArray) -> list[list[FloatArray]]:
        """The values by group and cell, each for every table of answers, as messages from these people would give them.

        ``tables`` are tables × people of the plan × questions. The noise is the messages' own, drawn on a common fine
        grid and stretched by ``1/ε`` in floating point; many coins are drawn at a time, with the probability of the
        truth as a double.
        """
        return self._flipped(tables) if self.plan.response else self._noisy(tables)

    def _noisy(self, tables: FloatArray) -> list[list[FloatArray]]:
        plan, rows, signed, times = self.plan, self.rows, self.signed_weights, len(tables)
        answers = tables[:, rows].reshape(times * rows.size, tables.shape[2])
        questions, level, found = plan.questions, level_of(plan.strata), []
        for group in plan.layout.groups:
            zeros = [[0] * group.cells] * (times * rows.size)
            unit = np.array(noise.draw_cells(zeros, scale=UNIT_SCALE, choice=group.choice), dtype=np.float64)
            losses = plan.delivered[rows] * group.share
            noisy = unit.reshape(times, rows.size, group.cells) / UNIT_SCALE / losses[:, np.newaxis]
            steps = steps_of(answers, group, questions, LARGEST_GRID_BITS) / 2.0**LARGEST_GRID_BITS
            noisy += steps.reshape(noisy.shape)
            shares = np.einsum("tpc,p->ct", noisy, signed)
            ranges = cell_bounds(group, questions)
            found.append([level * low + (high - low) * one for (low, high), one in zip(ranges, shares, strict=True)])
        return found

    def _flipped(self, tables: FloatArray) -> list[list[FloatArray]]:
        rng, truths = np.random.default_rng(), tables[:, self.rows, 0] > 0.0
        with np.errstate(over="ignore"):
            lies = 1.0 / (1.0 + np.exp(self.plan.delivered[self.rows]))
        yes = rng.random(truths.shape) < np.where(truths, 1.0 - lies, lies)
        return [[0.5 * level_of(self.plan.strata) + (yes - 0.5) @ (self.signed_weights * self._steps)]]

    @property
    def _steps(self) -> FloatArray:
        """``coth(ε/2)``: how far the two answers of each person are apart, made unbiased."""
        return np.asarray(1.0 / np.tanh(0.5 * self.plan.delivered[self.rows]))

    def weighing(self, rounding: float = 0.0) -> Weighing:
        """Return how the weights are spread; an answer by coin has no noise, but a range as wide as its steps."""
        plan, rows, weights, variance = self.plan, self.rows, self.weights, self.plan.variance[self.rows]
        with np.errstate(over="ignore"):
            scales = weights / plan.delivered[rows]
        if plan.response:
            weights, scales = weights * self._steps, np.zeros(1)
            variance = np.full(rows.size, WORST_VARIANCE * plan.width**2)
        return Weighing.of(
            weights,
            variance=variance,
            noise=scales,
            rounding=rounding,
            relation=plan.relation,
            strata=plan.strata.of(rows),
        )


def sent_by(plan: ReleasePlan, rows: IndexArray | None = None) -> Sent:
    """What the people in some rows send, by default everybody who is bought from."""
    return Sent(plan, np.flatnonzero(plan.delivered > 0) if rows is None else rows)


def combine(plan: ReleasePlan, messages: Sequence[Message | None]) -> Release:
    """Return the most precise weighted means of the messages, of which at least one is there; nothing is drawn."""
    rows = np.array([row for row, message in enumerate(messages) if message is not None])
    present = [message for message in messages if message is not None]
    sent, planned, level = sent_by(plan, rows), sent_by(plan), level_of(plan.strata)
    signed, rounding = sent.signed_weights.tolist(), sent.rounding(present)
    answers, values = [message.shares for message in present], []
    for place, group in enumerate(plan.layout.groups):
        cells = zip(*(one[place] for one in answers), strict=True)
        shares = [math.fsum(weight * one for weight, one in zip(signed, cell, strict=True)) for cell in cells]
        ratios = zip(map(float.as_integer_ratio, shares), cell_bounds(group, plan.questions), strict=True)
        values.append([to_data_units(above, below, bounds, level) for (above, below), bounds in ratios])
    bits = min(message.grid_bits for message in present)
    return Release.of(
        plan,
        values,
        errors=sent.errors(rounding),
        planned_errors=planned.errors(),
        key=plan.key,
        setting=plan.setting,
        error=sent.error(rounding),
        planned_error=planned.error(),
        grid=Grid(data_bits=bits, weight_exponent=None, total_weight=None, noise_scale=None),
        check=_check(plan, rows, [message.privacy_loss for message in present]),
        clamped=0,
        summed=Summed(delivered=rows.size, dropped_out=planned.rows.size - rows.size),
    )


def _check(plan: ReleasePlan, rows: IndexArray, losses: Sequence[Fraction | float]) -> PromiseCheck:
    """That the messages in these rows, made with these losses, keep what was promised."""
    for row, loss in zip(rows.tolist(), losses, strict=True):
        promise = float(plan.promised[row])
        if promise < math.inf and not loss <= Fraction(promise):
            problem = f"The message in row {row} was made with a larger privacy loss than promised."
            raise ReleaseError(problem, field="data", row=row)
    finite = rows[plan.promised[rows] < math.inf]
    return PromiseCheck(
        people=plan.people,
        people_in_fractions=len(losses),
        people_mapped=0,
        largest_share=float(np.max(plan.delivered[finite] / plan.promised[finite], initial=0.0)),
    )
