// SPDX-License-Identifier: BSD-3-Clause
//! The probe's callbacks on the queues of one port slot, in one direction.
//!
//! DPDK keeps callbacks by slot and queue, whatever becomes of the port: a new port in the slot inherits
//! them. It takes one off only while the port has that queue. A port that was given fewer queues, or whose
//! driver forgot its queues when it was closed (as many do), keeps the rest; those are taken off when the
//! queue is there again, before another is added, for else its polls would count twice.
//!
//! What a callback is given ([`Queue`]) is made once for each slot and queue and never freed, so that a
//! poll under way may use it for as long as it likes. DPDK's own record of a callback is freed when the
//! port closes, for then nobody polls.

use std::collections::BTreeMap;
use std::ffi::c_int;

use crate::dpdk::{Callback, Dpdk};

/// What the callbacks of a direction are given.
pub trait Queue: Sync + 'static {
    /// Adds a callback that is given `self`; null if the port has no such queue.
    ///
    /// # Safety
    /// `port` is a valid port, or none; it is not released meanwhile.
    unsafe fn add(&'static self, dpdk: &Dpdk, port: u16, queue: u16) -> *const Callback;

    /// DPDK's function that takes one off.
    fn remove(dpdk: &Dpdk) -> unsafe extern "C" fn(u16, u16, *const Callback) -> c_int;
}

/// DPDK's record of a callback. It may be used from any thread.
struct Added(*const Callback);

// SAFETY: the probe does not look behind the pointer, and DPDK locks its lists.
unsafe impl Send for Added {}

/// The callbacks of a slot in one direction.
pub struct Callbacks<Q: Queue> {
    /// What they are given, by queue.
    queues: Vec<&'static Q>,
    /// In place, on the first so many queues.
    on: Vec<Added>,
    /// In DPDK's lists, of queues that the port did not have when they should have gone.
    left: BTreeMap<u16, Added>,
    /// Off the lists, but a poll under way may yet look at them.
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

    /// DPDK's record of a callback that is in place: in DPDK's memory for as long as that is there.
    pub fn record(&self) -> Option<*const Callback> {
        self.on.first().map(|added| added.0)
    }

    /// Those queues.
    pub fn iter(&self) -> impl Iterator<Item = &'static Q> {
        self.queues.iter().copied().take(self.on.len())
    }

    /// Adds callbacks to the queues after the last known one until DPDK knows no further queue; whether
    /// there was any. Each [`Queue`] is prepared before it is used, for the first time or again.
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
                // The queue may have come just now. If this one is not there either, somebody else, a
                // release that clears its lists, took it off: it is not ours any more.
                self.remove_left(dpdk, port, queue);
            }
            self.left.remove(&queue);
        }
        self.on.len() > before
    }

    /// Takes off what could not be taken off before, where that can be done now.
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

    /// Takes all callbacks off.
    ///
    /// # Safety
    /// As for [`Callbacks::put_on`].
    pub unsafe fn take_off(&mut self, dpdk: &Dpdk, port: u16) {
        self.left.extend((0..).zip(self.on.drain(..)));
        // SAFETY: the contract is the caller's.
        unsafe { self.take_off_left(dpdk, port) };
    }

    /// Frees what was taken off.
    ///
    /// # Safety
    /// Nobody polls the port, nor has done since it was taken off.
    pub unsafe fn free(&mut self, dpdk: &Dpdk) {
        for added in self.off.drain(..) {
            // SAFETY: DPDK's documentation says so: removed, no poll under way, and free by rte_free.
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
