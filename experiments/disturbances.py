"""Reproduce what a cap, a wrong prior, collusion and several identities do to a market.

Run from the root of the repository: ``python experiments/disturbances.py``; ``hushbid figures`` makes any of them.
"""

from hushbid.paper.figures import write_figures

FIGURES = ["cap", "wrong-prior", "collusion", "identities"]

if __name__ == "__main__":
    for path in write_figures(FIGURES, "out/figures", force=True, begin=lambda name: print(f"{name} ...")):
        print(path)
