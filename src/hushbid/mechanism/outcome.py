"""What a market decided, and everything needed to compute it again."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from hushbid.allocation import Allocation
from hushbid.arrays import FloatArray, IndexArray
from hushbid.errors import RecordError
from hushbid.mechanism.figures import Figures
from hushbid.wording import at_most

if TYPE_CHECKING:
    from hushbid.mechanism.market import Market
    from hushbid.mechanism.schedule import Schedule

FORMAT, VERSION = "hushbid outcome", 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Outcome:
    """Privacy losses, payments and what they buy. Confidential: a loss or a payment tells what was reported."""

    market: "Market"
    """The market, as it was before anybody reported."""

    reports: FloatArray
    """Everybody's reported sensitivity."""

    virtual_costs: FloatArray
    """What one unit of each person's privacy loss costs the platform, rents included."""

    privacy_loss: FloatArray
    """The ε promised to each person: her loss will not exceed it; 0 where nothing is bought."""

    weights: FloatArray
    """Each person's weight in the estimate."""

    payments: FloatArray
    """What each person is paid. Negative where she values the estimate and pays for it."""

    information_rent: FloatArray
    """What each person gains over staying out: the integral of her loss over higher reports."""

    rent_bounds: tuple[FloatArray, FloatArray]
    """A rigorous lower and upper bound on each information rent."""

    outside_error: FloatArray
    """The squared error each person would live with if she stayed out, in squared data units."""

    mse: float
    """Mean squared error of the estimate, in squared data units; infinite if nothing was bought."""

    objective: float
    """``error weight · mse + Σ virtual cost · privacy loss``, in money."""

    incentive_error: float
    """No misreport can gain more than this, in money: twice the largest possible error of a payment."""

    tie_order: IndexArray | None
    """Everybody's place in the order in which people of equal virtual cost are bought from; None: as listed."""

    _optimum: Allocation | None = field(default=None, init=False, repr=False)
    """Kept when it was asked for."""

    @classmethod
    def nothing_bought(cls, market: "Market", reports: FloatArray, costs: FloatArray) -> "Outcome":
        """Everybody's report is above her prior's support: nobody is bought from, nobody is paid."""
        zero = np.zeros(reports.size)
        return cls(
            market=market,
            reports=reports,
            virtual_costs=costs,
            privacy_loss=zero,
            weights=zero,
            payments=zero,
            information_rent=zero,
            rent_bounds=(zero, zero),
            outside_error=zero,
            mse=math.inf,
            objective=math.inf,
            incentive_error=0.0,
            tie_order=None,
        )

    @property
    def total_payment(self) -> float:
        """The sum of all payments."""
        return math.fsum(self.payments)

    @property
    def active(self) -> int:
        """How many people are bought from."""
        return int(np.count_nonzero(self.privacy_loss))

    @property
    def allocation(self) -> Allocation | None:
        """The optimum before any cap, on a data range of width 1; None if nothing was bought.

        Solved again when first asked for, from market, virtual costs and the order of equals: it is the same for an
        outcome that was read back.
        """
        if self._optimum is None and self.active:
            object.__setattr__(self, "_optimum", self.market.allocation(self.virtual_costs, self.tie_order))
        return self._optimum

    @property
    def cap_cost(self) -> float:
        """How much higher the objective is than without the cap, in money; 0 if the cap does not bind."""
        cap = self.market.max_privacy_loss
        if cap is None or not (self.privacy_loss >= cap).any():
            return 0.0
        optimum = self.allocation
        return 0.0 if optimum is None else max(self.objective - optimum.objective, 0.0)

    @property
    def lower_bound(self) -> float:
        """No truthful decision has an objective below this, in money (see `Allocation.lower_bound`)."""
        optimum = self.allocation
        return math.inf if optimum is None else optimum.lower_bound

    def figures(self) -> Figures:
        """What the decision comes to for everybody together, with its certificate."""
        return Figures(
            setting=self.market.setting,
            people=self.reports.size,
            active=self.active,
            mse=self.mse,
            objective=self.objective,
            lower_bound=self.lower_bound,
            cap_cost=self.cap_cost,
            largest_privacy_loss=float(self.privacy_loss.max()),
            total_privacy_loss=math.fsum(self.privacy_loss),
            squared_weights=math.fsum(self.weights**2),
            incentive_error=self.incentive_error,
        )

    def columns(self) -> dict[str, FloatArray]:
        """Everybody's numbers as plain arrays by name, in the order of the reports."""
        return {
            "report": self.reports,
            "virtual_cost": self.virtual_costs,
            "privacy_loss": self.privacy_loss,
            "weight": self.weights,
            "payment": self.payments,
            "information_rent": self.information_rent,
            "outside_error": self.outside_error,
        }

    def schedule(self, user: int | None = None) -> "Schedule":
        """One curve c ↦ (privacy loss, payment): that prices everybody, or the one that person ``user`` faces."""
        from hushbid.mechanism.schedule import common_schedule, own_schedule

        return common_schedule(self) if user is None else own_schedule(self, user)

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

    def __repr__(self) -> str:  # losses and payments tell what people reported: not for a log
        return (
            f"Outcome(people={self.reports.size}, active={self.active}, mse={self.mse:g}, total={self.total_payment:g})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain values; `from_dict` reads it back."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "market": self.market.to_dict(),
            "columns": {name: _texts(column) for name, column in self.columns().items()},
            "rent_lower": _texts(self.rent_bounds[0]),
            "rent_upper": _texts(self.rent_bounds[1]),
            "mse": _text(self.mse),
            "objective": _text(self.objective),
            "incentive_error": self.incentive_error,
            "tie_order": None if self.tie_order is None else self.tie_order.tolist(),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Outcome":
        """The inverse of `to_dict`."""
        from hushbid.mechanism.market import Market

        if not isinstance(values, Mapping):
            raise RecordError(f"An outcome must be a mapping of its fields, got {type(values).__name__}.")
        if values.get("format") != FORMAT or values.get("version") != VERSION:
            raise RecordError(
                f"An outcome must have format {FORMAT!r} and version {VERSION}, got {values.get('format')!r} and"
                f" {values.get('version')!r}."
            )
        try:
            columns = {name: np.array([float(x) for x in column]) for name, column in values["columns"].items()}
            bounds = [np.array([float(x) for x in values[name]]) for name in ("rent_lower", "rent_upper")]
            order = values.get("tie_order")
            places = None if order is None else np.array(order, dtype=np.intp)
            if len({len(column) for column in (*columns.values(), *bounds, *([] if order is None else [order]))}) != 1:
                raise RecordError("The outcome cannot be read: its columns differ in length.")
            return cls(
                market=Market.from_dict(values["market"]),
                reports=columns["report"],
                virtual_costs=columns["virtual_cost"],
                privacy_loss=columns["privacy_loss"],
                weights=columns["weight"],
                payments=columns["payment"],
                information_rent=columns["information_rent"],
                rent_bounds=(bounds[0], bounds[1]),
                outside_error=columns["outside_error"],
                mse=float(values["mse"]),
                objective=float(values["objective"]),
                incentive_error=float(values["incentive_error"]),
                tie_order=places,
            )
        except (KeyError, TypeError, ValueError, AttributeError) as problem:
            raise RecordError(f"The outcome cannot be read: {type(problem).__name__} in its fields.") from None


def _text(value: float) -> float | str:
    """JSON has no infinity: write it as text, which ``float`` reads back."""
    return value if math.isfinite(value) else str(value)


def _texts(column: FloatArray) -> list[float | str]:
    return column.tolist() if np.isfinite(column).all() else [_text(value) for value in column.tolist()]
