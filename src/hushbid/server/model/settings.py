"""Everything that is fixed about a campaign before anybody bids."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, ConfigDict, Field, GetPydanticSchema, WithJsonSchema

from hushbid.common.arrays import TOO_MUCH_VARIANCE, varies_too_much
from hushbid.common.documents import time_text
from hushbid.common.money import check_currency
from hushbid.disclosure.error import FEWEST_PEOPLE
from hushbid.errors import InputError
from hushbid.mechanism import Market
from hushbid.mechanism.largest_loss import follows_from_terms, largest_loss
from hushbid.priors import Grouped, Prior
from hushbid.questions import Layout, Question
from hushbid.server.model.checks import LONGEST, as_double, as_time, checked_text, moment_sent, require_whole
from hushbid.server.model.consent import NOTHING_TOLD, Consent, consent_of
from hushbid.server.model.terms import (
    BUDGETS,
    GOALS,
    QUESTIONS_SCHEMA,
    STRATA_SCHEMA,
    Combination,
    checked_prior,
    combination_of,
    goal_after_fees,
    prior_of,
    questions_of,
    the_stated,
)

MOST_PEOPLE = 100_000
"""In one campaign."""

LEAST_PEOPLE = FEWEST_PEOPLE
"""A server's campaigns need at least so many bids."""

_MOST_MONEY = 10**15
MOST_DAYS = 3650
LEAST_LOSS, _MOST_LOSS = 1e-6, 100.0
PAYOUTS = ("none", "email", "iban", "panel")
_UNSTATED = {
    "accept_rounding": False,
    "single_visit": False,
    "consent": Consent(),
    "observer": "",
    "statement": "",
    "payout": "none",
    "payout_days": 90,
}


def _length(name: str, *, needed: bool = False) -> Any:
    """How long a text may be, for whoever reads what a request looks like; `checked_text` refuses."""
    shown: dict[str, Any] = {"maxLength": LONGEST[name]}
    return Field(json_schema_extra={"minLength": 1, **shown} if needed else shown)


