# Everything a person or a machine does with this repository. `make` alone lists it.
# A machine with Python 3.11 or newer, make and git needs nothing else: `make demo` and `make test` set themselves up.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help
help:  ## list what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

.PHONY: setup
setup: $(STAMP)  ## create .venv with every pinned dependency (quick when nothing changed)

$(STAMP): requirements.lock pyproject.toml tools/setup.sh
	@PYTHON='$(PYTHON)' bash tools/setup.sh '$(VENV)'
	@touch $@

.PHONY: lock
lock: $(BIN)/uv  ## pin every dependency anew in requirements.lock
	@$(BIN)/uv pip compile pyproject.toml --universal --generate-hashes --all-extras --group dev --upgrade --quiet \
	  -o requirements.lock --custom-compile-command "make lock"
	@! grep -nE 'https?://' requirements.lock || { echo "requirements.lock must not record addresses" >&2; exit 1; }

$(BIN)/uv:
	@PYTHON='$(PYTHON)' bash tools/setup.sh '$(VENV)' uv
