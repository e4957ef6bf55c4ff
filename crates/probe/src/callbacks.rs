// SPDX-License-Identifier: BSD-3-Clause
//! The probe's callbacks on the queues of one port slot, in one direction.
//!
//! DPDK keeps callbacks by slot and queue, whatever happens to the port: a new port in the slot
//! inherits them. It removes one only while the port has that queue. If a port has got fewer
//! queues, or its driver forgot its queues when it was closed (as many do), callbacks remain. They
//! are removed when the queue exists again, before another is added: otherwise its polls would
//! count twice.
//!
//! The argument of a callback ([`Queue`]) is made once for each slot and queue and never freed, so
//! that a poll that is running may use it at any time. DPDK's own record of a callback is freed
//! when the port closes, because nobody polls then.

use std::collections::BTreeMap;
use std::ffi::c_int;

use crate::dpdk::{Callback, Dpdk};

/// The argument of a direction's callbacks.
pub trait Queue: Sync + 'static {
    /// Adds a callback with `self` as argument; null if the port has no such queue.
    ///
    /// # Safety
    /// `port` is a valid port, or none; it is not released meanwhile.
    unsafe fn add(&'static self, dpdk: &Dpdk, port: u16, queue: u16) -> *const Callback;

    /// DPDK's function that removes one.
    fn remove(dpdk: &Dpdk) -> unsafe extern "C" fn(u16, u16, *const Callback) -> c_int;
}

/// DPDK's record of a callback. It may be used from any thread.
struct Added(*const Callback);

// SAFETY: the probe does not dereference the pointer, and DPDK locks its lists.
unsafe impl Send for Added {}

/// The callbacks of a slot in one direction.
pub struct Callbacks<Q: Queue> {
    /// Their arguments, by queue.
    queues: Vec<&'static Q>,
    /// Active callbacks, on the first so many queues.
    on: Vec<Added>,
    /// Still in DPDK's lists: the port did not have their queue when they should have been removed.
    left: BTreeMap<u16, Added>,
    /// Removed from the lists, but a poll that is running may still use them.
    off: Vec<Added>,
}

impl<Q: Queue> Default for Callbacks<Q> {
    fn default() -> Self {
        Self { queues: Vec::new(), on: Vec::new(), left: BTreeMap::new(), off: Vec::new() }
    }
}

impl<Q: Queue> Callbacks<Q> {
    /// Queues with a callback.
    pub fn len(&self) -> usize {
        self.on.len()
    }

    /// DPDK's record of an active callback, in DPDK's memory as long as that is mapped.
    pub fn record(&self) -> Option<*const Callback> {
        self.on.first().map(|added| added.0)
    }

    /// Those queues.
    pub fn iter(&self) -> impl Iterator<Item = &'static Q> {
        self.queues.iter().copied().take(self.on.len())
    }

    /// Adds callbacks to the queues after the last known one until DPDK knows no further queue;
    /// returns true if there was any. Each [`Queue`] is prepared before it is used, for the first
    /// time or again.
    ///
    /// # Safety
    /// The port is valid and not released meanwhile.
    pub unsafe fn put_on(
        &mut self,
        dpdk: &Dpdk,
        port: u16,
        make: impl Fn(u16) -> Q,
        prepare: impl Fn(&Q),
    ) -> bool {
        let before = self.on.len();
        while let Ok(queue) = u16::try_from(self.on.len()) {
            let data = match self.queues.get(self.on.len()) {
                Some(data) => *data,
                None => {
                    let data: &'static Q = Box::leak(Box::new(make(queue)));
                    self.queues.push(data);
                    data
                }
            };
            prepare(data);
            // SAFETY: the contract is the caller's.
            unsafe {
                self.remove_left(dpdk, port, queue);
                let added = data.add(dpdk, port, queue);
                if added.is_null() {
                    break;
                }
                self.on.push(Added(added));
                // The queue may have been added just now. If the callback is not in its list
                // either, other code (a release that clears its lists) has removed it.
                self.remove_left(dpdk, port, queue);
            }
            self.left.remove(&queue);
        }
        self.on.len() > before
    }

    /// Removes callbacks that could not be removed before, if that is possible now.
    ///
    /// # Safety
    /// As for [`Callbacks::put_on`].
    pub unsafe fn take_off_left(&mut self, dpdk: &Dpdk, port: u16) {
        let queues: Vec<u16> = self.left.keys().copied().collect();
        for queue in queues {
            // SAFETY: the contract is the caller's.
            unsafe { self.remove_left(dpdk, port, queue) };
        }
    }

    /// Removes all callbacks.
    ///
    /// # Safety
    /// As for [`Callbacks::put_on`].
    pub unsafe fn take_off(&mut self, dpdk: &Dpdk, port: u16) {
        self.left.extend((0..).zip(self.on.drain(..)));
        // SAFETY: the contract is the caller's.
        unsafe { self.take_off_left(dpdk, port) };
    }

    /// Frees the removed callbacks.
    ///
    /// # Safety
    /// Nobody polls the port, or has polled it since they were removed.
    pub unsafe fn free(&mut self, dpdk: &Dpdk) {
        for added in self.off.drain(..) {
            // SAFETY: as DPDK documents: removed, no poll is running, and freed by rte_free.
            unsafe { (dpdk.free)(added.0.cast_mut().cast()) };
        }
    }

    /// # Safety
    /// As for [`Callbacks::put_on`].
    unsafe fn remove_left(&mut self, dpdk: &Dpdk, port: u16, queue: u16) {
        let Some(added) = self.left.remove(&queue) else { return };
        // SAFETY: a port that DPDK knows, or an error; DPDK compares the pointer with those in its list.
        if unsafe { Q::remove(dpdk)(port, queue, added.0) } == 0 {
            self.off.push(added);
        } else {
            self.left.insert(queue, added);
        }
    }
}
