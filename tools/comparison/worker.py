"""Decide markets with the version of the library that can be imported, and write down what it decided.

``python -m tools.comparison.worker TREE CASES RESULTS SECONDS``: CASES is a pickled list of markets, RESULTS receives a
pickled mapping from a market to its `Result`. No market may take longer than SECONDS of processor time.
"""

import inspect
import math
import pickle
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tools.comparison.markets import Case

Floats = NDArray[np.float64]

OUT_OF_TIME = "OutOfTime"
"""Noted as the class of the refusal of a market that took too long."""

_SHARES = {"few": 0.02, "some": 0.3, "most": 0.9, "beyond": 2.0}
_SCALES = {"small-scale": 1e-190, "large-scale": 1e138}
_BUDGET_SCALES = {"small-scale": 1e-45, "large-scale": 1e45}
"""An amount of money is from 1e-50 to 1e50."""


@dataclass(slots=True)
class Result:
    """What one version decided about one market."""

    refusal: tuple[str, str] | None = None
    """The class of the error and its sentence, if the market was refused."""

    numbers: dict[str, float] = field(default_factory=dict)
    columns: dict[str, Floats] = field(default_factory=dict)
    seconds: float = 0.0
    """Of processor time, so that other work on the machine counts little."""


class OutOfTime(BaseException):
    """A market took too long; no ordinary error, so that no handler of the library takes it for one."""


def main(tree: str, source: str, target: str, seconds: float) -> None:
    """Decide all markets of a file."""
    import hushbid

    if not Path(hushbid.__file__).is_relative_to(tree):
        raise SystemExit(f"compare: {tree} was asked for, but {hushbid.__file__} was imported.")
    signal.signal(signal.SIGPROF, _stop)
    cases: list[Case] = pickle.loads(Path(source).read_bytes())
    results = {}
    for case in cases:
        results[case] = decide(case, seconds)
        if sys.stderr.isatty():
            print(f"\r{len(results)} of {len(cases)}", end="", file=sys.stderr)
    if sys.stderr.isatty():
        print("\r", end="", file=sys.stderr)
    Path(target).write_bytes(pickle.dumps(results))


def _stop(_signal: int, _frame: FrameType | None) -> None:
    raise OutOfTime


def decide(case: Case, seconds: float) -> Result:
    """What this version decides about a market, or how it refuses it."""
    deciders = {"allocate": _allocate, "market": _acquire, "engine": _price}
    began = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        result = deciders[case.level](case)
    except OutOfTime:
        result = Result(refusal=(OUT_OF_TIME, f"no decision within {seconds:g} seconds"))
    except Exception as problem:  # noqa: BLE001 - a crash is compared like a refusal: its class is shown
        result = Result(refusal=(type(problem).__name__, str(problem)))
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
    result.seconds = time.process_time() - began
    return result


# ---- virtual costs to losses ----


def _allocate(case: Case) -> Result:
    from hushbid.allocation import Strata, allocate

    rng = np.random.default_rng([case.seed, case.people, *case.name.encode()])
    costs = _costs(case, rng)
    spread: Any = 0.25 if case.curve == "response" else 0.2
    if case.variance == "each":
        spread = 0.25 * np.exp(-rng.exponential(1.0, case.people))
    caps = _caps(case, rng)
    codes, weights = _strata(case, rng)
    goal = _goal(case, costs, np.broadcast_to(spread, costs.shape), caps, codes, weights)
    found = allocate(
        costs,
        setting=case.setting,
        variance=spread,
        goal=goal,
        max_loss=math.inf if case.caps == "none" else (caps if case.caps == "each" else float(caps[0])),
        tie_key=rng.permutation(case.people) if case.costs == "ties" else None,
        strata=None if case.strata == "1" else Strata(codes=codes, weights=weights),
        response=case.curve == "response",
    )
    numbers = {"objective": found.objective, "mse": found.mse, "lower_bound": found.lower_bound}
    return Result(numbers=numbers, columns={"loss": found.privacy_loss, "weight": found.weights, "cap": caps})


