"""Refusals speak of options and of the fields of campaign files, and figures are written alike in all commands."""

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from hushbid.cli import COMMANDS, audit, in_options, main
from hushbid.errors import HushbidError, InputError
from tests.extent import each

MARKET = ("--prior", "uniform:1,2", "--bounds", "0,10")
PYTHON = re.compile(r"\w=(True|False|None|['\d])|\bNone\b|\b[A-Z][a-z]+\(|\(\)|\b[a-z]+_[a-z_]+\b")
"""An argument with its value, a class, a call, a name of several words."""


def command(name: str) -> click.Command:
    found = main.get_command(click.Context(main), name)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("words")
    lines = (f"p{place},{1 + place / 12},{'north' if place % 2 else 'south'}" for place in range(12))
    (folder / "bids.csv").write_text("\n".join(["id,bid,region", *lines]))
    (folder / "data.csv").write_text("\n".join(["id,value", *(f"p{place},{place / 2}" for place in range(12))]))
    (folder / "other.csv").write_text("\n".join(["id,value", *(f"p{place},{place / 3}" for place in range(12))]))
    (folder / "each.toml").write_text('[strata]\ncolumn = "region"\neach = true\n')
    return folder


def hushbid(home: Path, *arguments: object, typed: str | None = None) -> Result:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        return CliRunner().invoke(main, [str(one) for one in arguments], input=typed)


# -- what is refused ---------------------------------------------------------------------------------------------------


PRICE, PLAN = ("price", "bids.csv", *MARKET), ("plan", *MARKET)
DEVICE = ("privatize", "--campaign", "c", "--bounds", "0,1", "--store", "s")


@each(
    ("call", "told"),
    [
        ((*PRICE, "--budget", 5, "--setting", "local"), "--population must be stated with a budget that is met"),
        ((*PRICE, "--standard-error", 0.01), "--standard-error must be above"),
        ((*PRICE, "--budget", 5, "--variance", 26), "--variance must not exceed a quarter of the squared width"),
        ((*PLAN, "--budget", 5, "--people", 5, "--variance", 26), "--variance must not exceed a quarter of the"),
        ((*PRICE, "--budget", 5, "--questions", "none.toml"), "none.toml does not exist."),
        ((*PRICE, "--budget", 5, "--strata", "bids.csv"), "bids.csv is not TOML: Expected '=' after a key"),
        (("price", "bids.csv", "--prior", "a=uniform:1,2", "--budget", 5), "--group-column is missing"),
        ((*PRICE, "--standard-error", 5, "--strata", "each.toml"), "each = true makes every stratum a campaign"),
        ((*PRICE, "--budget", 5, "--currency", "euro"), "--currency must be three capital letters"),
        ((*PRICE, "--budget", 5, "--bounds", "0,1e300"), "--bounds must be two numbers"),
        (("price", "bids.csv", "--prior", "uniform:2,1", "--budget", 5), "--prior: high must be"),
        (
            (*PRICE, "--budget", 5, "--user-weight", 1, "--people-may-owe-money", "--variance", 1),
            "--user-weight must be 0",
        ),
        ((*PLAN, "--budget", 5, "--target-payment", 5), "--target-payment must not be given beside a budget"),
        ((*PLAN, "--hard-budget", 1, "--target-standard-error", 0.01), "--target-standard-error must be above"),
        ((*PLAN, "--budget", 1e60, "--people", 5), "--budget must be from"),
        (("fit-prior", "bids.csv", "--range", "1,1.1"), "--range must lie around"),
        ((*DEVICE, "--privacy-loss", "inf", "--at-most", "inf"), "pass --accept-infinite-loss"),
        (("new", *MARKET, "--budget", 5, "--force", "--setting", "local"), "population must be stated with a budget"),
    ],
)
def test_a_refusal_speaks_of_options(call: tuple[object, ...], told: str, home: Path) -> None:
    done = hushbid(home, *call, typed="0.5\n")
    assert done.exit_code in (2, 5, 6), done.output
    assert told in done.stderr
    sentence = done.stderr[done.stderr.index("Error: ") :]
    fields = "low=2|high=1"
    assert PYTHON.findall(re.sub(fields, "", sentence)) == []


def test_what_is_no_option_of_a_command_is_a_field_of_a_campaign_file_or_stays() -> None:
    infinite = HushbidError("pass accept_infinite_loss=True, or set max_privacy_loss.")
    assert in_options(infinite, command("release")) == "pass --accept-infinite-loss, or set max_privacy_loss."
    assert (
        in_options(infinite, command("run"), by_files=True) == "pass --accept-infinite-loss, or set max_privacy_loss."
    )
    assert in_options(infinite, command("price")) == ("pass accept_infinite_loss=True, or set --max-privacy-loss.")
    kept = InputError("year=2024/buyer_weight.csv has no column 'buyer_weight'; force=Trueness, engine='a b'.")
    assert in_options(kept, command("price")) == str(kept)
    cap = InputError("privacy_cap must be positive.", field="privacy_cap")
    assert in_options(cap, command("serve")) == "--privacy-cap must be positive."
    assert in_options(InputError("engine='memory' or force=True."), command("run")) == "--engine memory or --force."


