"""The panel of the how-to page with 20,000 people: eight questions, four strata, a budget, a relation of 0.1."""

import csv
import math
from pathlib import Path

import numpy as np

from hushbid import verify
from hushbid.campaign import run_campaign
from hushbid.record import Record
from tests.e2e.conftest import in_shell
from tests.e2e.test_pages import BLOCK, DOCS

SHARES = {"laboratory": 0.15, "medicine": 0.15, "nursing": 0.45, "office": 0.25}


def columns(path: Path) -> dict[str, np.ndarray]:
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def test_twenty_thousand_people_are_bought_from_verified_and_weighed_by_the_population(tmp_path: Path) -> None:
    page = (DOCS / "how-to" / "survey-a-panel.md").read_text(encoding="utf-8")
    written = {block["file"]: block["content"] for block in BLOCK.finditer(page) if block["file"]}
    (tmp_path / "people.py").write_text(written["people.py"], encoding="utf-8")
    campaign = tmp_path / "staff.toml"
    campaign.write_text(written["staff.toml"].replace("budget = 200\n", "budget = 2000\n"), encoding="utf-8")
    in_shell("python people.py 20000", cwd=tmp_path)
    bought = run_campaign(campaign, audit=False)
    record = Record.read(tmp_path / "staff" / "record.json")
    assert verify(record).ok
    assert record.outcome.bids.size == 20_000
    assert record.money is not None
    assert math.isclose(record.money.total / 100, 2000.0, rel_tol=0.05)  # with what rounding adds

    strata = columns(tmp_path / "prices.csv")["profession"]
    answers = columns(tmp_path / "answers.csv")
    assert bought.release is not None
    panel_is_off = []
    for found in bought.release.answers:
        said = answers[found.name]
        values = found.shares if found.question.kind == "choice" else {"": found.estimate}
        for answer, value in values.items():
            if found.question.kind == "number":
                data = said.astype(float)
            else:
                data = (said == (answer or "yes")).astype(float)
            truth = sum(share * float(data[strata == name].mean()) for name, share in SHARES.items())
            assert abs(value - truth) < 16.0 * found.worst_standard_error, (found.name, answer)
            panel_is_off.append(abs(float(data.mean()) - truth) / found.worst_standard_error)
    assert len(panel_is_off) == 7 + 4
    assert max(panel_is_off) > 4.0