def _costs(case: Case, rng: np.random.Generator) -> Floats:
    count = case.people
    ordinary = rng.uniform(1.0, 3.0, count)
    if case.costs == "wide":
        return np.exp(rng.normal(0.0, 3.0, count))
    if case.costs == "zeros":
        return np.where(rng.random(count) < 0.2, 0.0, ordinary)
    if case.costs == "ties":
        return np.ceil(ordinary * 2.0) / 2.0
    if case.costs == "infinite":
        return np.where(rng.random(count) < 0.3, math.inf, ordinary)
    if case.costs == "saboteurs":
        ordinary[rng.integers(count)] = 1e-195
        ordinary[rng.integers(count)] = 1e148
    scales = _BUDGET_SCALES if case.goal == "budget" else _SCALES
    scaled: Floats = ordinary * scales.get(case.costs, 1.0)
    return scaled


def _caps(case: Case, rng: np.random.Generator) -> Floats:
    """The caps, near the losses of a market in which most people are bought from."""
    typical = 2.0 / math.sqrt(case.people)
    one = {"none": math.inf, "one": typical, "tiny": 1e-6 * typical, "loose": 1e6}
    if case.caps in one:
        return np.full(case.people, one[case.caps])
    each = typical * np.exp(rng.normal(0.0, 1.0, case.people))
    return np.where(rng.random(case.people) < 0.3, math.inf, each)


def _strata(case: Case, rng: np.random.Generator) -> tuple[NDArray[np.intp], Floats]:
    weights = {
        "1": np.ones(1),
        "2": np.array([1.0, -1.0]),
        "4": np.array([0.1, 0.2, 0.3, 0.4]),
        "lone": np.array([0.3, 0.5, 0.2]),
    }[case.strata]
    if case.strata == "lone":
        codes = rng.integers(2, size=case.people)
        codes[rng.integers(case.people)] = 2
        return codes.astype(np.intp), weights
    codes = np.arange(case.people) % weights.size
    return rng.permutation(codes).astype(np.intp), weights


def _goal(case: Case, costs: Floats, spread: Floats, caps: Floats, codes: NDArray[np.intp], weights: Floats) -> Any:
    """A goal that buys from about the share of people that is asked for."""
    from hushbid import Accuracy, Budget, HardBudget, Price

    sellers = np.isfinite(costs)
    unit = float(np.median(costs[sellers & (costs > 0.0)])) if np.any(sellers & (costs > 0.0)) else 1.0
    count = max(int(sellers.sum()), 1)
    share = _SHARES[case.share]
    if case.goal == "price":
        factor = {"few": 30.0, "some": count + 1.0, "most": 30.0 * count**1.5, "beyond": 1e6 * count**1.5}
        return Price(unit * factor[case.share])
    if case.goal == "accuracy":
        least = _least_error(case, sellers, spread, caps, codes, weights)
        return Accuracy(math.sqrt(least * {"few": 50.0, "some": 3.0, "most": 1.1, "beyond": 0.5}[case.share]))
    most = np.minimum(caps, 4.0 / math.sqrt(count))
    amount = share * max(float(np.sum(np.where(sellers & (costs < 1e100 * unit), costs, 0.0) * most)), 0.1 * unit)
    return HardBudget(amount, coin=0.001 * amount) if case.goal == "hard-budget" else Budget(amount)


def _least_error(
    case: Case, sellers: NDArray[np.bool_], spread: Floats, caps: Floats, codes: NDArray[np.intp], weights: Floats
) -> float:
    """About the smallest error that these people can reach: the best of some common losses."""
    best = math.inf
    strata = weights.size
    for level in np.geomspace(1e-8, 1e6, 57):
        losses = np.where(sellers, np.minimum(caps, level), 0.0)
        if case.setting == "local":
            supply = losses**2 / (spread * losses**2 + 2.0)
            if case.curve == "response":
                supply = 4.0 * np.tanh(losses / 2.0) ** 2
            precision = np.bincount(codes, weights=supply, minlength=strata)
            error = float(np.sum(weights**2 / precision)) if precision.all() else math.inf
        else:
            totals = np.bincount(codes, weights=losses, minlength=strata)
            scale = float(np.min(totals / np.abs(weights)))
            used = losses * (np.abs(weights) * scale / np.where(totals > 0.0, totals, 1.0))[codes]
            error = float(2.0 + np.sum(spread * used**2)) / scale**2 if scale > 0.0 else math.inf
        best = min(best, error)
    return best if best < math.inf else 1.0


