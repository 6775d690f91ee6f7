"""The package as its users get it: light to import, complete as a wheel."""

import ast
import dataclasses
import importlib.metadata
import importlib.util
import inspect
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tomllib
import urllib.request
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path

import jedi
import pytest
from packaging.requirements import Requirement

import hushbid
from tests.house.test_layers import statements

ROOT = Path(__file__).parents[2]

# Heavy things that `import hushbid` must not load; scipy.stats alone takes most of a second.
HEAVY = {
    *("duckdb", "fastapi", "jinja2", "matplotlib", "opendp", "pandas", "polars", "psycopg", "pyarrow", "pyspark"),
    *("rich", "scipy.stats", "sklearn", "sqlalchemy", "starlette", "uvicorn"),
}


def run(*command: str | Path, **options: object) -> str:
    """Run a command that must succeed and say nothing on standard error; give its output."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, **options)  # type: ignore[call-overload]
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return str(done.stdout)


def modules_after(statement: str) -> set[str]:
    """The modules loaded in a new process once a statement has run."""
    return set(run(sys.executable, "-c", f"{statement}\nimport sys\nprint(*sys.modules)").split())


def test_importing_hushbid_loads_nothing_but_itself() -> None:
    ours = modules_after("import hushbid") - modules_after("import typing")
    assert ours == {"hushbid"}


def test_using_the_core_loads_nothing_heavy() -> None:
    loaded = modules_after("import hushbid; hushbid.allocate(hushbid.Uniform(1, 2).virtual_cost([1.2, 1.4]))")
    assert loaded & HEAVY == set()


def test_the_two_lists_of_public_names_agree() -> None:
    """Type checkers and editors read the stub, Python the tables."""
    imported = {
        (node.module, alias.name)
        for node in ast.walk(ast.parse(Path(inspect.getfile(hushbid)).with_suffix(".pyi").read_text()))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname == alias.name
    }
    modules = {("hushbid", name) for name in hushbid._MODULES}
    names = {(module, name) for module, names in hushbid._NAMES.items() for name in names}
    assert imported == modules | names


def test_static_completion_knows_every_public_name_and_the_parameters_of_a_market() -> None:
    """Jedi completes in IPython and notebooks; it does not run the code."""
    offered = {one.name for one in jedi.Script("import hushbid\nhushbid.").complete()}
    assert set(hushbid.__all__) - offered == set()
    [called] = jedi.Script("import hushbid\nhushbid.Market(").get_signatures()
    fields = [field.name for field in dataclasses.fields(hushbid.Market) if field.init]
    assert called.name == "Market"
    documented = called.docstring().partition("Parameters")[2]
    assert [name for name in fields if not re.search(rf"^ *(\w+, )*{name}\b", documented, flags=re.MULTILINE)] == []


def test_every_parameter_of_a_market_is_documented_where_help_looks() -> None:
    documented = (inspect.getdoc(hushbid.Market) or "").partition("Parameters\n")[2]
    heads = {
        name for line in re.findall(r"^(?:\w+, )*\w+$", documented, flags=re.MULTILINE) for name in line.split(", ")
    }
    assert heads == set(inspect.signature(hushbid.Market).parameters)


def test_a_misspelt_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'alocate'"):
        hushbid.alocate  # noqa: B018


Once = Callable[[str, Callable[[Path], None]], Path]


@pytest.fixture(scope="module")
def wheel(once_a_run: Once) -> Path:
    """The wheel, built without a network."""

    def build(folder: Path) -> None:
        options = ("--quiet", "--wheel", "--offline", "--no-build-isolation", "--out-dir", folder)
        run("uv", "build", *options, ROOT, env=tools())

    (built,) = once_a_run("wheel", build).glob("*.whl")
    return built


@pytest.fixture(scope="module")
def clean(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment into which the wheel was installed with its extra for releases; its bin folder.

    The packages that both declare are there already, as pinned, and nothing else. Installing asks for every one of
    them, without a network: a package that is needed and not declared is missing, and one of another version refused.
    """
    home = tmp_path_factory.mktemp("clean")
    venv.create(home, symlinks=True, with_pip=False)
    (site,) = home.glob("lib/python*/site-packages")
    for package in declared_packages("release"):
        for entry in top_level_entries(package):
            if entry.suffix == ".dist-info":  # uv sees no package in a link
                shutil.copytree(entry, site / entry.name, dirs_exist_ok=True)
            elif not (site / entry.name).exists():
                (site / entry.name).symlink_to(entry)
    # no cache either: what earlier installations left there must not matter
    options = ("--quiet", "--offline", "--no-cache", "--python", home / "bin" / "python")
    run("uv", "pip", "install", *options, f"hushbid[release] @ {wheel.as_uri()}", env=tools())
    return home / "bin"


