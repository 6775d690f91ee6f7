"""The endpoint that the campaign server is measured against: the same framework, one row and one commit per request.

``python -m benchmarks.bare_server URL`` prints its address, then serves until it is killed. It has no accounts, no
campaign, no rules and no log; its row is one INSERT by the plain driver, with a commit that is as durable as ours.
"""

import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path

import psycopg
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

from hushbid.server.http.serve import listen


class Bid(BaseModel):
    bid: float


class Answer(BaseModel):
    stored: int


def sqlite_insert(path: Path) -> Callable[[float], int]:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE bare (id INTEGER PRIMARY KEY, value REAL)")

    def insert(value: float) -> int:
        return connection.execute("INSERT INTO bare (value) VALUES (?)", (value,)).lastrowid or 0

    return insert


def postgres_insert(url: str) -> Callable[[float], int]:
    connection = psycopg.connect(url, autocommit=True)
    connection.execute("CREATE TABLE bare (id BIGSERIAL PRIMARY KEY, value DOUBLE PRECISION)")

    def insert(value: float) -> int:
        row = connection.execute("INSERT INTO bare (value) VALUES (%s) RETURNING id", (value,), prepare=True).fetchone()
        return int(row[0]) if row else 0

    return insert


def main(url: str) -> None:
    insert = postgres_insert(url) if url.startswith("postgresql:") else sqlite_insert(Path(url))
    app = FastAPI()

    @app.put("/report")
    async def bid(given: Bid) -> Answer:
        return Answer(stored=insert(given.bid))

    listener = listen("127.0.0.1", 0)
    print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off")
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main(sys.argv[1])
