"""Populations in files, frames and clusters: read, priced and written, whatever their size."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hushbid.engine.people import Progress
    from hushbid.engine.pricing import Priced, Summary, price
    from hushbid.engine.releasing import release

__all__ = ["Priced", "Progress", "Summary", "price", "release"]


def __getattr__(name: str) -> Any:
    """The public names, loaded when they are first used."""
    if name in ("Priced", "Summary", "price"):
        from hushbid.engine import pricing

        return getattr(pricing, name)
    if name == "release":
        from hushbid.engine.releasing import release

        return release
    if name == "Progress":
        from hushbid.engine.people import Progress

        return Progress
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
