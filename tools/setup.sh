# Sourced by quickstart.sh, test.sh and .ci/run: installs what is missing, configures and builds, quietly.
# The one list of Debian packages:
build_packages=(g++ cmake ninja-build pkg-config libtbb-dev libeigen3-dev libfmt-dev zlib1g-dev libsleef-dev
  coinor-libclp-dev libcli11-dev nlohmann-json3-dev libgtest-dev liblbfgs-dev libbenchmark-dev)
check_packages=(clang-format clang-tidy)
# Makes repeated builds fast; margrave does without it. (libdlib-dev, which nothing here installs, adds bench_peers.)
optional_packages=(ccache)

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
log_folder=$root/build/log
mkdir -p "$log_folder"

# quietly NAME COMMAND...: one line of progress on a terminal, the whole output only when the command fails.
quietly() {
  local name=$1 log=$log_folder/${1//[^a-zA-Z0-9]/_}.log start=$SECONDS columns line
  shift
  if [[ -t 1 ]]; then
    columns=$(tput cols 2>/dev/null || echo 80)
    if ! (
      set -o pipefail
      "$@" 2>&1 </dev/null | tee "$log" | while IFS= read -r line; do
        line="$name: $line"
        printf '\r\033[K%s' "${line:0:columns-1}"
      done
    ); then
      printf '\r\033[K'
      cat "$log"
      echo "$name: failed; the output above is in $log" >&2
      return 1
    fi
    printf '\r\033[K'
  else
    echo "$name ..."
    if ! "$@" >"$log" 2>&1 </dev/null; then
      cat "$log"
      echo "$name: failed; the output above is in $log" >&2
      return 1
    fi
  fi
  echo "$name: done ($((SECONDS - start)) s)"
}

installed() { [[ $(dpkg-query -W -f '${Status}' "$1" 2>/dev/null) == "install ok installed" ]]; }

as_root() {
  if ((EUID == 0)); then
    "$@"
  else
    sudo "$@"
  fi
}

apt_install() {
  # A source that cannot be reached need not be the one that has the packages.
  as_root apt-get update || true
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"
}

# install_missing PACKAGE...: asks apt-get for those that are not there yet.
install_missing() {
  local package missing=()
  if ! command -v dpkg-query >/dev/null; then
    echo "This is not a Debian system; margrave needs what these packages hold: $*" >&2
    return 0
  fi
  for package in "$@"; do
    installed "$package" || missing+=("$package")
  done
  ((${#missing[@]})) || return 0
  if ((EUID != 0)) && ! command -v sudo >/dev/null; then
    echo "These packages are missing: ${missing[*]}" >&2
    echo "Run this script as root, or install them:  apt-get install ${missing[*]}" >&2
    return 1
  fi
  # Ask for the password before the output is hidden.
  ((EUID == 0)) || sudo -v || {
    echo "sudo did not work. As root:  apt-get install ${missing[*]}" >&2
    return 1
  }
  echo "missing packages: ${missing[*]}"
  quietly "installing packages" apt_install "${missing[@]}" || {
    echo "The packages could not be installed. By hand, as root:  apt-get install ${missing[*]}" >&2
    return 1
  }
}

install_build_packages() {
  install_missing "${build_packages[@]}" || return 1
  install_missing "${optional_packages[@]}" 2>/dev/null || true
}

# build PRESET TARGET...: configures and builds.
build() {
  local preset=$1
  shift
  (cd "$root" && quietly "configuring $preset" cmake --preset "$preset" &&
    quietly "building $preset" cmake --build --preset "$preset" --target "$@")
}
