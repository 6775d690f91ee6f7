"""Baselines, one file each, all scored by the same formulas: what "optimal" is measured against.

Whole mechanisms, all of one form (:mod:`~hushbid.baselines.baseline`) and priced by one piece of code:

- :mod:`~hushbid.baselines.uniform_loss`: the same privacy loss for all, with truthful payments
- :mod:`~hushbid.baselines.posted_price`: take it or leave it, at the best price for the prior
- :mod:`~hushbid.baselines.ghosh_roth`: the auction of Ghosh and Roth (2011)
- :mod:`~hushbid.baselines.first_best`: costs known, no rent
- :mod:`~hushbid.baselines.no_privacy`: data taken as they are
- :mod:`~hushbid.baselines.near_optimal`: the paper's near-optimal estimators on our losses
- :mod:`~hushbid.baselines.registry`: which there are, and how one of one's own is added
- :mod:`~hushbid.baselines.comparison`: all of them on the same people

The paper's own algorithms are outside the package, in experiments/paper_figures of the repository.
"""

from hushbid.baselines.baseline import (
    AtErrorWeight,
    Baseline,
    BaselineOutcome,
    Decision,
    Pool,
    best_common_loss,
    common_error,
    common_variance,
    step_rents,
    unit_error_weight,
)
from hushbid.baselines.comparison import Comparison, ComparisonRow, compare
from hushbid.baselines.first_best import FirstBest
from hushbid.baselines.ghosh_roth import FixedAccuracy
from hushbid.baselines.near_optimal import NearOptimal, Optimal
from hushbid.baselines.no_privacy import NoPrivacy
from hushbid.baselines.posted_price import PostedPrice
from hushbid.baselines.registry import BASELINES, every_baseline, register
from hushbid.baselines.uniform_loss import UniformLoss

__all__ = [
    "BASELINES",
    "AtErrorWeight",
    "Baseline",
    "BaselineOutcome",
    "Comparison",
    "ComparisonRow",
    "Decision",
    "FirstBest",
    "FixedAccuracy",
    "NearOptimal",
    "NoPrivacy",
    "Optimal",
    "Pool",
    "PostedPrice",
    "UniformLoss",
    "best_common_loss",
    "common_error",
    "common_variance",
    "compare",
    "every_baseline",
    "register",
    "step_rents",
    "unit_error_weight",
]
