"""Compare decisions with those of an earlier commit: ``make compare``, or ``python -m tools.comparison --help``.

Decisions of the earlier commit are kept in ``build/compare`` and not computed again, until the market's description or
the worker changes. Times are for orientation only: the two versions may have run under different loads.
"""

import argparse
import hashlib
import io
import os
import pickle
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

from tools.comparison.differences import Difference, difference
from tools.comparison.markets import Case, cases
from tools.comparison.worker import Result

ROOT = Path(__file__).resolve().parents[2]
BASE = "b49851e5"
"""The commit whose decisions are trusted: the last one before the allocation core was rewritten."""

_BATCH = 100
"""Earlier decisions are kept after so many markets, so that an interrupted comparison goes on where it was."""

_COLUMNS = ("objective", "mse", "loss", "payment", "bound")


def main() -> int:
    """Compare, print a table, and return 1 if a market is outside tolerance."""
    options = _options()
    wanted = [case for case in cases(options.size) if set(options.only) <= case.words]
    wanted = [case for case in wanted if not set(options.without) & case.words]
    if not wanted:
        print("compare: no market has all of these words; --words lists them", file=sys.stderr)
        return 2
    old = _earlier(options.commit, wanted, options.cache, options.seconds)
    new = _decide(ROOT, wanted, options.seconds)
    found = [difference(case, old[case], new[case]) for case in wanted]
    _print_table(found, old, new)
    _print_refusals(new)
    _print_slower(old, new)
    return _print_outside(found, options.show)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make compare", description=__doc__)
    parser.add_argument("commit", nargs="?", default=BASE, help=f"compare with this commit (default: {BASE})")
    parser.add_argument("--only", nargs="+", default=[], help="markets that have all of these words")
    parser.add_argument("--without", nargs="+", default=[], help="leave out markets that have one of these words")
    parser.add_argument("--size", choices=("small", "large", "all"), default="small")
    parser.add_argument("--seconds", type=float, default=10.0, help="the longest that one market may take")
    parser.add_argument("--show", type=int, default=20, help="so many markets outside tolerance, of each kind")
    parser.add_argument(
        "--cache", type=Path, default=ROOT / "build" / "compare", help="where earlier decisions are kept"
    )
    parser.add_argument("--words", action="store_true", help="list the words that select markets, and stop")
    options = parser.parse_args()
    if options.words:
        print(" ".join(sorted(set().union(*(case.words for case in cases("all"))))))
        raise SystemExit(0)
    return options


def _earlier(commit: str, wanted: list[Case], cache: Path, seconds: float) -> dict[Case, Result]:
    """Decisions of an earlier commit: those that are kept, and the others."""
    full = subprocess.run(
        ["git", "rev-parse", f"{commit}^{{commit}}"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()
    tree = cache / full
    if not tree.exists():
        _unpack(full, tree)
    makers = b"".join((Path(__file__).parent / name).read_bytes() for name in ("worker.py",))
    kept = cache / f"{full[:12]}-{hashlib.sha256(makers).hexdigest()[:12]}.pickle"
    found: dict[Case, Result] = pickle.loads(kept.read_bytes()) if kept.exists() else {}
    missing = [case for case in wanted if case not in found]
    for start in range(0, len(missing), _BATCH):
        found |= _decide(tree, missing[start : start + _BATCH], seconds)
        partial = kept.with_suffix(f".{os.getpid()}")
        partial.write_bytes(pickle.dumps(found))
        partial.replace(kept)
    return found


def _unpack(commit: str, tree: Path) -> None:
    """The files of a commit, in a folder that appears only when it is complete."""
    tree.parent.mkdir(parents=True, exist_ok=True)
    packed = subprocess.run(["git", "archive", commit, "src"], cwd=ROOT, capture_output=True, check=True).stdout
    with tempfile.TemporaryDirectory(dir=tree.parent) as folder:
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(folder, filter="data")
        Path(folder, "src").rename(Path(folder, "done"))
        target = Path(folder, "tree")
        target.mkdir()
        Path(folder, "done").rename(target / "src")
        target.rename(tree)


def _decide(tree: Path, wanted: list[Case], seconds: float) -> dict[Case, Result]:
    """What the version in a tree decides, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "cases"), Path(folder, "results")
        source.write_bytes(pickle.dumps(wanted))
        environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-m", "tools.comparison.worker", str(tree), str(source), str(target), str(seconds)]
        subprocess.run(command, cwd=ROOT, env=environment, check=True)
        results: dict[Case, Result] = pickle.loads(target.read_bytes())
        return results


def _print_table(found: list[Difference], old: dict[Case, Result], new: dict[Case, Result]) -> None:
    """The worst deviation of each kind of market."""
    kinds: dict[str, list[Difference]] = defaultdict(list)
    for one in found:
        kinds[one.case.kind].append(one)
    width = max(map(len, kinds))
    heads = "".join(f"{name:>10}" for name in _COLUMNS)
    print(f"{'kind':{width}} markets refused outside{heads}   seconds then  now")
    for kind, members in kinds.items():
        refused = sum(old[one.case].refusal is not None for one in members)
        outside = sum(bool(one.outside) for one in members)
        worst = "".join(f"{_worst(members, name):>10}" for name in _COLUMNS)
        times = [sum(results[one.case].seconds for one in members) for results in (old, new)]
        print(f"{kind:{width}}{len(members):8}{refused:8}{outside:8}{worst}{times[0]:15.1f}{times[1]:6.1f}")


def _worst(members: list[Difference], name: str) -> str:
    values = [one.deviations[name] for one in members if name in one.deviations]
    return f"{max(values):.1e}" if values else "-"


def _print_refusals(new: dict[Case, Result]) -> None:
    """How often each class of error was raised: anything but a refusal of the library is a mistake."""
    counts = Counter(result.refusal[0] for result in new.values() if result.refusal is not None)
    print("\nrefusals now: " + ", ".join(f"{name} {count}" for name, count in counts.most_common()))


def _print_slower(old: dict[Case, Result], new: dict[Case, Result]) -> None:
    """Markets that take much longer than before."""
    slower = sorted(new, key=lambda case: new[case].seconds - old[case].seconds, reverse=True)
    slower = [case for case in slower if new[case].seconds > max(2.0 * old[case].seconds, 0.5)][:5]
    if slower:
        print("\nmuch slower than before (for orientation):")
    for case in slower:
        print(f"  {old[case].seconds:8.2f} s then {new[case].seconds:8.2f} s now  {case.name}")


def _print_outside(found: list[Difference], show: int) -> int:
    """Every market outside tolerance, up to so many of each kind; the exit status."""
    outside = [one for one in found if one.outside]
    shown: dict[str, int] = defaultdict(int)
    for one in outside:
        shown[one.case.kind] += 1
        if shown[one.case.kind] <= show:
            print(f"\n{one.case.name}")
            for line in one.outside:
                print(f"    {line}")
    hidden = sum(max(count - show, 0) for count in shown.values())
    print(f"\ncompare: {len(found)} markets, {len(outside)} outside tolerance", end="")
    print(f", {hidden} of them not shown (--show)" if hidden else "")
    return 1 if outside else 0


if __name__ == "__main__":
    sys.exit(main())
