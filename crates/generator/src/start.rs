// SPDX-License-Identifier: BSD-3-Clause
//! The EAL options that are chosen when none are given.

use std::fs;

use crate::stale;

/// Memory for packets without huge pages, in MiB: enough for 16 ports.
const MEMORY_MB: u32 = 512;
/// Least free huge-page memory, in KiB, with which huge pages are used.
const LEAST_HUGE_KB: u64 = 256 << 10;

/// Why no EAL options could be chosen.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The kernel does not say on which CPUs the process may run.
    #[error(
        "the kernel names no CPU that this process may use; give EAL options: generator -l CPU ... --"
    )]
    NoCpu,
}

/// EAL options for this process on this machine, with `program` in front.
///
/// # Errors
/// [`StartError`].
pub fn eal_arguments(program: &str) -> Result<Vec<String>, StartError> {
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let cpu = *host::allowed_cpus().first().ok_or(StartError::NoCpu)?;
    let mut arguments =
        vec![program.to_owned(), "-l".to_owned(), cpu.to_string(), "--no-pci".to_owned()];
    arguments.push("--file-prefix".to_owned());
    arguments.push(format!("{}{}", stale::PREFIX, std::process::id()));
    if free_huge_kb(&memory) >= LEAST_HUGE_KB {
        // vhost ports need one file for all segments.
        arguments.extend(["--in-memory", "--single-file-segments"].map(str::to_owned));
    } else {
        arguments.extend(["--no-huge", "--no-shconf", "-m"].map(str::to_owned));
        arguments.push(MEMORY_MB.to_string());
    }
    Ok(arguments)
}

/// KiB in free huge pages of the default size, from the text of /proc/meminfo.
fn free_huge_kb(meminfo: &str) -> u64 {
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
    fn each_process_has_its_own_prefix() {
        let arguments = eal_arguments("g").unwrap();
        assert_eq!(arguments[0], "g");
        assert!(arguments.contains(&format!("generator-{}", std::process::id())));
    }
}
