"""What a release is about: who was promised which privacy loss, on which public range. No data, no market."""

import hashlib
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hushbid.common.arrays import BoolArray, FloatArray, as_bounds, as_losses, as_variance, refuse_rows
from hushbid.disclosure.combination import Combined, losses_left, one_stratum, planned_losses
from hushbid.disclosure.relation import Relation
from hushbid.disclosure.weighing import Asked
from hushbid.errors import InputError, MarketError
from hushbid.estimation import Setting, Strata, is_central
from hushbid.questions import Layout, Number, Question, as_questions, layout_of, refuse_other_layout

SMALLEST_LOSS = 2.0**-53
"""A smaller privacy loss takes more noise than 64 bits hold, so nothing can be released for it."""

LARGEST_SENT_LOSS = 2.0**24
"""A larger finite loss would leave less noise than the steps of the grid of a survey's message can hold."""


def one_number(bounds: tuple[float, float]) -> tuple[Question, ...]:
    """One number in a range as a survey of one question."""
    return (Number(name="number", bounds=bounds),)


def about(
    questions: Sequence[Question] | None,
    layout: Layout | None,
    bounds: tuple[float, float] | None,
    variance: object = None,
) -> dict[str, Any]:
    """Return what `ReleasePlan.of` needs to know of a market's data: a survey's questions, or one number."""
    if questions:
        return {"questions": questions, "layout": layout}
    return {"bounds": bounds, "variance": variance}


