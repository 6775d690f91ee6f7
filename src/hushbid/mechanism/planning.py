"""How large a campaign must be, or what an error is worth, to meet a target on average.

No payments are computed: however a rule is priced as in :mod:`hushbid.payments`, expected payments equal expected
virtual payments,

    E Σ t_i = E[Σ ψ_i ε_i + Σ β_i (MSE − outside_i)]        (reports drawn from the prior; [F] Prop. 2),

and the right-hand side varies less. For fixed reports the error falls and the virtual payment rises with the buyer
weight: with ``A`` the error weight, ``d(Σ ψε) = −A·dMSE`` at an optimum, so the payment changes by ``−α·dMSE ≥ 0``. So
the means over the same draws are monotone, and one root is sought.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from hushbid.errors import InputError, MarketError
from hushbid.estimation import best_weights
from hushbid.mechanism.simulation import Estimate, Progress, check_people, mean_of, standard_error
from hushbid.priors import Grouped

if TYPE_CHECKING:
    from hushbid.mechanism.market import Market

FloatArray = NDArray[np.float64]
Campaigns = list[FloatArray]
"""The virtual costs of everybody, campaign by campaign."""

_MOST_PEOPLE = 10**7
_MOST_TRIALS = 100
_PRECISION = 1e-4
"""The buyer weight is sought to this relative precision, far below what the draws can tell."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan:
    """A market and a number of people that meet a target on average."""

    market: "Market"
    """The market, with the buyer weight of the plan."""

    n: int
    """How many people to invite."""

    solved_for: Literal["buyer_weight", "n"]
    """What was free."""

    answer: Estimate
    """The buyer weight or the number of people, with the interval that the Monte Carlo error leaves open."""

    expected_mse: Estimate
    """Expected mean squared error, in squared data units, from draws of its own."""

    expected_payment: Estimate
    """Expected total payment, from the same draws."""

    repetitions: int
    """How many campaigns were drawn for the search, and as many again for the expected figures."""

    def summary(self) -> str:
        """The plan in words."""
        return (
            f"Invite {self.n} people, with a buyer weight of {self.market.buyer_weight:.6g}. Expected mean squared"
            f" error: {self.expected_mse}. Expected total payment: {self.expected_payment}. From {self.repetitions}"
            f" simulated campaigns; the {'number of people' if self.solved_for == 'n' else 'buyer weight'} that meets"
            f" the target is {self.answer}."
        )


def plan(
    market: "Market",
    *,
    target_mse: float | None = None,
    budget: float | None = None,
    n: int | None = None,
    rng: np.random.Generator,
    repetitions: int = 200,
    progress: Progress | None = None,
) -> Plan:
    """Meet a target on average; see `Market.plan`."""
    if (target_mse is None) == (budget is None):
        raise InputError(f"give either target_mse or budget, got target_mse={target_mse} and budget={budget}.")
    name, value = ("target_mse", target_mse) if budget is None else ("budget", budget)
    if value is None or not 0.0 < value < math.inf:
        raise InputError(f"{name} must be positive and finite, got {value}.")
    if repetitions < 10:
        raise InputError(f"repetitions must be at least 10, got {repetitions}.")
    search = _Search(market, "payment" if target_mse is None else "mse", value, repetitions, rng, progress)
    return search.for_people() if n is None else search.for_weight(n)


