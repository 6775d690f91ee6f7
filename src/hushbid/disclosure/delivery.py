"""From a plan and data to a release that only has to be drawn, and to simulations that never are one.

That it is drawn once is the business of `hushbid.disclosure.ledger.once`.
"""

import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from hushbid.common.arrays import BoolArray, FloatArray, IntArray, rows_text
from hushbid.disclosure import memory
from hushbid.disclosure.answers import as_answers
from hushbid.disclosure.combination import Blend, rows_of
from hushbid.disclosure.error import ErrorModel
from hushbid.disclosure.grid import check_promises, integer_weights
from hushbid.disclosure.ledger.question import Forms, answer_forms, message_form
from hushbid.disclosure.local import draw_message
from hushbid.disclosure.messages import Message
from hushbid.disclosure.promises import ReleasePlan
from hushbid.disclosure.received import combine, read_messages, sent_by
from hushbid.disclosure.release import Release, Summed
from hushbid.disclosure.sums import clamped_in
from hushbid.disclosure.weighing import Weighing, expected_errors, side_by_side
from hushbid.errors import AlreadyReleased, InfiniteLoss, InputError, NothingDelivered
from hushbid.estimation import is_central

_BLOCK = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """Data that were found to be in order; only the drawing is left."""

    plan: ReleasePlan
    """What was promised."""

    draw: Callable[[], Release]
    """Draw, without anybody's figures."""

    present: BoolArray = field(repr=False)
    """Who was asked and delivered."""

    forms: Callable[[], Forms]
    """Everybody's data in a form in which two can be compared."""

    def drawn(self) -> Release:
        """Draw, and add everybody's figures."""
        return with_rows(self.draw(), self.plan, self.present)


def planned_weighing(plan: ReleasePlan) -> Weighing:
    """Return how weights are spread if everybody delivers; from the plan alone."""
    return memory.planned_weighing(plan) if is_central(plan.setting) else sent_by(plan).weighing()


def planned_error(plan: ReleasePlan) -> ErrorModel:
    """Return how far the estimate may lie from the mean if everybody delivers."""
    return planned_weighing(plan).error(plan.width, plan.relation)


def planned_errors(plan: ReleasePlan) -> list[ErrorModel]:
    """Return the same of each question, in their order."""
    return expected_errors(plan, planned_weighing(plan))


