#!/usr/bin/env bash
# Installs what is missing, builds margrave, and trains on a small synthetic problem.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

install_build_packages
build release margrave_command

margrave=$root/build/release/bin/margrave
work=$root/build/quickstart
mkdir -p "$work"

echo
echo "A synthetic problem: 2000 chains of 8 binary variables to train on, 1000 more from the same source held out."
"$margrave" generate sequence -q --examples 2000 --seed 1 -o "$work/train.jsonl"
"$margrave" generate sequence -q --examples 1000 --seed 2 -o "$work/test.jsonl"
echo
"$margrave" train "$work/train.jsonl" --test "$work/test.jsonl" --lambda 0.01 --gap 1e-3 --model "$work/sequence.model"

# Paths as the caller would type them.
shown=${margrave#"$PWD"/}
folder=${work#"$PWD"/}
cat <<END

What to try next:
  # recompute the certificate with separate code
  $shown certify $folder/sequence.model $folder/train.jsonl
  # label new data; the largest weights
  $shown predict $folder/sequence.model $folder/test.jsonl
  $shown dump $folder/sequence.model --top 5
  # your own file; every option, with the objective's formula
  $shown check YOUR_DATA
  $shown train --help
END
