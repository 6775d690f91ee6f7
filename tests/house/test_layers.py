"""The import contract: imports go down only and never in a circle, and libraries stay behind their boundary.

Every import statement in src counts, wherever it stands: at the top, in a function, or for type checking only.
"""

import ast
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.extent import each

SOURCE = Path(__file__).parents[2] / "src" / "hushbid"

# From the top down. Names on one line are siblings. docs/decisions/0002-layers.md and 0015 say why.
LAYERS = (
    ("__main__",),
    ("cli",),
    ("server",),
    ("campaign",),
    ("client", "report"),
    ("engine", "audit", "baselines", "verification"),
    ("record", "receipts"),
    ("mechanism",),
    ("allocation", "payments", "disclosure"),
    ("estimation", "priors", "questions"),
    ("display",),
    ("common", "languages"),
    ("errors",),
)

# Inside the server, likewise.
SERVER = (
    ("demo", "admin"),
    ("pages", "bots"),
    ("http",),
    ("service",),
    ("store",),
    ("installation",),
    ("vault", "failpoints", "faults"),
    ("model",),
)

# Who may import what from outside. The standard library, NumPy and SciPy are everybody's; all else is named.
OUTSIDE = {
    "IPython": {"display"},
    "alembic": {"server"},
    "argon2": {"server"},
    "click": {"cli"},
    "cryptography": {"server", "client", "receipts"},
    "duckdb": {"engine"},
    "fastapi": {"server"},
    "httpx": {"server", "client"},
    "jinja2": {"report"},
    "markupsafe": {"report", "server"},
    "opendp": {"disclosure"},
    "openpyxl": {"common"},
    "orjson": {"common"},
    "polars": {"engine"},
    "psycopg": {"server"},
    "pyarrow": {"engine", "common"},
    "pydantic": {"campaign", "server"},
    "pyspark": {"engine"},
    "sqlalchemy": {"server"},
    "starlette": {"server"},
    "uvicorn": {"server", "cli"},
    "xlsxwriter": {"common"},
}


def heights(layers: Sequence[Sequence[str]]) -> dict[str, int]:
    return {name: height for height, layer in enumerate(reversed(layers)) for name in layer}


HEIGHT, SERVER_HEIGHT = heights(LAYERS), heights(SERVER)


class Import(NamedTuple):
    """One imported module, and where the statement stands."""

    place: str
    layer: str
    module: str


@cache
def statements(code: str) -> list[ast.Import | ast.ImportFrom]:
    """The import statements of a piece of source code, at which several tests of this folder look."""
    return [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Import | ast.ImportFrom)]


def imports_of(code: str, place: str, layer: str, package: str = "hushbid") -> Iterator[Import]:
    """Every module that a piece of source code imports, cut off below the package: ``hushbid.priors``."""
    depth = package.count(".") + 2
    for node in statements(code):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        else:
            assert node.level == 0, f"{place}:{node.lineno}: a relative import hides its layer"
            assert node.module is not None
            inside = node.module == package
            modules = [f"{package}.{alias.name}" for alias in node.names] if inside else [node.module]
        for module in modules:
            yield Import(f"{place}:{node.lineno}", layer, ".".join(module.split(".")[:depth]))


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


def test_imports_go_down_only() -> None:
    found = [
        item
        for path in sources()
        for item in imports_of(path.read_text(), str(path.relative_to(SOURCE.parent)), layer_of(path))
    ]
    assert len(found) > 1000
    assert [fault for fault in map(fault_of, found) if fault] == []


def fault_inside_the_server(found: Import) -> str | None:
    """As `fault_of`, of an import from the server by the server."""
    package, _, name = found.module.rpartition(".")
    if package != "hushbid.server" or name == found.layer or SERVER_HEIGHT[name] < SERVER_HEIGHT[found.layer]:
        return None
    return f"{found.place}: inside the server, {found.layer} must not import {name}, which is not below it"


def test_inside_the_server_imports_go_down_only() -> None:
    server = SOURCE / "server"
    found = [
        item
        for path in sorted(server.rglob("*.py"))
        for item in imports_of(
            path.read_text(),
            str(path.relative_to(SOURCE.parent)),
            path.relative_to(server).parts[0].removesuffix(".py"),
            package="hushbid.server",
        )
    ]
    assert [fault for fault in map(fault_inside_the_server, found) if fault] == []
    wrong = imports_of("from hushbid.server import http", "here", "store", package="hushbid.server")
    assert [fault is None for fault in map(fault_inside_the_server, wrong)] == [False]


def test_no_outside_package_comes_in_unnoticed() -> None:
    found = {
        item.module.partition(".")[0]
        for path in [*sources(), SOURCE / "__init__.py"]
        for item in imports_of(path.read_text(), path.name, "")
    }
    assert found - set(sys.stdlib_module_names) <= {"hushbid", "numpy", "scipy", *OUTSIDE}


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")


def imported_modules() -> dict[str, set[str]]:
    """For each of our modules, those it imports; a package that hands on a name counts for what it imports itself."""
    paths = {module_name(path): path for path in sources()}
    found: dict[str, set[str]] = {name: set() for name in paths}
    for name, path in paths.items():
        for node in statements(path.read_text()):
            if isinstance(node, ast.ImportFrom) and node.module in {"hushbid", *paths}:
                inner = {f"{node.module}.{alias.name}" for alias in node.names}
                found[name] |= inner & paths.keys() if inner & paths.keys() else {node.module} & paths.keys()
            elif isinstance(node, ast.Import):
                found[name] |= {alias.name for alias in node.names} & paths.keys()
    return found


def circle_in(imports: dict[str, set[str]]) -> list[str]:
    """Modules that import each other in a circle, or depend on such; none if they can be put in an order."""
    left = dict(imports)
    while free := [name for name, needed in left.items() if not needed & left.keys() - {name}]:
        for name in free:
            del left[name]
    return sorted(left)


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert circle_in(imported_modules()) == []
    assert circle_in({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == ["a", "b", "c"]


def hidden_names(path: Path) -> set[str]:
    """What a package's ``__init__`` defines or imports under the name of one of its modules."""
    modules = {inner.stem for inner in path.parent.iterdir()}
    tree = ast.parse(path.read_text())
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    imported = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module != module_name(path)
        for alias in node.names
    }
    return (defined | imported) & modules


def test_no_module_has_the_name_of_a_public_thing_of_its_package() -> None:
    """``hushbid.engine.price`` is a function: a module of that name would hide it, or be hidden."""
    packages = sorted(SOURCE.rglob("__init__.py"))
    assert [(module_name(path), names) for path in packages if (names := hidden_names(path))] == []


@each(
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
