"""Buying from people: in files, arrays, frames and clusters, for a market or a campaign file, to what is recorded.

    purchase = buy(frame, market)                                   # pandas, Polars, anything that speaks Arrow
    purchase = run_campaign("sleep.toml")                           # files that it names
    purchase = run_campaign("sleep.toml", bids=polars.scan_parquet("people.parquet"))

The files, in the order in which a purchase goes through them: ``spec`` is what a campaign is, every field once,
``reading`` compares with it what a file, options or Python state and names every problem at once, ``terms`` makes of
it a campaign that can be run, ``drafting`` writes such a file with a comment for each field, ``people`` reads who bid
and what they delivered, ``deciding`` runs the market in memory and rounds the money, ``on_engine`` does so where the
people are, ``spending`` refuses to pay more than a spending limit, ``releasing`` draws the one estimate, also from a
record, and ``telling`` says what it came to, ``conducting`` is the whole way: read, decide, release, record, report,
``buying`` the two ways to start it; ``by_stratum`` goes it for each stratum; ``results`` are what it came to, and
``writing`` puts them into files. ``notices`` are what a page says above everything. ``reporting`` makes the report
page again from a record. ``pricing`` stops after the decisions. ``sides`` reads one of two campaigns that are
compared, and ``comparing`` sets both side by side.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hushbid.campaign.buying import buy, run_campaign
    from hushbid.campaign.by_stratum import run_by_stratum
    from hushbid.campaign.people import Reading
    from hushbid.campaign.results import Purchase, PurchaseByStratum
    from hushbid.campaign.terms import Campaign, read_campaign

__all__ = [
    "Campaign",
    "Purchase",
    "PurchaseByStratum",
    "Reading",
    "buy",
    "read_campaign",
    "run_by_stratum",
    "run_campaign",
]
_PLACES = {
    "Campaign": "terms",
    "Purchase": "results",
    "PurchaseByStratum": "results",
    "Reading": "people",
    "buy": "buying",
    "read_campaign": "terms",
    "run_by_stratum": "by_stratum",
    "run_campaign": "buying",
}


def __getattr__(name: str) -> Any:
    """The public names, loaded when they are first used: a command needs few of them."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
