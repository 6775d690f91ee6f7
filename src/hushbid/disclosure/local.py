"""Local setting: the noise is added where the data are, and what arrives needs no trust.

On a device, :func:`privatize` turns one datum into a message: an integer X on a grid of ``2**m`` steps plus discrete
Laplace noise of scale ``b ≥ 2**m/ε``, so that the person loses at most ``2**m/b ≤ ε``, in exact arithmetic. The
platform weighs the messages by their precision, ``w_i ∝ 1/(V_i + 2/ε_i²)``, and adds nothing. Where price and datum may
be related, V_i is larger by what protects against that (`hushbid.disclosure.relation`). Where stratum means are
combined, the weights of each stratum add up to its ``|ℓ|`` and have its sign; a device knows nothing of strata.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from hushbid.arrays import FloatArray, IndexArray, as_bounds, as_column, as_losses, first_row, rows_text
from hushbid.disclosure import noise
from hushbid.disclosure.combination import level_of, local_shares
from hushbid.disclosure.error import ErrorModel
from hushbid.disclosure.grid import ESTIMATE_BITS, PromiseCheck, to_data_units, to_grid
from hushbid.disclosure.ledger.files import drawn_once, stored
from hushbid.disclosure.message import LARGEST_GRID_BITS, PrivatizedValue, as_ratio, within_reach
from hushbid.disclosure.promises import SMALLEST_LOSS, ReleasePlan
from hushbid.disclosure.release import Grid
from hushbid.disclosure.response_message import RandomisedResponse
from hushbid.disclosure.survey_message import PrivatizedAnswers
from hushbid.disclosure.weighing import Weighing
from hushbid.errors import DataError, InfiniteLoss, InputError, ReleaseError

M = TypeVar("M", PrivatizedValue, PrivatizedAnswers, RandomisedResponse)
"""What one device sends: about one number, about a survey, or about a single yes/no question."""

_UNIT_SCALE = 2.0**40
_STORE_FORMAT = "hushbid private value"


def privatize(
    value: float,
    privacy_loss: float,
    bounds: tuple[float, float],
    *,
    store: str | Path | None = None,
    accept_infinite_loss: bool = False,
) -> PrivatizedValue:
    """One person's datum, clamped to the public range, with noise that costs her at most ``privacy_loss``.

    Sending a second noisy value of the same datum doubles the loss. With ``store``, a path without extension, the first
    one is kept on disk before it is returned, and every later call returns that one. The file says no more than the
    message does; in particular it cannot tell whether a later call brings another ``value``. A later call with another
    privacy loss or range is refused.

        >>> message = privatize(7.5, 0.5, (0, 10))
        >>> message.grid_bits, message.epsilon
        (32, (1, 2))
    """
    loss, bounds = as_loss(privacy_loss, accept_infinite_loss), as_bounds(bounds)
    if store is None:
        return draw_messages(_as_datum(value), loss, bounds)[0]
    path = Path(store)
    if not path.name:
        raise InputError(f"store must be a path that ends in a name, got {str(store)!r}.", field="store")
    # what a stored message must have been made with
    terms = {"format": _STORE_FORMAT, "version": 1, "bounds": list(bounds), "epsilon": [str(k) for k in as_ratio(loss)]}
    kept = stored(path.parent, path.name)
    if kept is None:
        column = _as_datum(value)  # refused before anything is written

        def draw() -> dict[str, Any]:
            return {**terms, "message": draw_messages(column, loss, bounds)[0].to_dict()}

        kept = drawn_once(path.parent, path.name, draw)
    if {name: kept.get(name) for name in terms} != terms:
        raise ReleaseError(f"{path}.json holds what was privatized with another privacy loss or other bounds.")
    return PrivatizedValue.from_dict(kept["message"])


def draw_messages(column: FloatArray, loss: float, bounds: tuple[float, float]) -> list[PrivatizedValue]:
    """A message for each datum, all with the same loss, the promise verified exactly first. Nothing is kept."""
    bits = grid_bits(loss)
    steps: list[int] = to_grid(column, bounds, bits=bits).tolist()
    if loss < math.inf:
        scale = noise_scale(loss, bits)
        [bound] = noise.loss_bounds([2**bits], scale=scale)
        if not (Fraction(2**bits) / Fraction(scale) <= Fraction(loss) and bound <= loss):
            raise ReleaseError("The noise would not keep the promise; nothing was drawn.")
        steps = noise.draw_many(steps, scale=scale)
    ratio = as_ratio(loss)
    return [PrivatizedValue(grid_bits=bits, epsilon=ratio, value=within_reach(step, bits, ratio)) for step in steps]


def simulate_privatized(values: ArrayLike, privacy_loss: ArrayLike, bounds: tuple[float, float]) -> FloatArray:
    """Noisy values of many people, in data units, for simulation: one fast call, and nothing is kept.

    The noise is the same sampler's, drawn on a common fine grid and stretched by ``1/ε_i`` in floating point; a message
    meant to be sent comes from :func:`privatize`.
    """
    bounds = as_bounds(bounds)
    column = as_column(values, needed=np.ones(np.size(values), dtype=np.bool_))
    losses = np.array(np.broadcast_to(as_losses(np.atleast_1d(privacy_loss), some_positive=False), column.shape))
    if not (losses > 0).all() or np.isnan(column).any():
        raise InputError("Simulated values must not be missing, and their privacy losses must be positive.")
    low, high = bounds
    share = np.ldexp(to_grid(column, bounds, bits=LARGEST_GRID_BITS).astype(np.float64), -LARGEST_GRID_BITS)
    unit = np.array(noise.draw_many([0] * column.size, scale=_UNIT_SCALE), dtype=np.float64) / _UNIT_SCALE
    return np.asarray(low + (high - low) * (share + unit / losses))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Combination:
    """Messages, read and weighed."""

    estimate: float
    """The weighted mean, in data units."""

    privacy_loss: FloatArray = field(repr=False)
    """What everybody who delivered loses."""

    error: ErrorModel
    """How far the estimate may lie from the mean."""

    grid: Grid
    """The coarsest grid among the messages."""

    check: PromiseCheck
    """That every message was made with the planned loss, at most the promised one."""


def read_messages(plan: ReleasePlan, data: object) -> list[PrivatizedValue | None]:
    """Everybody's message or None; those of people with a zero planned loss are not read."""
    messages = messages_of(plan, data, PrivatizedValue, "privatize")
    # promised to the last bit: a message of another loss is another promise
    wrong = np.array(
        [
            m is not None and m.epsilon != as_ratio(loss)
            for m, loss in zip(messages, plan.delivered.tolist(), strict=True)
        ]
    )
    if wrong.any():
        told = f"A message must state the planned privacy loss exactly, but {rows_text(wrong, 'does')} not."
        raise DataError(told, field="data", row=first_row(wrong))
    return messages


