# Two commands: make run, make test. Each installs what it needs. Tests run two at a time: make test TEST="-n0 ..." one by one.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: run test test-python test-server e2e screenshots pictures schemathesis lint types bench bench-index bench-live bench-boards bench-holders bench-doors bench-processes bench-rules bench-alerts bench-practice bench-pages bench-attackers bench-tarpits truth sweep evidence rejudge wheel sbom lint-deploy soak bad-days bench-techniques bench-check clean

run: $(VENV)/.installed node_modules/.installed
	@$(BIN)/roundtrip demo --actors

test: $(VENV)/.installed node_modules/.installed tests/conformance/node_modules/.installed
	@$(BIN)/python -m pytest -q -n 2 --dist worksteal $(TEST)

# The unit and store tests on another supported Python, in an environment of its own (.venv-3.13): make test-python
# PYTHON_VERSION=3.12; left out, the newest that is found. Interpreters are looked for on the path and in pyenv.
test-python: $(VENV)/.installed
	@.ci/test-python $(PYTHON_VERSION)

# The same tests on a server of PostgreSQL: DATABASE_URL=postgresql://role:password@host/database, whose role may make
# databases; without one a server is started for it, over TCP and set as no one would expect.
test-server: $(VENV)/.installed node_modules/.installed tests/conformance/node_modules/.installed
	@TEST_DATABASE_URL='$(DATABASE_URL)' PYTHONPATH=tests $(BIN)/python -m support.servers --strange \
	  $(BIN)/python -m pytest -q -n 2 --dist worksteal $(TEST)

# Every page and the ways of people through them in a real browser, on what make run starts. Needs Chromium.
e2e: $(VENV)/.installed node_modules/.installed tests/e2e/node_modules/.installed
	@PYTHONPATH=tests $(BIN)/python -c 'from e2e.browser import is_there; is_there()'
	@$(BIN)/python -m pytest -q -n 0 $(or $(TEST),tests/e2e)

# Every page, light and dark, on a phone and a desktop, into var/screenshots.
screenshots: $(VENV)/.installed node_modules/.installed
	@PYTHONPATH=tests $(BIN)/python -m e2e.screenshots

# The verdict card that the README shows, light and dark, into docs/pictures.
pictures: $(VENV)/.installed node_modules/.installed
	@PYTHONPATH=tests $(BIN)/python -m e2e.pictures

# The OpenAPI document against the service, 2,000 cases and more: two minutes. make test has some 400 of them.
schemathesis: $(VENV)/.installed node_modules/.installed
	@SCHEMATHESIS_EXAMPLES=140 $(BIN)/python -m pytest -q -n 0 -s tests/doors/http/test_schemathesis.py

lint: $(VENV)/.installed
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(VENV)/.installed
	@$(BIN)/mypy

# Our check beside the techniques of others, the sync beside Ponder, doors, holders, boards: a quarter of an hour on
# two cores, and a page of tables in var/bench.md. FLAGS="--only techniques doors": some of it.
bench: $(VENV)/.installed node_modules/.installed bench/peers/ponder/node_modules/.installed
	@PYTHONPATH=tests $(BIN)/python -m bench.side_by_side $(FLAGS)

# Which technique is right about which token, against real wallets, by name: two minutes.
bench-techniques: $(VENV)/.installed node_modules/.installed
	@PYTHONPATH=tests $(BIN)/python -m bench.techniques --misses $(FLAGS)

# A check, a prepared trade, hedged reads, and logs decoded: what each costs.
bench-check: $(VENV)/.installed node_modules/.installed
	@$(BIN)/python -m bench.check
	@$(BIN)/python -m bench.prepare
	@PYTHONPATH=tests $(BIN)/python -m bench.nodes
	@$(BIN)/python -m bench.decode

# A cached check at every door, beside a constant route and a constant tool.
bench-doors: $(VENV)/.installed
	@$(BIN)/python -m bench.doors

# One process that serves and two, checks of a thousand requests at once, rolling restarts: some three minutes.
bench-processes: $(VENV)/.installed node_modules/.installed
	@$(BIN)/python -m bench.processes $(FLAGS)

# The sync's speed beside Ponder's, which is installed for it: some minutes. FLAGS=--limited: Ponder as it comes, too.
bench-index: $(VENV)/.installed node_modules/.installed bench/peers/ponder/node_modules/.installed
	@$(BIN)/python -m bench.index $(FLAGS)

# How far the sync lies behind a busy chain, and its memory: make bench-live MINUTES=30 for the long run.
bench-live: $(VENV)/.installed node_modules/.installed
	@$(BIN)/python -m bench.live --minutes $(or $(MINUTES),1)

# The answers out of the index with 2.4 and 24 million trades in it: some fifteen minutes, most of them filling.
# FLAGS=--reuse asks what was filled before; it stays in var/bench-boards, twelve gigabytes.
bench-boards: $(VENV)/.installed
	@$(BIN)/python -m bench.boards $(FLAGS)

# Who holds a token of ten thousand, a hundred thousand and a million transfers: half an hour, most of it making
# them. FLAGS=--reuse asks of those that were made before; they stay in var/bench-holders, three gigabytes.
bench-holders: $(VENV)/.installed node_modules/.installed
	@$(BIN)/python -m bench.holders $(FLAGS)

