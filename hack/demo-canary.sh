#!/usr/bin/env bash
# Shows a bad canary that rolls itself back, on a lab of its own with a real Prometheus.
#
#   hack/demo-canary.sh [--rate N] [--keep] [--dir DIR]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec bin/ome-lab demo --canary "$@"
