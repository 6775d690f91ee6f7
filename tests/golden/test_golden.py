"""What the command line did at a known good moment, it does still: the golden files are read, verified and reproduced.

New artefacts, new facts beside the old ones and new names may be added; whatever is pinned must stay: bit for bit on a
machine that computes as the one did that wrote the files, otherwise to six digits. If a change of behaviour is meant,
``python -m tests.golden.make`` writes the files again, and the commit says why.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from hushbid import verify
from hushbid.record import Record, read
from tests.extent import ALL_CASES, each
from tests.golden.runs import CAMPAIGNS, EVERYWHERE, HERE, IN_TWO_WAYS, RESULTS, TWICE, WAYS, arithmetic, hushbid, run
from tests.golden.server import FOLDER, comparable, play
from tests.golden.surface import help_texts, public_names

RECORDS = [*sorted(RESULTS.glob("*/*/record.json")), *RESULTS.glob("*/*/outcome.json"), FOLDER / "record.json"]
AS_IN_MEMORY = {"central-beta-weights", "central-empirical-ties", "central-fitted-wave", "central-lognormal-cap"}
"""Campaigns whose record in batches says what memory's says, but for the campaign file's hash."""

GROWING = {"again.json", "decided.json", "summary.json"}
"""Facts that may get company; so may an engine's estimate, beside which memory's always told more."""

SLOW = ("central-lognormal-cap", "arrow")
"""Run only where every combination is: caps in batches are tests/engine's claim, and its record is compared here."""

PAIRS = [
    (one, way)
    for one in CAMPAIGNS
    for way in WAYS
    if ALL_CASES or (one in EVERYWHERE or (way in IN_TWO_WAYS and (one, way) != SLOW))
]
SAME_ARITHMETIC = arithmetic() == (HERE / "arithmetic.txt").read_text(encoding="utf-8").strip()
_NUMBER = re.compile(r"(\d+(?:\.\d+)?(?:e[+-]?\d+)?)")
_HASH = re.compile(rb"\b[0-9a-f]{64}\b")
_WRITTEN = re.compile(r"^(Written to .*?): (.*)\.$", flags=re.MULTILINE)


@pytest.mark.parametrize(("campaign", "way"), PAIRS)
def test_a_campaign_gives_what_it_gave(campaign: str, way: str, tmp_path: Path) -> None:
    found = run(campaign, way, tmp_path)
    pinned = {path.name: path.read_bytes() for path in (RESULTS / campaign / WAYS[way]).iterdir()}
    if (campaign, way) not in TWICE:
        pinned.pop("again.json", None)
    other = way not in IN_TWO_WAYS  # names its file in another way than the pinned run, so hashes differ
    # First what was told, which explains why a file is missing; last what repeats the record's hash.
    for name in sorted(pinned, key=lambda name: (name != "told.txt", name in ("again.json", "report.txt"), name)):
        assert name in found, f"{name} is not written any more"
        may_grow = name in GROWING or (WAYS[way] == "engine" and name == "estimate.json")
        compare(
            name, *(_HASH.sub(b"HASH", one) if other else one for one in (pinned[name], found[name])), may_grow=may_grow
        )


def compare(name: str, pinned: bytes, found: bytes, *, may_grow: bool) -> None:
    """Byte for byte, but for what may grow and for the line breaks in a report's text."""
    if may_grow:
        before = json.loads(pinned)
        now = kept(before, json.loads(found))
        same(*(json.dumps(facts, indent=1, sort_keys=True) for facts in (now, before)), name)
    elif name == "told.txt":
        before, files = without_files(pinned.decode())
        now, more = without_files(found.decode())
        same(now, before, name)
        assert files <= more
    elif name == "report.txt":
        same(" ".join(found.decode().split()), " ".join(pinned.decode().split()), name)
    else:
        same(found.decode(), pinned.decode(), name)


