"""The clients against a network that loses answers, lies or refuses: what leaves the process, and what comes back."""

import json
import re
import ssl
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from hushbid.client import (
    AnalystClient,
    Invitation,
    MessageFolder,
    MessageMemory,
    ParticipantClient,
    Terms,
    Transport,
)
from hushbid.client.messages import place_name
from hushbid.client.views import split_link
from hushbid.errors import (
    CampaignError,
    Conflict,
    DataError,
    HushbidError,
    InputError,
    NotAllowed,
    NotFound,
    RecordError,
    ReleaseError,
    ServerFailed,
    Throttled,
)
from tests.extent import each

URL = "https://example.org"
VIEW: dict[str, Any] = {
    "campaign": "c1",
    "participant": "p1",
    "title": "Sleep",
    "setting": "local",
    "bounds": [0, 24],
    "questions": [],
    "max_privacy_loss": 1.0,
    "currency": "EUR",
    "decimals": 2,
    "campaign_state": "delivering",
    "state": "promised",
    "bid": 1.25,
    "promised": 0.5,
    "payment": 217,
    "due": 0,
}
SHOWN: dict[str, Any] = {"bounds": (0.0, 24.0), "largest_loss": 1.0, "currency": "EUR", "decimals": 2}
PLACE = place_name(URL, "c1", "p1")
Handler = Callable[[httpx.Request], httpx.Response]


class Network:
    """Remembers every request; answers with a function, or with the participant's view."""

    def __init__(self, handler: Handler | None = None, **changes: Any) -> None:
        self.requests: list[httpx.Request] = []
        self.exchanges: list[httpx.Request] = []
        """Of links for secrets; always granted."""

        self._handler = handler or (lambda request: httpx.Response(200, json={**VIEW, **changes}))

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/participation/secret"):
            self.exchanges.append(request)
            return httpx.Response(200, json=VIEW)
        self.requests.append(request)
        return self._handler(request)

    @property
    def sent(self) -> list[Any]:
        """The bodies of all requests that had one."""
        return [json.loads(request.content) for request in self.requests if request.content]

    @property
    def everything(self) -> bytes:
        """All bytes that left: addresses, headers and bodies."""
        return b"\n".join(
            b"%s %r %s" % (str(request.url).encode(), sorted(request.headers.raw), request.content)
            for request in (*self.exchanges, *self.requests)
        )


def participant(network: Network, tmp_path: Path, *, agreed: str | None = "local", **more: Any) -> ParticipantClient:
    """A client whose pauses take no time; on the device of somebody who bid to a campaign of that setting."""
    keeper = MessageFolder(tmp_path / "values")
    if agreed is not None and keeper.terms(PLACE) is None:
        keeper.agree(PLACE, Terms(setting=agreed, price=1.25, **SHOWN))
    return ParticipantClient(
        URL, "secret", keeper=keeper, network=httpx.MockTransport(network), sleep=lambda seconds: None, **more
    )


def analyst(network: Network, **more: Any) -> AnalystClient:
    return AnalystClient(URL, token="api", network=httpx.MockTransport(network), sleep=lambda seconds: None, **more)


# -- what leaves the process ---------------------------------------------------------------------------------------


def test_a_local_value_leaves_only_with_noise(tmp_path: Path) -> None:
    network = Network()
    participant(network, tmp_path).deliver_privately(7.15625)
    [body] = network.sent
    assert body["message"]["format"] == "hushbid-local"
    assert body["message"]["epsilon"] == ["1", "2"]
    exact = 2**32 * 7.15625 / 24
    assert body["message"]["value"] != str(int(exact))
    assert b"7.15625" not in network.everything


def test_the_first_noisy_value_is_sent_again_and_again_and_survives_the_process(tmp_path: Path) -> None:
    network = Network()
    for value in (7.5, 7.5, 3.0):
        participant(network, tmp_path).deliver_privately(value)
    assert network.sent[0] == network.sent[1] == network.sent[2]


def test_the_noisy_value_is_on_disk_before_it_is_sent(tmp_path: Path) -> None:
    def look(request: httpx.Request) -> httpx.Response:
        if request.method == "PUT":
            assert list((tmp_path / "values").glob("value-*.json"))
        return httpx.Response(200, json=VIEW)

    participant(Network(look), tmp_path).deliver_privately(7.5)


