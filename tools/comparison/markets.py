"""The list of markets that are compared: plain descriptions, from which a worker makes the same arrays each time.

Three levels: ``allocate`` (virtual costs to losses), ``market`` (bids to losses and payments, with priors, questions
and user weights) and ``engine`` (tables, priced by sums). The first is a product of all axes. The others are drawn from
their product with a fixed seed, since it is too large: refused combinations are part of it, because refusals are
compared too.
"""

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One market, described in words and numbers."""

    level: str
    """``allocate``, ``market`` or ``engine``."""

    setting: str = "central"
    goal: str = "price"
    """``price``, ``accuracy``, ``budget`` or ``hard-budget``."""

    share: str = "some"
    """How many people are bought from, roughly: ``few``, ``some``, ``most``; ``beyond`` asks for more than there is."""

    caps: str = "none"
    """``none``, ``one``, ``each``, ``tiny``, ``loose``; in a market also ``limits`` that people state."""

    strata: str = "1"
    """``1``, ``2`` (a contrast of two), ``4`` (shares), ``lone`` (three, one of them with a single person)."""

    variance: str = "one"
    """``one`` or ``each``."""

    costs: str = "ordinary"
    """``ordinary``, ``wide``, ``zeros``, ``ties``, ``infinite``, ``small-scale``, ``large-scale``, ``saboteurs``."""

    curve: str = "noise"
    """``noise`` or ``response`` (randomised response, local)."""

    prior: str = "uniform-1"
    questions: str = "none"
    """``none``, ``yes-no``, ``two``, ``choice``."""

    relation: float = 0.0
    weights: str = "none"
    """User weights: ``none``, ``one``, ``each``, ``estimate`` (one, and the outside option is the estimate)."""

    people: int = 30
    seed: int = 0

    @property
    def kind(self) -> str:
        """The row of the table that this market belongs to."""
        caps = "uncapped" if self.caps == "none" else "capped"
        strata = "plain" if self.strata == "1" else "strata"
        return f"{self.level} {self.setting} {self.goal} {caps} {strata}"

    @property
    def words(self) -> frozenset[str]:
        """What the market can be selected by."""
        extreme = {"small-scale", "large-scale", "saboteurs"}
        found = {*self.kind.split(), self.caps, self.costs, self.share, self.curve, self.prior, self.questions}
        found |= {"extreme"} if self.costs in extreme else set()
        found |= {"survey"} if self.questions != "none" else set()
        found |= {"correlation"} if self.relation > 0.0 else set()
        found |= {"weights"} if self.weights != "none" else set()
        found |= {"variances"} if self.variance == "each" else set()
        found |= {"lone"} if self.strata == "lone" else set()
        return frozenset(found - {"none"})

    @property
    def name(self) -> str:
        """The whole description in one line."""
        parts = [self.kind, f"n={self.people}", f"seed={self.seed}", self.share, f"caps={self.caps}"]
        parts += [f"strata={self.strata}", f"costs={self.costs}"]
        parts += ["variances"] if self.variance == "each" else []
        parts += ["response"] if self.curve == "response" else []
        if self.level != "allocate":
            parts += [self.prior, f"questions={self.questions}", f"relation={self.relation:g}"]
            parts += [f"weights={self.weights}"]
        return " ".join(parts)


_COSTS = ("ordinary", "wide", "zeros", "ties", "infinite", "small-scale", "large-scale", "saboteurs")
_SIZES = {"small": (1, 2, 3, 7, 30, 100), "large": (1_000, 10_000, 100_000)}


def cases(size: str) -> list[Case]:
    """The markets of one size: ``small`` (up to 100 people), ``large`` (up to 100,000) or ``all``."""
    if size == "all":
        return cases("small") + cases("large")
    found = [*_central(size), *_local(size), *_markets(size), *_tables(size)]
    return list(dict.fromkeys(map(_with_people_in_strata, found)))


def _with_people_in_strata(case: Case) -> Case:
    """The market with enough people for its strata; a few stay too small, since that refusal is compared too."""
    least = {"1": 1, "2": 2, "4": 4, "lone": 3}[case.strata]
    return case if case.people >= least or case.seed % 10 == 9 else replace(case, people=3 * least)


def _central(size: str) -> Iterator[Case]:
    """Central allocations: every goal, cap and number of strata, each with some sizes and kinds of costs."""
    draw = random.Random(f"central {size}")
    axes = itertools.product(
        ("price", "accuracy", "budget"),
        ("none", "one", "each", "tiny", "loose"),
        ("1", "2", "4", "lone"),
        ("one", "each"),
    )
    for goal, caps, strata, variance in axes:
        for seed in range(10 if size == "small" else 2):
            yield Case(
                level="allocate",
                goal=goal,
                caps=caps,
                strata=strata,
                variance=variance,
                share=draw.choice(("few", "some", "most", "most", "beyond")),
                costs=_COSTS[seed % len(_COSTS)] if size == "small" else draw.choice(_COSTS),
                people=draw.choice(_SIZES[size]),
                seed=seed,
            )


def _local(size: str) -> Iterator[Case]:
    draw = random.Random(f"local {size}")
    axes = itertools.product(
        ("price", "accuracy", "budget"), ("none", "one", "tiny", "loose"), ("1", "2", "4"), ("noise", "response")
    )
    for goal, caps, strata, curve in axes:
        for seed in range(12 if size == "small" else 2):
            yield Case(
                level="allocate",
                setting="local",
                goal=goal,
                caps=caps,
                strata=strata,
                curve=curve,
                share=draw.choice(("few", "some", "most", "beyond")),
                costs=_COSTS[seed % len(_COSTS)] if size == "small" else draw.choice(_COSTS),
                people=draw.choice(_SIZES[size][: None if caps == "none" and strata == "1" else -1]),
                seed=seed,
            )


PRIORS = (
    "uniform-1",
    "uniform-0",
    "log-normal",
    "exponential",
    "gamma",
    "beta",
    "truncated-normal",
    "empirical",
    "histogram",
    "mixture",
    "kernel-density",
    "groups",
)


def _markets(size: str) -> Iterator[Case]:
    """Markets drawn from the product; one rare term at a time in most, so that few are refused."""
    draw = random.Random(f"markets {size}")
    for seed in range(300 if size == "small" else 60):
        rare = draw.choice(("", "", "", "questions", "relation", "weights", "variance", "everything"))
        both = rare == "everything"
        local = draw.random() < 0.3
        goals = ("price", "accuracy") if local and draw.random() < 0.9 else ("price", "accuracy", "budget")
        caps = (
            draw.choice(("none",) * 4 + ("one", "each", "tiny", "limits"))
            if not local
            else draw.choice(("none", "one"))
        )
        sizes = _SIZES[size] if size == "small" or (not local and caps == "none") else _SIZES[size][:-1]
        yield Case(
            level="market",
            setting="local" if local else "central",
            goal="hard-budget" if not local and draw.random() < 0.1 else draw.choice(goals),
            share=draw.choice(("few", "some", "most")),
            caps=caps,
            strata=draw.choice(("1", "1", "2", "4", "lone")),
            variance="each" if both or rare == "variance" else "one",
            prior=draw.choice(PRIORS),
            questions=draw.choice(("yes-no", "two", "choice")) if both or rare == "questions" else "none",
            relation=draw.choice((0.1, 0.5, 1.0)) if both or rare == "relation" else 0.0,
            weights=draw.choice(("one", "each", "estimate")) if both or rare == "weights" else "none",
            people=draw.choice(sizes),
            seed=seed,
        )


def _tables(size: str) -> Iterator[Case]:
    """Tables priced by sums: everything an engine takes."""
    draw = random.Random(f"tables {size}")
    for seed in range(80 if size == "small" else 30):
        yield Case(
            level="engine",
            setting="local" if draw.random() < 0.15 else "central",
            goal=draw.choice(("price", "accuracy", "budget", "budget", "hard-budget")),
            share=draw.choice(("few", "some", "most")),
            caps=draw.choice(("none", "none", "one", "each", "limits", "loose")),
            strata=draw.choice(("1", "1", "2", "4")),
            variance=draw.choice(("one", "one", "each")),
            prior=draw.choice(PRIORS),
            relation=draw.choice((0.0, 0.0, 0.0, 0.3)),
            people=draw.choice((7, 100, 300) if size == "small" else (1_000, 10_000, 100_000)),
            seed=seed,
        )
