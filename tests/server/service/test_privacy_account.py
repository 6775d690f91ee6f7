"""What people give up over all campaigns: counted exactly, limited before anybody bids, never after."""

import math

import pytest

from hushbid.errors import CampaignError, Conflict, InputError
from hushbid.server.model.states import ParticipantState
from hushbid.server.service import Service
from tests.server.support import (
    Installation,
    Play,
    decided,
    drafted,
    on_both_stores,
    open_now,
    opened,
    released,
    user,
)

PEOPLE = ["ann@x", "bob@x", "cy@x"]


def account_of(service: Service, play: Play) -> dict[str, tuple[str, float]]:
    """Kind and amount by label, for one campaign."""
    rows = ((link.label, row) for link in play.seats for row in service.personal_account(link.token).rows)
    return {label: (row.kind, row.amount) for label, row in rows if row.campaign == play.id}


def test_the_privacy_account_follows_a_campaign_from_reserved_to_delivered(service: Service) -> None:
    play = opened(service, PEOPLE)
    assert account_of(service, play) == dict.fromkeys(PEOPLE, ("reserved", 1.0))
    play.bid()
    play.decide()
    promised = {link.label: service.participation(link.token).promised for link in play.seats}
    assert account_of(service, play) == {name: ("promised", loss) for name, loss in promised.items()}
    play.deliver([0, 1])
    play.release()
    lost = {link.label: service.participation(link.token).delivered_loss for link in play.seats}
    assert account_of(service, play) == {name: ("delivered", lost[name]) for name in PEOPLE[:2]}
    assert lost["cy@x"] == 0.0


def test_whoever_declines_withdraws_or_is_not_bought_from_gives_up_nothing(service: Service) -> None:
    play = opened(service, [*PEOPLE, "dee@x", "eve@x"])
    service.decline(play.token(0))
    play.bid([1, 2])
    service.withdraw(play.token(1))
    service.bid(play.token(3), 5.0)
    assert set(account_of(service, play)) == {"cy@x", "dee@x", "eve@x"}
    play.decide()
    assert set(account_of(service, play)) == {"cy@x"}
    service.withdraw(play.token(2))
    assert account_of(service, play) == {}


def test_a_message_that_was_sent_counts_even_if_it_is_withdrawn(service: Service) -> None:
    play = decided(service, PEOPLE, setting="local")
    play.deliver([0, 1])
    service.withdraw(play.token(0))
    play.release()
    kinds = {label: kind for label, (kind, _) in account_of(service, play).items()}
    assert kinds == {"ann@x": "delivered", "bob@x": "delivered"}


def test_exhausted_people_are_excluded_before_bids_open(installation: Installation) -> None:
    with installation.start(privacy_cap=1.5) as service:
        first = released(service, PEOPLE)
        second = opened(service, ["Ann@X ", "dee@x", "eve@x"])
        assert second.view.people == {"excluded": 1, "invited": 2}
        with pytest.raises(Conflict, match="exceed the limit"):
            service.bid(second.token(0), 1.5)
        second.bid([1, 2])
        second.decide()
        assert service.participation(second.token(0)).state is ParticipantState.EXCLUDED
        second.release(accept_nobody=True)
        assert service.receipt(second.token(0)).body.state == "excluded"
        given_up = service.personal_account(second.token(0))
        assert [row.campaign for row in given_up.rows] == [first.id]
        assert given_up.cap == 1.5


def test_what_is_reserved_counts_before_it_is_decided(installation: Installation) -> None:
    with installation.start(privacy_cap=1.5) as service:
        first = opened(service, PEOPLE)
        second = drafted(service, PEOPLE)
        with pytest.raises(Conflict, match="may still give something up, got 0"):
            open_now(service, second.who, second.id)
        service.cancel(first.who, first.id, "Not now.")
        assert open_now(service, second.who, second.id).people == {"invited": 3}


