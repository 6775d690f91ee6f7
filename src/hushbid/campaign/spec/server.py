"""What only a server decides: the table ``[server]``."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from hushbid.campaign.spec.kinds import About, Flag, NotNegative, Table
from hushbid.languages import language_codes

MOST_INVITED = 100_000
"""In one campaign on a server."""

LANGUAGES = language_codes()
"""The languages in which an analyst can word a text: those of the pages."""


def _by_language(texts: Mapping[str, str]) -> dict[str, str]:
    if not set(texts) <= set(LANGUAGES):
        raise ValueError
    return {language: text for language, text in sorted(texts.items()) if text.strip()}


def _moment(value: object) -> datetime:
    """Return a time with its zone: a text in requests, a time in campaign files."""
    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    except ValueError:
        raise ValueError from None
    if moment.tzinfo is None or not 1970 <= moment.year < 9999:  # further out, not every zone can write it
        raise ValueError
    return moment


_Days = Annotated[int, Field(ge=0, le=3650), About(allowed="a whole number of days from 0 to 3650")]
_Moment = Annotated[
    datetime,
    BeforeValidator(_moment),
    About(allowed="a time with its zone in the years 1970 to 9998, such as 2026-03-01T12:00:00Z"),
]


class Consent(Table):
    """What people read before they agree, apart from what the server promises. Any part may be left out."""

    controller: str = ""
    """Who is responsible for people's data: a name and an address."""

    contact: str = ""
    """Whom people can ask or complain to."""

    purpose: str = ""
    """What the estimate is for."""

    storage: str = ""
    """How long what is kept outside this server, such as proofs of payment."""

    texts: Annotated[
        dict[str, str], AfterValidator(_by_language), About(allowed=f"texts by language: {' or '.join(LANGUAGES)}")
    ] = Field(default_factory=dict)
    """Your own text by language; where a language has none, another one's is shown."""

    def text_in(self, language: str) -> tuple[str, str] | None:
        """Return the analyst's text for readers of a language and the language it is in; None if there is none."""
        return next(((self.texts[one], one) for one in (language, *LANGUAGES) if one in self.texts), None)


class ServerTable(Table):
    """What only a server decides."""

    description: str = ""
    """For what, by whom, and what happens with the result: what a person consents to."""

    limits: Annotated[Flag | None, About(absent="true where people can")] = None
    """Whether people may state, with their price, the largest loss that they accept.

    Left out, they may in the central setting if max_privacy_loss is stated. In the local setting they cannot.
    """

    participation_fee: NotNegative = 0.0
    """For everyone whose bid counts, apart from any payment, whatever happens later; in units of the currency."""

    fee_after_withdrawal: Flag = False
    """Whether a person who bid and then withdrew keeps the fee."""

    minimum_people: Annotated[int, Field(ge=1, le=MOST_INVITED)] = 10
    """With fewer bids nothing is bought. On a server at least 5: figures of fewer people reveal their bids."""

    bid_by: Annotated[_Moment | None, About(absent="none")] = None
    """Bids are refused from this moment on."""

    deliver_by: Annotated[_Moment | None, About(absent="none")] = None
    """Deliveries are refused from this moment on. With single_visit, what was not decided by then is destroyed."""

    automatic: Flag = False
    """Whether the campaign moves on by itself when a deadline passes; with single_visit and no deliver_by, the release
    follows the decision at once."""

    retention_days: _Days = 0
    """The key to people's values is destroyed so many days after the release; 0: at once."""

    public_estimate: Flag = False
    """Whether everyone may see the estimate, or only analysts, auditors and participants."""

    single_visit: Flag = False
    """Whether people give their answers together with their price, sealed until it is known whether they are bought.

    Otherwise they come back for them. Only in the central setting: in the local one answers stay in the browser.
    """

    consent: Consent = Consent()
    """What people read before they agree, apart from what this server promises."""

    observer: str = ""
    """Who might want to find out something about a person, such as "your employer": an example of a risk."""

    statement: str = ""
    """What that might be, a question with a yes or a no, such as "Did you sleep less than 6 hours?"."""

    payout: Literal["none", "email", "iban", "panel"] = "none"
    """Where people are to be paid, which they are asked for the payer only; with none, nothing is asked."""

    payout_days: Annotated[int, Field(ge=1, le=3650), About(allowed="a whole number of days from 1 to 3650")] = 90
    """Where to pay people is destroyed so many days after the campaign is over."""
