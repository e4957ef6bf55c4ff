// SPDX-License-Identifier: BSD-3-Clause
//! The inline functions of `rte_ring_elem.h`: items of any size enter at one end and leave at the
//! other.
//!
//! A ring has two ends, of producers and of consumers, each with a head and a tail that only grow
//! (and wrap around). A thread that moves an end's head has claimed the slots between its old and
//! its new position. When it has copied the items there it moves the tail, which the other end
//! reads. The order of memory accesses is that of `rte_ring_c11_pvt.h`; on x86 it costs what
//! `rte_ring_generic_pvt.h` does.

use std::ptr::copy_nonoverlapping;
use std::sync::atomic::{AtomicU32, Ordering};

use dpdk_sys::{layout, rte_ring};

/// The offsets of the two counters of an end.
struct End {
    head: usize,
    tail: usize,
}

const PRODUCERS: End = End { head: layout::RING_PROD_HEAD, tail: layout::RING_PROD_TAIL };
const CONSUMERS: End = End { head: layout::RING_CONS_HEAD, tail: layout::RING_CONS_TAIL };

/// Slots that are the caller's until it publishes them.
struct Claim {
    at: u32,
    n: u32,
}

/// # Safety
/// `ring` is valid for `'r`, and has a counter at `offset`.
#[inline(always)]
unsafe fn counter<'r>(ring: *mut rte_ring, offset: usize) -> &'r AtomicU32 {
    // SAFETY: the contract is the caller's; the C compiler has aligned it, and C changes it atomically too.
    unsafe { AtomicU32::from_ptr(ring.cast::<u8>().add(offset).cast()) }
}

/// Reads a number that is written when a ring is made, and never again.
///
/// # Safety
/// `ring` is valid, and has a number of 32 bits at `offset`.
#[inline(always)]
unsafe fn constant(ring: *const rte_ring, offset: usize) -> u32 {
    // SAFETY: the contract is the caller's.
    unsafe { ring.cast::<u8>().add(offset).cast::<u32>().read() }
}

/// `__rte_ring_move_prod_head` and `__rte_ring_move_cons_head`: claims `n` slots, or as many as
/// there are; with `exact`, all or none. The number of slots is `room` plus the distance to the
/// other end.
///
/// # Safety
/// `ring` is valid. When `SINGLE`, nobody else uses this end.
#[inline(always)]
unsafe fn claim<const SINGLE: bool>(
    ring: *mut rte_ring,
    own: &End,
    other: &End,
    room: u32,
    n: u32,
    exact: bool,
) -> Claim {
    // SAFETY: the contract is the caller's.
    let (head, others_tail) = unsafe { (counter(ring, own.head), counter(ring, other.tail)) };
    // Acquire: the thread that moved the head before has seen a tail of the other end; the one read
    // below is no older.
    let order = if SINGLE { Ordering::Relaxed } else { Ordering::Acquire };
    let mut at = head.load(order);
    loop {
        // Acquire: whatever the other end did with the slots before it moved its tail has happened.
        let tail = others_tail.load(Ordering::Acquire);
        // Too large if `at` is out of date: then the exchange fails.
        let there = room.wrapping_add(tail).wrapping_sub(at);
        let n = match (n <= there, exact) {
            (true, _) => n,
            (false, true) => 0,
            (false, false) => there,
        };
        if n == 0 {
            return Claim { at, n };
        }
        let next = at.wrapping_add(n);
        if SINGLE {
            head.store(next, Ordering::Relaxed);
            return Claim { at, n };
        }
        match head.compare_exchange(at, next, Ordering::Release, Ordering::Acquire) {
            Ok(_) => return Claim { at, n },
            Err(seen) => at = seen,
        }
    }
}

/// `__rte_ring_update_tail`: gives the claimed slots to the other end, after those that were claimed before.
///
/// # Safety
/// `ring` is valid, and the claim was made at this end.
#[inline(always)]
unsafe fn publish<const SINGLE: bool>(ring: *mut rte_ring, own: &End, claim: &Claim) {
    // SAFETY: the contract is the caller's.
    let tail = unsafe { counter(ring, own.tail) };
    // C waits with relaxed loads. Acquire here: a thread that sees our tail also sees what was done
    // before our turn. On x86 both are the same.
    if !SINGLE && tail.load(Ordering::Acquire) != claim.at {
        wait(tail, claim.at);
    }
    tail.store(claim.at.wrapping_add(claim.n), Ordering::Release);
}

/// Waits for threads whose turn is before ours. One of them may be waiting for this CPU.
#[cold]
#[inline(never)]
fn wait(tail: &AtomicU32, turn: u32) {
    const SPINS: u32 = 1000;
    let mut spins = 0;
    while tail.load(Ordering::Acquire) != turn {
        if spins < SPINS {
            spins += 1;
            std::hint::spin_loop();
        } else {
            std::thread::yield_now();
        }
    }
}

