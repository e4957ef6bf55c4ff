// SPDX-License-Identifier: BSD-3-Clause
//! What some drivers would do to memory when they send, kept from them.
//!
//! - net_af_xdp copies as many bytes as a packet has out of its first segment into one buffer of the pool that its queue
//!   receives into, without a look at either's length, and of that pool sends any mbuf in place, also one whose bytes are
//!   another's.
//! - net_af_packet puts VLAN tags in after it has found that a packet fits into its slot.
//!
//! On their ports packets are brought into a form in which that does no harm, behind the callbacks, which may change them.
//! Other ports do not pay for it: each transmit queue of these has a callback in DPDK's list that does nothing, so that
//! [`send`](super::TxQueue::send), which looks there anyway, comes by.

use std::ffi::c_void;

use dpdk_sys::{layout, rte_eth_dev_info, rte_mbuf};

use super::callback::{Direction, Packets, Registry};
use super::config::PortConfig;
use super::error::PortError;
use super::id::PortId;
use crate::mbuf::Mbuf;
use crate::mempool::Mempool;

/// Bytes before which a VLAN tag is put in: those of the addresses.
const ADDRESSES: usize = 12;
/// A tag: its EtherType (802.1Q) and the control information.
const TAG: usize = 4;
const ETHERTYPE_TAG: [u8; 2] = [0x81, 0];

/// How packets are to be before a port's driver gets them.
#[derive(Clone, Copy, Debug)]
pub(super) enum TxGuard<'eal> {
    /// With the tag that they ask for among their bytes.
    Tagged,
    /// Of one segment that is its own, and of no more than `most` bytes.
    Whole {
        /// To copy into what is of several segments or of others' bytes.
        pool: Mempool<'eal>,
        most: usize,
    },
}

impl<'eal> TxGuard<'eal> {
    /// `None` for drivers that need none.
    pub fn of(driver: &str, info: &rte_eth_dev_info, config: &PortConfig<'eal>) -> Option<Self> {
        match driver {
            "net_af_packet" => Some(Self::Tagged),
            "net_af_xdp" => {
                let rooms = config.rx.iter().map(|queue| queue.pool.data_room());
                let room = rooms.min().unwrap_or(0).saturating_sub(layout::PKTMBUF_HEADROOM);
                let most = usize::from(room).min(info.max_rx_pktlen as usize);
                // The driver takes no queue that sends without one that receives.
                config.rx.first().map(|queue| Self::Whole { pool: queue.pool, most })
            }
            _ => None,
        }
    }

    /// Has all that is sent on the first `queues` queues of a port come by, until `sentinels` are removed.
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

    /// Frees the packets that cannot be made to fit. One that a driver does not take comes by again.
    #[cold]
    pub fn check(&self, packets: &mut Packets<'_, 'eal>) {
        packets.retain(|mbuf| match self {
            Self::Tagged => put_tag_in(mbuf).is_some(),
            Self::Whole { pool, most } => make_whole(mbuf, pool, *most),
        });
    }
}

/// Does nothing, in a list that would be empty otherwise.
unsafe extern "C" fn sentinel(
    _port: u16,
    _queue: u16,
    _first: *mut *mut rte_mbuf,
    offered: u16,
    _nothing: *mut c_void,
) -> u16 {
    offered
}

/// As `rte_vlan_insert`; `None` for a packet whose first segment is shared, too short, or has no headroom.
fn put_tag_in(mbuf: &mut Mbuf<'_>) -> Option<()> {
    let Some(tag) = mbuf.inserted_vlan() else { return Some(()) };
    mbuf.header::<ADDRESSES>()?;
    mbuf.prepend(TAG)?;
    mbuf.insert_vlan(None);
    let head = mbuf.header_mut::<{ ADDRESSES + TAG }>()?;
    head.copy_within(TAG.., 0);
    head[ADDRESSES..ADDRESSES + 2].copy_from_slice(&ETHERTYPE_TAG);
    head[ADDRESSES + 2..].copy_from_slice(&tag.to_be_bytes());
    Some(())
}

fn make_whole<'eal>(mbuf: &mut Mbuf<'eal>, pool: &Mempool<'eal>, most: usize) -> bool {
    if mbuf.packet_len() > most {
        return false;
    }
    if mbuf.segments() == 1 && mbuf.is_of_own_buffer() {
        return true;
    }
    match mbuf.copy_into(pool) {
        Ok(copy) => {
            *mbuf = copy;
            true
        }
        Err(_) => false,
    }
}
