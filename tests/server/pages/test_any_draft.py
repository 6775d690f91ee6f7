"""Whatever stands in a draft, typed or saved, every page and every button of it answers with a page, in both languages.

Fields are missing, empty, unreadable or contradict each other; the forms are random, mostly incomplete and small, since
a whole one is forecast for real.
"""

import secrets
from collections.abc import Iterator, Mapping

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hushbid.server.pages.form_fields import EMPTY
from hushbid.server.pages.request import LANGUAGE_COOKIE
from tests.extent import TIMES
from tests.server.http.support import Live
from tests.server.pages.support import Visitor
from tests.server.support import PASSWORD

WHOLE = {
    **EMPTY,
    "title": "Sleep",
    "q-0-name": "How many hours?",
    "q-0-low": "0",
    "q-0-high": "12",
    "people": "3",
    "minimum_people": "2",
    "budget": "6",
}
WRONG = ("", " ", "x", "0", "-1", "1e999", "nan", "1,5", "1.5", "99999999999", "<b>", "\u202e", "\U0001f9d1")
ALLOWED: dict[str, tuple[str, ...]] = {
    "questions": ("0", "1", "2", "3"),
    "q-0-kind": ("number", "yes_no", "choice"),
    "q-0-answers": ("a\nb", "a", "a\na"),
    "q-0-high": ("12", "-3"),
    "q-0-error": ("1", "200"),
    "q-0-variance": ("1", "1000"),
    "strata": ("0", "1", "2"),
    "strata_kind": ("shares", "contrast"),
    "setting": ("central", "local"),
    "goal": ("spend", "accuracy", "cost"),
    "buyer_weight": ("50",),
    "never_exceed": ("yes",),
    "people": ("1", "2", "4"),
    "prices": ("typical", "pilot", "text"),
    "prior": ("uniform:1,2", "uniform:2,1", "exponential:1", "kaput:1", '{"a": "uniform:1,2", "b": "uniform:1,3"}'),
    "privacy": ("strong", "light", "own"),
    "max_privacy_loss": ("1",),
    "relation": ("none", "own"),
    "participation_fee": ("1", "1000"),
    "spending_limit": ("1",),
    "automatic": ("yes",),
    "bid_by": ("2020-01-01T00:00", "2030-01-01T00:00"),
    "deliver_by": ("2020-01-02T00:00", "soon"),
    "payout": ("iban",),
    "decimals": ("0", "6"),
    "currency": ("JPY",),
    "observer": ("your employer",),
}
EXAMPLES = 10 * TIMES
MORE = {"q-1-kind": "yes_no", "q-1-name": "Tired?", "s-0-name": "old", "s-0-weight": "40", "s-1-name": "young"}
NAMES = sorted({*WHOLE, *MORE, "s-1-weight"})
BUTTONS = (
    *("preview", "save", "language:de", "language:xx", "", "nonsense:9", "stratum-add:", "stratum-remove:0"),
    *("question-add:choice", "question-remove:0", "question-up:1", "question-down:0", "question-remove:77"),
)
QUERIES = ("", "?look=yes", "?check=yes", "?check=yes&look=yes&pilot=pilot_rows&row=3", "?pilot=nothing")
PAGES = (
    *("", "/edit", "/edit?look=yes", "/edit?check=yes", "/participants", "/people", "/log", "/audit", "/report"),
    *("/payments", "/copy", "/steps/open", "/steps/discard", "/steps/cancel", "/steps/release", "/pulse"),
    *("/as-participant/consent", "/as-participant/choice", "/as-participant/offer"),
)


@st.composite
def forms(draw: st.DrawFn) -> dict[str, str]:
    """A form of which some fields are missing, some wrong and some as they might be."""
    typed = {**WHOLE, **(MORE if draw(st.booleans()) else {})}
    for name in draw(st.lists(st.sampled_from(NAMES), max_size=6, unique=True)):
        values = (*ALLOWED.get(name, ()), *WRONG)
        text = draw(st.none() | st.sampled_from(values))
        if text is None:
            typed.pop(name, None)
        else:
            typed[name] = text
    for name in draw(st.lists(st.sampled_from(sorted(ALLOWED)), max_size=4, unique=True)):
        typed[name] = draw(st.sampled_from(ALLOWED[name]))
    return typed


@pytest.fixture
def ann(shared: Live) -> Iterator[Visitor]:
    with Visitor(shared.url) as visitor:
        visitor.log_in("ann", PASSWORD)
        yield visitor


def answered(ann: Visitor, path: str, *, sent: Mapping[str, str] | None = None) -> httpx.Response:
    """What is at an address, or comes of sending a form: a page, a way to one, or a refusal, never a failure."""
    found = ann.get(path) if sent is None else ann.client.post(path, data=dict(sent))
    assert found.status_code < 500, (path, sent, found.status_code)
    return found


def test_every_page_and_button_of_a_draft_answers_whatever_was_typed(ann: Visitor) -> None:
    token = ann.csrf("/campaigns/new")

    @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
    @given(
        typed=forms(),
        button=st.sampled_from(BUTTONS),
        invited=st.sampled_from(("", "1", "3")),
        language=st.sampled_from(("en", "de")),
    )
    def whatever(typed: dict[str, str], button: str, invited: str, language: str) -> None:
        ann.client.cookies.delete(LANGUAGE_COOKIE)
        ann.client.headers["Accept-Language"] = language
        form, campaign = {**typed, "csrf": token}, f"/campaigns/c{secrets.token_hex(10)}"
        shown = answered(ann, "/campaigns/preview", sent=form).json()
        assert set(shown) == {"problem", "sentences", "errors", "texts"}
        answered(ann, f"{campaign}/keep", sent=form)
        for query in QUERIES:
            answered(ann, f"{campaign}/edit{query}")
        for pressed in (button, "save"):
            at = answered(ann, f"{campaign}/edit", sent={**form, "action": pressed}).headers["location"]
            answered(ann, at.partition("#")[0])
        if invited:
            answered(ann, f"{campaign}/participants", sent={"csrf": token, "count": invited, "once": "k" * 24})
        for page in PAGES:
            answered(ann, f"{campaign}{page}")

    whatever()
