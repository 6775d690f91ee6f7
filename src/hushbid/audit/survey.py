"""The attacks on privacy and accuracy for a survey, whose output is a vector.

*Privacy.* Everybody gives the lowest answers, and one person the lowest or the highest ones, to all questions at once.
Whoever knows the others' answers can do no better than to look at the likelihood ratio of the two cases,

    L = Σ_g (‖output_g − low_g‖ − ‖output_g − high_g‖) / scale,

over the groups of questions, each with the norm of its noise; events are thresholds on it, as for one number in
:mod:`hushbid.audit.privacy`. Besides, in each group the norm of the noise, in units of its scale, is compared with a
gamma distribution whose shape is the noise's dimension: d for a box of d questions, d − 1 for a choice among d answers.

*Accuracy.* Answers are made up, independent and as different as declared: two values of a number around the middle,
yes and no, the first two answers of a choice. Each question's estimate, or the share of a choice's first answer, is
compared with what the release states of it. Relations of prices and answers are not simulated.
"""

import math
from collections.abc import Iterator

import numpy as np

from hushbid.arrays import FloatArray
from hushbid.audit.accuracy import AccuracyCheck
from hushbid.audit.privacy import TOO_LITTLE_NOISE, PrivacyAudit, certain_loss, kolmogorov_p_value
from hushbid.disclosure import ReleasePlan, simulate_plan
from hushbid.disclosure.survey import GroupSum, SurveySum, bounds_of, weigh
from hushbid.errors import InputError
from hushbid.questions import Choice, Number

_FAR = 10.0
_PLACES = {"low": 0.0, "high": 1.0, "far below": -_FAR, "far above": 1.0 + _FAR}
_VALUES = 40_000
"""Of each data set about so many values are drawn, over all questions: several at once take longer than one."""


