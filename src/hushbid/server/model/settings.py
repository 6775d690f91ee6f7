"""A campaign as a server conducts it: `hushbid.campaign.spec`, and in ``[server]`` what only a server decides.

A campaign file, a request and a draft's form state the same fields, and `CampaignSettings.read` refuses all that is
wrong with them at once. A server leaves the tables ``[bids]``, ``[data]`` and ``[output]`` unread; it counts with
``population`` people in forecasts, and with those who are invited once it opens.

People do not care about the estimate here (``user_weight`` is 0): nobody can owe money, and a person who drops out
changes nobody's payment. Amounts are whole coins, in units of the currency. A budget includes the participation fees:
they are taken off first, so that fees and payments together come to it on average, or never exceed a hard budget.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import cached_property
from types import SimpleNamespace
from typing import Annotated, Any

from pydantic import Field

from hushbid.allocation import Accuracy, Budget, Goal, HardBudget
from hushbid.campaign.reading import Problems, SpecError, currency_of, validated
from hushbid.campaign.spec import GOALS, MOST_INVITED, About, CampaignSpec, MarketTable, fields_of
from hushbid.campaign.stated import Stated
from hushbid.campaign.terms import goal_of, market_terms, questions_of
from hushbid.common.money import Currency
from hushbid.disclosure.error import FEWEST_PEOPLE
from hushbid.errors import HushbidError, InputError
from hushbid.mechanism import Market
from hushbid.mechanism.largest_loss import follows_from_terms, largest_loss
from hushbid.priors import Grouped, Prior
from hushbid.priors.pilot import prior_source
from hushbid.questions import Layout, Question
from hushbid.server.model.answers import plain_groups, plain_questions, require_deliverable
from hushbid.server.model.checks import LONGEST, checked_text

MOST_PEOPLE = MOST_INVITED
"""In one campaign."""

LEAST_PEOPLE = FEWEST_PEOPLE
"""A server's campaigns need at least so many bids."""

LEAST_LOSS, MOST_LOSS = 1e-6, 100.0
MOST_STRATA = 50
_MOST_GROUPS = 50
_LEAST_PRICE, _MOST_PRICE = 1e-9, 1e12
_NEARLY_ALL, _NARROWEST = 0.999, 1e-6
_MOST_MONEY = 10**15
_UNREAD = ("bids", "data", "output")
NOT_HERE = (
    *("wave", "synthetic", "notices", "strata.each", "market.user_weight", "market.people_may_owe_money"),
    *("market.outside_option", "market.tolerance", "market.accept_pilot_overlap", "market.accept_infinite_loss"),
)
"""Fields that campaign files alone have."""

_AMOUNTS = ("market.budget", "market.hard_budget", "money.spending_limit", "server.participation_fee")


