"""A check that did not run has not passed: the rule of tests/conftest.py, tested on a small suite of its own."""

from pathlib import Path

import pytest

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
