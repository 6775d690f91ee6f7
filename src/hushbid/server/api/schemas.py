"""What is sent and received. Answers are the views of `hushbid.server.domain.views` as JSON, field by field."""

from dataclasses import fields
from datetime import datetime
from typing import Annotated, Any, Literal, TypeVar

from fastapi import Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from hushbid.server.domain import views
from hushbid.server.domain.access import SECRET_LETTERS, SECRET_PREFIX
from hushbid.server.domain.settings import MOST_PEOPLE, CampaignSettings
from hushbid.server.domain.states import CampaignState
from hushbid.server.domain.views import CampaignView, Page, Spending

M = TypeVar("M", bound=BaseModel)
MOST_ON_A_PAGE = 1000
_ID = r"^[a-z0-9]{1,64}$"
_NOT_JSON = "The content must be JSON, and Content-Type application/json."
_anything: TypeAdapter[Any] = TypeAdapter(Any)

CampaignId = Annotated[str, Path(pattern=_ID, description="A campaign's identifier.")]
Limit = Annotated[int, Query(ge=1, le=MOST_ON_A_PAGE, description="How many at most.")]
Cursor = Annotated[
    str | None,
    Query(min_length=1, max_length=200, pattern=r"^[ -~]+$", description="Where to go on: what the page before gave."),
]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Whole = Annotated[int, Field(strict=True)]
Label = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
Moment = Annotated[str, Field(max_length=40, json_schema_extra={"format": "date-time"})]


class _Wire(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True, hide_input_in_errors=True)


# -- received ----------------------------------------------------------------------------------------------------------


class LogIn(_Wire):
    """Who wants to come in."""

    name: str = Field(min_length=1, max_length=200)
    """The user's name."""

    password: str = Field(min_length=1, max_length=1000, repr=False, json_schema_extra={"format": "password"})
    """The user's password."""


class Settings(_Wire):
    """Everything that is fixed about a campaign before anybody reports. Money is in minor units of the currency."""

    title: str = Field(min_length=1, max_length=200)
    """What people call the campaign."""

    question: str = Field(min_length=1, max_length=2_000)
    """What everybody is asked for, in a sentence."""

    prior: str | dict[str, Any]
    """What is believed about sensitivities: a text such as "uniform:1,2", a prior's fields, or
    {"groups": {"NAME": PRIOR, ...}}."""

    buyer_weight: Number
    """What one unit of squared error costs the buyer, in units of the currency."""

    bounds: tuple[Number, Number]
    """The public range of the data."""

    max_privacy_loss: Number
    """Nobody is asked for more than this."""

    setting: Literal["central", "local"] = "central"
    """Where noise is added: once by the server, or on each person's device."""

    variance: Number | None = None
    """Of the data around their mean; null for the largest that the bounds allow."""

    description: str = Field(default="", max_length=20_000)
    """What a person consents to."""

    unit: str = Field(default="", max_length=50)
    """Of the data."""

    currency: str = "EUR"
    """Three capital letters, as in ISO 4217."""

    decimals: Whole = 2
    """One unit of the currency is 10**decimals minor units."""

    participation_fee: Whole = 0
    """For everybody whose report counts, apart from any payment."""

    fee_after_withdrawal: bool = Field(default=False, strict=True)
    """Whether somebody who reported and then withdrew keeps the fee."""

    spending_ceiling: Whole | None = None
    """The campaign opens only if no reports whatsoever can make it cost more."""

    minimum_people: Whole = 10
    """With fewer reports nothing is bought; at least 5, or public figures would tell reports."""

    report_by: Moment | None = None
    """Reports are refused from this moment on."""

    deliver_by: Moment | None = None
    """Deliveries are refused from this moment on."""

    automatic: bool = Field(default=False, strict=True)
    """Whether the campaign moves on by itself when a deadline passes."""

    retention_days: Whole = 0
    """The key to people's values is destroyed so many days after the release; 0: at once."""

    public_estimate: bool = Field(default=False, strict=True)
    """Whether everybody may see the estimate."""

    def checked(self) -> CampaignSettings:
        """The settings, if they are allowed."""
        return CampaignSettings.from_dict(self.model_dump(exclude_unset=True))


class People(_Wire):
    """How many people to look ahead for."""

    people: Whole | None = Field(default=None, ge=1, le=MOST_PEOPLE)
    """How many people would take part; those who are invited if left out."""


class PreviewOf(_Wire):
    """A campaign that is not stored."""

    settings: Settings
    """Its settings; a prior for groups needs a stored campaign with people."""

    people: Whole = Field(ge=1, le=MOST_PEOPLE)
    """How many people would take part."""


class Invitee(_Wire):
    """Somebody to be invited."""

    id: str = Field(min_length=1, max_length=200)
    """An external id, by which you and other campaigns of this server know her."""

    group: str | None = Field(default=None, max_length=100)
    """Her group, if the prior has groups."""


class Invite(_Wire):
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


class Renewal(_Wire):
    """Who lost her link."""

    label: Label
    """How the analyst calls her."""


class Payees(_Wire):
    """Who was paid."""

    labels: list[Label] | None = Field(default=None, max_length=MOST_PEOPLE)
    """Their labels; everybody to whom something is due if left out."""


