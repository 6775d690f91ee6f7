"""Named moments at which a test kills the server; in production nothing happens there.

Every operation of the writer passes ``NAME.before-commit`` when all its changes are made but none is durable, and
``NAME.after-commit`` when they are durable but nobody has been told. Work outside transactions has points of its own.
"""

from collections.abc import Callable

Crash = Callable[[str], None]
"""Called with the name of each point that is reached."""

OPERATIONS = (
    "draft",
    "invite",
    "open",
    "bid",
    "decline",
    "withdraw",
    "allocation.start",
    "allocation.store",
    "allocation.finish",
    "delivery",
    "release.start",
    "release.store",
    "release.finish",
    "key",
    "payment",
    "payout",
    "payouts.take",
    "payouts.end",
    "close",
    "cancel",
)
"""Operations of the life cycle; each has two points."""

OUTSIDE = (
    "allocation.decided",
    "allocation.claimed",
    "allocation.unbought",
    "release.read",
    "release.drawn",
    "release.key-destroyed",
)
"""Points of the jobs between their transactions: the decision is computed, durable in the claims folder, the keys to
answers that are not bought are gone; values are decrypted, the estimate is durable in the claims folder, the key is
gone."""

POINTS = tuple(f"{name}.{when}-commit" for name in OPERATIONS for when in ("before", "after")) + OUTSIDE
"""All points of the life cycle."""


def no_crash(point: str) -> None:
    """Go on."""
