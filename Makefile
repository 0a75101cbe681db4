# Everything here works on a fresh machine with Python 3.11+: the first target makes its own .venv.
PYTHON ?= python3
RUN := .venv/bin/python
ARGS ?=
# Images that set it make every process compile all of JAX's modules anew, for seconds.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help goodhart kubku epistemic cards eval-kg metrics report near_miss all test test-processes test-full lint docs bench bench-gpu clean

help: ## what there is to make; ARGS="..." goes to the command behind it
	@awk -F ':.*## ' '/^[a-z][a-z_ -]*:.*## / { if (length($$1) > 11) { print $$1; $$1 = "" } printf "%-12s%s\n", $$1, $$2 }' Makefile

goodhart: .venv/made ## agents on the truth and on a proxy, beside each other
	$(RUN) -m experiments.goodhart $(ARGS)

kubku: .venv/made ## good and bad knowledge that one sample leaves
	$(RUN) -m experiments.kubku $(ARGS)

epistemic: .venv/made ## does a system know what it doesn't know?
	$(RUN) -m experiments.epistemic $(ARGS)

cards eval-kg metrics report near_miss: .venv/made ## the stages of the epistemic study, in one folder
	$(RUN) -m experiments.epistemic stage=$(STAGE_$@) hydra.run.dir=outputs/epistemic/stages $(ARGS)
STAGE_cards = cards
STAGE_eval-kg = eval system=kg_oracle
STAGE_metrics = metrics
STAGE_report = report
STAGE_near_miss = near_miss

all: epistemic ## the epistemic study, start to page

PYTEST = $(RUN) -m pytest -n 2 --dist loadfile --no-loadscope-reorder

test: .venv/made ## what is tested in minutes
	$(PYTEST) -m "not full and not processes" $(ARGS)

test-processes: .venv/made ## real kills, faults, several processes, a wheel in use; CI runs both
	$(PYTEST) -m "processes and not full" $(ARGS)

test-full: .venv/made ## all of it, and the large versions
	XLA_FLAGS= $(PYTEST) $(ARGS)

lint: .venv/made ## formatting, faults and types
	$(RUN) -m ruff format --check .
	$(RUN) -m ruff check .
	$(RUN) -m mypy

docs: .venv/made ## the site, into docs/_build; a broken link or reference fails
	$(RUN) -m docs.render
	$(RUN) -m sphinx -W --keep-going -n -q -b html docs docs/_build

bench: .venv/made ## timings, into benchmarks/results/
	$(RUN) -m benchmarks $(ARGS)

bench-gpu: .venv/made ## what an accelerator does, size by size, into benchmarks/results/gpu/
	$(RUN) -m benchmarks gpu $(ARGS)

.venv/made: requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv --clear .venv
	$(RUN) -m pip install --quiet --disable-pip-version-check uv
	$(RUN) -m uv pip install --quiet --python $(RUN) -r requirements.lock
	$(RUN) -m uv pip install --quiet --python $(RUN) --no-deps -e .
	touch .venv/made

clean: ## what make and the tools have made
	rm -rf .venv build *.egg-info .pytest_cache .mypy_cache .ruff_cache
