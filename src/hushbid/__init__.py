"""Hushbid buys data from people who each name their own price for privacy.

Every person reports what one unit of differential-privacy loss costs her. Hushbid decides how much privacy to buy from
whom, what to pay so that the truth is everybody's best report, and releases one estimate of the mean that keeps every
promise exactly.

In reading order, from the mathematics up:

- `errors`, `arrays`, `durable`, `wording`, `notebook`, `shortest`, `held`, `documents`, `codec`, `money`, `tables`: the
  ground floor, for every layer
- `priors`, `estimation`: what is believed about people's prices; how accurate a weighted mean is
- `questions`: what is asked, and how one privacy loss pays for all answers
- `allocation`, `payments`: how much privacy to buy from whom; what to pay so that the truth is the best report
- `disclosure`: noise, promises, and drawing an estimate once
- `mechanism`: a `Market` and what it decides, plans and simulates
- `record`, `receipts`: what is written down of a decision, and what each person gets to check it
- `verification`, `audit`, `baselines`: a check that trusts nobody, attacks on our own claims, other ways to buy
- `engine`: more people than memory holds
- `report`, `client`, `paper`: a page about a purchase, the two sides of a server, the paper's algorithms and figures
- `purchase`: one way to buy, from reading people to the report
- `server`: campaigns for analysts and participants over HTTP
- `cli`: the command line, which `__main__` starts

Names are loaded when they are first used: ``import hushbid`` itself costs next to nothing.

    >>> import hushbid
    >>> sorted(set(hushbid.__all__) - set(dir(hushbid)))
    []
"""

__version__ = "0.1.0"

TYPE_CHECKING = False  # type checkers take it for true; to import it would take longer than all the rest of this file

# To publish a name, add it to both lists, here and below; tests/house/test_package.py compares them.
if TYPE_CHECKING:
    from hushbid import allocation as allocation
    from hushbid import audit as audit
    from hushbid import baselines as baselines
    from hushbid import disclosure as disclosure
    from hushbid import errors as errors
    from hushbid import estimation as estimation
    from hushbid import mechanism as mechanism
    from hushbid import notebook as notebook
    from hushbid import payments as payments
    from hushbid import priors as priors
    from hushbid import purchase as purchase
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
    from hushbid.priors import TruncatedNormal as TruncatedNormal
    from hushbid.priors import Uniform as Uniform
    from hushbid.priors import from_scipy as from_scipy
    from hushbid.priors import parse_prior as parse_prior
    from hushbid.priors import prior_from_dict as prior_from_dict
    from hushbid.purchase import buy as buy
    from hushbid.questions import Choice as Choice
    from hushbid.questions import Number as Number
    from hushbid.questions import YesNo as YesNo
    from hushbid.record import Record as Record
    from hushbid.verification import verify as verify

_MODULES = (
    *("allocation", "audit", "baselines", "disclosure", "errors", "estimation", "mechanism", "notebook", "payments"),
    *("priors", "purchase", "questions", "receipts", "record", "report", "verification"),
)
_NAMES = {
    "hushbid.allocation": ("Accuracy", "Allocation", "Budget", "HardBudget", "Price", "allocate"),
    "hushbid.disclosure": ("Release", "privatize"),
    "hushbid.errors": ("HushbidError",),
    "hushbid.mechanism": ("Market", "Outcome", "buyer_weight_for", "release", "simulate_releases"),
    "hushbid.priors": (
        "Beta",
        "Empirical",
        "Exponential",
        "Gamma",
        "Grouped",
        "Histogram",
        "KernelDensity",
        "LogNormal",
        "Mixture",
        "TruncatedNormal",
        "Uniform",
        "from_scipy",
        "parse_prior",
        "prior_from_dict",
    ),
    "hushbid.purchase": ("buy",),
    "hushbid.questions": ("Choice", "Number", "YesNo"),
    "hushbid.record": ("Record",),
    "hushbid.verification": ("verify",),
}
_HOME = {name: module for module, names in _NAMES.items() for name in names}

__all__ = ["__version__", *_MODULES, *_HOME]

if not TYPE_CHECKING:  # a type checker that saw this function would accept any misspelt name

    def __getattr__(name: str) -> object:
        from importlib import import_module

        if name in _MODULES:
            return import_module(f"hushbid.{name}")
        if name not in _HOME:
            raise AttributeError(f"module 'hushbid' has no attribute {name!r}")
        value = getattr(import_module(_HOME[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
