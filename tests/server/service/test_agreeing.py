"""An agreement is an act that is stored: with its time, in the log, on the receipt, in both exports, word by word."""

import csv
import hashlib
import io
import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import httpx
import pytest

from hushbid.client import AnalystClient, MessageMemory, ParticipantClient
from hushbid.errors import Conflict, InputError
from hushbid.receipts.receipt import Receipt
from hushbid.server.bots.campaigns import SETTINGS, play_campaign
from hushbid.server.http.downloads import agreements_table
from hushbid.server.model.agreement import Passage, document_of, version_of
from hushbid.server.service import Service
from hushbid.verification.receipts import verify_receipt
from tests.extent import each
from tests.server.serving import served
from tests.server.support import Installation, Play, opened, settings, user, with_fields

CONSENT = {
    "controller": "Institute for Sleep Research",
    "contact": "privacy@example.org",
    "purpose": "A study",
    "storage": "Proofs of payment: ten years.",
    "texts": {"en": "We ask nurses.", "de": "Wir fragen Pflegekräfte."},
}
TOLD = (Passage(heading="In short", texts=(("What you give", "A price."), ("", "Ein Preis – für Ä."))),)
LABELS = ["=SUM(1;2)", "b@example.org", "c@example.org", "d@example.org"]


def agree(service: Service, secret: str, language: str = "en", told: tuple[Passage, ...] = TOLD) -> str:
    version = service.consent(secret, language=language, told=told).version
    service.agree(secret, version=version, language=language, told=told)
    return version


def logged(play: Play) -> list[dict[str, Any]]:
    events = play.service.events(play.who, play.id)
    return [dict(event.body) for event in events if event.kind == "agreed"]


