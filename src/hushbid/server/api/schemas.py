"""What is sent and received where it is not the domain's own, and the OpenAPI document that describes all of it.

Settings are `hushbid.server.domain.settings.CampaignSettings` in both directions, and answers the views of
`hushbid.server.domain.views` as JSON, field by field. Here is what a request says besides, and what an answer must
leave out or wrap: a session without its token.
"""

from dataclasses import fields
from datetime import datetime
from typing import Annotated, Any, Literal, TypeVar

from fastapi import FastAPI, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from hushbid.server.api.problems import MEDIA_TYPE, Problem
from hushbid.server.domain import payment_views, views
from hushbid.server.domain.access import SECRET_LETTERS, SECRET_PREFIX
from hushbid.server.domain.asked import Answers
from hushbid.server.domain.payout import LONGEST_HANDLE
from hushbid.server.domain.settings import MOST_PEOPLE, CampaignSettings, Flag, Number, Whole
from hushbid.server.domain.views import CampaignView, Page
from hushbid.server.service.views_of import MOST_ON_A_PAGE

M = TypeVar("M", bound=BaseModel)
_ID = r"^[a-z0-9]{1,64}$"
_NOT_JSON = "The content must be JSON, and Content-Type application/json."
_anything: TypeAdapter[Any] = TypeAdapter(Any)

CampaignId = Annotated[str, Path(pattern=_ID, description="A campaign's identifier.")]
ParticipantId = Annotated[str, Path(pattern=_ID, description="A participant's pseudonym.")]
Limit = Annotated[int, Query(ge=1, le=MOST_ON_A_PAGE, description="How many at most.")]
Cursor = Annotated[
    str | None,
    Query(min_length=1, max_length=200, pattern=r"^[ -~]+$", description="Where to go on: what the page before gave."),
]
Label = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]


class Form(BaseModel):
    """Something with exactly these fields; one that only one endpoint knows stands beside it."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True, hide_input_in_errors=True)


# -- received ----------------------------------------------------------------------------------------------------------


class LogIn(Form):
    """Who wants to come in."""

    name: str = Field(min_length=1, max_length=200)
    """The user's name."""

    password: str = Field(min_length=1, max_length=1000, repr=False, json_schema_extra={"format": "password"})
    """The user's password."""


class People(Form):
    """How many people to look ahead for."""

    people: Whole | None = Field(default=None, ge=1, le=MOST_PEOPLE)
    """How many people would take part; those who are invited if left out."""


class PreviewOf(Form):
    """A campaign that is not stored."""

    settings: CampaignSettings
    """Its settings; a prior for groups needs a stored campaign with people."""

    people: Whole = Field(ge=1, le=MOST_PEOPLE)
    """How many people would take part."""


class Invitee(Form):
    """Somebody to be invited."""

    id: str = Field(min_length=1, max_length=200)
    """An external id, by which you and other campaigns of this server know her."""

    group: str | None = Field(default=None, max_length=100)
    """Her group, if the prior has groups."""

    stratum: str | None = Field(default=None, max_length=100)
    """Her public stratum, if the campaign has strata."""


class Invite(Form):
    """Whom to invite: so many people without a name, or these."""

    count: Whole | None = Field(default=None, ge=1, le=MOST_PEOPLE)
    """How many."""

    people: list[Invitee] | None = Field(default=None, min_length=1, max_length=MOST_PEOPLE)
    """Who."""

    @model_validator(mode="after")
    def _one_of_them(self) -> "Invite":
        if (self.count is None) == (self.people is None):
            raise ValueError("Either count or people must be given.")
        return self


class Renewal(Form):
    """Who lost her link."""

    label: Label
    """How the analyst calls her."""


class Payees(Form):
    """Who was paid."""

    labels: list[Label] | None = Field(default=None, max_length=MOST_PEOPLE)
    """Their labels; everybody to whom something is due if left out."""

    total: Whole | None = Field(default=None, ge=0)
    """What is due to them in all, in minor units, as you saw it: if it is another sum by now, nothing is marked."""


class Unpaying(Form):
    """Who was not paid after all."""

    labels: list[Label] = Field(min_length=1, max_length=MOST_PEOPLE)
    """Their labels."""


class PayoutHandle(Form):
    """Where a participant is to be paid."""

    payout: str = Field(min_length=1, max_length=2 * LONGEST_HANDLE, repr=False)
    """What the campaign asks for: an e-mail address, an IBAN or a panel's id."""


class Closing(Form):
    """How a campaign ends."""

    accept_unpaid: Flag = False
    """Whether it may end although people are still to be paid."""


