"""Reports in, decisions and one estimate out: ties priors, allocation, payments and disclosure together.

The core below works on a data range of width 1; this is where data units are converted.
"""

from hushbid.mechanism.figures import Figures
from hushbid.mechanism.market import Market, buyer_weight_for
from hushbid.mechanism.outcome import Outcome
from hushbid.mechanism.planning import Plan
from hushbid.mechanism.publish import release, simulate_releases
from hushbid.mechanism.schedule import Menu, Schedule
from hushbid.mechanism.simulation import Estimate, Simulation

__all__ = [
    "Estimate",
    "Figures",
    "Market",
    "Menu",
    "Outcome",
    "Plan",
    "Schedule",
    "Simulation",
    "buyer_weight_for",
    "release",
    "simulate_releases",
]
