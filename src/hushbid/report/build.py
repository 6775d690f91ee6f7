"""From an outcome to the frozen `Report`: everything that is computed for the page, nothing of how it looks."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hushbid import __version__
from hushbid.disclosure import ErrorModel, Release
from hushbid.errors import HushbidError, InputError
from hushbid.mechanism import Market, Menu, Outcome
from hushbid.money import Currency, Money
from hushbid.priors import Grouped
from hushbid.report.assumptions import assumptions_of, prior_words
from hushbid.report.audits import audit_lines
from hushbid.report.caps import cap_curve
from hushbid.report.curves import curves_of
from hushbid.report.html import plain
from hushbid.report.material import noise_share, planned_error
from hushbid.report.model import (
    CapFacts,
    ComparisonFacts,
    CostFacts,
    CostParts,
    EstimateFacts,
    PrivacyFacts,
    Report,
    SelectionFacts,
    SettingFacts,
)
from hushbid.report.rivals import rivals_facts
from hushbid.report.selection import selection_facts
from hushbid.report.settlement import Settlement, settled_facts
from hushbid.report.suppression import (
    SMALLEST_CELL,
    SMALLEST_CHART,
    GroupRow,
    as_labels,
    coarse,
    group_rows,
    histogram,
    quantiles,
    too_few,
)
from hushbid.wording import at_most

Groups = Sequence[object] | NDArray[np.generic]
_BANDS = (0.5, 0.8)
_LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9)
_FEW_EITHER_WAY = (
    f"One way, fewer than {SMALLEST_CELL} people are bought from: this could show what one of them reported."
)


def build_report(
    outcome: Outcome,
    release: Release | None = None,
    *,
    campaign_name: str = "A campaign",
    quantity: str = "the mean",
    unit: str = "",
    currency: Currency | str | None = None,
    groups: Groups | None = None,
    audits: Iterable[object] = (),
    comparison: Outcome | Literal["compute", "omit"] = "compute",
    menu: Menu | None = None,
    prior_from_participants: bool = False,
    spending_ceiling: float | None = None,
    settlement: Settlement | None = None,
    notices: Sequence[str] = (),
    record_name: str = "record.json",
    record_hash: str | None = None,
    date: str = "",
    level: float = 0.95,
) -> Report:
    """Everything the report shows.

    ``groups`` has one label per person (by default the groups of the prior, if it has any). ``audits`` are results of
    `hushbid.audit`. ``comparison`` is the outcome in the other setting on the same reports, or whether to compute it.
    ``menu``, from ``market.menu``, stands in for the schedule where too few people are behind it. With a ``currency``,
    payments are taken to be rounded up to its smallest coin, as they are paid. ``settlement`` is the account of whoever
    keeps one: who delivered, what is owed and paid. ``notices`` are shown above all else.
    """
    if not 0.0 < level < 1.0:
        raise InputError(f"level must lie strictly between 0 and 1, got {level}.")
    market, people = outcome.market, outcome.reports.size
    money = Currency.of(currency) if isinstance(currency, str) else currency
    error = release.error if release is not None else planned_error(outcome)
    estimate = _estimate(outcome, release, error, level)
    return Report(
        campaign_name=plain(campaign_name) or "A campaign",
        quantity=plain(quantity) or "the mean",
        unit=plain(unit),
        currency=money,
        date=plain(date),
        notices=tuple(plain(notice) for notice in notices),
        setting=market.setting,
        prior=prior_words(market.prior),
        people=people,
        bought_from=outcome.active,
        estimate=estimate,
        cost=_cost(outcome, money, spending_ceiling, settlement),
        privacy=_privacy(outcome, release, menu),
        groups=_groups(outcome, groups),
        selection=_selection(outcome, estimate.half_width),
        comparison=_comparison(outcome, comparison, level),
        rivals=rivals_facts(outcome),
        cap=_cap(outcome, level),
        audits=audit_lines(audits, noise_share=estimate.noise_share, people=people),
        assumptions=assumptions_of(
            market,
            people=people,
            prior_from_participants=prior_from_participants,
            account_kept=settlement is not None,
        ),
        record_name=plain(record_name),
        record_hash=None if record_hash is None else plain(record_hash),
        versions=tuple(sorted((release.versions if release is not None else {"hushbid": __version__}).items())),
    )


def _estimate(outcome: Outcome, release: Release | None, error: ErrorModel | None, level: float) -> EstimateFacts:
    bands: tuple[tuple[float, float], ...] = ()
    if error is None:
        half_width, deviation = math.inf, math.inf
    else:
        half_width = coarse(error.half_width(level), outcome.active)
        deviation = coarse(math.sqrt(error.mse), outcome.active)
        if not too_few(outcome.active):
            bands = tuple((band, error.half_width(band)) for band in _BANDS if band < level)
    missing = 0 if release is None else len(release.dropped_out)
    return EstimateFacts(
        value=None if release is None else release.estimate,
        bounds=outcome.market.bounds,
        level=level,
        half_width=half_width,
        bands=bands,
        standard_error=deviation,
        noise_share=noise_share(error),
        dropped_out=None if 0 < missing < SMALLEST_CHART else missing,
    )


def _cost(
    outcome: Outcome, currency: Currency | None, ceiling: float | None, settlement: Settlement | None
) -> CostFacts:
    paying = (outcome.privacy_loss > 0.0) & (outcome.reports > 0.0)
    compensation = math.fsum(outcome.reports[paying] * outcome.privacy_loss[paying])
    rent, total = math.fsum(outcome.information_rent), outcome.total_payment
    weighted = bool(np.any(np.asarray(outcome.market.user_weight) > 0)) and outcome.active > 0
    rounding, incentive_error = None, outcome.incentive_error
    if currency is not None and math.isfinite(total):
        paid = Money.of(outcome.payments, incentive_error, currency=currency.code, decimals=currency.decimals)
        rounding, incentive_error = max(paid.total / currency.per_unit - total, 0.0), paid.incentive_error
    parts = CostParts(
        total=total,
        compensation=compensation,
        rent=rent,
        error_term=total - compensation - rent if weighted else 0.0,
        rounding=rounding,
        total_loss=float(outcome.privacy_loss.sum()),
        objective=outcome.objective,
        lower_bound=outcome.lower_bound,
    )
    return CostFacts(
        paid=None if too_few(outcome.active) else total + (rounding or 0.0),
        parts=None if too_few(outcome.active) else parts,
        payers=int(np.count_nonzero(outcome.payments < 0.0)),
        incentive_error=incentive_error,
        spending_ceiling=ceiling,
        settled=None if settlement is None else settled_facts(settlement, outcome.active),
    )


def _privacy(outcome: Outcome, release: Release | None, menu: Menu | None) -> PrivacyFacts:
    losses = outcome.privacy_loss[outcome.privacy_loss > 0.0]
    finite = losses[losses < math.inf]
    levels = quantiles(finite, _LEVELS)
    enough = finite.size >= SMALLEST_CHART
    return PrivacyFacts(
        largest=_largest(outcome),
        unlimited=losses.size - finite.size,
        cap=outcome.market.max_privacy_loss,
        quantiles=levels,
        median=dict(levels).get(0.5),
        histogram=histogram(finite),
        curves=curves_of(outcome, menu),
        withheld=""
        if enough
        else f"Fewer than {SMALLEST_CHART} people were bought from, so a chart could show what one of them reported.",
        checked=_checked(release),
    )


def _largest(outcome: Outcome) -> float:
    """What nobody loses more than; where few people are behind it, the cap, or a coarse bound if there is none."""
    cap = outcome.market.max_privacy_loss
    if too_few(outcome.active) and cap is not None:
        return at_most(cap)
    return coarse(at_most(float(outcome.privacy_loss.max(initial=0.0))), outcome.active)


def _checked(release: Release | None) -> tuple[int, int, int] | None:
    """For how many people the promise was verified. That may tell how many delivered, so not if few did not."""
    if release is None or 0 < len(release.dropped_out) < SMALLEST_CHART:
        return None
    return release.check.people, release.check.people_in_fractions, release.check.people_mapped


def _groups(outcome: Outcome, groups: Groups | None) -> tuple[GroupRow, ...] | None:
    if groups is None and isinstance(outcome.market.prior, Grouped):
        groups = outcome.market.prior.labels
    return None if groups is None else group_rows(outcome, as_labels(groups, outcome.reports.size))


def _selection(outcome: Outcome, half_width: float) -> SelectionFacts | None:
    if too_few(outcome.active):
        return None
    variance = float(np.mean(outcome.market.stated_variance))
    return selection_facts(outcome.weights, outcome.reports, variance=variance, half_width=half_width)


def _comparison(outcome: Outcome, other: Outcome | Literal["compute", "omit"], level: float) -> ComparisonFacts:
    if too_few(outcome.active):
        return ComparisonFacts(settings=(), missing=_FEW_EITHER_WAY)
    here = _setting_facts(outcome, outcome.market.setting, level)
    if other == "omit":
        return ComparisonFacts(settings=(here,), missing="The other setting was not computed.")
    if other == "compute":
        setting: Literal["central", "local"] = "local" if outcome.market.setting == "central" else "central"
        try:
            other = _again(outcome, setting=setting)
        except HushbidError as problem:
            return ComparisonFacts(settings=(here,), missing=f"The {setting} setting cannot be computed: {problem}")
    if other.market.setting == outcome.market.setting or not np.array_equal(other.reports, outcome.reports):
        raise InputError("comparison must be the outcome of the other setting on the same reports.")
    settings = [here, _setting_facts(other, other.market.setting, level)]
    if other.market.max_privacy_loss is not None:
        free = _again(other, max_privacy_loss=None)
        settings.append(_setting_facts(free, f"{other.market.setting}, no cap", level))
    if any(too_few(one.bought_from) for one in settings):
        return ComparisonFacts(settings=(here,), missing=_FEW_EITHER_WAY)
    return ComparisonFacts(settings=tuple(settings), missing="")


def _again(outcome: Outcome, **changes: object) -> Outcome:
    changed: Market = replace(outcome.market, **changes)  # type: ignore[arg-type]
    return changed.acquire(outcome.reports, tie_key=outcome.tie_order)


def _cap(outcome: Outcome, level: float) -> CapFacts:
    curve = cap_curve(outcome)
    cap = outcome.market.max_privacy_loss
    if cap is None or too_few(outcome.active):
        return CapFacts(capped=None, uncapped=None, reached=0, curve=curve)
    free = _again(outcome, max_privacy_loss=None)
    return CapFacts(
        capped=_setting_facts(outcome, "with the cap", level),
        uncapped=_setting_facts(free, "without", level),
        reached=int(np.count_nonzero(free.privacy_loss > cap)),
        curve=curve,
    )


def _setting_facts(outcome: Outcome, name: str, level: float) -> SettingFacts:
    error = planned_error(outcome)
    return SettingFacts(
        name=name,
        bought_from=outcome.active,
        largest_loss=at_most(float(outcome.privacy_loss.max(initial=0.0))),
        standard_error=math.sqrt(outcome.mse),
        half_width=math.inf if error is None else error.half_width(level),
        total=outcome.total_payment,
        objective=outcome.objective,
    )
