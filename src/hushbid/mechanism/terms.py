"""The terms of a market: what is stated, the population that it is for, and both as plain values."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np

from hushbid.allocation.goals import Budget, Price, goal_from_dict
from hushbid.common.arrays import (
    as_count,
)
from hushbid.errors import InputError
from hushbid.mechanism.combinations import state_of
from hushbid.mechanism.people import Group, groups_of
from hushbid.mechanism.planned_price import planned
from hushbid.mechanism.population import Population
from hushbid.mechanism.stated import Stated, plain
from hushbid.mechanism.strata import (
    rosters_of,
)
from hushbid.mechanism.survey import goal_for_one_number
from hushbid.priors import prior_from_dict
from hushbid.questions import question_from_dict


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Terms(Stated):
    """What a market states, and the population it is for."""

    def with_roster(self, people: int | Mapping[str, int] | None, *, closed: bool = False) -> Self:
        """The market for a roster of so many people, unless a population is stated.

        It counts where a relation is allowed for, and where rounding takes a part of a budget; else nothing changes.
        A price is planned for a roster only if it was ``closed`` before the first bid.
        With strata so many in each of them, by its name, or as many in all as there are labels.
        """
        counts = self.max_correlation > 0.0 or (isinstance(self.goal, Budget) and self.goal.coin > 0.0)
        if closed:
            counts |= self.goal.kind == "budget"  # type: ignore[union-attr]
        elif self.on_average:  # a price must not be planned for those who bid
            counts = False
        if self.population is not None or not counts or people is None:
            return self
        if self._strata is not None and isinstance(people, int):
            if people != self._strata.codes.size:  # nobody said of which strata the others are
                return self
            people = dict(zip(self._strata.names, rosters_of(None, self._strata), strict=True))
        return replace(self, population=people)

    def for_people(self, n: int, *, limits: bool = False) -> Population:
        """The market for ``n`` people who are at hand, on a data range of width 1: what the mechanism works on.

        ``limits`` says whether they state limits, which decides whether a budget is met exactly or on average.
        """
        people = as_count(n, "n", least=1)
        return self._planned(self._population(people, self._groups(people)), limits=limits)

    def _groups(self, people: int) -> tuple[Group, ...]:
        """So many people by their priors; refused if something is stated for each of another number."""
        if self._strata is not None and self._strata.codes.size != people:
            told = f"strata must have one label per person ({people} people), got {self._strata.codes.size}."
            raise InputError(told, field="strata")
        for name in ("variance", "user_weight", "max_privacy_loss"):
            value = getattr(self, name)
            if isinstance(value, np.ndarray) and value.shape != (people,):
                raise InputError(
                    f"{name} must have one entry per person ({people} people), got {value.size}.", field=name
                )
        return groups_of(self.prior, people)

    def for_count(
        self,
        n: int,
        in_strata: Sequence[int] | None = None,
        *,
        roster: int | None = None,
        counted: tuple[tuple[int, ...], ...] = (),
        limits: bool = False,
    ) -> Population:
        """The market for ``n`` people who are counted, but not listed: groups have priors, and no rows.

        With strata, which then have no labels, so many people are ``in_strata``. ``counted`` says how many of each
        group are in each stratum, and ``roster`` how many people were asked, if no population is stated; ``limits`` is
        as in `for_people`.
        """
        if self._strata is not None and (in_strata is None or self._strata.codes.size):
            raise InputError("strata must have no labels where people are counted, but not listed.", field="strata")
        asked = self if self._strata is not None else self.with_roster(roster)
        return self._planned(asked._population(n, groups_of(self.prior, None), in_strata, counted), limits=limits)

    def require_roster(self, *, limits: bool = False) -> None:
        """Refuse a budget that is met on average if nobody has stated for how many people a price is planned."""
        planned_already = isinstance(self.goal, Budget) and self.goal.planned is not None
        if self.population is not None or planned_already:
            return
        if state_of(replace(self.combination, limits=limits)) == "on average":
            raise InputError(
                "population must be stated with a budget that is met on average: a price is planned for everybody"
                " who was asked, a roster closed before the first bid.",
                field="population",
            )

    def _planned(self, population: Population, *, limits: bool = False) -> Population:
        """The population, with a price for the error where a budget is met on average only."""
        budget = self.goal
        if not isinstance(budget, Budget):
            return population
        if budget.planned is None:
            if state_of(replace(self.combination, limits=limits)) != "on average":
                return population
            self.require_roster(limits=limits)
            budget = planned(population, budget)
        assert budget.planned is not None
        return replace(population, goal=Price(budget.planned.price), planned=budget)

    def _population(
        self,
        people: int,
        groups: tuple[Group, ...],
        in_strata: Sequence[int] | None = None,
        counted: tuple[tuple[int, ...], ...] = (),
    ) -> Population:
        if self.outside_option == "estimate" and people == 1:
            raise InputError(
                "outside_option='estimate' needs at least two people: without the one there is no estimate."
            )
        return Population(
            people=people,
            setting=self.strategy,
            groups=groups,
            grouped=self.grouped,
            width=self.width,
            goal=goal_for_one_number(self.survey, self.stated_goal),
            survey=self.survey is not None,
            bias=self.max_correlation**2 * float(np.mean(self.stated_variance)) / self.width**2,
            roster=self._roster(people),
            strata=self._strata,
            rosters=() if self._strata is None else rosters_of(self.population, self._strata, in_strata),  # type: ignore[arg-type]
            counted=counted,
            cap=math.inf if self.max_privacy_loss is None else self.max_privacy_loss,  # type: ignore[arg-type]
            user_weight=self.user_weight,  # type: ignore[arg-type]
            own_error=self.stated_variance,
            expected_share=self.expected_share,
            outside_option=self.outside_option,
            tolerance=self.tolerance,
        )

    def _roster(self, people: int) -> int:
        """How many people the mean is about."""
        if self.roster is None:
            return people
        if self.roster < people:
            raise InputError(
                f"population must be at least the number of people, {people}, got {self.roster}.",
                field="population",
            )
        return self.roster

    def to_dict(self) -> dict[str, Any]:
        """The market as plain values that `from_dict` reads back."""
        asked: dict[str, Any] = {"bounds": list(self.bounds), "variance": plain(self.variance)}
        if self.survey is not None:
            asked = {"questions": [one.to_dict() for one in self.survey]}
        if self.strata is not None:
            stated = {"shares": self.shares, "contrast": self.contrast}
            asked |= {"strata": list(self.strata)} | {name: plain(value) for name, value in stated.items() if value}
        return {
            "prior": self.prior.to_dict(),
            "setting": self.setting,
            **asked,
            "goal": self.stated_goal.to_dict(),
            "user_weight": plain(self.user_weight),
            "outside_option": self.outside_option,
            "max_privacy_loss": _without_infinities(plain(self.max_privacy_loss)),
            "max_correlation": self.max_correlation,
            "population": plain(self.population),
            **({"expected_share": self.expected_share} if self.expected_share < 1.0 else {}),
            "tolerance": self.tolerance,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`."""
        if not isinstance(values, Mapping):
            raise InputError(f"a market must be a mapping of its fields, got {type(values).__name__}.")
        names = [one.name for one in fields(cls) if one.init]
        known = {name: values[name] for name in names if name in values}
        unknown = sorted(set(values) - set(known))
        if unknown or "prior" not in known:
            raise InputError(f"a market has the fields {', '.join(names)}, got {', '.join(map(str, values))}.")
        prior = known.pop("prior")
        if isinstance(known.get("goal"), Mapping):
            known["goal"] = goal_from_dict(known["goal"])
        if isinstance(known.get("questions"), list):
            known["questions"] = [question_from_dict(one) for one in known["questions"]]
        return cls(prior=prior_from_dict(prior) if isinstance(prior, Mapping) else prior, **known)


def _without_infinities(caps: Any) -> Any:
    """Caps as they are written: null where there is none."""
    return [None if cap == math.inf else cap for cap in caps] if isinstance(caps, list) else caps
