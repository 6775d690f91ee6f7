"""What a campaign may cost and what people can expect, before anybody has bid; from simulated campaigns.

The worst case is a bound over all bids of any part of the people (`hushbid.mechanism.worst_case`), so it holds
whoever declines. Every payment is rounded up to whole minor units; the totals allow one minor unit per person for it.

What was simulated last is kept: whoever looks ahead, saves and opens waits once, and is told the same each time.
"""

import functools
import hashlib
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from hushbid.allocation import Budget, Goal
from hushbid.common.arrays import FloatArray
from hushbid.disclosure.delivery import planned_error, planned_errors
from hushbid.disclosure.error import PUBLIC_LEVEL
from hushbid.errors import InputError
from hushbid.mechanism import Market, Population, decide
from hushbid.mechanism.decision import Decision
from hushbid.mechanism.market import Outcome
from hushbid.mechanism.releasing import plan_of
from hushbid.mechanism.rounding import takes_too_much
from hushbid.mechanism.schedule import end_of_buying, even_quantiles, expected_menu, own_schedule
from hushbid.mechanism.survey import noise_in, question_errors
from hushbid.mechanism.worst_case import worst_payment
from hushbid.priors import Prior
from hushbid.server.model.settings import CampaignSettings
from hushbid.server.model.views import MenuView, PlannedPriceView, Preview, QuestionPreview, Spending
from hushbid.server.service.use_case import Effort
from hushbid.server.service.views_of import menu_name
from hushbid.server.service.what_if import people_like
from hushbid.server.store.schema import plain_text

_ROUGHLY = 1e-3
"""Payments to three digits are enough for a forecast, and much quicker."""

_POINTS, _MORE_POINTS = 33, 12
_DEAREST = 1e12
"""No page takes a higher bid."""

_AT_ONCE = 5
_HIGH = 0.95
_MARGINS = 5
"""For so many simulated campaigns intervals are computed: they differ little between campaigns."""
_MOST_PAID = 1e15
_KEPT = 16
"""How many campaigns' forecasts are kept."""


Progress = Callable[[int, int], None]
"""Told how many parts are done, and of how many."""


def preview(
    settings: CampaignSettings, groups: Sequence[str | None], effort: Effort, strata: Sequence[str | None] = ()
) -> Preview:
    """What a campaign with these people may cost, and how good its estimate would be."""
    return _previewed(_Asked.of(settings, groups, effort, strata))


@functools.lru_cache(maxsize=_KEPT)
def _previewed(asked: "_Asked") -> Preview:
    settings, groups, effort, strata = asked.settings, asked.groups, asked.effort, asked.strata
    market = settings.market_for(list(groups), strata=strata)
    population = market.for_people(len(groups))
    rng = asked.generator()
    paid: list[float] = []
    errors: list[tuple[float, float, float]] = []
    bought: list[float] = []
    margins: list[tuple[float, ...]] = []
    end = time.monotonic() + effort.seconds
    rough = _rough(population)
    # as many campaigns as the time allows, but never too few
    while len(paid) < effort.enough(len(paid), end):
        decided = decide(rough, population.sample(rng))
        paid.append(decided.total_payment)
        errors.append((decided.mse, decided.worst_mse, math.fsum(np.square(decided.weights))))
        bought.append(decided.active / len(groups))
        if decided.active and len(margins) < _MARGINS:
            margins.append(_half_widths(market, decided))
    if not np.isfinite(paid).all() or max(paid) > _MOST_PAID:
        raise InputError(f"prior and {settings.stated} lead to payments that are no amounts of money: choose others.")
    worst = worst_payment(population, above_support=True, limits=settings.takes_limits)
    spending = _spending(settings, population.stated, len(groups), np.array(paid), worst)
    error, worst_error, squares = (float(one) for one in np.mean(np.array(errors), axis=0))
    spending_limit = settings.spending_limit_minor
    half_widths = _known(np.mean(np.array(margins), axis=0)) if margins and math.isfinite(error) else None
    return Preview(
        spending=spending,
        planned=None if population.planned is None else PlannedPriceView.of(population.planned.planned),
        standard_error=None if market.survey else _root(error),
        worst_standard_error=None if market.survey else _root(worst_error),
        half_width=None if market.survey or half_widths is None else half_widths[0],
        questions=_by_question(market, population, error, squares, half_widths),
        share_bought=float(np.mean(bought)),
        largest_loss=settings.largest_loss,
        too_much_rounding=not settings.market.accept_rounding and takes_too_much(population.stated),
        above_spending_limit=spending_limit is not None
        and (spending.at_worst is None or spending.at_worst > spending_limit),
    )


