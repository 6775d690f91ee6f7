"""What requests hold, and what answers wrap, where it is not the domain's own.

Settings are `hushbid.server.model.settings.CampaignSettings` in both directions, and answers the views of
`hushbid.server.model.views`. The fields of a body are arguments of its use case, by their names.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, WrapValidator, model_validator

from hushbid.server.model import payment_views, views
from hushbid.server.model.access import SECRET_LETTERS, SECRET_PREFIX
from hushbid.server.model.answers import Answers
from hushbid.server.model.checks import LONGEST
from hushbid.server.model.payout import LONGEST_HANDLE
from hushbid.server.model.settings import MOST_PEOPLE, CampaignSettings

Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Whole = Annotated[int, Field(strict=True)]
Flag = Annotated[bool, Field(strict=True)]
Title = Annotated[str, Field(json_schema_extra={"minLength": 1, "maxLength": LONGEST["title"]})]
Settings = Annotated[CampaignSettings, WrapValidator(lambda values, check: CampaignSettings.read(values))]
"""A campaign, whose problems are all found at once."""

Label = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]


class Form(BaseModel):
    """Something with exactly these fields."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True, hide_input_in_errors=True)

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the use case."""
        return {name: getattr(self, name) for name in type(self).model_fields}


# -- received ----------------------------------------------------------------------------------------------------------


class Copy(Form):
    """What is new about a copy."""

    title: Title
    """What people call it."""


class People(Form):
    """How many people to look ahead for."""

    people: Whole | None = Field(default=None, ge=1, le=MOST_PEOPLE)
    """How many people would take part; those who are invited if left out."""


class PreviewOf(Form):
    """A campaign that is not stored."""

    settings: Settings
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

    def arguments(self) -> dict[str, Any]:
        """Return how many, or who with group and stratum."""
        people = None if self.people is None else [(one.id, one.group, one.stratum) for one in self.people]
        return {"count": self.count, "people": people}


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
        """Return the value or the answers; None if neither was given."""
        return self.value if self.answers is None else Answers(self.answers)

    def arguments(self) -> dict[str, Any]:
        """Return price and limit, with value or answers and their nonce."""
        return {"bid": self.bid, "limit": self.limit, "given": self.given, "nonce": self.nonce}


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
    def given(self) -> object:
        """Return the value, the answers or the message."""
        if self.answers is not None:
            return Answers(self.answers)
        return self.value if self.message is None else self.message

    def arguments(self) -> dict[str, Any]:
        """Return what was given, and its nonce."""
        return {"given": self.given, "nonce": self.nonce}


# -- sent --------------------------------------------------------------------------------------------------------------


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
