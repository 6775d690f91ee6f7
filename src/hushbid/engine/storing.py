"""Write to a temporary place, then give it its name: an interrupted job leaves nothing half done."""

import shutil
import uuid
from collections.abc import Callable
from pathlib import Path

from hushbid.errors import InputError


def store(path: str | Path, write: Callable[[str], object], *, force: bool) -> None:
    """Let ``write`` make a file or folder beside ``path``, and move it there when it is complete."""
    target = Path(path)
    if target.exists() and not force:
        raise InputError(f"{str(target)!r} exists already; choose another name, or force.")
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}.tmp")
    try:
        write(str(temporary))
        if target.is_dir() or (target.exists() and temporary.is_dir()):
            replaced = target.with_name(f".{target.name}.{uuid.uuid4().hex}.old")
            target.rename(replaced)
            temporary.rename(target)
            _remove(replaced)
        else:
            temporary.replace(target)
    finally:
        _remove(temporary)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
