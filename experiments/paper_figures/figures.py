"""The paper's figures, reproduced and continued: each a picture and the numbers behind it.

A figure is made in two steps. A function of a sibling module (``figures_example``, ``figures_theory``,
``figures_landscape``, ``figures_attacks``, ``figures_baselines``, ``figures_goals``) computes tables and says how to
draw them; `write_figures` saves pictures and numbers. `FIGURES` lists them all:

    two-users       the nine panels of the paper's example
    worked-example  the paper's estimation example: what each way of weighing people errs by
    band            where the local setting gives somebody strictly better privacy than the central one
    minimax         minimax bounds against the error achieved
    growth          how many people are bought from, as there are more of them
    cap             what a cap on everybody's privacy loss costs
    wrong-prior     what believing in a wrong prior costs
    collusion       what two people gain by agreeing on their bids
    identities      what one person gains by taking part several times
    baselines          what the same accuracy would cost under other mechanisms
    schedule        what one person faces: her loss and her payment against her bid
    odds            what a privacy loss means: how sure somebody can become about a person
    promise         what a privacy loss limits: how much likelier an output is with one datum than with another
    landscape       why finding the optimum takes care: valleys that change places
    settings        what trust is worth: error and cost in both settings, as there are more people
    frontier        what a buyer can state: error against money, and four ways to choose a point
    relation        what protection against related prices and data costs, and what it saves

Pictures need matplotlib (the extra ``plot``); numbers do not.
"""

import io
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from hushbid.common.arrays import FloatArray
from hushbid.common.staging import Staging
from hushbid.errors import InputError, MissingExtra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

__all__ = ["FIGURES", "FORMATS", "PaperFigure", "make_figure", "picture", "write_figures"]

Table = dict[str, FloatArray]

FIGURES = {
    "two-users": "figures_example",
    "worked-example": "figures_example",
    "schedule": "figures_example",
    "odds": "figures_example",
    "promise": "figures_example",
    "landscape": "figures_landscape",
    "band": "figures_theory",
    "minimax": "figures_theory",
    "growth": "figures_theory",
    "settings": "figures_theory",
    "cap": "figures_attacks",
    "wrong-prior": "figures_attacks",
    "collusion": "figures_attacks",
    "identities": "figures_attacks",
    "baselines": "figures_baselines",
    "frontier": "figures_goals",
    "relation": "figures_goals",
}
"""Every figure, and the module that makes it (by a function of the same name, with underscores)."""

FORMATS = ("png", "svg", "csv")

# Okabe and Ito's colours, which people with any colour vision tell apart; lines differ in dashes and marks as well.
BLUE, ORANGE, GREEN, PINK, SKY, RED, BLACK = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
    "#333333",
)
Look = dict[str, Any]
CENTRAL: Look = {"color": BLUE, "marker": "o", "linestyle": "-"}
LOCAL: Look = {"color": RED, "marker": "s", "linestyle": "--"}
STYLES: dict[str, Look] = {"central": CENTRAL, "local": LOCAL}


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperFigure:
    """A figure before it is drawn."""

    name: str
    """Its key in `FIGURES`, and the name of its files."""

    title: str
    """One sentence that says what to see."""

    table: Table
    """The numbers: columns of equal length by name."""

    draw: Callable[["Canvas"], None]
    """Draw it on an empty canvas."""

    size: tuple[float, float] = (8.0, 3.4)
    """Width and height in inches."""

    def csv(self) -> str:
        """The numbers as comma-separated text, seven significant digits."""
        rows = zip(*(column.tolist() for column in self.table.values()), strict=True)
        lines = [",".join(self.table), *(",".join(f"{value:.7g}" for value in row) for row in rows)]
        return "\n".join(lines) + "\n"


def make_figure(name: str, *, quick: bool = False) -> PaperFigure:
    """Compute one figure; ``quick`` makes it coarse, for a first look and for tests."""
    _check_name(name)
    module = import_module(f"experiments.paper_figures.{FIGURES[name]}")
    made = getattr(module, name.replace("-", "_"))(quick)
    assert isinstance(made, PaperFigure)
    return made


def write_figures(
    names: Iterable[str],
    folder: str | Path,
    *,
    formats: Iterable[str] = FORMATS,
    quick: bool = False,
    force: bool = False,
    begin: Callable[[str], None] = lambda name: None,
) -> list[Path]:
    """Compute figures and save them in a folder, all or none; ``begin`` is told the name of each. Returns the paths."""
    wanted = list(formats)
    unknown = [one for one in wanted if one not in FORMATS]
    if unknown or not wanted:
        raise InputError(
            f"formats must be some of {', '.join(FORMATS)}, got {', '.join(wanted) or 'none'}.", field="formats"
        )
    chosen = list(names)
    for name in chosen:
        _check_name(name)
    paths = []
    with Staging(force=force) as files:
        for name in chosen:
            begin(name)
            figure = make_figure(name, quick=quick)
            for form in wanted:
                content = figure.csv().encode() if form == "csv" else picture(figure, form)
                paths.append(Path(folder) / f"{name}.{form}")
                files.add(paths[-1], _writer(content), private=False)
    return paths


def picture(figure: PaperFigure, form: str) -> bytes:
    """The picture as PNG or SVG; the same numbers give the same bytes."""
    try:
        import matplotlib as mpl
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure as Canvas
    except ImportError:
        raise MissingExtra(
            "pictures need matplotlib: pip install '.[plot]' in a checkout, or ask for csv only."
        ) from None
    with mpl.rc_context(_RC):
        canvas = Canvas(figsize=figure.size, layout="constrained")
        FigureCanvasAgg(canvas)
        figure.draw(canvas)
        file = io.BytesIO()
        metadata = {"Date": None} if form == "svg" else {"Software": None}
        canvas.savefig(file, format=form, dpi=110, metadata=metadata)
    return file.getvalue()


def log_axes(axes: "Axes", *, x: str, y: str, title: str) -> None:
    """Logarithmic axes with labels and a light grid."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    labelled(axes, x=x, y=y, title=title)


def labelled(axes: "Axes", *, x: str, y: str, title: str) -> None:
    """Labels and a light grid."""
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(title)
    axes.grid(visible=True, which="major", linewidth=0.4, color="#cccccc")
    axes.set_axisbelow(True)


_RC: dict[Any, Any] = {
    "font.family": "DejaVu Sans",  # ships with matplotlib: the same picture everywhere
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.6,
    "lines.markersize": 3.5,
    "svg.hashsalt": "hushbid",
    "svg.fonttype": "path",
    "savefig.facecolor": "white",
}


def _check_name(name: str) -> None:
    if name not in FIGURES:
        raise InputError(f"a figure must be one of {', '.join(FIGURES)}, got {name!r}.")


def _writer(content: bytes) -> Callable[[BinaryIO], object]:
    return lambda file: file.write(content)
