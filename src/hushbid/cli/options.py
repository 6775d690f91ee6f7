"""Options that several commands share: of a market, of the columns of bids, and of a server's installation."""

import math
import re
import secrets
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hushbid.cli.common import COUNT, Number, OneFile
from hushbid.errors import InputError

if TYPE_CHECKING:
    from hushbid.allocation import Goal
    from hushbid.common.money import Currency
    from hushbid.mechanism import Market
    from hushbid.priors.pilot import PriorSource
    from hushbid.purchase.people import People
    from hushbid.purchase.questions_section import Survey
    from hushbid.purchase.strata_section import Stratification

HOME = "hushbid-server"
_PASSWORD_BYTES = 15
_LONG = 60
NO_PRIOR = "--prior must say what you believe about prices for privacy, such as uniform:1,2."
GROUP = re.compile(r"^([^:=]+)=(.+)$", flags=re.DOTALL)


def read_bounds(ctx: click.Context, option: click.Parameter | None, value: str) -> tuple[float, float]:
    """Two numbers with a comma between them, the smaller first."""
    from hushbid.common.arrays import as_bounds

    try:
        low, high = (float(part) for part in value.split(","))
    except ValueError:
        low = high = math.nan
    try:
        return as_bounds((low, high))
    except InputError as problem:
        allowed = "must be two numbers, the smaller first, such as 0,10"
        if low < high:
            allowed = str(problem).removeprefix("bounds ").partition(", got ")[0]
        raise click.BadParameter(f"{allowed}; got {value!r}.", ctx, option) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class MarketOptions:
    """The market as the command line states it."""

    priors: tuple[str, ...]
    setting: str | None
    bounds: tuple[float, float]
    variance: float | None
    buyer_weight: float | None
    budget: float | None
    standard_error: float | None
    hard_budget: float | None
    max_correlation: float
    population: int | None
    user_weight: float
    people_may_owe_money: bool
    outside_option: str
    max_privacy_loss: float | None
    questions: Path | None
    strata: Path | None
    currency_code: str | None

    def prior_source(self) -> "PriorSource":
        """The prior, or the priors by group."""
        from hushbid.errors import PriorError
        from hushbid.priors.pilot import PriorSource

        matches = [GROUP.match(text) for text in self.priors]
        if len(matches) == 1 and matches[0] is None:
            return _prior(self.priors[0])
        groups: dict[str, PriorSource] = {}
        for text, match in zip(self.priors, matches, strict=True):
            if match is None or match[1] in groups:
                raise PriorError(f"--prior given more than once must read group=prior, each group once, got {text!r}.")
            groups[match[1]] = _prior(match[2])
            if groups[match[1]].is_grouped:
                raise PriorError(f"--prior {text} must name one prior, not a file of priors by group.")
        return PriorSource.by_group(groups)

    def currency(self) -> "Currency":
        """What payments are made in."""
        from hushbid.common.money import NO_CURRENCY, Currency

        try:
            return NO_CURRENCY if self.currency_code is None else Currency.of(self.currency_code)
        except InputError:
            told = f"--currency must be an ISO 4217 code such as EUR, got {self.currency_code!r}"
            raise InputError(f"{told}; of another, a campaign file states its decimals.", field="currency") from None

    def goal(self) -> "Goal":
        """What the buyer states; exactly one thing."""
        from hushbid.allocation.goals import STATED, goal_named

        given = {name: getattr(self, name) for name in STATED if getattr(self, name) is not None}
        survey = self.survey()
        if survey is not None and survey.goal is not None:
            if given:
                raise click.UsageError(f"The questions in {self.questions} state a standard error each: state no more.")
            return survey.goal
        if len(given) != 1:
            shown = " and ".join(f"--{name.replace('_', '-')}" for name in given) or "none of them"
            raise click.UsageError(
                "State what you have, by exactly one of --budget, --hard-budget, --standard-error and --buyer-weight;"
                f" got {shown}."
            )
        [(name, number)] = given.items()
        return goal_named(name, number, coin=self.currency().coin)

    def survey(self) -> "Survey | None":
        """What is asked, if it is more than one number."""
        from hushbid.purchase.questions_section import survey_in

        return None if self.questions is None else survey_in(self.questions)

    def stratification(self) -> "Stratification | None":
        """The strata of the panel, if there are any."""
        from hushbid.purchase.strata_section import strata_in

        return None if self.strata is None else strata_in(self.strata)

    def one_estimate(self, what: str) -> "Stratification | None":
        """The strata of the panel, of which one estimate is wanted."""
        found = self.stratification()
        if found is not None and found.each:
            told = f"each = true makes every stratum a campaign of its own: {what} one by one, each without --strata."
            raise InputError(told, field="strata.each")
        return found

    def market_of(self, people: "People | None", *, setting: str | None = None) -> "Market":
        """The market for people who bid, or, with None, as far as it is known before they are read."""
        source, strata = self.prior_source(), self.stratification()
        labels = people.groups if people is not None else [] if source.is_grouped else None
        if source.is_grouped and labels is None:
            raise InputError("--prior by group needs a column of groups in the bids: --group-column must name it.")
        return self.market(
            source.prior_for(labels),
            setting=setting,
            roster=None if people is None else people.roster,
            **({} if strata is None else strata.fields(people, self.max_correlation)),
        )

    def market_before(self, people: int | None, *, setting: str | None = None) -> "Market":
        """The market for so many people who have not bid yet, or for the panel that the strata state."""
        strata, [prior] = self.stratification(), self.prior_source().priors.values()
        of_strata = {} if strata is None else strata.panel(self.max_correlation)
        return self.market(prior, setting=setting, roster=people, closed=True, **of_strata)

    def market(
        self,
        prior: Any,
        *,
        setting: str | None = None,
        roster: int | None = None,
        closed: bool = False,
        **of_strata: Any,
    ) -> "Market":
        """The market with this prior; ``roster`` is how many rows a table of bids has, if that is known.

        It is ``closed`` where nobody has bid yet: a price that is planned may then rest on it.
        """
        from hushbid.common.arrays import TOO_MUCH_VARIANCE, varies_too_much
        from hushbid.mechanism import Market

        if self.questions is None and self.variance is not None and varies_too_much(self.variance, self.bounds):
            raise InputError(f"variance {TOO_MUCH_VARIANCE}", field="variance")
        if self.user_weight > 0 and not self.people_may_owe_money:
            raise InputError(
                "--user-weight lets people owe money: whoever values the estimate may have to pay for it; leave it at"
                " 0, or add --people-may-owe-money."
            )
        fields: dict[str, Any] = {
            "setting": setting or self.setting or "central",
            "bounds": self.bounds,
            "variance": self.variance,
            "questions": None if (survey := self.survey()) is None else survey.questions,
            "goal": self.goal(),
            "user_weight": self.user_weight,
            "outside_option": self.outside_option,
            "max_privacy_loss": self.max_privacy_loss,
            "max_correlation": self.max_correlation,
            "population": self.population,
            **of_strata,
        }
        if of_strata and self.population is not None:
            raise InputError("--population must stand in the table [strata], a number for each stratum.")
        return Market(prior=prior, **fields).with_roster(roster, closed=closed)


