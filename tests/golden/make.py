"""Write the golden files again: ``python -m tests.golden.make``, or only some campaigns': ``... make central-uniform``.

They say what the command line did at a known good moment. Write them again only where a change of behaviour is meant,
and read the difference before committing it. On another machine last bits may differ too: write all of them there.
"""

import shutil
import sys
import tempfile
from pathlib import Path

from tests.conftest import pytest_runtest_setup as begin_as_another_account
from tests.golden.runs import CAMPAIGNS, HERE, RESULTS, WAYS, arithmetic, run
from tests.golden.server import FOLDER, play
from tests.golden.surface import help_texts, public_names


def write(campaign: str, results: str) -> None:
    """The results of one campaign, as the first way to get them gives them."""
    way = next(way for way, whose in WAYS.items() if whose == results)
    with tempfile.TemporaryDirectory() as folder:
        _replace(RESULTS / campaign / results, run(campaign, way, Path(folder)))


def write_server() -> None:
    """What people can download from a campaign on a server."""
    with tempfile.TemporaryDirectory() as folder:
        _replace(FOLDER, play(Path(folder)))


def _replace(place: Path, files: dict[str, bytes]) -> None:
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    for name, content in files.items():
        (place / name).write_bytes(content)


def main(campaigns: list[str]) -> None:
    """Write everything, or the results of these campaigns."""
    for campaign in campaigns or CAMPAIGNS:
        for results in dict.fromkeys(WAYS.values()):
            begin_as_another_account()
            write(campaign, results)
    (HERE / "arithmetic.txt").write_text(f"{arithmetic()}\n", encoding="utf-8")
    if not campaigns:
        begin_as_another_account()
        write_server()
        (HERE / "names.txt").write_text(public_names(), encoding="utf-8")
        (HERE / "help.txt").write_text(help_texts(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
