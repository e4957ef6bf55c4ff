// SPDX-License-Identifier: BSD-3-Clause
//! The threads that poll, and their state.
//!
//! Lifecycle: a thread leases a [`Poller`] at its first poll under an lcore id and returns it when
//! it ends or gets another id; the next thread with that id takes it over. So a program that starts
//! and ends threads for ever needs only as much memory as it has threads at a time.

use std::cell::RefCell;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

use Ordering::Relaxed;

use measure::{Cell, clock};

use crate::dpdk::own_lcore_id;
use crate::figures::Figures;
use crate::spans::Spans;

/// The id of a thread without one, `LCORE_ID_ANY`.
const NO_LCORE: u32 = u32::MAX;

/// One polling thread. Only it writes, except to `leased`, and to `busy` when a port closes.
pub struct Poller {
    /// The thread that leases it ([`own_thread`]); 0: none.
    thread: AtomicUsize,
    pub lcore: u32,
    /// Where the lcore id of the leasing thread is stored.
    lcore_now: AtomicPtr<u32>,
    leased: AtomicBool,
    /// The first of its statistics.
    figures: AtomicPtr<Figures>,
    /// The queue whose packets the thread is busy with.
    busy: AtomicPtr<Figures>,
    /// The TSC at the latest poll's return.
    since: Cell,
    /// State of the random generator that spreads the stamps.
    random: Cell,
}

thread_local! {
    /// The calling thread's poller, which is returned when the thread ends.
    static LEASE: RefCell<Option<Lease>> = const { RefCell::new(None) };
}

struct Lease(&'static Poller);

impl Drop for Lease {
    fn drop(&mut self) {
        self.0.thread.store(0, Relaxed);
        self.0.busy.store(ptr::null_mut(), Relaxed);
        let now = clock::now();
        registry().of(self.0).for_each(|figures| figures.leave(now));
        // What this thread wrote happens before what the next one writes.
        self.0.leased.store(false, Ordering::Release);
    }
}

/// Every thread and queue seen so far.
#[derive(Default)]
pub struct Registry {
    pollers: Vec<&'static Poller>,
    pub figures: Vec<&'static Figures>,
    pub spans: Vec<&'static Spans>,
}

static REGISTRY: Mutex<Registry> =
    Mutex::new(Registry { pollers: Vec::new(), figures: Vec::new(), spans: Vec::new() });

/// Locks the registry. Hold it briefly: a thread's first poll of a queue waits for it. Nothing else
/// is locked meanwhile.
pub fn registry() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(|poison| poison.into_inner())
}

