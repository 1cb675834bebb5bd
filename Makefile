# The two commands: `make run` shows XCE at work, `make test` runs every test.
# All targets work from a clean clone with Python 3.11 or later, pip, gcc, git and make; `make setup`
# is their common part and costs nothing when neither dependencies nor this list of files changed.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3 python; do \
    command -v $$p >/dev/null 2>&1 \
    && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' && echo $$p && break; done)
VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check -q
READY := $(VENV)/.ready

# What is handed on, for example: make test ARGS="-m 'not slow'", make bench ARGS="--json".
ARGS ?=

.PHONY: help setup run test check bench proof torture clean

help:
	@echo "make run      a scheduler with local workers at work, a crash in the middle, the recovery"
	@echo "make test     every test (ARGS= goes to pytest)"
	@echo "make check    ruff, mypy, import rules, longest files and functions"
	@echo "make bench    the published figures (ARGS= goes to tools.bench)"
	@echo "make torture  the harnesses of RELIABILITY.md, long forms (half an hour; ARGS= goes to them)"
	@echo "make proof    every recorded workload, whole: simulate, export, import, verify; and against the"
	@echo "              slow reference: KTH, NASA, UB-HPC under FCFS and EASY (hours)"
	@echo "make setup    what all of these need, done by each when it is due"
	@echo "make clean    remove what the other targets made"

# Each `xce` is a process of its own: compiling what changed here, once, saves each a third of a second
# also where Python is told to keep nothing (PYTHONDONTWRITEBYTECODE).
setup: $(READY)
	@$(PY) -m compileall -q domain store projections replay tools || true

# Setuptools comes first and from the constraints, so that the build is pinned too.
$(READY): pyproject.toml constraints.txt debian-packages.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11 or later is needed; none was found on PATH." >&2; exit 2; }
	@test -x $(PY) || "$(PYTHON)" -m venv $(VENV)
	$(PIP) install -c constraints.txt setuptools
	$(PIP) install -c constraints.txt --no-build-isolation -e '.[test,dev]'
	@$(MAKE) --no-print-directory debian-packages
	@touch $@

# Without root or apt this only says what is missing: the tests that need it list themselves.
.PHONY: debian-packages
debian-packages:
	@missing=""; \
	for package in $$(grep -v '^#' debian-packages.txt); do \
	    dpkg -s "$$package" >/dev/null 2>&1 || missing="$$missing $$package"; \
	done; \
	if test -z "$$missing"; then exit 0; fi; \
	if test "$$(id -u)" = 0 && command -v apt-get >/dev/null 2>&1; then \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
	        apt-get install -y -qq --no-install-recommends $$missing >/dev/null \
	    || echo "Could not install:$$missing" >&2; \
	else \
	    echo "Not installed (needs root and apt):$$missing" >&2; \
	fi

run: setup
	@$(PY) -m tools.demo $(ARGS)

test: setup
	@$(PY) -m pytest $(ARGS)

# All three run, whatever the first ones find.
check: setup
	@status=0; \
	$(PY) -m ruff check . || status=1; \
	$(PY) -m mypy || status=1; \
	$(PY) -m pytest -q -s tests/test_tidy.py || status=1; \
	exit $$status

bench: setup
	@$(PY) -m tools.bench $(ARGS)

# Hours: every recorded workload whole, through export, import and verify.
proof: setup
	@XCE_PROOF_JOBS=all $(PY) -m pytest tests/replay/test_every_workload.py \
		tests/replay/test_backfilling.py $(ARGS)

torture: setup
	@$(PY) -m tools.torture $(ARGS)

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis bench-results
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
