"""Verification: honest records hold, every altered number is found, and so are lies that are told consistently.

An altered record always gets a hash that fits, so that something else than the hash has to notice.
"""

import copy
import dataclasses
import json
import math
import sys
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hushbid.allocation import Accuracy, tie_keys
from hushbid.common.documents import content_hash
from hushbid.disclosure import Grid, Release, privatize
from hushbid.errors import RecordError
from hushbid.mechanism import Market, Outcome, Population, release
from hushbid.mechanism.releasing import outcome_key
from hushbid.priors import Empirical, Exponential, Grouped, LogNormal, Mixture, Uniform
from hushbid.record import Record, read, totals
from hushbid.verification.check_rents import rent_checks
from hushbid.verification.findings import Check, Verification
from hushbid.verification.stated_numbers import Facts
from hushbid.verification.verifying import findings, verify

VECTORS = Path(__file__).parents[1] / "vectors"
ALTERED = 1e-6

# -- honest records ----------------------------------------------------------------------------------------------------

UNIFORM, LOGNORMAL, STEPS = Uniform(1, 2), LogNormal(0.0, 0.5), Empirical([1, 2, 2, 4, 5])
GROUPS = Grouped({"a": Uniform(0.5, 1.5), "b": STEPS}, ["a", "b", "a", "b"])
IRONED = Mixture([Uniform(0, 1), Uniform(2, 3)], [0.3, 0.7])
PAPER: dict[str, Any] = {"buyer_weight": 1.0, "user_weight": 1.0, "variance": 0.25}
SELFLESS: dict[str, Any] = {"user_weight": 0.0, "buyer_weight": 60.0}
CAPPED: dict[str, Any] = {"user_weight": 0.0, "buyer_weight": 90.0, "max_privacy_loss": 1.5}
OUTSIDE: dict[str, Any] = {"buyer_weight": 1.0, "user_weight": 2.0, "variance": 0.2, "outside_option": "estimate"}
OUTSIDE_CAPPED: dict[str, Any] = {**OUTSIDE, "max_privacy_loss": 1.2}
UNEQUAL: dict[str, Any] = {
    "buyer_weight": 1.0,
    "user_weight": [0.0, 1.0, 2.0, 2.0],
    "variance": 0.1,
    "bounds": (-1.0, 4.0),
}

FOUR = {"uniform": [1.1, 1.2, 1.9, 1.15], "lognormal": [0.3, 0.7, 1.2, 2.5], "steps": [0.9, 1.5, 1.0, 4.0]}
FOUR["groups"] = [0.6, 0.9, 1.4, 1.5]
FOUR["ironed"] = [0.4, 0.9, 2.1, 2.9]
PRIORS = {"uniform": UNIFORM, "lognormal": LOGNORMAL, "steps": STEPS, "groups": GROUPS, "ironed": IRONED}
WEIGHTS = {
    "paper": PAPER,
    "selfless": SELFLESS,
    "capped": CAPPED,
    "outside": OUTSIDE,
    "outside capped": OUTSIDE_CAPPED,
    "unequal": UNEQUAL,
}


@cache
def outcome_of(setting: str, prior: str, weights: str) -> Outcome:
    market = Market(prior=PRIORS[prior], setting=setting, **WEIGHTS[weights])  # type: ignore[arg-type]
    return market.acquire(FOUR[prior])


def released(outcome: Outcome, absent: tuple[int, ...] = (), **more: Any) -> Release:
    """A release in which some people did not deliver."""
    low, high = outcome.market.bounds
    seed = zlib.crc32(more.get("question", "").encode())  # no data are asked for twice
    data: list[Any] = list(np.random.default_rng(seed).uniform(low - 0.1, high, outcome.bids.size))
    if outcome.market.setting == "local":
        losses = outcome.privacy_loss.tolist()
        data = [privatize(x, loss, (low, high)) if loss > 0 else None for x, loss in zip(data, losses, strict=True)]
    return release(
        outcome, [None if row in absent else x for row, x in enumerate(data)], **{"question": "verified", **more}
    )


@cache
def record_of(setting: str, prior: str, weights: str) -> Record:
    """With a release, and with a drop-out if two people or more were asked."""
    outcome = outcome_of(setting, prior, weights)
    asked = np.flatnonzero(outcome.privacy_loss)
    absent = (int(asked[-1]),) if asked.size > 1 else ()
    question = f"{setting} {prior} {weights}"
    return Record.of(outcome, released(outcome, absent, question=question), currency="EUR", decimals=4)


