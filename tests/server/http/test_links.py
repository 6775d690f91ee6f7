"""A link's exchange over HTTP, and what is left to whoever holds a copy."""

from tests.server.http.support import Live, sentence
from tests.server.support import NONCE, decided, opened, secret_for

EXCHANGE = "/participation/secret"


def test_an_exchange_may_be_repeated_by_the_same_device_and_by_nobody_else(either: Live) -> None:
    play = opened(either.service, 3)
    secret = secret_for(play.id)
    with either.client(play.link(0)) as client:
        assert "exchange it for a secret first" in sentence(client.get("/participation"), 401)
        answers = [client.put(EXCHANGE, json={"secret": secret}) for _ in range(3)]
        assert {answer.status_code for answer in answers} == {200}
        assert len({answer.content for answer in answers}) == 1
        refused = client.put(EXCHANGE, json={"secret": secret_for("somebody else")})
        assert sentence(refused, 401).startswith("This link was used before, on ")
        assert secret not in refused.text
        for wrong in ("", "hb_d_x", secret + "x", secret.upper(), 7, None):
            assert secret not in sentence(client.put(EXCHANGE, json={"secret": wrong}), 422)
    with either.client(secret) as client:
        assert client.get("/participation").json()["participant"] == play.links[0].id
        assert "secret already" in sentence(client.put(EXCHANGE, json={"secret": secret}), 401)
        own = client.post("/participation/link", headers={"Idempotency-Key": "k" * 20}).json()
        again = client.post("/participation/link", headers={"Idempotency-Key": "k" * 20})
        assert (again.json(), again.headers["idempotency-replayed"]) == (own, "true")
    with either.client(own["token"]) as client:
        assert "exchange it" in sentence(client.get("/participation"), 401)
        assert client.put(EXCHANGE, json={"secret": secret_for("phone")}).status_code == 200
    with either.client(secret_for("phone")) as client:
        assert len(client.get("/participation/devices").json()["devices"]) == 2
        assert len(client.delete("/participation/devices").json()["devices"]) == 1
    with either.client(secret) as client:  # has ended: not even the answer that it got before
        again = client.post("/participation/link", headers={"Idempotency-Key": "k" * 20})
        assert "from another device" in sentence(again, 401)
        assert own["token"] not in again.text
    with either.client(secret_for("phone")) as client:
        assert client.delete(EXCHANGE).status_code == 204
        assert "Whoever had opened this left" in sentence(client.get("/participation"), 401)
    for token in (either.analyst, either.auditor):
        with either.client(token) as client:
            sentence(client.put(EXCHANGE, json={"secret": secret}), 403)
    for token in (None, "hb_p_nonsense"):
        with either.client(token) as client:
            sentence(client.put(EXCHANGE, json={"secret": secret_for("nobody")}), 401)


def test_no_later_delivery_tells_anything_of_the_first(either: Live) -> None:
    play = decided(either.service, 3)
    with either.client(play.token(0)) as client:
        first = client.put("/participation/delivery", json={"value": 3.25, "nonce": NONCE})
        assert first.status_code == 200
        for nonce, status in ((NONCE, 200), (NONCE[::-1], 409)):
            answers = {
                client.put("/participation/delivery", json={"value": value, "nonce": nonce}).content
                for value in (3.25, 3.0, -1.0, 11.0, 1e300)
            }
            answers.add(client.put("/participation/delivery", json={"message": {"x": 1}, "nonce": nonce}).content)
            assert len(answers) == 1
            again = client.put("/participation/delivery", json={"value": 3.25, "nonce": nonce})
            assert again.status_code == status
        sentence(client.put("/participation/delivery", json={"value": 3.25}), 422)
