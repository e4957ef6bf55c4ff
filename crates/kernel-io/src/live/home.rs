// SPDX-License-Identifier: BSD-3-Clause
//! Where a program of live frames lives, so that its calls are short.
//!
//! The kernel has a table of the XDP programs that are attached anywhere, from which it calls them
//! directly. A program that is not in it is put there for each call of several frames and removed
//! afterwards, and each time the kernel waits until no CPU can be using the old table: 24 ms were seen.
//! So the program is attached, by a bpf_link that is not pinned, to the loopback interface of a network
//! namespace that nobody else is in and that goes with its descriptor.

use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::thread;

use crate::xdp::{Mode, create};

/// The loopback interface is the first of every namespace.
const LOOPBACK: u32 = 1;

/// The link and the namespace.
pub(super) struct Home {
    _link: OwnedFd,
    _namespace: File,
}

impl Home {
    pub(super) fn of(program: BorrowedFd<'_>) -> io::Result<Self> {
        // The thread takes the namespace with it when it ends, but for our descriptor.
        let made = thread::scope(|scope| scope.spawn(|| make(program)).join());
        made.unwrap_or_else(|_| Err(io::Error::other("the thread that makes it has panicked")))
    }
}

fn make(program: BorrowedFd<'_>) -> io::Result<Home> {
    // SAFETY: it concerns this thread alone, which has no sockets.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let namespace = File::open("/proc/thread-self/ns/net")?;
    let link = create(program, LOOPBACK, Mode::Generic)?;
    Ok(Home { _link: link, _namespace: namespace })
}
