"""Something random that is drawn once and never again, whatever crashes in between.

For a name in a folder there are three files::

    NAME.claim    created exclusively and made durable before anything is drawn; holds the lock; never removed;
                  empty until a drawing is complete on the disk, and it says so before anybody can see that one
    NAME.draft    the drawing while it is being written; gone as soon as the final file is there
    NAME.json     the drawing, complete; appears in one step and is never replaced

A live claimant holds an advisory lock on the claim, so nobody else completes it. A claim without a final file belongs
to somebody who died before showing anything. The next one to ask finishes the job: with the draft if it is complete, so
that not even the disk ever holds two drawings, else with a new drawing. A final file is returned as it stands. If the
claim says that there was a drawing and there is none, somebody took it away, who may have seen it: nothing is drawn.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hushbid.common.documents import compact, parsed
from hushbid.common.durable import (
    create,
    give_name,
    locked,
    make_folder,
    note,
    open_durable_lock,
    open_lock,
    require_locks,
    sync,
)
from hushbid.errors import AlreadyReleased, LedgerError, RecordError, Unwritable

_TAIL = b"}\n"
_DRAWN = b"drawn\n"


def stored(folder: Path, name: str) -> dict[str, Any] | None:
    """What was drawn under this name, or None."""
    with usable(folder):
        return _stored(folder, name)


def was_drawn(folder: Path, name: str) -> bool:
    """Whether there is or was a drawing under this name."""
    return any((folder / f"{name}{end}").exists() for end in (".json", ".draft")) or _says_drawn(folder, name)


def drawing_of(folder: Path, name: str) -> dict[str, Any] | None:
    """What was drawn under this name, also if nobody saw it yet; None if nothing was. One that is gone is refused."""
    found = _stored(folder, name) or _read(folder / f"{name}.draft")
    if found is None and _says_drawn(folder, name):
        raise _gone(folder, name)
    return found


def drawn_once(folder: Path, name: str, draw: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
    """What was drawn under this name; if nothing was, draw it, store it durably, and only then return it."""
    with usable(folder):
        make_folder(folder)
        # of all who ask at once, one draws; the others wait and find it
        with _claimed(folder, name):
            found = _stored(folder, name)
            if found is None:
                _store(folder, name, draw)
                found = _stored(folder, name)
    if found is None:
        raise LedgerError(f"{folder / name}.json vanished while it was being stored.")
    return found


@contextmanager
def locked_file(path: Path) -> Iterator[None]:
    """Hold the lock of a file, which stays; waits for whoever holds it, and the dead hold none."""
    require_locks("A release ledger", LedgerError)
    with locked(open_lock(path)):
        yield


@contextmanager
def usable(folder: Path) -> Iterator[None]:
    """Refuse a folder that is a file, may not be read or written, or is full, in a sentence."""
    if "\0" in str(folder):
        raise LedgerError("The name of a folder must not hold a zero character.")
    try:
        yield
    except NotADirectoryError as problem:
        raise Unwritable(f"The folder {folder} cannot be used: it is a file, or lies in one.") from problem
    except OSError as problem:
        why = problem.strerror or type(problem).__name__
        raise Unwritable(f"The folder {folder} cannot be used: {why}.") from problem


def _stored(folder: Path, name: str) -> dict[str, Any] | None:
    path = folder / f"{name}.json"
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    drawing = _opened(content)
    if drawing is None:
        raise LedgerError(f"{path} is damaged; it is neither returned nor drawn again.")
    return drawing


@contextmanager
def _claimed(folder: Path, name: str) -> Iterator[None]:
    require_locks("A release ledger", LedgerError)
    claim = open_durable_lock(folder / f"{name}.claim")  # durable before anything is drawn
    with locked(claim):  # waits for a live claimant; a dead one holds no lock
        yield


def _store(folder: Path, name: str, draw: Callable[[], Mapping[str, Any]]) -> None:
    """Write the drawing under its draft name, then give it its final name, durably at each step. The lock is held."""
    draft, final = folder / f"{name}.draft", folder / f"{name}.json"
    # step 1: a complete draft of somebody who died is taken over, else draw
    if _read(draft) is None:
        if _says_drawn(folder, name):
            raise _gone(folder, name)
        draft.unlink(missing_ok=True)
        create(draft, _sealed(draw()))
    # step 2: durable, content and name
    sync(draft)
    sync(folder)
    # step 3: from here on a missing file is refused, never drawn again
    note(folder / f"{name}.claim", _DRAWN)
    # step 4: its name, in one step
    give_name(draft, final)
    draft.unlink()


def _says_drawn(folder: Path, name: str) -> bool:
    claim = folder / f"{name}.claim"
    return claim.exists() and claim.stat().st_size > 0


def _gone(folder: Path, name: str) -> AlreadyReleased:
    return AlreadyReleased(
        f"{folder / name}.json was stored and is gone. Somebody may have seen what it held, so nothing is drawn in its"
        " place: put the file back."
    )


def _sealed(drawing: Mapping[str, Any]) -> bytes:
    """The drawing after its checksum, by which a torn or damaged file is recognised."""
    text = compact(drawing)  # in the order of its fields: what was found comes last
    return b"".join((_head(text), text, _TAIL))


def _read(path: Path) -> dict[str, Any] | None:
    """The drawing in a file; None if there is no file or it is not complete."""
    try:
        return _opened(path.read_bytes())
    except FileNotFoundError:
        return None


def _opened(content: bytes) -> dict[str, Any] | None:
    """The drawing in a sealed file; None if it is torn or damaged."""
    # whole, to the last byte, or not at all
    text = content[len(_head(b"")) : -len(_TAIL)]
    if not (content.startswith(_head(text)) and content.endswith(_TAIL)):
        return None
    try:
        return parsed(text)
    except RecordError:
        return None


def _head(text: bytes) -> bytes:
    return f'{{"sha256": "{hashlib.sha256(text).hexdigest()}",\n "drawing": '.encode()
