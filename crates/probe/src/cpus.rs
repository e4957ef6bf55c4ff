// SPDX-License-Identifier: BSD-3-Clause
//! Keeping the probe's own thread off the CPUs of the program's lcores.

use std::mem;

use libc::{CPU_SETSIZE, cpu_set_t};

use crate::dpdk::{Dpdk, ROLE_OFF};

/// More lcores than any release has; ids beyond a release's maximum are `ROLE_OFF`.
const LCORES: u32 = 1024;

fn cpus(set: &cpu_set_t) -> impl Iterator<Item = usize> {
    // SAFETY: every CPU below CPU_SETSIZE is in the set's range.
    (0..CPU_SETSIZE as usize).filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, set) })
}

/// Moves the calling thread to those CPUs of `allowed` that belong to no lcore; does nothing if
/// there are none.
pub fn leave_lcores(dpdk: &Dpdk, allowed: &[usize]) {
    // SAFETY: a set of integers, empty; the CPUs are those of such a set.
    let mut free = unsafe {
        let mut free: cpu_set_t = mem::zeroed();
        allowed.iter().for_each(|cpu| libc::CPU_SET(*cpu, &mut free));
        free
    };
    for lcore in 0..LCORES {
        // SAFETY: both answer for any number once EAL has started.
        let taken = unsafe {
            if (dpdk.lcore_role)(lcore) == ROLE_OFF {
                continue;
            }
            (dpdk.lcore_cpuset)(lcore)
        };
        for cpu in cpus(&taken) {
            // SAFETY: `cpu` is in the set's range.
            unsafe { libc::CPU_CLR(cpu, &mut free) };
        }
    }
    if cpus(&free).next().is_some() {
        // SAFETY: a set of integers of that size. That it may fail does no harm.
        unsafe { libc::sched_setaffinity(0, size_of::<cpu_set_t>(), &free) };
    }
}
