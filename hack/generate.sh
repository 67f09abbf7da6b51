#!/usr/bin/env bash
# Regenerates the deep copies of the API types and the CRDs.
#
#   hack/generate.sh [ROOT]
#
# ROOT is the tree to write into, this checkout by default.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

root=${1:-$PWD}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

component=config/components/rolloutpolicy # what an administrator adds, and no part of config/crd
mkdir -p "$root/api/v1beta1" "$root/config/crd" "$root/$component" "$scratch/component"
go tool -modfile=hack/tools/go.mod controller-gen \
  object paths=./api/v1beta1/... "output:object:dir=$root/api/v1beta1"
go tool -modfile=hack/tools/go.mod controller-gen \
  crd paths=./api/v1beta1/... "output:crd:dir=$scratch"
mv "$scratch/ome.io_rolloutpolicies.yaml" "$scratch/component/"
rm -f "$root"/config/crd/ome.io_*.yaml
go run ./hack/crdgen -in "$scratch" -out "$root/config/crd"
go run ./hack/crdgen -in "$scratch/component" -out "$root/$component"
