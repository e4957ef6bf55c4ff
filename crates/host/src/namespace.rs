// SPDX-License-Identifier: BSD-3-Clause
//! Network namespaces.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Where `ip netns` puts named namespaces.
const NAMED: &str = "/run/netns";

/// Moves the calling thread into a network namespace: one that `ip netns` has named, or a file such
/// as `/proc/PID/ns/net`. Sockets and threads that it creates from then on are there; existing ones
/// stay where they are.
///
/// # Errors
/// There is no such namespace, or the process may not enter it.
pub fn enter_network_namespace(name: &str) -> io::Result<()> {
    // A pipe would be waited for, past SIGTERM.
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let path = Path::new(NAMED).join(name);
    let file = OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path)?;
    move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_namespace_is_not_entered() {
        let missing = enter_network_namespace("no-such-namespace").unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        // A file, but not of a namespace.
        assert!(enter_network_namespace("/proc/self/status").is_err());
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RWXU,
            0,
        )
        .unwrap();
        // Without a writer.
        assert!(enter_network_namespace(pipe.to_str().unwrap()).is_err());
    }
}
