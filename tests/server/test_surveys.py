"""Campaigns that ask several questions, over HTTP: drafted, answered together, released once, verified, received."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner

from hushbid.cli import main
from hushbid.client import AnalystClient, MessageFolder, MessageMemory, ParticipantClient
from hushbid.disclosure import privatize, privatize_answers
from hushbid.errors import DataError, NotAllowed, RecordError, ReleaseError
from hushbid.questions import Choice, Number, YesNo
from hushbid.receipts.log import to_lines
from hushbid.receipts.receipt import questions_hash
from hushbid.server.bots.campaigns import play_campaign
from hushbid.server.service import Service
from hushbid.verification.verifying import verify
from tests.extent import each
from tests.server.serving import served
from tests.server.support import Installation, on_both_stores, stated, user, with_fields

QUESTIONS: list[dict[str, Any]] = [
    {"kind": "number", "name": "sleep", "bounds": [0, 12], "variance": 2.5, "unit": "hours"},
    {"kind": "yes_no", "name": "smokes"},
    {"kind": "choice", "name": "shift", "answers": ["days", "nights", "no answer"], "importance": 2.0},
]
SURVEY: dict[str, Any] = stated(
    title="Night shifts",
    question="How do nurses work and sleep?",
    prior="uniform:1,2",
    questions=QUESTIONS,
    buyer_weight=400.0,
    max_privacy_loss=2.0,
    participation_fee=1.5,
    minimum_people=5,
    public_estimate=True,
)


def with_errors(*errors: Any) -> list[dict[str, Any]]:
    """The questions, the first of them with these standard errors."""
    more = [{"standard_error": error} for error in errors] + [{}] * (len(QUESTIONS) - len(errors))
    return [{**one, **error} for one, error in zip(QUESTIONS, more, strict=True)]


ANSWERS = [
    {"sleep": 7.5, "smokes": False, "shift": "days"},
    {"sleep": 6.0, "smokes": True, "shift": "nights"},
    {"sleep": 12, "smokes": False, "shift": "no answer"},
]
SECRET = 7.765625
"""An answer that nobody else gives, to be looked for where it must not be."""


def connected(service: Service, url: str) -> AnalystClient:
    """An analyst at that server."""
    user(service, "ann")
    return AnalystClient(url, token=service.create_api_token("ann", "test"))


@pytest.fixture(scope="module")
def analyst(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AnalystClient]:
    """An analyst of one server for all tests that mind nobody else's campaigns, on SQLite."""
    folder = tmp_path_factory.mktemp("surveys") / "home"
    with Installation(folder, None).start() as service, served(service) as url, connected(service, url) as client:
        yield client


class Campaign:
    """A survey whose people have bid, and each one's client."""

    def __init__(self, analyst: AnalystClient, n: int = 6, keeper: Any = None, **changes: Any) -> None:
        self.analyst, self.keeper = analyst, keeper or MessageMemory()
        self.id = analyst.draft(with_fields(SURVEY, **changes)).id
        self.links = analyst.invite(self.id, count=n)
        analyst.open(self.id)
        for row in range(n):
            with self.she(row) as she:
                she.bid(1.0 + row / (n + 1))

    def she(self, row: int, **more: Any) -> ParticipantClient:
        return ParticipantClient.from_link(self.links[row].link, **{"keeper": self.keeper, **more})

    def decide(self) -> str:
        self.analyst.close_bidding(self.id)
        return self.analyst.wait(self.id).state

    def deliver(self, rows: range) -> None:
        for row in rows:
            with self.she(row) as she:
                offer = she.participation()
                send = she.deliver_privately if offer.setting == "local" else she.deliver_value
                send(ANSWERS[row % len(ANSWERS)], offer=offer)

    def release(self) -> dict[str, Any]:
        self.analyst.release(self.id)
        assert self.analyst.wait(self.id).state == "released"
        return self.analyst.estimate(self.id)

    def raw(self, row: int, body: Any) -> httpx.Response:
        """What the server answers to a delivery that no client would send."""
        with self.she(row) as she:
            she.participation()
        headers = {"Authorization": f"Bearer {self.keeper.secret(self.links[row].token)}"}
        with httpx.Client(base_url=f"{self.analyst.url}/api/v1", headers=headers, timeout=300.0) as client:
            return client.put("/participation/delivery", json=body)


