"""What the exit status of a command means: one table for all commands, and which exception leads to which status.

==== ================================================================================================================
0    done
1    a check failed: a verification, an audit, the hash of a record
2    usage: an option, a campaign file or another input that is not allowed
3    incomplete: a verification could not check everything
4    rows of bids or data that are not allowed
5    an output exists, or something else was released before
6    refused by a limit: spending, rounding, an accuracy that cannot be reached, terms that admit no outcome
     or no release
7    the environment: a folder or ledger that cannot be used, a missing extra, a server that cannot be reached
70   a fault of the program
130  interrupted; 143 if asked to end
141  the reader of the output left early
==== ================================================================================================================
"""

from hushbid.errors import (
    AlreadyReleased,
    BidError,
    Conflict,
    DataError,
    HashMismatch,
    HushbidError,
    LedgerError,
    MarketError,
    MissingExtra,
    OutputExists,
    ReleaseError,
    ServerFailed,
    Throttled,
    Unwritable,
)

DONE, FAILED, USAGE, INCOMPLETE, BAD_ROWS, EXISTS, REFUSED, ENVIRONMENT = range(8)
FAULT, INTERRUPTED, UNREAD, TERMINATED = 70, 130, 141, 143

VERDICTS = {"holds": DONE, "holds by sample": DONE, "fails": FAILED, "incomplete": INCOMPLETE}
"""Of a verification."""

_CODES: tuple[tuple[tuple[type[Exception], ...], int], ...] = (
    ((HashMismatch,), FAILED),
    ((DataError, BidError), BAD_ROWS),
    ((OutputExists, AlreadyReleased, Conflict), EXISTS),
    ((LedgerError, Unwritable, MissingExtra, ServerFailed, Throttled), ENVIRONMENT),
    ((MarketError, ReleaseError), REFUSED),
    ((HushbidError,), USAGE),
    ((OSError, MemoryError), ENVIRONMENT),
    ((ArithmeticError,), REFUSED),
)
"""The first row that fits counts."""


def exit_code(problem: Exception) -> int:
    """Return the exit status for a problem that ends a command."""
    return next((code for kinds, code in _CODES if isinstance(problem, kinds)), USAGE)
