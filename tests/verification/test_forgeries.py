"""The forgery table: in every kind of market, every number on which another one depends is altered, and it is found.

A number is altered by one part in 10⁵ of itself (a rent: of that person's payment), or by 10⁻⁶ where it is exact. What
follows from the outcome as a whole, its key and the control totals, is made to fit. And each check of the verifier is
needed: without it some forgery passes.
"""

import copy
import dataclasses
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

from hushbid.allocation import Budget, HardBudget
from hushbid.common.documents import content_hash
from hushbid.disclosure import release_synthetic
from hushbid.errors import RecordError
from hushbid.mechanism import Outcome
from hushbid.mechanism.releasing import outcome_key, plan_of
from hushbid.record import Record, totals
from hushbid.verification import Check, verifying
from hushbid.verification.verifying import findings
from tests.extent import ALL_CASES
from tests.verification.kinds import KINDS, outcome_of

PART, EXACT = 1e-5, 1e-6
TABLE = list(KINDS) if ALL_CASES else list(KINDS)[::3]
COLUMNS = ("bid", "virtual_cost", "privacy_loss", "weight", "payment", "information_rent", "outside_error")
FIGURES = ("mse", "worst_mse", "objective", "incentive_error")


@cache
def content_of(kind: str) -> dict[str, Any]:
    """The content of a record of such a market, with a release of made-up data."""
    outcome = outcome_of(kind)
    survey = outcome.market.survey
    drawn = None
    if survey is None or len(survey) == 1:
        data: list[Any] = [0.5 if survey is None else [True]] * outcome.bids.size
        drawn = release_synthetic(plan_of(outcome), data, simulated=True).release
    currency = None if isinstance(outcome.market.goal, Budget | HardBudget) else "EUR"  # theirs ask for a coin
    return dict(Record.of(outcome, drawn, currency=currency, decimals=4).content)


def fitting(content: dict[str, Any]) -> dict[str, Any]:
    """The same with a key and totals that fit what the outcome says."""
    outcome = Outcome.from_dict(content["outcome"])
    content |= {"outcome_key": outcome_key(outcome), "totals": totals(outcome)}
    if content["release"]:
        content["release"]["key"] = content["outcome_key"]
    return content


def is_found(content: dict[str, Any]) -> bool:
    """Whether a record with this content, and a hash that fits, is refused or does not hold."""
    try:
        record = Record.from_dict({**content, "hash": content_hash(content)})
    except RecordError:
        return True
    return any(check.status in ("fails", "incomplete") for check in findings(record))


def altered(value: float, part: float) -> float:
    return value * (1.0 + part) if value else part


