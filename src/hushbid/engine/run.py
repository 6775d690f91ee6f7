"""One pricing run: an engine, the people in its table, and the passes over them."""

from collections.abc import Callable
from dataclasses import dataclass

from hushbid.engine.adapter import Engine, Reducer, Sum
from hushbid.engine.people import People


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Told before every pass over the rows."""

    number: int
    """Passes count from 1."""

    what: str
    """What the pass is for."""


@dataclass(slots=True, kw_only=True, eq=False)
class Run:
    """Counts passes and tells about them."""

    engine: Engine
    people: People
    window: int
    """At most so many people are expected in the window that goes to the driver."""

    tell: Callable[[Progress], object] | None
    passes: int = 0

    def reduce(self, what: str, kernel: Reducer[Sum], zero: Sum) -> Sum:
        """One pass."""
        self.starts(what)
        return self.engine.reduce(kernel, zero)

    def starts(self, what: str) -> None:
        """Count a pass and tell about it."""
        self.passes += 1
        if self.tell is not None:
            self.tell(Progress(number=self.passes, what=what))
