#!/usr/bin/env bash
# Measures the budgets: the pure core first, while the machine is otherwise quiet, then rolls by every update strategy
# and commands on a lab of its own. Prints one report; exits 0 however it comes out, and non-zero only when something
# could not be measured.
#
#   hack/bench.sh [--instances N] [--rounds N] [--runs N] [--save FILE] [-o json] ...   (flags of `ome-lab bench`)
#
# OME_BIN is the directory of the programs (default bin); BENCHTIME and BENCHCOUNT are go test's -benchtime and -count
# (default 1s and 3).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

results=$(mktemp "${TMPDIR:-/tmp}/ome-bench.XXXXXX")
trap 'rm -f "$results"' EXIT

echo "benchmarks of the pure core" >&2
go test ./internal/sim ./internal/core/rows -run '^$' -bench '^(BenchmarkDecide|BenchmarkEncodeDecode20k)$' \
	-benchtime "${BENCHTIME:-1s}" -count "${BENCHCOUNT:-3}" >"$results" || { cat "$results" >&2; exit 1; }

"${OME_BIN:-bin}/ome-lab" bench --strategies --go-bench "$results" "$@"
