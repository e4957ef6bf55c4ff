// SPDX-License-Identifier: BSD-3-Clause
//! Locks that outlive a panic.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks it, also after a thread has panicked with the lock: what lies behind those here is whole wherever that can be.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
