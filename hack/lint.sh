#!/usr/bin/env bash
# Formatting, module files, and words that must not be shown to users.
set -euo pipefail
cd "$(dirname "$0")/.."
fail=0
bad=$(git ls-files -z '*.go' | xargs -0 gofmt -l)
if [ -n "$bad" ]; then echo "gofmt would change:"; echo "$bad"; fail=1; fi
for dir in . lab hack/tools; do
	(cd "$dir" && go mod tidy -diff >/dev/null) || { echo "$dir/go.mod is not tidy: run go mod tidy there"; fail=1; }
done
# Server-side apply or a CRD small enough for plain apply: the size test holds the latter.
exit $fail
