"""The allocation core is general code with special numbers: goals, caps and strata are parameters, not branches.

Each gate finds the modules that break it in the places where it holds. Where a rewrite makes one true in more places,
add them here.
"""

import ast
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from hushbid.mechanism import Market, Outcome
from hushbid.mechanism.combinations import CASES
from tests.extent import each

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "hushbid"
GOALS = {"Price", "Accuracy", "Budget", "HardBudget"}


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def modules(*places: str) -> Iterator[Path]:
    for place in places:
        path = SOURCE / place
        yield from [path] if path.suffix == ".py" else sorted(path.rglob("*.py"))


def asks_for_the_kind_of_goal(tree: ast.Module) -> bool:
    """Whether it calls ``isinstance`` with a class of goals."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    asked = (call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "isinstance")
    named = (node.id for call in asked for node in ast.walk(call.args[1]) if isinstance(node, ast.Name))
    return any(name in GOALS for name in named)


def asks_whether_there_are_strata(tree: ast.Module) -> bool:
    """Whether it compares something called ``strata`` with None."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Is | ast.IsNot):
            name = node.left.attr if isinstance(node.left, ast.Attribute) else getattr(node.left, "id", "")
            if name == "strata" and isinstance(node.comparators[0], ast.Constant) and node.comparators[0].value is None:
                return True
    return False


def takes_a_number_or_an_array(tree: ast.Module) -> bool:
    """Whether something is annotated as ``float | FloatArray``."""
    unions = (node for node in ast.walk(tree) if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr))
    return any(
        {"float", "FloatArray"} <= {name.id for name in ast.walk(one) if isinstance(name, ast.Name)} for one in unions
    )


class Gate(NamedTuple):
    """What must not be found, and where it is looked for."""

    breaks: Callable[[ast.Module], bool]
    places: tuple[str, ...]
    but: frozenset[str] = frozenset()


GATES = {
    "the kind of a goal is asked for by nobody who gets it as a number": Gate(
        asks_for_the_kind_of_goal,
        (
            *("payments", "disclosure", "estimation.py", "priors", "questions.py", "engine"),
            "allocation",
        ),
        frozenset({"engine/releasing.py", "allocation/goals.py", "allocation/problem.py"}),
    ),
    "solvers always have strata: only the border of the package turns None into one stratum": Gate(
        asks_whether_there_are_strata,
        ("allocation",),
        frozenset({"allocation/__init__.py"}),
    ),
    "one sum has strata and questions always: only what is promised, released or remembered may lack them": Gate(
        asks_whether_there_are_strata,
        ("disclosure",),
        frozenset(
            {
                *("disclosure/promises.py", "disclosure/release.py", "disclosure/question_answer.py"),
                "disclosure/ledger/question.py",
            }
        ),
    ),
    "rows of an engine always have strata: only what a market states or publishes may lack them": Gate(
        asks_whether_there_are_strata,
        ("engine",),
        frozenset(f"engine/{name}.py" for name in ("checks", "pricing", "recording", "releasing", "solve_few")),
    ),
    "solvers and engines work on arrays": Gate(takes_a_number_or_an_array, ("allocation", "engine")),
}


def broken(gate: Gate) -> set[str]:
    """The modules that break a gate."""
    found = {path.relative_to(SOURCE).as_posix() for path in modules(*gate.places) if gate.breaks(tree_of(path))}
    return found - gate.but


@each("name", GATES)
def test_a_gate_is_kept(name: str) -> None:
    assert broken(GATES[name]) == set()


@pytest.mark.parametrize(
    ("breaks", "code"),
    [
        (asks_for_the_kind_of_goal, "def f(goal):\n    return isinstance(goal, (Price, Budget))"),
        (asks_whether_there_are_strata, "x = 1 if problem.strata is not None else 2"),
        (takes_a_number_or_an_array, "def f(spread: float | FloatArray) -> None: ..."),
    ],
)
def test_a_gate_notices_what_it_is_about(breaks: Callable[[ast.Module], bool], code: str) -> None:
    assert breaks(ast.parse(code))
    assert not breaks(ast.parse("def f(goal: Goal, strata: Strata, spread: FloatArray) -> float: return strata.count"))


def classes(*places: str) -> dict[str, str]:
    """All classes by name, and the modules that define them."""
    return {
        node.name: path.relative_to(SOURCE).as_posix()
        for path in modules(*places)
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ClassDef)
    }


@pytest.mark.parametrize(
    ("ending", "place"),
    [
        ("Rule", "allocation/rule.py"),
        ("Pool", "allocation/pool.py"),
        ("Problem", "allocation/central_problem.py"),
    ],
)
def test_of_the_central_core_there_is_one(ending: str, place: str) -> None:
    protocols = "allocation/reply_rules.py"
    local = ("allocation/local", "allocation/queue", "allocation/precision", "allocation/problem.py")
    central = {
        name: module
        for name, module in classes("allocation").items()
        if name.endswith(ending) and not module.startswith(local) and module != protocols
    }
    assert list(central.values()) == [place]


def functions(*names: str) -> set[str]:
    """The modules of the central core that define a function of one of these names."""
    return {
        path.name
        for path in modules("allocation")
        for node in tree_of(path).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith(names) and not path.name.startswith("local")
    }


def test_one_function_solves_the_central_problem_and_one_bounds_it() -> None:
    assert functions("solve") == {"central.py"}
    assert functions("lower_bound") == {"central_bounds.py"}
    assert functions("propose") == {"cut.py"}


def test_the_package_holds_nothing_that_only_readers_of_the_paper_need() -> None:
    assert not (SOURCE / "paper").exists()
    importers = [path for path in SOURCE.rglob("*.py") if "experiments" in imported(tree_of(path))]
    assert importers == []


def imported(tree: ast.Module) -> set[str]:
    """The first names of all imported modules."""
    froms = {(node.module or "").partition(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    names = {
        one.name.partition(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for one in node.names
    }
    return froms | names


def test_a_market_makes_one_estimate() -> None:
    assert not {"each", "by_stratum"} & ({*dir(Market), *dir(Outcome)} | set(Market.__dataclass_fields__))


def test_no_refusal_of_the_table_is_worded_a_second_time() -> None:
    sources = {path: path.read_text(encoding="utf-8") for path in modules("mechanism", "engine", "campaign", "server")}
    del sources[SOURCE / "mechanism" / "combinations.py"]
    heads = {one.sentence.partition(":")[0] for one in CASES if "{" not in one.sentence.partition(":")[0]}
    again = {path.name: head for path, text in sources.items() for head in heads if head in text}
    assert again == {}
