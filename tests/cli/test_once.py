"""One question to the same people has one answer: every way round it that we know, on the command line.

What may change without making it another question gives the stored estimate; what was promised, or the data, may not.
"""

import contextlib
import json
import os
import re
import shutil
import stat
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import hushbid
from hushbid.cli import main
from hushbid.disclosure.ledger import marks as ledger_marks
from hushbid.disclosure.ledger import question as ledger_question
from hushbid.disclosure.promises import ReleasePlan
from hushbid.errors import InputError

N = 12
CAMPAIGN = """\
title = "Sleep"
question = "mean sleep"

[market]
setting = "central"
prior = "uniform:1,3"
bounds = [0, 12]
variance = 2
buyer_weight = 500
tolerance = 1e-6

[bids]
file = "bids.csv"

[data]
file = "data.csv"

[output]
folder = "out"
"""
RNG = np.random.default_rng(3)
PRICES, SLEEP = RNG.uniform(1, 3, N).tolist(), RNG.uniform(4, 10, N).tolist()


def write(
    folder: Path, *, text: str = CAMPAIGN, data: dict[str, float] | None = None, rows: list[int] | None = None
) -> Path:
    """The files of a campaign; everybody delivers unless ``data`` say otherwise."""
    folder.mkdir(exist_ok=True)
    listed = rows or list(range(N))
    (folder / "bids.csv").write_text("id,bid\n" + "".join(f"p{k},{PRICES[k]!r}\n" for k in listed))
    values = {f"p{k}": SLEEP[k] for k in range(N)} if data is None else data
    (folder / "data.csv").write_text("id,value\n" + "".join(f"{name},{x!r}\n" for name, x in values.items()))
    (folder / "sleep.toml").write_text(text)
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return write(tmp_path / "home")


@pytest.fixture
def store() -> Path:
    return Path(os.environ["HUSHBID_LEDGER"])


def run(folder: Path, *options: object) -> Any:
    with contextlib.chdir(folder):
        done = CliRunner().invoke(main, ["run", "sleep.toml", "--no-audit", "--force", "--json", *map(str, options)])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def refused(folder: Path, *arguments: object, code: int = 5) -> str:
    """What a refusal says; it leaves everything as it was."""
    before = everything(folder)
    with contextlib.chdir(folder):
        done = CliRunner().invoke(main, list(map(str, arguments or ("run", "sleep.toml", "--no-audit", "--force"))))
    assert (done.exit_code, done.stdout) == (code, ""), done.output
    assert everything(folder) == before
    return done.stderr


def forget() -> None:
    """What a process remembers is gone, as in a new one."""
    hushbid.disclosure.ledger.once._drawn.clear()


def everything(folder: Path) -> dict[str, bytes | None]:
    return {str(path): path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))}


def verified(folder: Path) -> str:
    done = CliRunner().invoke(main, ["verify", str(folder / "record.json")])
    assert done.exit_code == 0, done.output
    return done.stdout


def change(folder: Path, *pairs: tuple[str, str]) -> None:
    text = (folder / "sleep.toml").read_text()
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    (folder / "sleep.toml").write_text(text)


OUTCOME = hushbid.Market(prior=hushbid.Uniform(1, 2), bounds=(0, 1), buyer_weight=50, user_weight=0).acquire(
    [1.1, 1.2, 1.3]
)


def release(data: list[float | None], **options: Any) -> float:
    return hushbid.release(OUTCOME, data, **{"question": "mean", **options}).estimate


# -- what does not make it another question ----------------------------------------------------------------------------