def forgeries(kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every number that another one depends on, altered; of a column, that of one person."""
    honest = content_of(kind)
    columns = honest["outcome"]["columns"]
    row = int(np.argmax(columns["privacy_loss"]))
    for name in COLUMNS:
        lie = copy.deepcopy(honest)
        column = lie["outcome"]["columns"][name]
        if name == "information_rent":  # the payment, and its bounds, move along
            change = PART * abs(columns["payment"][row])
            for moved in (column, lie["outcome"]["columns"]["payment"]):
                moved[row] += change
            for bound in ("rent_lower", "rent_upper"):
                lie["outcome"][bound][row] += change
            lie["money"] = None
        else:
            column[row] = altered(column[row], EXACT if name == "payment" else PART)
        yield name, fitting(lie)
    shared = honest["outcome"]["market"]["goal"]["kind"] == "hard_budget"
    for name in FIGURES[: -1 if shared else None]:  # a menu's error of incentives is stated for every bid on it
        lie = copy.deepcopy(honest)
        lie["outcome"][name] = altered(lie["outcome"][name], PART)
        yield name, fitting(lie)
    if honest["outcome"]["market"]["setting"] == "central":
        yield "lower_bound", {**honest, "lower_bound": altered(honest["lower_bound"], PART)}
    for name, total in honest["totals"].items():
        yield f"totals of {name}", {**honest, "totals": honest["totals"] | {name: altered(total, EXACT)}}
    yield from _of_money(honest)
    yield from _of_release(honest, row)


def _of_money(honest: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    money = honest["money"]
    for name in ("total", "incentive_error") if money else ():
        value = money[name] + 1 if name == "total" else altered(money[name], PART)
        yield f"money.{name}", {**honest, "money": money | {name: value}}


def _of_release(honest: dict[str, Any], row: int) -> Iterator[tuple[str, dict[str, Any]]]:
    if honest["release"] is None:
        return
    lie = copy.deepcopy(honest)
    lie["release"]["privacy_loss"][row] *= 1.0 - EXACT
    yield "lost", lie
    stated = honest["release"]["answers"][0] if "answers" in honest["release"] else honest["release"]
    for model in ("error", "planned_error"):
        for name, value in stated[model].items():
            if isinstance(value, float) and value:
                lie = copy.deepcopy(honest)
                answer = lie["release"]["answers"][0] if "answers" in lie["release"] else lie["release"]
                answer[model][name] = altered(value, PART)
                yield f"{model}.{name}", lie
    for name in ("weight_exponent", "total_weight", "noise_scale", "data_bits"):
        if honest["release"]["grid"][name] is not None:
            lie = copy.deepcopy(honest)
            value = lie["release"]["grid"][name]
            lie["release"]["grid"][name] = 2.0 * value if name == "noise_scale" else value + 1
            yield f"grid.{name}", lie


@pytest.mark.parametrize("kind", TABLE)
def test_every_altered_number_is_found_and_the_honest_record_holds(kind: str) -> None:
    honest = content_of(kind)
    assert not is_found(honest)
    missed = [name for name, lie in forgeries(kind) if not is_found(lie)]
    assert missed == []


# -- every check is needed ---------------------------------------------------------------------------------------------

NEEDED: dict[str, tuple[str, str]] = {
    "totals": ("central price", "totals of payment"),
    "virtual costs": ("central price", "virtual_cost"),
    "weights": ("central price", "weight"),
    "error and objective": ("central price", "mse"),
    "certificate": ("central price", "lower_bound"),
    "optimality": ("central price", "privacy_loss"),
    "promises": ("local price", "lost"),
    "grid": ("central price", "grid.total_weight"),
    "error of the release": ("central price", "error.sampling_variance"),
    "planned error": ("central price", "planned_error.sampling_variance"),
    "payments add up": ("central price", "payment"),
    "incentives": ("central price", "incentive_error"),
    "money": ("central price", "money.total"),
    "outside option": ("central price, the estimate outside", "outside_error"),
    "rents": ("central price", "information_rent"),
}
"""A forgery that this check notices; others may notice it too."""


@pytest.mark.parametrize("name", NEEDED)
def test_each_check_notices_its_own_forgery(name: str) -> None:
    kind, what = NEEDED[name]
    lie = dict(forgeries(kind))[what]
    found = findings(Record.from_dict({**lie, "hash": content_hash(lie)}))
    assert name in {check.name for check in found if check.status == "fails"}


ALONE = {
    "certificate": "lower_bound",
    "error of the release": "error.sampling_variance",
    "planned error": "planned_error.sampling_variance",
    "rents": "information_rent",
    "grid": "grid.total_weight",
}
"""Of one market, forgeries that nothing else notices."""


@pytest.mark.parametrize("name", ALONE)
def test_without_a_check_its_forgery_passes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutation of the verifier: one check is made to find nothing."""
    lie = dict(forgeries("central price"))[ALONE[name]]
    honest = tuple(verifying.CHECKS)

    def without(checks: Callable[..., Iterator[Check]]) -> Callable[..., Iterator[Check]]:
        def made(facts: Any) -> Iterator[Check]:
            for check in checks(facts):
                yield dataclasses.replace(check, status="holds") if check.name == name else check

        return made

    assert is_found(lie)
    monkeypatch.setattr(verifying, "CHECKS", tuple(map(without, honest)))
    assert not is_found(lie)
