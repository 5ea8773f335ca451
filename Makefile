# GhostGPU: `make demo` shows it, `make test` checks every part of it, `make bench` measures it.
#
# Variables:
#   GHOSTGPU_VENV          the environment that `make demo` uses, made if missing (.venv)
#   GHOSTGPU_TEST_CACHE    where test environments and tools are kept between runs
#                          ($XDG_CACHE_HOME/ghostgpu-test or ~/.cache/ghostgpu-test)
#   GHOSTGPU_TEST_BROWSER  a Chromium to test the report page with, instead of one that is found
#   GHOSTGPU_TEST_PYTHON   pythons to test with instead, separated by colons, the reference first
#   GHOSTGPU_TEST_SCOPE    `short` runs what stands for the rest, as `make test` does; otherwise `all`
#   CI                     if set, what would be skipped fails
#   PYTHON                 what makes environments (python3)

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
# The steps of a test run share the cores, a build folder and a terminal, so they run one after the other.
.NOTPARALLEL:
.DEFAULT_GOAL := help

GHOSTGPU_VENV ?= .venv
GHOSTGPU_TEST_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/ghostgpu-test
export PYTHON GHOSTGPU_TEST_CACHE
# Test environments are installed without bytecode: the first import writes it. Where this variable, which
# container images like to set, forbids that, every single rehearsal compiles torch anew, for seconds.
unexport PYTHONDONTWRITEBYTECODE

# What the Python tests start. A build folder elsewhere (CARGO_TARGET_DIR) has no agent around it.
export GHOSTGPU_COMMAND := $(abspath $(or $(CARGO_TARGET_DIR),target))/release/ghostgpu
export GHOSTGPU_LIBRARY := $(abspath $(or $(CARGO_TARGET_DIR),target))/release/libghostgpu.so
export GHOSTGPU_EXPORT := $(abspath $(or $(CARGO_TARGET_DIR),target))/release/examples/export
export GHOSTGPU_MADE_UP := $(abspath $(or $(CARGO_TARGET_DIR),target))/release/examples/made_up
export GHOSTGPU_PAGE := $(abspath $(or $(CARGO_TARGET_DIR),target))/release/examples/page
export GHOSTGPU_AGENT_DIR := $(CURDIR)/python/ghostgpu/agent

# Programs in Python whose names have no ending.
python_scripts := scripts/check-dependencies scripts/report-picture scripts/run-phases

# In a recipe: every python to test with, and the first of them; or the first of them only.
pythons = GHOSTGPU_TEST_PYTHON=$$(scripts/test-pythons); export GHOSTGPU_TEST_PYTHON; \
	reference=$${GHOSTGPU_TEST_PYTHON%%:*}
first_python = GHOSTGPU_TEST_PYTHON=$$(scripts/test-pythons reference); export GHOSTGPU_TEST_PYTHON; \
	reference=$${GHOSTGPU_TEST_PYTHON%%:*}

.PHONY: help
help: ## Show what there is to make
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

.PHONY: build
build: ## Build the command, the stand-in library and the program that asks cuDNN
	cargo build --release --locked

.PHONY: demo
demo: build ## Rehearse a training that does not fit on an 11 GiB card, and find what would
	@python=$$(scripts/environment "$(GHOSTGPU_VENV)" tests/environments/demo.txt); \
	scripts/demo "$$GHOSTGPU_COMMAND" "$$python"

.PHONY: test
test: ## Check every part: all static checks and unit tests, and what stands for the long suites
	@$(or $(PYTHON),python3) scripts/run-phases short

.PHONY: test-all
test-all: ## Check everything: every recorded case, every torch in full, the allocator at length
	@$(or $(PYTHON),python3) scripts/run-phases all

.PHONY: lint-rust
lint-rust: ## rustfmt and clippy
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo fmt --manifest-path fuzz/Cargo.toml --check
	cargo metadata --manifest-path fuzz/Cargo.toml --locked --format-version 1 > target/fuzz-metadata.json

.PHONY: lint-dependencies
lint-dependencies: ## Licences, sources and duplicates of the crates we use, by what they declare
	$(first_python); "$$reference" scripts/check-dependencies

.PHONY: lint-dependencies-in-full
lint-dependencies-in-full: ## The same by `cargo deny`, which reads the licences' texts too
	scripts/cargo-deny "$(GHOSTGPU_TEST_CACHE)/tools"

.PHONY: build-tests
build-tests: ## Build the tests of the crates
	if cargo nextest --version >/dev/null 2>&1; then \
		cargo nextest run --workspace --locked --tests --no-run; \
	else \
		cargo test --workspace --locked --no-run; \
	fi

.PHONY: test-rust
test-rust: ## Tests of the crates, against the symbols that every tested torch imports
	$(pythons); unset GHOSTGPU_LIBRARY GHOSTGPU_AGENT_DIR; \
	if cargo nextest --version >/dev/null 2>&1; then \
		cargo nextest run --workspace --locked --tests --no-fail-fast; \
		cargo test --workspace --locked --doc --quiet; \
	else \
		cargo test --workspace --locked --quiet --no-fail-fast; \
	fi

