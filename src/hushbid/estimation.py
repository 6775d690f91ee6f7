"""The best estimate of a mean when everybody's privacy loss is given; useful without any market.

``n`` people hold independent data in a public range of width 1, with common mean θ and variances ``V_i``. Person i
allows a differential-privacy loss of at most ``ε_i``. Estimators are linear with Laplace noise and weights ``Σ w = 1``:

    central   Σ w_i x_i + Laplace(1/η),        private if η w_i ≤ ε_i for all i   ([F] Lemma 2),
              MSE = 2/η² + Σ V_i w_i²;
    local     Σ w_i (x_i + Laplace(1/ε_i)),    private as sent,
              MSE = Σ w_i² (V_i + 2/ε_i²).

Where the datum is a yes (1) or no (0), a device may send it by *randomised response* instead: the truth with odds
``e^ε : 1``, else the opposite. Made unbiased, what it sends has a variance of at most ``coth²(ε/2)/4``, whatever the
share of yes:

    response  Σ w_i (½ + coth(ε_i/2)·(b_i − ½)),   MSE ≤ Σ w_i² coth²(ε_i/2)/4.

**Best weights.** Local: ``w_i ∝ 1/(V_i + 2/ε_i²)``; of responses, ``w_i ∝ tanh²(ε_i/2)``.

Central: with ``v = η w`` minimise ``(2 + Σ V_i v_i²)/(Σ v_i)²``
over ``0 ≤ v_i ≤ ε_i``. The optimum caps what is used, ``v_i = min(ε_i, κ/V_i)`` with ``κ Σ v = 2 + Σ V v²``: people
above the cap get more privacy than they asked for, and the estimate is better for it. Sorted by ``V_i ε_i``, the terms
of capped people cancel from that equation, so ``κ = (2 + Σ V ε²)/(Σ ε)``, both sums over the k people below the cap,
and one pass finds k.

**Near-optimal weights** are [F]'s constructions, kept for comparison: central, a common cap ``1/√(k*+1)`` (proof of
Thm 1); local, ``w_i ∝ ε_i²`` (Thm 2). **Minimax bounds** are those theorems with explicit constants
(docs/concepts/proofs.md derives them).

**Contrasts.** With public strata ``g(i)`` of unknown means ``θ_g`` the estimate of ``Σ ℓ_g θ_g`` is
``Σ ω_i x_i + Laplace(1/η)`` with ``Σ_{i in g} ω_i = ℓ_g``: one noise for all strata. The best one caps what is used in
each stratum, ``v_i = η|ω_i| = min(ε_i, κ_g/V_i)`` with ``Σ_{i in g} v_i = |ℓ_g| η``; the error falls in ``η`` up to the
root of ``η Σ |ℓ_g| κ_g = 2 + Σ V v²``, or up to ``min_g Σ_{i in g} ε_i/|ℓ_g|``, the most that all strata can give, if
that is less. Between people's caps the equation is linear in ``η``.

An infinite ``ε_i`` is allowed: it promises nothing. [F] = Fallah, Makhdoumi, Malekian and Ozdaglar, EC 2022,
arXiv 2201.03968.
"""

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from hushbid.common.arrays import BoolArray, FloatArray, IndexArray, as_floats, as_losses, as_variance, first_row
from hushbid.errors import InputError, NothingDelivered

Setting = Literal["central", "local"]
"""Where noise is added: once by a trusted platform, or on each person's device."""

WORST_VARIANCE = 0.25
"""No distribution on a range of width 1 has a larger variance."""

