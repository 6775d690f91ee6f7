"""``hushbid --import``: modules of one's own, which register priors and baselines before a command runs.

Code is imported because whoever types the command names it, and for no other reason: never because of what stands in a
record, a campaign file or a request.
"""

import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from hushbid.errors import HushbidError, InputError

_END = ".py"


def load(name: str) -> None:
    """Import a module that is installed, or the file whose name ends in ``.py``."""
    try:
        _load_file(Path(name)) if name.endswith(_END) else import_module(name)
    except HushbidError:
        raise
    except Exception as problem:
        if isinstance(problem, ModuleNotFoundError) and problem.name == name.partition(".")[0]:
            allowed = "a module that is installed, or a file that ends in .py"
            raise InputError(f"--import must name {allowed}, got {name!r}.", field="import") from None
        message = f"{type(problem).__name__}: {problem}" if str(problem) else type(problem).__name__
        raise InputError(f"--import {name}: the module cannot be imported ({message}).", field="import") from problem


def _load_file(path: Path) -> None:
    if not path.is_file():
        raise InputError(f"--import: {path} does not exist.", field="import")
    if path.stem in sys.modules:
        message = f"--import {path}: its name must be another: {path.stem!r} is a module already."
        raise InputError(message, field="import")
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[path.stem] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[path.stem]
        raise
