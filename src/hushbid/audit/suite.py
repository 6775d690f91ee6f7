"""Which attacks to run on a decided campaign, in sizes that fit its number of people."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from hushbid.allocation import Accuracy, Budget, HardBudget
from hushbid.audit.accuracy import AccuracyCheck, check_questions
from hushbid.audit.incentive_report import IncentiveReport
from hushbid.audit.incentives import check_incentives
from hushbid.audit.privacy import PrivacyAudit, check_privacy
from hushbid.common.arrays import IndexArray
from hushbid.disclosure import ReleasePlan
from hushbid.errors import MissingExtra
from hushbid.mechanism import Outcome, Population
from hushbid.mechanism.releasing import plan_of
from hushbid.priors import Empirical

CHECKS = ("incentives", "privacy", "accuracy")
_SUMMED = (10_000, 10_000_000)
"""The accuracy of sums is simulated for at most so many people, and answers in all."""

_SENT = (40, 40_000)
"""That of messages, which each have a noise."""

_FEWEST_PEOPLE = 20
_FEWEST_REPETITIONS, _MOST_REPETITIONS = 500, 2000
"""With fewer repetitions too little noise could be missed."""

_MOST_STRATA = 4
_SEED = 20260
_SAMPLES, _FEWEST_SAMPLES, _VALUES = 20_000, 1000, 40_000
"""Of each data set so many outputs are drawn, and about so many values, over all questions."""
_POINTS, _POINTS_IN_STRATA = 9, 5
_CONFIDENCE = 1.0 - 1e-6
"""A failed audit raises an alarm on the report, so an honest campaign must not fail one in a lifetime."""


def audits_of(
    outcome: Outcome,
    *,
    checks: tuple[str, ...] = CHECKS,
    samples: int | None = None,
    tested: int | None = None,
    among: int | None = None,
    seed: int = _SEED,
    progress: Callable[[int, int], None] | None = None,
) -> Iterator[IncentiveReport | PrivacyAudit | AccuracyCheck]:
    """The results of the checks asked for. Simulations use synthetic data only, never anybody's.

    Misreports are tried for ``tested`` people in a market of ``among`` of those who bid: trying one means to run
    the whole market again, and what holds for all bid vectors must hold for these; budgets and accuracies are in
    proportion. By default as many as take some seconds, which depends on whether payments are finite sums or have to be
    integrated; with strata one of each, of at most four, since each has rules of its own. The accuracy is simulated for
    at most 10,000 of those bought from, and 40 in the local setting; for fewer if there are several questions. To
    attack privacy ``samples`` outputs are drawn, by default 20,000, or fewer for a survey.
    """
    rng = np.random.default_rng(seed)
    market = outcome.market
    quick = isinstance(market.prior, Empirical) or market.prior.is_linear
    quick = quick and not outcome.population.has_caps and market.strata is None
    one_of_each = min(len(market.strata_names), _MOST_STRATA)
    tested, among = tested or (16 if quick else one_of_each or 1), among or (16 if quick else 10)
    if "incentives" in checks:
        n = outcome.bids.size
        population = outcome.market.for_people(n)
        some = _some(population, min(n, among), rng)
        part, bids = _smaller(population, some), outcome.bids[some]
        limits = None if outcome.limits is None else outcome.limits[some]
        rows, points = _one_of_each(part, tested, rng), _POINTS if part.strata is None else _POINTS_IN_STRATA
        yield check_incentives(
            part, bids, limits=limits, people=tested, rows=rows, points=points, rng=rng, progress=progress
        )
    plan = _promises(outcome)
    if plan is None:
        return
    try:
        if "privacy" in checks:
            user, enough = int(np.argmax(plan.delivered)), samples or _enough(plan)
            yield check_privacy(plan, user=user, samples=enough, confidence=_CONFIDENCE)
        if "accuracy" in checks:
            simulated, repetitions = _simulated(outcome, plan, rng)
            yield from check_questions(simulated, rng=rng, repetitions=repetitions)
    except MissingExtra:
        return


def _enough(plan: ReleasePlan) -> int:
    """How many outputs are drawn of each data set: fewer of a survey, each of which takes longer."""
    cells = sum(group.cells for group in plan.layout.groups)
    return max(min(_SAMPLES, _VALUES // cells), min(_SAMPLES, _FEWEST_SAMPLES))


def _simulated(outcome: Outcome, plan: ReleasePlan, rng: np.random.Generator) -> tuple[ReleasePlan, int]:
    """The promises to simulate, and how often: of many people, those to some, as if only they had delivered."""
    most, answers = _SENT if outcome.market.strategy.sends_messages else _SUMMED
    cells = len(plan.questions)
    most = max(_FEWEST_PEOPLE, min(most, answers // (cells * _FEWEST_REPETITIONS)))
    if plan.people > most:
        bought = np.flatnonzero(outcome.privacy_loss > 0.0)
        rows = np.zeros(outcome.bids.size, dtype=np.bool_)
        rows[rng.choice(bought, most, replace=False)] = True
        rows[bought[np.unique(plan.strata.codes, return_index=True)[1]]] = True  # one of each stratum at least
        plan = plan_of(outcome, key="audit", rows=rows)
    return plan, max(_FEWEST_REPETITIONS, min(_MOST_REPETITIONS, answers // (plan.people * cells)))


def _smaller(population: Population, rows: IndexArray) -> Population:
    """The same market for these people only, its goal in proportion: fewer people cannot reach the same accuracy."""
    part, goal = population.take(rows), population.goal
    share = rows.size / population.people
    if isinstance(goal, Accuracy):
        goal = Accuracy(goal.number / math.sqrt(share))
    elif isinstance(goal, Budget):
        goal = Budget(goal.available * share)
    elif isinstance(goal, HardBudget):
        goal = replace(goal, amount=goal.amount * share)
    if part.strata is None:
        return replace(part, goal=goal, roster=max(rows.size, round(population.roster * share)))
    there = np.bincount(part.strata.codes, minlength=part.strata.count).tolist()
    rosters = tuple(max(few, round(many * share)) for few, many in zip(there, population.rosters, strict=True))
    return replace(part, goal=goal, roster=sum(rosters), rosters=rosters)


def _some(population: Population, among: int, rng: np.random.Generator) -> IndexArray:
    """So many people; with strata the same part of each, and at least two of each, where there are two."""
    if population.strata is None:
        return np.sort(rng.choice(population.people, among, replace=False))
    chosen = []
    for _, rows in population.kinds():
        part = max(2, math.ceil(among * rows.size / population.people))
        chosen.append(rng.choice(rows, min(rows.size, part), replace=False))
    return np.sort(np.concatenate(chosen))


def _one_of_each(population: Population, tested: int, rng: np.random.Generator) -> list[int] | None:
    """So many people drawn by lot, of as many strata as can be; None without strata."""
    if population.strata is None:
        return None
    drawn = rng.permutation(population.people)
    codes = population.strata.codes[drawn]
    again = np.array([np.count_nonzero(codes[:place] == code) for place, code in enumerate(codes.tolist())])
    return sorted(drawn[np.argsort(again, kind="stable")][:tested].tolist())


def _promises(outcome: Outcome) -> ReleasePlan | None:
    """The promises to those who are bought from; None if one of them is unlimited, so that there is no noise."""
    bought = outcome.privacy_loss > 0.0
    losses = outcome.privacy_loss[bought]
    if losses.size == 0 or not math.isfinite(losses.max()):
        return None
    return plan_of(outcome, key="audit", rows=bought)
