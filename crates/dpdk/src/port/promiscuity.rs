// SPDX-License-Identifier: BSD-3-Clause
//! Promiscuous mode of a port on a kernel interface, which ends with the process.
//!
//! net_af_packet and net_af_xdp set a flag of the interface (`IFF_PROMISC`), which stays set when
//! they are closed or their process is killed. Instead, a packet socket requests the mode here
//! (`PACKET_MR_PROMISC`, see packet(7)); the kernel ends it however the socket is closed. The flag
//! is restored after the driver has changed it. All of this happens under the lock of ports.

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Mutex;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::driver::Driver;
use super::id::PortId;
use super::info::{self, PortInfo};
use crate::mutex::locked;

/// The sockets that keep ports promiscuous.
static HELD: Mutex<Vec<(PortId, OwnedFd)>> = Mutex::new(Vec::new());

/// The flag of a port's interface before a call in which its driver may change it.
#[derive(Debug)]
pub(super) struct Flag {
    id: PortId,
    interface: u32,
    was_set: bool,
}

impl Flag {
    /// `None` if the port's driver changes no flag, or if its interface is unknown.
    pub(super) fn of(id: PortId) -> Option<Self> {
        let info = info::query(id).ok()?;
        // SAFETY: the driver has just filled it in.
        let known = unsafe { PortInfo::from_dpdk(&info) };
        let interface = info.if_index;
        if interface == 0 || !Driver::of_port(&known.driver).sets_promiscuous_flag {
            return None;
        }
        let was_set = host::interface_by_number(interface, None).ok()??.is_promiscuous;
        Some(Self { id, interface, was_set })
    }

    /// Called after the driver: if DPDK has the mode on, requests it by a socket; if not, closes
    /// that socket. Then restores the flag. If the kernel refuses, the port stays as the driver has
    /// left it.
    pub(super) fn restore(self) {
        // SAFETY: control functions take any port number.
        if unsafe { dpdk_sys::rte_eth_promiscuous_get(self.id.0) } == 1 {
            let mut held = locked(&HELD);
            if !held.iter().any(|(port, _)| *port == self.id) {
                let Ok(socket) = promiscuous_socket(self.interface) else { return };
                held.push((self.id, socket));
            }
        } else {
            release(self.id);
        }
        let now = host::interface_by_number(self.interface, None);
        if now.is_ok_and(|now| now.is_some_and(|now| now.is_promiscuous != self.was_set)) {
            let _ = host::set_promiscuous(self.interface, self.was_set);
        }
    }
}

/// Ends the mode of a port that is closed.
pub(super) fn release(id: PortId) {
    locked(&HELD).retain(|(port, _)| *port != id);
}

/// Opens a socket that receives nothing itself and makes the interface receive frames for other
/// addresses.
fn promiscuous_socket(interface: u32) -> io::Result<OwnedFd> {
    let socket = socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    let request = libc::packet_mreq {
        mr_ifindex: i32::try_from(interface).map_err(io::Error::other)?,
        mr_type: libc::PACKET_MR_PROMISC as u16,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    // SAFETY: the kernel reads a value of that size during the call.
    let code = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_ADD_MEMBERSHIP,
            (&raw const request).cast(),
            mem::size_of_val(&request) as libc::socklen_t,
        )
    };
    if code < 0 { Err(io::Error::last_os_error()) } else { Ok(socket) }
}
