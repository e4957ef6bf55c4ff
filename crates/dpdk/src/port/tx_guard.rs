// SPDX-License-Identifier: BSD-3-Clause
//! What some drivers would do to memory when they send, kept from them.
//!
//! - net_af_xdp copies as many bytes as a packet has out of its first segment into one buffer of the pool that its queue
//!   receives into, without a look at either's length, and of that pool sends any mbuf in place, also one whose bytes are
//!   another's.
//! - net_af_packet puts VLAN tags in after it has found that a packet fits into its slot.
//! - net_vhost frees a packet that it cannot put a tag into, and gives it back as one that it has not taken.
//! - net_memif behind 22.11 copies segments whole where the pool of a packet's first says that they fit.
//!
//! On their ports packets are brought into a form in which that does no harm, behind the callbacks, which may change them.
//! Every [`send`](super::TxQueue::send) looks at DPDK's list of callbacks. Queues of these drivers have an entry there that
//! does nothing, and only where the list is not empty does `send` look for a guard: on other drivers it costs nothing.

use std::ffi::c_void;

use dpdk_sys::{layout, rte_eth_dev_info, rte_mbuf};

use super::callback::{Direction, Packets, Registry};
use super::config::PortConfig;
use super::error::PortError;
use super::id::PortId;
use crate::is_22;
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
    /// Of segments that are all of one pool, in their own buffers and as long as if there were headroom.
    Alike {
        /// To copy into what is of others; of a port that does not receive there is none.
        pool: Option<Mempool<'eal>>,
    },
}

impl<'eal> TxGuard<'eal> {
    /// `None` for drivers that need none.
    pub fn of(driver: &str, info: &rte_eth_dev_info, config: &PortConfig<'eal>) -> Option<Self> {
        match driver {
            "net_af_packet" | "net_vhost" => Some(Self::Tagged),
            "net_memif" if !is_22() => {
                Some(Self::Alike { pool: config.rx.first().map(|queue| queue.pool) })
            }
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

    /// Frees the packets that cannot be made to fit. How many of those that are left, from the front, may be sent now: the
    /// others come by again, as those do that the driver does not take.
    pub fn check(&self, packets: &mut Packets<'_, 'eal>) -> usize {
        let (mut ready, mut goes_on) = (0, true);
        packets.retain(|mbuf| {
            let verdict = match self {
                _ if !goes_on => Verdict::NotNow,
                Self::Tagged => put_tag_in(mbuf).map_or(Verdict::Never, |()| Verdict::Ready),
                Self::Whole { most, .. } if mbuf.packet_len() > *most => Verdict::Never,
                Self::Whole { .. } if mbuf.segments() == 1 && mbuf.is_of_own_buffer() => {
                    Verdict::Ready
                }
                Self::Alike { .. } if mbuf.is_of_like_segments() => Verdict::Ready,
                Self::Alike { pool: None } => Verdict::Never,
                Self::Whole { pool, .. } | Self::Alike { pool: Some(pool) } => copy(mbuf, pool),
            };
            ready += usize::from(verdict == Verdict::Ready);
            goes_on = verdict != Verdict::NotNow;
            verdict != Verdict::Never
        });
        ready
    }

    /// Whether the driver takes back what it has sent only when it is called to send: also where nothing is ready, for
    /// want of what it has.
    pub fn is_called_for_nothing(&self) -> bool {
        matches!(self, Self::Whole { .. })
    }
}

/// What is to become of a packet.
#[derive(PartialEq, Eq)]
enum Verdict {
    Ready,
    NotNow,
    Never,
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

/// A copy in place of a packet that does not fit; never of one that is larger than the whole pool.
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