_WIDEST = 1e50


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Weights:
    """Weights of a linear estimator and what they deliver."""

    weights: FloatArray = field(repr=False)
    """Each person's share of the estimate; nonnegative, sums to 1."""

    delivered: FloatArray = field(repr=False)
    """The privacy loss each person really incurs, at most the allowed one, and smaller for those above the cap."""

    mse: float
    """Mean squared error of the estimate, in units of the squared range."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Strata:
    """Public strata, and the combination of their means that is wanted: ``Σ weights[g]·(mean of stratum g)``.

    Shares that sum to 1 give a post-stratified mean, ``(1, -1)`` the difference of two groups. Who is in which stratum
    must be known: strata that people declare themselves would not be truthful.
    """

    codes: IndexArray = field(repr=False)
    """Everybody's stratum: 0, 1, 2, …"""

    weights: FloatArray
    """Each stratum's ``ℓ_g``, of any sign, none of them 0."""

    names: tuple[str, ...] = ()
    """What the strata are called, for messages; by default their numbers."""

    def __post_init__(self) -> None:
        weights = as_floats(self.weights, "weights")
        if weights.ndim != 1 or weights.size == 0:
            raise InputError("weights must be one number per stratum, at least one.", field="weights")
        sizes = np.abs(weights)
        if not (np.isfinite(weights) & (sizes > 0.0)).all() or sizes.max() > _WIDEST * sizes.min():
            told = f"weights must be finite, not 0 and within a factor of {_WIDEST:g}, got {weights.tolist()}."
            raise InputError(told, field="weights")
        codes = np.asarray(self.codes)
        if codes.ndim != 1 or codes.dtype.kind not in "iu":
            raise InputError("codes must be one whole number per person, her stratum.", field="codes")
        bad = (codes < 0) | (codes >= weights.size)
        if bad.any():
            row = first_row(bad)
            told = f"codes must be from 0 to {weights.size - 1}, one per stratum, but row {row} is {codes[row]}."
            raise InputError(told, field="codes", row=row)
        if self.names and len(self.names) != weights.size:
            told = f"names must be one per stratum ({weights.size}), got {len(self.names)}."
            raise InputError(told, field="names")
        object.__setattr__(self, "codes", codes.astype(np.intp, copy=False))
        object.__setattr__(self, "weights", weights.copy())
        object.__setattr__(self, "names", tuple(self.names))

    @property
    def count(self) -> int:
        """How many strata there are."""
        return self.weights.size

    def label(self, stratum: int) -> str:
        """What a stratum is called in a message."""
        return repr(self.names[stratum]) if self.names else str(stratum)

    def of(self, rows: IndexArray | BoolArray) -> "Strata":
        """The same strata with only these people in them."""
        return Strata(codes=self.codes[rows], weights=self.weights, names=self.names)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Contrast:
    """Weights of a linear estimator of a combination of stratum means, and what they deliver."""

    weights: FloatArray = field(repr=False)
    """Each person's ``ω``: with the sign of her stratum's weight, and adding up to it over the stratum."""

    delivered: FloatArray = field(repr=False)
    """The privacy loss each person really incurs, ``η·|ω|``: at most the allowed one."""

    strength: float
    """``η``, one over the scale of the noise on a range of width 1; infinite without noise."""

    mse: float
    """Mean squared error of the estimate, in units of the squared range."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MinimaxBounds:
    """Bounds on the worst-case mean squared error of the best private estimator, range of width 1."""

    lower: float
    """No private estimator has a smaller worst-case error ([F] Thm 1 and 2, with explicit constants)."""

    upper: float
    """What the better of the best linear estimator and the constant midpoint guarantees for every distribution."""


def best_weights(
    privacy_loss: ArrayLike, *, setting: Setting, variance: ArrayLike = WORST_VARIANCE, response: bool = False
) -> Weights:
    """The linear estimator of least mean squared error for the given privacy losses.

    ``variance`` is one number or one per person, for a range of width 1, by default the largest possible. With
    ``response``, in the local setting only, people answer yes or no by randomised response; then it does not matter.

        >>> best_weights([1.0, 1.0, 50.0], setting="central").delivered
        array([1., 1., 5.])
    """
    allowed, spread = as_losses(privacy_loss), _spread(variance, np.size(privacy_loss))
    if is_central(setting):
        _refuse_central(response)
        return _central_weights(_capped(allowed, spread), spread)
    if response:
        with np.errstate(over="ignore"):
            truth = np.tanh(0.5 * allowed)
        weights = _shares(np.square(truth / truth.max()))
        return Weights(weights=weights, delivered=allowed, mse=_response_mse(weights, allowed))
    weights = _shares(_precisions(allowed, spread))
    return Weights(weights=weights, delivered=allowed, mse=_local_mse(weights, allowed, spread))


def best_contrast(privacy_loss: ArrayLike, *, strata: Strata, variance: ArrayLike) -> Contrast:
    """The central estimator of a combination of stratum means with the least error for the given privacy losses.

    Used when people bought from do not deliver: the others' losses are theirs whatever happens, weights and noise are
    chosen anew. ``variance`` is positive, one number or one per person, for a range of width 1.

        >>> strata = Strata(codes=[0, 0, 1], weights=[1.0, -1.0])
        >>> best_contrast([1.0, 3.0, 2.0], strata=strata, variance=0.25).weights
        array([ 0.5,  0.5, -1. ])
    """
    allowed, spread = as_losses(privacy_loss), _spread(variance, np.size(privacy_loss))
    if strata.codes.shape != allowed.shape:
        told = f"codes must have one entry per person ({allowed.size}), got shape {strata.codes.shape}."
        raise InputError(told, field="codes")
    fills = [_Fill.of(allowed, spread, strata, stratum) for stratum in range(strata.count)]
    strength = _best_strength(fills)
    share = np.empty(allowed.size)  # v/η, which stays finite without noise
    for fill in fills:
        share[fill.rows] = fill.shares(strength, allowed[fill.rows], spread[fill.rows])
    noise = 0.0 if strength == math.inf else (math.sqrt(2.0) / strength) ** 2
    delivered = np.where(share > 0.0, math.inf, 0.0) if strength == math.inf else share * strength
    return Contrast(
        weights=np.sign(strata.weights)[strata.codes] * share,
        delivered=np.minimum(delivered, allowed),
        strength=strength,
        mse=noise + float(np.sum(spread * np.square(share))),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Fill:
    """How a stratum gives ``|ℓ| η``: who is at her own loss, from the least ``V ε`` on, and who at the common cap."""

    rows: IndexArray
    size: float
    """``|ℓ|``."""

    used: FloatArray
    """``E``: the losses of the first 0, 1, 2, … people, infinite ones left out."""

    squares: FloatArray
    """``D = Σ V ε²`` of those."""

    precision: FloatArray
    """``U = Σ 1/V`` of everybody else."""

    turns: FloatArray
    """The ``η`` at which the next of them comes to her own loss; the last is the most there is."""

    @classmethod
    def of(cls, allowed: FloatArray, spread: FloatArray, strata: Strata, stratum: int) -> "_Fill":
        rows = np.flatnonzero(strata.codes == stratum)
        if not (allowed[rows] > 0.0).any():
            raise NothingDelivered(f"Nobody of stratum {strata.label(stratum)} is left: its mean cannot be estimated.")
        order = np.argsort(spread[rows] * allowed[rows], kind="stable")
        loss, variance = allowed[rows][order], spread[rows][order]
        finite = np.where(loss < math.inf, loss, 0.0)
        used = np.append(0.0, np.cumsum(finite))
        squares = np.append(0.0, np.cumsum(variance * finite * finite))
        precision = np.append(np.cumsum((1.0 / variance)[::-1])[::-1], 0.0)
        size = abs(float(strata.weights[stratum]))
        # λη = E + κU, at κ = Vε of the next
        turns = (used[:-1] + variance * loss * precision[:-1]) / size
        return cls(rows, size, used, squares, precision, turns)

    def terms(self, strength: float) -> tuple[float, float, float]:
        """Of ``slope·η − above``, to be 0 in sum: both, where so many are at their own loss as at this ``η``."""
        k = min(int(np.searchsorted(self.turns, strength, side="right")), self.turns.size - 1)
        used, precision = float(self.used[k]), float(self.precision[k])
        return self.size * used / precision, float(self.squares[k]) + used * used / precision, k

    def shares(self, strength: float, allowed: FloatArray, spread: FloatArray) -> FloatArray:
        """``v/η`` of everybody in the stratum."""
        if strength == math.inf:
            endless = np.where(allowed == math.inf, 1.0 / spread, 0.0)
            return np.asarray(self.size * endless / endless.sum())
        k = int(self.terms(strength)[2])
        cap = max(self.size * strength - float(self.used[k]), 0.0) / float(self.precision[k])
        share = np.minimum(allowed, cap / spread)
        return np.asarray(self.size * share / share.sum())


def _best_strength(fills: list[_Fill]) -> float:
    """``η``: the root of a piecewise linear, increasing function, or the most that every stratum can give."""
    most = min(float(fill.turns[-1]) for fill in fills)
    turns = np.unique(np.concatenate([fill.turns for fill in fills]))
    turns = turns[turns <= most]
    low, high = 0, turns.size  # the last turn with a negative value, by halving
    while low < high:
        middle = (low + high) // 2
        eta = float(turns[middle])
        slope, above, _ = (sum(part) for part in zip(*(fill.terms(eta) for fill in fills), strict=True))
        value = slope * eta - above - 2.0 if eta < math.inf else 1.0
        low, high = (middle + 1, high) if value < 0.0 else (low, middle)
    start = float(turns[low - 1]) if low else 0.0
    slope, above, _ = (sum(part) for part in zip(*(fill.terms(start) for fill in fills), strict=True))
    return min((above + 2.0) / slope, most) if slope > 0.0 else most


def near_optimal_weights(privacy_loss: ArrayLike, *, setting: Setting, variance: ArrayLike) -> Weights:
    """[F]'s minimax constructions, which do not look at the variance; ``variance`` only prices them.

    Central: everybody's loss is capped at ``1/√(k*+1)``, where k* is the largest k such that the (k+1)-th largest loss
    exceeds ``1/√(k+1)``. Local: weights proportional to the squared loss.
    """
    allowed, spread = as_losses(privacy_loss), _spread(variance, np.size(privacy_loss))
    if is_central(setting):
        # k*: the last place at which the loss exceeds 1/√place
        descending = np.sort(allowed)[::-1]
        caps = 1.0 / np.sqrt(np.arange(1, allowed.size + 1))
        above = np.flatnonzero(descending > caps)
        cap = caps[above[-1]] if above.size else math.inf
        return _central_weights(np.minimum(allowed, cap), spread)
    largest = allowed.max()
    weights = _shares(allowed) if largest == math.inf else _shares(np.square(allowed / largest))
    return Weights(weights=weights, delivered=allowed, mse=_local_mse(weights, allowed, spread))


def minimax_bounds(privacy_loss: ArrayLike, setting: Setting) -> MinimaxBounds:
    """How well any private estimator can do against the worst distribution on a range of width 1.

    Losses above 1 count as 1 in the lower bound, which keeps it valid. The bounds are within a factor O(log n) of each
    other in the central setting and within a constant in the local one.
    """
    allowed = as_losses(privacy_loss, some_positive=False)
    counted = np.sort(np.minimum(allowed, 1.0))
    if is_central(setting):
        # B for every k: the k smallest losses, and the other n − k people
        fewer = np.concatenate([[0.0], np.cumsum(counted)])
        others = np.arange(allowed.size, -1, -1)
        lower = _le_cam(float(np.min(4.0 * fewer + np.sqrt(1.5 * others))))
    else:
        lower = _le_cam(2.0 * math.sqrt(float(np.sum(np.square(counted)))))
    upper = WORST_VARIANCE
    if allowed.max() > 0:
        upper = min(upper, best_weights(allowed, setting=setting, variance=WORST_VARIANCE).mse)
    return MinimaxBounds(lower=lower, upper=upper)


def mse_of(
    weights: ArrayLike,
    privacy_loss: ArrayLike,
    *,
    setting: Setting,
    variance: ArrayLike,
    strata: Strata | None = None,
    response: bool = False,
) -> float:
    """Mean squared error of given weights with the least noise that ``privacy_loss`` allows (width-1 units).

    Weights sum to 1, or with ``strata`` to the weight of each stratum, whose sign they all have. With ``response``, in
    the local setting only, of answers by randomised response, whatever the variance.
    """
    allowed = as_losses(privacy_loss)
    shares = as_floats(weights, "weights")
    if shares.shape != allowed.shape:
        told = f"weights must have one entry per person ({allowed.size}), got shape {shares.shape}."
        raise InputError(told, field="weights")
    if strata is not None:
        shares = _sizes(shares, strata)
    elif not (shares >= 0).all() or abs(shares.sum() - 1.0) > 1e-9:
        told = f"weights must be nonnegative and sum to 1, got a sum of {float(shares.sum())}."
        raise InputError(told, field="weights")
    spread = _spread(variance, allowed.size)
    if not is_central(setting):
        return _response_mse(shares, allowed) if response else _local_mse(shares, allowed, spread)
    _refuse_central(response)
    used = shares > 0
    with np.errstate(over="ignore"):
        # the largest S with w·S ≤ ε for everybody
        strength = float(np.min(allowed[used] / shares[used]))
    noise = math.inf if strength == 0 else (math.sqrt(2.0) / strength) * (math.sqrt(2.0) / strength)
    return noise + float(np.sum(spread * np.square(shares)))


def _sizes(weights: FloatArray, strata: Strata) -> FloatArray:
    """How large weights are, without their signs, which must be those of the strata."""
    sizes = weights * np.sign(strata.weights)[strata.codes]
    wanted = np.abs(strata.weights)
    sums = np.bincount(strata.codes, weights=sizes, minlength=strata.count)
    if not (sizes >= 0).all() or (np.abs(sums - wanted) > 1e-9 * wanted).any():
        told = "weights must have the sign of their stratum's weight, and add up to it."
        raise InputError(told, field="weights")
    return np.asarray(sizes)


def is_central(setting: str) -> bool:
    """Whether ``setting`` is "central" rather than "local"; anything else is refused."""
    if setting not in ("central", "local"):
        raise InputError(f"setting must be 'central' or 'local', got {setting!r}.", field="setting")
    return setting == "central"


def _capped(allowed: FloatArray, spread: FloatArray) -> FloatArray:
    """``min(ε_i, κ/V_i)``, the part of each allowed loss that the best central estimator uses."""
    finite = np.isfinite(allowed)
    scale = float(allowed.max(initial=0.0, where=finite))
    if scale == 0.0:
        return allowed
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        relative = allowed / scale  # losses from 1e-300 to 1e300 without overflow in their squares
        # by V·ε: whoever is below the cap comes first
        order = np.argsort(spread * relative, kind="stable")
        sorted_losses, sorted_products = relative[order], (spread * relative)[order]
        uncapped = finite[order]
        losses = np.cumsum(np.where(uncapped, sorted_losses, 0.0))
        squares = np.cumsum(np.where(uncapped, sorted_losses * sorted_products, 0.0))
        caps = 2.0 / (scale * losses) / scale + squares / losses  # κ/scale if exactly the first k are below it
        # the k for which the cap lies between the k-th and the next
        following = np.append(sorted_products[1:], math.inf)
        cap = scale * float(caps[np.argmax((losses > 0) & (caps <= following))])
        limits = cap / spread
    return np.minimum(allowed, limits)


def _central_weights(used: FloatArray, spread: FloatArray) -> Weights:
    infinite = used == math.inf
    if infinite.any():
        used = np.where(infinite, used, 0.0)
        weights = _shares(_precisions(used, spread))
        return Weights(weights=weights, delivered=used, mse=float(np.sum(spread * np.square(weights))))
    weights = _shares(used)
    largest = float(used.max())
    relative_total = float(np.sum(used / largest))
    root = math.sqrt(2.0) / relative_total / largest
    return Weights(weights=weights, delivered=used, mse=root * root + float(np.sum(spread * np.square(weights))))


def _precisions(allowed: FloatArray, spread: FloatArray) -> FloatArray:
    """``1/(V_i + 2/ε_i²)`` up to a common factor that keeps it within range."""
    scale = min(float(allowed.max(initial=0.0, where=np.isfinite(allowed))), 1e100) or 1.0
    with np.errstate(divide="ignore", over="ignore", under="ignore"):
        deviation = spread * scale * scale + 2.0 * np.square(scale / allowed)
    return np.reciprocal(deviation, where=deviation > 0, out=np.full_like(deviation, math.inf))


def _local_mse(weights: FloatArray, allowed: FloatArray, spread: FloatArray) -> float:
    used = weights > 0
    with np.errstate(divide="ignore", over="ignore", under="ignore"):
        root = weights[used] / allowed[used]
        return float(np.sum(2.0 * np.square(root) + spread[used] * np.square(weights[used])))


def _response_mse(weights: FloatArray, allowed: FloatArray) -> float:
    used = weights > 0
    with np.errstate(divide="ignore", over="ignore", under="ignore"):
        return float(np.sum(np.square(0.5 * weights[used] / np.tanh(0.5 * allowed[used]))))


def _refuse_central(response: bool) -> None:
    if response:
        raise InputError(
            "response must be False in the central setting: nobody sends an answer there.", field="response"
        )


def _le_cam(distance: float) -> float:
    """The best of ``δ²/8·(1 − δ·distance)`` over 0 ≤ δ ≤ ½: Le Cam's bound for two coins of bias ±δ."""
    if distance >= 4.0 / 3.0:
        return 1.0 / (54.0 * distance * distance)
    return (1.0 - distance / 2.0) / 32.0


def _shares(amounts: FloatArray) -> FloatArray:
    """Nonnegative amounts, one of them positive, as shares of their sum; infinite ones share equally."""
    largest = amounts.max()
    relative = (amounts == math.inf).astype(np.float64) if largest == math.inf else amounts / largest
    return np.asarray(relative / relative.sum(), dtype=np.float64)


def _spread(variance: ArrayLike, n: int) -> FloatArray:
    """Everybody's variance."""
    return np.array(np.broadcast_to(as_variance(variance, n), (n,)))