def tools() -> dict[str, str]:
    """An environment that finds the uv of this virtual environment, without the settings of an activated one."""
    inherited = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    return {**inherited, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]


def declared_packages(extra: str) -> set[str]:
    """What an installation with an extra brings: the dependencies of the core and of the extra, and theirs."""
    found: set[str] = set()
    todo = [*PROJECT["dependencies"], *EXTRAS[extra]]
    while todo:
        requirement = Requirement(todo.pop())
        if requirement.marker and not requirement.marker.evaluate({"extra": ""}):
            continue
        if requirement.name not in found:
            found.add(requirement.name)
            todo += importlib.metadata.requires(requirement.name) or []
    return found


def top_level_entries(package: str) -> set[Path]:
    distribution = importlib.metadata.distribution(package)
    names = {file.parts[0] for file in distribution.files or []} - {"..", "__pycache__"}
    return {Path(str(distribution.locate_file(name))) for name in names}


def test_the_wheel_holds_the_package_its_types_and_its_licence_and_no_tests(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    files = (path for path in (ROOT / "src" / "hushbid").rglob("*") if path.is_file() and path.suffix != ".pyc")
    source = {str(path.relative_to(ROOT / "src")) for path in files}
    pages = {f"hushbid/server/pages/{name}" for name in ("templates/base.html", "static/pages.css")} | {
        "hushbid/languages/de.po"
    }
    assert {"hushbid/py.typed", "hushbid/report/page.css", "hushbid/report/templates/page.html", *pages} <= source
    assert source <= names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert {name.partition("/")[0] for name in names} == {"hushbid", f"hushbid-{hushbid.__version__}.dist-info"}


def test_the_wheel_works_without_the_source_tree(clean: Path, tmp_path: Path) -> None:
    program = """
import json, pathlib, hushbid
allocation = hushbid.allocate(hushbid.Uniform(1, 2).virtual_cost([1.2, 1.4, 1.7]))
print(json.dumps({"home": hushbid.__file__, "objective": float(allocation.objective)}))
"""
    told = json.loads(run(clean / "python", "-I", "-c", program, cwd=tmp_path))
    assert Path(told["home"]).is_relative_to(clean.parent)
    expected = hushbid.allocate(hushbid.Uniform(1, 2).virtual_cost([1.2, 1.4, 1.7])).objective
    assert told["objective"] == pytest.approx(float(expected), rel=1e-12)


@pytest.fixture(scope="module")
def with_server(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment with the wheel and every package of this one but the source tree; its bin folder."""
    home = tmp_path_factory.mktemp("with-server")
    venv.create(home, symlinks=True, with_pip=False)
    python = home / "bin" / "python"
    run("uv", "pip", "install", "--quiet", "--offline", "--no-deps", "--python", python, wheel, env=tools())
    (site,) = home.glob("lib/python*/site-packages")
    packages = Path(str(importlib.metadata.distribution("fastapi").locate_file("")))
    (site / "others.pth").write_text(f"{packages}\n")  # the folder only: not what its own .pth files name
    return home / "bin"


def test_the_server_finds_its_templates_scripts_and_migrations_in_the_wheel(with_server: Path, tmp_path: Path) -> None:
    command = [str(with_server / "hushbid"), "serve", "--port", "0", "--home", "home"]
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with subprocess.Popen(command, cwd=tmp_path, env=inherited, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            found = re.search(r"http://[\d.:]+", server.stdout.readline())
            assert found is not None
            for path, expected in {
                "/": "What is your privacy worth to you?",
                "/login?lang=de": "Anmelden",
                "/p/other": "/static/enter.js?v=",
                "/static/pages.css": "--paper:",
                "/static/privatize.js": "crypto.getRandomValues",
                "/api/v1/health": '"ok"',
            }.items():
                with urllib.request.urlopen(found[0] + path, timeout=300) as answer:
                    assert expected in answer.read().decode(), path
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(timeout=300)
    assert (tmp_path / "home" / "hushbid.sqlite3").exists()
    where = run(with_server / "python", "-I", "-c", "import hushbid; print(hushbid.__file__)", cwd=tmp_path)
    assert Path(where.strip()).is_relative_to(with_server.parent)


def test_every_public_name_is_there_with_the_core_alone(clean: Path, tmp_path: Path) -> None:
    program = "import sys; sys.modules['opendp'] = None  # as if the extra were not installed\n"
    program += "import hushbid\nfor name in hushbid.__all__: getattr(hushbid, name)"
    run(clean / "python", "-I", "-c", program, cwd=tmp_path)


def test_the_command_line_works_from_the_wheel(clean: Path, tmp_path: Path) -> None:
    assert run(clean / "hushbid", "--version", cwd=tmp_path) == f"hushbid {hushbid.__version__}\n"
    told = run(clean / "hushbid", "demo", "--people", "50", "--no-audit", "--out", "demo", cwd=tmp_path)
    assert "Estimate of sleep: " in told
    assert (tmp_path / "demo" / "decisions.csv").read_text().count("\n") == 51
    assert "Holds: everything" in run(clean / "hushbid", "verify", "demo/record.json", cwd=tmp_path)
    assert "--paper:" in (tmp_path / "demo" / "report.html").read_text()  # with the style sheets of the wheel


# -- what an installation is said to bring -----------------------------------------------------------------------------


def test_the_source_distribution_builds_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    """Without ``--wheel`` the wheel is built from the source distribution, as an index's users get it."""
    run("uv", "build", "--quiet", "--offline", "--no-build-isolation", "--out-dir", tmp_path, ROOT, env=tools())
    (again,), (source,) = tmp_path.glob("*.whl"), tmp_path.glob("*.tar.gz")
    assert zipfile.ZipFile(again).namelist() == zipfile.ZipFile(wheel).namelist()
    with tarfile.open(source) as held:
        names = {name.partition("/")[2] for name in held.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "src/hushbid/py.typed"} <= names


def test_what_is_advised_to_be_installed_works_in_a_checkout() -> None:
    """Nothing is published under our name: only a checkout brings an extra."""
    for path in (*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"install '?hushbid\b", text), path
        for extras in re.findall(r"pip install '\.\[([\w,]+)\]'", text):
            assert set(extras.split(",")) <= set(EXTRAS), path


def test_all_extras_are_in_the_one_called_all_and_on_the_front_page() -> None:
    [named] = [Requirement(one) for one in EXTRAS["all"]]
    assert (named.name, named.extras) == ("hushbid", set(EXTRAS) - {"all"})
    front = (ROOT / "README.md").read_text()
    listed = front[front.index("extras bring") : front.index("brings everything")]
    assert set(re.findall(r"`(\w+)`", listed)) == set(EXTRAS)


def test_every_package_that_is_imported_belongs_to_the_core_or_to_an_extra() -> None:
    known = {"hushbid", *sys.stdlib_module_names}
    for requirement in (*PROJECT["dependencies"], *(one for name in set(EXTRAS) - {"all"} for one in EXTRAS[name])):
        known |= {entry.name.partition(".")[0] for entry in top_level_entries(Requirement(requirement).name)}
    known |= {"pydantic", "starlette", "IPython"}  # FastAPI is made of the first two; in the last we are only shown
    imported = {
        name.partition(".")[0]
        for path in (ROOT / "src" / "hushbid").rglob("*.py")
        for node in statements(path.read_text(encoding="utf-8"))
        for name in ([alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""])
    }
    assert imported - known == set()


def test_no_more_pythons_are_claimed_than_are_tried() -> None:
    """``make pythons`` tries those in its list; the front page says what was."""
    spec = importlib.util.spec_from_file_location("pythons", ROOT / "tools" / "pythons.py")
    assert spec is not None and spec.loader is not None  # noqa: PT018
    pythons = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pythons)
    claimed = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert tuple(claimed) == pythons.SUPPORTED
    tested = (ROOT / "README.md").read_text().partition("Tested on Linux:")[2].partition("make pythons")[0]
    assert re.findall(r"3\.\d+", tested) == claimed
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    own = Path(sys.executable).parent
    assert pythons.find(path=str(own), home=own) == (
        {here: own / f"python{here}"} if here in claimed and (own / f"python{here}").exists() else {}
    )
