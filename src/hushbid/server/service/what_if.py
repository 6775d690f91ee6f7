"""How many people, or how much money, a better average takes: the plain questions of a buyer, answered by simulation.

Every figure is a mean over campaigns whose prices are drawn from the prior, the same draws for each number of people
(`hushbid.mechanism.simulation`: expected payments are expected virtual payments). Errors are standard errors;
where a relation of prices and answers is allowed for, at worst. With groups people take turns; with strata they are
spread by the shares, or evenly for a contrast.

Numbers of people are found by doubling and halving, to one in fifty; all of it stops when its time is up.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hushbid.campaign.spec import GOALS
from hushbid.errors import HushbidError
from hushbid.mechanism.simulation import campaigns, drawn
from hushbid.mechanism.survey import mean_figures, question_errors
from hushbid.server.model.settings import MOST_PEOPLE, CampaignSettings
from hushbid.server.model.views import Preview


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """Answers from simulated campaigns; errors are standard errors, at worst where a relation is allowed for."""

    people: int
    """How many people were counted with."""

    errors: tuple[float, ...] | None
    """What they lead to, one for the number or one for each question; None if the goal is out of reach of so many."""

    margins: tuple[float, ...] = ()
    """How many of its standard errors half a 95 % interval of each estimate is, before it is cut to the range."""

    cost: int | None
    """What that costs on average, fees included, in minor units."""

    targets: tuple[float, ...] = ()
    """Errors of half the size, in two digits."""

    people_for_targets: int | None = None
    """With about so many people the same money reaches the targets; None if no number that was tried does."""

    cost_for_targets: int | None = None
    """With the same people the targets cost so much on average; None if they are out of reach."""

    both_for_targets: tuple[int, int] | None = None
    """Where neither alone is enough: a number of people with whom the targets can be reached, and what it costs."""

    cost_of_twice: int | None = None
    """Where the accuracy is stated: what it costs on average with twice the people; None if it is not known."""

    least_people: int | None = None
    """Where the goal is out of reach: about so many people reach it; None if no number that was tried does."""

    in_time: bool = True
    """Whether all of it was looked for to the end; what is missing else may only not have been found in time."""

    repetitions: int
    """So many campaigns were simulated for each figure."""


_SEED = 18
_DRAWS, _FEW = 20, 10
_FINELY = 50
_MOST_DOUBLINGS = 6
_LEAST_SECONDS = 2.0
_SPARE = 1.3
"""Beside the fewest people that reach something at any price, so many more bring the price down."""
Column = list[str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What campaigns come to on average."""

    errors: tuple[float, ...]
    """Standard errors, one for the number or one for each question; at worst."""

    cost: int
    """In minor units, fees and the rounding of each payment included."""


