# make help lists the targets. Each installs what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TESTS := PYTHONPATH=src:verify/src:development/src:tests:. $(BIN)/python
PYTEST := $(BIN)/python -m pytest -q
# Two workers; they take tests from each other.
BY_TWO := -n 2 --dist worksteal
# uv where it is there, else pip; on a terminal each shows what it fetches.
PIP = $(if $(shell command -v uv),UV_PYTHON_DOWNLOADS=never uv pip install$(QUIET),$(BIN)/python -m pip install --disable-pip-version-check$(QUIET))
QUIET = $(shell test -t 2 || echo ' -q')
# Where there is no npm, the one of a Python package.
NPM := $(if $(shell command -v npm),npm,$(CURDIR)/$(BIN)/npm)
CI_ONCE = $(NPM) ci --ignore-scripts --no-audit --no-fund --engine-strict=false --loglevel=error --fetch-retry-mintimeout=1000 --fetch-retry-maxtimeout=5000
# Once more, where the registry or the network failed.
NPM_CI = { $(CI_ONCE) >/dev/null 2>&1 || { sleep 5; $(CI_ONCE) >/dev/null; }; }
# Ends what failed with one sentence of ours.
OR_SAY = || { echo "roundtrip: $(1) could not be installed; check the network and the disk's free space, then run make again" >&2; exit 1; }
export PATH := $(PATH):$(CURDIR)/$(BIN)
# Compiled modules are kept, whatever the environment says: without them each run compiles all tests again.
unexport PYTHONDONTWRITEBYTECODE

CLIENTS := clients/python/.venv/.installed clients/typescript/dist/.built

COMPILE := uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header

.PHONY: help run unit test test-slow e2e lint types fix bench long write

help: ## Lists the targets.
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

run: $(VENV)/.runs node_modules/.installed ## Starts a demo: local chain, database, service, pages.
	@$(BIN)/roundtrip demo --actors

unit: $(VENV)/.installed ## Runs the tests that need no database, chain or npm: a minute.
	@$(PYTEST) $(BY_TWO) -m "not slow" $(or $(TEST),tests/unit)

test: $(VENV)/.installed node_modules/.installed tests/conformance/node_modules/.installed $(CLIENTS) ## Runs the fast tests of every kind: six minutes. TEST="-n0 tests/db": some of them.
	@$(PYTEST) $(BY_TWO) -m "not slow" $(TEST)

test-slow: $(VENV)/.installed node_modules/.installed tests/conformance/node_modules/.installed $(CLIENTS) ## Runs the other tests.
	@$(PYTEST) $(BY_TWO) -m slow $(TEST)

e2e: $(VENV)/.installed node_modules/.installed tests/e2e/node_modules/.installed clients/typescript/dist/.built ## Runs the pages in a real browser. Needs Chromium.
	@$(TESTS) -c 'from e2e.browser import is_there; is_there()'
	@$(PYTEST) -n 0 $(or $(TEST),tests/e2e)

lint: $(VENV)/.installed clients/typescript/node_modules/.installed ## Checks style, and prints the code's size by capability.
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@cd clients/typescript && node_modules/.bin/biome ci --log-level=warn
	@$(BIN)/python .ci/report_sizes.py

types: $(VENV)/.installed clients/typescript/dist/.built ## Checks types.
	@$(BIN)/mypy

fix: $(VENV)/.installed clients/typescript/node_modules/.installed ## Formats the code and mends what ruff and biome can mend.
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .
	@cd clients/typescript && node_modules/.bin/biome check --write --log-level=warn

bench: $(VENV)/.installed node_modules/.installed $(if $(filter lighthouse,$(NAME)),bench/peers/lighthouse,bench/peers/ponder)/node_modules/.installed ## Measures: NAME=doors runs bench/doors.py; without NAME, all in a quarter of an hour.
	@$(TESTS) -m bench.$(or $(NAME),side_by_side) $(FLAGS)

# Long runs, by NAME. FLAGS are the program's; --help lists them.
# truth    random tokens against real wallets           N=2000 SEED= CASE= FLAGS=--real (over a real geth)
# springs  tokens that spring on some wallets only      N=340 SEED= CASE= FLAGS='--checks 100 --only "address, 1 in 8"'
# dialects every sample token on every kind of node     FLAGS=--write (tests/truth/dialects.md), --real (only geth)
# sweep    seeded runs through faults                   SEEDS=500 FIRST= RUNS="index alerts"
# bad-days the whole service, one fault after another   FLAGS='--only "node stalls"'
# soak     twice the load that it can bear              MINUTES=30
# overload twice and ten times that load, how soon callers are told  FLAGS='--beside ../older'
# schemathesis  2,000 cases of the OpenAPI document
# platforms  a wheel of every package for every platform that the docs name; needs uv and the package index
# python   unit and store tests on another Python       PYTHON_VERSION=3.12
# server   all tests on a PostgreSQL server             DATABASE_URL=postgresql://role:password@host/database
# citus    the store's tests on Citus                   COORDINATOR_URL= WORKER_URLS=one,another TEST=
truth = -m truth.run $(if $(CASE),--case '$(CASE)',$(or $(N),2000) $(SEED)) $(FLAGS)
springs = -m truth.run_springs $(if $(CASE),--case '$(CASE)',$(or $(N),340) $(SEED)) $(FLAGS)
dialects = -m truth.run_dialects $(FLAGS)
bad-days = -m sim.bad_days $(FLAGS)
soak = -m bench.soak --minutes $(or $(MINUTES),30) $(FLAGS)
overload = -m bench.soak_overload $(FLAGS)
platforms = .ci/resolve_platforms.py

