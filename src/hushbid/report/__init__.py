"""`report.html`: one self-contained page about a campaign, that a buyer can forward to a regulator.

    report = build_report(outcome, release, title="Glucose 2026", currency="EUR", groups=groups, audits=audits)
    write_report("report.html", report, force=False)

`build_report` computes, `Report` (frozen, plain values) holds, `render_report` draws, `write_report` saves atomically;
inside a set of files use ``staging.add(path, lambda file: file.write(render_report(report).encode()), private=False)``.
``dataclasses.asdict(report)`` is the same for a program.

Wiring, for a command line or a server:

- ``outcome`` is ``market.acquire(bids)`` or one read back; ``release`` the release made from it, None before.
- ``groups``: one label per person, in the order of the bids. Ids are not taken: what is not given cannot leak.
- ``audits``: results of `hushbid.audit`, or `AuditLine`.
- ``currency``: an ISO code or `hushbid.common.money.Currency`. Totals and the bound on misreports then include rounding
  every payment up to the smallest coin. ``money`` instead: what is really paid, where it was rounded already.
- ``comparison``: by default the other setting is computed on the same bids, which takes as long as ``acquire``.
- ``menu``: ``market.menu(n, rng=...)``; shown in place of the schedule when fewer than 20 people were bought from.
- ``record_name`` and ``record_hash``: how the reader finds and recognises the record for ``hushbid verify``.
- ``settlement``: by whoever keeps that account, who delivered and what is owed and paid, fees included.
- ``conduct``: likewise what was asked, when, and who took no part or left.
- ``language``: "en" or "de", for sentences, numbers and charts; what the caller words stays as it is.
- ``notices``: sentences shown above everything, for instance that bids are simulated.

Nothing in a report is one person's: charts need 20 people, bars 5, small groups are pooled (`suppression`). The page
asks for nothing from outside and runs no script; its content security policy forbids both. All text of the caller is
escaped by the templates (`rendering`). It needs no package beyond the core's.

In reading order:

- `build`: `Report`, which names the sections, and `build_report`, which has each compute its facts.
- `material`: what sections compute from.
- `suppression`: what may be said about people without saying anything about a person; the only place that decides it.
- `sections`: one file per section, with a template of the same name in ``templates``.
- `page`: the page: its first part is the answer (`opening.html`), the sections are a folded appendix; its policy.
- `conduct`: how a server's campaign was carried out; shown with who was bought from.
- `rendering`: how templates are filled in; the server's pages use it too.
- `language`: what a report says in the language of the page, and how it writes numbers.
- `svg`: scales, axes and marks for all pictures.
- `schedule_chart`: privacy loss and payment against what a person bids; the privacy section shows it.
- `answers`: what was found for each question, as the first page shows it.
- `strata_table`: what is estimated of strata, and why a panel's own mean would not do; it shows that too.
- `protection_chart`: what protection against a relation costs and saves; the section on misleading prices shows it.
- `prior_chart`: a sample of bids against fitted priors, with the ironed virtual costs, as an SVG document.
- `charts`: some of these pictures, and those of plans and simulations, for notebooks.
"""

from pathlib import Path

from hushbid.common.staging import write_file
from hushbid.report.build import Report, build_report
from hushbid.report.conduct import Conduct
from hushbid.report.material import Settlement
from hushbid.report.page import render_report
from hushbid.report.prior_chart import prior_picture
from hushbid.report.sections.audits import AuditLine

__all__ = [
    "AuditLine",
    "Conduct",
    "Report",
    "Settlement",
    "build_report",
    "prior_picture",
    "render_report",
    "write_report",
]


def write_report(path: str | Path, report: Report, *, force: bool = False) -> None:
    """Save the page, completely or not at all; an existing file is replaced only with ``force``."""
    page = render_report(report).encode("utf-8")
    write_file(path, lambda file: file.write(page), force=force, private=False)
