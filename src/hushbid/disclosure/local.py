"""Local setting, on a device: noise is added where the data are, and what is sent needs no trust.

`privatize` and `privatize_answers` turn one person's datum or answers into a message (`hushbid.disclosure.messages`).
One number is a survey of one question. Group g of the questions has the part ``s_g`` of the person's loss ε: its cells
are integers on a grid of ``2**m`` steps, plus a noise of scale ``b_g ≥ 2**m/(ε·s_g)``. Other answers move a group's
cells by at most ``2**m``, in the sense of its noise, so that the person loses at most ``Σ_g 2**m/b_g ≤ ε``, in exact
arithmetic. A device knows nothing of strata.

A single yes/no question is answered by randomised response instead: with the truth or with the opposite, by a coin with
odds ``e^ε : 1``. Whatever the truth is, no answer is more than ``e^ε`` times as likely as under the other truth.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from hushbid.common.arrays import FloatArray, IntArray
from hushbid.disclosure import noise
from hushbid.disclosure.answers import as_answers
from hushbid.disclosure.grid import to_grid
from hushbid.disclosure.ledger.files import drawn_once, stored
from hushbid.disclosure.messages import LARGEST_GRID_BITS, Message, as_ratio, cut_off
from hushbid.disclosure.promises import LARGEST_SENT_LOSS, ONE_NUMBER, SMALLEST_LOSS, ReleasePlan, as_asked
from hushbid.disclosure.weighing import Asked, bounds_of
from hushbid.errors import DataError, InfiniteLoss, InputError, ReleaseError
from hushbid.questions import PARTS, Layout, NoiseGroup, Question, as_questions

UNIT_SCALE = 2.0**40
"""Noise for simulations is drawn on a grid so fine, and stretched."""


def privatize(
    value: float,
    privacy_loss: float,
    bounds: tuple[float, float],
    *,
    store: str | Path | None = None,
    accept_infinite_loss: bool = False,
) -> Message:
    """One person's datum, clamped to the public range, with noise that costs at most ``privacy_loss``.

    Sending a second noisy value of the same datum doubles the loss. With ``store``, a path without extension, the first
    one is kept on disk before it is returned, and every later call returns that one. The file says no more than the
    message does; in particular it cannot tell whether a later call brings another ``value``. A later call with another
    privacy loss or range is refused.

        >>> message = privatize(7.5, 0.5, (0, 10))
        >>> message.grid_bits, message.epsilon
        (32, (1, 2))
    """
    loss, asked = _as_loss(privacy_loss, accept_infinite_loss), as_asked((), bounds=bounds)

    terms = {"format": "hushbid private value", "version": 1, "bounds": list(asked.bounds)}
    return _sent_once(store, terms, value, loss, asked, other="other bounds")


def privatize_answers(
    answers: Sequence[object] | Mapping[str, object],
    privacy_loss: float,
    questions: Iterable[Question],
    *,
    layout: Layout | None = None,
    store: str | Path | None = None,
    accept_infinite_loss: bool = False,
) -> Message:
    """One person's answers to a survey, with noise that costs at most ``privacy_loss`` for all of them together.

    A single yes/no question is answered by randomised response: a coin decides whether the message says the truth.
    ``answers`` are in the questions' order, or by their names; none may be left open. The layout is the best for the
    questions' importance unless given. A second message about the same answers doubles the loss: with ``store``, a
    path without extension, the first one is kept on disk before it is returned, and every later call returns that one,
    as `hushbid.disclosure.privatize` does.
    """
    asked = as_asked(as_questions(questions), layout)
    loss, groups = _as_loss(privacy_loss, accept_infinite_loss), asked.layout.groups
    if asked.kind == "answers":
        _refuse_unsharable(loss, groups)

    terms = {
        "format": "hushbid private answers",
        "version": 1,
        "questions": [one.to_dict() for one in asked.questions],
        "parts": [group.parts for group in groups],
    }
    return _sent_once(store, terms, answers, loss, asked, other="for other questions")


def _sent_once(
    store: str | Path | None,
    terms: Mapping[str, Any],
    given: object,
    loss: float,
    asked: Asked,
    *,
    other: str,
) -> Message:
    """Make a message of one person's answers, or return the one that is kept; its terms and its loss must be these."""
    if store is None:
        return draw_messages(_answered(given, asked), loss, asked)[0]
    path = Path(store)
    if not path.name:
        raise InputError(f"store must be a path that ends in a name, got {str(store)!r}.", field="store")
    terms = {**terms, "epsilon": [str(part) for part in as_ratio(loss)]}
    kept = stored(path.parent, path.name)
    if kept is None:
        table = _answered(given, asked)  # refused before anything is written
        kept = drawn_once(
            path.parent, path.name, lambda: {**terms, "message": draw_messages(table, loss, asked)[0].to_dict()}
        )
    if {name: kept.get(name) for name in terms} != terms:
        raise ReleaseError(f"{path}.json holds what was privatized with another privacy loss or {other}.")
    return Message.from_dict(kept["message"], asked.kind)


def _answered(given: object, asked: Asked) -> FloatArray:
    """One person's answers as a table of one row, none of them left open."""
    table = as_answers([given], asked.questions, needed=np.array([True]), survey=asked.survey)
    if np.isnan(table).any():
        raise DataError(
            f"{'A question is left open' if asked.survey else 'value is missing'}: there is nothing to send."
        )
    return table


