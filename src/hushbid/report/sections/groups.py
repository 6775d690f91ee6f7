"""Who was bought from, by group."""

from collections.abc import Sequence

from hushbid.languages import noted
from hushbid.report.language import count, number, percent, say
from hushbid.report.material import Material
from hushbid.report.suppression import GroupRow, as_labels, group_rows
from hushbid.report.svg import (
    NARROW,
    Chart,
    Drawing,
    Table,
    axis_x,
    dot,
    label,
    round_scale,
    rule,
    shortened,
    text_width,
)

ANCHOR, TITLE = "people", noted("Who was bought from")


def facts_of(material: Material) -> tuple[GroupRow, ...] | None:
    """One row per group, by default of the prior's or stratum; None if there are none, () if they are all too small."""
    outcome, groups = material.outcome, material.groups
    groups = outcome.population.labels if groups is None else groups
    groups = outcome.market.strata if groups is None else groups
    return None if groups is None else group_rows(outcome, as_labels(groups, outcome.bids.size))


def chart(rows: Sequence[GroupRow]) -> Chart:
    """Each group's share of people against its share of the estimate."""
    return Chart(
        name="groups",
        title=say("Who the estimate listens to"),
        description=say("For each group its share of people and its share of the estimate; the table has the numbers."),
        draw=lambda width: _shares(rows, width),
    )


def _shares(rows: Sequence[GroupRow], width: float) -> Drawing:
    narrow = width == NARROW
    step = 50.0 if narrow else 36.0
    left = 8.0 if narrow else min(max(text_width(row.name) for row in rows) + 20.0, 270.0)
    shares = [share for row in rows for share in (row.share_of_people, row.share_of_weight) if share is not None]
    bottom = 26.0 + step * len(rows)
    scale = round_scale(shares, left, width - 26, wanted=4 if narrow else 6)
    marks = axis_x(scale, bottom, say("share"), wanted=4 if narrow else 6, write=percent, top=14)
    for place, row in enumerate(rows):
        y = 26.0 + step * (place + (0.72 if narrow else 0.5))
        name = shortened(row.name, width - 20 if narrow else left - 14)
        marks.append(label(2, y - 16, name) if narrow else label(left - 12, y + 4, name, anchor="end"))
        if row.share_of_weight is not None:
            marks.append(rule(scale(row.share_of_people), y, scale(row.share_of_weight), y, "link"))
        marks.append(dot(scale(row.share_of_people), y, 6, "hollow"))
        if row.share_of_weight is not None:
            marks.append(dot(scale(row.share_of_weight), y, 6.5, "s1"))
    return Drawing(width=width, height=bottom + 46, marks=tuple(marks))


def table(rows: Sequence[GroupRow]) -> Table:
    """Everything that is told about groups."""
    return Table(
        head=(
            say("Group"),
            say("People"),
            say("Bought from"),
            say("Share of people"),
            say("Share of the estimate"),
            say("Share of payments"),
            say("ε per person"),
        ),
        rows=tuple(
            (
                row.name,
                count(row.people),
                f"{count(row.bought_from)} ({percent(row.bought_from / row.people)})",
                percent(row.share_of_people),
                *(_or_withheld(share) for share in (row.share_of_weight, row.share_of_payment)),
                say("withheld") if row.mean_loss is None else number(row.mean_loss),
            )
            for row in rows
        ),
    )


def _or_withheld(share: float | None) -> str:
    return say("withheld") if share is None else percent(share)
