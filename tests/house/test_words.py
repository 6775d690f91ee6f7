"""Words that keep readers out stay out of the documentation, and of the docstrings of packages that are clean."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.extent import each

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
AVOIDED = {
    "told": "a verb that says who does what, such as 'reported' or 'shown'",
    "anew": "again",
    "somebody": "a person, someone",
    "whoever": "a person who, people who",
    "stands in (?!a sentence)": "is in, or takes the place of",
    "made up": "synthetic, simulated",
    "made-up": "synthetic, simulated",
    "rivals": "baselines",
    "of one's own": "your own, their own",
    "of her own": "their own",
    "herself": "themselves",
}
"""What to avoid, and what to write."""

CLEAN = ("audit", "client", "languages", "priors", "receipts", "record")
"""Packages whose docstrings are checked too; add one when it is clean."""

_FOUND = re.compile(rf"(?<![\w`])(?:{'|'.join(AVOIDED)})(?![\w`])", flags=re.IGNORECASE)


def advice(word: str) -> str:
    """What to write instead."""
    return next(words for pattern, words in AVOIDED.items() if re.match(pattern.strip(), f"{word} ", re.IGNORECASE))


def prose(page: str) -> str:
    """A page without what commands print, code, and titles of works."""
    page = re.sub(r"^```.*?^```", "", page, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`", "", page)


def docstrings(package: str) -> Iterator[tuple[str, str]]:
    """Where each docstring of a package is, and what it says; examples and code left out."""
    for path in (ROOT / "src" / "hushbid" / package).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = ast.get_docstring(node) or ""
                yield f"{path.name}: {getattr(node, 'name', 'module')}", re.sub(r"``?[^`\n]*``?", "", text)


@each("page", PAGES)
def test_no_page_uses_a_word_to_avoid(page: Path) -> None:
    found = _FOUND.findall(prose(page.read_text(encoding="utf-8")))
    assert not found, f"{page.relative_to(ROOT)}: " + "; ".join(f"{word}: {advice(word)}" for word in found)


@each("package", CLEAN)
def test_no_docstring_of_a_clean_package_uses_one(package: str) -> None:
    assert [(place, found) for place, text in docstrings(package) for found in _FOUND.findall(text)] == []


def test_a_word_to_avoid_is_noticed_and_code_is_not() -> None:
    assert _FOUND.findall(prose("Whoever was told, and `told`, and toldest.")) == ["Whoever", "told"]
    assert _FOUND.findall(prose("```console\n$ echo told\n```\nNothing.")) == []


def test_every_page_and_path_that_the_architecture_names_is_there() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    source = ROOT / "src" / "hushbid"
    named = re.findall(r"`([a-z_]+(?:[./][a-z_]+)*)`|\*\*`([a-z_.]+)`", page)
    paths = {
        one.removeprefix("hushbid.").removesuffix(".py").replace(".", "/") for pair in named for one in pair if one
    }
    packages = {path.name for path in source.iterdir()}
    known = {one for one in paths if one.split("/")[0] in packages}
    assert len(known) > 25
    assert [one for one in known if not ((source / one).is_dir() or (source / f"{one}.py").is_file())] == []
