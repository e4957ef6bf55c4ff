// SPDX-License-Identifier: BSD-3-Clause
//! The send callback: runs on the program's lcore at the entry of every call to send.

use std::ffi::c_void;
use std::ptr;
use std::slice;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::clock;
use crate::dpdk::Mbuf;
use crate::poller::{Poller, registry};
use crate::spans::Spans;
use crate::stamp::Stamp;

/// A send queue with the callback on it. It is never freed: a call may be under way when the callback is
/// taken off.
pub struct TxQueue {
    stamp: Stamp,
    /// The spans of the thread that had stamped packets last.
    current: AtomicPtr<Spans>,
    port: u16,
    queue: u16,
}

impl TxQueue {
    pub fn new(port: u16, queue: u16, stamp: Stamp) -> Self {
        Self { stamp, current: AtomicPtr::new(ptr::null_mut()), port, queue }
    }

    /// The spans of what the calling thread sends.
    fn spans(&self) -> &'static Spans {
        // SAFETY: null or spans, which are never freed.
        let current = unsafe { self.current.load(Ordering::Acquire).as_ref() };
        match (current, Poller::current()) {
            (Some(spans), Some(poller)) if ptr::eq(spans.poller, poller) => spans,
            _ => {
                let poller = Poller::take();
                let spans = registry().spans(poller, self.port, self.queue);
                self.current.store(ptr::from_ref(spans).cast_mut(), Ordering::Release);
                spans
            }
        }
    }

    /// # Safety
    /// `packets` are live mbufs.
    #[cold]
    unsafe fn sample(&self, packets: &[*mut Mbuf], now: u64) {
        self.spans().sent(packets.iter().filter_map(|packet| {
            // SAFETY: the contract is the caller's.
            let received = unsafe { self.stamp.take(*packet) }?;
            // TSCs of two sockets may differ by a little: not before it was received.
            Some(now.saturating_sub(received))
        }));
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
    if count == 0 {
        return 0;
    }
    // SAFETY: what was given to DPDK together with this function, and `count` live mbufs.
    unsafe {
        let queue = &*queue.cast_const().cast::<TxQueue>();
        let sent = slice::from_raw_parts(packets, usize::from(count));
        if queue.stamp.is_on_any(sent) {
            queue.sample(sent, clock::now());
        }
    }
    count
}