impl Registry {
    fn lease(&mut self, lcore: u32, lcore_now: *mut u32, now: u64) -> &'static Poller {
        let idle = self.pollers.iter().find(|poller| {
            poller.lcore == lcore
                && poller.leased.compare_exchange(false, true, Ordering::Acquire, Relaxed).is_ok()
        });
        let poller = idle.copied().unwrap_or_else(|| {
            let poller: &'static Poller = Box::leak(Box::new(Poller {
                thread: AtomicUsize::new(0),
                lcore,
                lcore_now: AtomicPtr::new(ptr::null_mut()),
                leased: AtomicBool::new(true),
                figures: AtomicPtr::new(ptr::null_mut()),
                busy: AtomicPtr::new(ptr::null_mut()),
                since: Cell::new(0),
                random: Cell::new(clock::now() | 1),
            }));
            self.pollers.push(poller);
            poller
        });
        poller.lcore_now.store(lcore_now, Relaxed);
        self.of(poller).for_each(|figures| figures.come_back(now));
        poller
    }

    /// The statistics of a thread.
    fn of(&self, poller: &Poller) -> impl Iterator<Item = &'static Figures> {
        self.figures.iter().copied().filter(move |figures| ptr::eq(figures.poller, poller))
    }

    /// The statistics of the calling thread's polls of a queue, started or resumed at TSC `now`.
    pub fn figures(
        &mut self,
        poller: &'static Poller,
        port: u16,
        queue: u16,
        now: u64,
    ) -> &'static Figures {
        let figures = poller.known(port, queue).unwrap_or_else(|| {
            let figures: &'static Figures =
                Box::leak(Box::new(Figures::new(poller, port, queue, now)));
            figures.next.store(poller.figures.load(Relaxed), Relaxed);
            poller.figures.store(ptr::from_ref(figures).cast_mut(), Relaxed);
            self.figures.push(figures);
            figures
        });
        figures.watch(now);
        figures
    }

    /// The spans of what this thread sends on a queue.
    pub fn spans(&mut self, poller: &'static Poller, port: u16, queue: u16) -> &'static Spans {
        let known = self.spans.iter().find(|known| {
            ptr::eq(known.poller, poller) && (known.port, known.queue) == (port, queue)
        });
        known.copied().unwrap_or_else(|| {
            let spans: &'static Spans = Box::leak(Box::new(Spans::new(poller, port, queue)));
            self.spans.push(spans);
            spans
        })
    }

    /// The polls of a queue are no longer counted.
    pub fn leave(&self, port: u16, queue: u16) {
        let now = clock::now();
        for figures in &self.figures {
            if (figures.port, figures.queue) == (port, queue) {
                figures.unwatch(now);
                // The busy time of a thread that has been idle since its last poll of this queue
                // would end when it polls another, with uncounted time in between. A
                // compare-and-exchange, because a thread that polls is busy with another queue by
                // now.
                let this = ptr::from_ref(*figures).cast_mut();
                let busy = &figures.poller.busy;
                let _ = busy.compare_exchange(this, ptr::null_mut(), Relaxed, Relaxed);
            }
        }
    }
}

/// A number unique among living threads: the address of the thread's control block. Reading a
/// thread-local variable of a plugin would be a function call in every poll.
#[inline(always)]
fn own_thread() -> usize {
    #[cfg(target_arch = "x86_64")]
    {
        let block: usize;
        // SAFETY: the first word of the block that fs points to is its own address (System V ABI, TLS).
        unsafe {
            core::arch::asm!("mov {}, fs:0", out(reg) block, options(nostack, readonly, preserves_flags));
        }
        block
    }
    #[cfg(target_arch = "aarch64")]
    {
        let block: usize;
        // SAFETY: the register that holds the address of the thread's block, readable in user space.
        unsafe {
            core::arch::asm!("mrs {}, tpidr_el0", out(reg) block, options(nomem, nostack, preserves_flags));
        }
        block
    }
}

impl Poller {
    /// Returns true if the calling thread leases this poller and still has the lcore id that it had
    /// then.
    #[inline(always)]
    pub fn is_current(&self) -> bool {
        if self.thread.load(Relaxed) != own_thread() {
            return false;
        }
        let place = self.lcore_now.load(Relaxed);
        // SAFETY: while a thread has the poller this is its own thread-local variable, or null; it lives
        // as long as the thread.
        place.is_null() || unsafe { *place } == self.lcore
    }

