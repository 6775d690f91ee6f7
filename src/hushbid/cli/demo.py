"""``hushbid demo``: a complete campaign on people who do not exist."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hushbid.cli.common import COUNT, Steps, tell
from hushbid.cli.common import command as make_command
from hushbid.errors import HushbidError, InputError

if TYPE_CHECKING:
    import numpy as np

    from hushbid.arrays import FloatArray
    from hushbid.purchase.results import Purchase

_FILES = (
    *("pilot.csv", "prior.json", "reports.csv", "data.csv", "campaign.toml"),
    *("decisions.csv", "payments.csv", "estimate.json", "report.html", "record.json"),
)
_PILOT = 400
_GROUPS = ("days", "nights")
_CAMPAIGN = """\
# What a hospital's occupational health service might buy. Every person in it is made up.
name = "Sleep of hospital staff"
quantity = "mean sleep per night"
unit = "hours"
made_up = true                       # never for real people: the estimate is drawn anew at every run
notices = ["Every person in this campaign is made up: sleep, prices for privacy and groups were simulated."]

[market]
setting = "central"                  # people trust the service to add the noise
prior = { file = "prior.json" }      # fitted on a pilot among other people: hushbid fit-prior pilot.csv
bounds = [3, 11]                     # hours; whatever lies outside is moved to the nearer end
variance = 1.5                       # squared hours, an upper bound from earlier studies
budget = 2000                        # euros, on average over what people may ask
max_relation = 0.1                   # who asks more may sleep worse: be safe up to a correlation of 0.1

[money]
currency = "EUR"

[reports]
file = "reports.csv"
group = "shift"

[data]
file = "data.csv"

