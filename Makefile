# OME. `make help` lists everything a person would run.

SHELL := /bin/bash
.DEFAULT_GOAL := help

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION) -X ome.io/ome/internal/cli.Version=$(VERSION)
BIN := $(CURDIR)/bin

.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z][a-z0-9-]*:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Use

.PHONY: demo
demo: build ## Show the main job on a lab of its own, then clean up (about 10 minutes the first time)
	@hack/demo.sh

.PHONY: demo-canary
demo-canary: build ## Show a bad canary that rolls itself back; builds Prometheus the first time
	@hack/demo-canary.sh

.PHONY: build
build: ## Build ome-manager, kubectl-ome and ome-lab into bin/
	@mkdir -p $(BIN)
	go build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/ ./cmd/...
	cd lab && go build -trimpath -ldflags '-s -w' -o $(BIN)/ ./cmd/ome-lab

.PHONY: lab-binaries
lab-binaries: build ## Build etcd, the Kubernetes control plane and Prometheus into the cache
	@$(BIN)/ome-lab build --prometheus

##@ Change

.PHONY: generate
generate: ## Generate deep copies and CRDs
	@hack/generate.sh

.PHONY: verify
verify: ## Check that generated code, formatting and modules are up to date
	@hack/verify.sh
	@hack/lint.sh

.PHONY: unit
unit: ## Run the tests that need nothing but Go
	@hack/test.sh unit

.PHONY: api
api: lab-binaries ## Run the tests against a real API server
	@hack/test.sh api

.PHONY: e2e
e2e: lab-binaries ## Run the end-to-end tests on labs of their own
	@hack/test.sh e2e

.PHONY: test
test: ## Run every test there is
	@hack/test.sh all

.PHONY: contract
contract: lab-binaries ## Switch off each rule of docs/contract.md and see that its test notices
	@go run ./hack/contract

.PHONY: soak
soak: ## Run the long properties, then the fuzzers (STEPS=3000000, SOAK=10m each)
	@hack/soak.sh

.PHONY: bench
bench: lab-binaries ## Measure the budgets: ratios in one run, requests by verb and client
	@hack/bench.sh

.PHONY: clean
clean: ## Remove bin/ and a lab in this directory
	@-test -x $(BIN)/ome-lab && $(BIN)/ome-lab down --purge 2>/dev/null
	rm -rf $(BIN)
