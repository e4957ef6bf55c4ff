# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2034
# What the project needs from the system: a probe, Debian's packages for it, and what it is for.
# Sourced by setup-packages, after lib.sh. A probe tries the thing itself, so that a DPDK or a
# toolchain from elsewhere counts as well as Debian's.

# Each line: probe | Debian's packages | what it is for
# What building the Rust programs and running their tests takes; scripts/test-releases installs these alone.
RUST_NEEDS='
probe_cc          | gcc libc6-dev          | a C compiler that links
probe_make        | make                   | make, which builds the C forwarder
probe_pkg_config  | pkg-config             | pkg-config
probe_dpdk        | libdpdk-dev            | headers and libraries of DPDK 22.11 or later
probe_examples    | dpdk-doc               | the C examples of DPDK: the l2fwd to compare with
probe_libclang    | libclang-dev           | libclang, which reads the headers of DPDK for Rust
probe_bpf         | clang libbpf-dev       | clang with headers of libbpf, which build the eBPF programs
probe_libelf      | libelf-dev zlib1g-dev  | libelf and zlib, which libbpf is linked with
probe_ip          | iproute2               | ip and bridge, which make links of network interfaces
probe_certs       | ca-certificates        | the certificates that downloads are checked with
probe_rust        | @rust                  | rustc and cargo, not older than Cargo.toml wants
'
# What the lab takes beside these.
LAB_NEEDS='
probe_testpmd     | dpdk-dev               | dpdk-testpmd, a forwarder to compare with
probe_python      | python3 python3-venv   | Python 3.11 or later with venv
'
BUILD_NEEDS=$RUST_NEEDS$LAB_NEEDS
LINT_NEEDS='
probe_clippy      | @clippy                | cargo clippy
probe_rustfmt     | @rustfmt               | cargo fmt
'
# What `make bench` measures with and compares to.
BENCH_NEEDS='
probe_clang       | clang                  | clang, which also builds the C forwarder
probe_valgrind    | valgrind               | valgrind, which counts instructions
'
# What only tenants of the cloud experiment use: their loads, and virtual machines.
CLOUD_NEEDS='
probe_stress_ng   | stress-ng              | stress-ng, the CPU load of tenants
probe_fio         | fio                    | fio, their I/O load
probe_iperf3      | iperf3                 | iperf3, their network load
probe_qemu        | qemu-system-x86        | QEMU, which runs tenants that are virtual machines
probe_busybox     | busybox-static         | busybox, which these machines start with
'
# What `make test-releases` makes other releases of Debian with.
RELEASES_NEEDS='
probe_mmdebstrap  | mmdebstrap             | mmdebstrap, which makes a Debian of any release in a directory
'
# Beside these and those of `make bench`, what only some tests use: they are skipped by hand without it,
# but not in CI.
CI_NEEDS='
probe_chromium    | chromium               | a browser, to open the report without a network
probe_pdftotext   | poppler-utils          | pdftotext, to see what of the report is on paper
'

probe_cc() { cc -x c -o /dev/null - <<<'int main(void) { return 0; }' 2>/dev/null; }
probe_make() { command -v make >/dev/null; }
probe_pkg_config() { command -v pkg-config >/dev/null; }
probe_dpdk() { pkg-config --atleast-version="$MIN_DPDK" libdpdk 2>/dev/null; }
probe_testpmd() { command -v dpdk-testpmd >/dev/null; }
probe_examples() { [[ -f /usr/share/dpdk/examples/l2fwd/main.c || -f /usr/local/share/dpdk/examples/l2fwd/main.c ]]; }
# As crates/forwarders-kernel/build.rs calls it: the program of that name.
probe_bpf() {
    "${CLANG:-clang}" -target bpf -I"/usr/include/$HOSTTYPE-linux-gnu" -x c -c -o /dev/null - \
        <<<$'#include <linux/bpf.h>\n#include <bpf/bpf_helpers.h>\n' 2>/dev/null
}
probe_libelf() { cc -x c -o /dev/null - -lelf -lz <<<$'#include <libelf.h>\n#include <zlib.h>\nint main(void) { return 0; }' 2>/dev/null; }
probe_certs() { [[ -s ${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt} || -s /etc/pki/tls/certs/ca-bundle.crt ]]; }
probe_python() { find_python >/dev/null; }
probe_rust() { rust_directory >/dev/null; }
probe_chromium() { command -v chromium >/dev/null || command -v google-chrome >/dev/null; }
probe_pdftotext() { command -v pdftotext >/dev/null; }
probe_clang() { compgen -c clang | grep -xE 'clang(-[0-9]+)?' >/dev/null; }
probe_stress_ng() { command -v stress-ng >/dev/null; }
probe_fio() { command -v fio >/dev/null; }
probe_iperf3() { command -v iperf3 >/dev/null; }
probe_ip() { command -v ip >/dev/null && command -v bridge >/dev/null; }
probe_qemu() { command -v qemu-system-x86_64 >/dev/null; }
# A static one: it comes without libraries into a machine that has none.
probe_busybox() { [[ -x /bin/busybox ]] && ! ldd /bin/busybox >/dev/null 2>&1; }
probe_mmdebstrap() { command -v mmdebstrap >/dev/null; }
probe_valgrind() { command -v valgrind >/dev/null; }
probe_clippy() { "$ROOT/scripts/cargo" clippy --version >/dev/null 2>&1; }
probe_rustfmt() { "$ROOT/scripts/cargo" fmt --version >/dev/null 2>&1; }
# Not libclang-cpp, another library with another interface.
probe_libclang() {
    local place file
    for place in ${LIBCLANG_PATH:-/usr/lib/llvm-*/lib /usr/lib/*-linux-gnu /usr/lib64 /usr/lib /usr/local/lib}; do
        for file in "$place"/libclang*.so*; do
            if [[ -e $file && $file != */libclang-cpp* ]]; then return 0; fi
        done
    done
    return 1
}

# Debian's suffix for a Rust that is new enough: none where `cargo` itself will do, else -web.
rust_suffix() {
    local candidate
    candidate=$(apt-cache policy cargo 2>/dev/null | sed -n 's/^ *Candidate: //p')
    at_least "$(min_rust)" "${candidate:-0}" || say -web
}

# packages_of WORD...: the packages of a need; @words depend on what the system offers.
packages_of() {
    case $1 in
        @rust) say "rustc$(rust_suffix) cargo$(rust_suffix)" ;;
        @clippy) if [[ -z $(rust_suffix) ]]; then say rust-clippy; else say rust-web-clippy; fi ;;
        @rustfmt) say "rustfmt$(rust_suffix)" ;;
        *) say "$*" ;;
    esac
}
