#!/usr/bin/env bash
# Shows the main job on a lab of its own, in a temporary directory that is gone afterwards.
#
#   hack/demo.sh [--skip-drain] [--rate N] [--keep] [--dir DIR]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec bin/ome-lab demo "$@"
