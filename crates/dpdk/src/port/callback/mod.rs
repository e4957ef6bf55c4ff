// SPDX-License-Identifier: BSD-3-Clause
//! RX and TX callbacks as closures (`rte_eth_add_rx_callback`, `rte_eth_add_tx_callback`).
//!
//! # Lifecycle
//! A closure belongs to its queue: it is added and removed through `&mut`, and dropped with the
//! queue at the latest. Only the holder of a `&mut` queue can poll it, so a closure and DPDK's
//! record of it are freed while no poll runs. C gets the closure as a pointer to a box, together
//! with a function made for the closure's type that calls it: a callback costs no more calls than
//! one in C.
//!
//! A queue that is forgotten (`mem::forget`, a cycle of `Arc`s) leaves its closures in DPDK's list.
//! Their borrows may end before the port's queues are handed out again. So before that, and before
//! the port stops, it removes the closures from the list and leaks them. Until then nobody polls
//! the queue: it cannot be reached, there is no second one, other processes have their own
//! callbacks, and DPDK's own threads do not poll queues of ports that a program has taken.
//!
//! # Other callbacks on the same queue
//! Callbacks of plugins, of the probe and of pdump keep their place in the list. DPDK locks the
//! list for all changes, and polls read it as C's do.
//!
//! # Panics
//! A panic in a closure ends the process with its message: it would unwind into C.

mod packets;
mod registry;

pub use packets::Packets;
pub use registry::CallbackId;
pub(super) use registry::{Direction, Registry};

use std::ffi::c_void;

use dpdk_sys::rte_mbuf;

/// The function that DPDK calls for received packets: runs a closure of type `F` on them.
///
/// # Safety
/// As for `rte_rx_callback_fn`: the caller owns `received` packets at `first`, valid for `'port`,
/// with room for `room`, and owns the resulting packets. `closure` points to an `F` that is not in
/// use elsewhere.
pub(super) unsafe extern "C" fn on_receive<'port, F>(
    _port: u16,
    _queue: u16,
    first: *mut *mut rte_mbuf,
    received: u16,
    room: u16,
    closure: *mut c_void,
) -> u16
where
    F: FnMut(&mut Packets<'_, 'port>),
{
    // SAFETY: the contract is the caller's. Panics end at this function, which is one of C's.
    unsafe { run(closure.cast::<F>(), first, received, room) }
}

/// The function that DPDK calls for packets to be sent: runs a closure of type `F` on them.
///
/// # Safety
/// As for `rte_tx_callback_fn`: the caller owns `offered` packets at `first` and keeps as many of
/// them, from the front, as the function returns. `closure` points to an `F` that is not in use
/// elsewhere.
pub(super) unsafe extern "C" fn on_send<F>(
    _port: u16,
    _queue: u16,
    first: *mut *mut rte_mbuf,
    offered: u16,
    closure: *mut c_void,
) -> u16
where
    F: FnMut(&mut Packets<'_, '_>),
{
    // SAFETY: the contract is the caller's. Panics end at this function, which is one of C's.
    unsafe { run(closure.cast::<F>(), first, offered, offered) }
}

/// # Safety
/// As for [`on_receive`].
#[inline(always)]
unsafe fn run<'m, F>(closure: *mut F, first: *mut *mut rte_mbuf, count: u16, room: u16) -> u16
where
    F: FnMut(&mut Packets<'_, 'm>),
{
    // SAFETY: the contract is the caller's. The closure's count never exceeds the room, 16 bits.
    unsafe {
        let mut packets = Packets::new(first, count, room);
        (*closure)(&mut packets);
        packets.len() as u16
    }
}