class Releasing(Form):
    """How an estimate is released."""

    accept_nobody: Flag = False
    """Whether it may end without an estimate, if nobody has delivered although everybody still could."""


class Cancelling(Form):
    """Why a campaign is given up."""

    reason: str = Field(default="The analyst cancelled it.", min_length=1, max_length=500)
    """In a sentence that every participant may read."""


class Exchange(Form):
    """A link's exchange for a secret."""

    secret: str = Field(
        pattern=rf"^{SECRET_PREFIX}[A-Za-z0-9_-]{{{SECRET_LETTERS}}}$",
        repr=False,
        json_schema_extra={"format": "password"},
    )
    """256 bits that the device has drawn at random, in base64url, after hb_d_; kept before they are sent, and the
    bearer token of everything that follows. The server keeps a hash."""


class Agreeing(Form):
    """An agreement to what the campaign states."""

    version: str = Field(pattern=r"^[0-9a-f]{64}$")
    """The version of what was read, as `GET /participation/consent` tells it."""

    language: Literal["en", "de"] = "en"
    """In which language it was read."""


class Bid(Form):
    """A participant's bid; where the campaign wants both in one visit, with her value or her answers."""

    bid: Number
    """What one unit of privacy loss costs her, in units of the currency."""

    limit: Number | None = None
    """The largest privacy loss that she accepts, from 1e-06 up; left out, or null, if she states none. Naming it
    truthfully is best, as with the price. Refused where the campaign takes no limits."""

    value: Number | None = Field(default=None, repr=False)
    """With single_visit, where one number is asked for: her value. The first bid needs it; a later one may leave it
    out, and then it stands. Refused otherwise."""

    answers: dict[str, Any] | None = Field(default=None, repr=False)
    """Likewise, where there are questions: her answers, all of them, as in a delivery."""

    nonce: str | None = Field(default=None, pattern=r"^[0-9a-f]{32}$")
    """With a value or answers, and only then: 128 random bits in hexadecimal, drawn for them and sent with every
    attempt at them. What comes again with the same nonce is not looked at; with another it replaces what was given
    before, whose key is destroyed."""

    @model_validator(mode="after")
    def _named_answers(self) -> "Bid":
        if self.value is not None and self.answers is not None:
            raise ValueError("Either value or answers must be given, not both.")
        if (self.given is None) != (self.nonce is None):
            raise ValueError("nonce must be given with a value or answers, and only then.")
        return self

    @property
    def given(self) -> object:
        """Whichever was given; None if neither was."""
        return self.value if self.answers is None else Answers(self.answers)


class Delivery(Form):
    """A participant's data: as they are in the central setting, with noise already added in the local one."""

    value: Number | None = None
    """The value, where one number is asked for; refused in the local setting."""

    answers: dict[str, Any] | None = Field(default=None, repr=False)
    """Her answers to several questions, all of them, under the questions' names: a number in the question's range, true
    or false, or one of the answers of a choice. Refused in the local setting, and if one is left open."""

    message: dict[str, Any] | None = None
    """A noisy value, or the noisy answers to several questions, in the wire format of privatize; refused in the central
    setting."""

    nonce: str = Field(pattern=r"^[0-9a-f]{32}$")
    """128 random bits in hexadecimal, drawn for this delivery and sent with every attempt at it. Once something is
    stored, whatever comes with the same nonce gets the same answer again, and whatever comes with another is refused,
    without a look at the value."""

    @model_validator(mode="after")
    def _one_of_them(self) -> "Delivery":
        if sum(one is not None for one in (self.value, self.answers, self.message)) != 1:
            raise ValueError("Either value, answers or message must be given.")
        return self

    @property
    def content(self) -> object:
        """Whichever was given."""
        if self.answers is not None:
            return Answers(self.answers)
        return self.value if self.message is None else self.message


# -- sent --------------------------------------------------------------------------------------------------------------


class Health(Form):
    """That the server is there."""

    status: Literal["ok"]
    version: str
    """Of Hushbid."""


class LoggedIn(Form):
    """A session; its token is in the cookie only."""

    name: str
    role: Literal["analyst", "auditor"]
    csrf: str
    """To be sent in the header X-CSRF-Token with every change."""

    expires_at: datetime


class Invitations(Form):
    """Personal links, shown this once and used once; the server keeps only their hashes."""

    invitations: list[views.Invitation]
    """The link is the server's address followed by /p# and the token."""


