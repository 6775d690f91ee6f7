"""Strata in a market: against a solver that knows nothing of them, against lies, and against what biased panels do."""

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from hushbid import Accuracy, Budget, Empirical, Grouped, LogNormal, Market, Price, Uniform
from hushbid.audit import IncentiveReport, audits_of
from hushbid.errors import DivergentPayment, HushbidError, InputError, NobodyToBuyFrom, Unreachable
from hushbid.mechanism import Outcome
from hushbid.mechanism.worst_case import worst_payment
from hushbid.questions import Number
from tests.extent import each

LABELS = ["a", "b", "a", "b", "a", "b", "b"]
BIDS = np.array([1.05, 1.31, 1.4, 1.12, 1.77, 1.6, 1.12])
CONTRAST = {"a": 1.0, "b": -1.5}
GOALS = {"price": Price(3.0), "accuracy": Accuracy(6.5), "budget": Budget(4.0)}


def market(goal: Any = GOALS["price"], **terms: Any) -> Market:
    """Seven people in two strata, data on a range of width 8."""
    wanted = {} if {"shares", "contrast"} & set(terms) else {"contrast": CONTRAST}
    terms = {"prior": Uniform(1, 2), "bounds": (-3.0, 5.0), "strata": LABELS, **wanted, **terms}
    return Market(goal=goal, **terms)


def read_back(outcome: Outcome) -> Outcome:
    return Outcome.from_dict(json.loads(json.dumps(outcome.to_dict())))


# -- the best purchase -------------------------------------------------------------------------------------------------


def by_multistart(costs: np.ndarray, variance: np.ndarray, codes: np.ndarray, weights: np.ndarray, goal: Any) -> float:
    """The least objective over all weights, with the best noise for each, in squared data units and money."""
    sizes, unit = np.abs(weights), 64.0

    def cost(v: np.ndarray) -> float:
        spread, paid = float(variance @ v**2), float(costs @ v)
        if isinstance(goal, Price):
            return goal.number * spread + 1.5 * (4.0 * goal.number * unit) ** (1 / 3) * paid ** (2 / 3)
        if isinstance(goal, Accuracy):
            left = (goal.number**2 - spread) / unit
            return paid * math.sqrt(2.0 / left) if left > 0.0 else 1e3 * (1.0 - left)
        return spread + 2.0 * unit * (paid / goal.number) ** 2

    rules = [{"type": "eq", "fun": lambda v, g=g: v[codes == g].sum() - sizes[g]} for g in range(sizes.size)]
    best, rng = math.inf, np.random.default_rng(5)
    for _ in range(6):
        start = rng.dirichlet(np.ones(costs.size))
        for g, size in enumerate(sizes):
            start[codes == g] *= size / start[codes == g].sum()
        found = minimize(
            cost, start, bounds=[(0, None)] * costs.size, constraints=rules, method="SLSQP", options={"ftol": 1e-15}
        )
        best = min(best, float(found.fun)) if max(abs(rule["fun"](found.x)) for rule in rules) < 1e-12 else best
    return best


@each("relation", [0.0, 0.2])
@each("goal", GOALS.values())
def test_the_purchase_for_a_contrast_is_the_best_there_is(goal: Any, relation: float) -> None:
    variance = np.array([3.0, 10.0, 16.0, 6.0, 2.0, 12.0, 5.0])
    outcome = market(goal, variance=variance, max_correlation=relation).acquire(BIDS)
    codes, weights = np.array([0, 1, 0, 1, 0, 1, 1]), np.array([1.0, -1.5])
    more = 7 * relation**2 * variance.mean()  # of everybody, and so much of it is a constant
    constant = more * (1.0 / 3 + 1.5**2 / 4)
    aim = Accuracy(math.sqrt(goal.number**2 + constant)) if isinstance(goal, Accuracy) else goal
    found = by_multistart(2.0 * BIDS - 1.0, variance + more, codes, weights, aim)
    found -= {"price": goal.number * constant, "accuracy": 0.0, "budget": constant}[goal.kind]
    assert outcome.objective == pytest.approx(found, rel=1e-9)
    assert outcome.objective * (1 - 1e-8) < outcome.lower_bound <= outcome.objective
    assert np.bincount(codes, outcome.weights) == pytest.approx(weights, rel=1e-12)
    # what is stated follows from weights and losses
    strength = outcome.privacy_loss.sum() / 2.5
    assert outcome.privacy_loss == pytest.approx(strength * np.abs(outcome.weights), rel=1e-9)
    squares = outcome.weights**2
    mse = 2 * 64 / strength**2 + variance @ squares
    assert outcome.mse == pytest.approx(mse, rel=1e-9)
    assert outcome.worst_mse == pytest.approx(mse + more * squares.sum() - constant, rel=1e-9)