def messages_of(plan: ReleasePlan, data: object, kind: type[M], maker: str) -> list[M | None]:
    """Everybody's message of a kind, or None, as it was sent."""
    if isinstance(data, (str, bytes, Mapping)) or not isinstance(data, Iterable):
        raise DataError(f"data must be one message per person, got {type(data).__name__}.", field="data")
    rows = list(data)
    if len(rows) != plan.people:
        raise DataError(f"data must have one entry per person ({plan.people}), got {len(rows)}.", field="data")
    messages: list[M | None] = [None] * len(rows)
    for row in np.flatnonzero(plan.delivered > 0).tolist():
        messages[row] = _message(rows[row], row, kind, maker)
    return messages


def combine(plan: ReleasePlan, messages: list[PrivatizedValue | None]) -> Combination:
    """The most precise weighted mean of the messages; at least one is there."""
    rows = np.array([row for row, message in enumerate(messages) if message is not None])
    present = [message for message in messages if message is not None]
    losses, weights = plan.delivered[rows], weights_of_messages(plan, rows)
    # each message as a share of the range; noise may carry it outside
    shares = [message.value / (1 << message.grid_bits) for message in present]
    signed = signed_weights(plan, rows)
    share = math.fsum(weight * value for weight, value in zip(signed.tolist(), shares, strict=True))
    privacy_loss = np.zeros(plan.people)
    privacy_loss[rows] = losses
    bits = np.array([message.grid_bits for message in present])
    rounding = 2.0 * float(np.sum(weights * np.ldexp(1.0, -bits))) + 2.0**-ESTIMATE_BITS
    return Combination(
        estimate=to_data_units(Fraction(share), plan.bounds, level_of(plan.combination)),
        privacy_loss=privacy_loss,
        error=error_of(plan, rows, weights, rounding=rounding),
        grid=Grid(data_bits=int(bits.min()), weight_exponent=None, total_weight=None, noise_scale=None),
        check=check_messages(plan, rows, [message.privacy_loss for message in present]),
    )