def checked(campaign: Campaign, folder: Path) -> None:
    """`hushbid verify` accepts record, log and everybody's receipt, all from files."""
    analyst = campaign.analyst
    (folder / "log.jsonl").write_bytes(to_lines(analyst.events(campaign.id)))
    analyst.record(campaign.id).write(folder / "record.json")
    runs = [["record.json", "--log", "log.jsonl"]]
    root = analyst.public(campaign.id)["root"]
    for row in (0, len(campaign.links) - 1):
        with campaign.she(row) as she:
            receipt = she.receipt(fingerprint=analyst.keys().keys[-1].fingerprint)
        asked = [Number(name="sleep", bounds=(0, 12), variance=2.5, unit="hours"), YesNo(name="smokes")]
        asked.append(Choice(name="shift", answers=("days", "nights", "no answer"), importance=2.0))
        assert receipt.body.questions == questions_hash(asked)
        (folder / f"receipt-{row}.json").write_bytes(receipt.to_json())
        runs.append([f"receipt-{row}.json", "--log", "log.jsonl", "--record", "record.json", "--root", root])
    for one in runs:
        paths = [str(folder / word) if "." in word else word for word in one]
        found = CliRunner().invoke(main, ["verify", *paths])
        assert found.exit_code == 0, found.output


@on_both_stores
def test_a_survey_is_answered_released_verified_and_received_on_every_store(service: Service, tmp_path: Path) -> None:
    with served(service) as url, connected(service, url) as analyst:
        whole_survey(analyst, "central", tmp_path)


def test_a_local_survey_is_answered_released_verified_and_received(analyst: AnalystClient, tmp_path: Path) -> None:
    whole_survey(analyst, "local", tmp_path)


def whole_survey(analyst: AnalystClient, setting: str, folder: Path) -> None:
    campaign = Campaign(analyst, setting=setting)
    with campaign.she(0) as she:
        seen = she.participation()
        assert (seen.bounds, [one.name for one in seen.questions]) == (None, ["sleep", "smokes", "shift"])
        assert seen.layout is not None
    assert campaign.decide() == "delivering"
    campaign.deliver(range(5))  # one drops out of the whole
    found = campaign.release()
    assert [one["question"]["name"] for one in found["answers"]] == ["sleep", "smokes", "shift"]
    sleep, smokes, shift = found["answers"]
    assert isinstance(sleep["estimate"], float)
    assert isinstance(smokes["estimate"], float)
    assert sum(shift["shares"].values()) == pytest.approx(1.0, abs=1e-6)
    assert all({"half_width", "delivered_half_width"} <= set(one) for one in found["answers"])
    public = analyst.public(campaign.id)
    asked = analyst.campaign(campaign.id)["settings"]["questions"]
    assert [one["name"] for one in public["questions"]] == [one["name"] for one in asked]
    assert all("half_width" in one and "delivered_half_width" not in one for one in public["release"]["answers"])
    checked(campaign, folder)
    with campaign.she(0) as she:
        told = she.participation()
        assert told.content["estimate"]["answers"] == public["release"]["answers"]
        assert 0.0 < told.content["delivered_loss"] <= told.content["promised"]
    with campaign.she(5) as she:
        assert she.receipt().body.state == "dropped"
        assert she.participation().due == 150
    with httpx.Client(base_url=f"{analyst.url}/api/v1", headers=analyst._transport.headers, timeout=300.0) as client:
        bid = client.get(f"/campaigns/{campaign.id}/report")
    assert bid.status_code == 200
    assert "smokes" in bid.text


