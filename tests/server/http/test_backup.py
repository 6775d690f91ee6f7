"""Backups: one moment of the database in a file, for either store; nothing in it opens a value or releases twice."""

import gzip
import json
from pathlib import Path

import pytest

from hushbid.errors import CampaignError, Conflict, RecordError
from hushbid.server.admin import Administration
from hushbid.server.service import Service
from tests.server.support import (
    VALUES,
    Installation,
    Play,
    decided,
    each_setting_on_a_store,
    on_both_stores,
    opened,
    released,
)

pytestmark = on_both_stores


def beside(installation: Installation, *, alone: bool = False) -> Administration:
    return Administration.at(installation.folder, database=installation.url, alone=alone)


def backed_up(installation: Installation, name: str = "backup.gz") -> Path:
    path = installation.folder.parent / name
    with beside(installation) as server:
        server.back_up(path)
    return path


def restored(installation: Installation, path: Path) -> None:
    with beside(installation, alone=True) as server:
        server.restore(path, replace=True)


def seen(service: Service, play: Play) -> dict[str, object]:
    """All that a campaign shows to anybody."""
    return {
        "campaign": service.campaign(play.who, play.id),
        "people": service.participants(play.who, play.id, limit=1000),
        "events": service.events(play.who, play.id),
        "record": service.record(play.who, play.id),
        "payments": service.payments(play.who, play.id),
        "privacy_account": service.privacy_account(play.who, limit=1000),
        "receipts": [service.receipt(link.token).to_dict() for link in play.seats],
        "exports": [service.export(link.token) for link in play.seats],
    }


def test_what_is_restored_is_what_was_backed_up(installation: Installation) -> None:
    with installation.start() as service:
        play = released(service, ["ann@example.org", "bob@example.org", "cy@example.org"])
        before = seen(service, play)
        path = backed_up(installation)
        later = opened(service)
    restored(installation, path)
    with installation.start() as service:
        assert seen(service, play.on(service)) == before
        assert [one.id for one in service.campaigns(play.who).items] == [play.id]
        assert later.id not in {one.id for one in service.campaigns(play.who).items}


def test_a_server_moves_from_sqlite_to_postgresql_and_back(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    postgres = request.getfixturevalue("postgres")
    there = Installation(tmp_path / "home", None)
    with there.start() as service:
        play = decided(service, 4)
        play.deliver([0, 1, 2])
    path = backed_up(there, "first.gz")
    elsewhere = Installation(there.folder, postgres.url(postgres.new()), there.clock)
    with beside(elsewhere, alone=True) as server:
        server.restore(path)
    with elsewhere.start() as service:
        moved = play.on(service)
        moved.deliver([3])
        assert moved.release().state == "done"
        before = seen(service, moved)
        path = backed_up(elsewhere, "second.gz")
    restored(there, path)
    with there.start() as service:
        assert seen(service, play.on(service)) == before


def test_a_backup_yields_no_value_and_no_link(installation: Installation) -> None:
    with installation.start() as service:
        play = decided(service, 4)
        play.deliver()
        path = backed_up(installation)
    content = gzip.decompress(path.read_bytes())
    assert path.stat().st_mode & 0o077 == 0
    assert not any(link.token.encode() in content for link in play.links)
    rows = [json.loads(line) for line in content.splitlines()[1:-1]]
    people = [row["row"] for row in rows if row["table"] == "participants"]
    assert len({person["delivery"] for person in people}) == 4, "each is sealed by itself"
    shown = {value for person in people for value in person.values() if isinstance(value, float)}
    assert not shown & set(VALUES[:4]) - {person["bid"] for person in people}
    assert {"sessions", "login_failures", "idempotency"}.isdisjoint(row["table"] for row in rows)


@each_setting_on_a_store
def test_a_restored_database_shows_the_estimate_that_was_drawn_and_never_another(
    installation: Installation, setting: str
) -> None:
    with installation.start() as service:
        play = decided(service, 4, setting=setting)
        play.deliver()
        path = backed_up(installation)
        assert play.release().state == "done"
        drawn = play.view.release
        assert drawn is not None
    restored(installation, path)
    for _ in range(2):
        with installation.start() as service:
            again = play.on(service)
            for job in service.jobs(again.who, again.id):
                service.wait(job, timeout=300)
            view = again.view
            assert (view.state, view.release) == ("released", drawn)
            with pytest.raises(Conflict):
                service.release(again.who, again.id)


def test_a_backup_of_another_installation_is_refused(installation: Installation, tmp_path: Path) -> None:
    with installation.start() as service:
        released(service)
        path = backed_up(installation)
    other = Installation(tmp_path / "other", None)
    with beside(other, alone=True) as server, pytest.raises(CampaignError, match="another installation"):
        server.restore(path, replace=True)


def test_what_is_there_is_replaced_only_by_name(installation: Installation) -> None:
    with installation.start() as service:
        play = opened(service)
        path = backed_up(installation)
        service.bid(play.token(0), 1.5)
    with beside(installation, alone=True) as server, pytest.raises(Conflict, match="--replace"):
        server.restore(path)
    with installation.start() as service:
        assert service.participation(play.token(0)).bid == 1.5


def test_a_damaged_backup_changes_nothing(installation: Installation, tmp_path: Path) -> None:
    with installation.start() as service:
        play = opened(service)
        path = backed_up(installation)
    lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
    changed = [line.replace(b"invited", b"declined") for line in lines]
    damaged = {
        "empty": b"",
        "noise": b"no backup at all",
        "cut": path.read_bytes()[:-20],
        "short": gzip.compress(b"".join(lines[:-1])),
        "changed": gzip.compress(b"".join(changed)),
        "left out": gzip.compress(b"".join([*lines[:5], *lines[6:]])),
        "another version": gzip.compress(lines[0].replace(b'"version":2', b'"version":1') + b"".join(lines[1:])),
        "another kind": gzip.compress(lines[0].replace(b"hushbid-backup", b"hushbid-record") + b"".join(lines[1:])),
    }
    for name, content in damaged.items():
        file = tmp_path / f"{name}.gz"
        file.write_bytes(content)
        with beside(installation, alone=True) as server, pytest.raises(RecordError):
            server.restore(file, replace=True)
    with installation.start() as service:
        assert service.campaign(play.who, play.id).people == {"invited": 4}


def test_a_backup_is_one_moment_although_others_go_on_writing(installation: Installation) -> None:
    with installation.start() as service:
        play = opened(service, 4)
        with beside(installation) as server:
            for row in range(4):
                service.bid(play.token(row), 1.5)
                server.back_up(installation.folder.parent / f"{row}.gz")
    restored(installation, installation.folder.parent / "1.gz")
    with installation.start() as service:
        assert service.campaign(play.who, play.id).people == {"invited": 2, "bid": 2}
        kinds = [event.kind for event in service.events(play.who, play.id)]
        assert kinds.count("bid") == 2
