// SPDX-License-Identifier: BSD-3-Clause
//! Builds the eBPF programs by clang; they are embedded in the programs that load them.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const PROGRAMS: [&str; 4] = ["l2fwd", "drops", "slot", "to_socket"];

fn main() -> ExitCode {
    let Some(out) = env::var_os("OUT_DIR").map(PathBuf::from) else { return ExitCode::FAILURE };
    println!("cargo:rerun-if-changed=bpf");
    println!("cargo:rerun-if-env-changed=CLANG");
    for program in PROGRAMS {
        if let Err(why) = build(program, &out) {
            eprintln!("bpf/{program}.bpf.c: {why}");
            eprintln!("clang and the headers of libbpf build it: Debian's clang and libbpf-dev");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn build(program: &str, out: &Path) -> Result<(), String> {
    let clang = env::var_os("CLANG").unwrap_or_else(|| "clang".into());
    let mut command = Command::new(&clang);
    command.args(["-target", "bpf", "-O2", "-g", "-std=gnu11", "-Wall", "-Wextra", "-Werror"]);
    command.args(["-Wno-unused-parameter", "-c"]);
    // Debian has the kernel's asm headers in a directory named after the machine, which this target
    // does not have.
    if let (Ok(arch), Ok(env)) =
        (env::var("CARGO_CFG_TARGET_ARCH"), env::var("CARGO_CFG_TARGET_ENV"))
    {
        command.arg(format!("-I/usr/include/{arch}-linux-{env}"));
        command.arg(format!("-D__TARGET_ARCH_{}", if arch == "x86_64" { "x86" } else { "arm64" }));
    }
    command.arg(format!("bpf/{program}.bpf.c"));
    command.arg("-o").arg(out.join(format!("{program}.bpf.o")));
    match command.status() {
        Err(error) => Err(format!("{}: {error}", Path::new(&clang).display())),
        Ok(status) if !status.success() => Err(format!("clang: {status}")),
        Ok(_) => Ok(()),
    }
}