class CampaignSettings(CampaignSpec):
    """What an analyst decides before anyone bids."""

    title: Annotated[
        str,
        Field(min_length=1, max_length=LONGEST["title"]),
        About(allowed="a text of 1 to 200 characters", example="Sleep"),
    ]
    """What people call the campaign."""

    question: Annotated[
        str,
        Field(min_length=1, max_length=LONGEST["question"]),
        About(allowed="a text of 1 to 2000 characters", example="How long did you sleep?"),
    ]
    """What everyone is asked, in a sentence; of several questions, what they are about."""

    @classmethod
    def read(cls, values: object) -> "CampaignSettings":
        """Return what plain values state, or refuse it with all its problems.

        >>> market = {"setting": "central", "prior": "uniform:1,2", "bounds": [0, 24], "budget": 200}
        >>> sleep = {"title": "Sleep", "question": "How long?", "money": {"currency": "EUR"}}
        >>> settings = CampaignSettings.read({**sleep, "market": {**market, "max_privacy_loss": 1}})
        >>> CampaignSettings.read(settings.to_dict()) == settings
        True
        """
        if not isinstance(values, Mapping):
            raise InputError(f"settings must be a table of fields, got {type(values).__name__}.", field="settings")
        stated = {name: one for name, one in _cleaned(values).items() if name not in _UNREAD}
        problems = Problems(Stated(values=stated))
        prior = _read_prior(stated, problems)
        spec = validated(Stated(values={**stated, **prior}), problems, cls)
        for name, told in _refused(spec, problems):
            if not problems.at(name):
                problems.add(name, told)
        problems.refuse()
        return spec

    def changed(self, changes: Mapping[str, Any]) -> "CampaignSettings":
        """Return other settings: these fields by their full names, a goal in the place of any other goal."""
        return self.read(Stated(values=self.to_dict()).with_options(changes, {}).values)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain JSON values, without what is as it is where nothing is stated."""
        return self.model_dump(mode="json", exclude_defaults=True)

    def require_people(self, least: int) -> None:
        """Refuse a campaign that would buy from fewer people than a server allows."""
        if not least <= (stated := self.server.minimum_people):
            told = f"minimum_people must be a whole number from {least} to {MOST_PEOPLE}, got {stated}."
            raise InputError(told, field="minimum_people")

    # -- money ---------------------------------------------------------------------------------------------------------

    @cached_property
    def currency(self) -> Currency:
        """Return what prices and payments are in."""
        return currency_of(self)

    def minor(self, amount: float) -> int:
        """Return an amount in minor units."""
        return round(Decimal(repr(float(amount))).scaleb(self.currency.decimals))

    @property
    def fee_minor(self) -> int:
        """Return the participation fee in minor units."""
        return self.minor(self.server.participation_fee)

    @property
    def hard_budget_minor(self) -> int | None:
        """Return what fees and payments never exceed, in minor units; None if there is no such amount."""
        return None if self.market.hard_budget is None else self.minor(self.market.hard_budget)

    @property
    def spending_limit_minor(self) -> int | None:
        """Return the spending limit in minor units; None if there is none."""
        return None if self.money.spending_limit is None else self.minor(self.money.spending_limit)

    # -- what is asked, of whom ----------------------------------------------------------------------------------------

    @cached_property
    def asked(self) -> tuple[Question, ...]:
        """Return the questions; none where one number is asked for."""
        return questions_of(self)

    @cached_property
    def prior(self) -> Prior | dict[str, Prior]:
        """Return what is believed about costs: one prior, or one for each group."""
        found = prior_source(self.market.prior)
        return dict(found.priors) if found.is_grouped else found.priors[""]

    @property
    def groups(self) -> tuple[str, ...]:
        """Return the names of the groups; none if there is one prior for everyone."""
        return tuple(self.prior) if isinstance(self.prior, Mapping) else ()

    @property
    def priors(self) -> list[Prior]:
        """Return the priors, of one group or of each."""
        return list(self.prior.values()) if isinstance(self.prior, Mapping) else [self.prior]

    def prior_of(self, group: str | None) -> Prior:
        """Return what is believed about a person of that group."""
        if not isinstance(self.prior, Mapping):
            return self.prior
        if group is None or group not in self.prior:
            raise InputError(f"group must be one of {', '.join(map(repr, self.prior))}, got {group!r}.", field="group")
        return self.prior[group]

    @property
    def weights(self) -> dict[str, float]:
        """Return the weight of each stratum's mean, by its name; none without strata."""
        return {} if self.strata is None else self.strata.weights

    @property
    def combination(self) -> dict[str, dict[str, float]] | None:
        """Return the linear combination of the strata's means, under its name; None without strata."""
        return None if self.strata is None else self.strata.wanted

    def empty_strata(self, column: Sequence[str | None]) -> list[str]:
        """Return the strata in which nobody is."""
        return [name for name in self.weights if name not in set(column)]

    @cached_property
    def shown(self) -> SimpleNamespace:
        """Return what people and views are shown of the settings, by the names used there; money in minor units."""
        return SimpleNamespace(
            **{**dict(self.server), "participation_fee": self.fee_minor, "limits": self.takes_limits},
            title=self.title,
            question=self.question,
            unit=self.unit or "",
            setting=self.market.setting,
            bounds=self.market.bounds,
            currency=self.currency.code,
            decimals=self.currency.decimals,
            max_privacy_loss=self.largest_loss,
            takes_limits=self.takes_limits,
            questions=plain_questions(self.asked),
            noise_groups=plain_groups(self.layout),
            strata=self.combination,
        )

    # -- the market ----------------------------------------------------------------------------------------------------

    @property
    def stated(self) -> str:
        """Return the name of the one field that says what the buyer has."""
        return next((name for name in GOALS if getattr(self.market, name) is not None), "standard_error")

    @property
    def goal_number(self) -> float:
        """Return what the buyer states: an amount, an error or a weight, the first where each question has one."""
        number = goal_of(self, self.currency).number
        return number[0] if isinstance(number, tuple) else number

    @property
    def target_errors(self) -> tuple[float, ...]:
        """Return the standard errors that are wanted, of the number or of each question; none for another goal."""
        goal = goal_of(self, self.currency)
        found = goal.standard_error if isinstance(goal, Accuracy) else ()
        return found if isinstance(found, tuple) else (float(found),)  # type: ignore[arg-type]

    @property
    def bounds(self) -> tuple[float, float]:
        """Return the public range, where one number is asked for."""
        if self.market.bounds is None:
            raise InputError("The campaign asks several questions, each with a range of its own.", field="bounds")
        return self.market.bounds

    @cached_property
    def layout(self) -> Layout | None:
        """Return how the questions share everyone's loss; None without questions."""
        return self._market(self.priors[0]).layout if self.asked else None

    @cached_property
    def takes_limits(self) -> bool:
        """Return whether people may state limits; where no cap is stated, only if the settings say so."""
        if self.server.limits is not None:
            return self.server.limits
        return self.market.max_privacy_loss is not None and self._market(self.priors[0]).takes_limits

    @cached_property
    def largest_loss(self) -> float:
        """Return what nobody's loss exceeds, whatever everyone bids: as stated, or what follows from the settings."""
        if self.market.max_privacy_loss is not None:
            return self.market.max_privacy_loss
        market = self._market(self.priors[0])  # before fees, which leave less of a budget
        return largest_loss(market.for_people(max(len(self.weights), 1)), self.priors)

    def market_for(
        self,
        groups: Sequence[str | None],
        *,
        strata: Sequence[str | None] = (),
        invited: int | Mapping[str, int] | None = None,
        fees: int | None = None,
    ) -> Market:
        """Return the market for those of these groups and strata, who bid.

        ``invited`` people, the roster that was closed when the campaign opened, are whom the mean is about, with strata
        by stratum; ``fees`` are due in all, in minor units. Left out, everyone who was invited bid.
        """
        prior: Prior | Grouped = (
            Grouped(self.prior, [group or "" for group in groups]) if isinstance(self.prior, Mapping) else self.prior
        )
        due = self.fee_minor * len(groups) if fees is None else fees
        market = self._market(prior, people=len(groups), fees=due, column=strata)
        everyone = Counter(label or "" for label in strata) if self.weights and strata else len(groups)
        return market.with_roster(invited or everyone, closed=True)

    def _market(
        self, prior: Prior | Grouped, *, people: int = 0, fees: int = 0, column: Sequence[str | None] = ()
    ) -> Market:
        terms = market_terms(self, self.currency)
        terms |= {"goal": self._after_fees(terms["goal"], fees=fees, people=people), "population": None}
        if self.strata is not None:
            terms |= {"strata": [label or "" for label in column or self.weights], **self.strata.wanted}
        return Market(prior=prior, **terms)

    def _after_fees(self, goal: Goal, *, fees: int, people: int) -> Goal:
        """Return the goal for privacy alone, once the fees are taken off; ``people`` may have to be paid."""
        if not isinstance(goal, (Budget, HardBudget)):
            return goal
        amount, coin = self.minor(goal.amount), self.currency
        least = fees + (people if isinstance(goal, HardBudget) else 0)
        if amount <= least:
            coins = f" and one coin for each of {people} people" * (isinstance(goal, HardBudget) and people > 0)
            least_text, got = (f"{one / coin.per_unit:.{coin.decimals}f}" for one in (least, amount))
            told = f"{self.stated} must be above {least_text}, the participation fees{coins}, got {got}."
            raise InputError(told, field=self.stated)
        return replace(goal, amount=(amount - fees) / coin.per_unit)


