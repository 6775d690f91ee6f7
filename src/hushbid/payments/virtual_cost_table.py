"""A table of virtual costs, fine enough to bound its inverse between nodes and to tell where it is convex."""

from dataclasses import dataclass

import numpy as np

from hushbid.common.arrays import BoolArray, FloatArray, IndexArray, IntArray
from hushbid.payments.rule import RuleWithPotential
from hushbid.priors import Prior

_NODES, _STRAIGHT = 4096, 256
_FAR = 1e100  # virtual costs are followed up to here; what is bought beyond is bounded by a formula
_NEAR_ZERO = 1e-18
"""Where the loss grows without bound, like ``z^{-1/3}``, bids are followed down to this part of the whole."""

_EDGES = 64  # up to so many ends of flat parts, bids close to them are looked at closely
_APART = 1e-9  # nodes whose virtual costs differ by less than this part say nothing about the shape of ψ


@dataclass(frozen=True, slots=True, eq=False)
class Ladder:
    """A shared table of ψ, fine enough to bound its inverse between nodes."""

    z: FloatArray
    x: FloatArray
    slope: FloatArray  # Δz/Δx of each cell; 0 where ψ is constant
    rises: FloatArray
    """By how much the logarithm of the slope has risen at the interior nodes up to each, the falls not counted."""

    falls: FloatArray  # by how much it has fallen, the rises not counted
    flats: IntArray  # how many of those nodes are ends of cells where ψ is constant
    linear: bool = False  # whether ψ is known to be affine

    @classmethod
    def straight(cls, prior: Prior, low: float) -> "Ladder":
        """Of an affine ψ, from a bid to the top of the support."""
        z = np.linspace(low, prior.support[1], _STRAIGHT + 1)
        none = np.zeros(z.size)
        slope = np.full(_STRAIGHT, 1.0 / (prior.slope or 1.0))
        return cls(z, np.asarray(prior.virtual_cost(z)), slope, none, none, none.astype(np.int64), linear=True)

    @classmethod
    def reaching(cls, rule: RuleWithPotential, prior: Prior, rows: IndexArray, bids: FloatArray) -> "Ladder":
        """From the smallest bid to where nothing is bought from any of the people any more."""
        return cls.over(prior, float(bids.min()), _end_of_buying(rule, prior, rows, bids))

    @classmethod
    def over(cls, prior: Prior, low: float, high: float) -> "Ladder":
        """From one bid to another."""
        # even steps; geometric ones too if bids span orders of magnitude
        z = np.linspace(low, high, _NODES + 1)
        if high - low > 1e3 * max(low, 1e-12 * high):
            near = 1e-9 if low > 0.0 else _NEAR_ZERO
            z = np.concatenate([z, low + np.geomspace(near, 1.0, _NODES) * (high - low)])
        least = max(float(prior.virtual_cost(low)), 1e-9 * float(prior.virtual_cost(prior.quantile(0.5))))
        most = float(prior.virtual_cost(high))
        if most > 1e20 * least:  # one person who sells at every bid: even steps in the logarithm of the cost
            even = np.geomspace([least, 1e8 * least], [1e8 * least, most], 4 * _NODES)
            z = np.concatenate([z, np.asarray(prior.virtual_cost_inverse(even.ravel()))])
        # close to both ends of every flat part, unless there are very many
        edges = np.array([end for part in prior.flat_parts for end in part[:2] if low < end < high])
        close = (high - low) * 2.0 ** -np.arange(2.0, 46.0 if edges.size < _EDGES else 2.0)
        around = (edges[:, None] + np.concatenate([-close, [0.0], close])[None, :]).ravel()
        z = np.concatenate([z, around])
        z = np.unique(np.append(z[(z > low) & (z < high)], [low, high]))
        # ψ is nondecreasing; rounding must not say otherwise
        x = np.maximum.accumulate(prior.virtual_cost(z))
        for _ in range(40):  # where ψ jumps, close in on the jump
            steep = np.flatnonzero(
                (np.diff(x) > (x[-1] - x[0]) / 512.0) & (np.diff(z) > 1e-13 * (abs(high) + abs(low)))
            )
            if steep.size == 0 or z.size > 8 * _NODES:
                break
            middle = 0.5 * (z[steep] + z[steep + 1])
            order = np.argsort(np.concatenate([z, middle]), kind="stable")
            z = np.concatenate([z, middle])[order]
            x = np.maximum.accumulate(np.concatenate([x, prior.virtual_cost(middle)])[order])
        return cls._of(z, x)

    def up_to(self, bid: float) -> "Ladder":
        """The same up to the first node above a bid."""
        last = min(max(int(self.z.searchsorted(bid, side="right")), 1) + 1, self.z.size)
        return Ladder(
            z=self.z[:last],
            x=self.x[:last],
            slope=self.slope[: last - 1],
            rises=self.rises[:last],
            falls=self.falls[:last],
            flats=self.flats[:last],
        )

    def finer(self, prior: Prior) -> "Ladder":
        """Every cell cut in four."""
        inner = self.z[:-1, None] + np.diff(self.z)[:, None] * np.array([0.0, 0.25, 0.5, 0.75])
        z = np.unique(np.append(inner.ravel(), self.z[-1]))
        return self._of(z, np.maximum.accumulate(np.asarray(prior.virtual_cost(z))))

    @classmethod
    def _of(cls, z: FloatArray, x: FloatArray) -> "Ladder":
        z, x = _without_noise(z, x)
        dx, dz = np.diff(x), np.diff(z)
        flat = dx <= 0.0
        slope = np.divide(dz, dx, out=np.zeros_like(dz), where=~flat)
        change, end = np.zeros(z.size), np.zeros(z.size, dtype=bool)
        # at the end of a flat part the slope says nothing
        end[1:-1] = flat[1:] | flat[:-1]
        change[1:-1] = np.diff(np.log(np.where(flat, 1.0, slope)))
        change[end] = 0.0
        rises, falls = np.cumsum(np.maximum(change, 0.0)), np.cumsum(np.maximum(-change, 0.0))
        return cls(z, x, slope, rises, falls, np.cumsum(end))

    def shape(self, first: IndexArray, last: IndexArray) -> tuple[BoolArray, FloatArray]:
        """Whether ψ is convex rather than concave from node ``first`` to ``last``, one cell to either side included.

        And by how much it is not, 1 at most: ``dz/dx`` is a monotone function times one from 1 to ``exp`` of that. One
        answer for all where ψ has the same shape throughout.
        """
        if self.flats[-1] == 0 and min(self.rises[-1], self.falls[-1]) == 0.0:  # the same shape throughout
            return np.asarray(self.rises[-1] == 0.0), np.zeros(())
        # bends against the trend, summed from the table, are what is not convex or concave
        before, last = np.maximum(first - 1, 0), np.minimum(last, self.z.size - 1)
        rise, fall = self.rises[last] - self.rises[before], self.falls[last] - self.falls[before]
        some = self.flats[last] > self.flats[before]
        return rise <= fall, np.where(some, 1.0, np.minimum(np.minimum(rise, fall), 1.0))

    def inverse(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """For each ``x``: ``z`` on the chord of its cell, and on the nearer of the neighbouring chords, extended.

        Where ψ is convex (z concave in x) the first is below the truth and the second, the smaller extension, above.
        """
        cell = np.clip(self.x.searchsorted(x, side="right") - 1, 0, self.z.size - 2)
        chord = self.z[cell] + self.slope[cell] * (x - self.x[cell])
        # extended from the left, and from the right; the first and last cell have one neighbour only
        before, after = np.maximum(cell - 1, 0), np.minimum(cell + 1, self.z.size - 2)
        from_left = self.z[cell] + self.slope[before] * (x - self.x[cell])
        from_right = self.z[cell + 1] - self.slope[after] * (self.x[cell + 1] - x)
        nearer = np.abs(from_left - chord) <= np.abs(from_right - chord)
        return chord, np.where((nearer & (cell > 0)) | (cell == after), from_left, from_right)


def _without_noise(z: FloatArray, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The nodes but for those so close to a neighbour that only rounding tells their virtual costs apart.

    Ends of flat parts stay, and so do the first and the last node.
    """
    for round_ in range(24):
        dx = np.diff(x)
        close, fixed = np.append(False, (dx > 0.0) & (dx < _APART * x[1:])), np.zeros(z.size, dtype=bool)
        fixed[:-1] |= dx <= 0.0  # both ends of flat parts
        fixed[1:] |= dx <= 0.0
        fixed[[0, -1]] = True
        close[:-1] |= close[1:] & fixed[1:]  # of a pair whose second must stay, the first goes
        drop = close & ~fixed
        if not drop.any():
            break
        drop[round_ % 2 :: 2] = False  # of neighbours only one at a time
        z, x = z[~drop], x[~drop]
    return z, x


def tail_of(loss: FloatArray, ladder: "Ladder", top: float) -> FloatArray:
    """At most how much is left beyond the ladder, at whose end the losses are these: something for a sole seller only.

    That loss goes with ``ψ^{-1/3}``, and ψ grows at least like the power of z that it grew with last.
    """
    end = float(ladder.z[-1])
    if end >= top:
        return np.zeros(loss.size)
    # the power, from the last doubling of z
    before = int(ladder.z.searchsorted(0.5 * end))
    length = top - end
    if (loss > 0.0).any() and length == np.inf:
        growth = np.log(ladder.x[-1] / ladder.x[before]) / np.log(end / ladder.z[before])
        length = end / max(growth / 3.0 - 1.0, 1e-300)
    return np.where(loss > 0.0, loss, 0.0) * min(length, np.finfo(float).max)


def _end_of_buying(rule: RuleWithPotential, prior: Prior, rows: IndexArray, bids: FloatArray) -> float:
    """A bid, not much too high, at which nothing is bought from anybody; at most the top of the support.

    The only seller is bought from at every bid: then it is where their virtual cost is beyond all measure.
    """
    top, highest = prior.support[1], float(bids.max())

    def bought(who: IndexArray, z: FloatArray) -> BoolArray:
        """Whether anything is bought from any of these people at each of these bids, the same for all."""
        costs = np.asarray(prior.virtual_cost(z))
        sold = np.zeros(z.size, dtype=bool)
        near = np.flatnonzero(costs <= _FAR)
        loss = rule.at(np.tile(rows[who], near.size), np.repeat(costs[near], who.size)).loss
        sold[near] = (loss.reshape(near.size, who.size) > 0.0).any(axis=1)
        return sold

    # a few people stand for all; everybody is asked at the end
    few = np.union1d(np.linspace(0, rows.size - 1, 16).astype(np.intp), [bids.argmin(), bids.argmax()])
    reach = max(1e-3 * (highest - float(bids.min())), 1e-6 * highest, 1e-9 * float(prior.quantile(0.5)))
    low, end, sold = highest, highest, 1
    while sold and end < top:  # by powers of two, several at a time
        z = np.minimum(highest + reach * 2.0 ** np.arange(8.0), top)
        sold = int(np.argmin(np.append(bought(few, z), False)))
        low, end = (z[sold - 1] if sold else low), z[min(sold, 7)]
        reach, sold = 2.0**8 * reach, sold == 8
    z = np.linspace(low, end, 9)[1:]  # then evenly between two of them
    end = float(z[min(int(np.argmin(np.append(bought(few, z), False))), 7)])
    # now everybody, doubling the reach while anybody sells
    while few.size < rows.size and end < top and bought(np.arange(rows.size), np.array([end]))[0]:
        end = min(highest + 2.0 * (end - highest), top)
    # the only seller: the last bid with a virtual cost within reach
    if prior.virtual_cost(end) > _FAR:
        nearby = np.maximum(end - (end - highest) * 2.0 ** -np.arange(50.0, -1.0, -1.0), highest)
        end = float(nearby[np.argmax(np.asarray(prior.virtual_cost(nearby)) <= _FAR)])
    return end
