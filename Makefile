# SPDX-License-Identifier: Apache-2.0
# Everything a developer does here.  `make` alone lists it.
PYTHON ?= python3
VENV ?= .venv
TIRX_VENV ?= .venv-tirx
CUTEDSL_VENV ?= .venv-cutedsl
DOCS_VENV ?= .venv-docs
BIN := $(VENV)/bin
PIP := -m pip --disable-pip-version-check -q install

.DEFAULT_GOAL := help
.PHONY: help demo test check lint format type test-gpu test-tilelang test-matrix fuzz test-parsers fixtures bench bench-gpu wheel-check docs clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk 'BEGIN {FS = ":.*## "} {printf "  %-14s %s\n", $$1, $$2}'

# One stamp per set of requirements: the demo needs far less than the tests.
$(VENV)/.demo: requirements/demo.txt pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP) -r requirements/demo.txt -e .
	touch $@

$(VENV)/.test: requirements/test.txt requirements/demo.txt $(VENV)/.demo
	$(BIN)/python $(PIP) -r requirements/test.txt
	touch $@

$(TIRX_VENV)/.ready: requirements/tirx.txt pyproject.toml
	test -x $(TIRX_VENV)/bin/python || $(PYTHON) -m venv $(TIRX_VENV)
	$(TIRX_VENV)/bin/python $(PIP) -r requirements/tirx.txt -e .
	touch $@

$(CUTEDSL_VENV)/.ready: requirements/cutedsl.txt
	test -x $(CUTEDSL_VENV)/bin/python || $(PYTHON) -m venv $(CUTEDSL_VENV)
	$(CUTEDSL_VENV)/bin/python $(PIP) -r requirements/cutedsl.txt
	touch $@

$(DOCS_VENV)/.ready: requirements/docs.txt pyproject.toml
	test -x $(DOCS_VENV)/bin/python || $(PYTHON) -m venv $(DOCS_VENV)
	$(DOCS_VENV)/bin/python $(PIP) -r requirements/docs.txt -e .
	touch $@

demo: $(VENV)/.demo ## rewrite a real kernel, compile it, read it back; with a GPU, capture it
	$(BIN)/python examples/demo.py

test: $(VENV)/.test $(TIRX_VENV)/.ready $(CUTEDSL_VENV)/.ready $(DOCS_VENV)/.ready lint type ## set everything up and run every test that needs no GPU, and those that do where there is one
	$(BIN)/python tests/fetch_ptxas.py
	$(BIN)/python -m pytest -n auto --dist loadfile
	$(TIRX_VENV)/bin/python -m pytest tests/tirx_frontend
	$(MAKE) wheel-check

check: test ## the same; what CI runs

lint: $(VENV)/.test ## check style, change nothing
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(VENV)/.test ## rewrite files to the style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

type: $(VENV)/.test ## check types
	$(BIN)/mypy

test-gpu: $(VENV)/.test ## run the tests that need a GPU
	$(BIN)/python -m pytest -m gpu tests/gpu

test-tilelang: $(VENV)/.test ## run the tests of the TileLang frontend alone
	$(BIN)/python -m pytest tests/tilelang_frontend

test-matrix: $(VENV)/.test ## assemble every form of event with every ptxas from 12.4 to 13.5 (downloads them), and write the table
	$(BIN)/python tests/fetch_ptxas.py --all
	$(BIN)/python tests/matrix/run.py

fuzz: $(VENV)/.test ## read 10,000 damaged inputs with every reader; inputs that find a fault are kept as tests
	$(BIN)/python tests/fuzzing/run.py

test-parsers: $(VENV)/.test ## compare with the official parsers of older runtimes (downloads them)
	$(BIN)/python tests/fetch_parsers.py
	$(BIN)/python -m pytest -m parsers

fixtures: $(VENV)/.test $(TIRX_VENV)/.ready ## remake the generated fixtures
	$(BIN)/python fixtures/tilelang/make.py
	$(TIRX_VENV)/bin/python fixtures/tirx/make.py

bench: $(VENV)/.test $(TIRX_VENV)/.ready ## run the benchmarks that need no GPU
	$(BIN)/python benchmarks/rewrite_speed/run.py
	$(BIN)/python benchmarks/verify_speed/run.py
	$(BIN)/python benchmarks/trace_speed/run.py
	$(BIN)/python benchmarks/page_speed/run.py
	$(BIN)/python benchmarks/nvcc_overhead/run.py
	$(BIN)/python benchmarks/event_cost/resources.py

bench-gpu: $(VENV)/.test ## run the benchmarks that need a GPU
	$(BIN)/python benchmarks/capture_cost/run.py

# Without a network once the environment stands: a link or an anchor that leads nowhere ends it.
# Not --quiet: mkdocs does not count the warnings then that it does not print.
docs: $(DOCS_VENV)/.ready ## build the documentation as a site, into build/site
	NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/mkdocs build

wheel-check: ## build the wheel, install it in an empty environment elsewhere, rewrite a fixture with it
	$(PYTHON) tests/wheel_check.py

clean: ## remove what is made, environments included
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis $(VENV) $(TIRX_VENV) .venv-*
