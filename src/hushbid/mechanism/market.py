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
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hushbid.allocation import Allocation, ReplyRule, allocate, precedence, replies
from hushbid.arrays import FloatArray, IndexArray, as_bounds, as_floats, as_nonnegative, as_number
from hushbid.disclosure.promises import SMALLEST_LOSS, refuse_unreleasable
from hushbid.errors import DivergentPayment, InputError, MarketError, NobodyToBuyFrom, ReportError
from hushbid.estimation import best_weights
from hushbid.mechanism.outcome import Outcome
from hushbid.mechanism.planning import Plan, plan
from hushbid.mechanism.schedule import Menu, expected_menu
from hushbid.mechanism.simulation import Progress, Simulation, simulate
from hushbid.mechanism.worst_case import sole_rent_diverges
from hushbid.payments import Rents, rents, rounding
from hushbid.priors import Grouped, Prior, prior_from_dict

OutsideOption = Literal["own_data", "estimate"]


def buyer_weight_for(payment: float, *, from_standard_error: float, to_standard_error: float) -> float:
    """The buyer weight of somebody who would pay ``payment`` to bring the standard error down so far.

    >>> round(buyer_weight_for(500, from_standard_error=2, to_standard_error=1), 3)
    166.667
    """
    paid = as_number(payment, "payment")
    before = as_number(from_standard_error, "from_standard_error")
    after = as_number(to_standard_error, "to_standard_error")
    if not (0.0 < paid < math.inf and 0.0 <= after < before < math.inf):
        raise InputError(
            f"a positive payment must buy a smaller standard error, got {payment} for {from_standard_error} down to"
            f" {to_standard_error}."
        )
    return paid / (before**2 - after**2)


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
        return self.setting == "local" or not np.all(self.stated_variance)

    def error_weight(self, n: int) -> float:
        """``A``: what one unit of squared error costs everybody together, for ``n`` people."""
        weight = np.asarray(self.user_weight, dtype=float)
        total = float(self.buyer_weight + (weight.sum() if weight.ndim else n * weight))
        if not total < math.inf:
            raise InputError(f"buyer_weight and user_weight must have a finite sum, got {total}.")
        return total

    def acquire(self, reports: ArrayLike, *, tie_key: Sequence[Any] | NDArray[Any] | None = None) -> Outcome:
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
        self.check_people(stated.size)
        try:
            return self._decide(stated, costs, tie_key)
        except NobodyToBuyFrom:  # an outcome too, unless somebody has to live with the error
            if np.any(np.asarray(self.user_weight) > 0):
                raise
            return Outcome.nothing_bought(self, stated, costs)

    def rule(
        self,
        costs: FloatArray,
        *,
        error_weight: float | None = None,
        tie_key: Sequence[Any] | NDArray[Any] | None = None,
    ) -> ReplyRule:
        """How the optimum answers to one person's virtual cost, in units where the data range has width 1."""
        weight = self.error_weight(costs.size) if error_weight is None else error_weight
        return replies(
            costs,
            setting=self.setting,
            variance=self._unit_variance(),
            error_weight=weight * self.width**2,
            tie_key=tie_key,
        )

    def allocation(self, costs: FloatArray, tie_key: Sequence[Any] | NDArray[Any] | None = None) -> Allocation:
        """The optimal allocation for given virtual costs, before any cap."""
        return allocate(
            costs,
            setting=self.setting,
            variance=self._unit_variance(),
            error_weight=self.error_weight(costs.size) * self.width**2,
            tie_key=tie_key,
        )

    def virtual_figures(self, costs: FloatArray) -> tuple[float, float]:
        """Error (squared data units) and total payment at given virtual costs, virtual payments in place of payments.

        Under the prior the two have the same expectation, and virtual payments take no integration.
        """
        self.check_people(costs.size)
        self._refuse_divergence(costs)
        allocation = self.allocation(costs)
        loss, _, mse = self.capped(allocation.privacy_loss, allocation)
        mse *= self.width**2
        used = (loss > 0.0) & (costs > 0.0)  # an infinite loss that costs nothing is free
        paid = float(costs[used].dot(loss[used]))
        if np.any(self.user_weight):
            weight = np.broadcast_to(np.asarray(self.user_weight, dtype=float), costs.shape)
            paid += float(weight.dot(mse - self._outside_errors(costs, allocation)))
        return mse, paid

    def menu(self, n: int, *, rng: np.random.Generator, repetitions: int = 200, points: int = 33) -> Menu:
        """What a person can expect, as a function of her report, before anybody else of the ``n`` has reported."""
        return expected_menu(self, n, rng=rng, repetitions=repetitions, points=points)

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
        return simulate(self, n, repetitions, rng=rng, true_prior=true_prior, progress=progress)

    def plan(
        self,
        *,
        target_mse: float | None = None,
        budget: float | None = None,
        n: int | None = None,
        rng: np.random.Generator,
        repetitions: int = 200,
        progress: Progress | None = None,
    ) -> Plan:
        """Meet an expected error or an expected total payment: by the buyer weight if ``n`` is given, else by ``n``.

        The buyer weight found is the smallest that reaches the error, or the largest that keeps the budget. The number
        of people found is one at which the target is met while with one fewer it is not. ``progress`` is called with
        the number of trials made and the most there can be.
        """
        return plan(
            self, target_mse=target_mse, budget=budget, n=n, rng=rng, repetitions=repetitions, progress=progress
        )

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

    # -- how a decision is made ----------------------------------------------------------------------------------------

    def _unit_variance(self) -> float | FloatArray:
        return self.stated_variance / self.width**2

    def check_people(self, n: int) -> None:
        """Refuse a number of people that this market cannot be for."""
        for name in ("variance", "user_weight"):
            value = getattr(self, name)
            if isinstance(value, np.ndarray) and value.shape != (n,):
                raise InputError(f"{name} must have one entry per person ({n} people), got {value.size}.", field=name)
        if self.outside_option == "estimate" and n == 1:
            raise InputError("outside_option='estimate' needs at least two people: without her there is no estimate.")

    def _decide(self, reports: FloatArray, costs: FloatArray, tie_key: Sequence[Any] | NDArray[Any] | None) -> Outcome:
        self._refuse_divergence(costs)
        allocation = self.allocation(costs, tie_key)
        cap = math.inf if self.max_privacy_loss is None else self.max_privacy_loss
        # clipped at the cap: still monotone in one's report, so still truthful
        loss, weights, mse = self.capped(allocation.privacy_loss, allocation)
        objective = allocation.objective
        if mse != allocation.mse:
            used = loss > 0.0
            objective = allocation.error_weight * mse + float(costs[used].dot(loss[used]))
        # c·ε; zero times infinity is nothing
        price = np.zeros(reports.size)
        bought = np.flatnonzero(loss > 0.0)
        refuse_unreleasable(float(loss[bought].max() if self.setting == "central" else loss[bought].min()))
        paying = bought[reports[bought] > 0.0]
        price[paying] = reports[paying] * loss[paying]
        mse *= self.width**2
        # β·(MSE − outside): what the estimate is worth to her
        outside = self._outside_errors(costs, allocation)
        share, care = np.zeros(()), 0.0
        if np.any(self.user_weight):
            share = np.asarray(self.user_weight) * (mse - outside)
            care = float((np.asarray(self.user_weight) * (mse + outside)).max())
        slack = max(self._rounding(allocation, prior.support[1], cap, care) for prior, _ in self._groups(reports.size))
        # the integral
        rent, error = self._rents(reports, costs, bought, price, cap, tie_key, self.tolerance, slack)
        payments = price + rent.estimate + share
        largest = float(np.abs(payments).max())
        if error > self.tolerance * largest and care > 0.0:  # what people pay has eaten up their payments
            gross = float((price + rent.estimate).max())
            part = max(0.9 * largest / gross, 0.01) if gross > 0.0 else 1.0
            rent, error = self._rents(reports, costs, bought, price, cap, tie_key, part * self.tolerance, slack)
            payments = price + rent.estimate + share
        return Outcome(
            market=self,
            reports=reports,
            virtual_costs=costs,
            privacy_loss=loss,
            weights=weights,
            payments=payments,
            information_rent=rent.estimate,
            rent_bounds=(rent.lower, rent.upper),
            outside_error=outside,
            mse=mse,
            objective=objective,
            incentive_error=2.0 * error,
            tie_order=precedence(tie_key),
        )

    def _rounding(self, allocation: Allocation, top: float, cap: float, care: float) -> float:
        return rounding(
            self.setting,
            error_weight=allocation.error_weight,
            variance=float(np.min(self._unit_variance())),
            objective=allocation.objective,
            largest_weight=float(allocation.weights.max()),
            top=top,
            cap=cap,
            care=care,
        )

    def capped(self, losses: FloatArray, allocation: Allocation) -> tuple[FloatArray, FloatArray, float]:
        """Losses clipped at the cap, with the best weights and error for them (range of width 1).

        Clipping an optimum never leaves anybody with more loss than the best estimator can use: if
        ``ε_max·ΣVε ≤ 2 + ΣVε²`` holds before, it holds after.
        """
        cap = self.max_privacy_loss
        if cap is None or not (losses > cap).any():
            return allocation.privacy_loss, allocation.weights, allocation.mse
        clipped = np.minimum(losses, cap)
        best = best_weights(clipped, setting=self.setting, variance=self._unit_variance())
        return clipped, best.weights, float(best.mse)

    def _groups(self, n: int) -> list[tuple[Prior, IndexArray]]:
        if isinstance(self.prior, Grouped):
            return [(prior, rows) for _, prior, rows in self.prior.groups]
        return [(self.prior, np.arange(n))]

    def _rents(
        self,
        reports: FloatArray,
        costs: FloatArray,
        bought: IndexArray,
        price: FloatArray,
        cap: float,
        tie_key: Sequence[Any] | NDArray[Any] | None,
        tolerance: float,
        slack: float,
    ) -> tuple[Rents, float]:
        """Everybody's information rent, zero for those who are not bought from; and the largest possible error."""
        n = reports.size
        lower, upper, estimate, evaluations, error = np.zeros(n), np.zeros(n), np.zeros(n), 0, 0.0
        rule = self.rule(costs, tie_key=tie_key)
        spread = self.stated_variance
        # Where identity decides between equal costs, people with equal reports do not face the same rule.
        for prior, members in self._groups(n):
            rows = members[np.isin(members, bought, assume_unique=True)] if members.size < n else bought
            alike = rows if self.identity_decides else spread[rows] if isinstance(spread, np.ndarray) else None
            found = rents(
                rule,
                prior,
                rows,
                reports[rows],
                cap=cap,
                alike=alike,
                paid_besides=price[rows],
                tolerance=tolerance,
            )
            # the enclosure, wider by what losses are rounded by
            found = replace(found, lower=found.lower - slack, upper=found.upper + slack)
            lower[rows], upper[rows], estimate[rows] = found.lower, found.upper, found.estimate
            evaluations += found.evaluations
            error = max(error, found.error)
        return Rents(lower=lower, upper=upper, estimate=estimate, evaluations=evaluations), error

    def _outside_errors(self, costs: FloatArray, allocation: Allocation) -> FloatArray:
        """What error each person would live with outside, in squared data units."""
        n = costs.size
        if self.outside_option == "own_data":
            return np.broadcast_to(np.asarray(self.stated_variance, dtype=float), (n,))
        weight = np.broadcast_to(np.asarray(self.user_weight, dtype=float), (n,))
        total = self.error_weight(n)
        outside = np.zeros(n)
        for value in np.unique(weight[weight > 0.0]).tolist():
            rows = np.flatnonzero(weight == value)
            if not total > value:
                raise InputError(
                    f"outside_option='estimate' needs somebody else who cares about the error, but one person's weight"
                    f" {value:g} is all of the error weight."
                )
            # without her nobody weighs the error for her
            outside[rows] = self._errors_without(rows, costs, total - value)
        return outside

    def outside_error_of(self, costs: FloatArray, row: int) -> float:
        """What error person ``row`` would live with outside; her own report does not matter."""
        if self.outside_option == "own_data":
            return float(np.broadcast_to(np.asarray(self.stated_variance, dtype=float), costs.shape)[row])
        weight = float(np.broadcast_to(np.asarray(self.user_weight, dtype=float), costs.shape)[row])
        present = costs.copy()
        present[row] = min(float(costs[row]), float(costs.max(initial=0.0, where=costs < math.inf)))
        return float(self._errors_without(np.array([row]), present, self.error_weight(costs.size) - weight)[0])

    def errors_at(self, costs: FloatArray, row: int, moved: FloatArray, uncapped: FloatArray) -> FloatArray:
        """The estimate's error, in squared data units, if person ``row`` had each of the virtual costs ``moved``."""
        if self.max_privacy_loss is None:
            errors: FloatArray = uncapped * self.width**2
            return errors
        errors = np.empty(moved.size)
        for j, cost in enumerate(moved.tolist()):
            changed = costs.copy()
            changed[row] = cost
            found = self.allocation(changed)
            errors[j] = self.capped(found.privacy_loss, found)[2] * self.width**2
        return errors

    def _errors_without(self, rows: IndexArray, costs: FloatArray, error_weight: float) -> FloatArray:
        """The error of the mechanism run without each of ``rows``; nothing changes without those it does not use."""
        weight = error_weight * self.width**2
        spread = self._unit_variance()
        alone = np.count_nonzero(costs < math.inf) == 1
        if alone and (costs[rows] < math.inf).any():
            raise MarketError("outside_option='estimate' is undefined: without the only person there is no estimate.")
        base = allocate(costs, setting=self.setting, variance=spread, error_weight=weight)
        if self.max_privacy_loss is not None:
            # the error of clipped losses needs everybody's: solve again without each
            errors = np.full(rows.size, self.capped(base.privacy_loss, base)[2])
            for j in np.flatnonzero(base.privacy_loss[rows] > 0.0).tolist():
                without = costs.copy()
                without[rows[j]] = math.inf
                found = allocate(without, setting=self.setting, variance=spread, error_weight=weight)
                errors[j] = self.capped(found.privacy_loss, found)[2]
        else:
            errors = np.full(rows.size, base.mse)
            used = np.flatnonzero(base.privacy_loss[rows] > 0.0)
            rule = replies(costs, setting=self.setting, variance=spread, error_weight=weight)
            errors[used] = rule.at(rows[used], np.full(used.size, math.inf)).mse
        result: FloatArray = errors * self.width**2
        return result

    def _refuse_divergence(self, costs: FloatArray) -> None:
        """A sole seller under an unbounded prior is bought from at every report: her rent may be infinite."""
        finite = np.flatnonzero(costs < math.inf)
        if finite.size != 1:
            return
        prior = self.prior.prior_of(int(finite[0])) if isinstance(self.prior, Grouped) else self.prior
        if sole_rent_diverges(prior):
            raise DivergentPayment(
                f"The only person's payment would be infinite: under {prior!r} she is bought from at every report;"
                " use a prior with bounded support or a lighter tail."
            )


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


def _prior(values: Any) -> Prior | Grouped:
    if isinstance(values, (Prior, Grouped)):
        return values
    found: Prior | Grouped = prior_from_dict(values)
    return found
