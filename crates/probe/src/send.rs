// SPDX-License-Identifier: BSD-3-Clause
//! The send callback: runs on the program's lcore at the start of every send call.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::slice;
use std::sync::atomic::{AtomicPtr, Ordering};

use measure::clock;

use crate::callbacks::Queue;
use crate::dpdk::{Callback, Dpdk, Mbuf};
use crate::poller::{Poller, registry};
use crate::spans::Spans;
use crate::stamp::{Stamp, any_under_way, span, taken};

/// A send queue with the callback on it.
pub struct TxQueue {
    stamp: Stamp,
    /// The spans of the last thread that had stamped packets.
    current: AtomicPtr<Spans>,
    port: u16,
    queue: u16,
}

impl Queue for TxQueue {
    unsafe fn add(&'static self, dpdk: &Dpdk, port: u16, queue: u16) -> *const Callback {
        let data = ptr::from_ref(self).cast_mut().cast();
        // SAFETY: the contract is the caller's; `sending` gets what it expects, which lives for ever.
        unsafe { (dpdk.add_tx_callback)(port, queue, sending, data) }
    }

    fn remove(dpdk: &Dpdk) -> unsafe extern "C" fn(u16, u16, *const Callback) -> c_int {
        dpdk.remove_tx_callback
    }
}

impl TxQueue {
    pub fn new(port: u16, queue: u16, stamp: Stamp) -> Self {
        Self { stamp, current: AtomicPtr::new(ptr::null_mut()), port, queue }
    }

    /// The spans of what the calling thread sends.
    fn spans(&self, now: u64) -> &'static Spans {
        // SAFETY: null or spans, which are never freed.
        let current = unsafe { self.current.load(Ordering::Acquire).as_ref() };
        match current {
            Some(spans) if spans.poller.is_current() => spans,
            _ => {
                let poller = Poller::take(now);
                let spans = registry().spans(poller, self.port, self.queue);
                self.current.store(ptr::from_ref(spans).cast_mut(), Ordering::Release);
                spans
            }
        }
    }

    /// # Safety
    /// `packets` are live mbufs.
    #[inline(never)]
    unsafe fn look(&self, packets: &[*mut Mbuf]) {
        // Before anything that takes time: the packets' span ends here.
        let now = clock::now();
        // SAFETY: the contract is the caller's.
        if unsafe { self.stamp.is_on_any(packets) } {
            // SAFETY: as above.
            unsafe { self.sample(packets, now) };
        }
    }

    /// # Safety
    /// `packets` are live mbufs.
    #[cold]
    unsafe fn sample(&self, packets: &[*mut Mbuf], now: u64) {
        let spans = self.spans(now);
        // Packets of one burst were received at one time, and usually leave together.
        let (mut alike, mut together, mut all) = (0, 0, 0);
        for packet in packets {
            // SAFETY: the contract is the caller's.
            let Some(stamp) = (unsafe { self.stamp.take(*packet) }) else { continue };
            let span = span(stamp, now);
            if span != alike && together > 0 {
                spans.sent(alike, together);
                together = 0;
            }
            alike = span;
            together += 1;
            all += 1;
        }
        if all > 0 {
            spans.sent(alike, together);
            spans.sampled();
            taken(all);
        }
    }
}

/// `rte_tx_callback_fn`.
///
/// # Safety
/// Called by `rte_eth_tx_burst` with what is to be sent, and with a [`TxQueue`] that is never freed.
pub unsafe extern "C" fn sending(
    _port: u16,
    _queue: u16,
    packets: *mut *mut Mbuf,
    count: u16,
    queue: *mut c_void,
) -> u16 {
    if any_under_way() && count > 0 {
        // SAFETY: what was given to DPDK together with this function, and `count` live mbufs.
        unsafe {
            let queue = &*queue.cast_const().cast::<TxQueue>();
            queue.look(slice::from_raw_parts(packets, usize::from(count)));
        }
    }
    count
}
