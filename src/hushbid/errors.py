"""Every exception Hushbid raises on purpose.

::

    HushbidError
    ├── InputError (ValueError)        something the caller gave is not allowed
    │   ├── PriorError                 a prior's parameters or its text form
    │   ├── BidError                one or more people's bids; names rows, never values
    │   └── DataError                  one or more people's data; names rows, never values
    ├── MarketError                    the inputs are fine one by one, but no outcome exists
    │   ├── NobodyToBuyFrom            every virtual cost is infinite
    │   ├── Unreachable                these people's data cannot be as accurate as that
    │   ├── DivergentPayment           a payment would be infinite
    │   └── LimitExceeded              a spending limit, or what rounding may add, forbids it
    ├── ReleaseError                   an estimate must not, or cannot, be released
    │   ├── AlreadyReleased            this outcome has been released before
    │   ├── LedgerError                the release ledger is damaged, of another version, or has no place
    │   ├── NothingDelivered           nobody delivered data
    │   └── InfiniteLoss               somebody would lose all her privacy and nobody accepted that by name
    ├── RecordError                    a record cannot be read, or is of an unknown version
    │   └── HashMismatch               a record's hash does not fit its content
    ├── CampaignError                  a campaign's server cannot do what it was asked
    │   ├── NotFound                   no such campaign, link or document
    │   ├── NotAllowed                 not for this role, or not in this state
    │   ├── Conflict                   something else was said or done before, which stands
    │   ├── Throttled                  too many attempts; later
    │   └── ServerFailed               the server cannot be reached or has a fault; asking again may help
    ├── OutputExists                   results would replace others, or another run is writing them
    ├── Unwritable                     a folder, a file or the release ledger cannot be written
    └── MissingExtra (ImportError)     a package of an optional extra is not installed

A message is one sentence that names the field, shows the value and says what is allowed. For a person's datum or
bid it shows the row instead of the value: a message may end up in a log. Sentences are for people; what a program
needs to know is in the attributes.
"""


class HushbidError(Exception):
    """The root of every exception that Hushbid raises on purpose."""

    def __init__(
        self, *told: object, field: str | None = None, row: int | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(*told)
        self.field = field
        """The argument, setting or column that is wrong, by its name; None if there is not one."""

        self.row = row
        """The first row that is wrong, counted from 0; None if there is none."""

        self.retry_after = retry_after
        """In how many seconds the same request may succeed; None if nobody knows, or never."""


class InputError(HushbidError, ValueError):
    """A value the caller gave is not allowed."""


class PriorError(InputError):
    """A prior's parameters, dict or text form are not allowed."""


class UnknownFamily(PriorError):
    """A prior's dict or text form is of a family that is not known here; one of one's own may not be imported."""


class BidError(InputError):
    """A person's bid is not allowed; the message names rows and the allowed range, never a value."""


class DataError(InputError):
    """A person's datum or id is not allowed; the message names rows and the allowed range, never a value."""


class MarketError(HushbidError):
    """Each input is allowed, but together they admit no outcome."""


class NobodyToBuyFrom(MarketError):
    """Every virtual cost is infinite, so there is nobody to buy from."""


class Unreachable(MarketError):
    """These people's data cannot be as accurate as was asked for, at any price."""


class DivergentPayment(MarketError):
    """A payment would be infinite."""


class LimitExceeded(MarketError):
    """The purchase would exceed a limit that the buyer set, or lose too much of its budget to rounding."""


class ReleaseError(HushbidError):
    """An estimate must not, or cannot, be released."""


class AlreadyReleased(ReleaseError):
    """The outcome has been released before; an estimate is drawn once."""


class LedgerError(ReleaseError):
    """The release ledger is damaged, of another version, or has no place where it can be, so nothing is drawn."""


class NothingDelivered(ReleaseError):
    """Nobody with a positive privacy loss delivered data."""


class InfiniteLoss(ReleaseError):
    """Somebody's privacy loss is infinite and the caller did not accept that by name."""


class RecordError(HushbidError):
    """A record cannot be read, or is of a version this library does not know."""


class HashMismatch(RecordError):
    """A record's hash does not fit its content: it was altered or damaged."""

    def __init__(self, *told: object, found: str = "unknown") -> None:
        super().__init__(*told)
        self.found = found
        """The hash of the content."""


class CampaignError(HushbidError):
    """A campaign's server cannot do what it was asked."""


class NotFound(CampaignError):
    """There is no such campaign, link or document, or it is not for whoever asks."""


class NotAllowed(CampaignError):
    """Not for this role, or not in this state of the campaign."""


class Conflict(CampaignError):
    """Something else was said or done before, and stands."""


class Throttled(CampaignError):
    """Too many attempts: try again later."""


class ServerFailed(CampaignError):
    """The server cannot be reached or has a fault of its own; asking again later may help."""


class OutputExists(HushbidError):
    """Results would replace others that must stay, or another run is writing to the same folder."""


class Unwritable(HushbidError):
    """A folder, a file or the release ledger cannot be written."""


class MissingExtra(HushbidError, ImportError):
    """A package that belongs to an optional extra is not installed."""
