"""What all tests share: Hypothesis profiles, and the rule about parts that a machine may lack.

A test that needs PostgreSQL, Chromium or Java asks for it with the fixture ``require``::

    def test_a_page_opens(require):
        browser = require("chromium")          # its path, or the test is skipped

On a laptop the skip is fine. Where ``CI=true`` every skip, whatever its cause, is a failure: a check that did not run
has not passed.

A test that is not done after `LIMIT` seconds fails by name, later where the machine has more to do than it can.

``make test`` checks every claim once. What ``make test-long`` adds is repetition, and each part can be asked for alone:
``HUSHBID_EXAMPLES=10`` tries ten times the examples, ``HUSHBID_STORES=all`` runs on both stores what is about neither,
``HUSHBID_CASES=all`` runs every combination where some stand for all.

Temporary files are kept in memory where the machine has room: thousands of tests wait for each of their files to reach
a disk, and none is about a loss of power. ``TMPDIR`` says otherwise.
"""

import asyncio
import fcntl
import gc
import itertools
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from _pytest.doctest import DoctestModule

CI = os.environ.get("CI", "").lower() in {"1", "true"}

# nothing depends on time: a busy machine draws examples slowly, and the first one may import a library
ANY_TIME: dict[str, Any] = {"deadline": None, "suppress_health_check": [hypothesis.HealthCheck.too_slow]}
ANY_TIME |= {"max_examples": 50}  # where a property states no number of its own
hypothesis.settings.register_profile("laptop", **ANY_TIME)
hypothesis.settings.register_profile("ci", **ANY_TIME, derandomize=True, database=None, print_blob=True)
hypothesis.settings.load_profile("ci" if CI else "laptop")


# Thousands of modules and tests are collected, and none of them is garbage.
gc.disable()

# Whatever a container says: modules are compiled once, not in each of the hundreds of processes that tests start.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Each core has a test of its own to run, and threads for small matrices only wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Worker processes keep the memory of large arrays: giving it back and asking for it again took a tenth of some tests.
os.environ.setdefault("MALLOC_MMAP_THRESHOLD_", str(2**25))
os.environ.setdefault("MALLOC_TRIM_THRESHOLD_", str(2**28))

MEMORY = Path("/dev/shm")
ROOM = 2**30


EXAMPLES = int(os.environ.get("HUSHBID_EXAMPLES", "1"))
"""How many times the usual number of examples Hypothesis tries."""


def _try_more_examples(test: Any) -> None:
    """Multiply the number that a test states, or the profile's."""
    if hasattr(test, "hypothesis"):
        stated = getattr(test, "_hypothesis_internal_use_settings", None) or hypothesis.settings()
        more = hypothesis.settings(stated, max_examples=EXAMPLES * stated.max_examples)
        getattr(test, "__func__", test)._hypothesis_internal_use_settings = more


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


CHROMIUM = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The shell without windows and profiles draws the same pages in less time."""

PARTS: dict[str, Callable[[], Path | None]] = {
    "postgres": _postgres,
    "chromium": lambda: _first_on_path(*CHROMIUM),
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
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Examples stand in docstrings of the package: there is no need to look for them in tests, nor where none is."""
    found = yield
    if any(isinstance(one, DoctestModule) for one in found):
        ours = file_path.is_relative_to(Path(__file__).parent)
        if ours or b">>>" not in file_path.read_bytes():
            return [one for one in found if not isinstance(one, DoctestModule)]
    return found


BEGUN_FIRST = (
    "tests/engine/test_cluster.py",
    "tests/server/pages/test_first_survey.py",
    "tests/server/pages/test_whole_campaigns.py",
    "tests/languages/test_pseudo.py",
    "tests/server/pages/test_demo.py",
    "tests/server/http/test_serve.py",
    "tests/server/test_crash.py",
    "tests/verification/test_goals.py",
    "tests/mechanism/test_truthfulness.py",
    "tests/e2e/test_pages.py",
    "tests/display/test_tutorial.py",
    "tests/house/test_docs.py",
    "tests/house/test_package.py",
)
"""Files with the longest tests: begun late, one of them keeps a process busy after the others have ended."""


