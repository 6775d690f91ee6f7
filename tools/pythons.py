"""Try Hushbid on every supported Python that this machine has: ``make pythons``.

For each one an environment of its own in ``build/pythons``: the packages of ``requirements-demo.lock`` exactly as
pinned, and the wheel, as a user gets it. In it the demo runs and its record is verified, with warnings as errors.
With ``TESTS="tests/cli tests/test_record.py"`` the packages of ``requirements.lock`` are installed instead, and these
tests run too. Nothing is downloaded but packages: a Python that is not there is named, and not tried.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

SUPPORTED = ("3.11", "3.12", "3.13")
"""As in the classifiers of ``pyproject.toml``."""

ROOT = Path(__file__).resolve().parents[1]
_VERSION = "import sys; print('%d.%d.%d' % sys.version_info[:3])"


def find(path: str | None = None, home: Path | None = None) -> dict[str, Path]:
    """The interpreters that are at hand, by version: on the path first, then those that pyenv or uv installed."""
    home = Path.home() if home is None else home
    places = [shutil.which(f"python{version}", path=path) for version in SUPPORTED]
    candidates = [Path(place) for place in places if place]
    for folder in (home / ".pyenv/versions", home / ".local/share/uv/python"):
        candidates += sorted(folder.glob("*/bin/python3"), reverse=True)
    found: dict[str, Path] = {}
    for candidate in candidates:
        version = _version_of(candidate).rpartition(".")[0]
        if version in SUPPORTED:
            found.setdefault(version, candidate)
    return found


def _version_of(python: Path) -> str:
    """What an interpreter says of itself; empty if it does not run, as a shim of pyenv's for another version."""
    try:
        done = subprocess.run([python, "-c", _VERSION], capture_output=True, text=True, timeout=60, check=False)
    except OSError:
        return ""
    told = done.stdout.strip()
    return told if done.returncode == 0 and re.fullmatch(r"\d+\.\d+\.\d+", told) else ""


def main(tests: list[str]) -> int:
    """Try all that are there; the exit status says whether all of them work."""
    found, failed = find(), []
    place = ROOT / "build" / "pythons"
    shutil.rmtree(place, ignore_errors=True)
    wheel = _wheel(place)
    for version in SUPPORTED:
        if version not in found:
            print(f"{version}: not on this machine, not tried", flush=True)
            continue
        print(f"{version}: {found[version]} ({_version_of(found[version])})", flush=True)
        try:
            _try(found[version], place / version, wheel, tests)
        except subprocess.CalledProcessError as problem:
            print(f"{version}: FAILED: {' '.join(map(str, problem.cmd))}", flush=True)
            failed.append(version)
        else:
            print(f"{version}: works{' with these tests' if tests else ''}", flush=True)
    return 1 if failed else 0


def _wheel(place: Path) -> Path:
    _run(_uv(), "build", "--quiet", "--wheel", "--offline", "--no-build-isolation", "--out-dir", place, ROOT)
    return next(place.glob("*.whl"))


def _try(python: Path, home: Path, wheel: Path, tests: list[str]) -> None:
    """Install as a user would, with the pinned packages, and run the demo; then the tests, if some are named."""
    _run(python, "-m", "venv", "--without-pip", home)
    own = home / "bin" / "python"
    lock = ROOT / ("requirements.lock" if tests else "requirements-demo.lock")
    quiet = ("--quiet", "--python", own)
    _run(_uv(), "pip", "install", *quiet, "--system-certs", "--require-hashes", "-r", lock)
    _run(_uv(), "pip", "install", *quiet, "--offline", f"hushbid[release] @ {wheel.as_uri()}")
    ours = {"HUSHBID_LEDGER": str(home / "ledger"), "PYTHONWARNINGS": "error"}
    _run(home / "bin" / "hushbid", "demo", "--people", "200", "--out", home / "demo", quiet=True, **ours)
    _run(home / "bin" / "hushbid", "verify", home / "demo" / "record.json", quiet=True, **ours)
    if tests:
        _run(own, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests)


def _uv() -> Path:
    return Path(sys.executable).with_name("uv")


def _run(*command: str | Path, quiet: bool = False, **environment: str) -> None:
    inherited = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH")}
    where = subprocess.DEVNULL if quiet else None
    subprocess.run(command, check=True, cwd=ROOT, env={**inherited, **environment}, stdout=where)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
