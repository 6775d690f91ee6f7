"""The table of combinations, walked: brute force where it is exact, simulation where it is met on average, a
counterexample where it is impossible, and the sentence wherever it is refused."""

import math
from dataclasses import replace
from itertools import chain, combinations, product
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from hushbid import Accuracy, Budget, Grouped, HardBudget, Market, Number, Price, Uniform, YesNo
from hushbid.campaign.spec import StrataTable
from hushbid.campaign.terms import refuse_terms
from hushbid.errors import InputError
from hushbid.mechanism import Outcome
from hushbid.mechanism.combinations import CASES, COLUMNS, Combination, case_of, offered, page, rows
from hushbid.mechanism.planned_price import Roster
from hushbid.mechanism.survey import goal_for_one_number
from tests.extent import ALL_CASES
from tests.mechanism.counterexamples import show_why_not_exact
from tools.combinations import PAGE, filled

GOALS = {"price": Price(60), "accuracy": Accuracy(0.62), "budget": Budget(4), "hard budget": HardBudget(4, coin=0.01)}
BIDS = np.array([1.1, 1.3, 1.6])
LIMITS = np.array([1.8, math.inf, 1.2])
ADDED: dict[str, dict[str, Any]] = {
    "one cap": {"max_privacy_loss": 2.0},
    "a cap per person": {"max_privacy_loss": [2.5, 1.9, 1.5]},
    "limits people state": {},
    "a relation": {"max_correlation": 0.2},
    "groups": {"prior": Grouped({"a": Uniform(1, 2), "b": Uniform(0.5, 2)}, ["a", "b", "a"])},
    "a variance per person": {"variance": [0.1, 0.2, 0.25]},
    "strata": {"strata": ["a", "b", "a"], "shares": {"a": 0.45, "b": 0.55}},
    "several questions": {"questions": [Number(name="height", bounds=(0, 2), variance=0.6), YesNo(name="smokes")]},
    "one yes/no question": {"questions": [YesNo(name="smokes")]},
    "user weights": {"user_weight": [4.0, 0.0, 9.0]},
}
ASKED = {"several questions", "one yes/no question"}
APART = ({"one cap", "a cap per person"}, ASKED, {"a variance per person", "several questions"})
APART += ({"a variance per person", "one yes/no question"},)
"""What a market cannot state together."""

TRIED_IN_PAIRS = ASKED | {"user weights"}
SUBSETS = [
    one
    for one in chain.from_iterable(combinations(ADDED, size) for size in range(len(ADDED) + 1))
    if not any(pair <= set(one) for pair in APART) and (len(one) < 3 or not TRIED_IN_PAIRS & set(one))
]


def bought(setting: str, goal: str, added: tuple[str, ...], **changes: Any) -> Outcome:
    terms: dict[str, Any] = {"prior": Uniform(1, 2), "goal": GOALS[goal]}
    terms |= {} if ASKED & set(added) else {"variance": 0.2}
    for name in added:
        terms |= ADDED[name]
    if goal == "accuracy" and "several questions" in added:
        terms["goal"] = Accuracy((1.6, 0.9))
    if goal == "budget" or "a relation" in added:  # a roster; people who differ are all of it
        differ = {"a variance per person"} | ({"a cap per person", "groups"} if goal == "budget" else set())
        terms["population"] = 5 if "a relation" in added and not differ & set(added) else 3
    if "strata" in added and "population" in terms:
        terms["population"] = {"a": 3, "b": 2} if terms["population"] == 5 else {"a": 2, "b": 1}
    limits = LIMITS if "limits people state" in added else None
    bids, limits = changes.get("bids", BIDS), changes.get("limits", limits)
    return Market(setting=setting, **terms).acquire(bids, limits=limits)  # type: ignore[arg-type]


def combination(setting: str, goal: str, added: tuple[str, ...]) -> Combination:
    """The same market as a combination of the table."""
    stated: Any = {"setting": setting, "goal": goal.replace(" ", "_")}
    for name in added:
        stated |= COLUMNS[name]
    return Combination(**stated)


@pytest.mark.parametrize(("setting", "goal"), list(product(("central", "local"), GOALS)))
def test_every_combination_is_what_the_table_says(setting: str, goal: str) -> None:
    shown = set()
    for place, added in enumerate(SUBSETS):
        stated = combination(setting, goal, added)
        case = case_of(stated)
        if case is None:
            few = 2 if TRIED_IN_PAIRS & set(added) else 3
            if ALL_CASES or len(added) < few or place % 6 == 0:  # of larger ones some stand for all
                confirm(setting, goal, added)
            continue
        if case.state in ("impossible", "on average") and case.reason not in shown:
            show_why_not_exact(stated)
            shown.add(case.reason)
        if not case.refused:
            confirm_on_average(setting, goal, added)
            continue
        with pytest.raises(InputError) as problem:
            bought(setting, goal, added)
        assert str(problem.value) == case.told(stated)
        assert problem.value.field == case.field_of(stated)