SAME: dict[str, Callable[[Path], Path]] = {
    "nothing": lambda home: home,
    "the tolerance of payments": lambda home: write(home, text=CAMPAIGN.replace("1e-6", "9.99999e-7")),
    "the order of the bids": lambda home: write(home, rows=[*range(5, N), *range(5)]),
    "the order of the data": lambda home: write(home, data={f"p{k}": SLEEP[k] for k in reversed(range(N))}),
    "the name of the campaign": lambda home: write(home, text=CAMPAIGN.replace('"Sleep"', '"Nap"')),
    "capitals and spaces of the question": lambda home: write(
        home, text=CAMPAIGN.replace("mean sleep", " Mean  sleep")
    ),
    "the level of the interval": lambda home: write(home, text=CAMPAIGN + "level = 0.9\n"),
    "money": lambda home: write(home, text=CAMPAIGN.replace("[bids]", '[money]\ncurrency = "JPY"\n[bids]')),
    "the folder of the results": lambda home: write(home, text=CAMPAIGN.replace('"out"', '"elsewhere"')),
    "a copy of everything": lambda home: Path(shutil.copytree(home, home.with_name("copy"))),
    "the folder's name": lambda home: home.rename(home.with_name("renamed")),
    "a link to the folder": lambda home: linked(home),
    "the results are gone": lambda home: gone(home),
}


VERIFIED = ("nothing", "the order of the bids", "the folder of the results")
"""Whose second record is verified."""


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def linked(home: Path) -> Path:
    home.with_name("link").symlink_to(home, target_is_directory=True)
    return home.with_name("link")


def gone(home: Path) -> Path:
    shutil.rmtree(home / "out")
    return home


@pytest.mark.parametrize("changed", SAME)
def test_asking_the_same_again_shows_the_stored_estimate_whatever_else_changes(
    changed: str, home: Path, store: Path
) -> None:
    first = run(home)
    assert first["drawn_before"] is False
    results = contents(home / "out")
    place = SAME[changed](home)
    again = run(place)
    assert (again["estimate"]["estimate"], again["drawn_before"]) == (first["estimate"]["estimate"], True)
    assert len(list(store.glob("*.json"))) == 1
    assert not list(place.rglob("claims")), "the results hold no claims"
    if changed == "nothing":
        assert contents(home / "out") == results
        with contextlib.chdir(home):
            told = CliRunner().invoke(main, ["run", "sleep.toml"])
        assert "out/record.json exists already: --force replaces." in told.stderr
    if changed in VERIFIED:
        verified(place / ("elsewhere" if changed == "the folder of the results" else "out"))


def test_a_stored_release_is_put_in_the_order_of_the_rows_that_ask(tmp_path: Path) -> None:
    late = {f"p{k}": SLEEP[k] for k in range(N) if k != int(np.argmin(PRICES))}
    home = write(tmp_path / "home", data=late)
    run(home)
    before = json.loads((home / "out" / "record.json").read_text())
    order = [*range(7, N), *range(7)]
    write(home, data=late, rows=order)
    run(home)
    after = json.loads((home / "out" / "record.json").read_text())
    lost, now = before["release"]["privacy_loss"], after["release"]["privacy_loss"]
    assert now == [lost[row] for row in order]
    assert after["release"]["dropped_out"] == [order.index(row) for row in before["release"]["dropped_out"]]
    verified(home / "out")


# -- what is refused ---------------------------------------------------------------------------------------------------

CHEAP = int(np.argmin(PRICES))
ALL = {f"p{k}": SLEEP[k] for k in range(N)}
OTHER: dict[str, tuple[Callable[[Path], Path], str]] = {
    "a weight": (lambda home: write(home, text=CAMPAIGN.replace("= 500", "= 500.001")), "other promises"),
    "the bounds": (lambda home: write(home, text=CAMPAIGN.replace("[0, 12]", "[0, 13]")), "other promises"),
    "the setting": (
        lambda home: write(
            home,
            text=CAMPAIGN.replace('"central"', '"local"').replace(
                '"data.csv"', '"data.csv"\nkind = "simulated_values"'
            ),
        ),
        "other promises",
    ),
    "a datum": (lambda home: write(home, data={**ALL, f"p{CHEAP}": SLEEP[CHEAP] + 1e-12}), "drawn from other data"),
    "a datum less": (
        lambda home: write(home, data={name: x for name, x in ALL.items() if name != f"p{CHEAP}"}),
        "drawn from other data",
    ),
    "the words of the question": (
        lambda home: write(home, text=CAMPAIGN.replace("mean sleep", "average sleep")),
        "These data already produced an estimate (question 'mean sleep', wave 1, ",
    ),
    "the wave, on the same data": (
        lambda home: write(home, text="wave = 2\n" + CAMPAIGN),
        "These data already produced an estimate (question 'mean sleep', wave 1, ",
    ),
}


