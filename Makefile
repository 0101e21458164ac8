# All set-up is done here: each target installs what it needs into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv

.DEFAULT_GOAL := help

.PHONY: help
help:  ## Say what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

$(UV):
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade uv

# Tests run against the built wheel, as users get it, not against the source tree.
.PHONY: install
install: $(UV)
	rm -rf dist
	$(UV) build --quiet --out-dir dist
	$(UV) pip install --quiet --python $(BIN)/python --group dev
	$(UV) pip install --quiet --python $(BIN)/python --reinstall-package queue-depth "$$(ls dist/*.whl)[demo]"
	cd / && $(abspath $(BIN))/python -c 'import queue_depth; assert "site-packages" in queue_depth.__file__'

.PHONY: demo
demo: install  ## Watch real DBOS workflows being counted, on an embedded PostgreSQL; Ctrl-C removes all
	$(BIN)/queue-depth demo

.PHONY: test
test: install  ## Run every test
	$(BIN)/pytest -n 2 --dist loadgroup

.PHONY: e2e
e2e: install  ## Run the scaling tests on a real control plane with KEDA (root, Linux, Go; builds both once)
	PYTHONPATH=tests $(BIN)/python -m cluster -- $(abspath $(BIN))/pytest -n 5 --dist worksteal tests/e2e

.PHONY: lint
lint: install  ## Check style, types, import rules and generated files
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/mypy tests/e2e/conftest.py
	$(BIN)/lint-imports
	$(BIN)/python docs/generate.py --check

.PHONY: generate
generate: install  ## Write the generated references anew
	$(BIN)/python docs/generate.py

.PHONY: bench
bench: install  ## Run the benchmarks and write docs/performance.md
	PYTHONPATH=tests $(BIN)/python -m benchmarks $(NAMES)

.PHONY: bench-scaling
bench-scaling: install  ## Run every scaling policy on a real control plane and write docs/scaling.md (half an hour)
	PYTHONPATH=tests:tests/e2e $(BIN)/python -m cluster -- $(abspath $(BIN))/python -m scaling $(ARGUMENTS)

.PHONY: develop
develop: $(UV)  ## Install the source tree itself, to work on it
	$(UV) pip install --quiet --python $(BIN)/python --group dev --editable '.[demo]'

.PHONY: clean
clean:  ## Remove what was built and installed here
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
