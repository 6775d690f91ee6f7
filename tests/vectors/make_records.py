"""Write the golden records of version 2: a price, an accuracy under a relation, and a budget.

``python -m tests.vectors.make_records`` does it, before a release of the format. The noise of a release is drawn anew
each time, so hashes and estimates change, and the tests that name them with them; a released version is never made
again.
"""

from pathlib import Path

from hushbid import Accuracy, Budget, Grouped, LogNormal, Market, Record, Uniform, release
from hushbid.allocation import tie_keys

HERE = Path(__file__).parent


def price() -> Record:
    """Two groups with a prior each, and people who care about the estimate."""
    groups = ["city", "country", "city", "country", "city"]
    prior = Grouped({"city": Uniform(0.5, 1.5), "country": LogNormal(0.0, 0.5)}, groups)
    ids = ["ann", "bob", "cy", "dee", "Zoë"]
    market = Market(prior=prior, buyer_weight=30.0, user_weight=2.0, variance=0.2, outside_option="estimate")
    outcome = market.acquire([0.6, 0.8, 0.7, 0.9, 1.45], tie_key=tie_keys(ids))
    made = release(outcome, [0.1, 0.9, 0.4, 0.6, 0.5], question="golden price", ids=ids)
    return Record.of(outcome, made, ids=ids, groups=groups, currency="EUR")


def accuracy() -> Record:
    """A standard error that is kept for a roster of 40, of whom six report and one does not deliver."""
    prior = Uniform(1.0, 3.0)
    market = Market(prior=prior, goal=Accuracy(2.5), bounds=(0.0, 12.0), variance=9.0, max_relation=0.3, population=40)
    outcome = market.acquire([1.1, 1.6, 1.25, 2.2, 1.4, 2.9])
    made = release(outcome, [3.0, 7.5, None, 11.0, 0.5, 6.0], question="golden accuracy")
    return Record.of(outcome, made, currency="JPY", decimals=0, notes=["a roster of 40"])


def budget() -> Record:
    """An expected total of 20, from people whose data differ in variance."""
    market = Market(prior=LogNormal(0.0, 0.5), goal=Budget(20.0, coin=0.01), variance=[0.1, 0.2, 0.05, 0.25])
    outcome = market.acquire([0.3, 0.7, 1.2, 2.5])
    return Record.of(outcome, release(outcome, [0.2, 0.4, 0.6, 0.8], question="golden budget"), currency="EUR")


if __name__ == "__main__":
    for make in (price, accuracy, budget):
        place = make().write(HERE / f"record-v2-{make.__name__}.json", overwrite=True)
        place.chmod(0o644)