# -- what a server refuses beyond the schema ---------------------------------------------------------------------------


def _cleaned(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values with texts in one form of Unicode, without what is null, and so left out."""

    def clean(value: Any) -> Any:
        if isinstance(value, str):
            return unicodedata.normalize("NFC", value).strip()
        if isinstance(value, Mapping):
            return {_encoded(name): clean(one) for name, one in value.items() if one is not None}
        return [clean(one) for one in value] if isinstance(value, list | tuple) else value

    found: dict[str, Any] = clean(values)
    return found


def _encoded(name: object) -> str:
    """Return the name of a field as UTF-8 can hold it."""
    return str(name).encode(errors="replace").decode()


def _read_prior(stated: Mapping[str, Any], problems: Problems) -> dict[str, Any]:
    """Return the table of the market with the priors as texts; what is wrong with them is a problem."""
    market = stated.get("market")
    if not isinstance(market, Mapping) or "prior" not in market:
        return {}
    form, usable = market["prior"], "uniform:1,2"  # in the place of one that is refused
    try:
        if _names_file(form):
            raise InputError("must be stated itself, as a server reads no file.")
        if isinstance(form, Mapping) and not all(str(group).strip() for group in form):
            raise InputError("must have groups with names.")
        source = prior_source(form)
        if not len(source.priors) <= _MOST_GROUPS:
            raise InputError(f"must be of at most {_MOST_GROUPS} groups, got {len(source.priors)}.")
        texts = {checked_text(name, "group"): _with_prices(one).to_text() for name, one in source.priors.items()}
        return {"market": {**market, "prior": texts if source.is_grouped else texts[""]}}
    except HushbidError as problem:
        problems.add("market.prior", str(problem).removeprefix("prior "))
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as problem:
        problems.add("market.prior", f"cannot be read: {type(problem).__name__}.")
    return {"market": {**market, "prior": usable}}


def _names_file(form: object) -> bool:
    return isinstance(form, Mapping) and ("file" in form or any(map(_names_file, form.values())))


def _with_prices(prior: Prior) -> Prior:
    """Return a prior over prices that people could name and be paid; others overflow where payments are computed."""
    middle, high = (float(prior.quantile(share)) for share in (0.5, _NEARLY_ALL))
    if not (middle >= _LEAST_PRICE and high <= _MOST_PRICE):
        told = f"must have its median at {_LEAST_PRICE:g} or more and nearly all prices up to {_MOST_PRICE:g}"
        raise InputError(f"{told}, got {middle:g} and {high:g}.")
    if middle < high < middle * (1.0 + _NARROWEST):
        raise InputError("must not be so narrow that doubles cannot tell its prices apart.")
    return prior


def _refused(spec: CampaignSettings, problems: Problems) -> Iterator[tuple[str, str]]:
    """Yield what a server refuses, of tables that are in order."""
    for name, info in fields_of(type(spec)):
        value = _value(spec, name)
        if name in NOT_HERE and value not in (None, info.get_default(call_default_factory=True)):
            yield name, "cannot be stated for a campaign on a server."
        yield from ((name, told) for told in _text_problems(name, value))
    if spec.money.currency is None:
        yield "money.currency", "is missing; it must be an ISO 4217 code."
    market = getattr(spec, "market", None)
    if market is None or problems.at("market", "money", "questions", "strata"):
        return
    yield from _of_amounts(spec)
    if not problems.at("server"):
        yield from _of_market(spec, market)


def refused_here(values: Mapping[str, Any]) -> list[str]:
    """Return the fields of a campaign file that no campaign on a server can state as it does."""
    try:
        CampaignSettings.read(values)
    except SpecError as refused:
        return [name for name, _ in refused.problems if name in NOT_HERE]
    return []


def _value(spec: CampaignSettings, name: str) -> Any:
    """Return the value of a field by its full name; None where its table is not there."""
    value: Any = spec
    for part in name.split("."):
        value = getattr(value, part, None)
    return value


def _text_problems(name: str, value: object) -> Iterator[str]:
    texts = value.values() if name == "server.consent.texts" and isinstance(value, Mapping) else (value,)
    most = LONGEST.get(name.rpartition(".")[2], LONGEST["question"])
    for text in texts:
        if isinstance(text, str):
            try:
                checked_text(text, "", longest=most)
            except InputError as problem:
                yield str(problem).strip()


def _of_amounts(spec: CampaignSettings) -> Iterator[tuple[str, str]]:
    coin = Decimal(1).scaleb(-spec.currency.decimals)
    for name in _AMOUNTS:
        amount = Decimal(repr(float(_value(spec, name) or 0.0)))
        if amount % coin or amount / coin > _MOST_MONEY:
            yield (
                name,
                f"must be whole coins of {coin} {spec.currency.code} and at most {_MOST_MONEY} of them, got {amount}.",
            )


def _of_market(spec: CampaignSettings, market: MarketTable) -> Iterator[tuple[str, str]]:
    if len(spec.weights) > MOST_STRATA:
        yield "strata", f"must be at most {MOST_STRATA}, got {len(spec.weights)}."
    for name in spec.weights:
        yield from (("strata", told) for told in _text_problems("stratum", name))
    try:
        require_deliverable(spec.asked)
        whole = spec._market(spec.priors[0])
        whole.error_weight(1)
        if spec.takes_limits:
            whole.require_limits()
    except HushbidError as problem:
        yield _place_of(spec, problem.field), str(problem).removeprefix(f"{problem.field} ")
        return
    if whole.on_average and spec.groups:
        yield (
            "market.prior",
            "must be one for all people where a budget is met on average: who of the roster is of"
            " which group must be known before anyone bids.",
        )
    yield from _of_loss(spec, whole)


def _place_of(spec: CampaignSettings, field: str | None) -> str:
    """Return the full name of the field that a market calls so."""
    known = {"goal": spec.stated, **dict.fromkeys(("shares", "contrast", "weights"), "strata")}
    name = known.get(field or "", field or spec.stated)
    if name == "standard_error" and spec.asked:
        return "questions.1.standard_error"
    names = (full for full, _ in fields_of(type(spec)) if full.rpartition(".")[2] == name)
    return name if name in ("strata", "questions") else next(names, f"market.{spec.stated}")


def _of_loss(spec: CampaignSettings, market: Market) -> Iterator[tuple[str, str]]:
    """A campaign must have a largest loss, and one that would be privacy."""
    stated = spec.market.max_privacy_loss is not None
    if not stated and market.takes_cap and not follows_from_terms(market.combination):
        yield "market.max_privacy_loss", "is missing; it must be stated."
        return
    try:
        most = spec.largest_loss
    except HushbidError as problem:
        yield _place_of(spec, problem.field), str(problem)
        return
    if not LEAST_LOSS <= most <= MOST_LOSS:
        what = "must be" if stated else "leads with the prior to a largest privacy loss that is not"
        place = "market.max_privacy_loss" if stated else _place_of(spec, "goal")
        yield place, f"{what} from {LEAST_LOSS:g} to {MOST_LOSS:g}, got {most:.6g}."