def test_one_noise_for_all_strata_is_cheaper_than_one_for_each_with_the_same_error() -> None:
    bids = np.concatenate([np.linspace(1, 2, 10), np.linspace(1, 2, 40)])
    labels, shares = ["few"] * 10 + ["many"] * 40, {"few": 0.6, "many": 0.4}
    paid = error = 0.0
    for rows, share in ((slice(10), 0.6), (slice(10, None), 0.4)):
        alone = Market(prior=Uniform(1, 2), buyer_weight=5000 * share**2).acquire(bids[rows])
        paid += float(alone.virtual_costs @ alone.privacy_loss)
        error += share**2 * alone.mse
    together = Market(prior=Uniform(1, 2), goal=Accuracy(math.sqrt(error)), strata=labels, shares=shares).acquire(bids)
    assert together.mse == pytest.approx(error, rel=1e-12)
    assert together.objective < 0.8 * paid


@each("relation", [0.0, 0.1])
@each("prior", [Uniform(1, 2), Empirical([1.0, 1.2, 1.5, 2.0])])
@each(("kind", "setting"), [*((kind, "central") for kind in GOALS), ("price", "local")])
def test_one_stratum_with_all_of_the_share_is_the_market_without_strata(
    kind: str, setting: str, prior: Any, relation: float
) -> None:
    terms = {"prior": prior, "setting": setting, "max_correlation": relation, "variance": 4.0, "bounds": (0, 8)}
    plain = Market(goal=GOALS[kind], **terms)
    one = Market(goal=GOALS[kind], **terms, strata=["all"] * 7, shares={"all": 1})
    expected, found = plain.acquire(BIDS), one.acquire(BIDS)
    for name in ("privacy_loss", "weights", "payments", "information_rent", "mse", "worst_mse", "objective"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-12, abs=1e-12), name
    assert found.schedule().at([1.3])[1] == pytest.approx(expected.schedule().at([1.3])[1], rel=1e-12)


def test_the_local_purchase_for_a_contrast_is_a_market_in_each_stratum_with_its_weight_squared() -> None:
    found = market(setting="local", max_privacy_loss=2.5).acquire(BIDS)
    error, costs = 0.0, 0.0
    for name, weight in CONTRAST.items():
        rows = np.array([label == name for label in LABELS])
        alone = Market(
            prior=Uniform(1, 2),
            bounds=(-3, 5),
            buyer_weight=3.0 * weight**2,
            setting="local",
            max_privacy_loss=2.5,
        ).acquire(BIDS[rows])
        assert found.privacy_loss[rows] == pytest.approx(alone.privacy_loss, rel=1e-12)
        assert found.payments[rows] == pytest.approx(alone.payments, rel=1e-9)
        assert found.weights[rows] == pytest.approx(weight * alone.weights, rel=1e-12)
        error += weight**2 * alone.mse
        costs += alone.objective
    assert found.mse == pytest.approx(error, rel=1e-12)
    assert found.objective == pytest.approx(costs, rel=1e-12)
    assert found.cap_cost > 0.0
    assert found.lower_bound <= found.objective


# -- the truth ---------------------------------------------------------------------------------------------------------


