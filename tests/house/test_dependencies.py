"""Every package that pyproject.toml asks for is used: imported somewhere, or needed in a way that is stated here."""

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
CODE = ("src", "tests", "benchmarks", "experiments", "tools")
WITHOUT_IMPORT = {
    "editables": "the build backend, for an editable installation",
    "hatchling": "the build backend",
    "httptools": "uvicorn.protocols.http.httptools_impl",
    "ipykernel": "the kernel in which docs/tutorials/notebook.ipynb is run",
    "mkdocs-material": "mkdocs.yml",
    "mypy": "make types",
    "pytest-xdist": "make test",
    "python-multipart": "starlette.requests.Request.form",
    "ruff": "make lint",
    "scipy-stubs": "make types",
    "uv": "make setup",
}


def named(requirement: str) -> str:
    """The normal form of a package's name."""
    found = re.match(r"[\w.-]+", requirement)
    assert found is not None
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def declared() -> set[str]:
    content: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project, groups = content["project"], content["dependency-groups"]
    lists = [project["dependencies"], *project["optional-dependencies"].values(), *groups.values()]
    asked = {named(one) for each in lists for one in each if isinstance(one, str)}
    return asked - {named(project["name"])}  # the extra of all extras


def modules() -> Iterator[str]:
    """What our code imports, and the examples in the documentation."""
    for path in (path for folder in CODE for path in (ROOT / folder).rglob("*.py")):
        yield from re.findall(r"^ *(?:from|import) (\w+)", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    for page in (ROOT / "docs").rglob("*.md"):
        yield from re.findall(r"^(?:>>> )?(?:from|import) (\w+)", page.read_text(encoding="utf-8"), flags=re.MULTILINE)


@cache
def imported() -> set[str]:
    """The packages that are imported, by the name under which they are installed."""
    found = set(modules())
    return {named(one) for module, all_ in packages_distributions().items() if module in found for one in all_}


def test_every_package_that_is_asked_for_is_used() -> None:
    assert declared() - imported() - set(WITHOUT_IMPORT) == set()


def test_every_use_without_an_import_is_of_a_package_that_is_asked_for_and_not_imported() -> None:
    assert set(WITHOUT_IMPORT) <= declared() - imported()
