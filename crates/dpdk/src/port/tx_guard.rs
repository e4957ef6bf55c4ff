// SPDX-License-Identifier: BSD-3-Clause
//! Guards against drivers that corrupt memory on transmit.
//!
//! Packets for these drivers are changed first, so that they are safe to send.
//! [`driver`](super::driver) says which drivers need which guard, and why.
//!
//! The guard comes after the callbacks, which may change packets. Every
//! [`send`](super::TxQueue::send) reads DPDK's list of callbacks anyway. Queues of these drivers
//! have an entry there that does nothing, and `send` looks for a guard only if the list is not
//! empty: other drivers pay nothing.

use std::ffi::c_void;

use dpdk_sys::{layout, rte_mbuf};

use super::callback::{Direction, Packets, Registry};
use super::error::PortError;
use super::id::PortId;
use crate::mbuf::Mbuf;
use crate::mempool::Mempool;

/// Bytes before an inserted VLAN tag: the two MAC addresses.
const ADDRESSES: usize = 12;
/// A tag: its EtherType (802.1Q) and the control information.
const TAG: usize = 4;
const ETHERTYPE_TAG: [u8; 2] = [0x81, 0];

/// The change to packets before a port's driver gets them.
#[derive(Clone, Copy, Debug)]
pub(super) enum TxGuard<'eal> {
    /// A requested VLAN tag is inserted into the packet's bytes.
    InsertVlan,
    /// Packets of several segments, and packets whose bytes are not in their own buffer, are
    /// copied. Longer packets are freed.
    OneSegment {
        /// The pool to copy into.
        pool: Mempool<'eal>,
        /// Bytes of the longest packet.
        max_len: usize,
    },
    /// Packets with segments from several pools, with external buffers, or with data in the headroom are copied.
    OnePool {
        /// The pool to copy into; `None` for a port that does not receive, which frees such
        /// packets.
        pool: Option<Mempool<'eal>>,
    },
}

impl<'eal> TxGuard<'eal> {
    /// Makes all packets sent on the first `queues` queues of a port pass the guard, until
    /// `sentinels` are removed.
    ///
    /// # Safety
    /// The port has these queues, and nobody uses them.
    ///
    /// # Errors
    /// [`PortError::Call`]: `ENOMEM`, or `ENOTSUP` of a DPDK that was built without callbacks.
    pub unsafe fn post(port: PortId, queues: u16, sentinels: &Registry) -> Result<(), PortError> {
        for queue in 0..queues {
            // SAFETY: the contract is the caller's; the function does not look at its argument.
            unsafe {
                sentinels.add(port.0, queue, Direction::Tx, (), |nothing| {
                    dpdk_sys::rte_eth_add_tx_callback(port.0, queue, Some(sentinel), nothing)
                })
            }?;
        }
        Ok(())
    }

    /// Changes packets as the driver needs them, and frees those that it could never send. Returns
    /// how many of the remaining packets, from the front, may be sent now; the others must be
    /// offered again, like packets that the driver does not take.
    pub fn check(&self, packets: &mut Packets<'_, 'eal>) -> usize {
        let (mut ready, mut goes_on) = (0, true);
        packets.retain(|mbuf| {
            let verdict = match self {
                _ if !goes_on => Verdict::NotNow,
                Self::InsertVlan => insert_vlan(mbuf).map_or(Verdict::Never, |()| Verdict::Ready),
                Self::OneSegment { max_len, .. } if mbuf.packet_len() > *max_len => Verdict::Never,
                Self::OneSegment { .. } if mbuf.segments() == 1 && mbuf.is_of_own_buffer() => {
                    Verdict::Ready
                }
                Self::OnePool { .. } if mbuf.is_of_one_pool() => Verdict::Ready,
                Self::OnePool { pool: None } => Verdict::Never,
                Self::OneSegment { pool, .. } | Self::OnePool { pool: Some(pool) } => {
                    copy(mbuf, pool)
                }
            };
            ready += usize::from(verdict == Verdict::Ready);
            goes_on = verdict != Verdict::NotNow;
            verdict != Verdict::Never
        });
        ready
    }

    /// Returns true if the driver frees sent packets only when it is called to send. It is then
    /// called even if no packet is ready, because it may hold all packets of the pool.
    pub fn is_called_for_nothing(&self) -> bool {
        matches!(self, Self::OneSegment { .. })
    }
}

/// The decision about a packet.
#[derive(PartialEq, Eq)]
enum Verdict {
    Ready,
    NotNow,
    Never,
}

/// Does nothing; it makes a list that would be empty non-empty.
unsafe extern "C" fn sentinel(
    _port: u16,
    _queue: u16,
    _first: *mut *mut rte_mbuf,
    offered: u16,
    _nothing: *mut c_void,
) -> u16 {
    offered
}

/// Does what `rte_vlan_insert` does; `None` for a packet whose first segment is shared, too short,
/// or has no headroom.
fn insert_vlan(mbuf: &mut Mbuf<'_>) -> Option<()> {
    let Some(tag) = mbuf.inserted_vlan() else { return Some(()) };
    let asked = mbuf.requested();
    mbuf.header::<ADDRESSES>()?;
    mbuf.prepend(TAG)?; // which takes back what it was asked for
    mbuf.insert_vlan(None);
    let head = mbuf.header_mut::<{ ADDRESSES + TAG }>()?;
    head.copy_within(TAG.., 0);
    head[ADDRESSES..ADDRESSES + 2].copy_from_slice(&ETHERTYPE_TAG);
    head[ADDRESSES + 2..].copy_from_slice(&tag.to_be_bytes());
    let Some(asked) = asked else { return Some(()) };
    mbuf.request(&asked.with_tag().ok()?).ok()
}

/// Replaces a packet that the driver cannot send by a copy, unless it is larger than the whole
/// pool.
fn copy<'eal>(mbuf: &mut Mbuf<'eal>, pool: &Mempool<'eal>) -> Verdict {
    match mbuf.copy_into(pool) {
        Ok(copy) => {
            *mbuf = copy;
            Verdict::Ready
        }
        Err(_) => {
            let room = usize::from(pool.data_room().saturating_sub(layout::PKTMBUF_HEADROOM));
            let all = pool.available() + pool.in_use();
            if mbuf.packet_len() > all * room { Verdict::Never } else { Verdict::NotNow }
        }
    }
}
