"""What requests hold, as JSON.

Settings are `hushbid.server.model.settings.CampaignSettings` in both directions, and answers the views of
`hushbid.server.model.views`. The fields of a body are arguments of its use case, by their names; only where one field
depends on another, or arguments are put together, a form is written out here.
"""

import inspect
from collections.abc import Callable
from typing import Annotated, Any, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, WrapValidator, create_model, model_validator

from hushbid.server.model.answers import Answers
from hushbid.server.model.settings import MOST_PEOPLE, CampaignSettings

Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Whole = Annotated[int, Field(strict=True)]
Flag = Annotated[bool, Field(strict=True)]
Settings = Annotated[CampaignSettings, WrapValidator(lambda values, check: CampaignSettings.read(values))]
"""A campaign, whose problems are all found at once."""

Label = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
"""How the analyst calls a participant."""


def described(text: str, **rules: Any) -> Any:
    """Return what makes an argument a field of a request's body: what it is, and what is allowed."""
    return Field(description=text, **rules)


class Form(BaseModel):
    """Something with exactly these fields."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True, hide_input_in_errors=True)

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the use case."""
        return {name: getattr(self, name) for name in type(self).model_fields}


def body_of(function: Callable[..., Any]) -> type[Any] | None:
    """Return what a request for a use case holds: a campaign, or a form of the arguments that are described."""
    hints = get_type_hints(function, include_extras=True)
    if CampaignSettings in hints.values():
        return CampaignSettings
    parameters = inspect.signature(function).parameters.values()
    fields: dict[str, Any] = {
        one.name: (hints[one.name], ... if one.default is one.empty else one.default)
        for one in parameters
        if hasattr(hints[one.name], "__metadata__")
    }
    name = "".join(map(str.title, function.__name__.split("_")))
    return create_model(f"{name}Request", __base__=Form, **fields) if fields else None


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
