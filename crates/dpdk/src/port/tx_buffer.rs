// SPDX-License-Identifier: BSD-3-Clause
//! A transmit queue with a buffer: packets are offered to the driver `N` at a time.

use super::tx::TxQueue;
use crate::burst::Burst;
use crate::mbuf::Mbuf;

/// DPDK's `rte_eth_tx_buffer`: collects packets and sends them when there are `N`, or when
/// [`flush`](Self::flush) is called. Packets that the driver does not accept are freed and counted.
/// Dropping the buffer frees the packets inside, unsent.
///
/// ```standalone_crate
/// use dpdk::TxBuffer;
/// # let (eal, _) = dpdk::Eal::init("doc --no-huge --no-pci --no-shconf --no-telemetry -m 256 --vdev net_null0".split(' '))?;
/// # let pool = dpdk::Mempool::packet_pool(&eal, &dpdk::PoolConfig { count: 2047, ..dpdk::PoolConfig::named("packets") })?;
/// # let config = dpdk::PortConfig { rx: vec![dpdk::RxConfig::new(&pool)], tx: vec![Default::default()], ..Default::default() };
/// # let mut port = eal.take_port(eal.ports()[0])?.configure(&config)?.start()?;
///
/// let mut buffer = TxBuffer::<32>::new(port.queues().tx.remove(0));
/// for _ in 0..40 {
///     buffer.push(pool.alloc().ok_or("the pool is empty")?);
/// }
/// assert_eq!(buffer.pending(), 8); // 32 were sent
/// assert_eq!(buffer.flush(), 8);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TxBuffer<'port, const N: usize> {
    queue: TxQueue<'port>,
    /// Never full between two calls.
    packets: Burst<'port, N>,
    dropped: u64,
}

impl<'port, const N: usize> TxBuffer<'port, N> {
    const HAS_ROOM: () = assert!(N > 0, "a TX buffer holds one packet or more");

    /// Makes an empty buffer for `queue` (`rte_eth_tx_buffer_init`).
    #[must_use]
    pub fn new(queue: TxQueue<'port>) -> Self {
        let () = Self::HAS_ROOM;
        Self { queue, packets: Burst::new(), dropped: 0 }
    }

    /// Adds a packet; when it is the `N`th, sends all (`rte_eth_tx_buffer`). Returns how many packets were sent.
    #[inline]
    pub fn push(&mut self, mbuf: Mbuf<'port>) -> usize {
        // Never refused: a push that fills the buffer empties it.
        let refused = self.packets.push(mbuf);
        debug_assert!(refused.is_ok());
        if self.packets.is_full() { self.flush() } else { 0 }
    }

    /// Adds every packet of the burst, as if one by one. Returns how many packets were sent.
    #[inline(always)]
    pub fn append<const M: usize>(&mut self, burst: &mut Burst<'port, M>) -> usize {
        if self.packets.is_empty() && burst.len() == N {
            // Packets that would fill the buffer and empty it again are sent directly.
            return Self::offer(&mut self.queue, burst, &mut self.dropped);
        }
        self.append_behind(burst)
    }

    /// [`append`](Self::append) through the buffer.
    #[inline(never)]
    fn append_behind<const M: usize>(&mut self, burst: &mut Burst<'port, M>) -> usize {
        let mut sent = 0;
        while !burst.is_empty() {
            self.packets.append(burst);
            if self.packets.is_full() {
                sent += self.flush();
            }
        }
        sent
    }

    /// Sends the packets inside (`rte_eth_tx_buffer_flush`). Returns how many packets were sent;
    /// the others are freed and counted.
    #[inline]
    pub fn flush(&mut self) -> usize {
        if self.packets.is_empty() {
            return 0;
        }
        Self::offer(&mut self.queue, &mut self.packets, &mut self.dropped)
    }

    /// Sends a burst once; packets that the driver does not accept are freed and counted.
    #[inline(always)]
    fn offer<const M: usize>(
        queue: &mut TxQueue<'port>,
        burst: &mut Burst<'port, M>,
        dropped: &mut u64,
    ) -> usize {
        let sent = queue.send(burst);
        if !burst.is_empty() {
            *dropped += burst.len() as u64;
            burst.clear();
        }
        sent
    }

    /// Packets freed so far because the driver did not take them.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Packets inside, not sent yet.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.packets.len()
    }

    /// The queue behind the buffer.
    #[must_use]
    pub fn queue(&mut self) -> &mut TxQueue<'port> {
        &mut self.queue
    }
}
