# Everything runs in .venv, which is made on first use. PYTHON=... chooses another interpreter.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

NEW_ENOUGH := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for name in python3.11 python3 python3.12 python3.13 python3.14; do \
	"$$name" -c '$(NEW_ENOUGH)' 2>/dev/null && echo "$$name" && break; done)
BIN := .venv/bin
MINUTES ?= 480
SIDE_BY_SIDE := -n auto --maxprocesses 4 --dist worksteal -m 'not undisturbed'
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt

.PHONY: help demo test check coverage bench mutation prove migration clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: .venv/installed ## Serve the console over real work: http://127.0.0.1:8321
	$(BIN)/latchwork demo --port 8321

test: check ## Check, then run every test on SQLite, PostgreSQL and Chromium
	$(BIN)/python -m pytest $(SIDE_BY_SIDE)
	LATCHWORK_CHROMIUM="$$($(BIN)/python -m tests.chromium)" $(BIN)/python -m pytest -m undisturbed

check: .venv/testing ## Lint, format, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

coverage: .venv/testing ## Run the tests but those of the browser again: are all branches of the engine met?
	rm -f .coverage .coverage.*
	$(BIN)/coverage run -m pytest $(SIDE_BY_SIDE)
	$(BIN)/coverage run -m pytest tests/worker
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --skip-covered
	$(BIN)/coverage report --include='*/latchwork/decisions/*,*/latchwork/store/*,*/latchwork/worker/*' \
		--format=total --fail-under=95

bench: .venv/testing ## Measure: see benchmarks/README.md
	$(BIN)/python -m benchmarks

mutation: .venv/testing ## Change the decisions in every small way: do tests notice?
	$(PIP) --editable '.[test,speed,mutation]'
	$(BIN)/python -m tests.mutation

prove: .venv/testing ## Work towards docs/reliability.md: make prove MINUTES=30
	$(BIN)/python -m tests.proof --minutes $(MINUTES)
	$(MAKE) --no-print-directory docs

docs: .venv/testing ## Write the pages of docs/ that are made from the code
	$(BIN)/python -m tests.packaging.generated_pages

migration: .venv/testing ## Draft the next schema version: make migration NAME=what_it_adds
	test -n "$(NAME)" || { echo 'usage: make migration NAME=what_it_adds' >&2; exit 2; }
	$(BIN)/python -m tests.store.new_version "$(NAME)"
	$(BIN)/ruff format core/latchwork/store/migrations

clean: ## Remove .venv and everything built or cached
	rm -rf .venv build dist htmlcov .coverage .coverage.* .hypothesis demo-output
	rm -rf .mypy_cache .ruff_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/bin/python:
	@test -n "$(PYTHON)" || { echo 'Latchwork needs Python 3.11 or newer with its venv module' \
		'(on Debian: apt install python3-venv); none is on the PATH.' >&2; exit 1; }
	$(PYTHON) -m venv .venv

.venv/installed: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) --editable .
	touch $@

.venv/testing: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) --editable '.[test,speed]'
	touch $@ .venv/installed
