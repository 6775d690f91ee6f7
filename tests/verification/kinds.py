"""One market of every kind that can be recorded, and forgeries of what it pays, for the tests of verification."""

import dataclasses
from functools import cache
from typing import Any

import numpy as np

from hushbid.allocation import Accuracy, Budget, HardBudget
from hushbid.mechanism import Market, Outcome
from hushbid.priors import Grouped, LogNormal, Uniform
from hushbid.questions import Choice, Number, YesNo

PEOPLE = 6
BIDS = np.random.default_rng(26).uniform(1.0, 2.0, PEOPLE)
LIMITS = np.array([0.25, np.inf, 0.4] * 2)
STRATA = ["north", "south", "west"] * 2
SHARES = {"north": 0.5, "south": 0.3, "west": 0.2}
GROUPS = Grouped({"a": Uniform(1, 2), "b": LogNormal(0.3, 0.3)}, ["a", "b"] * 3)
SURVEY = (Number(name="sleep", bounds=(0, 12), variance=2.0), Choice(name="party", answers=("a", "b", "c")))

KINDS: dict[str, dict[str, Any]] = {
    "central price": {"buyer_weight": 60.0},
    "central price, people care": {"buyer_weight": 1.0, "user_weight": 2.0, "variance": 0.2},
    "central price, the estimate outside": {
        "buyer_weight": 1.0,
        "user_weight": 2.0,
        "variance": 0.2,
        "outside_option": "estimate",
    },
    "central accuracy": {"goal": Accuracy(0.4)},
    "central budget": {"goal": Budget(8.0)},
    "hard budget": {"goal": HardBudget(8.0)},
    "hard budget, caps": {"goal": HardBudget(8.0), "max_privacy_loss": 0.3},
    "central price, caps": {"buyer_weight": 60.0, "max_privacy_loss": 0.5},
    "central accuracy, caps": {"goal": Accuracy(0.6), "max_privacy_loss": 0.5},
    "central budget, caps": {"goal": Budget(8.0), "max_privacy_loss": 0.5},
    "central price, limits": {"buyer_weight": 60.0, "limits": LIMITS},
    "central accuracy, limits": {"goal": Accuracy(0.5), "limits": LIMITS},
    "central budget, limits": {"goal": Budget(5.0), "limits": LIMITS},
    "central price, a variance each": {"buyer_weight": 60.0, "variance": np.linspace(0.1, 0.25, PEOPLE)},
    "central price, groups": {"buyer_weight": 60.0, "prior": GROUPS},
    "central budget, groups": {"goal": Budget(8.0), "prior": GROUPS},
    "central price, questions": {"buyer_weight": 60.0, "questions": SURVEY},
    "central price, strata": {"buyer_weight": 60.0, "strata": STRATA, "shares": SHARES},
    "central accuracy, strata": {"goal": Accuracy(0.5), "strata": STRATA, "shares": SHARES},
    "central budget, strata": {"goal": Budget(8.0), "strata": STRATA, "shares": SHARES},
    "central price, strata and caps": {
        "buyer_weight": 60.0,
        "strata": STRATA,
        "shares": SHARES,
        "max_privacy_loss": 0.5,
    },
    "central price, strata and limits": {
        "buyer_weight": 60.0,
        "strata": STRATA,
        "shares": SHARES,
        "limits": LIMITS,
    },
    "local price": {"buyer_weight": 200.0, "setting": "local"},
    "local accuracy": {"goal": Accuracy(0.5), "setting": "local"},
    "local price, caps": {"buyer_weight": 200.0, "setting": "local", "max_privacy_loss": 1.5},
    "local price, groups": {"buyer_weight": 200.0, "setting": "local", "prior": GROUPS},
    "local price, questions": {"buyer_weight": 200.0, "setting": "local", "questions": SURVEY},
    "local price, strata": {"buyer_weight": 400.0, "setting": "local", "strata": STRATA, "shares": SHARES},
    "local price, strata and caps": {
        "buyer_weight": 400.0,
        "setting": "local",
        "strata": STRATA,
        "shares": SHARES,
        "max_privacy_loss": 1.5,
    },
    "randomised response": {"buyer_weight": 200.0, "setting": "local", "questions": (YesNo(name="smoker"),)},
}


@cache
def outcome_of(kind: str) -> Outcome:
    """What such a market buys from six people."""
    terms = {"prior": Uniform(1, 2), **KINDS[kind]}
    limits = terms.pop("limits", None)
    found = Market(**terms).acquire(BIDS, limits=limits)
    assert found.active > 1, kind
    return found


def with_rents(outcome: Outcome, rents: np.ndarray) -> Outcome:
    """Other rents, with payments that add up and bounds that are moved along."""
    change = rents - outcome.information_rent
    low, high = outcome.rent_bounds
    bounds = (
        np.where(outcome.privacy_loss > 0, low + change, 0.0),
        np.where(outcome.privacy_loss > 0, high + change, 0.0),
    )
    bounds = (np.minimum(bounds[0], rents), np.maximum(bounds[1], rents))
    return fitting(outcome, information_rent=rents, payments=outcome.payments + change, rent_bounds=bounds)


def stretched(forged: Outcome, honest: Outcome, *, tolerance: float) -> Outcome:
    """The same with bounds that hold the honest rents and the forged ones, and that tolerance."""
    rents = forged.information_rent, honest.information_rent
    sold = honest.privacy_loss > 0
    low, high = np.where(sold, np.minimum(*rents), 0.0), np.where(sold, np.maximum(*rents), 0.0)
    market = copied(forged.market, tolerance=tolerance)
    return fitting(forged, rent_bounds=(low, high), market=market)


def copied(market: Market, *, tolerance: float) -> Market:
    """The market with a tolerance that it may not accept."""
    found = dataclasses.replace(market)
    object.__setattr__(found, "tolerance", tolerance)
    return found


def fitting(outcome: Outcome, **changes: Any) -> Outcome:
    """Another outcome, whose incentive error fits its bounds."""
    found = dataclasses.replace(outcome, **changes)
    rent, (low, high) = found.information_rent, found.rent_bounds
    widest = 2.0 * float(np.maximum(high - rent, rent - low).max())
    stated = max(widest, found.incentive_error) if isinstance(found.market.goal, HardBudget) else widest
    return dataclasses.replace(found, incentive_error=stated)
