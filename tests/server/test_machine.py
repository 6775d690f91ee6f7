"""The life cycle against a model of it: Hypothesis plays campaigns, restarts included, and compares every step."""

import shutil
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from hushbid.common.documents import parsed
from hushbid.errors import BidError, Conflict, DataError
from hushbid.record import Record
from hushbid.server.model.states import CampaignState, ParticipantState
from hushbid.server.service import Service
from hushbid.verification.receipts import verify_log, verify_receipt
from tests.extent import TIMES
from tests.server.postgres import Postgres
from tests.server.support import NONCE, Installation, Play, deliver, nonce_for, opened

C, P = CampaignState, ParticipantState
PEOPLE, FEE = 4, 100
ROWS = st.integers(0, PEOPLE - 1)
PAYABLE = {C.DELIVERING, C.RELEASED, C.CLOSED, C.NOTHING_BOUGHT, C.UNDELIVERED, C.CANCELLED}
COUNTED = {P.NOT_BOUGHT, P.PROMISED, P.DELIVERED, P.DROPPED}


class Server:
    """One installation for all campaigns of a test; it may be restarted between any two steps."""

    def __init__(self, installation: Installation) -> None:
        self.installation = installation
        self.service = installation.start()

    def restart(self) -> None:
        self.service.close()
        self.service = self.installation.start()


