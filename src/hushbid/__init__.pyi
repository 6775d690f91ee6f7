"""The public names for tools that do not run the code: type checkers, editors, completion."""

from hushbid import allocation as allocation
from hushbid import audit as audit
from hushbid import baselines as baselines
from hushbid import campaign as campaign
from hushbid import client as client
from hushbid import disclosure as disclosure
from hushbid import display as display
from hushbid import engine as engine
from hushbid import errors as errors
from hushbid import estimation as estimation
from hushbid import mechanism as mechanism
from hushbid import payments as payments
from hushbid import priors as priors
from hushbid import questions as questions
from hushbid import receipts as receipts
from hushbid import record as record
from hushbid import report as report
from hushbid import verification as verification
from hushbid.allocation import Accuracy as Accuracy
from hushbid.allocation import Allocation as Allocation
from hushbid.allocation import Budget as Budget
from hushbid.allocation import HardBudget as HardBudget
from hushbid.allocation import Price as Price
from hushbid.allocation import allocate as allocate
from hushbid.campaign import buy as buy
from hushbid.disclosure import Release as Release
from hushbid.disclosure import privatize as privatize
from hushbid.errors import HushbidError as HushbidError
from hushbid.mechanism import Market as Market
from hushbid.mechanism import Outcome as Outcome
from hushbid.mechanism import buyer_weight_for as buyer_weight_for
from hushbid.mechanism import release as release
from hushbid.mechanism import simulate_releases as simulate_releases
from hushbid.priors import Beta as Beta
from hushbid.priors import Empirical as Empirical
from hushbid.priors import Exponential as Exponential
from hushbid.priors import Gamma as Gamma
from hushbid.priors import Grouped as Grouped
from hushbid.priors import Histogram as Histogram
from hushbid.priors import KernelDensity as KernelDensity
from hushbid.priors import LogNormal as LogNormal
from hushbid.priors import Mixture as Mixture
from hushbid.priors import Truncated as Truncated
from hushbid.priors import TruncatedNormal as TruncatedNormal
from hushbid.priors import Uniform as Uniform
from hushbid.priors import from_scipy as from_scipy
from hushbid.priors import parse_prior as parse_prior
from hushbid.priors import prior_from_dict as prior_from_dict
from hushbid.questions import Choice as Choice
from hushbid.questions import Number as Number
from hushbid.questions import YesNo as YesNo
from hushbid.record import Record as Record
from hushbid.verification import verify as verify

__version__: str
__all__: list[str]