def test_a_server_cannot_get_a_second_draw_by_claiming_another_pseudonym_campaign_loss_or_range(tmp_path: Path) -> None:
    first = Network()
    participant(first, tmp_path).deliver_privately(7.5)
    other = Network(participant="p2", campaign="c2")
    participant(other, tmp_path).deliver_privately(7.5)
    assert other.sent == first.sent
    liar = Network(promised=0.75)
    with pytest.raises(ReleaseError, match="another privacy loss or other bounds"):
        participant(liar, tmp_path).deliver_privately(7.5)
    wide = Network(bounds=[0, 25])
    with pytest.raises(NotAllowed, match="another range"):
        participant(wide, tmp_path).deliver_privately(7.5)
    assert liar.sent == wide.sent == []


def test_a_server_cannot_turn_a_local_campaign_into_a_central_one(tmp_path: Path) -> None:
    network = Network(setting="central")
    with pytest.raises(NotAllowed, match="central, not local: nothing was sent"):
        participant(network, tmp_path).deliver_privately(7.5)
    with pytest.raises(NotAllowed, match="bid in a local campaign, and now it is central: nothing was sent"):
        participant(network, tmp_path).deliver_value(7.5)
    assert network.sent == []
    assert not list((tmp_path / "values").glob("value-*.json"))


