"""People's values on disk: neither the database, its write-ahead log nor a backup yields one."""

import gzip
import os
import shutil
import sqlite3
import struct
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from hushbid.errors import CampaignError, Conflict
from hushbid.server.service import Service
from hushbid.server.store import backup, participants
from hushbid.server.vault import Vault
from tests.server.postgres import Postgres
from tests.server.support import NONCE, Installation, Play, decided, on_both_stores, opened

pytestmark = on_both_stores
of_sqlite = pytest.mark.parametrize("installation", ["sqlite"], indirect=True)
"""Above a test about SQLite's own files, however many stores are tried."""

VALUES = (7.123456789012345, 2.7182818284590455, 9.869604401089358)
BID = 1.4142135623730951
IBAN = "DE89370400440532013000"


def needles(value: float) -> list[bytes]:
    """All ways in which a number may stand in a file."""
    return [struct.pack("<d", value), struct.pack(">d", value), repr(value).encode(), repr(value)[:12].encode()]


def found_in(files: Iterable[bytes], value: float) -> bool:
    return any(needle in content for content in files for needle in needles(value))


class Disk:
    """Everything that somebody with the disk, or with a backup, could read."""

    def __init__(self, installation: Installation, postgres: Postgres | None, programs: Path | None) -> None:
        self.installation = installation
        self.postgres = postgres
        self.programs = programs

    def everything(self, service: Service, tmp_path: Path) -> list[bytes]:
        return [*self.files(), *self.backups(service, tmp_path)]

    def files(self) -> list[bytes]:
        paths = [path for path in self.installation.folder.rglob("*") if path.is_file()]
        if self.postgres is not None:
            paths += self.postgres.files(self.database)
        return [path.read_bytes() for path in paths if path.exists()]

    @property
    def database(self) -> str:
        assert self.installation.url is not None
        return self.installation.url.rpartition("/")[2]

    def backups(self, service: Service, tmp_path: Path) -> list[bytes]:
        ours = tmp_path / "ours"
        with service._read() as connection, ours.open("wb") as file:
            backup.dump(connection, file, at="2026-03-01T12:00:00.000000Z")
        return [gzip.decompress(ours.read_bytes()), self.theirs(tmp_path)]

    def theirs(self, tmp_path: Path) -> bytes:
        """A backup made with the database's own tools."""
        if self.programs is not None:
            assert self.installation.url is not None
            dump = subprocess.run(
                [self.programs / "pg_dump", self.installation.url], check=True, capture_output=True, timeout=300
            )
            return dump.stdout
        copy = tmp_path / "copy.sqlite3"
        with sqlite3.connect(self.installation.folder / "hushbid.sqlite3") as one, sqlite3.connect(copy) as other:
            one.backup(other)
        one.close()
        other.close()
        return copy.read_bytes()


@pytest.fixture
def disk(request: pytest.FixtureRequest, installation: Installation, require: Callable[[str], Path]) -> Disk:
    if installation.url is None:
        return Disk(installation, None, None)
    return Disk(installation, request.getfixturevalue("postgres"), require("postgres"))


def paid_at(files: Iterable[bytes]) -> bool:
    """Whether somebody's account stands in a file, whole or but for its country."""
    return any(IBAN[2:].encode() in content or IBAN[4:12].encode() in content for content in files)


def delivered(service: Service) -> Play:
    play = opened(service, 3, payout="iban")
    service.bid(play.token(0), BID)
    play.bid([1, 2])
    play.decide()
    for link, value in zip(play.seats, VALUES, strict=True):
        service.deliver(link.token, value, nonce=NONCE)
    service.state_payout(play.token(0), IBAN)
    return play


def test_no_value_is_on_disk_before_or_after_the_release(disk: Disk, tmp_path: Path) -> None:
    with disk.installation.start() as service:
        play = delivered(service)
        content = disk.everything(service, tmp_path)
        assert found_in(content[:-2], BID), "the search must find what is there"
        assert found_in(content[-2:-1], BID)
        assert found_in(content[-1:], BID)
        assert [value for value in VALUES if found_in(content, value)] == []
        assert not paid_at(content)
        play.release()
        content = disk.everything(service, tmp_path)
        assert [value for value in VALUES if found_in(content, value)] == []
        assert not paid_at(content)
        assert IBAN in service.payment_file(play.who, play.id).handles.values(), "the payer can read it"
    assert [value for value in VALUES if found_in(disk.files(), value)] == []
    assert not paid_at(disk.files())


def test_after_the_release_no_copy_of_the_database_can_be_opened(disk: Disk, tmp_path: Path) -> None:
    with disk.installation.start() as service:
        play = delivered(service)
        key_file = disk.installation.folder / "keys" / "data" / f"{play.id}.key"
        key = key_file.read_bytes()
        with service._read() as connection:
            stolen = participants.by_secret(connection, play.token(0))
        assert stolen.delivery is not None
        vault = Vault(key_file.parent)
        assert vault.open(play.id, stolen.id, stolen.delivery) == struct.pack("<d", VALUES[0])
        play.release()
        assert not key_file.exists()
        assert not any(key in content or key.hex().encode() in content for content in disk.files())
        with pytest.raises(CampaignError, match="is not there"):
            Vault(key_file.parent).open(play.id, stolen.id, stolen.delivery)
        with service._read() as connection:
            assert participants.by_secret(connection, play.token(0)).delivery is None
        assert stolen.delivery not in b"".join(disk.backups(service, tmp_path))
        assert stolen.delivery.hex().encode() not in b"".join(disk.backups(service, tmp_path))


