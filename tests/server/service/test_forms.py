"""Forms that are kept: each analyst's own, until they are drafts; and people taken off a draft's list."""

import pytest

from hushbid.errors import Conflict, InputError, NotAllowed, NotFound
from hushbid.server.model.access import LinkInvalid
from hushbid.server.model.forms import MOST_FORMS
from hushbid.server.service import Service
from hushbid.verification.receipts import verify_log
from tests.server.support import analyst, drafted, open_now, opened, secret_for, settings, user

ONE, TWO = f"f{'1' * 20}", f"f{'2' * 20}"


def test_a_form_is_kept_as_it_is_and_becomes_one_draft_however_often_it_is_saved(service: Service) -> None:
    ann = analyst(service)
    kept = service.keep_form(ann, ONE, {"title": "<Ä\u2028\n", "budget": "1."}, language="de")
    assert (kept.fields, kept.language, kept.campaign) == ({"title": "<Ä\u2028\n", "budget": "1."}, "de", None)
    assert [one.id for one in service.unfinished_forms(ann)] == [ONE]
    first, second = (service.save_form(ann, ONE, settings(title=title)) for title in ("First", "Second"))
    assert first.id == second.id
    assert [one.settings.title for one in service.campaigns(ann).items if one.id == first.id] == ["Second"]
    assert service.unfinished_forms(ann) == ()
    assert service.form_about(ann, first.id) is None
    assert [event.kind for event in service.events(ann, first.id)] == ["drafted"]
    with pytest.raises(NotFound):
        service.save_form(ann, TWO, settings())


def test_forms_are_their_analysts_own(service: Service) -> None:
    ann, bea, otto = analyst(service), user(service, "bea"), user(service, "otto", "auditor")
    service.keep_form(ann, ONE, {"title": "Mine"}, language="en")
    assert service.form(bea, ONE) is None
    for steal in (lambda: service.keep_form(bea, ONE, {}, language="en"), lambda: service.forget_form(bea, ONE)):
        with pytest.raises(NotFound):
            steal()
    with pytest.raises(NotAllowed):
        service.keep_form(otto, TWO, {}, language="en")
    with pytest.raises(InputError, match="form"):
        service.keep_form(ann, "x", {}, language="en")
    service.remove_user("bea")
    assert service.form(ann, ONE) is not None
    service.forget_form(ann, ONE)
    assert service.form(ann, ONE) is None


def test_a_form_about_a_draft_goes_with_it(service: Service) -> None:
    one, two = drafted(service, 3), drafted(service, 3)
    ann, bea = one.who, user(service, "bea")
    service.keep_form(ann, ONE, {"title": "A"}, language="en", campaign_id=one.id)
    service.keep_form(bea, TWO, {"title": "B"}, language="en", campaign_id=one.id)
    again = service.keep_form(ann, f"f{'3' * 20}", {"title": "C"}, language="en", campaign_id=one.id)
    assert again.id == ONE, "one form for each analyst and draft"
    with pytest.raises(Conflict):
        service.keep_form(ann, ONE, {}, language="en", campaign_id=two.id)
    open_now(service, ann, one.id)
    assert service.form(ann, ONE) is None
    assert service.form(bea, TWO) is None
    with pytest.raises(Conflict):
        service.keep_form(ann, ONE, {}, language="en", campaign_id=one.id)
    service.keep_form(ann, ONE, {}, language="en", campaign_id=two.id)
    service.discard(ann, two.id)
    assert service.form(ann, ONE) is None


def test_of_very_many_unfinished_forms_the_oldest_goes(service: Service) -> None:
    ann = analyst(service)
    for number in range(MOST_FORMS + 1):
        service.keep_form(ann, f"f{number:020x}", {}, language="en")
    left = service.unfinished_forms(ann)
    assert (len(left), left[-1].id) == (MOST_FORMS, f"f{1:020x}")


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


def test_nobody_is_removed_once_it_has_opened_or_by_an_auditor(service: Service) -> None:
    play = opened(service, 3)
    with pytest.raises(Conflict, match="once the campaign has opened"):
        service.remove(play.who, play.id, play.links[0].id)
    draft = drafted(service, 3)
    with pytest.raises(NotAllowed):
        service.remove(user(service, "otto", "auditor"), draft.id, draft.links[0].id)
