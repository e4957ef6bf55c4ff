// SPDX-License-Identifier: BSD-3-Clause
//! `rte_eth_rx_burst` and `rte_eth_tx_burst` on ring ports that refuse packets when full, on two
//! queues: one without callbacks, the other with callbacks that drop packets.

use std::cell::RefCell;
use std::ptr::null_mut;

use dpdk::{Burst, Eal, Mbuf, Mempool, PoolConfig, Port, Queues, Started};
use dpdk_sys::rte_mbuf;
use proptest::prelude::*;

use super::callbacks::{Callbacks, Seen};
use super::raw::{self, Pairs};
use super::support::property::for_all_unshrunk;

/// More than a ring holds (1023), so that drivers refuse some; the caches are small, so that all
/// paths of the pool are used.
const MBUFS: u32 = 1500;
const CACHE: u32 = 64;
const BURST: usize = 96;
const QUEUES: u16 = 2;
const POOLS: [&str; 2] = ["native", "c"];

/// By side: native, C.
static SEEN: [Seen; 2] = [const { Seen::new() }; 2];

pub fn agree(eal: &Eal) {
    let pools = POOLS.map(|name| {
        let config = PoolConfig { count: MBUFS, cache: CACHE, ..PoolConfig::named(name) };
        Mempool::packet_pool(eal, &config).unwrap()
    });
    let started = |pool, name| super::support::started_with(eal, pool, name, QUEUES.into());
    let mut native_port = started(&pools[0], "net_ring0");
    let c_port = started(&pools[1], "net_ring1");
    let ids = [native_port.id().index(), c_port.id().index()];
    let refusals = &RefCell::new(0);
    sequences(eal, &pools, &mut native_port, ids[1], refusals, || Ok(()));

    let callbacks = [0, 1].map(|side| Callbacks::install(ids[side], &SEEN[side]));
    sequences(eal, &pools, &mut native_port, ids[1], refusals, || {
        prop_assert_eq!(SEEN[0].all(), SEEN[1].all());
        Ok(())
    });
    assert!(SEEN[0].all().iter().all(|count| *count > 1000), "the callbacks ran");
    assert!(*refusals.borrow() > 0, "no ring was ever full");
    drop(callbacks);
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Alloc(usize),
    Free(usize),
    Send(u16, usize),
    Receive(u16, usize),
}

/// Mostly the first, so that its ring becomes full.
fn queue() -> impl Strategy<Value = u16> {
    prop_oneof![4 => Just(0u16), 1 => 1..QUEUES]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (1..=BURST).prop_map(Step::Alloc),
        1 => (1..=BURST).prop_map(Step::Free),
        3 => (queue(), 1..=BURST).prop_map(|(queue, n)| Step::Send(queue, n)),
        1 => (queue(), 1..=BURST).prop_map(|(queue, n)| Step::Receive(queue, n)),
    ]
}