.PHONY: lint-python
lint-python: ## ruff and mypy
	$(first_python); \
	"$$reference" -m ruff check . $(python_scripts); \
	"$$reference" -m ruff format --check . $(python_scripts); \
	"$$reference" -m mypy python/ghostgpu python/tests; \
	"$$reference" -m mypy conftest.py; \
	"$$reference" -m mypy --scripts-are-modules scripts/check-dependencies; \
	"$$reference" -m mypy --scripts-are-modules scripts/run-phases; \
	for part in tests/rules tests/e2e tests/exports tests/allocator tests/package tests/page tests/executors tests/lint tests/docs tests/pytorch; do \
		"$$reference" -m mypy --untyped-calls-exclude torch "$$part"; \
	done; \
	"$$reference" -m mypy --untyped-calls-exclude torch examples bench; \
	"$$reference" -m mypy --untyped-calls-exclude torch attacks fuzz crates/pickle/tests crates/snapshot/tests; \
	for part in ground_truth/harness ground_truth/cudnn ground_truth/tables ground_truth/allocator ground_truth/wild \
		ground_truth/verdicts/smallest_limits.py ground_truth/verdicts/limited_histories.py \
		ground_truth/verdicts/own_processes.py \
		ground_truth/test_*.py; do \
		"$$reference" -m mypy --config-file ground_truth/mypy.ini "$$part"; \
	done

.PHONY: test-rules
test-rules: ## Tests of the test run itself
	$(first_python); "$$reference" -m pytest -n 2 tests/rules

.PHONY: test-python
test-python: build ## Tests of the agent
	$(first_python); "$$reference" -m pytest -n 2 --dist worksteal python/tests

.PHONY: test-e2e
test-e2e: build ## Whole rehearsals through the command, with every tested torch
	$(pythons); "$$reference" -m pytest -n 3 --dist worksteal tests/e2e

.PHONY: test-each-torch
test-each-torch: build ## The smoke set with every torch between the tested ones, one installed at a time
	$(first_python); scripts/each-torch "$$reference"

.PHONY: test-pytorch
test-pytorch: build ## PyTorch's own tests of CUDA on virtual cards, held against what is known of each
	$(first_python); \
	GHOSTGPU_PYTORCH_TESTS=$$(scripts/pytorch-tests "$(GHOSTGPU_TEST_CACHE)"); export GHOSTGPU_PYTORCH_TESTS; \
	GHOSTGPU_PYTORCH_PACKAGES="$(GHOSTGPU_TEST_CACHE)/pytorch-packages"; export GHOSTGPU_PYTORCH_PACKAGES; \
	"$$reference" -m pip install --quiet --disable-pip-version-check --no-deps --upgrade \
		--target "$$GHOSTGPU_PYTORCH_PACKAGES" -r tests/environments/pytorch.txt; \
	"$$reference" -m pytest -n 2 tests/pytorch

.PHONY: test-exports
test-exports: ## Exports of recorded snapshots, opened by readers that are not ours
	cargo build --release --locked -p ghostgpu-report --example export --example made_up
	$(first_python); "$$reference" -m pytest -n 2 tests/exports

.PHONY: test-lint
test-lint: build ## What `lint` writes for code hosts, opened by readers that are not ours
	python=$$(scripts/environment "$(GHOSTGPU_TEST_CACHE)/lint" tests/environments/lint.txt); \
	GHOSTGPU_SARIF_SCHEMA=$$(scripts/sarif-schema "$(GHOSTGPU_TEST_CACHE)/tools"); export GHOSTGPU_SARIF_SCHEMA; \
	"$$python" -m pytest tests/lint

.PHONY: test-executors
test-executors: ## The engines that run sweeps, each with a cluster on this machine
	python=$$(scripts/environment "$(GHOSTGPU_TEST_CACHE)/executors" tests/environments/executors.txt); \
	"$$python" -m pytest tests/executors

.PHONY: test-page
test-page: ## The report page in a real Chromium
	cargo build --release --locked -p ghostgpu-report --example page
	python=$$(scripts/environment "$(GHOSTGPU_TEST_CACHE)/page" tests/environments/page.txt); \
	GHOSTGPU_TEST_BROWSER=$$(scripts/browser "$$python"); export GHOSTGPU_TEST_BROWSER; \
	"$$python" -m pytest -n 2 tests/page

.PHONY: prove-allocator
prove-allocator: build ## Drive PyTorch's own allocator at length, with every option, and compare the replica
	$(pythons); GHOSTGPU_ALLOCATOR_OPERATIONS=$${GHOSTGPU_ALLOCATOR_OPERATIONS:-20000} \
	"$$reference" -m pytest -n 2 tests/e2e/test_allocator_replica.py

