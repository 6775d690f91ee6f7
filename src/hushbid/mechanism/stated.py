"""What a market states: the fields that are fixed before anybody bids, in the user's units, and what is allowed.

Units: bounds and variance in data units, weights in money per squared data unit, bids in money per unit of
privacy loss. In a survey errors are relative to each question's range, or to the standard error that was stated for it
(`hushbid.mechanism.survey`), and weights are in money per unit of such a squared error.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

import numpy as np

from hushbid.allocation.goals import Goal, Price
from hushbid.common.arrays import (
    FloatArray,
    as_bounds,
    as_floats,
    as_nonnegative,
    as_number,
    as_positive,
    counted_repr,
    first_row,
    rows_text,
)
from hushbid.disclosure.promises import SMALLEST_LOSS
from hushbid.errors import InputError
from hushbid.estimation import Setting, Strata
from hushbid.mechanism.combinations import Combination, offered, refuse, state_of
from hushbid.mechanism.people import OutsideOption, total_weight
from hushbid.mechanism.setting import Setting as Strategy
from hushbid.mechanism.setting import strategy_of
from hushbid.mechanism.strata import (
    as_rosters,
    as_strata,
    refuse_named_errors,
)
from hushbid.mechanism.survey import check_targets, checked_questions, goal_for_one_number, layout
from hushbid.priors import Grouped, Prior
from hushbid.questions import Layout, Question, one_yes_no


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Stated:
    """What a market states, and the population it is for.

    Each field is checked by itself, and together only what decides whether the mechanism works: that somebody cares
    about the estimate, that a variance is stated where payments depend on it and is one number in the local setting. A
    variance above what the bounds allow (`hushbid.common.arrays.varies_too_much`) is not refused here; campaign files
    and the server refuse it.
    """

    prior: Prior | Grouped
    """What the platform believes about costs; it must not be estimated from the bids it prices."""

    goal: Goal | None = None
    """What the buyer states: a `Price`, an `Accuracy`, a `Budget` or a `HardBudget`. A market always has one."""

    buyer_weight: float | None = None
    """Short for ``goal=Price(buyer_weight)``, and None once the market is made: ask its goal."""

    setting: Setting = "central"
    """Where noise is added: once by a trusted platform, or on each person's device."""

    bounds: tuple[float, float] = (0.0, 1.0)
    """The public range of the data."""

    variance: float | Sequence[float] | FloatArray | None = None
    """Of the data around the mean, above 0; in the central setting also one per person. None means the worst case for
    the bounds (a quarter of the squared width), allowed only while every user weight is 0: otherwise payments depend on
    it."""

    questions: Sequence[Question] | None = None
    """What is asked, where it is more than one number: then each question has its own range and variance, and
    ``bounds`` and ``variance`` are not stated."""

    user_weight: float | Sequence[float] | FloatArray = 0.0
    """What one unit of squared error costs a person: one number, or one per person. Only a `Price` weighs it."""

    outside_option: OutsideOption = "own_data"
    """What a person who stays out has: their own datum, or the estimate made without them."""

    max_privacy_loss: float | Sequence[float] | FloatArray | None = None
    """A cap on everybody's privacy loss; in the central setting also one per person, infinite (in a list also None)
    where there is none; NaN is refused. The purchase is the best one that keeps it."""

    max_correlation: float = 0.0
    """How closely price and datum may be related, from 0 (not at all) to 1: its square is the largest share of the
    variance that people's prices, groups, variances and limits may explain together. The purchase is then the best one
    against the worst such relation."""

    population: int | Mapping[str, int] | None = None
    """How many people the mean is about: a roster closed before the first bid; with strata in each of them, by its
    name. It counts where a relation is allowed for, and for what rounding is expected to add to a budget. None means
    those who bid; then people can change both by bidding or not. Where a budget is met on average by a planned price
    it must be stated."""

    expected_share: float = 1.0
    """How likely each person of the roster is to bid, above 0 and at most 1; it enters the draws of a planned price."""

    strata: Sequence[str] | None = field(default=None, repr=False)
    """Everybody's stratum, one label per person in the order of the bids: public, never declared by people
    themselves. It goes with either ``shares`` or ``contrast``; strata are in the order of their names. Empty where a
    column of a table names them, see `hushbid.engine.price`."""

    shares: Mapping[str, float] | None = None
    """Each stratum's share of the population, together 1: the estimate is the post-stratified mean."""

    contrast: Mapping[str, float] | None = None
    """Each stratum's weight, of any sign and not 0: the estimate is that combination of the strata's means."""

    tolerance: float = 1e-6
    """How far a payment may be from the exact one, relative to the largest payment, where rounding allows it (about
    1e-8 with smooth priors); `Outcome.incentive_error` says what was reached, and
    `Outcome.flags` warns where that is less."""

    _strata: Strata | None = field(default=None, init=False, repr=False)
    """Everybody's stratum as a number, and all strata's weights; kept, as it is asked for again and again."""

    def __repr__(self) -> str:  # limits are people's own: not for a log
        return counted_repr(self)

    def __post_init__(self) -> None:
        as_prior(self.prior, "prior")
        if self.setting not in ("central", "local"):
            raise InputError(f"setting must be 'central' or 'local', got {self.setting!r}.", field="setting")
        if self.outside_option not in ("own_data", "estimate"):
            raise InputError(
                f"outside_option must be 'own_data' or 'estimate', got {self.outside_option!r}.", field="outside_option"
            )
        object.__setattr__(self, "bounds", as_bounds(self.bounds))
        object.__setattr__(self, "user_weight", as_nonnegative(self.user_weight, "user_weight"))
        object.__setattr__(self, "goal", one_goal(self.goal, self.buyer_weight))
        object.__setattr__(self, "buyer_weight", None)
        if self.questions is not None:
            found = checked_questions(
                self.questions,
                stated={"bounds": self.bounds != (0.0, 1.0), "variance": self.variance is not None},
            )
            object.__setattr__(self, "questions", found)
        self._check_strata()
        if self.variance is not None:
            object.__setattr__(self, "variance", as_positive(self.variance, "variance"))
        self._check_relation()
        refuse(self.combination)
        if self.goal == Price(0.0) and not self._cares:
            told = "buyer_weight and user_weight must not all be 0: nobody would care about the estimate."
            raise InputError(told, field="buyer_weight")
        if self.variance is None and self._cares:
            raise InputError(
                "variance must be stated when user_weight is not 0: a wrong one would make lying or staying out pay.",
                field="variance",
            )
        if self.max_privacy_loss is not None:
            self._check_cap()
        object.__setattr__(self, "expected_share", as_number(self.expected_share, "expected_share"))
        if not 0.0 < self.expected_share <= 1.0:
            told = f"expected_share must be above 0 and at most 1, got {self.expected_share:g}."
            raise InputError(told, field="expected_share")
        object.__setattr__(self, "tolerance", as_number(self.tolerance, "tolerance"))
        if not 0.0 < self.tolerance <= 1e-6:
            raise InputError(f"tolerance must be in (0, 1e-6], got {self.tolerance}.", field="tolerance")

    def _check_strata(self) -> None:
        """Bring what is stated about strata into one form; standard errors are one for each of what is estimated."""
        found = as_strata(self.strata, self.shares, self.contrast)
        refuse_named_errors(self.stated_goal)
        check_targets(self.survey, self.stated_goal)
        if found is None:
            return
        object.__setattr__(self, "_strata", found)
        object.__setattr__(self, "strata", tuple(found.names[code] for code in found.codes.tolist()))
        for name in ("shares", "contrast"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, dict(zip(found.names, found.weights.tolist(), strict=True)))

    def _check_cap(self) -> None:
        name = "max_privacy_loss"
        if np.ndim(self.max_privacy_loss) > 0:  # type: ignore[arg-type]
            object.__setattr__(self, name, as_limits(self.max_privacy_loss, name))
            return
        cap = as_number(self.max_privacy_loss, name)
        object.__setattr__(self, name, cap)
        if not 0.0 < cap < math.inf:
            raise InputError(f"max_privacy_loss must be positive and finite, got {cap}.", field=name)
        if cap < SMALLEST_LOSS:
            raise InputError(
                f"max_privacy_loss must be at least 2**-53 = {SMALLEST_LOSS:.2g}, so that something can be"
                f" released, got {cap}.",
                field=name,
            )

    @property
    def combination(self) -> Combination:
        """What is stated, as far as it decides whether the market can be offered; people's limits are not yet."""
        questions: Literal["none", "several", "yes_no"] = "none"
        if self.survey is not None:
            questions = "yes_no" if one_yes_no(self.survey) else "several"
        cap: Literal["none", "one", "each"] = "none"
        if self.max_privacy_loss is not None:
            cap = "each" if np.ndim(self.max_privacy_loss) > 0 else "one"
        return Combination(
            setting=self.setting,
            goal=self.stated_goal.kind,  # type: ignore[arg-type]
            cap=cap,
            strata=self._strata is not None,
            questions=questions,
            correlation=self.max_correlation,
            variances=isinstance(self.variance, np.ndarray),
            user_weight=self._cares,
        )

    @property
    def _cares(self) -> bool:
        """Whether somebody but the buyer cares about the estimate."""
        return bool(np.any(np.asarray(self.user_weight) > 0))

    @property
    def takes_cap(self) -> bool:
        """Whether a largest loss of everybody may be stated; else see `hushbid.mechanism.largest_loss`."""
        return offered(replace(self.combination, cap="one"))

    @property
    def takes_limits(self) -> bool:
        """Whether people may state limits."""
        return offered(replace(self.combination, limits=True))

    def require_limits(self) -> None:
        """Refuse limits that people state themselves, where they cannot be taken."""
        refuse(replace(self.combination, limits=True))

    def _limits(self, limits: object, n: int) -> FloatArray:
        """What people accept at most, checked."""
        self.require_limits()
        found = as_limits(limits, "limits", zero=True)
        if found.shape != (n,):
            raise InputError(f"limits must have one entry per person ({n}), got {found.size}.", field="limits")
        return found

    def _check_relation(self) -> None:
        object.__setattr__(self, "max_correlation", as_number(self.max_correlation, "max_correlation"))
        if not 0.0 <= self.max_correlation <= 1.0:
            raise InputError(
                f"max_correlation must be from 0 (price and datum unrelated) to 1, got {self.max_correlation:g}.",
                field="max_correlation",
            )
        object.__setattr__(self, "population", as_rosters(self.population, self._strata))
        known = np.size(self.stated_variance)
        if self.max_correlation > 0.0 and known > 1 and self.roster not in (None, known):
            raise InputError(
                f"variance must be one number, or one for each of the population of {self.roster}, with"
                f" max_correlation={self.max_correlation:g}, got {known}: the protection rests on everybody's.",
                field="variance",
            )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Stated):
            return NotImplemented
        return all(np.array_equal(mine, theirs) for mine, theirs in zip(self._values(), other._values(), strict=True))

    def __hash__(self) -> int:
        return hash(tuple(_hashable(value) for value in self._values()))

    def _values(self) -> list[Any]:
        return [getattr(self, one.name) for one in fields(self) if one.init]

    @property
    def grouped(self) -> bool:
        """Whether there is one prior per group of people."""
        return isinstance(self.prior, Grouped)

    @property
    def stratified(self) -> Strata | None:
        """Everybody's stratum, and the combination of their means that is estimated; None without strata."""
        return self._strata

    @property
    def strata_names(self) -> tuple[str, ...]:
        """What the strata are called, in their order; empty without strata."""
        return () if self._strata is None else self._strata.names

    @property
    def roster(self) -> int | None:
        """``N``: how many people are in the population that is stated, of all strata together; None if none is."""
        return sum(self.population.values()) if isinstance(self.population, Mapping) else self.population

    @property
    def survey(self) -> tuple[Question, ...] | None:
        """The questions, if there are any."""
        return self.questions  # type: ignore[return-value]  # see __post_init__

    @property
    def layout(self) -> Layout | None:
        """How the questions share everybody's loss; None without questions."""
        return None if self.survey is None else layout(self.survey, self.stated_goal)

    @property
    def width(self) -> float:
        """The width of the public range; of a survey, that of the one number it comes to."""
        return self.bounds[1] - self.bounds[0] if self.layout is None else self.layout.width

    @property
    def stated_variance(self) -> float | FloatArray:
        """The variance in data units, with the worst case filled in; of a survey, that of the number it comes to."""
        if self.layout is not None:
            return self.layout.variance
        spread = self.variance
        if spread is None:
            return self.width**2 / 4.0
        return spread if isinstance(spread, np.ndarray) else float(spread)  # type: ignore[arg-type]

    @property
    def identity_decides(self) -> bool:
        """Whether some of several people with equal virtual costs may be bought from and others not."""
        return self.strategy.identity_decides

    def error_weight(self, n: int) -> float:
        """``A``: what one unit of squared error costs everybody together, for ``n`` people; 0 without a `Price`."""
        goal = goal_for_one_number(self.survey, self.stated_goal)
        weight = goal.buyer_weight if isinstance(goal, Price) else 0.0
        return total_weight(weight, self.user_weight, n)  # type: ignore[arg-type]

    @property
    def stated_goal(self) -> Goal:
        """The goal."""
        assert self.goal is not None  # see __post_init__
        return self.goal

    @property
    def strategy(self) -> Strategy:
        """What depends on the setting, and on whether a single yes/no question is asked in it."""
        return strategy_of(self.setting, self.survey)

    @property
    def on_average(self) -> bool:
        """Whether the goal is met on average only, by a planned price; where people state limits, see `for_people`."""
        return state_of(self.combination) == "on average"


