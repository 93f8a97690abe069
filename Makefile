# Everything here works on a fresh machine with Python 3.11 or newer, make and an internet connection.
# `make` alone lists what there is.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# The first Python found that is new enough; `make test PYTHON=/path/to/python` chooses another.
PYTHON ?= $(firstword $(foreach name,python3 python3.13 python3.12 python3.11 python,\
            $(shell $(name) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $(name))))
# Installed before anything that wants torch, so that no other build is pulled in. The CPU build is enough.
TORCH ?= torch==2.13.0
# How many test processes run side by side; each computes on one thread, or they would fight for the cores.
JOBS ?= auto

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq install
BASE := $(VENV)/.base
DEMO := $(VENV)/.demo
TEST := $(VENV)/.test
LINT := $(VENV)/.lint
# Tests start many Python processes: compiled modules are written even where the environment forbids it.
PYTEST = PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal
DOCS := $(VENV)/.docs
# A second environment, with the lowest versions of the web packages and of the stores that pyproject.toml allows.
LOWEST := .venv-lowest
# A third one, with the servers that tests start as processes.
SERVERS := .venv-servers

.PHONY: help
help:  ## list what can be made
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: $(DEMO)  ## draw scenes, audit a small model on them, print what was found, write a report (about a minute)
	@$(BIN)/crosslens demo
	@echo; echo "The command is $(BIN)/crosslens; after \`source $(BIN)/activate\` simply crosslens."

.PHONY: test
test: $(TEST)  ## all fast tests (a few minutes)
	@$(PYTEST) -m "not slow" $(ARGS)

.PHONY: test-all
test-all: $(TEST)  ## every test, the slow ones too, properties with new examples
	@$(PYTEST) --hypothesis-profile=exploring $(ARGS)

.PHONY: test-docs
test-docs: $(TEST)  ## the README, the tutorial, the notebooks, the examples of a plugin and a model: they print what they show
	@$(PYTEST) tests/test_docs.py tests/test_notebooks.py tests/test_plugin_example.py tests/encode/test_model_guide.py $(ARGS)

.PHONY: test-hostile
test-hostile: $(TEST)  ## hostile input, all of it: every reader, option, array and text with everything that is wrong
	@$(PYTEST) tests/hostile $(ARGS)

.PHONY: test-lowest
test-lowest: $(LOWEST)/.installed  ## tests of web and addresses with the lowest allowed versions of their packages, in .venv-lowest
	@PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(LOWEST)/bin/python -m pytest -q -n $(JOBS) \
	  --dist worksteal -m "not slow" tests/web tests/hostile/test_web.py \
	  tests/storage/test_remote.py tests/hostile/test_remote.py tests/hostile/test_addresses.py $(ARGS)

.PHONY: test-package
test-package: $(TEST)  ## build sdist and wheel, install them into empty environments, try each extra alone (downloads; half an hour)
	@$(BIN)/python -m pytest -q tests/package $(ARGS)

.PHONY: test-servers
test-servers: $(TEST) $(SERVERS)/.installed  ## with real servers, which the tests start: S3, Google storage, MLflow, Label Studio, Ray
	@CROSSLENS_NO_SKIPS=1 $(PYTEST) --dist loadfile tests/servers $(ARGS)

.PHONY: system-packages
system-packages:  ## install Chromium, nginx and WordNet's files for the tests that need them (Debian, as root; else they skip)
	@{ command -v chromium && command -v nginx && test -e /usr/share/wordnet/data.noun && \
	  test -e /usr/share/wordnet/index.sense; } >/dev/null || \
	  { apt-get -qq update && apt-get -qq install -y chromium nginx-light wordnet-base wordnet-sense-index; }

.PHONY: lint
lint: $(LINT)  ## format check, lint, strict types
	@$(BIN)/ruff format --check --quiet . || { echo "run: $(BIN)/ruff format ." >&2; exit 1; }
	@$(BIN)/ruff check --quiet --no-cache .  # the cache misses imports of modules that are gone
	@$(BIN)/mypy

