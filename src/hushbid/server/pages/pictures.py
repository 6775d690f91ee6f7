"""Pictures with a scale, drawn on the server: no picture needs a script, and each says in words what it shows."""

import math

from markupsafe import Markup

from hushbid.report.svg import (
    Drawing,
    Scale,
    axis_x,
    axis_y,
    line,
    margin_for,
    mark,
    picture,
    round_scale,
    rule,
)
from hushbid.server.model.views import MenuView
from hushbid.server.pages.wording import Texts, Writing

_TENTH = 1.2815515655446004
"""The 90 % quantile of the standard normal distribution."""

_PRICES, _DECADES = 400.0, 5
STATE_COLOURS = {
    "invited": "p-waiting",
    "bid": "p-bid",
    "promised": "p-promised",
    "delivered": "p-delivered",
    "not_bought": "p-idle",
    "declined": "p-out",
    "absent": "p-absent",
    "dropped": "p-lost",
    "withdrawn": "p-gone",
    "excluded": "p-absent",
}
"""How each state of a person is coloured; also the order in which they are drawn."""


def menu_chart(t: Texts, w: Writing, menu: MenuView, step: float, *, price: float | None, currency: str) -> Markup:
    """Payment against the price that is asked for, with a line at her own, twice: for desks and for phones."""
    drawn = [
        _shown(
            _menu_drawing(t, w, menu, step, width, price=price, currency=currency),
            name=f"menu-{kind}",
            title=t("Expected payment for each price"),
            description=t(
                "A curve that does not rise: the higher the price somebody names, the less is bought from"
                " her and the less she is paid on average, or just as much. The table below has the numbers."
            ),
            class_=kind,
        )
        for kind, width in (("wide", 704.0), ("narrow", 344.0))
    ]
    return Markup("").join(drawn)


def _menu_drawing(
    t: Texts, w: Writing, menu: MenuView, step: float, width: float, *, price: float | None, currency: str
) -> Drawing:
    height, top, bottom = 250.0, 30.0, 46.0
    prices = [bid * step for bid in menu.bids[: menu.usual]]  # dearer ones would squeeze these together
    payments = menu.payment[: menu.usual]
    paid = round_scale([0.0, *payments], height - bottom, top, wanted=4)
    left = margin_for(paid, wanted=4, write=w.number)
    across = Scale(prices[0], prices[-1], left, width - 12.0)
    points = [(across(x), paid(y)) for x, y in zip(prices, payments, strict=True)]
    marks: list[Markup] = [
        *axis_y(
            paid,
            left,
            width - 12.0,
            t("Payment on average, in {currency}", currency=currency),
            wanted=4,
            write=w.number,
        ),
        *axis_x(across, height - bottom, t("Price named, in {currency}", currency=currency), wanted=5, write=w.number),
        line(points, "l1"),
    ]
    here = across(min(max(price, prices[0]), prices[-1])) if price is not None else across(prices[0])
    marks.append(
        mark(
            "g",
            rule(0, top, 0, height - bottom, "dash"),
            class_="menu-mark" if price is not None else "menu-mark unmarked",
            transform=f"translate({here:.1f} 0)",
            data_from=f"{across.start:.1f}",
            data_to=f"{across.end:.1f}",
        )
    )
    return Drawing(width=width, height=height, marks=tuple(marks))


def price_chart(t: Texts, w: Writing, low: float, high: float, *, currency: str, decimals: int) -> Markup:
    """How prices are spread if one in ten asks less than ``low`` and one in ten more than ``high``: log-normally.

    Prices stand on a logarithmic scale from the smallest coin up, the one of the two sliders below it, so the curve is
    a bell between the two marks; ``draft.js`` draws it again when one of them moves.
    """
    across = Scale(-float(decimals), _DECADES - float(decimals), _PRICES / 20.0, _PRICES * 19.0 / 20.0)
    at = [across(min(max(math.log10(one), across.low), across.high)) for one in (low, high)]
    middle, spread = (at[0] + at[1]) / 2.0, max((at[1] - at[0]) / (2.0 * _TENTH), 1.0)
    bell = [(middle + spread * z, 80.0 - 60.0 * math.exp(-0.5 * z * z)) for z in (k / 10.0 for k in range(-35, 36))]
    marks = [
        *(
            mark(
                "text",
                w.number(10.0**decade, 1),
                x=f"{across(decade):.1f}",
                y="96",
                class_="tick",
                text_anchor="middle",
            )
            for decade in range(-decimals, _DECADES - decimals + 1)
        ),
        line(bell, "l1 price-bell"),
        rule(across.start, 80.0, across.end, 80.0, "axis"),
        *(
            mark(
                "g",
                rule(0, 22.0, 0, 80.0, "dash"),
                class_="price-mark",
                transform=f"translate({x:.1f} 0)",
                data_price=name,
            )
            for name, x in zip(("low", "high"), at, strict=True)
        ),
    ]
    description = t(
        "A bell between {low} and {high} {currency}, on a scale on which each step is ten times the one before.",
        low=w.number(low, 3),
        high=w.number(high, 3),
        currency=currency,
    )
    drawn = Drawing(width=_PRICES, height=102.0, marks=tuple(marks))
    return _shown(
        drawn, name="prices-picture", title=t("How prices are spread"), description=description, class_="prices"
    )


def _shown(drawing: Drawing, *, name: str, title: str, description: str, class_: str = "") -> Markup:
    return Markup(picture(drawing, name=name, title=title, description=description, class_=class_))
