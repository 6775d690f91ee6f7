"""Buying from people: in files, arrays, frames and clusters, for a market or a campaign file, to what is recorded.

    purchase = buy(frame, market)                                   # pandas, Polars, anything that speaks Arrow
    purchase = run_campaign("sleep.toml")                           # files that it names
    purchase = run_campaign("sleep.toml", bids=polars.scan_parquet("people.parquet"))

The chain of a purchase is `Campaign` (what is wanted) → `Decision` (what each person is paid for which loss) →
`Released` (the one estimate) → `Purchase`. The files:

- `spec`: what a campaign is, every field once
- `stated`: what a file, options or Python state, and where
- `reading`: that compared with it; every problem at once
- `terms`: a campaign that can be run
- `drafting`: a campaign file with a comment for each field
- `people`: who bid and what they delivered, read
- `deciding`: the market is run in memory, and money rounded
- `on_engine`: the same where the people are
- `releasing`: the one estimate, drawn once
- `notices`: what pages say above everything, and how records note it
- `telling`: figures and sentences about decisions, estimates and costs; the spending limit
- `results`: what a purchase came to
- `writing`: its files
- `buying`: the whole way
- `by_stratum`: the whole way for each stratum
- `recorded`: the estimate and the report page from a record
- `comparing`: two campaigns side by side
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
