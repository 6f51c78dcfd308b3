# The front door. `make help` lists it; CI calls the same targets.
SHELL := /bin/bash
PY := .venv/bin/python
CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/cosyvoice-operator
export OMP_NUM_THREADS ?= 1
export OMP_WAIT_POLICY ?= PASSIVE

.DEFAULT_GOAL := help
.PHONY: help setup check test test-unit test-long demo run cluster-up cluster-down images sbom fuzz bench load-test release-check verify generate lock clean

help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: .venv/.done ## create .venv with everything pinned and hashed (about 3 GB for torch the first time)

.venv/.done: requirements/dev.txt pyproject.toml
	@dev/setup.sh
	@touch $@

check: setup ## formatting, lint, types, import contracts
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/mypy
	.venv/bin/lint-imports
	shellcheck -x dev/*.sh dev/gpu-check dev/cluster/*.sh requirements/*.sh .ci/run

test: setup cluster-up ## everything but the minutes-long tests: unit, engine, API server, cluster
	$(PY) -m pytest -m "not long" $(ARGS)

test-unit: setup ## only what needs no cluster
	$(PY) -m pytest tests/unit tests/engine -m "not long" $(ARGS)

test-long: setup cluster-up ## everything, minutes-long tests too
	$(PY) -m pytest $(ARGS)

demo: setup ## from nothing to narrator.wav on a local Kubernetes (or yours: KUBECONFIG=… IMAGE_REGISTRY=…)
	$(PY) -m dev.demo

run: setup ## run the operator out of the cluster, against the current KUBECONFIG
	.venv/bin/cosyvoice-operator run $(ARGS)

cluster-up: setup ## bring the local two-node Kubernetes up, with the images in it (no-op if it already is)
	$(PY) -m dev.cluster up
	$(PY) -m dev.images build

cluster-down: setup ## remove every trace of the local Kubernetes
	$(PY) -m dev.cluster down

images: setup ## build both images, tell their sizes, and import them into the local cluster if it runs
	$(PY) -m dev.images build --weigh

sbom: setup ## write what both images are made of to out/*.spdx.json
	$(PY) -m dev.images sbom

fuzz: setup ## feed every reader of foreign bytes with damaged ones (ARGS='--seconds 600 checkpoint')
	$(PY) -m dev.fuzz $(ARGS)

bench: setup ## run the benchmarks: one table each
	@for f in benchmarks/[a-z]*.py; do echo "== $$f"; $(PY) -m benchmarks.$$(basename $$f .py) || exit 1; done

generate: setup ## regenerate what is generated (CRD copies, API reference)
	$(PY) -m dev.generate

load-test: setup ## users x text length against a model that serves: make load-test URL=http://… (ARGS='--users 1 8')
	$(PY) -m dev.load $(URL) $(ARGS)

release-check: setup ## whether this tree can be released: clean, one version, changelog, generated files, licences
	$(PY) -m dev.release

verify: generate ## regenerate and fail if anything differs from the commit
	git diff --exit-code

lock: ## recompile requirements/*.txt from pyproject.toml
	requirements/compile.sh

clean: ## remove build leavings of this tree (the cache outside it stays)
	rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis dist out narrator.wav
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
