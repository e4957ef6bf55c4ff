// SPDX-License-Identifier: BSD-3-Clause
//! RX and TX callbacks that drop some packets, by the same rule on both sides.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use dpdk_sys::{rte_eth_rxtx_callback, rte_mbuf};

/// What the callbacks of one side have seen.
pub struct Seen {
    rx: AtomicU64,
    tx: AtomicU64,
    /// Sums over all calls, which include empty polls and the room.
    rx_calls: AtomicU64,
    tx_calls: AtomicU64,
}

impl Seen {
    pub const fn new() -> Self {
        let [rx, tx, rx_calls, tx_calls] = [const { AtomicU64::new(0) }; 4];
        Self { rx, tx, rx_calls, tx_calls }
    }

    /// Everything, for comparing.
    pub fn all(&self) -> [u64; 4] {
        [&self.rx, &self.tx, &self.rx_calls, &self.tx_calls].map(|count| count.load(Relaxed))
    }
}

/// Callbacks on queue 0 of a port; removed on drop.
pub struct Callbacks {
    port: u16,
    rx: *const rte_eth_rxtx_callback,
    tx: *const rte_eth_rxtx_callback,
}

impl Callbacks {
    /// Installs callbacks that count in `seen`.
    pub fn install(port: u16, seen: &'static Seen) -> Self {
        let user = std::ptr::from_ref(seen).cast_mut().cast::<c_void>();
        // SAFETY: the port is configured with these queues, and `seen` is static.
        let (rx, tx) = unsafe {
            (
                dpdk_sys::rte_eth_add_rx_callback(port, 0, Some(on_rx), user),
                dpdk_sys::rte_eth_add_tx_callback(port, 0, Some(on_tx), user),
            )
        };
        assert!(!rx.is_null() && !tx.is_null());
        Self { port, rx, tx }
    }
}

impl Drop for Callbacks {
    fn drop(&mut self) {
        // SAFETY: installed on this port, which nothing polls now.
        unsafe {
            assert_eq!(dpdk_sys::rte_eth_remove_rx_callback(self.port, 0, self.rx), 0);
            assert_eq!(dpdk_sys::rte_eth_remove_tx_callback(self.port, 0, self.tx), 0);
        }
    }
}

/// Frees every fifth packet and closes the gaps.
///
/// # Safety
/// `packets` holds `n` packets that the callback owns.
unsafe fn thin_out(packets: *mut *mut rte_mbuf, n: u16, count: &AtomicU64) -> u16 {
    let mut kept = 0;
    for at in 0..usize::from(n) {
        // SAFETY: inside the array; a callback owns the packets that it does not pass on.
        unsafe {
            let packet = *packets.add(at);
            if count.fetch_add(1, Relaxed) % 5 == 4 {
                dpdk_sys::lr_pktmbuf_free(packet);
            } else {
                *packets.add(usize::from(kept)) = packet;
                kept += 1;
            }
        }
    }
    kept
}

unsafe extern "C" fn on_rx(
    _port: u16,
    _queue: u16,
    packets: *mut *mut rte_mbuf,
    received: u16,
    room: u16,
    seen: *mut c_void,
) -> u16 {
    // SAFETY: installed with a `Seen` that lives for ever; DPDK hands over what was received.
    unsafe {
        let seen = &*seen.cast::<Seen>();
        seen.rx_calls.fetch_add(1000 + u64::from(room), Relaxed);
        thin_out(packets, received, &seen.rx)
    }
}

unsafe extern "C" fn on_tx(
    _port: u16,
    _queue: u16,
    packets: *mut *mut rte_mbuf,
    offered: u16,
    seen: *mut c_void,
) -> u16 {
    // SAFETY: as above, with what is to be sent.
    unsafe {
        let seen = &*seen.cast::<Seen>();
        seen.tx_calls.fetch_add(1000, Relaxed);
        thin_out(packets, offered, &seen.tx)
    }
}
