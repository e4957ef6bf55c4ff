// SPDX-License-Identifier: BSD-3-Clause
//! The memif devices of a command line: removes what a killed server left, and explains why a
//! client does not start.
//!
//! The sockets of DPDK's memif driver are named in the `--vdev` option of the device. A server
//! whose process was killed leaves its socket file behind, and the next one cannot bind to it. A
//! client without a server fails with `EPERM`, whatever the reason was.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

/// The driver's default socket.
const DEFAULT_SOCKET: &str = "/run/memif.sock";

/// A device of the memif driver.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Memif {
    /// Its name, such as `net_memif0`.
    pub name: String,
    /// True if it waits for a client; otherwise it is a client and its server must be started
    /// first.
    pub server: bool,
    /// The socket of the link.
    pub socket: PathBuf,
    /// True if that is an abstract socket, without a file.
    pub is_abstract: bool,
}

impl Memif {
    /// The memif devices among EAL's arguments.
    #[must_use]
    pub fn on_command_line(arguments: &[OsString]) -> Vec<Self> {
        let words: Vec<&OsStr> =
            arguments.iter().map(OsString::as_os_str).take_while(|word| *word != "--").collect();
        let separate =
            words.windows(2).filter(|pair| pair[0] == "--vdev").map(|pair| pair[1].as_bytes());
        let joined = words.iter().filter_map(|word| word.as_bytes().strip_prefix(b"--vdev="));
        separate.chain(joined).filter_map(Self::parse).collect()
    }

    /// Parses a device such as `net_memif0,role=server,socket=/run/x.sock,socket-abstract=no`.
    fn parse(device: &[u8]) -> Option<Self> {
        let mut words = device.split(|byte| *byte == b',');
        let name = std::str::from_utf8(words.next()?).ok()?;
        if !name.starts_with("net_memif") {
            return None;
        }
        let mut memif = Self {
            name: name.to_owned(),
            server: false,
            socket: PathBuf::from(DEFAULT_SOCKET),
            is_abstract: true,
        };
        for word in words {
            if let Some(role) = word.strip_prefix(b"role=") {
                memif.server = role == b"server" || role == b"master";
            } else if let Some(socket) = word.strip_prefix(b"socket=") {
                memif.socket = PathBuf::from(OsStr::from_bytes(socket));
            } else if let Some(answer) = word.strip_prefix(b"socket-abstract=") {
                memif.is_abstract = answer != b"no";
            }
        }
        Some(memif)
    }

    /// Removes the socket file of a server if no process has it open.
    pub fn remove_stale_socket(&self) {
        if self.server && !self.is_abstract && host::is_stale_socket(&self.socket) {
            let _ = fs::remove_file(&self.socket);
        }
    }

    /// Returns true if a process has the socket open; does not disturb that process.
    #[must_use]
    pub fn is_served(&self) -> bool {
        let name = self.socket.as_os_str().as_bytes();
        if self.is_abstract {
            // If the table cannot be read, a server is assumed.
            return fs::read("/proc/net/unix").map_or(true, |table| is_bound(&table, name));
        }
        host::is_served(&self.socket)
    }
}

/// Returns true if the kernel's table of sockets has an abstract one of that name in its last
/// column, with `@` for each NUL, both the first and those that pad the name.
fn is_bound(table: &[u8], name: &[u8]) -> bool {
    table.split(|byte| *byte == b'\n').any(|line| {
        let column = line.iter().position(|byte| *byte == b'@').map(|at| &line[at + 1..]);
        let rest = column.and_then(|column| column.strip_prefix(name));
        rest.is_some_and(|rest| rest.iter().all(|byte| *byte == b'@'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::linux::net::SocketAddrExt as _;
    use std::os::unix::net::{SocketAddr, UnixListener};

    fn devices(line: &str) -> Vec<Memif> {
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        Memif::on_command_line(&words)
    }

    #[test]
    fn devices_are_found_on_the_command_line() {
        let found = devices(
            "l2fwd -l 0 --vdev net_memif0,role=server,socket=/a/b,socket-abstract=no --vdev net_null0 \
             --vdev=net_memif1,id=1 -- --vdev net_memif2",
        );
        let memif = |name: &str, server, socket: &str, is_abstract| Memif {
            name: name.to_owned(),
            server,
            socket: PathBuf::from(socket),
            is_abstract,
        };
        assert_eq!(
            found,
            [
                memif("net_memif0", true, "/a/b", false),
                memif("net_memif1", false, DEFAULT_SOCKET, true),
            ]
        );
    }

    #[test]
    fn only_the_socket_of_a_server_that_is_gone_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("s");
        let memif = |server, is_abstract| Memif {
            name: "net_memif0".to_owned(),
            server,
            socket: socket.clone(),
            is_abstract,
        };
        assert!(!memif(false, false).is_served());
        let listener = UnixListener::bind(&socket).unwrap();
        assert!(memif(true, false).is_served());
        memif(true, false).remove_stale_socket();
        assert!(socket.exists());
        drop(listener);
        assert!(!memif(true, false).is_served());
        memif(true, true).remove_stale_socket();
        memif(false, false).remove_stale_socket();
        assert!(socket.exists());
        memif(true, false).remove_stale_socket();
        assert!(!socket.exists());
        fs::write(&socket, "a file of somebody's").unwrap();
        memif(true, false).remove_stale_socket();
        assert!(socket.exists());

        let address = SocketAddr::from_abstract_name(socket.as_os_str().as_bytes()).unwrap();
        assert!(!memif(false, true).is_served());
        let _listener = UnixListener::bind_addr(&address).unwrap();
        assert!(memif(false, true).is_served());
    }
}
