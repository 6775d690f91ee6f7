"""What an analyst has typed into a draft's form: kept for her alone, from the first letter until it is a campaign.

A form has a name that its page made up. For each draft an analyst has at most one; saving makes a draft of a form, or
changes the draft that it has become, in one transaction: so a form that arrives twice makes one draft. What a page's
script sent before a button of that page was pressed, and arrives after it, is not kept: it would undo the button.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from hushbid.errors import Conflict, InputError, NotFound
from hushbid.server.model import rules
from hushbid.server.model.forms import MOST_FORMS, KeptForm, is_form_id
from hushbid.server.model.settings import CampaignSettings
from hushbid.server.model.states import CampaignState
from hushbid.server.model.views import CampaignView, Principal
from hushbid.server.service import drafts
from hushbid.server.store import campaigns, forms
from hushbid.server.store.database import Transaction


def keep(
    tx: Transaction,
    who: Principal,
    form_id: str,
    fields: Mapping[str, str],
    *,
    language: str,
    campaign_id: str | None = None,
    seen: datetime | None = None,
) -> KeptForm:
    """Keep what was typed: by pressing a button, or else by the script of a page that was ``seen`` at that time."""
    rules.require_analyst(who)
    found = _found(tx.connection, who, form_id, campaign_id)
    if found is not None and seen is not None and found.sent_at is not None and seen < found.sent_at:
        return found
    about = found.campaign if found is not None else campaign_id
    if about is not None:
        rules.require_state(campaigns.get(tx.connection, about), CampaignState.DRAFT, to="change the settings")
    typed: dict[str, Any] = {"fields": dict(fields), "language": language, "changed_at": tx.at}
    if seen is None:
        typed["sent_at"] = tx.at
    if found is not None:
        forms.change(tx.connection, found.id, **typed)
    else:
        forms.add(tx.connection, who.id, id=form_id, campaign_id=campaign_id, **typed)
        for old in forms.unfinished(tx.connection, who.id)[MOST_FORMS:]:
            forms.remove(tx.connection, old.id)
    kept = forms.get(tx.connection, who.id, form_id if found is None else found.id)
    assert kept is not None
    return kept


def save(
    tx: Transaction,
    who: Principal,
    form_id: str,
    settings: CampaignSettings,
    *,
    campaign_id: str | None = None,
    people: int | None = None,
) -> CampaignView:
    """Make a draft of a form, or change the draft that it is about; nothing that was typed is kept beside it.

    How many ``people`` are planned is kept with the draft: whoever edits it finds that number until some are invited.
    """
    rules.require_analyst(who)
    found = _found(tx.connection, who, form_id, campaign_id)
    if found is None:
        raise NotFound("There is no such form.")
    if found.campaign is None:
        view = drafts.draft(tx, who, settings)
    else:
        view = drafts.change(tx, who, found.campaign, settings)
    campaigns.change(tx.connection, view.id, planned_people=people)
    tx.memory.write(tx.connection)
    forms.change(tx.connection, found.id, campaign_id=view.id, sent_at=tx.at, changed_at=tx.at)
    forms.clear(tx.connection, found.id)
    return replace(view, planned_people=people)


def forget(tx: Transaction, who: Principal, form_id: str) -> None:
    """Forget what was typed; a draft that it is about stays as it was saved."""
    rules.require_analyst(who)
    found = _found(tx.connection, who, form_id, None)
    if found is None:
        return
    if found.campaign is None:
        forms.remove(tx.connection, found.id)
    else:
        forms.clear(tx.connection, found.id)


def kept(connection: Connection, who: Principal, form_id: str) -> KeptForm | None:
    """A form of one's own, if there is one under that name."""
    rules.require_analyst(who)
    return forms.get(connection, who.id, form_id)


def kept_about(connection: Connection, who: Principal, campaign_id: str) -> KeptForm | None:
    """One's own form about a draft, if anything was typed since it was saved."""
    rules.require_analyst(who)
    found = forms.of_campaign(connection, who.id, campaign_id)
    return None if found is None or found.fields is None else found


def unfinished(connection: Connection, who: Principal) -> tuple[KeptForm, ...]:
    """One's own forms that are no drafts yet, the newest first."""
    return tuple(forms.unfinished(connection, who.id)) if who.role == "analyst" else ()


def _found(connection: Connection, who: Principal, form_id: str, campaign_id: str | None) -> KeptForm | None:
    """The form about a draft, whatever the page calls it, or else the one of that name."""
    if not is_form_id(form_id):
        raise InputError("form must be a name that a page gave.", field="form")
    about = None if campaign_id is None else forms.of_campaign(connection, who.id, campaign_id)
    found = about or forms.get(connection, who.id, form_id)
    if found is None and forms.is_known(connection, form_id):
        raise NotFound("There is no such form.")  # of hers
    if found is not None and campaign_id is not None and found.campaign != campaign_id:
        raise Conflict("This form is about another campaign.")
    return found