@on_both_stores
def test_the_cap_is_compared_in_exact_arithmetic(installation: Installation) -> None:
    with installation.start(privacy_cap=0.3) as service:
        for _ in range(2):
            opened(service, PEOPLE, max_privacy_loss=0.1)
        third = drafted(service, PEOPLE, max_privacy_loss=0.1)
        with pytest.raises(Conflict, match="got 0"):  # three tenths are more than the double nearest to 0.3
            open_now(service, third.who, third.id)


def test_a_server_with_a_cap_knows_everybody_and_asks_for_no_more_than_the_cap(installation: Installation) -> None:
    with installation.start(privacy_cap=0.5) as service:
        play = drafted(service, PEOPLE)
        with pytest.raises(Conflict, match=r"privacy cap of 0\.5") as refused:
            open_now(service, play.who, play.id)
        assert refused.value.field == "privacy_cap"
        with pytest.raises(InputError, match="by their ids on a server with a privacy cap"):
            service.invite(play.who, play.id, count=2)


def test_nameless_people_invited_before_a_cap_was_set_are_excluded(installation: Installation) -> None:
    with installation.start() as service:
        play = drafted(service, 3)
        service.invite(play.who, play.id, people=["ann@x", "bob@x"])
    with installation.start(privacy_cap=2) as service:
        assert open_now(service, play.who, play.id).people == {"excluded": 3, "invited": 2}


def test_one_person_takes_part_once_however_her_id_is_written(service: Service) -> None:
    play = drafted(service, ["ann@x", "Müller"])
    with pytest.raises(InputError, match="row 1 is the same person as row 0"):
        service.invite(play.who, play.id, people=["eve@x", " EVE@x"])
    for again in ("ANN@X", "  ann@x ", "MÜLLER", "Mu\u0308ller", "\uff41nn@x"):
        with pytest.raises(Conflict, match="1 of these people"):
            service.invite(play.who, play.id, people=[again])
    assert len(service.participants(play.who, play.id).items) == 2


def test_an_id_that_is_no_name_is_refused_by_its_row(service: Service) -> None:
    play = drafted(service, 2)
    for wrong in ("", " ", "a\0b", "x" * 201, 5, None, "P-00007"):
        with pytest.raises(InputError, match="row 1"):
            service.invite(play.who, play.id, people=["good", (wrong, None)])  # type: ignore[list-item]


def test_auditors_see_the_privacy_account_by_pseudonym_in_pages(service: Service) -> None:
    play = released(service, PEOPLE)
    auditor = user(service, "eve", "auditor")
    first = service.privacy_account(auditor, limit=2)
    second = service.privacy_account(auditor, limit=2, cursor=first.cursor)
    rows = (*first.items, *second.items)
    assert len({row.person for row in rows}) == 3
    assert second.cursor is None
    assert not any(name in str(rows) for name in PEOPLE)
    assert {row.campaign for row in rows} == {play.id}


def test_a_limit_holds_until_another_is_said(installation: Installation) -> None:
    """A server that is started without it, or on an older database, must not forget it."""
    caps = [None, 1.5, None, 0.75, None, math.inf, None]
    found = []
    for cap in caps:
        with installation.start(privacy_cap=cap) as service:
            found.append(service.installation.privacy_cap)
    assert found == [None, 1.5, 1.5, 0.75, 0.75, None, None]


@pytest.mark.parametrize("cap", [0.0, -1.0, 1e6, math.nan])
def test_a_limit_that_is_none_is_refused_and_the_old_one_stays(installation: Installation, cap: float) -> None:
    installation.start(privacy_cap=2.0).close()
    with pytest.raises(InputError, match="privacy_cap must be positive"):
        installation.start(privacy_cap=cap)
    with installation.start() as service:
        assert service.installation.privacy_cap == 2.0


def test_a_damaged_limit_lets_no_server_start(installation: Installation) -> None:
    installation.start(privacy_cap=2.0).close()
    (installation.folder / "privacy-cap").write_text("")
    with pytest.raises(CampaignError, match="say the limit again"):
        installation.start()
    with installation.start(privacy_cap=1.0) as service:
        assert service.installation.privacy_cap == 1.0
