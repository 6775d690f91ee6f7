"""One visit: answers come with the price, sealed under keys of their own; what is not bought is never opened."""

import hashlib
import os
import shutil
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from benchmarks import visits
from hushbid.client import AnalystClient, MessageMemory, ParticipantClient, Participation
from hushbid.client.messages import new_secret
from hushbid.common.documents import parsed
from hushbid.errors import Conflict, DataError, HushbidError, InputError, NotAllowed
from hushbid.record import Record
from hushbid.server.bots.campaigns import SETTINGS, play_campaign
from hushbid.server.model.states import CampaignState
from hushbid.server.service import Service
from hushbid.server.store import participants
from hushbid.server.vault import AnswerKeys
from hushbid.verification.receipts import verify_log, verify_logged_record, verify_receipt
from tests.server.serving import served
from tests.server.support import Installation, Play, nonce_for, on_both_stores, opened, user, with_fields
from tests.server.test_at_rest import Disk, disk, found_in  # noqa: F401 - a fixture
from tests.server.test_restore import again, back_up, restore

PEOPLE = 6
VALUES = (7.123456789012345, 2.7182818284590455, 9.869604401089358, 1.6180339887498947, 4.669201609102990, 0.5772156649)
DEAR = 9.0
"""More than anybody was expected to ask for: not bought."""


def gave(service: Service, token: str, value: object, price: float | None = 1.25, **more: Any) -> None:
    service.bid(token, price, given=value, nonce=nonce_for(token, value), **more)


def visited(service: Service, people: int = PEOPLE, *, dear: tuple[int, ...] = (0, 1), **changes: Any) -> Play:
    """Everybody gave a price and a value; some are too dear to be bought from."""
    play = opened(service, people, single_visit=True, **changes)
    for row in range(people):
        gave(service, play.token(row), VALUES[row], DEAR if row in dear else 1.0 + row / 10)
    return play


def person(service: Service, play: Play, row: int) -> Any:
    with service._read() as connection:
        return participants.by_secret(connection, play.token(row))


def keys_of(service: Service, play: Play) -> list[bytes]:
    """The keys that are left, by reading the file as a thief would."""
    path = service.home.data_keys / f"{play.id}.answers"
    content = path.read_bytes() if path.exists() else b""
    return [key for (key,) in struct.iter_unpack("32s", content) if any(key)]


def states(service: Service, play: Play) -> list[str]:
    return [service.participation(seat.token).state.value for seat in play.seats]