@pytest.mark.parametrize("changed", OTHER)
def test_other_promises_and_other_data_are_refused_and_nothing_is_written(changed: str, home: Path) -> None:
    run(home)
    make, sentence = OTHER[changed]
    shutil.rmtree(home / "out")
    assert sentence in refused(make(home))
    assert not (home / "out").exists()


def test_leaving_out_somebody_who_was_not_bought_from_does_not_draw_again(home: Path) -> None:
    bids = (home / "bids.csv").read_text()
    (home / "bids.csv").write_text(bids + "idle,3.5\n")  # above the prior's support
    assert run(home)["bought_from"] == N
    (home / "bids.csv").write_text(bids)
    assert "These data already produced an estimate" in refused(home)


def test_a_second_question_to_the_same_people_has_its_own_answer(home: Path, store: Path) -> None:
    first = run(home)
    weights = {f"p{k}": 11.0 - SLEEP[k] for k in range(N)}
    write(home, text=CAMPAIGN.replace("mean sleep", "mean rest").replace('"out"', '"rest"'), data=weights)
    second = run(home)
    assert (second["drawn_before"], second["stamps"]) == (False, [])
    assert second["estimate"]["estimate"] != first["estimate"]["estimate"]
    assert len(list(store.glob("*.json"))) == 2


# -- waves and late data -----------------------------------------------------------------------------------------------


def test_a_later_wave_is_drawn_and_counted_in_record_report_and_verification(home: Path) -> None:
    run(home)
    write(home, text="wave = 2\n" + CAMPAIGN, data={name: x + 0.5 for name, x in ALL.items()})
    found = run(home)
    assert (found["estimate"]["wave"], found["estimate"]["waves_before"], found["drawn_before"]) == (2, 1, False)
    sentence = "wave 2: this question was answered from these people's data once before, and what they lose adds up"
    assert found["stamps"] == [sentence]
    assert sentence[1:] in (home / "out" / "report.html").read_text().replace("&#x27;", "'").replace("&#39;", "'")
    assert f"stamp       {sentence}" in verified(home / "out")
    assert run(home)["estimate"]["waves_before"] == 1  # as it was when it was drawn
    write(home, text="wave = 0\n" + CAMPAIGN)
    assert "wave: must be a whole number from 1 to 1000000, got 0" in refused(home, code=2)


def test_late_data_are_named_not_used_and_paid_as_the_campaign_file_says(tmp_path: Path) -> None:
    late = f"p{CHEAP}"
    home = write(tmp_path / "home", data={name: x for name, x in ALL.items() if name != late})
    first = run(home)
    write(home)
    assert f"row {CHEAP} of the bids" in (told := refused(home, code=2))
    assert 'data.late must say what is paid for them: "paid" or "unpaid"' in told
    paid = {}
    for said in ("unpaid", "paid"):
        write(home, text=CAMPAIGN.replace('"data.csv"', f'"data.csv"\nlate = "{said}"'))
        again = run(home)
        assert (again["estimate"]["estimate"], again["late"]) == (first["estimate"]["estimate"], 1)
        rows = [row.split(",") for row in (home / "out" / "payments.csv").read_text().splitlines()]
        assert [row[0] for row in rows if row[4] == "late"] == [late]
        paid[said] = next(int(row[1]) for row in rows if row[0] == late)
        verified(home / "out")
    decided = next(row.split(",") for row in (home / "out" / "decisions.csv").read_text().splitlines() if late in row)
    assert paid == {"unpaid": 0, "paid": int(decided[3])}
    write(home, data={**ALL, f"p{int(np.argsort(PRICES)[1])}": 5.0})  # one is late, and another's has changed
    assert "drawn from other data" in refused(home)


