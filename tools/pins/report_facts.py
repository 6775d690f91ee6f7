"""Facts that nobody found out, to lead a report's templates through all their branches.

Every attribute, item, call and comparison has an answer that is drawn from its name and a seed, so that two versions of
a template which ask the same say the same.
"""

import hashlib
from collections.abc import Iterator
from typing import Any

_NUMBERS = (0, 1, 2, 7)
_MISSING = (
    *("facts", "strata", "selection", "settled", "paid", "cap", "objective", "value", "dropped_out", "parts", "power"),
    *(
        "payments",
        "delivered",
        "fees",
        "linear",
        "any_shape",
        "capped",
        "histogram",
        "median",
        "due",
        "conduct",
        "left",
    ),
    "weight_cost_correlation",
)
_TRIPLES = ("checked", "interval()")


class Fact(int):
    """A number that also answers as any object."""

    _path: str
    _seed: int

    @staticmethod
    def at(path: str, seed: int) -> "Fact | None":
        """The fact of this name, or None where templates ask for that."""
        name = path.rpartition(".")[2]
        return None if name in _MISSING and _drawn(path, seed, 3) == 0 else Fact.sure(path, seed)

    @staticmethod
    def sure(path: str, seed: int) -> "Fact":
        """The fact of this name, which there is."""
        found = Fact(_NUMBERS[_drawn(f"{path}#", seed, len(_NUMBERS))])
        found._path, found._seed = path, seed
        return found

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return Fact.at(f"{self._path}.{name}", self._seed)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return list(self)[key]
        return Fact.sure(f"{self._path}[{key}]", self._seed)

    def __call__(self, *_: Any, **__: Any) -> "Fact":
        return Fact.sure(f"{self._path}()", self._seed)

    def __iter__(self) -> Iterator[Any]:
        count = 3 if self._path.endswith(_TRIPLES) else 2
        return iter([Fact.sure(f"{self._path}[{place}]", self._seed) for place in range(count)])

    def __len__(self) -> int:
        return int(self)

    def __eq__(self, other: object) -> bool:
        return _drawn(f"{self._path}={other}", self._seed, 2) == 0 if isinstance(other, str) else int(self) == other

    def __hash__(self) -> int:
        return hash(self._path)

    def __truediv__(self, other: Any) -> "Fact":
        return Fact.sure(f"{self._path}/{other}", self._seed)

    def __str__(self) -> str:
        return f"⟨{self._path}⟩"

    __repr__ = __str__


def _drawn(name: str, seed: int, below: int) -> int:
    return hashlib.sha256(f"{seed} {name}".encode()).digest()[0] % below
