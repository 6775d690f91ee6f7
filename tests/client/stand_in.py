"""A stand-in for the server, in memory, into which the faults can be planted that its clients have to notice."""

import json
import threading
from datetime import UTC, datetime
from typing import Any

import httpx

from hushbid.common.money import Money
from hushbid.disclosure import Message
from hushbid.mechanism import Market
from hushbid.priors import parse_prior
from hushbid.receipts.keys import SigningKey, first_list
from hushbid.receipts.log import Event, bid_commitment, next_event
from hushbid.receipts.receipt import Body, in_order, issue, new_salt, tree_of

URL = "https://example.org"
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


class StandIn:
    """One campaign; call it as a network: ``httpx.MockTransport(StandIn())``."""

    def __init__(self, fault: str = "") -> None:
        self.fault = fault
        self.state = "draft"
        self.settings: dict[str, Any] = {}
        self.people: dict[str, dict[str, Any]] = {}
        self.log: list[Event] = []
        self.key = SigningKey(bytes(32))
        self.paid = False
        self.links: dict[str, str] = {}
        """Which link was exchanged for a secret."""

        self.lock = threading.Lock()
        self.lies: dict[str, Any] = {}
        """What every participant is told instead of the truth."""

    def __call__(self, request: httpx.Request) -> httpx.Response:
        with self.lock:
            return self.answer(request)

    def answer(self, request: httpx.Request) -> httpx.Response:
        """One request after the other, as a server's writer does."""
        path = request.url.path.removeprefix("/api/v1")
        content = json.loads(request.content) if request.content else {}
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        try:
            if path == "/participation/secret":
                self.exchange(token, content["secret"])
                return httpx.Response(200, json=self.view(self.people[token]))
            if path.startswith("/participation"):
                return self.participant(
                    self.people[self.links[token]], path.removeprefix("/participation").strip("/"), content
                )
            return self.staff(path.removeprefix("/campaigns").removeprefix("/c1").strip("/"), content)
        except Refused as problem:
            return httpx.Response(409, json={"detail": str(problem)})

    def exchange(self, link: str, secret: str) -> None:
        """A link opens once."""
        if link in self.links.values() and self.links.get(secret) != link:
            raise Refused("This link was used before.")
        self.links[secret] = link

    def open_for(self, n: int, **settings: Any) -> list[str]:
        """Open a campaign for so many people; their secrets."""
        fixed = {"prior": "uniform:1,3", "bounds": [0, 12], "buyer_weight": 500.0, "max_privacy_loss": 2.0}
        self.settings = {**fixed, **settings}
        told = self.staff("participants", {"count": n}).json()["invitations"]
        self.staff("open", {})
        return [one["token"] for one in told]

    def staff(self, path: str, content: dict[str, Any]) -> httpx.Response:
        """What an analyst asks for."""
        if path == "" and content:
            self.settings = content["market"]
        elif path == "participants":
            for k in range(content["count"]):
                person = {"id": f"p{k:04}", "state": "invited", "bid": None, "promised": None, "payment": None}
                self.people[f"token{k}"] = {**person, "salt": new_salt(), "message": None}
            told = [{**person, "label": token, "token": token, "salt": ""} for token, person in self.people.items()]
            return httpx.Response(200, json={"invitations": told})
        elif path == "open":
            self.state = "bidding"
            self.note("opened")
        elif path == "close-bidding":
            self.decide()
        elif path == "release":
            if self.state == "delivering":
                self.finish()
            return httpx.Response(200, json={"estimate": 7.0})
        elif path == "payments":
            self.paid = True
        elif path == "public":
            return httpx.Response(200, json={"root": self.tree.root.hex()})
        elif path == "keys":
            return httpx.Response(200, json=first_list(self.key, at=NOON).to_dict())
        elif path == "events":
            log = self.log[:1] + self.log[2:] if self.fault == "lose an event" else self.log
            return httpx.Response(200, json={"items": [event.to_dict() for event in log], "cursor": None})
        return httpx.Response(200, json={"id": "c1", "state": self.state})

    def participant(self, person: dict[str, Any], path: str, content: dict[str, Any]) -> httpx.Response:
        """What a participant asks for."""
        if path == "bid":
            self.require("bidding", unless="accept late bids")
            person |= {"state": "bid", "bid": content["bid"]}
            told = bid_commitment(person["id"], person["bid"], person["salt"])
            self.note("bid", participant=person["id"], bid_commitment=told)
        elif path == "decline":
            person["state"] = "declined"
        elif path == "withdrawal":
            person |= {"state": "withdrawn", "message": None}
        elif path == "delivery":
            self.require("delivering")
            person |= {"state": "delivered", "message": content.get("value", content.get("message"))}
        elif path == "receipt":
            return httpx.Response(200, content=self.receipt(person))
        return httpx.Response(200, json=self.view(person))

    def view(self, person: dict[str, Any]) -> dict[str, Any]:
        facts = {name: person[name] for name in ("state", "bid", "promised", "payment")}
        fixed = {"title": "", "currency": "EUR", "decimals": 2, "due": 0, "smallest_bid": 1.0, "largest_bought": 2.0}
        campaign = {"campaign": "c1", "campaign_state": self.state, "bounds": self.settings["bounds"]}
        campaign |= {"max_privacy_loss": self.settings["max_privacy_loss"], "questions": []}
        campaign |= {"takes_limits": self.fault == "forget limits"}  # it keeps none
        setting = self.settings.get("setting", "central")
        return {**fixed, **campaign, **facts, "participant": person["id"], "setting": setting, **self.lies}

    def decide(self) -> None:
        counted = [person for person in self.people.values() if person["state"] == "bid"]
        if len(counted) < 2:
            self.state = "nothing_bought"
            self.seal()
            return
        outcome = Market(
            prior=parse_prior(self.settings["prior"]),
            bounds=tuple(self.settings["bounds"]),
            setting=self.settings.get("setting", "central"),
            buyer_weight=self.settings["buyer_weight"],
            user_weight=0.0,
            max_privacy_loss=self.settings["max_privacy_loss"],
        ).acquire([person["bid"] for person in counted])
        money = Money.of(outcome.payments, 0.0, currency="EUR", decimals=2)
        for person, loss, payment in zip(counted, outcome.privacy_loss.tolist(), money.payments.tolist(), strict=True):
            person |= {"state": "promised" if loss else "not_bought", "promised": loss, "payment": payment}
        self.state = "delivering"

    def finish(self) -> None:
        for person in self.people.values():
            if person["state"] == "promised":
                person["state"] = "dropped"
            if self.settings.get("setting") == "local" and isinstance(person["message"], dict):
                assert Message.from_dict(person["message"], "value").privacy_loss == person["promised"]
        self.state = "released"
        self.seal()

    def seal(self) -> None:
        """Make the receipts, with the fault if there is one."""
        bodies = []
        for person in self.people.values():
            delivered = person["message"] is not None
            facts: dict[str, Any] = {name: person[name] for name in ("state", "bid", "promised")}
            facts |= {"delivered": person["promised"] if delivered else 0.0, "payment": person["payment"] or 0}
            if not delivered and self.fault != "pay drop-outs":
                facts["payment"] = 0
            if delivered and self.fault == "lose a delivery":
                facts |= {"delivered": 0.0, "payment": 0}
            if person["bid"] is not None and self.fault == "change a bid":
                facts["bid"] += 0.001
            fixed = {"campaign": "c1", "participant": person["id"], "fee": 0, "currency": "EUR", "decimals": 2}
            bodies.append(Body(**fixed, **facts, salt=person["salt"]))
        self.bodies = in_order(bodies)
        self.tree = tree_of(bodies)
        self.note("released", root=self.tree.root.hex(), tree_size=self.tree.size)

    def receipt(self, person: dict[str, Any]) -> bytes:
        index = next(k for k, body in enumerate(self.bodies) if body.participant == person["id"])
        tree, key = self.tree, self.key
        body = self.bodies[index]
        if self.fault == "two roots" and index == 1:
            tree, index = tree_of([body]), 0
        if self.fault == "another key":
            key = SigningKey.create()
        return issue(body, tree=tree, index=index, event=self.log[-1].head, key=key).to_json()

    def note(self, kind: str, **body: Any) -> None:
        self.log.append(next_event("c1", self.log[-1].head if self.log else None, at=NOON, kind=kind, body=body))

    def require(self, state: str, unless: str = "-") -> None:
        if self.state != state and self.fault != unless:
            raise Refused(f"The campaign is {self.state}.")


class Refused(Exception):
    """A request at the wrong time."""