# -- synthetic ---------------------------------------------------------------------------------------------------------


def test_synthetic_campaigns_are_drawn_again_and_every_artefact_says_so(home: Path, store: Path) -> None:
    change(home, ('title = "Sleep"', 'title = "Sleep"\nsynthetic = true'))
    first, second = run(home), run(home)
    assert first["estimate"]["estimate"] != second["estimate"]["estimate"]
    assert not store.exists()
    assert second["synthetic"] is second["estimate"]["synthetic"] is second["estimate"]["public"]["synthetic"] is True
    assert any(stamp.startswith("synthetic: nobody") for stamp in second["stamps"])
    assert "stamp       synthetic: nobody in this campaign was promised anything" in verified(home / "out")
    assert "This campaign is synthetic" in (home / "out" / "report.html").read_text()
    assert json.loads((home / "out" / "estimate.json").read_text())["synthetic"] is True
    for name in ("decisions.csv", "payments.csv"):
        header, *rows = (home / "out" / name).read_text().splitlines()
        assert header.endswith(",synthetic")
        assert all(row.endswith(",yes") for row in rows)
    with contextlib.chdir(home):
        told = CliRunner().invoke(main, ["run", "sleep.toml", "--no-audit", "--force"]).stdout
    assert "STAMPED in the record: synthetic: nobody" in told


def test_synthetic_draws_nothing_from_what_the_ledger_knows_as_real(home: Path) -> None:
    run(home)
    change(home, ('title = "Sleep"', 'title = "Sleep"\nsynthetic = true'))
    assert "(question 'mean sleep', wave 1, " in refused(home)
    change(home, ("mean sleep", "mean rest"))
    assert "These data already produced an estimate (question 'mean sleep'" in refused(home)


def test_a_record_of_an_estimate_that_the_ledger_does_not_know_is_not_replaced(home: Path, tmp_path: Path) -> None:
    first = run(home)
    forget()  # as in a container: the results stay, the state directory is new
    told = refused(home, "run", "sleep.toml", "--no-audit", "--force", "--ledger", tmp_path / "new")
    assert "holds an estimate of these people (question 'mean sleep', wave 1)" in told
    assert f"Created a release ledger: {tmp_path / 'new'}." in told
    with contextlib.chdir(home):
        again = CliRunner().invoke(main, ["run", "sleep.toml", "--no-audit", "--force", "--json"])
    assert json.loads(again.stdout)["estimate"]["estimate"] == first["estimate"]["estimate"]
    assert "Created" not in again.stderr


def test_a_synthetic_record_stays_one_when_its_estimate_is_drawn_later(home: Path, store: Path) -> None:
    data = home / "sleep.toml"
    data.write_text("synthetic = true\n" + CAMPAIGN.replace('[data]\nfile = "data.csv"\n', ""))
    run(home)
    with contextlib.chdir(home):
        done = CliRunner().invoke(main, ["release", "out/outcome.json", "data.csv"])
    assert done.exit_code == 0, done.output
    assert "STAMPED in the record: synthetic" in done.stdout
    assert not store.exists()


def test_a_record_is_released_under_the_question_of_its_campaign(home: Path) -> None:
    (home / "sleep.toml").write_text(CAMPAIGN.replace('[data]\nfile = "data.csv"\n', ""))
    run(home)
    with contextlib.chdir(home):
        found = CliRunner().invoke(main, ["release", "out/outcome.json", "data.csv", "--json"])
    assert found.exit_code == 0, found.output
    write(home)
    again = run(home)
    assert (again["drawn_before"], again["estimate"]["estimate"]) == (True, json.loads(found.stdout)["estimate"])
    with contextlib.chdir(home):
        same = CliRunner().invoke(
            main, ["release", "out/outcome.json", "data.csv", "--force", "--question", "Mean sleep"]
        )
    assert same.exit_code == 0, same.output
    told = refused(home, "release", "out/outcome.json", "data.csv", "--force", "--question", "mean rest", code=2)
    assert "--question must be that of the record, 'mean sleep'" in told


