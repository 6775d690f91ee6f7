"""Write the golden records: a price, an accuracy under a relation, a budget, and a cap in the local setting.

``python -m tests.vectors.make_records`` does it when the format changes; with the names of some records, only these.
Noise comes from the system, so estimates and hashes change each time.
"""

import sys
import tempfile
from pathlib import Path

from hushbid import Accuracy, Budget, Grouped, LogNormal, Market, Record, Uniform, privatize, release
from hushbid.allocation import tie_keys

HERE = Path(__file__).parent
LEDGER = tempfile.mkdtemp(prefix="golden-ledger-")
"""Not the one of this account: golden releases are drawn again on purpose."""


def price() -> Record:
    """Two groups with a prior each, and people who care about the estimate."""
    groups = ["city", "country", "city", "country", "city"]
    prior = Grouped({"city": Uniform(0.5, 1.5), "country": LogNormal(0.0, 0.5)}, groups)
    ids = ["ann", "bob", "cy", "dee", "Zoë"]
    market = Market(prior=prior, buyer_weight=30.0, user_weight=2.0, variance=0.2, outside_option="estimate")
    outcome = market.acquire([0.6, 0.8, 0.7, 0.9, 1.45], tie_key=tie_keys(ids))
    made = release(outcome, [0.1, 0.9, 0.4, 0.6, 0.5], question="golden price", ids=ids, ledger=LEDGER)
    return Record.of(outcome, made, ids=ids, groups=groups, currency="EUR")


def accuracy() -> Record:
    """A standard error that is kept for a roster of 40, of whom six report and one does not deliver."""
    prior = Uniform(1.0, 3.0)
    market = Market(prior=prior, goal=Accuracy(2.5), bounds=(0.0, 12.0), variance=9.0, max_relation=0.3, population=40)
    outcome = market.acquire([1.1, 1.6, 1.25, 2.2, 1.4, 2.9])
    made = release(outcome, [3.0, 7.5, None, 11.0, 0.5, 6.0], question="golden accuracy", ledger=LEDGER)
    return Record.of(outcome, made, currency="JPY", decimals=0, notes=["a roster of 40"])


def budget() -> Record:
    """An expected total of 20, from people whose data differ in variance."""
    market = Market(prior=LogNormal(0.0, 0.5), goal=Budget(20.0, coin=0.01), variance=[0.1, 0.2, 0.05, 0.25])
    outcome = market.acquire([0.3, 0.7, 1.2, 2.5])
    made = release(outcome, [0.2, 0.4, 0.6, 0.8], question="golden budget", ledger=LEDGER)
    return Record.of(outcome, made, currency="EUR")


def local() -> Record:
    """Noise on everybody's own device, under a cap that binds some; one of those bought from sends nothing."""
    market = Market(
        prior=Uniform(1.0, 2.0), setting="local", bounds=(0.0, 100.0), buyer_weight=0.05, max_privacy_loss=3.9
    )
    outcome = market.acquire([1.05, 1.1, 1.3, 1.2, 1.15, 1.6, 1.9])
    bought = outcome.privacy_loss.tolist()
    made = [privatize(50.0, loss, market.bounds) if loss > 0.0 else None for loss in bought]
    return Record.of(
        outcome,
        release(outcome, [made[0], None, *made[2:]], question="golden local", ledger=LEDGER),
        currency="JPY",
        decimals=0,
    )


if __name__ == "__main__":
    for make in (price, accuracy, budget, local):
        if make.__name__ in sys.argv[1:] or len(sys.argv) == 1:
            make().write(HERE / f"record-{make.__name__}.json", overwrite=True).chmod(0o644)
