"""The sections of a report, one file and one template of the same name each; in the order of the page:

- `estimate`: the estimate with its interval, and where the uncertainty comes from (`hushbid.report.answers_chart`).
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
has its words, and finds the module as ``section``. Beside those of the sections there are ``page.html`` and
``opening.html`` around them, ``schedule.html``, the second half of ``privacy.html``, ``answers.html``,
``estimate.html`` for a survey, and what several of them import, ``macros.html`` and ``settlement.html``. To add a
section, write the two files, import the module here, and give `hushbid.report.build.Report` a field for its facts where
it is to stand on the page.
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