# How a field looks in a request, where it is not what it is here.
_ERRORS_SCHEMA = {"anyOf": [{"type": "number"}, {"type": "array", "items": {"type": "number"}}, {"type": "null"}]}
Title = Annotated[str, _length("title", needed=True)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Whole = Annotated[int, Field(strict=True)]
Flag = Annotated[bool, Field(strict=True)]
_PRIOR = GetPydanticSchema(lambda _, schema: schema(Annotated[str | dict[str, Any], AfterValidator(prior_of)]))
_QUESTIONS = GetPydanticSchema(
    lambda _, schema: schema(Annotated[Any, AfterValidator(questions_of), WithJsonSchema(QUESTIONS_SCHEMA)])
)
_ERRORS = GetPydanticSchema(
    lambda _, schema: schema(Annotated[Any, AfterValidator(_errors_of), WithJsonSchema(_ERRORS_SCHEMA)])
)
_STRATA = GetPydanticSchema(
    lambda _, schema: schema(Annotated[Any, AfterValidator(combination_of), WithJsonSchema(STRATA_SCHEMA)])
)
_MOMENT = GetPydanticSchema(lambda _, schema: schema(Annotated[_MomentText, AfterValidator(moment_sent)]))
_MomentText = Annotated[str, Field(max_length=40, json_schema_extra={"format": "date-time"})]


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignSettings:
    """What an analyst decides. Budgets and fees are whole minor units of the currency, the spending limit is in units.

    People do not care about the estimate here (``user_weight`` is 0): nobody can owe money, and somebody who drops out
    changes nobody's payment.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    title: Title
    """What people call the campaign."""

    question: Annotated[str, _length("question", needed=True)]
    """What everybody is asked for, in a sentence; of several questions, what they are about."""

    prior: Annotated[Prior | Mapping[str, Prior], _PRIOR]
    """What is believed about costs: one prior, or one for each named group; not fitted on participants.

    In a request: a text such as "uniform:1,2", a prior's fields, or {"groups": {"NAME": PRIOR, ...}}.
    """

    max_privacy_loss: Number | None = None
    """Nobody is asked for more than this, for all her answers together; what the privacy account reserves while a
    campaign is open. Left out where none can be kept, and only there: in the local setting for a standard error or a
    single yes/no question. Then it follows from goal and prior how much anybody can lose at most."""

    bounds: tuple[Number, Number] | None = None
    """The public range of the data; a central value outside is refused. Left out beside questions, and only there."""

    questions: Annotated[tuple[Question, ...], _QUESTIONS] = ()
    """What is asked where it is more than one number, in order; each question has its own range, variance and unit.

    In a request: objects with kind (number, yes_no or choice), name, importance, and bounds, variance and unit of a
    number or answers of a choice. Everybody answers all of them, and loses one privacy loss.
    """

    strata: Annotated[Combination | None, _STRATA] = None
    """Which combination of the means of public strata is wanted; left out, it is one mean. Everybody is invited with
    her stratum.

    In a request: {"shares": {"NAME": SHARE, ...}}, which add up to 1, or {"contrast": {"NAME": NUMBER, ...}}.
    """

    budget: Whole | None = None
    """What fees and payments come to on average; minor units. With strata and in the local setting a price of the error
    is planned for it, for everybody who is invited. Of this and the next three exactly one is stated."""

    hard_budget: Whole | None = None
    """What fees and payments together never exceed, whatever people bid; minor units."""

    standard_error: Annotated[float | tuple[float, ...] | None, _ERRORS] = None
    """The root mean squared error to reach for as little as possible, in data units; under a relation, at worst. With
    questions a list, one for each of them."""

    buyer_weight: Number | None = None
    """What one unit of squared error costs the buyer, in units of the currency; with questions, of error relative to
    each one's range, all added up by importance."""

    max_correlation: Number = 0.0
    """How closely prices and data may be related, from 0 to 1, that the campaign is to be protected against."""

    setting: Literal["central", "local"] = "central"
    """Where noise is added: once by this server, or on each person's device."""

    limits: Flag | None = None
    """Whether people may state beside their price the largest loss that they accept; left out, they may in the central
    setting if max_privacy_loss is stated. In the local setting they cannot."""

    variance: Number | None = None
    """Of the data around their mean; left out, it is the largest that the bounds allow. Not stated beside questions."""

    description: Annotated[str, _length("description")] = ""
    """For what, by whom, and what happens with the result: what a person consents to."""

    unit: Annotated[str, _length("unit")] = ""
    """Of the data; not stated beside questions."""

    currency: str = "EUR"
    """Three capital letters, as in ISO 4217."""

    decimals: Whole = 2
    """One unit of the currency is ``10**decimals`` minor units."""

    participation_fee: Whole = 0
    """For everybody whose bid counts, apart from any payment, whatever happens later; minor units."""

    fee_after_withdrawal: Flag = False
    """Whether somebody who bid and then withdrew keeps the fee."""

    spending_limit: Number | None = None
    """The campaign opens only if no bids whatsoever can make it cost more; in units of the currency."""

    accept_rounding: Flag = False
    """Whether the campaign may open although rounding payments up is expected to take more than 5 % of its budget."""

    minimum_people: Whole = 10
    """With fewer bids nothing is bought. On a server at least 5: figures of fewer people tell their bids."""

    bid_by: Annotated[datetime, _MOMENT] | None = None
    """Bids are refused from this moment on."""

    deliver_by: Annotated[datetime, _MOMENT] | None = None
    """Deliveries are refused from this moment on. With single_visit, what was not decided by then is destroyed."""

    automatic: Flag = False
    """Whether the campaign moves on by itself when a deadline passes; with single_visit and no deliver_by, the release
    follows the decision at once."""

    retention_days: Whole = 0
    """The key to people's values is destroyed so many days after the release; 0: at once."""

    public_estimate: Flag = False
    """Whether everybody may see the estimate, or only analysts, auditors and participants."""

    single_visit: Flag = False
    """Whether people give their answers together with their price, sealed until it is known whether they are bought;
    otherwise they come back for them. In the central setting only: in the local one answers stay in the browser."""

    consent: Consent = NOTHING_TOLD
    """What people are told before they agree, beside what this server promises."""

    observer: Annotated[str, _length("observer")] = ""
    """Who might want to find out something about a person, such as "your employer": an example of a risk."""

    statement: Annotated[str, _length("statement")] = ""
    """What that might be, a question with a yes or a no, such as "Did you sleep less than 6 hours?"."""

    payout: Literal["none", "email", "iban", "panel"] = "none"
    """Where people are to be paid, which they are asked for the payer only: an e-mail address, an IBAN or a panel's id;
    with none, nothing is asked."""

    payout_days: Whole = 90
    """Where to pay people is destroyed so many days after the campaign is over."""

    def __post_init__(self) -> None:
        for name in ("title", "question", "description", "unit", "observer", "statement"):
            object.__setattr__(
                self, name, checked_text(getattr(self, name), name, needed=name in ("title", "question"))
            )
        object.__setattr__(self, "prior", checked_prior(self.prior))
        object.__setattr__(self, "strata", combination_of(self.strata))
        object.__setattr__(self, "consent", consent_of(self.consent))
        self._check_asked()
        if self.variance is not None:
            object.__setattr__(self, "variance", as_double(self.variance, "variance"))
        check_currency(self.currency, self.decimals)
        self._check_market()
        self._check_numbers()
        for name in ("bid_by", "deliver_by"):
            moment = getattr(self, name)
            if moment is not None and (not isinstance(moment, datetime) or moment.tzinfo is None):
                raise InputError(f"{name} must be a time with a time zone, got {moment!r}.", field=name)
            if moment is not None and not 1970 <= moment.year < 9999:  # further out, not every zone can write it
                raise InputError(f"{name} must lie in the years 1970 to 9998, got the year {moment.year}.", field=name)
        if self.bid_by is not None and self.deliver_by is not None and self.deliver_by <= self.bid_by:
            raise InputError("deliver_by must be later than bid_by.", field="deliver_by")
        if self.automatic and (self.bid_by is None or (self.deliver_by is None and not self.single_visit)):
            told = "bid_by and deliver_by must be set if the campaign is to move on by itself."
            raise InputError(told if not self.single_visit else told.replace(" and deliver_by", ""), field="bid_by")

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of the groups; none if there is one prior for everybody."""
        return tuple(self.prior) if isinstance(self.prior, Mapping) else ()

    def prior_of(self, group: str | None) -> Prior:
        """What is believed about somebody of that group."""
        if not isinstance(self.prior, Mapping):
            return self.prior
        if group is None or group not in self.prior:
            raise InputError(f"group must be one of {', '.join(map(repr, self.prior))}, got {group!r}.", field="group")
        return self.prior[group]

    @property
    def one_range(self) -> tuple[float, float]:
        """The public range, where one number is asked for."""
        if self.bounds is None:
            raise InputError("The campaign asks several questions, each with a range of its own.", field="bounds")
        return self.bounds

    @property
    def layout(self) -> Layout | None:
        """How the questions share everybody's loss; None without questions."""
        return self._market(self.priors[0]).layout if self.questions else None

    @property
    def priors(self) -> list[Prior]:
        """The priors, of one group or of each."""
        return list(self.prior.values()) if isinstance(self.prior, Mapping) else [self.prior]

    @property
    def stated(self) -> str:
        """The name of the one field that says what the buyer has."""
        return the_stated({name: getattr(self, name) for name in GOALS})

    @property
    def largest_loss(self) -> float:
        """Nobody's loss exceeds this, whatever everybody bids: as stated, or what follows from the settings."""
        if self.max_privacy_loss is not None:
            return self.max_privacy_loss
        market = self._market(self.priors[0])  # before fees, which leave less of a budget
        return largest_loss(market.for_people(1 if self.strata is None else len(self.strata.names)), self.priors)

    @property
    def spending_limit_minor(self) -> int | None:
        """The spending limit in whole minor units, rounded down; None if there is none."""
        limit = self.spending_limit
        return None if limit is None else math.floor(limit * 10**self.decimals * (1.0 + 1e-12))

    def market_for(
        self,
        groups: list[str | None],
        *,
        strata: Sequence[str | None] = (),
        invited: int | Mapping[str, int] | None = None,
        fees: int | None = None,
    ) -> Market:
        """The market for those of these groups and strata, who bid.

        ``invited`` people, the roster that was closed when the campaign opened, are whom the mean is about, with strata
        by stratum; ``fees`` are due in all, in minor units. Left out, everybody who was invited bid.
        """
        prior: Prior | Grouped
        if isinstance(self.prior, Mapping):
            prior = Grouped(self.prior, [group or "" for group in groups])
        else:
            prior = self.prior
        due = self.participation_fee * len(groups) if fees is None else fees
        market = self._market(prior, people=len(groups), fees=due, column=strata)
        return market.with_roster(invited or self._everybody(groups, strata), closed=True)

    def _everybody(self, groups: Sequence[str | None], strata: Sequence[str | None]) -> int | Mapping[str, int]:
        """How many people there are, by stratum where there are any."""
        return Counter(label or "" for label in strata) if self.strata is not None and strata else len(groups)

    def to_dict(self) -> dict[str, Any]:
        """The settings as plain JSON values; goals that are not stated are left out, and so are no relation, no limits,
        no questions, no largest loss and whatever else is as it is where nothing is said."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        for name in (*GOALS, "max_correlation", "limits", "questions", "bounds", "strata", "max_privacy_loss"):
            if not values[name]:
                del values[name]
        for name, unstated in _UNSTATED.items():
            if values[name] == unstated:
                del values[name]
        if "consent" in values:
            values["consent"] = self.consent.to_dict()
        if isinstance(self.prior, Mapping):
            values["prior"] = {"groups": {name: prior.to_dict() for name, prior in self.prior.items()}}
        else:
            values["prior"] = self.prior.to_dict()
        if self.questions:
            values["questions"] = [one.to_dict() for one in self.questions]
        if self.strata is not None:
            values["strata"] = self.strata.to_dict()
        for name in ("bounds", "standard_error"):
            if isinstance(values.get(name), tuple):
                values[name] = list(values[name])
        for name in ("bid_by", "deliver_by"):
            values[name] = None if values[name] is None else time_text(values[name])
        return values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "CampaignSettings":
        """The inverse of `to_dict`, so that people state no limits unless it says so; a prior may also be a text.

        >>> from hushbid.priors import Uniform
        >>> settings = CampaignSettings(title="Sleep", question="How many hours did you sleep?", prior=Uniform(1, 2),
        ...     bounds=(0, 24), budget=200_00, max_privacy_loss=1)
        >>> CampaignSettings.from_dict(settings.to_dict()) == settings
        True
        """
        known = {field.name for field in fields(cls)}
        unknown = sorted(set(map(str, values)) - known)
        if unknown:
            raise InputError(f"settings have the fields {', '.join(sorted(known))}, but not {', '.join(unknown)}.")
        missing = [field.name for field in fields(cls) if field.default is MISSING and field.name not in values]
        if "questions" not in values and "bounds" not in values:
            missing.append("bounds or questions")
        if missing:
            raise InputError(f"settings must have {', '.join(missing)}.", field="settings")
        found = {"limits": False, **values}
        found["prior"] = prior_of(found["prior"])
        found["questions"] = questions_of(found.get("questions"))
        found["standard_error"] = _errors_of(found.get("standard_error"))
        found["strata"] = combination_of(found.get("strata"))
        found["consent"] = consent_of(found.get("consent"))
        for name in ("bid_by", "deliver_by"):
            if isinstance(found.get(name), str):
                found[name] = as_time(found[name], name)
        return cls(**found)

    def require_people(self, least: int) -> None:
        """Refuse a campaign that would buy from fewer people than a server allows."""
        require_whole(self.minimum_people, "minimum_people", least, MOST_PEOPLE)

    def _market(
        self, prior: Prior | Grouped, *, people: int = 0, fees: int = 0, column: Sequence[str | None] = ()
    ) -> Market:
        name = self.stated
        goal = goal_after_fees(name, getattr(self, name), decimals=self.decimals, fees=fees, people=people)
        try:
            return Market(
                prior=prior,
                setting=self.setting,
                goal=goal,
                **({"questions": self.questions} if self.questions else {"bounds": self.bounds}),
                **({} if self.strata is None else self.strata.of_people(column or self.strata.names)),
                variance=self.variance,
                max_privacy_loss=self.max_privacy_loss,
                max_correlation=self.max_correlation,
            )
        except InputError as problem:
            here = {"goal": name, **dict.fromkeys(("shares", "contrast", "weights"), "strata")}
            problem.field = here.get(problem.field or "", problem.field)
            raise

    def _check_asked(self) -> None:
        """One number in a range, or questions, which have all of that themselves."""
        object.__setattr__(self, "questions", questions_of(self.questions))
        if not self.questions and self.bounds is None:
            raise InputError("bounds must be stated, or questions.", field="bounds")
        stated = {"bounds": self.bounds is not None, "variance": self.variance is not None, "unit": self.unit != ""}
        for name in (name for name, given in stated.items() if given and self.questions):
            raise InputError(f"{name} must not be stated beside questions, each of which has its own.", field=name)

    def _check_market(self) -> None:
        object.__setattr__(self, "standard_error", _errors_of(self.standard_error))
        for name in ("buyer_weight", "max_privacy_loss", "max_correlation"):
            if getattr(self, name) is not None or name == "max_correlation":
                object.__setattr__(self, name, as_double(getattr(self, name), name))
        for name in BUDGETS:
            if getattr(self, name) is not None:
                require_whole(getattr(self, name), name, 1, _MOST_MONEY)
        market = self._market(self.priors[0])
        if not self.questions:
            object.__setattr__(self, "bounds", market.bounds)
        market.error_weight(1)
        if self.variance is not None and varies_too_much(self.variance, market.bounds):
            raise InputError(f"variance {TOO_MUCH_VARIANCE}", field="variance")
        if self.limits is None:
            # where no cap is stated there are no limits either
            object.__setattr__(self, "limits", self.max_privacy_loss is not None and market.takes_limits)
        if self.limits is True:
            market.require_limits()
        if market.on_average and self.groups:
            told = "prior must be one for all people where a budget is met on average: who of the roster is of which"
            raise InputError(f"{told} group must be known before anybody bids.", field="prior")
        self._check_loss(market)

    def _check_loss(self, market: Market) -> None:
        """Refuse a campaign that has no largest loss, or none that would be privacy."""
        name, stated = "max_privacy_loss", self.max_privacy_loss is not None
        if not stated and market.takes_cap and not follows_from_terms(market.combination):
            raise InputError(f"{name} must be stated.", field=name)
        most = self.largest_loss
        if not LEAST_LOSS <= most <= _MOST_LOSS:
            what = name if stated else f"the largest privacy loss that follows from {self.stated} and prior"
            told = f"{what} must be from {LEAST_LOSS:g} to {_MOST_LOSS:g}, got {most:.6g}."
            raise InputError(told, field=name if stated else self.stated)

    def _check_numbers(self) -> None:
        require_whole(self.participation_fee, "participation_fee", 0, _MOST_MONEY)
        if self.spending_limit is not None:
            limit = as_double(self.spending_limit, "spending_limit")
            object.__setattr__(self, "spending_limit", limit)
            if not 10.0**-self.decimals <= limit <= _MOST_MONEY / 10.0**self.decimals:
                raise InputError(
                    f"spending_limit must be at least one minor unit, got {limit:g}.", field="spending_limit"
                )
        require_whole(self.minimum_people, "minimum_people", 1, MOST_PEOPLE)
        require_whole(self.retention_days, "retention_days", 0, MOST_DAYS)
        require_whole(self.payout_days, "payout_days", 1, MOST_DAYS)
        for name in (
            "fee_after_withdrawal",
            "accept_rounding",
            "automatic",
            "public_estimate",
            "limits",
            "single_visit",
        ):
            if type(getattr(self, name)) is not bool:
                raise InputError(f"{name} must be true or false, got {getattr(self, name)!r}.", field=name)
        if self.single_visit and self.setting != "central":
            told = (
                "single_visit must be false in the local setting, where answers stay in people's browsers until then."
            )
            raise InputError(told, field="single_visit")
        if self.payout not in PAYOUTS:
            raise InputError(f"payout must be one of {', '.join(PAYOUTS)}, got {self.payout!r}.", field="payout")


def _errors_of(stated: object) -> float | tuple[float, ...] | None:
    """One standard error, or one for each question."""
    if stated is None:
        return None
    if isinstance(stated, (list, tuple)):
        return tuple(as_double(one, "standard_error") for one in stated)
    return as_double(stated, "standard_error")
