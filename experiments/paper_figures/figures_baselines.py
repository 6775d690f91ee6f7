"""What the same accuracy would cost elsewhere, as people differ more and more."""

import math
from typing import TYPE_CHECKING

import numpy as np

from experiments.paper_figures.figures import BLACK, GREEN, ORANGE, PINK, SKY, STYLES, Look, PaperFigure, labelled
from hushbid.baselines import Baseline, FirstBest, FixedAccuracy, NearOptimal, PostedPrice, UniformLoss, compare
from hushbid.common.arrays import FloatArray
from hushbid.mechanism import Market
from hushbid.priors import Uniform

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

__all__ = ["baselines"]

SHOWN: tuple[type[Baseline], ...] = (FirstBest, NearOptimal, PostedPrice, FixedAccuracy, UniformLoss)
LOOKS: tuple[Look, ...] = (
    {"color": GREEN, "linestyle": "-", "marker": "v"},
    {"color": SKY, "linestyle": "--", "marker": "D"},
    {"color": ORANGE, "linestyle": "-.", "marker": "^"},
    {"color": PINK, "linestyle": ":", "marker": "s"},
    {"color": BLACK, "linestyle": "-", "marker": "x"},
)


def baselines(quick: bool = False) -> PaperFigure:
    """What each baseline pays for our error, relative to us; sensitivities uniform on [1, top] for growing tops."""
    tops = np.array([1.2, 6.0] if quick else [1.1, 1.3, 1.6, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0])
    table: dict[str, FloatArray] = {"top": tops}
    for setting in STYLES:
        found = []
        for top in tops.tolist():
            market = Market(
                prior=Uniform(1.0, top),
                setting=setting,  # type: ignore[arg-type]
                user_weight=0.0,
                buyer_weight=10_000.0,
            )
            result = compare(
                market, people=100, rng=np.random.default_rng(1), populations=2 if quick else 24, baselines=SHOWN
            )
            found.append([row.payment_for_same_error / result.ours.total_payment for row in result.baselines])
        for baseline, column in zip(SHOWN, np.array(found).T, strict=True):
            table[f"{setting}_{baseline.__name__}"] = column

    def draw(canvas: "Canvas") -> None:
        panels = canvas.subplots(1, 2, sharex=True)
        for panel, setting in zip(panels, STYLES, strict=True):
            for baseline, look in zip(SHOWN, LOOKS, strict=True):
                values = table[f"{setting}_{baseline.__name__}"]
                name = baseline.name if np.isfinite(values).any() else f"{baseline.name}: out of reach"
                panel.plot(tops, np.where(np.isfinite(values), values, math.nan), label=name, **look)
            panel.axhline(1.0, color=BLACK, linewidth=0.7)
            panel.set_xscale("log")
            panel.set_xticks([1, 2, 5, 10, 20], ["1", "2", "5", "10", "20"])
            labelled(panel, x="sensitivities uniform on [1, x]", y="", title=setting)
            panel.set_ylim(0.5, 2.6)
        panels[0].set_ylabel("payment for our accuracy / our payment")
        panels[0].legend(fontsize=7, loc="upper left")

    return PaperFigure(
        name="baselines",
        title="What other mechanisms pay for our accuracy, a hundred people: the more people differ, the more.",
        table=table,
        draw=draw,
        size=(9.0, 3.8),
    )
