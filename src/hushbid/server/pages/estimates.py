"""An estimate as pages show it: no more digits than its error leaves, and an interval that holds as it is written."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Decimal
from typing import Any

from markupsafe import Markup

from hushbid.common.numbers import cut_to, is_unusable
from hushbid.server.pages import pictures
from hushbid.server.pages.wording import Texts, Writing


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownEstimate:
    """An estimate in words and, unless it is one of several shares, as a picture."""

    name: str
    """Of which question; empty where one number was asked for."""

    value: str
    """Rounded to what its error leaves, with its unit, shares in per cent; or that there is no usable result."""

    drawn: str
    """The number itself, usable or not."""

    unusable: bool
    """Whether the interval covers more than half of the range."""

    sentence: str
    """How far off it may be, and why there is no usable result if there is none."""

    margin: str
    """How far off it may be, alone."""

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
    """What was found for one question: a mean, the share of yes, or the share of every answer in the buyer's order."""
    question = answer["question"]
    name, between = question["name"], answer.get("range", question.get("bounds", (0.0, 1.0)))
    if question["kind"] == "number":
        return _shown(t, w, answer, between, question["unit"], name=name, place=place)
    if question["kind"] == "yes_no":
        found = _share(t, w, answer, answer["estimate"], answer.get("projected"), between, place=place)
        return replace(found, name=t("{name} (share of yes)", name=name))
    likely = answer.get("projected", {})
    shares = {word: answer["shares"][word] for word in question["answers"]}
    first, *others = ((word, _share(t, w, answer, share, likely.get(word), between)) for word, share in shares.items())
    usable = not any(shown.unusable for _, shown in (first, *others))
    value = "; ".join(f"{word} {shown.drawn}" for word, shown in (first, *others))
    sentence = first[1].margin
    if any(likely.get(word, share) != share for word, share in shares.items()):
        drawn = "; ".join(f"{word} {_percent(w, answer, share, between)}" for word, share in shares.items())
        nearest = t(
            "These are the nearest shares that can be; the margin is around those that were drawn: {drawn}.",
            drawn=drawn,
        )
        sentence = f"{sentence} {nearest}"
    stated = _margin_in(answer)["value"] is not None
    doubt = "" if usable else _doubt(t, w, value, [100.0 * end for end in between], " %", stated=stated)
    return ShownEstimate(
        name=t("{name} (share of each answer)", name=name),
        value=value if usable else t("No usable result"),
        drawn=value,
        unusable=not usable,
        sentence=f"{doubt}{sentence}",
        margin=sentence,
        picture=Markup(),
    )


def _doubt(t: Texts, w: Writing, value: str, bounds: Sequence[float], unit: str, *, stated: bool) -> str:
    """Why there is no usable result, and the number all the same; where no margin is stated its sentence says why."""
    number = t("The estimate is {value}: a hint at most.", value=value)
    if not stated:
        return f"{number} "
    why = t(
        "The interval covers more than half of the range from {low} to {high}.",
        low=w.number(bounds[0], 6),
        high=f"{w.number(bounds[1], 6)}{unit}",
    )
    return f"{why} {number} "


def _share(
    t: Texts,
    w: Writing,
    answer: Mapping[str, Any],
    share: float,
    projected: float | None,
    between: Sequence[float],
    *,
    place: int = 0,
) -> ShownEstimate:
    """A share in per cent, as the nearest that can be."""
    possible = cut_to(share, share, (between[0], between[1]))[0] if projected is None else projected
    hundred = {**answer, "estimate": 100.0 * possible}
    for name in ("half_width", "delivered_half_width", "normal_half_width"):
        if (margin := answer.get(name)) is not None and margin["value"] is not None:
            hundred[name] = {**margin, "value": 100.0 * margin["value"]}
    bounds = [100.0 * end for end in between]
    return _shown(t, w, hundred, bounds, "%", margin_unit=t("percentage points"), drawn=100.0 * share, place=place)


def _percent(w: Writing, answer: Mapping[str, Any], share: float, between: Sequence[float]) -> str:
    half = _margin_in(answer)["value"]
    width = 100.0 * (between[1] - between[0])
    value, _ = margin_texts(w, 100.0 * share, None if half is None else 100.0 * half, (0.0, width))
    return f"{value} %"


def _margin_in(release: Mapping[str, Any]) -> Mapping[str, Any]:
    """Half the interval: to staff the one for what was delivered."""
    margin: Mapping[str, Any] = release.get("delivered_half_width", release["half_width"])
    return margin


def _shown(
    t: Texts,
    w: Writing,
    release: Mapping[str, Any],
    bounds: Sequence[float],
    unit: str,
    *,
    name: str = "",
    margin_unit: str | None = None,
    drawn: float | None = None,
    place: int = 0,
) -> ShownEstimate:
    """``drawn`` is what was drawn, where something else is shown; the interval is around it."""
    for_staff, margin = "delivered_half_width" in release, _margin_in(release)
    value, half = margin_texts(w, release["estimate"], margin["value"], bounds)
    after = f" {unit}" if unit else ""
    behind = after if margin_unit is None else f" {margin_unit}"
    width = math.inf if half is None else float(margin["value"])
    around = release["estimate"] if drawn is None else drawn
    unusable = is_unusable(around, width, (bounds[0], bounds[1]))
    if half is None:
        sentence = t(
            "No margin is shown with this number: one that holds and tells nothing about single people"
            " would be as wide as the range of values, or fewer than five people are behind it. Take it"
            " as a hint at most."
        )
    else:
        kind = "estimate.interval_staff" if for_staff else "estimate.interval"
        sentence = t.coded(kind, half=f"{half}{behind}", level=w.percent(margin["level"]))
        if for_staff:
            _, near = margin_texts(w, release["estimate"], release["normal_half_width"]["value"], bounds)
            normal = t(
                "By normal approximation ± {half} is enough. That holds nearly as often with many people, none of whom"
                " weighs much, and less often with few.",
                half=f"{near}{behind}",
            )
            sentence = f"{sentence} {normal}"
    shown = f"{value}{after}"
    doubt = _doubt(t, w, shown, bounds, after, stated=half is not None) if unusable else ""
    picture = pictures.estimate_bar(t, w, release["estimate"], width, bounds, value=value, half=half, place=place)
    return ShownEstimate(
        name=name,
        value=t("No usable result") if unusable else shown,
        drawn=shown,
        unusable=unusable,
        sentence=f"{doubt}{sentence}",
        margin=sentence,
        picture=picture,
    )


def estimate_value(w: Writing, release: Mapping[str, Any], bounds: Sequence[float] | None, unit: str) -> str | None:
    """The estimate alone, as staff see it in a list; None where there are several."""
    if bounds is None:
        return None
    return _shown(w.texts, w, release, release.get("range", bounds), unit).value


def margin_texts(
    w: Writing, estimate: float, half_width: float | None, bounds: Sequence[float]
) -> tuple[str, str | None]:
    """Estimate and half-width with two digits of the half-width; what is written contains the exact interval.

    >>> from hushbid.server.pages.wording import languages
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
