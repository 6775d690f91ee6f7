"""Every package says in its docstring what each of its files is for, and names none that is not there."""

import ast
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "hushbid"
PACKAGES = sorted(path.parent for path in SOURCE.rglob("__init__.py") if "migrations" not in path.parts)


def docstring(package: Path) -> str:
    return ast.get_docstring(ast.parse((package / "__init__.py").read_text(encoding="utf-8"))) or ""


def files(package: Path) -> set[str]:
    """Modules and packages inside, but for data such as templates."""
    modules = {path.stem for path in package.glob("*.py")} - {"__init__"}
    return modules | {path.parent.name for path in package.glob("*/__init__.py")}


def mapped(text: str) -> set[str]:
    """What a map lists: the names at the head of each of its lines, or, in running text, all that stand as files do."""
    heads = re.findall(r"^- ((?:`\w+`[,;] )*`\w+`)(?=[:;,]| \()|^(`\w+`)  ", text, flags=re.MULTILINE)
    if heads:
        return {name for head in heads for name in re.findall(r"`(\w+)`", "".join(head))}
    return set(re.findall(r"(?<!`)`([a-z]\w+)`(?!`)", text) or re.findall(r"``([a-z]\w+)``", text))


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.relative_to(SOURCE.parent).as_posix())
def test_the_map_of_a_package_names_every_file_and_no_other(package: Path) -> None:
    text = docstring(package)
    named = {name.rpartition(".")[2] for name in re.findall(r"`([~\w.]+)`", text)}
    assert files(package) - named == set()
    assert mapped(text) - files(package) == set()


def test_a_file_that_is_gone_is_noticed() -> None:
    assert mapped("In reading order:\n\n- `market`, `gone`: `Market` and others\n") == {"market", "gone"}
    assert mapped("The files: ``market`` decides, ``gone`` does not.") == {"market", "gone"}
    assert mapped("`market` decides, `gone` does not; ``x`` is a number.") == {"market", "gone"}
    assert mapped("=====\n`market`  decides\n`gone`    does not\n=====") == {"market", "gone"}


def test_every_package_is_looked_at() -> None:
    assert {"hushbid", "allocation", "cli", "purchase", "server"} <= {package.name for package in PACKAGES}
