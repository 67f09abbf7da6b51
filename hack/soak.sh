#!/usr/bin/env bash
# The properties and fuzzers, for as long as SOAK says (default 10m each).
#
# STEPS is how many random steps the long property makes (default 3,000,000, about a
# quarter of an hour on two cores). It prints which cells of phase, event and strategy
# it reached, and fails on one that can be reached and was not.
set -euo pipefail
cd "$(dirname "$0")/.."
soak=${SOAK:-10m}
echo "properties of the simulated cluster"
go test -tags soak ./internal/sim -v -count=1 -timeout 24h -run 'TestEvery' -sim.soak -sim.steps="${STEPS:-3000000}" -rapid.checks="${CHECKS:-1000}"
go test ./internal/sim -count=1 -timeout 24h -run 'TestAPause|TestARevert' -rapid.checks="${CHECKS:-1000}"
echo "fuzzing for $soak each; the first build instruments Kubernetes' libraries and takes a while"
for f in FuzzDecode FuzzRoundTrip; do
	go test ./internal/core/rows -run '^$' -fuzz "^$f\$" -fuzztime "$soak"
done
