// SPDX-License-Identifier: BSD-3-Clause
//! Keeps the program's signals away from the probe's thread.

use std::mem::MaybeUninit;

use libc::{SIG_SETMASK, SIGBUS, SIGFPE, SIGILL, SIGSEGV, pthread_sigmask, sigset_t};

/// Runs `start` with all signals blocked on the calling thread and the threads that it starts:
/// programs expect their signals on their own threads. Faults are not blocked, because they would
/// then bypass the program's handlers.
pub fn blocked<R>(start: impl FnOnce() -> R) -> R {
    let mut before = MaybeUninit::<sigset_t>::uninit();
    // SAFETY: the sets are initialised by the calls that have them first; numbers of signals that exist.
    let code = unsafe {
        let mut all = MaybeUninit::<sigset_t>::uninit();
        libc::sigfillset(all.as_mut_ptr());
        for fault in [SIGBUS, SIGFPE, SIGILL, SIGSEGV] {
            libc::sigdelset(all.as_mut_ptr(), fault);
        }
        pthread_sigmask(SIG_SETMASK, all.as_ptr(), before.as_mut_ptr())
    };
    let result = start();
    if code == 0 {
        // SAFETY: the call that succeeded filled the set.
        unsafe { pthread_sigmask(SIG_SETMASK, before.as_ptr(), std::ptr::null_mut()) };
    }
    result
}
