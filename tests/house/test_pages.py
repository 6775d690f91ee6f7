"""What the documents say is true: examples run, links lead somewhere, versions agree, lock files name no addresses."""

import doctest
import re
import tomllib
from pathlib import Path

import pytest
import yaml

import hushbid

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LOCKS = sorted(ROOT.glob("requirements*.lock"))
FENCED_PYTHON = re.compile(r"^```python\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)


def page_name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def examples_of(text: str, name: str) -> doctest.DocTest:
    """The fenced Python examples of a page as one session, with the page's line numbers."""
    blank = re.sub(r"[^\n]", "", text)
    lines = blank.split("\n")
    for block in FENCED_PYTHON.finditer(text):
        first = text.count("\n", 0, block.start(1))
        code = block[1].split("\n")
        lines[first : first + len(code)] = code
    return doctest.DocTestParser().get_doctest("\n".join(lines), {}, name, name, 0)


WITH_EXAMPLES = [path for path in PAGES if examples_of(path.read_text(encoding="utf-8"), page_name(path)).examples]


def test_pages_with_examples_are_found() -> None:
    assert {"README.md", "docs/how-to/extend.md"} <= set(map(page_name, WITH_EXAMPLES))


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=page_name)
def test_the_examples_on_the_page_run(path: Path) -> None:
    session = examples_of(path.read_text(encoding="utf-8"), page_name(path))
    told: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    runner.run(session, out=told.append)
    assert runner.failures == 0, "".join(told)


def test_a_wrong_example_is_noticed() -> None:
    session = examples_of("Hello\n\n```python\n>>> 1 + 1\n3\n```\n", "page")
    assert [(example.lineno, example.want) for example in session.examples] == [(3, "3\n")]
    assert doctest.DocTestRunner().run(session, out=lambda _: None).failed == 1


def test_links_between_pages_lead_somewhere() -> None:
    links = [
        (path, link)
        for path in PAGES
        for link in re.findall(r"\]\((?!https?://|#|mailto:)([^)#\s]+)", path.read_text(encoding="utf-8"))
    ]
    assert len(links) > 50
    assert [(page_name(path), link) for path, link in links if not (path.parent / link).exists()] == []


def test_the_version_is_the_same_everywhere() -> None:
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == hushbid.__version__
    assert "version" in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dynamic"]


@pytest.mark.parametrize("path", LOCKS, ids=page_name)
def test_a_lock_file_records_no_addresses(path: Path) -> None:
    assert "://" not in path.read_text()


def test_the_demo_is_locked_to_what_the_tests_run_with() -> None:
    pins, demo = (
        set(re.findall(r"^\S+==.*(?= \\$)", (ROOT / name).read_text(), flags=re.MULTILINE))
        for name in ("requirements.lock", "requirements-demo.lock")
    )
    assert demo
    assert demo <= pins
