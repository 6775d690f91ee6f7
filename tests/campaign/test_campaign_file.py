"""The campaign file: what it may hold, and that every problem is told at once with its line and field."""

from pathlib import Path

import numpy as np
import pytest

from hushbid.allocation import Accuracy, Budget, Goal, HardBudget, Price
from hushbid.campaign import read_campaign
from hushbid.campaign.people import People, read_people
from hushbid.campaign.spec import BidsTable
from hushbid.campaign.stated import line_numbers
from hushbid.errors import InputError
from hushbid.priors import Empirical, Grouped, Uniform

GOOD = """\
title = "Sleep"
question = "mean sleep"
unit = "hours"

[market]
setting = "central"
prior = "uniform:1,2"
bounds = [0, 12]
variance = 2
buyer_weight = 100

[money]
currency = "EUR"
spending_limit = 50

[bids]
file = "bids.csv"

[data]
file = "data.csv"
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "bids.csv").write_text("id,bid,shift\na,1.2,day\nb,1.4,night\n")
    (tmp_path / "data.csv").write_text("id,value\na,7\nb,8\n")
    return tmp_path


def campaign(home: Path, text: str = GOOD) -> Path:
    path = home / "sleep.toml"
    path.write_text(text)
    return path


def changed(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new)


def told(home: Path, text: str) -> str:
    with pytest.raises(InputError) as refused:
        read_campaign(campaign(home, text))
    return str(refused.value)


def test_a_campaign_in_order_is_read_with_its_defaults(home: Path) -> None:
    found = read_campaign(campaign(home))
    assert (found.title, found.question, found.unit, found.spec.output.level) == ("Sleep", "mean sleep", "hours", 0.95)
    assert found.market["user_weight"] == 0
    assert found.market["bounds"] == (0.0, 12.0)
    assert found.folder == home / "sleep"
    assert found.currency.code == "EUR"
    assert found.market_for(None).prior == Uniform(1, 2)
    assert found.data is not None
    assert found.data.kind == "values"


def people(count: int, **labels: list[str]) -> People:
    return read_people(
        {"bid": np.ones(count), **labels},
        BidsTable(group="groups" if labels else None),
        ids_needed=False,
    )


def test_the_paths_are_relative_to_the_file_not_to_where_one_stands(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    assert read_campaign(campaign(home)).bids.file == str(home / "bids.csv")


def test_all_problems_are_told_at_once_in_the_order_of_the_lines(home: Path) -> None:
    text = (
        GOOD.replace('"central"', '"centrall"')
        .replace("[0, 12]", "[12, 0]")
        .replace("variance = 2", "variance = -1\nvarianze = 3")
        .replace('currency = "EUR"', 'currency = "euro"')
        .replace("bids.csv", "report.csv")
        .replace('[data]\nfile = "data.csv"', '[data]\nfile = "data.csv"\nvalue = "hours"')
    )
    lines = told(home, text).splitlines()
    assert lines[0].endswith("sleep.toml has 7 problems:")
    assert [line.strip().partition(":")[0] for line in lines[1:]] == [
        "line 6, market.setting",
        "line 8, market.bounds",
        "line 9, market.variance",
        "line 10, market.varianze",
        "line 14, money.currency",
        "line 18, bids.file",
        "line 22, data.value",
    ]
    assert "did you mean variance?" in lines[4]
    assert "has no column 'hours'; it has 'id', 'value'" in lines[7]


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('setting = "central"\n', "", 'market.setting: is missing; it must be "central" or "local"'),
        ('prior = "uniform:1,2"\n', "", "market.prior: is missing"),
        ('"uniform:1,2"', '"uniform:2,1"', "market.prior: high must be a finite number above low=2"),
        ('"uniform:1,2"', "3", "market.prior: a prior must be a text"),
        ('"uniform:1,2"', '{ file = "none.json" }', "none.json does not exist"),
        ('"uniform:1,2"', '{ day = "uniform:1,2" }', "bids.group: is missing"),
        ("bounds = [0, 12]", "bounds = [0, true]", "market.bounds: must be two numbers"),
        ("bounds = [0, 12]", "bounds = [0, inf]", "market.bounds: must be two numbers"),
        ("variance = 2", "variance = 37", "must not exceed a quarter of the squared width"),
        ("buyer_weight = 100\n", "", "market: must state what the buyer has: exactly one of budget, hard_budget"),
        (
            "variance = 2",
            "variance = 2\nbudget = 50",
            "market.buyer_weight: cannot be stated together with market.budget",
        ),
        ("buyer_weight = 100", "budget = 0", "market.budget: must be a number above 0, got 0"),
        ("buyer_weight = 100", "hard_budget = inf", "market.hard_budget: must be a number above 0, got inf"),
        ("buyer_weight = 100", 'standard_error = "low"', "market.standard_error: must be a number above 0"),
        (
            "variance = 2",
            "variance = 2\nmax_correlation = 2",
            "must be a number of at least 0 and at most 1",
        ),
        ("variance = 2", "variance = 2\npopulation = 0", "market.population: must be a whole number from 1 to"),
        ("variance = 2", "variance = 2\npopulation = 2.5", "market.population: must be a whole number from 1 to"),
        ("buyer_weight = 100", "buyer_weight = nan", "market.buyer_weight: must be a number above 0"),
        ("buyer_weight = 100", "buyer_weight = {payment = 5}", "market.buyer_weight.from_standard_error: is missing"),
        (
            "buyer_weight = 100",
            "buyer_weight = {payment = 5, from_standard_error = 1, to_standard_error = 2}",
            "must buy a smaller standard error",
        ),
        ("variance = 2", "variance = 2\nuser_weight = 1", "lets people owe money"),
        ("variance = 2", "user_weight = 1\npeople_may_owe_money = true", "stated when user_weight is not 0"),
        ("variance = 2", 'variance = 2\npeople_may_owe_money = "yes"', "must be true or false"),
        ("variance = 2", "variance = 2\nmax_privacy_loss = 0", "must be a number above 0"),
        ('currency = "EUR"', 'currency = "ABC"', "state its number of decimals"),
        ("spending_limit = 50", "spending_limit = -1", "money.spending_limit: must be a number above 0, got -1"),
        ('file = "bids.csv"', "", "bids.file: is missing"),
        ('file = "data.csv"', 'file = "data.csv"\nkind = "messages"', 'data.kind: must be "values", got "messages"'),
        ('[bids]\nfile = "bids.csv"\n', "", "the file must have a table [bids]"),
        ("[market]", "market = 3\n[other]", "market: must be a table: [market], got 3"),
        ('unit = "hours"', "unit = 7", "unit: must be a text in quotes, got 7"),
        ('unit = "hours"', 'notices = "x"', "notices: must be a list of texts"),
        ("[data]", '[output]\nfolder = "data.csv"\n[data]', "output.folder: must be a folder"),
        ("[data]", "[output]\nlevel = 1\n[data]", "output.level: must be a number above 0"),
    ],
)
def test_each_problem_names_its_field(old: str, new: str, sentence: str, home: Path) -> None:
    assert sentence in told(home, changed(old, new))


@pytest.mark.parametrize(
    ("goal", "read"),
    [
        ("budget = 2000", Budget(2000, coin=0.01)),
        ("hard_budget = 2000", HardBudget(2000, coin=0.01)),
        ("standard_error = 0.1", Accuracy(0.1)),
        ("buyer_weight = 100", Price(100)),
    ],
)
def test_a_buyer_states_what_she_has_and_a_hard_budget_is_paid_in_coins_of_the_currency(
    goal: str, read: Goal, home: Path
) -> None:
    assert read_campaign(campaign(home, changed("buyer_weight = 100", goal))).market_for(None).goal == read


def test_a_hard_budget_in_yen_has_coins_of_one(home: Path) -> None:
    text = changed("buyer_weight = 100", "hard_budget = 2000").replace("EUR", "JPY")
    assert read_campaign(campaign(home, text)).market_for(None).goal == HardBudget(2000, coin=1)


@pytest.mark.parametrize(
    ("market", "sentence"),
    [
        ('setting = "central"\nbudget = 5\nuser_weight = 1', "market.user_weight: must be 0 beside a budget"),
        (
            'setting = "central"\nbuyer_weight = 5\nuser_weight = 1\nmax_correlation = 0.1',
            "market.user_weight: must be 0",
        ),
    ],
)
def test_what_does_not_go_together_is_a_problem_of_the_field_that_states_it(
    market: str, sentence: str, home: Path
) -> None:
    text = GOOD.replace('setting = "central"\n', "people_may_owe_money = true\n").replace("buyer_weight = 100", market)
    if "local" in market:
        text = text.replace("[data]", '[data]\nkind = "simulated_values"')
    found = told(home, text)
    assert sentence in found
    assert "problems" not in found


def test_the_roster_is_every_row_of_the_bids_unless_a_larger_population_is_stated(home: Path) -> None:
    text = changed("buyer_weight = 100", "buyer_weight = 100\nmax_correlation = 0.1")
    seven = people(7)
    assert read_campaign(campaign(home, text)).market_for(seven).population == 7
    larger = text.replace("max_correlation", "population = 50\nmax_correlation")
    assert read_campaign(campaign(home, larger)).market_for(seven).population == 50
    # where no relation is allowed for, it decides nothing
    assert read_campaign(campaign(home)).market_for(seven).population is None


def test_a_refused_file_names_its_first_wrong_field_for_programs(home: Path) -> None:
    text = changed("[0, 12]", "[12, 0]").replace("bids.csv", "report.csv")
    with pytest.raises(InputError) as refused:
        read_campaign(campaign(home, text))
    assert refused.value.field == "market.bounds"


def test_a_file_that_is_not_toml_is_told_with_its_line(home: Path) -> None:
    assert "is not TOML" in told(home, "title = Sleep\n")
    assert "line 1" in told(home, "title = Sleep\n")


def test_a_missing_file_and_a_binary_one_are_told(home: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        read_campaign(home / "none.toml")
    (home / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="UTF-8"):
        read_campaign(home / "binary.toml")


def test_two_files_cannot_both_be_standard_input(home: Path) -> None:
    text = GOOD.replace('"bids.csv"', '"-"').replace('"data.csv"', '"-"')
    assert "data.file: cannot be standard input as well" in told(home, text)


def test_a_buyer_may_say_what_a_smaller_error_is_worth(home: Path) -> None:
    text = changed(
        "buyer_weight = 100", "buyer_weight = {payment = 500, from_standard_error = 2, to_standard_error = 1}"
    )
    assert read_campaign(campaign(home, text)).market["goal"].number == pytest.approx(500 / 3)


def test_priors_may_differ_by_group(home: Path) -> None:
    text = changed('prior = "uniform:1,2"', "").replace('file = "bids.csv"', 'file = "bids.csv"\ngroup = "shift"')
    text += '[market.prior]\nday = "uniform:1,2"\nnight = { family = "empirical", values = [1, 2], weights = [1, 1] }\n'
    market = read_campaign(campaign(home, text)).market_for(people(2, groups=["day", "night"]))
    assert market.prior == Grouped({"day": Uniform(1, 2), "night": Empirical([1, 2])}, ["day", "night"])


def test_in_the_local_setting_the_data_are_messages_unless_called_simulated(home: Path) -> None:
    text = changed('"central"', '"local"')
    (home / "data.csv").write_text("id,message,value\na,{},7\n")
    found = read_campaign(campaign(home, text)).data
    assert found is not None
    assert (found.kind, found.names) == ("messages", ("message",))
    simulated = read_campaign(campaign(home, text + 'kind = "simulated_values"\n')).data
    assert simulated is not None
    assert (simulated.kind, simulated.names) == ("simulated_values", ("value",))


def test_lines_are_found_in_tables_dotted_keys_and_quotes() -> None:
    found = line_numbers('a = 1\n# b = 2\n[t]\n"c" = 3\nd.e = 4\n\n[t.u] # note\nf = 5\n[[v]]\ng = 6\n')
    assert found == {"a": 1, "t": 3, "t.c": 4, "t.d.e": 5, "t.u": 7, "t.u.f": 8, "v": 9, "v.1": 9, "v.1.g": 10}
