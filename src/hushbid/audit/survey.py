"""The attacks on privacy and accuracy for a survey, whose output is a vector.

*Privacy.* Everybody gives the lowest answers, and one person the lowest or the highest ones, to all questions at once.
Whoever knows the others' answers can do no better than to look at the likelihood ratio of the two cases,

    L = Σ_g (‖output_g − low_g‖ − ‖output_g − high_g‖) / scale_g,

over the groups of questions, each with the norm of its noise. The output is the release, or in the local setting the
message that her device sends, which all who see it can attack. Events are thresholds on L, as for one number in
:mod:`hushbid.audit.privacy`. Besides, in each group the norm of the noise, in units of its scale, is compared with a
gamma distribution whose shape is the noise's dimension: d for a box of d questions, d − 1 for a choice among d answers.

*Accuracy.* Answers are made up, independent and as different as declared: two values of a number around the middle,
yes and no, the first two answers of a choice. Each question's estimate, or the share of a choice's first answer, is
compared with what the release states of it. Relations of prices and answers are not simulated.

A single yes/no question in the local setting is answered by a coin, not with noise: :mod:`hushbid.audit.coin`.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hushbid.audit.accuracy import AccuracyCheck, standard_error
from hushbid.audit.coin import check_plan_by_coin
from hushbid.audit.privacy import TOO_LITTLE_NOISE, PrivacyAudit, certain_loss, kolmogorov_p_value
from hushbid.common.arrays import FloatArray
from hushbid.disclosure import ReleasePlan, simulate_plan
from hushbid.disclosure.combination import level_of
from hushbid.disclosure.delivery import planned_errors
from hushbid.disclosure.error import ErrorModel
from hushbid.disclosure.local import draw_answers, grid_bits
from hushbid.disclosure.memory import weigh
from hushbid.disclosure.prepare import PreparedSums
from hushbid.disclosure.promises import layout_of_plan
from hushbid.disclosure.sums import part_of
from hushbid.disclosure.weighing import bounds_of, in_order
from hushbid.errors import InputError
from hushbid.estimation import WORST_VARIANCE, best_weights, is_central
from hushbid.questions import Choice, NoiseGroup, Number

_FAR = 10.0
_PLACES = {"low": 0.0, "high": 1.0, "far below": -_FAR, "far above": 1.0 + _FAR}
_VALUES = 40_000
"""Of each data set about so many values are drawn, over all questions: several at once take longer than one."""


def survey_samples(plan: ReleasePlan, samples: int) -> int:
    """How many outputs of a survey are drawn where so many of one number would be."""
    cells = sum(len(one.answers) if isinstance(one, Choice) else 1 for one in plan.questions)
    return max(min(samples, _VALUES // cells), min(samples, 1000))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Case:
    """What a group's cells are without noise, in the two cases to tell apart, and how much noise they get."""

    group: NoiseGroup
    lowest: FloatArray
    """If she gives the lowest, or first, answers, as everybody else does."""

    highest: FloatArray
    """If she gives the highest, or second, ones."""

    scale: float
    """Of the noise, in the same unit."""

    def norm(self, noise: FloatArray) -> FloatArray:
        """Of so many noises, one a row."""
        return np.asarray(np.maximum(noise, 0.0).sum(axis=1) if self.group.choice else np.abs(noise).max(axis=1))

    @property
    def shape(self) -> int:
        """The dimension of the noise."""
        return self.group.cells - self.group.choice


Outputs = list[FloatArray]
"""What an attacker sees: so many rows of cells for each group, in the unit of its case."""


def check_survey_privacy(
    plan: ReleasePlan, *, user: int, samples: int = 5_000, confidence: float = 0.99
) -> PrivacyAudit:
    """Attack a survey's own noise path on made-up answers: what is released, or in the local setting what she sends."""
    if not 0 <= user < plan.people or not 0 < plan.delivered[user] < math.inf:
        raise InputError(f"user must be a row with a positive, finite privacy loss, got {user}.", field="user")
    if plan.response:
        return check_plan_by_coin(plan, user=user, samples=samples, confidence=confidence)
    attacked = _sums if is_central(plan.setting) else _messages
    cases, raw = attacked(plan, user, samples)
    ratios = {place: _ratio(cases, outputs) for place, outputs in raw.items()}
    doubt = (1.0 - confidence) / 2.0  # the other half of it is for the fit
    bound, event = certain_loss(ratios, doubt)
    return PrivacyAudit(
        user=user,
        promised=float(plan.promised[user]),
        lower_bound=bound,
        event=event.replace("output", "likelihood ratio"),
        fit_p_value=_fit(cases, raw),
        confidence=confidence,
        samples=samples,
        power=_power(cases, samples, doubt),
    )


