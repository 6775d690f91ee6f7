"""What everybody may ask."""

from typing import Any

from fastapi import APIRouter, Request, Response

from hushbid import __version__
from hushbid.server.api.schemas import CampaignId, Health, answer, problems
from hushbid.server.api.state import PREFIX, app_of, operation_id
from hushbid.server.domain.views import PublicView

router = APIRouter(prefix=PREFIX, tags=["public"], generate_unique_id_function=operation_id)
_OBJECT: dict[str, Any] = {"application/json": {"schema": {"type": "object"}}}


@router.get("/health", response_model=Health, responses=problems(), summary="Are you there?")
async def health() -> Response:
    """That the server answers."""
    return answer({"status": "ok", "version": __version__})


@router.get(
    "/keys",
    response_class=Response,
    responses={200: {"description": "The list of keys.", "content": _OBJECT}, **problems()},
    summary="List the keys that sign receipts",
)
async def keys(request: Request) -> Response:
    """All keys there have been, as `hushbid verify --keys` reads them."""
    app = app_of(request)
    return answer((await app.run(app.service.keys)).to_dict())


@router.get(
    "/campaigns/{campaign}/public",
    response_model=PublicView,
    responses=problems(404, 422),
    summary="What everybody may see",
)
async def public(request: Request, campaign: CampaignId) -> Response:
    """A campaign that has opened: title, state, the receipts' root, and the estimate if it is public."""
    app = app_of(request)
    return answer(await app.run(app.service.public, campaign))
