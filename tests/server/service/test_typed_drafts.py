"""Drafts as they are typed, complete or not; and people taken off a draft's list."""

import pytest
from sqlalchemy import insert

from hushbid.errors import Conflict, NotFound
from hushbid.server.model.access import LinkInvalid
from hushbid.server.model.entities import DraftIncomplete
from hushbid.server.service import Service
from hushbid.server.store.database import Transaction
from hushbid.server.store.schema import privacy_account
from hushbid.verification.receipts import verify_log
from tests.server.support import analyst, drafted, open_now, opened, secret_for, settings, user

ONE, TWO = f"c{'1' * 20}", f"c{'2' * 20}"


def test_a_draft_is_what_was_typed_and_one_draft_however_often_it_is_sent(service: Service) -> None:
    ann = analyst(service)
    typed = {"title": " <Ä\u2028\n", "budget": "1."}
    for _ in range(2):
        kept = service.keep_draft(ann, ONE, typed, language="de", settings=None)
    assert (kept.id, kept.title, kept.settings, kept.people) == (ONE, "<Ä", None, {})
    found = service.typed_draft(ann, ONE)
    assert found is not None
    assert (found.fields, found.language) == (typed, "de")
    assert [one.id for one in service.campaigns(ann).items if one.settings is None] == [ONE]
    for title in ("First", "Second"):
        whole = service.keep_draft(ann, ONE, {"title": title}, language="en", settings=settings(title=title))
    assert (whole.id, whole.title, whole.whole.title) == (ONE, "Second", "Second")
    assert [event.kind for event in service.events(ann, ONE)] == ["drafted"]
    service.change(ann, ONE, settings(title="Third"))
    assert service.typed_draft(ann, ONE) is None, "what a program states was not typed"


def test_a_draft_that_is_not_complete_can_be_discarded_and_nothing_else(service: Service) -> None:
    ann, otto = analyst(service), user(service, "otto", "auditor")
    service.keep_draft(ann, ONE, {"title": "Half"}, language="en", settings=None)
    for refused in (
        lambda: service.invite(ann, ONE, count=3),
        lambda: service.open(ann, ONE),
        lambda: service.copy(ann, ONE, "Again"),
        lambda: service.sample(ann, ONE),
        lambda: service.preview_campaign(ann, ONE, 10),
    ):
        with pytest.raises(DraftIncomplete):
            refused()
    assert service.campaign(otto, ONE).title == "Half"
    with pytest.raises(NotFound):
        service.keep_draft(ann, "x", {}, language="en", settings=None)
    service.discard(ann, ONE)
    with pytest.raises(NotFound):
        service.campaign(ann, ONE)


def test_people_of_a_draft_that_is_no_longer_complete_wait_until_it_is(service: Service) -> None:
    play = drafted(service, 3)
    service.keep_draft(play.who, play.id, {"title": ""}, language="en", settings=None)
    assert service.campaign(play.who, play.id).people == {"invited": 3}
    assert [one.due for one in service.participants(play.who, play.id).items] == [0, 0, 0]
    with pytest.raises(Conflict, match="has not opened yet"):
        service.enter(play.link(0), secret_for("device"))
    service.keep_draft(play.who, play.id, {"title": "Whole"}, language="en", settings=settings(title="Whole"))
    assert open_now(service, play.who, play.id).title == "Whole"
    assert service.typed_draft(play.who, play.id) is None, "nothing can be changed any more"
    with pytest.raises(Conflict):
        service.keep_draft(play.who, play.id, {}, language="en", settings=None)


def test_a_campaign_that_only_the_privacy_account_remembers_is_not_drafted_again(service: Service) -> None:
    """Its entries would be overwritten, and nobody's total may fall behind what was promised."""
    play = opened(service, ["ann@example.org", "bob@example.org"])
    known = next(one for one in service.privacy_account(play.who).items if one.campaign == play.id)

    def forget(tx: Transaction) -> None:
        row = {
            "campaign": ONE,
            "person": known.person,
            "title": "",
            "kind": "promised",
            "amount": 1.0,
            "at": tx.at,
        }
        tx.connection.execute(insert(privacy_account), row)

    service.writer.run("restore", forget)
    with pytest.raises(NotFound):
        service.keep_draft(play.who, ONE, {"title": "Again"}, language="en", settings=settings())
    assert service.keep_draft(play.who, TWO, {}, language="en", settings=None).id == TWO


# -- taken off the list ------------------------------------------------------------------------------------------------


def test_whoever_is_removed_leaves_an_event_and_nothing_else(service: Service) -> None:
    play = drafted(service, ["a@x", "b@x", "c@x"])
    service.enter(play.link(0), secret_for("device"))
    service.remove(play.who, play.id, play.links[0].id)
    with pytest.raises(LinkInvalid):
        service.enter(play.link(0), secret_for("other"))
    with pytest.raises(LinkInvalid):
        service.participation(secret_for("device"))
    with pytest.raises(NotFound):
        service.remove(play.who, play.id, play.links[0].id)
    log = service.events(play.who, play.id)
    assert [event.kind for event in log] == ["drafted", "invited", "removed"]
    assert log[-1].body == {"participant": play.links[0].id}
    back = service.invite(play.who, play.id, people=["a@x"])
    assert back[0].id != play.links[0].id, "she can be invited anew"
    assert open_now(service, play.who, play.id).people == {"invited": 3}
    assert verify_log(service.events(play.who, play.id)).ok


def test_people_without_a_name_get_numbers_that_nobody_had(service: Service) -> None:
    play = drafted(service, 3)
    for row in (0, 2):
        service.remove(play.who, play.id, play.links[row].id)
    assert [one.label for one in service.invite(play.who, play.id, count=2)] == ["P-00004", "P-00005"]
    assert [one.label for one in service.participants(play.who, play.id).items] == ["P-00002", "P-00004", "P-00005"]


def test_nobody_is_removed_once_it_has_opened(service: Service) -> None:
    play = opened(service, 3)
    with pytest.raises(Conflict, match="once the campaign has opened"):
        service.remove(play.who, play.id, play.links[0].id)