def planned_error(plan: ReleasePlan) -> ErrorModel:
    """How far the estimate may lie from the mean if everybody delivers."""
    rows = np.flatnonzero(plan.delivered > 0)
    return error_of(plan, rows, weights_of_messages(plan, rows))


def weights_of_messages(plan: ReleasePlan, rows: IndexArray) -> FloatArray:
    """How much the messages in ``rows`` count, the most precise most; without signs."""
    return local_shares(plan.delivered[rows], plan.unit_variance[rows], plan.combination.of(rows))


def signed_weights(plan: ReleasePlan, rows: IndexArray) -> FloatArray:
    """The same with the signs of their strata."""
    strata = plan.combination.of(rows)
    return np.asarray(np.sign(strata.weights)[strata.codes] * weights_of_messages(plan, rows))


def error_of(plan: ReleasePlan, rows: IndexArray, weights: FloatArray, *, rounding: float = 0.0) -> ErrorModel:
    """How far a mean of the messages in ``rows`` with these weights may lie from the mean; rounding in widths."""
    return weighing_of(plan, rows, weights, rounding=rounding).error(plan.width, plan.relation)


def weighing_of(plan: ReleasePlan, rows: IndexArray, weights: FloatArray, *, rounding: float = 0.0) -> Weighing:
    """How the weights of the messages in ``rows`` are spread, each with noise of its own."""
    with np.errstate(over="ignore"):
        scales = weights / plan.delivered[rows]
    return Weighing.of(
        weights,
        variance=plan.variance[rows],
        noise=scales,
        rounding=rounding,
        relation=plan.relation,
        strata=plan.combination.of(rows),
    )


def grid_bits(privacy_loss: float) -> int:
    """32 bits, fewer for a loss so small that the noise would not fit in 64 bits otherwise."""
    if privacy_loss == math.inf:
        return LARGEST_GRID_BITS
    return min(LARGEST_GRID_BITS, 53 + math.frexp(privacy_loss)[1])


def noise_scale(privacy_loss: float, bits: int) -> float:
    """The least double b that certainly satisfies ``2**bits/b ≤ privacy_loss``."""
    scale = 2.0**bits / privacy_loss
    if Fraction(scale) * Fraction(privacy_loss) < 2**bits:
        scale = math.nextafter(scale, math.inf)
    return scale


def as_loss(privacy_loss: float, accept_infinite_loss: bool) -> float:
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


def _as_datum(value: float) -> FloatArray:
    column = as_column([value], needed=np.array([True]))
    if math.isnan(column[0]):
        raise DataError("value is missing: there is nothing to send.")
    return column


def _message(message: object, row: int, kind: type[M], maker: str) -> M | None:
    if message is None or message is np.ma.masked or (isinstance(message, float) and math.isnan(message)):
        return None
    if isinstance(message, kind):
        message = message.to_dict()
    try:
        if isinstance(message, (str, bytes)):
            return kind.from_json(message)
        if isinstance(message, Mapping):
            return kind.from_dict(message)
    except InputError as problem:
        raise DataError(f"The message in row {row} cannot be read: {problem}", field="data", row=row) from None
    told = f"data in the local setting must be messages made by {maker}, but row {row} is not one."
    raise DataError(told, field="data", row=row)


def check_messages(plan: ReleasePlan, rows: IndexArray, losses: Sequence[Fraction | float]) -> PromiseCheck:
    """That the messages in these rows, made with these losses, keep what was promised."""
    for row, loss in zip(rows.tolist(), losses, strict=True):
        promise = float(plan.promised[row])
        if promise < math.inf and not loss <= Fraction(promise):
            told = f"The message in row {row} was made with a larger privacy loss than promised."
            raise ReleaseError(told, field="data", row=row)
    finite = rows[plan.promised[rows] < math.inf]
    return PromiseCheck(
        people=plan.people,
        people_in_fractions=len(losses),
        people_mapped=0,
        largest_share=float(np.max(plan.delivered[finite] / plan.promised[finite], initial=0.0)),
    )
