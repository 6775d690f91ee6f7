"""The table of statements in the documentation is complete, and what it names exists."""

import ast
import re
from importlib import import_module
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "reference" / "statements.md"

# Every statement of the paper, by its kind and number in the arXiv version, in order of appearance.
STATEMENTS = [
    "Lemma 1",
    "Lemma 2",
    "Theorem 1",
    "Theorem 2",
    "Proposition 1",
    "Proposition 2",
    "Theorem 3",
    "Corollary 1",
    "Proposition 3",
    "Theorem 4",
    "Corollary 2",
    "Proposition 4",
    "Proposition 5",
    "Corollary 3",
    "Proposition 6",
    "Lemma A1",
    "Lemma A2",
    "Lemma A3",
    "Claim 1",
    "Claim 2",
    "Lemma A4",
    "Revelation principle",
    "Proposition 1′",
    "Proposition 2′",
]


def rows() -> list[tuple[str, str, list[str], list[str]]]:
    """(statement, in short, names of code, names of tests) for each row of the table."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines]
    return [
        (statement, short, re.findall(r"`([\w.]+)`", code), re.findall(r"`(\w+)`", tests))
        for statement, short, code, tests in cells
        if statement != "statement"
    ]


def names_in(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


def test_every_statement_of_the_paper_has_its_row_once() -> None:
    assert [statement for statement, *_ in rows()] == STATEMENTS


def test_every_row_names_code_that_can_be_imported() -> None:
    for statement, _, code, _ in rows():
        assert code, statement
        for name in code:
            module, _, thing = name.rpartition(".")
            assert callable(getattr(import_module(module), thing)), name


def test_every_row_names_tests_that_exist() -> None:
    known = set().union(*(names_in(path) for path in HERE.glob("test_*.py")))
    for statement, _, _, tests in rows():
        assert tests, statement
        assert set(tests) <= known, (statement, set(tests) - known)


def test_every_row_has_a_test_that_bears_the_statements_name() -> None:
    plurals = {"theorem": "theorems", "corollary": "corollaries"}
    for statement, _, _, tests in rows():
        wanted = statement.lower().replace("′", " prime").split()
        found = [
            name
            for name in tests
            if all(word in name.split("_") or plurals.get(word) in name.split("_") for word in wanted)
            and ("prime" in name.split("_")) == ("prime" in wanted)
        ]
        assert found, statement


def test_every_test_of_a_statement_is_in_the_table() -> None:
    named = {test for *_, tests in rows() for test in tests}
    there = names_in(HERE / "test_estimation_statements.py") | names_in(HERE / "test_mechanism_statements.py")
    assert there <= named, there - named


def test_a_row_that_mentions_errata_names_ones_that_are_listed() -> None:
    listed = {int(number) for number in re.findall(r"^\*\*(\d+)\. ", _errata(), flags=re.MULTILINE)}
    mentioned = [part for _, short, *_ in rows() for part in re.findall(r"errata ([\d, to]+)", short)]
    assert mentioned
    assert {int(number) for part in mentioned for number in re.findall(r"\d+", part)} <= listed


def _errata() -> str:
    return (PAGE.parents[1] / "reference" / "errata.md").read_text(encoding="utf-8")
