"""A survey in the local setting: each device adds noise to its own answers, and what arrives needs no trust.

On a device, :func:`privatize_answers` turns one person's answers into a message. Group g of the questions has the part
``s_g`` of her loss ε: its cells are integers on a grid of ``2**m`` steps, plus a noise of scale ``b_g ≥ 2**m/(ε·s_g)``.
Other answers of hers move a group's cells by at most ``2**m``, in the sense of its noise, so that she loses at most
``Σ_g 2**m/b_g ≤ ε`` in exact arithmetic. The platform weighs everybody's messages with one weight for all questions,
``w_i ∝ 1/(V̄ + 2·width²/ε_i²)``, those of the layout, and adds nothing.

A single yes/no question is answered by randomised response instead: `hushbid.disclosure.response_local`.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from hushbid.arrays import FloatArray, IndexArray, first_row, rows_text
from hushbid.disclosure import noise
from hushbid.disclosure.answers import as_answers
from hushbid.disclosure.combination import level_of
from hushbid.disclosure.error import ErrorModel
from hushbid.disclosure.grid import ESTIMATE_BITS, PromiseCheck, to_data_units, to_grid
from hushbid.disclosure.ledger.files import drawn_once, stored
from hushbid.disclosure.local import (
    as_loss,
    check_messages,
    error_of,
    messages_of,
    signed_weights,
    weighing_of,
    weights_of_messages,
)
from hushbid.disclosure.message import LARGEST_GRID_BITS, as_ratio
from hushbid.disclosure.promises import LARGEST_SENT_LOSS, ReleasePlan, layout_of_plan
from hushbid.disclosure.release import Grid, QuestionAnswer
from hushbid.disclosure.response_local import draw_responses
from hushbid.disclosure.response_message import RandomisedResponse
from hushbid.disclosure.survey_message import PrivatizedAnswers, cut_off
from hushbid.disclosure.weighing import bounds_of, in_order, question_errors
from hushbid.errors import DataError, InputError, ReleaseError
from hushbid.questions import (
    PARTS,
    Layout,
    NoiseGroup,
    Question,
    as_questions,
    layout_of,
    one_yes_no,
    refuse_other_layout,
)

_UNIT_SCALE = 2.0**40
_STORE_FORMAT = "hushbid private answers"


def privatize_answers(
    answers: Sequence[object] | Mapping[str, object],
    privacy_loss: float,
    questions: Iterable[Question],
    *,
    layout: Layout | None = None,
    store: str | Path | None = None,
    accept_infinite_loss: bool = False,
) -> PrivatizedAnswers | RandomisedResponse:
    """One person's answers to a survey, with noise that costs her at most ``privacy_loss`` for all of them together.

    A single yes/no question is answered by randomised response: a coin decides whether the message says the truth.
    ``answers`` are in the questions' order, or by their names; none may be left open. The layout is the best for the
    questions' importance unless given. A second message about the same answers doubles the loss: with ``store``, a
    path without extension, the first one is kept on disk before it is returned, and every later call returns that one,
    as `hushbid.disclosure.privatize` does.
    """
    asked = as_questions(questions)
    if layout is not None:
        refuse_other_layout(asked, layout)
    shared = layout_of(asked) if layout is None else layout
    by_coin = one_yes_no(asked)
    loss = (
        as_loss(privacy_loss, accept_infinite_loss) if by_coin else _as_loss(privacy_loss, accept_infinite_loss, shared)
    )

    def made(row: FloatArray) -> PrivatizedAnswers | RandomisedResponse:
        return draw_responses([int(row[0])], loss)[0] if by_coin else draw_answers(row, loss, asked, shared)

    if store is None:
        return made(_one_row(answers, asked))
    path = Path(store)
    if not path.name:
        raise InputError(f"store must be a path that ends in a name, got {str(store)!r}.", field="store")
    # what a stored message must have been made with
    terms = {
        "format": _STORE_FORMAT,
        "version": 1,
        "questions": [one.to_dict() for one in asked],
        "parts": [group.parts for group in shared.groups],
        "epsilon": [str(part) for part in as_ratio(loss)],
    }
    kept = stored(path.parent, path.name)
    if kept is None:
        row = _one_row(answers, asked)  # refused before anything is written

        def draw() -> dict[str, Any]:
            return {**terms, "message": made(row).to_dict()}

        kept = drawn_once(path.parent, path.name, draw)
    if {name: kept.get(name) for name in terms} != terms:
        told = f"{path}.json holds what was privatized with another privacy loss or for other questions."
        raise ReleaseError(told)
    return message_kind(asked).from_dict(kept["message"])


def message_kind(questions: Sequence[Question]) -> type[PrivatizedAnswers] | type[RandomisedResponse]:
    """What a device sends about these questions: a message with noise, or about a single yes/no question by coin."""
    return RandomisedResponse if one_yes_no(questions) else PrivatizedAnswers


def draw_answers(row: FloatArray, loss: float, questions: Sequence[Question], layout: Layout) -> PrivatizedAnswers:
    """A message for one person's answers. Nothing is kept."""
    [message] = draw_messages(row[np.newaxis], loss, questions, layout)
    return message


