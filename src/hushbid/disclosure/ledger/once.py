"""Draw one estimate for one question to the same people, from any process and folder, however often it is asked.

`release_once` and `release_summed` know a question and whom it is asked, and keep what they draw in the release ledger;
`release_plan` leaves it to the caller under which key an estimate is drawn once: a campaign server takes the campaign's
name. Whatever is drawn goes through `hushbid.disclosure.ledger.files`, and through `draw_first`, which remembers what
this process has drawn, so that a second ledger does not draw again either. `release_synthetic` and `simulate_releases`
draw as often as they are called, and refuse what the ledger knows from a real release.
"""

import secrets
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from hushbid.common.arrays import FloatArray, HashArray, first_row, id_texts, rows_text
from hushbid.disclosure.delivery import Prepared, prepare_release, simulate_plan, with_rows
from hushbid.disclosure.ledger.files import drawn_once, stored
from hushbid.disclosure.ledger.marks import Keyed, Marks, refuse_alike
from hushbid.disclosure.ledger.question import (
    Ask,
    Forms,
    as_question,
    as_wave,
    person_digests,
    tallied,
)
from hushbid.disclosure.ledger.store import Settled, is_ledger, ledger_folder, refuse_former, refuse_released, settle
from hushbid.disclosure.promises import ReleasePlan, strata_terms
from hushbid.disclosure.release import Release
from hushbid.errors import AlreadyReleased, DataError, InputError, LedgerError, RecordError

