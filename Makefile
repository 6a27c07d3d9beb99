# Set-up, checks and generated files. PY chooses the Python that the environments are made from.

PY ?= python3
VENV := .venv
BIN := $(VENV)/bin
LOCK := requirements-dev.lock
SERVERS := .soak/servers
PUBLISHED := tests/system/published
FUZZ := .soak/fuzz
FUZZ_TOOLS := tests/system/fuzz/requirements.txt
LINTERS := .soak/linters
LINTED := tests/deploy/linters.txt
BROWSER := .soak/browser
PROMETHEUS := .soak/prometheus
BROWSER_TOOLS := tests/system/browser/package.json
BENCH := .bench
BENCH_PEERS := tests/benchmarks/requirements-bench.txt
PIP_INSTALL := -m pip install --disable-pip-version-check -qq

# Tests of the project as a whole; all other folders hold unit tests.
WHOLE := $(wildcard tests/deploy tests/docs tests/shape tests/spec tests/system)

.PHONY: help run check test soak bench bench-search docs lock clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile

run: $(VENV)/installed ## start the daemon with ./config.toml
	@exec $(BIN)/session-runtime serve --config config.toml

check: $(VENV)/installed ## format, lint, types, imports, unit tests
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/pytest $(addprefix --ignore=,$(WHOLE))

test: check $(FUZZ)/installed ## everything that needs no outside program
	@$(BIN)/pytest $(WHOLE)

soak: $(VENV)/installed $(SERVERS)/installed $(FUZZ)/installed $(LINTERS)/installed $(BROWSER)/installed $(PROMETHEUS)/installed .soak/broker ## long and heavy tests
	@$(BIN)/pytest -m soak

bench: $(BENCH)/installed ## figures beside those of other libraries, as Markdown
	@for script in $$(grep -l '^if __name__' tests/benchmarks/*.py); do \
	  printf '\n## %s\n\n' $$(basename $$script .py); $(BENCH)/bin/python $$script || exit 1; \
	done

bench-search: $(BENCH)/installed ## how well and how fast tools are found, beside others, as Markdown
	@for script in search_quality search_speed; do \
	  printf '\n## %s\n\n' $$script; $(BENCH)/bin/python tests/benchmarks/$$script.py || exit 1; \
	done

docs: $(VENV)/installed ## write the generated pages anew
	@$(BIN)/python -m tests.spec.contract_page
	@$(BIN)/python -m tests.spec.errors_page
	@$(BIN)/python -m session_runtime.config.document > $(VENV)/page && mv $(VENV)/page docs/configuration.md

lock: $(VENV)/locked ## write requirements-dev.lock for a changed pyproject.toml
	@$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")' \
	  | $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-annotate \
	    --custom-compile-command 'make lock' --group dev pyproject.toml - -o $(LOCK) >/dev/null
	@! grep -n '://' $(LOCK)

clean: ## remove environments, caches and build results
	@rm -rf $(VENV) $(BENCH) .soak build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find runtime handlers tests -name __pycache__ -prune -exec rm -rf {} +

$(VENV)/locked: $(LOCK)
	@$(PY) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PY=python3.11")'
	@echo "setting up $(VENV) ..."
	@$(PY) -m venv --clear $(VENV)
	@$(BIN)/python $(PIP_INSTALL) --require-hashes -r $(LOCK)
	@touch $@

$(VENV)/installed: $(VENV)/locked pyproject.toml
	@$(BIN)/python $(PIP_INSTALL) --no-index --no-build-isolation --no-deps -e .
	@touch $@

# Servers of tools, and clients, that others have published, apart from everything else.
$(SERVERS)/installed: $(PUBLISHED)/requirements.txt $(PUBLISHED)/package.json
	@echo "setting up $(SERVERS) ..."
	@$(PY) -m venv --clear $(SERVERS)
	@$(SERVERS)/bin/python $(PIP_INSTALL) -r $(PUBLISHED)/requirements.txt
	@cp $(PUBLISHED)/package.json $(SERVERS)/
	@NODE_EXTRA_CA_CERTS=$${NODE_EXTRA_CA_CERTS:-$${SSL_CERT_FILE:-}} npm install --prefix $(SERVERS) \
	  --no-package-lock --no-audit --no-fund --silent --fetch-retries 1 --fetch-timeout 30000 \
	  || echo "the JavaScript server and client cannot be installed here: their tests are skipped"
	@touch $@

# What makes requests up from the description of the routes; without it, its tests are skipped.
$(FUZZ)/installed: $(FUZZ_TOOLS)
	@echo "setting up $(FUZZ) ..."
	@$(PY) -m venv --clear $(FUZZ)
	@$(FUZZ)/bin/python $(PIP_INSTALL) -r $(FUZZ_TOOLS) \
	  || echo "Schemathesis cannot be installed here: its tests are skipped"
	@touch $@

# Linters of the files of docs/deploy, apart from everything else: they are large.
$(LINTERS)/installed: $(LINTED)
	@echo "setting up $(LINTERS) ..."
	@$(PY) -m venv --clear $(LINTERS)
	@$(LINTERS)/bin/python $(PIP_INSTALL) -r $(LINTED)
	@touch $@

# A browser, and what looks for obstacles in pages; without them, the tests of the console are skipped.
$(BROWSER)/installed: $(BROWSER_TOOLS)
	@mkdir -p $(BROWSER)
	@cp $(BROWSER_TOOLS) $(BROWSER)/
	@command -v chromium >/dev/null || (apt-get update -qq \
	  && apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core) >/dev/null 2>&1 \
	  || echo "Chromium cannot be installed here: the tests of the console are skipped"
	@NODE_EXTRA_CA_CERTS=$${NODE_EXTRA_CA_CERTS:-$${SSL_CERT_FILE:-}} npm install --prefix $(BROWSER) \
	  --no-package-lock --no-audit --no-fund --silent --fetch-retries 1 --fetch-timeout 30000 \
	  || echo "axe-core cannot be installed here: the tests of the console are skipped"
	@touch $@

# What reads alerts and queries as Prometheus does: the program alone, unpacked and not installed.
$(PROMETHEUS)/installed:
	@mkdir -p $(PROMETHEUS)
	@command -v promtool >/dev/null || (apt-get update -qq && cd $(PROMETHEUS) \
	  && apt-get download -qq prometheus && dpkg-deb -x prometheus_*.deb . && rm prometheus_*.deb) >/dev/null 2>&1 \
	  || echo "promtool cannot be had here: the tests of alerts and queries are skipped"
	@touch $@

# The MQTT broker of the tests; it is started by them, on a port of their own.
.soak/broker:
	@mkdir -p .soak
	@PATH="$$PATH:/usr/sbin" command -v mosquitto >/dev/null \
	  || (apt-get update -qq && apt-get install -y -qq --no-install-recommends mosquitto) >/dev/null 2>&1 \
	  || echo "mosquitto cannot be installed here: tests that need a broker are skipped"
	@touch $@

$(BENCH)/installed: $(BENCH_PEERS) pyproject.toml
	@echo "setting up $(BENCH) ..."
	@$(PY) -m venv --clear $(BENCH)
	@$(BENCH)/bin/python $(PIP_INSTALL) -r $(BENCH_PEERS) -e '.[mcp]'
	@touch $@
