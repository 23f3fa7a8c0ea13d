# `make demo` and `make test` are all that is needed on a fresh Debian machine, as root.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

export HEADWAY_CACHE ?= /var/cache/headway
export HEADWAY_STATE ?= /var/lib/headway-lab
export PYTHONPATH := $(CURDIR):$(CURDIR)/operator:$(CURDIR)/runtime

# Debian's own Python: the engine environment made with it also runs inside a pod made from Debian.
SYSTEM_PYTHON := /usr/bin/python3
UV_VERSION := $(shell sed -n 's/^uv==//p' requirements/dev.txt)
DEV := $(HEADWAY_CACHE)/dev-$(shell cat requirements/dev.txt requirements/engine-cpu.overrides.txt | sha256sum | cut -c1-12)
PYTHON := $(DEV)/bin/python
LAB := $(PYTHON) -m tests.cluster.lab
DEBIAN_PACKAGES := $(shell sed 's/#.*//' tests/cluster/debian-packages.txt)

.PHONY: help
help: ## what there is
	@sed -n 's/^\([a-z-]*\):.*## /  make \1	/p' $(MAKEFILE_LIST) | expand -t 24

.PHONY: demo
demo: environment ## a local cluster, the chart, an example, an answer from a real model, engines retuned
	@$(PYTHON) -m tests.e2e.demo

.PHONY: demo-down
demo-down: environment ## stop and remove what `make demo` or `make test` started; caches stay
	@$(LAB) down

.PHONY: test
test: environment check ## every check and test; the cluster tests start a local cluster and stop it
	@# Building takes minutes on a bare machine: here it is seen, and no test's time limit holds it.
	@$(LAB) build >/dev/null && $(LAB) engine >/dev/null
	@$(PYTHON) -m pytest --durations=40

.PHONY: check
check: environment ## lint, types, import rules, generated CRD and dashboard
	@echo "== ruff"; $(DEV)/bin/ruff check . && $(DEV)/bin/ruff format --check .
	@echo "== mypy --strict"; $(DEV)/bin/mypy
	@echo "== import rules"; $(DEV)/bin/lint-imports --no-cache
	@echo "== the dashboard is the generated one"; $(PYTHON) -m dashboards.service_overview | diff - charts/headway/files/dashboards/service-overview.json
	@echo "== the CRD is the generated one"; $(PYTHON) -m headway_operator.api.crd | diff - crds/inferenceservices.headway.dev.yaml

.PHONY: test-fast
test-fast: environment ## unit and property tests only, some minutes
	@$(PYTHON) -m pytest tests/unit -n logical --dist loadfile

.PHONY: test-faults
test-faults: environment ## real faults and what becomes of requests, into docs/results/faults.md (an hour or more; FAULTS="tests/faults -k quota")
	@$(LAB) build >/dev/null && $(LAB) engine >/dev/null
	@$(if $(FAULTS),,rm -f docs/results/faults.json docs/results/faults.md)
	@HEADWAY_FAULTS=docs/results/faults.json $(PYTHON) -m pytest $(or $(FAULTS),tests/faults) --durations=0

.PHONY: figures-demo
figures-demo: environment ## measure the demo's figures into docs/results/demo.json (15 minutes; BARE=seconds of a first demo)
	@$(PYTHON) -m tests.e2e.figures docs/results/demo.json $(if $(BARE),--bare-to-answer-s $(BARE))

.PHONY: bench-push
bench-push: environment ## time for a decision to reach 1,000 pods, into docs/results/push.json (3 minutes)
	@$(PYTHON) -m tests.scale.push docs/results/push.json

.PHONY: bench-operator
bench-operator: environment ## 1,000 services on fake nodes, into docs/results/operator.json (20 minutes, own cluster)
	@$(PYTHON) -m tests.scale.operator docs/results/operator.json

BENCH_STATE ?= $(HOME)/headway-bench
SHAPE ?= qwen3-8b
.PHONY: bench-gpu
bench-gpu: ## on a machine with a GPU and vLLM: BENCH="--scenarios ... --arms ..." (15 minutes or more)
	@PYTHONPATH=runtime python3 -m headway_runtime.bench.server start --state $(BENCH_STATE) --shape $(SHAPE)
	@PYTHONPATH=runtime python3 -m headway_runtime.bench.run --state $(BENCH_STATE) --out $(BENCH_STATE)/results $(BENCH)