class LifeCycle(RuleBasedStateMachine):
    """One campaign and its model."""

    def __init__(self, server: Server) -> None:
        super().__init__()
        self.server = server
        self.play: Play

    @property
    def service(self) -> Service:
        return self.server.service

    @property
    def now(self) -> datetime:
        return self.server.installation.clock.now

    @initialize(kind=st.sampled_from(["central", "local", "one visit"]), kept=st.booleans(), deadlines=st.booleans())
    def open(self, kind: str, kept: bool, deadlines: bool) -> None:
        self.kept, self.local, self.once = kept, kind == "local", kind == "one visit"
        self.bid_by = self.now + timedelta(hours=1) if deadlines else datetime.max.replace(tzinfo=self.now.tzinfo)
        self.deliver_by = self.now + timedelta(hours=2) if deadlines else self.bid_by
        by = {"bid_by": self.bid_by, "deliver_by": self.deliver_by} if deadlines else {}
        chosen = {"setting": "local" if self.local else "central", "single_visit": self.once, **by}
        self.play = opened(self.service, PEOPLE, participation_fee=FEE / 100, fee_after_withdrawal=kept, **chosen)
        self.state = C.BIDDING
        self.people = [P.INVITED] * PEOPLE
        self.bids: list[float | None] = [None] * PEOPLE
        self.has_bid = [False] * PEOPLE
        self.promised: list[float] | None = None
        self.payments = [0] * PEOPLE
        self.paid = [0] * PEOPLE
        self.sent: dict[str, Any] = {}
        self.estimate: dict[str, Any] | None = None

    def expect(self, allowed: bool, attempt: Callable[[], object], refusal: type[Exception] = Conflict) -> None:
        """Attempt something that the model allows or refuses."""
        if allowed:
            attempt()
        else:
            with pytest.raises(refusal):
                attempt()

    def answered(self) -> bool:
        return sum(bid is not None for bid in self.bids) >= 2

    # -- what participants do ------------------------------------------------------------------------------------------

    @rule(row=ROWS, bid=st.sampled_from([1.0, 1.25, 1.5, 2.0, 2.5]))
    def bid(self, row: int, bid: float) -> None:
        allowed = self.state is C.BIDDING and self.now < self.bid_by and self.people[row] in (P.INVITED, P.BID)
        data = {"given": bid, "nonce": nonce_for(row, bid)} if self.once else {}
        self.expect(allowed, lambda: self.service.bid(self.play.token(row), bid, **data))
        if allowed:
            self.people[row], self.bids[row], self.has_bid[row] = P.BID, bid, True

    @rule(bids=st.lists(st.sampled_from([1.0, 1.25, 1.5, 2.0, 2.5]), min_size=PEOPLE, max_size=PEOPLE))
    @precondition(lambda self: self.state is C.BIDDING and self.has_bid.count(True) < 2)
    def everybody_bids(self, bids: list[float]) -> None:
        for row, bid in enumerate(bids):
            self.bid(row, bid)

    @rule(row=ROWS)
    @precondition(lambda self: self.state is C.BIDDING and self.now < self.bid_by)
    def bid_nonsense(self, row: int) -> None:
        may = self.people[row] in (P.INVITED, P.BID)
        self.expect(False, lambda: self.service.bid(self.play.token(row), 0.5), BidError if may else Conflict)

    @rule(row=ROWS)
    def decline(self, row: int) -> None:
        first = self.state is C.BIDDING and self.now < self.bid_by and self.people[row] is P.INVITED
        allowed = first or self.people[row] is P.DECLINED
        self.expect(allowed, lambda: self.service.decline(self.play.token(row)))
        if first:
            self.people[row] = P.DECLINED

    @rule(row=ROWS)
    def withdraw(self, row: int) -> None:
        now = self.people[row]
        first = (self.state is C.BIDDING and now is P.BID) or (
            self.state is C.DELIVERING and now in (P.PROMISED, P.DELIVERED)
        )
        self.expect(first or now is P.WITHDRAWN, lambda: self.service.withdraw(self.play.token(row)))
        if first:
            self.people[row] = P.WITHDRAWN
            if self.state is C.BIDDING:
                self.bids[row] = None

    @rule(row=ROWS, value=st.sampled_from([0.0, 5.0, 10.0]))
    def deliver(self, row: int, value: float) -> None:
        token = self.play.token(row)
        first = self.state is C.DELIVERING and self.people[row] is P.PROMISED and self.now < self.deliver_by
        again = self.people[row] is P.DELIVERED
        same = self.local or self.sent.get(token) == value
        kept = self.sent if self.local or first else {}
        allowed = not self.once and (first or (again and same))
        self.expect(allowed, lambda: deliver(self.service, token, value, kept=kept))
        if first:
            self.people[row] = P.DELIVERED

    @rule(rows=st.sets(ROWS, min_size=1), value=st.sampled_from([0.0, 5.0, 10.0]))
    @precondition(lambda self: self.state is C.DELIVERING and P.DELIVERED not in self.people)
    def some_deliver(self, rows: set[int], value: float) -> None:
        for row in sorted(rows):
            self.deliver(row, value)

    @rule(row=ROWS)
    @precondition(lambda self: self.state is C.DELIVERING and self.now < self.deliver_by)
    def deliver_nonsense(self, row: int) -> None:
        refused = DataError if self.people[row] is P.PROMISED else Conflict
        self.expect(False, lambda: self.service.deliver(self.play.token(row), 11.0, nonce=NONCE), refused)

    # -- what the analyst does -----------------------------------------------------------------------------------------

    @rule()
    @precondition(lambda self: self.state is not C.BIDDING or self.answered() or self.now >= self.bid_by)
    def decide(self) -> None:
        allowed = self.state is C.BIDDING and not (self.once and self.now >= self.deliver_by)
        self.expect(allowed, lambda: self.play.on(self.service).decide())
        if not allowed:
            return
        asked = [bid for bid in self.bids if bid is not None]
        bought = len(asked) >= 2 and min(asked) <= 2.0
        self.state = C.DELIVERING if bought else C.NOTHING_BOUGHT
        seen = [self.service.participation(link.token) for link in self.play.seats]
        self.promised = [one.promised or 0.0 for one in seen]
        self.payments = [one.payment or 0 for one in seen]
        for row, bid in enumerate(self.bids):
            if self.people[row] is P.INVITED:
                self.people[row] = P.ABSENT
            elif bid is not None:
                assert self.promised[row] == 0.0 or bid <= 2.0
                bought_from = P.DELIVERED if self.once else P.PROMISED
                self.people[row] = bought_from if self.promised[row] > 0.0 else P.NOT_BOUGHT
        assert any(self.promised) == bought

    @rule(accept_nobody=st.booleans())
    @precondition(lambda self: self.state is not C.BIDDING)
    def release(self, accept_nobody: bool) -> None:
        delivered = self.people.count(P.DELIVERED)
        nobody_may_come = accept_nobody or self.once or self.now >= self.deliver_by
        allowed = self.state is C.DELIVERING and (delivered > 0 or nobody_may_come)
        self.expect(allowed, lambda: self.play.on(self.service).release(accept_nobody=accept_nobody))
        if allowed:
            self.state = C.RELEASED if delivered else C.UNDELIVERED
            self.people = [P.DROPPED if one is P.PROMISED else one for one in self.people]
            self.estimate = self.view.release
            assert (self.estimate is not None) == bool(delivered)

    @rule(row=st.none() | ROWS)
    def pay(self, row: int | None) -> None:
        allowed = self.state in PAYABLE
        labels = None if row is None else [self.play.links[row].label]
        self.expect(allowed, lambda: self.service.mark_paid(self.play.who, self.play.id, labels))
        if allowed:
            for one in range(PEOPLE) if row is None else [row]:
                self.paid[one] += self.due(one)

    @rule(accept_unpaid=st.booleans())
    @precondition(lambda self: self.state is not C.BIDDING)
    def close(self, accept_unpaid: bool) -> None:
        paid = not any(map(self.due, range(PEOPLE)))
        allowed = self.state is C.RELEASED and (paid or accept_unpaid)
        close = self.service.close_campaign
        self.expect(allowed, lambda: close(self.play.who, self.play.id, accept_unpaid=accept_unpaid))
        if allowed:
            self.state = C.CLOSED

    @rule()
    @precondition(lambda self: self.state is not C.BIDDING or self.now >= self.bid_by)
    def cancel(self) -> None:
        allowed = self.state is C.BIDDING
        self.expect(allowed, lambda: self.service.cancel(self.play.who, self.play.id, "No more."))
        if allowed:
            self.state = C.CANCELLED

    # -- what happens --------------------------------------------------------------------------------------------------

    @rule()
    def an_hour_passes(self) -> None:
        self.server.installation.clock.pass_(hours=1)
        self.service.tick()
        if self.once and self.state is C.BIDDING and self.now >= self.deliver_by:
            self.state = C.CANCELLED

    @rule()
    def the_server_is_restarted(self) -> None:
        self.server.restart()

    # -- what always holds ---------------------------------------------------------------------------------------------

    @property
    def view(self) -> Any:
        return self.service.campaign(self.play.who, self.play.id)

    def due(self, row: int) -> int:
        hers = self.people[row] in COUNTED or (
            (self.state is C.CANCELLED and self.people[row] is P.BID) or (self.kept and self.people[row] is P.WITHDRAWN)
        )
        owed = FEE * hers + (self.payments[row] if self.people[row] is P.DELIVERED else 0)
        return max(owed - self.paid[row], 0)

    @invariant()
    def the_model_is_right(self) -> None:
        view = self.view
        assert view.state is self.state
        assert view.people == {state.value: count for state, count in Counter(self.people).items()}
        assert view.due == sum(map(self.due, range(PEOPLE)))
        assert view.paid == sum(self.paid)
        assert view.release == self.estimate
        assert (view.root is not None) == view.state.is_over

    @invariant()
    def everybody_sees_her_own(self) -> None:
        for row, link in enumerate(self.play.seats):
            seen = self.service.participation(link.token)
            assert (seen.state, seen.bid, seen.due) == (self.people[row], self.bids[row], self.due(row))
            if self.promised is not None:
                assert (seen.promised or 0.0) == self.promised[row]
                assert (seen.payment or 0) == self.payments[row]

    @invariant()
    def there_is_a_key_for_whoever_is_or_may_be_bought_from_and_for_nobody_else(self) -> None:
        path = self.service.home.data_keys / f"{self.play.id}.answers"
        content = path.read_bytes() if path.exists() else b""
        keys = sum(any(content[at : at + 32]) for at in range(0, len(content), 32))
        needed = {C.BIDDING: P.BID, C.DELIVERING: P.DELIVERED}.get(self.state)
        assert keys == (self.people.count(needed) if self.once and needed is not None else 0)

    @invariant()
    def the_log_is_whole(self) -> None:
        assert verify_log(self.service.events(self.play.who, self.play.id)).ok

    def teardown(self) -> None:
        if not hasattr(self, "state") or not self.state.is_over:
            return
        log = self.service.events(self.play.who, self.play.id)
        record = None
        if self.promised is not None and self.answered():
            record = Record.from_dict(parsed(self.service.record(self.play.who, self.play.id)))
        for row, link in enumerate(self.play.seats):
            receipt = self.service.receipt(link.token)
            assert verify_receipt(receipt, root=self.view.root, log=log, record=record).ok
            assert receipt.body.state == self.people[row].value
            assert receipt.body.bid == self.bids[row]


@pytest.mark.parametrize(("store", "examples"), [("sqlite", 8), ("postgresql", 5)])
def test_campaigns_live_as_the_model_says(
    request: pytest.FixtureRequest, tmp_path: Path, sqlite_template: Path, store: str, examples: int
) -> None:
    (tmp_path / "home").mkdir()
    url = None
    if store == "sqlite":
        shutil.copy(sqlite_template, tmp_path / "home")
    else:
        postgres: Postgres = request.getfixturevalue("postgres")
        url = postgres.url(postgres.new(like=request.getfixturevalue("postgres_template")))
    server = Server(Installation(tmp_path / "home", url, patience=5.0))
    try:
        run_state_machine_as_test(
            lambda: LifeCycle(server),
            settings=hypothesis_settings(max_examples=examples * TIMES, stateful_step_count=25, deadline=None),
        )
    finally:
        server.service.close()
