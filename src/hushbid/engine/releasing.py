"""The sums that a release needs, found by passes over a priced table; the releasing is `hushbid.disclosure`'s.

Central: exact integer sums on the engine, of one number or of a survey's answers, of each stratum where there are any,
noise once, on the driver, never
inside a lazy plan that might be evaluated twice. Local: people send noisy messages, of which those of the few who
matter go to the driver. And for both, what is asked of whom: the sums by which memory and engines know each other's
entries in the release ledger.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Generic

import numpy as np

from hushbid.common.arrays import BoolArray, FloatArray, IndexArray, id_texts
from hushbid.disclosure import Answer, Release, ReleasePlan
from hushbid.disclosure.combination import Combined
from hushbid.disclosure.delivery import prepare_release
from hushbid.disclosure.grid import exponent_of
from hushbid.disclosure.ledger.once import refuse_real_sums, release_summed
from hushbid.disclosure.ledger.question import (
    Ask,
    Forms,
    Tally,
    answer_forms,
    as_question,
    as_wave,
    message_form,
    person_digests,
    tallied,
)
from hushbid.disclosure.messages import Kind, Message
from hushbid.disclosure.prepare import PreparedSums, prepare
from hushbid.disclosure.promises import about, as_asked, strata_terms
from hushbid.disclosure.sum_plan import SumPlan
from hushbid.disclosure.sums import Above, Sums
from hushbid.disclosure.weighing import Asked, Weighing
from hushbid.engine.adapter import Batch, Sum
from hushbid.engine.decisions import Decider, LookupKernel
from hushbid.engine.delivered import DataColumns, DataNames, data_columns
from hushbid.engine.people import Rows
from hushbid.engine.pricing import Priced
from hushbid.errors import InfiniteLoss, InputError, NothingDelivered


def release(
    priced: Priced, data: DataNames = None, *, question: str, wave: int = 1, ledger: str | Path | None = None
) -> Release:
    """Release the estimate that a pricing paid for, from a column of the same table (null: did not deliver).

    The column holds numbers in the central setting, and in the local one the messages that people's devices sent. A
    survey has one for each question, in their order; by default they are called as the questions are. There choices
    are texts, and yes and no are those words, booleans, or 1 and 0.

    It is drawn once for a question and these people: the release ledger, ``ledger`` or else the user's, keeps it, and
    asking again with the same promises and data returns the stored one, also if memory drew it. Other promises and
    other data are refused; so are data that came late, which sums cannot tell from other data.
    """
    return answer(priced, data, question=question, wave=wave, ledger=ledger).release


def answer(
    priced: Priced,
    data: DataNames,
    *,
    question: str,
    wave: int,
    ledger: str | Path | None = None,
    before_first: Callable[[], None] = lambda: None,
) -> Answer:
    """Return an estimate, and how it came about: drawn now, or kept from before.

    ``before_first`` is called if the ledger does not know it, before anything is drawn; it may refuse.
    """
    columns = data_columns(priced, data)
    draw = _prepared(priced, columns)
    ask = asked_of(priced, columns, question=question, wave=wave)
    return release_summed(ask, draw, ledger=ledger, before_first=before_first)


def release_synthetic(
    priced: Priced,
    data: DataNames = None,
    *,
    question: str = "synthetic",
    wave: int = 1,
    ledger: str | Path | None = None,
) -> Answer:
    """Draw an estimate from synthetic people: a new one at every call, of which nothing is kept.

    People or data that the release ledger knows from a real release are refused.
    """
    columns = data_columns(priced, data)
    draw = _prepared(priced, columns)
    refuse_real_sums(lambda: asked_of(priced, columns, question=question, wave=wave), ledger)
    return Answer(release=draw("made-up"), before=False, late=(), waves_before=0)


def _prepared(priced: Priced, data: DataColumns) -> Callable[[str], Release]:
    """Check and add up everything; what is returned only has to draw, under a name."""
    summary = priced.summary
    if summary.active == 0:
        raise NothingDelivered("Nothing was bought, so there is nothing to release.")
    if math.isinf(summary.largest_privacy_loss):
        raise InfiniteLoss("Somebody's privacy loss is infinite: set max_privacy_loss in the market.")
    if priced.market.strategy.sends_messages:
        return _messages_combined(priced, data)
    return prepared_sums(priced, data).draw


def prepared_sums(priced: Priced, data: DataColumns) -> PreparedSums:
    """Add up what people delivered: one pass, and a second one where price and datum may be related."""
    plan, engine, kernel = sum_plan(priced), priced._engine, priced._kernel
    sums = engine.reduce(UsedKernel(kernel, data, partial(_sums, plan=plan)), Sums.none(plan))
    if plan.relation is None:
        return prepare(plan, sums)
    # who is above an equal share is known once the weights are added up
    above = partial(_above, plan=plan, totals=sums.weights)
    return prepare(plan, sums, engine.reduce(UsedKernel(kernel, data, above), Above.none(plan)))


def sum_plan(priced: Priced) -> SumPlan:
    """What was promised, in figures about everybody and about each stratum."""
    market, summary, kernel = priced.market, priced.summary, priced._kernel
    asked, widest = _asked(priced), float(np.max(np.asarray(market.stated_variance)))
    largest, losses = kernel.largest_used, tuple(loss for _, loss in kernel.used)
    combined = _combined(priced)
    weights = (1.0,) if combined is None else combined.weights
    noise = max(abs(weight) / loss for weight, loss in zip(weights, losses, strict=True))
    return SumPlan(
        **asked.as_fields,
        exponent=exponent_of(np.array(losses)),
        weights=weights,
        losses=losses,
        active=summary.active,
        largest_loss=largest,
        largest_variance=widest if kernel.people.variance is None else kernel.idle.largest_outside,
        planned=Weighing(
            squares=summary.squared_weights,
            spread=max(summary.mse - 2.0 * (asked.width * noise) ** 2, 0.0),
            largest=noise * largest,
            noise=noise,
        ),
        combined=combined,
    )


def _combined(priced: Priced) -> Combined | None:
    """Which combination of stratum means is published, from how many people; None where it is one mean."""
    strata = priced._population.strata
    if strata is None:
        return None
    bought_from = tuple(count for count, _ in priced._kernel.used)
    return Combined(weights=tuple(strata.weights.tolist()), bought_from=bought_from, names=strata.names)


def _asked(priced: Priced) -> Asked:
    """What is asked: a survey's questions, or one number."""
    market = priced.market
    bounds = None if market.survey else market.bounds
    return as_asked(market.survey or (), market.layout, bounds, priced._population.relation)