OUT_OF_QUESTION: list[tuple[Any, str]] = [
    ({**ANSWERS[0], "sleep": 12.0001}, "answers.sleep"),
    ({**ANSWERS[0], "sleep": str(SECRET)}, "answers.sleep"),
    ({**ANSWERS[0], "sleep": True}, "answers.sleep"),
    ({**ANSWERS[0], "sleep": 10**400}, "answers.sleep"),
    ({**ANSWERS[0], "sleep": None}, "answers.sleep"),
    ({**ANSWERS[0], "sleep": [SECRET]}, "answers.sleep"),
    ({**ANSWERS[0], "smokes": 1}, "answers.smokes"),
    ({**ANSWERS[0], "smokes": "yes"}, "answers.smokes"),
    ({**ANSWERS[0], "shift": "Days"}, "answers.shift"),
    ({**ANSWERS[0], "shift": 0}, "answers.shift"),
    ({"sleep": SECRET, "smokes": True}, "answers.shift"),
    ({**ANSWERS[0], "diagnosis": str(SECRET)}, "answers"),
    ([1.0, True, SECRET], "answers"),
]


def test_what_is_no_answer_is_refused_by_its_question_and_never_shown_and_the_first_answers_stand(
    analyst: AnalystClient, caplog: pytest.LogCaptureFixture
) -> None:
    campaign = Campaign(analyst)
    campaign.decide()
    for answers, field in OUT_OF_QUESTION:
        told = campaign.raw(0, {"answers": answers, "nonce": "0f" * 16})
        assert (told.status_code, told.json()["errors"][0]["field"]) == (422, field), told.text
        assert str(SECRET) not in told.text + caplog.text
    for other in ({"value": 1.0}, {"message": {}}, {"value": 1.0, "answers": ANSWERS[0]}, {}):
        assert campaign.raw(0, {**other, "nonce": "0f" * 16}).status_code == 422
    with campaign.she(0) as she:
        assert she.participation().state == "promised"
    assert campaign.raw(0, {"answers": ANSWERS[0], "nonce": "0f" * 16}).status_code == 200
    # whatever comes later is answered without a look at it
    for again, _ in [(ANSWERS[0], ""), (ANSWERS[1], ""), *OUT_OF_QUESTION[:-1]]:
        assert campaign.raw(0, {"answers": again, "nonce": "0f" * 16}).status_code == 200
        told = campaign.raw(0, {"answers": again, "nonce": "1f" * 16})
        assert (told.status_code, told.json()["detail"]) == (
            409,
            "Something was delivered before, and the first delivery stands.",
        )


def test_a_message_must_be_made_for_these_questions_and_the_promised_loss(analyst: AnalystClient) -> None:
    campaign = Campaign(analyst, setting="local")
    campaign.decide()
    with campaign.she(0) as she:
        offer = she.participation()
    assert offer.promised is not None
    right = privatize_answers(ANSWERS[0], offer.promised, offer.questions, layout=offer.layout).to_dict()
    wrong = [
        privatize(1.0, offer.promised, (0, 12)).to_dict(),
        privatize_answers(ANSWERS[0], offer.promised / 2, offer.questions, layout=offer.layout).to_dict(),
        privatize_answers([1.0, True], offer.promised, offer.questions[:2]).to_dict(),
        {**right, "parts": [1, 2**30 - 1]},
        {**right, "values": [["1", "2"], ["3"]]},
        {**right, "grid_bits": 31},
        {},
    ]
    for message in wrong:
        told = campaign.raw(0, {"message": message, "nonce": "0f" * 16})
        assert (told.status_code, told.json()["errors"][0]["field"]) == (422, "message"), told.text
    plain = campaign.raw(0, {"answers": ANSWERS[0], "nonce": "0f" * 16})
    assert "must not be sent" in plain.json()["detail"]
    assert campaign.raw(0, {"message": right, "nonce": "0f" * 16}).status_code == 200


