# On a fresh machine, run `make quickstart` and `make test`. Both install what they need.
VENV ?= .venv
BIN := $(VENV)/bin
export VENV
# Containers often set it. Without bytecode, each process of the tests would compile ctxbench again, which takes a second.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help quickstart dashboard test test-long unit oldest lint site bench engine setup setup-dev clean

help:           ## Show these targets
	@grep -E '^[a-z-]+: .*##' Makefile | sed 's/:.*##/\t/' | expand -t 16

quickstart:     ## Build samples of real repositories and show a leaderboard; MODEL=NAME also runs that model here
	@scripts/setup.sh $(if $(MODEL),llamacpp)
	$(BIN)/ctxbench quickstart $(if $(MODEL),--model $(MODEL))

# The type checker uses one processor, and unit tests use the other. Slow tests start processes and boxes, and wait half of
# the time, so six workers keep two processors busy. Tests of one file share images, sites and models, so one worker runs
# them. The longest test is the quick start, which uses two processes, so test-long has only four workers.
SLOW_TESTS = $(BIN)/pytest --dist loadfile --no-loadscope-reorder

test: setup-dev engine  ## Lint, types, layers and the tests (some reach a package index), about eleven minutes on two processors
	@$(MAKE) -j2 --output-sync=line --keep-going lint unit; quick=$$?; \
	$(SLOW_TESTS) -n 6 -m "(slow or network) and not long"; slow=$$?; exit $$((quick + slow))

test-long: setup-dev engine ## The tests that take minutes: real builds, complete lists of attacks; CI runs them too
	$(SLOW_TESTS) -n 4 -m "long"

# worksteal keeps neighbouring tests together, so that their fixtures are built once.
unit: setup-dev ## Unit tests only: no network, about three minutes on two processors
	$(BIN)/pytest -n auto --dist worksteal -m "not slow and not network"

# Tests `requires-python` with the oldest supported interpreter, Debian 12's.
OLDEST ?= /usr/bin/python3.11
oldest: engine  ## The unit tests on the oldest Python supported, in an environment of their own
	@[ -x $(OLDEST) ] || { echo "oldest: $(OLDEST) is not there; set OLDEST to a Python 3.11" >&2; exit 1; }
	$(MAKE) unit VENV=.venv-oldest PYTHON=$(OLDEST)

lint: setup-dev ## Style, types, the direction of imports, and names
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m scripts.names

site: setup-dev ## Write the documentation as a site into site/
	$(BIN)/python -m scripts.site

dashboard:      ## Show the stored runs as web pages
	@scripts/setup.sh dashboard
	$(BIN)/ctxbench dashboard

bench: setup-dev ## Print the measured ratios (minutes)
	$(BIN)/python -m benchmarks

engine:         ## Start a Docker engine where none answers (as root, on Debian), for the sandbox's tests
	@sandbox/docker/docker_engine.sh

setup:
	@scripts/setup.sh

setup-dev:
	@scripts/setup.sh dev

clean:          ## Remove caches; .ctxbench (your results) stays
	rm -rf .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache build dist *.egg-info
