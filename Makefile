# Everything here sets itself up: Python 3.11 or later, pip and make are all it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test check format docs bench soak clean

demo: $(VENV)/ready
	@$(BIN)/fencepost demo --input docs/samples/jobs.json

test: $(VENV)/ready-dev
	$(BIN)/python -m pytest -n auto --dist loadfile

check: $(VENV)/ready-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(VENV)/ready-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# A link that leads nowhere and a page that no other leads to are warnings, and so fail.
docs: $(VENV)/ready-docs
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --builder html docs build/site
	@echo "the documentation: build/site/index.html"

bench: $(VENV)/ready-bench
	$(BIN)/python -m tests.bench

soak: $(VENV)/ready-dev
	FENCEPOST_SOAK=1 $(BIN)/python -m pytest tests/contract/test_machine.py
	$(BIN)/python -m tests.soak sqlite
	$(BIN)/python -m tests.soak postgres

clean:
	rm -rf $(VENV) build dist *.egg-info

# Each stamp is a finished environment; a changed pyproject.toml or constraints.txt makes it anew. The build tool
# is installed first and used as it is, so that it too has the version that constraints.txt names.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/ready: pyproject.toml setup.py constraints.txt | $(VENV)/bin/python
	$(INSTALL) --upgrade setuptools
	$(INSTALL) --no-build-isolation --editable .
	@touch $@

$(VENV)/ready-dev: requirements-dev.txt $(VENV)/ready
	$(INSTALL) --no-build-isolation --editable '.[postgres,http]' --requirement requirements-dev.txt
	@touch $@

$(VENV)/ready-docs: requirements-docs.txt $(VENV)/ready-dev
	$(INSTALL) --requirement requirements-docs.txt
	@touch $@

$(VENV)/ready-bench: requirements-bench.txt $(VENV)/ready-dev
	$(INSTALL) --requirement requirements-bench.txt
	@touch $@
