#!/usr/bin/env bash
# Runs the demo and draws an excerpt of what it printed as docs/images/demo.svg.
#
#   hack/demo-picture.sh [CAPTURED]
#
# CAPTURED is the output of an earlier run, to draw without running again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
captured=${1:-}
if [ -z "$captured" ]; then
	captured=$(mktemp)
	trap 'rm -f "$captured"' EXIT
	hack/demo.sh | tee "$captured"
fi
go run ./hack/termsvg -from '^4 ' \
	-skip '^ALPHA guarded,^accepted ' \
	-skip '^request-id,^$' \
	-skip '^REPORTED +Paused,^GROUP-PHASE' \
	-skip '^ROLLED-OUT,^$' \
	-skip '^REPORTED +Succeeded,^$' \
	<"$captured" >docs/images/demo.svg.new
mv docs/images/demo.svg.new docs/images/demo.svg
