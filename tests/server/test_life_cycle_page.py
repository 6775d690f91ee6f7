"""docs/reference/life-cycle.md names every state and every event, and no others."""

import re
from pathlib import Path

from hushbid.server.model.states import CampaignState, ParticipantState

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "life-cycle.md").read_text(encoding="utf-8")
SOURCES = [path.read_text() for path in (ROOT / "src" / "hushbid" / "server" / "service").glob("*.py")]


def first_cells(heading: str) -> set[str]:
    """The code words in the first column of the table under a heading."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    cells = re.findall(r"^\| ([^|]+) \|", section, flags=re.MULTILINE)
    return {word for cell in cells for word in re.findall(r"`([\w-]+)`", cell)}


def test_every_state_is_described() -> None:
    assert first_cells("A campaign") == {state.value for state in CampaignState}
    assert first_cells("A person in it") == {state.value for state in ParticipantState}


def test_every_event_is_described() -> None:
    called = re.compile(r"(?:events\.append|ending\.sealed|sealed)\(\s*tx, [\w.]+, \"([\w-]+)\"")
    kinds = {kind for source in SOURCES for kind in called.findall(source)} | {"bid", "bid-changed"}
    assert first_cells("The log") == kinds
