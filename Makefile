# make demo    an answer from the built-in model, without an engine and without a download of a model
# make test    the test suite; TESTFLAGS='-k plan -x' narrows it. The tests of the engines: test/engine/README.md
# make lint    what a change has to pass before it is read
# make bench   the measurements of test/bench
# make install the program into PREFIX (default ~/.local), in a virtual environment of its own
# make clean   removes what these targets made

PYTHON ?= python3
VENV ?= .venv
PREFIX ?= $(HOME)/.local
TESTFLAGS ?=
BENCHFLAGS ?=
SHELL := /bin/bash

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --quiet --disable-pip-version-check
SOURCES := $(shell find ramalama_like -type f -not -name '*.pyc' 2>/dev/null)
SCRIPTS := .ci/run $(wildcard test/*/*.sh)

.PHONY: help demo test lint bench install clean
help:
	@sed -n 's/^# //p' Makefile

demo: $(VENV)/.runnable
	@$(BIN)/ramalama-like --nocontainer run demo "What is ramalama-like?"

test: $(VENV)/.editable
	@$(BIN)/python -m pytest $(TESTFLAGS)

lint: $(VENV)/.editable
	@$(BIN)/python -m ruff check .
	@$(BIN)/python -m ruff format --check .
	@$(BIN)/python -m mypy
	@if command -v shellcheck >/dev/null; then shellcheck $(SCRIPTS); else echo 'lint: no shellcheck on PATH, the shell scripts are not checked'; fi

bench: $(VENV)/.editable
	@$(BIN)/python test/bench/run.py $(BENCHFLAGS)

install:
	@echo "installing into $(PREFIX)/lib/ramalama-like"
	@$(PYTHON) -m venv --clear "$(PREFIX)/lib/ramalama-like"
	@"$(PREFIX)/lib/ramalama-like/bin/python" -m pip --quiet --quiet --disable-pip-version-check install '.[embedded]'
	@mkdir -p "$(PREFIX)/bin"
	@ln -sf "$(PREFIX)/lib/ramalama-like/bin/ramalama-like" "$(PREFIX)/bin/ramalama-like"
	@echo "installed $(PREFIX)/bin/ramalama-like"

clean:
	@rm -rf "$(VENV)" build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find ramalama_like test -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo 'make: Python 3.11 or newer is needed; name one with: make PYTHON=…'; exit 1; }
	@echo 'making $(VENV)'
	@$(PYTHON) -m venv "$(VENV)" || { echo 'make: no virtual environment; on Debian: apt-get install python3-venv'; exit 1; }

# Two ways to install into the same environment, and a stamp for each: .editable follows the sources by
# itself, .runnable is a copy of them. Each way that replaces the other takes the other's stamp away.
$(VENV)/.editable: pyproject.toml | $(BIN)/python
	@echo 'installing the program and its tests into $(VENV)'
	@$(PIP) install --editable '.[test,embedded]'
	@rm -f $(VENV)/.runnable && touch $@

$(VENV)/.runnable: pyproject.toml $(SOURCES) | $(BIN)/python
	@if [[ -e $(VENV)/.editable && ! pyproject.toml -nt $(VENV)/.editable ]]; then exit; fi; \
	  echo 'installing the program into $(VENV)'; rm -f $(VENV)/.editable; $(PIP) install '.[embedded]'
	@touch $@
