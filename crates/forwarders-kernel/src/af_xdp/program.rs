// SPDX-License-Identifier: BSD-3-Clause
//! The XDP program on a port that passes frames to sockets.

use std::os::fd::AsFd as _;

use libbpf_rs::{MapCore as _, MapFlags, Object};

use super::lanes::OpenError;
use super::socket::XdpSocket;
use crate::interface::Port;
use crate::xdp::{Attached, Mode, load, map, number, opened, program};

const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/to_socket.bpf.o"));
/// Queues that the program's map has room for.
pub(super) const MAX_QUEUES: u32 = 64;

/// It is detached from the interface when this is dropped.
pub(super) struct PortProgram {
    object: Object,
    attached: Attached,
}

impl PortProgram {
    /// Attaches it to a port; frames go to the kernel until a queue has a socket.
    pub(super) fn start(port: &Port, mode: Option<Mode>) -> Result<Self, OpenError> {
        let object = load(opened(OBJECT, None)?)?;
        let attached = Attached::new(program(&object, "to_socket")?.as_fd(), port, mode)?;
        Ok(Self { object, attached })
    }

    /// Describes its mode.
    pub(super) fn told(&self) -> String {
        self.attached.told()
    }

    /// Frames of queues without a socket, which went to the kernel's stack.
    pub(super) fn unpolled(&self) -> Option<u64> {
        let map = map(&self.object, "unpolled").ok()?;
        let values = map.lookup_percpu(&0u32.to_ne_bytes(), MapFlags::ANY).ok()??;
        let number =
            |bytes: &Vec<u8>| bytes.first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
        Some(values.iter().map(number).sum())
    }

    /// Passes the frames of a queue to a socket from now on.
    pub(super) fn give(&self, queue: u32, socket: &XdpSocket) -> Result<(), OpenError> {
        Ok(number(&map(&self.object, "sockets")?, queue, socket.raw() as u32)?)
    }
}
