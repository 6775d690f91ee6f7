"""Files that are complete or not there at all, alone and together."""

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hushbid.common.durable import create, give_name, make_folder, note, open_durable_lock, write_whole
from hushbid.common.staging import Staging, write_file
from hushbid.errors import OutputExists, Unwritable


def saved(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def text(content: bytes) -> Callable[[object], object]:
    return lambda file: file.write(content)  # type: ignore[attr-defined]


def write_both(*paths: Path) -> None:
    with Staging(force=False) as files:
        for path in paths:
            files.add(path, text(b"new"))


def test_private_files_are_for_their_owner_only_and_public_ones_follow_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        with Staging(force=False) as files:
            files.add(tmp_path / "new" / "private", text(b"1"))
            files.add(tmp_path / "new" / "public", text(b"2"), private=False)
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "new").iterdir()}
    assert modes == {"private": 0o600, "public": 0o644}
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


def test_files_appear_together_or_not_at_all(tmp_path: Path) -> None:
    files = Staging(force=True)
    files.add(tmp_path / "new" / "deep" / "one", text(b"1"))
    files.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert list(tmp_path.iterdir()) == []


def test_what_exists_is_replaced_only_with_force(tmp_path: Path) -> None:
    old = saved(tmp_path / "old", "old")
    with pytest.raises(OutputExists, match="exists already: force=True replaces"):
        write_both(tmp_path / "new", old)
    assert old.read_text() == "old"
    assert os.listdir(tmp_path) == ["old"]
    with Staging(force=True) as files:
        files.add(old, text(b"new"))
    assert old.read_text() == "new"


def test_writing_the_same_again_is_not_overwriting(tmp_path: Path) -> None:
    for _ in range(2):
        write_file(tmp_path / "file", text(b"same"), force=False)
    (tmp_path / "file").chmod(0o644)
    with pytest.raises(OutputExists, match="exists"):  # the content is the same, but others could read it
        write_file(tmp_path / "file", text(b"same"), force=False)


def test_a_symbolic_link_is_not_written_through(tmp_path: Path) -> None:
    target = saved(tmp_path / "target", "mine")
    (tmp_path / "link").symlink_to(target)
    with pytest.raises(OutputExists, match="exists"):
        write_file(tmp_path / "link", text(b"theirs"), force=False)
    write_file(tmp_path / "link", text(b"theirs"), force=True)
    assert target.read_text() == "mine"


def test_an_interrupt_while_names_are_given_waits_until_all_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = os.link

    def interrupted_link(source: Path, target: Path) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        link(source, target)

    monkeypatch.setattr(os, "link", interrupted_link)
    with pytest.raises(KeyboardInterrupt):
        write_both(tmp_path / "one", tmp_path / "two")
    assert sorted(os.listdir(tmp_path)) == ["one", "two"]


def test_a_place_that_cannot_be_written_is_named_as_the_user_knows_it(tmp_path: Path) -> None:
    blocker = saved(tmp_path / "file", "")
    with pytest.raises(Unwritable, match=r"file/out\.csv cannot be written: Not a directory"):
        write_file(blocker / "out.csv", text(b""), force=False)


def test_a_whole_file_is_its_owners_replaces_nothing_unasked_and_leaves_no_draft(tmp_path: Path) -> None:
    write_whole(tmp_path / "file", b"first")
    with pytest.raises(FileExistsError):
        write_whole(tmp_path / "file", b"second")
    assert (tmp_path / "file").read_bytes() == b"first"
    write_whole(tmp_path / "file", b"third", replace=True)
    assert (tmp_path / "file").read_bytes() == b"third"
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["file"]


def test_a_name_is_given_once_and_a_file_is_made_once(tmp_path: Path) -> None:
    for name in ("one", "two"):
        create(tmp_path / name, name.encode())
    give_name(tmp_path / "one", tmp_path / "final")
    with pytest.raises(FileExistsError):
        give_name(tmp_path / "two", tmp_path / "final")
    with pytest.raises(FileExistsError):
        create(tmp_path / "final", b"three")
    assert (tmp_path / "final").read_bytes() == b"one"


def test_a_lock_that_was_noted_in_stays_and_keeps_its_note(tmp_path: Path) -> None:
    for _ in range(2):
        os.close(open_durable_lock(tmp_path / "lock"))
        note(tmp_path / "lock", b"seen")
    assert (tmp_path / "lock").read_bytes() == b"seen"


def test_a_folder_is_its_owners_and_no_file_is_taken_for_one(tmp_path: Path) -> None:
    for _ in range(2):
        make_folder(tmp_path / "deep" / "folder")
    assert stat.S_IMODE((tmp_path / "deep" / "folder").stat().st_mode) == 0o700
    with pytest.raises(NotADirectoryError):
        make_folder(saved(tmp_path / "file", ""))


def test_a_second_run_into_a_folder_is_refused_while_the_first_lives(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    with Staging(force=True, folder=folder) as first:
        first.add(folder / "a", lambda file: file.write(b"1"))
        with pytest.raises(OutputExists, match="another run"), Staging(force=True, folder=folder):
            pass
    with Staging(force=True, folder=folder) as later:
        later.add(folder / "a", lambda file: file.write(b"2"))
    assert (folder / "a").read_bytes() == b"2"


def test_what_a_killed_run_left_goes_when_the_same_is_written_again(tmp_path: Path) -> None:
    killed = "import os, sys; from hushbid.common.staging import Staging\n"
    killed += "with Staging(force=True) as files: files.add(sys.argv[1], lambda file: os._exit(9))"
    place = tmp_path / "a.csv"
    assert subprocess.run([sys.executable, "-c", killed, str(place)], check=False).returncode == 9
    assert len(list(tmp_path.iterdir())) == 1
    with Staging(force=False) as files:
        files.add(place, lambda file: file.write(b"1"))
        with Staging(force=False) as beside:  # a living one's stays
            beside.add(place, lambda file: file.write(b"1"))
    assert [one.name for one in tmp_path.iterdir()] == ["a.csv"]


def test_what_was_killed_while_it_wrote_one_file_goes_too(tmp_path: Path) -> None:
    killed = "import os, pathlib, sys; from hushbid.common import durable\n"
    killed += "durable.give_name = lambda *_: os._exit(9)\ndurable.write_whole(pathlib.Path(sys.argv[1]), b'1')"
    place = tmp_path / "entry"
    assert subprocess.run([sys.executable, "-c", killed, str(place)], check=False).returncode == 9
    [left] = tmp_path.iterdir()
    assert left.name.startswith(".entry.")
    write_whole(place, b"2")
    assert [one.name for one in tmp_path.iterdir()] == ["entry"]


def test_a_folder_that_another_process_makes_meanwhile_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_late(made: Path, name: str) -> None:
        """Let another make the folder right after the first look at it."""
        look, seen = getattr(Path, name), []

        def quicker(path: Path) -> bool:
            found: bool = look(path)
            if path == made and not seen:
                seen.append(path)
                made.mkdir()
            return found

        monkeypatch.setattr(Path, name, quicker)

    too_late(tmp_path / "ledger", "is_dir")
    make_folder(tmp_path / "ledger")
    too_late(tmp_path / "out", "exists")
    with Staging(force=False, folder=tmp_path / "out") as files:
        files.add(tmp_path / "out" / "a", lambda file: file.write(b"1"))
    assert (tmp_path / "out" / "a").read_bytes() == b"1"
