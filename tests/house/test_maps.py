"""Every package says in its docstring what each of its files is for, and names none that is not there."""

import ast
import re
from pathlib import Path

import pytest

from hushbid.cli import COMMANDS

SOURCE = Path(__file__).parents[2] / "src" / "hushbid"
PACKAGES = sorted(
    path.parent for path in SOURCE.rglob("__init__.py") if path.parent != SOURCE and "migrations" not in path.parts
)


def docstring(package: Path) -> str:
    return ast.get_docstring(ast.parse((package / "__init__.py").read_text(encoding="utf-8"))) or ""


def files(package: Path) -> set[str]:
    """Modules and packages inside, but for data such as templates."""
    modules = {path.stem for path in package.glob("*.py")} - {"__init__"}
    return modules | {path.parent.name for path in package.glob("*/__init__.py")}


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: str(package.relative_to(SOURCE)))
def test_the_map_of_a_package_names_every_file(package: Path) -> None:
    named = {name.rpartition(".")[2] for name in re.findall(r"`([~\w.]+)`", docstring(package))}
    listed = {name.replace("-", "_") for name in COMMANDS} if package.name == "cli" else set()
    assert files(package) - named - listed == set()


def test_every_package_is_looked_at() -> None:
    assert {"allocation", "purchase", "server"} <= {package.name for package in PACKAGES}