[output]
folder = "."
"""


@make_command("demo")
@click.option(
    "--people", type=click.IntRange(2, COUNT.max), default=10_000, show_default=True, help="How many to make up."
)
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Another one, other people.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("out/demo"),
    show_default=True,
    help="Folder for everything.",
)
@click.option("--force", is_flag=True, help="Replace an earlier demo in the folder, and nothing else.")
def command(people: int, seed: int, out: Path, force: bool, as_json: bool) -> None:
    """Run a complete campaign on people who do not exist.

    A hospital wants to know how long its staff sleep. 400 people take part in a pilot, to which a prior is fitted; then
    many others name their price for privacy, some of them are bought from and paid, and one estimate is released. Each
    step is a file in the folder, and the campaign can be run again with "hushbid run".
    """
    from hushbid.durable import refuse_existing
    from hushbid.purchase.buying import run_campaign, steps_of
    from hushbid.purchase.people import AT_ONCE

    there = [path for path in (out / name for name in _FILES) if os.path.lexists(path)]
    if there and not _holds_a_demo(out):
        raise InputError(f"{there[0]} is not from a demo, and a demo replaces only an earlier one: name another --out.")
    if not force:
        refuse_existing(there)
    with Steps(steps_of(AT_ONCE) + 1) as step:
        step("making people up")
        mean = _make_up(out, people, seed, force)
        purchase = run_campaign(out / "campaign.toml", force=force, estimate_needed=False, step=step)
    facts = {**purchase.facts(), "true_mean_of_the_made_up": mean}
    tell(facts, _text(purchase, mean, out), as_json=as_json)
    if purchase.failed:
        click.get_current_context().exit(1)


def _holds_a_demo(out: Path) -> bool:
    """Whether a folder's campaign file is a demo's, and its record, if there is one, of people who do not exist."""
    import tomllib

    from hushbid.purchase.releasing import is_made_up
    from hushbid.record import Record

    try:
        campaign = tomllib.loads((out / "campaign.toml").read_text(encoding="utf-8"))
        record = out / "record.json"
        invented = is_made_up(Record.read(record)) if os.path.lexists(record) else True
    except (OSError, ValueError, RecursionError, HushbidError):
        return False
    ours = tomllib.loads(_CAMPAIGN)
    return campaign.get("made_up") is True and campaign.get("name") == ours["name"] and invented


def _make_up(out: Path, people: int, seed: int, force: bool) -> float:
    """Write the pilot, the fitted prior, the reports, the data and the campaign file; the mean of all data."""
    import numpy as np

    from hushbid.durable import Staging
    from hushbid.priors.fitting import fit_priors
    from hushbid.priors.pilot import Pilot, prior_file_text
    from hushbid.tables import table_writer

    rng = np.random.default_rng(seed)
    pilot, reports = _prices(_PILOT, rng), _prices(people, rng)
    nights = rng.random(people) < 0.3
    sleep = np.clip(np.where(nights, rng.normal(6.2, 1.2, people), rng.normal(7.1, 1.0, people)), 3.0, 11.0).round(2)
    ids = [f"staff-{row:05d}" for row in range(people)]
    pilot_ids = [f"pilot-{row:03d}" for row in range(_PILOT)]
    fit = next(fit for fit in fit_priors(pilot) if fit.family == "lognormal")
    prior = prior_file_text(fit.prior, Pilot.of(pilot_ids, _PILOT), {"family": fit.family, "aic": fit.aic})
    tables: dict[str, dict[str, Any]] = {
        "pilot.csv": {"id": pilot_ids, "sensitivity": pilot},
        "reports.csv": {"id": ids, "sensitivity": reports, "shift": np.where(nights, *reversed(_GROUPS)).tolist()},
        "data.csv": {"id": ids, "value": sleep},
    }
    with Staging(force=force) as files:
        for name, columns in tables.items():
            files.add(out / name, table_writer(out / name, columns))
        files.add(out / "prior.json", lambda file: file.write(prior.encode()))
        files.add(out / "campaign.toml", lambda file: file.write(_CAMPAIGN.encode()))
    return float(sleep.mean())


def _prices(count: int, rng: "np.random.Generator") -> "FloatArray":
    """What a unit of privacy loss costs people: two euros for half of them, more than six for one in thirty."""
    import numpy as np

    prices: FloatArray = np.exp(rng.normal(np.log(2.0), 0.6, count)).round(4)
    return prices


def _text(purchase: "Purchase", mean: float, out: Path) -> str:
    from hushbid.purchase.releasing import estimate_text
    from hushbid.wording import at_most

    campaign, decided = purchase.campaign, purchase.decided
    count, bought, currency = decided.figures.people, decided.figures.active, decided.currency
    largest = decided.facts()["largest_privacy_loss"]
    lines = [
        f"A hospital asked {count:,} made-up people how long they sleep and what a unit of privacy loss costs them.",
        "",
        f"  What was bought   data of {bought:,} people, each of whom loses at most ε = {largest:g} of privacy",
        f"  At what price     {currency.text(decided.total_minor)} in all; nobody could have gained more than"
        f" {currency.code} {at_most(decided.incentive_error):g} by not telling the truth",
    ]
    if purchase.release is not None:
        told = estimate_text(purchase.release, campaign.level, campaign.quantity, campaign.unit)
        lines.append(f"  How accurate      {told[0].lower()}{told[1:]}")
        lines.append(f"                    (made up, so we know: the mean of all {count:,} is {mean:.3f})")
    else:
        lines.append(f"  How accurate      no estimate was drawn. {purchase.missing}")
    if purchase.audits:
        weak = sum(audit.verdict == "weak" for audit in purchase.audits)
        verdict = f"{purchase.failed} FAILED" if purchase.failed else "none found a fault"
        verdict += f" ({weak} of them could easily have missed one; the report says which)" * (weak > 0)
        lines.append(f"  Attacked          {len(purchase.audits)} audits on our own claims, {verdict}")
    lines += [
        f"  The report        {out / 'report.html'}",
        "",
        f"Each person's decision is in {out / 'decisions.csv'}. Now try:  {_ourselves()} verify {out / 'record.json'}",
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