class _Search:
    """One plan. Figures at different trials are means over the same draws, so that they are comparable."""

    def __init__(
        self,
        market: "Market",
        kind: Literal["mse", "payment"],
        value: float,
        repetitions: int,
        rng: np.random.Generator,
        progress: Progress | None,
    ) -> None:
        self.market, self.kind, self.value, self.repetitions = market, kind, value, repetitions
        self.rng, self.progress, self.trials = rng, progress, 0
        self.seed = int(rng.integers(2**62))

    def for_weight(self, n: int) -> Plan:
        check_people(self.market.prior, n)
        campaigns = self._draw(n, self.seed)
        self._refuse_impossible(n, campaigns)
        if np.any(np.asarray(self.market.user_weight) > 0.0) and self.kind == "mse":
            careless = replace(self.market, buyer_weight=0.0)
            if float(self._figure(careless, campaigns).mean()) <= self.value:
                nothing = Estimate(value=0.0, low=0.0, high=0.0)
                return self._result(careless, n, "buyer_weight", nothing)

        def figure(log_weight: float) -> FloatArray:
            return self._figure(replace(self.market, buyer_weight=math.exp(log_weight)), campaigns)

        low, high = self._bracket(lambda at: float(figure(at).mean()))
        while high - low > _PRECISION:
            middle = 0.5 * (low + high)
            too_small = (float(figure(middle).mean()) > self.value) == (self.kind == "mse")
            low, high = (middle, high) if too_small else (low, middle)
        best = high if self.kind == "mse" else low
        slope = (float(figure(best + 0.1).mean()) - float(figure(best - 0.1).mean())) / 0.2
        answer = _interval(math.exp(best), standard_error(figure(best)), slope)
        return self._result(replace(self.market, buyer_weight=math.exp(best)), n, "buyer_weight", answer)

    def for_people(self) -> Plan:
        for name in ("variance", "user_weight"):
            if isinstance(getattr(self.market, name), np.ndarray):
                raise InputError(f"n must be given for a market with one {name} per person.")
        if isinstance(self.market.prior, Grouped):
            raise InputError("n must be given for a market with one prior per person.")

        def figure(n: int) -> FloatArray:
            return self._figure(self.market, self._draw(n, self.seed))

        low, high = 0, 2 if self.market.outside_option == "estimate" else 1
        while float(figure(high).mean()) > self.value:
            low, high = high, 2 * high
            if high > _MOST_PEOPLE:
                raise MarketError(
                    f"the expected {self.kind} is above {self.value:g} for every number of people tried, up to {low}."
                )
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if float(figure(middle).mean()) > self.value else (low, middle)
        more = math.ceil(1.2 * high)
        at_best = figure(high)
        slope = float(figure(more).mean() - at_best.mean()) / math.log(more / high)
        answer = _interval(float(high), standard_error(at_best), slope)
        return self._result(self.market, high, "n", answer)

    def _draw(self, n: int, seed: int) -> Campaigns:
        rng = np.random.default_rng(seed)
        prior = self.market.prior
        return [np.asarray(prior.virtual_cost(prior.sample(n, rng=rng))) for _ in range(self.repetitions)]

    def _figure(self, market: "Market", campaigns: Campaigns) -> FloatArray:
        """Error or virtual payment of each campaign, whichever is aimed at."""
        self.trials += 1
        if self.progress is not None:
            self.progress(self.trials, max(_MOST_TRIALS, self.trials))
        figures = np.array([market.virtual_figures(costs) for costs in campaigns])
        return figures[:, 0 if self.kind == "mse" else 1]

    def _bracket(self, mean: Callable[[float], float]) -> tuple[float, float]:
        """Two logarithms of the buyer weight between which the mean crosses its target."""
        weight = float(np.asarray(self.market.buyer_weight))
        start = math.log(weight) if weight > 0.0 else 0.0
        too_small = (mean(start) > self.value) == (self.kind == "mse")
        step, here = math.log(8.0) if too_small else -math.log(8.0), start
        while -600.0 < here + step < 600.0:
            there = here + step
            if ((mean(there) > self.value) == (self.kind == "mse")) != too_small:
                return min(here, there), max(here, there)
            here, step = there, 1.5 * step
        raise MarketError(f"no buyer weight makes the expected {self.kind} {self.value:g}.")

    def _refuse_impossible(self, n: int, campaigns: Campaigns) -> None:
        """Some errors cannot be had from ``n`` people at any price; some payments are due whatever the buyer wants."""
        market = self.market
        market.virtual_figures(campaigns[0])
        if self.kind == "mse":
            cap = math.inf if market.max_privacy_loss is None else market.max_privacy_loss
            spread = np.asarray(market.stated_variance, dtype=float) / market.width**2
            least = float(best_weights(np.full(n, cap), setting=market.setting, variance=spread).mse) * market.width**2
            if not self.value > least:
                raise MarketError(
                    f"target_mse must be above {least:g}, the least possible with {n} people, got {self.value:g}."
                )
        elif np.any(np.asarray(market.user_weight) > 0.0):
            least = float(self._figure(replace(market, buyer_weight=0.0), campaigns).mean())
            if not self.value > least:
                raise MarketError(
                    f"budget must be above {least:g}, what {n} people are paid even if the buyer does not care about"
                    f" the error, got {self.value:g}."
                )

    def _result(self, market: "Market", n: int, solved_for: Literal["buyer_weight", "n"], answer: Estimate) -> Plan:
        fresh = self._draw(n, int(self.rng.integers(2**62)))
        figures = np.array([market.virtual_figures(costs) for costs in fresh])
        return Plan(
            market=market,
            n=n,
            solved_for=solved_for,
            answer=answer,
            expected_mse=mean_of(figures[:, 0]),
            expected_payment=mean_of(figures[:, 1]),
            repetitions=self.repetitions,
        )


def _interval(answer: float, error: float, slope: float) -> Estimate:
    """Where the answer may lie if the figure is off by its error, its slope in the answer's logarithm known."""
    ratio = math.exp(min(1.96 * error / abs(slope), 700.0)) if slope != 0.0 else math.inf
    return Estimate(value=answer, low=answer / ratio, high=answer * ratio)
