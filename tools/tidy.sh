#!/usr/bin/env bash
# clang-tidy over lib/ and tools/, with the release preset's compile commands. Arguments: the files to look at, all
# of them where there are none. A file whose text, headers and checks are unchanged since it was last clean is skipped.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
cd "$root"
[[ -e build/release/compile_commands.json ]] || quietly "configuring release" cmake --preset release

stamps=$root/build/tidy
mkdir -p "$stamps"
# Everything a file may include: a change in any header looks at all files again.
shared=$({ cat .clang-tidy build/release/compile_commands.json; clang-tidy --version
  find include lib tools -name '*.hpp' -print0 | sort -z | xargs -0 cat; } | sha256sum)
export shared stamps

tidy_one() {
  local stamp
  stamp=$stamps/$({ echo "$shared"; cat "$1"; } | sha256sum | cut -d ' ' -f 1)
  [[ -e $stamp ]] && return 0
  local output
  if ! output=$(clang-tidy -p build/release --quiet --extra-arg=-Wno-unknown-warning-option "$1" 2>&1); then
    printf '%s\n' "$output"
    return 1
  fi
  touch "$stamp"
}
export -f tidy_one

if (($#)); then
  files=("$@")
else
  mapfile -t files < <(find lib tools -name '*.cpp' | sort)
fi
printf '%s\0' "${files[@]}" | xargs -0 -P "$(nproc)" -n 1 bash -c 'tidy_one "$0"' || {
  echo "tidy: see above" >&2
  exit 1
}
echo "tidy: ${#files[@]} files clean"
