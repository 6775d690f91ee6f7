"""A request that arrives twice is carried out once, and gets the same answer again."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import text

from hushbid.server.store.database import Database
from tests.server.http.support import SETTINGS, Live, live, sentence
from tests.server.support import Installation, drafted, on_both_stores, opened, stated

KEY = {"Idempotency-Key": "0123456789abcdef"}


def test_a_repeated_draft_is_one_campaign(both: Live) -> None:
    with both.client(both.analyst, **KEY) as client:
        answers = [client.post("/campaigns", json=SETTINGS) for _ in range(3)]
        assert [one.status_code for one in answers] == [201] * 3
        assert len({one.content for one in answers}) == 1
        assert [one.headers.get("idempotency-replayed") for one in answers] == [None, "true", "true"]
        assert len(client.get("/campaigns").json()["items"]) == 1


def test_without_a_key_each_request_counts(both: Live) -> None:
    with both.client(both.analyst) as client:
        assert len({client.post("/campaigns", json=SETTINGS).json()["id"] for _ in range(3)}) == 3


def test_a_repeated_invitation_shows_the_same_links_again_but_the_database_never_holds_them(
    installation: Installation,
) -> None:
    with installation.start() as service, live(service) as running:
        play = drafted(service, 2)
        with running.client(running.analyst, **KEY) as client:
            answers = [client.post(f"/campaigns/{play.id}/participants", json={"count": 3}) for _ in range(2)]
        assert answers[0].content == answers[1].content
        assert service.campaign(play.who, play.id).people == {"invited": 5}
        tokens = [one["token"] for one in answers[0].json()["invitations"]]
    database = (
        Database(installation.url) if installation.url else Database.sqlite(installation.folder / "hushbid.sqlite3")
    )
    try:
        with database.reading() as connection:
            rows = connection.execute(text("SELECT * FROM idempotency")).all()
    finally:
        database.close()
    assert rows
    stored = repr([[bytes(cell) if isinstance(cell, memoryview) else cell for cell in row] for row in rows])
    assert KEY["Idempotency-Key"] not in stored
    assert not any(token in stored for token in tokens)
    if installation.url is None:
        on_disk = b"".join(path.read_bytes() for path in installation.folder.glob("hushbid.sqlite3*"))
        assert not any(token.encode() in on_disk for token in tokens)


@pytest.mark.parametrize("other", [stated(title="Another"), stated(unit="h")])
def test_another_request_under_the_same_key_is_refused(both: Live, other: dict[str, Any]) -> None:
    with both.client(both.analyst, **KEY) as client:
        first = client.post("/campaigns", json=SETTINGS).json()["id"]
        assert "another request" in sentence(client.post("/campaigns", json=other), 409)
        assert "another request" in sentence(client.delete(f"/campaigns/{first}"), 409)
        assert [one["id"] for one in client.get("/campaigns").json()["items"]] == [first]


def test_two_people_may_choose_the_same_key(both: Live) -> None:
    both.service.create_user("eve", "analyst", "correct horse battery staple")
    eve = both.service.create_api_token("eve", "tests")
    with both.client(both.analyst, **KEY) as one, both.client(eve, **KEY) as two:
        assert one.post("/campaigns", json=SETTINGS).json()["id"] != two.post("/campaigns", json=SETTINGS).json()["id"]


def test_somebody_is_removed_from_a_draft_once_and_from_nothing_else(shared: Live) -> None:
    play, over = drafted(shared.service, 3), opened(shared.service, 3)
    path = f"/campaigns/{play.id}/participants"
    with shared.client(shared.analyst, **KEY) as client:
        first, again = (client.delete(f"{path}/{play.links[0].id}") for _ in range(2))
        assert first.json()["people"] == {"invited": 2}
        assert (again.content, again.headers["idempotency-replayed"]) == (first.content, "true")
    with shared.client(shared.analyst) as client:
        assert play.links[0].id not in client.get(path).text
        sentence(client.delete(f"{path}/{play.links[0].id}"), 404)
        sentence(client.delete(f"{path}/{over.links[0].id}"), 404)  # of another campaign
        told = sentence(client.delete(f"/campaigns/{over.id}/participants/{over.links[0].id}"), 409)
        assert "once the campaign has opened" in told


def test_a_participants_repetitions_get_the_first_answer(both: Live) -> None:
    play = opened(both.service)
    with both.client(play.token(0), **KEY) as client:
        answers = [client.post("/participation/decline") for _ in range(2)]
        assert answers[0].content == answers[1].content
        assert answers[0].json()["state"] == "declined"
    with both.client(play.token(1), **KEY) as client:
        assert client.post("/participation/decline").json()["participant"] != answers[0].json()["participant"]


@on_both_stores
def test_the_same_request_at_the_same_moment_is_carried_out_once(both: Live) -> None:
    together = threading.Barrier(8)

    def ask() -> tuple[int, bytes]:
        with both.client(both.analyst, **KEY) as client:
            together.wait()
            response = client.post("/campaigns", json=SETTINGS)
            return response.status_code, response.content

    with ThreadPoolExecutor(8) as pool:
        answers = {future.result() for future in [pool.submit(ask) for _ in range(8)]}
    assert [status for status, _ in answers] == [201], "one answer for all"
    with both.client(both.analyst) as client:
        assert len(client.get("/campaigns").json()["items"]) == 1