@each(
    ("kind", "setting", "prior"),
    [
        *((kind, "central", Uniform(1, 2)) for kind in GOALS),
        ("accuracy", "central", Empirical([1.0, 1.1, 1.3, 1.6, 2.0])),
        ("price", "local", Uniform(1, 2)),
    ],
)
def test_no_misreport_gains(kind: str, setting: str, prior: Any) -> None:
    variance = 7.0 if setting == "local" else [3.0, 10.0, 16.0, 6.0, 2.0, 12.0, 5.0]
    terms = market(GOALS[kind], prior=prior, setting=setting, variance=variance, max_correlation=0.1)
    honest = terms.acquire(BIDS)
    assert (honest.payments >= BIDS * honest.privacy_loss - honest.incentive_error).all()
    for row in (0, 3):
        losses = []
        for lie in np.linspace(1.0, 2.0, 6):
            stated = BIDS.copy()
            stated[row] = lie
            found = terms.acquire(stated)
            gain = found.payments[row] - BIDS[row] * found.privacy_loss[row]
            gain -= honest.payments[row] - BIDS[row] * honest.privacy_loss[row]
            assert gain <= honest.incentive_error + found.incentive_error
            losses.append(found.privacy_loss[row])
        assert losses[0] > losses[-1]
        assert (np.diff(losses) <= 1e-12).all()


def test_people_with_the_same_bid_are_priced_by_their_own_stratum() -> None:
    prior = Grouped({"x": LogNormal(0, 0.5), "y": Empirical([0.5, 1.0, 2.0])}, list("xxyyxxyy"))
    bids, labels = np.ones(8), ["a", "b"] * 4
    outcome = Market(prior=prior, goal=Budget(5), strata=labels, contrast=CONTRAST).acquire(bids)
    for row in range(8):
        loss, paid = outcome.schedule(row).at([1.0])
        assert outcome.privacy_loss[row] == pytest.approx(loss[0], rel=1e-9)
        assert outcome.payments[row] == pytest.approx(paid[0], abs=outcome.incentive_error)
        assert outcome.payments[row] == outcome.payments[(row + 4) % 8]
    assert len(set(outcome.payments.round(6).tolist())) == 4


def test_a_budget_is_paid_on_average() -> None:
    stated, rng = market(Budget(4.0), max_correlation=0.1), np.random.default_rng(1)
    paid = np.array([stated.acquire(1.0 + rng.random(7)).total_payment for _ in range(30)])
    assert abs(paid.mean() - 4.0) < 3.0 * paid.std() / math.sqrt(30)
    assert paid.std() < 0.6


# -- what it is good for -----------------------------------------------------------------------------------------------


def test_a_panel_with_wrong_shares_is_put_right() -> None:
    rng, means, drawn = np.random.default_rng(2), {"old": 0.8, "young": 0.2}, 4000
    labels = ["young"] * 30 + ["old"] * 10  # but half of the people are old
    bids = 1.0 + rng.random(40)
    data = rng.random((drawn, 40)) < np.array([means[label] for label in labels])
    terms: dict[str, Any] = {"prior": Uniform(1, 2), "buyer_weight": 2000, "variance": 0.16}
    raw = Market(**terms).acquire(bids)
    put_right = Market(**terms, strata=labels, shares={"young": 0.5, "old": 0.5}).acquire(bids)
    off = []
    for outcome in (raw, put_right):
        strength = outcome.privacy_loss.sum()
        estimates = data @ outcome.weights + rng.laplace(scale=1.0 / strength, size=drawn)
        off.append(estimates - 0.5)
    assert off[0].mean() < -0.1
    assert abs(off[1].mean()) < 4.0 * off[1].std() / math.sqrt(drawn)
    assert np.mean(off[1] ** 2) == pytest.approx(put_right.mse, rel=0.1)


