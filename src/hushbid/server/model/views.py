"""What a person with a certain role gets to see. Money is in whole minor units of the campaign's currency."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, ClassVar, Generic, Literal, TypeVar

from pydantic import ConfigDict

from hushbid.server.model.entities import complete
from hushbid.server.model.settings import CampaignSettings
from hushbid.server.model.states import CampaignState, ParticipantState

T = TypeVar("T")
V = TypeVar("V", bound="View")


class View:
    """Something that is shown: the docstrings of its fields describe them in the OpenAPI document, too."""

    __slots__ = ()
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(use_attribute_docstrings=True)

    @classmethod
    def of(cls: type[V], *sources: object, **given: Any) -> V:
        """A view, each of whose fields is given, or is an attribute of the first source that has it."""
        for name in (one.name for one in fields(cls) if one.name not in given):  # type: ignore[arg-type]
            source = next((one for one in sources if hasattr(one, name)), None)
            if source is not None:
                given[name] = getattr(source, name)
        return cls(**given)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(View, Generic[T]):
    """Part of a list."""

    items: tuple[T, ...]
    """In order."""

    cursor: str | None
    """Where the next part begins; None if this is the last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending(View):
    """What a campaign may cost, before anybody has bid: payments and fees, rounding included; minor units."""

    people: int
    """How many were assumed to bid."""

    fees: int
    """Participation fees if everybody bids; part of the three totals."""

    rounding: int
    """What rounding payments up adds: what is expected and kept for it of a budget, else one coin for each person at
    most; part of the first two totals. The third has one coin for each person."""

    expected: int
    """On average, if the prior is right."""

    in_95_of_100: int
    """Not exceeded in 95 of 100 campaigns, if the prior is right."""

    at_worst: int | None
    """Not exceeded whatever anybody bids; None if there is no such number."""

    repetitions: int
    """How many campaigns were simulated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedPriceView(View):
    """The price of the error by which a budget is met on average; amounts in units of the currency."""

    price: float
    """What one unit of squared error costs; of a survey, of its questions together."""

    mean: float
    """What campaigns cost at this price, on average over the draws it was planned with; fees not included."""

    standard_error: float
    """How far that mean may be from the expected cost: the standard error of the draws."""

    markets: int
    """How many campaigns were drawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionPreview(View):
    """How precise the estimate of one question would be."""

    name: str
    """The question's."""

    standard_error: float | None
    """Root mean squared error on average, in its unit; of a choice, the share that varies most. None if often nothing
    would be bought."""

    worst_standard_error: float | None
    """The same at worst, under the relation that the campaign is protected against."""

    half_width: float | None
    """Half the width of a 95 % interval before it is cut to the range, on average: what a result shows behind ±."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview(View):
    """What can be expected of a campaign: for the analyst, before it opens."""

    spending: Spending
    """What it may cost."""

    planned: PlannedPriceView | None
    """The planned price, where the budget is met on average only; None otherwise."""

    standard_error: float | None
    """Root mean squared error of the estimate on average, in data units; None if often nothing would be bought, and
    where there are questions."""

    worst_standard_error: float | None
    """The same at worst, under the relation between prices and data that the campaign is protected against."""

    half_width: float | None
    """Half the width of a 95 % interval before it is cut to the range, on average. Like every figure here it takes
    everybody to deliver, and nobody to state a limit."""

    questions: tuple[QuestionPreview, ...]
    """The errors of each question's estimate; empty where one number is asked for."""

    share_bought: float
    """Which part of the people would be bought from."""

    largest_loss: float
    """Nobody can lose more: max_privacy_loss, or what follows from goal and prior where none can be stated."""

    too_much_rounding: bool
    """Whether rounding takes so much of the budget that the campaign would not open unless that is accepted."""

    above_spending_limit: bool
    """Whether the worst case exceeds the spending limit, so that the campaign would not open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MenuView(View):
    """What a person can expect as a function of her bid, before anybody has bid."""

    bids: tuple[float, ...]
    """The bids the menu lists, ascending: up to the largest that is ever bought at, or to one at which nothing was
    bought in any simulated campaign."""

    usual: int
    """So many of them, from the first on, are prices that the buyer expects; the others are higher."""

    privacy_loss: tuple[float, ...]
    """Expected privacy loss at each."""

    payment: tuple[float, ...]
    """Expected payment at each, in units of the currency; the participation fee comes on top."""

    chance: tuple[float, ...]
    """How likely it is at each that anything is bought."""

    repetitions: int
    """How many campaigns were simulated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView(View):
    """Work in the background."""

    id: str
    campaign: str
    kind: Literal["opening", "allocation", "release"]
    state: Literal["running", "done", "failed"]
    step: str
    """What is being done, in a few words."""

    done: int
    """So many parts of the step are done."""

    total: int
    """The step has so many parts."""

    problem: str | None
    """Why it failed, in a sentence."""

    field: str | None
    """The setting that was refused, if it failed because of one."""

    started_at: datetime
    finished_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignView(View):
    """A campaign, for analysts and auditors; nothing in it belongs to one person."""

    id: str
    state: CampaignState
    title: str
    """What people call it; of a draft, as far as it was typed."""

    settings: CampaignSettings | None
    """Null as long as a draft is not complete."""

    created_at: datetime
    opened_at: datetime | None
    allocated_at: datetime | None
    released_at: datetime | None
    people: dict[str, int]
    """How many are in which state; states that nobody is in are left out."""

    spending: Spending | None
    """As it was shown when the campaign opened."""

    total_payment: int | None
    """All payments that were fixed, whether due or not; None before."""

    due: int
    """Payments and fees due and not yet paid."""

    paid: int
    """Payments and fees marked as paid."""

    reason: str | None
    """Why it ended without an estimate, in a sentence."""

    root: str | None
    """The root of the receipts' tree; None before the campaign is over."""

    tree_size: int | None
    """How many receipts there are."""

    release: dict[str, Any] | None
    """The estimate, what everybody may know about it, and the interval for what was delivered, which only staff may.

    See `hushbid.server.service.release`.
    """

    key_destroyed_at: datetime | None
    """When the key to people's values was destroyed."""

    payouts_destroyed_at: datetime | None
    """When the key to where people are paid was destroyed."""

    @property
    def whole(self) -> CampaignSettings:
        """The settings; a draft that is not complete is refused."""
        return complete(self.id, self.settings)


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedDraft(View):
    """What was typed into a draft's form, whether it could be a campaign or not."""

    fields: Mapping[str, str]
    """By the names of the form's fields."""

    language: str
    """In which it was typed: numbers are to be read in it."""

    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class EventLine(View):
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ParticipantView(View):
    """One person in a campaign, for analysts and auditors. Bids and losses stand in the record, not here."""

    id: str
    """Her pseudonym, in events, record and receipts."""

    label: str | None
    """How the analyst calls her; None for auditors."""

    group: str | None
    stratum: str | None
    """In which stratum she was invited; None without strata."""

    state: ParticipantState
    due: int
    """What she is owed and has not been paid."""

    paid: int
    """What she has been paid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation(View):
    """A personal link, shown once and used once; the server keeps only its hash."""

    id: str
    label: str
    group: str | None
    token: str
    reads_only: bool = False
    """Whether it may change nothing, because it was renewed after a delivery."""

    stratum: str | None = None
    """Her stratum, if the campaign has strata."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnLink(View):
    """A link that a participant made for another device of hers, shown once and used once."""

    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Device(View):
    """A browser or program in which somebody's part is open."""

    since: datetime
    by: Literal["analyst", "herself"]
    """Who made the link that it came in with."""

    reads_only: bool
    here: bool
    """Whether it is the one that asks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicesView(View):
    """Where somebody's part is open, and when links for other devices were made and used."""

    devices: tuple[Device, ...]
    unused: int
    """How many links could still let a device in."""

    made: tuple[datetime, ...]
    used: tuple[datetime, ...]
    let_in_at: datetime | None
    """When the link that the asking device came in with was made on another one; None if it came by an invitation."""

    open_since: datetime | None
    """Since when her part had been open on another device then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreementView(View):
    """That somebody agreed to what she was shown."""

    at: datetime
    version: str
    """The hash of what she was shown."""

    language: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsentView(View):
    """What a participant is asked to agree to (`hushbid.server.model.agreement`)."""

    document: dict[str, Any]
    """A ``hushbid-consent`` document: what the campaign states, and what a page tells beside it."""

    version: str
    """The SHA-256 of the document's canonical form."""

    required: bool
    """Whether a bid is refused without an agreement."""

    agreement: AgreementView | None
    """What she agreed to last; None if she has not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParticipationView(View):
    """What one person sees of a campaign: the public facts, and her own."""

    campaign: str
    participant: str
    """Her pseudonym."""

    title: str
    question: str
    description: str
    unit: str
    setting: Literal["central", "local"]
    bounds: tuple[float, float] | None
    """The public range of her value; None where there are questions."""

    questions: tuple[dict[str, Any], ...]
    """What she is asked, where it is more than one number; whoever leaves one question open delivers nothing."""

    noise_groups: tuple[dict[str, Any], ...]
    """Which questions share a noise, by their places (``rows``), and what part of the privacy loss (``parts``, in units
    of 2**-30, which add up to all of it): what a device needs for a message in the local setting."""

    currency: str
    decimals: int
    participation_fee: int
    fee_after_withdrawal: bool
    max_privacy_loss: float
    retention_days: int
    """How long the key to values is kept after the release."""

    single_visit: bool
    """Whether a bid comes with her value or answers; then there is no delivery."""

    payout: Literal["none", "email", "iban", "panel"]
    """Where she is to be paid, which she may say once she has bid; with none, she is not asked."""

    payout_days: int
    """How long that is kept after the campaign is over."""

    smallest_bid: float
    """A bid must not be below this."""

    largest_bought: float | None
    """Somebody bidding more than this is never bought from; None if there is no such number."""

    bid_by: datetime | None
    deliver_by: datetime | None
    campaign_state: CampaignState
    state: ParticipantState
    group: str | None
    stratum: str | None
    """In which stratum the analyst put her; None without strata."""

    strata: dict[str, Any] | None
    """Which combination of the strata's means is estimated: ``shares`` or a ``contrast``, by their names."""

    bid: float | None
    """Her last bid."""

    takes_limits: bool
    """Whether a bid may name the largest privacy loss that she accepts."""

    limit: float | None
    """The one that her last bid named; None if it named none."""

    promised: float | None
    """The privacy loss she will not exceed; None before the decision."""

    payment: int | None
    """What she gets for delivering; None before the decision."""

    delivered_at: datetime | None
    """When her data came in, if with her bid; None if nothing of them is kept."""

    delivered_loss: float | None
    """What she really lost; None before the release."""

    due: int
    paid: int
    root: str | None
    renewed: tuple[datetime, ...]
    """When the analyst made a new link for her."""

    reads_only: bool
    """Whether the secret she came with may look, but change nothing."""

    must_agree: bool
    """Whether a bid is refused until she has agreed to what the campaign states."""

    agreement: AgreementView | None
    """What she agreed to last; None if she has not."""

    estimate: dict[str, Any] | None
    """The estimate, once there is one, and what everybody may know about it (`hushbid.server.service.release`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicView(View):
    """What anybody may see of a campaign that has opened."""

    campaign: str
    title: str
    question: str
    unit: str
    setting: Literal["central", "local"]
    bounds: tuple[float, float] | None
    """The public range of the data; None where there are questions."""

    questions: tuple[dict[str, Any], ...]
    """What is asked, where it is more than one number."""

    strata: dict[str, Any] | None
    """Which combination of the strata's means is estimated; None if it is one mean."""

    state: CampaignState
    people: int
    """How many were invited."""

    root: str | None
    tree_size: int | None
    last_event: str | None
    """The hash of the last event, by which a log can be compared."""

    release: dict[str, Any] | None
    """Only if the settings make the estimate public (`hushbid.server.service.release`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountRow(View):
    """What one person gave up, or may give up, in one campaign."""

    person: str
    """Her pseudonym across campaigns."""

    campaign: str
    title: str
    kind: Literal["reserved", "promised", "delivered"]
    amount: float
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonalAccount(View):
    """What a person has given up over all campaigns."""

    rows: tuple[AccountRow, ...]
    given_up: float
    """What she has given up, rounded up."""

    reserved: float
    """What is reserved or promised and may still be given up, rounded up."""

    total: float
    """Both together, rounded up: what counts towards the cap."""

    cap: float | None
    """No campaign of this server lets the total exceed this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal(View):
    """Who is asking."""

    role: Literal["analyst", "auditor", "participant"]
    id: str
    """The user's id, or the participant's pseudonym."""

    name: str
    """The user's name; empty for a participant."""

    campaign: str | None = None
    """A participant's campaign."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session(View):
    """A log-in; the token is shown once."""

    token: str
    csrf: str
    """Must accompany every change made with the session's cookie."""

    principal: Principal
    expires_at: datetime
