"""Reproduce the pictures of the explanations: what one person faces, what a privacy loss means, what trust is worth,
what buyers can state and what protection costs.

Run from the root of the repository: ``python experiments/explanations.py``; ``hushbid figures`` makes any of them.
"""

from hushbid.paper.figures import write_figures

FIGURES = ["promise", "odds", "schedule", "settings", "landscape", "frontier", "relation"]

if __name__ == "__main__":
    for path in write_figures(FIGURES, "out/figures", force=True, begin=lambda name: print(f"{name} ...")):
        print(path)