AXES: dict[str, tuple[Any, ...]] = {
    "setting": ("central", "local"),
    "goal": ("price", "accuracy", "budget", "hard_budget"),
    "cap": ("none", "one", "each"),
    "limits": (False, True),
    "strata": (False, True),
    "questions": ("none", "several", "yes_no"),
    "correlation": (0.0, 0.2),
    "variances": (False, True),
    "user_weight": (False, True),
}
ALL = [Combination(**dict(zip(AXES, values, strict=True))) for values in product(*AXES.values())]
EXPRESSIBLE = [one for one in ALL if not (one.variances and one.questions != "none")]  # each question has its own


def market_of(stated: Combination) -> Market:
    """A market of four people that states what a combination says."""
    asked = [Number(name="height", bounds=(0, 1)), YesNo(name="smokes")][1 if stated.questions == "yes_no" else 0 :]
    errors = 2.0 if stated.questions != "several" else (2.0, 2.0)
    goals = {"price": Price(60), "accuracy": Accuracy(errors), "budget": Budget(4), "hard_budget": HardBudget(4)}
    terms: dict[str, Any] = {"variance": [0.1, 0.2, 0.25, 0.15] if stated.variances else 0.2}
    if stated.questions != "none":
        terms = {"questions": asked}
    if stated.strata:
        terms |= {"strata": ["a", "a", "b", "b"], "shares": {"a": 0.4, "b": 0.6}}
    caps: dict[str, Any] = {"none": None, "one": 2.0, "each": [2.5, 1.9, 1.5, 2.0]}
    return Market(
        prior=Uniform(1, 2),
        setting=stated.setting,
        goal=goals[stated.goal],
        max_privacy_loss=caps[stated.cap],
        max_correlation=stated.correlation,
        user_weight=1.0 if stated.user_weight else 0.0,
        **terms,
    )


def test_the_library_refuses_what_the_table_refuses_with_its_sentence_and_nothing_else() -> None:
    decided = []
    for stated in EXPRESSIBLE:
        refused = case_of(stated)
        if refused is None or not refused.refused:
            market = market_of(stated)
            assert market.combination == replace(stated, limits=False)
            assert market.takes_cap == offered(replace(market.combination, cap="one"))
            if refused is None:
                decided.append((stated, market))
            continue
        with pytest.raises(InputError) as problem:
            market_of(stated).acquire([1.1, 1.3, 1.6, 1.2], limits=[1.8, math.inf, 1.2, 1.5] if stated.limits else None)
        assert str(problem.value) == refused.told(stated), stated
        assert problem.value.field == refused.field_of(stated), stated
    # what is offered is decided; every seventh, which is coprime to all axes, unless all are asked for
    for stated, market in decided[:: 1 if ALL_CASES else 7]:
        found = market.acquire([1.1, 1.3, 1.6, 1.2], limits=[1.8, math.inf, 1.2, 1.5] if stated.limits else None)
        assert found.active > 0, stated


def test_every_case_is_the_first_for_some_combination() -> None:
    reached = {case_of(replace(one, each=each)) for one in ALL for each in (False, True)} - {None}
    assert reached == set(CASES)


def test_an_estimate_for_each_stratum_is_refused_as_the_table_says() -> None:
    strata = StrataTable(column="region", each=True)
    for setting, goal in rows():
        for weight in (0.0, 1.0):
            stated = Combination(setting=setting, goal=goal, each=True, user_weight=weight > 0.0)
            terms = {"setting": setting, "goal": GOALS[goal.replace("_", " ")], "user_weight": weight}
            refused = case_of(stated)
            if refused is None:
                refuse_terms(strata, terms | {"max_correlation": 0.0})
                continue
            with pytest.raises(InputError) as problem:
                refuse_terms(strata, terms | {"max_correlation": 0.0})
            assert str(problem.value) == refused.told(stated)


def test_the_reference_page_is_printed_from_the_table() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert filled(text) == text, "run python -m tools.combinations"
    assert page() in text


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
        assert math.sqrt(found.worst_mse) == pytest.approx(found.population.goal.number, rel=1e-9)
    # person 0 lies about her price, and about her limit where she has one; more columns are no other rule
    if len(added) > 2:
        return
    honest = surplus(found, caps[0])
    for bid, limit in ((1.3, 2.6), (1.0, 0.9)):
        limits = np.r_[limit, LIMITS[1:]] if "limits people state" in added else None
        lie = bought(setting, goal, added, bids=np.r_[bid, BIDS[1:]], limits=limits)
        assert surplus(lie, caps[0]) <= honest + found.incentive_error + lie.incentive_error, (added, bid)


