// SPDX-License-Identifier: BSD-3-Clause
//! Locks that outlive a panic.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks it, even after a thread has panicked with the lock: the data behind the locks here is
/// consistent at every point where that can happen.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
