"""The server is really killed (SIGKILL) at every named point of the life cycle, once per store."""

import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from hushbid.campaign.crash import OUTSIDE, POINTS
from tests.campaign.crashing import ACTS, Scene, holds_up, killed_at, staged
from tests.campaign.postgres import Postgres
from tests.campaign.support import Installation

ACT = {
    "report": "report",
    "allocation.start": "decide",
    "allocation.decided": "decide",
    "allocation.claimed": "decide",
    "allocation.store": "decide",
    "allocation.finish": "decide",
    "delivery": "deliver",
    "release.start": "release",
    "release.read": "release",
    "release.drawn": "release",
    "release.store": "release",
    "release.finish": "release",
    "release.key-destroyed": "release",
    "key": "release",
    "payment": "pay",
}
"""What must be going on for an operation to take place."""

KILLED = [point for point in POINTS if point.removesuffix(".before-commit").removesuffix(".after-commit") in ACT]
Stage = Callable[[str, str], Scene]


@pytest.fixture
def drop(request: pytest.FixtureRequest) -> Callable[[Scene], None]:
    """Remove a scene's database: there are many of them."""

    def remove(scene: Scene) -> None:
        if scene.installation.url is not None:
            request.getfixturevalue("postgres").drop(scene.installation.url.rpartition("/")[2])

    return remove


@pytest.fixture(scope="module")
def stage(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path) -> Stage:
    """A scene of one's own: staged once for each act and store, then copied."""
    staged_already: dict[tuple[str, str], Scene] = {}

    def make(store: str, act: str) -> Scene:
        folder = tmp_path_factory.mktemp(act) / "home"
        postgres: Postgres | None = request.getfixturevalue("postgres") if store == "postgresql" else None
        if (store, act) not in staged_already:
            folder.mkdir()
            if postgres is None:
                shutil.copy(sqlite_template, folder)
                installation = Installation(folder, None)
            else:
                name = postgres.new(like=request.getfixturevalue("postgres_template"))
                installation = Installation(folder, postgres.url(name))
            staged_already[store, act] = staged(installation, act)
            folder = tmp_path_factory.mktemp(act) / "home"
        model = staged_already[store, act]
        shutil.copytree(model.installation.folder, folder)
        url = None
        if postgres is not None:
            url = postgres.url(postgres.new(like=str(model.installation.url).rpartition("/")[2]))
        return Scene(Installation(folder, url, clock=model.installation.clock, patience=5.0), model.play)

    return make


@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
@pytest.mark.parametrize("point", KILLED)
def test_a_server_killed_here_loses_nothing_and_doubles_nothing(
    stage: Stage, drop: Callable[[Scene], None], tmp_path: Path, point: str, store: str
) -> None:
    act = ACT[point.removesuffix(".before-commit").removesuffix(".after-commit")]
    scene = stage(store, act)
    assert killed_at(scene, act, point, tmp_path / "journal") == -signal.SIGKILL
    holds_up(scene, tmp_path / "journal")
    drop(scene)


def test_every_point_of_allocation_delivery_release_and_payment_is_among_them() -> None:
    named = ("allocation", "delivery", "release", "payment")
    assert {point for point in POINTS if point.startswith(named)} <= set(KILLED)
    assert set(OUTSIDE) <= set(KILLED)
    assert set(ACT.values()) == set(ACTS)


def test_a_server_that_is_not_killed_reaches_the_end(stage: Stage, tmp_path: Path) -> None:
    scene = stage("sqlite", "release")
    assert killed_at(scene, "release", "nowhere", tmp_path / "journal") == 0
    holds_up(scene, tmp_path / "journal")
