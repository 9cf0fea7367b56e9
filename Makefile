# `make help` lists what there is. Nothing is needed beforehand but Python 3.11 or newer, git and make.

PYTHON ?= python3
# Options for `mesa run`, `mesa ui` and `dvc repro`: make run ARGS="--dataset locomo --data locomo10.json"
ARGS ?=
# Options for pytest: make test PYTEST="-k raw"
PYTEST ?=
# Which build of PyTorch to install: cpu, auto, cu126, ...; empty takes the index's own, or a wheel from UV_FIND_LINKS.
TORCH_BACKEND ?=

UV_VERSION := 0.13.9
DVC_VERSION := 3.67.1
BIN := .venv/bin
UV := $(BIN)/uv
INSTALLED := .venv/.installed
DVC_INSTALLED := .venv-dvc/.installed
WORKERS := mesa_pipeline/baselines/workers
# Where the packages that some baselines wrap are tried: `make workers`, 1.4 GB.
export MESA_ENVIRONMENTS ?= $(CURDIR)/.venv-workers/environments
SHOWN := dagster-graph dagster-plot-test_report dagster-checks-subset_sweep_scores mlflow-compare mlflow-history report-light baselines-light
LOCK := pip compile --universal --python-version 3.11 --no-header --no-annotate --quiet

export UV_FIND_LINKS ?= $(PIP_FIND_LINKS)
export DVC_NO_ANALYTICS := 1
# Compiled once on first import instead of at every start, whatever the surroundings say.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup run ui test test-system screenshots check format dvc dvc-setup workers dvc-push dvc-pull dvc-remote lock clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  make %-11s %s\n", $$1, $$2 }'

setup: $(INSTALLED) ## Create .venv and install everything, pinned by constraints.txt

run: $(INSTALLED) ## Run the main job from trajectories to the report (ARGS="--dataset ...")
	$(BIN)/mesa run $(ARGS)

ui: $(INSTALLED) ## Open the asset graph in the browser
	$(BIN)/mesa ui $(ARGS)

test: $(INSTALLED) $(DVC_INSTALLED) ## Run all tests but those of the whole system (PYTEST="-k name" for some)
	$(BIN)/python -m pytest -n auto --dist loadfile -m "not system" $(PYTEST)

# One after the other: servers, browsers and workers that are killed on purpose want the machine for themselves.
test-system: $(INSTALLED) $(DVC_INSTALLED) ## Run the tests of the whole system: services, browser, crashes, Celery, DVC
	$(BIN)/python -m pytest -m system --durations 15 $(PYTEST)

screenshots: $(INSTALLED) ## Take the screenshots in docs/images anew (some minutes; needs chromium)
	MESA_SCREENSHOTS=$(CURDIR)/build/screenshots $(BIN)/python -m pytest tests/browser
	cp $(SHOWN:%=build/screenshots/%.png) docs/images/

check: $(INSTALLED) ## Lint, types, import directions, and that the Dagster definitions load
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m mesa_pipeline.definitions

format: $(INSTALLED) ## Format the code and fix what can be fixed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

dvc: $(INSTALLED) $(DVC_INSTALLED) ## Reproduce the pipeline under data version control (ARGS="-S ...")
	PATH="$(CURDIR)/$(BIN):$$PATH" .venv-dvc/bin/dvc repro $(ARGS)

dvc-setup: $(DVC_INSTALLED) ## Create DVC's own environment, .venv-dvc

workers: $(INSTALLED) ## Create .venv-workers, what Mem0 and Hindsight run in when they are tested
	$(BIN)/mesa baselines install mem0 hindsight --workspace .venv-workers

dvc-push: $(DVC_INSTALLED) ## Store what dvc.lock names in the remote, a folder beside this clone unless changed
	.venv-dvc/bin/dvc push $(ARGS)

dvc-pull: $(DVC_INSTALLED) ## Fetch what dvc.lock names from the remote
	.venv-dvc/bin/dvc pull $(ARGS)

dvc-remote: $(DVC_INSTALLED) ## Use another remote from now on in this clone (URL=/mnt/team/mesa, s3://...)
	.venv-dvc/bin/dvc remote modify --local local url "$(URL)"

lock: | $(UV) ## Pin again what pyproject.toml asks for (ARGS="--upgrade" for newer releases)
	echo hatchling | UV_FIND_LINKS= $(UV) $(LOCK) pyproject.toml - --extra dev --extra local-llm --output-file constraints.txt $(ARGS)
	echo dvc==$(DVC_VERSION) | UV_FIND_LINKS= $(UV) $(LOCK) - --output-file constraints-dvc.txt $(ARGS)
	for name in mem0 hindsight; do \
	  UV_FIND_LINKS= $(UV) $(LOCK) $(WORKERS)/$$name.in --output-file $(WORKERS)/$$name.txt $(ARGS) || exit 1; done

clean: ## Remove the environments (artifacts stay)
	rm -rf .venv .venv-dvc .venv-workers

$(UV):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Python 3.11 or newer is needed, and '$(PYTHON)' is not that. Name one: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet uv==$(UV_VERSION)

$(INSTALLED): pyproject.toml constraints.txt | $(UV)
	$(UV) pip install --quiet --python $(BIN)/python $(if $(TORCH_BACKEND),--torch-backend $(TORCH_BACKEND)) \
	  --constraints constraints.txt --build-constraints constraints.txt --editable '.[dev,local-llm]'
	@touch $@

$(DVC_INSTALLED): constraints-dvc.txt | $(UV)
	$(UV) venv --quiet --allow-existing --python $(BIN)/python .venv-dvc
	$(UV) pip install --quiet --python .venv-dvc/bin/python --constraints constraints-dvc.txt dvc==$(DVC_VERSION)
	@touch $@
