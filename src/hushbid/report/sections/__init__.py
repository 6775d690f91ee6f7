"""The sections of a report, one file and one template of the same name each; in the order of the page:

- `estimate`: how questions were asked, what was drawn, its errors, and where the uncertainty comes from.
- `cost`: what was paid and for what, why nothing truthful is cheaper, and what became of it.
- `privacy`: how much privacy people gave up, and what is bought at which price (`hushbid.report.schedule_chart`).
- `groups`: who was bought from.
- `selection`: whether a relation between prices and data could mislead.
- `settings`: central against local on the same bids.
- `baselines`: what other ways to buy would have paid.
- `cap`: what a cap on privacy losses costs.
- `audits`: attacks on our own claims, in words.
- `assumptions`: what all of it rests on.
- `verify`: how a reader checks it without trusting us.

Each module has its facts (frozen, plain values that may be shown to anybody), ``facts_of``, which computes them, its
charts and tables as functions of the facts, and where links lead (``ANCHOR``) and its heading (``TITLE``); the template
has its words, and finds the module as ``section``. Around them are ``page.html`` and ``opening.html``;
``schedule.html`` and ``strata.html`` are parts of ``privacy.html`` and ``estimate.html``; ``macros.html`` and
``settlement.html`` are what several import. To add a section, write the two files, import the module here, and give
`hushbid.report.build.Report` a field for its facts where it is to be on the page.
"""

from hushbid.report.sections import (
    assumptions,
    audits,
    baselines,
    cap,
    cost,
    estimate,
    groups,
    privacy,
    selection,
    settings,
    verify,
)

__all__ = [
    "assumptions",
    "audits",
    "baselines",
    "cap",
    "cost",
    "estimate",
    "groups",
    "privacy",
    "selection",
    "settings",
    "verify",
]