# ---- bids to losses and payments ----


def _acquire(case: Case) -> Result:
    rng = np.random.default_rng([case.seed, case.people, *case.name.encode()])
    terms, bids, limits, caps = _terms(case, rng, listed=True)
    from hushbid import Market

    market = Market(**terms)
    found = market.acquire(bids, limits=limits)
    stated = np.asarray(found.payments) - np.asarray(found.information_rent)
    lower, upper = found.rent_bounds
    columns = {
        "loss": found.privacy_loss,
        "weight": found.weights,
        "payment": found.payments,
        "payment_lower": stated + np.asarray(lower),
        "payment_upper": stated + np.asarray(upper),
        "cap": caps if limits is None else np.minimum(caps, limits),
    }
    numbers = {
        "objective": found.objective,
        "mse": found.mse,
        "worst_mse": found.worst_mse,
        "lower_bound": found.lower_bound,
        "tolerance": market.tolerance,
    }
    return Result(numbers=numbers, columns=columns)


def _terms(
    case: Case, rng: np.random.Generator, *, listed: bool
) -> tuple[dict[str, Any], Floats, Floats | None, Floats]:
    """The terms of a market, everybody's bids and limits, and the caps that the terms state."""
    from hushbid import Accuracy, Market

    prior, bids = _prior_and_bids(case, rng, listed=listed)
    caps = _caps(case, rng) if case.caps != "limits" else np.full(case.people, math.inf)
    codes, weights = _strata(case, rng)
    spread = 0.25 * np.exp(-rng.exponential(1.0, case.people))
    stated: Any = spread if case.variance == "each" else 0.2
    limits = None
    if case.caps == "limits":
        limits = np.where(
            rng.random(case.people) < 0.2, 0.0, 2.0 / math.sqrt(case.people) * rng.exponential(2.0, case.people)
        )
    terms: dict[str, Any] = {
        "prior": prior,
        "setting": case.setting,
        "goal": _goal(case, 2.0 * bids, np.broadcast_to(stated, bids.shape), caps, codes, weights),
        "tolerance": 1e-9 if case.prior in ("uniform-1", "uniform-0", "empirical", "groups") else 1e-6,
    }
    if case.questions == "none":
        terms["variance"] = stated if listed or case.variance == "one" else 0.2
    else:
        terms["questions"] = _questions(case.questions)
        if case.questions == "two" and case.goal == "accuracy":
            terms["goal"] = Accuracy((24.0 * terms["goal"].number, terms["goal"].number))
    if case.caps not in ("none", "limits") and (listed or case.caps != "each"):
        terms["max_privacy_loss"] = caps if case.caps == "each" else float(caps[0])
    if case.strata != "1":
        names = [f"s{one}" for one in range(weights.size)]
        terms["strata"] = [names[code] for code in codes] if listed else []
        terms["contrast" if case.strata == "2" else "shares"] = dict(zip(names, weights.tolist(), strict=True))
    if case.relation > 0.0:
        parameters = inspect.signature(Market).parameters
        terms["max_correlation" if "max_correlation" in parameters else "max_relation"] = case.relation
    if case.weights != "none":
        terms["user_weight"] = rng.uniform(0.5, 1.5, case.people) if case.weights == "each" else 1.0
        terms["outside_option"] = "estimate" if case.weights == "estimate" else "own_data"
    return terms, bids, limits, caps