def draw_messages(
    table: FloatArray, loss: float, questions: Sequence[Question], layout: Layout
) -> list[PrivatizedAnswers]:
    """A message for each row of answers, all with the same loss, the promise verified exactly first."""
    bits, ratio = grid_bits(loss, layout), as_ratio(loss)
    scales = [] if loss == math.inf else [noise_scale_of(loss, bits, group) for group in layout.groups]
    if sum((Fraction(2**bits) / Fraction(scale) for scale in scales), Fraction(0)) > as_fraction(loss):
        raise ReleaseError("The noise would not keep the promise; nothing was drawn.")
    by_group = []
    for place, group in enumerate(layout.groups):
        cells = [steps_of(row, group, questions, bits) for row in table]
        if scales:
            draw = noise.draw_choices if group.choice else noise.draw_boxes
            cells = draw(cells, scale=scales[place])
        by_group.append([cut_off(one, bits, ratio, group.parts) for one in cells])
    parts = tuple(group.parts for group in layout.groups)
    return [
        PrivatizedAnswers(grid_bits=bits, epsilon=ratio, parts=parts, values=values)
        for values in zip(*by_group, strict=True)
    ]


def steps_of(row: FloatArray, group: NoiseGroup, questions: Sequence[Question], bits: int) -> list[int]:
    """One person's answers to a group's questions in steps of the grid."""
    if group.choice:
        return [2**bits if row[group.rows[0]] == answer else 0 for answer in range(group.cells)]
    return [int(to_grid(row[one : one + 1], bounds_of(questions[one]), bits=bits)[0]) for one in group.rows]


def grid_bits(loss: float, layout: Layout) -> int:
    """32 bits, fewer if the noise of the group with the least part would not fit in 64 bits otherwise."""
    if loss == math.inf:
        return LARGEST_GRID_BITS
    numerator, denominator = loss.as_integer_ratio()
    least = numerator * min(group.parts for group in layout.groups)
    # the least part is f·2**e with ½ ≤ f < 1; the denominator is a power of two
    return min(LARGEST_GRID_BITS, 53 + least.bit_length() - (denominator * PARTS).bit_length() + 1)


def noise_scale_of(loss: float, bits: int, group: NoiseGroup) -> float:
    """The least double b that certainly satisfies ``2**bits/b ≤ loss·share`` of the group."""
    wanted = Fraction(2**bits * PARTS, group.parts) / Fraction(loss)
    scale = wanted.numerator / wanted.denominator  # rounded once, to the nearest
    return scale if Fraction(scale) >= wanted else math.nextafter(scale, math.inf)


def as_fraction(loss: float) -> Fraction:
    """A loss as the number that it is; an infinite one as more than any noise costs."""
    return Fraction(loss) if loss < math.inf else Fraction(2) ** 2000


# -- what arrives ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SurveyCombination:
    """Messages about a survey, read and weighed."""

    answers: tuple[QuestionAnswer, ...]
    """What was found."""

    privacy_loss: FloatArray = field(repr=False)
    """What everybody who delivered loses."""

    error: ErrorModel
    """The survey's error as a whole."""

    grid: Grid
    """The coarsest grid among the messages."""

    check: PromiseCheck
    """That every message was made with the planned loss, at most the promised one."""


def read_answers(plan: ReleasePlan, data: object) -> list[PrivatizedAnswers | None]:
    """Everybody's message or None; those of people with a zero planned loss are not read."""
    layout, losses = layout_of_plan(plan), plan.delivered.tolist()
    messages = messages_of(plan, data, PrivatizedAnswers, "privatize_answers")
    # promised to the last bit, and of these questions
    wrong = np.array(
        [
            found is not None and (found.epsilon != as_ratio(loss) or not found.fits(layout))
            for found, loss in zip(messages, losses, strict=True)
        ]
    )
    if wrong.any():
        told = "A message must be about the survey's questions and state the planned privacy loss exactly, but"
        raise DataError(f"{told} {rows_text(wrong, 'does')} not.", field="data", row=first_row(wrong))
    return messages


