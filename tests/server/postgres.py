"""A PostgreSQL server of our own: started for real, in a temporary folder, on a port of this machine only."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

_SMALL = "-c max_connections=60 -c shared_buffers=16MB"
_FORGETFUL = "-c fsync=off -c full_page_writes=off -c synchronous_commit=off"


class Postgres:
    """A running server, and its databases."""

    def __init__(self, port: int, data: Path) -> None:
        self.port = port
        self.data = data
        self._made = 0

    def url(self, database: str) -> str:
        """The address of a database."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def new(self, *, like: str = "template0") -> str:
        """The name of a new database: empty, or a copy of another that nobody is connected to."""
        self._made += 1
        name = f"hushbid_{os.getpid()}_{self._made}"
        self.run(
            sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY FILE_COPY").format(
                sql.Identifier(name), sql.Identifier(like)
            )
        )
        return name

    def drop(self, database: str) -> None:
        """Remove a database, whoever is connected to it."""
        self.run(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(database)))

    def files(self, database: str) -> list[Path]:
        """Where the content of a database may be: its own files and the write-ahead log, brought up to date."""
        self.run(sql.SQL("CHECKPOINT"))
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            row = connection.execute("SELECT oid FROM pg_database WHERE datname = current_database()").fetchone()
        assert row is not None
        own = self.data / "base" / str(row[0])
        return [path for folder in (own, self.data / "pg_wal") for path in folder.rglob("*") if path.is_file()]

    def run(self, statement: sql.Composable, database: str = "postgres") -> None:
        """Run one statement outside any transaction."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            connection.execute(statement)


@contextmanager
def running_postgres(programs: Path, *, durable: bool = False) -> Iterator[Postgres]:
    """Start a server from the folder of initdb and pg_ctl; as root, as the user postgres, since it refuses root.

    Unless ``durable``, it forgets everything in a loss of power, which no test causes, and is quicker for it.
    """
    folder = Path(tempfile.mkdtemp(prefix="hushbid-postgres-"))
    who: dict[str, Any] = {}
    if os.geteuid() == 0:
        user = pwd.getpwnam("postgres")
        os.chown(folder, user.pw_uid, user.pw_gid)
        who = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    data, port = folder / "data", _free_port()

    def call(program: str, *options: str) -> None:
        subprocess.run(
            [programs / program, *options], check=True, cwd=folder, stdout=subprocess.DEVNULL, timeout=300, **who
        )

    call("initdb", "-D", str(data), "-A", "trust", "-U", "postgres", "--no-sync", "-E", "UTF8", "--locale=C.UTF-8")
    options = f"-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories='' {_SMALL}"
    if not durable:
        options = f"{options} {_FORGETFUL}"
    try:
        call("pg_ctl", "-D", str(data), "-l", str(folder / "log"), "-o", options, "-w", "start")
        try:
            yield Postgres(port, data)
        finally:
            call("pg_ctl", "-D", str(data), "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
