"""Options that say how a population is read, for the commands that price one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import click

if TYPE_CHECKING:
    from hushbid.campaign.people import Reading


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """How a population is read, as the command line states it."""

    engine: str
    spark_master: str | None
    on_bad_rows: Literal["fail", "drop"]
    check_ids: Literal["exact", "off"]

    def chosen(self, bids: str) -> "Reading":
        """How a file is read: by which engine, ``"memory"`` if by none."""
        from hushbid.campaign.people import Reading
        from hushbid.engine.opening import choose

        if self.spark_master is not None and self.engine not in ("auto", "spark"):
            raise click.UsageError(f"--spark-master goes with --engine spark, not with --engine {self.engine}.")
        engine = choose(bids, self.engine, master=self.spark_master)
        return Reading(engine=engine, on_bad_rows=self.on_bad_rows, check_ids=self.check_ids)


def engine_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command, which gets them as one argument ``how``."""

    def wrapped(**values: Any) -> Any:
        taken = {name: values.pop(name) for name in EngineOptions.__slots__}
        return function(how=EngineOptions(**taken), **values)

    wrapped.__doc__, wrapped.__name__ = function.__doc__, function.__name__
    wrapped.__click_params__ = getattr(function, "__click_params__", [])  # type: ignore[attr-defined]
    for option in (
        click.option(
            "--check-ids",
            type=click.Choice(["exact", "off"]),
            default="exact",
            show_default=True,
            help="Make sure that nobody is there twice.",
        ),
        click.option(
            "--on-bad-rows",
            type=click.Choice(["fail", "drop"]),
            default="fail",
            show_default=True,
            help="What to do about bids that cannot be priced: stop, naming them, or leave them out.",
        ),
        click.option("--spark-master", metavar="URL", help="Start Spark there: local[4], spark://host:7077, yarn, ..."),
        click.option(
            "--engine",
            type=click.Choice(["auto", "memory", "polars", "duckdb", "spark"]),
            default="auto",
            show_default=True,
            help="What reads the bids: memory for small files, otherwise in batches; auto goes by size.",
        ),
    ):
        wrapped = option(wrapped)
    return wrapped
