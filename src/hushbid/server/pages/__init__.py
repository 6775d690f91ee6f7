"""The campaign server's pages: for participants who come by a link, and for analysts and auditors who log in.

Everything works without a script, but for one thing: noise that is added in the browser has to be. In reading order:

===============  ======================================================================================
`request`        one request for a page: who asks, in which language, forms and cookies, templates filled in
`sent`           what is sent with a form, and what is kept of it for the next page
`entry`          coming in: the first page, logging in, opening a link
`participant`    what a participant sees and does
`consent`        what the consent page says, word by word
`choice`         the arithmetic of what she is asked
`answering`      her price and her answers as they are typed
`staff`          what analysts and auditors look at: all campaigns, people, log, audit, report, privacy account
`draft`          drafting a campaign: a form that is kept as it is typed, and a forecast
`draft_form`     the draft's form, as it is typed and as settings
`form_fields`    its fields, and what stands in them first
`form_rows`       its questions and strata, with buttons that add, remove and move them
`form_prices`    what people may ask for: two prices, a pilot's file, or a text
`form_reading`   reading a form field by field
`forecast_words`  a forecast in words
`inviting`       inviting people, new links for lost ones, and taking somebody off the list again
`sample`         a draft as a participant would see it
`steps`          one campaign's page, and each step of its life: offered, asked about, taken
`paying`         who is owed what, marks that people were paid, files for the payer
`estimates`      an estimate with its error in words
`pictures`       charts
`wording`        sentences, also by their codes, numbers, money and times in one language
`static_files`   the style sheet and scripts that pages load
`problems`       refusals as pages
===============  ======================================================================================
"""

from fastapi import FastAPI

from hushbid.server.http.middleware import AsPage


def add_pages(app: FastAPI) -> AsPage:
    """Add the pages to an application that serves the API; returns how what goes around it shows its own refusals."""
    from hushbid.server.pages import inviting, participant, paying, sample, staff, static_files, steps  # noqa: F401
    from hushbid.server.pages.problems import handle_page_problems, refusal_page
    from hushbid.server.pages.request import PAGES

    # a page with an address of its own comes before those whose addresses hold names
    app.router.routes += [static_files.ROUTE, *sorted(PAGES, key=lambda one: one.path.count("{"))]
    handle_page_problems(app)
    return refusal_page
