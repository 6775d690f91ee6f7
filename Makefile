# Everything a person or a machine does with this repository; `make` alone lists it.
# Python 3.11 or newer, make and git are enough: each command sets up what it needs, and is quick the second time.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
SETUP  := PYTHON='$(PYTHON)' bash tools/setup.sh '$(VENV)'

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-long test-deps lint types format bench catalogues compare pins pythons soak docs lock clean

help:  ## list what can be made
	@sed -nE 's/^([a-z-]+):.*  ## (.*)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 12

demo: $(VENV)/.demo  ## ask 20,000 synthetic people: decisions, estimates, a record and a report, in out/demo
	@$(BIN)/hushbid demo --force

# three at a time on two cores: tests wait for browsers, servers and Java much of their time
test: setup test-deps lint types  ## everything CI checks: style, types, import contract, all tests
	@env -u PYTHONDONTWRITEBYTECODE $(BIN)/pytest -q -n 3 --dist worksteal

# what is repeated, never what is checked: tests/conftest.py says what each variable adds
LONG = HUSHBID_EXAMPLES=10 HUSHBID_STORES=all HUSHBID_CASES=all

test-long: setup test-deps lint types  ## before a release: ten times the examples, all stores, engines and Pythons, crashes
	@env -u PYTHONDONTWRITEBYTECODE $(LONG) $(BIN)/pytest -q -n 3 --dist worksteal -o faulthandler_timeout=9000
	@$(MAKE) --no-print-directory soak docs pythons

bench: setup  ## a table of ratios, each measured in one run (some: ONLY=start)
	@$(BIN)/python -m benchmarks.run $(ONLY)

compare: setup  ## decisions against those of an earlier commit (ARGS="--only capped local", ARGS="--size large HEAD~1")
	@$(BIN)/python -m tools.comparison $(ARGS)

catalogues: setup  ## bring translations up to date with the sentences of the code
	@$(BIN)/python -m tools.catalogues

pins: setup  ## every page and report against those of an earlier commit (ARGS="HEAD~3")
	@$(BIN)/python -m tools.pins $(ARGS)

pythons: setup  ## the demo from the wheel on every supported Python that is here (and some tests: TESTS="tests/cli")
	@$(BIN)/python tools/pythons.py $(TESTS)

soak: setup test-deps  ## kill the campaign server at hundreds of random moments, on both stores (fewer: KILLS=20)
	@$(BIN)/python -m tests.server.soak --kills $(or $(KILLS),200)

docs: setup  ## the documentation, in site/index.html; opens without a server or a network
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet && echo "docs: open site/index.html"

setup: $(VENV)/.all  ## create or update .venv with every pinned package

lint: setup  ## style and layout
	@$(BIN)/ruff check --quiet && $(BIN)/ruff format --check --quiet || \
	  { $(BIN)/ruff format --diff --quiet; echo "lint: run 'make format', then mend what is left" >&2; exit 1; }

types: setup  ## strict types
	@$(BIN)/mypy

format: setup  ## lay the code out and mend what can be mended by itself
	@$(BIN)/ruff check --fix --quiet; $(BIN)/ruff format --quiet

test-deps:  ## the system packages some tests need: installed if root, named otherwise
	@bash tools/system-deps.sh

lock: $(BIN)/uv  ## pin the newest versions of everything
	@$(COMPILE) --all-extras --group dev --upgrade -o requirements.lock
	@$(COMPILE) --extra release --group build --constraint requirements.lock -o requirements-demo.lock
	@! grep -nE 'https?://' requirements.lock requirements-demo.lock || \
	  { echo "lock: a lock file must not record addresses" >&2; exit 1; }

clean:  ## remove what was built, the environment included
	@rm -rf $(VENV) build dist out site .hypothesis .mypy_cache .pytest_cache .ruff_cache

COMPILE = $(BIN)/uv pip compile pyproject.toml --universal --generate-hashes --quiet --custom-compile-command "make lock"

$(BIN)/uv:
	@$(SETUP)

$(VENV)/.all: requirements.lock pyproject.toml tools/setup.sh
	@$(SETUP) requirements.lock
	@touch $(VENV)/.demo $@

# The demo needs little of all that; it takes the full environment when there is one.
$(VENV)/.demo: requirements-demo.lock pyproject.toml tools/setup.sh
	@$(SETUP) requirements-demo.lock add
	@touch $@
