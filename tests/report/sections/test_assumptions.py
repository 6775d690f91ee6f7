"""The words about what a report rests on."""

from dataclasses import replace

from hushbid import Empirical, Grouped, Market, Uniform
from hushbid.priors.forms import prior_words
from hushbid.report import build_report, render_report
from hushbid.report.sections.assumptions import facts_about


def test_a_prior_made_of_people_is_described_not_shown() -> None:
    sample = [1.23456, 2.34567, 3.45678]
    assert "1.23456" not in prior_words(Empirical(sample))
    assert "1.23456" not in prior_words(Grouped({"a": Empirical(sample), "b": Uniform(1, 2)}, ["a", "b"]))
    assert prior_words(Uniform(1, 2)) == "uniform:1,2"


def test_assumptions_follow_the_market() -> None:
    def page(prior_from_participants: bool = False, **settings: object) -> str:
        market = Market(prior=Uniform(1, 2), **({"buyer_weight": 1.0, "user_weight": 1.0} | settings))  # type: ignore[arg-type]
        report = build_report(market.acquire([1.2, 1.3, 1.4], tie_key=range(3)), comparison="omit")
        facts = facts_about(market, prior_from_participants=prior_from_participants)
        return str(render_report(replace(report, assumptions=facts)))

    plain_market = page(user_weight=0.0)
    assert "operator is trusted" in plain_market
    assert "worst case" in plain_market
    assert "from elsewhere" in plain_market
    other = page(prior_from_participants=True, user_weight=1.0, variance=0.1, setting="local")
    assert "Nobody is trusted" in other
    assert "declared variance" in other
    assert "fitted on participants" in other
