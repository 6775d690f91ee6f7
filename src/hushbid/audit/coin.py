"""The attack on the privacy of an answer by coin: the message about a single yes/no question in the local setting.

Her device answers so often if the truth is yes, and so often if it is no. What can be told from the answer is bounded
as in :mod:`hushbid.audit.privacy`, by exact binomial bounds on how likely each answer is. Besides, the number of lies
is compared with what it should be, ``1/(1 + e^ε)`` of all answers, by an exact test: a coin that lies too seldom is
seen there first.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from hushbid.audit.privacy import TOO_LITTLE_NOISE, PrivacyAudit, certain_loss
from hushbid.common.arrays import FloatArray
from hushbid.disclosure import ReleasePlan
from hushbid.disclosure.local import draw_responses

Respond = Callable[[int, int], Sequence[int]]
"""From a true answer, 0 or 1, and a number: so many answers as a device would give them."""


def check_plan_by_coin(plan: ReleasePlan, *, user: int, samples: int, confidence: float) -> PrivacyAudit:
    """Attack the device's own sampler, with the loss that is planned for her."""
    loss = float(plan.delivered[user])

    def respond(truth: int, number: int) -> list[int]:
        return [message.answer for message in draw_responses([truth] * number, loss)]

    return check_coin(respond, float(plan.promised[user]), user=user, samples=samples, confidence=confidence)


def check_coin(
    respond: Respond, promised: float, *, user: int = 0, samples: int = 5_000, confidence: float = 0.99
) -> PrivacyAudit:
    """Attack any device that answers yes or no by a coin and promises a privacy loss of exactly ``promised``."""
    truths = {"low": 0, "high": 1, "far below": 0, "far above": 1}  # there are no other answers
    outputs: dict[str, FloatArray] = {
        place: np.array(respond(truth, samples), dtype=np.float64) for place, truth in truths.items()
    }
    doubt = (1.0 - confidence) / 2.0  # the other half of it is for the fit
    bound, event = certain_loss(outputs, doubt)
    lies = sum(int(np.count_nonzero(outputs[place] != truth)) for place, truth in truths.items())
    drawn = len(truths) * samples
    return PrivacyAudit(
        user=user,
        promised=promised,
        lower_bound=bound,
        event=event.replace("output", "answer"),
        fit_p_value=_fit(lies, drawn, promised),
        confidence=confidence,
        samples=samples,
        power=_power(drawn, promised, doubt),
        by_coin=True,
    )


def _lying(loss: float) -> float:
    return 1.0 / (1.0 + math.exp(min(loss, 700.0)))


def _fit(lies: int, drawn: int, promised: float) -> float:
    """How likely a coin as promised lies as much too seldom or too often: twice the smaller of the exact tails."""
    from scipy.special import bdtr, bdtrc

    chance = _lying(promised)
    seldom = float(bdtr(lies, drawn, chance))
    often = float(bdtrc(lies - 1, drawn, chance)) if lies > 0 else 1.0
    return min(1.0, 2.0 * min(seldom, often))


def _power(drawn: int, promised: float, doubt: float) -> float:
    """How likely the test rejects a coin that lies as for a loss 1/0.7 times as large: its lies are too few."""
    from scipy.special import bdtr

    chance, fewer = _lying(promised), _lying(promised / TOO_LITTLE_NOISE)
    # the most lies with which it still rejects, by halving
    low, high = -1, drawn
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if 2.0 * float(bdtr(middle, drawn, chance)) < doubt else (low, middle)
    return float(bdtr(low, drawn, fewer)) if low >= 0 else 0.0
