"""The documentation builds without a warning, opens offline, and its generated parts are right."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import hushbid
from benchmarks.harness import Row
from benchmarks.page import BEGIN, END, filled
from experiments.paper_figures.figures import FIGURES
from experiments.paper_figures.figures_example import most_sure

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def site(once_a_run: Callable[[str, Callable[[Path], None]], Path]) -> Path:
    """The built site."""
    return once_a_run("site", build)


def build(folder: Path) -> None:
    """Build the site; ``--strict`` makes every warning (a broken link, a page outside the navigation) an error."""
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr


def test_the_site_builds_without_warnings_and_asks_for_nothing_outside(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 20
    loaded = re.compile(r"""<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)=["']?(?:https?:)?//""")
    for page in pages:
        assert not loaded.search(page.read_text(encoding="utf-8")), page
    for sheet in site.rglob("*.css"):
        assert not re.search(r"url\(\s*[\"']?https?:|@import", sheet.read_text(encoding="utf-8")), sheet


def test_every_page_is_of_a_known_kind_or_named_at_the_top(site: Path) -> None:
    kinds = {"tutorials", "how-to", "concepts", "reference", "decisions"}
    alone = {"index.md", "gallery.md", "benchmarks.md", "architecture.md"}
    for page in DOCS.rglob("*.md"):
        place = page.relative_to(DOCS)
        assert place.parts[0] in kinds | alone, place
        assert (site / place.with_suffix(".html")).exists() or place.name == "README.md", place


def test_the_api_page_describes_every_public_name(site: Path) -> None:
    page = (site / "reference" / "api.html").read_text(encoding="utf-8")
    names = [name for name in hushbid.__all__ if callable(getattr(hushbid, name))]
    assert len(names) > 15
    for name in names:
        home = getattr(hushbid, name).__module__.split(".")[1]
        assert f'id="hushbid.{home}.{name}"' in page, name
    assert "<!-- api -->" not in page


def test_formulas_are_raised_and_lowered_in_prose_and_left_alone_in_code(site: Path) -> None:
    purchase = (site / "concepts" / "purchase.html").read_text(encoding="utf-8")
    assert "n<sup>5/6</sup>" in purchase
    proofs = (site / "concepts" / "proofs.html").read_text(encoding="utf-8")
    assert "ψ<sub>i</sub> ≥ 0" in proofs
    prose = re.sub(r"<pre\b.*?</pre>|<code\b.*?</code>|<title>.*?</title>", "", proofs, flags=re.DOTALL)
    assert "^{" not in prose
    for code in re.findall(r"<code\b.*?</code>", proofs, flags=re.DOTALL):
        assert "<sub>" not in code
        assert "<sup>" not in code
    assert "user_weight" in (site / "reference" / "market.html").read_text(encoding="utf-8")


def test_every_figure_is_shown_in_the_gallery_with_words_for_those_who_cannot_see_it() -> None:
    gallery = (DOCS / "gallery.md").read_text(encoding="utf-8")
    shown = dict(re.findall(r"!\[([^\]]+)\]\(figures/([\w-]+)\.svg\)", gallery))
    assert set(shown.values()) == set(FIGURES)
    assert all(len(words) > 15 for words in shown)
    for page in DOCS.rglob("*.md"):
        assert not re.search(r"!\[\]\(", page.read_text(encoding="utf-8")), page


def test_the_table_of_odds_holds_bounds() -> None:
    page = (DOCS / "concepts" / "privacy.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\d.]+) \| ([\d.]+) \| ([\d.]+) % \| ([\d.]+) % \|$", page, flags=re.MULTILINE)
    assert len(rows) == 7
    for loss, factor, even, rare in (tuple(map(float, row)) for row in rows):
        assert 1.0 <= factor / 2.718281828459045**loss < 1.01
        assert 0.0 <= even - 100 * float(most_sure(0.5, loss)) < 0.1
        assert 0.0 <= rare - 100 * float(most_sure(0.01, loss)) < 0.1


def test_benchmarks_are_written_between_their_marks_again_and_again() -> None:
    page = (DOCS / "benchmarks.md").read_text(encoding="utf-8")
    rows = [
        Row(what="pricing", against="np.sort", ratio=0.5, limit=1.5, ours="1 s", theirs="2 s"),
        Row(what="releasing", against="NumPy", ratio=9.0, limit=4.0, ours="9 s", theirs="1 s"),
        Row(what="starting", against="python", ratio=2.0),
    ]
    once = filled(page, rows, "Measured here.")
    assert "1 of 2 promised limits were kept" in once
    assert once.index("| releasing | NumPy | 9 | 4 |") < once.index("| pricing | np.sort | 0.5 | 1.5 |")
    assert filled(once, rows, "Measured here.") == once
    assert once.count(BEGIN) == once.count(END) == 1
    with pytest.raises(SystemExit, match="marks"):
        filled("no marks", rows, "")
