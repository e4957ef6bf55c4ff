// SPDX-License-Identifier: BSD-3-Clause
//! The receive callback: runs on the program's lcore after every poll, empty ones too.

use std::ffi::c_void;
use std::ptr;
use std::slice;
use std::sync::atomic::{AtomicPtr, Ordering};

use Ordering::Relaxed;

use crate::clock;
use crate::dpdk::Mbuf;
use crate::figures::{Figures, add};
use crate::poller::{Poller, registry};
use crate::stamp::Stamp;

/// Never, for any program.
const NEVER: u64 = u64::MAX;

/// A receive queue with the callback on it. It is never freed: a poll may be under way when the callback
/// is taken off.
pub struct RxQueue {
    /// The figures of the thread that polled last.
    current: AtomicPtr<Figures>,
    port: u16,
    queue: u16,
    /// How bursts are stamped, if they are: where, and one in how many.
    sampling: Option<(Stamp, u32)>,
}

impl RxQueue {
    pub fn new(port: u16, queue: u16, sampling: Option<(Stamp, u32)>) -> Self {
        Self { current: AtomicPtr::new(ptr::null_mut()), port, queue, sampling }
    }

    /// The figures of the calling thread's polls.
    #[inline(always)]
    fn figures(&self, now: u64) -> &'static Figures {
        // SAFETY: null or figures, which are never freed.
        let current = unsafe { self.current.load(Ordering::Acquire).as_ref() };
        match (current, Poller::current()) {
            (Some(figures), Some(poller)) if ptr::eq(figures.poller, poller) => figures,
            _ => self.take_over(now),
        }
    }

    /// The first poll after the callback was added, after another thread's, or under another lcore id.
    #[cold]
    fn take_over(&self, now: u64) -> &'static Figures {
        let poller = Poller::take();
        let figures = registry().figures(poller, self.port, self.queue, now);
        // Whether the thread was busy before the callback was there, nobody saw.
        if self.current.load(Relaxed).is_null() {
            poller.forget();
        }
        self.await_stamp(figures);
        self.current.store(ptr::from_ref(figures).cast_mut(), Ordering::Release);
        figures
    }

    /// Chooses which burst is stamped next: at random, so that no rhythm of the program's own is met
    /// always or never. On average one in `one_in` is.
    fn await_stamp(&self, figures: &Figures) {
        let bursts = match self.sampling {
            None => NEVER,
            Some((_, one_in)) => figures.poller.random(2 * u64::from(one_in) - 1),
        };
        figures.until_stamp.store(bursts, Relaxed);
    }

    /// # Safety
    /// `packets` are live mbufs.
    #[cold]
    unsafe fn stamp(&self, figures: &Figures, packets: &[*mut Mbuf], now: u64) {
        if let Some((stamp, _)) = self.sampling {
            // SAFETY: the contract is the caller's.
            unsafe { stamp.put(packets, now) };
            add(&figures.stamped, packets.len() as u64);
        }
        self.await_stamp(figures);
    }
}

/// `rte_rx_callback_fn`.
///
/// # Safety
/// Called by `rte_eth_rx_burst` with what it received, and with an [`RxQueue`] that is never freed.
pub unsafe extern "C" fn received(
    _port: u16,
    _queue: u16,
    packets: *mut *mut Mbuf,
    count: u16,
    limit: u16,
    queue: *mut c_void,
) -> u16 {
    let now = clock::now();
    // SAFETY: what was given to DPDK together with this function.
    let queue = unsafe { &*queue.cast_const().cast::<RxQueue>() };
    let figures = queue.figures(now);
    figures.poller.polled(figures, count, now);
    figures.count(count, limit);
    if count > 0 {
        match figures.until_stamp.load(Relaxed) {
            // SAFETY: DPDK passes `count` live mbufs.
            0 => unsafe {
                queue.stamp(figures, slice::from_raw_parts(packets, usize::from(count)), now);
            },
            bursts => figures.until_stamp.store(bursts - 1, Relaxed),
        }
    }
    count
}