_PLANS, _SYNTHETIC = "plans", "synthetic"
"""What `release_plan` draws is kept in this folder of the ledger."""
_process_key = Keyed(secrets.token_bytes(32), slow=False)
_drawn: dict[str, "_Drawn"] = {}
"""Everything that this process has drawn or seen, by the plan's key or by the name that its own key gives."""
_drawn_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class _Drawn:
    """What a process remembers of a drawing."""

    unstored: Path | None = None
    """The folder in which it is still to be stored, if it is."""

    marks: Marks | None = None
    """What was asked of whom, if that is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A release, and how it came about."""

    release: Release
    """The one estimate; its rows are those of the plan that was asked with."""

    before: bool
    """Whether it had been drawn before."""

    late: tuple[int, ...]
    """The rows whose data arrived after it was drawn; they are not used, and stand among those who dropped out."""

    waves_before: int
    """How many other waves of the question had been drawn from these people when it was; 0 without ids."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Named:
    """People who are known by their ids."""

    digests: HashArray
    """A hash of each id."""

    def __len__(self) -> int:
        return len(self.digests)


def release_plan(
    plan: ReleasePlan, data: object, *, folder: str | Path | None = None, accept_infinite_loss: bool = False
) -> Release:
    """Draw the estimate of a plan: once under its key.

    ``data`` holds one entry per person in the plan's order, None or NaN where it is missing: numbers in the central
    setting, messages made by ``privatize`` in the local one. Values outside the range are clamped and counted.

    The release is stored in ``folder``, by default one inside the release ledger, before it is returned; asking again,
    in any process, returns that one, whatever data are passed.

    If a planned loss is infinite the release is refused, unless ``accept_infinite_loss`` is true. Then, in the
    central setting, the estimate is the mean of those people's data alone (weighted by precision), without noise; in
    the local setting their messages carry none.
    """
    place = ledger_folder() / _PLANS if folder is None else Path(folder)
    # a stored one is returned before data are looked at
    found = stored(place, plan.key)
    if found is None:
        place, draw = place.resolve(), prepare_release(plan, data, accept_infinite_loss).drawn
        found = drawn_once(place, plan.key, lambda: draw_first(plan.key, draw, place).to_dict())
    release = Release.from_dict(found)
    was_shown(plan.key)
    return release


def release_once(
    plan: ReleasePlan,
    data: object,
    *,
    question: str,
    wave: int = 1,
    ids: Iterable[object] | Named | None = None,
    ledger: str | Path | None = None,
    accept_infinite_loss: bool = False,
    simulated: bool = False,
    before_first: Callable[[], None] = lambda: None,
) -> Answer:
    """Draw the estimate of a question to some people, once, whatever the plan's key is.

    What was drawn is stored in the release ledger, ``ledger`` or else the user's, before it is returned. Asking the
    same people the same again, with the same promises and the same data, returns it; other promises or other data are
    refused. Without ids, people are known by their data and by what they were promised.

    ``before_first`` is called if the ledger does not know the question, before anything is drawn; it may refuse.
    """
    prepared = prepare_release(plan, data, accept_infinite_loss, simulated=simulated)  # refusals come first
    people, forms = _as_people(ids, plan.people), prepared.forms()
    ask = _ask_of(plan, people, forms, question, wave)
    if not plan.from_engine:
        ask = replace(ask, exact=_exact(plan, people))
    if people is not None:
        ask = replace(ask, absent=people[list(plan.dropped_out(prepared.present))])

    def late(settled: Settled) -> list[int]:
        # those who had not delivered and have now; without them all must be as it was
        found = [] if people is None else np.flatnonzero(prepared.present & settled.were_absent(people)).tolist()
        if not settled.fits(tallied(people, plan.promised, plan.variance, forms.without(found)).whole.data):
            raise settled.entry.refused("other or late data" if settled.entry.stated.absent is None else "other data")
        return found

    answer = release_summed(ask, lambda key: prepared.draw(), ledger=ledger, before_first=before_first, late=late)
    present = prepared.present.copy()
    present[list(answer.late)] = False
    return replace(answer, release=with_rows(answer.release, plan, present))


def release_summed(
    ask: Ask,
    draw: Callable[[str], Release],
    *,
    ledger: str | Path | None = None,
    before_first: Callable[[], None] = lambda: None,
    late: Callable[[Settled], Sequence[int]] | None = None,
) -> Answer:
    """Draw the estimate of a question to people of whom only sums are known, once.

    Other data are refused, and so are data that came late, which sums cannot tell from other data; unless ``late``
    returns the rows in which they came, or refuses them itself.
    """
    ours, folder = _process_marks(ask), ledger_folder(ledger)

    def first(name: str) -> dict[str, object]:
        return draw_first(ours.name, lambda: draw(name), folder, ours).to_dict()

    settled = settle(folder, ask, first, before_first)
    kept, rows = _stored_release(settled), tuple[int, ...]()
    if not settled.same_data:
        if late is None:
            raise settled.entry.refused("other or late data")
        rows = tuple(late(settled))
    was_shown(ours.name, ours)
    waves = settled.entry.waves_before
    return Answer(release=replace(kept, key=settled.name), before=settled.before, late=rows, waves_before=waves)


def release_synthetic(
    plan: ReleasePlan,
    data: object,
    *,
    question: str = _SYNTHETIC,
    wave: int = 1,
    ids: Iterable[object] | None = None,
    ledger: str | Path | None = None,
    accept_infinite_loss: bool = False,
    simulated: bool = False,
) -> Answer:
    """Draw an estimate from synthetic people: a new one at every call, of which nothing is kept.

    People or data that the release ledger knows from a real release are refused.
    """
    prepared = prepare_release(plan, data, accept_infinite_loss, simulated=simulated)
    _refuse_real(plan, prepared, ledger, question=question, wave=wave, ids=ids)
    return Answer(release=prepared.drawn(), before=False, late=(), waves_before=0)


def refuse_real_sums(ask: Callable[[], Ask], ledger: str | Path | None, *, by_losses: bool = False) -> None:
    """Refuse people or data that the release ledger knows from a real release; what is asked is found if it is there.

    ``by_losses`` refuses what was promised to people of a real release, too.
    """
    folder = ledger_folder(ledger)
    refuse_former(folder)
    if is_ledger(folder):  # else nothing was ever drawn, and hashing takes a while
        refuse_released(folder, ask(), by_losses=by_losses)


def simulate_synthetic(
    plan: ReleasePlan, synthetic_data: object, repetitions: int, *, ledger: str | Path | None = None
) -> FloatArray:
    """Draw so many independent estimates, after `simulate_plan`, unless the release ledger knows these promises.

    An outcome whose privacy losses were promised in a real release is a real one, whatever its data are.
    """
    prepared = prepare_release(plan, synthetic_data, accept_infinite_loss=True, simulated=True)
    _refuse_real(plan, prepared, ledger, by_losses=True)
    return simulate_plan(plan, synthetic_data, repetitions)


def _refuse_real(
    plan: ReleasePlan,
    prepared: Prepared,
    ledger: str | Path | None,
    *,
    question: str = _SYNTHETIC,
    wave: int = 1,
    ids: Iterable[object] | None = None,
    by_losses: bool = False,
) -> None:
    def ask() -> Ask:
        return _ask_of(plan, _as_people(ids, plan.people), prepared.forms(), question, wave)

    refuse_real_sums(ask, ledger, by_losses=by_losses)


def _ask_of(plan: ReleasePlan, people: HashArray | None, forms: Forms, question: str, wave: int) -> Ask:
    as_question(question)  # refused as it was written
    return Ask(
        asked=plan,
        question=question,
        wave=as_wave(wave),
        by_ids=people is not None,
        setting=plan.setting,
        tally=tallied(people, plan.promised, plan.variance, forms, plan.strata.codes if plan.stratified else None),
        strata=tuple(strata_terms(plan.strata, plan.relation)) if plan.stratified else (),
    )


def _stored_release(settled: Settled) -> Release:
    try:
        return Release.from_dict(settled.entry.release)
    except RecordError as problem:
        raise LedgerError(f"The entry {settled.name}.json holds no release; nothing is drawn. {problem}") from problem


def named(ids: Iterable[object]) -> Named:
    """People by their ids, of which none is missing or repeated; for a million it takes a while."""
    names = id_texts(ids)
    if "" in names:
        missing = np.array([name == "" for name in names])
        told = f"ids must name everybody, but nobody is named in {rows_text(missing)}."
        raise DataError(told, field="ids", row=first_row(missing))
    digests = person_digests(names)
    if not (np.diff(np.sort(digests[:, -1])) > 0).all() and len(set(names)) != len(names):
        first = {name: row for row, name in reversed(list(enumerate(names)))}
        again = np.array([first[name] != row for row, name in enumerate(names)])
        told = f"ids must name everybody once, but somebody is named again in {rows_text(again)}."
        raise DataError(told, field="ids", row=first_row(again))
    return Named(digests)


def _as_people(ids: Iterable[object] | Named | None, people: int) -> HashArray | None:
    if ids is None:
        return None
    given = ids if isinstance(ids, Named) else list(ids)
    if len(given) != people:
        raise InputError(f"ids must have one entry per person ({people}), got {len(given)}.", field="ids")
    return given.digests if isinstance(given, Named) else named(given).digests


def _exact(plan: ReleasePlan, people: HashArray | None) -> bytes:
    """All that was promised to the last bit, in an order that does not depend on how people are listed.

    Without ids it is that of the promises: equal ones may change places.
    """
    codes = [plan.strata.codes] if plan.stratified else []
    promised = np.stack([plan.promised, plan.delivered, plan.variance, *codes]).astype("<f8")
    order = np.lexsort(promised) if people is None else np.argsort(people[:, -1], kind="stable")
    return promised[:, order].tobytes()


# -- what the process remembers ----------------------------------------------------------------------------------------


def _process_marks(ask: Ask) -> Marks:
    return Marks.of(ask, _process_key, datetime.now(UTC).date(), answers=True)


def was_shown(key: str, marks: Marks | None = None) -> None:
    """Remember that this process has seen what is stored under a key."""
    with _drawn_lock:
        _drawn[key] = _Drawn(marks=marks)


def draw_first(key: str, draw: Callable[[], Release], folder: Path, marks: Marks | None = None) -> Release:
    """Draw, unless this process has, or has drawn from the same data. A drawing that failed was shown to nobody.

    One that could not be stored may be repeated for the same folder only, where its draft may still be found.
    """
    with _drawn_lock:
        for name, other in _drawn.items():
            if marks is not None and other.marks is not None and name != key:
                refuse_alike(marks, other.marks)
        # noted before drawing: of two threads one draws
        before = _drawn.get(key)
        if before is not None and before.unstored != folder:
            raise AlreadyReleased(
                "This process released this before, with another ledger or folder, and an estimate is drawn once: ask"
                " again there. Another question to the same people has its own text."
            )
        _drawn[key] = _Drawn(folder, marks)
    try:
        return draw()
    except BaseException:
        if before is None:
            with _drawn_lock:
                del _drawn[key]
        raise