    /// The calling thread's poller, if it leases one and still has the same lcore id.
    fn current() -> Option<&'static Self> {
        let own = LEASE.try_with(|lease| lease.borrow().as_ref().map(|lease| lease.0));
        own.ok().flatten().filter(|poller| poller.is_current())
    }

    /// The calling thread's poller under its present lcore id, leased if necessary. `now` is the
    /// TSC of the poll: no cycle before it may count as busy.
    #[cold]
    pub fn take(now: u64) -> &'static Self {
        if let Some(current) = Self::current() {
            return current;
        }
        let place = own_lcore_id().unwrap_or(ptr::null()).cast_mut();
        // SAFETY: this thread's own variable, or null.
        let lcore = if place.is_null() { NO_LCORE } else { unsafe { *place } };
        // The old one is returned first, so that a thread never leases two.
        let _ = LEASE.try_with(|lease| lease.take());
        let poller = registry().lease(lcore, place, now);
        poller.thread.store(own_thread(), Relaxed);
        // A thread that polls while it ends keeps its lease for ever.
        let _ = LEASE.try_with(|lease| lease.replace(Some(Lease(poller))));
        poller
    }

    /// The statistics of the calling thread's polls of a queue, if it has polled it before: threads
    /// that poll in turn find theirs without the registry's lock. The list belongs to the thread.
    pub fn known(&self, port: u16, queue: u16) -> Option<&'static Figures> {
        let mut next = &self.figures;
        loop {
            // SAFETY: null or figures, which are never freed.
            let figures = unsafe { next.load(Relaxed).as_ref() }?;
            if (figures.port, figures.queue) == (port, queue) {
                return Some(figures);
            }
            next = &figures.next;
        }
    }

    /// Records that a poll of a queue returned `packets` at TSC `now`.
    #[inline(always)]
    pub fn polled(&self, figures: &'static Figures, packets: u16, now: u64) {
        let busy = self.busy.load(Relaxed);
        // SAFETY: null or figures, which are never freed.
        if let Some(busy) = unsafe { busy.as_ref() } {
            busy.busy_tsc.add(now.wrapping_sub(self.since.get()));
        }
        let busy = if packets > 0 { ptr::from_ref(figures) } else { ptr::null() };
        self.busy.store(busy.cast_mut(), Relaxed);
        self.since.set(now);
    }

    /// Records that it is unknown whether the thread is busy: its polls were not counted until now.
    pub fn forget(&self) {
        self.busy.store(ptr::null_mut(), Relaxed);
    }

    /// A number from 0 to `below` - 1, or 0: by xorshift (Marsaglia 2003, doi 10.18637/jss.v008.i14).
    pub fn random(&self, below: u64) -> u64 {
        let mut state = self.random.get();
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        self.random.set(state);
        state.checked_rem(below).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_comes_back_does_not_bring_back_a_queue_that_is_gone() {
        let mut registry = registry();
        let first = registry.lease(901, ptr::null_mut(), 100);
        let [gone, kept] = [7, 8].map(|queue| registry.figures(first, 900, queue, 100));
        registry.leave(900, 7);
        let end = clock::now();
        registry.of(first).for_each(|figures| figures.leave(end));
        first.leased.store(false, Relaxed);
        let before = [gone, kept].map(|figures| figures.read(end + 1000).total_tsc);
        assert!(ptr::eq(first, registry.lease(901, ptr::null_mut(), end + 1000)));
        let after = [gone, kept].map(|figures| figures.read(end + 1500).total_tsc);
        assert_eq!(after, [before[0], before[1] + 500]);
        registry.figures(first, 900, 7, end + 2000);
        assert_eq!(gone.read(end + 2010).total_tsc, before[0] + 10);
    }

    #[test]
    fn time_between_two_threads_with_one_lcore_id_does_not_count() {
        let mut registry = registry();
        let first = registry.lease(900, ptr::null_mut(), 100);
        let figures = registry.figures(first, 0, 0, 100);
        registry.of(first).for_each(|figures| figures.leave(150));
        first.leased.store(false, Relaxed);
        // Busy with what it got at 140 until its next poll, of another queue.
        first.polled(figures, 1, 140);
        first.polled(figures, 0, 400);
        assert_eq!((figures.read(500).total_tsc, figures.read(500).busy_tsc), (50, 50));
        let second = registry.lease(900, ptr::null_mut(), 1000);
        assert!(ptr::eq(first, second) && ptr::eq(registry.figures(second, 0, 0, 1000), figures));
        assert_eq!(figures.read(1010).total_tsc, 60);
        let beside = registry.lease(900, ptr::null_mut(), 1000);
        assert!(!ptr::eq(beside, second), "it is leased");
    }
}
