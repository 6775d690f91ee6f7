"""`Grouped`: different people, different priors, one object for a vector of bids."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

import numpy as np

from hushbid.common.arrays import (
    FloatArray,
    IndexArray,
    Numbers,
    Rng,
    as_floats,
    as_generator,
    refuse_rows,
)
from hushbid.errors import BidError, PriorError
from hushbid.priors.base import Prior
from hushbid.priors.inputs import no_nan, to_bids, to_draws, to_probabilities


class Grouped:
    """One prior per group and one group label per person; each row is priced by its own group's prior.

    It has the methods of a prior for vectors with one entry per label.

    >>> from hushbid.priors import Uniform
    >>> prior = Grouped({"young": Uniform(0, 1), "old": Uniform(1, 2)}, ["young", "old", "young"])
    >>> prior.virtual_cost([0.5, 1.5, 1.0])
    array([1., 2., 2.])
    """

    family: ClassVar[str] = "grouped"

    def __init__(self, priors: Mapping[str, Prior], labels: Iterable[str]) -> None:
        if not isinstance(priors, Mapping) or not priors:
            raise PriorError(f"priors must be a dict of at least one name and prior, got {priors!r}", field="priors")
        for name, prior in priors.items():
            if not isinstance(name, str) or not isinstance(prior, Prior):
                raise PriorError(
                    f"priors must map text to priors, but {name!r} is mapped to {type(prior).__name__}", field="priors"
                )
        if isinstance(labels, str):
            raise PriorError(f"labels must be one label per person, got the single text {labels!r}", field="labels")
        self._priors = dict(priors)
        codes = {name: code for code, name in enumerate(self._priors)}
        self._codes = np.array([codes.get(label, -1) for label in _plain_list(labels)], dtype=np.intp)
        known = ", ".join(map(repr, self._priors))
        refuse_rows(self._codes < 0, f"labels must be among {known}", field="labels", error=PriorError)
        rows = [np.flatnonzero(self._codes == code) for code in range(len(self._priors))]
        self._groups = tuple((name, self._priors[name], index) for name, index in zip(codes, rows, strict=True))

    @property
    def priors(self) -> dict[str, Prior]:
        """The prior of each group."""
        return dict(self._priors)

    @property
    def labels(self) -> tuple[str, ...]:
        """The group of each person."""
        names = list(self._priors)
        return tuple(names[code] for code in self._codes.tolist())

    @property
    def groups(self) -> tuple[tuple[str, Prior, IndexArray], ...]:
        """Name, prior and rows of every group that has people in it."""
        return tuple(group for group in self._groups if group[2].size)

    def prior_of(self, row: int) -> Prior:
        """Return the prior of the person in that row."""
        _, prior, _ = self._groups[int(self._codes[row])]
        return prior

    def __len__(self) -> int:
        return int(self._codes.size)

    @property
    def support(self) -> tuple[FloatArray, FloatArray]:
        """The low and the high end of every person's support."""
        return (self._per_row(lambda prior: prior.support[0]), self._per_row(lambda prior: prior.support[1]))

    @property
    def expectation(self) -> FloatArray:
        """Every person's expected cost."""
        return self._per_row(lambda prior: prior.expectation)

    @property
    def is_regular(self) -> bool:
        """Whether every group's prior is regular."""
        return all(prior.is_regular for _, prior, _ in self.groups)

    @property
    def is_linear(self) -> bool:
        """Whether every group's virtual cost is affine, all with the same slope."""
        return self.slope is not None

    @property
    def slope(self) -> float | None:
        """The common slope if every group's virtual cost is affine, else None."""
        slopes = {prior.slope for _, prior, _ in self.groups}
        return slopes.pop() if len(slopes) == 1 else None

    def cdf(self, c: Numbers) -> FloatArray:
        """Return the probability that each person's cost is at most their entry of ``c``."""
        return self._each_row(lambda prior, part: prior.cdf(part), no_nan(c, "costs"))

    def pdf(self, c: Numbers) -> FloatArray:
        """Return each person's density at their entry of ``c``."""
        return self._each_row(lambda prior, part: prior.pdf(part), no_nan(c, "costs"))

    def quantile(self, q: Numbers) -> FloatArray:
        """Return each person's quantile at their entry of ``q``."""
        return self._each_row(lambda prior, part: prior.quantile(part), to_probabilities(q))

    def sample(self, n: int | None = None, *, rng: Rng) -> FloatArray:
        """Return one cost per person; ``n``, if given, must be the number of people, and ``rng`` may be a seed."""
        generator = as_generator(rng)
        if to_draws(len(self) if n is None else n) != len(self):
            raise PriorError(f"n must be the number of labels, {len(self)}, got n={n}", field="n")
        draws = np.empty(len(self))
        for _, prior, rows in self.groups:
            draws[rows] = prior.sample(rows.size, rng=generator)
        return draws

    def raw_virtual_cost(self, bids: Numbers) -> FloatArray:
        """Return each bid's virtual cost under its own prior, before ironing."""
        return self._each_row(lambda prior, part: prior.raw_virtual_cost(part), self._bids(bids))

    def virtual_cost(self, bids: Numbers) -> FloatArray:
        """Return each bid's virtual cost under its own prior."""
        return self._each_row(lambda prior, part: prior.virtual_cost(part), self._bids(bids))

    def virtual_cost_inverse(self, x: Numbers) -> FloatArray:
        """Return each person's largest cost with a virtual cost of at most their entry of ``x``."""
        return self._each_row(lambda prior, part: prior.virtual_cost_inverse(part), no_nan(x, "virtual costs"))

    def to_dict(self) -> dict[str, Any]:
        """Return the priors and labels as a plain dict that `prior_from_dict` reads back."""
        priors = {name: prior.to_dict() for name, prior in self._priors.items()}
        return {"family": self.family, "priors": priors, "labels": list(self.labels)}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Grouped):
            return NotImplemented
        return self._priors == other._priors and self.labels == other.labels

    def __hash__(self) -> int:
        return hash((tuple(self._priors), self._codes.tobytes()))

    def __repr__(self) -> str:
        groups = ", ".join(f"{name!r}: {prior!r} × {rows.size}" for name, prior, rows in self._groups)
        return f"Grouped({{{groups}}})"

    def _per_row(self, number: Callable[[Prior], float]) -> FloatArray:
        return np.array([number(prior) for prior in self._priors.values()])[self._codes]

    def _bids(self, bids: Numbers) -> FloatArray:
        array = as_floats(bids, "bids", BidError)
        self._check_length(array)
        smallest = self._per_row(lambda prior: prior.smallest_bid)
        return to_bids(array, smallest, lambda row: self.prior_of(row).support)

    def _each_row(self, method: Callable[[Prior, FloatArray], FloatArray], array: FloatArray) -> FloatArray:
        self._check_length(array)
        result = np.empty(len(self))
        for _, prior, rows in self.groups:
            result[rows] = method(prior, array[rows])
        return result

    def _check_length(self, array: FloatArray) -> None:
        if array.shape != (len(self),):
            raise BidError(f"there must be one entry per label, {len(self)} in all, got shape {array.shape}")


def _plain_list(labels: Iterable[str]) -> list[Any]:
    if not isinstance(labels, Iterable):
        raise PriorError(f"labels must be a vector of names, got {labels!r}", field="labels")
    if isinstance(labels, np.ma.MaskedArray) and np.ma.is_masked(labels):
        masked = np.ma.getmaskarray(labels)
        refuse_rows(masked, "labels must be one label per person", end="masked", field="labels", error=PriorError)
    array = np.asarray(labels if hasattr(labels, "__array__") else list(labels), dtype=object)
    if array.ndim != 1:
        raise PriorError(f"labels must be a vector of names, got shape {array.shape}", field="labels")
    return list(array.tolist())
