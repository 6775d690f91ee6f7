"""``hushbid demo``: the main job on people who do not exist."""

import csv
import json
from pathlib import Path

import click
import numpy as np

from hushbid.allocation import Allocation, allocate
from hushbid.priors import LogNormal

PRIOR = LogNormal(mean_log=0.0, sd_log=0.5)
SETTINGS = ("central", "local")


@click.command()
@click.option("--people", type=click.IntRange(min=2), default=10_000, show_default=True, help="How many to make up.")
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Another one, other people.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("out/demo"),
    show_default=True,
    help="Folder for the result.",
)
def command(people: int, seed: int, out: Path) -> None:
    """Price a synthetic population and show what was bought.

    Everybody holds a yes-or-no answer and has a price for each unit of privacy loss. A platform wants the share of yes.
    In the central setting people trust it to add the noise, in the local one each adds her own.
    """
    reports = PRIOR.sample(people, rng=np.random.default_rng(seed))
    virtual_costs = PRIOR.virtual_cost(reports)
    allocations = {setting: allocate(virtual_costs, setting=setting, variance=0.25) for setting in SETTINGS}

    click.echo(f"{people:,} people with a yes-or-no answer each report a price for privacy, {PRIOR.to_text()}.\n")
    click.echo(_table(allocations, people))
    out.mkdir(parents=True, exist_ok=True)
    _write_decisions(out / "decisions.csv", reports, virtual_costs, allocations)
    _write_summary(out / "summary.json", people, seed, allocations)
    click.echo(f"\nEvery person's decision is in {out / 'decisions.csv'}, the totals are in {out / 'summary.json'}.")


def _figures(allocation: Allocation) -> dict[str, float]:
    return {
        "bought_from": int(allocation.active),
        "largest_privacy_loss": float(np.max(allocation.privacy_loss)),
        "standard_error": float(np.sqrt(allocation.mse)),
        "objective": float(allocation.objective),
        "lower_bound": float(allocation.lower_bound),
    }


def _table(allocations: dict[str, Allocation], people: int) -> str:
    figures = [_figures(allocation) for allocation in allocations.values()]
    rows = [
        ("", list(allocations)),
        ("bought from", [f"{one['bought_from']:,} of {people:,}" for one in figures]),
        ("largest privacy loss", [f"{one['largest_privacy_loss']:.4f}" for one in figures]),
        ("standard error of the share", [f"{one['standard_error']:.4f}" for one in figures]),
        ("cost: error and virtual payments", [f"{one['objective']:.6f}" for one in figures]),
        ("no mechanism can cost less than", [f"{one['lower_bound']:.6f}" for one in figures]),
    ]
    return "\n".join(f"  {label:<34}" + "".join(f"{cell:>18}" for cell in cells) for label, cells in rows)


def _write_decisions(
    path: Path, reports: np.ndarray, virtual_costs: np.ndarray, allocations: dict[str, Allocation]
) -> None:
    columns = {"sensitivity": reports, "virtual_cost": virtual_costs}
    for setting, allocation in allocations.items():
        columns[f"{setting}_privacy_loss"] = allocation.privacy_loss
        columns[f"{setting}_weight"] = allocation.weights
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["person", *columns])
        writer.writerows(zip(range(len(reports)), *(column.tolist() for column in columns.values()), strict=True))


def _write_summary(path: Path, people: int, seed: int, allocations: dict[str, Allocation]) -> None:
    settings = {setting: _figures(allocation) for setting, allocation in allocations.items()}
    summary = {"people": people, "seed": seed, "prior": PRIOR.to_dict(), "variance": 0.25, "settings": settings}
    path.write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