def test_after_its_end_no_copy_of_where_people_are_paid_can_be_opened(disk: Disk, tmp_path: Path) -> None:
    with disk.installation.start() as service:
        play = delivered(service)
        with service._read() as connection:
            stolen = participants.payouts_of(connection, play.id)[play.links[0].id]
        folder = disk.installation.folder / "keys" / "data"
        key = (folder / f"{play.id}-payout.key").read_bytes()
        assert Vault(folder, to="payout").open(play.id, play.links[0].id, stolen).startswith(IBAN.encode())
        with pytest.raises(CampaignError, match="cannot be opened"):
            Vault(folder).open(play.id, play.links[0].id, stolen)
        service.state_payout(play.token(1), "NO9386011117947")
        with service._read() as connection:
            lengths = {len(sealed) for sealed in participants.payouts_of(connection, play.id).values()}
        assert len(lengths) == 1, "the length of an account tells its country"
        play.release()
        disk.installation.clock.pass_(days=90)
        service.tick()
        assert not any(key in content or key.hex().encode() in content for content in disk.files())
        with pytest.raises(CampaignError, match="is not there"):
            Vault(folder, to="payout").open(play.id, play.links[0].id, stolen)
        with pytest.raises(Conflict, match="was destroyed"):
            Vault(folder, to="payout").create(play.id)
        assert stolen not in b"".join(disk.backups(service, tmp_path))


@of_sqlite
def test_a_withdrawn_bid_leaves_the_file(disk: Disk) -> None:
    """While the server runs: older pages in SQLite's write-ahead log hold it as well. PostgreSQL promises no time."""
    with disk.installation.start() as service:
        play = opened(service, 2)
        service.bid(play.token(0), BID)
        assert found_in(disk.files(), BID), "the search must find what is there"
        service.withdraw(play.token(0))
        assert not found_in(disk.files(), BID)
        service.bid(play.token(1), BID)
        with service._read() as backup_under_way:
            participants.count(backup_under_way, play.id)
            assert service.withdraw(play.token(1)).bid is None, "a reader in the way does not keep her waiting"
            assert found_in(disk.files(), BID), "who reads still sees the state before"
            service.tick()
        service.tick()
        assert not found_in(disk.files(), BID)


@of_sqlite
def test_a_server_that_was_killed_empties_the_log_when_it_starts(disk: Disk, tmp_path: Path) -> None:
    with disk.installation.start() as service:
        play = opened(service, 2)
        service.bid(play.token(0), BID)
        service._database.purge = lambda: None  # type: ignore[method-assign]
        service.withdraw(play.token(0))
        died = tmp_path / "died"
        shutil.copytree(disk.installation.folder, died)
    again = Installation(died, None, clock=disk.installation.clock)
    dead = Disk(again, None, None)
    assert found_in(dead.files(), BID)
    with again.start():
        assert not found_in(dead.files(), BID)


def test_a_ciphertext_opens_for_its_own_participant_and_campaign_only(tmp_path: Path) -> None:
    vault = Vault(tmp_path)
    vault.create("c1")
    vault.create("c2")
    sealed = vault.seal("c1", "p1", b"value")
    assert vault.open("c1", "p1", sealed) == b"value"
    assert vault.seal("c1", "p1", b"value") != sealed
    changed = bytes([sealed[0] ^ 1]) + sealed[1:]
    for campaign, participant, content in (("c1", "p2", sealed), ("c2", "p1", sealed), ("c1", "p1", changed)):
        with pytest.raises(CampaignError, match="cannot be opened"):
            vault.open(campaign, participant, content)


def test_a_destroyed_key_is_never_made_anew(tmp_path: Path) -> None:
    vault = Vault(tmp_path)
    vault.create("c1")
    path = tmp_path / "c1.key"
    assert path.stat().st_mode & 0o777 == 0o600
    handle = os.open(path, os.O_RDONLY)
    vault.destroy("c1")
    vault.destroy("c1")
    assert os.read(handle, 64) == bytes(32), "the key was overwritten before its file was removed"
    os.close(handle)
    assert not vault.holds("c1")
    for again in (vault, Vault(tmp_path)):
        with pytest.raises(Conflict, match="was destroyed"):
            again.create("c1")
        with pytest.raises(CampaignError):
            again.seal("c1", "p1", b"value")


def test_a_key_is_kept_as_long_as_the_settings_say(installation: Installation) -> None:
    with installation.start() as service:
        play = decided(service, 2, retention_days=3)
        play.deliver()
        play.release()
        folder = installation.folder / "keys" / "data"
        service.tick()
        assert (folder / f"{play.id}.key").exists()
        assert play.view.key_destroyed_at is None
        installation.clock.pass_(days=3)
        service.tick()
        assert not (folder / f"{play.id}.key").exists()
        assert play.view.key_destroyed_at is not None
        assert service.events(play.who, play.id)[-1].kind == "key-destroyed"
        assert service.export(play.token(0))["participant"]["value_is_stored_sealed"] is False


def test_messages_and_logs_hold_no_value_no_bid_and_no_token(
    installation: Installation, caplog: pytest.LogCaptureFixture
) -> None:
    import logging

    caplog.set_level(logging.DEBUG)
    with installation.start() as service:
        play = delivered(service)
        play.release()
        told = caplog.text + str(service.events(play.who, play.id)) + str(service.participants(play.who, play.id))
        told += repr(play.view) + str(service.payments(play.who, play.id)) + str(service.payout(play.token(0)))
        told += repr(service.payment_file(play.who, play.id))
        hers = str(service.export(play.token(0))) + str(service.receipt(play.token(0)).to_dict())
    assert IBAN not in told + hers
    for secret in (*map(repr, VALUES), repr(BID), *(link.token for link in (*play.links, *play.seats))):
        assert secret not in told