long: $(VENV)/.installed node_modules/.installed tests/conformance/node_modules/.installed $(if $(filter dialects truth,$(NAME)),var/geth) ## Runs for long: NAME=truth, springs, dialects, sweep, bad-days, soak, overload, platforms, schemathesis, python, server or citus.
ifeq ($(NAME),sweep)
	@set -e; for runs in $(or $(RUNS),index alerts); do $(TESTS) -m sim.sweep $$runs $(or $(SEEDS),500) $(FIRST); done
else ifeq ($(NAME),schemathesis)
	@SCHEMATHESIS_EXAMPLES=140 $(PYTEST) -n 0 -s tests/doors/http/test_schemathesis.py
else ifeq ($(NAME),python)
	@.ci/test-python $(PYTHON_VERSION)
else ifeq ($(NAME),server)
	@TEST_DATABASE_URL='$(DATABASE_URL)' $(TESTS) -m support.servers --strange $(PYTEST) $(BY_TWO) $(TEST)
else ifeq ($(NAME),citus)
	@TEST_DATABASE_URL='$(COORDINATOR_URL)' TEST_CITUS_WORKERS='$(WORKER_URLS)' $(PYTEST) -n 0 -m '$(or $(TIER),not slow)' $(or $(TEST),tests/db)
else
	@$(TESTS) $(or $($(NAME)),$(error NAME is truth, springs, dialects, sweep, bad-days, soak, overload, platforms, schemathesis, python, server or citus))
endif

# What is written from the code, by NAME.
# evidence     tests/evidence, from the local chain; rejudge: only its verdicts, after a change of the policy
# draw         docs/truth.md, the share of traps that the draw of a check's wallets misses
# cases        the composed tokens that the tests try, drawn anew
# screenshots  every page, light and dark, into var/screenshots; pictures: the README's
# wheel        what pipx installs, three packages, into dist/; sbom: docs/licences.md, and a CycloneDX bill into dist/
# clients      the generated part of clients/, from docs/openapi.json
# lock         every .lock from its .in (needs uv)
# deploy       reads deploy/ with hadolint and others
evidence = -m evidence.corpus --make
rejudge = -m evidence.corpus
draw = -m truth.draw_table --write
cases = -m truth.composed_cases
screenshots = -m e2e.screenshots
pictures = -m e2e.pictures
sbom = -m deploy.bill
clients = -m clients.generate
deploy = -m deploy.lint deploy/.lint/bin

write: $(VENV)/$(if $(filter wheel,$(NAME)),.runs,.installed) node_modules/.installed $(if $(filter deploy,$(NAME)),deploy/.lint/.installed) $(if $(filter clients,$(NAME)),$(CLIENTS)) ## Writes NAME=evidence, rejudge, draw, cases, screenshots, pictures, wheel, sbom, clients or lock; NAME=deploy checks deploy/.
ifeq ($(NAME),lock)
	set -e; for name in requirements requirements-npm clients/python/generator; do \
	  $(COMPILE) --upgrade $$name.in -o $$name.lock; done
	$(COMPILE) --upgrade --constraint requirements.lock requirements-tests.in -o requirements-tests.lock
else ifeq ($(NAME),wheel)
	@set -e; for package in . verify development; do (cd $$package && $(CURDIR)/$(BIN)/python -m hatchling build -t wheel -d $(CURDIR)/dist); done
else
	@$(TESTS) $(or $($(NAME)),$(error NAME is evidence, rejudge, draw, cases, screenshots, pictures, wheel, sbom, clients, lock or deploy))
endif

