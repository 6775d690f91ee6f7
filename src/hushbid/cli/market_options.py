"""Options that describe a market, for the commands that work without a campaign file."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from hushbid.mechanism import Market
    from hushbid.money import Currency
    from hushbid.priors.pilot import PriorSource

_GROUP = re.compile(r"^([^:=]+)=(.+)$", flags=re.DOTALL)


def read_bounds(ctx: click.Context, option: click.Parameter, value: str) -> tuple[float, float]:
    """Two numbers with a comma between them, the smaller first."""
    from hushbid.arrays import as_bounds
    from hushbid.errors import InputError

    try:
        low, high = (float(part) for part in value.split(","))
    except ValueError:
        low = high = math.nan
    try:
        return as_bounds((low, high))
    except InputError as problem:
        allowed = str(problem) if low < high else ""
        raise click.BadParameter(
            allowed or f"must be two numbers, the smaller first, such as 0,10; got {value!r}.", ctx, option
        ) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class MarketOptions:
    """The market as the command line states it."""

    priors: tuple[str, ...]
    setting: str | None
    bounds: tuple[float, float]
    variance: float | None
    buyer_weight: float
    user_weight: float
    people_may_owe_money: bool
    outside_option: str
    max_privacy_loss: float | None
    currency_code: str | None

    def prior_source(self) -> "PriorSource":
        """The prior, or the priors by group."""
        from hushbid.errors import PriorError
        from hushbid.priors.pilot import PriorSource, prior_option

        matches = [_GROUP.match(text) for text in self.priors]
        if len(matches) == 1 and matches[0] is None:
            return prior_option(self.priors[0])
        groups: dict[str, PriorSource] = {}
        for text, match in zip(self.priors, matches, strict=True):
            if match is None or match[1] in groups:
                raise PriorError(f"--prior given more than once must read group=prior, each group once, got {text!r}.")
            groups[match[1]] = prior_option(match[2])
        return PriorSource(
            priors={name: source.priors[""] for name, source in groups.items()},
            pilots={name: source.pilots[""] for name, source in groups.items() if source.pilots},
            files={name: source.files[""] for name, source in groups.items() if source.files},
            paths=tuple(path for source in groups.values() for path in source.paths),
        )

    def currency(self) -> "Currency":
        """What payments are made in."""
        from hushbid.money import NO_CURRENCY, Currency

        return NO_CURRENCY if self.currency_code is None else Currency.of(self.currency_code)

    def market(self, prior: Any, *, setting: str | None = None) -> "Market":
        """The market with this prior."""
        from hushbid.errors import InputError
        from hushbid.mechanism import Market

        if self.user_weight > 0 and not self.people_may_owe_money:
            raise InputError(
                "--user-weight lets people owe money: whoever values the estimate may have to pay for it; leave it at"
                " 0, or add --people-may-owe-money."
            )
        fields: dict[str, Any] = {
            "setting": setting or self.setting or "central",
            "bounds": self.bounds,
            "variance": self.variance,
            "buyer_weight": self.buyer_weight,
            "user_weight": self.user_weight,
            "outside_option": self.outside_option,
            "max_privacy_loss": self.max_privacy_loss,
        }
        return Market(prior=prior, **fields)


def market_options(*, setting: bool = True) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the options to a command, which gets them as one argument ``options``."""

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
        for option in reversed(_options(setting)):
            option(wrapped)
        return wrapped

    return add


def people_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the names of the columns of a file of reports."""
    for option in (
        click.option("--group-column", metavar="NAME", help="Column of groups, for priors by group."),
        click.option(
            "--sensitivity-column", metavar="NAME", default="sensitivity", show_default=True, help="Of reports."
        ),
        click.option("--id-column", metavar="NAME", default="id", show_default=True, help="Column of ids."),
    ):
        function = option(function)
    return function


_PLAIN = (
    "bounds",
    "variance",
    "buyer_weight",
    "user_weight",
    "people_may_owe_money",
    "outside_option",
    "max_privacy_loss",
)


def _options(setting: bool) -> list[Callable[..., Any]]:
    number = click.FloatRange(min=0.0)
    positive = click.FloatRange(min=0.0, min_open=True)
    options = [
        click.option(
            "--prior",
            multiple=True,
            required=True,
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
            "--buyer-weight",
            type=positive,
            default=1.0,
            show_default=True,
            help="What one unit of squared error costs you, in money.",
        ),
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