.PHONY: bench-classes
bench-classes: environment ## classes, tenants and programs on a simulated engine, into docs/results/classes.json (7 minutes)
	@$(PYTHON) -m headway_runtime.bench.class_figures --json docs/results/classes.json $(BENCH)

.PHONY: bench-simulated
bench-simulated: environment ## the same on a simulated GPU engine, to choose what to measure: BENCH="..."
	@$(PYTHON) -m headway_runtime.bench.simulate --out $(BENCH_STATE)/simulated $(BENCH)

.PHONY: report-gpu
report-gpu: environment ## RESULTS="results.tar.gz ..." into docs/results/gpu.json and gpu.md
	@$(PYTHON) -m headway_runtime.bench.report $(RESULTS) --json docs/results/gpu.json

.PHONY: bench-planner
bench-planner: environment ## what planning costs beside a real vLLM scheduler, into docs/results/planner.json (2 minutes)
	@$(PYTHON) -m tests.scale.planner docs/results/planner.json

TRACES ?= $(HOME)/traces
.PHONY: bench-autoscale
bench-autoscale: environment ## replicas by token load against HPAs, simulated, up to 1,000 pods, into docs/results/autoscale.json: TRACES=DIR (some 12 minutes of one core)
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(PYTHON) -m tests.autoscale.autoscale docs/results/autoscale.json --traces $(TRACES) $(BENCH)

.PHONY: generate
generate: environment ## regenerate what is generated: the CRD and the chart's copy of it, the dashboard
	@$(PYTHON) -m dashboards.service_overview > charts/headway/files/dashboards/service-overview.json
	@$(PYTHON) -m headway_operator.api.crd | tee crds/inferenceservices.headway.dev.yaml \
	  > charts/headway/files/inferenceservices.headway.dev.yaml

.PHONY: format
format: environment ## format the Python code
	@$(DEV)/bin/ruff check --fix . ; $(DEV)/bin/ruff format .

.PHONY: requirements
requirements: environment ## compile requirements/*.in into pins
	@for name in operator runtime router; do \
	  $(DEV)/bin/uv pip compile -q --upgrade --no-emit-index-url --python-version 3.11 --custom-compile-command "make requirements" \
	    requirements/$$name.in -o requirements/$$name.txt; done
	@for name in engine-cpu dev; do \
	  $(DEV)/bin/uv pip compile -q --upgrade --no-emit-index-url --python-version 3.11 --custom-compile-command "make requirements" \
	    --override requirements/engine-cpu.overrides.txt requirements/$$name.in -o requirements/$$name.txt; done

# --- what the above need on a bare machine -------------------------------------------------------

.PHONY: environment
environment: debian-packages $(DEV)/complete

.PHONY: debian-packages
debian-packages:
	@missing=""; for name in $(DEBIAN_PACKAGES); do \
	  [ "$$(dpkg-query -W -f='$${db:Status-Status}' $$name 2>/dev/null)" = installed ] || missing="$$missing $$name"; done; \
	if [ -n "$$missing" ]; then \
	  [ "$$(id -u)" = 0 ] || { echo "These Debian packages are missing:$$missing. Install them, or run make as root."; exit 1; }; \
	  echo "Installing Debian packages:$$missing"; \
	  apt-get update -q >/dev/null; \
	  DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $$missing >/dev/null; fi

$(DEV)/complete: | debian-packages
	@echo "Making the Python environment $(DEV) (a minute, 6 GB: it contains vLLM)"
	@mkdir -p $(HEADWAY_CACHE) && rm -rf $(DEV)
	@$(SYSTEM_PYTHON) -m venv $(DEV)
	@$(DEV)/bin/pip install -q uv==$(UV_VERSION)
	@$(DEV)/bin/uv pip install -q --python $(PYTHON) --override requirements/engine-cpu.overrides.txt -r requirements/dev.txt
	@touch $@