def _sums(plan: ReleasePlan, user: int, samples: int) -> tuple[list[_Case], dict[str, Outputs]]:
    """The weighted sums that a platform releases, in steps of the groups' sums."""
    weighed = weigh(plan, plan.delivered > 0)
    summed, cases = weighed.without_data(), []
    for group, blend in zip(summed.plan.groups, summed.blends, strict=True):
        first, hers = _first(group), int(part_of(weighed.weights[user : user + 1], group.parts)[0])
        lowest = blend.level * float(blend.total) * first
        moved = float(hers) * float(blend.factors[plan.combination.codes[user]])
        highest = lowest + moved * (_second(group) - first)
        cases.append(_Case(group=group, lowest=lowest, highest=highest, scale=summed.plan.noise_scale))
    raw = {
        place: list(_by_group(summed, simulate_plan(plan, _answers(plan, user, share), samples)))
        for place, share in _PLACES.items()
    }
    return cases, raw


def _messages(plan: ReleasePlan, user: int, samples: int) -> tuple[list[_Case], dict[str, Outputs]]:
    """The messages that her device sends, in steps of their grid."""
    layout, loss = layout_of_plan(plan), float(plan.delivered[user])
    bits = grid_bits(loss, layout.groups)
    cases = [
        _Case(
            group=group,
            lowest=2.0**bits * _first(group),
            highest=2.0**bits * _second(group),
            scale=2.0**bits / (loss * group.share),
        )
        for group in layout.groups
    ]
    raw = {}
    for place, share in _PLACES.items():
        hers = np.tile(_answers(plan, user, share)[user], (samples, 1))
        sent = draw_answers(hers, loss, plan.questions, layout.groups)
        raw[place] = [
            np.array([message.values[group] for message in sent], dtype=np.float64) for group in range(len(cases))
        ]
    return cases, raw


def _first(group: NoiseGroup) -> FloatArray:
    """A group's cells at the lowest, or first, answers, on a range of width 1."""
    return np.eye(group.cells)[0] if group.choice else np.zeros(group.cells)


def _second(group: NoiseGroup) -> FloatArray:
    """At the highest, or second, ones."""
    return np.eye(group.cells)[1] if group.choice else np.ones(group.cells)


def _answers(plan: ReleasePlan, user: int, share: float) -> FloatArray:
    """Everybody's lowest answers, and hers at that share of the way to the highest, which may lie outside."""
    low, high = np.array([bounds_of(one) for one in plan.questions]).T
    table = np.tile(low, (plan.people, 1))
    within = [not isinstance(one, Number) for one in plan.questions]  # other answers than these do not exist
    table[user] = low + np.where(within, min(max(share, 0.0), 1.0), share) * (high - low)
    return table


def _by_group(summed: PreparedSums, outputs: FloatArray) -> Iterator[FloatArray]:
    """Each group's cells, in steps of its weighted sum."""
    ends = np.cumsum([len(one.answers) if isinstance(one, Choice) else 1 for one in summed.plan.questions])
    starts = [0, *ends[:-1].tolist()]
    for group, blend in zip(summed.plan.groups, summed.blends, strict=True):
        columns = [starts[row] + cell for row in group.rows for cell in range(group.cells if group.choice else 1)]
        ranges = [bounds_of(summed.plan.questions[row]) for row in group.rows]
        low, high = (np.array(ends) for ends in zip(*ranges, strict=True))
        yield (outputs[:, columns] - blend.level * low) / (high - low) * float(blend.total)


def _ratio(cases: Sequence[_Case], outputs: Outputs) -> FloatArray:
    """The likelihood ratio of her giving the highest answers against the lowest."""
    found = np.zeros(len(outputs[0]))
    for one, cells in zip(cases, outputs, strict=True):
        found += (one.norm(cells - one.lowest) - one.norm(cells - one.highest)) / one.scale
    return found