def plain(value: Any) -> Any:
    """Return a field's value without arrays."""
    if isinstance(value, Mapping):
        return dict(value)
    return value.tolist() if isinstance(value, np.ndarray) else value


def _hashable(value: Any) -> Any:
    if isinstance(value, Mapping):
        return tuple(sorted(value.items()))
    return plain(value) if np.ndim(value) == 0 else tuple(plain(value))


def as_limits(values: Any, name: str, *, zero: bool = False) -> FloatArray:
    """One largest loss per person, infinite where there is none (in a list also None).

    With ``zero`` it may be 0, for people who sell nothing.
    NaN is refused: taken for "none" it would let a slip of arithmetic lift somebody's limit.
    """
    if np.ndim(values) != 1:
        raise InputError(f"{name} must be one number per person, got shape {np.shape(values)}.", field=name)
    given = [math.inf if one is None else one for one in values] if isinstance(values, (list, tuple)) else values
    limits = np.array(as_floats(given, name), dtype=float)
    bad = ~((limits >= SMALLEST_LOSS) | (zero & (limits == 0.0)))
    if bad.any():
        raise InputError(
            f"{name} must be at least 2**-53 = {SMALLEST_LOSS:.2g}, {'0 to sell nothing, ' * zero}or infinite for none,"
            f" but {rows_text(bad, 'is')} not.",
            field=name,
            row=first_row(bad),
        )
    return limits


def one_goal(goal: object, buyer_weight: float | None) -> Goal:
    """The goal, or the price that ``buyer_weight`` is short for; exactly one of them must be given."""
    if (goal is None) == (buyer_weight is None):
        got = "neither" if goal is None else "both"
        raise InputError(f"give either a goal, such as Budget(2000), or a buyer_weight, got {got}.", field="goal")
    if buyer_weight is not None:
        return Price(buyer_weight)
    if not isinstance(goal, Goal):
        raise InputError(f"goal must be a goal such as Budget(2000), got {type(goal).__name__}.", field="goal")
    return goal


def as_prior(value: Any, name: str) -> Prior | Grouped:
    """A prior, or one per group of people."""
    if not isinstance(value, (Prior, Grouped)):
        raise InputError(f"{name} must be a prior such as Uniform(1, 2), got {type(value).__name__}.", field=name)
    return value
