"""`Mixture`: several continuous priors, each with its weight; usually irregular, hence ironed.

With component k's weight w_k, F = Σ w_k F_k and f = Σ w_k f_k, so the markup is

    F/f = Σ_k (w_k f_k / f)·(F_k/f_k),

an average of the components' markups. Where a component has (almost) no density left but mass below, its term is
w_k F_k / f instead. Both are computed from logarithms of densities: deep in a tail nothing underflows.
"""

from collections.abc import Hashable, Iterable
from typing import Any, ClassVar

import numpy as np

from hushbid.common.arrays import FloatArray, Numbers, as_floats, refuse_rows
from hushbid.errors import PriorError
from hushbid.priors.base import Prior, number_text
from hushbid.priors.continuous import ContinuousPrior


class Mixture(ContinuousPrior):
    """With probability proportional to its weight, a cost is drawn from each component.

    >>> from hushbid.priors import Uniform
    >>> two_kinds = Mixture([Uniform(0, 1), Uniform(2, 3)], [0.3, 0.7])
    >>> two_kinds.is_regular
    False
    """

    family: ClassVar[str] = "mixture"

    def __init__(self, components: Iterable[Prior], weights: Numbers) -> None:
        kept = tuple(components)
        shares = as_floats(weights, "weights", PriorError)
        if not kept:
            raise PriorError("components must be at least one prior, got none", field="components")
        for k, component in enumerate(kept):
            if not isinstance(component, ContinuousPrior):
                raise PriorError(
                    f"components must be priors with a density, but component {k} is {component!r}", field="components"
                )
        if shares.shape != (len(kept),):
            raise PriorError(
                f"weights must be one number per component, got shape {shares.shape} for {len(kept)} components",
                field="weights",
            )
        bad = ~((shares > 0.0) & (shares < np.inf))
        refuse_rows(bad, "weights must be finite numbers above 0", field="weights", error=PriorError)
        self._components: tuple[ContinuousPrior, ...] = kept  # type: ignore[assignment]
        self._weights = tuple(shares.tolist())
        self._shares = tuple((shares / np.sum(shares)).tolist())

    @property
    def components(self) -> tuple[ContinuousPrior, ...]:
        """The components."""
        return self._components

    @property
    def weights(self) -> tuple[float, ...]:
        """The weights as given (they need not sum to one)."""
        return self._weights

    @property
    def support(self) -> tuple[float, float]:
        """The smallest interval that holds every component's support."""
        return (min(p.support[0] for p in self._components), max(p.support[1] for p in self._components))

    @property
    def expectation(self) -> float:
        return float(sum(w * p.expectation for w, p in zip(self._shares, self._components, strict=True)))

    def to_dict(self) -> dict[str, Any]:
        components = [component.to_dict() for component in self._components]
        return {"family": self.family, "components": components, "weights": list(self._weights)}

    def to_text(self) -> str:
        """Return the prior as a text that `parse_prior` reads back: ``mixture:0.3*uniform:0,1+0.7*uniform:2,3``."""
        texts = [p.to_text() for p in self._components]
        texts = [f"({text})" if "+" in text or text.count(":") > 1 else text for text in texts]
        return f"{self.family}:" + "+".join(f"{number_text(w)}*{t}" for w, t in zip(self._weights, texts, strict=True))

    def _identity(self) -> Hashable:
        return self._components, self._weights

    def __repr__(self) -> str:
        weights = ", ".join(number_text(weight) for weight in self._weights)
        return f"Mixture([{', '.join(map(repr, self._components))}], weights=[{weights}])"

    # -- densities ----------------------------------------------------------------------------------------------------

    def _cdf(self, c: FloatArray) -> FloatArray:
        parts = [w * p._cdf_everywhere(c) for w, p in zip(self._shares, self._components, strict=True)]
        return np.asarray(np.sum(parts, axis=0))

    def _survival(self, c: FloatArray) -> FloatArray:
        parts = [w * p._survival_everywhere(c) for w, p in zip(self._shares, self._components, strict=True)]
        return np.asarray(np.sum(parts, axis=0))

    def _log_pdf(self, c: FloatArray) -> FloatArray:
        return _log_sum(self._log_densities(c))

    def _log_densities(self, c: FloatArray) -> list[FloatArray]:
        """Return log(w_k f_k); at a component's start its density counts only from just above: f has one value."""
        logs = []
        for share, component in zip(self._shares, self._components, strict=True):
            start = component.support[0]
            starting = (c == start) & (start > self.support[0])
            logs.append(np.where(starting, -np.inf, np.log(share) + component._log_pdf_everywhere(c)))
        return logs

    def _markup(self, c: FloatArray) -> FloatArray:
        logs = self._log_densities(c)
        total = _log_sum(logs)
        markup = np.zeros_like(c)
        for log, share, component in zip(logs, self._shares, self._components, strict=True):
            low, high = component.support
            mass = component._cdf_everywhere(c)
            # F/f is the components' F_k/f_k averaged with weights w_k f_k/f, or Σ w_k F_k over f
            averaged = np.exp(log - total) * component._markup(np.clip(c, low, min(high, np.finfo(np.float64).max)))
            # far up, the component's markup may overflow where its weight in the average vanishes
            below = np.where(mass > 0.0, np.exp(np.log(share * mass) - total), 0.0)
            markup += np.where((mass > 0.1) | (log == -np.inf), below, averaged)
        return np.where((c <= self.support[0]) | (total == np.inf), 0.0, markup)

    def _grid(self) -> FloatArray:
        # densities jump where components begin and end
        edges = np.array([end for component in self._components for end in component.support if end < np.inf])
        points = [component._grid() for component in self._components]
        points += [edges, np.nextafter(edges, -np.inf), np.nextafter(edges, np.inf)]
        low, high = self.support
        merged = np.unique(np.concatenate(points))
        return np.asarray(merged[(merged >= low) & (merged <= high)])

    @property
    def _most_branches(self) -> int:
        fewest = super()._most_branches
        return fewest + sum(component._most_branches - fewest for component in self._components)

    @property
    def _mass_ends(self) -> tuple[float, ...]:
        return tuple(end for component in self._components for end in component._mass_ends)

    def _sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        kinds = rng.choice(len(self._components), size=n, p=self._shares)
        draws = np.empty(n)
        for k, component in enumerate(self._components):
            rows = np.flatnonzero(kinds == k)
            draws[rows] = component.sample(rows.size, rng=rng)
        return draws


def _log_sum(logs: list[FloatArray]) -> FloatArray:
    """Return log Σ exp, which may be -inf or inf."""
    total = logs[0]
    for log in logs[1:]:
        total = np.logaddexp(total, log)
    return total
