"""Computations that take seconds: one at a time for each user, so that nobody waits for another's queue."""

import asyncio
import threading

from hushbid.errors import Throttled
from hushbid.server.http.auth import AppState
from hushbid.server.model.views import Principal
from hushbid.server.service import Service
from tests.server.support import analyst, user


def test_however_much_one_analyst_asks_for_another_is_served_at_once(service: Service) -> None:
    ann, bob = analyst(service), user(service, "bob")
    state = AppState(service=service, https=False)
    go_on, running, most = threading.Event(), [0], [0]

    def long() -> None:
        running[0] += 1
        most[0] = max(most[0], running[0])
        assert go_on.wait(60)
        running[0] -= 1

    async def asked() -> None:
        hers = [asyncio.create_task(state.compute(ann, long)) for _ in range(4)]
        await asyncio.sleep(0)
        assert await state.compute(bob, lambda: "at once") == "at once", "her four are still under way"
        assert not any(one.done() for one in hers)
        go_on.set()
        await asyncio.gather(*hers)

    asyncio.run(asked())
    assert most == [1]
    assert state._turns == {}
    state.close()


def test_a_queue_without_end_is_refused(service: Service) -> None:
    ann: Principal = analyst(service)
    state = AppState(service=service, https=False)

    async def asked() -> list[object]:
        go_on = threading.Event()
        many = [asyncio.create_task(state.compute(ann, lambda: go_on.wait(60))) for _ in range(40)]
        await asyncio.sleep(0)
        go_on.set()
        return await asyncio.gather(*many, return_exceptions=True)

    found = asyncio.run(asked())
    state.close()
    assert sum(isinstance(one, Throttled) for one in found) == 8
