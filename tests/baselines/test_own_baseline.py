"""A baseline of one's own: `hushbid.baselines` has all it needs; tables, frames, bids and commands show it by name."""

import json
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from click.testing import CliRunner

from hushbid.audit import check_incentives
from hushbid.baselines import (
    BASELINES,
    Baseline,
    Decision,
    PostedPrice,
    UniformLoss,
    compare,
    every_baseline,
    register,
    registry,
)
from hushbid.cli import main
from hushbid.errors import InputError
from hushbid.mechanism import Market
from hushbid.priors import Uniform
from hushbid.report import build_report, charts
from tests.extent import each

MARKET = Market(prior=Uniform(1, 3), user_weight=0, buyer_weight=4000, variance=0.1)
BIDS = np.linspace(1.0, 3.0, 30)


@dataclass(frozen=True, slots=True, kw_only=True)
class EveryOther(PostedPrice):
    """A posted price to every other person."""

    name: ClassVar[str] = "every other person"

    @classmethod
    def best(cls, population, *, error_weight=None):
        best = PostedPrice.best(population, error_weight=error_weight)
        return cls(population=population, price=best.price, loss=best.loss)

    def decide(self, bids):
        made = PostedPrice.decide(self, bids)
        asked = np.arange(bids.size) % 2 == 0
        losses = np.where(asked, made.privacy_loss, 0.0)
        return Decision(privacy_loss=losses, rent=np.where(asked, made.rent, 0.0), mse=self.error_of(losses))


@pytest.fixture(autouse=True)
def nothing_stays_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_REGISTERED", {})


def test_it_is_compared_by_its_class_and_brought_to_our_error_exactly():
    found = compare(MARKET, BIDS, baselines=[PostedPrice, EveryOther])
    row = found.row("every other person")
    assert found.ours.total_payment < found.baselines[0].payment_for_same_error < row.payment_for_same_error < np.inf
    assert found.to_frame("pandas")["name"].tolist() == ["Hushbid", "a posted price", "every other person"]
    assert "every other person" in found.table()
    assert "every other person" in found._repr_html_()


def test_once_registered_every_comparison_and_report_has_it():
    assert [one.name for one in every_baseline()] == [one.name for one in BASELINES]
    register(EveryOther)
    assert compare(MARKET, BIDS).baselines[-1].name == "every other person"
    bid = build_report(MARKET.acquire(BIDS), comparison="omit")
    assert [row.name for row in bid.baselines.rows][-1] == "every other person"
    assert "every other person" in charts.baselines(compare(MARKET, BIDS, baselines=[EveryOther]))._repr_svg_()


def test_its_claims_are_audited_like_ours():
    @dataclass(frozen=True, slots=True, kw_only=True)
    class PayAsBid(UniformLoss):
        name: ClassVar[str] = "pay as bid"

        def decide(self, bids):
            losses = np.full(bids.size, self.loss)
            return Decision(privacy_loss=losses, rent=np.zeros(bids.size), mse=self.error_of(losses))

    few = BIDS[:6]
    honest, lying = EveryOther.best(MARKET.for_people(6)), PayAsBid.best(MARKET.for_people(6))
    assert check_incentives(honest, few, market=MARKET, people=2, rng=np.random.default_rng(1)).passed
    assert not check_incentives(lying, few, market=MARKET, people=2, rng=np.random.default_rng(1)).passed


def test_what_is_no_baseline_and_a_name_that_is_taken_are_refused_in_a_sentence():
    register(EveryOther)
    assert register(EveryOther) is EveryOther

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Other(PostedPrice):
        name: ClassVar[str] = "every other person"

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Ours(PostedPrice):
        pass

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Nameless(PostedPrice):
        name: ClassVar[str] = " "

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Empty(Baseline):
        pass

    class Plain(PostedPrice):
        name: ClassVar[str] = "plain"

    for kind, told in [
        (Other, "must not be taken, but 'every other person' is registered by .*EveryOther"),
        (Ours, "must not be that of a baseline of Hushbid, got 'a posted price'"),
        (Nameless, "name of Nameless must be a text of 1 to 40 characters, got ' '"),
        (Empty, "the baseline Empty must define best, decide, name, truthful, voluntary"),
        (Plain, "the baseline Plain must be a dataclass"),
        (Market, "a baseline must be a subclass of hushbid.baselines.Baseline"),
    ]:
        with pytest.raises(InputError, match=told):
            register(kind)
    with pytest.raises(InputError, match=r"a baseline must be a subclass .*, got an object of EveryOther\.$"):
        compare(MARKET, BIDS, baselines=[EveryOther.best(MARKET.for_people(30))])