def same(found: str, pinned: str, name: str) -> None:
    """Equal; on a machine whose last bits are others, without hashes and to six digits."""
    if not SAME_ARITHMETIC:
        (found, numbers), (pinned, before) = (text_and_numbers(text) for text in (found, pinned))
        assert numbers == pytest.approx(before, rel=1e-6, abs=1e-9), name
    assert found == pinned, name


def text_and_numbers(text: str) -> tuple[str, list[float]]:
    """A text with gaps for its numbers, and these."""
    parts = _NUMBER.split(_HASH.sub(b"HASH", text.encode()).decode())
    return " ".join(parts[::2]), [float(part) for part in parts[1::2]]


def kept(pinned: Any, found: Any) -> Any:
    """What was found, without facts and files that were added."""
    if not (isinstance(pinned, dict) and isinstance(found, dict)):
        return found
    same = {name: kept(pinned[name], value) for name, value in found.items() if name in pinned}
    if "files" in same:
        same["files"] = [file for file in same["files"] if file in pinned["files"]]
    return same


def without_files(told: str) -> tuple[str, set[str]]:
    """What was told, and the names of the files that were written, of which there may be more one day."""
    names = {name for _, listed in _WRITTEN.findall(told) for name in listed.split(", ")}
    return _WRITTEN.sub(r"\1", told), names


@pytest.mark.parametrize("record", RECORDS, ids=lambda path: path.parent.parent.name)
def test_a_record_is_read_and_verified_as_it_is(record: Path) -> None:
    """As the command does, which integrates the rents of more people finely.

    Of two records that say the same, one is verified.
    """
    campaign, way, found = record.parent.parent, record.parent.name, read(record)
    if way == "engine" and campaign.name in AS_IN_MEMORY:
        assert said(found) == said(read(campaign / "memory" / "record.json"))
        if not ALL_CASES:
            return
    if way == "engine" and campaign.name == "central-grouped" and not ALL_CASES:
        return  # the rents of two priors take long; memory's record of the same people is verified
    verified = verify(found)
    assert verified.ok, verified.summary()


def said(record: Record) -> dict[str, Any]:
    """A record's content without the hash of the campaign file, which names another file of people in batches."""
    content = dict(record.content)
    content["notes"] = [note for note in content["notes"] if not note.startswith("campaign file sha256: ")]
    return content


def test_a_campaign_on_a_server_gives_what_it_gave(tmp_path: Path) -> None:
    pinned = comparable({path.name: path.read_bytes() for path in FOLDER.iterdir()})
    found = comparable(play(tmp_path))
    assert [name for name in pinned if name not in found] == []
    for name, content in pinned.items():
        same(" ".join(found[name].split()), " ".join(content.split()), name)


@each("receipt", sorted(FOLDER.glob("receipt-*.json")))
def test_a_receipt_is_read_and_verified_as_it_is(receipt: Path) -> None:
    key = json.loads((FOLDER / "keys.json").read_bytes())["keys"][0]
    known = {"keys": FOLDER / "keys.json", "log": FOLDER / "log.jsonl", "record": FOLDER / "record.json"}
    options = [f"--{name}={path}" for name, path in known.items()]
    told = hushbid("verify", str(receipt), f"--public-key={key['public_key']}", *options)
    assert told.exit_code == 0, told.output


def test_a_log_is_read_and_verified_as_it_is() -> None:
    told = hushbid("verify", str(FOLDER / "log.jsonl"), f"--record={FOLDER / 'record.json'}")
    assert told.exit_code == 0, told.output


def test_public_names_and_their_parameters_stay() -> None:
    pinned = (HERE / "names.txt").read_text(encoding="utf-8").splitlines()
    assert [line for line in pinned if line not in public_names().splitlines()] == []


def test_commands_and_their_help_stay() -> None:
    assert help_texts().splitlines() == (HERE / "help.txt").read_text(encoding="utf-8").splitlines()
