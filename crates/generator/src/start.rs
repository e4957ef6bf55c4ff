// SPDX-License-Identifier: BSD-3-Clause
//! Chooses EAL options if none are given.

use std::fs;
use std::path::PathBuf;

use crate::stale;

/// Memory for packets without huge pages, in MiB: enough for 16 ports.
const MEMORY_MB: u32 = 512;
/// Least free memory in huge pages, in KiB, with which they are used.
const LEAST_HUGE_KB: u64 = 256 << 10;

/// Why no EAL options could be chosen.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The kernel does not report on which CPUs the process may run.
    #[error(
        "the kernel names no CPU that this process may use; give EAL options: generator -l CPU ... --"
    )]
    NoCpu,
    /// The process may not use one of the requested CPUs.
    #[error("--cpus: the process may not use CPU {0}; it may use {1}")]
    Cpu(usize, String),
}

/// Returns EAL options for this process on this machine, after `program`: polling on these CPUs, or
/// on the first that the process may use.
///
/// # Errors
/// [`StartError`] if there is no CPU, or if one of `cpus` may not be used.
pub fn eal_arguments(program: &str, cpus: Option<&[usize]>) -> Result<Vec<String>, StartError> {
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let allowed = host::allowed_cpus();
    let first = *allowed.first().ok_or(StartError::NoCpu)?;
    let cpus = cpus.map_or(vec![first], <[usize]>::to_vec);
    if let Some(other) = cpus.iter().find(|cpu| !allowed.contains(cpu)) {
        let allowed: Vec<String> = allowed.iter().map(usize::to_string).collect();
        return Err(StartError::Cpu(*other, allowed.join(",")));
    }
    // As lcores 0, 1, ...: the first is the main one, whatever its CPU number.
    let lcores: Vec<String> =
        cpus.iter().enumerate().map(|(lcore, cpu)| format!("{lcore}@{cpu}")).collect();
    let mut arguments =
        vec![program.to_owned(), "--lcores".to_owned(), lcores.join(","), "--no-pci".to_owned()];
    arguments.extend(["--file-prefix".to_owned(), file_prefix()]);
    if free_huge_kb(&memory) >= LEAST_HUGE_KB {
        // vhost ports need one file for all segments.
        arguments.extend(["--in-memory", "--single-file-segments"].map(str::to_owned));
    } else {
        arguments.extend(["--no-huge", "--no-shconf", "-m"].map(str::to_owned));
        arguments.push(MEMORY_MB.to_string());
    }
    Ok(arguments)
}

/// The file prefix for this process.
fn file_prefix() -> String {
    format!("{}{}", stale::PREFIX, std::process::id())
}

/// The directory that EAL, with these options, will use for its run-time files (`eal_create_runtime_dir` in DPDK).
#[must_use]
pub fn runtime_dir() -> PathBuf {
    host::runtime_directory().join(file_prefix())
}

/// KiB in free huge pages of the default size, from the text of /proc/meminfo.
pub fn free_huge_kb(meminfo: &str) -> u64 {
    let field = |name| {
        let rest = meminfo.lines().find_map(|line: &str| line.strip_prefix(name))?;
        rest.split_whitespace().next()?.parse::<u64>().ok()
    };
    field("HugePages_Free:").unwrap_or(0) * field("Hugepagesize:").unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_pages_count_when_free() {
        assert_eq!(
            free_huge_kb(
                "HugePages_Total: 600\nHugePages_Free:      500\nHugepagesize:       2048 kB\n"
            ),
            1_024_000
        );
        assert_eq!(free_huge_kb(""), 0);
    }

    #[test]
    fn cpus_must_be_allowed() {
        let error = eal_arguments("g", Some(&[4095])).unwrap_err();
        assert!(error.to_string().starts_with("--cpus: the process may not use CPU 4095; it may"));
        let first = host::allowed_cpus()[0];
        let arguments = eal_arguments("g", Some(&[first])).unwrap();
        assert!(arguments.contains(&format!("0@{first}")));
    }

    #[test]
    fn each_process_has_its_own_prefix() {
        let arguments = eal_arguments("g", None).unwrap();
        assert_eq!(arguments[0], "g");
        assert!(arguments.contains(&format!("generator-{}", std::process::id())));
    }
}
