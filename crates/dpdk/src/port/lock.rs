// SPDX-License-Identifier: BSD-3-Clause
//! The lock for operations on ports, and drops that wait until it is released.
//!
//! A driver that is stopped or closed may free packets, and with the last packet of an
//! [`ExternalBuffer`](crate::ExternalBuffer) the owner of its bytes. That owner's `drop` is code of
//! the program, and may itself call a port. So a thread that holds the lock postpones such drops
//! until right after releasing it.

use std::cell::Cell;
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use crate::mutex::locked;

/// DPDK's control functions must not run in parallel on a port: they change bit-fields that share a
/// byte, and nothing protects queries while the port is configured, stopped or removed.
static CONTROL: Mutex<()> = Mutex::new(());

thread_local! {
    // Neither has a destructor: a thread that is ending may take the lock, too.
    /// True while this thread holds the lock.
    static HELD: Cell<bool> = const { Cell::new(false) };
    /// Drops that this thread has to do after releasing the lock.
    static WAITING: Cell<*mut PutOff> = const { Cell::new(ptr::null_mut()) };
}

/// The lock, held.
pub(crate) struct Alone(ManuallyDrop<MutexGuard<'static, ()>>);

/// Taken for each control call, including queries; never on the packet path. It is not recursive.
/// If `Eal::taken` is needed as well, it is locked first.
pub(crate) fn lock() -> Alone {
    let guard = locked(&CONTROL);
    HELD.set(true);
    Alone(ManuallyDrop::new(guard))
}

/// Takes the lock if it is free within that time.
pub(crate) fn lock_within(patience: Duration) -> Option<Alone> {
    const PAUSE: Duration = Duration::from_millis(1);
    let deadline = Instant::now() + patience;
    loop {
        let guard = match CONTROL.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poison)) => poison.into_inner(),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                thread::sleep(PAUSE);
                continue;
            }
            Err(TryLockError::WouldBlock) => return None,
        };
        HELD.set(true);
        return Some(Alone(ManuallyDrop::new(guard)));
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        HELD.set(false);
        // SAFETY: the guard is dropped once, here.
        unsafe { ManuallyDrop::drop(&mut self.0) };
        let mut next = WAITING.replace(ptr::null_mut());
        while !next.is_null() {
            // SAFETY: put there by `put_off`, whose caller gave it up; it is looked at for the last time.
            unsafe {
                let first = next;
                next = (*first).next;
                ((*first).free)((*first).what);
            }
        }
    }
}

/// A postponed drop, and the function that frees. It lies in the object to free, so that nothing is
/// allocated.
pub(crate) struct PutOff {
    next: *mut PutOff,
    what: *mut c_void,
    /// A panic in it ends the process.
    free: unsafe extern "C" fn(*mut c_void),
}

impl PutOff {
    pub(crate) fn new(free: unsafe extern "C" fn(*mut c_void)) -> Self {
        Self { next: ptr::null_mut(), what: ptr::null_mut(), free }
    }
}

/// Frees `what` by the function in its `link`: now, or if this thread holds the lock, right after
/// releasing it.
///
/// # Safety
/// `link` lies in `what`, which the caller may free by that function, on this thread, and which is
/// not used any more.
pub(crate) unsafe fn free_unlocked(link: *mut PutOff, what: *mut c_void) {
    // SAFETY: the contract is the caller's.
    unsafe {
        if HELD.get() {
            (*link).what = what;
            (*link).next = WAITING.replace(link);
        } else {
            ((*link).free)(what);
        }
    }
}
