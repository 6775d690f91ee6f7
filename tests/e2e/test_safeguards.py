"""What a buyer is kept from doing unawares, and what is still possible by name: each as a process."""

import json
import re
from pathlib import Path

import pytest

from hushbid.common.documents import content_hash
from tests.e2e.conftest import MARKET, PEOPLE, change, contents, hushbid, refused, succeeds

# -- money -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("code", "decimals"), [("JPY", 0), ("USD", 2), ("KWD", 3)])
def test_payments_are_whole_coins_of_currencies_with_any_number_of_decimals(
    code: str, decimals: int, home: Path
) -> None:
    exact = json.loads(succeeds("price", "bids.csv", *MARKET, "--json", "--record", "exact.json", cwd=home))
    assert exact["currency"] == "XXX"
    amounts = json.loads((home / "exact.json").read_text())["outcome"]["columns"]["payment"]
    done = hushbid("price", "bids.csv", *MARKET, "--currency", code, cwd=home)
    rows = [line.split(",") for line in done.stdout.splitlines()[1:]]
    for amount, (*_, minor, units, named) in zip(amounts, rows, strict=True):
        assert (named, float(units)) == (code, int(minor) / 10**decimals)
        assert 0 <= int(minor) - amount * 10**decimals < 1 + 1e-9  # in her favour, by less than a coin
    total = sum(int(row[3]) for row in rows) / 10**decimals
    assert f"They are paid {code} {total:,.{decimals}f} in all" in done.stderr
    facts = json.loads(succeeds("price", "bids.csv", *MARKET, "--currency", code, "--json", cwd=home))
    assert facts["incentive_error"] >= 10**-decimals


def test_whoever_could_owe_money_is_asked_first_and_then_told(home: Path) -> None:
    change(home / "sleep.toml", "buyer_weight = 500", "buyer_weight = 500\nuser_weight = 1")
    assert "line 11, market.user_weight: lets people owe money" in refused("run", "sleep.toml", cwd=home)
    change(home / "sleep.toml", "user_weight = 1", "user_weight = 1\npeople_may_owe_money = true")
    told = succeeds("run", "sleep.toml", "--no-audit", cwd=home)
    owing = int(re.search(r"([\d,]+) people owe money", told)[1])  # type: ignore[index]
    rows = (home / "sleep" / "payments.csv").read_text().splitlines()[1:]
    assert sum(int(row.split(",")[1]) < 0 for row in rows) == owing > 0
    assert f"{owing} people pay instead of being paid" in visible(home / "sleep" / "report.html")


# -- priors ------------------------------------------------------------------------------------------------------------


def test_a_prior_fitted_on_the_people_who_bid_is_refused_or_stamped(home: Path) -> None:
    lines = (home / "bids.csv").read_text().splitlines(keepends=True)
    (home / "pilot.csv").write_text("".join(lines[:31]))
    fitted = json.loads(
        succeeds("fit-prior", "pilot.csv", "--out", "prior.json", "--picture", "prior.svg", "--json", cwd=home)
    )
    assert fitted["people"] == 30
    assert {"uniform", "exponential", "lognormal", "gamma", "truncnormal", "empirical"} == {
        fit["family"] for fit in fitted["fits"]
    }
    assert all({"raw", "ironed"} <= set(row) for row in fitted["virtual_cost"])
    assert (home / "prior.svg").read_text().startswith("<?xml")
    assert (home / "prior.json").stat().st_mode & 0o077 == 0
    assert "p1" not in (home / "prior.json").read_text()  # ids are there as keyed hashes only
    change(home / "sleep.toml", '"uniform:1,3"', '{ file = "prior.json" }')
    told = refused("run", "sleep.toml", cwd=home)
    assert "30 of the people took part who now bid" in told
    assert not (home / "sleep").exists()
    change(home / "sleep.toml", "variance = 2", "variance = 2\naccept_pilot_overlap = true")
    told = succeeds("run", "sleep.toml", "--no-audit", cwd=home)
    assert "STAMPED in the record: prior fitted on participants: 30 of those who bid were in the pilot." in told
    assert json.loads((home / "sleep" / "record.json").read_text())["stamps"] != []
    assert "A prior fitted on participants" in visible(home / "sleep" / "report.html")


def test_other_people_than_those_of_the_pilot_may_bid(home: Path) -> None:
    header, *lines = (home / "bids.csv").read_text().splitlines(keepends=True)
    pilot = header + "".join(line.replace("p", "q", 1) for line in lines)
    succeeds("fit-prior", "-", "--family", "uniform", "--out", "prior.json", cwd=home, text=pilot)
    options = ("--bounds", "0,12", "--buyer-weight", "500", "--json")
    facts = json.loads(succeeds("price", "bids.csv", "--prior", "prior.json", *options, cwd=home))
    assert facts["people"] == PEOPLE


# -- records -----------------------------------------------------------------------------------------------------------


def test_a_record_forged_with_its_hash_fails_and_the_status_says_so(home: Path) -> None:
    succeeds("price", "bids.csv", *MARKET, "--record", "o.json", "--json", cwd=home)
    content = json.loads((home / "o.json").read_text())
    content["outcome"]["columns"]["payment"][0] += 0.5
    del content["hash"]
    forged = json.dumps({**content, "hash": content_hash(content)})
    done = hushbid("verify", "-", "--json", cwd=home, text=forged)
    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout)["verdict"] == "fails"
    honest = hushbid("verify", "-", cwd=home, text=(home / "o.json").read_text())
    assert honest.returncode == 0


def test_data_may_come_through_a_pipe_and_a_record_may_not_go_into_one(home: Path) -> None:
    assert "must be a file, not -" in refused("price", "bids.csv", *MARKET, "--record", "-", cwd=home)
    succeeds("price", "bids.csv", *MARKET, "--record", "o.json", "--json", cwd=home)
    released = json.loads(succeeds("release", "o.json", "-", "--json", cwd=home, text=(home / "data.csv").read_text()))
    assert released["dropped_out"] == 0
    assert all(path.stat().st_mode & 0o077 == 0 for path in [*home.glob("*.json"), *home.glob("claims/*")])
    assert "-" not in contents(home)


# -- audits ------------------------------------------------------------------------------------------------------------


def test_a_build_with_too_little_noise_is_found_out_by_its_own_report(home: Path) -> None:
    done = hushbid("run", "sleep.toml", cwd=home, noise=0.7)
    assert done.returncode == 1, done.stderr
    assert re.search(r"WARNING: \d audits? failed; see the report\.", done.stdout)
    page = (home / "sleep" / "report.html").read_text()
    assert 'role="alert"' in page
    assert "At least one claim on this page is proved to be wrong" in visible(home / "sleep" / "report.html")


def visible(page: Path) -> str:
    """The words of a page."""
    return " ".join(re.sub(r"<[^>]*>", " ", page.read_text().partition("</head>")[2]).split())


# -- what is left ------------------------------------------------------------------------------------------------------


def test_a_currency_of_ones_own_needs_its_decimals(home: Path) -> None:
    change(home / "sleep.toml", 'currency = "EUR"', 'currency = "PTS"')
    assert "state its number of decimals" in refused("run", "sleep.toml", cwd=home)
    change(home / "sleep.toml", 'currency = "PTS"', 'currency = "PTS"\ndecimals = 0')
    assert "They are paid PTS" in succeeds("run", "sleep.toml", "--no-audit", cwd=home)
