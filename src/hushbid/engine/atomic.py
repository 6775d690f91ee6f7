"""Files that appear complete or not at all, several of them together.

Every file is first written under a temporary name in its own folder and made durable. Only when all are there do they
get their names, in the order in which they were added; a stop signal waits for that short moment. Whatever goes wrong
before it, an interrupt included, removes the temporary files and leaves the folders as they were.

A file that exists is replaced only with ``force``. One that would not change is left alone: writing the same again is
not overwriting.
"""

import filecmp
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType, TracebackType
from typing import BinaryIO, NamedTuple

from hushbid.errors import InputError

STREAM = "-"
"""The name that stands for a standard stream."""

Write = Callable[[BinaryIO], object]
_STOPS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


class _Waiting(NamedTuple):
    temporary: Path
    final: Path


class Staging:
    """A set of files to be written together: ``with Staging(force=False) as files: files.add(path, write)``."""

    def __init__(self, *, force: bool) -> None:
        self.force = force
        self._waiting: list[_Waiting] = []
        self._made_folders: list[Path] = []

    def __enter__(self) -> "Staging":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._publish()
        finally:
            for waiting in self._waiting:
                waiting.temporary.unlink(missing_ok=True)
            for folder in reversed(self._made_folders):
                with suppress(OSError):  # not empty: something was published in it
                    folder.rmdir()

    def add(self, path: str | Path, write: Write, *, private: bool = True) -> None:
        """Write a file under a temporary name; a private one can be read by its owner only."""
        final = Path(path)
        with _telling_what_failed(final):
            with _stops_held_back():
                self._make_folder(final.parent)
                descriptor, name = tempfile.mkstemp(dir=final.parent, prefix=f".{final.name}.", suffix=".tmp")
                self._waiting.append(_Waiting(Path(name), final))
            with os.fdopen(descriptor, "wb") as file:
                write(file)
                if not private:
                    os.fchmod(file.fileno(), 0o666 & ~_umask())
                file.flush()
                os.fsync(file.fileno())

    def _make_folder(self, folder: Path) -> None:
        missing = [one for one in (folder, *folder.parents) if not one.exists()]
        for one in reversed(missing):
            one.mkdir(mode=0o700)
            self._made_folders.append(one)

    def _publish(self) -> None:
        changed = [one for one in self._waiting if not _same(one)]
        if not self.force:
            refuse_existing([one.final for one in changed])
        with _stops_held_back():
            for waiting in changed:
                with _telling_what_failed(waiting.final):
                    self._give_name(waiting)
            for folder in {one.final.parent for one in changed}:
                _sync_folder(folder)

    def _give_name(self, waiting: _Waiting) -> None:
        if self.force:
            os.replace(waiting.temporary, waiting.final)
            return
        try:
            os.link(waiting.temporary, waiting.final)  # unlike a rename, fails if somebody was quicker
        except FileExistsError:
            refuse_existing([waiting.final])


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
        raise InputError(f"{', '.join(found)} {'exists' if len(found) == 1 else 'exist'} already: --force replaces.")


def _same(waiting: _Waiting) -> bool:
    """Whether the file is there already, with the same content and no more readers than it should have."""
    if waiting.final.is_symlink() or not waiting.final.is_file():
        return False
    wanted, present = waiting.temporary.stat().st_mode, waiting.final.stat().st_mode
    return present & ~wanted & 0o777 == 0 and filecmp.cmp(waiting.temporary, waiting.final, shallow=False)


@contextmanager
def _telling_what_failed(path: Path) -> Iterator[None]:
    """Problems of the system with the name that the user knows, not the temporary one."""
    try:
        yield
    except OSError as problem:
        raise InputError(f"{path} cannot be written: {problem.strerror or type(problem).__name__}.") from problem


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
        for number in caught[:1]:
            signal.raise_signal(number)


def _sync_folder(folder: Path) -> None:
    with suppress(OSError):  # some file systems cannot; the files themselves are durable
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