def _fit(cases: Sequence[_Case], raw: dict[str, Outputs]) -> float:
    """How likely the norms of the groups' noises fit gamma distributions as badly, over all groups."""
    from scipy.special import gammainc

    p_values = []
    for group, one in enumerate(cases):
        known = {place: one.highest if share > 0.5 else one.lowest for place, share in _PLACES.items()}
        norms = [one.norm(outputs[group] - known[place]) / one.scale for place, outputs in raw.items()]
        p_values.append(kolmogorov_p_value(gammainc(one.shape, np.sort(np.concatenate(norms)))))
    return min(1.0, len(p_values) * min(p_values))


def _power(cases: Sequence[_Case], samples: int, doubt: float) -> float:
    """How likely the fit finds too little noise in the group where it is hardest to see.

    With n outputs the empirical distribution is off by at most 1/(2√n), one standard deviation, where the two
    distributions are furthest apart.
    """
    from scipy.special import gammainc, gammaincinv, kolmogi, ndtr

    root, powers = math.sqrt(len(_PLACES) * samples), []
    levels = np.linspace(0.001, 0.999, 999)
    noticed = float(kolmogi(doubt / len(cases))) / root
    for one in cases:
        shorter = gammaincinv(one.shape, levels) / TOO_LITTLE_NOISE
        apart = float(np.max(np.abs(gammainc(one.shape, shorter) - levels)))
        powers.append(float(ndtr(2.0 * root * (apart - noticed))))
    return min(powers)


def check_survey_accuracy(
    plan: ReleasePlan, *, rng: np.random.Generator, repetitions: int = 500, level: float = 0.95
) -> Iterator[AccuracyCheck]:
    """Simulate a survey on made-up answers that vary as declared; one result for each question."""
    questions = plan.questions
    spread = np.array([0.5 if not isinstance(q, Number) else math.sqrt(q.relative_variance) for q in questions])
    low, high = np.array([bounds_of(one) for one in questions]).T
    errors, draw = _release_of(plan)

    def answered() -> Iterator[FloatArray]:
        for _ in range(repetitions):
            signs = rng.choice([-1.0, 1.0], size=(plan.people, len(questions)))
            yield low + (0.5 + signs * spread) * (high - low)

    found = draw(answered())
    for row, question in enumerate(questions):
        # a first answer's share is the lower sign's
        error, truth = errors[row], level_of(plan.combination) * (low[row] + (high[row] - low[row]) / 2.0)
        misses = np.array([one[row] for one in found]) - truth
        squared = np.square(misses)
        yield AccuracyCheck(
            repetitions=repetitions,
            formula_mse=error.mse,
            simulated_mse=float(squared.mean()),
            mse_uncertainty=standard_error(squared, error),
            level=level,
            coverage=float(np.mean(np.abs(misses) <= error.half_width(level))),
            question=question.name,
            noise_share=1.0 - _sampling(plan, error) / error.mse,
            by_coin=plan.response,
        )


def _sampling(plan: ReleasePlan, error: ErrorModel) -> float:
    """What the error would be without noise, or if no coin lied."""
    if not plan.response:
        return error.sampling_variance
    found = best_weights(plan.delivered, setting="local", variance=WORST_VARIANCE, response=True)
    return WORST_VARIANCE * float(np.sum(np.square(found.weights)))


def _release_of(plan: ReleasePlan) -> tuple[list[ErrorModel], Callable[[Iterable[FloatArray]], list[list[float]]]]:
    """The errors that a release states, and what releases find from tables of answers: of each question the first
    value."""
    if is_central(plan.setting):
        weighed = weigh(plan, plan.delivered > 0)
        summed = weighed.without_data()

        def drawn(tables: Iterable[FloatArray]) -> list[list[float]]:
            found = summed.values([summed.totals_of(weighed.sums(table)) for table in tables])
            return [[values[0] for values in in_order(summed.plan.groups, one)] for one in found]

        return summed.errors()[0], drawn
    sizes = [len(one.answers) if isinstance(one, Choice) else 1 for one in plan.questions]
    places = np.cumsum([0, *sizes[:-1]])
    return planned_errors(plan), lambda tables: [simulate_plan(plan, one, 1)[0, places].tolist() for one in tables]
