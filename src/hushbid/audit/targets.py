"""What an attack on privacy is aimed at: outputs on four synthetic data sets, and the noise that they should have.

Everybody gives the lowest answers to all questions, and one person the lowest, the highest, or answers far outside the
range, which clamping must make harmless. One number is a survey of one question. The output is the release or, in the
local setting, the message that the person's device sends, which everyone who sees it can attack.

*Noise.* Group g of the questions has the norm ‖·‖ of its noise, of scale 1, so that an attacker who knows the others'
answers can do no better than to look at the likelihood ratio of the two ends,

    L = Σ_g ‖output_g − lowest_g‖ − ‖output_g − highest_g‖.

The norm of a noise has a gamma distribution whose shape is its dimension: d for a box of d questions, d − 1 for a
choice among d answers. Its largest cell is as often positive as negative.

*Randomised response.* The answer to a single yes/no question is false with probability ``1/(1 + e^ε)``.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hushbid.common.arrays import FloatArray, IndexArray
from hushbid.disclosure import ReleasePlan, simulate_plan
from hushbid.disclosure.combination import level_of
from hushbid.disclosure.local import draw_messages, grid_bits
from hushbid.disclosure.memory import planned_weights
from hushbid.disclosure.weighing import bounds_of, cell_bounds
from hushbid.estimation import is_central
from hushbid.questions import Choice, NoiseGroup, Number

TOO_LITTLE_NOISE = 0.7
"""The power reported is that of rejecting a mechanism whose noise is this fraction of what it should be."""

_FAR = 10.0
PLACES = {"low": 0.0, "high": 1.0, "far below": -_FAR, "far above": 1.0 + _FAR}
"""Where the attacked person's answers lie in each data set, as shares of the way from the lowest to the highest."""

