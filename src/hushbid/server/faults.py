"""How a fault that nobody foresaw is written down: its kind and its way through the code, never what it says.

Its message could quote a bid or a value, and a log is read by others than those who may see them.
"""

import logging
import traceback

_log = logging.getLogger("hushbid.server")


def log_fault(error: BaseException, where: str) -> None:
    """Write down where a fault came from."""
    places = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(error.__traceback__)]
    _log.error("fault %s at %s\n  %s", type(error).__name__, where, "\n  ".join(places))
