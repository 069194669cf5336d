# `make run` and `make test` need nothing else. CI runs `make check`.
PYTHON ?= python3
SEED ?= 20261121
MINUTES ?= 20
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

# Two test processes for each core: what waits for a service and what computes run beside each other (how they are mixed:
# tests/running_order.py). Tests marked `alone` have a bound on time, so they run last, and nothing beside them.
CORES := $(shell nproc 2> /dev/null || echo 2)
PROCESSES ?= $(shell expr 2 '*' $(CORES))
PYTEST := $(BIN)/python -m pytest $(if $(DURATIONS),--durations=60)
PARALLEL := --dist loadfile --no-loadscope-reorder --numprocesses
ALONE = $(shell grep -rl --include='*.py' 'mark\.alone' tests)
# What the slowest tests took goes into a file as well: make test DURATIONS=durations.txt
KEPT = $(if $(DURATIONS),| tee --append $(DURATIONS))
SHELL := /bin/bash -o pipefail
# Hundreds of processes import the same modules: they are compiled once, also where the environment forbids to keep that.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: run test test-all test-fast check install install-dev soak mutants bench compare format lock release clean

run: install  ## The whole service in this terminal, until Ctrl-C: make run, or make run PORT=8001.
	@$(BIN)/points up $(if $(PORT),--port $(PORT)) $(if $(FLOWER_PORT),--flower-port $(FLOWER_PORT))

test: install-dev  ## Every promise once, on servers that the tests start themselves.
	@$(PYTEST) $(PARALLEL) $(PROCESSES) -m "not alone and not long" $(KEPT)
	@cp .pytest_cache/v/points/long .pytest_cache/long
	@$(PYTEST) -m "alone and not long" $(ALONE) $(KEPT)
	@echo "Not run: $$(cat .pytest_cache/long) tests that are marked long, more variations and sizes; make test-all runs them too."

test-all: install-dev  ## Every test.
	@$(PYTEST) $(PARALLEL) $(PROCESSES) -m "not alone" $(KEPT)
	@$(PYTEST) -m alone $(ALONE) $(KEPT)

test-fast: install-dev  ## The quick unit and integration tests: what to run after each change.
	@$(PYTEST) $(PARALLEL) $(CORES) -m "not alone and not long" tests/unit tests/integration

check: install-dev  ## Format, lint, types, import direction, known vulnerabilities, every test.
	@rm -f .pytest_cache/containers
	@DURATIONS="$(DURATIONS)" .ci/check
	@echo "Tested on $$(uname -sm). Untested: any other system or processor (macOS, arm), and $$(cat .pytest_cache/containers 2> /dev/null || echo 'containers, which were not built or run')."

install: $(VENV)/.installed  ## The virtual environment, with what the service needs.

install-dev: $(VENV)/.installed-dev  ## The same, with what the tests need.

$(VENV)/bin/python:
	@echo "Making the virtual environment in $(VENV) …"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; name one with make PYTHON=python3.12")'
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

$(VENV)/.installed: requirements.lock pyproject.toml | $(VENV)/bin/python
	@echo "Installing (once; about half a minute) …"
	@$(PIP) install --quiet --require-hashes --requirement requirements.lock
	@$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.installed-dev: requirements-dev.lock $(VENV)/.installed
	@echo "Installing what the tests need (once) …"
	@$(PIP) install --quiet --require-hashes --requirement requirements-dev.lock
	@touch $@

soak: install-dev  ## A slice of the long run: make soak SEED=7 MINUTES=20 goes on with seed 7.
	$(BIN)/python -m tests.crash.soak --slice --seed $(SEED) --minutes $(MINUTES) --sends 100000 --faults 10000

mutants: install-dev  ## Plant known bugs, each in a copy of the tree, and see each caught.
	@$(BIN)/python -m tests.mutants

bench: install-dev  ## Measure sends beside the COPY floor: medians with their spread.
	@$(BIN)/python -m benchmarks $(BENCH)

compare: install-dev  ## This checkout beside another one, round by round: make compare WITH=../before
	@$(BIN)/python -m benchmarks.compare $(WITH) $(COMPARE)

format: install-dev  ## Format the code, and make what of the client is made: results, calls, and the sync half.
	$(BIN)/python -m client.generate
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Both locks are made together, so that they agree.
LOCK := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate
lock:  ## Pin every dependency anew (needs uv).
	$(LOCK) pyproject.toml --extra embedded --group build --output-file requirements.lock $(LOCK_FLAGS)
	$(LOCK) pyproject.toml --extra embedded --group build --group dev --constraint requirements.lock --output-file requirements-dev.lock $(LOCK_FLAGS)

release: install-dev  ## Check, build and tag a version: make release VERSION=1.0.0, with CHECKED=1 where CI did make check.
	@$(BIN)/python .ci/release.py "$(VERSION)" $(if $(CHECKED),--checked)

clean:  ## Remove the environment and caches; the data directory stays.
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis *.egg-info client/build client/src/*.egg-info