def test_a_server_that_changes_the_questions_gets_nothing(analyst: AnalystClient, tmp_path: Path) -> None:
    campaign = Campaign(analyst, n=5, setting="local", keeper=MessageFolder(tmp_path))
    with campaign.she(0) as she:
        shown = she.participation()
    campaign.decide()
    with campaign.she(0) as she:
        offer = she.participation()
        sleep, *others = offer.questions
        wider = Number(name="sleep", bounds=(0, 1200), variance=2.5, unit="hours")
        for questions in ((wider, *others), tuple(others), (*others, sleep)):
            with pytest.raises(NotAllowed, match="other questions than you agreed to: nothing was sent"):
                she.deliver_privately(ANSWERS[0], offer=replace(offer, questions=questions))
        with pytest.raises(NotAllowed, match="other questions"):
            she.deliver_privately(7.0, offer=replace(offer, questions=(), bounds=(0.0, 12.0)))
        with pytest.raises(NotAllowed, match="another setting, range or questions"):
            she.bid(1.1, offer=replace(shown, questions=(wider, *others)))
        for answers in (
            7.0,
            [7.0, True],
            {"sleep": 7.0},
            {**ANSWERS[0], "sleep": 13.0},
            {**ANSWERS[0], "smokes": None},
        ):
            with pytest.raises(DataError):
                she.deliver_privately(answers, offer=offer)
        she.deliver_privately([7.5, False, "days"], offer=offer)
        # kept, and sent again whatever she answers now; no second draw for a server that shares the loss differently
        [kept] = tmp_path.glob("value-*.json")
        before = kept.read_bytes()
        she.deliver_privately(ANSWERS[1], offer=offer)
        assert kept.read_bytes() == before
        assert offer.layout is not None
        other = replace(offer.layout, groups=tuple(replace(one, parts=one.parts) for one in offer.layout.groups[::-1]))
        with pytest.raises(ReleaseError, match="other questions"):
            she.deliver_privately(ANSWERS[0], offer=replace(offer, layout=other))


def test_a_device_that_she_did_not_bid_from_asks_her_what_was_asked(analyst: AnalystClient) -> None:
    campaign = Campaign(analyst, n=5)
    campaign.decide()
    with campaign.she(1) as first:
        link = first.own_link()
        asked = first.participation().questions
    with ParticipantClient.from_link(link, keeper=MessageMemory()) as second:
        with pytest.raises(NotAllowed, match="or the questions"):
            second.deliver_value(ANSWERS[0])
        with pytest.raises(NotAllowed, match="other questions"):
            second.deliver_value(ANSWERS[0], at_most=2.0, questions=asked[:2])
        assert second.deliver_value(ANSWERS[0], at_most=2.0, questions=asked).state == "delivered"


def test_a_receipt_about_other_questions_is_not_to_be_relied_on(analyst: AnalystClient) -> None:
    campaign = Campaign(analyst, n=5)
    analyst.cancel(campaign.id)
    with campaign.she(0) as she:
        assert she.receipt().body.questions is not None
        [place] = {
            place
            for place in campaign.keeper._terms
            if campaign.keeper._texts["place", campaign.links[0].token] == place
        }
        kept = campaign.keeper.terms(place)
        assert kept is not None
        campaign.keeper.agree(place, replace(kept, questions=kept.questions[:1]))
        with pytest.raises(RecordError, match="other questions"):
            she.receipt()


@pytest.mark.parametrize("setting", ["central", "local"])
def test_bots_answer_surveys_and_nothing_is_lost_doubled_or_changed(analyst: AnalystClient, setting: str) -> None:
    played = play_campaign(analyst, with_fields(SURVEY, setting=setting), n=20, seed=3)
    assert (played.state, played.tally.problems) == ("released", [])
    assert played.estimate is not None
    assert len(played.estimate["answers"]) == 3


def test_one_question_is_a_survey_too(analyst: AnalystClient) -> None:
    for setting, asked, answer in (("central", QUESTIONS[1], True), ("local", QUESTIONS[2], "nights")):
        campaign = Campaign(analyst, n=5, setting=setting, questions=[asked])
        assert campaign.decide() == "delivering"
        for row in range(5):
            with campaign.she(row) as she:
                (she.deliver_privately if setting == "local" else she.deliver_value)([answer])
        [found] = campaign.release()["answers"]
        assert found["question"]["name"] == asked["name"]
        assert verify(analyst.record(campaign.id)).ok