@each(
    ("made", "told"),
    [
        ({"privacy_loss": -np.ones(30)}, "privacy_loss of 'careless' must be nonnegative, but rows 0, 1, .* are not"),
        ({"privacy_loss": np.full(30, np.nan)}, "privacy_loss of 'careless' must be nonnegative"),
        ({"privacy_loss": np.ones(3)}, r"privacy_loss of 'careless' must have one entry per person \(30\), got shape"),
        ({"rent": np.where(np.arange(30) == 7, np.nan, 0)}, "rent of 'careless' must be numbers, but row 7 is not"),
        ({"rent": 0.0}, r"rent of 'careless' must have one entry per person \(30\), got shape \(\)"),
        ({"rent": "none"}, "rent of 'careless' must be numbers, got str"),
        ({"mse": -1.0}, "mse of 'careless' must be one number of at least 0, got -1.0"),
        ({"mse": np.nan}, "mse of 'careless' must be one number of at least 0, got nan"),
        (None, "decide of 'careless' must return a Decision, got NoneType"),
    ],
)
def test_a_decision_that_is_none_is_refused_in_a_sentence(made, told):
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Careless(UniformLoss):
        name: ClassVar[str] = "careless"

        def decide(self, bids):
            fine = {"privacy_loss": np.ones(30), "rent": np.zeros(30), "mse": 0.1}
            return None if made is None else Decision(**(fine | made))

    with pytest.raises(InputError, match=told) as caught:
        compare(MARKET, BIDS, baselines=[Careless])
    assert "\n" not in str(caught.value)


def test_it_may_decide_in_lists_of_whole_numbers_and_know_everything():
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Omniscient(UniformLoss):
        name: ClassVar[str] = "omniscient"

        def decide(self, bids):
            return Decision(privacy_loss=[1] * bids.size, rent=[0] * bids.size, mse=0)

    row = compare(MARKET, BIDS, baselines=[Omniscient]).baselines[0]
    assert row.total_payment == row.payment_for_same_error == pytest.approx(BIDS.sum())
    assert row.mse == 0.0


def test_overwriting_the_bids_it_is_given_changes_nothing_for_the_others():
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Overwriting(PostedPrice):
        name: ClassVar[str] = "overwriting"

        def decide(self, bids):
            made = PostedPrice.decide(self, bids)
            bids[:] = 1.0
            return made

    bids = BIDS.copy()
    found = compare(MARKET, bids, baselines=[Overwriting, PostedPrice])
    assert np.array_equal(bids, BIDS)
    assert found.baselines[0].payment_for_same_error == found.baselines[1].payment_for_same_error
    assert found.ours.total_payment == compare(MARKET, BIDS, baselines=[]).ours.total_payment


def test_one_that_fails_is_named_and_what_it_says_of_bids_is_not_told():
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Failing(UniformLoss):
        name: ClassVar[str] = "failing"

        def decide(self, bids):
            raise KeyError(bids[7])

    with pytest.raises(InputError, match=r"^the baseline 'failing' must not fail, but it raises KeyError\.$") as caught:
        compare(MARKET, BIDS, baselines=[Failing])
    assert isinstance(caught.value.__cause__, KeyError)


def test_baselines_that_are_no_list_are_refused():
    for wrong in (PostedPrice, "a posted price", 3):
        with pytest.raises(InputError, match="baselines must be a list of subclasses of Baseline, got"):
            compare(MARKET, BIDS, baselines=wrong)


@each(
    ("given", "told"),
    [
        ({"people": "10"}, "people must be a whole number of at least 1, got '10'"),
        ({"people": 10, "populations": 2.5}, "populations must be a whole number of at least 2, got 2.5"),
        ({"people": None}, "without bids, people and rng are needed, got no people"),
        ({"people": 10, "rng": None}, "without bids, people and rng are needed, got no rng"),
        ({"people": 10, "market": "uniform:1,2"}, "market must be a Market, got str"),
    ],
)
def test_what_cannot_be_compared_on_is_refused_in_a_sentence(given, told):
    with pytest.raises(InputError, match=told):
        compare(**({"market": MARKET, "rng": np.random.default_rng(1)} | given))


def test_the_command_line_can_name_it():
    register(EveryOther)
    options = ["--prior", "uniform:1,3", "--buyer-weight", "4000", "--people", "12", "--repetitions", "2", "--json"]
    found = CliRunner().invoke(main, ["compare", *options, "--baseline", "every other person"])
    assert found.exit_code == 0, found.output
    names = [row["name"] for row in json.loads(found.stdout)["baselines"]["central"]["rows"]]
    assert names == ["Hushbid", "every other person"]
    refused = CliRunner().invoke(main, ["compare", *options, "--baseline", "nobody"])
    assert refused.exit_code == 2
    assert "a baseline must be one of 'the first best (prices known)'" in refused.output
    both = CliRunner().invoke(main, ["compare", *options, "--baseline", "nobody", "--no-baselines"])
    assert both.exit_code == 2
    assert "--baseline must not be given beside --no-baselines" in both.output
