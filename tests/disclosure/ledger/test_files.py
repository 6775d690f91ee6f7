"""Drawn once, whatever dies: processes killed at every step between claiming and showing, and many asking at once.

Each child process replaces one step of ``hushbid.disclosure.ledger.files`` by its own death (SIGKILL, which nothing can
catch), so that the library itself needs no hook for it.
"""

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hushbid.common import durable
from hushbid.disclosure import ReleasePlan, privatize, release_plan
from hushbid.disclosure.ledger import files
from hushbid.errors import ReleaseError, Unwritable

RELEASE = """
import os, signal, sys
from hushbid.disclosure import ReleasePlan, noise, release_plan
from hushbid.disclosure.ledger import files

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

def wait(*_, **__):
    print("drawing", flush=True)
    sys.stdin.readline()

draws = 0
real_draw = noise.draw_many
def draw_many(totals, *, scale):
    global draws
    draws += 1
    before_draw()
    return real_draw(totals, scale=scale)
def before_draw():
    pass
noise.draw_many = draw_many

{sabotage}

plan = ReleasePlan.of([0.5, 1.0, 2.0], setting="central", bounds=(0, 1), label="killed")
release = release_plan(plan, [0.2, 0.4, 0.6], folder=sys.argv[1])
print(release.estimate, draws, flush=True)
"""

DEATHS = {
    "after the claim, before the noise": "before_draw = die",
    "after the noise, before a byte is written": "files.create = die",
    "in the middle of writing": """
def torn(path, content):
    real_write(path, content[: len(content) // 2])
    die()
real_write, files.create = files.create, torn
""",
    "after writing, before it is durable": "files.sync = lambda path: die() if path.suffix == '.draft' else None",
    "after the draft, before the final name": "os.link = die",
    "after the final name, before the draft is gone": """
def link_and_die(*arguments):
    real_link(*arguments)
    die()
real_link, os.link = os.link, link_and_die
""",
    "after storing, before showing": """
def store_and_die(*arguments):
    real_store(*arguments)
    die()
real_store, files._store = files._store, store_and_die
""",
}
DRAWN_BEFORE_DEATH = list(DEATHS)[3:]  # from here on a complete drawing is on disk and must be the one that is shown


def start(folder: Path, sabotage: str = "") -> "subprocess.Popen[str]":
    script = RELEASE.format(sabotage=sabotage)
    arguments = [sys.executable, "-W", "error", "-c", script, str(folder)]
    return subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def finish(process: "subprocess.Popen[str]") -> tuple[float, int]:
    """The estimate shown, and how many times noise was drawn for it in that process."""
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    estimate, draws = output.split()[-2:]
    return float(estimate), int(draws)


def on_disk(folder: Path) -> set[float]:
    """Every complete drawing that anybody could find in the folder."""
    paths = [path for path in folder.iterdir() if path.suffix in {".json", ".draft"}]
    return {drawing["estimate"] for path in paths if (drawing := files._read(path)) is not None}


@pytest.mark.parametrize("moment", DEATHS)
def test_killed_at_any_moment_only_one_estimate_is_ever_to_be_seen(moment: str, tmp_path: Path) -> None:
    victim = start(tmp_path, DEATHS[moment])
    output, _ = victim.communicate(timeout=120)
    assert victim.returncode == -signal.SIGKILL
    assert output == ""  # nothing was shown
    assert len(list(tmp_path.glob("*.claim"))) == 1
    left_behind = on_disk(tmp_path)
    assert len(left_behind) == (moment in DRAWN_BEFORE_DEATH)

    completed, draws = finish(start(tmp_path))
    assert draws == (moment not in DRAWN_BEFORE_DEATH)
    assert left_behind <= {completed}
    again, draws = finish(start(tmp_path))
    assert (again, draws) == (completed, 0)
    assert on_disk(tmp_path) == {completed}


def test_processes_that_ask_at_once_see_the_same_estimate_drawn_once(tmp_path: Path) -> None:
    shown = [finish(process) for process in [start(tmp_path) for _ in range(4)]]
    assert len({estimate for estimate, _ in shown}) == 1
    assert sum(draws for _, draws in shown) == 1


