"""One plan of every kind that the attacks on privacy and accuracy know: a number, a contrast, a survey, a response."""

from functools import cache
from typing import Any

import numpy as np

from hushbid import Budget, Choice, Market, Number, Uniform, YesNo
from hushbid.disclosure import ReleasePlan
from hushbid.mechanism.releasing import plan_of

QUESTIONS = (
    Number(name="sleep", bounds=(0, 12), variance=2.0),
    YesNo(name="smoker"),
    Choice(name="party", answers=("a", "b", "c")),
)
STRATA = {"strata": ["old", "young"] * 10, "contrast": {"old": 1.0, "young": -1.0}}
SUMS: dict[str, Any] = {"goal": Budget(3)}
MESSAGES: dict[str, Any] = {"setting": "local", "buyer_weight": 30.0, "max_privacy_loss": 1.5}
KINDS: dict[str, dict[str, Any]] = {
    "number": {"bounds": (2, 12), **SUMS},
    "contrast": {"bounds": (2, 12), **STRATA, **SUMS},
    "survey": {"questions": QUESTIONS, "buyer_weight": 400.0, "max_privacy_loss": 1.0},
    "number sent": {"bounds": (2, 12), **MESSAGES},
    "survey sent": {"questions": QUESTIONS, **MESSAGES},
    "response": {"questions": [YesNo(name="q")], "setting": "local", "buyer_weight": 300.0},
}
SUMMED = ["number", "contrast", "survey"]
WITH_NOISE = [kind for kind in KINDS if kind != "response"]


@cache
def plan(kind: str) -> ReleasePlan:
    """The promises to at most six people of a market of twenty."""
    outcome = Market(prior=Uniform(1, 2), **KINDS[kind]).acquire(np.random.default_rng(1).uniform(1, 2, 20))
    bought = outcome.privacy_loss > 0
    return plan_of(outcome, key="audit", rows=bought & (np.cumsum(bought) <= 6))


def attacked(kind: str) -> int:
    """The row with the largest privacy loss."""
    return int(np.argmax(plan(kind).delivered))
