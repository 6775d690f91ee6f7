"""What one visit saves: bots play the same campaign with one visit and with two, and some of them never come back.

    python -m benchmarks.visits --n 200

Both campaigns have the same people with the same prices and answers, on a server of this process. A visit is a time at
which somebody comes to answer or to look what is bought from her; a request is what her client sends then, the exchange
of her link included. Reading a receipt, which nobody has to, is not counted.
"""

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hushbid.client import AnalystClient
from hushbid.server.bots.campaigns import SETTINGS, play_campaign
from hushbid.server.installation import DataDir
from hushbid.server.service import Service
from hushbid.server.service.use_case import Effort
from hushbid.server.store.database import Database
from tests.server.serving import served

SHARES = (0.0, 0.1, 0.3)
_HEAD = (
    "| | do not come back | visits per person | requests per person | bought from | dropped out |",
    "|---|---|---|---|---|---|",
)


def measured(folder: Path, n: int, shares: Sequence[float] = SHARES) -> list[dict[str, Any]]:
    """One row for each way and share."""
    home = DataDir.at(folder / "home")
    service = Service(home, Database.sqlite(home.database), effort=Effort(least=2, most=5, seconds=0.0))
    with service, served(service) as url:
        service.create_user("analyst", "analyst", "nobody logs in with this")
        with AnalystClient(url, token=service.create_api_token("analyst", "visits")) as analyst:
            return [
                {"visits": visits, "stay_away": share, **_played(analyst, n, share, single_visit=visits == 1)}
                for visits in (2, 1)
                for share in shares
            ]


def _played(analyst: AnalystClient, n: int, share: float, *, single_visit: bool) -> dict[str, Any]:
    settings = {**SETTINGS, "server": {**SETTINGS["server"], "single_visit": single_visit}}
    played = play_campaign(analyst, settings, n=n, strategy="truthful", stay_away=share, connections=8)
    assert played.ok, played.tally.problems
    return played.visits()


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The rows as a table for the docs."""
    named = {2: "two visits", 1: "one visit"}
    lines = [
        f"| {named[one['visits']]} | {one['stay_away']:.0%} | {one['visits_per_bot']:.2f} |"
        f" {one['requests_per_bot']:.2f} | {one['bought_from']} | {one['dropped_out']} |"
        for one in rows
    ]
    return "\n".join((*_HEAD, *lines))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What one visit saves.")
    parser.add_argument("--n", type=int, default=200, help="how many people")
    with tempfile.TemporaryDirectory() as folder:
        print(table(measured(Path(folder), parser.parse_args().n)))


if __name__ == "__main__":
    main()
