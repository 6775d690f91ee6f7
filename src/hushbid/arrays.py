"""Arrays of people's numbers: what they are called in signatures.

Every layer speaks about the same few kinds of arrays; they have their names here, once.
"""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
"""Reports, costs, losses, payments, weights: one number per person, or one per point of a curve."""

IntArray = NDArray[np.int64]
"""Amounts in the smallest unit of a currency, steps of a grid, codes of groups."""

IndexArray = NDArray[np.intp]
"""Positions of people among all, or how many come before a position."""

BoolArray = NDArray[np.bool_]
"""A question answered for everybody."""

HashArray = NDArray[np.uint64]
"""Ids as hashes of 64 bits."""
