# `make demo` and `make test` need Python 3.11 or newer and make, nothing else; the first call of either installs into .venv.
# Everything these targets say goes to standard error: `make demo > person.json` writes the answer and nothing else.

PYTHON ?= $(shell scripts/find_python.sh)
VENV := .venv
# Random grammars for `make conformance`.
CASES ?= 2000
BIN := $(VENV)/bin
INSTALLED := $(VENV)/installed
TEST_INSTALLED := $(VENV)/test-installed
BENCH_INSTALLED := $(VENV)/bench-installed

.PHONY: help venv demo test lint format conformance bench clean
.DELETE_ON_ERROR:

help:
	@echo "make demo         extract a person from a sentence with the embedded model, under examples/person.schema.json" >&2
	@echo "make test         run the tests" >&2
	@echo "make lint         ruff and mypy; 'make format' lays the code out as 'make lint' wants it" >&2
	@echo "make conformance  whole test collections against the constraint compilers" >&2
	@echo "make bench        what constraints cost, with a model and beside other engines" >&2
	@echo "make venv         only install, into $(VENV);  make clean removes it" >&2

venv: $(INSTALLED)

demo: $(INSTALLED)
	@$(BIN)/infernix generate --messages examples/person.messages.json --json-schema-file examples/person.schema.json --greedy

test: $(TEST_INSTALLED)
	@$(BIN)/python -m pytest

lint: $(TEST_INSTALLED)
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy

format: $(TEST_INSTALLED)
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

conformance: $(TEST_INSTALLED)
	@INFERNIX_CONFORMANCE_CASES=$(CASES) $(BIN)/python -m pytest tests/conformance tests/matching/test_against_recognizer.py
	@$(BIN)/python -m tests.conformance.maskbench
	@$(BIN)/python -m tests.conformance.suite
	@$(BIN)/python -m tests.conformance.mutation
	@$(BIN)/python -m tests.conformance.fuzz
	@$(BIN)/python -m tests.conformance.walks

bench: $(BENCH_INSTALLED)
	@$(BIN)/python -m benchmarks.embedded_model
	@$(BIN)/python -m benchmarks.masks --quick

clean:
	@rm -rf $(VENV)

$(INSTALLED): pyproject.toml scripts/install.sh scripts/install_torch.sh
	@scripts/install.sh "$(PYTHON)" $(VENV) >&2
	@touch $@

$(TEST_INSTALLED): $(INSTALLED)
	@echo "Installing what the tests need ..." >&2
	@$(BIN)/python -m pip install --quiet --editable '.[test]' >&2
	@touch $@

$(BENCH_INSTALLED): $(TEST_INSTALLED)
	@echo "Installing what the benchmarks need: the engines to compare with, and a large vocabulary ..." >&2
	@$(BIN)/python -m pip install --quiet --editable '.[test,bench]' >&2
	@touch $@
