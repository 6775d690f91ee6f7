"""Limits that participants state beside their prices: kept, recorded, receipted, erased, and refused."""

import math
from typing import Any

import pytest

from hushbid.common.documents import parsed
from hushbid.errors import BidError, InputError
from hushbid.record import Record
from hushbid.server.model.states import CampaignState, ParticipantState
from hushbid.server.service import Service
from hushbid.verification.receipts import verify_receipt
from hushbid.verification.verifying import verify
from tests.extent import each
from tests.server.support import Installation, Play, opened, opened_database, settings

LIMITS = (0.05, None, 0.125, None, None, 0.3)


def bid(service: Service, **changes: Any) -> Play:
    play = opened(service, len(LIMITS), **changes)
    for row, limit in enumerate(LIMITS):
        service.bid(play.token(row), 1.0 + row / 10, limit=limit)
    return play


def record_of(play: Play) -> Record:
    return Record.from_dict(parsed(play.service.record(play.who, play.id)))


@pytest.mark.parametrize("goal", [{"buyer_weight": 50.0}, {"hard_budget": 5}], ids=lambda goal: next(iter(goal)))
def test_a_limit_is_kept_recorded_receipted_and_verified(common: Service, goal: dict[str, Any]) -> None:
    play = bid(common, **goal)
    assert play.decide().state == "done"
    record = record_of(play)
    assert record.ids is not None
    assert record.outcome.limits is not None
    row_of = [record.ids.index(link.id) for link in play.links]
    assert [record.outcome.limits[row] for row in row_of] == [limit or math.inf for limit in LIMITS]
    promised = [common.participation(play.token(row)).promised for row in range(len(LIMITS))]
    assert promised == [record.outcome.privacy_loss[row] for row in row_of]
    assert promised[0] == 0.05
    assert all(loss is not None and loss <= (limit or 1.0) for loss, limit in zip(promised, LIMITS, strict=True))
    assert verify(record).ok
    play.deliver()
    assert play.release().state == "done"
    log = common.events(play.who, play.id)
    for row, limit in enumerate(LIMITS):
        receipt = common.receipt(play.token(row))
        assert receipt.body.limit == limit
        assert verify_receipt(receipt, log=log, record=record_of(play)).ok


def test_a_receipt_with_another_limit_fits_neither_the_log_nor_the_record(common: Service) -> None:
    play = bid(common)
    play.decide()
    play.deliver()
    play.release()
    log, record = common.events(play.who, play.id), record_of(play)
    for row, limit in ((0, "0.06"), (1, "0.06"), (2, None)):
        values = common.receipt(play.token(row)).to_dict()
        values["body"] = {name: one for name, one in values["body"].items() if name != "limit"}
        values["body"] |= {} if limit is None else {"limit": limit}
        found = verify_receipt(type(common.receipt(play.token(row))).from_dict(values), log=log, record=record)
        assert {"log", "record"} <= set(found.failed)


def test_the_last_bid_counts_with_its_limit_or_without(common: Service) -> None:
    play = opened(common, 2)
    secret, said = play.token(0), []
    for limit in (0.5, 0.5, 0.25, None, 0.5):
        said.append(common.bid(secret, 1.5, limit=limit).limit)
    assert said == [0.5, 0.5, 0.25, None, 0.5]
    kinds = [event.kind for event in common.events(play.who, play.id) if "bid" in event.kind]
    assert kinds == ["bid", "bid-changed", "bid-changed", "bid-changed"]  # the same again is no event
    assert common.export(secret)["participant"]["limit"] == 0.5


def test_withdrawing_before_the_decision_erases_the_limit(installation: Installation) -> None:
    with installation.start() as service:
        play = bid(service)
        assert service.withdraw(play.token(0)).limit is None
        assert service.export(play.token(0))["participant"]["limit"] is None
    database = opened_database(installation)
    with database.writer.begin():
        kept = database.writer.exec_driver_sql("SELECT loss_limit FROM participants ORDER BY number").scalars().all()
    database.close()
    assert kept == [None, *LIMITS[1:]]


def test_with_a_limit_of_0_nothing_is_bought_and_everything_verifies(common: Service) -> None:
    play = opened(common, 4)
    play.bid(range(1, 4))
    assert common.bid(play.token(0), 1.0, limit=0).limit == 0.0
    assert play.decide().state == "done"
    assert not common.participation(play.token(0)).promised
    play.deliver(range(1, 4))
    assert play.release().state == "done"
    record, receipt = record_of(play), common.receipt(play.token(0))
    assert verify(record).ok
    assert receipt.body.limit == 0.0
    assert verify_receipt(receipt, log=common.events(play.who, play.id), record=record).ok


@each("limit", [-1, math.nan, math.inf, -math.inf, 1e-300, 10**400, "0.5", True, [0.5], {}])
def test_what_is_no_limit_is_refused_at_its_field_and_never_shown(common: Service, limit: Any) -> None:
    play = opened(common, 2)
    with pytest.raises(BidError, match="limit must be 0, to sell nothing, or a finite number from 1e-06 up") as told:
        common.bid(play.token(0), 1.5, limit=limit)
    assert told.value.field == "limit"
    assert common.participation(play.token(0)).state is ParticipantState.INVITED


def test_a_campaign_says_whether_it_takes_limits(common: Service) -> None:
    assert settings().takes_limits
    assert not settings(setting="local").takes_limits
    with pytest.raises(InputError, match="limits cannot be stated in the local setting") as told:
        settings(setting="local", limits=True)
    assert told.value.field == "server.limits"
    for changes in ({"limits": False}, {"setting": "local"}):
        play = opened(common, 2, **changes)
        assert not common.participation(play.token(0)).takes_limits
        with pytest.raises(BidError, match="limit must be left out"):
            common.bid(play.token(0), 1.5, limit=0.5)


@pytest.mark.parametrize("tight", [1e-6, None])
def test_an_accuracy_that_limits_put_out_of_reach_ends_the_campaign_and_says_so(
    common: Service, tight: float | None
) -> None:
    play = opened(common, 6, standard_error=3.0, variance=4.0, participation_fee=1)
    for row in range(6):
        common.bid(play.token(row), 1.0 + row / 10, limit=tight)
    assert play.decide().state == "done"
    if tight is None:
        assert play.view.state is CampaignState.DELIVERING
        return
    assert play.view.state is CampaignState.NOTHING_BOUGHT
    assert play.view.reason is not None
    assert "cannot be reached" in play.view.reason
    view = common.participation(play.token(0))
    assert (view.state, view.promised, view.due) == (ParticipantState.NOT_BOUGHT, None, 100)
    receipt = common.receipt(play.token(0))
    assert (receipt.body.limit, receipt.body.promised) == (tight, None)
    assert verify_receipt(receipt, log=common.events(play.who, play.id)).ok
