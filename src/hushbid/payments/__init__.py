"""Payments that make the truth a dominant strategy, for any monotone rule.

A rule gives person i the privacy loss ``ε_i(z)`` if they bid ``z`` and the others' bids stay as they are. If that
is nonincreasing in ``z``, then paying them

    t_i = β_i·(MSE − outside_i) + c_i·ε_i(c_i) + ∫ from c_i to c̄_i of ε_i(z) dz

makes the truth their best reply whatever the others bid, and leaves them exactly the integral, their *information
rent*, over staying out ([F] Prop. 1, without its smoothness assumptions). This module computes the integral with a
rigorous enclosure and knows nothing of how a rule is made:

* `rent_of_rule` takes any rule, only using that it is monotone: lower and upper sums, halved where they differ most;
* `rents` takes a rule that depends on the bid through a virtual cost ``x = ψ(z)`` and has a *potential*, a function
  ``v_i`` with ``dv_i = ε_i dx`` (for an optimal rule, its optimal value: the envelope theorem). Then the integral over
  every interval in ``x`` is known exactly, and what is left is how ``dz/dx`` varies across it: nothing for a uniform
  prior (closed form), a finite sum where ψ is a step function, and elsewhere a second-order enclosure. If ψ is convex
  on an interval, ``dz/dx`` falls there like ``ε``, so by Chebyshev's inequality ``∫ε dz ≥ Δv·Δz/Δx``; and among
  nonincreasing ``ε`` with the known ends and the known ``∫ε dx`` a two-step function makes ``∫ε dz`` largest. If ψ is
  concave the two change places. Kinks and jumps of ``ε`` need not be found.

In reading order:

- `rule`: what a rule must offer, and what comes back
- `rent_integrals`: the integral in the cases above
- `rent_bounds`: how it is enclosed where it takes halving, by values and by monotonicity alone
- `virtual_cost_table`: ``ψ`` and its inverse there
- `alike`: the rents of very many people who differ by nothing but their bids, from those of some
- `rent_curves`: the rents of very many people as curves in the bid, with a verified error
"""

from hushbid.payments.alike import rents_of_alike
from hushbid.payments.rent_bounds import FINEST
from hushbid.payments.rent_curves import GroupCurves
from hushbid.payments.rent_integrals import ladder_up_to, rent_of_rule, rents
from hushbid.payments.rule import EvenBounds, RentBounds, Rents, Replies, RuleWithPotential, rounding

__all__ = [
    "FINEST",
    "EvenBounds",
    "GroupCurves",
    "RentBounds",
    "Rents",
    "Replies",
    "RuleWithPotential",
    "ladder_up_to",
    "rent_of_rule",
    "rents",
    "rents_of_alike",
    "rounding",
]
