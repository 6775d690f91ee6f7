"""A market for data: what is bought, from whom one believes to buy, and what an error costs.

A platform wants the mean of a population. Person i's datum lies in public ``bounds`` and has ``variance`` around the
mean. Her cost is ``β_i·MSE + c_i·ε_i − t_i`` (``β_i`` the *user weight*, ``c_i`` her sensitivity, ``ε_i`` her privacy
loss, ``t_i`` her payment); if she stays out it is ``β_i·V_i`` (she has her own datum) or ``β_i`` times the error of the
mechanism run without her. The platform's cost is ``α·MSE + Σ t_i`` (``α`` the *buyer weight*). Among all truthful
mechanisms that everybody is willing to join, the best one gives, for each report vector, the privacy losses that
minimise ``A·MSE + Σ ψ_i ε_i``, ``A = α + Σ β_i``, and pays as in :mod:`hushbid.payments` ([F] Prop. 2).

Units: bounds and variance in data units, weights in money per squared data unit, sensitivities in money per unit of
privacy loss.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from hushbid.allocation import Allocation, ReplyRule
from hushbid.arrays import FloatArray, as_bounds, as_count, as_floats, as_nonnegative, as_number
from hushbid.disclosure.promises import SMALLEST_LOSS
from hushbid.errors import InputError, RecordError, ReportError
from hushbid.mechanism.decision import Decision, decide, fields_of_plain
from hushbid.mechanism.figures import Figures, cap_cost
from hushbid.mechanism.planning import Planned, plan
from hushbid.mechanism.population import Group, OutsideOption, Population, TieKey, groups_of, total_weight
from hushbid.mechanism.schedule import Menu, Schedule, common_schedule, expected_menu, own_schedule
from hushbid.mechanism.setting import SETTINGS
from hushbid.mechanism.simulation import Progress, Simulation, simulate
from hushbid.priors import Grouped, Prior, prior_from_dict
from hushbid.wording import at_most

FORMAT, VERSION = "hushbid outcome", 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Market:
    """Everything that is fixed before anybody reports.

    >>> from hushbid.priors import Uniform
    >>> market = Market(prior=Uniform(1, 2), setting="central", bounds=(0, 1), variance=0.25)
    >>> outcome = market.acquire([1.1, 1.2, 1.9])
    >>> outcome.privacy_loss.round(3).tolist(), outcome.payments.round(3).tolist()
    ([1.431, 0.892, 0.0], [2.204, 1.469, 0.252])
    """

    prior: Prior | Grouped
    """What the platform believes about sensitivities; it must not be estimated from the reports it prices."""

    setting: Literal["central", "local"] = "central"
    """Where noise is added: once by a trusted platform, or on each person's device."""

    bounds: tuple[float, float] = (0.0, 1.0)
    """The public range of the data."""

    variance: float | Sequence[float] | FloatArray | None = None
    """Of the data around the mean; in the central setting also one per person. None means the worst case for the bounds
    (a quarter of the squared width), allowed only while every user weight is 0: otherwise payments depend on it."""

    buyer_weight: float = 1.0
    """What one unit of squared error costs the platform."""

    user_weight: float | Sequence[float] | FloatArray = 1.0
    """What one unit of squared error costs a person: one number, or one per person."""

    outside_option: OutsideOption = "own_data"
    """What somebody who stays out has: her own datum, or the estimate made without her."""

    max_privacy_loss: float | None = None
    """A cap on everybody's privacy loss; the capped rule is still truthful, though no longer optimal."""

    tolerance: float = 1e-6
    """How far a payment may be from the exact one, relative to the largest payment, where rounding allows it (about
    1e-8 with smooth priors); `Outcome.incentive_error` says what was reached."""

    def __post_init__(self) -> None:
        if not isinstance(self.prior, (Prior, Grouped)):
            raise InputError(
                f"prior must be a prior such as Uniform(1, 2), got {type(self.prior).__name__}.", field="prior"
            )
        if self.setting not in ("central", "local"):
            raise InputError(f"setting must be 'central' or 'local', got {self.setting!r}.", field="setting")
        if self.outside_option not in ("own_data", "estimate"):
            raise InputError(
                f"outside_option must be 'own_data' or 'estimate', got {self.outside_option!r}.", field="outside_option"
            )
        object.__setattr__(self, "bounds", as_bounds(self.bounds))
        object.__setattr__(self, "buyer_weight", as_nonnegative(self.buyer_weight, "buyer_weight", per_person=False))
        object.__setattr__(self, "user_weight", as_nonnegative(self.user_weight, "user_weight"))
        if self.variance is not None:
            object.__setattr__(self, "variance", as_nonnegative(self.variance, "variance"))
        if isinstance(self.variance, np.ndarray) and self.setting == "local":
            raise InputError(
                "variance must be one number in the local setting: one per person is an open problem there.",
                field="variance",
            )
        if self.buyer_weight == 0.0 and not np.any(self.user_weight):
            raise InputError("buyer_weight and user_weight must not all be 0: nobody would care about the estimate.")
        if self.variance is None and np.any(np.asarray(self.user_weight) > 0):
            raise InputError(
                "variance must be stated when user_weight is not 0: a wrong one would make lying or staying out pay.",
                field="variance",
            )
        if self.max_privacy_loss is not None:
            object.__setattr__(self, "max_privacy_loss", as_number(self.max_privacy_loss, "max_privacy_loss"))
            if not 0.0 < self.max_privacy_loss < math.inf:
                raise InputError(
                    f"max_privacy_loss must be positive and finite, got {self.max_privacy_loss}.",
                    field="max_privacy_loss",
                )
            if self.max_privacy_loss < SMALLEST_LOSS:
                raise InputError(
                    f"max_privacy_loss must be at least 2**-53 = {SMALLEST_LOSS:.2g}, so that something can be"
                    f" released, got {self.max_privacy_loss}.",
                    field="max_privacy_loss",
                )
        object.__setattr__(self, "tolerance", as_number(self.tolerance, "tolerance"))
        if not 0.0 < self.tolerance <= 0.1:
            raise InputError(f"tolerance must be in (0, 0.1], got {self.tolerance}.", field="tolerance")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Market):
            return NotImplemented
        return all(np.array_equal(mine, theirs) for mine, theirs in zip(self._values(), other._values(), strict=True))

    def __hash__(self) -> int:
        return hash(tuple(_plain(value) if np.ndim(value) == 0 else tuple(_plain(value)) for value in self._values()))

    def _values(self) -> list[Any]:
        return [getattr(self, name) for name in self.__slots__]

    @property
    def width(self) -> float:
        """The width of the public range."""
        return self.bounds[1] - self.bounds[0]

    @property
    def stated_variance(self) -> float | FloatArray:
        """The variance in data units, with the worst case filled in."""
        spread = self.variance
        if spread is None:
            return self.width**2 / 4.0
        return spread if isinstance(spread, np.ndarray) else float(spread)  # type: ignore[arg-type]

    @property
    def identity_decides(self) -> bool:
        """Whether some of several people with equal virtual costs may be bought from and others not."""
        return SETTINGS[self.setting].identity_decides(self.stated_variance)

    def error_weight(self, n: int) -> float:
        """``A``: what one unit of squared error costs everybody together, for ``n`` people."""
        return total_weight(self.buyer_weight, self.user_weight, n)  # type: ignore[arg-type]

    def for_people(self, n: int) -> Population:
        """The market for ``n`` people who are at hand, on a data range of width 1: what the mechanism works on."""
        people = as_count(n, "n", least=1)
        for name in ("variance", "user_weight"):
            value = getattr(self, name)
            if isinstance(value, np.ndarray) and value.shape != (people,):
                raise InputError(
                    f"{name} must have one entry per person ({people} people), got {value.size}.", field=name
                )
        return self._population(people, groups_of(self.prior, people))

    def for_count(self, n: int) -> Population:
        """The market for ``n`` people who are counted, but not listed: groups have priors, and no rows."""
        return self._population(n, groups_of(self.prior, None))

    def _population(self, people: int, groups: tuple[Group, ...]) -> Population:
        if self.outside_option == "estimate" and people == 1:
            raise InputError("outside_option='estimate' needs at least two people: without her there is no estimate.")
        return Population(
            people=people,
            setting=SETTINGS[self.setting],
            groups=groups,
            grouped=isinstance(self.prior, Grouped),
            width=self.width,
            variance=self.stated_variance / self.width**2,
            cap=math.inf if self.max_privacy_loss is None else self.max_privacy_loss,
            buyer_weight=self.buyer_weight,
            user_weight=self.user_weight,  # type: ignore[arg-type]
            own_error=self.stated_variance,
            outside_option=self.outside_option,
            tolerance=self.tolerance,
        )

    def acquire(self, reports: ArrayLike, *, tie_key: TieKey = None) -> "Outcome":
        """Decide, from everybody's reported sensitivity, how much privacy each gives up and what she is paid.

        Among equals the smaller ``tie_key`` comes first, or the earlier row: neither may depend on the reports.
        `hushbid.allocation.tie_keys` makes keys of ids, as the command line, the engines and the server do.
        """
        if np.ndim(reports) > 1 or np.size(reports) == 0:
            raise InputError(
                f"reports must be one number per person, at least one, got shape {np.shape(reports)}.", field="reports"
            )
        stated: FloatArray = np.atleast_1d(as_floats(reports, "reports", ReportError))
        costs: FloatArray = np.atleast_1d(self.prior.virtual_cost(stated))
        found = decide(self.for_people(stated.size), stated, costs, tie_key)
        return Outcome(market=self, **{name: getattr(found, name) for name in Decision.__slots__})

    def rule(self, costs: FloatArray, *, tie_key: TieKey = None) -> ReplyRule:
        """How the optimum answers to one person's virtual cost, in units where the data range has width 1."""
        return self.for_people(costs.size).rule(costs, tie_key)

    def allocation(self, costs: FloatArray, tie_key: TieKey = None) -> Allocation:
        """The optimal allocation for given virtual costs, before any cap."""
        return self.for_people(costs.size).allocation(costs, tie_key)

    def menu(self, n: int, *, rng: np.random.Generator, repetitions: int = 200, points: int = 33) -> Menu:
        """What a person can expect, as a function of her report, before anybody else of the ``n`` has reported."""
        return expected_menu(self.for_people(n), rng=rng, repetitions=repetitions, points=points)

    def simulate(
        self,
        n: int,
        repetitions: int,
        *,
        rng: np.random.Generator,
        true_prior: Prior | Grouped | None = None,
        progress: Progress | None = None,
    ) -> Simulation:
        """What would happen in campaigns of ``n`` people: error, payments, objective, and the worst case of payments.

        People are drawn from ``true_prior`` if the market's prior is wrong. Those below its support report its lowest
        value (their best reply), those above are never bought from; both are counted. ``progress`` is called with the
        number of campaigns done and to do.
        """
        drawn_from = None
        if true_prior is not None and true_prior != self.prior:
            if not isinstance(true_prior, (Prior, Grouped)):
                raise InputError(
                    f"true_prior must be a prior such as Uniform(1, 2), got {type(true_prior).__name__}.",
                    field="true_prior",
                )
            drawn_from = replace(self, prior=true_prior).for_people(n)
        return simulate(self.for_people(n), repetitions, rng=rng, drawn_from=drawn_from, progress=progress)

    def plan(
        self,
        *,
        target_mse: float | None = None,
        budget: float | None = None,
        n: int | None = None,
        rng: np.random.Generator,
        repetitions: int = 200,
        progress: Progress | None = None,
    ) -> "Plan":
        """Meet an expected error or an expected total payment: by the buyer weight if ``n`` is given, else by ``n``.

        The buyer weight found is the smallest that reaches the error, or the largest that keeps the budget. The number
        of people found is one at which the target is met while with one fewer it is not. ``progress`` is called with
        the number of trials made and the most there can be.
        """
        for name in ("variance", "user_weight", "prior"):
            if n is None and isinstance(getattr(self, name), (np.ndarray, Grouped)):
                raise InputError(f"n must be given for a market with one {name} per person.", field="n")
        found = plan(
            self.for_people,
            target_mse=target_mse,
            budget=budget,
            n=n,
            rng=rng,
            repetitions=repetitions,
            progress=progress,
        )
        market = replace(self, buyer_weight=found.buyer_weight)
        return Plan(market=market, **{name: getattr(found, name) for name in Planned.__slots__})

    def to_dict(self) -> dict[str, Any]:
        """The market as plain values that `from_dict` reads back."""
        return {
            "prior": self.prior.to_dict(),
            "setting": self.setting,
            "bounds": list(self.bounds),
            "variance": _plain(self.variance),
            "buyer_weight": self.buyer_weight,
            "user_weight": _plain(self.user_weight),
            "outside_option": self.outside_option,
            "max_privacy_loss": self.max_privacy_loss,
            "tolerance": self.tolerance,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Market":
        """The inverse of `to_dict`."""
        if not isinstance(values, Mapping):
            raise InputError(f"a market must be a mapping of its fields, got {type(values).__name__}.")
        known = {name: values[name] for name in cls.__slots__ if name in values}
        unknown = sorted(set(values) - set(known))
        if unknown or "prior" not in known:
            raise InputError(f"a market has the fields {', '.join(cls.__slots__)}, got {', '.join(map(str, values))}.")
        prior = known.pop("prior")
        return cls(prior=_prior(prior), **known)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Outcome(Decision):
    """What a market decided, and everything needed to compute it again. Confidential, as every decision is."""

    market: Market
    """The market, as it was before anybody reported."""

    _optimum: Allocation | None = field(default=None, init=False, repr=False)
    """Kept when it was asked for."""

    @property
    def population(self) -> Population:
        """The market for those who reported."""
        return self.market.for_people(self.reports.size)

    @property
    def allocation(self) -> Allocation | None:
        """The optimum before any cap, on a data range of width 1; None if nothing was bought.

        Solved again when first asked for, from market, virtual costs and the order of equals: it is the same for an
        outcome that was read back.
        """
        if self._optimum is None and self.active:
            object.__setattr__(self, "_optimum", self.population.allocation(self.virtual_costs, self.tie_order))
        return self._optimum

    @property
    def cap_cost(self) -> float:
        """How much higher the objective is than without the cap, in money; 0 if the cap does not bind."""
        return 0.0 if self.market.max_privacy_loss is None else cap_cost(self.population, self, self.allocation)

    @property
    def lower_bound(self) -> float:
        """No truthful decision has an objective below this, in money (see `Allocation.lower_bound`)."""
        optimum = self.allocation
        return math.inf if optimum is None else optimum.lower_bound

    def figures(self) -> Figures:
        """What the decision comes to for everybody together, with its certificate."""
        return Figures.of(self.population, self, self.allocation)

    def schedule(self, user: int | None = None) -> Schedule:
        """One curve c ↦ (privacy loss, payment): that prices everybody, or the one that person ``user`` faces."""
        return common_schedule(self.population, self) if user is None else own_schedule(self.population, self, user)

    def summary(self) -> str:
        """What was decided, in words; no individual's numbers."""
        n = self.reports.size
        if self.active == 0:
            return f"Nothing was bought: none of {n} people reported within the prior's support. Nobody is paid."
        low, high = self.market.bounds
        lines = [
            f"{self.market.setting.capitalize()} setting, data between {low:g} and {high:g}: bought from {self.active}"
            f" of {n} people, at most {at_most(float(self.privacy_loss.max()), 3):g} of privacy loss each.",
            f"Expected error of the estimate: {math.sqrt(self.mse):.3g} (root mean square). Total payment:"
            f" {self.total_payment:.6g}.",
        ]
        paying = int((self.payments < 0.0).sum())
        if paying:
            who = "1 person pays: she values" if paying == 1 else f"{paying} people pay: they value"
            lines.append(
                f"{who} the estimate more than giving data costs. If that is not wanted, use user_weight=0, under which"
                " no payment is negative."
            )
        elif not np.any(np.asarray(self.market.user_weight) > 0):
            lines.append("No payment is negative.")
        if self.cap_cost > 0.0:
            lines.append(
                f"The cap of {self.market.max_privacy_loss:g} costs {self.cap_cost:.3g} against the optimum without it."
            )
        if np.isinf(self.privacy_loss).any():
            exposed = int(np.isinf(self.privacy_loss).sum())
            who = "1 person" if exposed == 1 else f"{exposed} people"
            lines.append(f"{who} reported no cost and would lose all privacy: set max_privacy_loss.")
        lines.append(f"No misreport can gain more than {at_most(self.incentive_error):g}.")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain values; `from_dict` reads it back."""
        return {"format": FORMAT, "version": VERSION, "market": self.market.to_dict(), **self.plain()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Outcome":
        """The inverse of `to_dict`."""
        if not isinstance(values, Mapping):
            raise RecordError(f"An outcome must be a mapping of its fields, got {type(values).__name__}.")
        if values.get("format") != FORMAT or values.get("version") != VERSION:
            raise RecordError(
                f"An outcome must have format {FORMAT!r} and version {VERSION}, got {values.get('format')!r} and"
                f" {values.get('version')!r}."
            )
        try:
            return cls(**fields_of_plain(values), market=Market.from_dict(values["market"]))
        except (KeyError, TypeError, ValueError, AttributeError) as problem:
            raise RecordError(f"The outcome cannot be read: {type(problem).__name__} in its fields.") from None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan(Planned):
    """A market and a number of people that meet a target on average."""

    market: Market
    """The market, with the buyer weight of the plan."""


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


def _prior(values: Any) -> Prior | Grouped:
    if isinstance(values, (Prior, Grouped)):
        return values
    found: Prior | Grouped = prior_from_dict(values)
    return found
