"""A survey as the market for one number that it comes to, and how large the error of each question is.

Everybody's one loss pays for all of their answers (`hushbid.questions`), and everybody has one weight in all estimates.
Question j on a range of width ``R_j`` and with variance ``V_j`` has the error

    MSE_j = R_j²·noise_g·n + V_j·Σw²,    at worst  MSE_j + γ²·V_j·(N·Σw² − 1),

``noise_g`` being that of the group it is in, and ``n`` what the noise comes to: ``1/S²`` with ``S`` the losses that are
used together (central), or ``Σw²/ε²``, as everybody adds their own noise (local); where one yes/no question is
answered by randomised response, ``Σw²/(8·sinh²(ε/2))``, what false answers add to the error. With strata ``S`` is the
losses over ``Σ|ℓ_g|``, and ``N·Σ ℓ_g²/N_g`` takes the place of the 1. So the errors relative to ranges, weighed by
importance, are those of one number on a range of width `Layout.width`: a price, a budget and a hard budget choose by
these. With a standard error for each question, errors are relative to what was stated: the one number's is 1, and no
question's is larger.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from hushbid.allocation import Accuracy, Goal, Price
from hushbid.common.arrays import FloatArray
from hushbid.errors import InputError
from hushbid.questions import Choice, Layout, Number, Question, as_questions, layout_of

if TYPE_CHECKING:
    from hushbid.mechanism.population import Population
    from hushbid.mechanism.simulation import CampaignFigures


@lru_cache(maxsize=64)  # asked for again and again, and never changing
def layout(questions: tuple[Question, ...], goal: Goal) -> Layout:
    """How the questions share everybody's loss: best for what the goal states."""
    return layout_of(questions, goal.targets if isinstance(goal, Accuracy) else None)


def goal_for_one_number(questions: tuple[Question, ...] | None, goal: Goal) -> Goal:
    """The goal of the market for one number that the questions come to; without questions it is the goal itself."""
    if questions is None:
        return goal
    if isinstance(goal, Price):
        return Price(goal.buyer_weight * layout(questions, goal).importance)
    return Accuracy(1.0) if isinstance(goal, Accuracy) else goal


def goal_for_questions(questions: tuple[Question, ...] | None, stated: Goal, goal: Goal) -> Goal:
    """The inverse of `goal_for_one_number`, for a goal of the kind that was stated."""
    if questions is None:
        return goal
    if isinstance(goal, Price):
        return Price(goal.buyer_weight / layout(questions, stated).importance)
    return stated.times(goal.number) if isinstance(goal, Accuracy) and isinstance(stated, Accuracy) else goal


def checked_questions(questions: Sequence[Question], *, stated: Mapping[str, bool]) -> tuple[Question, ...]:
    """The questions; refused beside what is ``stated`` for a single number."""
    found = as_questions(questions)
    for name in (name for name, given in stated.items() if given):
        raise InputError(f"{name} must not be stated beside questions, each of which has its own.", field=name)
    return found


def check_targets(questions: tuple[Question, ...] | None, goal: Goal) -> None:
    """As many standard errors as questions."""
    if not isinstance(goal, Accuracy):
        return
    stated, wanted = len(goal.targets), 1 if questions is None else len(questions)
    if stated != wanted:
        each = "one number" if questions is None else f"one number for each question ({wanted})"
        raise InputError(f"standard_error must be {each}, got {stated}.", field="standard_error")


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionError:
    """How far the estimate of one question may be off; of a choice, the share that varies most."""

    question: Question
    """The question."""

    mse: float
    """Mean squared error if price and answer are unrelated, in squared units of the answers."""

    worst_mse: float
    """Mean squared error at worst, if they are related as closely as the market allows for."""

    @property
    def standard_error(self) -> float:
        """The root of the mean squared error."""
        return math.sqrt(self.mse)

    @property
    def worst_standard_error(self) -> float:
        """The root of the mean squared error at worst."""
        return math.sqrt(self.worst_mse)

    @property
    def words(self) -> str:
        """In words: both errors, where they differ."""
        unit = f" {self.question.unit}" if isinstance(self.question, Number) and self.question.unit else ""
        of_each = ", of every share" if isinstance(self.question, Choice) else ""
        worst = f" if unrelated, {self.worst_standard_error:.3g}{unit} at worst" if self.worst_mse > self.mse else ""
        return f"{self.question.name}: {self.standard_error:.3g}{unit}{worst}{of_each}"


def question_errors(
    questions: tuple[Question, ...],
    shared: Layout,
    *,
    noise: float,
    squares: float,
    population: "Population",
    relation: float,
) -> tuple[QuestionError, ...]:
    """The error of each question from what the noise comes to and ``Σw²``, at a largest relation among these people."""
    found = []
    uneven = max(population.roster * squares - population.evenness, 0.0)
    for row, one in enumerate(questions):
        mse = shared.group_of(row).noise * noise + one.largest_variance * squares
        bias = relation**2 * one.largest_variance * uneven
        unit = one.width**2
        found.append(QuestionError(question=one, mse=mse * unit, worst_mse=(mse + bias) * unit))
    return tuple(found)


def noise_of(population: "Population", losses: FloatArray, weights: FloatArray) -> float:
    """What the noise comes to, as above; infinite if nothing was bought."""
    if not losses.any():
        return math.inf
    if population.setting.sends_messages:
        bought = losses > 0.0
        scale = losses[bought]
        if population.setting.response:
            with np.errstate(over="ignore"):
                scale = math.sqrt(8.0) * np.sinh(0.5 * scale)
        return math.fsum(np.square(weights[bought] / scale))
    if not np.isfinite(losses).all():
        return 0.0
    if population.strata is None:
        return 1.0 / math.fsum(population.used(losses)) ** 2
    # the optimum uses what it buys; a hard budget may buy more of one stratum than of another
    used = losses if population.hard_budget is None else population.used(losses)
    return (math.fsum(np.abs(population.strata.weights)) / math.fsum(used)) ** 2


def noise_in(mse: float, squares: float, variance: float, unit: float) -> float:
    """``1/S²`` from the error of the one number and ``Σw²``; infinite if nothing was bought."""
    return max(mse - variance * squares, 0.0) / (2.0 * unit)


def mean_figures(population: "Population", campaigns: "Iterable[CampaignFigures]") -> tuple[float, float]:
    """What the noise and ``Σw²`` come to on average over campaigns, from their errors and exposures to a relation."""
    noise, squares = [], []
    spread = float(np.mean(population.own_error))
    for one in campaigns:
        square = (one.exposure / spread + population.evenness) / population.roster
        squares.append(square)
        noise.append(noise_in(one.mse, square, spread, population.unit))
    return float(np.mean(noise)), float(np.mean(squares))