# -- refusals that leave nothing ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "code", "sentence"),
    [
        ({f"p{k}": float("nan") for k in range(N)}, 6, "deliver"),
        ({"somebody else": 7.0}, 2, "nobody in column 'id'"),
        ({**ALL, f"p{CHEAP}": "seven"}, 4, "row"),
    ],
)
def test_a_refusal_leaves_no_folder_and_no_store(
    data: dict[str, Any], code: int, sentence: str, tmp_path: Path, store: Path
) -> None:
    home = write(tmp_path / "home", data={})
    (home / "data.csv").write_text("id,value\n" + "".join(f"{k},{'' if x != x else x}\n" for k, x in data.items()))
    assert sentence in refused(home, code=code)
    assert not (home / "out").exists()
    assert not store.exists()


# -- the store ---------------------------------------------------------------------------------------------------------


def test_names_tell_nothing_and_the_key_is_its_owners(home: Path, store: Path) -> None:
    run(home)
    key = store / "ledger.key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert stat.S_IMODE(store.stat().st_mode) == 0o700
    [claim] = store.glob("*.json")
    assert re.fullmatch(r"ids-[0-9a-f]{32}-[0-9a-f]{32}-1", claim.stem)
    ask = ledger_question.Ask(
        question="mean sleep",
        wave=1,
        by_ids=True,
        setting="central",
        asked=ReleasePlan.of(np.ones(N), setting="central", bounds=(0, 12)),
        tally=ledger_question.tallied(
            ledger_question.person_digests([f"p{k}" for k in range(N)]),
            np.ones(N),
            2.0,
            ledger_question.Forms(rows=[None] * N),
        ),
    )
    for secret, same in ((key.read_bytes(), True), (bytes(32), False)):
        marks = ledger_marks.Marks.of(ask, ledger_marks.Keyed(secret), date(2026, 5, 3), answers=False)
        assert (marks.name == claim.stem) is same
    content = claim.read_text()
    assert not any(f'"p{k}"' in content or repr(SLEEP[k]) in content for k in range(N))


def test_a_store_that_lost_or_damaged_its_key_refuses(home: Path, store: Path) -> None:
    run(home)
    (store / "ledger.key").write_bytes(b"short")
    assert "is damaged: it must hold 32 bytes" in refused(home, code=7)
    (store / "ledger.key").unlink()
    assert "holds entries but has lost ledger.key" in refused(home, code=7)
    assert not (store / "ledger.key").exists()


def test_a_damaged_claim_is_neither_shown_nor_replaced(home: Path, store: Path) -> None:
    run(home)
    [claim] = store.glob("*.json")
    claim.write_bytes(claim.read_bytes().replace(b"estimate", b"estimite"))
    assert "is damaged; it is neither returned nor drawn again" in refused(home, code=7)


