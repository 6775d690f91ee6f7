"""Ten campaigns, run in the ways the command line offers, with all that is random or of this machine held fixed.

Only the command line and names in ``hushbid.__all__`` are used, so code may move as it likes, but for `NOISE` below.
Four parts of a run are not written down as they are:

- a Parquet table, whose bytes belong to the library that wrote it, becomes a text: its columns, then its rows by id;
- a report becomes its text, without markup and without the day;
- the release ledger's folder, which each run has to itself, reads LEDGER;
- versions of libraries read 0 in records and summaries, or no hash would survive an upgrade.
"""

import hashlib
import importlib.metadata
import os
import platform
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager
from datetime import date
from decimal import Decimal
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow.csv
import pyarrow.parquet
from click.testing import CliRunner, Result
from scipy import special

from hushbid.cli import main

NOISE = "hushbid.disclosure.noise._measurement"
"""What makes a sampler of a scale, and the one name below the root that is replaced."""

HERE = Path(__file__).parent
CAMPAIGNS = sorted(path.name for path in (HERE / "campaigns").iterdir())
WAYS = {"memory": "memory", "auto": "memory", "arrow": "engine", "polars": "engine", "duckdb": "engine"}
"""How a campaign is run, and whose results it must give. ``arrow`` is what ``auto`` takes for a folder."""

EVERYWHERE = {"central-mixture", "central-uniform", "local-grouped-simulated", "local-undecided", "local-uniform-ties"}
"""The campaigns that are run in every way; the others in memory and in batches only. What `auto` chooses depends on the
file alone, and that all engines decide the same to the last bit is tests/engine's claim: here some are enough, Parquet
and CSV, both settings, with and without groups, ties and data."""

IN_TWO_WAYS = ("memory", "arrow")
"""How the others are run."""

TWICE = {(campaign, way) for campaign in EVERYWHERE for way in IN_TWO_WAYS}
"""What is run a second time."""

AUDITED = {"central-empirical-ties"}
"""Where our own claims are attacked too, which takes a while."""

OPTIONS = {"central-empirical-ties": ["--on-bad-rows", "drop"]}
RESULTS = HERE / "results"
_NOBODYS = {"hushbid", "numpy", "scipy", "opendp"}
_INLINE = {"a", "abbr", "b", "code", "em", "i", "mark", "small", "span", "strong", "sub", "sup", "tspan", "var"}
_UNSEEN = {"script", "style"}


# -- what is held fixed ------------------------------------------------------------------------------------------------


class FixedNoise:
    """Noise of very nearly the right distribution, decided by six digits of the scale and of what it is added to, and
    by how often these came before: so neither the order of draws matters, nor how many are made in one call, nor the
    last bits of what another machine computes.
    """

    def __init__(self, real: Callable[[float], Any]) -> None:
        self._real = real
        self._before: Counter[str] = Counter()

    def __call__(self, scale: float) -> Any:
        def draw(totals: list[int]) -> list[int]:
            return [total + self._noise(total, scale) for total in totals]

        draw.map = self._real(scale).map  # type: ignore[attr-defined]
        return draw

    def _noise(self, total: int, scale: float) -> int:
        what = f"{total:.5e} {scale:.5e}"
        self._before[what] += 1
        drawn = hashlib.sha256(f"{what} {self._before[what]}".encode()).digest()
        up, down = (int(scale * _quantiles()[int.from_bytes(part) % 4096]) for part in (drawn[:2], drawn[2:4]))
        return up - down


@cache
def _quantiles() -> list[float]:
    """Of the exponential distribution; unlike the C library's, Decimal's logarithm is the same everywhere."""
    return [float(-(Decimal(2 * row + 1) / 8192).ln()) for row in range(4096)]


@contextmanager
def fixed() -> Iterator[None]:
    """Within it, noise and versions are fixed, and nothing depends on the terminal."""
    from pkgutil import resolve_name

    from hushbid.record import content

    real = importlib.metadata.Distribution.version
    version = property(lambda one: "0" if one.metadata["Name"] in _NOBODYS else real.__get__(one))
    with (
        mock.patch(NOISE, FixedNoise(resolve_name(NOISE))),
        mock.patch.object(importlib.metadata.Distribution, "version", version),
        mock.patch.object(platform, "python_version", return_value="0"),
        mock.patch.dict(os.environ, {"COLUMNS": "100", "LINES": "40"}),
    ):
        content._installed.cache_clear()  # an earlier test may have looked them up
        yield
    content._installed.cache_clear()


