"""A draft's form that was sent after the session had ended: carried through the log-in, and kept after it.

Only what came from a page of ours is carried (browsers say so), and nothing is stored before somebody has logged in:
until then it stands in the log-in form itself. It is kept as hers who logs in, as a form that is not saved.
"""

import json
from collections.abc import Mapping

from fastapi import Request, Response
from starlette.datastructures import UploadFile

from hushbid.errors import HushbidError
from hushbid.server.model.forms import is_form_id
from hushbid.server.model.views import Principal
from hushbid.server.pages.request import LogInFirst, PageRequest, stranger
from hushbid.server.pages.settings_form import typed_fields

_MOST_FIELDS = 2_000
_LONGEST = 500_000


async def log_in_with(request: Request, campaign: str | None) -> Response:
    """The page to log in at, with the form that was sent in it; refused as ever if it may not have been our page's."""
    if request.headers.get("sec-fetch-site") != "same-origin":
        raise LogInFirst
    visit = stranger(request)
    async with request.form(max_files=1, max_fields=_MOST_FIELDS) as content:
        sent = {name: value for name, value in content.items() if not isinstance(value, UploadFile)}
    carried = {"form": sent.get("form", ""), "campaign": campaign, "fields": typed_fields(sent)}
    text = json.dumps(carried)
    told = visit.texts("Your session had ended. Log in again on this page: what you typed comes with you.")
    return visit.page("staff/login.html", here="/login", problem=told, name="", next="", carried=text)


async def taken_up(visit: PageRequest, who: Principal, text: str) -> str | None:
    """Keep the form that was carried through a log-in; where it can be seen, None if there is nothing to keep."""
    carried = _carried(text)
    if carried is None or who.role != "analyst":
        return None
    form, campaign, fields = carried
    try:
        kept = await visit.app.run(
            visit.app.service.keep_form, who, form, fields, language=visit.texts.language, campaign_id=campaign
        )
    except HushbidError:  # the draft has opened meanwhile, or was discarded
        return None
    return f"/campaigns/new/{kept.id}" if kept.campaign is None else f"/campaigns/{kept.campaign}/edit"


def _carried(text: str) -> tuple[str, str | None, Mapping[str, str]] | None:
    if not text or len(text) > _LONGEST:
        return None
    try:
        found = json.loads(text)
        form, campaign, fields = found["form"], found["campaign"], found["fields"]
        typed = typed_fields({str(name): str(value) for name, value in fields.items()})
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    if not isinstance(form, str) or not is_form_id(form):
        return None
    about = campaign if isinstance(campaign, str) and campaign.isascii() and campaign.isalnum() else None
    return form, about, typed
