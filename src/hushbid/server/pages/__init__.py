"""The campaign server's pages: for participants who come by a link, and for analysts and auditors who log in.

The modules, from the bottom: ``texts`` holds all wording, in every language there is a file for; ``writing`` writes and
reads numbers; ``static_files`` serves what templates load; ``visit`` is one request,
with whoever makes it; ``choice`` is the arithmetic of what a participant is asked, ``pictures`` draws; ``entry``,
``participant``, ``drafting``, ``staff`` and ``conducting`` are the pages; ``problems`` shows refusals as pages.

Everything works without a script, but for one thing: noise that is added in the browser has to be.
"""

from fastapi import FastAPI

from hushbid.server.api.frame import AsPage


def add_pages(app: FastAPI) -> AsPage:
    """Add the pages to an application that serves the API; returns how the frame around it shows its own refusals."""
    from hushbid.server.pages import conducting, drafting, entry, participant, staff, static_files
    from hushbid.server.pages.problems import handle_page_problems, refusal_page

    for part in (static_files, participant, entry, drafting, staff, conducting):
        app.include_router(part.router)
    handle_page_problems(app)
    return refusal_page