def survey_samples(plan: ReleasePlan, samples: int) -> int:
    """How many outputs of a survey are drawn where so many of one number would be."""
    cells = sum(len(one.answers) if isinstance(one, Choice) else 1 for one in plan.questions)
    return max(min(samples, _VALUES // cells), min(samples, 1000))


def check_survey_privacy(
    plan: ReleasePlan, *, user: int, samples: int = 5_000, confidence: float = 0.99
) -> PrivacyAudit:
    """Attack a survey's own noise path on made-up answers."""
    if not 0 <= user < plan.people or not 0 < plan.delivered[user] < math.inf:
        raise InputError(f"user must be a row with a positive, finite privacy loss, got {user}.", field="user")
    summed = weigh(plan, plan.delivered > 0)
    raw = {place: simulate_plan(plan, _answers(plan, user, share), samples) for place, share in _PLACES.items()}
    ratios = {place: _ratio(summed, outputs, user) for place, outputs in raw.items()}
    doubt = (1.0 - confidence) / 2.0  # the other half of it is for the fit
    bound, event = certain_loss(ratios, doubt)
    promised = float(plan.promised[user])
    return PrivacyAudit(
        user=user,
        promised=promised,
        lower_bound=bound,
        event=event.replace("output", "likelihood ratio"),
        fit_p_value=_fit(summed, raw, user),
        confidence=confidence,
        samples=samples,
        power=_power(summed, samples, doubt),
    )


def _answers(plan: ReleasePlan, user: int, share: float) -> FloatArray:
    """Everybody's lowest answers, and hers at that share of the way to the highest, which may lie outside."""
    low, high = np.array([bounds_of(one) for one in plan.questions]).T
    table = np.tile(low, (plan.people, 1))
    within = [not isinstance(one, Number) for one in plan.questions]  # other answers than these do not exist
    table[user] = low + np.where(within, min(max(share, 0.0), 1.0), share) * (high - low)
    return table


def _by_group(summed: SurveySum, outputs: FloatArray) -> Iterator[tuple[GroupSum, FloatArray]]:
    """Each group's cells, in steps of its weighted sum."""
    ends = np.cumsum([len(one.answers) if isinstance(one, Choice) else 1 for one in summed.plan.questions])
    starts = [0, *ends[:-1].tolist()]
    for one in summed.groups:
        columns = [
            starts[row] + cell for row in one.group.rows for cell in range(one.group.cells if one.group.choice else 1)
        ]
        ranges = [bounds_of(summed.plan.questions[row]) for row in one.group.rows]
        low, high = (np.array(ends) for ends in zip(*ranges, strict=True))
        yield one, (outputs[:, columns] - low) / (high - low) * one.total_weight


def _norm(one: GroupSum, noise: FloatArray) -> FloatArray:
    return np.asarray(np.maximum(noise, 0.0).sum(axis=1) if one.group.choice else np.abs(noise).max(axis=1))


def _lowest(one: GroupSum) -> FloatArray:
    """A group's sums if everybody gives the lowest, or first, answers."""
    sums = np.zeros(one.group.cells)
    sums[0] = one.total_weight if one.group.choice else 0.0
    return sums


def _highest(one: GroupSum, user: int) -> FloatArray:
    """The same if she alone gives the highest, or second, answers."""
    hers = float(one.weights[user])
    moved = np.array([-hers, hers, *[0.0] * (one.group.cells - 2)]) if one.group.choice else np.asarray(hers)
    return np.asarray(_lowest(one) + moved)


def _ratio(summed: SurveySum, outputs: FloatArray, user: int) -> FloatArray:
    """The likelihood ratio of her giving the highest answers against the lowest."""
    found = np.zeros(len(outputs))
    for one, steps in _by_group(summed, outputs):
        nearer = _norm(one, steps - _lowest(one)) - _norm(one, steps - _highest(one, user))
        found += nearer / summed.summed.noise_scale
    return found


def _fit(summed: SurveySum, raw: dict[str, FloatArray], user: int) -> float:
    """How likely the norms of the groups' noises fit gamma distributions as badly, over all groups."""
    from scipy.special import gammainc

    norms: dict[tuple[int, ...], list[FloatArray]] = {}
    for place, outputs in raw.items():
        for one, steps in _by_group(summed, outputs):
            known = _highest(one, user) if _PLACES[place] > 0.5 else _lowest(one)
            norms.setdefault(one.group.rows, []).append(_norm(one, steps - known) / summed.summed.noise_scale)
    p_values = [
        kolmogorov_p_value(gammainc(_shape(one), np.sort(np.concatenate(norms[one.group.rows]))))
        for one in summed.groups
    ]
    return min(1.0, len(p_values) * min(p_values))


def _shape(one: GroupSum) -> int:
    """The dimension of a group's noise."""
    return one.group.cells - one.group.choice


def _power(summed: SurveySum, samples: int, doubt: float) -> float:
    """How likely the fit finds too little noise in the group where it is hardest to see.

    With n outputs the empirical distribution is off by at most 1/(2√n), one standard deviation, where the two
    distributions are furthest apart.
    """
    from scipy.special import gammainc, gammaincinv, kolmogi, ndtr

    root, powers = math.sqrt(len(_PLACES) * samples), []
    levels = np.linspace(0.001, 0.999, 999)
    noticed = float(kolmogi(doubt / len(summed.groups))) / root
    for one in summed.groups:
        shorter = gammaincinv(_shape(one), levels) / TOO_LITTLE_NOISE
        apart = float(np.max(np.abs(gammainc(_shape(one), shorter) - levels)))
        powers.append(float(ndtr(2.0 * root * (apart - noticed))))
    return min(powers)


def check_survey_accuracy(
    plan: ReleasePlan, *, rng: np.random.Generator, repetitions: int = 500, level: float = 0.95
) -> Iterator[AccuracyCheck]:
    """Simulate a survey on made-up answers that vary as declared; one result for each question."""
    summed = weigh(plan, plan.delivered > 0)
    questions = plan.questions
    spread = np.array([0.5 if not isinstance(q, Number) else math.sqrt(q.relative_variance) for q in questions])
    low, high = np.array([bounds_of(one) for one in questions]).T
    values = []
    for _ in range(repetitions):
        signs = rng.choice([-1.0, 1.0], size=(plan.people, len(questions)))
        values.append(summed.draw(summed.totals(low + (0.5 + signs * spread) * (high - low)), 1)[0])
    found = [summed.answers(one) for one in values]
    for row, question in enumerate(questions):
        # a first answer's share is the lower sign's
        error, truth = found[0][row].error, low[row] + (high[row] - low[row]) / 2.0
        misses = np.array([one[row].values[0] for one in found]) - truth
        squared = np.square(misses)
        yield AccuracyCheck(
            repetitions=repetitions,
            formula_mse=error.mse,
            simulated_mse=float(squared.mean()),
            mse_uncertainty=float(squared.std(ddof=1)) / math.sqrt(repetitions),
            level=level,
            coverage=float(np.mean(np.abs(misses) <= error.half_width(level))),
            question=question.name,
            noise_share=1.0 - error.sampling_variance / error.mse,
        )