def combine_answers(plan: ReleasePlan, messages: Sequence[PrivatizedAnswers | None]) -> SurveyCombination:
    """The weighted means of the messages; at least one is there."""
    layout = layout_of_plan(plan)
    rows = np.array([row for row, message in enumerate(messages) if message is not None])
    present = [message for message in messages if message is not None]
    losses, weights = plan.delivered[rows], weights_of_messages(plan, rows)
    signed, level = signed_weights(plan, rows), level_of(plan.combination)
    bits = np.array([message.grid_bits for message in present])
    rounding = 2.0 * float(np.sum(weights * np.ldexp(1.0, -bits))) + 2.0**-ESTIMATE_BITS
    values = []
    for place, group in enumerate(layout.groups):
        cells = []
        for cell in range(group.cells):
            shares = [message.values[place][cell] / (1 << message.grid_bits) for message in present]
            share = math.fsum(weight * one for weight, one in zip(signed.tolist(), shares, strict=True))
            question = plan.questions[group.rows[0] if group.choice else group.rows[cell]]
            cells.append(to_data_units(Fraction(share), bounds_of(question), level))
        values.append(cells)
    errors = _errors(plan, layout, rows, weights, rounding)
    privacy_loss = np.zeros(plan.people)
    privacy_loss[rows] = losses
    return SurveyCombination(
        answers=tuple(
            QuestionAnswer(question=question, error=error, planned_error=planned, values=tuple(v), strata=plan.combined)
            for question, error, planned, v in zip(
                plan.questions, errors, planned_errors(plan), in_order(layout.groups, values), strict=True
            )
        ),
        privacy_loss=privacy_loss,
        error=error_of(plan, rows, weights, rounding=rounding),
        grid=Grid(data_bits=int(bits.min()), weight_exponent=None, total_weight=None, noise_scale=None),
        check=check_messages(plan, rows, [message.privacy_loss for message in present]),
    )


def planned_errors(plan: ReleasePlan) -> list[ErrorModel]:
    """How far each question's values may lie from the truth if everybody delivers; from the plan alone."""
    rows = np.flatnonzero(plan.delivered > 0)
    return _errors(plan, layout_of_plan(plan), rows, weights_of_messages(plan, rows), 0.0)


def simulate_answers(plan: ReleasePlan, table: FloatArray, rows: IndexArray, times: int) -> list[list[FloatArray]]:
    """The values by group and cell, each so often, as messages from those in ``rows`` would give them.

    The noise is the messages' own, drawn on a common fine grid and stretched by ``1/ε`` in floating point.
    """
    layout, losses = layout_of_plan(plan), plan.delivered[rows]
    weights, level = signed_weights(plan, rows), level_of(plan.combination)
    found = []
    for group in layout.groups:
        draw = noise.draw_choices if group.choice else noise.draw_boxes
        unit = np.array(draw([[0] * group.cells] * (times * rows.size), scale=_UNIT_SCALE), dtype=np.float64)
        noisy = unit.reshape(times, rows.size, group.cells) / _UNIT_SCALE / (losses * group.share)[:, np.newaxis]
        steps = [steps_of(table[row], group, plan.questions, LARGEST_GRID_BITS) for row in rows]
        noisy += np.array(steps, dtype=np.float64) / 2.0**LARGEST_GRID_BITS
        owners = group.rows * group.cells if group.choice else group.rows
        ranges = [bounds_of(plan.questions[row]) for row in owners]
        shares = np.einsum("tpc,p->ct", noisy, weights)
        found.append([level * low + (high - low) * share for (low, high), share in zip(ranges, shares, strict=True)])
    return found


def _errors(
    plan: ReleasePlan, layout: Layout, rows: IndexArray, weights: FloatArray, rounding: float
) -> list[ErrorModel]:
    whole = weighing_of(plan, rows, weights, rounding=rounding)
    return question_errors(plan.questions, layout, plan.relation, [whole.share(group) for group in layout.groups])


def _as_loss(privacy_loss: float, accept_infinite_loss: bool, layout: Layout) -> float:
    loss = as_loss(privacy_loss, accept_infinite_loss)
    if loss < math.inf and not (loss <= LARGEST_SENT_LOSS and grid_bits(loss, layout) >= 1):
        raise InputError(
            f"privacy_loss must be at most 2**24 for a survey, and large enough to share, or infinite, got {loss}.",
            field="privacy_loss",
        )
    return loss


def _one_row(answers: object, questions: Sequence[Question]) -> FloatArray:
    row: FloatArray = as_answers([answers], questions, needed=np.array([True]))[0]
    if np.isnan(row).any():
        raise DataError("A question is left open: there is nothing to send.")
    return row
