// SPDX-License-Identifier: BSD-3-Clause
//! The receive callback: runs on the program's lcore after every poll, empty ones too.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::slice;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32};

use measure::clock;

use crate::callbacks::Queue;
use crate::dpdk::{Callback, Dpdk, Mbuf};
use crate::figures::Figures;
use crate::poller::{Poller, registry};
use crate::stamp::{Sampling, Stamp};

/// Effectively never.
const NEVER: u64 = u64::MAX;

/// A receive queue with the callback on it.
pub struct RxQueue {
    /// The statistics of the thread that polled last; null: the next poll must look everything up
    /// again.
    current: AtomicPtr<Figures>,
    port: u16,
    queue: u16,
    /// True if it was polled after the callback was added.
    polled: AtomicBool,
    /// One burst in this many is stamped; 0: none.
    one_in: AtomicU32,
    /// Where to stamp, once that is known.
    stamp: OnceLock<Stamp>,
}

impl Queue for RxQueue {
    unsafe fn add(&'static self, dpdk: &Dpdk, port: u16, queue: u16) -> *const Callback {
        let data = ptr::from_ref(self).cast_mut().cast();
        // SAFETY: the contract is the caller's; `received` gets what it expects, which lives for ever.
        unsafe { (dpdk.add_first_rx_callback)(port, queue, received, data) }
    }

    fn remove(dpdk: &Dpdk) -> unsafe extern "C" fn(u16, u16, *const Callback) -> c_int {
        dpdk.remove_rx_callback
    }
}

impl RxQueue {
    pub const fn new(port: u16, queue: u16) -> Self {
        Self {
            current: AtomicPtr::new(ptr::null_mut()),
            port,
            queue,
            polled: AtomicBool::new(false),
            one_in: AtomicU32::new(0),
            stamp: OnceLock::new(),
        }
    }

    /// Called before the callback is added.
    pub fn begin(&self, sampling: Option<Sampling>) {
        self.polled.store(false, Relaxed);
        self.sample(sampling);
    }

    /// Changes how bursts are stamped, while the queue is polled.
    pub fn sample(&self, sampling: Option<Sampling>) {
        if let Some(Sampling { stamp, .. }) = sampling {
            // A program has only one.
            let _ = self.stamp.set(stamp);
        }
        // In this order, and in `take_over` in the reverse order: either that sees the new rate, or
        // the poll after it sees null.
        self.one_in.store(sampling.map_or(0, |sampling| sampling.one_in.get()), SeqCst);
        self.current.store(ptr::null_mut(), SeqCst);
    }

    /// The statistics of the calling thread's polls.
    #[inline(always)]
    fn figures(&self, now: u64) -> &'static Figures {
        // SAFETY: null or figures, which are never freed.
        let current = unsafe { self.current.load(Acquire).as_ref() };
        match current {
            Some(figures) if figures.poller.is_current() => figures,
            _ => self.take_over(now),
        }
    }

    /// The first poll after the callback was added or its settings changed, after a poll by another
    /// thread, or under another lcore id.
    #[cold]
    fn take_over(&self, now: u64) -> &'static Figures {
        let poller = Poller::take(now);
        let known = poller.known(self.port, self.queue).filter(|figures| figures.are_counted());
        let figures =
            known.unwrap_or_else(|| registry().figures(poller, self.port, self.queue, now));
        // Whether the thread was busy before the callback was added is unknown.
        if !self.polled.swap(true, Relaxed) {
            poller.forget();
        }
        self.current.store(ptr::from_ref(figures).cast_mut(), SeqCst);
        // Threads that poll in turn continue where they were.
        let one_in = self.one_in.load(SeqCst);
        if figures.one_in.load(Relaxed) != one_in {
            await_stamp(figures, one_in);
        }
        figures
    }

    /// # Safety
    /// `packets` are live mbufs.
    #[cold]
    unsafe fn stamp(&self, figures: &Figures, packets: &[*mut Mbuf]) {
        let one_in = self.one_in.load(Relaxed);
        if let (Some(stamp), 1..) = (self.stamp.get(), one_in) {
            // SAFETY: the contract is the caller's.
            unsafe { stamp.put(packets, clock::now) };
            figures.stamped.add(packets.len() as u64);
        }
        await_stamp(figures, one_in);
    }
}

/// Chooses the next burst to stamp: at random, so that no periodic behaviour of the program is
/// always or never sampled. On average one in `one_in` is stamped.
fn await_stamp(figures: &Figures, one_in: u32) {
    let bursts = match one_in {
        0 => NEVER,
        _ => figures.poller.random(2 * u64::from(one_in) - 1),
    };
    figures.one_in.store(one_in, Relaxed);
    figures.until_stamp.set(bursts);
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
        match figures.until_stamp.get() {
            // SAFETY: DPDK passes `count` live mbufs.
            0 => unsafe {
                queue.stamp(figures, slice::from_raw_parts(packets, usize::from(count)));
            },
            bursts => figures.until_stamp.set(bursts - 1),
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroU32;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Duration;

    const TIMEOUT: Duration = Duration::from_secs(20);

    fn poll(queue: &'static RxQueue) -> &'static Figures {
        let data = ptr::from_ref(queue).cast_mut().cast();
        // SAFETY: no packets, and a queue that lives for ever.
        unsafe { received(queue.port, queue.queue, ptr::null_mut(), 0, 32, data) };
        queue.figures(clock::now())
    }

    /// A thread that polls when it is told to, and reports it.
    fn poller(queue: &'static RxQueue) -> (Sender<()>, Receiver<u64>) {
        let (tell, told) = channel();
        let (say, said) = channel();
        std::thread::spawn(move || {
            while told.recv().is_ok() {
                let _ = say.send(poll(queue).read(0).polls());
            }
        });
        (tell, said)
    }

    #[test]
    fn threads_that_poll_in_turn_wait_for_nobody() {
        static QUEUE: RxQueue = RxQueue::new(100, 0);
        let queue = &QUEUE;
        let pollers = [poller(queue), poller(queue)];
        let mut held = None;
        for turn in 1..=10 {
            for (tell, said) in &pollers {
                tell.send(()).unwrap();
                assert_eq!(said.recv_timeout(TIMEOUT), Ok(turn));
            }
            // Another thread reads, and is preempted.
            held.get_or_insert_with(registry);
        }
        drop(held);
    }

    #[test]
    fn a_new_rate_holds_from_the_next_poll_on() {
        static QUEUE: RxQueue = RxQueue::new(101, 0);
        let queue = &QUEUE;
        let sampling = |one_in| {
            let stamp = Stamp::at(96, 1 << 40);
            NonZeroU32::new(one_in).map(|one_in| Sampling { stamp, one_in })
        };
        queue.begin(sampling(0));
        assert_eq!(poll(queue).until_stamp.get(), NEVER);
        queue.sample(sampling(1));
        assert_eq!(poll(queue).until_stamp.get(), 0);
        queue.sample(sampling(1 << 30));
        let waits = poll(queue).until_stamp.get();
        assert_eq!(poll(queue).until_stamp.get(), waits, "chosen once");
        queue.sample(None);
        assert_eq!(poll(queue).until_stamp.get(), NEVER);
    }
}
