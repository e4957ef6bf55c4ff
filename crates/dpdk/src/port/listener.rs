// SPDX-License-Identifier: BSD-3-Clause
//! The socket on which a device listens (net_memif's servers), and the peers that came by it.
//!
//! With the last device of a socket the driver frees what its handlers on DPDK's interrupt thread use, and keeps the
//! handlers: that of the listening socket, and those of peers that no device has taken. Whoever connected, or sent a
//! message, would have that thread use freed memory. So before the device goes the descriptors are made to be of something that never happens. (To close
//! them would be wrong: DPDK goes on waiting for them by their numbers.) Whoever calls this holds that thread.

use std::ffi::CStr;
use std::fs;
use std::mem::ManuallyDrop;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};

use dpdk_sys::rte_eth_dev_info;
use rustix::event::{EventfdFlags, eventfd};
use rustix::net::{SocketAddrUnix, getsockname};

use super::driver::Driver;
use super::id::{PortId, valid_ports};
use super::info;

/// Open files of the calling thread. (What the kernel lists of all sockets may lack one, while others come and go.)
const OPEN: &str = "/proc/thread-self/fd";

/// Where the device of a port listens, if no other port's does so there.
fn last_at(id: PortId) -> Option<String> {
    let listens_at = |port| place(&info::query(port).ok()?);
    let place = listens_at(id)?;
    let mut others = valid_ports().into_iter().filter(|other| *other != id);
    others.all(|other| listens_at(other).as_ref() != Some(&place)).then_some(place)
}

fn place(info: &rte_eth_dev_info) -> Option<String> {
    // SAFETY: a device that DPDK knows; its arguments, if it has any, are a C string that lives as long as it does.
    let arguments = unsafe {
        let arguments = dpdk_sys::rte_dev_devargs(info.device).as_ref()?.__bindgen_anon_1.args;
        if arguments.is_null() {
            return None;
        }
        CStr::from_ptr(arguments)
    };
    (Driver::of_info(info).listens_at)(&arguments.to_string_lossy())
}

/// Has nothing happen any more where the device of a port listens, if no other port's does so there. Its peers see that
/// the connection has ended.
pub(super) fn silence(id: PortId) {
    let Some(place) = last_at(id) else { return };
    let Ok(nothing) = eventfd(0, EventfdFlags::CLOEXEC) else { return };
    // Connections have the name of the socket by which they came.
    for entry in fs::read_dir(OPEN).into_iter().flatten().flatten() {
        let fd = entry.file_name().to_str().and_then(|name| name.parse().ok());
        if let Some(fd) = fd.filter(|fd| name_of(*fd).as_deref() == Some(place.as_bytes())) {
            replace(fd, &nothing);
        }
    }
}

/// The name of a socket with one: a path, or an abstract name behind an `@`.
fn name_of(fd: RawFd) -> Option<Vec<u8>> {
    // SAFETY: it was open a moment ago; if it is not any more, the kernel says so.
    let address = getsockname(unsafe { BorrowedFd::borrow_raw(fd) }).ok()?;
    let address = SocketAddrUnix::try_from(address).ok()?;
    if let Some(name) = address.abstract_name() {
        return Some([b"@", without_zeros(name)].concat());
    }
    address.path_bytes().map(<[u8]>::to_vec)
}

/// Drivers may give the whole of the place that there is for a name.
fn without_zeros(name: &[u8]) -> &[u8] {
    let zeros = name.iter().rev().take_while(|byte| **byte == 0).count();
    &name[..name.len() - zeros]
}

fn replace(fd: RawFd, by: &OwnedFd) {
    // SAFETY: the driver has opened it and will not close it, and nobody else uses it; nor is it closed here.
    let mut target = ManuallyDrop::new(unsafe { OwnedFd::from_raw_fd(fd) });
    let _ = rustix::io::dup2(by, &mut target);
}
