"""Several files that appear together or not at all, and outputs that must not be in each other's way.

`Staging` is for a command that may be interrupted:

Every file or folder is first made in a hidden folder next to its final place and made durable. Only when all are there
do they get their names, in the order in which they were added; a stop signal waits for that short moment. Whatever goes
wrong before it, an interrupt included, removes what is temporary and leaves the folders as they were.

A file that exists is replaced only with ``force``. One that would not change is left alone: writing the same again is
not overwriting.

A process that is killed cannot tidy up: its hidden folders, which it kept locked, go when the same is written again.
A run that says in which ``folder`` it writes keeps that locked, too: meanwhile a second run is refused.
"""

import errno
import filecmp
import os
import shutil
import signal
import sys
import tempfile
import threading
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType, TracebackType
from typing import BinaryIO, NamedTuple

from hushbid.common.durable import FOLDER_LOCK, TEMPORARY, clear_dead, lock, lock_folder, open_lock, remove, sync
from hushbid.errors import InputError, OutputExists, Unwritable

STREAM = "-"
"""The name that stands for a standard stream."""

Write = Callable[[BinaryIO], object]
_STOPS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


class _Waiting(NamedTuple):
    temporary: Path
    final: Path


class Staging:
    """A set of files to be written together: ``with Staging(force=False) as files: files.add(path, write)``."""

    def __init__(self, *, force: bool, folder: Path | None = None) -> None:
        self.force = force
        self._folder = folder
        self._folder_mark = -1
        self._waiting: list[_Waiting] = []
        self._rooms: list[_Room] = []
        self._removed: list[Path] = []
        self._made_folders: list[Path] = []

    def __enter__(self) -> "Staging":
        if self._folder is not None:
            with _telling_what_failed(self._folder):
                self._make_folder(self._folder)
            self._folder_mark = _claim(self._folder)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._publish()
        finally:
            # whatever happened, nothing temporary stays
            for room in self._rooms:
                room.clear()
            for folder in reversed(self._made_folders):
                with suppress(OSError):  # not empty: something was published in it
                    folder.rmdir()
            if self._folder_mark >= 0:
                os.close(self._folder_mark)

    def add(self, path: str | Path, write: Write, *, private: bool = True) -> None:
        """Write a file under a temporary name; a private one can be read by its owner only."""

        def fill(place: Path) -> None:
            with place.open("wb") as file:
                write(file)

        made = self.make(path, fill)
        if not private:
            made.chmod(0o666 & ~_umask())

    def make(self, path: str | Path, write: Callable[[Path], object]) -> Path:
        """Let ``write`` make a file or a folder at a temporary path, which is returned; only its owner may read it."""
        final = Path(path)
        with _telling_what_failed(final):
            # made and noted together, so that an interrupt leaves nothing behind that nobody knows
            with _stops_held_back():
                self._make_folder(final.parent)
                room = _Room.beside(final)
                self._rooms.append(room)
            made = room.folder / final.name
            write(made)
            # what was written is private and durable before it gets its name
            for one in [*(made.rglob("*") if made.is_dir() else ()), made]:
                one.chmod(0o700 if one.is_dir() else 0o600)
                _sync_if_possible(one)
        self._waiting.append(_Waiting(made, final))
        return made

    def remove(self, path: str | Path) -> None:
        """Let what is at a path go when the others have their names, if it is there; it counts as replaced."""
        self._removed.append(Path(path))

    def _make_folder(self, folder: Path) -> None:
        missing = [one for one in (folder, *folder.parents) if not one.exists()]
        for one in reversed(missing):
            try:
                one.mkdir(mode=0o700)
            except FileExistsError:
                if not one.is_dir():
                    raise
                continue  # another run was quicker
            self._made_folders.append(one)

    def _publish(self) -> None:
        changed = [one for one in self._waiting if not _same(one)]
        if not self.force:
            refuse_existing([*(one.final for one in changed), *self._removed])
        with _stops_held_back():
            for waiting in changed:
                with _telling_what_failed(waiting.final):
                    self._give_name(waiting)
            for path in self._removed:
                with _telling_what_failed(path):
                    remove(path)
            for folder in {one.final.parent for one in changed}:
                _sync_if_possible(folder)

    def _give_name(self, waiting: _Waiting) -> None:
        if waiting.temporary.is_dir() or (self.force and waiting.final.is_dir()):
            self._give_name_to_folder(waiting)
            return
        if self.force:
            os.replace(waiting.temporary, waiting.final)
            return
        try:
            os.link(waiting.temporary, waiting.final)  # unlike a rename, fails if another run was quicker
        except FileExistsError:
            refuse_existing([waiting.final])

    def _give_name_to_folder(self, waiting: _Waiting) -> None:
        """Rename a folder: in one step where nothing is; else the old one is moved away first, and goes with the room.

        Others who write the same may be quicker, any number of times: theirs is then replaced, or refuses ours.
        """
        old = 0
        while True:
            try:
                os.rename(waiting.temporary, waiting.final)  # unless what is there is empty, it stays
                return
            except OSError as problem:
                if problem.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR, errno.EISDIR):
                    raise
                if not self.force:
                    refuse_existing([waiting.final])
            with suppress(FileNotFoundError):  # moved away by another
                os.rename(waiting.final, waiting.temporary.with_name(f"replaced-{old}"))
            old += 1