def arithmetic() -> str:
    """A hash of the last bits that this machine computes; they differ with its processor's instructions."""
    at = np.linspace(0.01, 5.0, 4099)
    results = [np.exp(at), np.log(at), np.log1p(at), np.expm1(-at), at**1.7, np.cumsum(at), np.sum(at), at @ at]
    results += [special.ndtr(at), special.gammainc(2.5, at), special.betainc(2.0, 3.0, at / 5.0)]
    return hashlib.sha256(b"".join(np.asarray(one).tobytes() for one in results)).hexdigest()


def hushbid(*args: str) -> Result:
    """The command line, in this process."""
    return CliRunner().invoke(main, list(args), prog_name="hushbid")


# -- a run -------------------------------------------------------------------------------------------------------------


def run(campaign: str, way: str, folder: Path) -> dict[str, bytes]:
    """Run a campaign in an empty folder and give what it told and wrote, each under a name.

    Some are run twice: for people, and then for programs with ``--force``, which must not draw another estimate.
    """
    _lay_out(campaign, way, folder)
    days = [date.today()]
    command = ["run", "campaign.toml", "--engine", "auto" if way == "arrow" else way, *OPTIONS.get(campaign, [])]
    with chdir(folder), fixed():
        audited = campaign in AUDITED and WAYS[way] == "memory"
        first = hushbid(*command, *([] if audited else ["--no-audit"]))
        places = [path for path in folder.rglob("*") if path.is_file() and path.parent.name in ("results", "campaign")]
        days.append(date.today())
        found = dict(_shown(path, days) for path in sorted(places))
        told = f"exit {first.exit_code}\n{first.stdout}{first.stderr}"
        found["told.txt"] = told.replace(os.environ["HUSHBID_LEDGER"], "LEDGER").encode()
        if (campaign, way) in TWICE:
            found["again.json"] = hushbid(*command, "--no-audit", "--force", "--json").stdout.encode()
    return found


def _lay_out(campaign: str, way: str, folder: Path) -> None:
    """The campaign's files. Engines read Parquet, ``arrow`` a folder of two files; none takes people's messages."""
    shutil.copytree(HERE / "campaigns" / campaign, folder, dirs_exist_ok=True)
    as_they_stand = pyarrow.csv.ConvertOptions(strings_can_be_null=True, null_values=[""])
    table = pyarrow.csv.read_csv(folder / "people.csv", convert_options=as_they_stand)
    pyarrow.parquet.write_table(table, folder / "people.parquet")
    if WAYS[way] == "memory":
        return
    file = "people" if way == "arrow" else "people.parquet"
    settings = folder / "campaign.toml"
    text = re.sub(r'"people\..*"', f'"{file}"', settings.read_text(encoding="utf-8"))
    if 'setting = "local"' in text:
        text = re.sub(r"\[data\][^[]*", "", text)
    settings.write_text(text, encoding="utf-8")
    if way == "arrow":
        (folder / file).mkdir()
        half = table.num_rows // 2
        pyarrow.parquet.write_table(table.slice(0, half), folder / file / "1.parquet")
        pyarrow.parquet.write_table(table.slice(half), folder / file / "2.parquet")


def _shown(path: Path, days: list[date]) -> tuple[str, bytes]:
    """A file's name and content as they are compared."""
    if path.suffix == ".parquet":
        return f"{path.stem}.parquet.txt", table_text(path).encode()
    if path.suffix == ".html":
        return f"{path.stem}.txt", report_text(path.read_text(encoding="utf-8"), days).encode()
    return path.name, path.read_bytes()


def table_text(path: Path) -> str:
    """A Parquet table: its columns with their types, and its rows in the order of the first column."""
    table = pyarrow.parquet.read_table(path)
    head = ", ".join(f"{field.name}: {str(field.type).removeprefix('large_')}" for field in table.schema)
    rows = sorted(zip(*(column.to_pylist() for column in table.columns), strict=True), key=lambda row: str(row[0]))
    return "\n".join([head, *(", ".join(map(repr, row)) for row in rows)]) + "\n"


class _Text(HTMLParser):
    """The text of a page, one line for each element that is not within a line."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._unseen = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._unseen += tag in _UNSEEN
        self._break(tag)

    def handle_endtag(self, tag: str) -> None:
        self._unseen -= tag in _UNSEEN
        self._break(tag)

    def handle_data(self, data: str) -> None:
        if not self._unseen:
            self.parts.append(re.sub(r"\s+", " ", data))

    def _break(self, tag: str) -> None:
        if tag not in _INLINE:
            self.parts.append("\n")


def report_text(page: str, days: list[date]) -> str:
    """What somebody reads in a report: numbers and text, whatever the markup, and DAY for the day it was made."""
    reader = _Text()
    reader.feed(page)
    lines = (" ".join(line.split()) for line in "".join(reader.parts).split("\n"))
    text = "\n".join(line for line in lines if line) + "\n"
    for day in days:
        text = text.replace(day.isoformat(), "DAY")
    return text
