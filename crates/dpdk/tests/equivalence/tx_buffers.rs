// SPDX-License-Identifier: BSD-3-Clause
//! `TxBuffer` compared with `rte_eth_tx_buffer`, on ring ports that refuse packets when full.

use std::cell::RefCell;
use std::ptr::null_mut;

use dpdk::{Burst, Eal, Mempool, PoolConfig, RxQueue, TxBuffer};
use dpdk_sys::{rte_eth_dev_tx_buffer, rte_mbuf};
use proptest::prelude::*;

use super::raw;
use super::support::property::for_all_unshrunk;

/// More than a ring (1023) and a buffer hold, so that drivers refuse some.
const MBUFS: u32 = 1500;
const POOLS: [&str; 2] = ["native-buffered", "c-buffered"];
const SIZE: usize = 32;
const BURST: usize = 64;

#[derive(Clone, Debug)]
enum Step {
    /// One packet after the other.
    Push(usize),
    /// A whole burst; C has only the other way.
    Append(usize),
    Flush,
    Receive,
}

fn step() -> impl Strategy<Value = Step> {
    let burst = || prop_oneof![0..=BURST, Just(SIZE)];
    prop_oneof![
        3 => burst().prop_map(Step::Push),
        6 => burst().prop_map(Step::Append),
        1 => Just(Step::Flush),
        1 => Just(Step::Receive),
    ]
}

pub fn agree(eal: &Eal) {
    let pools = POOLS.map(|name| {
        let config = PoolConfig { count: MBUFS, ..PoolConfig::named(name) };
        Mempool::packet_pool(eal, &config).unwrap()
    });
    let mut native_port = super::support::started(eal, &pools[0], "net_ring0");
    let c_port = super::support::started(eal, &pools[1], "net_ring1");
    let mut queues = native_port.queues();
    let sides = RefCell::new(Sides {
        pool: pools[0],
        rx: queues.rx.pop().unwrap(),
        buffer: TxBuffer::new(queues.tx.pop().unwrap()),
        c: CBuffer::new(c_port.id().index()),
        number: 0,
    });
    let run = |steps: Vec<Step>| {
        let sides = &mut *sides.borrow_mut();
        for step in steps {
            sides.take(step)?;
            prop_assert_eq!(sides.buffer.pending(), sides.c.pending());
            prop_assert_eq!(sides.buffer.dropped(), *sides.c.dropped);
            prop_assert_eq!(pools[0].in_use(), pools[1].in_use());
        }
        sides.take(Step::Flush)?;
        while pools.iter().any(|pool| !pool.is_full()) {
            sides.take(Step::Receive)?;
        }
        Ok(())
    };
    // More than a ring holds, which random steps send most times, but not always.
    run(vec![Step::Append(BURST); 20]).unwrap();
    for_all_unshrunk(10..=100, &prop::collection::vec(step(), 1..150), run);
    assert!(sides.borrow().buffer.dropped() > 0, "no ring was ever full");
}

struct Sides<'m> {
    pool: Mempool<'m>,
    rx: RxQueue<'m>,
    buffer: TxBuffer<'m, SIZE>,
    c: CBuffer,
    /// The next packet's number, which is in its first bytes.
    number: u32,
}