@pytest.mark.parametrize("population", [None, {"a": 5, "b": 12}])
def test_the_worst_relation_inside_strata_makes_the_worst_error_and_none_is_worse(population: Any) -> None:
    outcome = market(Price(3.0), variance=9.0, max_correlation=0.3, population=population).acquire(BIDS)
    counts = population or {"a": 3, "b": 4}
    codes = np.repeat([0, 1], list(counts.values()))
    omega = np.zeros(codes.size)
    for code, name in enumerate("ab"):
        sold = outcome.weights[[label == name for label in LABELS]]
        omega[np.flatnonzero(codes == code)[: sold.size]] = sold
    n, rng = codes.size, np.random.default_rng(3)
    size = np.array(list(counts.values()))[codes]

    def bias(shape: np.ndarray) -> float:
        inside = shape - (np.bincount(codes, shape) / np.array(list(counts.values())))[codes]
        inside *= math.sqrt(n * 0.3**2 * 9.0 / (inside @ inside))
        return float(omega @ inside) ** 2

    worst = bias(omega - np.array([1.0, -1.5])[codes] / size)
    assert outcome.worst_mse - outcome.mse == pytest.approx(worst, rel=1e-9)
    assert max(bias(rng.normal(size=n)) for _ in range(200)) < worst


def test_questions_with_strata_are_one_number_with_strata() -> None:
    asked = [Number(name="height", bounds=(0, 2), variance=0.3), Number(name="weight", bounds=(0, 50), variance=200)]
    stated: dict[str, Any] = {"prior": Uniform(1, 2), "strata": LABELS, "contrast": CONTRAST, "max_correlation": 0.1}
    survey = Market(questions=asked, goal=Price(80), **stated)
    assert survey.layout is not None
    scalar = Market(
        bounds=(0, survey.layout.width),
        variance=survey.layout.variance,
        goal=Price(80 * survey.layout.importance),
        **stated,
    )
    found, expected = survey.acquire(BIDS), scalar.acquire(BIDS)
    assert found.privacy_loss == pytest.approx(expected.privacy_loss, rel=1e-12)
    assert found.payments == pytest.approx(expected.payments, rel=1e-12)
    strength, squares = found.privacy_loss.sum() / 2.5, float(found.weights @ found.weights)
    for error, one in zip(found.question_errors(), asked, strict=True):
        noise = one.width**2 * 3 * 4 / 3 / strength**2  # two questions, one box
        spread = one.largest_variance * one.width**2
        assert error.mse == pytest.approx(noise + spread * squares, rel=1e-9)
        uneven = 7 * squares - 7 * (1 / 3 + 1.5**2 / 4)
        assert error.worst_mse - error.mse == pytest.approx(0.01 * spread * uneven, rel=1e-6)
    assert [one.mse for one in survey.errors_of(found.figures())] == pytest.approx(
        [one.mse for one in found.question_errors()], rel=1e-9
    )


# -- before anybody bids --------------------------------------------------------------------------------------------


@each(
    ("kind", "setting", "prior"),
    [
        ("price", "central", Uniform(1, 2)),
        ("price", "central", Uniform(0, 1)),
        ("price", "local", Uniform(1, 2)),
        ("accuracy", "central", Uniform(0, 1)),
        ("budget", "central", Uniform(1, 2)),
    ],
)
def test_no_bids_cost_more_than_the_bound(kind: str, setting: str, prior: Any) -> None:
    rng = np.random.default_rng(4)
    for k in range(4):
        labels = ["a", "b", *rng.choice(["a", "b"], int(rng.integers(0, 6)))]
        weights = {"a": float(rng.choice([-1, 1]) * 10 ** rng.uniform(-1, 1)), "b": 1.0}
        least = math.sqrt(sum(w * w / labels.count(name) for name, w in weights.items()))
        goal: Any = {
            "price": Price(10 ** rng.uniform(-1, 4)),
            "accuracy": Accuracy(least * 10 ** rng.uniform(-0.25, 0.5)),
            "budget": Budget(5.0),
        }[kind]
        stated = Market(prior=prior, goal=goal, setting=setting, strata=labels, contrast=weights)
        population = stated.for_people(len(labels))
        missing = kind != "accuracy" and k % 2 == 1
        bound = worst_payment(population, above_support=missing)
        for _ in range(5):
            bids = np.asarray(prior.quantile(np.round(rng.random(len(labels)), int(rng.integers(0, 3)))))
            if missing:
                bids[rng.random(len(labels)) < 0.3] = 9.0
            try:
                outcome = stated.acquire(np.maximum(bids, 1e-3))
            except NobodyToBuyFrom:
                continue
            assert outcome.total_payment <= bound + outcome.incentive_error * len(labels)


