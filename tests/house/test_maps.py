"""Every package says in its docstring what each of its files is for, and names none that is not there."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

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


def faults_of(package: Path) -> Iterator[str]:
    """What the map of a package leaves out, and what it names that is not there."""
    text, name = docstring(package), package.relative_to(SOURCE.parent).as_posix()
    named = {one.rpartition(".")[2] for one in re.findall(r"`([~\w.]+)`", text)}
    yield from (f"{name} does not say what {file} is for" for file in sorted(files(package) - named))
    yield from (f"{name} names {file}, which is not there" for file in sorted(mapped(text) - files(package)))


def test_the_map_of_a_package_names_every_file_and_no_other() -> None:
    assert [fault for package in PACKAGES for fault in faults_of(package)] == []


def test_a_file_that_is_gone_is_noticed() -> None:
    assert mapped("In reading order:\n\n- `market`, `gone`: `Market` and others\n") == {"market", "gone"}
    assert mapped("The files: ``market`` decides, ``gone`` does not.") == {"market", "gone"}
    assert mapped("`market` decides, `gone` does not; ``x`` is a number.") == {"market", "gone"}
    assert mapped("=====\n`market`  decides\n`gone`    does not\n=====") == {"market", "gone"}


def test_every_package_is_looked_at() -> None:
    assert {"hushbid", "allocation", "cli", "campaign", "server"} <= {package.name for package in PACKAGES}