def people_like(settings: CampaignSettings, people: int) -> tuple[Column, Column]:
    """So many people's groups and strata, as a forecast takes them to be."""
    names = settings.groups
    groups: Column = [names[place % len(names)] if names else None for place in range(people)]
    wanted = settings.weights
    if not wanted:
        return groups, []
    parts = [weight if "shares" in (settings.combination or {}) else 1.0 for weight in wanted.values()]
    exact = [people * part / math.fsum(parts) for part in parts]
    counts = [max(math.floor(one), 1) for one in exact]
    largest = sorted(range(len(parts)), key=lambda place: math.floor(exact[place]) - exact[place])
    for place in range(max(people - sum(counts), 0)):
        counts[largest[place % len(parts)]] += 1
    column = [name for name, count in zip(wanted, counts, strict=True) for _ in range(count)]
    # groups and strata are mixed by dealing the strata out in turns
    strata = [column[(place * len(column)) // people] for place in range(people)]
    return groups, list(strata)


def figures(settings: CampaignSettings, people: int, *, draws: int = _DRAWS, seed: int = _SEED) -> Figures:
    """What campaigns of so many people come to; refused where the goal is out of their reach."""
    groups, strata = people_like(settings, people)
    market = settings.market_for(groups, strata=strata)
    population = market.for_people(people)
    found = list(drawn(population, seed, campaigns(people, draws)))
    if market.survey is None or market.layout is None:
        errors: tuple[float, ...] = (math.sqrt(float(np.mean([one.worst_mse for one in found]))),)
    else:
        noise, squares = mean_figures(population, iter(found))
        each = question_errors(
            market.survey,
            market.layout,
            noise=noise,
            squares=squares,
            population=population,
            relation=market.max_correlation,
        )
        errors = tuple(one.worst_standard_error for one in each)
    paid = float(np.mean([one.payment for one in found]))
    cost = math.ceil(paid * 10.0**settings.currency.decimals) + people * (1 + settings.fee_minor)
    return Figures(
        errors=errors, cost=cost if settings.hard_budget_minor is None else min(cost, settings.hard_budget_minor)
    )


def what_if(settings: CampaignSettings, people: int, preview: Preview | None, seconds: float) -> WhatIf:
    """Answers for a campaign of so many people; ``preview`` is what they come to, None if that was refused."""
    began, seconds = time.monotonic(), max(seconds, _LEAST_SECONDS)
    end = began + seconds
    accuracy = bool(settings.target_errors)
    if preview is None:
        least = _fewest(lambda n: figures(settings, n, draws=_FEW), people, end) if accuracy else None
        in_time = time.monotonic() <= end
        return WhatIf(people=people, errors=None, cost=None, least_people=least, in_time=in_time, repetitions=_DRAWS)
    of_each = preview.questions or (preview,)
    found = [(one.worst_standard_error, one.half_width) for one in of_each]
    known = [(error, half) for error, half in found if error is not None and half is not None]
    if len(known) < len(found):  # in some campaign nothing would be bought
        return WhatIf(people=people, errors=None, cost=None, repetitions=_DRAWS)
    errors = tuple(error for error, _ in known)
    margins = tuple(half / error if error > 0.0 else 1.0 for error, half in known)
    targets = tuple(two_digits(one / 2.0) for one in errors)
    exact = with_errors(settings, targets)
    cost = None if exact is None else _cost(exact, people, end)
    more = None if accuracy else _fewest(lambda n: _meets(settings, n, targets), people, end)
    both = None
    if exact is not None and cost is None and more is None and time.monotonic() <= end:
        end = time.monotonic() + seconds / 2.0  # some time for what is left to say
        both = _both(exact, people, end)
    twice = _cost(settings, 2 * people, end) if accuracy and 2 * people <= MOST_PEOPLE else None
    return WhatIf(
        people=people,
        errors=errors,
        margins=margins,
        cost=preview.spending.expected,
        targets=targets,
        people_for_targets=more,
        cost_for_targets=cost,
        both_for_targets=both,
        cost_of_twice=twice,
        in_time=time.monotonic() <= end,
        repetitions=_DRAWS,
    )


def with_errors(settings: CampaignSettings, errors: Sequence[float]) -> CampaignSettings | None:
    """The same campaign for stated errors; None if there is none.

    Where no largest loss is stated none is for these errors either, unless people could not know one otherwise.
    """
    values = settings.to_dict()
    market = {name: one for name, one in values["market"].items() if name not in (*GOALS, "max_privacy_loss")}
    if settings.asked:
        pairs = zip(values["questions"], errors, strict=True)
        values["questions"] = [{**one, "standard_error": error} for one, error in pairs]
    else:
        market["standard_error"] = errors[0]
    for cap in (settings.market.max_privacy_loss, settings.largest_loss):
        capped = market if cap is None else {**market, "max_privacy_loss": cap}
        server = {**values.get("server", {}), "limits": False}
        try:
            return CampaignSettings.read({**values, "market": capped, "server": server})
        except HushbidError:
            continue
    return None


def two_digits(value: float) -> float:
    """A number in two digits."""
    return float(f"{value:.1e}")


def _meets(settings: CampaignSettings, people: int, targets: Sequence[float]) -> object:
    """Whether so many people reach the targets; a refusal means that they do not."""
    found = figures(settings, people, draws=_FEW)
    return all(error <= target for error, target in zip(found.errors, targets, strict=True))


def _both(exact: CampaignSettings, people: int, end: float) -> tuple[int, int] | None:
    """More people and what stated errors cost with them, where neither alone is enough."""
    least = _fewest(lambda n: figures(exact, n, draws=_FEW), people, end)
    many = None if least is None else min(int(two_digits(least * _SPARE)), MOST_PEOPLE)
    cost = None if many is None else _cost(exact, many, math.inf)
    return None if many is None or cost is None else (many, cost)


def _cost(settings: CampaignSettings, people: int, end: float) -> int | None:
    if time.monotonic() > end:
        return None
    try:
        return figures(settings, people).cost
    except HushbidError:
        return None


def _fewest(reached: Callable[[int], object], people: int, end: float) -> int | None:
    """About the smallest number above ``people`` that reaches something: to one in fifty, never too few."""

    def met(number: int) -> bool:
        try:
            return bool(reached(number))
        except HushbidError:
            return False

    low, high = people, people
    for _ in range(_MOST_DOUBLINGS):
        if high >= MOST_PEOPLE or time.monotonic() > end:
            return None
        low, high = high, min(2 * high, MOST_PEOPLE)
        if met(high):
            break
    else:
        return None
    while high - low > max(1, high // _FINELY) and time.monotonic() <= end:
        middle = (low + high) // 2
        low, high = (low, middle) if met(middle) else (middle, high)
    return high
