// SPDX-License-Identifier: BSD-3-Clause
//! The CPUs of threads.

use std::io;

use rustix::thread::{CpuSet, sched_setaffinity};

/// CPUs that this process may use.
pub(crate) fn allowed() -> Vec<u32> {
    host::allowed_cpus().into_iter().map(|cpu| cpu as u32).collect()
}

/// Pins the calling thread to one CPU.
pub(crate) fn pin(cpu: u32) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu as usize);
    sched_setaffinity(None, &set).map_err(io::Error::from)
}
