#!/usr/bin/env bash
# Runs the tests in the order that finds the cheapest failure first, while the
# lab's binaries build beside the unit tests.
#
#   hack/test.sh unit|api|e2e|all
set -euo pipefail
cd "$(dirname "$0")/.."
part=${1:-all}

# Packages that need a real API server; everything else is a unit test.
api_packages() { go list -f '{{if or .TestImports .XTestImports}}{{.ImportPath}} {{join .TestImports ","}},{{join .XTestImports ","}}{{end}}' ./... |
	awk '/internal\/testenv/ {print $1}'; }
say() { printf '\n=== %s (%ss)\n' "$*" "$SECONDS"; }

build_binaries() {
	mkdir -p bin
	(cd lab && go build -trimpath -o ../bin/ ./cmd/ome-lab)
	bin/ome-lab build --prometheus
}

unit() {
	say "unit tests with the race detector"
	local api; api=$(api_packages)
	go vet ./...
	# sim replays whole rollouts thousands of times and has no goroutine to race.
	go list ./... | grep -vxF "$api" | grep -v '/internal/sim$' | xargs go test -race -timeout 15m
	go test -timeout 15m ./internal/sim
	say "CRD checks with the API server's own validation"
	(cd hack/tools && go test ./crdcheck)
	say "the contract: each rule switched off, and the test that holds it has to notice"
	go run ./hack/contract -quick
	say "unit tests of the lab"
	(cd lab && go vet ./... && go list ./... | grep -v '/test' | xargs go test -race -timeout 15m)
}

api() {
	say "tests against a real API server"
	# One package at a time: each starts an API server of its own.
	api_packages | xargs go test -p 1 -timeout 20m
}

e2e() {
	say "end-to-end tests on labs"
	mkdir -p bin
	go build -trimpath -o bin/ ./cmd/...
	(cd lab && go build -trimpath -o ../bin/ ./cmd/ome-lab && OME_BIN="$PWD/../bin" go test -p 1 -count=1 -timeout 40m ./test/...)
}

case $part in
unit) unit ;;
api) api ;;
e2e) e2e ;;
all)
	say "formatting, generated code, modules"
	hack/lint.sh
	hack/verify.sh
	log=$(mktemp)
	trap 'rm -f "$log"' EXIT
	build_binaries >"$log" 2>&1 &
	builder=$!
	unit || { kill "$builder" 2>/dev/null; exit 1; }
	say "waiting for the lab's binaries"
	wait "$builder" || { cat "$log"; exit 1; }
	api
	e2e
	say "all tests passed"
	;;
*) echo "usage: hack/test.sh unit|api|e2e|all" >&2; exit 2 ;;
esac
