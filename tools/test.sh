#!/usr/bin/env bash
# Installs what is missing, builds margrave, and runs all tests. Arguments go to ctest (for example -R Viterbi).
# Tests on real data run when MARGRAVE_DATA names their folder, and say so when they are skipped.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

install_build_packages
build release all
cd "$root"
ctest --preset release -j "$(nproc)" "$@"
