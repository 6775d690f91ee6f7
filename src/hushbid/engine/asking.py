"""What is asked of whom, found in one pass over a priced table: the sums that memory finds too."""

from dataclasses import dataclass

import numpy as np

from hushbid.arrays import BoolArray, IndexArray, id_texts
from hushbid.disclosure.claim_names import Ask, Tally, as_question, as_wave, person_digests, tallied
from hushbid.disclosure.message import PrivatizedValue
from hushbid.disclosure.releasing import message_form, number_forms
from hushbid.engine.adapter import Batch
from hushbid.engine.decisions import Decider
from hushbid.engine.people import floats_of
from hushbid.engine.pricing import Priced
from hushbid.errors import InputError


@dataclass(frozen=True, slots=True)
class AskKernel:
    """From a batch to its people, their losses and their data."""

    kernel: Decider
    data: str
    central: bool
    variance: float
    """Everybody's, where the table has no column of it."""

    @property
    def columns(self) -> list[str]:
        """What it reads."""
        return list(dict.fromkeys([*self.kernel.columns, *self.kernel.people.columns_and_id, self.data]))

    def __call__(self, batch: Batch, start: int | None) -> Tally:
        people = self.kernel.people
        rows = people.read(batch)
        losses = self.kernel.decide(batch, rows)[0]
        good = np.arange(batch.num_rows) if rows.good is None else np.flatnonzero(rows.good)
        column = None if people.id is None else batch.column(people.id).take(good)
        names = None if column is None else id_texts(column.to_pylist())
        if names is not None and "" in names:
            raise InputError(f"Column {people.id!r} must name everybody who is asked, but an id is missing or empty.")
        found = None if names is None else person_digests(names)
        variance = self.variance if rows.variance is None else rows.variance
        return tallied(found, losses, variance, self._forms(batch, good, losses > 0.0))

    def _forms(self, batch: Batch, good: IndexArray, asked: BoolArray) -> list[bytes | None]:
        if self.central:
            column = floats_of(batch.column(self.data), self.data)[good]
            return number_forms(column, asked & ~np.isnan(column))
        texts = batch.column(self.data)
        return [
            _message_form(texts[row].as_py()) if wanted else None
            for row, wanted in zip(good.tolist(), asked.tolist(), strict=True)
        ]


def _message_form(text: object) -> bytes | None:
    """A message; one that cannot be read as it stands, to be refused where its row is known."""
    if not text:
        return None
    try:
        return message_form(PrivatizedValue.from_json(str(text)))
    except InputError:
        return str(text).encode()


def asked_of(priced: Priced, data: str, *, question: str, wave: int) -> Ask:
    """A question to the people of a priced table, from one pass."""
    market = priced.market
    spread = float(np.max(np.asarray(market.stated_variance)))
    kernel = AskKernel(priced._kernel, data, market.setting == "central", spread)
    return Ask(
        question=as_question(question),
        wave=as_wave(wave),
        by_ids=priced._kernel.people.id is not None,
        setting=market.setting,
        bounds=market.bounds,
        tally=priced._engine.reduce(kernel, Tally()),
    )
