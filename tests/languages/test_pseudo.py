"""Adding a language is adding one catalogue: with one more file every sentence of every page is in that language."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

from hushbid import Market, Uniform
from hushbid.report import build_report, render_report
from tests.languages.pseudo import CODE, Visible, pseudo_catalogue
from tools.catalogues import SOURCE, extracted, written

ROOT = Path(__file__).parents[2]
WORD = re.compile(r"[A-Za-z]{3,}")
NAMES = re.compile(r"HB-[\w-]+|/c/\w+|\b[0-9a-f]{12,}\b|\b(?:uniform|lognormal):[\d.,]+|\bopendp\b")
"""References, identifiers, priors and packages, which are called the same in all languages."""

DATA = {
    *("Hushbid", "hushbid", "EUR", "UTC", "CSV", "Excel", "JSON", "IBAN", "SHA", "English", "Deutsch", "ann", "otto"),
    *("Hours", "hours", "sleep", "How", "many", "did", "you", "last", "night", "yes", "rested", "tired", "employer"),
    *("Did", "take", "anything", "your", "Less", "than", "Institute", "privacy", "example", "org", "study", "Ten"),
    *("years", "nurses", "For", "the", "council", "Nobody", "else", "rained", "Copy", "LogNormal", "Uniform"),
}
"""What people typed, and names that are the same in all languages."""


def report_pages(language: str) -> dict[str, str]:
    """A report of a campaign of each setting."""
    prior = Uniform(1.0, 2.0)  # decided about at once
    bids = prior.sample(60, rng=np.random.default_rng(5))
    found = {}
    for setting, weight in (("central", 3000.0), ("local", 30000.0)):
        market = Market(prior=prior, buyer_weight=weight, setting=setting, max_privacy_loss=0.4)
        report = build_report(market.acquire(bids), title="Hours", currency="EUR", language=language)
        found[f"report {setting}"] = render_report(report)
    return found


def test_with_one_more_catalogue_no_sentence_of_any_page_stays_english(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(SOURCE, copy / "hushbid")
    (copy / "hushbid" / "languages" / f"{CODE}.po").write_bytes(written(pseudo_catalogue(extracted())))
    target = tmp_path / "pages.json"
    command = [sys.executable, "-m", "tests.languages.pseudo", str(copy), str(target)]
    environment = {**os.environ, "PYTHONPATH": f"{copy}{os.pathsep}{ROOT}"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    pages: dict[str, str] = json.loads(target.read_text(encoding="utf-8"))
    assert len(pages) > 300
    english = {
        (word, name)
        for name, page in pages.items()
        if f'lang="{CODE}"' in page
        for text in Visible(page).texts
        for word in WORD.findall(NAMES.sub("", text))
        if word not in DATA
    }
    assert english == set()
