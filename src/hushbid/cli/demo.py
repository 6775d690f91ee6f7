"""``hushbid demo``: a complete campaign on synthetic people."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from hushbid.cli.common import COUNT, Steps, Whole, tell
from hushbid.cli.common import command as make_command
from hushbid.errors import HushbidError, OutputExists

if TYPE_CHECKING:
    import numpy as np

    from hushbid.campaign.results import Purchase
    from hushbid.common.arrays import FloatArray, IndexArray

_FILES = (
    *("pilot.csv", "prior.json", "bids.csv", "data.csv", "campaign.toml"),
    *("decisions.csv", "payments.csv", "estimate.json", "report.html", "record.json", "record"),
)
_PILOT = 1000
_PROFESSIONS = ("nursing", "medicine", "laboratory", "office")
_PANEL = (0.30, 0.10, 0.15, 0.45)
"""What share of those who take part each profession is: people in offices have time for surveys."""

_SHARES = (0.45, 0.15, 0.15, 0.25)
"""What share of the staff it is."""


@make_command("demo")
@click.option("--people", type=Whole(20, COUNT.max), default=20_000, show_default=True, help="How many.")
@click.option("--seed", type=Whole(min=0), default=1, show_default=True, help="Another one, other people.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("out/demo"),
    show_default=True,
    help="Folder for everything.",
)
@click.option("--audit/--no-audit", default=True, show_default=True, help="Attack our own claims for the report.")
@click.option("--force", is_flag=True, help="Replace an earlier demo in the folder, and nothing else.")
def command(people: int, seed: int, out: Path, audit: bool, force: bool, as_json: bool) -> None:
    """Run a complete campaign on synthetic people.

    A hospital asks its staff eight questions about health and work. 1,000 people take part in a pilot, to which a prior
    is fitted; then many others name their price for privacy, some of them are bought from and paid, and one estimate
    of every answer is released, for a staff in which the professions have other shares than among those who took part.
    Each step is a file in the folder, and the campaign can be run again with "hushbid run".
    """
    from hushbid.campaign.buying import run_campaign, steps_of
    from hushbid.campaign.people import AT_ONCE
    from hushbid.common.staging import refuse_existing

    there = [path for path in (out / name for name in _FILES) if os.path.lexists(path)]
    if there and not _holds_a_demo(out):
        raise OutputExists(
            f"{there[0]} is not from a demo, and a demo replaces only an earlier one: name another --out."
        )
    if not force:
        refuse_existing(there)
    with Steps(steps_of(AT_ONCE) + 1) as step:
        step("simulating people")
        truth = _make_up(out, people, seed, force)
        purchase = run_campaign(out / "campaign.toml", audit=audit, force=force, estimate_needed=False, step=step)
    known = {"true_share_on_days": truth.of_staff, "share_on_days_of_those_asked": truth.of_asked}
    tell({**purchase.facts(), **known}, _text(purchase, truth, out), as_json=as_json)
    if purchase.failed:
        click.get_current_context().exit(1)


def _holds_a_demo(out: Path) -> bool:
    """Whether a folder's campaign file is a demo's, and its record, if there is one, of synthetic people."""
    import tomllib

    from hushbid.campaign.notices import is_synthetic
    from hushbid.record import Record
    from hushbid.record.folder import present

    try:
        campaign = tomllib.loads((out / "campaign.toml").read_text(encoding="utf-8"))
        record = present(out / "record.json")
        invented = is_synthetic(Record.read(record)) if os.path.lexists(record) else True
    except (OSError, ValueError, RecursionError, HushbidError):
        return False
    ours = tomllib.loads(campaign_text())
    return campaign.get("synthetic") is True and campaign.get("title") == ours["title"] and invented


def campaign_text() -> str:
    """Return the demo's campaign file."""
    from importlib.resources import files

    return files("hushbid.cli").joinpath("demo.toml").read_text(encoding="utf-8")


class _Days(NamedTuple):
    """What is known of synthetic people: the share of those who work days only."""

    of_staff: float
    """With each profession's share of the staff."""

    of_asked: float
    """With its share of those who were asked."""


def _make_up(out: Path, people: int, seed: int, force: bool) -> _Days:
    """Write the pilot, the fitted prior, the bids, the data and the campaign file; who works days only."""
    import numpy as np

    from hushbid.common.staging import Staging
    from hushbid.common.tables import table_writer
    from hushbid.priors.fitting import fit_priors
    from hushbid.priors.pilot import Pilot, prior_file_text

    rng = np.random.default_rng(seed)
    pilot, bids = _prices(_PILOT, rng), _prices(people, rng)
    work = rng.permutation(np.append(np.arange(4), rng.choice(4, size=people - 4, p=_PANEL)))  # nobody is forgotten
    answers = _answers(work, rng)
    ids = [f"staff-{row:05d}" for row in range(people)]
    pilot_ids = [f"pilot-{row:04d}" for row in range(_PILOT)]
    fit = next(fit for fit in fit_priors(pilot) if fit.family == "lognormal")
    prior = prior_file_text(fit.prior, Pilot.of(pilot_ids, _PILOT), {"family": fit.family, "aic": fit.aic})
    tables: dict[str, dict[str, Any]] = {
        "pilot.csv": {"id": pilot_ids, "bid": pilot},
        "bids.csv": {"id": ids, "bid": bids, "profession": [_PROFESSIONS[one] for one in work]},
        "data.csv": {"id": ids, **answers},
    }
    with Staging(force=force) as files:
        for name, columns in tables.items():
            files.add(out / name, table_writer(out / name, columns))
        files.add(out / "prior.json", lambda file: file.write(prior.encode()))
        files.add(out / "campaign.toml", lambda file: file.write(campaign_text().encode()))
    days = np.array(answers["shift"]) == "days"
    of_staff = sum(share * float(days[work == one].mean()) for one, share in enumerate(_SHARES))
    return _Days(of_staff=of_staff, of_asked=float(days.mean()))