impl<'m> Sides<'m> {
    /// Does the same on both sides.
    fn take(&mut self, step: Step) -> Result<(), TestCaseError> {
        match step {
            Step::Push(n) | Step::Append(n) => {
                let Some((mut burst, raw)) = self.packets(n)? else { return Ok(()) };
                let sent = if matches!(step, Step::Push(_)) {
                    burst.drain().map(|mbuf| self.buffer.push(mbuf)).sum()
                } else {
                    self.buffer.append(&mut burst)
                };
                prop_assert!(burst.is_empty());
                let c_sent: usize = raw.into_iter().map(|mbuf| self.c.push(mbuf)).sum();
                prop_assert_eq!(sent, c_sent);
            }
            Step::Flush => prop_assert_eq!(self.buffer.flush(), self.c.flush()),
            Step::Receive => {
                let mut burst = Burst::<BURST>::new();
                let mut raw = [null_mut(); BURST];
                let received = self.rx.receive(&mut burst);
                // SAFETY: the C port is started and used by this thread only; there is that much room.
                let c_received = unsafe {
                    dpdk_sys::lr_eth_rx_burst(self.c.port, 0, raw.as_mut_ptr(), BURST as u16)
                };
                prop_assert_eq!(received, usize::from(c_received));
                let raw = &raw[..received];
                for (native, c) in burst.iter().zip(raw) {
                    // SAFETY: a valid packet of as many bytes.
                    let c = unsafe {
                        std::slice::from_raw_parts(dpdk_sys::lr_pktmbuf_mtod(*c).cast::<u8>(), 4)
                    };
                    prop_assert_eq!(native.data(), c);
                }
                burst.clear();
                raw::c_free(raw.iter().copied());
            }
        }
        Ok(())
    }

    /// Numbered packets for both sides; `None` if the pools are empty.
    #[allow(clippy::type_complexity)]
    fn packets(
        &mut self,
        n: usize,
    ) -> Result<Option<(Burst<'m, BURST>, Vec<*mut rte_mbuf>)>, TestCaseError> {
        let mut burst = Burst::new();
        let filled = self.pool.fill(&mut burst, n).is_ok();
        let raw = raw::c_alloc(raw::pool(POOLS[1]), n);
        prop_assert_eq!(filled, raw.is_some());
        let Some(raw) = raw else { return Ok(None) };
        for (native, c) in burst.iter_mut().zip(&raw) {
            let number = self.number.to_ne_bytes();
            native.resize(4).unwrap().copy_from_slice(&number);
            // SAFETY: a fresh packet with room for 4 bytes.
            unsafe { dpdk_sys::lr_pktmbuf_append(*c, 4).cast::<[u8; 4]>().write(number) };
            self.number += 1;
        }
        Ok(Some((burst, raw)))
    }
}

/// `struct rte_eth_dev_tx_buffer` with room for [`SIZE`] packets.
struct CBuffer {
    port: u16,
    memory: Vec<u64>,
    /// Boxed, because C has its address.
    dropped: Box<u64>,
}

impl CBuffer {
    fn new(port: u16) -> Self {
        let words = (size_of::<rte_eth_dev_tx_buffer>() + SIZE * size_of::<usize>()).div_ceil(8);
        let mut buffer = Self { port, memory: vec![0; words], dropped: Box::new(0) };
        let dropped: *mut u64 = &mut *buffer.dropped;
        // SAFETY: memory of that size; the callback gets the counter that it adds to, and frees.
        unsafe {
            assert_eq!(dpdk_sys::rte_eth_tx_buffer_init(buffer.raw(), SIZE as u16), 0);
            let count = dpdk_sys::rte_eth_tx_buffer_count_callback;
            assert_eq!(
                dpdk_sys::rte_eth_tx_buffer_set_err_callback(
                    buffer.raw(),
                    Some(count),
                    dropped.cast()
                ),
                0
            );
        }
        buffer
    }

    fn raw(&mut self) -> *mut rte_eth_dev_tx_buffer {
        self.memory.as_mut_ptr().cast()
    }

    fn push(&mut self, mbuf: *mut rte_mbuf) -> usize {
        // SAFETY: the port is started and used by this thread only; the packet is given away.
        usize::from(unsafe { dpdk_sys::lr_eth_tx_buffer(self.port, 0, self.raw(), mbuf) })
    }

    fn flush(&mut self) -> usize {
        // SAFETY: as above.
        usize::from(unsafe { dpdk_sys::lr_eth_tx_buffer_flush(self.port, 0, self.raw()) })
    }

    fn pending(&mut self) -> usize {
        // SAFETY: initialised in `new`.
        usize::from(unsafe { (*self.raw()).length })
    }
}