ONE_NUMBER = layout_of(one_number((0.0, 1.0)))
"""How one number shares everybody's loss: it has all of it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ReleasePlan(Asked):
    """A promise to everybody, made before any data are seen.

    >>> plan = ReleasePlan.of([0.5, 1.0], setting="central", bounds=(0, 10))
    >>> plan.people, plan.width, len(plan.key)
    (2, 10.0, 64)
    """

    setting: Setting
    """Where noise is added: "central" (once, to the sum) or "local" (by everybody, before sending)."""

    promised: FloatArray
    """The privacy loss promised to each person, an upper bound; ``inf`` promises nothing, 0 means no data are used."""

    delivered: FloatArray
    """The privacy loss planned for each person, at most the promised one (an estimator may need less)."""

    variance: FloatArray
    """Declared variance of everybody's data, in squared data units; never taken from the data. Of a survey, the
    layout's."""

    key: str
    """Identifies the one release that may ever be drawn from this plan."""

    from_engine: bool = False
    """Whether an engine decided: then promises are compared by their sums, as their last bits may be others."""

    strata: Strata
    """Everybody's stratum and the weight of its mean; a mean is one stratum of weight 1."""

    stratified: bool = False
    """Whether a combination of stratum means is published; if not, one mean."""

    @classmethod
    def of(
        cls,
        promised: ArrayLike,
        *,
        setting: Setting,
        bounds: tuple[float, float] | None = None,
        delivered: ArrayLike | None = None,
        variance: ArrayLike | None = None,
        label: str = "",
        key: str | None = None,
        from_engine: bool = False,
        relation: Relation | None = None,
        questions: Iterable[Question] = (),
        layout: Layout | None = None,
        strata: Strata | None = None,
    ) -> "ReleasePlan":
        """A validated plan. By default all that is promised is used, and the variance is the largest possible.

        It is about one number in ``bounds``, or about a survey's ``questions``, which have ranges and variances of
        their own; their layout is the best for their importance unless given. With ``strata`` it is about the
        combination of their means; centrally, losses that are not in proportion to the strata's weights are used as
        far as the best contrast uses them.

        The key is a hash of all other arguments unless given; ``label`` tells campaigns with equal promises apart.
        """
        is_central(setting)
        asked, (allowed, used) = as_asked(questions, layout, bounds, relation), _as_promises(promised, delivered)
        if asked.survey:
            _refuse_own(variance, "variance")
            variance = asked.layout.variance
        stated = (asked.width / 2.0) ** 2 if variance is None else as_variance(variance, allowed.size)
        spread = np.array(np.broadcast_to(stated, allowed.shape))
        _refuse_relation(relation, strata, allowed.size)
        if strata is not None:
            refuse_other_people(strata, allowed.size)
        plan = cls(
            setting=setting,
            promised=allowed,
            delivered=used,
            **asked.as_fields,
            variance=spread,
            key="",
            from_engine=from_engine,
            strata=one_stratum(allowed.size) if strata is None else strata,
            stratified=strata is not None,
        )
        _refuse_response(plan)
        if strata is not None:
            plan = replace(plan, delivered=planned_losses(used, plan.unit_variance, strata, setting))
        # promises do not change any more
        for array in (plan.promised, plan.delivered, plan.variance):
            array.setflags(write=False)
        return replace(plan, key=_content_hash(plan, label) if key is None else _as_key(key))

    def __repr__(self) -> str:  # losses reveal what people bid: not for a log
        about = f"questions={len(self.questions)}" if self.survey else f"bounds={self.bounds}"
        return f"ReleasePlan(setting={self.setting!r}, people={self.people}, {about}, key={self.key!r})"

    @property
    def people(self) -> int:
        """How many people the plan is about."""
        return self.promised.size

    @property
    def response(self) -> bool:
        """Whether everybody answers one yes/no question by randomised response, on their own device."""
        return self.setting == "local" and self.kind == "response"

    @property
    def weighing_variance(self) -> FloatArray:
        """What weights are chosen with: everybody's declared variance, and what a relation adds to it."""
        return self.variance if self.relation is None else self.variance + self.relation.variance

    @property
    def unit_variance(self) -> FloatArray:
        """The same for a range of width 1."""
        return self.weighing_variance / self.width / self.width

    @property
    def combined(self) -> Combined | None:
        """Which combination of stratum means is estimated, from how many people of each; None where it is one mean."""
        return Combined.of(self.strata, self.delivered > 0.0) if self.stratified else None

    @property
    def unlimited(self) -> BoolArray:
        """Whose data may be used without noise; with strata all that is promised may be used where some drop out."""
        return np.asarray((self.promised if self.stratified else self.delivered) == math.inf)

    def dropped_out(self, present: BoolArray) -> tuple[int, ...]:
        """The rows that should have delivered and did not, if these did."""
        return tuple(np.flatnonzero((self.delivered > 0.0) & ~present).tolist())

    def losses_used(self, present: BoolArray) -> FloatArray:
        """What is used of everybody's loss if only some deliver.

        If the planned losses are what the best estimate of all uses, those present are what it uses of theirs: with
        fewer people the best estimator listens to nobody less. Where stratum means are combined they may not suffice in
        each, and the best contrast of what was promised to those present is used.
        """
        if not self.stratified:
            return np.where(present, self.delivered, 0.0)
        return losses_left(self.promised, self.delivered, present, self.unit_variance, self.strata)


def as_asked(
    questions: Iterable[Question], layout: Layout | None = None, bounds: object = None, relation: Relation | None = None
) -> Asked:
    """What is asked, validated: a survey's questions, or one number in ``bounds``.

    The layout is the best for the questions' importance unless given.
    """
    if not (asked := tuple(questions)):
        found = as_bounds(bounds)
        return Asked(bounds=found, questions=one_number(found), layout=ONE_NUMBER, relation=relation)
    _refuse_own(bounds, "bounds")
    asked = as_questions(asked)
    if layout is None:
        layout = layout_of(asked)
    else:
        refuse_other_layout(asked, layout)
    return Asked(bounds=(0.0, layout.width), questions=asked, layout=layout, survey=True, relation=relation)


def refuse_unreleasable(least: float, layout: Layout | None = None) -> None:
    """What is decided and paid must be possible to release: one sum with noise, or everybody's own noisy value.

    In a survey a part of each loss has to be large enough.
    """
    part = least if layout is None else least * min(group.share for group in layout.groups)
    if part < SMALLEST_LOSS:
        shared = "" if layout is None else f", of which {part:.2g} is for some of the questions,"
        raise MarketError(
            f"A privacy loss of {least:.2g}{shared} is too small to release anything: it must be at least 2**-53 ="
            f" {SMALLEST_LOSS:.2g}, so the goal asks for too little from these people."
        )


