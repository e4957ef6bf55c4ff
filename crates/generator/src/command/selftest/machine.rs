// SPDX-License-Identifier: BSD-3-Clause
//! Properties of the machine, and the engine's share of its CPU.

use std::fs;
use std::time::Instant;

use dpdk::Eal;

use super::{Bed, Results};
use crate::start;

/// Prints the properties that results depend on.
pub fn tell(eal: &Eal, bed: &Bed<'_>, results: &mut Results) {
    let settings = &bed.rules.settings;
    let cost = settings.clock_cost as f64 * 1e9 / settings.hz.max(1) as f64;
    results.tell(&format!(
        "TSC {:.3} GHz; reading it takes {} cycles ({cost:.1} ns), which are subtracted from latencies",
        settings.hz as f64 / 1e9,
        settings.clock_cost
    ));
    let cpus: Vec<String> = host::allowed_cpus().iter().map(usize::to_string).collect();
    results.tell(&format!(
        "{} lcores; this thread may use CPU {}",
        eal.lcores().len(),
        cpus.join(",")
    ));
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    results.tell(&match start::free_huge_kb(&memory) {
        0 => "no free huge pages: pools lie in small pages, which costs speed".to_owned(),
        kb => format!("{} MiB in free huge pages", kb >> 10),
    });
    results.tell(&format!("port {}", bed.location));
}

/// The main lcore's share of a CPU's time.
pub struct CpuShare {
    since: Instant,
    before: Option<u64>,
}

impl CpuShare {
    /// Starts now.
    pub fn start() -> Self {
        CpuShare { since: Instant::now(), before: on_cpu_ns() }
    }

    /// The share so far, from 0 to 1; none if the kernel does not report it.
    pub fn get(&self) -> Option<f64> {
        let passed = self.since.elapsed().as_nanos() as f64;
        let ran = on_cpu_ns()?.saturating_sub(self.before?) as f64;
        (passed > 0.0).then(|| (ran / passed).min(1.0))
    }
}

/// Nanoseconds that the process's first thread, which is the main lcore, has run.
fn on_cpu_ns() -> Option<u64> {
    first_number(&fs::read_to_string("/proc/self/schedstat").ok()?)
}

fn first_number(text: &str) -> Option<u64> {
    text.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_s_line_is_read() {
        assert_eq!(first_number("123456 78 9\n"), Some(123_456));
        assert_eq!(first_number(""), None);
    }
}
