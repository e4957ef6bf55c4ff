// SPDX-License-Identifier: BSD-3-Clause
//! A flag that asks the work on lcores to end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Asks the work of a program to end: a flag that can be set from any thread or signal handler, and is not taken back. Clones
/// share it.
///
/// [`Eal::scope_until`](crate::Eal::scope_until) sets it when its body ends.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// A flag that is not set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns true once it is set. Costs a load of a cache line that all readers share.
    #[inline(always)]
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Sets it.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns a guard that sets the flag when it is dropped: in whatever way a thread ends, the others end too.
    #[must_use = "it sets the flag when it is dropped"]
    pub fn guard(&self) -> StopGuard<'_> {
        StopGuard(self)
    }

    /// The flag itself, for functions that set one when a signal arrives, such as `signal_hook::flag::register`.
    #[must_use]
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}

/// Sets a [`Stop`] when it is dropped.
#[derive(Debug)]
pub struct StopGuard<'s>(&'s Stop);

impl Drop for StopGuard<'_> {
    fn drop(&mut self) {
        self.0.set();
    }
}
