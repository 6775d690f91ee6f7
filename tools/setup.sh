#!/usr/bin/env bash
# Create or update a virtual environment: the packages of a lock file, exactly as pinned, then this project, editable.
#   tools/setup.sh VENV LOCK      everything in LOCK and nothing else (LOCK: requirements.lock)
#   tools/setup.sh VENV LOCK add  everything in LOCK, and what is there already stays
#   tools/setup.sh VENV           uv only
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$1 lock=${2:-} mode=${3:-sync}
python=${PYTHON:-python3}

fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }

check_python() {
  command -v "$python" >/dev/null ||
    fail "$python is not installed: Hushbid needs Python 3.11 or newer (choose one with PYTHON=...)"
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "$python is $("$python" --version 2>&1): Hushbid needs 3.11 or newer (choose one with PYTHON=...)"
}

try_venv() { "$python" -m venv --clear "$venv" >/dev/null 2>&1; }

make_venv() {
  check_python
  try_venv && return
  # Debian's Python comes without ensurepip; the package python3-venv has it.
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "setup: installing python3-venv"
    export DEBIAN_FRONTEND=noninteractive
    { apt-get update && apt-get install -y --no-install-recommends python3-venv; } >/dev/null 2>&1 && try_venv && return
  fi
  rm -rf "$venv"
  fail "$python cannot create a virtual environment: install its venv module (Debian, Ubuntu: apt-get install python3-venv)"
}

# The pinned uv, with its hash, out of the lock file that pins everything else.
install_uv() {
  pin=$(mktemp)
  trap 'rm -f "$pin"' EXIT
  awk '/^[^ #]/ { ours = /^uv==/ } ours && !/^ *#/' requirements.lock >"$pin"
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r "$pin"
}

"$venv/bin/python" -m pip --version >/dev/null 2>&1 || { echo "setup: creating $venv" && make_venv; }
[ -x "$venv/bin/uv" ] && [ -n "$lock" ] || install_uv
[ -n "$lock" ] || exit 0

echo "setup: installing the packages of $lock"
export VIRTUAL_ENV=$PWD/$venv
case $venv in /*) VIRTUAL_ENV=$venv ;; esac
case $mode in sync) verb=(sync) ;; add) verb=(install -r) ;; *) fail "unknown mode $mode" ;; esac
# uv is quick but does not read pip's settings (an index of one's own, say); pip is slower and does.
"$venv/bin/uv" pip "${verb[@]}" "$lock" --require-hashes --system-certs --quiet || {
  echo "setup: uv could not install everything, trying pip"
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r "$lock"
}
"$venv/bin/uv" pip install --quiet --offline --no-deps --no-build-isolation --editable .