.PHONY: test-ground-truth
test-ground-truth: build ## Replay what was measured on a real card, and compare to the byte
	$(first_python); "$$reference" -m pytest -n 2 --dist loadfile ground_truth

.PHONY: wild
wild: build ## Run public scripts on the virtual card and compare with a real one: SOURCES=clones at OWNER/NAME
	@test -n "$(SOURCES)" || { echo "make wild needs SOURCES, a folder of clones" >&2; exit 2; }
	$(first_python); \
	"$$reference" ground_truth/wild prepare --sources "$(SOURCES)" --out target/wild/bundle; \
	"$$reference" ground_truth/wild measure --bundle target/wild/bundle --out target/wild/virtual.json \
		--virtual h200 --jobs 2 --limit 600; \
	"$$reference" ground_truth/wild compare --at-least 0.9 ground_truth/wild/h200.json target/wild/virtual.json

.PHONY: test-package
test-package: ## `pip install .` into an empty environment
	$(first_python); "$$reference" -m pytest tests/package

.PHONY: bench
bench: build ## Measure what a rehearsal costs, beside what it cannot avoid
	@$(first_python); "$$reference" bench/run.py

.PHONY: bench-ranks
bench-ranks: build ## Measure a rehearsal of eight ranks, beside one of one rank
	@$(first_python); "$$reference" bench/ranks.py

.PHONY: bench-thousand-ranks
bench-thousand-ranks: build ## Measure a rehearsal of Llama 3 8B on 1,024 cards
	@$(first_python); "$$reference" bench/thousand_ranks.py

.PHONY: bench-verdict
bench-verdict: build ## Measure a verdict on a whole training, beside three plain steps
	@$(first_python); "$$reference" bench/verdict.py

.PHONY: bench-snapshots
bench-snapshots: build ## Measure opening a snapshot of 1 GB beside Python's own unpickler, replays and searches
	cargo build --release --locked -p ghostgpu-snapshot --examples
	@$(first_python); "$$reference" bench/snapshots.py
	@cargo run --release --locked --quiet -p ghostgpu-allocator --example speed

.PHONY: bench-explain
bench-explain: build ## Measure explaining logs of 100 MB
	@$(first_python); "$$reference" bench/explain.py

.PHONY: bench-page
bench-page: ## Measure the report page of a million events: writing it, opening it, zooming in it
	cargo build --release --locked -p ghostgpu-report --example page
	@python=$$(scripts/environment "$(GHOSTGPU_TEST_CACHE)/page" tests/environments/page.txt); \
	GHOSTGPU_TEST_BROWSER=$$(scripts/browser "$$python"); export GHOSTGPU_TEST_BROWSER; \
	"$$python" bench/page.py

.PHONY: picture
picture: build ## Draw the picture of the report page that the README shows
	@$(first_python); \
	page=$$(scripts/environment "$(GHOSTGPU_TEST_CACHE)/page" tests/environments/page.txt); \
	GHOSTGPU_TEST_BROWSER=$$(scripts/browser "$$page"); export GHOSTGPU_TEST_BROWSER; \
	"$$page" scripts/report-picture --command "$$GHOSTGPU_COMMAND" --python "$$reference"

.PHONY: bench-lint
bench-lint: build ## Measure linting 1,000 scripts, beside ruff and TorchFix
	@python=$$(scripts/environment "$(GHOSTGPU_TEST_CACHE)/lint" tests/environments/lint.txt); \
	"$$python" bench/lint.py

.PHONY: lint-rules-page
lint-rules-page: ## Write docs/lint-rules.md anew, from the rules
	cargo run --quiet --locked -p ghostgpu-lint --example rules_page > docs/lint-rules.md

.PHONY: clean
clean: ## Remove what was built here; environments and tools in the test cache stay
	cargo clean
	rm -rf build dist docs/book prebuilt python/*.egg-info python/ghostgpu/_native .mypy_cache .ruff_cache .pytest_cache

.PHONY: test-docs
test-docs: build ## Links, commands and sessions of README and docs, and the translation of the README
	$(first_python); "$$reference" -m pytest -n 2 tests/docs

.PHONY: renew-docs
renew-docs: build ## Write what commands print now into README and docs; then read the difference
	$(first_python); GHOSTGPU_RENEW_DOCS=1 "$$reference" -m pytest tests/docs/test_outputs.py

.PHONY: docs
docs: ## Build the book of docs/ into docs/book
	scripts/mdbook "$(GHOSTGPU_TEST_CACHE)/tools"

.PHONY: wheel
wheel: ## Build a manylinux wheel and a source distribution into dist/, and check that they install without cargo
	$(pythons); \
	python=$$(scripts/environment "$(GHOSTGPU_TEST_CACHE)/wheel" tests/environments/wheel.txt); \
	scripts/wheel "$$python" dist; \
	GHOSTGPU_DIST=$(CURDIR)/dist "$$python" -m pytest tests/package/wheel_checks.py
