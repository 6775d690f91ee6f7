"""A check that did not run has not passed, and one that never ends fails by name: the rules of tests/conftest.py,
tested on a small suite of its own."""

from pathlib import Path

import pytest

from tests.conftest import BEGUN_FIRST
from tests.extent import each

pytest_plugins = ["pytester"]

CONFTEST = Path(__file__).parents[1] / "conftest.py"

SUITE = {
    "test_needs_what_is_there": "def test_it(require): assert require('java').name == 'java'",
    "test_needs_what_is_missing": "def test_it(require): require('chromium')",
    "test_skips_itself": "import pytest\ndef test_it(): pytest.skip('not today')",
    "test_is_marked": "import pytest\n@pytest.mark.skip(reason='not today')\ndef test_it(): pass",
    "test_is_known_to_fail": "import pytest\n@pytest.mark.xfail(strict=True)\ndef test_it(): assert False",
}
MODULE_SKIPS = "import pytest\npytest.importorskip('a_package_that_nobody_has')\ndef test_it(): pass"


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """The suite above, beside the real conftest.py, on a machine with Java and without Chromium."""
    pytester.makeconftest(CONFTEST.read_text())
    pytester.makepyfile(**SUITE)
    java = pytester.mkdir("bin") / "java"
    java.write_text("#!/bin/sh\n")
    java.chmod(0o755)
    monkeypatch.setenv("PATH", str(java.parent))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("HUSHBID_EXAMPLES", raising=False)  # of a long run, in which this is one of the tests
    return pytester


def test_a_test_that_cannot_run_is_skipped_on_a_laptop(suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    suite.makepyfile(test_module_skips=MODULE_SKIPS)
    outcome = suite.runpytest_subprocess("-ra")
    outcome.assert_outcomes(passed=1, skipped=4, xfailed=1)
    outcome.stdout.fnmatch_lines(["*chromium is not installed (make test-deps)*"])


def test_a_test_that_did_not_run_is_a_failure_where_ci_is_true(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    outcome = suite.runpytest_subprocess()
    outcome.assert_outcomes(passed=1, failed=2, errors=1, xfailed=1)
    outcome.stdout.fnmatch_lines(["*test_needs_what_is_missing*chromium is not installed*"])


def test_a_module_that_skipped_itself_is_an_error_where_ci_is_true(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    suite.makepyfile(test_module_skips=MODULE_SKIPS)
    suite.runpytest_subprocess("test_module_skips.py").assert_outcomes(errors=1)


WAITS = "import threading, pytest\n@pytest.fixture\ndef slow():\n    yield\n    {teardown}\n"
WAITS += "def test_hangs(): threading.Event().wait()\ndef test_clears_up(slow): pass\ndef test_after_them(): pass\n"


def test_a_test_that_never_ends_fails_by_name_and_the_next_one_runs(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CI", raising=False)
    suite.makeconftest(CONFTEST.read_text().replace("LIMIT = 120.0", "LIMIT = 1.0"))
    suite.makepyfile(test_waits=WAITS.format(teardown="threading.Event().wait()"))
    outcome = suite.runpytest_subprocess("test_waits.py")
    outcome.assert_outcomes(passed=2, failed=1, errors=1)
    outcome.stdout.fnmatch_lines(["*threading.Event().wait()*", "*test_hangs was not done after*"])


def test_a_busy_machine_has_more_time(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        test_limit="import os, conftest\n"
        "def test_it(monkeypatch):\n"
        "    for load, least in ((0.1, 1), (4.0, 4), (1e6, 5)):\n"
        "        monkeypatch.setattr(os, 'getloadavg', lambda: (load * os.cpu_count(), 0, 0))\n"
        "        assert conftest._limit() == least * conftest.LIMIT\n"
    )
    suite.runpytest_subprocess("test_limit.py").assert_outcomes(passed=1)


def test_what_is_made_once_a_run_is_complete_and_made_by_one_process(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        test_once="import pytest\n"
        "@pytest.mark.parametrize('number', range(6))\n"
        "def test_it(number, once_a_run):\n"
        "    made = once_a_run('thing', lambda folder: (folder / str(number)).touch())\n"
        "    assert len(list(made.iterdir())) == 1\n"
    )
    suite.runpytest_subprocess("-p", "xdist.plugin", "-n2", "test_once.py").assert_outcomes(passed=6)


def test_a_long_run_multiplies_the_examples_that_a_property_states(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite.makepyfile(
        test_more="from hypothesis import given, settings, strategies as st\n"
        "SEEN = []\n"
        "@settings(max_examples=3, database=None)\n"
        "@given(st.integers())\n"
        "def test_it(number): SEEN.append(number)\n"
        "def test_they_are_many(): assert len(SEEN) > 20\n"
    )
    suite.runpytest_subprocess("test_more.py").assert_outcomes(passed=1, failed=1)
    monkeypatch.setenv("HUSHBID_EXAMPLES", "10")
    suite.runpytest_subprocess("test_more.py").assert_outcomes(passed=2)


def test_every_file_that_is_begun_first_is_there() -> None:
    assert [name for name in BEGUN_FIRST if not (CONFTEST.parents[1] / name).is_file()] == []


def test_of_many_cases_in_one_test_each_runs_and_those_that_fail_are_named() -> None:
    seen: list[int] = []

    @each("number, word", [(1, "a"), pytest.param(2, "b"), (3, "c")])
    @each("other", [10])
    def claim(number: int, word: str, other: int) -> None:
        seen.append(number)
        assert number == 2, word

    with pytest.raises(ExceptionGroup, match="2 of 3 cases fail") as problem:
        claim()
    assert seen == [1, 2, 3]
    assert [one.__notes__ for one in problem.value.exceptions] == [["case 0: (1, 'a')"], ["case 2: (3, 'c')"]]