PAIRS = [
    (("central", "local")[(p + w) // 2 % 2], prior, weights)
    for p, prior in enumerate(("uniform", "lognormal", "steps", "groups"))
    for w, weights in enumerate(WEIGHTS)
    if (p + w) % 2 == 0
]
"""Every prior with half of the weights, in the two settings by turns; test_honest_records draws others."""


@pytest.mark.parametrize(("setting", "prior", "weights"), PAIRS)
def test_an_honest_record_holds(setting: str, prior: str, weights: str) -> None:
    found = verify(record_of(setting, prior, weights))
    assert found.ok, found.summary()


@pytest.mark.parametrize("setting", ["central", "local"])
def test_an_honest_record_before_the_release_holds(setting: str) -> None:
    found = verify(Record.of(outcome_of(setting, "uniform", "paper")))
    assert found.ok, found.summary()
    left_out = ["release", "money"] if setting == "central" else ["release", "ties", "money"]
    assert sorted(check.name for check in found.checks if check.status == "skipped") == sorted(left_out)


@pytest.mark.parametrize(("key", "failed"), [(tie_keys, ()), (None, ("ties",)), (lambda ids: ids, ("ties",))])
def test_among_equals_an_order_of_ones_own_fails(key: Callable[..., Any] | None, failed: tuple[str, ...]) -> None:
    ids = ["p4", "p2", "Zoe\u0308", "p0", "p1", "p3"]
    found = verify(Record.of(equals_bought([1.5] * 6, None if key is None else key(ids)), ids=ids))
    assert found.failed == failed, found.summary()


def equals_bought(bids: list[float], key: Any) -> Outcome:
    """Not from everybody, so that identity decides among equals."""
    market = Market(prior=Empirical([1.0, 2.0, 9.0]), buyer_weight=40.0, setting="local")
    found = market.acquire(bids, tie_key=key)
    assert 0 < found.active < len(bids)
    return found


def test_an_order_that_decides_nobody_is_taken_as_stated() -> None:
    ids, bids = ["p4", "p2", "p0", "p1", "p3"], [1.5, 1.5, 9.0, 9.0, 9.0]
    found = verify(Record.of(equals_bought(bids, None), ids=ids))
    assert found.ok, found.summary()
    assert next(check.status for check in found.checks if check.name == "ties") == "skipped"
    assert verify(Record.of(equals_bought([1.5] * 6, None))).ok  # without ids there is nothing to compare with


SPECIAL: dict[str, Callable[[], Record]] = {
    "an ironed prior": lambda: record_of("central", "ironed", "selfless"),
    "an ironed prior, local": lambda: record_of("local", "ironed", "selfless"),
    "one person": lambda: Record.of(
        Market(prior=UNIFORM, variance=0.25, buyer_weight=1.0, user_weight=1.0).acquire([1.5])
    ),
    "one person whose price has no upper end": lambda: Record.of(
        Market(prior=Exponential(0.1), user_weight=0.0, buyer_weight=0.01).acquire([0.13])
    ),
    "one person under a prior without an upper end": lambda: Record.of(
        Market(prior=LogNormal(-3.0, 0.85), setting="local", user_weight=0.0, buyer_weight=9.6).acquire([0.105])
    ),
    "one person under such a prior who asks for nothing": lambda: Record.of(
        Market(prior=LogNormal(4.9, 1.4), user_weight=0.0, buyer_weight=0.01).acquire([0.0])
    ),
    "people who differ in variance": lambda: Record.of(
        Market(prior=UNIFORM, user_weight=0.0, buyer_weight=80.0, variance=[0.1, 0.2, 0.01, 0.25]).acquire(
            [1.1, 1.2, 1.3, 1.05]
        )
    ),
    "nobody below the top of the prior": lambda: Record.of(
        Market(prior=UNIFORM, user_weight=0.0, buyer_weight=1.0).acquire([2.5, 3.0])
    ),
    "somebody above it": lambda: Record.of(
        Market(prior=UNIFORM, user_weight=0.0, buyer_weight=1.0).acquire([1.5, 3.0, 1.6])
    ),
    "equals, bought from in an order of their own": lambda: Record.of(
        Market(prior=STEPS, setting="local", user_weight=0.0, buyer_weight=7.0).acquire(
            [1.5] * 5, tie_key=[3, 1, 4, 0, 2]
        )
    ),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_an_honest_record_of_a_special_case_holds(name: str) -> None:
    found = verify(SPECIAL[name]())
    assert found.ok, found.summary()


@pytest.mark.parametrize("setting", ["central", "local"])
def test_a_record_without_noise_holds(setting: str) -> None:
    """A bid of 0: privacy costs nothing, the loss is infinite, and somebody accepted that by name."""
    market = Market(prior=Uniform(0, 1), setting=setting, user_weight=0.0, buyer_weight=5.0)  # type: ignore[arg-type]
    outcome = market.acquire([0.0, 0.0, 0.7])
    data: list[Any] = [0.25, 0.5, None]
    if setting == "local":
        losses = outcome.privacy_loss.tolist()
        data = [privatize(0.5, loss, (0, 1), accept_infinite_loss=True) if loss > 0 else None for loss in losses]
    record = Record.of(outcome, release(outcome, data, question="verified", accept_infinite_loss=True))
    assert math.inf in record.outcome.privacy_loss
    assert verify(Record.from_dict(json.loads(json.dumps(record.to_dict())))).ok, verify(record).summary()


def test_of_many_people_everybody_is_compared_though_few_are_computed() -> None:
    people = LOGNORMAL.sample(400, rng=np.random.default_rng(2))
    record = Record.of(Market(prior=LOGNORMAL, **PAPER).acquire(people))
    bought = record.outcome.active
    found = {check.name: check for check in findings(record)}
    assert bought > 40
    assert all(check.status != "fails" for check in found.values())
    assert found["rents"].figures["people"] == found["rents"].figures["bought from"] == bought
    assert 0 < found["rents"].figures["computed one by one"] < bought
    assert "The information rent of everybody bought from is" in found["rents"].sentence


# -- one number is altered ---------------------------------------------------------------------------------------------


def numbers(values: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], float]]:
    """Every number in plain values, and where it stands."""
    if isinstance(values, dict | list):
        for name, value in values.items() if isinstance(values, dict) else enumerate(values):
            yield from numbers(value, (*path, name))
    elif isinstance(values, int | float):
        yield path, values


def put(content: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """A copy of plain values with one changed."""
    found = copy.deepcopy(content)
    place = found
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    return found


def noticed(content: dict[str, Any]) -> bool:
    """Whether a record with this content and a hash that fits is refused or fails a check."""
    try:
        record = Record.from_dict({**content, "hash": content_hash(content)})
    except RecordError:
        return True
    return any(check.status == "fails" for check in findings(record))


def alterations(value: float) -> list[float]:
    near: list[float] = [value * (1 + ALTERED), value * (1 - ALTERED)] if value else [ALTERED, -ALTERED]
    return [*near, *([value + 1, value - 1] if isinstance(value, int) else [])]


ALTERABLE = [
    ("central", "uniform", "paper"),
    ("central", "lognormal", "outside"),
    ("central", "groups", "unequal"),
    ("central", "steps", "capped"),
    ("local", "uniform", "selfless"),
    ("local", "lognormal", "capped"),
    ("local", "groups", "outside capped"),
]


def test_every_number_altered_by_a_millionth_is_noticed_although_the_hash_fits() -> None:
    """Of one record every number, also of the market; test_forgeries has the other markets."""
    content, seen = dict(record_of(*ALTERABLE[0]).content), 0
    for path, value in numbers(content):
        if path == ("release", "estimate"):
            continue
        for altered in alterations(value):
            if path == ("release", "clamped") and isinstance(altered, int) and altered >= 0:
                continue  # how many values were clamped cannot be told without the data
            assert noticed(put(content, path, altered)), (path, value, altered)
            seen += 1
    assert seen > 200


def test_in_the_local_setting_a_weaker_bound_proves_less_and_one_above_the_objective_is_noticed() -> None:
    content = dict(record_of("local", "uniform", "selfless").content)
    objective = content["outcome"]["objective"]
    page = (Path(__file__).parents[2] / "docs" / "reference" / "record.md").read_text(encoding="utf-8")
    assert "`lower_bound`" in page[page.index("## What nothing checks") : page.index("## Verifying without Hushbid")]
    assert not noticed({**content, "lower_bound": 0.9 * objective})
    assert noticed({**content, "lower_bound": objective * (1 + ALTERED)})


def fitting(content: dict[str, Any]) -> dict[str, Any]:
    """Key, totals and incentive errors made to fit what the outcome says."""
    found = copy.deepcopy(content)
    outcome = Outcome.from_dict(found["outcome"])
    rent, (low, high) = outcome.information_rent, outcome.rent_bounds
    found["outcome"]["incentive_error"] = 2.0 * float(np.maximum(high - rent, rent - low).max())
    outcome = Outcome.from_dict(found["outcome"])
    found |= {"outcome_key": outcome_key(outcome), "totals": totals(outcome)}
    found["release"]["key"] = found["outcome_key"]
    found["money"]["incentive_error"] = outcome.incentive_error + 10.0 ** -found["money"]["decimals"]
    return found


def test_what_nothing_checks_is_what_the_documentation_lists() -> None:
    """The alterations that pass although everything around them is made to fit; larger ones of the same do not."""
    content = dict(record_of("central", "uniform", "paper").content)
    content |= {"stamps": ["prior fitted on participants"], "people": {"ids": list("abcd"), "groups": None}}
    page = (Path(__file__).parents[2] / "docs" / "reference" / "record.md").read_text(encoding="utf-8")
    listed = page[page.index("## What nothing checks") : page.index("## Verifying without Hushbid")]
    upper, clamped = content["outcome"]["rent_upper"][0], content["release"]["clamped"]
    unchecked: list[tuple[tuple[Any, ...], Any, Any]] = [
        (("stamps", 0), "", "stamps"),
        (("notes",), ["anything"], "notes"),
        (("versions", "numpy"), "0", "versions"),
        (("release", "versions", "hushbid"), "0", "versions"),
        (("people", "ids", 0), "eve", "ids"),
        (("release", "clamped"), clamped - 1 if clamped else 1, "clamped"),
        (("outcome", "market", "tolerance"), 1e-7, "tolerance"),
        (("outcome", "rent_upper", 0), upper * (1 + ALTERED), "rent_upper"),
    ]
    for path, value, name in unchecked:
        assert not noticed(fitting(put(content, path, value))), path
        assert f"`{name}`" in listed, name
    assert noticed(fitting(put(content, ("outcome", "rent_upper", 0), upper + 1.0)))
    refused: list[tuple[tuple[Any, ...], Any]] = [
        (("release", "clamped"), 5),
        (("release", "clamped"), -1),
        (("outcome", "market", "tolerance"), 1.1e-6),
        (("versions", "numpy"), 1),
        (("stamps",), "none"),
        (("people", "ids", 0), "b"),
    ]
    assert all(noticed(put(content, path, value)) for path, value in refused)


@pytest.mark.parametrize("name", ["record-price.json", "record-local.json"])
def test_an_estimate_altered_by_a_millionth_is_off_the_public_grid(name: str) -> None:
    content = dict(read(VECTORS / name).content)
    estimate = content["release"]["estimate"]
    for altered in alterations(estimate):
        assert noticed(put(content, ("release", "estimate"), altered))
    low, high = content["release"]["bounds"]
    one_step_on = low + (high - low) * ((round((estimate - low) / (high - low) * 2**40) + 1) / 2**40)
    assert not noticed(put(content, ("release", "estimate"), one_step_on))  # only the hash can tell
    assert noticed(put(content, ("release", "estimate"), high + 1e6 * (high - low)))  # further than noise can carry it


def test_without_a_new_hash_every_altered_number_is_refused() -> None:
    values = record_of("central", "uniform", "paper").to_dict()
    for path, value in numbers(values):
        with pytest.raises(RecordError):
            Record.from_dict(put(values, path, alterations(value)[0]))


# -- lies told consistently --------------------------------------------------------------------------------------------


def lied(record: Record, **changes: Any) -> Verification:
    """Verify the record of another outcome; its totals, key and hash fit, its release is left out."""
    return verify(Record.of(dataclasses.replace(record.outcome, **changes)))


def priced(outcome: Outcome, losses: np.ndarray, weights: np.ndarray, mse: float) -> dict[str, Any]:
    """The fields that follow from other losses: error, objective, and payments that add up with the same rents."""
    costs, width = outcome.virtual_costs, outcome.market.width
    rents = np.where(losses > 0, np.maximum(outcome.information_rent, 0.01), 0.0)
    care = np.asarray(outcome.market.user_weight) * (mse - outcome.outside_error)
    return {
        "privacy_loss": losses,
        "weights": weights,
        "mse": mse,
        "worst_mse": mse,
        "objective": float(outcome.market.error_weight(costs.size) * mse + costs @ losses),
        "information_rent": rents,
        "rent_bounds": (rents, rents),
        "payments": care + outcome.bids * losses + rents,
        "incentive_error": 0.0 * width,
    }


def test_the_second_best_of_two_local_optima_is_noticed_by_the_certificate_alone() -> None:
    """One cheap person alone is best; all six together satisfy every first-order condition, 1.7 % above."""
    prior = Uniform(0, 4)
    market = Market(prior=prior, user_weight=0.0, buyer_weight=20.0)
    costs = np.array([0.02, 1.0, 1.0125, 1.025, 1.0375, 1.05])
    record = Record.of(market.acquire(costs / 2.0))
    assert record.outcome.active == 1
    assert verify(record).ok
    # the larger root of (m − a)·a^{1/3} = (4A)^{1/3}·Σ(ψ − m)²/(2AV), with everybody active
    mean, spread = costs.mean(), float(((costs - costs.mean()) ** 2).sum())
    target = (4 * 20.0) ** (1 / 3) * spread / (2 * 20.0 * 0.25)
    low, high = mean / 4, mean
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if (mean - middle) * middle ** (1 / 3) > target else (low, middle)
    weights = 1 / 6 + (mean - low) * (mean - costs) / spread
    total = (4 * 20.0 / float(costs @ weights)) ** (1 / 3)
    assert (weights > 0).all()
    second = priced(record.outcome, weights * total, weights, 2 / total**2 + 0.25 * float(weights @ weights))
    found = lied(record, **second)
    assert second["objective"] == pytest.approx(1.017 * record.outcome.objective, rel=1e-3)
    assert "certificate" in found.failed
    assert set(found.failed) <= {"certificate", "rents", "incentives"}


def high_root(ratio: float) -> float:
    """The larger y with 4y/(y² + 2)² = ratio."""
    low, high = math.sqrt(2 / 3), 1e6
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if 4 * middle / (middle**2 + 2) ** 2 > ratio else (low, middle)
    return low


def stationary(costs: np.ndarray, error_weight: float) -> tuple[np.ndarray, np.ndarray, float]:
    """The local setting's stationary point at which everybody with these costs is bought from; variance 1/4."""
    scaled = costs / (error_weight * 0.125)

    def supply(price: float) -> tuple[np.ndarray, float]:
        losses = np.array([high_root(cost / price) for cost in scaled])
        return losses, float((losses**2 / (losses**2 + 2)).sum())

    low, high = scaled.max() * 8 * math.sqrt(2) / (3 * math.sqrt(3)), 1e6
    for _ in range(100):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if supply(middle)[1] < middle**-0.5 else (low, middle)
    losses, total = supply(low)
    return 2 * losses, losses**2 / (losses**2 + 2) / total, 0.25 / total


def local_lie(who: list[int]) -> Verification:
    """Seven people of whom the cheapest few should be bought from, and others are, as well as that can be done."""
    market = Market(prior=UNIFORM, setting="local", user_weight=0.0, buyer_weight=150.0)
    outcome = market.acquire([1.0, 1.05, 1.1, 1.15, 1.2, 1.25, 1.3])
    assert outcome.active == 4
    losses, weights = np.zeros(7), np.zeros(7)
    losses[who], weights[who], mse = stationary(outcome.virtual_costs[who], 150.0)
    if who == [0, 1, 2, 3]:
        assert losses == pytest.approx(outcome.privacy_loss, rel=1e-9)
    return lied(Record.of(outcome), **priced(outcome, losses, weights, mse))


@pytest.mark.parametrize("count", [2, 3, 5])
def test_another_number_of_people_in_the_local_setting_is_noticed(count: int) -> None:
    found = local_lie(list(range(count)))
    assert "optimality" in found.failed
    assert set(found.failed) <= {"optimality", "rents", "incentives"}


def test_passing_over_a_cheaper_person_in_the_local_setting_is_noticed() -> None:
    assert "optimality" in local_lie([0, 1, 2, 4]).failed
    assert "optimality" not in local_lie([0, 1, 2, 3]).failed


def test_passing_over_an_earlier_one_among_equals_is_noticed() -> None:
    honest = SPECIAL["equals, bought from in an order of their own"]()
    order = np.array([3, 1, 4, 0, 2])
    chosen = np.flatnonzero(honest.outcome.privacy_loss)
    assert 0 < chosen.size < 5
    assert sorted(order[chosen]) == list(range(chosen.size))
    assert "optimality" in lied(honest, tie_order=order[::-1].copy()).failed
    assert "optimality" in lied(honest, tie_order=None).failed


def test_losses_under_another_cap_are_noticed() -> None:
    honest = record_of("central", "uniform", "capped")
    other = dataclasses.replace(honest.outcome.market, max_privacy_loss=1.6)
    assert {"certificate", "optimality", "rents"} <= set(lied(honest, market=other).failed)
    lower = dataclasses.replace(honest.outcome.market, max_privacy_loss=1.4)
    assert "weights" in lied(honest, market=lower).failed


def test_of_too_many_different_limits_a_sample_of_rents_is_checked_and_that_is_said() -> None:
    rng, people = np.random.default_rng(5), 2001
    market = Market(prior=UNIFORM, goal=Accuracy(0.05))
    outcome = market.acquire(UNIFORM.sample(people, rng=rng), limits=rng.uniform(0.01, 0.3, people))
    found = verify(Record.of(outcome))
    assert (found.verdict, found.ok) == ("holds by sample", True)
    check = next(check for check in found.checks if check.name == "rents")
    size, missed = check.figures["people"], check.figures["share of altered rents missed with 1 percent"]
    assert 60 < size < outcome.active
    assert (1.0 - missed) ** size == pytest.approx(0.01)
    assert f"{size} of {outcome.active} rents" in found.summary().splitlines()[-1]


@pytest.mark.parametrize("prior", [UNIFORM, STEPS], ids=["uniform", "empirical"])
def test_one_payment_of_hundreds_that_is_one_per_cent_too_low_is_noticed(prior: Any) -> None:
    people = prior.sample(900, rng=np.random.default_rng(4))
    record = Record.of(Market(prior=prior, **PAPER).acquire(people))
    outcome = record.outcome
    assert outcome.active > 100
    row = int(np.flatnonzero(outcome.privacy_loss)[outcome.active // 2])
    rents, pay = outcome.information_rent.copy(), outcome.payments.copy()
    pay[row] -= 0.01 * pay[row]
    rents[row] -= outcome.payments[row] - pay[row]
    assert rents[row] > 0
    lower, upper = (bound.copy() for bound in outcome.rent_bounds)
    lower[row] = upper[row] = rents[row]
    found = lied(record, payments=pay, information_rent=rents, rent_bounds=(lower, upper))
    assert "rents" in found.failed
    assert set(found.failed) <= {"rents"}
    assert f"row {row}." in "".join(one.sentence for one in found.checks if one.name == "rents")


def everybodys_rents(outcome: Outcome) -> Check:
    with np.errstate(all="ignore"):
        return next(iter(rent_checks(Facts.of(Record.of(outcome)))))


def with_rents(outcome: Outcome, rents: np.ndarray, **more: Any) -> Outcome:
    """Other rents, with payments that add up and bounds moved along."""
    change = rents - outcome.information_rent
    low, high = outcome.rent_bounds
    known = {"payments": outcome.payments + change, "rent_bounds": (low + change, high + change)}
    return dataclasses.replace(outcome, information_rent=rents, **{**known, **more})


MANY: dict[str, tuple[int, dict[str, Any]]] = {
    "central": (40_000, {"prior": LOGNORMAL, **PAPER}),
    "uniform": (5_000, {"prior": UNIFORM, **PAPER}),
    "capped": (1_000, {"prior": LOGNORMAL, **PAPER, "max_privacy_loss": 0.02}),
    "ironed": (5_000, {"prior": IRONED, **PAPER}),
    "empirical": (5_000, {"prior": Empirical(np.linspace(0.5, 3.0, 60)), **PAPER}),
    "two variances": (
        2_000,
        {"prior": UNIFORM, "user_weight": 0.0, "buyer_weight": 2e3, "variance": [0.1, 0.2] * 1000},
    ),
    "local": (10_000, {"prior": UNIFORM, "setting": "local", **PAPER}),
    "local, capped": (
        1_000,
        {"prior": LOGNORMAL, "setting": "local", "buyer_weight": 1e3, "max_privacy_loss": 1.5, "max_correlation": 0.02},
    ),
    "local, an accuracy": (
        1_000,
        {"prior": LOGNORMAL, "setting": "local", "goal": Accuracy(0.15), "max_correlation": 0.02},
    ),
}


@pytest.mark.parametrize("which", MANY)
def test_one_rent_of_many_altered_by_a_thousandth_is_found_and_honest_ones_are_not(which: str) -> None:
    """Bounds move along, payments add up, key, totals and hash fit: only the integral tells."""
    n, market = MANY[which]
    rng = np.random.default_rng(7)
    outcome = Market(**market).acquire(market["prior"].sample(n, rng=rng))
    honest = everybodys_rents(outcome)
    assert honest.status == "holds", honest
    assert honest.figures["people"] == outcome.active > 20
    rents = outcome.information_rent
    row = int(rng.choice(np.flatnonzero(rents > 0.1 * rents.max())))
    altered = rents.copy()
    altered[row] += max(1e-3 * rents[row], 1e-5 * outcome.payments.max())  # rents may be tiny parts of payments
    lie = everybodys_rents(with_rents(outcome, altered))
    assert lie.status == "fails"
    assert lie.sentence.endswith(f"in row {row}.")


@pytest.mark.parametrize("which", [("central", "uniform", "paper"), ("local", "lognormal", "selfless")], ids=" ".join)
def test_stretched_bounds_on_rents_do_not_make_other_payments_pass(which: tuple[str, str, str]) -> None:
    """Everybody's rent to 0, a friend's to a thousand more: whatever the bounds say."""
    outcome = record_of(*which).outcome
    rents = np.zeros(4)
    rents[int(np.argmax(outcome.privacy_loss))] = 1000.0
    wide = (np.where(outcome.privacy_loss > 0, -1e4, 0.0), np.where(outcome.privacy_loss > 0, 1e4, 0.0))
    error = 2.0 * float(np.maximum(wide[1] - rents, rents - wide[0]).max())
    found = verify(Record.of(with_rents(outcome, rents, rent_bounds=wide, incentive_error=error)))
    assert set(found.failed) == {"incentives", "rents"}
    honest = outcome.information_rent
    wide = (np.where(outcome.privacy_loss > 0, -1.0, 0.0), np.where(outcome.privacy_loss > 0, honest + 1.0, 0.0))
    error = 2.0 * float(np.maximum(wide[1] - honest, honest - wide[0]).max())
    only_wide = dataclasses.replace(outcome, rent_bounds=wide, incentive_error=error)
    assert verify(Record.of(only_wide)).failed == ("incentives",)


@pytest.mark.parametrize(("cap", "people"), [(None, 600), (0.03, 150)], ids=["free", "capped"])
def test_one_error_outside_of_many_altered_by_a_thousandth_is_found(cap: float | None, people: int) -> None:
    market = Market(prior=LOGNORMAL, **{**OUTSIDE, "max_privacy_loss": cap})
    outcome = market.acquire(LOGNORMAL.sample(people, rng=np.random.default_rng(3)))
    row = int(np.flatnonzero(outcome.privacy_loss)[17])
    outside = outcome.outside_error.copy()
    outside[row] *= 1.001
    payments = outcome.payments - outcome.market.user_weight * (outside - outcome.outside_error)
    records = [Record.of(outcome), Record.of(dataclasses.replace(outcome, outside_error=outside, payments=payments))]
    honest, lie = (next(one for one in findings(record) if one.name == "outside option") for record in records)
    assert (honest.status, honest.figures["people"], lie.status) == ("holds", people, "fails")
    assert lie.sentence.endswith(f"in row {row}.")


@pytest.mark.parametrize("which", ALTERABLE[::3], ids=" ".join)
def test_payments_that_are_all_one_per_cent_off_are_noticed(which: tuple[str, str, str]) -> None:
    record = record_of(*which)
    assert "payments add up" in lied(record, payments=1.01 * record.outcome.payments).failed
    outcome = record.outcome
    rents = outcome.information_rent + 0.01 * np.where(outcome.privacy_loss > 0, np.abs(outcome.payments), 0.0)
    pay = outcome.payments + (rents - outcome.information_rent)
    wide = (outcome.rent_bounds[0] + (rents - outcome.information_rent), rents + 1e-15)
    error = 2.0 * float(np.maximum(wide[1] - rents, rents - wide[0]).max())
    found = lied(record, payments=pay, information_rent=rents, rent_bounds=wide, incentive_error=error)
    assert "rents" in found.failed


# -- broken promises ---------------------------------------------------------------------------------------------------


def with_release(record: Record, **changes: Any) -> Verification:
    assert record.release is not None
    content = {**record.content, "release": dataclasses.replace(record.release, **changes).to_dict()}
    return up_to_payments(Record.from_dict({**content, "hash": content_hash(content)}))


def up_to_payments(record: Record) -> Verification:
    """The checks of decision and release, which come before those of payments."""
    checks = takewhile(lambda check: check.name != "payments add up", findings(record))
    return Verification(checks=tuple(checks), hash=record.hash)


@pytest.mark.parametrize("setting", ["central", "local"])
def test_more_privacy_lost_than_promised_is_noticed_for_every_person(setting: str) -> None:
    record = record_of(setting, "uniform", "selfless")
    assert record.release is not None
    for row in range(4):
        lost = record.release.privacy_loss.copy()
        lost[row] = np.nextafter(max(lost[row], record.outcome.privacy_loss[row]), math.inf)
        assert "promises" in with_release(record, privacy_loss=lost).failed


def test_a_smaller_promise_than_what_was_delivered_is_noticed() -> None:
    record = record_of("central", "uniform", "selfless")
    less = record.outcome.privacy_loss * (1 - 1e-9)
    outcome = dataclasses.replace(record.outcome, privacy_loss=less)
    assert "promises" in up_to_payments(Record.of(outcome, record.release)).failed


def test_noise_that_is_too_small_is_noticed() -> None:
    record = record_of("central", "uniform", "selfless")
    assert record.release is not None
    grid: Grid = record.release.grid
    assert grid.noise_scale is not None
    assert grid.weight_exponent is not None
    for changes in (
        {"noise_scale": 0.7 * grid.noise_scale},
        {"noise_scale": 0.5 * grid.noise_scale, "weight_exponent": grid.weight_exponent - 1},
        {"data_bits": 39},
        {"total_weight": None},
        {"weight_exponent": None, "noise_scale": 0.0},
    ):
        assert "grid" in with_release(record, grid=dataclasses.replace(grid, **changes)).failed


def test_somebody_who_dropped_out_cannot_have_lost_anything() -> None:
    record = record_of("central", "uniform", "selfless")
    assert record.release is not None
    assert record.release.dropped_out
    assert "promises" in with_release(record, dropped_out=()).failed + with_release(record, clamped=9).failed
    everybody = tuple(np.flatnonzero(record.outcome.privacy_loss).tolist())
    assert "promises" in with_release(record, dropped_out=everybody).failed
    assert "promises" in with_release(record, dropped_out=(99,)).failed


def test_the_release_of_another_outcome_is_noticed() -> None:
    record, other = record_of("central", "uniform", "selfless"), record_of("central", "uniform", "paper")
    assert "release" in up_to_payments(Record.of(record.outcome, other.release)).failed
    assert "release" in with_release(record, bounds=(0.0, 2.0)).failed


# -- how it is told ----------------------------------------------------------------------------------------------------


def test_a_verification_says_what_holds_without_anybodys_numbers() -> None:
    record = record_of("central", "uniform", "paper")
    found = verify(record)
    told = found.summary()
    assert told.endswith(f"Holds: everything that can be checked without the data. Record {record.hash}.")
    assert json.loads(json.dumps(found.to_dict()))["verdict"] == "holds"
    assert all(check.sentence.endswith(".") for check in found.checks)
    bad = lied(record, payments=1.01 * record.outcome.payments)
    assert "Do not rely on this record" in bad.summary()
    assert "rows 0, 1, 2, 3" in bad.summary()
    for column in ("bid", "payment", "privacy_loss"):
        for value in record.outcome.columns()[column].tolist():
            assert value == 0.0 or repr(value) not in told + bad.summary()


def test_what_was_hashed_counts_and_not_what_was_put_in_its_place() -> None:
    record = record_of("central", "uniform", "paper")
    kinder = dataclasses.replace(record.outcome, payments=record.outcome.payments + 1.0)
    assert verify(dataclasses.replace(record, outcome=kinder)).ok  # the content is as it was
    assert verify(dataclasses.replace(record, hash="0" * 64)).failed == ("hash",)


STATED = {"goals"}
"""The modules of the allocation that hold what a buyer can state."""

READING = {"Strata"}
"""What is neither decided nor priced: who is in which stratum."""


def is_solver(module: str) -> bool:
    """Whether a module decides, prices or weighs."""
    if module.startswith("hushbid.allocation"):
        return module.rpartition(".")[2] not in STATED
    return module.startswith(("hushbid.payments", "hushbid.estimation"))


def test_verification_calls_neither_the_solver_nor_the_code_that_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    records = [record_of(*which) for which in ALTERABLE]
    local = Market(prior=LOGNORMAL, setting="local", goal=Accuracy(0.45), max_correlation=0.1)
    records.append(Record.of(local.acquire(FOUR["lognormal"])))
    loaded = {name: module for name, module in sys.modules.items() if name.startswith("hushbid")}
    theirs = {
        id(thing)
        for name, module in loaded.items()
        if is_solver(name)
        for thing in vars(module).values()
        if callable(thing)
        and is_solver(getattr(thing, "__module__", None) or "")
        and getattr(thing, "__name__", "") not in READING
    }
    assert len(theirs) > 40

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("verification must not call this")

    for module in loaded.values():
        for label, thing in list(vars(module).items()):
            if id(thing) in theirs:
                monkeypatch.setattr(module, label, refuse)
    for label in ("acquire", "rule", "allocation"):
        monkeypatch.setattr(Market, label, refuse)
    for label in ("rule", "allocation", "best_estimate", "outside_errors", "outside_error_of"):
        monkeypatch.setattr(Population, label, refuse)
    for record in records:
        assert verify(Record.from_dict(json.loads(json.dumps(record.to_dict())))).ok
    monkeypatch.undo()
    monkeypatch.setattr("hushbid.mechanism.population.allocate", refuse)
    with pytest.raises(AssertionError, match="must not call"):  # the one that was kept from working
        Market(prior=UNIFORM, **PAPER).acquire([1.5, 1.6])