def _messages_combined(priced: Priced, data: DataColumns) -> Callable[[str], Release]:
    """Messages carry their noise already; nothing is drawn here, but what is combined is combined once."""
    kernel, market = priced._kernel, priced.market
    assert isinstance(kernel, LookupKernel)
    messages = dict(priced._engine.reduce(MessagesKernel(kernel, data), ()))
    active = np.flatnonzero(kernel.known.privacy_loss > 0.0)
    losses, strata = kernel.known.privacy_loss[active], priced._population.strata
    asked = about(market.survey, market.layout, market.bounds, market.stated_variance)
    if strata is not None:
        strata = replace(strata, codes=kernel.strata[active])

    # of the active only: the others have no message
    relation = priced._population.relation
    plan = ReleasePlan.of(losses, setting="local", **asked, key="messages", relation=relation, strata=strata)
    draw = prepare_release(plan, [messages.get(place) for place in active.tolist()]).draw
    return lambda name: replace(draw(), key=name)


# -- what people delivered --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DataKernel:
    """What reads decisions and data together."""

    kernel: Decider
    data: DataColumns

    @property
    def columns(self) -> list[str]:
        """What it reads."""
        return list(dict.fromkeys([*self.kernel.columns, *self.data.names]))


@dataclass(frozen=True, slots=True)
class UsedKernel(DataKernel, Generic[Sum]):
    """From a batch to what a function makes of people, of what the estimate uses of their losses, and of their data."""

    of: Callable[[Rows, FloatArray, FloatArray], Sum]

    def __call__(self, batch: Batch, start: int | None) -> Sum:
        rows, table = self.kernel.people.read(batch), self.data.read(batch, start)
        return self.of(rows, self.kernel.details(batch, rows).used, table if rows.good is None else table[rows.good])


