"""What an analyst believes people ask for, in a draft's form: two prices, a pilot's file, or the text form.

**Two prices.** For one unit of privacy loss (ε = 1: even odds become at most 73.2 %) one person in ten asks less than
the *low* price and one in ten more than the *high* one. The prior is the log-normal distribution with these quantiles:
the logarithm of a price is normal with mean ``(ln low + ln high)/2`` and standard deviation ``(ln high − ln low)/2z``,
``z = 1.2815…`` being the 90 % quantile of the standard normal distribution. It is cut at its 0.1 % and 99.9 %
quantiles, rounded outwards to three digits, so that menus, privacy losses and payments are bounded.

**A pilot's file** has one price for one unit of privacy loss in each row. Priors are fitted to it as ``hushbid
fit-prior`` does, and the closest to data it has not seen is taken; but not the empirical one, which would be the
pilot's answers themselves. Nothing but the fitted prior and the number of people is kept.
"""

import io
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

import numpy as np

from hushbid.common.arrays import FloatArray
from hushbid.common.tables.csv_files import names_in_csv, read_csv
from hushbid.errors import HushbidError, InputError
from hushbid.priors import LogNormal, Prior, Truncated, parse_prior
from hushbid.priors.fitting import fit_priors
from hushbid.server.pages.form_reading import Reading
from hushbid.server.pages.wording import FormError, Writing

WAYS = ("typical", "pilot", "text")
Z = 1.2815515655446004
"""The 90 % quantile of the standard normal distribution."""

_CUTS = (0.001, 0.999)
"""The quantiles at which the log-normal prior is cut."""

MOST_BYTES = 2 << 20
"""Of a pilot's file."""

COLUMNS = ("price", "bid")
"""What the column of prices may be called."""

_DIGITS = 6
_FEWEST = 10
_DEAREST, _CHEAPEST = 1e9, 1e-6
_LONGEST = 20_000


def typical_prior(low: float, high: float) -> Truncated:
    """The log-normal prior whose 10 % and 90 % quantiles are these prices, cut where hardly anybody is beyond.

    >>> prior = typical_prior(0.5, 5.0)
    >>> prior.support, float(round(prior.prior.quantile(0.1), 6)), float(round(prior.prior.quantile(0.9), 6))
    ((0.0984, 25.4), 0.5, 5.0)
    """
    below, above = math.log(low), math.log(high)
    whole = LogNormal((below + above) / 2.0, (above - below) / (2.0 * Z))
    least, most = np.asarray(whole.quantile(list(_CUTS))).tolist()
    return Truncated(whole, _rounded(least, ROUND_FLOOR), _rounded(most, ROUND_CEILING))


def _rounded(price: float, direction: str) -> float:
    """A price with three digits, rounded down or up."""
    exact = Decimal(price)
    return float(exact.quantize(Decimal((0, (1,), exact.adjusted() - 2)), rounding=direction))


def typical_prices(prior: Prior) -> tuple[float, float] | None:
    """The two prices of which `typical_prior` makes exactly this prior; None if there are none of a few digits."""
    if not isinstance(prior, Truncated) or not isinstance(prior.prior, LogNormal):
        return None
    whole = prior.prior
    found = [float(f"{math.exp(whole.mean_log + sign * Z * whole.sd_log):.{_DIGITS}g}") for sign in (-1, 1)]
    low, high = found
    return (low, high) if 0.0 < low < high and typical_prior(low, high) == prior else None


def read_prior(form: Reading) -> Any:
    """What is believed, as settings say it; whatever is wrong is told at the field that was used."""
    way = form.one_of("prices", WAYS)
    if way == "typical":
        low = form.number("price_low", ge=_CHEAPEST, le=_DEAREST)
        high = form.number("price_high", ge=_CHEAPEST, le=_DEAREST)
        if low is None or high is None:
            return None
        if high < low * 1.001:
            form.refuse("price_high", "form.price_range")
            return None
        return typical_prior(low, high).to_text()
    if way == "pilot":
        if not form.given("pilot"):
            form.refuse("pilot_file", "form.pilot_missing")
        return form.given("pilot")
    return prior_form(form.text("prior", _LONGEST, needed=True))


def field_of(typed: Mapping[str, str]) -> str:
    """The field at which a problem with the prior is to be told."""
    return {"pilot": "pilot_file", "text": "prior"}.get(typed.get("prices", ""), "price_high")


def prices_typed(market: Mapping[str, Any], write: Writing) -> dict[str, str]:
    """Return what is believed, as it would have been typed; the file that a campaign file names is not there."""
    form = market.get("prior")
    text = (
        "\n".join(f"{group} = {one}" for group, one in form.items()) if isinstance(form, Mapping) else str(form or "")
    )
    found = {"prices": "text", "prior": text, "pilot": "", "pilot_people": "", "price_low": "", "price_high": ""}
    two = None
    if isinstance(form, str):
        with suppress(HushbidError):
            two = typical_prices(parse_prior(form))
    if two is None:
        return found
    return {
        **found,
        "prices": "typical",
        "price_low": write.typed(two[0]),
        "price_high": write.typed(two[1]),
    }


def prior_form(text: str) -> str | dict[str, str]:
    """One prior, or one for each line ``group = prior``."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not any(_names_group(line) for line in lines):
        return " ".join(lines)
    groups: dict[str, str] = {}
    for line in lines:
        name, _, prior = line.partition("=")
        groups[name.strip()] = prior.strip()
    return groups


def _names_group(line: str) -> bool:
    before, equals, _ = line.partition("=")
    return bool(equals) and ":" not in before


# -- a pilot -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedPilot:
    """What a pilot speaks for."""

    prior: str
    """In the text form."""

    people: int


class PilotRefused(FormError):
    """A pilot's file that cannot be used."""

    def __init__(self, code: str, **values: str) -> None:
        super().__init__(code)
        self.values = values


def fitted_pilot(content: bytes) -> FittedPilot:
    """The prior that a CSV file of prices speaks for; nothing else of the file leaves this function."""
    if not content.strip():
        raise PilotRefused("form.pilot_missing")
    if len(content) > MOST_BYTES:
        raise PilotRefused("form.pilot_large", most=str(MOST_BYTES >> 20))
    values = _prices(content)
    if values.size < _FEWEST:
        raise PilotRefused("form.pilot_few", least=str(_FEWEST), got=str(values.size))
    try:
        fits = [fit for fit in fit_priors(values) if fit.family != "empirical"]
    except InputError:
        raise PilotRefused("form.pilot_same") from None
    return FittedPilot(prior=fits[0].prior.to_text(), people=int(values.size))


def _prices(content: bytes) -> FloatArray:
    try:
        names = names_in_csv(io.BytesIO(content), "the file")
        column = next((name for name in names if name.strip().casefold() in COLUMNS), None)
        if column is None:
            raise PilotRefused("form.pilot_column")
        table = read_csv(content, "the file", [column], [])
    except InputError:
        raise PilotRefused("form.pilot_unreadable") from None
    try:
        found = table.numbers(column, error=InputError)
    except InputError as problem:
        raise _row_refused(problem.row) from None
    bad = np.flatnonzero(~((found >= 0.0) & np.isfinite(found)))
    if bad.size:
        raise _row_refused(int(bad[0]))
    return found


def _row_refused(row: int | None) -> PilotRefused:
    """What is wrong in a row, counted as a spreadsheet does; never what it holds."""
    return PilotRefused("form.pilot_unreadable") if row is None else PilotRefused("form.pilot_row", row=str(row + 2))