# Whom a happening is told to, among ten thousand rules and a hundred thousand: a minute.
bench-rules: $(VENV)/.installed
	@$(BIN)/python -m bench.rules $(FLAGS)

# From a block to a webhook, on what make run starts: two minutes. TRADES=300 for more of them.
bench-alerts: $(VENV)/.installed node_modules/.installed
	@PYTHONPATH=tests $(BIN)/python -m bench.alerts --trades $(or $(TRADES),100)

# The practice league among a hundred thousand accounts, and an account with fifty positions: a minute.
bench-practice: $(VENV)/.installed node_modules/.installed
	@PYTHONPATH=tests $(BIN)/python -m bench.practice $(FLAGS)

# Honest checks while attackers make the node work, from one address up to nine accounts: three minutes.
bench-attackers: $(VENV)/.installed node_modules/.installed
	@PYTHONPATH=src:tests $(BIN)/python -m bench.attackers $(FLAGS)

# An honest webhook beside 300 that answer slowly, and how long jobs take to be taken among 100,000: two minutes.
bench-tarpits: $(VENV)/.installed
	@PYTHONPATH=src:tests $(BIN)/python -m bench.tarpits $(FLAGS)

# What each page weighs with all that it loads, and how soon a token's page is there: half a minute.
bench-pages: $(VENV)/.installed node_modules/.installed
	@PYTHONPATH=tests $(BIN)/python -m bench.pages $(FLAGS)

# All of it at twice what it can do, for MINUTES (30), and what grows. FLAGS='--slow 1000': slow clients beside it.
soak: $(VENV)/.installed node_modules/.installed
	@PYTHONPATH=src:tests $(BIN)/python -m bench.soak --minutes $(or $(MINUTES),30) $(FLAGS)

# Random tokens against real wallets: make truth N=2000, SEED= to have the same again, CASE= for one of them.
truth: $(VENV)/.installed node_modules/.installed
	@PYTHONPATH=tests $(BIN)/python -m truth.run $(if $(CASE),--case '$(CASE)',$(or $(N),2000) $(SEED))

# Seeded runs through faults, of the sync and of alerts: make sweep SEEDS=50, FIRST= where they begin; RUNS=alerts: only of these.
sweep: $(VENV)/.installed node_modules/.installed
	@set -e; for runs in $(or $(RUNS),index alerts); do \
	  PYTHONPATH=tests $(BIN)/python -m sim.sweep $$runs $(or $(SEEDS),500) $(FIRST); done

# The whole service with users on it, and one fault after another: eight minutes. FLAGS='--only "node stalls"': some of them.
bad-days: $(VENV)/.installed node_modules/.installed
	@PYTHONPATH=tests $(BIN)/python -m sim.bad_days $(FLAGS)

# The corpus of tests/evidence anew from the local chain; and only its verdicts, after a change of the policy.
evidence: $(VENV)/.installed node_modules/.installed
	@PYTHONPATH=tests $(BIN)/python -m evidence.corpus --make

rejudge: $(VENV)/.installed
	@PYTHONPATH=tests $(BIN)/python -m evidence.corpus

# What pipx installs: into dist/.
wheel: $(VENV)/.installed node_modules/.installed
	@$(BIN)/python -m hatchling build -t wheel

# What is installed and under which licences: docs/licences.md, and into dist/ a CycloneDX bill and the lock of what runs.
sbom: $(VENV)/.installed
	@$(BIN)/python -m deploy.bill

# What runs it as a service, looked at by the tools of those who run such: none of it is in the gate.
lint-deploy: $(VENV)/.installed deploy/.lint/.installed
	@$(BIN)/python -m deploy.lint deploy/.lint/bin

# The lock is made anew from requirements.in with: make lock (needs uv).
lock:
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	  --no-annotate --no-header --upgrade requirements.in -o requirements.lock

$(VENV)/.installed: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("roundtrip needs Python 3.11, 3.12 or 3.13, and this is " + sys.version.split()[0]) if not (3, 11) <= sys.version_info[:2] <= (3, 13) else None'
	@echo "installing Python packages into $(VENV) (about half a minute, once)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

node_modules/.installed: package-lock.json
	@echo "installing the local chain's node"
	@npm ci --ignore-scripts --no-audit --no-fund --silent
	@touch $@

tests/conformance/node_modules/.installed: tests/conformance/package-lock.json
	@echo "installing the protocol's conformance suite, and the Node it needs"
	@cd tests/conformance && npm ci --ignore-scripts --no-audit --no-fund --silent --engine-strict=false
	@touch $@

tests/e2e/node_modules/.installed: tests/e2e/package-lock.json
	@echo "installing what looks for pages that not everybody can use"
	@cd tests/e2e && npm ci --ignore-scripts --no-audit --no-fund --silent
	@touch $@

bench/peers/ponder/node_modules/.installed: bench/peers/ponder/package-lock.json
	@echo "installing Ponder, to measure beside it"
	@cd bench/peers/ponder && npm ci --ignore-scripts --no-audit --no-fund --silent
	@touch $@

deploy/.lint/.installed: deploy/lint.txt
	@echo "installing what looks at compose files, images and bills"
	@$(PYTHON) -m venv deploy/.lint
	@deploy/.lint/bin/python -m pip install -qq --disable-pip-version-check -r deploy/lint.txt
	@touch $@

clean:
	rm -rf $(VENV) .venv-3.* node_modules var