class Closing(_Wire):
    """How a campaign ends."""

    accept_unpaid: bool = Field(default=False, strict=True)
    """Whether it may end although people are still to be paid."""


class Releasing(_Wire):
    """How an estimate is released."""

    accept_nobody: bool = Field(default=False, strict=True)
    """Whether it may end without an estimate, if nobody has delivered although everybody still could."""


class Cancelling(_Wire):
    """Why a campaign is given up."""

    reason: str = Field(default="The analyst cancelled it.", min_length=1, max_length=500)
    """In a sentence that every participant may read."""


class Exchange(_Wire):
    """A link's exchange for a secret."""

    secret: str = Field(
        pattern=rf"^{SECRET_PREFIX}[A-Za-z0-9_-]{{{SECRET_LETTERS}}}$",
        repr=False,
        json_schema_extra={"format": "password"},
    )
    """256 bits that the device has drawn at random, in base64url, after hb_d_; kept before they are sent, and the
    bearer token of everything that follows. The server keeps a hash."""


class Report(_Wire):
    """A participant's report."""

    sensitivity: Number
    """What one unit of privacy loss costs her, in units of the currency."""


class Delivery(_Wire):
    """A participant's datum: as it is in the central setting, with noise already added in the local one."""

    value: Number | None = None
    """The value; refused in the local setting."""

    message: dict[str, Any] | None = None
    """A noisy value in the wire format of privatize; refused in the central setting."""

    nonce: str = Field(pattern=r"^[0-9a-f]{32}$")
    """128 random bits in hexadecimal, drawn for this delivery and sent with every attempt at it. Once something is
    stored, whatever comes with the same nonce gets the same answer again, and whatever comes with another is refused,
    without a look at the value."""

    @model_validator(mode="after")
    def _one_of_them(self) -> "Delivery":
        if (self.value is None) == (self.message is None):
            raise ValueError("Either value or message must be given.")
        return self

    @property
    def content(self) -> object:
        """Whichever was given."""
        return self.value if self.message is None else self.message


# -- sent --------------------------------------------------------------------------------------------------------------


class Health(_Wire):
    """That the server is there."""

    status: Literal["ok"]
    version: str
    """Of Hushbid."""


class LoggedIn(_Wire):
    """A session; its token is in the cookie only."""

    name: str
    role: Literal["analyst", "auditor"]
    csrf: str
    """To be sent in the header X-CSRF-Token with every change."""

    expires_at: datetime


class Invitations(_Wire):
    """Personal links, shown this once and used once; the server keeps only their hashes."""

    invitations: list[views.Invitation]
    """The link is the server's address followed by /p# and the token."""


class Paid(_Wire):
    """Who was marked as paid."""

    paid: list[views.PaymentRow]
    """With what was due before."""


class Campaign(_Wire):
    """A campaign, for analysts and auditors; nothing in it belongs to one person."""

    id: str
    state: CampaignState
    settings: Settings
    created_at: datetime
    opened_at: datetime | None
    allocated_at: datetime | None
    released_at: datetime | None
    people: dict[str, int]
    """How many are in which state."""

    spending: Spending | None
    """What it may cost, as it was shown when it opened."""

    total_payment: int | None
    """All payments that were fixed, whether due or not."""

    due: int
    """Payments and fees due and not yet paid."""

    paid: int
    """Payments and fees marked as paid."""

    reason: str | None
    """Why it ended without an estimate."""

    root: str | None
    """The root of the receipts' tree."""

    tree_size: int | None
    """How many receipts there are."""

    release: dict[str, Any] | None
    """The estimate, with its error."""

    key_destroyed_at: datetime | None
    """When the key to people's values was destroyed."""


class CampaignPage(_Wire):
    """Part of the list of campaigns."""

    items: list[Campaign]
    cursor: str | None
    """Where the next part begins; null if this is the last."""


class Event(_Wire):
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


class EventPage(_Wire):
    """Part of a campaign's log."""

    items: list[Event]
    cursor: str | None
    """Where the next part begins; null if this is the last so far."""


async def received(request: Request, model: type[M]) -> M:
    """A request's body, read by hand once it is clear who sends it; FastAPI would read it before."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not (kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))):
        raise RequestValidationError([{"type": "content_type", "loc": ("body",), "msg": _NOT_JSON}])
    try:
        return model.model_validate_json(await request.body())
    except ValidationError as problem:
        found = problem.errors(include_url=False, include_context=False, include_input=False)
        raise RequestValidationError([{**one, "loc": ("body", *one["loc"])} for one in found]) from None


def body_of(model: type[BaseModel]) -> dict[str, Any]:
    """What the OpenAPI document says of a body that is `received`."""
    schema = {"$ref": f"#/components/schemas/{model.__name__}"}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def describe_views() -> None:
    """Let the views' docstrings be the descriptions in the OpenAPI document."""
    for view in vars(views).values():
        if isinstance(view, type) and view.__module__ == views.__name__:
            view.__pydantic_config__ = {"use_attribute_docstrings": True}  # type: ignore[attr-defined]


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