/// The slots of a ring, and the position of a claim among them: its first slot, and how many slots
/// follow it before the end of the array.
///
/// # Safety
/// `ring` is valid and has slots of the size of a `T`.
#[inline(always)]
unsafe fn slots<T>(ring: *mut rte_ring, claim: &Claim) -> (*mut T, usize, usize) {
    // SAFETY: the contract is the caller's; the slots follow the struct.
    unsafe {
        let mask = constant(ring, layout::RING_MASK);
        let first = claim.at & mask;
        let before_end = (mask - first + 1).min(claim.n);
        let slots = ring.cast::<u8>().add(layout::RING_BYTES).cast();
        (slots, first as usize, before_end as usize)
    }
}

/// `rte_ring_mp_enqueue_burst_elem` and `rte_ring_sp_enqueue_burst_elem`, or `_bulk_elem` with
/// `exact`: moves the first of `n` items into the ring. Returns how many.
///
/// # Safety
/// `ring` is valid and has slots of the size of a `T`. `items` are `n` items, of which those that the ring
/// has taken are its own afterwards. When `SINGLE`, nobody else enqueues meanwhile.
#[inline(always)]
pub(crate) unsafe fn enqueue<T, const SINGLE: bool>(
    ring: *mut rte_ring,
    items: *const T,
    n: u32,
    exact: bool,
) -> u32 {
    // SAFETY: the contract is the caller's. What is claimed is free, and ours until it is published.
    unsafe {
        let capacity = constant(ring, layout::RING_CAPACITY);
        let claim = claim::<SINGLE>(ring, &PRODUCERS, &CONSUMERS, capacity, n, exact);
        if claim.n == 0 {
            return 0;
        }
        let (slots, first, before_end) = slots::<T>(ring, &claim);
        let n = claim.n as usize;
        if n == 1 {
            copy_nonoverlapping(items, slots.add(first), 1);
        } else {
            copy_nonoverlapping(items, slots.add(first), before_end);
            copy_nonoverlapping(items.add(before_end), slots, n - before_end);
        }
        publish::<SINGLE>(ring, &PRODUCERS, &claim);
        claim.n
    }
}

/// `rte_ring_mc_dequeue_burst_elem` and `rte_ring_sc_dequeue_burst_elem`, or `_bulk_elem` with
/// `exact`: moves the first items, at most `n`, out of the ring. Returns how many.
///
/// # Safety
/// `ring` is valid and holds items of type `T`. There is room for `n` items, which are the caller's
/// afterwards, as many as were moved. When `SINGLE`, nobody else dequeues meanwhile.
#[inline(always)]
pub(crate) unsafe fn dequeue<T, const SINGLE: bool>(
    ring: *mut rte_ring,
    items: *mut T,
    n: u32,
    exact: bool,
) -> u32 {
    // SAFETY: the contract is the caller's. What is claimed holds items, ours until it is published.
    unsafe {
        let claim = claim::<SINGLE>(ring, &CONSUMERS, &PRODUCERS, 0, n, exact);
        if claim.n == 0 {
            return 0;
        }
        let (slots, first, before_end) = slots::<T>(ring, &claim);
        let n = claim.n as usize;
        if n == 1 {
            copy_nonoverlapping(slots.add(first), items, 1);
        } else {
            copy_nonoverlapping(slots.add(first), items, before_end);
            copy_nonoverlapping(slots, items.add(before_end), n - before_end);
        }
        publish::<SINGLE>(ring, &CONSUMERS, &claim);
        claim.n
    }
}

/// `rte_ring_count`: the number of items; may be out of date when other threads use the ring.
///
/// # Safety
/// `ring` is valid.
#[inline]
pub(crate) unsafe fn count(ring: *mut rte_ring) -> u32 {
    // SAFETY: the contract is the caller's.
    unsafe {
        let produced = counter(ring, PRODUCERS.tail).load(Ordering::Relaxed);
        let consumed = counter(ring, CONSUMERS.tail).load(Ordering::Relaxed);
        let count = produced.wrapping_sub(consumed) & constant(ring, layout::RING_MASK);
        // The two counters are not read at the same moment.
        count.min(capacity(ring))
    }
}

/// `rte_ring_get_capacity`.
///
/// # Safety
/// `ring` is valid.
#[inline]
pub(crate) unsafe fn capacity(ring: *const rte_ring) -> u32 {
    // SAFETY: the contract is the caller's.
    unsafe { constant(ring, layout::RING_CAPACITY) }
}
