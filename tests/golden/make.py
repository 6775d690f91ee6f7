"""Write the golden files again: ``python -m tests.golden.make``, or only some campaigns': ``... make central-uniform``.

They say what the command line did at a known good moment. Write them again only where a change of behaviour is meant,
and read the difference before committing it.
"""

import shutil
import sys
import tempfile
from pathlib import Path

from tests.conftest import pytest_runtest_setup as begin_as_another_account
from tests.golden.runs import CAMPAIGNS, HERE, RESULTS, WAYS, run
from tests.golden.surface import help_texts, public_names


def write(campaign: str, results: str) -> None:
    """The results of one campaign, as the first way to get them gives them."""
    way = next(way for way, whose in WAYS.items() if whose == results)
    begin_as_another_account()
    with tempfile.TemporaryDirectory() as folder:
        found = run(campaign, way, Path(folder))
    place = RESULTS / campaign / results
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    for name, content in found.items():
        (place / name).write_bytes(content)


def main(campaigns: list[str]) -> None:
    """Write everything, or the results of these campaigns."""
    for campaign in campaigns or CAMPAIGNS:
        for results in dict.fromkeys(WAYS.values()):
            write(campaign, results)
    if not campaigns:
        (HERE / "names.txt").write_text(public_names(), encoding="utf-8")
        (HERE / "help.txt").write_text(help_texts(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
