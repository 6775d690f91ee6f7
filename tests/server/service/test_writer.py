"""The writer: commits shared, refusals alone, nobody told before it is durable."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait

import pytest
from sqlalchemy import Connection, func, insert, select
from sqlalchemy.exc import IntegrityError

from hushbid.errors import Conflict, ServerFailed
from hushbid.server.installation import DataDir
from hushbid.server.installation import Installation as RealInstallation
from hushbid.server.service.writer import Writer
from hushbid.server.store.database import Transaction
from hushbid.server.store.migrate import migrate
from hushbid.server.store.schema import installation as table
from tests.server.support import Clock, Installation, on_both_stores, opened_database

pytestmark = on_both_stores

Operation = Callable[[Transaction], str]


class Bench:
    """A writer whose commits are counted, and which can be held up."""

    def __init__(self, installation: Installation) -> None:
        self.database = opened_database(installation)
        with self.database.writer.begin():
            migrate(self.database.writer)
        self.points: list[str] = []
        server = RealInstallation.of(DataDir.at(installation.folder), crash=self.points.append)
        self.writer = Writer(self.database, server, clock=Clock())

    def held_up(self) -> Callable[[], None]:
        """Keep the writer busy until the function that is returned is called."""
        busy, go = threading.Event(), threading.Event()

        def hold(tx: Transaction) -> None:
            busy.set()
            go.wait(60)

        self.writer.submit("hold", hold)
        busy.wait(60)
        return go.set

    def names(self) -> list[str]:
        with self.database.reading() as connection:
            return sorted(connection.execute(select(table.c.name)).scalars())


@pytest.fixture
def bench(installation: Installation) -> Iterator[Bench]:
    found = Bench(installation)
    yield found
    found.writer.close()
    found.database.close()


def put(name: str) -> Operation:
    def operation(tx: Transaction) -> str:
        tx.writing.execute(insert(table).values(name=name, value=""))
        return name

    return operation


def put_and_refuse(name: str) -> Operation:
    def operation(tx: Transaction) -> str:
        put(name)(tx)
        raise Conflict("No.")

    return operation


def count(connection: Connection) -> int:
    return int(connection.execute(select(func.count()).select_from(table)).scalar_one())


def test_everybody_who_waits_shares_one_transaction(bench: Bench) -> None:
    go = bench.held_up()
    moments: list[int] = []

    def look(tx: Transaction) -> None:
        moments.append(count(tx.connection))

    futures: list[Future[object]] = []
    for number in range(20):
        futures.append(bench.writer.submit("put", put(f"n{number}")))
        futures.append(bench.writer.submit("look", look))
    assert bench.names() == []
    go()
    wait(futures)
    assert moments == list(range(1, 21))
    commits = [point for point in bench.points if point.startswith("put")]
    assert commits == ["put.before-commit"] * 20 + ["put.after-commit"] * 20


def test_a_refused_operation_undoes_its_own_changes_only(bench: Bench) -> None:
    go = bench.held_up()
    first = bench.writer.submit("a", put("a"))
    second = bench.writer.submit("b", put_and_refuse("b"))
    third = bench.writer.submit("c", put("a"))
    fourth = bench.writer.submit("d", put("d"))
    go()
    assert first.result() == "a"
    with pytest.raises(Conflict):
        second.result()
    with pytest.raises(IntegrityError):
        third.result()
    assert fourth.result() == "d"
    assert bench.names() == ["a", "d"]


def test_an_operation_that_checks_first_and_is_refused_costs_the_others_nothing(bench: Bench) -> None:
    def refused(tx: Transaction) -> str:
        raise Conflict("No.")

    go = bench.held_up()
    futures = [
        bench.writer.submit("a", put("a"), checks_first=True),
        bench.writer.submit("b", refused, checks_first=True),
        bench.writer.submit("c", put("c"), checks_first=True),
    ]
    go()
    assert [future.exception() is None for future in futures] == [True, False, True]
    assert isinstance(futures[1].exception(), Conflict)
    assert bench.names() == ["a", "c"]


def test_an_operation_that_fails_while_it_writes_costs_the_others_nothing(bench: Bench) -> None:
    go = bench.held_up()
    futures = [
        bench.writer.submit("a", put("a"), checks_first=True),
        bench.writer.submit("b", put_and_refuse("b"), checks_first=True),
        bench.writer.submit("c", put("a"), checks_first=True),
        bench.writer.submit("d", put("d")),
    ]
    go()
    assert [type(future.exception()) for future in futures] == [type(None), Conflict, IntegrityError, type(None)]
    assert bench.names() == ["a", "d"]
    assert bench.points.count("a.before-commit") == 1, "nothing is run again"


def test_what_a_refused_operation_left_to_be_written_later_is_not_written(bench: Bench) -> None:
    later = insert(table)

    def put_later(name: str) -> Operation:
        def operation(tx: Transaction) -> str:
            tx.memory.later(later, {"name": name, "value": ""})
            if name == "b":
                raise Conflict("No.")
            return name

        return operation

    go = bench.held_up()
    futures = [bench.writer.submit(name, put_later(name), checks_first=True) for name in "abc"]
    go()
    assert [future.exception() is None for future in futures] == [True, False, True]
    assert bench.names() == ["a", "c"]


def test_nobody_is_told_before_the_commit(bench: Bench) -> None:
    told: list[list[str]] = []
    go = bench.held_up()
    future = bench.writer.submit("put", put("a"))
    future.add_done_callback(lambda _: told.append([point for point in bench.points if point.startswith("put")]))
    go()
    future.result()
    assert told == [["put.before-commit", "put.after-commit"]]


def test_a_closed_writer_finishes_what_is_queued_and_takes_nothing_more(bench: Bench) -> None:
    go = bench.held_up()
    queued = bench.writer.submit("put", put("a"))
    closing = threading.Thread(target=bench.writer.close)
    closing.start()
    go()
    closing.join()
    assert queued.result() == "a"
    with pytest.raises(ServerFailed, match="shutting down"):
        bench.writer.run("put", put("b"))
    assert bench.names() == ["a"]
