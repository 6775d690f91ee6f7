"""Rivals, one file each, all scored by the same formulas: what "optimal" is measured against.

- :mod:`~hushbid.baselines.paper_central`: [F] Algorithm 1, corrected, and with each misprint kept
- :mod:`~hushbid.baselines.paper_local`: [F] Algorithm 2, corrected, and with its misprints kept
- :mod:`~hushbid.baselines.paper_payments`: [F]'s mesh method for payments

[F] = Fallah, Makhdoumi, Malekian, Ozdaglar, EC 2022, arXiv 2201.03968. What is wrong in it, each with the number that
shows it, is listed in docs/explanation/errata.md.
"""

from hushbid.baselines.paper_central import (
    algorithm_1,
    algorithm_1_as_printed,
    algorithm_1_with_printed_argmax,
    algorithm_1_with_printed_sums,
)
from hushbid.baselines.paper_local import (
    algorithm_2,
    algorithm_2_as_printed,
    algorithm_2_with_free_multiplier,
)
from hushbid.baselines.paper_payments import MeshPayments, mesh_payments
from hushbid.baselines.protocol import RivalAllocation

__all__ = [
    "MeshPayments",
    "RivalAllocation",
    "algorithm_1",
    "algorithm_1_as_printed",
    "algorithm_1_with_printed_argmax",
    "algorithm_1_with_printed_sums",
    "algorithm_2",
    "algorithm_2_as_printed",
    "algorithm_2_with_free_multiplier",
    "mesh_payments",
]