def _answers(work: "IndexArray", rng: "np.random.Generator") -> dict[str, Any]:
    """Answers that depend on people's professions, in the order in which these are named."""
    import numpy as np

    def number(means: tuple[float, ...], spread: float, low: float, high: float) -> "FloatArray":
        return np.clip(rng.normal(np.array(means)[work], spread), low, high).round(2)

    def share_of_yes(*shares: float) -> list[str]:
        return ["yes" if one else "no" for one in rng.random(work.size) < np.array(shares)[work]]

    shifts, drawn = ("days", "nights", "both", "no answer"), rng.random(work.size)
    until = np.array([(0.35, 0.50, 0.95), (0.40, 0.50, 0.95), (0.75, 0.80, 0.95), (0.94, 0.95, 0.96)])[work]
    return {
        "sleep": number((6.3, 6.4, 6.9, 7.2), 1.1, 3.0, 11.0),
        "overtime": number((5.0, 9.0, 3.0, 2.0), 3.0, 0.0, 20.0),
        "commute": number((35.0, 30.0, 35.0, 40.0), 15.0, 0.0, 120.0),
        "back pain": share_of_yes(0.5, 0.25, 0.25, 0.35),
        "smokes": share_of_yes(0.25, 0.1, 0.15, 0.2),
        "wants to leave": share_of_yes(0.3, 0.2, 0.15, 0.1),
        "vaccinated": share_of_yes(0.7, 0.85, 0.8, 0.65),
        "shift": [shifts[place] for place in (drawn[:, None] >= until).sum(axis=1)],
    }


def _prices(count: int, rng: "np.random.Generator") -> "FloatArray":
    """What a unit of privacy loss costs people: two euros for half of them, more than six for one in thirty."""
    import numpy as np

    prices: FloatArray = np.exp(rng.normal(np.log(2.0), 0.6, count)).round(4)
    return prices


def _text(purchase: "Purchase", truth: _Days, out: Path) -> str:
    from hushbid.campaign.telling import estimate_text
    from hushbid.common.money import money_at_most
    from hushbid.common.numbers import figure, fixed

    campaign, decided = purchase.campaign, purchase.decided
    count, bought, currency = decided.figures.people, decided.figures.active, decided.currency
    largest = decided.facts()["largest_privacy_loss"]
    lines = [
        f"A hospital asked {count:,} synthetic people eight questions, and what a unit of privacy loss costs them.",
        "",
        f"  What was bought   answers of {bought:,} people, each of whom loses at most ε = {figure(largest)} of"
        " privacy",
        f"  At what price     {currency.text(decided.total_minor)} in all; nobody could have gained more than"
        f" {money_at_most(decided.incentive_error, currency)} by not telling the truth",
    ]
    if purchase.release is not None:
        message = estimate_text(purchase.release, campaign.spec.output.level, campaign.question).splitlines()
        message.append(
            f"(They are synthetic, so we know: of the staff {fixed(truth.of_staff, 3)} work days only, of those who"
            f" were asked {fixed(truth.of_asked, 3)}.)"
        )
        lines.append(f"  How accurate      {message[0]}")
        lines += [f"                    {line}" for line in message[1:]]
    else:
        lines.append(f"  How accurate      no estimate was drawn. {purchase.released.missing}")
    if purchase.audits:
        weak = sum(audit.verdict == "weak" for audit in purchase.audits)
        verdict = f"{purchase.failed} FAILED" if purchase.failed else "none found a fault"
        verdict += f" ({weak} of them could easily have missed one; the report says which)" * (weak > 0)
        lines.append(f"  Attacked          {len(purchase.audits)} audits on our own claims, {verdict}")
    lines += [
        f"  The report        {out / 'report.html'}",
        "",
        f"Each person's decision is in {out / 'decisions.csv'}. Now try:  {_ourselves()} verify {purchase.files[-1]}",
    ]
    return "\n".join(lines)


def _ourselves() -> str:
    """What to type to run this program again: it need not be on the path."""
    import shutil
    import sys

    if shutil.which("hushbid"):
        return "hushbid"
    started = Path(sys.argv[0])
    return str(started) if started.name == "hushbid" else "python -m hushbid"
