"""Many at the same moment: one wins, nothing acknowledged is lost, nothing is done twice."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from hushbid.common.documents import parsed
from hushbid.disclosure.ledger.files import stored
from hushbid.errors import Conflict
from hushbid.record import Record
from hushbid.server.model.access import LinkInvalid
from hushbid.server.model.states import CampaignState, ParticipantState
from hushbid.server.model.views import JobView
from hushbid.server.service import Service, participation
from hushbid.verification.receipts import verify_log
from tests.server.support import NONCE, decided, drafted, on_both_stores, opened, user

pytestmark = on_both_stores


def at_once(attempts: list[Callable[[], object]]) -> list[object]:
    """What each of several attempts gives or raises, all begun at the same moment."""
    together = threading.Barrier(len(attempts))

    def attempt(do: Callable[[], object]) -> object:
        together.wait(60)
        try:
            return do()
        except Conflict as refusal:
            return refusal

    with ThreadPoolExecutor(len(attempts)) as pool:
        return list(pool.map(attempt, attempts))


def test_of_two_analysts_who_press_release_at_the_same_moment_one_wins(service: Service) -> None:
    play = decided(service, 3)
    play.deliver()
    ann, bob = play.who, user(service, "bob")
    found = at_once([lambda who=who: service.release(who, play.id) for who in (ann, bob) for _ in range(4)])  # type: ignore[misc]
    jobs = [one for one in found if isinstance(one, JobView)]
    assert len(jobs) == 1
    service.wait(jobs[0], timeout=300)
    assert len(service.jobs(ann, play.id)) == 3, "opening, decision, release"
    kinds = [event.kind for event in service.events(ann, play.id)]
    assert (kinds.count("release-claimed"), kinds.count("released")) == (1, 1)
    release = stored(service.home.claims, f"release-{play.id}")
    assert release is not None
    assert play.view.release is not None
    assert release["estimate"] == play.view.release["estimate"]
    assert sorted(path.suffix for path in service.home.claims.glob("release-*")) == [".claim", ".json"]


def test_a_campaign_opens_once_and_decides_once(service: Service) -> None:
    play = drafted(service, 3)
    found = at_once([lambda: service.open(play.who, play.id)] * 3)
    [opening] = [one for one in found if isinstance(one, JobView)]
    assert sum(isinstance(one, Conflict) for one in found) == 2
    assert service.wait(opening, timeout=300).state == "done"
    play.bid()
    found = at_once([lambda: service.close_bidding(play.who, play.id)] * 3)
    jobs = [one for one in found if isinstance(one, JobView)]
    assert len(jobs) == 1
    service.wait(jobs[0], timeout=300)
    kinds = [event.kind for event in service.events(play.who, play.id)]
    assert (kinds.count("opened"), kinds.count("bidding-closed"), kinds.count("allocated")) == (1, 1, 1)


def test_a_bid_counts_exactly_if_it_was_acknowledged(service: Service) -> None:
    play = opened(service, 40)
    play.bid([0, 1])
    attempts: list[Callable[[], object]] = [partial(service.bid, one.token, 1.5) for one in play.seats[2:]]
    attempts.insert(19, lambda: service.close_bidding(play.who, play.id))
    found = at_once(attempts)
    job = found.pop(19)
    assert isinstance(job, JobView)
    service.wait(job, timeout=300)
    acknowledged = {play.links[row].id for row, one in enumerate(found, start=2) if not isinstance(one, Conflict)}
    record = Record.from_dict(parsed(service.record(play.who, play.id)))
    assert record.ids is not None
    assert set(record.ids) == acknowledged | {play.links[0].id, play.links[1].id}


def test_data_count_exactly_if_their_delivery_was_acknowledged(service: Service) -> None:
    play = decided(service, 20)
    service.deliver(play.token(0), 5.0, nonce=NONCE)
    attempts: list[Callable[[], object]] = [
        partial(service.deliver, one.token, 5.0, nonce=NONCE) for one in play.seats[1:]
    ]
    attempts.insert(9, lambda: service.release(play.who, play.id))
    found = at_once(attempts)
    job = found.pop(9)
    assert isinstance(job, JobView)
    service.wait(job, timeout=300)
    assert play.view.state is CampaignState.RELEASED
    for row, one in enumerate(found, start=1):
        expected = ParticipantState.DROPPED if isinstance(one, Conflict) else ParticipantState.DELIVERED
        assert service.participation(play.token(row)).state is expected


def test_people_are_paid_once_however_many_pay_at_the_same_moment(service: Service) -> None:
    play = decided(service, 5, participation_fee=0.1)
    play.deliver()
    owed = play.view.due
    found = at_once([lambda: service.mark_paid(play.who, play.id)] * 4)
    assert sum(row.due for rows in found for row in rows) == owed  # type: ignore[attr-defined]
    assert (play.view.due, play.view.paid) == (0, owed)


def test_requests_that_share_a_commit_see_each_other(service: Service) -> None:
    play = opened(service, 3)
    busy, go = threading.Event(), threading.Event()

    def hold(_: object) -> None:
        busy.set()
        go.wait(60)

    first, second = play.token(0), play.token(1)
    service.writer.submit("hold", hold)
    busy.wait(60)
    answers = [
        service.bid.soon(first, 1.25),
        service.bid.soon(second, 1.5),
        service.bid.soon(first, 1.75),
        service.bid.soon(first, 1.75),
        service.bid.soon("hb_p_nonsense", 1.5),
        service.writer.submit("withdraw", lambda tx: participation.withdraw(tx, second)),
        service.bid.soon(second, 1.5),
        service.bid.soon(first, 1.1),
        service.deliver.soon(first, 3.0, nonce=NONCE),
    ]
    go.set()
    refused = [type(answer.exception()) for answer in answers]
    nothing = type(None)
    assert refused == [nothing] * 4 + [LinkInvalid, nothing, Conflict, nothing, Conflict]
    assert service.participation(first).bid == 1.1
    assert service.participation(second).bid is None
    log = service.events(play.who, play.id)
    assert verify_log(log).ok
    assert [event.kind for event in log[3:]] == [*("bid", "bid", "bid-changed", "withdrawn", "bid-changed")]