def simulate_plan(plan: ReleasePlan, data: object, repetitions: int) -> FloatArray:
    """Estimates as ``repetitions`` independent releases would give them, for study on synthetic data.

    For a survey one row per repetition, with the values of all questions side by side in their order: one for each
    number and yes/no question, and for a choice one for each answer.

    The noise is drawn as a release's is (coins of a yes/no question many at a time), but nothing is claimed, stored or
    remembered, and the average of the result is not private at all: never call this with data of people who were
    promised privacy. ``data`` are numbers in both settings; in the local one everybody's noise is new each
    time.
    """
    if repetitions < 0:
        raise InputError(f"repetitions must not be negative, got {repetitions}.", field="repetitions")
    table, present = _who_delivered(plan, data)
    found = Simulator.of(plan, present).draw(itertools.repeat(table, repetitions))
    return found if plan.survey else found[:, 0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulator:
    """A release's own weights and noise, for synthetic answers of those who are present."""

    weights: FloatArray
    """Everybody's without their signs, 0 for those who are not."""

    errors: list[ErrorModel]
    """What the release states of each question."""

    draw: Callable[[Iterable[FloatArray]], FloatArray]
    """From tables of answers, people × questions: of each one release, the values of all questions side by side."""

    @classmethod
    def of(cls, plan: ReleasePlan, present: BoolArray) -> "Simulator":
        """Return the simulator of a plan whose other people deliver nothing."""
        groups, values = plan.layout.groups, sum(group.cells for group in plan.layout.groups)
        if is_central(plan.setting):
            weighed = memory.weigh(plan, present)
            prepared = weighed.without_data()

            def summed(tables: Iterable[FloatArray]) -> FloatArray:
                totals, last = [], None
                for table in tables:
                    if table is not last:  # one that is repeated is added up once
                        sums, last = prepared.totals_of(weighed.sums(table)), table
                    totals.append(sums)
                found = [side_by_side(groups, one) for one in prepared.values(totals)]
                return np.array(found, dtype=np.float64).reshape(-1, values)

            return cls(weights=weighed.shares, errors=prepared.errors(), draw=summed)
        sent = sent_by(plan, np.flatnonzero(present))
        at_once, weights = max(1, _BLOCK // (sent.rows.size * values)), np.zeros(plan.people)
        weights[present] = np.abs(sent.signed_weights)

        def received(tables: Iterable[FloatArray]) -> FloatArray:
            left, found = iter(tables), [np.empty((0, values))]
            while some := list(itertools.islice(left, at_once)):
                found.append(np.stack(side_by_side(groups, sent.simulate(np.stack(some))), axis=1))
            return np.concatenate(found)

        return cls(weights=weights, errors=sent.errors(), draw=received)


def prepare_release(
    plan: ReleasePlan, data: object, accept_infinite_loss: bool = False, *, simulated: bool = False
) -> Prepared:
    """Validate everything and check every promise; what is returned only has to draw.

    ``simulated`` data are numbers in the local setting too, to which the noise of a device is added when drawing.
    """
    # without any noise only if the caller says so
    unlimited = plan.unlimited
    if unlimited.any() and not accept_infinite_loss:
        raise InfiniteLoss(
            f"The privacy loss is infinite for {rows_text(unlimited)}: pass accept_infinite_loss=True to use such"
            " people's data without any noise."
        )
    if not (is_central(plan.setting) or simulated):
        return _prepare_messages(plan, data)
    table, present = _who_delivered(plan, data)
    draw = _sums_of if is_central(plan.setting) else _simulated_messages
    return Prepared(
        plan=plan,
        draw=draw(plan, table, present),
        present=present,
        forms=lambda: answer_forms(table, present, plan.questions),
    )


def _sums_of(plan: ReleasePlan, table: FloatArray, present: BoolArray) -> Callable[[], Release]:
    prepared = memory.weigh(plan, present).prepare(table)
    counts = Summed(delivered=prepared.sums.total("delivered"), dropped_out=len(plan.dropped_out(present)))
    clamped = clamped_in(table[present], plan.questions)
    return lambda: replace(prepared.draw(plan.key), summed=counts, clamped=clamped)


def _prepare_messages(plan: ReleasePlan, data: object) -> Prepared:
    """Return what devices sent, with its noise: nothing is left to draw."""
    messages = read_messages(plan, data)
    present = np.array([message is not None for message in messages])
    _refuse_nobody(plan, present)
    release = combine(plan, messages)
    forms = Forms(rows=[message_form(message) for message in messages])
    return Prepared(plan=plan, draw=lambda: release, present=present, forms=lambda: forms)


def _simulated_messages(plan: ReleasePlan, table: FloatArray, present: BoolArray) -> Callable[[], Release]:
    """Return what adds the noise of devices to data when it draws."""

    def draw() -> Release:
        messages: list[Message | None] = [None] * plan.people
        for row in np.flatnonzero(present).tolist():
            messages[row] = draw_message(plan, table[row], float(plan.delivered[row]))
        return _prepare_messages(plan, messages).draw()

    return draw


def with_rows(release: Release, plan: ReleasePlan, present: BoolArray) -> Release:
    """A release as it is drawn and the ledger keeps it, with everybody's figures, by who of a plan delivered."""
    exponent, losses, check = release.grid.weight_exponent, np.where(present, plan.delivered, 0.0), release.check
    if exponent is not None:
        weights = _weights_drawn(release, plan, present, exponent)
        check, losses = check_promises(weights, exponent, plan.promised), np.ldexp(weights.astype(float), -exponent)
    elif is_central(plan.setting):  # only of those who ask for no privacy, without noise
        losses = np.where(plan.losses_used(present) == math.inf, math.inf, 0.0)
    gone = plan.dropped_out(present)
    return replace(
        release,
        privacy_loss=losses,
        check=replace(check, people=plan.people),
        dropped_out=gone,
        summed=None,
        key=plan.key,
    )


def _weights_drawn(release: Release, plan: ReleasePlan, present: BoolArray, exponent: int) -> IntArray:
    """The integer weights with which an estimate was drawn.

    Memory uses the best of what was promised to those present; an engine what was planned, strata in proportion.
    """
    wanted, strata = release.grid.total_weight, plan.strata
    best = integer_weights(plan.losses_used(present), exponent)
    if int(best.sum()) == wanted:
        return best
    weights = integer_weights(np.where(present, plan.delivered, 0.0), exponent)
    if int(weights.sum()) != wanted:
        raise AlreadyReleased(
            "The estimate was drawn by an engine, which kept no figures of single people, and decided about them"
            " with other last digits: ask again on an engine."
        )
    totals = [int(weights[rows].sum()) for rows in rows_of(strata)]
    return Blend.of(totals, strata.weights.tolist()).charged(weights, strata)


def _who_delivered(plan: ReleasePlan, data: object) -> tuple[FloatArray, BoolArray]:
    """People's answers, people × questions, and whose are all there and needed.

    People with a zero loss have nothing to deliver.
    """
    needed = plan.delivered > 0
    table = as_answers(data, plan.questions, needed=needed, survey=plan.survey)
    present = needed & ~np.isnan(table).any(axis=1)
    _refuse_nobody(plan, present)
    return table, present


def _refuse_nobody(plan: ReleasePlan, present: BoolArray) -> None:
    if not present.any():
        asked = np.count_nonzero(plan.delivered > 0)
        raise NothingDelivered(f"None of the {asked} people with a positive privacy loss delivered data.")