def test_a_live_claimant_is_waited_for(tmp_path: Path) -> None:
    first = start(tmp_path, "before_draw = wait")
    assert first.stdout is not None
    assert first.stdout.readline() == "drawing\n"
    [claim] = tmp_path.glob("*.claim")
    with claim.open() as file, pytest.raises(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    second = start(tmp_path)
    estimate, draws = finish_with_line(first)
    assert draws == 1
    assert finish(second) == (estimate, 0)


def test_when_a_claimant_dies_the_one_who_waits_completes(tmp_path: Path) -> None:
    first = start(tmp_path, "before_draw = wait")
    assert first.stdout is not None
    assert first.stdout.readline() == "drawing\n"
    second = start(tmp_path)
    first.kill()
    first.communicate()
    estimate, draws = finish(second)
    assert draws == 1
    assert on_disk(tmp_path) == {estimate}


def finish_with_line(process: "subprocess.Popen[str]") -> tuple[float, int]:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return finish(process)


def test_a_privatized_value_survives_a_crash_before_it_is_sent(tmp_path: Path) -> None:
    script = """
import os, signal, sys
from hushbid.disclosure import privatize
if len(sys.argv) > 2:
    os.link = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
print(privatize(0.5, 1.0, (0, 1), store=sys.argv[1] + "/mine").value)
"""
    run = [sys.executable, "-c", script, str(tmp_path)]
    crashed = subprocess.run([*run, "crash"], stdout=subprocess.PIPE, timeout=120)
    assert (crashed.returncode, crashed.stdout) == (-signal.SIGKILL, b"")
    drawn = json.loads((tmp_path / "mine.draft").read_text())["drawing"]["message"]["value"]
    for _ in range(2):
        assert subprocess.run(run, stdout=subprocess.PIPE, timeout=120, check=True).stdout.decode().strip() == drawn


def test_files_are_for_the_operator_only(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "claims"
    files.drawn_once(folder, "name", lambda: {"estimate": 1.0})
    assert folder.stat().st_mode & 0o077 == 0
    assert [path.name for path in sorted(folder.iterdir())] == ["name.claim", "name.json"]
    assert all(path.stat().st_mode & 0o077 == 0 for path in folder.iterdir())


def test_the_claim_is_durable_before_anything_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        synced.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)
        real(descriptor)

    def draw() -> dict[str, float]:
        assert synced == ["name.claim", tmp_path.name]
        return {"estimate": 1.0}

    monkeypatch.setattr(os, "fsync", fsync)
    files.drawn_once(tmp_path, "name", draw)
    assert synced[2:] == ["name.draft", tmp_path.name, "name.claim", tmp_path.name]


def test_a_folder_that_cannot_be_used_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Unwritable, match="cannot be used"):
        files.drawn_once(tmp_path / "file", "name", lambda: {"estimate": 1.0})


@pytest.mark.parametrize("below", ["", "sub"])
def test_a_file_where_the_folder_should_be_is_a_clear_error_and_nothing_is_drawn(below: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    plan = ReleasePlan.of([1.0, 2.0], setting="central", bounds=(0.0, 1.0), label=f"file for a folder {below}")
    with pytest.raises(Unwritable, match=r"cannot be used: it is a file, or lies in one\.$"):
        release_plan(plan, [0.1, 0.2], folder=tmp_path / "file" / below)
    with pytest.raises(Unwritable, match=r"cannot be used: it is a file, or lies in one\.$"):
        privatize(0.5, 1.0, (0, 1), store=tmp_path / "file" / below / "mine")
    assert release_plan(plan, [0.1, 0.2], folder=tmp_path / "claims").key == plan.key


@pytest.mark.parametrize(
    ("call", "number"),
    [
        ("open", errno.EACCES),
        ("open", errno.EROFS),
        ("write", errno.ENOSPC),
        ("fsync", errno.EIO),
        ("mkdir", errno.EROFS),
    ],
)
def test_whatever_the_system_refuses_is_told_and_a_later_attempt_draws(
    call: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read-only folder, a full or a broken disk. (Simulated: the tests may run as a user who may do everything.)"""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    plan = ReleasePlan.of([1.0, 2.0], setting="central", bounds=(0.0, 1.0), label=f"refused {call} {number}")
    folder = tmp_path / "claims"
    with monkeypatch.context() as broken:
        broken.setattr(os, call, refuse)
        with pytest.raises(Unwritable, match=f"cannot be used: {os.strerror(number)}") as told:
            release_plan(plan, [0.1, 0.2], folder=folder)
    assert str(told.value).startswith(f"The folder {folder}")
    first = release_plan(plan, [0.1, 0.2], folder=folder)
    assert release_plan(plan, [0.9, 0.9], folder=folder).estimate == first.estimate


def test_a_failed_link_is_reported_and_the_draft_is_used_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    with monkeypatch.context() as broken:
        broken.setattr(os, "link", refuse)
        with pytest.raises(Unwritable, match="Operation not permitted"):
            files.drawn_once(tmp_path, "name", lambda: {"estimate": 1.0})
    assert files.drawn_once(tmp_path, "name", lambda: {"estimate": 2.0}) == {"estimate": 1.0}


def test_systems_without_locks_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durable, "fcntl", None)
    with pytest.raises(ReleaseError, match="POSIX file locks"):
        files.drawn_once(tmp_path, "name", lambda: {"estimate": 1.0})
