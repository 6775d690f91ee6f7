"""Bids in, decisions and one estimate out: ties priors, allocation, payments and disclosure together.

In reading order:

- `market`: `Market` and its verbs; `Outcome`, what it decided
- `releasing`: `release`, the one estimate
- `summary`: what was decided, in words; markets, outcomes and plans in a notebook
- `stated`: the fields of a market, in the user's units, and what is allowed in them; `terms`: for which population
- `strata`: public strata, and the combination of their means that is wanted
- `combinations`: the table of what cannot be combined, which also prints the reference page
- `survey`: several questions as the market for one number that they come to, and the error of each
- `people`: who can be bought from, on a data range of width 1; `population`: the optimum for them, on which everything
  below works
- `impossible`: what no purchase can do: a stratum without sellers, an accuracy out of reach, a payment without end
- `rounding`: what rounding payments up is expected to take of a budget
- `planned_price`: a budget on average, by a price of the error that is planned for a roster
- `drawn_markets`: what very many drawn markets cost at a price, all of them at once
- `setting`: what depends on where noise is added, central or local
- `decision`: `Decision`, what was decided; `deciding`: from bids to privacy losses and payments
- `summed`, `many`: the purchase from very many people, in memory and on engines: solved from sums, priced by curves
- `in_memory`: very many people in memory, who are one batch; and the few of them who can matter
- `shared_menu`: the decision under a hard budget: one menu that people share in
- `menu_offers`, `menu_rents`: what that menu offers at each virtual cost, and what it pays besides the price
- `figures`: what a decision comes to for everybody together, in memory and on engines
- `schedule`: privacy loss and payment as functions of a bid
- `simulation`, `worst_case`: what would happen, and the most it can cost
- `largest_loss`: the most that anybody can lose where no cap can be stated
- `protection`: what protection against related prices and data costs, and what it saves
- `people_needed`: how many people meet a target
- `planning`: what campaigns come to, what protection costs, error against money, and how many people it takes
"""

from hushbid.mechanism.deciding import decide
from hushbid.mechanism.decision import Decision
from hushbid.mechanism.figures import Figures
from hushbid.mechanism.market import Market, Outcome
from hushbid.mechanism.people import Group
from hushbid.mechanism.planning import Plan, buyer_weight_for
from hushbid.mechanism.population import Population
from hushbid.mechanism.releasing import release, simulate_releases
from hushbid.mechanism.schedule import Menu, Schedule
from hushbid.mechanism.simulation import Estimate, Simulation

__all__ = [
    "Decision",
    "Estimate",
    "Figures",
    "Group",
    "Market",
    "Menu",
    "Outcome",
    "Plan",
    "Population",
    "Schedule",
    "Simulation",
    "buyer_weight_for",
    "decide",
    "release",
    "simulate_releases",
]
