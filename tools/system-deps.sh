#!/usr/bin/env bash
# Some tests need programs that Python packages do not bring: a PostgreSQL server, a browser, Java for Spark.
# Quick and silent when all are there. As root on Debian or Ubuntu it installs what is missing; otherwise it says what is
# missing and goes on: tests/conftest.py then skips what cannot run, or fails it where CI=true.
set -euo pipefail

has_postgres() { command -v initdb >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null; }
has_chromium() {
  for name in chromium-headless-shell chromium chromium-browser google-chrome; do
    command -v "$name" >/dev/null && return
  done
  return 1
}
has_java() { command -v java >/dev/null; }

install() { apt-get install -y --no-install-recommends "$@"; }

look() {
  missing=()
  has_postgres || missing+=(postgresql)
  has_chromium || missing+=(chromium-headless-shell fonts-liberation)  # without a font pages are blank
  has_java || missing+=(default-jre-headless)
}

look
[ ${#missing[@]} -gt 0 ] || exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  echo "test-deps: installing ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  # where the shell is not a package of its own, the whole browser serves
  { apt-get update && { install "${missing[@]}" || install "${missing[@]/%-headless-shell/}"; }; } >"$log" 2>&1 ||
    tail -n 5 "$log" >&2
  look
  [ ${#missing[@]} -gt 0 ] || exit 0
fi
echo "test-deps: not installed here: ${missing[*]}; tests that need them are skipped, or fail where CI=true." >&2
