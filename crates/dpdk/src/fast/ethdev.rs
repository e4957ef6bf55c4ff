// SPDX-License-Identifier: BSD-3-Clause
//! `rte_eth_rx_burst` and `rte_eth_tx_burst`, callbacks included.

use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, Ordering};

use dpdk_sys::{layout, rte_mbuf};

type BurstFn = unsafe extern "C" fn(*mut c_void, *mut *mut rte_mbuf, u16) -> u16;

/// The entry of a port in `rte_eth_fp_ops`.
#[inline]
pub(crate) fn fp_ops(port: u16) -> *const u8 {
    debug_assert!(usize::from(port) < layout::MAX_ETHPORTS);
    // SAFETY: the table has MAX_ETHPORTS entries and DPDK gives out smaller numbers only.
    unsafe {
        (&raw const dpdk_sys::rte_eth_fp_ops)
            .cast::<u8>()
            .add(usize::from(port) * layout::FP_OPS_SIZE)
    }
}

/// Reads a pointer of the entry, atomically: another thread may replace it (a device that is removed,
/// a plugin that wraps the burst functions), and it must be read anew at each burst.
///
/// # Safety
/// `ops` is an entry of the table, which lives as long as the process, and `offset` that of a pointer,
/// which the C compiler has aligned.
#[inline(always)]
unsafe fn read(ops: *const u8, offset: usize) -> *mut c_void {
    // SAFETY: the contract is the caller's.
    unsafe { AtomicPtr::from_ptr(ops.add(offset).cast_mut().cast()).load(Ordering::Relaxed) }
}

/// # Safety
/// As [`read`], and `offset` is that of a burst function, which DPDK never leaves null.
#[inline(always)]
unsafe fn read_burst(ops: *const u8, offset: usize) -> BurstFn {
    // SAFETY: the contract is the caller's; a function pointer has a pointer's size.
    unsafe { std::mem::transmute::<*mut c_void, BurstFn>(read(ops, offset)) }
}

/// The head of a queue's list of callbacks; null where there are none.
///
/// Relaxed, as in C: what follows depends on the pointer that was read.
#[inline(always)]
unsafe fn callbacks(ops: *const u8, offset: usize, queue: u16) -> *mut c_void {
    // SAFETY: `offset` is that of a `clbk` array with an entry for each queue.
    unsafe {
        let heads: *mut *mut c_void = read(ops, offset).cast();
        AtomicPtr::from_ptr(heads.add(usize::from(queue))).load(Ordering::Relaxed)
    }
}

/// `rte_eth_rx_burst`: receives up to `n` packets and runs the queue's RX callbacks, also on none.
///
/// # Safety
/// `ops` is `fp_ops(port)` of a started port with this RX queue, which nobody else polls meanwhile;
/// `pkts` has room for `n` pointers.
#[inline(always)]
pub(crate) unsafe fn rx_burst(
    ops: *const u8,
    port: u16,
    queue: u16,
    pkts: *mut *mut rte_mbuf,
    n: u16,
) -> u16 {
    // SAFETY: the contract is the caller's; offsets are those of the C struct.
    unsafe {
        let data: *mut *mut c_void = read(ops, layout::FP_RXQ_DATA).cast();
        let burst = read_burst(ops, layout::FP_RX_PKT_BURST);
        let received = burst(*data.add(usize::from(queue)), pkts, n);
        let callbacks = callbacks(ops, layout::FP_RXQ_CLBK, queue);
        if callbacks.is_null() {
            return received;
        }
        dpdk_sys::rte_eth_call_rx_callbacks(port, queue, pkts, received, n, callbacks)
    }
}

/// `rte_eth_tx_burst`: runs the queue's TX callbacks, then offers `n` packets. Returns how many the
/// driver took, from the front; the others remain the caller's.
///
/// # Safety
/// `ops` is `fp_ops(port)` of a started port with this TX queue, which nobody else uses meanwhile;
/// `pkts` holds `n` packets that the caller owns.
#[inline(always)]
pub(crate) unsafe fn tx_burst(
    ops: *const u8,
    port: u16,
    queue: u16,
    pkts: *mut *mut rte_mbuf,
    n: u16,
) -> Sent {
    // SAFETY: the contract is the caller's; offsets are those of the C struct.
    unsafe {
        let data: *mut *mut c_void = read(ops, layout::FP_TXQ_DATA).cast();
        let callbacks = callbacks(ops, layout::FP_TXQ_CLBK, queue);
        let offered = if callbacks.is_null() {
            n
        } else {
            dpdk_sys::rte_eth_call_tx_callbacks(port, queue, pkts, n, callbacks)
        };
        let burst = read_burst(ops, layout::FP_TX_PKT_BURST);
        Sent { accepted: burst(*data.add(usize::from(queue)), pkts, offered), offered }
    }
}

/// What became of a burst given to [`tx_burst`].
pub(crate) struct Sent {
    /// Packets that the driver took.
    pub(crate) accepted: u16,
    /// Packets that the TX callbacks left of it; they own (and have freed) the others.
    pub(crate) offered: u16,
}
