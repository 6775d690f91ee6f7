"""Draw the figures of the gallery: ``python -m experiments.paper_figures [NAME]...``, from the root of the repository.

Each is written as pictures and as the numbers behind them. Without a NAME all of them are made, which takes some
minutes; ``--quick`` takes one.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from experiments.paper_figures.figures import FIGURES, FORMATS, write_figures
from hushbid.errors import HushbidError


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw what the command line names; return its exit status."""
    options = _parser().parse_args(arguments)
    if options.list:
        print("\n".join(FIGURES))
        return 0
    try:
        paths = write_figures(
            options.names or list(FIGURES),
            options.out,
            formats=options.format or FORMATS,
            quick=options.quick,
            force=options.force,
            begin=lambda name: print(f"{name} ...", file=sys.stderr),
        )
    except HushbidError as problem:
        print(f"Error: {problem}", file=sys.stderr)
        return 2
    for path in paths:
        print(path)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m experiments.paper_figures", description="Draw figures.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="Figures to draw; all of them by default.")
    parser.add_argument("--out", type=Path, default=Path("out/figures"), help="Folder for the files.")
    parser.add_argument("--format", action="append", help="png, svg or csv; repeat for several. All by default.")
    parser.add_argument("--quick", action="store_true", help="Coarser, for a first look.")
    parser.add_argument("--force", action="store_true", help="Replace files that exist.")
    parser.add_argument("--list", action="store_true", help="Only name the figures.")
    return parser


if __name__ == "__main__":
    sys.exit(main())
