"""Populations in files, frames and clusters: read, priced and written, whatever their size.

In reading order:

- `pricing`: `price`, from a table to everybody's privacy loss and payment
- `checks`: what is refused before anybody is priced
- `opening`: from whatever holds a population to the engine that works on it
- `adapter`: what an engine is, two verbs over batches; `backends`: the engines
- `people`: from a batch of rows to bids and virtual costs, and what is wrong with them
- `passes`: the kernels of the solving passes of `hushbid.mechanism.summed`
- `solve_menu`, `solve_few`: the purchase for a hard budget from sums, and from the few people who matter
- `decisions`, `payouts`: the pass that takes people to the driver and the kernels of the writing pass, and what is
  paid in whole minor units
- `everybody`: all people of a table on the driver, to decide about them in memory
- `recording`: the record of a priced table, without its people in memory
- `delivered`: which columns hold what people delivered: a datum, a message, or answers to a survey
- `releasing`: exact sums of data for one estimate, or a survey's, and of whom it is asked
- `ids`: how many different ids there are, and how many of them took part in a pilot
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hushbid.engine.people import Progress
    from hushbid.engine.pricing import Priced, Summary, price
    from hushbid.engine.releasing import release

__all__ = ["Priced", "Progress", "Summary", "price", "release"]


_HOME = {"Priced": "pricing", "Progress": "people", "Summary": "pricing", "price": "pricing", "release": "releasing"}


def __getattr__(name: str) -> Any:
    """The public names, loaded when they are first used."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