def test_where_files_state_the_market_their_fields_keep_their_names() -> None:
    problem = InputError("budget must be above 0, beside a buyer_weight.", field="budget")
    assert in_options(problem, command("compare")) == "--budget must be above 0, beside a --buyer-weight."
    assert in_options(problem, command("compare"), by_files=True) == str(problem)
    dotted = InputError("a.toml, market.budget: needs a buyer_weight.", field="market.budget")
    assert in_options(dotted, command("compare")) == str(dotted)


def test_every_command_that_takes_a_market_from_options_takes_the_same_ones() -> None:
    names = {name: {one.name for one in command(name).params} for name in COMMANDS}
    shared = (names["price"] & names["plan"]) - {"force"}
    assert {
        "prior",
        "budget",
        "hard_budget",
        "standard_error",
        "buyer_weight",
        "max_privacy_loss",
        "currency",
    } <= shared
    assert {"bounds", "variance", "questions", "strata", "user_weight", "max_correlation", "population"} <= shared
    takes = {name for name, found in names.items() if "budget" in found}
    assert takes == {"new", "run", "price", "plan", "compare"}
    for name in takes:
        assert shared - names[name] == set(), name


# -- what is shown -----------------------------------------------------------------------------------------------------

FLOAT = re.compile(r"(?<![\w.,:=-])[-\u2212]?\d+(?:,\d{3})*(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w:])")
MOST_DIGITS = 4


EXEMPT = re.compile(r"[0-9a-f]{64}|[A-Z]{3} [\u2212\d,.]+|--\S+ \S+|^  market\..*")
"""Hashes, money in whole coins, what is to be typed again, and what a file states."""


def wrongly_written(text: str) -> Iterator[str]:
    """Numbers that did not go through ``hushbid.common.numbers``."""
    for found in FLOAT.findall(EXEMPT.sub("", text)):
        whole, _, part = found.partition(".")
        digits = re.sub(r"\D", "", whole + part).lstrip("0") if part else ""
        unbroken = not part and "," not in whole and len(whole) > MOST_DIGITS
        if "e" in found.lower() or found.startswith("-") or len(digits) > MOST_DIGITS or unbroken:
            yield found


def test_numbers_are_written_alike_in_all_commands(home: Path) -> None:
    goal = (*MARKET, "--currency", "EUR", "--buyer-weight", 123456.7)
    tiny = ("--budget", 123456.7, "--max-privacy-loss", 3e-9, "--out", "x.csv", "--record", "x.json")
    calls: list[tuple[object, ...]] = [
        ("fit-prior", "bids.csv"),
        ("plan", *goal, "--people", 12, "--repetitions", 20),
        (*PLAN, "--standard-error", 2.5, "--target-payment", 500, "--repetitions", 20, "--max-correlation", 0.05),
        ("compare", "bids.csv", *goal),
        ("compare", *goal, "--people", 12, "--repetitions", 2, "--no-baselines"),
        ("new", *goal, "--data", "data.csv", "--out", "a.toml"),
        ("new", *MARKET, "--standard-error", 2.5, "--out", "b.toml"),
        ("compare", "a.toml", "b.toml"),
        ("run", "a.toml", "--no-audit"),
        ("run", "b.toml"),
        (*PRICE, *tiny),
        ("release", "x.json", "other.csv", "--question", "another"),
        ("verify", "x.json"),
        ("report", "a/record.json", "--no-audit", "--out", "again.html"),
    ]
    line = {"title": "Accuracy", "verdict": "weak", "finding": "x", "samples": "y", "power_against": "z"}
    shown: dict[object, list[str]] = {"audit": list(wrongly_written(audit._text([{**line, "power": 1 / 3}])))}
    for call in calls:
        done = hushbid(home, *call)
        assert done.exit_code == 0, (call, done.output)
        assert "\u00a0" not in done.output  # a terminal shows spaces
        shown[call] = [one for line in done.output.splitlines() for one in wrongly_written(line)]
    assert {call: found for call, found in shown.items() if found} == {}


def test_the_walk_would_notice_a_number_that_nobody_wrote_for_people() -> None:
    wrong = "1e-05 1.23e+04 0.123456 12345 -0.5"
    assert list(wrongly_written(wrong)) == wrong.split()
    assert list(wrongly_written("EUR 12,345.67; 12,345 of 0.1234; 3 × 10⁻⁷; ε = 0.86; --budget 123456.7; −0.5")) == []
