"""The table of docs/reference/combinations.md, walked: brute force in every exact cell, the sentence in every other."""

import math
import re
from itertools import chain, combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from hushbid import Accuracy, Budget, Grouped, HardBudget, Market, Price, Uniform
from hushbid.errors import InputError
from hushbid.mechanism import Outcome

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "combinations.md"
GOALS = {"price": Price(60), "accuracy": Accuracy(0.55), "budget": Budget(4), "hard budget": HardBudget(4, coin=0.01)}
BIDS = np.array([1.1, 1.3, 1.6])
LIMITS = np.array([1.8, math.inf, 1.2])
ADDED: dict[str, dict[str, Any]] = {
    "one cap": {"max_privacy_loss": 2.0},
    "a cap per person": {"max_privacy_loss": [2.5, 1.9, 1.5]},
    "limits people state": {},
    "a relation": {"max_correlation": 0.2, "population": 5},
    "groups": {"prior": Grouped({"a": Uniform(1, 2), "b": Uniform(0.5, 2)}, ["a", "b", "a"])},
    "a variance per person": {"variance": [0.1, 0.2, 0.25]},
}
REASONS = {
    "¹": "NP-hard",
    "²": "variance must be one number in the local setting",
    "³": "max_privacy_loss cannot be joined with a standard_error in the local setting",
    "⁴": "a budget cannot be the goal in the local setting",
}


def table() -> dict[tuple[str, str], dict[str, str]]:
    """The table of the page: what stands under each heading, by setting and goal."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    head, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    return {(row[0], row[1]): dict(zip(head[2:], row[2:], strict=True)) for row in rows}


TABLE = table()
SUBSETS = [
    one
    for one in chain.from_iterable(combinations(ADDED, size) for size in range(len(ADDED) + 1))
    if not {"one cap", "a cap per person"} <= set(one)
]


def bought(setting: str, goal: str, added: tuple[str, ...], **changes: Any) -> Outcome:
    terms: dict[str, Any] = {"prior": Uniform(1, 2), "variance": 0.2}
    for name in added:
        terms |= ADDED[name]
    if {"a relation", "a variance per person"} <= set(added):  # it then rests on everybody's variance
        terms["population"] = None
    limits = LIMITS if "limits people state" in added else None
    bids, limits = changes.get("bids", BIDS), changes.get("limits", limits)
    return Market(setting=setting, goal=GOALS[goal], **terms).acquire(bids, limits=limits)  # type: ignore[arg-type]


def test_the_table_has_a_row_for_every_setting_and_goal_and_a_column_for_everything_that_can_be_added() -> None:
    assert set(TABLE) == set(product(("central", "local"), GOALS))
    assert all(set(row) == {"alone", *ADDED} for row in TABLE.values())


@pytest.mark.parametrize(("setting", "goal"), TABLE)
def test_every_combination_is_exact_or_refused_as_the_table_says(setting: str, goal: str) -> None:
    cells = TABLE[setting, goal]
    for added in SUBSETS:
        refused = [cells[name] for name in ("alone", *added) if cells[name] != "exact"]
        if not refused:
            confirm(setting, goal, added)
            continue
        reasons = "|".join(re.escape(REASONS[cell.removeprefix("refused")]) for cell in refused)
        with pytest.raises(InputError, match=reasons):
            bought(setting, goal, added)


def confirm(setting: str, goal: str, added: tuple[str, ...]) -> None:
    """Nothing a general solver finds is better, no misreport pays, and what was promised is kept."""
    found = bought(setting, goal, added)
    caps = found.population.caps()
    assert (found.privacy_loss <= caps * (1 + 1e-12)).all(), added
    if goal == "hard budget":
        assert sum(math.ceil(round(one * 100, 9)) for one in found.payments.tolist()) <= 400
        assert found.lower_bound <= found.objective * (1 + 1e-9)
    else:
        best = brute_force(found)
        assert found.objective == pytest.approx(best, rel=2e-8) or found.objective <= best, (
            added,
            found.objective,
            best,
        )
        assert found.lower_bound <= found.objective * (1 + 1e-9)
    if goal == "accuracy":
        assert math.sqrt(found.worst_mse) == pytest.approx(0.55, rel=1e-9)
    # person 0 lies about her price, and about her limit where she has one; more columns are no other rule
    if len(added) > 2:
        return
    honest = surplus(found, caps[0])
    for bid, limit in ((1.3, 2.6), (1.0, 0.9)):
        limits = np.r_[limit, LIMITS[1:]] if "limits people state" in added else None
        lie = bought(setting, goal, added, bids=np.r_[bid, BIDS[1:]], limits=limits)
        assert surplus(lie, caps[0]) <= honest + found.incentive_error + lie.incentive_error, (added, bid)


def surplus(outcome: Outcome, limit: float) -> float:
    """What person 0 has of it, whose price is 1.1 and who accepts no more than her limit."""
    loss = float(outcome.privacy_loss[0])
    return -math.inf if loss > limit * (1 + 1e-9) else float(outcome.payments[0]) - 1.1 * loss


def brute_force(outcome: Outcome) -> float:
    """The best objective a general solver finds, the problem written down once more."""
    market, costs, n = outcome.market, outcome.virtual_costs, outcome.bids.size
    own = np.broadcast_to(np.asarray(market.stated_variance, dtype=float), (n,))
    roster = market.population or n
    extra = market.max_correlation**2 * float(own.mean())
    planned, caps = own + roster * extra, np.minimum(outcome.population.caps(), 60.0)
    central = market.setting == "central"

    def error(losses: np.ndarray) -> float:
        if central:
            return float((2.0 + np.sum(planned * losses**2)) / np.sum(losses) ** 2) - extra
        return float(1.0 / np.sum(losses**2 / (planned * losses**2 + 2.0))) - extra

    weight = market.goal.number  # type: ignore[union-attr]
    aims = {
        "price": (lambda e: weight * error(e) + costs @ e, None),
        "accuracy": (lambda e: costs @ e, lambda e: math.log(weight**2 / error(e))),
        "budget": (lambda e: math.log(error(e) + extra), lambda e: weight - costs @ e),
    }
    aim, limit = aims[market.goal.kind]  # type: ignore[union-attr]
    best = math.inf
    # a price for the error has valleys, and so has the local setting: one start for each set of sellers
    everybody = list(chain.from_iterable(combinations(range(n), size) for size in range(1, n + 1)))
    convex = central and market.goal.kind != "price"  # type: ignore[union-attr]
    for sellers in everybody[-1:] if convex else everybody:
        high = np.where(np.isin(np.arange(n), sellers), caps, 1e-12)
        done = minimize(
            aim,
            np.minimum(0.5 * high, 3.0),
            method="SLSQP",
            bounds=list(zip(np.full(n, 1e-13), high, strict=True)),
            constraints=[] if limit is None else [{"type": "ineq", "fun": limit}],
            options={"ftol": 1e-14, "maxiter": 300},
        )
        if limit is None or limit(done.x) > -1e-10:
            best = min(best, float(done.fun))
    return math.exp(best) - extra if market.goal.kind == "budget" else best  # type: ignore[union-attr]