def _claim(folder: Path) -> int:
    """Lock a folder until the descriptor is closed; -1 where folders cannot be locked."""
    try:
        return lock_folder(folder)
    except BlockingIOError:
        raise OutputExists(
            f"{folder} is being written by another run: wait until it has ended, or choose another folder.",
            field="folder",
        ) from None


class _Room:
    """A hidden folder beside a final place, marked by a lock as long as its maker lives."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # locked before it has the name that others look for: they never take it for one of the dead
        self._lock = open_lock(folder / f"{FOLDER_LOCK}.new")
        lock(self._lock, wait=False)
        os.rename(folder / f"{FOLDER_LOCK}.new", folder / FOLDER_LOCK)

    @classmethod
    def beside(cls, final: Path) -> "_Room":
        """Make a new room."""
        return cls(Path(tempfile.mkdtemp(dir=final.parent, prefix=clear_dead(final), suffix=TEMPORARY)))

    def clear(self) -> None:
        """Remove it and all that is in it."""
        shutil.rmtree(self.folder, ignore_errors=True)
        os.close(self._lock)


def write_file(path: str | Path, write: Write, *, force: bool, private: bool = True) -> None:
    """Write one file completely or not at all; ``-`` is standard output."""
    if str(path) == STREAM:
        write(sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    with Staging(force=force) as files:
        files.add(path, write, private=private)


def refuse_existing(paths: list[Path]) -> None:
    """Say which files are in the way, if any."""
    found = [str(path) for path in paths if str(path) != STREAM and os.path.lexists(path)]
    if found:
        exist = "exists" if len(found) == 1 else "exist"
        raise OutputExists(f"{', '.join(found)} {exist} already: force=True replaces.", field="force")


def refuse_clashes(outputs: Iterable[str | Path], inputs: Iterable[str | Path]) -> None:
    """Refuse, before anything is done, to write over what is read or to write two things to one place.

    With force or not, and by whatever name: a relative path, a link, other capitals. What lies in a folder that is read
    counts as read, and a folder that holds it as well.
    """
    read = [_place(path) for path in inputs if str(path) != STREAM]
    taken: dict[str, str | Path] = {}
    for path in outputs:
        if str(path) == STREAM:
            continue
        place = _place(path)
        for one in read:
            if place == one or _is_same_file(place, one) or one in place.parents or place in one.parents:
                raise InputError(f"{path} cannot be written: {one} is what this command reads.")
        # as a file system that ignores capitals and composition would see it
        folded = unicodedata.normalize("NFC", str(place)).casefold()
        if folded in taken:
            raise InputError(f"{path} cannot be written: {taken[folded]} names the same file, so one would be lost.")
        taken[folded] = path


def _place(path: str | Path) -> Path:
    """Where a path leads; an address on another file system stays as it is."""
    text = str(path).removeprefix("file://")
    return Path(text if "://" in text else os.path.realpath(text))


def _is_same_file(one: Path, other: Path) -> bool:
    try:
        return os.path.samefile(one, other)
    except (OSError, ValueError):  # one is not there, or its name is none
        return False


def _same(waiting: _Waiting) -> bool:
    """Whether the file or folder is there already, with the same content and no more readers than it should have."""
    try:
        return _are_same(waiting.temporary, waiting.final)
    except (FileNotFoundError, NotADirectoryError):  # another run put its own there while we looked
        return False


def _are_same(wanted: Path, present: Path) -> bool:
    if present.is_symlink() or not present.exists() or present.is_dir() != wanted.is_dir():
        return False
    if present.stat().st_mode & ~wanted.stat().st_mode & 0o777:
        return False
    if not wanted.is_dir():
        return present.is_file() and filecmp.cmp(wanted, present, shallow=False)
    names = sorted(one.name for one in wanted.iterdir())
    if names != sorted(one.name for one in present.iterdir()):
        return False
    return all(_are_same(wanted / name, present / name) for name in names)


@contextmanager
def _telling_what_failed(path: Path) -> Iterator[None]:
    """Problems of the system with the name that the user knows, not the temporary one."""
    try:
        yield
    except OSError as problem:
        raise Unwritable(f"{path} cannot be written: {problem.strerror or type(problem).__name__}.") from problem


@contextmanager
def _stops_held_back() -> Iterator[None]:
    """Let an interrupt wait until the block is done.

    Blocking signals would not do: another thread, of a numerical library say, would receive them for us.
    """
    if threading.current_thread() is not threading.main_thread():  # only the main thread is ever interrupted
        yield
        return
    caught: list[int] = []

    def remember(number: int, frame: FrameType | None) -> None:
        caught.append(number)

    before = {one: signal.signal(one, remember) for one in _STOPS if signal.getsignal(one) is not None}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        # once is enough to stop
        for number in caught[:1]:
            signal.raise_signal(number)


def _sync_if_possible(path: Path) -> None:
    with suppress(OSError):  # some file systems cannot
        sync(path)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
