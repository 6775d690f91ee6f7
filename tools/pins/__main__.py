"""Compare every page with that of an earlier commit: ``make pins``, or ``python -m tools.pins --help``.

Pages are normalised texts in ``build/pins/COMMIT`` and ``build/pins/now``, for each state, role and language. Where
numbers are drawn by chance, digits are not compared.
"""

import argparse
import difflib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOUR = ROOT / "tests" / "server" / "pages" / "tour.py"
KEPT = ROOT / "build" / "pins"


def main() -> int:
    """Make both sets of pages, print their differences, and return 1 if there are any."""
    parser = argparse.ArgumentParser(prog="make pins", description=__doc__)
    parser.add_argument("commit", nargs="?", default="HEAD", help="compare with this commit (default: HEAD)")
    parser.add_argument("--show", type=int, default=40, help="so many different pairs of lines")
    options = parser.parse_args()
    old, new = _earlier(options.commit), _made(ROOT, KEPT / "now.json")
    differences: Counter[tuple[str, ...]] = Counter()
    first: dict[tuple[str, ...], str] = {}
    for name in sorted(old.keys() | new.keys()):
        changed = _changed(_lines(name, old), _lines(name, new))
        for one in changed:
            differences[one] += 1
            first.setdefault(one, name)
    for one, count in differences.most_common(options.show):
        print(f"{count} ×, first in {first[one]}:", *one, sep="\n  ")
    print(f"pins: {len(new)} pages, {len(differences)} different passages")
    return 1 if differences else 0


def _lines(name: str, pages: dict[str, str]) -> list[str]:
    text = pages.get(name, "no such page")
    if name.startswith("noisy"):
        text = re.sub(r"\d+", "0", re.sub(r"(\d)\.\d+(?=[\", ])", r"\1", text))
    return text.split("\n")


def _changed(old: list[str], new: list[str]) -> list[tuple[str, ...]]:
    """Passages that differ, each with a sign before each of its lines."""
    found = []
    for kind, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind != "equal":
            found.append((*(f"- {line}" for line in old[a:b]), *(f"+ {line}" for line in new[c:d])))
    return found


def _earlier(commit: str) -> dict[str, str]:
    full = _git("rev-parse", f"{commit}^{{commit}}").decode().strip()
    makers = b"".join(
        path.read_bytes() for path in [TOUR, *sorted(Path(__file__).parent.glob("*.py"))] if path.name != "__main__.py"
    )
    kept = KEPT / f"{full[:12]}-{hash_of(makers)}.json"
    if kept.exists():
        return dict(json.loads(kept.read_text()))
    tree = KEPT / full
    if not tree.exists():
        with tarfile.open(fileobj=io.BytesIO(_git("archive", full, "src", "tests"))) as archive:
            archive.extractall(tree, filter="data")
    return _made(tree, kept)


def hash_of(content: bytes) -> str:
    import hashlib

    return hashlib.sha256(content).hexdigest()[:12]


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=True).stdout


def _made(tree: Path, target: Path) -> dict[str, str]:
    """The pages of the version in a tree, made in a process of its own."""
    target.parent.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "PYTHONPATH": f"{tree / 'src'}:{tree}", "PYTHONDONTWRITEBYTECODE": "1"}
    worker = str(ROOT / "tools" / "pins" / "worker.py")
    subprocess.run([sys.executable, worker, str(tree), str(target)], cwd=tree, env=environment, check=True)
    return dict(json.loads(target.read_text()))


if __name__ == "__main__":
    raise SystemExit(main())
