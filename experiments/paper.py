"""Reproduce the paper: its two examples, the band, the minimax bounds, how many people are bought from.

Run from the root of the repository: ``python experiments/paper.py``; ``hushbid figures`` makes any of them.
"""

from hushbid.paper.figures import write_figures

FIGURES = ["two-users", "worked-example", "band", "minimax", "growth"]

if __name__ == "__main__":
    for path in write_figures(FIGURES, "out/figures", force=True, begin=lambda name: print(f"{name} ...")):
        print(path)