fn sequences(
    eal: &Eal,
    pools: &[Mempool<'_>; 2],
    native_port: &mut Port<'_, Started>,
    c_id: u16,
    refusals: &RefCell<usize>,
    check: impl Fn() -> Result<(), TestCaseError>,
) {
    // proptest requires a closure that it can call repeatedly by shared reference.
    let queues = RefCell::new(native_port.queues());
    let pairs = RefCell::new(Pairs::default());
    let run = |steps: Vec<Step>| {
        let queues = &mut *queues.borrow_mut();
        let pairs = &mut *pairs.borrow_mut();
        let mut sides = Sides { pools, c_id, native: Vec::new(), c: Vec::new() };
        for step in steps {
            match step {
                Step::Alloc(n) => sides.alloc(n)?,
                Step::Free(n) => sides.free(n),
                Step::Send(queue, n) => {
                    *refusals.borrow_mut() += sides.send(queues, queue, n)?;
                }
                Step::Receive(queue, n) => sides.receive(queues, queue, n)?,
            }
            prop_assert_eq!(sides.native.len(), sides.c.len());
            for (native, c) in sides.native.iter().zip(&sides.c) {
                let native = raw::pointer(native);
                prop_assert!(pairs.are_paired(native, *c), "another packet");
            }
            if let (Some(native), Some(c)) = (sides.native.last(), sides.c.last()) {
                raw::compare(pairs, raw::pointer(native), *c)?;
            }
            prop_assert_eq!(pools[0].in_use(), pools[1].in_use());
            prop_assert_eq!(raw::cache_len(eal, POOLS[0]), raw::cache_len(eal, POOLS[1]));
            check()?;
        }
        sides.free(usize::MAX);
        while queues_hold_packets(pools) {
            for queue in 0..QUEUES {
                sides.receive(queues, queue, BURST)?;
                sides.free(usize::MAX);
            }
        }
        prop_assert!(pools.iter().all(Mempool::is_full));
        Ok(())
    };
    // More than a ring holds, which random steps send most times, but not always.
    run([Step::Alloc(BURST), Step::Send(0, BURST)].repeat(14)).unwrap();
    for_all_unshrunk(10..=60, &prop::collection::vec(step(), 1..300), run);
}

fn queues_hold_packets(pools: &[Mempool<'_>; 2]) -> bool {
    pools.iter().any(|pool| !pool.is_full())
}

struct Sides<'a, 'm> {
    pools: &'a [Mempool<'m>; 2],
    c_id: u16,
    native: Vec<Mbuf<'m>>,
    c: Vec<*mut rte_mbuf>,
}

impl<'m> Sides<'_, 'm> {
    fn alloc(&mut self, n: usize) -> Result<(), TestCaseError> {
        let mut burst = Burst::<BURST>::new();
        let filled = self.pools[0].fill(&mut burst, n).is_ok();
        let raw = raw::c_alloc(raw::pool(POOLS[1]), n);
        prop_assert_eq!(filled, raw.is_some());
        self.native.extend(burst.drain());
        self.c.extend(raw.unwrap_or_default());
        Ok(())
    }

    fn free(&mut self, n: usize) {
        let kept = self.native.len().saturating_sub(n);
        drop(self.native.drain(kept..));
        raw::c_free(self.c.drain(kept..));
    }

    /// Returns how many the driver refused.
    fn send(
        &mut self,
        queues: &mut Queues<'m>,
        queue: u16,
        n: usize,
    ) -> Result<usize, TestCaseError> {
        let kept = self.native.len().saturating_sub(n);
        let mut burst = Burst::<BURST>::new();
        for mbuf in self.native.drain(kept..) {
            prop_assert!(burst.push(mbuf).is_ok());
        }
        let sent = queues.tx[usize::from(queue)].send(&mut burst);
        let refused = burst.len();
        self.native.extend(burst.drain());
        let mut raw = self.c.split_off(kept);
        // SAFETY: the C port is started and used by this thread only.
        let c_sent = usize::from(unsafe {
            dpdk_sys::lr_eth_tx_burst(self.c_id, queue, raw.as_mut_ptr(), raw.len() as u16)
        });
        prop_assert_eq!(sent, c_sent);
        // C does not report how many packets the callbacks left; `refused` of them came after those
        // sent.
        self.c.extend(&raw[c_sent..c_sent + refused]);
        Ok(refused)
    }

    /// Receives into a burst with room for only `n`.
    fn receive(
        &mut self,
        queues: &mut Queues<'m>,
        queue: u16,
        n: usize,
    ) -> Result<(), TestCaseError> {
        let mut burst = Burst::<BURST>::new();
        let fillers = BURST - n;
        let filled = self.pools[0].fill(&mut burst, fillers).is_ok();
        let mut raw = raw::c_alloc(raw::pool(POOLS[1]), fillers);
        prop_assert_eq!(filled, raw.is_some());
        let room = if filled { n } else { BURST };
        let received = queues.rx[usize::from(queue)].receive(&mut burst);
        let mut arrived = vec![null_mut(); room];
        // SAFETY: as above; there is room for that many.
        let c_received = unsafe {
            dpdk_sys::lr_eth_rx_burst(self.c_id, queue, arrived.as_mut_ptr(), room as u16)
        };
        prop_assert_eq!(received, usize::from(c_received));
        self.native.extend(burst.drain());
        self.c.extend(raw.take().unwrap_or_default());
        self.c.extend(&arrived[..received]);
        Ok(())
    }
}
