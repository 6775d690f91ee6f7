"""Lists come in pages that together hold everything once."""

from typing import Any

import httpx

from tests.extent import each
from tests.server.http.support import Live, sentence
from tests.server.support import drafted, on_both_stores, released


def pages(client: httpx.Client, path: str, limit: int) -> list[list[dict[str, Any]]]:
    found, cursor = [], None
    while True:
        query: dict[str, Any] = {"limit": limit} | ({} if cursor is None else {"cursor": cursor})
        page = client.get(path, params=query).raise_for_status().json()
        found.append(page["items"])
        cursor = page["cursor"]
        if cursor is None:
            return found


@on_both_stores
def test_pages_hold_everything_once_and_in_order(both: Live) -> None:
    play = released(both.service, [f"person {row}" for row in range(5)])
    for _ in range(4):
        drafted(both.service, 1)
    with both.client(both.analyst) as client:
        for path, count in (
            ("/campaigns", 5),
            (f"/campaigns/{play.id}/participants", 5),
            (f"/campaigns/{play.id}/jobs", 3),
            (f"/campaigns/{play.id}/events", None),
            ("/privacy-account", 5),
        ):
            [whole] = pages(client, path, 1000)
            assert count is None or len(whole) == count, path
            for limit in (1, 2, 3, len(whole)):
                parts = pages(client, path, limit)
                assert [one for part in parts for one in part] == whole, path
                assert all(len(part) == limit for part in parts[:-1]), path
                assert parts[-1], "no empty page at the end"
        numbers = [event["number"] for event in pages(client, f"/campaigns/{play.id}/events", 1000)[0]]
        assert numbers == list(range(1, len(numbers) + 1))
        kinds = [job["kind"] for job in pages(client, f"/campaigns/{play.id}/jobs", 1000)[0]]
        assert kinds == ["opening", "allocation", "release"]


@each("query", ["limit=0", "limit=1001", "limit=x", "limit=1.5", "cursor=", "cursor=%00", "cursor=zz"])
def test_a_page_that_cannot_be_is_refused(shared: Live, query: str) -> None:
    play = drafted(shared.service)
    with shared.client(shared.analyst) as client:
        for path in (
            "/campaigns",
            f"/campaigns/{play.id}/participants",
            f"/campaigns/{play.id}/events",
            "/privacy-account",
        ):
            sentence(client.get(f"{path}?{query}"), 422)
