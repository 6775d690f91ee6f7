"""Reproduce what the same accuracy would cost under other mechanisms.

Run from the root of the repository: ``python experiments/baselines.py``; ``hushbid figures`` makes any of them.
"""

from hushbid.paper.figures import write_figures

FIGURES = ["baselines"]

if __name__ == "__main__":
    for path in write_figures(FIGURES, "out/figures", force=True, begin=lambda name: print(f"{name} ...")):
        print(path)