class Paid(Form):
    """Who was marked as paid."""

    paid: list[payment_views.PaymentRow]
    """With what was due before."""


class Unpaid(Form):
    """Whose mark was taken back."""

    unpaid: list[payment_views.PaymentRow]
    """As they were before."""


class Event(Form):
    """One line of a campaign's log; each holds the hash of the one before."""

    format: str
    version: int
    campaign: str
    number: int
    at: str
    kind: str
    body: dict[str, Any]
    previous: str
    hash: str


async def received(request: Request, model: type[M]) -> M:
    """A request's body, read by hand once it is clear who sends it; FastAPI would read it before."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not (kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))):
        raise RequestValidationError([{"type": "content_type", "loc": ("body",), "msg": _NOT_JSON}])
    try:
        return model.model_validate_json(await request.body())
    except ValidationError as problem:
        found = problem.errors(include_url=False, include_input=False)
        raise RequestValidationError([{**one, "loc": ("body", *one["loc"])} for one in found]) from None


def body_of(model: type[BaseModel]) -> dict[str, Any]:
    """What the OpenAPI document says of a body that is `received`."""
    schema = {"$ref": f"#/components/schemas/{model.__name__}"}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def plain(found: Any) -> Any:
    """A view, or something made of views, as what goes into JSON."""
    if isinstance(found, CampaignView):
        values = {field.name: getattr(found, field.name) for field in fields(found)}
        return {**values, "settings": found.settings.to_dict()}
    if isinstance(found, Page):
        return {"items": [plain(one) for one in found.items], "cursor": found.cursor}
    return found


def encoded(found: Any) -> bytes:
    """A view as JSON."""
    return _anything.dump_json(plain(found))


def answer(found: Any, status: int = 200) -> Response:
    """A response that holds a view."""
    return Response(encoded(found), status_code=status, media_type="application/json")


# -- the OpenAPI document ----------------------------------------------------------------------------------------------

_ABOUT = """\
Campaigns that buy data from people who each name their own price for privacy.

Every refusal is an `application/problem+json` (RFC 9457) with one sentence. Money is in whole minor units of the
campaign's currency, times are UTC. Lists come in pages: ask again with the `cursor` of the page before. A POST or
DELETE with an `Idempotency-Key` is carried out once, however often it arrives; a PUT may be repeated as it is.
"""
_TAGS = [
    {"name": "campaigns", "description": "For analysts; auditors may read."},
    {"name": "participation", "description": "For one participant, by her device's secret."},
    {"name": "session", "description": "Logging in with a password, for browsers."},
    {"name": "public", "description": "For everybody."},
]
_MEANINGS = {
    400: "The request cannot be read.",
    401: "Nobody is logged in, or the token is not valid.",
    403: "Not for this role.",
    404: "There is no such thing.",
    405: "The address does not take this method.",
    409: "Not in this state, or something else was said before, which stands.",
    413: "The request is too large.",
    415: "The content has the wrong type.",
    422: "Something in the request is not allowed; the sentence names the field.",
    429: "Too many attempts; later.",
    500: "A fault of the server.",
    501: "The server lacks an optional package for this; the sentence names it.",
    503: "The server is busy, starting or stopping; asking again may help.",
}
_LINK = {
    "type": "http",
    "scheme": "bearer",
    "description": "A participant's personal link, what stands after the #; used once, to exchange it for a secret.",
}
_SECRET = {
    "type": "http",
    "scheme": "bearer",
    "description": "The secret that a participant's device drew, and that her link was exchanged for.",
}
_ALWAYS = (400, 405, 413, 500, 503)


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The refusals of an endpoint, for its documentation."""
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {status: {"description": _MEANINGS[status], "content": content} for status in sorted({*statuses, *_ALWAYS})}


def document(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document of an application; made once."""
    if app.openapi_schema is None:
        found = get_openapi(title=app.title, version=app.version, description=_ABOUT, routes=app.routes, tags=_TAGS)
        schemas = found.setdefault("components", {}).setdefault("schemas", {})
        for model in (Problem, Invite, Agreeing, Bid, Delivery, Exchange, PayoutHandle):
            schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
            schemas |= schema.pop("$defs", {})
            schemas[model.__name__] = schema
        found["components"]["securitySchemes"] |= {"link": _LINK, "secret": _SECRET}
        for path, operations in found["paths"].items():
            if "participation" in path.split("/"):
                for operation in operations.values():
                    operation["security"] = [{"link" if path.endswith("/secret") else "secret": []}]
        app.openapi_schema = found
    return app.openapi_schema