def _turn(item: pytest.Item) -> int:
    """Spark comes first: so the same one of several processes runs all of its tests, and only that one starts Java."""
    if "spark" in item.nodeid or "spark_session" in getattr(item, "fixturenames", ()):
        return 0
    return 1 if item.nodeid.partition("::")[0] in BEGUN_FIRST else 2


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Try more examples where they are asked for, and run first what takes longest."""
    if EXAMPLES > 1:
        for item in items:
            _try_more_examples(getattr(item, "obj", None))
    items.sort(key=_turn)


@pytest.fixture(autouse=True, scope="session")
def quick_fingerprints() -> Iterator[None]:
    """Hash columns of data briefly: slowness is against those who try columns, and no test does.

    Processes that tests start hash at length, so a test that shares a ledger with one does too.
    """
    from hushbid.disclosure.ledger import marks

    real, marks._WORK = marks._WORK, 2
    yield
    marks._WORK = real


# -- what is made once -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def once_a_run(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Callable[[Path], None]], Path]:
    """Make a folder once for all processes of a run: the first that asks fills it, and others wait.

    It takes its name when it is complete, so what fails half-way is made again by the next that asks.
    """
    own = tmp_path_factory.getbasetemp()
    place = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own

    def folder(name: str, fill: Callable[[Path], None]) -> Path:
        made, partial = place / f"once-{name}", place / f"once-{name}-{os.getpid()}"
        with (place / f"once-{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not made.exists():
                shutil.rmtree(partial, ignore_errors=True)
                partial.mkdir()
                fill(partial)
                partial.rename(made)
        return made

    return folder


WITHOUT = (
    *("WebUIOmniboxPopup", "WebUIOmniboxAimPopup", "WebUIOmniboxFullPopup", "SpareRendererForSitePerProcess"),
    # what Playwright turns off: of two such lists the browser reads the last
    *("AimEnabled", "AvoidCorsURLLoaderRestartOnRedirect", "AvoidUnnecessaryBeforeUnloadCheckSync"),
    *("DestroyProfileOnBrowserClose", "HttpsFirstBalancedModeAutoEnable", "HttpsUpgrades", "LensOverlay"),
    *("MediaRouter", "NetworkTimeServiceQuerying", "OptimizationHints", "PaintHolding", "PreconnectToSearch"),
    "ThirdPartyStoragePartitioning",
)
"""Parts of Chromium that no page needs. Every window prepared suggestions for its address bar, in a process of their
own that took longer than most pages; another process waited for the next page."""

BROWSER = (
    *("--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", f"--disable-features={','.join(WITHOUT)}"),
    # tests visit one site: one process draws the pages of all their windows
    *("--disable-site-isolation-trials", "--renderer-process-limit=1"),
)


@pytest.fixture(scope="session")
def browsers(require: Callable[[str], Path]) -> Iterator[Callable[[], Any]]:
    """One browser for all tests of a process; another one if it was lost."""
    from playwright.sync_api import Browser, sync_playwright

    path, started = require("chromium"), list[Browser]()
    with sync_playwright() as playwright:
        loop = asyncio.get_running_loop()

        def browser() -> Browser:
            asyncio._set_running_loop(loop)
            if not (started and started[-1].is_connected()):
                started.append(
                    playwright.chromium.launch(executable_path=path, chromium_sandbox=False, args=list(BROWSER))
                )
            return started[-1]

        yield browser
        browser().close()


@pytest.fixture(scope="module")
def browser(browsers: Callable[[], Any]) -> Iterator[Any]:
    """The browser, for a file of tests: in between its event loop is set aside, beside which no other could run."""
    yield browsers()
    asyncio._set_running_loop(None)


# -- how long a test may take ------------------------------------------------------------------------------------------

LIMIT = 120.0
"""Seconds for a test's preparation, for itself and for clearing up, each, on a machine that has nothing else to do."""


def _limit() -> float:
    """Longer by as much as the machine has more to do than it has processors, but ten minutes at most.

    As many times that as there are more examples.
    """
    return EXAMPLES * min(LIMIT * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)), max(600.0, LIMIT))


@contextmanager
def _limited(item: pytest.Item) -> Iterator[None]:
    """Fail within the test, where it stands, so that its name and its line are shown."""
    began = time.monotonic()

    def end(*_: object) -> None:
        left = _limit() - (time.monotonic() - began)
        if left > 0.0:
            signal.setitimer(signal.ITIMER_REAL, left)
        else:
            pytest.fail(f"{item.nodeid} was not done after {time.monotonic() - began:.0f} seconds.")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, LIMIT)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


@pytest.hookimpl(wrapper=True, tryfirst=True, specname="pytest_runtest_setup")
def pytest_limit_setup(item: pytest.Item) -> Generator[None, None, None]:
    with _limited(item):
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True, specname="pytest_runtest_call")
def pytest_limit_call(item: pytest.Item) -> Generator[None, None, None]:
    with _limited(item):
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True, specname="pytest_runtest_teardown")
def pytest_limit_teardown(item: pytest.Item) -> Generator[None, None, None]:
    with _limited(item):
        return (yield)


# -- the stores of releases --------------------------------------------------------------------------------------------


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
os.environ["HUSHBID_STORE"] = str(Path(_STORES.name) / "session-values")

# Nobody outside this machine is asked anything, so no client needs to read the certificates of the whole world.
os.environ.pop("SSL_CERT_FILE", None)
os.environ["SSL_CERT_DIR"] = _STORES.name


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Every test is an account of its own: nobody has asked anything yet, and nobody's real store is touched."""
    place = Path(_STORES.name) / str(next(_number))
    os.environ["HUSHBID_LEDGER"], os.environ["HUSHBID_STORE"] = str(place), f"{place}-values"
    if once := sys.modules.get("hushbid.disclosure.ledger.once"):
        once._drawn.clear()


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
