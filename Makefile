# Two commands do all the set-up: `make demo` and `make test`. They need Python 3.11 or newer: `make PYTHON=…`
# names one; otherwise it is `python3`, or another one of this machine that is clearly faster.
PYTHON ?=
VENV ?= .venv
FUZZ_SEED ?= 0
BIN := $(VENV)/bin
export UV_PYTHON_DOWNLOADS := never
# Containers often forbid compiled files; the tests start hundreds of processes, and each would
# compile everything that it imports.
export PYTHONDONTWRITEBYTECODE :=
.DEFAULT_GOAL := help

help: ## List the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

install: $(VENV)/.installed ## Make the virtual environment with all dependencies

$(VENV)/.installed: pyproject.toml uv.lock
	@test -x $(BIN)/python || $(or $(PYTHON),"$$(python3 bench/interpreter.py)") -m venv $(VENV)
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(BIN)/python -m ensurepip >/dev/null
	@test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet "uv>=0.8,<1"
	@VIRTUAL_ENV=$(abspath $(VENV)) UV_PROJECT_ENVIRONMENT=$(abspath $(VENV)) \
		$(BIN)/uv sync --frozen --quiet --inexact --extra cluster --python $(BIN)/python
	@touch $@

demo: install ## Run the main job from nothing to verified replays
	@$(BIN)/redra demo

# The third and fourth process work while others wait; tests/order_of_files.py puts the files in order.
test: install ## Run the whole test suite
	@$(BIN)/python -m pytest -n 4 --dist loadfile --no-loadscope-reorder

test-fast: install ## Run the tests that need no database
	@$(BIN)/python -m pytest -q -m "not database and not slow"

check: static ## Format, lint, types, import contracts, tidy tests
	@$(BIN)/python -m pytest -q -p no:cacheprovider tests/architecture

static: install ## The part of check that runs no tests
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@output=$$($(BIN)/lint-imports --no-cache --config pyproject.toml) || { echo "$$output"; exit 1; }; \
		echo "$$output" | tail -n 4
	@$(BIN)/mypy --no-error-summary

format: install ## Format the code
	@$(BIN)/ruff format --quiet .
	@$(BIN)/ruff check --quiet --fix .

fuzz: install ## Run each fuzzer with FUZZ_SEED
	@$(BIN)/python -m tests.fuzz bodies --cases 12000 --seed $(FUZZ_SEED)
	@$(BIN)/python -m tests.fuzz api --cases 9000 --seed $(FUZZ_SEED)
	@$(BIN)/python -m tests.fuzz requests --cases 12000 --seed $(FUZZ_SEED)
	@$(BIN)/python -m tests.fuzz live --cases 1500 --seed $(FUZZ_SEED)
	@$(BIN)/python -m tests.fuzz recordings --cases 2000 --seed $(FUZZ_SEED)
	@$(BIN)/python -m tests.fuzz worlds --cases 20000 --seed $(FUZZ_SEED)
	@$(BIN)/python -m tests.fuzz minimals --cases 500 --seed $(FUZZ_SEED)
	@$(BIN)/python -m tests.fuzz minimal_recordings --cases 60 --seed $(FUZZ_SEED)
	@$(BIN)/python -m tests.fuzz quotas --cases 3000 --seed $(FUZZ_SEED)
	@$(BIN)/python -m tests.fuzz bindings --cases 1000 --seed $(FUZZ_SEED)
	@$(BIN)/python -m tests.fuzz waiting --cases 500 --seed $(FUZZ_SEED)
	@$(BIN)/python -m tests.fuzz truth --cases 5000 --seed $(FUZZ_SEED)
	@$(BIN)/python -m tests.fuzz forks --cases 1000 --seed $(FUZZ_SEED)
	@$(BIN)/python -m tests.fuzz blasts --cases 2000 --seed $(FUZZ_SEED)
	@$(BIN)/python -m tests.fuzz states --cases 1000 --seed $(FUZZ_SEED)
	@$(BIN)/python -m tests.fuzz fits --cases 3000 --seed $(FUZZ_SEED)

# The folders with tests that draw their cases, or take a part of them with each run.
DRAWN := acceptance adversary api architecture/test_light_commands.py \
	architecture/test_struct_replacement.py conformance contracts crash fuzz \
	plane properties recording scenarios simulation truth unit/adapters/test_second_opinion.py unit/analysis \
	unit/cel/test_bounds.py unit/cel/test_oracles.py unit/controllers/test_eviction_inventory.py \
	unit/controllers/test_quotas.py unit/controllers/test_scheduling.py \
	unit/controllers/test_scheduling_together.py \
	unit/history/test_long_lines.py unit/history/test_odd_sources.py \
	unit/history/test_pattern_work.py unit/history/test_runtime_lines.py \
	unit/history/test_tool_forms.py \
	unit/objects/test_recorded_writes.py unit/objects/test_stored_oddities.py \
	unit/review/test_policy_oddities.py \
	unit/service/pacing unit/service/test_endless_replacements.py unit/service/test_garbage_collection.py \
	unit/service/test_past_devices.py unit/service/test_past_states.py \
	unit/service/test_recorded_refusals.py unit/service/test_replaying.py \
	unit/service/test_shared_beginnings.py unit/test_mutants.py unit/test_shared_data.py \
	unit/workloads/test_corpus.py web

draws: install ## Run the drawn tests with DRAWS times as many cases, and whole recordings
	@REDRA_DRAWS=$${DRAWS:-10} $(BIN)/python -m pytest -n 2 --dist loadfile --timeout 0 $(addprefix tests/,$(DRAWN))

crash: install ## Kill workers, servers and PostgreSQL 200 times in running stories
	@$(BIN)/python -m tests.crash --kills 200 --seed $${SEED:-1}

simulate: install ## Simulate 2,000 virtual hours of seeded worlds
	@$(BIN)/python -m tests.simulation --hours $${HOURS:-2000} --seed $${SEED:-1}

mutants: install ## Mutate the code of an AREA (eviction, claims, writer, …), and count the mutants that its tests miss
	@$(BIN)/python -m tests.mutants $${AREA:-eviction} --mutants $${MUTANTS:-100} --seed $${SEED:-1}

conformance: install ## Compare with the vectors of the reference, a table by gate and theme
	@$(BIN)/python -m tests.conformance.report
	@$(BIN)/python -m pytest -q -n 2 tests/conformance -k "not histories and not decide"

bench: install ## Measure, as ratios and rates, with the machine noted
	@$(BIN)/python -m bench

docs: install ## Make the generated reference pages
	@$(BIN)/python -m docs.generate

site: install ## Build the pages of docs as a site, in build/site
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "build/site/index.html"

clean: ## Remove the virtual environment and every cache
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .cache .redra build dist

.PHONY: help install demo test test-fast check static format fuzz conformance bench docs site clean crash simulate mutants
