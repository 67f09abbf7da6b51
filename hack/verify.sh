#!/usr/bin/env bash
# Fails when generated files are stale: generates them again elsewhere and compares.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
hack/generate.sh "$fresh"

stale=0
compare() { # a glob below the root; a file that only one side has counts too
  local path
  for path in $( (cd "$fresh" && ls -1 $1; ls -1 $1) 2>/dev/null | sort -u); do
    if ! diff -uN "$path" "$fresh/$path"; then
      echo "stale: $path; run make generate and commit the result" >&2
      stale=1
    fi
  done
}
compare 'api/v1beta1/zz_generated.*.go'
compare 'config/crd/ome.io_*.yaml'
compare 'config/components/*/ome.io_*.yaml'
exit "$stale"
