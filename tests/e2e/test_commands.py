"""Every command as its users meet it: a process with files, pipes and an exit status."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.conftest import (
    CAMPAIGN,
    FINAL_FILES,
    MARKET,
    PEOPLE,
    change,
    contents,
    estimate,
    hushbid,
    refused,
    succeeds,
)
from tests.extent import each

# -- run -----------------------------------------------------------------------------------------------------------


def test_a_campaign_runs_from_its_file_to_a_record_that_verifies(home: Path) -> None:
    told = succeeds("run", "sleep.toml", "--no-audit", cwd=home)
    assert "Estimate of mean sleep:" in told
    assert "EUR" in told
    assert "95 % interval" in told
    folder = home / "sleep"
    assert sorted(contents(folder)) == FINAL_FILES
    assert all(path.stat().st_mode & 0o077 == 0 for path in folder.iterdir())
    header, *rows = (folder / "decisions.csv").read_text().splitlines()
    assert header == "id,privacy_loss,weight,payment_minor,payment,currency"
    assert [row.split(",")[0] for row in rows] == [f"p{k}" for k in range(PEOPLE)]
    assert all(int(row.split(",")[3]) >= 0 for row in rows)
    facts = json.loads((folder / "estimate.json").read_text())
    whole, normal = facts["interval"], facts["normal_interval"]
    assert whole["low"] <= normal["low"] <= normal["high"] <= whole["high"]
    held = json.loads((folder / "record.json").read_text())["release"]["estimate"]
    assert facts["estimate"] == pytest.approx(held, abs=facts["standard_error"] / 20)
    shown = (facts["estimate"], facts["public"]["estimate"])
    assert max(len(str(one)) for one in shown) <= 7  # no digits far below the error
    verified = json.loads(succeeds("verify", folder / "record.json", "--json", cwd=home))
    assert verified["verdict"] == "holds"
    record = json.loads((folder / "record.json").read_text())
    assert record["money"]["incentive_error"] >= 0.01


def test_spending_above_the_spending_limit_is_refused_with_what_it_would_cost(home: Path) -> None:
    change(home / "sleep.toml", "spending_limit = 1000", "spending_limit = 0.5")
    told = refused("run", "sleep.toml", cwd=home)
    assert "above the spending limit of EUR 0.50" in told
    assert all(words in told for words in ("on average", "in 95 of 100 cases", "at the very worst"))
    assert not (home / "sleep").exists()


def test_decisions_come_first_and_data_may_come_later(home: Path) -> None:
    (home / "later.toml").write_text(CAMPAIGN.partition("[data]")[0] + '[output]\nfolder = "sleep"\n')
    told = succeeds("run", "later.toml", cwd=home)
    assert "Next: collect the data" in told
    decided = contents(home / "sleep")
    assert sorted(decided) == ["decisions.csv", "outcome.json"]
    succeeds("run", "sleep.toml", "--no-audit", cwd=home)
    now = contents(home / "sleep")
    assert sorted(now) == sorted([*FINAL_FILES, "outcome.json"])
    assert {name: now[name] for name in decided} == decided


def test_who_does_not_deliver_is_not_paid(home: Path) -> None:
    succeeds("run", "sleep.toml", "--no-audit", cwd=home)
    rows = [line.split(",") for line in (home / "sleep" / "payments.csv").read_text().splitlines()[1:]]
    buyers = [row[0] for row in rows if row[4] == "yes"]
    other = home / "other"
    other.mkdir()
    for name in ("bids.csv", "data.csv", "sleep.toml"):
        (other / name).write_text((home / name).read_text())
    change(other / "sleep.toml", '"mean sleep"', '"mean sleep in May"')
    lines = (other / "data.csv").read_text().splitlines()
    (other / "data.csv").write_text("\n".join(line for line in lines if not line.startswith(f"{buyers[0]},")) + "\n")
    told = succeeds("run", "sleep.toml", "--no-audit", cwd=other)
    assert "1 person did not deliver" in told
    paid = {
        line.split(",")[0]: line.split(",")[1:]
        for line in (other / "sleep" / "payments.csv").read_text().splitlines()[1:]
    }
    assert paid[buyers[0]] == ["0", "0.0", "EUR", "no"]
    assert {row[0]: row[1:] for row in rows if row[0] != buyers[0]} == {
        name: row for name, row in paid.items() if name != buyers[0]
    }


def test_bids_may_come_through_a_pipe(home: Path) -> None:
    change(home / "sleep.toml", '"bids.csv"', '"-"')
    told = json.loads(
        succeeds("run", "sleep.toml", "--no-audit", "--json", cwd=home, text=(home / "bids.csv").read_text())
    )
    assert told["people"] == PEOPLE


def test_losing_all_privacy_must_be_accepted_by_name(home: Path) -> None:
    carefree = [f"p{k}" for k in range(40)]
    rows = "".join(f"{name},0,day\n" for name in carefree)
    (home / "bids.csv").write_text(f"id,bid,shift\n{rows}q,2.9,day\n")
    (home / "data.csv").write_text("id,value\n" + "".join(f"{name},{7 + k % 2}\n" for k, name in enumerate(carefree)))
    change(home / "sleep.toml", '"uniform:1,3"', '"uniform:0,3"')
    change(home / "sleep.toml", "buyer_weight = 500", "buyer_weight = 5")
    assert "privacy loss is infinite for rows 0, 1, 2, 3, 4 and 35 more" in refused("run", "sleep.toml", cwd=home)
    assert not (home / "sleep" / "decisions.csv").exists()
    change(home / "sleep.toml", "variance = 2", "variance = 2\naccept_infinite_loss = true")
    told = succeeds("run", "sleep.toml", "--no-audit", cwd=home)
    assert "STAMPED in the record: infinite privacy loss accepted." in told
    assert estimate(home) == pytest.approx(7.5)


BAD_CAMPAIGNS = {
    "a cell that is no number": ("bids.csv", "p3,", "p3,oops777", "row 3 does not"),
    "a bid below the prior": ("bids.csv", "p4,", "p4,0.0777\nq,", "row 4 does"),
    "two people of one name": ("bids.csv", "p5,", "p6,", "row 6 does not (the first repeats row 5"),
    "a datum that is no number": ("data.csv", "p7,", "p7,oops777", "row 52 does not"),
    "people who never bid": ("data.csv", "p", "x", "nobody in column 'id' is among the ids of bids.csv"),
    "a broken campaign file": ("sleep.toml", '"central"', "central", "sleep.toml is not TOML"),
    "several faults at once": ("sleep.toml", "bounds = [0, 12]\nvariance", "bounds = [9]\nvarianse", "has 2 problems:"),
    "a missing file": ("sleep.toml", '"data.csv"', '"dato.csv"', "data.file: dato.csv does not exist"),
}


@pytest.mark.parametrize("fault", BAD_CAMPAIGNS)
def test_a_bad_campaign_is_refused_before_anything_is_written(fault: str, home: Path) -> None:
    file, old, new, sentence = BAD_CAMPAIGNS[fault]
    change(home / file, old, new)
    told = refused("run", "sleep.toml", cwd=home)
    assert sentence in told
    assert "777" not in told
    assert not (home / "sleep").exists()


# -- the local setting -----------------------------------------------------------------------------------------------


@pytest.fixture
def local(home: Path) -> Path:
    """Five people in the local setting."""
    change(home / "sleep.toml", '"central"', '"local"')
    rows = (home / "bids.csv").read_text().splitlines()[:6]
    (home / "bids.csv").write_text("\n".join(rows) + "\n")
    return home


def test_in_the_local_setting_the_platform_sees_messages_only(local: Path) -> None:
    (local / "first.toml").write_text((local / "sleep.toml").read_text().partition("[data]")[0])
    told = succeeds("run", "first.toml", cwd=local)
    assert 'hushbid privatize --campaign "Sleep" --privacy-loss HERS --at-most AGREED --bounds 0,12' in told
    messages = []
    for line in (local / "first" / "decisions.csv").read_text().splitlines()[1:]:
        person, loss = line.split(",")[:2]
        if float(loss) > 0:
            arguments = ("--campaign", "Sleep", "--privacy-loss", loss, "--at-most", loss, "--bounds", "0,12")
            message = succeeds("privatize", *arguments, "--id", person, cwd=local, text="7.25")
            doubled = message.strip().replace('"', '""')
            messages.append(f'{person},"{doubled}"\n')
    assert messages
    (local / "data.csv").write_text("id,message\n" + "".join(messages))
    facts = json.loads(succeeds("run", "sleep.toml", "--no-audit", "--json", cwd=local))
    assert facts["bought_from"] == len(messages)
    assert facts["estimate"]["dropped_out"] == 0


def test_plain_values_are_taken_in_the_local_setting_only_if_called_simulated(local: Path) -> None:
    assert "data.value: data.csv has no column 'message'" in refused("run", "sleep.toml", cwd=local)
    change(local / "sleep.toml", 'file = "data.csv"', 'file = "data.csv"\nvalue = "value"')
    assert "cannot be read" in refused("run", "sleep.toml", cwd=local)
    change(local / "sleep.toml", 'value = "value"', 'kind = "simulated_values"')
    first = json.loads(succeeds("run", "sleep.toml", "--no-audit", "--json", cwd=local))
    assert "The data are simulated" in (local / "sleep" / "report.html").read_text()
    again = json.loads(succeeds("run", "sleep.toml", "--no-audit", "--json", "--force", cwd=local))
    assert again["estimate"]["estimate"] == first["estimate"]["estimate"]


def test_privatizing_again_gives_the_same_message_and_never_asks_the_value(home: Path) -> None:
    arguments = ("privatize", "--campaign", "Sleep", "--privacy-loss", "0.5", "--at-most", "1", "--bounds", "0,12")
    first = hushbid(*arguments, cwd=home, text="7.25\n")
    assert first.returncode == 0
    assert json.loads(first.stdout)["epsilon"] == ["1", "2"]
    again = hushbid(*arguments, cwd=home, text="")
    assert again.stdout == first.stdout
    assert "the same message again" in again.stderr
    assert "another privacy loss" in refused(*arguments[:4], "0.7", *arguments[5:], cwd=home, text="7.25")
    other = succeeds(*arguments, "--id", "bob", cwd=home, text="7.25")
    assert other != first.stdout


@pytest.mark.parametrize("loss", ["1e9", "1.0000001", "inf", "nan"])
def test_a_privacy_loss_above_what_she_agreed_to_is_refused_before_the_value_is_read(loss: str, home: Path) -> None:
    arguments = ("privatize", "--campaign", "Sleep", "--at-most", "1", "--bounds", "0,12", "--accept-infinite-loss")
    told = refused(*arguments, "--privacy-loss", loss, "--store", "kept", cwd=home, text="7.25")
    assert "is more than you agreed to, --at-most 1: no noise was drawn" in told
    assert not (home / "kept").exists()


def test_a_largest_loss_must_be_said(home: Path) -> None:
    told = refused("privatize", "--campaign", "Sleep", "--privacy-loss", "0.5", "--bounds", "0,12", cwd=home, text="7")
    assert "--at-most" in told


@pytest.mark.parametrize(
    ("changes", "text", "sentence"),
    [
        ({}, "my secret", "must be one number"),
        ({}, "", "must be one number"),
        ({"--privacy-loss": "0"}, "7.25", "not in the range x>0"),
        ({"--privacy-loss": "inf", "--at-most": "inf"}, "7.25", "--privacy-loss is infinite"),
        ({"--campaign": " \u200b "}, "7.25", "at least one visible character"),
        ({"--bounds": "12,0"}, "7.25", "two numbers, the smaller first"),
        ({"--value-file": "none.txt"}, "", "none.txt cannot be read"),
    ],
)
def test_what_cannot_be_privatized_is_refused_without_echoing_it(
    changes: dict[str, str], text: str, sentence: str, home: Path
) -> None:
    options = {"--campaign": "Sleep", "--privacy-loss": "0.5", "--at-most": "1", "--bounds": "0,12", **changes}
    told = refused("privatize", *(part for pair in options.items() for part in pair), cwd=home, text=text)
    assert sentence in told
    assert "secret" not in told
    assert "7.25" not in told


# -- price, release, verify, audit -----------------------------------------------------------------------------------


def test_price_is_a_filter_and_its_summary_stays_out_of_the_way(home: Path) -> None:
    piped = hushbid("price", "-", *MARKET, cwd=home, text=(home / "bids.csv").read_text())
    assert piped.returncode == 0
    assert piped.stdout.splitlines()[0] == "id,privacy_loss,weight,payment_minor,payment,currency"
    assert len(piped.stdout.splitlines()) == PEOPLE + 1
    assert piped.stderr.startswith("Bought from")
    assert "\r" not in piped.stderr  # no progress bar where nobody watches
    facts = json.loads(succeeds("price", "bids.csv", *MARKET, "--json", cwd=home))
    rows = [line.split(",") for line in piped.stdout.splitlines()[1:]]
    assert facts["total_payment_minor"] == sum(int(row[3]) for row in rows)


def test_a_reader_that_leaves_early_is_no_error(home: Path) -> None:
    many = "".join(f"{1 + k / 20_000}\n" for k in range(20_000))
    (home / "many.csv").write_text(f"bid\n{many}")
    price = f"'{sys.executable}' -m hushbid price many.csv --prior uniform:1,3 --buyer-weight 100"
    command = f"{price} | head -n 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], cwd=home, capture_output=True, text=True, timeout=300)
    assert done.stdout == "id,privacy_loss,weight,payment_minor,payment,currency\n141\n"  # as for other filters
    assert "Traceback" not in done.stderr
    assert "rror" not in done.stderr


def test_a_saved_outcome_is_released_once(home: Path) -> None:
    succeeds("price", "bids.csv", *MARKET, "--record", "o.json", "--json", cwd=home)
    first = json.loads(succeeds("release", "o.json", "data.csv", "--json", cwd=home))
    assert first["drawn_before"] is False
    assert "o.released.json exists already" in refused("release", "o.json", "data.csv", cwd=home)
    again = json.loads(succeeds("release", "o.json", "data.csv", "--force", "--json", cwd=home))
    assert (again["estimate"], again["drawn_before"]) == (first["estimate"], True)
    held = json.loads(succeeds("release", "o.released.json", "data.csv", "--json", "--out", "x.json", cwd=home))
    assert held["estimate"] == first["estimate"]
    assert json.loads(succeeds("verify", "o.released.json", "--json", cwd=home))["verdict"] == "holds"


def test_an_audit_reports_what_it_found_and_what_it_could_have(home: Path) -> None:
    succeeds("price", "bids.csv", *MARKET, "--record", "o.json", "--json", cwd=home)
    sizes = ("--samples", "2000", "--people", "2", "--among", "5")
    found = json.loads(succeeds("audit", "o.json", *sizes, "--json", cwd=home))
    assert found["ok"] is True
    assert len(found["audits"]) == 3
    assert all(audit["verdict"] in ("clear", "weak") for audit in found["audits"])
    assert all(audit["samples"] for audit in found["audits"])


BAD_CALLS: dict[str, tuple[list[str], str]] = {
    "price: no file": (["price", "none.csv", *MARKET], "none.csv does not exist"),
    "price: no prior": (["price", "bids.csv"], "--prior is missing"),
    "price: a prior nobody knows": (
        ["price", "bids.csv", "--prior", "normal:0,1", "--budget", "5"],
        "must be a family",
    ),
    "price: a weight under which people owe": (
        ["price", "bids.csv", *MARKET, "--user-weight", "1"],
        "--user-weight lets people owe money",
    ),
    "price: an unknown currency": (
        ["price", "bids.csv", *MARKET, "--currency", "EURO"],
        "must be three capital letters",
    ),
    "price: a spending limit": (["price", "bids.csv", *MARKET, "--spending-limit", "0.01"], "above the spending limit"),
    "price: an ending nobody knows": (["price", "bids.csv", *MARKET, "--out", "x.docx"], "must end in .csv"),
    "price: an existing file": (["price", "bids.csv", *MARKET, "--out", "data.csv"], "data.csv exists already"),
    "price: two results on one stream": (["price", "bids.csv", *MARKET, "--out", "-", "--json"], "would both write"),
    "price: groups without a column": (
        ["price", "bids.csv", "--prior", "day=uniform:1,3", "--prior", "night=uniform:1,3", "--budget", "5"],
        "--group-column is missing",
    ),
    "price: a group without a prior": (
        ["price", "bids.csv", "--prior", "day=uniform:1,3", "--group-column", "shift", "--budget", "5"],
        "bids.csv: labels must be among 'day', but rows 0, 2, 4",
    ),
    "release: no record": (["release", "none.json", "data.csv"], "none.json cannot be read"),
    "release: no data": (["release", "sleep.toml", "data.csv"], "must be JSON"),
    "verify: no record": (["verify", "bids.csv"], "must be JSON"),
    "audit: no record": (["audit", "none.json"], "none.json cannot be read"),
    "audit: a check nobody knows": (["audit", "x", "--check", "luck"], "'luck' is not one of"),
    "plan: nothing to plan for": (["plan", "--prior", "uniform:1,2", "--budget", "5"], "Give one of --people"),
    "plan: no goal": (
        ["plan", "--prior", "uniform:1,2", "--people", "5"],
        "must state what the buyer has: exactly one of",
    ),
    "plan: an impossible error": (
        ["plan", "--prior", "uniform:1,2", "--people", "10", "--standard-error", "0.01"],
        "--standard-error must be above 0.158114, the least that 10 people can reach",
    ),
    "compare: groups without bids": (
        ["compare", "--prior", "a=uniform:1,2", "--prior", "b=uniform:1,2", "--budget", "5"],
        "need BIDS",
    ),
    "fit-prior: too few people": (["fit-prior", "-"], "at least 10 people"),
    "demo: nobody": (["demo", "--people", "1"], "1 is not in the range"),
    "run: no file": (["run", "none.toml"], "none.toml does not exist"),
}


@each("call", BAD_CALLS)
def test_a_bad_call_is_refused_in_a_sentence(call: str, home: Path) -> None:
    arguments, sentence = BAD_CALLS[call]
    before = contents(home)
    assert sentence in refused(*arguments, cwd=home, text="id,bid\na,1\nb,2\n")
    assert contents(home) == before


# -- plan, compare, demo -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", [["bids.csv"], ["--people", "50", "--repetitions", "3"]], ids=["file", "prior"])
def test_comparing_shows_that_trust_is_cheaper_and_what_others_would_have_paid(source: list[str], home: Path) -> None:
    found = json.loads(succeeds("compare", *source, *MARKET, "--json", cwd=home))
    assert found["settings"]["central"]["objective"] < found["settings"]["local"]["objective"]
    for setting, total in ((name, figures["total_payment"]) for name, figures in found["settings"].items()):
        ours, *others = found["baselines"][setting]["rows"]
        assert ours["payment_for_same_error"] == pytest.approx(total, rel=1e-4)
        assert len(others) == 6
        first_best = others[0]
        assert not first_best["truthful"]
        assert first_best["payment_for_same_error"] < total


def test_the_demo_tells_what_was_bought_at_what_price_how_accurate_and_where_the_report_is(home: Path) -> None:
    told = succeeds("demo", "--people", "300", "--out", "demo", cwd=home)
    for words in ("What was bought", "At what price", "How accurate", "95 % interval", "demo/report.html"):
        assert words in told
    assert {*FINAL_FILES, "campaign.toml", "pilot.csv", "prior.json"} <= set(contents(home / "demo"))
    assert "Attacked          10 audits on our own claims, none found a fault" in told
    assert "python -m hushbid verify demo/record.json" in told or "hushbid verify demo/record.json" in told
    assert "demo/campaign.toml" in refused("demo", "--people", "300", "--out", "demo", cwd=home)
    again = json.loads(succeeds("run", "demo/campaign.toml", "--no-audit", "--force", "--json", cwd=home))
    assert (again["drawn_before"], again["synthetic"]) == (False, True)
    succeeds("demo", "--people", "20", "--no-audit", "--out", "demo", "--force", cwd=home)
    assert (home / "demo" / "decisions.csv").read_text().count("\n") == 21
