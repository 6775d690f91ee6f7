"""The campaign server under load, on both stores: submissions against a bare endpoint, whole campaigns of bots, memory.

Server, bare endpoint and load are processes of their own on one machine. Bids go over the same number of connections
to both, in turns. The bare endpoint makes one commit for each request; ours answers after a commit too, which it may
share with whoever else is waiting. PostgreSQL is as durable as it comes.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks import load
from benchmarks.harness import Row
from hushbid.client import AnalystClient
from hushbid.client.messages import new_secret
from hushbid.server.bots.campaigns import SETTINGS, play_campaign
from hushbid.server.installation import DataDir
from hushbid.server.model.settings import CampaignSettings
from hushbid.server.service import Service
from hushbid.server.service.use_case import Effort
from hushbid.server.store.database import Database
from tests.conftest import PARTS
from tests.server.postgres import running_postgres

PEOPLE = 10_000
ROUNDS = 5
CONNECTIONS = 64
BOTS_AT_ONCE = 32
PASSWORD = "nobody logs in with this"


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """Where both servers store."""

    name: str
    folder: Path
    new: Callable[[], str | None]
    """Makes a database: PostgreSQL's address, or None for SQLite's file in the folder."""


def run() -> list[Row]:
    return [row for store in stores() for row in (*submissions(store), *campaign(store))]


def stores() -> Iterator[Store]:
    """SQLite, and PostgreSQL where it is installed."""
    with tempfile.TemporaryDirectory() as folder:
        yield Store(name="SQLite", folder=Path(folder), new=lambda: None)
    programs = PARTS["postgres"]()
    if programs is None:
        print("PostgreSQL is not installed: its lines are missing", file=sys.stderr)
        return
    with running_postgres(programs, durable=True) as server, tempfile.TemporaryDirectory() as folder:
        yield Store(name="PostgreSQL", folder=Path(folder), new=lambda: server.url(server.new()))


def submissions(store: Store) -> Iterator[Row]:
    """Bids per second against bare commits per second; how long they take; what memory they leave behind."""
    home, url = DataDir.at(store.folder / "submissions"), store.new()
    tokens = opened(home, url)
    bare_url = store.new() or str(store.folder / "bare.sqlite3")
    with serving(home, url) as ours, bare(bare_url) as theirs:
        pairs, sizes = [], []
        for turn in range(ROUNDS + 1):
            body = json.dumps({"bid": 1.25 + turn / 16}).encode()
            mine = [load.put("/api/v1/participation/bid", body, token) for token in tokens]
            other = [load.put("/report", body, token) for token in tokens]
            pairs.append(
                [load.run(one.url, what, connections=CONNECTIONS) for one, what in ((ours, mine), (theirs, other))]
            )
            sizes.append(ours.memory())
    assert not any(found.refused for pair in pairs for found in pair), "every request must be answered with 200"
    mine_all, other_all = zip(*pairs[1:], strict=True)  # the first one warms up
    rate, bare_rate = (median(found.per_second for found in side) for side in (mine_all, other_all))
    p99, bare_p99 = (median(found.p99 for found in side) for side in (mine_all, other_all))
    yield Row(
        what=f"time per bid, {store.name}",
        against="bare endpoint, one commit each",
        ratio=bare_rate / rate,
        limit=2.0,
        ours=f"{rate:.0f} per s",
        theirs=f"{bare_rate:.0f} per s",
    )
    yield Row(
        what=f"99th percentile, {CONNECTIONS} at once, {store.name}",
        against="bare endpoint",
        ratio=p99 / bare_p99,
        ours=f"{1e3 * p99:.0f} ms",
        theirs=f"{1e3 * bare_p99:.0f} ms",
    )
    yield Row(
        what=f"memory after {(ROUNDS + 1) * PEOPLE:,} bids, {store.name}",
        against=f"after {2 * PEOPLE:,}",
        ratio=sizes[-1] / sizes[1],
        limit=1.1,
        ours=f"{sizes[-1] / 2**20:.0f} MiB",
        theirs=f"{sizes[1] / 2**20:.0f} MiB",
    )


def campaign(store: Store) -> Iterator[Row]:
    """Bots play a whole campaign; nothing may be lost, doubled or changed."""
    home, url = DataDir.at(store.folder / "campaign"), store.new()
    with service(home, url) as started:
        started.create_user("ann", "analyst", PASSWORD)
        token = started.create_api_token("ann", "bench")
    with serving(home, url) as ours, AnalystClient(ours.url, token=token) as analyst:
        played = play_campaign(analyst, SETTINGS, n=PEOPLE, connections=BOTS_AT_ONCE)
        kinds = [event.kind for event in analyst.events(played.campaign)]
    facts = played.to_dict()
    assert played.ok, facts["problems"]
    for kind, event in (("bid", "bid"), ("deliver", "delivered"), ("decline", "declined")):
        acknowledged = facts["submissions"][kind]["count"]
        assert kinds.count(event) == acknowledged, f"{acknowledged} of {kind} acknowledged, {kinds.count(event)} logged"
    whole = sum(played.seconds.values())
    requests = sum(one["count"] for one in facts["submissions"].values())
    print(
        f"{store.name}: " + ", ".join(f"{name} {took:.1f} s" for name, took in played.seconds.items()), file=sys.stderr
    )
    for kind in ("bid", "deliver"):
        times = facts["submissions"][kind]
        yield Row(
            what=f"99th percentile of {times['count']:,} bots that {kind}, {store.name}",
            against="their median",
            ratio=times["p99_ms"] / times["median_ms"],
            ours=f"{times['p99_ms']:.0f} ms",
            theirs=f"{times['median_ms']:.0f} ms",
        )
    yield Row(
        what=f"{PEOPLE:,} bots, a whole campaign, {store.name}: nothing lost or doubled",
        against="its submissions alone",
        ratio=whole / sum(played.seconds[phase] for phase in ("bidding", "delivering")),
        ours=f"{whole:.0f} s",
        theirs=f"{requests:,} submissions",
    )


def opened(home: DataDir, url: str | None) -> list[str]:
    """A campaign that takes bids, and the secrets of its people's devices."""
    with service(home, url) as started:
        who = started.create_user("ann", "analyst", PASSWORD)
        drafted = started.draft(who, CampaignSettings.read(SETTINGS))
        links = started.invite(who, drafted.id, count=PEOPLE)
        started.wait(started.open(who, drafted.id))
        secrets = [new_secret() for _ in links]
        for link, secret in zip(links, secrets, strict=True):
            started.enter.soon(link.token, secret)
    return secrets


