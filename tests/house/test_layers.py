"""The import contract: imports go down only, siblings do not import each other, libraries stay behind their boundary.

Every import statement in src counts, wherever it stands: at the top, in a function, or for type checking only.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "hushbid"

# From the top down. Names on one line are siblings. docs/decisions/0002-layers.md says why.
LAYERS = (
    ("__main__",),
    ("cli",),
    ("server",),
    ("purchase",),
    ("client", "report", "paper"),
    ("engine", "audit", "baselines", "verification"),
    ("record", "receipts"),
    ("mechanism",),
    ("allocation", "payments", "disclosure"),
    ("estimation", "priors"),
    ("tables",),
    ("money",),
    ("documents",),
    ("arrays", "durable", "wording"),
    ("errors",),
)

# Who may import what from outside. The standard library, NumPy and SciPy are everybody's; all else is named.
OUTSIDE = {
    "alembic": {"server"},
    "argon2": {"server"},
    "click": {"cli"},
    "cryptography": {"server", "client", "receipts"},
    "duckdb": {"engine"},
    "fastapi": {"server"},
    "httpx": {"server", "client"},
    "jinja2": {"report"},
    "markupsafe": {"report", "server"},
    "matplotlib": {"paper"},
    "opendp": {"disclosure"},
    "polars": {"engine"},
    "psycopg": {"server"},
    "pyarrow": {"engine", "tables"},
    "pydantic": {"server"},
    "pyspark": {"engine"},
    "sqlalchemy": {"server"},
    "starlette": {"server"},
    "uvicorn": {"server", "cli"},
}
HEIGHT = {name: height for height, layer in enumerate(reversed(LAYERS)) for name in layer}


class Import(NamedTuple):
    """One imported module, and where the statement stands."""

    place: str
    layer: str
    module: str


def imports_of(code: str, place: str, layer: str) -> Iterator[Import]:
    """Every module that a piece of source code imports, with our own ones down to the layer: ``hushbid.priors``."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{place}:{node.lineno}: a relative import hides its layer"
            assert node.module is not None
            modules = [f"hushbid.{alias.name}" for alias in node.names] if node.module == "hushbid" else [node.module]
        else:
            continue
        for module in modules:
            yield Import(f"{place}:{node.lineno}", layer, ".".join(module.split(".")[:2]))


def fault_of(found: Import) -> str | None:
    """What is wrong with an import, in a sentence; None if nothing is."""
    package, _, name = found.module.partition(".")
    if package == "hushbid":
        if name == found.layer or name == "__version__":
            return None
        if name not in HEIGHT:
            return f"{found.place}: {found.module!r} is no layer; import names from the module they live in"
        if HEIGHT[name] >= HEIGHT[found.layer]:
            return f"{found.place}: {found.layer} must not import {name}, which is not below it"
    elif package in OUTSIDE and found.layer not in OUTSIDE[package]:
        return f"{found.place}: {found.layer} must not import {package}; only {sorted(OUTSIDE[package])} may"
    return None


def sources() -> list[Path]:
    """Every module but the root, whose lazy names may come from any layer."""
    return [path for path in sorted(SOURCE.rglob("*.py")) if path != SOURCE / "__init__.py"]


def layer_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def test_every_module_belongs_to_a_layer() -> None:
    assert {layer_of(path) for path in sources()} <= set(HEIGHT)


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_go_down_only(path: Path) -> None:
    found = imports_of(path.read_text(), str(path.relative_to(SOURCE.parent)), layer_of(path))
    assert [fault for fault in map(fault_of, found) if fault] == []


def test_no_outside_package_comes_in_unnoticed() -> None:
    found = {
        item.module.partition(".")[0]
        for path in [*sources(), SOURCE / "__init__.py"]
        for item in imports_of(path.read_text(), path.name, "")
    }
    assert found - set(sys.stdlib_module_names) <= {"hushbid", "numpy", "scipy", *OUTSIDE}


@pytest.mark.parametrize(
    ("layer", "code", "allowed"),
    [
        ("mechanism", "from hushbid.priors import Uniform", True),
        ("mechanism", "from hushbid import errors, __version__", True),
        ("priors", "from hushbid.priors.ironing import iron", True),
        ("priors", "import hushbid.mechanism", False),
        ("allocation", "from hushbid.payments import price", False),
        ("allocation", "def f():\n    from hushbid import mechanism", False),
        ("mechanism", "from hushbid import Uniform", False),
        ("engine", "import polars as pl", True),
        ("mechanism", "import polars as pl", False),
        ("server", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import hushbid.cli", False),
    ],
)
def test_the_contract_itself_tells_right_from_wrong(layer: str, code: str, allowed: bool) -> None:
    faults = [fault for fault in map(fault_of, imports_of(code, "here", layer)) if fault]
    assert (faults == []) == allowed