# What the demo needs, of the tests' packages none. An environment that was left unfinished starts anew. Python 3.11
# puts setuptools into it, which nothing of ours takes.
$(VENV)/.runs: requirements.lock pyproject.toml verify/pyproject.toml development/pyproject.toml
	@test -w . || { echo "roundtrip: you may not write to this folder; copy it to one of yours, and run make there" >&2; exit 1; }
	@command -v $(PYTHON) >/dev/null || { echo "roundtrip: there is no $(PYTHON); install Python 3.11, 3.12 or 3.13, and name it as in: make run PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit("roundtrip: Python 3.11, 3.12 or 3.13 is needed, and $(PYTHON) is " + sys.version.split()[0] + "; name another as in: make run PYTHON=python3.12") if not (3, 11) <= sys.version_info[:2] <= (3, 13) else None'
	@echo "installing 110 Python packages into $(VENV), 245 MB (once; half a minute, of a slow line's download more)"
	@begun=$$(date +%s); $(PYTHON) -m venv $(if $(wildcard $@),,--clear) $(VENV) && export VIRTUAL_ENV='$(CURDIR)/$(VENV)' && \
	  $(BIN)/python -m pip uninstall -qq -y setuptools && \
	  $(PIP) --require-hashes -r requirements.lock && \
	  $(PIP) --no-deps --no-build-isolation --editable . --editable verify --editable development && \
	  echo "  $$(($$(date +%s) - begun)) s" $(call OR_SAY,the Python packages)
	@touch $@

$(VENV)/.installed: $(VENV)/.runs requirements-tests.lock
	@echo "installing the tests' Python packages, 330 MB more"
	@begun=$$(date +%s); export VIRTUAL_ENV='$(CURDIR)/$(VENV)'; $(PIP) --require-hashes -r requirements-tests.lock && \
	  echo "  $$(($$(date +%s) - begun)) s" $(call OR_SAY,the tests' Python packages)
	@touch $@

# Only where there is no npm.
$(VENV)/.npm: $(VENV)/.runs requirements-npm.lock
	@echo "installing npm as a Python package, 60 MB"
	@export VIRTUAL_ENV='$(CURDIR)/$(VENV)'; $(PIP) --require-hashes -r requirements-npm.lock $(call OR_SAY,npm)
	@touch $@

node_modules/.installed: package-lock.json $(if $(filter npm,$(NPM)),,$(VENV)/.npm)
	@echo "installing the local chain's node, 68 MB"
	@begun=$$(date +%s); $(NPM_CI) && echo "  $$(($$(date +%s) - begun)) s" $(call OR_SAY,the local chain's node)
	@touch $@

# A real geth, for tests. Without Go or the network it is missing, and they go without it.
var/geth: tests/support/geth.version
	@if command -v go >/dev/null; then \
	  echo "building geth $$(cat $<) (about two minutes, once)"; \
	  mkdir -p var && GOBIN='$(CURDIR)/var' go install "github.com/ethereum/go-ethereum/cmd/geth@$$(cat $<)" >var/geth.log 2>&1 && touch $@ || \
	    { echo "geth could not be built:"; tail -n 3 var/geth.log; }; \
	else echo "there is no Go to build geth with"; fi

tests/conformance/node_modules/.installed: tests/conformance/package-lock.json
	@echo "installing the protocol's conformance suite, Pyright, and the Node they need"
	@cd tests/conformance && $(NPM_CI) $(call OR_SAY,the protocol's conformance suite)
	@touch $@

tests/e2e/node_modules/.installed: tests/e2e/package-lock.json
	@echo "installing the accessibility checker"
	@cd tests/e2e && $(NPM_CI) $(call OR_SAY,the accessibility checker)
	@touch $@

bench/peers/ponder/node_modules/.installed: bench/peers/ponder/package-lock.json
	@echo "installing Ponder, to measure beside it"
	@cd bench/peers/ponder && $(NPM_CI) $(call OR_SAY,Ponder)
	@touch $@

bench/peers/lighthouse/node_modules/.installed: bench/peers/lighthouse/package-lock.json
	@echo "installing Lighthouse, and the Node it needs"
	@cd bench/peers/lighthouse && $(NPM_CI) $(call OR_SAY,Lighthouse)
	@touch $@

clients/python/.venv/.installed: clients/python/generator.lock
	@echo "installing the generator of the Python client"
	@$(PYTHON) -m venv clients/python/.venv
	@clients/python/.venv/bin/python -m pip install -qq --disable-pip-version-check --require-hashes -r $< $(call OR_SAY,the generator of the Python client)
	@touch $@

clients/typescript/node_modules/.installed: clients/typescript/package-lock.json
	@echo "installing what builds the TypeScript client"
	@cd clients/typescript && $(NPM_CI) $(call OR_SAY,what builds the TypeScript client)
	@touch $@

clients/typescript/dist/.built: clients/typescript/node_modules/.installed $(wildcard clients/typescript/*.json clients/typescript/src/*.ts clients/typescript/test/*.ts)
	@cd clients/typescript && node_modules/.bin/tsc
	@touch $@

deploy/.lint/.installed: deploy/lint.txt
	@echo "installing the checkers of compose files, images and bills"
	@$(PYTHON) -m venv deploy/.lint
	@deploy/.lint/bin/python -m pip install -qq --disable-pip-version-check -r deploy/lint.txt $(call OR_SAY,the checkers)
	@touch $@