def service(home: DataDir, url: str | None) -> Service:
    """A service in this process, which looks ahead no longer than it must."""
    database = Database.sqlite(home.database) if url is None else Database(url)
    return Service(home, database, effort=Effort(least=2, most=2, seconds=0.0))


@dataclass(frozen=True, slots=True)
class Process:
    """A server that runs."""

    url: str
    number: int

    def memory(self) -> int:
        """The bytes it holds, where the system tells."""
        try:
            pages = int(Path(f"/proc/{self.number}/statm").read_text().split()[1])
        except OSError:
            return 1
        return pages * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def serving(home: DataDir, url: str | None) -> Iterator[Process]:
    """`hushbid serve` as people run it, its log to nowhere."""
    where = ["--home", str(home.path)] + ([] if url is None else ["--database", url])
    with running("hushbid", "serve", "--port", "0", *where) as found:
        yield found


@contextmanager
def bare(url: str) -> Iterator[Process]:
    """The endpoint to compare with."""
    with running("benchmarks.bare_server", url) as found:
        yield found


@contextmanager
def running(*arguments: str) -> Iterator[Process]:
    """A Python module as a process that prints its address; killed in the end."""
    command = [sys.executable, "-m", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            told = next(word for word in process.stdout.readline().split() if word.startswith("http://"))
            yield Process(told, process.pid)
        finally:
            process.kill()