def test_what_is_bought_is_delivered_at_once_and_nothing_else_is_ever_opened(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened_for: list[str] = []
    real = AnswerKeys.open

    def spy(self: AnswerKeys, campaign: str, participant: str, sealed: bytes) -> bytes | None:
        opened_for.append(participant)
        return real(self, campaign, participant, sealed)

    monkeypatch.setattr(AnswerKeys, "open", spy)
    with installation.start() as service:
        play = visited(service)
        assert len(keys_of(service, play)) == PEOPLE
        assert play.decide().state == "done"
        assert not opened_for
        assert play.view.state is CampaignState.DELIVERING
        assert states(service, play) == ["not_bought"] * 2 + ["delivered"] * 4
        assert len(keys_of(service, play)) == 4, "gone before anybody was told"
        assert service.participation(play.token(3)).due > 0
        assert service.export(play.token(0))["participant"]["value_is_stored_sealed"] is False
        assert service.export(play.token(3))["participant"]["value_is_stored_sealed"] is True
        assert play.release().state == "done"
        assert sorted(opened_for) == sorted(person(service, play, row).id for row in range(2, PEOPLE))
        assert keys_of(service, play) == []
        log = service.events(play.who, play.id)
        assert verify_log(log).ok
        record = Record.from_dict(parsed(service.record(play.who, play.id)))
        assert record.release is not None
        assert record.release.dropped_out == ()
        assert verify_logged_record(record, log=log).ok
        assert verify_receipt(service.receipt(play.token(3)), log=log, record=record).ok
        assert verify_receipt(service.receipt(play.token(0)), log=log, record=record).ok
        kinds = [event.kind for event in log]
        assert "delivered" not in kinds
        assert log[kinds.index("answers-destroyed")].body == {"people": 2}
        assert kinds[-1] == "key-destroyed"


def test_the_log_holds_a_hash_of_what_was_sealed_when_it_came_in(installation: Installation) -> None:
    with installation.start() as service:
        play = visited(service, 2)
        hashes = [hashlib.sha256(person(service, play, row).delivery).hexdigest() for row in (0, 1)]
        assert [e.body["sealed"] for e in service.events(play.who, play.id) if e.kind == "bid"] == hashes


def test_the_decision_is_the_same_whatever_the_answers_are(installation: Installation) -> None:
    decided = []
    with installation.start() as service:
        for values in (VALUES, VALUES[::-1], (0.0,) * PEOPLE):
            play = opened(service, PEOPLE, single_visit=True)
            for row, value in enumerate(values):
                gave(service, play.token(row), value, DEAR if row < 2 else 1.0 + row / 10)
            play.decide()
            by_row = {person(service, play, row).id: row for row in range(PEOPLE)}
            record = Record.from_dict(parsed(service.record(play.who, play.id)))
            assert record.ids is not None
            assert record.money is not None
            facts = zip(record.ids, record.outcome.privacy_loss.tolist(), record.money.payments.tolist(), strict=True)
            decided.append({by_row[name]: (loss, payment) for name, loss, payment in facts})
    assert decided[0] == decided[1] == decided[2]


def test_answers_are_needed_once_may_be_replaced_and_stand_when_only_the_price_changes(
    installation: Installation,
) -> None:
    with installation.start() as service:
        play = opened(service, 3, single_visit=True)
        token = play.token(0)
        with pytest.raises(DataError, match="value must be given together with bid") as refused:
            service.bid(token, 1.2)
        assert refused.value.field == "value"
        with pytest.raises(InputError, match="nonce must be"):
            service.bid(token, 1.2, given=3.0)
        with pytest.raises(DataError, match="value must be a number from 0 to 10"):
            gave(service, token, 11.0)
        assert service.participation(token).bid is None
        gave(service, token, 3.0, 1.2)
        first = person(service, play, 0).delivery
        service.bid(token, 1.3)
        assert person(service, play, 0).delivery == first
        # with its nonce it is a repetition, whatever comes with it: nothing that is told depends on a value
        before = len(service.events(play.who, play.id))
        same = service.bid(token, 1.3, given=9.0, nonce=nonce_for(token, 3.0))
        assert same == service.bid(token, 1.3, given="nonsense", nonce=nonce_for(token, 3.0))
        assert len(service.events(play.who, play.id)) == before
        # with another one it replaces, also if nothing else changes
        gave(service, token, 3.0000001, 1.3)
        second = person(service, play, 0).delivery
        assert second != first
        assert len(second) == len(first)
        answers = service.installation.vault.answers
        assert answers.open(play.id, person(service, play, 0).id, first) is None
        assert answers.open(play.id, person(service, play, 0).id, second) == struct.pack("<d", 3.0000001)
        assert len(keys_of(service, play)) == 1
        assert service.events(play.who, play.id)[-1].kind == "bid-changed"


def test_answers_are_refused_where_they_are_not_asked_for(installation: Installation) -> None:
    with installation.start() as service:
        twice, once = opened(service, 3), visited(service, 3)
        with pytest.raises(DataError, match="value must be left out of a bid"):
            gave(service, twice.token(0), 3.0)
        with pytest.raises(Conflict, match="given together with the price"):
            service.deliver(once.token(0), 3.0, nonce=nonce_for(0))
        once.decide()
        with pytest.raises(Conflict, match="given together with the price"):
            service.deliver(once.token(2), 3.0, nonce=nonce_for(0))


def test_whoever_withdraws_has_her_key_destroyed_before_she_is_told(installation: Installation) -> None:
    with installation.start() as service:
        play = visited(service)
        early = person(service, play, 2)
        service.withdraw(play.token(2))
        assert service.installation.vault.answers.lost(play.id, {"early": early.delivery}) == {"early"}
        assert person(service, play, 2).delivery is None
        play.decide()
        late = person(service, play, 3)
        service.withdraw(play.token(3))
        assert service.installation.vault.answers.lost(play.id, {"late": late.delivery}) == {"late"}
        assert play.release().state == "done"
        assert states(service, play)[2:] == ["withdrawn", "withdrawn", "delivered", "delivered"]


@on_both_stores
@pytest.mark.parametrize("end", ["cancelled", "nothing bought", "deadline"])
def test_every_end_without_a_purchase_destroys_all_keys(installation: Installation, end: str) -> None:
    with installation.start() as service:
        now = installation.clock.now
        deadline = now.replace(year=now.year + 1) if end == "deadline" else None
        dear = range(PEOPLE) if end == "nothing bought" else ()
        play = visited(service, dear=tuple(dear), deliver_by=deadline)
        if end == "cancelled":
            service.cancel(play.who, play.id, "No.")
        elif end == "nothing bought":
            play.decide()
            assert play.view.state is CampaignState.NOTHING_BOUGHT
        else:
            installation.clock.pass_(days=366)
            with pytest.raises(Conflict, match="deadline has passed, and answers are destroyed"):
                play.decide()
            service.tick()
            assert play.view.state is CampaignState.CANCELLED
            assert "Nothing was decided before the deadline" in (play.view.reason or "")
        assert keys_of(service, play) == []
        service.tick()
        assert play.view.key_destroyed_at is not None
        assert all(person(service, play, row).delivery is None for row in range(PEOPLE))
        assert service.events(play.who, play.id)[-1].kind == "key-destroyed"


def test_a_campaign_that_moves_by_itself_goes_from_the_decision_to_the_release(installation: Installation) -> None:
    with installation.start() as service:
        now = installation.clock.now
        play = visited(service, automatic=True, bid_by=now.replace(year=now.year + 1))
        installation.clock.pass_(days=366)
        for _ in range(2):
            service.tick()
            again(service, play)
        assert play.view.state is CampaignState.RELEASED


def test_if_everybody_withdraws_nobody_is_waited_for(installation: Installation) -> None:
    with installation.start() as service:
        play = visited(service, 3, dear=())
        play.decide()
        for seat in play.seats:
            service.withdraw(seat.token)
        assert play.release().state == "done"
        assert play.view.state is CampaignState.UNDELIVERED


def test_after_answers_a_new_link_only_reads_and_other_devices_do_too(installation: Installation) -> None:
    with installation.start() as service:
        play = opened(service, 3, single_visit=True)
        service.enter(play.link(0), other := "hb_d_" + "x" * 43)
        gave(service, play.token(0), 3.0)
        assert service.renew_link(play.who, play.id, play.links[0].label).reads_only
        with pytest.raises(HushbidError, match="only reads"):
            gave(service, other, 4.0)
        service.bid(play.token(0), 1.4)


# -- on disk, in backups, after crashes --------------------------------------------------------------------------------


@on_both_stores
def test_no_answer_and_no_key_is_in_any_backup_and_none_is_on_disk_in_the_clear(
    disk: Disk,  # noqa: F811
    tmp_path: Path,
) -> None:
    with disk.installation.start() as service:
        play = visited(service)
        keys = keys_of(service, play)
        sealed = [person(service, play, row).delivery for row in range(PEOPLE)]
        backups = disk.backups(service, tmp_path)
        assert not [value for value in VALUES if found_in([*disk.files(), *backups], value)]
        assert not [key for key in keys for content in backups if key in content or key.hex().encode() in content]
        assert any(sealed[0] in one or sealed[0].hex().encode() in one for one in backups), "the search works"
        play.decide()
        assert len(set(keys) - set(keys_of(service, play))) == 2
        play.release()
        files = disk.files()
        assert not [key for key in keys for content in files if key in content]
        assert not [value for value in VALUES if found_in(files, value)]


@on_both_stores
def test_an_old_backup_brings_no_destroyed_answer_back(installation: Installation, tmp_path: Path) -> None:
    with installation.start() as service:
        play = visited(service)
        sealed = [person(service, play, row).delivery for row in range(PEOPLE)]
        back_up(service, tmp_path / "before")
        service.withdraw(play.token(2))
        gave(service, play.token(3), 8.0)
        back_up(service, tmp_path / "after")
    restore(installation, tmp_path / "before")
    with installation.start() as service:
        now = play.on(service)
        assert states(service, now) == ["bid"] * 2 + ["withdrawn", "invited"] + ["bid"] * 2
        lost = service.installation.vault.answers.lost(play.id, dict(zip("abcdef", sealed, strict=True)))
        assert lost == {"c", "d"}
        assert [e.body for e in service.events(play.who, play.id) if e.kind == "answers-lost"] == [
            {"participant": person(service, now, 3).id}
        ]
        assert not service.renew_link(play.who, play.id, play.links[3].label).reads_only
        assert verify_log(service.events(play.who, play.id)).ok
    restore(installation, tmp_path / "after")
    with installation.start() as service:
        assert states(service, play.on(service)) == ["bid"] * 2 + ["withdrawn", "invited"] + ["bid"] * 2
        now = play.on(service)
        now.decide()
        back_up(service, tmp_path / "decided")
        now.release()
        estimate = now.view.release
    for name, state in (("after", CampaignState.CANCELLED), ("decided", CampaignState.RELEASED)):
        restore(installation, tmp_path / name)
        with installation.start() as service:
            now = again(service, play)
            assert now.view.state is state
            assert now.view.release == (estimate if state is CampaignState.RELEASED else None)
            assert keys_of(service, play) == []


def test_keys_that_came_back_with_a_copy_of_their_file_are_destroyed_again(installation: Installation) -> None:
    with installation.start() as service:
        play = visited(service)
        sealed = {str(row): person(service, play, row).delivery for row in range(PEOPLE)}
        path = service.home.data_keys / f"{play.id}.answers"
        copy = path.read_bytes()
        play.decide()
    path.write_bytes(copy)
    with installation.start() as service:
        assert service.installation.vault.answers.lost(play.id, sealed) == {"0", "1"}
        play.on(service).release()
    path.write_bytes(copy)
    with installation.start() as service:  # a campaign that is over opens nothing
        assert service.installation.vault.answers.lost(play.id, sealed) == set(sealed)
        assert keys_of(service, play) == []


def test_somebody_whose_key_was_lost_after_the_decision_has_dropped_out(installation: Installation) -> None:
    with installation.start() as service:
        play = visited(service)
        play.decide()
        service.installation.vault.answers.destroy(play.id, [person(service, play, 5).delivery])
        assert play.release().state == "done"
        assert states(service, play)[2:] == ["delivered"] * 3 + ["dropped"]


@pytest.mark.parametrize(
    "point",
    [
        "bid.before-commit",
        "bid.after-commit",
        "withdraw.before-commit",
        "withdraw.after-commit",
        "cancel.after-commit",
        "allocation.unbought",
        "allocation.finish.after-commit",
    ],
)
def test_a_crash_leaves_no_key_that_is_not_needed_and_takes_none_that_is(
    installation: Installation, tmp_path: Path, point: str
) -> None:
    """What is on disk at the worst moment is copied, as a crash would leave it, and a server started on the copy."""
    left = tmp_path / "left"

    def at(reached: str) -> None:
        if armed and reached == point and not left.exists():
            shutil.copytree(installation.folder, left)

    armed = False
    with installation.start(crash=at) as service:
        play = visited(service)
        first = {str(row): person(service, play, row).delivery for row in range(PEOPLE)}
        armed = True
        gave(service, play.token(4), 8.5)
        second = person(service, play, 4).delivery
        service.withdraw(play.token(5))
        if point.startswith("cancel"):
            service.cancel(play.who, play.id, "No.")
        else:
            play.decide()
    (left / "lock").unlink(missing_ok=True)
    with Installation(left, None, clock=installation.clock).start() as service:
        now = again(service, play)
        lost = service.installation.vault.answers.lost(play.id, {**first, "new": second})
        replaced = point != "bid.before-commit"
        wanted = {
            "bid": {"4"} if replaced else {"new"},
            "withdraw": {"4", "5"},
            "cancel": {*first, "new"},
            "allocation": {"0", "1", "4", "5"},
        }[point.split(".")[0]]
        assert lost == wanted
        assert len(keys_of(service, play)) == len(first) + 1 - len(wanted)
        assert verify_log(service.events(play.who, play.id)).ok
        assert now.view.state in (CampaignState.BIDDING, CampaignState.CANCELLED, CampaignState.DELIVERING)


@pytest.fixture
def keys(tmp_path: Path) -> AnswerKeys:
    found = AnswerKeys(tmp_path)
    found.create("c1")
    return found


def test_a_key_opens_its_own_answers_only_and_is_there_or_gone(keys: AnswerKeys, tmp_path: Path) -> None:
    sealed = [keys.seal("c1", f"p{row}", b"%d" % row) for row in range(5)]
    keys.settle()
    afresh = AnswerKeys(tmp_path)
    assert [afresh.open("c1", f"p{row}", one) for row, one in enumerate(sealed)] == [b"%d" % row for row in range(5)]
    for participant, content in (("p2", sealed[1]), ("p1", sealed[2][:4] + sealed[1][4:])):
        with pytest.raises(HushbidError, match="cannot be opened"):
            afresh.open("c1", participant, content)
    afresh.destroy("c1", [sealed[0], sealed[1], sealed[3]])
    assert keys.lost("c1", dict(enumerate(sealed))) == {0, 1, 3}  # type: ignore[arg-type]
    assert (tmp_path / "c1.answers").read_bytes()[:64] == bytes(64)
    with (tmp_path / "c1.answers").open("ab") as file:
        file.write(b"torn")  # by a crash
    later = AnswerKeys(tmp_path)
    new = later.seal("c1", "p9", b"9")
    later.settle()
    assert later.open("c1", "p9", new) == b"9"
    later.keep_only("c1", [new])
    assert later.lost("c1", {"2": sealed[2], "9": new}) == {"2"}
    later.destroy_all("c1")
    later.destroy_all("c1")
    assert not (tmp_path / "c1.answers").exists()


def test_destroying_the_keys_of_a_hundred_thousand_people_takes_one_synchronisation(
    keys: AnswerKeys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = os.urandom(32 * 100_000)
    (tmp_path / "c1.answers").write_bytes(content)
    kept = [place.to_bytes(4, "big") for place in range(0, 100_000, 3)]
    synchronised: list[int] = []
    monkeypatch.setattr(os, "fsync", synchronised.append)
    keys.keep_only("c1", kept)
    assert len(synchronised) == 1
    left = (tmp_path / "c1.answers").read_bytes()
    assert left[:32] == content[:32]
    assert left[32:96] == bytes(64)
    assert sum(any(left[at : at + 32]) for at in range(0, len(left), 32)) == len(kept)


# -- over the network --------------------------------------------------------------------------------------------------


def test_clients_and_bots_give_price_and_answers_together(service: Service) -> None:
    with served(service) as url:
        user(service, "ann")
        with AnalystClient(url, token=service.create_api_token("ann", "test")) as analyst:
            settings = with_fields(SETTINGS, single_visit=True, retention_days=1)
            campaign = analyst.draft(settings).id
            links = analyst.invite(campaign, count=6)
            analyst.open(campaign)
            with ParticipantClient.from_link(links[0].link, keeper=MessageMemory()) as she:
                assert she.participation().single_visit
                with pytest.raises(NotAllowed, match=r"give value\. Nothing was sent"):
                    she.bid(1.5)
                with pytest.raises(DataError, match="must lie in the public range"):
                    she.bid(1.5, value=13.0)
                assert she.bid(1.5, value=7.0).state == "bid"
                assert she.bid(1.4).bid == 1.4
                assert she.bid(1.4, value=8.0).state == "bid"
                with pytest.raises(Conflict, match="together with the price"):
                    she.deliver_value(7.0, at_most=2.0, bounds=(0, 12), offer=_promised(she.participation()))
            analyst.cancel(campaign)
            played = play_campaign(analyst, settings, n=24, strategy="mixed", seed=13, connections=4)
            assert played.ok, played.tally.problems
            assert played.state == "released"
            assert played.visits()["dropped_out"] == 0
            assert {bot.person.strategy for bot in played.bots} >= {"drop-out", "withdraw", "late", "decline"}
            with httpx.Client(base_url=f"{url}/api/v1") as bare:
                twice = analyst.draft(SETTINGS).id
                link = analyst.invite(twice, count=6)[0]
                analyst.open(twice)
                secret = new_secret()
                bare.put(
                    "/participation/secret",
                    json={"secret": secret},
                    headers={"Authorization": f"Bearer {link.token}"},
                )
                hers = {"Authorization": f"Bearer {secret}"}
                for body, told in (
                    ({"bid": 1.5, "value": 7.25, "nonce": "0" * 32}, "value must be left out of a bid"),
                    ({"bid": 1.5, "value": 7.25}, "nonce must be given with a value or answers"),
                    ({"bid": 1.5, "nonce": "0" * 32}, "nonce must be given with a value or answers"),
                ):
                    refused = bare.put("/participation/bid", json=body, headers=hers)
                    assert refused.status_code == 422
                    assert told in refused.text
                    assert "7.25" not in refused.text


def _promised(view: Participation) -> Participation:
    """As a lying server would show it."""
    return replace(view, promised=0.1, payment=10_000)


def test_single_visit_saves_a_visit_and_all_drop_outs_but_withdrawals(tmp_path: Path) -> None:
    two, one = visits.measured(tmp_path, 12, (0.5,))
    assert (two["visits"], one["visits"]) == (2, 1)
    assert (one["visits_per_bot"], one["requests_per_bot"], one["dropped_out"]) == (1.0, 3.0, 0)
    assert 0 < two["dropped_out"] < two["bought_from"] == one["bought_from"]
    assert two["requests_per_bot"] == 3.0 + 2.0 * (two["visits_per_bot"] - 1.0)
    table = visits.table([two, one])
    assert table.count("\n") == 3
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "conduct-a-campaign.md").read_text("utf-8")
    assert "python -m benchmarks.visits --n 200" in page
    assert table.splitlines()[0] in page