def recomputed(document: dict[str, Any]) -> str:
    """The version of a document, as docs/reference/receipts.md says; nothing of ours is used."""
    return hashlib.sha256(json.dumps(document, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


@pytest.fixture(scope="module")
def over(common: Service) -> Play:
    """One agreed twice, in two languages; one declined after agreeing, one withdrew, one never came."""
    play = opened(common, LABELS, consent=CONSENT, minimum_people=1)
    agree(common, play.token(0))
    agree(common, play.token(0), "de")
    for row in (1, 2):
        agree(common, play.token(row))
    for row in (0, 2):
        common.bid(play.token(row), 1.5)
    common.decline(play.token(1))
    common.withdraw(play.token(2))
    assert play.decide().state == "done"
    play.deliver([0])
    assert play.release().state == "done"
    return play


def test_an_agreement_is_in_the_log_on_the_receipt_and_in_her_export(common: Service, over: Play) -> None:
    log = common.events(over.who, over.id)
    for row, language in ((0, "de"), (1, "en"), (2, "en")):
        secret, her = over.token(row), over.links[row].id
        receipt = common.receipt(secret)
        agreed = receipt.body.agreement
        assert agreed is not None
        [*_, last] = [event for event in log if event.kind == "agreed" and event.body["participant"] == her]
        assert (last.at, last.body["agreement"], last.body["language"]) == (agreed.at, agreed.version, language)
        assert set(last.body) == {"participant", "agreement", "language"}
        exported = common.export(secret)
        assert exported["participant"]["agreed_version"] == agreed.version == recomputed(exported["agreed_to"])
        assert exported["agreed_to"]["language"] == agreed.language == language
        assert verify_receipt(receipt, log=log).ok
        assert Receipt.from_dict(json.loads(receipt.to_json())) == receipt
    assert common.receipt(over.token(3)).body.agreement is None
    assert "agreement" not in common.receipt(over.token(3)).to_dict()["body"]
    assert verify_receipt(common.receipt(over.token(3)), log=log).ok


def test_a_receipt_with_another_agreement_does_not_fit_the_log(common: Service, over: Play) -> None:
    log = common.events(over.who, over.id)
    receipt = common.receipt(over.token(0))
    agreed = receipt.body.agreement
    assert agreed is not None
    for other in (None, replace(agreed, language="en"), replace(agreed, version="0" * 64)):
        [check] = [
            one
            for one in verify_receipt(replace(receipt, body=replace(receipt.body, agreement=other)), log=log).checks
            if one.name == "log"
        ]
        assert "The last agreement in the log is not the one on the receipt" in check.sentence


def test_the_last_agreement_counts_and_each_is_logged_once(common: Service) -> None:
    play = opened(common, 2, consent=CONSENT)
    secret = play.token(0)
    versions = [agree(common, secret), agree(common, secret, "de"), agree(common, secret, "de"), agree(common, secret)]
    assert versions[0] == versions[3] != versions[1] == versions[2]
    assert [body["agreement"] for body in logged(play)] == [versions[0], versions[1], versions[0]]
    assert [body["language"] for body in logged(play)] == ["en", "de", "en"]
    agreed = common.participation(secret).agreement
    assert agreed is not None
    assert (agreed.version, agreed.language) == (versions[0], "en")


def test_the_export_names_everybody_who_agreed_and_holds_every_text(common: Service, over: Play) -> None:
    found = common.agreements(over.who, over.id)
    assert [row["label"] for row in found["agreements"]] == LABELS[:3]
    assert {row["version"] for row in found["agreements"]} <= set(found["documents"])
    assert len(found["documents"]) == 2, "also what somebody agreed to before the last time"
    for version, document in found["documents"].items():
        assert recomputed(document) == version
        assert document["told"][0]["texts"][1]["text"] == "Ein Preis – für Ä."
        own = document["stated"]["consent"]
        assert own["text"] == CONSENT["texts"][document["language"]]
        assert (own["controller"], own["contact"]) == ("Institute for Sleep Research", "privacy@example.org")
    rows = list(csv.reader(io.StringIO(agreements_table(common, over.who, over.id, "csv").decode())))
    assert rows[0] == ["id", "label", "at", "version", "language"]
    assert [row[0] for row in rows[1:]] == [link.id for link in over.links[:3]]
    assert rows[1][1] != "=SUM(1;2)", "a table calculates nothing"
    otto = common.agreements(user(common, "otto", "auditor"), over.id)
    assert all("label" not in row for row in otto["agreements"])


def test_where_a_consent_is_stated_nobody_bids_without_agreeing(common: Service) -> None:
    play, free = opened(common, 2, consent=CONSENT), opened(common, 2)
    with pytest.raises(Conflict, match="agree to it first"):
        common.bid(play.token(0), 1.5)
    assert common.participation(play.token(0)).must_agree
    agree(common, play.token(0), told=())
    assert common.bid(play.token(0), 1.5).bid == 1.5
    assert not common.participation(free.token(0)).must_agree
    assert common.bid(free.token(0), 1.5).bid == 1.5


def test_only_what_is_stated_now_can_be_agreed_to(common: Service) -> None:
    play, other = opened(common, 2, consent=CONSENT), opened(common, 2, consent=CONSENT)
    secret = play.token(0)
    elsewhere = common.consent(other.token(0), language="en").version
    for version in ("0" * 64, elsewhere, common.consent(secret, language="de").version):
        with pytest.raises(Conflict, match="version must be that of what this campaign states"):
            common.agree(secret, version=version, language="en")
    with pytest.raises(InputError, match="language must be one of en, de"):
        common.consent(secret, language="fr")
    assert logged(play) == []


@each(
    "change",
    [
        {"retention_days": 3},
        {"observer": "your employer"},
        {"statement": "Do you smoke?"},
        {"participation_fee": 0.01},
        {"max_privacy_loss": 0.5},
        {"public_estimate": True},
        {"payout": "iban"},
        {"single_visit": True},
        {"consent": CONSENT | {"contact": "somebody@example.org"}},
        {"consent": CONSENT | {"texts": {"en": "We ask nurses!"}}},
    ],
)
def test_whatever_concerns_her_is_part_of_the_version(change: dict[str, Any]) -> None:
    before, after = (
        version_of(document_of("c1", settings(**{"consent": CONSENT, **more}), stratum=None, language="en"))
        for more in ({}, change)
    )
    assert before != after


def test_nobody_agrees_too_late_or_after_saying_no(installation: Installation) -> None:
    with installation.start() as service:
        late = opened(service, 2, bid_by=installation.clock.now + timedelta(hours=1))
        play = opened(service, 3)
        service.decline(play.token(0))
        with pytest.raises(Conflict, match="you declined to take part"):
            agree(service, play.token(0))
        installation.clock.pass_(hours=2)
        with pytest.raises(Conflict, match="the deadline for bids has passed"):
            agree(service, late.token(0))
        assert logged(late) == logged(play) == []


def test_programs_and_bots_agree_before_they_bid(service: Service) -> None:
    user(service, "ann")
    play = opened(service, 3, consent=CONSENT)
    keeper = MessageMemory()
    with served(service) as url:
        with ParticipantClient(url, play.link(0), keeper=keeper) as she:
            assert she.participation().must_agree
            with pytest.raises(Conflict, match="agree to it first"):
                she.bid(1.25)
            read = she.consent("de")
            assert read["document"]["stated"]["consent"]["text"] == "Wir fragen Pflegekräfte."
            assert read["version"] == recomputed(read["document"])
            with pytest.raises(Conflict, match="version must be that"):
                she.agree({**read["document"], "told": ["something else"]})
            with pytest.raises(InputError, match="document must be one that consent gave"):
                she.agree({})
            assert she.agree(read["document"]).agreed
            assert she.bid(1.25).bid == 1.25
        token = service.create_api_token("ann", "test")
        with AnalystClient(url, token=token) as analyst:
            stated = with_fields(SETTINGS, consent=CONSENT)
            played = play_campaign(analyst, stated, n=6, strategy="truthful")
        assert played.ok, played.tally.problems
        assert len(service.agreements(play.who, played.campaign)["agreements"]) == 6
        ann = {"Authorization": f"Bearer {token}"}
        table = httpx.get(f"{url}/api/v1/campaigns/{play.id}/agreements.csv", headers=ann)
        assert table.headers["content-type"].startswith("text/csv")
        whole = httpx.get(f"{url}/api/v1/campaigns/{play.id}/agreements.json", headers=ann)
        assert whole.json() == service.agreements(play.who, play.id)