@pytest.mark.parametrize(
    ("lie", "sentence"),
    [
        ({"promised": 1e9, "payment": 10**12}, "privacy loss above 1: nothing was sent"),
        ({"promised": 1.001, "max_privacy_loss": 50.0, "payment": 10**12}, "privacy loss above 1: nothing was sent"),
        ({"promised": "inf", "payment": 10**12}, "privacy loss above 1: nothing was sent"),
        ({"bounds": [7.0, 8.0]}, "another range"),
        ({"bounds": [-1e9, 1e9]}, "another range"),
        ({"setting": "central"}, "central, not local"),
        ({"campaign": "c2", "participant": "p2", "promised": 1e9, "payment": 10**12}, "privacy loss above 1"),
    ],
)
def test_after_a_bid_nothing_that_a_server_says_lessens_the_noise(
    lie: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    participant(Network(campaign_state="bidding", promised=None), tmp_path, agreed=None).bid(1.25)
    liar = Network(**lie)
    with pytest.raises(NotAllowed, match=sentence):
        participant(liar, tmp_path, agreed=None).deliver_privately(7.5)
    assert liar.sent == []
    assert not list((tmp_path / "values").glob("value-*.json"))


def test_what_she_agreed_to_is_on_disk_before_the_bid_is_sent(tmp_path: Path) -> None:
    def look(request: httpx.Request) -> httpx.Response:
        if request.method == "PUT":
            kept = MessageFolder(tmp_path / "values").terms(PLACE)
            assert kept == Terms(setting="local", price=1.25, **SHOWN)
        return httpx.Response(200, json={**VIEW, "campaign_state": "bidding"})

    network = Network(look)
    participant(network, tmp_path, agreed=None).bid(1.25)
    assert [request.method for request in network.requests] == ["GET", "PUT"]
    [kept] = (tmp_path / "values").glob("*.terms")
    assert kept.stat().st_mode & 0o777 == 0o600
    assert "1.25" not in repr(MessageFolder(tmp_path / "values").terms(PLACE))


def test_a_second_bid_can_change_the_price_but_a_server_no_terms(tmp_path: Path) -> None:
    folder = MessageFolder(tmp_path / "values")
    participant(Network(campaign_state="bidding"), tmp_path, agreed=None).bid(1.25)
    participant(Network(campaign_state="bidding", max_privacy_loss=90.0), tmp_path).bid(2.0)
    assert folder.terms(PLACE) == Terms(setting="local", price=2.0, **SHOWN)
    for lie in ({"setting": "central"}, {"bounds": [0, 12]}):
        liar = Network(campaign_state="bidding", **lie)
        with pytest.raises(NotAllowed, match="another setting or range"):
            participant(liar, tmp_path).bid(2.0)
        assert liar.sent == []
    participant(Network(campaign_state="bidding"), tmp_path).bid(2.0, at_most=0.25)
    kept = folder.terms(PLACE)
    assert kept is not None
    assert kept.largest_loss == 0.25


@pytest.mark.parametrize("shown", [None, 0.0, 101.0, 1e9, "inf"])
def test_a_campaign_that_shows_no_reasonable_largest_loss_gets_no_bid(shown: Any, tmp_path: Path) -> None:
    network = Network(campaign_state="bidding", max_privacy_loss=shown)
    with pytest.raises(NotAllowed, match="names no largest privacy loss from 0 to 100"):
        participant(network, tmp_path, agreed=None).bid(1.25)
    assert network.sent == []
    if shown != 0.0:
        participant(network, tmp_path, agreed=None).bid(1.25, at_most=0.5)
        assert len(network.sent) == 1


def test_on_another_device_she_says_herself_what_she_agreed_to(tmp_path: Path) -> None:
    network = Network()
    for given in ({}, {"at_most": 1.0}, {"bounds": (0, 24)}):
        with pytest.raises(NotAllowed, match="did not bid from it: give at_most"):
            participant(network, tmp_path, agreed=None).deliver_privately(7.5, **given)
    with pytest.raises(NotAllowed, match="another range"):
        participant(network, tmp_path, agreed=None).deliver_privately(7.5, at_most=1.0, bounds=(0, 12))
    with pytest.raises(NotAllowed, match=r"above 0\.25"):
        participant(network, tmp_path, agreed=None).deliver_privately(7.5, at_most=0.25, bounds=(0, 24))
    for wrong in (0.0, -1.0, float("nan"), float("inf"), True, "1"):
        with pytest.raises(InputError, match="at_most must be a positive number"):
            participant(network, tmp_path, agreed=None).deliver_privately(7.5, at_most=wrong, bounds=(0, 24))
    assert network.sent == []
    participant(network, tmp_path, agreed=None).deliver_privately(7.5, at_most=0.5, bounds=(0, 24))
    assert len(network.sent) == 1


def test_every_link_of_one_person_sends_the_first_noisy_value(tmp_path: Path) -> None:
    network, links = Network(), ("invited", "renewed", "own")
    keeper = MessageFolder(tmp_path)
    keeper.agree(PLACE, Terms(setting="local", price=1.25, **SHOWN))
    for link in links:
        with ParticipantClient(URL, link, keeper=keeper, network=httpx.MockTransport(network)) as me:
            me.deliver_privately(7.5)
    assert len({json.dumps(body["message"]) for body in network.sent}) == 1
    assert len(list(tmp_path.glob("*.json"))) == 1
    liar = Network(campaign="c2", participant="p2")  # for a link that was seen before
    with ParticipantClient(URL, "renewed", keeper=keeper, network=httpx.MockTransport(liar)) as me:
        me.deliver_privately(7.5)
    assert liar.sent[0]["message"] == network.sent[0]["message"]


@pytest.mark.parametrize("changes", [{"currency": "IDR"}, {"decimals": 0}])
def test_a_server_that_changes_the_money_after_the_bid_gets_nothing(tmp_path: Path, changes: dict[str, Any]) -> None:
    participant(Network(campaign_state="bidding"), tmp_path, agreed=None).bid(1.25)
    network = Network(**changes)
    with pytest.raises(NotAllowed, match="another currency than you named your price in"):
        participant(network, tmp_path, agreed=None).deliver_privately(7.5)
    assert network.sent == []


@pytest.mark.parametrize(
    "changes",
    [{"decimals": 400}, {"decimals": -1}, {"decimals": 10**400}, {"promised": 10**400}, {"bounds": [0, 10**400]}],
    ids=lambda changes: str(changes)[:40],
)
def test_numbers_that_cannot_be_are_refused_in_a_sentence(tmp_path: Path, changes: dict[str, Any]) -> None:
    network = Network(**changes)
    with pytest.raises(ServerFailed, match=next(iter(changes))):
        participant(network, tmp_path).deliver_privately(7.5)
    assert network.sent == []


def test_damaged_terms_stop_the_delivery(tmp_path: Path) -> None:
    network = Network()
    participant(network, tmp_path)
    [kept] = (tmp_path / "values").glob("*.terms")
    kept.write_text('{"setting": "local"')
    with pytest.raises(ReleaseError, match="cannot be read, and says how much you agreed to"):
        participant(network, tmp_path, agreed=None).deliver_privately(7.5, at_most=1.0, bounds=(0, 24))
    assert network.sent == []


def test_a_value_is_sent_as_it_is_only_by_that_name_and_to_a_central_campaign(tmp_path: Path) -> None:
    network = Network(setting="central")
    participant(network, tmp_path, agreed="central").deliver_value(7.5)
    assert [{**one, "nonce": len(bytes.fromhex(one["nonce"]))} for one in network.sent] == [{"value": 7.5, "nonce": 16}]
    local = Network()
    with pytest.raises(NotAllowed, match="local, not central"):
        participant(local, tmp_path).deliver_value(7.5)
    assert local.sent == []


def test_a_value_outside_the_range_does_not_leave_and_is_not_shown(tmp_path: Path) -> None:
    network = Network(setting="central")
    with pytest.raises(DataError, match="from 0 to 24") as told:
        participant(network, tmp_path, agreed="central").deliver_value(4711.5)
    assert "4711" not in str(told.value)
    assert network.sent == []


@pytest.mark.parametrize("value", [float("nan"), "7.5", None, True])
def test_what_is_no_number_does_not_leave(value: Any, tmp_path: Path) -> None:
    network = Network()
    with pytest.raises(DataError, match="must be a number"):
        participant(network, tmp_path).deliver_privately(value)
    assert network.sent == []


def test_a_promise_worse_than_she_accepts_stops_the_delivery(tmp_path: Path) -> None:
    network = Network()
    with pytest.raises(NotAllowed, match=r"above 0\.25: nothing was sent"):
        participant(network, tmp_path).deliver_privately(7.5, at_most=0.25)
    assert network.sent == []
    participant(network, tmp_path).deliver_privately(7.5, at_most=0.5)
    assert len(network.sent) == 1


@pytest.mark.parametrize("promised", [None, 0.0])
def test_nothing_is_sent_where_nothing_is_wanted(promised: float | None, tmp_path: Path) -> None:
    network = Network(promised=promised)
    with pytest.raises(NotAllowed, match="nothing was sent"):
        participant(network, tmp_path).deliver_privately(7.5)
    assert network.sent == []


@pytest.mark.parametrize("lie", [{"payment": 62}, {"payment": None}, {"payment": 62, "bid": 0.1}])
def test_an_offer_below_her_own_price_stops_the_delivery(lie: dict[str, Any], tmp_path: Path) -> None:
    """She said 1.25 a unit; half a unit costs her 62.5 cents."""
    network = Network(**lie)
    with pytest.raises(NotAllowed, match="does not cover what you said"):
        participant(network, tmp_path).deliver_privately(7.5)
    assert network.sent == []


def test_a_price_is_kept_for_another_process_whatever_the_server_says_she_said(tmp_path: Path) -> None:
    participant(Network(campaign_state="bidding"), tmp_path, agreed=None).bid(2.0)
    forgetful = Network(bid=0.5, payment=99)
    with pytest.raises(NotAllowed, match="does not cover what you said"):
        participant(forgetful, tmp_path).deliver_privately(7.5)
    assert participant(Network(bid=0.5, payment=100), tmp_path).deliver_privately(7.5).promised == 0.5


def test_an_offer_she_has_seen_is_not_asked_for_again(tmp_path: Path) -> None:
    network = Network()
    client = participant(network, tmp_path)
    client.deliver_privately(7.5, offer=client.participation())
    assert [request.method for request in network.requests] == ["GET", "PUT"]


def test_a_link_is_exchanged_once_and_the_secret_stands_in_the_header_only(tmp_path: Path) -> None:
    network = Network()
    client = participant(network, tmp_path)
    client.participation()
    client.bid(1.25)
    client.decline()
    [exchange] = network.exchanges
    assert (exchange.method, exchange.headers["authorization"]) == ("PUT", "Bearer secret")
    secret = json.loads(exchange.content)["secret"]
    assert re.fullmatch(r"hb_d_[A-Za-z0-9_-]{43}", secret)
    for request in network.requests:
        assert request.headers["authorization"] == f"Bearer {secret}"
        assert secret not in str(request.url)
        assert secret.encode() not in request.content
    assert "1.25" not in repr(client.participation())


def test_a_device_keeps_its_secret_before_it_is_sent_and_gives_the_same_after_a_restart(tmp_path: Path) -> None:
    refused = Network(lambda request: httpx.Response(409, json={"detail": "No."}))
    with pytest.raises(Conflict):
        participant(refused, tmp_path).participation()
    [file] = (tmp_path / "values").glob("link-*.secret")
    assert file.stat().st_mode & 0o077 == 0
    again = Network()
    participant(again, tmp_path).participation()
    sent = [json.loads(one.content)["secret"] for one in (*refused.exchanges, *again.exchanges)]
    assert sent == [file.read_text()] * 2
    assert len({MessageMemory().secret("link") for _ in range(20)}) == 20
    file.write_text("")
    with pytest.raises(ReleaseError, match="holds the secret"):
        participant(again, tmp_path).participation()


def test_a_link_that_was_used_elsewhere_is_told_as_it_is_and_nothing_follows(tmp_path: Path) -> None:
    asked = []

    def dead(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        return httpx.Response(401, json={"detail": "This link was used before."})

    keeper = MessageFolder(tmp_path)
    with (
        ParticipantClient(URL, "link", keeper=keeper, network=httpx.MockTransport(dead)) as me,
        pytest.raises(NotAllowed, match="used before"),
    ):
        me.bid(1.5)
    assert asked == ["/api/v1/participation/secret"]


def test_a_link_of_her_own_is_one_to_the_same_server(tmp_path: Path) -> None:
    network = Network(lambda request: httpx.Response(200, json={"token": "hb_device_new"}))
    assert participant(network, tmp_path).own_link() == f"{URL}/p#hb_device_new"
    assert network.requests[0].headers["idempotency-key"]
    with pytest.raises(ServerFailed, match="no link"):
        participant(Network(), tmp_path).own_link()


def test_a_new_link_that_only_reads_says_so() -> None:
    answer = {"id": "p1", "label": "ann", "token": "hb_p_new", "group": None}
    for told in (True, False):
        network = Network(lambda request, told=told: httpx.Response(201, json={**answer, "reads_only": told}))  # type: ignore[misc]
        with AnalystClient(URL, token="t", network=httpx.MockTransport(network)) as analyst:
            assert analyst.renew_link("c1", "ann").reads_only is told
    assert not Invitation.from_dict(answer, URL).reads_only


@pytest.mark.parametrize("bid", [-1, float("nan"), float("inf"), "1", None, True])
def test_a_bid_that_is_no_price_is_not_sent_and_not_shown(bid: Any, tmp_path: Path) -> None:
    network = Network()
    with pytest.raises(InputError, match="finite number of at least 0"):
        participant(network, tmp_path).bid(bid)
    assert network.requests == []


def test_messages_in_memory_are_drawn_once_too() -> None:
    memory = MessageMemory()
    first = memory.message("a", 7.5, 0.5, (0.0, 24.0))
    assert memory.message("a", 3.0, 0.5, (0.0, 24.0)) == first
    with pytest.raises(ReleaseError):
        memory.message("a", 7.5, 0.25, (0.0, 24.0))


# -- answers that get lost, and refusals ---------------------------------------------------------------------------


def failing(times: int, problem: Exception | httpx.Response) -> Handler:
    """A handler that fails so many times first."""
    left = iter(range(times))

    def handle(request: httpx.Request) -> httpx.Response:
        if next(left, None) is None:
            return httpx.Response(200, json=VIEW)
        if isinstance(problem, Exception):
            raise problem
        return problem

    return handle


@pytest.mark.parametrize(
    "problem",
    [
        httpx.ConnectError("x"),
        httpx.ReadTimeout("x"),
        httpx.RemoteProtocolError("x"),
        httpx.Response(503),
        httpx.Response(429, headers={"retry-after": "1"}),
    ],
    ids=repr,
)
def test_a_lost_answer_is_asked_for_again_with_the_same_key(problem: Any) -> None:
    network = Network(failing(3, problem))
    analyst(network).mark_paid("c1")
    keys = {request.headers["idempotency-key"] for request in network.requests}
    assert (len(network.requests), len(keys)) == (4, 1)
    analyst(network).mark_paid("c1")
    assert network.requests[-1].headers["idempotency-key"] not in keys


def test_what_may_be_said_twice_needs_no_key(tmp_path: Path) -> None:
    network = Network(failing(3, httpx.ReadError("x")))
    participant(network, tmp_path).remove_payout()
    assert len(network.requests) == 4
    assert "idempotency-key" not in network.requests[0].headers


@pytest.mark.parametrize(("state", "done"), [("releasing", True), ("released", True), ("delivering", False)])
def test_a_step_refused_the_second_time_counts_as_done_if_the_campaign_has_moved_on(state: str, done: bool) -> None:
    """The server died after it had begun: the answer was lost, and asking again is refused."""
    left = iter([httpx.ReadError("x")])

    def handle(request: httpx.Request) -> httpx.Response:
        if request.method == "GET":
            return httpx.Response(200, json={"id": "c1", "state": state})
        for problem in left:
            raise problem
        return httpx.Response(409, json={"detail": "The same request is being carried out, or was interrupted."})

    if done:
        assert analyst(Network(handle)).release("c1").state == state
    else:
        with pytest.raises(Conflict, match="interrupted"):
            analyst(Network(handle)).release("c1")
    with pytest.raises(Conflict, match="interrupted"):  # refused the first time
        analyst(Network(handle)).release("c1")


def test_pauses_grow_and_obey_the_server(tmp_path: Path) -> None:
    pauses: list[float] = []
    network = Network(failing(5, httpx.ConnectError("x")))
    client = ParticipantClient(URL, "s", network=httpx.MockTransport(network), sleep=pauses.append)
    client.participation()
    assert len(pauses) == 5
    assert all(0.05 * 2**k <= pause <= 0.1 * 2**k for k, pause in enumerate(pauses))
    pauses.clear()
    network = Network(failing(1, httpx.Response(429, headers={"retry-after": "3"})))
    ParticipantClient(URL, "s", network=httpx.MockTransport(network), sleep=pauses.append).participation()
    assert pauses == [3.0]


def test_a_refusal_carries_the_field_and_how_long_to_wait() -> None:
    problem = {"detail": "No.", "errors": [{"field": "count", "problem": "No.", "row": 2}, {"field": "x"}]}
    answers = {
        "count": httpx.Response(422, json=problem),
        "bounds": httpx.Response(422, json={"detail": "No.", "errors": [{"field": "bounds", "problem": "No."}]}),
        None: httpx.Response(429, json={"detail": "No."}, headers={"retry-after": "7"}),
    }
    for field, response in answers.items():
        network = Network(lambda _, response=response: response)
        with pytest.raises(HushbidError, match=r"^No\.$") as refused:
            analyst(network, attempts=1).campaign("c1")
        assert refused.value.field == field
        assert refused.value.row == (2 if field == "count" else None)
        assert refused.value.retry_after == (7.0 if response.status_code == 429 else None)


def test_patience_ends_in_a_sentence(tmp_path: Path) -> None:
    network = Network(failing(99, httpx.ConnectError("inner words")))
    with pytest.raises(ServerFailed, match=r"^The server https://example.org cannot be reached: ConnectError\.$"):
        participant(network, tmp_path, attempts=3).participation()
    assert len(network.requests) == 3


@each(
    ("status", "kind"),
    [
        (400, InputError),
        (401, NotAllowed),
        (403, NotAllowed),
        (404, NotFound),
        (409, Conflict),
        (410, CampaignError),
        (413, InputError),
        (422, InputError),
        (429, Throttled),
        (500, ServerFailed),
        (503, ServerFailed),
    ],
)
def test_a_refusal_becomes_our_exception_with_the_servers_sentence(
    status: int, kind: type[HushbidError], tmp_path: Path
) -> None:
    problem = {"type": "about:blank", "title": "No", "status": status, "detail": "Bidding has closed."}
    response = httpx.Response(status, json=problem, headers={"content-type": "application/problem+json"})
    with pytest.raises(HushbidError, match=r"^Bidding has closed\.$") as told:
        participant(Network(lambda request: response), tmp_path).bid(1.0)
    assert type(told.value) is kind


@pytest.mark.parametrize("content", [b"", b"<html>", b"[]", b'{"detail": 5}'])
def test_a_refusal_without_a_sentence_gets_one(content: bytes, tmp_path: Path) -> None:
    with pytest.raises(Conflict, match="The server refused with status 409"):
        participant(Network(lambda request: httpx.Response(409, content=content)), tmp_path).decline()


@pytest.mark.parametrize(
    "response",
    [
        httpx.Response(200, content=b"<html>"),
        httpx.Response(200, json=[]),
        httpx.Response(200, json={}),
        httpx.Response(200, json={**VIEW, "setting": "other"}),
        httpx.Response(200, json={**VIEW, "promised": "much"}),
        httpx.Response(200, json={**VIEW, "bounds": [1, 0]}),
        httpx.Response(200, json={**VIEW, "payment": 1.5}),
        httpx.Response(307, headers={"location": "https://elsewhere.example"}),
    ],
    ids=lambda response: response.text[:40],
)
def test_answers_of_another_kind_of_server_are_refused(response: httpx.Response, tmp_path: Path) -> None:
    network = Network(lambda request: response)
    with pytest.raises(ServerFailed):
        participant(network, tmp_path).participation()
    assert len(network.requests) == 1


def test_a_receipt_that_does_not_check_out_is_refused(tmp_path: Path) -> None:
    vectors = Path(__file__).parents[1] / "vectors" / "receipts"
    true = json.loads((vectors / "receipt-0.json").read_text())
    keys = json.loads((vectors / "keys.json").read_text())

    def serve(receipt: dict[str, Any]) -> ParticipantClient:
        def handle(request: httpx.Request) -> httpx.Response:
            return httpx.Response(200, json=keys if request.url.path.endswith("/keys") else receipt)

        return participant(Network(handle), tmp_path)

    assert serve(true).receipt(fingerprint=true["fingerprint"]).body.payment == true["body"]["payment"]
    assert serve(true).receipt().signed
    with pytest.raises(RecordError, match="signature"):
        serve({**true, "body": {**true["body"], "payment": 1}}).receipt()
    with pytest.raises(RecordError, match="key"):
        serve(true).receipt(fingerprint="0" * 64)


# -- analyst -------------------------------------------------------------------------------------------------------


def test_all_pages_of_a_list_are_read() -> None:
    def handle(request: httpx.Request) -> httpx.Response:
        start = int(request.url.params.get("cursor", "0"))
        items = [{"id": f"p{k}"} for k in range(start, min(start + 2, 5))]
        return httpx.Response(200, json={"items": items, "cursor": str(start + 2) if start + 2 < 5 else None})

    assert [one["id"] for one in analyst(Network(handle)).participants("c1")] == ["p0", "p1", "p2", "p3", "p4"]


def test_links_keep_the_secret_behind_the_hash_and_come_back_from_it() -> None:
    answer = {"invitations": [{"id": "p1", "label": "ann", "group": None, "token": "s3cret"}]}
    [invitation] = analyst(Network(lambda request: httpx.Response(200, json=answer))).invite("c1", people=["ann"])
    assert invitation == Invitation(id="p1", label="ann", group=None, token="s3cret", url=URL)
    assert split_link(invitation.link) == (URL, "s3cret")
    assert "s3cret" not in repr(invitation)
    assert split_link("http://127.0.0.1:8000/a/b/p#x") == ("http://127.0.0.1:8000/a/b", "x")


@each("link", ["", "s3cret", "https://example.org/p", "ftp://x/p#t", "https:///p#t", "http://x/?a#t"])
def test_what_is_no_link_is_refused_without_showing_it(link: str) -> None:
    with pytest.raises(InputError, match=r"^A link must look like https://example.org/p#SECRET\.$"):
        ParticipantClient.from_link(link)


def test_waiting_ends_when_the_job_is_done_or_failed_or_patience_ends() -> None:
    states = iter(["allocating", "allocating", "delivering"])
    job = {"id": "j", "kind": "allocation", "state": "running", "step": "x", "done": 1, "total": 2, "problem": None}

    def handle(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/jobs"):
            return httpx.Response(200, json={"items": [job], "cursor": None})
        return httpx.Response(200, json={"id": "c1", "state": next(states, "allocating")})

    seen: list[int] = []
    client = analyst(Network(handle))
    assert client.wait("c1", progress=lambda job: seen.append(job.done)).state == "delivering"
    assert seen == [1, 1]
    with pytest.raises(ServerFailed, match="still allocating after waiting for 3 seconds"):
        client.wait("c1", most=3.0)
    job |= {"state": "failed", "problem": "Nobody is left."}
    with pytest.raises(ServerFailed, match=r"The allocation failed: Nobody is left\."):
        client.wait("c1")


def test_a_log_in_sends_its_token_against_forged_requests_from_then_on() -> None:
    answer = {"csrf": "forgery-token", "id": "c1", "state": "draft"}
    network = Network(lambda request: httpx.Response(200, json=answer, headers={"set-cookie": "session=abc; Path=/"}))
    client = AnalystClient(URL, network=httpx.MockTransport(network), sleep=lambda seconds: None)
    client.log_in("ann", "password")
    client.draft({"title": "x"})
    assert network.requests[-1].headers["x-csrf-token"] == "forgery-token"
    assert "session=abc" in network.requests[-1].headers["cookie"]
    assert "authorization" not in network.requests[-1].headers


@each("campaign", ["", "a/b", "..", "a b", "é", "a?b"])
def test_an_identifier_that_would_change_the_path_is_refused(campaign: str) -> None:
    with pytest.raises(InputError, match="letters, digits"):
        analyst(Network()).campaign(campaign)


def test_either_a_count_or_people_are_invited() -> None:
    for given in ({}, {"count": 3, "people": ["a"]}):
        with pytest.raises(InputError, match="either count or people"):
            analyst(Network()).invite("c1", **given)


@each("url", ["example.org", "ftp://x", "https://u:p@x", "https://x?y", "https://x#y", ""])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InputError, match=r"https://example\.org"):
        AnalystClient(url, token="t")


@pytest.mark.parametrize("token", ["", "a b", "ä", "a\nb"])
def test_a_token_that_no_header_can_hold_is_refused_without_showing_it(token: str) -> None:
    with pytest.raises(InputError, match=r"^A token must be printable ASCII without spaces\.$"):
        AnalystClient(URL, token=token)


# -- many at once, and without the server --------------------------------------------------------------------------


def test_many_participants_share_connections_and_keep_their_own_secrets() -> None:
    network = Network(
        lambda request: httpx.Response(
            200, json={**VIEW, "campaign_state": "bidding", "participant": request.headers["authorization"][-9:]}
        )
    )

    memory = MessageMemory()
    with Transport(URL, network=httpx.MockTransport(network)) as transport, ThreadPoolExecutor(8) as threads:
        clients = [ParticipantClient(URL, f"secret{k}", keeper=memory, transport=transport) for k in range(20)]
        list(threads.map(lambda k: clients[k].bid(1.0 + k / 100), range(20)))
        list(threads.map(lambda client: client.deliver_privately(7.5), clients))
        assert transport.requests == len(network.exchanges) + len(network.requests)
        clients[0].close()
        clients[1].participation()  # what is shared stays open
    told = {
        request.headers["authorization"]: json.loads(request.content)["bid"]
        for request in network.requests
        if request.url.path.endswith("/bid")
    }
    secrets = {
        request.headers["authorization"]: f"Bearer {json.loads(request.content)['secret']}"
        for request in network.exchanges
    }
    assert told == {secrets[f"Bearer secret{k}"]: 1.0 + k / 100 for k in range(20)}
    messages = [body["message"]["value"] for body in network.sent if "message" in body]
    assert len(set(messages)) == 20


def test_certificates_are_read_once_and_only_where_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    from hushbid.client import transport

    read: list[int] = []
    monkeypatch.setattr(httpx, "create_ssl_context", lambda: read.append(1) or ssl.create_default_context())
    transport._trust.cache_clear()
    for url in ("http://example.org", "HTTP://example.org", "http://127.0.0.1:8000"):
        transport.Transport(url).close()
    assert read == []
    for url in ("https://example.org", "HTTPS://example.org", "https://elsewhere.example"):
        transport.Transport(url).close()
    assert read == [1]


def test_the_client_can_be_imported_without_the_servers_packages() -> None:
    program = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"fastapi", "starlette", "uvicorn", "sqlalchemy", "alembic", "psycopg", "argon2",
                                      "pydantic", "itsdangerous", "jinja2", "cryptography", "httpx", "opendp"}:
            raise ImportError(name)
sys.meta_path.insert(0, Refuse())
import hushbid.client
assert "hushbid.server" not in sys.modules
try:
    hushbid.client.AnalystClient("https://example.org", token="t")
except ImportError as problem:
    print(problem)
"""
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert told.stdout == "Talking to a server needs httpx: pip install '.[client]' in a checkout.\n"
