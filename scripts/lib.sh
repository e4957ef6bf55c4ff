# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2034
# Shared by the set-up scripts: messages, versions, and which cargo and python to use.
# Sourced, never run. Everything is found by trying it; nothing is assumed from a system's name.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
MIN_PYTHON=3.11
MIN_DPDK=22.11

say() { printf '%s\n' "$*"; }
die() {
    printf '%s\n' "$@" >&2
    exit 1
}

# stage NAME COMMAND...: runs it, and adds a line with its seconds to the file STAGES.
stage() {
    local name=$1 begin=$SECONDS status=0
    shift
    "$@" || status=$?
    printf '%6d s  %s\n' "$((SECONDS - begin))" "$name" >>"$STAGES"
    return "$status"
}

# rust_skips FILE: the reasons for which Rust tests did not run, one a line. Such a test writes `skipped: REASON` to its standard
# error, past cargo's capture; under --nocapture that stands behind the harness's own words.
rust_skips() { grep -oE '\bskipped: .*' "$1" || true; }

# stages: prints how long each took.
stages() {
    say "How long it took:"
    cat "$STAGES"
}

# verbose: true with `make V=1`.
verbose() { [[ ${V:-0} != 0 ]]; }

# at_least WANTED FOUND: dotted numbers; what follows them (a suffix such as -nightly) is ignored.
at_least() {
    [[ $2 =~ ^[0-9]+(\.[0-9]+)* ]] || return 1
    [[ $(printf '%s\n' "$1" "${BASH_REMATCH[0]}" | sort -V | head -n 1) == "$1" ]]
}

# rust-version of the workspace, from the only place where it is written.
min_rust() { sed -n 's/^rust-version *= *"\(.*\)"/\1/p' "$ROOT/Cargo.toml"; }

# usable_rust DIR: cargo and rustc are in DIR, run, and are new enough.
usable_rust() {
    local tool found
    for tool in cargo rustc; do
        [[ -x $1/$tool ]] || return 1
        found=$("$1/$tool" --version 2>/dev/null) || return 1
        found=${found#* }
        at_least "$(min_rust)" "${found%% *}" || return 1
    done
}

# Prints the first directory whose cargo will do: in the order of PATH, then where rustup puts it.
# An old cargo first in PATH does not hide a good one behind it.
rust_directory() {
    local directory directories
    IFS=: read -r -a directories <<<"$PATH"
    for directory in "${directories[@]}" "${CARGO_HOME:-${HOME:-/nonexistent}/.cargo}/bin"; do
        if [[ -n $directory ]] && usable_rust "$directory"; then
            say "$directory"
            return 0
        fi
    done
    return 1
}

# usable_python COMMAND: new enough, and able to make a virtual environment.
usable_python() {
    "$1" -c "import sys, venv, ensurepip
sys.exit(sys.version_info < (${MIN_PYTHON/./, }))" >/dev/null 2>&1
}

# Prints the command of the newest Python that will do; $PYTHON, when set, is the only one tried.
find_python() {
    local command
    for command in ${PYTHON:-python3.14 python3.13 python3.12 python3.11 python3}; do
        if usable_python "$command"; then
            say "$command"
            return 0
        fi
    done
    return 1
}