def _root(squared: float) -> float | None:
    return math.sqrt(squared) if math.isfinite(squared) else None


def _known(values: FloatArray) -> tuple[float, ...] | None:
    return _numbers(values) if np.isfinite(values).all() else None


def _half_widths(market: Market, decided: Decision) -> tuple[float, ...]:
    """Half the 95 % interval of the estimate, or of every question's, if everybody delivers."""
    outcome = Outcome(market=market, **{name: getattr(decided, name) for name in Decision.__slots__})
    plan = plan_of(outcome, key="forecast")
    errors = [planned_error(plan)] if market.survey is None else planned_errors(plan)
    return tuple(one.half_width(PUBLIC_LEVEL) for one in errors)


def _by_question(
    market: Market, population: Population, mse: float, squares: float, half_widths: Sequence[float] | None
) -> tuple[QuestionPreview, ...]:
    """The errors of a survey's questions, from the mean error of all of them together and the mean ``Σw²``."""
    if market.survey is None or market.layout is None:
        return ()
    found = question_errors(
        market.survey,
        market.layout,
        noise=noise_in(mse, squares, market.layout.variance, population.unit),
        squares=squares,
        population=population,
        relation=market.max_correlation,
    )
    return tuple(
        QuestionPreview(
            name=one.question.name,
            standard_error=_root(one.mse),
            worst_standard_error=_root(one.worst_mse),
            half_width=None if half_widths is None else half_widths[place],
        )
        for place, one in enumerate(found)
    )


def menus(
    settings: CampaignSettings,
    groups: Sequence[str | None],
    effort: Effort,
    strata: Sequence[str | None] = (),
    *,
    progress: Progress | None = None,
) -> dict[str, MenuView]:
    """What a person of each group and stratum can expect as a function of her bid, by `menu_name`."""
    return dict(_menus(replace(_Asked.of(settings, groups, effort, strata), progress=progress)))


@functools.lru_cache(maxsize=_KEPT)
def _menus(asked: "_Asked") -> dict[str, MenuView]:
    settings, groups, effort, strata = asked.settings, asked.groups, asked.effort, asked.strata
    kinds = list(zip(groups, strata or [None] * len(groups), strict=True))
    # the first of each kind stands for it
    rows = {menu_name(*kind): row for row, kind in reversed(list(enumerate(kinds)))}
    population = settings.market_for(list(groups), strata=strata).for_people(len(groups))
    share = Effort(least=effort.least, most=effort.most, seconds=effort.seconds / len(rows))
    rng = asked.generator()
    found = {}
    for place, (name, row) in enumerate(sorted(rows.items())):
        if asked.progress is not None:
            asked.progress(place, len(rows))
        found[name] = _menu(population, settings.prior_of(groups[row]), row, share, rng)
    return found


def _shown(bids: FloatArray, usual: int, found: Sequence[FloatArray], repetitions: int) -> MenuView:
    losses, payments, chances = map(_numbers, found)
    return MenuView(
        bids=_numbers(bids),
        usual=usual,
        privacy_loss=losses,
        payment=payments,
        chance=chances,
        repetitions=repetitions,
    )


def sample_menu(settings: CampaignSettings, people: int) -> MenuView:
    """Roughly what the first of so many people can expect; in less than the time of a forecast."""
    groups, strata = people_like(settings, people)
    population = settings.market_for(groups, strata=strata).for_people(people)
    effort = Effort(least=_AT_ONCE, most=_AT_ONCE, seconds=0.0)
    return _menu(population, settings.prior_of(groups[0]), 0, effort, np.random.default_rng(people))