@pytest.mark.parametrize("kind", ["a file", "in a file", "relative"])
def test_a_store_that_cannot_be_used_is_told_and_nothing_is_written(
    kind: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    place = {"a file": tmp_path / "file", "in a file": tmp_path / "file" / "below", "relative": "claims"}[kind]
    monkeypatch.setenv("HUSHBID_LEDGER", str(place))
    sentence = {"relative": "must be an absolute path", "a file": "cannot be used: it is a file, or lies in one."}
    assert sentence.get(kind, "cannot be used") in refused(home, code=7)
    assert not (home / "out").exists()


def test_a_mark_of_somebody_who_died_before_drawing_is_in_nobodys_way(home: Path, store: Path) -> None:
    run(home)
    [claim] = store.glob("*.json")
    claim.unlink()  # as a kill leaves it, between the mark of the data and the drawing
    claim.with_suffix(".claim").write_text("")
    forget()
    change(home, ("mean sleep", "average sleep"))
    assert run(home)["drawn_before"] is False
    change(home, ("average sleep", "mean sleep"))
    assert "These data already produced" in refused(home)


def test_a_draft_of_somebody_who_died_is_completed_for_the_same_promise_only(home: Path, store: Path) -> None:
    first = run(home)
    [claim] = store.glob("*.json")
    claim.rename(claim.with_suffix(".draft"))  # as a kill leaves it, between the draft and the final name
    forget()
    write(home, text=CAMPAIGN.replace("= 500", "= 600"))
    assert "other promises" in refused(home)
    write(home)
    again = run(home)
    assert (again["estimate"]["estimate"], again["drawn_before"]) == (first["estimate"]["estimate"], True)


# -- ids ---------------------------------------------------------------------------------------------------------------


def test_the_command_line_draws_nothing_for_repeated_or_missing_ids_that_it_did_not_check(
    home: Path, store: Path
) -> None:
    for name, told in (("p0", "bids.csv: ids must name everybody once"), ("", "nobody is named in row 1")):
        text = "".join(f"{name if k == 1 else f'p{k}'},{PRICES[k]!r}\n" for k in range(N))
        (home / "bids.csv").write_text("id,bid\n" + text)
        assert told in refused(home, "run", "sleep.toml", "--no-audit", "--force", "--check-ids", "off", code=4)
        assert not store.exists()


def test_a_record_without_ids_is_released_once_too(home: Path, store: Path) -> None:
    (home / "bids.csv").write_text("bid\n" + "".join(f"{price!r}\n" for price in PRICES))
    (home / "data.csv").write_text("value\n" + "".join(f"{value!r}\n" for value in SLEEP))
    market = ("--prior", "uniform:1,3", "--bounds", "0,12", "--variance", "2", "--buyer-weight", "500")
    with contextlib.chdir(home):
        assert CliRunner().invoke(main, ["price", "bids.csv", *market, "--record", "r.json", "--json"]).exit_code == 0
        told = [CliRunner().invoke(main, ["release", "r.json", "data.csv", "--json", "--force"]) for _ in range(2)]
    found = [json.loads(one.stdout) for one in told]
    assert found[0]["estimate"] == found[1]["estimate"]
    assert [one["drawn_before"] for one in found] == [False, True]
    assert "These data already produced" in refused(
        home, "release", "r.json", "data.csv", "--force", "--question", "mean rest"
    )
    (home / "data.csv").write_text("value\n" + "".join(f"{value + 1e-9!r}\n" for value in SLEEP))
    assert "people without ids" in refused(home, "release", "r.json", "data.csv", "--force")
    assert len(list(store.glob("data-*.json"))) == 1


def without_ids(home: Path) -> tuple[str, ...]:
    """The campaign's bids and data with no ids, priced into r.json in its market."""
    (home / "noid.csv").write_text("bid\n" + "".join(f"{price!r}\n" for price in PRICES))
    (home / "datanoid.csv").write_text("value\n" + "".join(f"{value!r}\n" for value in SLEEP))
    market = ("--prior", "uniform:1,3", "--bounds", "0,12", "--variance", "2", "--buyer-weight", "500")
    with contextlib.chdir(home):
        done = CliRunner().invoke(main, ["price", "noid.csv", *market, "--record", "r.json", "--json"])
    assert done.exit_code == 0, done.output
    return ("release", "r.json", "datanoid.csv", "--question", "mean sleep")


def test_a_campaign_is_not_drawn_again_from_files_without_its_ids(home: Path, store: Path) -> None:
    run(home)
    asked = without_ids(home)
    forget()
    assert "promised the same" in refused(home, *asked)
    assert len(list(store.glob("*.json"))) == 1


def test_the_estimate_is_told_under_its_question(home: Path) -> None:
    asked = without_ids(home)
    with contextlib.chdir(home):
        told = CliRunner().invoke(main, list(asked)).stdout
    assert told.startswith("Estimate of mean sleep: ")


# -- a store that was tampered with ------------------------------------------------------------------------------------


@pytest.mark.parametrize("changed", ["nothing", "the question"])
def test_an_estimate_that_was_stored_and_is_gone_is_not_drawn_again(changed: str, home: Path, store: Path) -> None:
    run(home)
    [claim] = store.glob("*.json")
    claim.unlink()
    forget()
    if changed == "the question":
        change(home, ("mean sleep", "average sleep"))
    sentence = "was stored and is gone" if changed == "nothing" else "These data already produced"
    assert sentence in refused(home)
    assert not list(store.glob("*.json"))


FORGED: dict[str, Callable[[dict[str, Any]], Any]] = {
    "no promise": lambda claim: {**claim, "stated": {**claim["stated"], "promise": {}}},
    "a promise of texts": lambda claim: {
        **claim,
        "stated": {**claim["stated"], "promise": dict.fromkeys(claim["stated"]["promise"], "x")},
    },
    "no data": lambda claim: {
        **claim,
        "stated": {name: value for name, value in claim["stated"].items() if name != "data"},
    },
    "no release": lambda claim: {**claim, "release": None},
    "another release": lambda claim: {**claim, "release": {"format": "hushbid release"}},
    "a release of an earlier version": lambda claim: {**claim, "release": {"format": "hushbid table release"}},
    "people who are not there": lambda claim: {**claim, "stated": {**claim["stated"], "absent": [N]}},
    "a wave of texts": lambda claim: {**claim, "waves_before": "two"},
    "a list": lambda claim: [claim],
    "nothing": lambda claim: {},
}


def test_a_claim_that_is_whole_but_no_claim_is_refused_with_a_sentence(home: Path, store: Path) -> None:
    run(home)
    [path] = store.glob("*.json")
    honest = path.read_text()
    for what, forged in FORGED.items():
        path.write_bytes(hushbid.disclosure.ledger.files._sealed(forged(json.loads(honest)["drawing"])))
        forget()
        assert re.search(
            r"(entry|stored release) of this version|is damaged|other people|must have format|fields of its version",
            refused(home, code=7),
        ), what
        assert [one.name for one in store.glob("*.json")] == [path.name], what


# -- edges -------------------------------------------------------------------------------------------------------------


def test_a_wave_that_nobody_counts_to_is_refused_where_it_is_given(home: Path, store: Path) -> None:
    change(home, ('title = "Sleep"', f'title = "Sleep"\nwave = {"9" * 300}'))
    assert "wave: must be a whole number from 1 to 1000000" in refused(home, code=2)
    asked = without_ids(home)
    assert "--wave" in refused(home, *asked, "--wave", "1000001", code=2)
    with pytest.raises(InputError, match="wave must be a whole number from 1 to 1000000"):
        release([0.1, 0.2, 0.3], wave=1_000_001, ledger=store)
    assert not store.exists()


def test_the_command_release_asks_what_is_paid_for_late_data_too(home: Path) -> None:
    (home / "sleep.toml").write_text(CAMPAIGN.replace('[data]\nfile = "data.csv"\n', ""))
    run(home)
    rows = (home / "data.csv").read_text().splitlines(keepends=True)
    (home / "early.csv").write_text("".join(row for row in rows if not row.startswith(f"p{CHEAP},")))
    with contextlib.chdir(home):
        first = CliRunner().invoke(main, ["release", "out/outcome.json", "early.csv", "--json", "--late", "paid"])
    assert first.exit_code == 0, first.output
    late = ("release", "out/outcome.json", "data.csv", "--force")
    told = refused(home, *late, code=2)
    assert f"row {CHEAP}" in told
    assert '--late must say what is paid for them: "paid" or "unpaid"' in told
    with contextlib.chdir(home):
        again = CliRunner().invoke(main, [*late, "--late", "unpaid"])
    assert "1 person delivered after it was drawn: their data were not used, and they are unpaid." in again.stdout
    stamps = json.loads((home / "out" / "outcome.released.json").read_text())["stamps"]
    assert "late: the data of 1 person came after the estimate was drawn and were not used; they are unpaid" in stamps
