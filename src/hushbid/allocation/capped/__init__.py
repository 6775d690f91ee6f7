"""The central optimum under caps: nobody loses more than she may, or than anybody may.

In reading order:

- `people`: people with caps, and what each adds to the sums
- `crowds`: sums over people at a level and a rate, also with one person's cost replaced
- `levels`: the two equations of a level and a rate, and how they are solved
- `parts`: populations in strata, each of which gives its share; what filling it costs, and the line below that
- `price`: the search over all sums of losses, with the bounds that rule the others out
- `problem`: a capped problem in units in which the solvers work
- `optimum`: the optimum of many people, found among few of them
- `solve`: the optimum as an allocation, and what no purchase under the caps can beat: the certificate
- `full`: caps so low that everybody gives all she may
- `near`: points of populations in which one person's cost is replaced
- `basin`: whether a price has one stationary point only, whoever's cost is raised
- `potential`: the integral of one person's loss under a budget
- `budget_replies`, `replies`: the optimum as a function of one person's cost, for many people at once
- `strata`: a problem with caps and strata: each stratum a capped problem of its own, in common units
- `contrast`: the best purchase for a contrast of strata, for a price: each stratum fills its share of the losses
- `contrast_solve`, `contrast_replies`: that optimum as an allocation, and as a function of one person's cost
"""

from hushbid.allocation.capped.contrast_replies import CappedContrastReplies
from hushbid.allocation.capped.contrast_solve import capped_contrast_lower_bound, solve_capped_contrast
from hushbid.allocation.capped.full import FullCaps
from hushbid.allocation.capped.problem import as_caps
from hushbid.allocation.capped.replies import CappedReplies
from hushbid.allocation.capped.solve import capped_lower_bound, solve_capped

__all__ = [
    "CappedContrastReplies",
    "CappedReplies",
    "FullCaps",
    "as_caps",
    "capped_contrast_lower_bound",
    "capped_lower_bound",
    "solve_capped",
    "solve_capped_contrast",
]
