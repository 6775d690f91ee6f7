"""Strata: the optimum for a combination of stratum means, in the central setting with one noise for all strata.

In reading order:

- `problem`: the problem in units in which it is solved, and what is refused
- `pieces`: the frontier in pieces, and the point on it that a goal chooses
- `sample`: where to stop looking in each stratum of very many people
- `solve`: the optimum as an allocation, of few people or of very many
- `bounds`: what no purchase can beat: the certificates
- `moved`: populations in which one person's cost is replaced
- `potential`: the integral of one person's loss under a budget
- `replies`: the optimum as a function of one person's cost, for many people at once
"""

from hushbid.allocation.contrast.bounds import least_contrast
from hushbid.allocation.contrast.replies import ContrastReplies
from hushbid.allocation.contrast.solve import solve_contrast

__all__ = ["ContrastReplies", "least_contrast", "solve_contrast"]
