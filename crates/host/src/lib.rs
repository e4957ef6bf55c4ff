// SPDX-License-Identifier: BSD-3-Clause
//! What a program asks the kernel about itself and others: the CPUs that it may use, signals that it was
//! started to ignore, processes that are gone, sockets that nobody serves, network interfaces, memory, capabilities; the
//! files that it writes for others, its run-time directory, and its standard output.
#![forbid(unsafe_code)]

pub mod console;
pub mod files;
mod interface;
mod namespace;
mod netdev;
mod netlink;
mod packet_sockets;
mod privileges;
mod runtime;
mod sandbox;
mod socket_users;
mod sockets;

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

pub use interface::{
    Interface, has_interface, interface, interface_by_number, receive_queues, set_promiscuous,
    set_up,
};
pub use namespace::enter_network_namespace;
pub use netdev::queue_has_af_xdp;
pub use packet_sockets::widen_packet_sockets;
pub use privileges::keep_capabilities_for_ports;
pub use runtime::{make_runtime_directory, runtime_directory};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
pub use sandbox::{Paths, confine_paths, deny_system_calls};
pub use socket_users::SocketUsers;
pub use sockets::own_sockets;

/// The CPUs that the calling thread may run on, in ascending order; none if the kernel does not
/// report them.
#[must_use]
pub fn allowed_cpus() -> Vec<usize> {
    let set = sched_getaffinity(None).unwrap_or_default();
    (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect()
}

/// Lets the calling thread run on these CPUs only.
///
/// # Errors
/// The system's: none of them is allowed, for example.
pub fn run_on(cpus: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    cpus.iter().filter(|cpu| **cpu < CpuSet::MAX_CPU).for_each(|cpu| set.set(*cpu));
    Ok(sched_setaffinity(None, &set)?)
}

/// Bytes of a page of memory.
#[must_use]
pub fn page_size() -> usize {
    rustix::param::page_size()
}

/// Bytes of memory that may be used before the kernel must swap or kill programs; none if it does
/// not report them.
#[must_use]
pub fn available_memory() -> Option<u64> {
    read_available(&fs::read_to_string("/proc/meminfo").ok()?)
}

fn read_available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Returns true if the process ignores the signal with this number, as its parent may have set
/// (nohup does so for SIGHUP). `false` without `/proc`.
#[must_use]
pub fn ignores_signal(signal: i32) -> bool {
    is_ignored(&fs::read_to_string("/proc/self/status").unwrap_or_default(), signal)
}

/// Returns true if the text of /proc/self/status lists the signal as ignored.
fn is_ignored(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

/// The effective capabilities of the process, among those that are needed to open network devices:
/// names as in capabilities(7). None without `/proc`.
#[must_use]
pub fn network_capabilities() -> Vec<&'static str> {
    read_capabilities(&fs::read_to_string("/proc/self/status").unwrap_or_default())
}

/// The same, from the text of /proc/self/status.
fn read_capabilities(status: &str) -> Vec<&'static str> {
    const NUMBERS: [(&str, u32); 3] =
        [("CAP_NET_ADMIN", 12), ("CAP_NET_RAW", 13), ("CAP_SYS_ADMIN", 21)];
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    let held = NUMBERS.into_iter().filter(|(_, number)| mask >> number & 1 == 1);
    held.map(|(name, _)| name).collect()
}

/// Returns true if no process has that ID (in this PID namespace; processes of others are not
/// seen).
#[must_use]
pub fn is_gone(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    // A process that may not be signalled exists.
    pid.is_none_or(|pid| test_kill_process(pid) == Err(Errno::SRCH))
}

/// Returns true if the process has root's rights over files, by its effective user.
#[must_use]
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The ID of the process's effective user.
#[must_use]
pub fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Returns true if a process has a socket open at that path, or if that cannot be found out. Does
/// not disturb that process.
#[must_use]
pub fn is_served(path: &Path) -> bool {
    // A datagram socket neither waits nor appears as a connection to a running server: that has
    // another type, so the connection is refused for another reason.
    let connect = || UnixDatagram::unbound()?.connect(path);
    !connect().is_err_and(|error| {
        matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::NotFound)
    })
}

/// Returns true if the path is a socket, not a link to one, that no process has open.
#[must_use]
pub fn is_stale_socket(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.file_type().is_socket()) && !is_served(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    #[test]
    fn cpus_are_those_of_the_kernels_list() {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
        let mut listed = Vec::new();
        for range in list.trim().split(',') {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            listed.extend(first.parse::<usize>().unwrap()..=last.parse().unwrap());
        }
        assert_eq!(allowed_cpus(), listed);
    }

    #[test]
    fn available_memory_is_what_the_kernel_says() {
        assert!(available_memory().is_some_and(|bytes| bytes > 1 << 20));
        let told = "MemTotal:  24684000 kB\nMemAvailable:   24100 kB\n";
        assert_eq!(read_available(told), Some(24100 << 10));
        for unread in ["", "MemTotal: 1 kB", "MemAvailable: x kB", "MemAvailable: 7"] {
            assert_eq!(read_available(unread), None, "{unread}");
        }
    }

    #[test]
    fn ignored_signals_are_found() {
        assert!(is_ignored("SigIgn:\t0000000000000001\n", 1));
        assert!(is_ignored("Name:\tx\nSigIgn:\t0000000000001006\n", 2));
        assert!(!is_ignored("SigBlk:\t0000000000000001\nSigIgn:\t0000000000001006\n", 1));
        assert!(!is_ignored("", 1));
    }

    #[test]
    fn capabilities_are_those_in_effect() {
        let all = ["CAP_NET_ADMIN", "CAP_NET_RAW", "CAP_SYS_ADMIN"];
        assert_eq!(read_capabilities("CapEff:\t000001ffffffffff\n"), all);
        let only = "CapPrm:\t000001ffffffffff\nCapEff:\t0000000000002000\n";
        assert_eq!(read_capabilities(only), ["CAP_NET_RAW"]);
        for none in ["", "CapEff:\t0000000000000000\n", "CapEff:\tx\n", "CapPrm:\t2000\n"] {
            assert!(read_capabilities(none).is_empty(), "{none}");
        }
    }

    #[test]
    fn a_process_is_gone_when_nobody_has_its_number() {
        assert!(!is_gone(std::process::id()));
        assert!(!is_gone(1));
        // Larger than the kernel's limit, larger than a PID can be, and the ID that means every
        // process of a group.
        assert!(is_gone(1 << 23));
        assert!(is_gone(u32::MAX));
        assert!(is_gone(0));
    }

    #[test]
    fn only_a_socket_without_a_process_is_stale() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name| dir.path().join(name);
        let socket = path("s");
        assert!(!is_served(&socket) && !is_stale_socket(&socket), "nothing is there");
        let listener = UnixListener::bind(&socket).unwrap();
        assert!(is_served(&socket) && !is_stale_socket(&socket));
        drop(listener);
        assert!(!is_served(&socket) && is_stale_socket(&socket));
        let datagrams = path("d");
        let bound = UnixDatagram::bind(&datagrams).unwrap();
        assert!(is_served(&datagrams));
        drop(bound);
        assert!(is_stale_socket(&datagrams));
        fs::write(path("f"), "").unwrap();
        assert!(!is_stale_socket(&path("f")));
        symlink(&socket, path("l")).unwrap();
        assert!(!is_stale_socket(&path("l")));
    }
}
