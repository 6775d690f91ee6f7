"""Where a participant is to be paid: asked once she has named a price, shown to her masked, forgotten if she wants.

What she typed is in no address, and is not shown to her again when it is refused.
"""

from fastapi import APIRouter, Request, Response

from hushbid.errors import Conflict, InputError
from hushbid.server.pages.request import PageRequest, participant

router = APIRouter(include_in_schema=False)


@router.get("/p/payout")
async def ask(request: Request) -> Response:
    """Ask where she is to be paid, and show what is stored."""
    visit = await participant(request)
    return await _page(visit)


@router.post("/p/payout")
async def store(request: Request) -> Response:
    """Store it, or forget it."""
    visit = await participant(request)
    form = await visit.form()
    forget, typed = form.text("do") == "forget", form.text("handle")[:1000]
    try:
        if forget:
            await visit.ask(lambda service: service.remove_payout(visit.token))
        else:
            await visit.ask(lambda service: service.state_payout(visit.token, typed))
    except InputError:
        return await _page(visit, wrong=True, status=422)
    except Conflict:
        return await _page(visit, notice="refused.moved_on", status=409)
    return visit.go("/p#payout")


async def _page(visit: PageRequest, *, wrong: bool = False, notice: str | None = None, status: int = 200) -> Response:
    view = await visit.ask(lambda service: service.participation(visit.token))
    if view.payout == "none":
        return visit.go("/p")
    paying = await visit.ask(lambda service: service.payout(visit.token))
    return visit.page(
        "participant/payout.html",
        status=status,
        here="/p/payout",
        view=view,
        paying=paying,
        notice=notice,
        problem=visit.texts.coded(f"payout.wrong_{view.payout}") if wrong else None,
    )