def _menu(population: Population, prior: Prior, row: int, effort: Effort, rng: np.random.Generator) -> MenuView:
    """Average what the person in a row faces over simulated bids of the others, up to where nothing is bought."""
    population = _rough(population)
    usual, top = even_quantiles(prior, _POINTS), prior.support[1]
    bids = usual
    if math.isinf(top):  # above a finite end nothing is ever bought
        top = max(_DEAREST, 2.0 * float(usual[-1]))
        bids = _with_dear(usual, end_of_buying(population, rng=rng, repetitions=_AT_ONCE, row=row, most=top))
    done = 0
    found: list[tuple[FloatArray, FloatArray, FloatArray]] = []
    end = time.monotonic() + effort.seconds
    while done < effort.most and (done < effort.least or time.monotonic() < end):
        some, count = _simulated(population, row, bids, rng)
        # an end that a few campaigns gave may be too low for others
        while some[0][-1] > 0.0 and bids[-1] < top:
            bids = _with_dear(usual, float(bids[-1]))
            done, found = 0, []
            some, count = _simulated(population, row, bids, rng)
        found.append(some)
        done += count
    return _shown(bids, usual.size, np.mean(np.array(found), axis=0), done)


def _rough(population: Population) -> Population:
    """The same people, with payments good enough for a forecast."""
    return replace(population, tolerance=max(population.tolerance, _ROUGHLY))


def _with_dear(usual: FloatArray, end: float) -> FloatArray:
    """Bids that are to be expected, and with even ratios those above, up to twice an end, to be sure."""
    last = float(usual[-1])
    return np.concatenate([usual, np.geomspace(last, 2.0 * max(end, last), _MORE_POINTS + 1)[1:]])


def _simulated(
    population: Population, row: int, bids: FloatArray, rng: np.random.Generator
) -> tuple[tuple[FloatArray, FloatArray, FloatArray], int]:
    """Loss, payment and chance at each bid in some simulated campaigns, and how many these were."""
    # one person's curve in each campaign; where all are alike a menu does several at once
    if population.grouped or population.strata is not None:
        decided = decide(population, population.sample(rng))
        loss, payment = own_schedule(population, decided, row).at(bids)
        return (loss, payment, (loss > 0.0).astype(float)), 1
    some = expected_menu(population, rng=rng, repetitions=_AT_ONCE, points=bids)
    return (some.privacy_loss, some.payment, some.chance), _AT_ONCE


def _spending(settings: CampaignSettings, goal: Goal, people: int, paid: FloatArray, worst: float) -> Spending:
    fees, unit = settings.fee_minor * people, 10.0**settings.currency.decimals
    rounding = people  # each payment is rounded up by itself
    if isinstance(goal, Budget):
        rounding = math.ceil((goal.reserve or 0.0) * unit)

    def minor(amount: float, *, more: int = rounding) -> int:
        total = math.ceil(amount * unit) + more + fees
        return total if settings.hard_budget_minor is None else min(total, settings.hard_budget_minor)

    ordered = np.sort(paid)
    return Spending(
        people=people,
        fees=fees,
        rounding=rounding,
        # rounding may lift simulated payments a little above what no payments exceed
        expected=minor(min(float(paid.mean()), worst)),
        in_95_of_100=minor(min(float(ordered[min(math.ceil(_HIGH * paid.size), paid.size) - 1]), worst)),
        at_worst=minor(worst, more=people) if worst <= _MOST_PAID else None,
        repetitions=int(paid.size),
    )


@dataclass(frozen=True, slots=True)
class _Asked:
    """Settings and people. All that is simulated depends on is the digest."""

    digest: bytes
    effort: Effort
    settings: CampaignSettings = field(compare=False)
    groups: Sequence[str | None] = field(compare=False)
    strata: Sequence[str | None] = field(compare=False)
    progress: Progress | None = field(default=None, compare=False)

    @classmethod
    def of(
        cls, settings: CampaignSettings, groups: Sequence[str | None], effort: Effort, strata: Sequence[str | None]
    ) -> "_Asked":
        known = {"strata": list(strata)} if settings.strata is not None else {}
        content = plain_text({"settings": settings.to_dict(), "groups": list(groups), **known})
        return cls(hashlib.sha256(content.encode()).digest(), effort, settings, tuple(groups), tuple(strata))

    def generator(self) -> np.random.Generator:
        """Whoever looks again sees the same simulated people, perhaps more of them."""
        return np.random.default_rng(list(self.digest))


def _numbers(values: FloatArray) -> tuple[float, ...]:
    return tuple(float(value) for value in values)
