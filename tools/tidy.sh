#!/usr/bin/env bash
# clang-tidy over lib/ and tools/, with the release preset's compile commands. Arguments: the files to look at, all
# of them where there are none. A file that was clean is skipped until it, a header it includes, its compile command
# or the checks change. MARGRAVE_TIDY=full adds the static analyzer, which takes as long as everything else together.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
cd "$root"
[[ -e build/release/compile_commands.json ]] || quietly "configuring release" cmake --preset release

stamps=$root/build/tidy
mkdir -p "$stamps"
without=-clang-analyzer-*
[[ ${MARGRAVE_TIDY:-} == full ]] && without=
shared=$({ cat .clang-tidy; echo "$without"; clang-tidy --version; } | sha256sum)
export shared stamps without

tidy_one() {
  local headers stamp output
  # The file and the project's own headers behind it: "name.o: file header header ...", with continued lines.
  headers=$(c++ -std=c++20 -MM -Iinclude -Ilib -I. "$1" | sed -e 's/^[^:]*://' -e 's/\\$//')
  # shellcheck disable=SC2086
  stamp=$stamps/$({ echo "$shared"; grep -F "/$1" build/release/compile_commands.json; cat $headers; } |
    sha256sum | cut -d ' ' -f 1)
  [[ -e $stamp ]] && return 0
  # GCC's own warning flags are unknown to clang.
  if ! output=$(clang-tidy -p build/release --quiet --checks="$without" --extra-arg=-Wno-unknown-warning-option "$1" 2>&1); then
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
