"""The OpenAPI document tells the truth: requests made from it, right and wrong ones, never break the server, and every
answer is one that the document announces."""

from collections.abc import Iterator
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from hushbid.server.service import Service
from tests.extent import TIMES
from tests.server.http.support import Live
from tests.server.http.test_roles import ELSEWHERE, MATRIX
from tests.server.support import decided, drafted, opened, released

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
    unsupported_method,
]
EXAMPLES = 3 if TIMES == 1 else 6 * TIMES
TAKES_NOTHING = {("GET", "/health"), ("GET", "/keys"), ("DELETE", "/session")}
REQUESTS = [
    (operation, mode)
    for operation in [*MATRIX, *sorted(ELSEWHERE)]
    for mode in GenerationMode
    if mode is GenerationMode.POSITIVE or operation not in TAKES_NOTHING  # then nothing about a request can be wrong
]


@pytest.fixture(scope="module")
def document(shared: Live) -> Any:
    return schemathesis.openapi.from_url(f"{shared.url}/api/v1/openapi.json")


@pytest.fixture(scope="module")
def session() -> Iterator[requests.Session]:
    with requests.Session() as found:
        yield found


@pytest.fixture(scope="module")
def campaigns(shared: Live) -> list[str]:
    """Campaigns in every state that lasts, so that requests made from the document meet something."""
    service = shared.service
    plays = [drafted(service), opened(service), decided(service), released(service), drafted(service, 1)]
    return [play.id for play in plays]


@pytest.fixture(scope="module")
def links(shared: Live) -> list[str]:
    service = shared.service
    plays = [opened(service), decided(service), decided(service, setting="local"), released(service)]
    return [link.token for play in plays for link in (*play.seats, *play.links)]


@pytest.mark.parametrize(("operation", "mode"), REQUESTS, ids=str)
def test_no_request_made_from_the_document_breaks_the_server_or_surprises_the_reader(
    shared: Live,
    document: Any,
    session: requests.Session,
    campaigns: list[str],
    links: list[str],
    operation: tuple[str, str],
    mode: GenerationMode,
) -> None:
    method, path = operation
    found = document[f"/api/v1{path}"][method]
    tokens = links if path.startswith("/participation") else [shared.analyst, shared.auditor]
    if path.startswith("/participation"):  # a link opens one address, and a secret all others
        prefix = "hb_p_" if path.endswith("/secret") else "hb_d_"
        tokens = [token for token in links if token.startswith(prefix)]

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(
        case=found.as_strategy(generation_mode=mode),
        token=st.sampled_from(tokens),
        campaign=st.sampled_from(campaigns),
        real=st.booleans(),
    )
    def play(case: Any, token: str, campaign: str, real: bool) -> None:
        if real and mode is GenerationMode.POSITIVE and "campaign" in (case.path_parameters or {}):
            case.path_parameters["campaign"] = campaign
        headers = {"Authorization": f"Bearer {token}"}
        response = case.call(session=session, headers=headers)
        # 413 is a refusal too, though not one that the check of refusals knows.
        large = {negative_data_rejection} if response.status_code == 413 else set()
        case.validate_response(response, headers=headers, checks=[one for one in CHECKS if one not in large])

    play()


def test_a_lie_would_be_found(
    shared: Live, document: Any, session: requests.Session, campaigns: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    case = document["/api/v1/campaigns/{campaign}/public"]["GET"].Case(path_parameters={"campaign": campaigns[1]})
    case.call_and_validate(session=session, checks=CHECKS)
    for lie in ({"campaign": campaigns[1]}, {"people": "three"}):
        monkeypatch.setattr(Service, "public", lambda *_, lie=lie: lie)
        with pytest.raises(FailureGroup):
            case.call_and_validate(session=session, checks=CHECKS)


def test_the_document_describes_every_field_and_every_operation(document: Any) -> None:
    for path, methods in document.raw_schema["paths"].items():
        for method, operation in methods.items():
            place = f"{method} {path}"
            assert operation["summary"], place
            assert operation["description"], place
            assert {"400", "413", "500", "503"} <= set(operation["responses"]), place
            for status, response in operation["responses"].items():
                kinds = set(response.get("content", {}))
                assert int(status) < 400 or kinds == {"application/problem+json"}, place
    paths = document.raw_schema["paths"]
    names = [operation["operationId"] for methods in paths.values() for operation in methods.values()]
    assert len(names) == len(set(names))
    described = document.raw_schema["components"]["schemas"]["ParticipationView"]["properties"]
    assert described["promised"]["description"].startswith("The privacy loss she will not exceed")
