"""What the command line did at a known good moment, it does still: the golden files are read, verified and reproduced.

New artefacts, new facts beside the old ones and new names may be added; whatever is pinned must stay. If a change of
behaviour is meant, ``python -m tests.golden.make`` writes the files again, and the commit says why.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.golden.runs import CAMPAIGNS, HERE, RESULTS, WAYS, hushbid, run
from tests.golden.surface import help_texts, public_names

RECORDS = sorted([*RESULTS.glob("*/*/record.json"), *RESULTS.glob("*/*/outcome.json")])
GROWING = {"again.json", "decided.json", "summary.json"}
"""Facts that may get company."""

_WRITTEN = re.compile(r"^(Written to .*?): (.*)\.$", flags=re.MULTILINE)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("campaign", CAMPAIGNS)
def test_a_campaign_gives_what_it_gave(campaign: str, way: str, tmp_path: Path) -> None:
    found = run(campaign, way, tmp_path)
    pinned = {path.name: path.read_bytes() for path in sorted((RESULTS / campaign / WAYS[way]).iterdir())}
    if way == "auto":
        del pinned["again.json"]
    assert [name for name in pinned if name not in found] == []
    for name, content in pinned.items():
        compare(name, content, found[name])


def compare(name: str, pinned: bytes, found: bytes) -> None:
    """Byte for byte, but for what may grow and for the line breaks in a report's text."""
    if name in GROWING:
        assert kept(json.loads(pinned), json.loads(found)) == json.loads(pinned), name
    elif name == "told.txt":
        before, files = without_files(pinned.decode())
        now, more = without_files(found.decode())
        assert now == before
        assert files <= more
    elif name == "report.txt":
        assert found.decode().split() == pinned.decode().split(), name
    else:
        assert found == pinned, name


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


@pytest.mark.parametrize("record", RECORDS, ids=lambda path: path.parts[-3])
def test_a_record_is_read_and_verified_as_it_is(record: Path) -> None:
    told = hushbid("verify", str(record))
    assert told.exit_code == 0, told.output


def test_public_names_and_their_parameters_stay() -> None:
    pinned = (HERE / "names.txt").read_text(encoding="utf-8").splitlines()
    assert [line for line in pinned if line not in public_names().splitlines()] == []


def test_commands_and_their_help_stay() -> None:
    assert help_texts().splitlines() == (HERE / "help.txt").read_text(encoding="utf-8").splitlines()