# -- drawing -----------------------------------------------------------------------------------------------------------


def draw_message(plan: ReleasePlan, answers: FloatArray, loss: float) -> Message:
    """A message about one person's answers, a row of numbers, as a plan asks for it. Nothing is kept."""
    loss = _as_loss(loss, accept_infinite_loss=True)
    return draw_messages(answers[np.newaxis], loss, plan)[0]


def draw_messages(table: FloatArray, loss: float, asked: Asked) -> list[Message]:
    """Return a message for each row of answers, all with the same loss. Nothing is kept."""
    ratio, kind, groups = as_ratio(loss), asked.kind, asked.layout.groups
    if kind == "response":
        truths = [int(answer) for [answer] in table.tolist()]
        answers = truths if loss == math.inf else noise.flip_many(truths, *ratio)
        return [Message(kind=kind, epsilon=ratio, values=((answer,),)) for answer in answers]
    bits, parts = grid_bits(loss, groups), tuple(group.parts for group in groups)
    steps = [steps_of(table, group, asked.questions, bits).tolist() for group in groups]
    cut = [
        [cut_off(cells, bits, ratio, part, kind) for cells in of_group]
        for of_group, part in zip(_noisy(steps, loss, groups), parts, strict=True)
    ]
    return [
        Message(kind=kind, epsilon=ratio, values=values, grid_bits=bits, parts=parts)
        for values in zip(*cut, strict=True)
    ]


def _noisy(
    steps: Sequence[Sequence[Sequence[int]]], loss: float, groups: Sequence[NoiseGroup]
) -> Sequence[Sequence[Sequence[int]]]:
    """Return everybody's cells by group with noise; the promise is verified exactly first."""
    if loss == math.inf:
        return steps
    bits = grid_bits(loss, groups)
    scales = [noise_scale(loss, bits, group) for group in groups]
    broken = sum((Fraction(2**bits) / Fraction(scale) for scale in scales), Fraction(0)) > Fraction(loss)
    if [group.cells for group in groups] == [1]:  # OpenDP's own bound, too
        broken = broken or noise.loss_bounds([2**bits], scale=scales[0])[0] > loss
    if broken:
        raise ReleaseError("The noise would not keep the promise; nothing was drawn.")
    return [
        noise.draw_cells(cells, scale=scale, choice=group.choice)
        for group, cells, scale in zip(groups, steps, scales, strict=True)
    ]


def steps_of(table: FloatArray, group: NoiseGroup, questions: Sequence[Question], bits: int) -> IntArray:
    """Everybody's answers to a group's questions in steps of the grid, people × cells."""
    if group.choice:
        chosen = table[:, group.rows[0], np.newaxis] == np.arange(group.cells)
        return np.where(chosen, 2**bits, 0).astype(np.int64)
    columns = [to_grid(table[:, row], bounds_of(questions[row]), bits=bits) for row in group.rows]
    return np.stack(columns, axis=1)


def grid_bits(loss: float, groups: Sequence[NoiseGroup] = ONE_NUMBER.groups) -> int:
    """32 bits, fewer if the noise of the group with the least part would not fit in 64 bits otherwise."""
    if loss == math.inf:
        return LARGEST_GRID_BITS
    numerator, denominator = loss.as_integer_ratio()
    least = numerator * min(group.parts for group in groups)
    # the least part is f·2**e with ½ ≤ f < 1; the denominator is a power of two
    return min(LARGEST_GRID_BITS, 53 + least.bit_length() - (denominator * PARTS).bit_length() + 1)


def noise_scale(loss: float, bits: int, group: NoiseGroup = ONE_NUMBER.groups[0]) -> float:
    """The least double b that certainly satisfies ``2**bits/b ≤ loss·share`` of the group."""
    wanted = Fraction(2**bits * PARTS, group.parts) / Fraction(loss)
    scale = wanted.numerator / wanted.denominator  # rounded once, to the nearest
    return scale if Fraction(scale) >= wanted else math.nextafter(scale, math.inf)


# -- losses ------------------------------------------------------------------------------------------------------------


def _as_loss(privacy_loss: float, accept_infinite_loss: bool) -> float:
    """A privacy loss with which something can be sent."""
    try:
        loss = float(privacy_loss)
    except (TypeError, ValueError):
        raise InputError("privacy_loss must be a number.", field="privacy_loss") from None
    if not loss >= SMALLEST_LOSS:
        raise InputError(
            f"privacy_loss must be at least 2**-53 = {SMALLEST_LOSS:.3g} to send anything, got {loss}.",
            field="privacy_loss",
        )
    if loss == math.inf and not accept_infinite_loss:
        raise InfiniteLoss("privacy_loss is infinite: pass accept_infinite_loss=True to send the value without noise.")
    return loss


def _refuse_unsharable(loss: float, groups: Sequence[NoiseGroup]) -> None:
    """Refuse a loss that leaves less noise than a survey's grid can hold, or nothing for some questions."""
    if loss < math.inf and not (loss <= LARGEST_SENT_LOSS and grid_bits(loss, groups) >= 1):
        raise InputError(
            f"privacy_loss must be at most 2**24 for a survey, and large enough to share, or infinite, got {loss}.",
            field="privacy_loss",
        )