def _prior(text: str) -> "PriorSource":
    """The prior that an option states, or a file of it; what is wrong with one is said of the option."""
    from hushbid.errors import PriorError
    from hushbid.priors.forms import text_shown
    from hushbid.priors.pilot import prior_option

    try:
        return prior_option(text)
    except PriorError as problem:
        shown = text_shown(text)
        told = f"--prior {shown if len(shown) <= _LONG else shown[:_LONG] + ' ...'}: {str(problem).rstrip('.')}."
        raise PriorError(told, field="prior") from None


def market_options(
    *, setting: bool = True, required: bool = True
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the options to a command, which gets them as one argument ``options``; a prior may be ``required``."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(**values: Any) -> Any:
            names = {
                "priors": "prior",
                "setting": "setting",
                "currency_code": "currency",
                **{name: name for name in _PLAIN},
            }
            taken = {field: values.pop(name, None) for field, name in names.items()}
            return function(options=MarketOptions(**taken), **values)

        wrapped.__doc__ = function.__doc__
        wrapped.__name__ = function.__name__
        wrapped.__click_params__ = getattr(function, "__click_params__", [])  # type: ignore[attr-defined]
        for option in reversed(_options(setting, required)):
            option(wrapped)
        return wrapped

    return add


def people_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the names of the columns of a file of bids."""
    for option in (
        click.option("--group-column", metavar="NAME", help="Column of groups, for priors by group."),
        click.option("--bid-column", metavar="NAME", default="bid", show_default=True, help="Of bids."),
        click.option("--id-column", metavar="NAME", default="id", show_default=True, help="Column of ids."),
    ):
        function = option(function)
    return function


_PLAIN = (
    "bounds",
    "variance",
    "buyer_weight",
    "budget",
    "standard_error",
    "hard_budget",
    "max_correlation",
    "population",
    "user_weight",
    "people_may_owe_money",
    "outside_option",
    "max_privacy_loss",
    "questions",
    "strata",
)


def _options(setting: bool, required: bool) -> list[Callable[..., Any]]:
    number = Number(min=0.0)
    positive = Number(min=0.0, min_open=True)
    options = [
        click.option(
            "--prior",
            multiple=True,
            required=required,
            metavar="PRIOR",
            help="What you believe about prices for privacy: uniform:1,2, lognormal:0,0.5, ..., or a file written by"
            " fit-prior. By group: --prior young=uniform:1,2 --prior old=uniform:2,3.",
        ),
        click.option(
            "--setting",
            type=click.Choice(["central", "local"]),
            default="central",
            show_default=True,
            help="Who adds the noise: a trusted platform, or everybody's own device.",
        ),
        click.option(
            "--bounds",
            callback=read_bounds,
            default="0,1",
            show_default=True,
            metavar="LOW,HIGH",
            help="The public range of the data.",
        ),
        click.option(
            "--variance", type=number, help="Of the data around their mean; without it, the largest the bounds allow."
        ),
        click.option(
            "--questions",
            type=OneFile(),
            metavar="FILE",
            help="Several questions instead of one number: the tables [[questions]] of a TOML file, such as a campaign"
            " file.",
        ),
        click.option(
            "--strata",
            type=OneFile(),
            metavar="FILE",
            help="People of public strata instead of people alike: the table [strata] of a TOML file, such as a"
            " campaign file.",
        ),
        *_goal_options(positive),
        click.option(
            "--user-weight",
            type=number,
            default=0.0,
            show_default=True,
            help="What one unit of squared error costs each person.",
        ),
        click.option("--people-may-owe-money", is_flag=True, help="Allow a user weight, under which people may owe."),
        click.option(
            "--outside-option",
            type=click.Choice(["own_data", "estimate"]),
            default="own_data",
            show_default=True,
            help="What somebody who stays out has.",
        ),
        click.option("--max-privacy-loss", type=positive, metavar="EPSILON", help="A cap on everybody's privacy loss."),
        click.option("--currency", metavar="CODE", help="What prices are in: EUR, JPY, KWD, ..."),
    ]
    return options if setting else [one for place, one in enumerate(options) if place != 1]


def _goal_options(positive: Number) -> list[Callable[..., Any]]:
    """What the buyer has, of which she states one thing, and what she is to be protected against."""
    return [
        click.option("--budget", type=positive, help="Spend this much on average, as accurately as possible."),
        click.option("--hard-budget", type=positive, help="Never spend more than this, whatever people bid."),
        click.option("--standard-error", type=positive, help="Reach this error, in data units, for as little."),
        click.option("--buyer-weight", type=positive, help="What one unit of squared error costs you, in money."),
        click.option(
            "--max-correlation",
            type=Number(0.0, 1.0),
            default=0.0,
            show_default=True,
            help="How closely price and datum may be related, from 0 to 1: the purchase is the best against the worst.",
        ),
        click.option(
            "--population",
            type=COUNT,
            metavar="PEOPLE",
            help="How many people the mean is about, with --max-correlation or (needed there) a local budget."
            "  [default: those in the file]",
        ),
    ]


# -- a server ----------------------------------------------------------------------------------------------------------


def installation(function: Callable[..., Any]) -> Callable[..., Any]:
    """Options that say which installation is meant."""
    function = click.option(
        "--database",
        envvar="HUSHBID_DATABASE",
        metavar="URL",
        help="PostgreSQL by its address, postgresql://USER@HOST/NAME, also from HUSHBID_DATABASE.  [default: SQLite]",
    )(function)
    return click.option(
        "--home",
        type=click.Path(file_okay=False, path_type=Path),
        default=HOME,
        show_default=True,
        help="The server's folder.",
    )(function)


def refuse_nowhere(home: Path) -> None:
    """Refuse to look for something in a folder that holds no server; one would be made by looking."""
    if not home.is_dir() or not any(home.iterdir()):
        raise InputError(f"{home} holds no server: --home names its folder, and hushbid serve makes one.")


def new_password() -> str:
    """A password that nobody chose: 120 random bits."""
    return secrets.token_urlsafe(_PASSWORD_BYTES)


def asked_password() -> str:
    """A password from the keyboard, or the first line of what is piped in."""
    if sys.stdin.isatty():
        found: str = click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
        return found
    return sys.stdin.readline().rstrip("\r\n")
