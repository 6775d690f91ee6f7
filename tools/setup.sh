#!/usr/bin/env bash
# Create a virtual environment and install exactly what requirements.lock says, then this project, editable.
#   tools/setup.sh VENV [uv]      with "uv" as second word: stop once uv itself is there
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$1
python=${PYTHON:-python3}

fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }

command -v "$python" >/dev/null || fail "$python is not installed; Hushbid needs Python 3.11 or newer (choose another with PYTHON=...)"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
  fail "Hushbid needs Python 3.11 or newer, but $python is $("$python" --version 2>&1); choose another with PYTHON=..."

make_venv() {
  "$python" -m venv "$venv" >/dev/null 2>&1 && return
  rm -rf "$venv"
  # Debian ships Python without ensurepip; its python3-venv package has it.
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "setup: installing python3-venv (apt-get)"
    { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends python3-venv; } >/dev/null 2>&1 || true
    "$python" -m venv "$venv" >/dev/null 2>&1 && return
    rm -rf "$venv"
  fi
  fail "$python cannot create a virtual environment; install its venv module (on Debian and Ubuntu: apt-get install python3-venv)"
}

if ! { [ -x "$venv/bin/python" ] && "$venv/bin/python" -m pip --version >/dev/null 2>&1; }; then
  echo "setup: creating $venv"
  make_venv
fi

# uv is pinned with its hash in requirements.lock like everything else: install that very version first.
if [ "${2:-}" = uv ] || ! [ -x "$venv/bin/uv" ]; then
  pin=$(mktemp)
  trap 'rm -f "$pin"' EXIT
  sed -n '/^uv==/,/^[^ ]/{/^uv==/p;/^ /p;}' requirements.lock >"$pin"
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r "$pin"
fi
[ "${2:-}" = uv ] && exit

echo "setup: installing the pinned dependencies"
# The environment keeps its own pip: everything else that is not in the lock goes.
VIRTUAL_ENV=$venv "$venv/bin/uv" pip sync --quiet --require-hashes requirements.lock
VIRTUAL_ENV=$venv "$venv/bin/uv" pip install --quiet --no-deps --no-build-isolation --editable .
