"""Where to stop looking in each stratum of very many people, from a sample of them; only a hint.

All strata are summed at once, as differences of sums over everybody, which is quick where there are many strata. What
is lost to rounding does not matter: whoever uses the cuts checks that nobody was missed.
"""

import math

import numpy as np

from hushbid.allocation.contrast.pieces import Pieces, best_key, level_key
from hushbid.allocation.contrast.problem import Scaled
from hushbid.allocation.goals import Price
from hushbid.arrays import FloatArray, IndexArray


def proposed_cuts(scaled: Scaled, sample: IndexArray, step: int) -> FloatArray:
    """The costs at which the optimum of an even sample, each of it counting for ``step`` people, suggests to stop."""
    sample = sample[scaled.costs[sample] < math.inf]
    cuts = np.full(scaled.sizes.size, math.inf)
    counts = np.bincount(scaled.codes[sample], minlength=cuts.size)
    if counts.min() == 0:
        return cuts
    sample = sample[np.lexsort((scaled.costs[sample], scaled.codes[sample]))]
    ends = np.cumsum(counts)
    keys, pieces = _pieces(scaled, sample, ends - counts, float(step))
    with np.errstate(over="ignore", invalid="ignore"):
        if isinstance(scaled.goal, Price):
            value, best = best_key(pieces)
            best = max(best, scaled.past(value))
        else:
            best = level_key(scaled, pieces)
    active = np.bincount(scaled.codes[sample[keys <= best]], minlength=cuts.size)
    # four standard deviations of the sample's count, and some, to spare
    spare = active + (4.0 * np.sqrt(active)).astype(np.intp) + 16
    some = np.flatnonzero(spare < counts)
    cuts[some] = scaled.costs[sample[(ends - counts + spare)[some]]]
    return cuts


def _pieces(scaled: Scaled, people: IndexArray, starts: IndexArray, heavier: float) -> tuple[FloatArray, Pieces]:
    """Everybody's key, and the pieces, of people sorted by stratum and cost."""
    codes, costs = scaled.codes[people], scaled.costs[people]
    size, first = scaled.sizes[codes], np.zeros(people.size, dtype=bool)
    first[starts] = True

    def within(values: FloatArray) -> FloatArray:
        """Sums from the beginning of each stratum on."""
        sums = values.cumsum()
        return np.asarray(sums - (sums[starts] - values[starts])[codes])

    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        offset = (costs - costs[starts][codes]) / scaled.scale
        mass = heavier * scaled.masses(people)
        total = within(mass)
        before = total - mass
        apart = np.where(first, 0.0, offset - np.append(0.0, offset[:-1]))
        key = np.maximum(within(before * apart), 0.0) / size
        away = np.where(first, 0.0, np.maximum(offset - (within(mass * offset) - mass * offset) / before, 0.0))
        share = mass / total
        drop = np.where(first, 0.0, size * size * share / before)
        base = float((scaled.sizes * costs[starts]).sum()) / scaled.scale
        least = float((scaled.sizes**2 / total[np.append(starts[1:], people.size) - 1]).sum())
        return key, Pieces.in_order(base, least, key, size * share * away, share * before * away * away, drop)
