// SPDX-License-Identifier: BSD-3-Clause
//! The inline functions of `rte_rcu_qsbr.h`: readers call them for each burst, writers to wait for
//! readers.

use std::sync::atomic::{AtomicU64, Ordering, fence};

use dpdk_sys::{layout, rte_rcu_qsbr};

/// A number in the variable; all are read and written atomically, by C too.
///
/// # Safety
/// `variable` is valid for `'v`, and has a number of 64 bits at `offset`.
#[inline(always)]
unsafe fn number<'v>(variable: *mut rte_rcu_qsbr, offset: usize) -> &'v AtomicU64 {
    // SAFETY: the contract is the caller's; the C compiler has aligned it.
    unsafe { AtomicU64::from_ptr(variable.cast::<u8>().add(offset).cast()) }
}

/// The token that a reader has acknowledged; 0 while it is offline.
///
/// # Safety
/// `variable` is valid for `'v` and was made for more threads than `thread`.
#[inline(always)]
unsafe fn counter<'v>(variable: *mut rte_rcu_qsbr, thread: u32) -> &'v AtomicU64 {
    let offset = layout::QSBR_COUNTERS + thread as usize * layout::QSBR_COUNTER_STRIDE;
    // SAFETY: the contract is the caller's.
    unsafe { number(variable, offset + layout::QSBR_COUNTER) }
}

/// `rte_rcu_qsbr_thread_online`, whose store is relaxed.
///
/// # Safety
/// `variable` is valid and was made for more threads than `thread`, which is the caller's own.
#[inline]
pub(crate) unsafe fn online(variable: *mut rte_rcu_qsbr, thread: u32) {
    // SAFETY: the contract is the caller's.
    unsafe {
        let token = number(variable, layout::QSBR_TOKEN).load(Ordering::Relaxed);
        // Release: a writer may see this store without having seen that the thread was offline. The
        // thread's earlier reads then happen before what the writer frees. On x86 it costs nothing.
        counter(variable, thread).store(token, Ordering::Release);
    }
    // A writer that does not see the store has exchanged the table before the reads that follow.
    fence(Ordering::SeqCst);
}

/// `rte_rcu_qsbr_thread_offline`.
///
/// # Safety
/// As [`online`].
#[inline]
pub(crate) unsafe fn offline(variable: *mut rte_rcu_qsbr, thread: u32) {
    // SAFETY: the contract is the caller's.
    unsafe { counter(variable, thread) }.store(layout::QSBR_OFFLINE, Ordering::Release);
}

/// `rte_rcu_qsbr_quiescent`.
///
/// # Safety
/// As [`online`], and the thread is online.
#[inline]
pub(crate) unsafe fn quiescent(variable: *mut rte_rcu_qsbr, thread: u32) {
    // SAFETY: the contract is the caller's.
    unsafe {
        let token = number(variable, layout::QSBR_TOKEN).load(Ordering::Acquire);
        let counter = counter(variable, thread);
        // Usually no writer has asked, and the cache line stays where it is.
        if counter.load(Ordering::Relaxed) != token {
            counter.store(token, Ordering::Release);
        }
    }
}

/// `rte_rcu_qsbr_start`.
///
/// # Safety
/// `variable` is valid.
#[inline]
pub(crate) unsafe fn start(variable: *mut rte_rcu_qsbr) -> u64 {
    // SAFETY: the contract is the caller's.
    let token = unsafe { number(variable, layout::QSBR_TOKEN).fetch_add(1, Ordering::Release) } + 1;
    // Threads that go online unseen by `check` must see what was exchanged before. On x86 the
    // addition alone ensures that; C has no more.
    fence(Ordering::SeqCst);
    token
}

/// Sets the token that C assumes every reader has acknowledged; returns the previous one.
///
/// # Safety
/// `variable` is valid. Until the previous value is restored, C checks only for objects that no
/// reader uses.
pub(crate) unsafe fn believe(variable: *mut rte_rcu_qsbr, token: u64) -> u64 {
    // SAFETY: the contract is the caller's.
    unsafe { number(variable, layout::QSBR_ACKED) }.swap(token, Ordering::Relaxed)
}

/// `rte_rcu_qsbr_check` without waiting: returns true if every registered reader that is online has
/// acknowledged `token`.
///
/// C stores the smallest token that it has seen acknowledged (`acked_token`) and relies on it next
/// time. That is wrong: a reader that was offline when a check passed it may have gone online
/// since, while readers that the check reached later acknowledged newer tokens of another writer.
/// That reader is then behind the stored token. So nothing is stored here, nor relied on.
///
/// # Safety
/// `variable` is valid and was made for `threads` threads.
pub(crate) unsafe fn check(variable: *mut rte_rcu_qsbr, threads: u32, token: u64) -> bool {
    let registered = layout::QSBR_COUNTERS + threads as usize * layout::QSBR_COUNTER_STRIDE;
    (0..threads.div_ceil(64)).all(|word| {
        // SAFETY: the contract is the caller's; a bit for each registered thread follows the counters.
        let mut bits =
            unsafe { number(variable, registered + 8 * word as usize) }.load(Ordering::Acquire);
        while bits != 0 {
            let thread = 64 * word + bits.trailing_zeros();
            bits &= bits - 1;
            // SAFETY: only threads that the variable was made for are registered.
            let seen = unsafe { counter(variable, thread) }.load(Ordering::Acquire);
            if seen != layout::QSBR_OFFLINE && seen < token {
                return false;
            }
        }
        true
    })
}
