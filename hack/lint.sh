#!/usr/bin/env bash
# Formatting and module files.
set -euo pipefail
cd "$(dirname "$0")/.."
fail=0
bad=$(git ls-files -z '*.go' | xargs -0 gofmt -l)
if [ -n "$bad" ]; then echo "gofmt would change:"; echo "$bad"; fail=1; fi
for dir in . lab hack/tools; do
	(cd "$dir" && go mod tidy -diff >/dev/null) || { echo "$dir/go.mod is not tidy: run go mod tidy there"; fail=1; }
done
exit $fail
