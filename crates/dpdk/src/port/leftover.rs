// SPDX-License-Identifier: BSD-3-Clause
//! Sockets that a driver leaves open when its port is closed.
//!
//! net_af_xdp of DPDK 22.11 counts the users of a queue's memory wrongly and does not close the
//! AF_XDP socket that the memory belongs to. The kernel then refuses to bind another socket to that
//! queue of the interface, as long as the process lives. So the sockets that a port's queues open
//! are recorded, and closed after the port if they are still open. All functions are called under
//! the lock of ports.

use std::fs;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use rustix::net::{AddressFamily, sockopt};

use super::id::PortId;
use crate::mutex::locked;

/// Open files of the calling thread: links, which name a socket by its number in the kernel.
const OPEN: &str = "/proc/thread-self/fd";

/// An open AF_XDP socket; its name is unique for ever.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Socket {
    fd: RawFd,
    name: PathBuf,
}

/// The sockets that came with ports which are not closed yet.
static NOTED: Mutex<Vec<(PortId, Socket)>> = Mutex::new(Vec::new());

/// The AF_XDP sockets that are open.
pub(super) fn open() -> Vec<Socket> {
    let numbers = fs::read_dir(OPEN).into_iter().flatten().flatten();
    numbers.filter_map(|entry| Socket::of(entry.file_name().to_str()?.parse().ok()?)).collect()
}

/// Records the socket that a queue of the port has opened, if any: `before` were open earlier.
pub(super) fn note(id: PortId, before: &[Socket]) {
    let mut new = open();
    new.retain(|socket| !before.contains(socket));
    // If there are several new ones, another thread may have opened some of them.
    if let [socket] = new.as_slice() {
        locked(&NOTED).push((id, socket.clone()));
    }
}

/// Closes the port's sockets that its driver has left open.
pub(super) fn close(id: PortId) {
    let mut noted = locked(&NOTED);
    let (of_port, others): (Vec<_>, Vec<_>) = noted.drain(..).partition(|(port, _)| *port == id);
    *noted = others;
    for (_, socket) in of_port {
        if Socket::of(socket.fd).as_ref() == Some(&socket) {
            // SAFETY: it is the socket that the driver made for this port and has forgotten.
            drop(unsafe { OwnedFd::from_raw_fd(socket.fd) });
        }
    }
}

impl Socket {
    fn of(fd: RawFd) -> Option<Self> {
        let name = fs::read_link(Path::new(OPEN).join(fd.to_string())).ok()?;
        if !name.to_str()?.starts_with("socket:") {
            return None;
        }
        // SAFETY: it was open a moment ago; if it is not any more, the kernel returns an error.
        let domain = sockopt::socket_domain(unsafe { BorrowedFd::borrow_raw(fd) }).ok()?;
        (domain == AddressFamily::XDP).then_some(Self { fd, name })
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::{AsRawFd, IntoRawFd};

    use rustix::net::{SocketType, socket};

    use super::*;

    #[test]
    fn a_socket_that_is_left_open_is_closed_once() {
        let (mine, other) = (PortId(7), PortId(8));
        let new = || socket(AddressFamily::XDP, SocketType::RAW, None);
        let Ok(kept) = new() else {
            println!("skipped: no AF_XDP socket can be made (it takes CAP_NET_RAW)");
            return;
        };
        let before = open();
        let left = new().unwrap().into_raw_fd();
        note(mine, &before);
        close(other);
        assert!(Socket::of(left).is_some());
        close(mine);
        assert!(Socket::of(left).is_none());
        assert!(Socket::of(kept.as_raw_fd()).is_some());
        // The driver has closed its own, and another may have its number.
        let before = open();
        let closed = new().unwrap();
        note(mine, &before);
        drop(closed);
        let again = new().unwrap();
        close(mine);
        assert!(Socket::of(again.as_raw_fd()).is_some());
        // If there are two, it is not known which one is the driver's.
        let before = open();
        let two = [new().unwrap(), new().unwrap()];
        note(mine, &before);
        close(mine);
        assert!(two.iter().all(|socket| Socket::of(socket.as_raw_fd()).is_some()));
    }
}
