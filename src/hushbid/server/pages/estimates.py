"""An estimate as pages show it: no more digits than its error leaves, and an interval that holds as it is written."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Decimal
from typing import Any

from markupsafe import Markup

from hushbid.server.pages import pictures
from hushbid.server.pages.numbers import Writing
from hushbid.server.pages.texts import Texts


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownEstimate:
    """An estimate in words and, unless it is one of several shares, as a picture."""

    name: str
    """Of which question; empty where one number was asked for."""

    value: str
    """Rounded to what its error leaves, with its unit."""

    sentence: str
    """How far off it may be."""

    picture: Markup


def shown_estimates(
    t: Texts, w: Writing, release: Mapping[str, Any] | None, bounds: Sequence[float] | None, unit: str
) -> tuple[ShownEstimate, ...]:
    """What is shown of a release, if there is one: to staff the interval for what was delivered."""
    if release is None:
        return ()
    if bounds is not None:
        return (_shown(t, w, release, release.get("range", bounds), unit),)
    return tuple(_answered(t, w, one, place) for place, one in enumerate(release["answers"]))


def _answered(t: Texts, w: Writing, answer: Mapping[str, Any], place: int) -> ShownEstimate:
    """What was found for one question: a mean, the share of yes, or the share of every answer."""
    question = answer["question"]
    name, between = question["name"], answer.get("range", question.get("bounds", (0.0, 1.0)))
    if question["kind"] == "number":
        return _shown(t, w, answer, between, question["unit"], name=name, place=place)
    if question["kind"] == "yes_no":
        return _shown(t, w, answer, between, "", name=t("estimate.yes", name=name), place=place)
    first, *others = (
        (word, _shown(t, w, {**answer, "estimate": share}, between, "")) for word, share in answer["shares"].items()
    )
    value = "; ".join(f"{word} {shown.value}" for word, shown in (first, *others))
    return ShownEstimate(
        name=t("estimate.shares", name=name), value=value, sentence=first[1].sentence, picture=Markup()
    )


def _shown(
    t: Texts,
    w: Writing,
    release: Mapping[str, Any],
    bounds: Sequence[float],
    unit: str,
    *,
    name: str = "",
    place: int = 0,
) -> ShownEstimate:
    for_staff = "delivered_half_width" in release
    margin = release["delivered_half_width" if for_staff else "half_width"]
    value, half = margin_texts(w, release["estimate"], margin["value"], bounds)
    after = f" {unit}" if unit else ""
    if half is None:
        sentence = t("estimate.anywhere")
    else:
        kind = "estimate.interval_staff" if for_staff else "estimate.interval"
        sentence = t(kind, half=f"{half}{after}", level=w.percent(margin["level"]))
        # what was stored by an earlier version has none
        if for_staff and (normal := release.get("normal_half_width")) is not None:
            _, near = margin_texts(w, release["estimate"], normal["value"], bounds)
            sentence = f"{sentence} {t('estimate.normal_staff', half=f'{near}{after}')}"
    width = math.inf if half is None else float(margin["value"])
    picture = pictures.estimate_bar(t, w, release["estimate"], width, bounds, value=value, half=half, place=place)
    return ShownEstimate(name=name, value=f"{value}{after}", sentence=sentence, picture=picture)


def estimate_value(w: Writing, release: Mapping[str, Any], bounds: Sequence[float] | None, unit: str) -> str | None:
    """The estimate alone, as staff see it in a list; None where there are several."""
    if bounds is None:
        return None
    value, _ = margin_texts(w, release["estimate"], release["delivered_half_width"]["value"], bounds)
    return f"{value} {unit}" if unit else value


def margin_texts(
    w: Writing, estimate: float, half_width: float | None, bounds: Sequence[float]
) -> tuple[str, str | None]:
    """Estimate and half-width with two digits of the half-width; what is written contains the exact interval.

    >>> from hushbid.server.pages.texts import languages
    >>> write = Writing(languages()["en"])
    >>> margin_texts(write, 12.34567, 2.043, (0, 100)), margin_texts(write, 1234567.8, 21_000.0, (0, 1e7))
    (('12.3', '2.1'), ('1,235,000', '22,000'))
    """
    reach = half_width if half_width is not None else bounds[1] - bounds[0]
    place = math.floor(math.log10(reach)) - 1 if 0.0 < reach < math.inf else -9
    unit = Decimal(1).scaleb(place)
    exact = Decimal(repr(estimate))
    value = (exact / unit).quantize(Decimal(1), rounding=ROUND_HALF_EVEN) * unit
    if half_width is None:
        return w.exactly(value), None
    outside = Decimal(repr(half_width)) + abs(value - exact)
    return w.exactly(value), w.exactly((outside / unit).quantize(Decimal(1), rounding=ROUND_CEILING) * unit)
