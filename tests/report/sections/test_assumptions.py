"""The words about what a report rests on."""

from hushbid import Empirical, Grouped, Market, Uniform
from hushbid.priors.forms import prior_words
from hushbid.report.sections.assumptions import assumptions_of


def test_a_prior_made_of_people_is_described_not_shown() -> None:
    sample = [1.23456, 2.34567, 3.45678]
    assert "1.23456" not in prior_words(Empirical(sample))
    assert "1.23456" not in prior_words(Grouped({"a": Empirical(sample), "b": Uniform(1, 2)}, ["a", "b"]))
    assert prior_words(Uniform(1, 2)) == "uniform:1,2"


def test_assumptions_follow_the_market() -> None:
    def titles(**settings: object) -> str:
        market = Market(prior=Uniform(1, 2), **({"buyer_weight": 1.0, "user_weight": 1.0} | settings))  # type: ignore[arg-type]
        found = assumptions_of(market, people=3, prior_from_participants=bool(settings.get("setting") == "local"))
        assert all(one.title and one.text and one.if_wrong for one in found)
        return " | ".join(one.title for one in found)

    plain_market = titles(user_weight=0.0)
    assert "operator is trusted" in plain_market
    assert "worst case" in plain_market
    assert "from elsewhere" in plain_market
    other = titles(user_weight=1.0, variance=0.1, setting="local")
    assert "Nobody is trusted" in other
    assert "declared variance" in other
    assert "fitted on participants" in other