def test_campaigns_are_planned_and_simulated_with_their_strata() -> None:
    stated = market(Budget(4.0), max_correlation=0.1)
    found = stated.plan(7, rng=np.random.default_rng(0), repetitions=10)
    assert found.simulation.expected("total_payment").low < 4.0 < found.simulation.expected("total_payment").high
    assert [point.payment for point in found.frontier] == pytest.approx([1, 2, 4, 8, 16])
    errors = [row.standard_errors[-1] for row in found.protection]
    assert errors[-1] == min(errors)
    # somebody in b, who counts for more, is asked for more
    menus = [stated.menu(7, rng=np.random.default_rng(0), repetitions=3, points=3, stratum=name) for name in "ab"]
    assert (menus[1].privacy_loss[:2] > menus[0].privacy_loss[:2]).all()
    # people drawn above the support: a stratum may have nobody left
    drawn = stated.simulate(7, 6, rng=np.random.default_rng(0), true_prior=Uniform(1.5, 3.5))
    assert 0 < np.isinf(drawn.mse).sum() < 6
    assert (drawn.total_payment[np.isinf(drawn.mse)] == 0.0).all()


@pytest.mark.parametrize(("n", "told"), [(None, "n must be given"), (6, "strata must have one label per person")])
def test_a_plan_is_for_the_people_of_the_column(n: int | None, told: str) -> None:
    with pytest.raises(InputError, match=told):
        market().plan(n, target_payment=None if n else 3.0, rng=np.random.default_rng(0))


# -- records, equality, words ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "terms",
    [
        {"shares": {"b": 0.25, "a": 0.75}},
        {"contrast": CONTRAST, "max_correlation": 0.1, "population": {"b": 8, "a": 3}},
        {"contrast": CONTRAST, "setting": "local"},
    ],
    ids=str,
)
def test_what_was_decided_reads_back_as_it_was(terms: Any) -> None:
    outcome = market(**terms).acquire(BIDS, tie_key=list("gfedcba"))
    again = read_back(outcome)
    assert again.market == outcome.market
    assert hash(again.market) == hash(outcome.market)
    assert again.to_dict() == outcome.to_dict()
    assert again.summary() == outcome.summary()
    assert again.figures() == outcome.figures()
    assert again.market.strata_names == ("a", "b")
    other = replace(outcome.market, strata=["b", *LABELS[1:]], max_privacy_loss=None)
    assert other != outcome.market


def test_a_market_without_strata_is_written_as_before() -> None:
    written = Market(prior=Uniform(1, 2), buyer_weight=3).to_dict()
    assert not {"strata", "shares", "contrast"} & set(written)
    assert Market.from_dict(written).stratified is None
    stated = market().stratified
    assert stated is not None
    assert (stated.names, stated.weights.tolist(), stated.codes.tolist()) == (
        ("a", "b"),
        [1.0, -1.5],
        [0, 1, 0, 1, 0, 1, 1],
    )


def test_the_summary_says_what_is_estimated() -> None:
    assert "a contrast of 2 strata" in market().acquire(BIDS).summary()
    assert "a post-stratified mean over 2 strata" in market(shares={"a": 0.5, "b": 0.5}).acquire(BIDS).summary()


def test_limits_that_people_state_beside_their_prices_are_kept_and_nobody_gains_by_misstating_them() -> None:
    limits = np.array([0.05, 9.0, 0.3, 0.2, 9.0, 9.0, 0.1])
    told = market().acquire(BIDS, limits=limits)
    free = market().acquire(BIDS)
    assert (told.privacy_loss <= limits).all()
    assert (free.privacy_loss > limits).any()
    assert told.objective > free.objective
    for row in (0, 3, 6):
        surplus = told.payments[row] - BIDS[row] * told.privacy_loss[row]
        for price, limit in ((BIDS[row], limits[row] / 2), (1.0, limits[row]), (1.9, limits[row]), (1.3, 9.0)):
            bids, stated = BIDS.copy(), limits.copy()
            bids[row], stated[row] = price, limit
            other = market().acquire(bids, limits=stated)
            gain = other.payments[row] - BIDS[row] * other.privacy_loss[row] - surplus
            assert gain <= told.incentive_error + 1e-9 or other.privacy_loss[row] > limits[row]