def confirm_on_average(setting: str, goal: str, added: tuple[str, ...]) -> None:
    """The price is stated, meets the budget on average over fresh draws, and the purchase is the best one for it."""
    found = bought(setting, goal, added)
    population = found.market.for_people(BIDS.size, limits=found.limits is not None)  # limits are in no draw
    roster = Roster.of(population)
    fresh = roster.purchases(population.error_weight, roster.markets(400, seed=11)).expense
    stated = found.market.goal
    assert isinstance(stated, Budget)
    assert stated.planned is not None
    assert stated.planned.mean == pytest.approx(stated.amount, rel=2e-3)
    assert stated.planned.standard_error <= 0.01 * stated.amount
    spread = math.hypot(stated.planned.standard_error, float(fresh.std(ddof=1)) / 20.0)
    assert abs(float(fresh.mean()) - stated.amount) < 3.5 * spread, added
    best = brute_force(replace(found, market=replace(found.market, goal=Price(stated.planned.price))))
    assert found.objective == pytest.approx(best, rel=2e-8) or found.objective <= best, added


def surplus(outcome: Outcome, limit: float) -> float:
    """What person 0 has of it, whose price is 1.1 and who accepts no more than her limit."""
    loss = float(outcome.privacy_loss[0])
    return -math.inf if loss > limit * (1 + 1e-9) else outcome.utility(0, 1.1)


def brute_force(outcome: Outcome) -> float:
    """The best objective a general solver finds, the problem written down once more."""
    market, costs, n = outcome.market, outcome.virtual_costs, outcome.bids.size
    unit, goal = market.width**2, goal_for_one_number(market.survey, market.stated_goal)
    own = np.broadcast_to(np.asarray(market.stated_variance, dtype=float), (n,)) / unit
    roster = market.roster or n
    extra = market.max_correlation**2 * float(own.mean())
    planned, caps = own + roster * extra, np.minimum(outcome.population.caps(), 60.0)
    central, strata = market.setting == "central", market.stratified
    by_response = not central and market.survey is not None and len(market.survey) == 1
    codes = np.zeros(n, dtype=int) if strata is None else strata.codes
    sizes = np.ones(1) if strata is None else strata.weights
    if strata is not None:  # everybody of a stratum alike, and the worst relation inside strata
        extra *= roster * float(np.sum(sizes**2 / np.array(outcome.population.rosters)))

    def error(losses: np.ndarray) -> float:
        if central:
            return float((2.0 + np.sum(planned * losses**2)) / (np.sum(losses) / np.sum(sizes)) ** 2) - extra
        precision = 4.0 * np.tanh(losses / 2.0) ** 2 if by_response else losses**2 / (planned * losses**2 + 2.0)
        return float(np.sum(sizes**2 / np.bincount(codes, weights=precision, minlength=sizes.size))) - extra

    weight = (goal.number + float(np.sum(market.user_weight))) * unit
    aims = {
        "price": (lambda e: weight * error(e) + costs @ e, None),
        "accuracy": (lambda e: costs @ e, lambda e: math.log(goal.number**2 / unit / error(e))),
        "budget": (lambda e: math.log(error(e) + extra), lambda e: goal.number - costs @ e),
    }
    aim, limit = aims[goal.kind]
    # centrally one noise for all strata: what each gives is in proportion to its weight
    shares = [
        {"type": "eq", "fun": lambda e, g=g: np.sum(e[codes == g]) / sizes[g] - np.sum(e) / np.sum(sizes)}
        for g in range(sizes.size - 1)
        if central
    ]
    best = math.inf
    # a price for the error has valleys, and so has the local setting: one start for each set of sellers
    everybody = list(chain.from_iterable(combinations(range(n), size) for size in range(1, n + 1)))
    convex = central and goal.kind != "price"
    for sellers in everybody[-1:] if convex else everybody:
        if np.unique(codes[list(sellers)]).size < sizes.size:
            continue
        high = np.where(np.isin(np.arange(n), sellers), caps, 1e-12)
        done = minimize(
            aim,
            np.minimum(0.5 * high, 3.0),
            method="SLSQP",
            bounds=list(zip(np.full(n, 1e-13), high, strict=True)),
            constraints=shares + ([] if limit is None else [{"type": "ineq", "fun": limit}]),
            options={"ftol": 1e-14, "maxiter": 300},
        )
        broken = max((abs(float(one["fun"](done.x))) for one in shares), default=0.0)
        if broken < 1e-9 and (limit is None or limit(done.x) > -1e-10):
            best = min(best, float(done.fun))
    return (math.exp(best) - extra) * unit if goal.kind == "budget" else best
