"""The server is really killed (SIGKILL) at every named point of the life cycle, once per store."""

import signal
from pathlib import Path

from hushbid.server.failpoints import OUTSIDE, POINTS
from tests.server.crashing import holds_up, killed_at, problem_of, staged
from tests.server.support import Installation, on_both_stores

pytestmark = on_both_stores


def around(operation: str) -> list[str]:
    """The points before and after an operation's commit."""
    return [f"{operation}.before-commit", f"{operation}.after-commit"]


KILLED = [
    *around("bid"),
    *around("allocation.start"),
    "allocation.decided",
    "allocation.claimed",
    "allocation.unbought",
    *around("allocation.store"),
    *around("allocation.finish"),
    *around("delivery"),
    *around("release.start"),
    "release.read",
    "release.drawn",
    *around("release.store"),
    *around("release.finish"),
    "release.key-destroyed",
    *around("key"),
    *around("payment"),
]
"""In the order in which a campaign passes them."""


def test_a_server_killed_at_every_point_loses_nothing_and_doubles_nothing(
    installation: Installation, tmp_path: Path
) -> None:
    """One campaign: each process holds the server to all that was acknowledged, goes on, and dies at the next point.

    What was drawn when one was killed is shown by all that follow.
    """
    installation.patience = 5.0
    scene, journal = staged(installation), tmp_path / "journal"
    claims: dict[Path, bytes] = {}
    for point in KILLED:
        assert killed_at(scene, point, journal) == -signal.SIGKILL, f"{point}: {problem_of(journal)}"
        if point in ("allocation.claimed", "release.drawn"):
            found = {path: path.read_bytes() for path in (installation.folder / "claims").glob("*.json")}
            assert len(found) > len(claims), point
            claims |= found
    holds_up(scene, journal)
    assert all(path.read_bytes() == content for path, content in claims.items())


def test_every_point_of_allocation_delivery_release_and_payment_is_among_them() -> None:
    named = ("allocation", "delivery", "release", "payment")
    assert {point for point in POINTS if point.startswith(named)} <= set(KILLED) <= set(POINTS)
    assert set(OUTSIDE) <= set(KILLED)
