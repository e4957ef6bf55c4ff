// SPDX-License-Identifier: BSD-3-Clause
//! PF_PACKET: the kernel's packet sockets, three ways.
//!
//! - [`Io::ReadWrite`]: one call to receive a frame, one to send it, as the published comparison of DPDK
//!   with PF_PACKET did.
//! - [`Io::Mmsg`]: up to 32 frames by one call of `recvmmsg` and one of `sendmmsg`.
//! - [`Io::Mmap`]: a TPACKET_V3 ring of blocks to receive and a TPACKET_V2 ring of frames to send, both
//!   shared with the kernel; frames are copied from one to the other.
//!
//! A port has one receiving socket for each of its queues. Every lane has a socket of its own for
//! sending, which receives nothing. Several queues of a port share its frames by a fanout group.

mod inbox;
mod lanes;
mod mapping;
mod message;
mod mmap;
mod mmsg;
mod options;
mod outbox;
mod read_write;
mod rx_ring;
mod socket;
mod tx_ring;
mod way;

pub use lanes::{Io, OpenError, Settings};
pub use options::Options;
pub use socket::Fanout;
pub(crate) use socket::PacketSocket;
pub(crate) use way::AfPacket;
