"""Hushbid buys data from people who each name their own price for privacy.

Every person bids what one unit of differential-privacy loss costs her. Hushbid decides how much privacy to buy from
whom, what to pay so that the truth is everybody's best bid, and releases one estimate of the mean that keeps every
promise exactly.

In reading order, from the mathematics up:

- `errors`, `common`, `languages`, `display`: what every layer uses: refusals, arrays, files, money, tables, sentences
- `priors`, `estimation`: what is believed about people's prices; how accurate a weighted mean is
- `questions`: what is asked, and how one privacy loss pays for all answers
- `allocation`, `payments`: how much privacy to buy from whom; what to pay so that the truth is the best bid
- `disclosure`: noise, promises, and drawing an estimate once
- `mechanism`: a `Market` and what it decides, plans and simulates
- `record`, `receipts`: what is written down of a decision, and what each person gets to check it
- `verification`, `audit`, `baselines`: a check that trusts nobody, attacks on our own claims, other ways to buy
- `engine`: more people than memory holds
- `report`, `client`: a page about a purchase, the two sides of a server
- `campaign`: what a campaign is, and one way to buy, from reading people to the report
- `server`: campaigns for analysts and participants over HTTP
- `cli`: the command line, which `__main__` starts

Names are loaded when they are first used: ``import hushbid`` itself costs next to nothing.

    >>> import hushbid
    >>> sorted(set(hushbid.__all__) - set(dir(hushbid)))
    []
"""

__version__ = "0.1.0"

# To publish a name, add it here and in __init__.pyi, which editors and type checkers read in the place of this file.
_MODULES = (
    *("allocation", "audit", "baselines", "client", "disclosure", "display", "engine", "errors", "estimation"),
    *("campaign", "mechanism", "payments", "priors", "questions", "receipts", "record", "report", "verification"),
)
_NAMES = {
    "hushbid.allocation": ("Accuracy", "Allocation", "Budget", "HardBudget", "Price", "allocate"),
    "hushbid.baselines": ("compare",),
    "hushbid.disclosure": ("Release", "private_mean", "privatize"),
    "hushbid.errors": ("HushbidError",),
    "hushbid.estimation": ("best_weights",),
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
        "Truncated",
        "TruncatedNormal",
        "Uniform",
        "from_scipy",
        "parse_prior",
        "prior_from_dict",
    ),
    "hushbid.campaign": ("buy",),
    "hushbid.questions": ("Choice", "Number", "YesNo"),
    "hushbid.record": ("Record",),
    "hushbid.verification": ("verify",),
}
_HOME = {name: module for module, names in _NAMES.items() for name in names}

__all__ = ["__version__", *_MODULES, *_HOME]


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