# -- what is refused ---------------------------------------------------------------------------------------------------

REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"strata": None}, "contrast", "must not be stated without strata"),
    (
        {"shares": {"a": 0.5, "b": 0.5}, "contrast": CONTRAST},
        "strata",
        "either shares or a contrast",
    ),
    ({"shares": {"a": 0.5, "b": 0.4}}, "shares", "must sum to 1, got a sum of 0.9"),
    ({"shares": {"a": 1.5, "b": -0.5}}, "shares", "that of 'a' is 1.5"),
    ({"contrast": {"a": 1, "b": 0}}, "contrast", "not 0, but that of 'b' is 0"),
    ({"contrast": {"a": 1}}, "strata", "but row 1 is 'b'"),
    ({"contrast": {"a": 1, "b": 1, "c": 1}}, "strata", "nobody is in 'c'"),
    ({"strata": "aba"}, "strata", "one label per person, got str"),
    ({"strata": ["a", "", "b"]}, "strata", "row 1 is not"),
    ({"user_weight": 1.0, "variance": 1.0}, "user_weight", "must be 0 with strata"),
    ({"max_correlation": 0.1, "population": 20}, "population", "in each stratum, 'a', 'b'"),
    ({"max_correlation": 0.1, "population": {"a": 3, "b": 3}}, "population", "'b' has 4 people"),
    ({"goal": Accuracy({"a": 6.5, "b": 6.5})}, "standard_error", "must not name strata"),
]


@each(("terms", "field", "told"), REFUSED)
def test_what_strata_cannot_be_joined_with_is_refused_in_a_sentence(terms: Any, field: str, told: str) -> None:
    with pytest.raises(InputError) as problem:
        market(**{"contrast": CONTRAST, **terms} if terms == {"strata": None} else terms)
    assert problem.value.field == field
    assert told in str(problem.value)


def test_a_stratum_with_nobody_to_buy_from_is_named() -> None:
    above = np.where(np.array(LABELS) == "a", 2.5, BIDS)
    for goal in GOALS.values():
        with pytest.raises((NobodyToBuyFrom, Unreachable), match="tratum 'a'"):
            market(goal, contrast=CONTRAST).acquire(above)


def test_what_no_purchase_can_do_is_refused() -> None:
    with pytest.raises(Unreachable, match=r"above 3\.78594, the least that 7 people can reach in their strata"):
        market(Accuracy(3.0)).acquire(BIDS)  # √(16·(1/3 + 1.5²/4))
    with pytest.raises(InputError, match="population must be stated with a budget that is met on average"):
        market(Budget(5)).acquire(BIDS, limits=np.full(7, 2.0))
    with pytest.raises(HushbidError, match="name the stratum"):
        market().acquire(BIDS).schedule()
    with pytest.raises(InputError, match=r"variance must have one entry per person \(7 people\), got 8"):
        market(variance=np.full(8, 2.0)).acquire(BIDS)
    with pytest.raises(InputError, match=r"strata must have one label per person \(6 people\), got 7"):
        market().acquire(BIDS[:6])
    # the only seller of a stratum, under a prior without an end
    alone = Market(prior=LogNormal(0, 2), goal=Accuracy(2), strata=["a", "b", "b"], contrast=CONTRAST)
    with pytest.raises(DivergentPayment):
        alone.acquire([1.0, 1.0, 2.0])


def test_the_incentive_audit_keeps_everybody_s_stratum() -> None:
    labels = ["few", *["many"] * 9]
    stated = Market(
        prior=Uniform(1, 2), goal=Accuracy(0.9), strata=labels, contrast={"few": 1, "many": -1}, max_correlation=0.1
    )
    audits = audits_of(stated.acquire(np.linspace(1, 2, 10)), checks=("incentives",), tested=1, among=4)
    found = next(iter(audits))
    assert isinstance(found, IncentiveReport)
    assert found.passed
