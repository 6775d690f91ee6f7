"""Large files from the command line: whether to price out of core, and doing so from file to file."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from hushbid.engine.pricing import Priced, price
from hushbid.engine.run import Progress

LARGE = 256 << 20
"""A Parquet file or folder of at least so many bytes is priced in batches unless told otherwise."""


def is_large(path: str | Path, engine: str = "auto") -> bool:
    """Whether a population should be priced in batches: always on a named engine, by size if it is ``"auto"``."""
    if engine != "auto":
        return engine != "memory"
    place = Path(path)
    if place.is_dir():  # only an engine reads folders
        return True
    return place.suffix.lower() in (".parquet", ".pq") and place.is_file() and place.stat().st_size >= LARGE


def price_file(
    reports: str | Path,
    market: Any,
    out: str | Path,
    *,
    engine: str = "auto",
    report: str = "sensitivity",
    id: str | None = "id",
    group: str | None = None,
    variance: str | None = None,
    on_bad_rows: Literal["fail", "drop"] = "fail",
    check_ids: Literal["exact", "off"] = "off",
    force: bool = False,
    progress: Callable[[Progress], object] | None = None,
) -> Priced:
    """Price a Parquet file or folder into another one; what is written is complete or not there."""
    priced = price(
        reports,
        market,
        report=report,
        id=id,
        group=group,
        variance=variance,
        engine=engine,
        on_bad_rows=on_bad_rows,
        check_ids=check_ids,
        progress=progress,
    )
    if progress is not None:
        progress(Progress(number=priced.summary.passes + 1, what="pricing and writing"))
    priced.write_parquet(out, force=force)
    return priced
