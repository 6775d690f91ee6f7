"""One yes/no question in the local setting: each device answers by randomised response, and adds no noise to a number.

On a device, `draw_responses` answers with the truth or with the opposite, by a coin with odds ``e^ε : 1``: whatever the
truth is, no answer is more than ``e^ε`` times as likely as under the other truth. The platform makes each answer b
unbiased, ``½ + coth(ε/2)·(b − ½)``, and weighs them by their precision, ``w ∝ tanh²(ε/2)``.

**The error.** An unbiased answer takes two values that are ``coth(ε/2)`` apart, so its variance is at most
``coth²(ε/2)/4`` whatever the share of yes, and the estimate's error at most ``Σ w²·coth²(ε/2)/4``. By Hoeffding's
inequality the half-width of an interval is ``√(2·ln(2/δ)·MSE)``, for all data. Both are what an `ErrorModel` says of
data on ranges of the widths ``coth(ε/2)`` to which nothing is added: its terms of noise are 0 here.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from hushbid.arrays import FloatArray, IndexArray, first_row, rows_text
from hushbid.disclosure import noise
from hushbid.disclosure.error import ErrorModel
from hushbid.disclosure.grid import ESTIMATE_BITS, to_data_units
from hushbid.disclosure.local import Combination, check_messages, messages_of
from hushbid.disclosure.message import as_ratio
from hushbid.disclosure.promises import ReleasePlan
from hushbid.disclosure.release import Grid, QuestionAnswer
from hushbid.disclosure.response_message import RandomisedResponse
from hushbid.errors import DataError
from hushbid.estimation import WORST_VARIANCE, best_weights

_RANGE = (0.0, 1.0)
_ROUNDED = 2.0**-50
"""What is lost, relatively, where an answer is made unbiased and weighed."""


def draw_responses(truths: Sequence[int], loss: float) -> list[RandomisedResponse]:
    """A message for each true answer, 0 or 1, all with the same loss. Nothing is kept."""
    ratio = as_ratio(loss)
    answers = list(truths) if loss == math.inf else noise.flip_many(truths, *ratio)
    return [RandomisedResponse(epsilon=ratio, answer=answer) for answer in answers]


def read_responses(plan: ReleasePlan, data: object) -> list[RandomisedResponse | None]:
    """Everybody's message or None; those of people with a zero planned loss are not read."""
    messages = messages_of(plan, data, RandomisedResponse, "privatize_answers")
    # promised to the last bit
    wrong = np.array(
        [
            found is not None and found.epsilon != as_ratio(loss)
            for found, loss in zip(messages, plan.delivered.tolist(), strict=True)
        ]
    )
    if wrong.any():
        told = f"A message must state the planned privacy loss exactly, but {rows_text(wrong, 'does')} not."
        raise DataError(told, field="data", row=first_row(wrong))
    return messages


def combine_responses(
    plan: ReleasePlan, messages: Sequence[RandomisedResponse | None]
) -> tuple[Combination, QuestionAnswer]:
    """The most precise weighted mean of the answers, made unbiased; at least one is there."""
    rows = np.array([row for row, message in enumerate(messages) if message is not None])
    present = [message for message in messages if message is not None]
    weights = _weights(plan, rows)
    share = math.fsum(weight * one.decode() for weight, one in zip(weights.tolist(), present, strict=True))
    privacy_loss = np.zeros(plan.people)
    privacy_loss[rows] = plan.delivered[rows]
    rounding = 2.0**-ESTIMATE_BITS + _ROUNDED * float(np.sum(weights * _steps(plan, rows)))
    combined = Combination(
        estimate=to_data_units(Fraction(share), _RANGE),
        privacy_loss=privacy_loss,
        error=_error(plan, rows, weights, width=plan.width, rounding=rounding),
        grid=Grid(data_bits=0, weight_exponent=None, total_weight=None, noise_scale=None),
        check=check_messages(plan, rows, [message.privacy_loss for message in present]),
    )
    answer = QuestionAnswer(
        question=plan.questions[0],
        values=(combined.estimate,),
        error=_error(plan, rows, weights, width=1.0, rounding=rounding),
        planned_error=planned_error(plan, width=1.0),
    )
    return combined, answer


def planned_error(plan: ReleasePlan, *, width: float) -> ErrorModel:
    """How far the share of yes may lie from the truth if everybody delivers, on a range of that width."""
    rows = np.flatnonzero(plan.delivered > 0)
    return _error(plan, rows, _weights(plan, rows), width=width, rounding=0.0)


def simulate_responses(plan: ReleasePlan, truths: FloatArray, rows: IndexArray, times: int) -> FloatArray:
    """The share of yes so often, as messages from those in ``rows``, whose true answers these are, would give it.

    For study on synthetic data: many coins at a time, with the probability of the truth as a double.
    """
    weighed, rng = _weights(plan, rows) * _steps(plan, rows), np.random.default_rng()
    with np.errstate(over="ignore"):
        lies = 1.0 / (1.0 + np.exp(plan.delivered[rows]))
    found = np.full(times, 0.5)
    for truth, lie, weight in zip(truths.tolist(), lies.tolist(), weighed.tolist(), strict=True):
        yes = rng.random(times) < (1.0 - lie if truth else lie)
        found += weight * (yes - 0.5)
    return found


def _weights(plan: ReleasePlan, rows: IndexArray) -> FloatArray:
    return best_weights(plan.delivered[rows], setting="local", variance=WORST_VARIANCE, response=True).weights


def _steps(plan: ReleasePlan, rows: IndexArray) -> FloatArray:
    """``coth(ε/2)``: how far the two answers of each person are apart, made unbiased."""
    return np.asarray(1.0 / np.tanh(0.5 * plan.delivered[rows]))


def _error(plan: ReleasePlan, rows: IndexArray, weights: FloatArray, *, width: float, rounding: float) -> ErrorModel:
    steps = width * weights * _steps(plan, rows)
    squares = float(np.sum(np.square(steps)))
    return ErrorModel(
        sampling_variance=WORST_VARIANCE * squares,
        squared_steps=squares,
        largest_step=float(steps.max()),
        largest_noise=0.0,
        next_noise=0.0,
        other_noise_squared=0.0,
        rounding=width * rounding,
    )
