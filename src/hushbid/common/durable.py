"""A file that is complete or not there at all, and locks.

`write_whole` writes one file: hidden, made durable, named in one step. A process that is killed cannot tidy up: its
hidden file, which it kept locked, goes when the same is written again. `hushbid.common.staging` writes several.
"""

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hushbid.errors import HushbidError

try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None  # type: ignore[assignment]


TEMPORARY = ".tmp"
"""How the names of temporary files and folders end; they begin with a dot and the final name."""

FOLDER_LOCK = ".lock"
"""The file in a temporary folder that its maker keeps locked."""


# -- one file ----------------------------------------------------------------------------------------------------------


def write_whole(path: Path, content: bytes, *, replace: bool = False) -> None:
    """Write a file that is complete and durable or not there at all, for its owner's eyes only.

    A file that is there stays, and is a ``FileExistsError``, unless it is to be replaced.
    """
    descriptor, draft = temporary_beside(path)
    try:
        _write_all(descriptor, content)
        os.fsync(descriptor)
        if replace:
            draft.replace(path)
            sync(path.parent)
        else:
            give_name(draft, path)
    finally:
        draft.unlink(missing_ok=True)
        os.close(descriptor)


def temporary_beside(final: Path) -> tuple[int, Path]:
    """Make a locked temporary file for a final place."""
    start = clear_dead(final)
    while True:
        descriptor, name = tempfile.mkstemp(dir=final.parent, prefix=start, suffix=TEMPORARY)
        if not lock(descriptor, wait=False) or os.fstat(descriptor).st_nlink:
            return descriptor, Path(name)
        os.close(descriptor)  # taken for a dead one's before it was locked


def clear_dead(final: Path) -> str:
    """Remove temporary files and folders for a final place whose makers are dead; return how their names begin.

    A file is locked by its maker, a folder by a file in it.
    """
    start = f".{final.name}."
    for one in final.parent.iterdir():
        if one.name.startswith(start) and one.name.endswith(TEMPORARY):
            with suppress(OSError):  # gone meanwhile, not made to its end, or of another account
                descriptor = os.open(one / FOLDER_LOCK if one.is_dir() else one, os.O_RDWR)
                try:
                    if lock(descriptor, wait=False):
                        remove(one)
                finally:
                    os.close(descriptor)
    return start


def remove(path: Path) -> None:
    """Remove a file, a link or a folder, if there is one."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def create(path: Path, content: bytes) -> None:
    """Make a file that is not there yet, for its owner's eyes only; it is durable after `sync`, with its folder."""
    _write(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), content)


def note(path: Path, content: bytes) -> None:
    """Write into an empty file that is there, and make that durable."""
    _write(os.open(path, os.O_WRONLY), content, durably=True)


def _write(descriptor: int, content: bytes, *, durably: bool = False) -> None:
    """Write all of it, and close the file."""
    try:
        _write_all(descriptor, content)
        if durably:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, content: bytes) -> None:
    while content:
        content = content[os.write(descriptor, content) :]


def give_name(draft: Path, final: Path) -> None:
    """Let a complete file be found under its name too, durably and in one step; a name that is taken is refused."""
    os.link(draft, final)  # unlike a rename, fails if the file exists
    sync(final.parent)


def make_folder(folder: Path) -> None:
    """A folder for its owner only, if there is none."""
    if not folder.is_dir():
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)  # of two who make it at once, one finds it
        except FileExistsError:
            raise NotADirectoryError(errno.ENOTDIR, "it is a file") from None
        sync(folder.parent)


def sync(path: Path) -> None:
    """Make a file's content, or a folder's list of names, survive a loss of power."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# -- locks -------------------------------------------------------------------------------------------------------------


def require_locks(what: str, error: type[HushbidError]) -> None:
    """Refuse to go on where files cannot be locked."""
    if fcntl is None:
        raise error(f"{what} needs POSIX file locks, which this system does not have.")


def open_lock(path: Path) -> int:
    """Open a file to lock, made for its owner only if it is not there; it stays when the lock goes."""
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)


def open_durable_lock(path: Path) -> int:
    """Open a file to lock; one that was not there is made for its owner only, and durable before this returns."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return os.open(path, os.O_RDWR)
    os.fsync(descriptor)
    sync(path.parent)
    return descriptor


def lock(descriptor: int, *, wait: bool) -> bool:
    """Lock an open file until it is closed; whether we got it. The dead hold none, and nobody where there are none."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        if wait:
            raise
        return False
    return True


@contextmanager
def locked(descriptor: int) -> Iterator[None]:
    """Hold the lock of an open file, after whoever has it, and close the file in the end."""
    try:
        if not lock(descriptor, wait=True):
            raise OSError(errno.ENOLCK, "this system has no file locks")
        yield
    finally:
        os.close(descriptor)


def lock_folder(folder: Path) -> int:
    """Lock a folder until the descriptor that is returned is closed; -1 where folders cannot be opened.

    A folder that another process keeps locked is a ``BlockingIOError``.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:  # a system that does not open folders
        return -1
    try:
        if fcntl is not None:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise
    except OSError:  # a file system without such locks
        pass
    return descriptor
