#!/usr/bin/env bash
# The properties and fuzzers, for as long as SOAK says (default 10m each).
set -euo pipefail
cd "$(dirname "$0")/.."
soak=${SOAK:-10m}
echo "properties of the simulated cluster"
go test ./internal/sim -count=1 -timeout 24h -run 'TestEvery|TestAPause' -rapid.checks="${CHECKS:-20000}"
echo "fuzzing for $soak each; the first build instruments Kubernetes' libraries and takes a while"
for f in FuzzDecode FuzzRoundTrip; do
	go test ./internal/core/rows -run '^$' -fuzz "^$f\$" -fuzztime "$soak"
done