Outputs = Mapping[str, FloatArray]
"""Of each data set, what an attacker sees: outputs × columns."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Noise:
    """A group of columns that share one noise."""

    lowest: FloatArray
    """The columns without noise if the person gives the lowest, or first, answers, as everybody else does."""

    highest: FloatArray | None
    """If they give the highest, or second, ones; None if that is not known."""

    scale: FloatArray
    """Of each column's noise."""

    columns: IndexArray
    """Which columns of the output they are."""

    choice: bool = False
    """Whether these are the answers of a choice; if not, they are the questions of a box."""

    tests: ClassVar[int] = 2
    """How many tests `p_values` makes."""

    def ratio(self, outputs: FloatArray) -> FloatArray:
        """Return the likelihood ratio of the highest answers against the lowest, as a logarithm."""
        assert self.highest is not None
        cells = outputs[:, self.columns]
        return self._norm((cells - self.lowest) / self.scale) - self._norm((cells - self.highest) / self.scale)

    def shift(self, outputs: FloatArray) -> FloatArray:
        """Return how far the columns lie in the direction in which the person's answers move them."""
        assert self.highest is not None
        return np.asarray(outputs[:, self.columns] @ ((self.highest - self.lowest) / np.square(self.scale)))

    def p_values(self, outputs: Outputs) -> list[float]:
        """Return how likely right noise has norms that fit as badly, and signs as uneven."""
        from scipy.special import gammainc

        noise = np.concatenate([(outputs[place][:, self.columns] - known) / self.scale for place, known in self._known])
        largest = np.take_along_axis(noise, np.abs(noise).argmax(axis=1)[:, np.newaxis], axis=1)
        above, below = int(np.count_nonzero(largest > 0.0)), int(np.count_nonzero(largest < 0.0))
        norms = gammainc(self._dimension, np.sort(self._norm(noise)))
        return [kolmogorov_p_value(norms), binomial_p_value(above, above + below, 0.5)]

    def power(self, samples: int, doubt: float) -> float:
        """Return how likely the norms betray a noise that is `TOO_LITTLE_NOISE` times the right one.

        With n outputs the empirical distribution is off by at most 1/(2√n), one standard deviation, where the two
        distributions are furthest apart.
        """
        from scipy.special import gammainc, gammaincinv, kolmogi, ndtr

        root, levels = math.sqrt(len(self._known) * samples), np.linspace(0.001, 0.999, 999)
        shorter = gammaincinv(self._dimension, levels) / TOO_LITTLE_NOISE
        apart = float(np.max(np.abs(gammainc(self._dimension, shorter) - levels)))
        return float(ndtr(2.0 * (root * apart - float(kolmogi(doubt)))))

    @property
    def _known(self) -> list[tuple[str, FloatArray]]:
        """The data sets of which the output without noise is known."""
        if self.highest is None:
            return [("low", self.lowest)]
        return [(place, self.highest if share > 0.5 else self.lowest) for place, share in PLACES.items()]

    @property
    def _dimension(self) -> int:
        return self.lowest.size - self.choice

    def _norm(self, noise: FloatArray) -> FloatArray:
        """Of so many noises, one a row, in units of their scale."""
        return np.asarray(np.maximum(noise, 0.0).sum(axis=1) if self.choice else np.abs(noise).max(axis=1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """The only column where it is the answer to a yes/no question by randomised response."""

    loss: float
    """The truth has odds of ``e^loss`` to 1."""

    tests: ClassVar[int] = 1

    def p_values(self, outputs: Outputs) -> list[float]:
        """Return how likely the right odds give as many too many or too few false answers."""
        lies = sum(int(np.count_nonzero(seen[:, 0] != (PLACES[place] > 0.5))) for place, seen in outputs.items())
        return [binomial_p_value(lies, sum(map(len, outputs.values())), _lying(self.loss))]

    def power(self, samples: int, doubt: float) -> float:
        """Return how likely too few false answers betray odds for a loss 1/`TOO_LITTLE_NOISE` times as large."""
        from scipy.special import bdtr

        drawn, chance, fewer = len(PLACES) * samples, _lying(self.loss), _lying(self.loss / TOO_LITTLE_NOISE)
        # the most false answers with which it still rejects, by halving
        low, high = -1, drawn
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if 2.0 * float(bdtr(middle, drawn, chance)) < doubt else (low, middle)
        return float(bdtr(low, drawn, fewer)) if low >= 0 else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What is attacked, and what is known of it."""

    draw: Callable[[str, int], FloatArray]
    """From a data set of `PLACES` and a number: so many independent outputs, outputs × columns."""

    parts: tuple[Noise | Response, ...]
    """The noise that the columns should have; none if it is not known."""

    @property
    def by_coin(self) -> bool:
        """Whether it is randomised response."""
        return any(isinstance(part, Response) for part in self.parts)

    def features(self, outputs: FloatArray) -> dict[str, FloatArray]:
        """Return the numbers by which an attacker may distinguish outputs, but for their last bits, by name."""
        if outputs.shape[1] == 1:
            return {"answer" if self.by_coin else "output": outputs[:, 0]}
        noises = [part for part in self.parts if isinstance(part, Noise)]
        return {
            "sum of outputs": np.sum([part.shift(outputs) for part in noises], axis=0),
            "likelihood ratio": np.sum([part.ratio(outputs) for part in noises], axis=0),
        }

    def fit(self, outputs: Outputs) -> float | None:
        """Return how likely right noise fits as badly, over all tests of all parts; None if none is known."""
        found = [one for part in self.parts for one in part.p_values(outputs)]
        return min(1.0, len(found) * min(found)) if found else None

    def power(self, samples: int, doubt: float) -> float:
        """Return how likely the fit finds too little noise in the part where it is hardest to see."""
        tests = sum(part.tests for part in self.parts)
        return min((part.power(samples, doubt / tests) for part in self.parts), default=0.0)


def target_of(plan: ReleasePlan, user: int) -> Target:
    """Return the release's own noise path as a target, or in the local setting that of a person's device."""
    if plan.response:
        loss = float(plan.delivered[user])

        def respond(truth: int, count: int) -> list[int]:
            answers = np.full((count, 1), float(truth))
            return [one.value for one in draw_messages(answers, loss, plan)]

        return response_target(respond, loss)
    return _sum_target(plan, user) if is_central(plan.setting) else _message_target(plan, user)


def response_target(respond: Callable[[int, int], Sequence[int]], loss: float) -> Target:
    """Return any device as a target that answers yes or no by randomised response.

    ``respond(truth, count)`` returns so many answers, 0 or 1, to a question whose true answer is ``truth``.
    """

    def draw(place: str, samples: int) -> FloatArray:
        return np.array(respond(int(PLACES[place] > 0.5), samples), dtype=np.float64)[:, np.newaxis]

    return Target(draw=draw, parts=(Response(loss=loss),))


def _sum_target(plan: ReleasePlan, user: int) -> Target:
    """The weighted sums that a platform releases, in data units; their noise by the plan, not as it is drawn."""
    weights, scale = planned_weights(plan)
    strata, level, parts = plan.strata, level_of(plan.strata), []
    moved = math.copysign(float(weights[user]), strata.weights[strata.codes[user]])
    ends = np.cumsum([len(one.answers) if isinstance(one, Choice) else 1 for one in plan.questions]).tolist()
    for group in plan.layout.groups:
        low, high = np.array(cell_bounds(group, plan.questions)).T
        lowest = level * (low + (high - low) * _first(group))
        # the columns of a question end where those of the next begin
        columns = [range(ends[row] - (group.cells if group.choice else 1), ends[row]) for row in group.rows]
        parts.append(
            Noise(
                lowest=lowest,
                highest=lowest + moved * (high - low) * (_second(group) - _first(group)),
                scale=(high - low) * scale / group.share,
                columns=np.concatenate(columns),
                choice=group.choice,
            )
        )

    def draw(place: str, samples: int) -> FloatArray:
        table = answers_of(plan, user, PLACES[place])
        found = simulate_plan(plan, table if plan.survey else table[:, 0], samples)
        return found.reshape(samples, ends[-1])

    return Target(draw=draw, parts=tuple(parts))


def _message_target(plan: ReleasePlan, user: int) -> Target:
    """The messages that a person's device sends, as shares of the range."""
    groups, loss = plan.layout.groups, float(plan.delivered[user])
    bits, start, parts = grid_bits(loss, groups), 0, []
    for group in groups:
        parts.append(
            Noise(
                lowest=_first(group),
                highest=_second(group),
                scale=np.full(group.cells, 1.0 / (loss * group.share)),
                columns=np.arange(start, start + group.cells),
                choice=group.choice,
            )
        )
        start += group.cells

    def draw(place: str, samples: int) -> FloatArray:
        own = np.tile(answers_of(plan, user, PLACES[place])[user], (samples, 1))
        sent = draw_messages(own, loss, plan)
        cells = [[cell for group in one.values for cell in group] for one in sent]
        return np.ldexp(np.array(cells, dtype=np.float64), -bits)

    return Target(draw=draw, parts=tuple(parts))


def answers_of(plan: ReleasePlan, user: int, share: float) -> FloatArray:
    """Everybody's lowest answers, and one person's at that share of the way to the highest, which may lie outside."""
    low, high = np.array([bounds_of(one) for one in plan.questions]).T
    table = np.tile(low, (plan.people, 1))
    within = [not isinstance(one, Number) for one in plan.questions]  # other answers than these do not exist
    table[user] = low + np.where(within, min(max(share, 0.0), 1.0), share) * (high - low)
    return table


def _first(group: NoiseGroup) -> FloatArray:
    """A group's cells at the lowest, or first, answers, on a range of width 1."""
    return np.eye(group.cells)[0] if group.choice else np.zeros(group.cells)


def _second(group: NoiseGroup) -> FloatArray:
    """At the highest, or second, ones."""
    return np.eye(group.cells)[1] if group.choice else np.ones(group.cells)


def _lying(loss: float) -> float:
    """How likely an answer by randomised response is false."""
    return 1.0 / (1.0 + math.exp(min(loss, 700.0)))


# -- tests -------------------------------------------------------------------------------------------------------------


def kolmogorov_p_value(cdf: FloatArray) -> float:
    """p-value of the Kolmogorov-Smirnov test, from the supposed distribution function at the ordered sample."""
    from scipy.special import kolmogorov

    steps = np.arange(1, cdf.size + 1) / cdf.size
    distance = max(float(np.max(steps - cdf)), float(np.max(cdf - steps)) + 1.0 / cdf.size)
    return float(kolmogorov(math.sqrt(cdf.size) * distance))


def binomial_p_value(hits: int, trials: int, chance: float) -> float:
    """p-value of so many hits: twice the smaller of the exact tails."""
    from scipy.special import bdtr, bdtrc

    few = float(bdtr(hits, trials, chance))
    many = float(bdtrc(hits - 1, trials, chance)) if hits > 0 else 1.0
    return min(1.0, 2.0 * min(few, many))
