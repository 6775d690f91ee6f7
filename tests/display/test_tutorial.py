"""The tutorial's notebook runs from top to bottom in a real kernel, and its results and progress are shown there."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).parents[2] / "docs" / "tutorials" / "notebook.ipynb"
HALF = "from hushbid.display import progress\nbar = progress('<b>half</b>')\nbar(1, 2)"
DONE = "again = progress('all')\nagain(1, 2)\nagain(2, 2)"


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The cells with code of the tutorial, and two more with a bar, after all of it has run."""
    home = tmp_path_factory.mktemp("notebook")
    ours = {"IPYTHONDIR": "ipython", "JUPYTER_RUNTIME_DIR": "runtime"}
    subprocess.run(
        [sys.executable, Path(__file__).parent / "play.py", NOTEBOOK, home / "played.ipynb", HALF, DONE],
        cwd=home,
        env={**os.environ, "JUPYTER_PREFER_ENV_PATH": "1", **{name: str(home / value) for name, value in ours.items()}},
        check=True,
        timeout=280,
    )
    played = json.loads((home / "played.ipynb").read_text(encoding="utf-8"))
    return [cell for cell in played["cells"] if cell["cell_type"] == "code"]


def shown(cell: dict[str, Any], kind: str = "text/html") -> str:
    found = [output["data"].get(kind, "") for output in cell["outputs"] if "data" in output]
    return "".join(text for lines in found for text in lines)


def test_the_notebook_is_kept_without_outputs() -> None:
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
        assert cell.get("outputs", []) == []
        assert cell.get("execution_count") is None


def test_the_tutorial_runs_and_shows_a_card_or_a_picture_for_every_result(cells: list[dict[str, Any]]) -> None:
    titles = ["Market", "Plan", "Outcome", "Release", "Holds: everything", "Other ways to buy"]
    cards = [shown(cell) for cell in cells if "hushbid-card" in shown(cell)]
    assert len(cards) == len(titles)
    for title, card in zip(titles, cards, strict=True):
        assert f'<p class="title">{title}' in card
    drawn = [cell for cell in cells if "".join(cell["source"]).startswith("charts.")]
    assert len(drawn) == 5
    assert all(shown(cell, "image/svg+xml") for cell in drawn)
    assert not [output for cell in cells for output in cell["outputs"] if output["output_type"] == "stream"]


def test_progress_is_a_bar_below_the_cell_and_gone_at_the_end(cells: list[dict[str, Any]]) -> None:
    half, done = cells[-2:]
    assert 'value="50"' in shown(half)
    assert "&lt;b&gt;half" in shown(half)
    assert "<b>" not in shown(half)
    assert "half" in shown(half, "text/plain")
    assert len(done["outputs"]) == 1
    assert shown(done) == shown(done, "text/plain") == ""