def _sums(rows: Rows, used: FloatArray, table: FloatArray, *, plan: SumPlan) -> Sums:
    return Sums.of(used, table, rows.strata, plan, rows.variance)


def _above(rows: Rows, used: FloatArray, table: FloatArray, *, plan: SumPlan, totals: tuple[int, ...]) -> Above:
    """Those who weigh more than an equal share of their stratum, in which weights add up to ``totals``."""
    return Above.of(used, table, rows.strata, plan, totals)


# -- messages ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MessagesKernel(DataKernel):
    """From a batch to the messages in it that are needed, each with its sender's place on the driver."""

    kernel: LookupKernel

    def __call__(self, batch: Batch, start: int | None) -> tuple[tuple[int, str], ...]:
        rows = self.kernel.people.read(batch)
        which, place = self.kernel.found(batch, rows)
        # of those who were bought from
        needed = self.kernel.known.privacy_loss[place] > 0.0
        which, place = which[needed], place[needed]
        places = which if rows.good is None else np.flatnonzero(rows.good)[which]
        column = batch.column(self.data.names[0])
        texts = [column[row].as_py() for row in places.tolist()]
        return tuple((at, str(text)) for at, text in zip(place.tolist(), texts, strict=True) if text)


# -- what is asked of whom ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AskKernel(DataKernel):
    """From a batch to its people, their losses and their data."""

    variance: float
    """Everybody's, where the table has no column of it."""

    kind: Kind
    """What people send in the local setting."""

    @property
    def columns(self) -> list[str]:
        """What it reads."""
        return list(dict.fromkeys([*self.kernel.columns, *self.kernel.people.columns_and_id, *self.data.names]))

    def __call__(self, batch: Batch, start: int | None) -> Tally:
        people = self.kernel.people
        rows = people.read(batch)
        losses = self.kernel.details(batch, rows).privacy_loss
        good = np.arange(batch.num_rows) if rows.good is None else np.flatnonzero(rows.good)
        column = None if people.id is None else batch.column(people.id).take(good)
        names = None if column is None else id_texts(column.to_pylist())
        if names is not None and "" in names:
            raise InputError(f"Column {people.id!r} must name everybody who is asked, but an id is missing or empty.")
        found = None if names is None else person_digests(names)
        variance = self.variance if rows.variance is None else rows.variance
        strata = rows.strata if people.strata else None
        return tallied(found, losses, variance, self._forms(batch, start, good, losses > 0.0), strata)

    def _forms(self, batch: Batch, start: int | None, good: IndexArray, asked: BoolArray) -> Forms:
        if not self.data.messages:
            table = self.data.read(batch, start)[good]
            return answer_forms(table, asked & ~np.isnan(table[:, 0]), self.data.questions)
        texts = batch.column(self.data.names[0])
        return Forms(
            rows=[
                _message_form(texts[row].as_py(), self.kind) if wanted else None
                for row, wanted in zip(good.tolist(), asked.tolist(), strict=True)
            ]
        )


def _message_form(text: object, kind: Kind) -> bytes | None:
    """A message; one that cannot be read as it stands, to be refused where its row is known."""
    if not text:
        return None
    try:
        return message_form(Message.from_json(str(text), kind))
    except InputError:
        return str(text).encode()


def asked_of(priced: Priced, data: DataColumns, *, question: str, wave: int) -> Ask:
    """A question to the people of a priced table, from one pass."""
    as_question(question)  # refused as it was written
    market, strata, asked = priced.market, priced._population.strata, _asked(priced)
    spread = float(np.max(np.asarray(market.stated_variance)))
    kernel = AskKernel(priced._kernel, data, spread, asked.kind)
    return Ask(
        asked=asked,
        question=question,
        wave=as_wave(wave),
        by_ids=priced._kernel.people.id is not None,
        setting=market.setting,
        tally=priced._engine.reduce(kernel, Tally()),
        strata=() if strata is None else tuple(strata_terms(strata, asked.relation)),
    )
