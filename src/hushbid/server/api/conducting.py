"""Conducting a campaign: each step of its life, for analysts."""

from fastapi import APIRouter, Request, Response

from hushbid.server.api.callers import Analyst
from hushbid.server.api.once import Key, once
from hushbid.server.api.openapi import problems
from hushbid.server.api.shell import PREFIX, shell_of
from hushbid.server.api.wire import Campaign, CampaignId, Cancelling, Closing, Paid, Payees, Releasing, Renewal
from hushbid.server.domain.views import Invitation, JobView

router = APIRouter(prefix=f"{PREFIX}/campaigns/{{campaign}}", tags=["campaigns"])
_CHANGE = problems(401, 403, 404, 409, 422)


@router.post("/open", response_model=Campaign, responses=_CHANGE, summary="Open for reports")
async def open_campaign(request: Request, caller: Analyst, campaign: CampaignId, key: Key = None) -> Response:
    """Let people report; refused if some reports could make it cost more than its ceiling. Takes some seconds."""
    service, who = shell_of(request).service, caller.who
    return await once(request, who.id, key, lambda repeat: service.open.once(repeat, who, campaign), slow=True)


@router.post("/close-reporting", status_code=202, response_model=JobView, responses=_CHANGE, summary="Close reporting")
async def close_reporting(request: Request, caller: Analyst, campaign: CampaignId, key: Key = None) -> Response:
    """Take no more reports, and decide in the background."""
    service, who = shell_of(request).service, caller.who
    return await once(
        request, who.id, key, lambda repeat: service.close_reporting.once(repeat, who, campaign), status=202
    )


@router.post("/release", status_code=202, response_model=JobView, responses=_CHANGE, summary="Release the estimate")
async def release(
    request: Request, caller: Analyst, campaign: CampaignId, given: Releasing | None = None, key: Key = None
) -> Response:
    """Take no more data, and draw the estimate, once and for ever, in the background."""
    service, who = shell_of(request).service, caller.who
    nobody = given is not None and given.accept_nobody
    return await once(
        request,
        who.id,
        key,
        lambda repeat: service.release.once(repeat, who, campaign, accept_nobody=nobody),
        status=202,
    )


@router.post("/payments", response_model=Paid, responses=_CHANGE, summary="Mark as paid")
async def mark_paid(
    request: Request, caller: Analyst, campaign: CampaignId, given: Payees | None = None, key: Key = None
) -> Response:
    """Say that people were paid what was due to them: these, or everybody."""
    service, who = shell_of(request).service, caller.who
    labels = None if given is None else given.labels
    return await once(
        request,
        who.id,
        key,
        lambda repeat: service.mark_paid.once(repeat, who, campaign, labels),
        shape=lambda found: {"paid": found},
    )


@router.post("/links", status_code=201, response_model=Invitation, responses=_CHANGE, summary="Renew a link")
async def renew_link(
    request: Request, caller: Analyst, campaign: CampaignId, given: Renewal, key: Key = None
) -> Response:
    """A new link for somebody who lost hers; the old one is worth nothing from now on."""
    service, who = shell_of(request).service, caller.who
    return await once(
        request, who.id, key, lambda repeat: service.renew_link.once(repeat, who, campaign, given.label), status=201
    )


@router.post("/close", response_model=Campaign, responses=_CHANGE, summary="Close a campaign")
async def close(
    request: Request, caller: Analyst, campaign: CampaignId, given: Closing | None = None, key: Key = None
) -> Response:
    """End a campaign whose estimate is out; whoever is unpaid must be accepted by name."""
    service, who = shell_of(request).service, caller.who
    unpaid = given is not None and given.accept_unpaid
    return await once(
        request, who.id, key, lambda repeat: service.close_campaign.once(repeat, who, campaign, accept_unpaid=unpaid)
    )


@router.post("/cancel", response_model=Campaign, responses=_CHANGE, summary="Cancel a campaign")
async def cancel(
    request: Request, caller: Analyst, campaign: CampaignId, given: Cancelling | None = None, key: Key = None
) -> Response:
    """Give a campaign up before people have been told what is bought from them."""
    service, who = shell_of(request).service, caller.who
    reason = (given or Cancelling()).reason
    return await once(request, who.id, key, lambda repeat: service.cancel.once(repeat, who, campaign, reason))