.PHONY: bench
bench: $(TEST)  ## measure speed and memory (long; a quiet machine gives better numbers)
	@for script in benchmarks/*.py; do $(BIN)/python $$script; done

.PHONY: reproduce
reproduce: $(TEST)  ## every table and figure of the papers that can be made here, and docs/reproduction.md (half an hour)
	@$(BIN)/python reproduce/reproduction.py $(ARGS)

.PHONY: reproduce-flickr8k
reproduce-flickr8k: $(TEST)  ## EXPL's text-only table with two small sentence encoders (needs Flickr8k; minutes)
	@$(BIN)/python reproduce/flickr8k.py

.PHONY: reproduce-training
reproduce-training: $(TEST)  ## models trained on Flickr8k, adaptive against fixed margins (from kept figures; WORK=FOLDER trains)
	@$(BIN)/python reproduce/training.py $(if $(WORK),--work $(WORK)) $(ARGS)

.PHONY: reproduce-imp
reproduce-imp: $(TEST)  ## an IMP build from Flickr8k photos and COCO captions (needs both; a minute)
	@$(BIN)/python reproduce/imp_example.py

.PHONY: reproduce-recos
reproduce-recos: $(TEST)  ## a RECOS benchmark from 1,000 real photos, and two models on it (needs COCO; minutes)
	@$(BIN)/python reproduce/recos_coco.py

.PHONY: reproduce-sugar-crepe
reproduce-sugar-crepe: $(TEST)  ## SugarCrepe with a linear image model, on real photos' features (needs the data; minutes)
	@$(BIN)/python reproduce/sugar_crepe.py

.PHONY: reproduce-semantics
reproduce-semantics: $(TEST)  ## which φ agrees with people, and which finds missing positives (needs the data; an hour)
	@$(BIN)/python reproduce/semantics.py

.PHONY: reproduce-semantic-roles
reproduce-semantic-roles: $(TEST)  ## whether semantic tells swapped and replaced words (needs the data; minutes)
	@$(BIN)/python reproduce/semantic_roles.py

.PHONY: reproduce-coverage
reproduce-coverage: $(TEST)  ## how often 95 % intervals contain the truth, by simulation (no data needed; up to an hour)
	@$(BIN)/python reproduce/interval_coverage.py

.PHONY: claims
claims: $(TEST)  ## how often what an audit says is true: plants in known worlds, docs/results/claims.md (tens of minutes)
	@OMP_NUM_THREADS=1 $(BIN)/python reproduce/claims.py $(ARGS)

.PHONY: reproduce-granularity
reproduce-granularity: $(TEST)  ## how fine-grained COCO's and Flickr8k's captions are, beside BRIT's table (needs the data)
	@$(BIN)/python reproduce/granularity.py

.PHONY: reproduce-adversarial
reproduce-adversarial: $(TEST)  ## adversarial words in Flickr8k and COCO: shares, 200 substitutions each (needs the data)
	@$(BIN)/python reproduce/adversarial_table.py

.PHONY: reproduce-robustness
reproduce-robustness: $(TEST)  ## twenty perturbations of Flickr8k's captions, two sentence encoders (needs the data; half an hour)
	@$(BIN)/python reproduce/robustness.py

.PHONY: reproduce-brit
reproduce-brit: $(TEST)  ## BRIT's tables from a real model's lists under thirteen perturbations (needs the data; seconds)
	@$(BIN)/python reproduce/brit.py

.PHONY: train-tiny
train-tiny: $(TEST)  ## train the built-in encoder anew and put it into the package (wants a GPU; hours without)
	@$(BIN)/python training/tiny/train.py --output trained --corpus trained/corpus
	@$(BIN)/python training/tiny/export.py --trained trained

.PHONY: reproduce-explain
reproduce-explain: $(TEST)  ## why text-only retrieval fails on COCO: concepts, causes, confusions (needs the data; minutes)
	@$(BIN)/python reproduce/explain_coco.py

.PHONY: reproduce-verbs
reproduce-verbs: $(TEST)  ## how often a caption's verb is asserted as an object, by hand on Flickr8k (needs the data; seconds)
	@$(BIN)/python reproduce/verbs_as_nouns.py

.PHONY: reproduce-polysemy
reproduce-polysemy: $(TEST)  ## how diverse the captions of similar photos are in Flickr8k and COCO (needs the data; minutes)
	@$(BIN)/python reproduce/polysemy.py

.PHONY: reproduce-difficulty
reproduce-difficulty: $(TEST)  ## how hard real captions are for a panel of nine scorers (needs the data; a quarter of an hour)
	@$(BIN)/python reproduce/difficulty.py

.PHONY: reproduce-tiny
reproduce-tiny: $(TEST)  ## what the built-in encoder reaches on scenes it has not seen (minutes)
	@$(BIN)/python training/tiny/held_out.py --overlap

.PHONY: docs
docs: $(DOCS)  ## write the reference pages from the registries and build the site into site/
	@$(BIN)/python scripts/generate_reference.py
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict  # --quiet would hide warnings from --strict, too

.PHONY: notebooks
notebooks: $(TEST)  ## run the notebooks of examples/ anew, and store their outputs in them (a minute)
	@$(BIN)/python scripts/run_notebooks.py

.PHONY: docs-pictures
docs-pictures: $(TEST)  ## draw the pictures of the documentation anew into docs/pictures (Chromium; some minutes)
	@$(BIN)/python scripts/draw_pictures.py

.PHONY: clean
clean:  ## remove the environment, built files and caches (run folders stay)
	@rm -rf $(VENV) $(LOWEST) $(SERVERS) build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find src tests scripts benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# One stamp file per set of packages: a second call does nothing until pyproject.toml changes.

$(VENV)/.created:
	@if [ -z "$(PYTHON)" ]; then \
	  echo "crosslens needs Python 3.11 or newer: install one, or say where it is: make PYTHON=/path/to/python" >&2; \
	  exit 1; \
	fi
	@echo "environment: $(VENV) (`$(PYTHON) --version`)"
	@$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(LOWEST)/.installed: $(VENV)/.created pyproject.toml scripts/lowest_versions.py
	@echo "installing the lowest allowed versions of what the web application and stores need: $(LOWEST)"
	@$(BIN)/python -m venv --clear $(LOWEST)
	@$(BIN)/python scripts/lowest_versions.py postgres remote > $(LOWEST)/constraints.txt
	@$(LOWEST)/bin/python -m pip --disable-pip-version-check -qq install --constraint $(LOWEST)/constraints.txt \
	  --editable ".[test-web,remote]"
	@touch $@

$(SERVERS)/.installed: $(VENV)/.created tests/servers/requirements.txt
	@echo "installing the servers that tests start: $(SERVERS)"
	@$(BIN)/python -m venv --clear $(SERVERS)
	@$(SERVERS)/bin/python -m pip --disable-pip-version-check -qq install --requirement tests/servers/requirements.txt
	@touch $@

$(BASE): $(VENV)/.created pyproject.toml
	@echo "installing crosslens"
	@$(PIP) --editable .
	@touch $@

$(DEMO): $(VENV)/.created pyproject.toml
	@echo "installing crosslens and what the demo needs"
	@$(PIP) --editable ".[demo]"
	@touch $@ $(BASE)

$(VENV)/.torch-$(subst /,_,$(firstword $(TORCH))): $(VENV)/.created
	@echo "installing $(firstword $(TORCH))"
	@$(PIP) $(TORCH)
	@touch $@

$(TEST): $(VENV)/.torch-$(subst /,_,$(firstword $(TORCH))) pyproject.toml
	@echo "installing what the tests need"
	@$(PIP) --editable ".[all,test,docs]"
	@touch $@ $(BASE) $(DEMO) $(DOCS)

$(LINT): $(BASE) pyproject.toml
	@echo "installing linters"
	@$(PIP) --editable ".[lint,web]"
	@touch $@

$(DOCS): $(BASE) pyproject.toml
	@echo "installing what the docs need"
	@$(PIP) --editable ".[docs]"
	@touch $@
