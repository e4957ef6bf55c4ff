// SPDX-License-Identifier: BSD-3-Clause
//! The parts of `rte_eth_rx_burst` and `rte_eth_tx_burst`. The queues combine them, so that values
//! needed only by callbacks do not occupy registers.

use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, Ordering};

use dpdk_sys::{layout, rte_mbuf};

pub(crate) type BurstFn = unsafe extern "C" fn(*mut c_void, *mut *mut rte_mbuf, u16) -> u16;

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

/// Reads a pointer of the entry, atomically: another thread may replace it (when a device is
/// removed, or by a plugin that wraps the burst functions), so it must be read anew for each burst.
///
/// # Safety
/// `ops` is an entry of the table, which lives as long as the process, and `offset` that of a pointer,
/// which the C compiler has aligned.
#[inline(always)]
pub(crate) unsafe fn read(ops: *const u8, offset: usize) -> *mut c_void {
    // SAFETY: the contract is the caller's.
    unsafe { AtomicPtr::from_ptr(ops.add(offset).cast_mut().cast()).load(Ordering::Relaxed) }
}

/// # Safety
/// As [`read`], and `offset` is that of a burst function, which DPDK never leaves null.
#[inline(always)]
pub(crate) unsafe fn read_burst(ops: *const u8, offset: usize) -> BurstFn {
    // SAFETY: the contract is the caller's; a function pointer has a pointer's size.
    unsafe { std::mem::transmute::<*mut c_void, BurstFn>(read(ops, offset)) }
}

/// The head of a queue's list of callbacks; null if there are none.
///
/// Relaxed, as in C: later accesses depend on the pointer that was read.
///
/// # Safety
/// As [`read`]; `offset` is that of a `clbk` array with an entry for each queue, of which this is one.
#[inline(always)]
unsafe fn callbacks(ops: *const u8, offset: usize, queue: usize) -> *mut c_void {
    // SAFETY: the contract is the caller's.
    unsafe {
        let heads: *mut *mut c_void = read(ops, offset).cast();
        AtomicPtr::from_ptr(heads.add(queue)).load(Ordering::Relaxed)
    }
}

/// `rte_eth_rx_burst` up to its callbacks: receives up to `n` packets.
///
/// # Safety
/// `ops` is `fp_ops(port)` of a started port with this RX queue, which nobody else polls meanwhile;
/// `pkts` has room for `n` pointers.
#[inline(always)]
pub(crate) unsafe fn rx_driver(
    ops: *const u8,
    queue: usize,
    pkts: *mut *mut rte_mbuf,
    n: u16,
) -> u16 {
    // SAFETY: the contract is the caller's; offsets are those of the C struct.
    unsafe {
        let data: *mut *mut c_void = read(ops, layout::FP_RXQ_DATA).cast();
        let burst = read_burst(ops, layout::FP_RX_PKT_BURST);
        burst(*data.add(queue), pkts, n)
    }
}

/// The callbacks of an RX queue, which `rte_eth_rx_burst` runs on received packets, even if there
/// are none.
///
/// # Safety
/// `ops` is `fp_ops(port)` of a started port with this RX queue.
#[inline(always)]
pub(crate) unsafe fn rx_callbacks(ops: *const u8, queue: usize) -> *mut c_void {
    // SAFETY: the contract is the caller's.
    unsafe { callbacks(ops, layout::FP_RXQ_CLBK, queue) }
}

/// The callbacks of a TX queue, which `rte_eth_tx_burst` runs on the packets before they are
/// offered.
///
/// # Safety
/// `ops` is `fp_ops(port)` of a started port with this TX queue.
#[inline(always)]
pub(crate) unsafe fn tx_callbacks(ops: *const u8, queue: usize) -> *mut c_void {
    // SAFETY: the contract is the caller's.
    unsafe { callbacks(ops, layout::FP_TXQ_CLBK, queue) }
}

/// `rte_eth_tx_burst` after its callbacks: offers `n` packets. Returns how many the driver took, from
/// the front; the others remain the caller's.
///
/// # Safety
/// `ops` is `fp_ops(port)` of a started port with this TX queue, which nobody else uses meanwhile;
/// `pkts` holds `n` packets that the caller owns.
#[inline(always)]
pub(crate) unsafe fn tx_driver(
    ops: *const u8,
    queue: usize,
    pkts: *mut *mut rte_mbuf,
    n: u16,
) -> u16 {
    // SAFETY: the contract is the caller's; offsets are those of the C struct.
    unsafe {
        let data: *mut *mut c_void = read(ops, layout::FP_TXQ_DATA).cast();
        let burst = read_burst(ops, layout::FP_TX_PKT_BURST);
        burst(*data.add(queue), pkts, n)
    }
}

/// `rte_eth_tx_prepare`: returns how many of `n` packets, from the front, the driver will take
/// unchanged. `rte_errno` has the reason why it refuses the next one.
///
/// # Safety
/// As [`tx_driver`]; all packets remain the caller's, and no other owner reads the bytes that a request
/// (see `REQUESTS`) has the driver write.
pub(crate) unsafe fn tx_prepare(
    ops: *const u8,
    queue: usize,
    pkts: *mut *mut rte_mbuf,
    n: u16,
) -> u16 {
    // SAFETY: the contract is the caller's; offsets are those of the C struct, and a function pointer that may
    // be null has a pointer's size.
    unsafe {
        let prepare: Option<BurstFn> = std::mem::transmute(read(ops, layout::FP_TX_PKT_PREPARE));
        let data: *mut *mut c_void = read(ops, layout::FP_TXQ_DATA).cast();
        prepare.map_or(n, |prepare| prepare(*data.add(queue), pkts, n))
    }
}
