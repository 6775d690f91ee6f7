#!/usr/bin/env bash
# Some tests need programs that Python packages do not bring: a PostgreSQL server, a browser, Java for Spark.
# Quick and silent when all are there. As root on Debian or Ubuntu it installs what is missing; otherwise it says what is
# missing and goes on: tests/conftest.py then skips what cannot run, or fails it where CI=true.
set -euo pipefail

has_postgres() { command -v initdb >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null; }
has_chromium() { command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null; }
has_java() { command -v java >/dev/null; }

look() {
  missing=()
  has_postgres || missing+=(postgresql)
  has_chromium || missing+=(chromium fonts-liberation)  # without a font pages are blank
  has_java || missing+=(default-jre-headless)
}

look
[ ${#missing[@]} -gt 0 ] || exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  echo "test-deps: installing ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  { apt-get update && apt-get install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1 || tail -n 5 "$log" >&2
  look
  [ ${#missing[@]} -gt 0 ] || exit 0
fi
echo "test-deps: not installed here: ${missing[*]}; tests that need them are skipped, or fail where CI=true." >&2
