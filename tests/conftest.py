"""What all tests share: Hypothesis profiles, and the rule about parts that a machine may lack.

A test that needs PostgreSQL, Chromium or Java asks for it with the fixture ``require``::

    def test_a_page_opens(require):
        browser = require("chromium")          # its path, or the test is skipped

On a laptop the skip is fine. Where ``CI=true`` every skip, whatever its cause, is a failure: a check that did not run
has not passed.

Temporary files are kept in memory where the machine has room: thousands of tests wait for each of their files to reach
a disk, and none is about a loss of power. ``TMPDIR`` says otherwise.
"""

import gc
import itertools
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

CI = os.environ.get("CI", "").lower() in {"1", "true"}

# nothing depends on time: a busy machine draws examples slowly, and the first one may import a library
ANY_TIME: dict[str, Any] = {"deadline": None, "suppress_health_check": [hypothesis.HealthCheck.too_slow]}
hypothesis.settings.register_profile("laptop", **ANY_TIME)
hypothesis.settings.register_profile("ci", **ANY_TIME, derandomize=True, database=None, print_blob=True)
hypothesis.settings.load_profile("ci" if CI else "laptop")


# Whatever a container says: modules are compiled once, not in each of the hundreds of processes that tests start.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Each core has a test of its own to run, and threads for small matrices only wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

MEMORY = Path("/dev/shm")
ROOM = 2**30


def _has_room(place: Path) -> bool:
    return place.is_dir() and os.access(place, os.W_OK) and shutil.disk_usage(place).free >= ROOM


if "TMPDIR" not in os.environ and _has_room(MEMORY):
    os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)  # for processes that tests start, and for this one


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a background job's; what tests start would ignore it too
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _postgres() -> Path | None:
    """The folder of initdb and pg_ctl, which Debian keeps off the path; the newest version if there are several."""
    on_path = shutil.which("initdb")
    if on_path:
        return Path(on_path).resolve().parent
    found = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    return max((path.parent for path in found), key=lambda bin: float(bin.parent.name), default=None)


def _first_on_path(*names: str) -> Path | None:
    return next((Path(found) for found in map(shutil.which, names) if found), None)


PARTS: dict[str, Callable[[], Path | None]] = {
    "postgres": _postgres,
    "chromium": lambda: _first_on_path("chromium", "chromium-browser", "google-chrome"),
    "java": lambda: _first_on_path("java"),
}


@pytest.fixture(scope="session")
def require() -> Callable[[str], Path]:
    """Give the path of a part of this machine, or skip."""

    def find(part: str) -> Path:
        path = PARTS[part]()
        if path is None:
            pytest.skip(f"{part} is not installed (make test-deps)")
        return path

    return find


SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
"""For Java: do not compile at length what runs for seconds, nor prove again that Spark's classes are well formed."""


FEW_ROWS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.log.level": "ERROR",
}
"""For Spark: no web page, and no compiling of what handles a few thousand rows."""


@pytest.fixture(scope="session")
def spark_session(require: Callable[[str], Path]) -> Iterator[Any]:
    """A local session: two threads, bound to this machine."""
    require("java")
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.extraJavaOptions", SHORT_LIVED)
        .config(map=FEW_ROWS)
        .getOrCreate()
    )
    yield session
    session.stop()


def pytest_collection_finish() -> None:
    """Thousands of tests and all their modules stay to the end: there is no need to look for garbage among them."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Spark comes first: so the same one of several processes runs all of its tests, and only that one starts Java."""
    items.sort(key=lambda one: "spark" not in one.nodeid and "spark_session" not in getattr(one, "fixturenames", ()))


def _clear_after_the_killed(room: Path) -> None:
    """Remove the stores of test runs that were stopped before they could."""
    for place in room.glob("hushbid-ledger-*-*"):
        try:
            os.kill(int(place.name.split("-")[2]), 0)
        except ProcessLookupError:
            shutil.rmtree(place, ignore_errors=True)
        except (PermissionError, ValueError, OverflowError):
            continue  # somebody else's


_clear_after_the_killed(Path(tempfile.gettempdir()))
_STORES = tempfile.TemporaryDirectory(prefix=f"hushbid-ledger-{os.getpid()}-")
_number = itertools.count()
os.environ["HUSHBID_LEDGER"] = str(Path(_STORES.name) / "session")

# Nobody outside this machine is asked anything, so no client needs to read the certificates of the whole world.
os.environ.pop("SSL_CERT_FILE", None)
os.environ["SSL_CERT_DIR"] = _STORES.name


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Every test is an account of its own: nobody has asked anything yet, and nobody's real store is touched."""
    os.environ["HUSHBID_LEDGER"] = str(Path(_STORES.name) / str(next(_number)))
    for module, memory in (("once", "_drawn"), ("once", "_asked")):
        if f"hushbid.disclosure.{module}" in sys.modules:
            getattr(sys.modules[f"hushbid.disclosure.{module}"], memory).clear()


def _fail_if_skipped(report: pytest.TestReport | pytest.CollectReport) -> None:
    if CI and report.outcome == "skipped" and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid} did not run, and where CI=true that is a failure. {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _fail_if_skipped(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _fail_if_skipped(report)
    return report