def refuse_unsendable(losses: FloatArray) -> None:
    """No device can send a survey's answers with so little noise."""
    too_large = (losses > LARGEST_SENT_LOSS) & (losses < np.inf)
    if too_large.any():
        raise MarketError(
            f"A privacy loss of {losses[too_large].max():.2g} is too large for a message with a survey's answers: it"
            f" must be infinite or at most 2**24 = {LARGEST_SENT_LOSS:.2g}; set max_privacy_loss."
        )


def strata_terms(strata: Strata, relation: Relation | None) -> list[str]:
    """Which combination of which strata is estimated, as texts that tell two apart; not who is in which."""
    counts = [] if relation is None else list(relation.strata)
    return ["strata", json.dumps([weight.hex() for weight in strata.weights.tolist()]), json.dumps(counts)]


def refuse_other_people(strata: Strata, people: int) -> None:
    """Everybody is in a stratum."""
    if strata.codes.size != people:
        problem = f"strata must have one code per person ({people}), got {strata.codes.size}."
        raise InputError(problem, field="strata")


def _refuse_relation(relation: Relation | None, strata: Strata | None, people: int) -> None:
    """A relation is among everybody, in each stratum."""
    if relation is None:
        return
    if relation.roster < people:
        problem = f"relation must count everybody, {people} people or more, got {relation.roster}."
        raise InputError(problem, field="relation")
    counts = () if strata is None else tuple(np.bincount(strata.codes, minlength=strata.count).tolist())
    if len(counts) != len(relation.strata) or any(map(int.__gt__, counts, relation.strata)):
        least = f"at least {list(counts)} people" if counts else "none, as there are no strata"
        raise InputError(f"relation must count everybody in strata: {least}, got {list(relation.strata)}.")


def _refuse_own(value: object, name: str) -> None:
    """Refuse what a survey's questions state themselves."""
    if value is not None:
        raise InputError(f"{name} must be left out of a survey: its questions have their own.", field=name)


def _as_promises(promised: ArrayLike, delivered: ArrayLike | None) -> tuple[FloatArray, FloatArray]:
    """What is promised to each person, and what is planned for them; by default all of it."""
    allowed = as_losses(promised, some_positive=False, name="promised")
    used = allowed if delivered is None else as_losses(delivered, some_positive=False, name="delivered")
    if used.shape != allowed.shape:
        problem = f"delivered must have one entry per person ({allowed.size}), got {used.size}."
        raise InputError(problem, field="delivered")
    refuse_rows(used > allowed, "delivered must not exceed promised", "does", end="", field="delivered")
    return allowed, used


def _refuse_response(plan: ReleasePlan) -> None:
    """Refuse what randomised response does not go with."""
    if plan.response and plan.relation is not None:
        problem = "relation must be None where a single yes/no question is answered by randomised response."
        raise InputError(problem, field="relation")


def _as_key(key: str) -> str:
    if not key or len(key) > 128 or not all(c.isascii() and (c.isalnum() or c in "-_") for c in key):
        raise InputError("key must be 1 to 128 ASCII letters, digits, '-' or '_'.", field="key")
    return key


def _content_hash(plan: ReleasePlan, label: str) -> str:
    """A hash of everything that a plan promises; ``label`` tells equal promises apart."""
    header = ["hushbid release plan 1", plan.setting, label, *(bound.hex() for bound in plan.bounds)]
    if plan.relation is not None:
        header += [plan.relation.spread.hex(), str(plan.relation.roster)]
    header += [*plan.terms, *(strata_terms(plan.strata, plan.relation) if plan.stratified else [])]
    digest = hashlib.sha256(json.dumps(header).encode())
    for array in (plan.promised, plan.delivered, plan.variance):
        digest.update(array.astype("<f8").tobytes())
    if plan.stratified:
        digest.update(plan.strata.codes.astype("<i8").tobytes())
    return digest.hexdigest()
