"""A small campaign on a server, from the draft to the last receipt, over HTTP alone but for what starts the server.

Identifiers, keys, salts and times differ from run to run, and with them hashes and signatures. So what is written are
the real files, which must stay readable and verify; and what is compared is all that is left when every such text is
replaced by a number that says where it occurred first.
"""

import asyncio
import itertools
import json
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any
from unittest import mock

from httpx import ASGITransport, AsyncClient

from tests.golden.runs import HERE, fixed, hushbid, report_text

FOLDER = HERE / "server"
SETTINGS = {
    "title": "Hours of sleep – März",
    "question": "How many hours did you sleep last night?",
    "unit": "hours",
    "market": {
        "setting": "central",
        "prior": {"days": "empirical:1,1.5,2,3", "nights": "empirical:1,2"},
        "bounds": [0, 12],
        "variance": 4.0,
        "buyer_weight": 60.0,
        "max_privacy_loss": 2.0,
    },
    "money": {"currency": "EUR"},
    "server": {"participation_fee": 1.5, "minimum_people": 5, "public_estimate": True},
}
PEOPLE: list[tuple[str, str, float | None, float | None]] = [
    ("ann", "days", 1.1, 7.5),
    ("ben", "days", 1.4, 6.25),
    ("cem", "days", 2.9, 8.0),
    ("dora", "nights", 1.2, 5.0),
    ("émile", "nights", 1.3, 9.5),
    ("finn", "nights", 1.25, None),
    ("gül", "days", 1.2, 7.0),
    ("hana", "days", None, None),
]
"""Label, group, bid and datum; who bids nothing declines, who has no datum does not deliver."""

_TIME = re.compile(r"\d{4}-\d\d-\d\d(T[\d:.]+(Z|\+00:00)|, \d\d:\d\d\sUTC)")
_NAME = re.compile(r"\b[a-z]?[0-9a-f]{20,}\b|\bHB(-[0-9A-Z]{4}){3}\b")


def play(folder: Path) -> dict[str, bytes]:
    """Conduct the campaign in a new installation, and give what people can download, by name."""
    from hushbid.server.http import create_app  # what starts a server in this process, loaded only for that
    from hushbid.server.installation import DataDir
    from hushbid.server.pages import add_pages
    from hushbid.server.service import Service
    from hushbid.server.service.use_case import Effort
    from hushbid.server.store.database import Database

    home = DataDir.at(folder / "home")
    little = Effort(least=2, most=2, seconds=0.0)  # a forecast is in none of the files
    with fixed(), _counted_secrets(), Service(home, Database.sqlite(home.database), effort=little) as service:
        added = hushbid("users", "add", "ann", "--generate", "--home", str(folder / "home"))
        token = hushbid("users", "token", "ann", "--home", str(folder / "home"), "--json")
        assert added.exit_code == token.exit_code == 0, added.output + token.output
        app = create_app(service, pages=add_pages, https=False)
        return asyncio.run(_conducted(app, json.loads(token.stdout)["token"]))


async def _conducted(app: Any, token: str) -> dict[str, bytes]:
    async with (
        app.router.lifespan_context(app),
        AsyncClient(transport=ASGITransport(app), base_url="http://127.0.0.1") as client,
    ):
        return await _played(_Caller(client, token))


class _Caller:
    """Somebody with a token."""

    def __init__(self, client: AsyncClient, token: str) -> None:
        self._client = client
        self._headers = {"Authorization": f"Bearer {token}"}

    def other(self, token: str) -> "_Caller":
        return _Caller(self._client, token)

    async def __call__(self, method: str, path: str, content: Any = None) -> Any:
        return json.loads(await self.raw(method, path, content))

    async def raw(self, method: str, path: str, content: Any = None) -> bytes:
        told = await self._client.request(method, f"/api/v1{path}", json=content, headers=self._headers)
        assert told.is_success, told.text
        return told.content


async def _played(ann: _Caller) -> dict[str, bytes]:
    place = f"/campaigns/{(await ann('POST', '/campaigns', SETTINGS))['id']}"
    invited = [{"id": label, "group": group} for label, group, _, _ in PEOPLE]
    links = (await ann("POST", f"{place}/participants", {"people": invited}))["invitations"]
    await ann("POST", f"{place}/open")
    await _wait(ann, place, "bidding")
    people = [await _seated(ann, row, one) for row, one in enumerate(links)]
    for person, (_, _, bid, _) in zip(people, PEOPLE, strict=True):
        if bid is None:
            await person("POST", "/participation/decline")
        else:
            await person("PUT", "/participation/bid", {"bid": bid})
    await ann("POST", f"{place}/close-bidding")
    await _wait(ann, place, "delivering")
    for row, (person, (_, _, _, value)) in enumerate(zip(people, PEOPLE, strict=True)):
        if value is not None and (await person("GET", "/participation"))["promised"]:
            await person("PUT", "/participation/delivery", {"value": value, "nonce": f"{row:032x}"})
    await ann("POST", f"{place}/release")
    await _wait(ann, place, "released", and_has="key_destroyed_at")  # in the log before what follows
    await ann("POST", f"{place}/payments")
    await ann("POST", f"{place}/close")
    found = {
        "record.json": await ann.raw("GET", f"{place}/record"),
        "log.jsonl": await ann.raw("GET", f"{place}/events.jsonl"),
        "keys.json": await ann.raw("GET", "/keys"),
        "estimate.json": await ann.raw("GET", f"{place}/release"),
        "public.json": await ann.raw("GET", f"{place}/public"),
        "payments.csv": await ann.raw("GET", f"{place}/payments.csv"),
        "report.html": await ann.raw("GET", f"{place}/report"),
    }
    return found | {
        f"receipt-{row}.json": await one.raw("GET", "/participation/receipt") for row, one in enumerate(people)
    }


async def _seated(ann: _Caller, row: int, invitation: dict[str, Any]) -> _Caller:
    """Somebody whose device has exchanged her link for a secret of its own."""
    secret = "hb_d_" + f"{row:043d}"
    await ann.other(invitation["token"])("PUT", "/participation/secret", {"secret": secret})
    return ann.other(secret)


async def _wait(ann: _Caller, place: str, state: str, *, and_has: str = "state") -> None:
    for _ in range(20_000):
        found = await ann("GET", place)
        if found["state"] == state and found[and_has]:
            return
    raise AssertionError(f"The campaign is {found['state']}, not {state}, or lacks {and_has}.")


@contextmanager
def _counted_secrets() -> Iterator[None]:
    """What is drawn at random grows, so that people stand in the order in which they were invited."""
    count = itertools.count(1)

    def drawn(size: int | None = None) -> bytes:
        number = next(count).to_bytes(8)
        return number + sha256(number).digest()[: (size or 32) - 8]

    with (
        mock.patch.object(secrets, "token_bytes", drawn),
        mock.patch.object(secrets, "token_hex", lambda size=None: drawn(size).hex()),
    ):
        yield


def comparable(files: dict[str, bytes]) -> dict[str, str]:
    """What does not differ from run to run."""
    seen: dict[str, str] = {}

    def named(found: re.Match[str]) -> str:
        return seen.setdefault(found[0], f"<{len(seen) + 1}>")

    shown = {}
    for name, content in sorted(files.items()):
        text = report_text(content.decode(), []) if name.endswith(".html") else content.decode()
        shown[name] = re.sub(r"\d{4}-\d\d-\d\d", "DAY", _NAME.sub(named, _TIME.sub("TIME", text)))
    return shown