def test_a_standard_error_for_each_question_is_a_goal_and_the_preview_names_them(analyst: AnalystClient) -> None:
    stated = with_fields(SURVEY, buyer_weight=None, questions=with_errors(2.0, 0.3, 0.4))
    campaign = analyst.draft(stated)
    assert [one["standard_error"] for one in campaign["settings"]["questions"]] == [2.0, 0.3, 0.4]
    found = analyst.preview(campaign.id, people=40)
    assert found["standard_error"] is None
    reached = {one["name"]: one["worst_standard_error"] for one in found["questions"]}
    assert reached["sleep"] <= 2.0 + 1e-9
    assert reached["smokes"] <= 0.3 + 1e-9
    assert reached["shift"] <= 0.4 + 1e-9
    assert max(reached["sleep"] / 2.0, reached["smokes"] / 0.3, reached["shift"] / 0.4) > 0.9


@each(
    ("changes", "field"),
    [
        ({"questions": []}, "questions"),
        ({"questions": "sleep"}, "questions"),
        ({"questions": {}}, "questions"),
        ({"questions": [*QUESTIONS, QUESTIONS[0]]}, "questions"),
        ({"questions": [QUESTIONS[0]] * 201}, "questions"),
        ({"questions": [*QUESTIONS[:2], {**QUESTIONS[0], "bounds": [3, 1]}]}, "questions.3.bounds"),
        ({"questions": [{**QUESTIONS[0], "bounds": [0, 10**400]}]}, "questions.1.bounds"),
        ({"questions": [{**QUESTIONS[0], "variance": 1e9}]}, "questions.1.variance"),
        ({"questions": [{**QUESTIONS[0], "importance": "high"}]}, "questions.1.importance"),
        ({"questions": [{**QUESTIONS[0], "importance": 10**400}]}, "questions.1.importance"),
        ({"questions": [{**QUESTIONS[0], "unit": 5}]}, "questions.1.unit"),
        ({"questions": [{**QUESTIONS[1], "name": "a\u202eb"}]}, "questions.1.name"),
        ({"questions": [{**QUESTIONS[1], "name": "\ud800"}]}, "questions.1.name"),
        ({"questions": [{**QUESTIONS[2], "answers": ["one", "\ud800"]}]}, "questions.1.answers"),
        ({"title": "\ud800"}, "title"),
        ({"\ud800": 1}, "?"),
        ({"questions": [{**QUESTIONS[2], "answers": ["one"]}]}, "questions.1.answers"),
        ({"questions": [{**QUESTIONS[2], "answers": {"a": 1, "b": 2}}]}, "questions.1.answers"),
        ({"questions": [{**QUESTIONS[1], "<b>": 1}]}, "questions.1.<b>"),
        ({"questions": [{"kind": ["number"], "name": "a"}]}, "questions.1.kind"),
        ({"questions": [None]}, "questions.1"),
        ({"questions": [{**QUESTIONS[1], "name": f"{n:03}" + "q" * 190} for n in range(200)]}, "questions"),
        (
            {"questions": [{"kind": "choice", "name": str(n), "answers": [*map(str, range(100))]} for n in range(11)]},
            "questions",
        ),
        ({"bounds": [0, 1]}, "market.bounds"),
        ({"unit": "hours"}, "unit"),
        ({"variance": 0.1}, "market.variance"),
        ({"questions": None}, "market.bounds"),
        ({"buyer_weight": None, "standard_error": 0.5}, "market.standard_error"),
        ({"buyer_weight": None, "questions": with_errors(0.5, "x", 1)}, "questions.2.standard_error"),
        ({"buyer_weight": None, "questions": with_errors(0.5)}, "questions.2"),
    ],
)
def test_questions_that_cannot_be_asked_are_refused_by_their_field(
    analyst: AnalystClient, changes: dict[str, Any], field: str
) -> None:
    content = json.dumps(with_fields(SURVEY, **changes)).encode()
    headers = {**analyst._transport.headers, "Content-Type": "application/json"}
    with httpx.Client(base_url=f"{analyst.url}/api/v1", headers=headers, timeout=300.0) as client:
        told = client.post("/campaigns", content=content)
    assert (told.status_code, [one["field"] for one in told.json()["errors"]]) == (422, [field]), told.text
