// SPDX-License-Identifier: BSD-3-Clause
//! The closures on the queues of one port.

use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use dpdk_sys::rte_eth_rxtx_callback;

use crate::errno::Errno;
use crate::mutex::locked;
use crate::port::error::PortError;
use crate::port::id::PortId;
use crate::port::lock::lock;

/// Identifies a closure on a queue, to remove it. Unique in a process.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CallbackId(u64);

impl CallbackId {
    fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// The direction of a port's queue.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::port) enum Direction {
    Rx,
    Tx,
}

/// A closure in DPDK's list.
struct Added {
    id: CallbackId,
    direction: Direction,
    queue: u16,
    /// DPDK's own, freed by `rte_free`.
    record: *const rte_eth_rxtx_callback,
    /// The box of the closure, and the function that drops it.
    closure: *mut c_void,
    drop: unsafe fn(*mut c_void),
}

// SAFETY: the closure is `Send`, and the record is looked at by DPDK alone, under its lock.
unsafe impl Send for Added {}

/// Closures that were leaked, kept where a leak detector finds them.
static LEAKED: Mutex<Vec<AtomicPtr<c_void>>> = Mutex::new(Vec::new());

fn leak(closure: *mut c_void) {
    locked(&LEAKED).push(AtomicPtr::new(closure));
}

/// The closures on a port's queues. It outlives the queues, which may be forgotten.
#[derive(Default)]
pub(in crate::port) struct Registry(Mutex<Vec<Added>>);

impl Registry {
    fn lock(&self) -> MutexGuard<'_, Vec<Added>> {
        locked(&self.0)
    }

    /// Boxes a closure and has `add` put it into DPDK's list, with a pointer to it as its
    /// parameter.
    ///
    /// # Safety
    /// Nobody polls the queue. Later polls may call a closure of this type, until
    /// [`remove`](Self::remove), [`remove_all`](Self::remove_all), [`clear`](Self::clear) or
    /// [`abandon`](Self::abandon).
    pub(in crate::port) unsafe fn add<F: Send>(
        &self,
        port: u16,
        queue: u16,
        direction: Direction,
        closure: F,
        add: impl FnOnce(*mut c_void) -> *const rte_eth_rxtx_callback,
    ) -> Result<CallbackId, PortError> {
        let closure = Box::into_raw(Box::new(closure)).cast::<c_void>();
        let alone = lock();
        let record = add(closure);
        // Before another call changes it.
        let errno = Errno::last();
        drop(alone);
        if record.is_null() {
            // SAFETY: the box made above; DPDK did not take it.
            unsafe { drop_box::<F>(closure) };
            let call = match direction {
                Direction::Rx => "rte_eth_add_rx_callback",
                Direction::Tx => "rte_eth_add_tx_callback",
            };
            return Err(PortError::Call { port: PortId(port), call, errno });
        }
        let id = CallbackId::next();
        self.lock().push(Added { id, direction, queue, record, closure, drop: drop_box::<F> });
        Ok(id)
    }

    /// Removes one closure of a queue and drops it; returns whether the queue had it.
    ///
    /// # Safety
    /// Nobody polls the queue, and the closure's borrows are alive.
    pub(in crate::port) unsafe fn remove(
        &self,
        port: u16,
        queue: u16,
        direction: Direction,
        id: CallbackId,
    ) -> bool {
        // SAFETY: the contract is the caller's.
        unsafe {
            self.remove_those(port, |added| {
                added.id == id && added.queue == queue && added.direction == direction
            })
        }
    }

    /// Removes all closures of a queue and drops them.
    ///
    /// # Safety
    /// Nobody polls the queue, nor will, and the closures' borrows are alive.
    pub(in crate::port) unsafe fn remove_all(&self, port: u16, queue: u16, direction: Direction) {
        // SAFETY: the contract is the caller's.
        unsafe {
            self.remove_those(port, |added| added.queue == queue && added.direction == direction)
        };
    }

    /// Removes all closures and drops them.
    ///
    /// # Safety
    /// Nobody polls the port's queues, and the closures' borrows are alive.
    pub(in crate::port) unsafe fn clear(&self, port: u16) {
        // SAFETY: the contract is the caller's.
        unsafe { self.remove_those(port, |_| true) };
    }

    /// Removes the closures of forgotten queues, and leaks them: their borrows may have ended.
    ///
    /// # Safety
    /// No queue of the port is alive, except forgotten ones.
    pub(in crate::port) unsafe fn abandon(&self, port: u16) {
        let left = std::mem::take(&mut *self.lock());
        for added in left {
            // SAFETY: nobody polls the port's queues.
            unsafe { take_off(port, &added) };
            leak(added.closure);
        }
    }

    /// # Safety
    /// Nobody polls the queues of the closures that `which` chooses, and their borrows are alive.
    unsafe fn remove_those(&self, port: u16, which: impl Fn(&Added) -> bool) -> bool {
        let mut chosen = Vec::new();
        {
            let mut all = self.lock();
            // From the end, so that those that are left keep their order.
            for index in (0..all.len()).rev() {
                if all.get(index).is_some_and(&which) {
                    chosen.push(all.remove(index));
                }
            }
        }
        let any = !chosen.is_empty();
        // All closures are removed before the first is dropped: if a drop panics, none may be left
        // in a list without an owner to remove it.
        let mut off = Vec::with_capacity(chosen.len());
        for added in chosen {
            // SAFETY: the contract is the caller's.
            if unsafe { take_off(port, &added) } {
                off.push(OffTheList(added));
            } else {
                leak(added.closure); // DPDK did not find it.
            }
        }
        // No lock is held meanwhile, because a closure may own queues and ports.
        drop(off);
        any
    }
}

/// A closure that is no longer called; dropping this drops it. Of several, all are dropped, even if
/// one of them panics.
struct OffTheList(Added);

impl Drop for OffTheList {
    fn drop(&mut self) {
        // SAFETY: made from a record that `take_off` removed, which nobody else drops.
        unsafe { (self.0.drop)(self.0.closure) };
    }
}

/// Removes a record from DPDK's list and frees it; if DPDK does not find it, returns false and
/// leaks it.
///
/// # Safety
/// Nobody polls its queue.
unsafe fn take_off(port: u16, added: &Added) -> bool {
    let _alone = lock();
    // SAFETY: DPDK compares the pointer with those in its list, under its lock. A removed record
    // that is not polled is for its owner to free.
    unsafe {
        let code = match added.direction {
            Direction::Rx => dpdk_sys::rte_eth_remove_rx_callback(port, added.queue, added.record),
            Direction::Tx => dpdk_sys::rte_eth_remove_tx_callback(port, added.queue, added.record),
        };
        if code == 0 {
            dpdk_sys::rte_free(added.record.cast_mut().cast());
        }
        code == 0
    }
}

/// # Safety
/// `closure` is a box of an `F`, which the caller gives up.
unsafe fn drop_box<F>(closure: *mut c_void) {
    // SAFETY: the contract is the caller's.
    drop(unsafe { Box::from_raw(closure.cast::<F>()) });
}