def _prior_and_bids(case: Case, rng: np.random.Generator, *, listed: bool) -> tuple[Any, Floats]:
    """A prior, and bids drawn from it without its code."""
    import hushbid

    count, sample = case.people, np.round(np.random.default_rng(5).gamma(3.0, 0.5, 40) + 0.5, 2)
    low, high = rng.uniform(1.0, 2.0, count), rng.uniform(0.0, 1.0, count)
    near = rng.choice(sample, count)
    kinds: dict[str, Any] = {
        "uniform-1": lambda: (hushbid.Uniform(1, 2), low),
        "uniform-0": lambda: (hushbid.Uniform(0, 1), high),
        "log-normal": lambda: (hushbid.LogNormal(0.0, 0.7), np.exp(0.7 * rng.normal(size=count))),
        "exponential": lambda: (hushbid.Exponential(1.0), rng.exponential(1.0, count)),
        "gamma": lambda: (hushbid.Gamma(2.0, 0.5), rng.gamma(2.0, 0.5, count)),
        "beta": lambda: (hushbid.Beta(2.0, 3.0, 0.5, 2.5), 0.5 + 2.0 * rng.beta(2.0, 3.0, count)),
        "truncated-normal": lambda: (hushbid.TruncatedNormal(1.0, 0.5, 0.2, 3.0), rng.uniform(0.2, 3.0, count)),
        "empirical": lambda: (hushbid.Empirical(sample), near),
        "histogram": lambda: (hushbid.Histogram([0.5, 1.0, 1.5, 3.0], [1.0, 3.0, 2.0]), rng.uniform(0.5, 3.0, count)),
        "mixture": lambda: (
            hushbid.Mixture([hushbid.Uniform(1, 2), hushbid.Uniform(1.5, 4)], [0.6, 0.4]),
            np.where(rng.random(count) < 0.6, low, 1.5 + 2.5 * high),
        ),
        "kernel-density": lambda: (hushbid.KernelDensity(sample, 0.2), np.maximum(near + 0.1 * high, 0.3)),
        "groups": lambda: _groups(low, high, listed=listed),
    }
    prior, bids = kinds[case.prior]()
    return prior, np.asarray(bids, dtype=float)


def _groups(low: Floats, high: Floats, *, listed: bool) -> tuple[Any, Floats]:
    """Two groups of people, in turn."""
    from hushbid import Grouped, Uniform

    first = np.arange(low.size) % 2 == 0
    labels = np.where(first, "a", "b").tolist() if listed else []
    return Grouped({"a": Uniform(1, 2), "b": Uniform(0.5, 3)}, labels), np.where(first, low, 0.5 + 2.5 * high)


def _questions(kind: str) -> list[Any]:
    from hushbid import Choice, Number, YesNo

    asked: dict[str, list[Any]] = {
        "yes-no": [YesNo(name="q")],
        "two": [Number(name="hours", bounds=(0, 24), importance=2.0), YesNo(name="smokes")],
        "choice": [Choice(name="colour", answers=("red", "green", "blue"))],
    }
    return asked[kind]


# ---- tables ----


def _price(case: Case) -> Result:
    """A table priced by sums: so few people are gathered that curves are used wherever they can be."""
    import pyarrow as pa

    from hushbid import Market
    from hushbid.engine import price

    rng = np.random.default_rng([case.seed, case.people, *case.name.encode()])
    terms, bids, limits, caps = _terms(case, rng, listed=False)
    codes, _ = _strata(case, np.random.default_rng(case.seed))
    terms["tolerance"] = 1e-6
    parameters = inspect.signature(price).parameters
    bid = "bid" if "bid" in parameters else "report"
    options: dict[str, Any] = {bid: "asks"}
    options |= {name: most for name, most in (("gather", 5), ("window", 50)) if name in parameters}
    columns: dict[str, Any] = {"id": [f"p{row}" for row in range(case.people)], "asks": bids}
    spread = np.round(rng.uniform(0.05, 0.25, case.people), 3)
    extra = {
        "group": (case.prior == "groups", ["ab"[row % 2] for row in range(case.people)]),
        "stratum": (case.strata != "1", [f"s{code}" for code in codes]),
        "variance": (case.variance == "each", spread),
        "limit": (case.caps == "limits", limits),
        "cap": (case.caps == "each", np.where(np.isfinite(caps), caps, 1e6)),
    }
    for name, (wanted, column) in extra.items():
        if wanted:
            columns[name] = column
            options[name] = name
    priced = price(pa.table(columns), Market(**terms), **options)
    frame, summary = priced.frame, priced.summary
    numbers = {name: float(getattr(summary, name)) for name in ("objective", "mse", "worst_mse", "lower_bound")}
    numbers["tolerance"] = 1e-6
    found = {name: np.asarray(frame[column]) for name, column in (("loss", "privacy_loss"), ("payment", "payment"))}
    return Result(numbers=numbers, columns={**found, "weight": np.asarray(frame["weight"]), "cap": caps})


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4]))
