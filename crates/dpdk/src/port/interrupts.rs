// SPDX-License-Identifier: BSD-3-Clause
//! DPDK's interrupt thread, held while a driver does what that thread does as well.
//!
//! net_memif answers its peer on that thread and takes no lock that stopping or removing the port takes: one of
//! the two frees what the other uses. So the thread waits inside an alarm, which it runs between two handlers, until the control
//! call is over. Other drivers' interrupts and alarms wait meanwhile. A port is started without: its client may have to
//! wait for a server of the same process, which that thread lets in.

use std::ffi::c_void;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use super::driver::Driver;
use super::id::PortId;
use super::info;
use super::lock::Alone;
use crate::errno::Errno;
use crate::mutex::locked;

/// How long a hold waits for the thread, which another driver's handler may keep. Then the call is made without it.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, PartialEq)]
enum Stage {
    /// The thread does as it likes.
    Free,
    /// Its next alarm is to hold it.
    Asked,
    /// It waits.
    Held,
}

/// One hold at a time: whoever asks has the lock of ports.
static STAGE: Mutex<Stage> = Mutex::new(Stage::Free);
static CHANGED: Condvar = Condvar::new();

/// The thread, held; let go when this is dropped.
pub(crate) struct Hold(());

/// Holds the thread where the port's driver needs it. `None` also where the thread did not come.
pub(crate) fn hold_for(_: &Alone, id: PortId) -> Option<Hold> {
    if !Driver::of_info(&info::query(id).ok()?).shares_with_interrupts {
        return None;
    }
    *locked(&STAGE) = Stage::Asked;
    // From here on, what is dropped takes the request back.
    let hold = Hold(());
    // SAFETY: a function that lives for ever and does not look at its argument; a microsecond is the least.
    let code = unsafe { dpdk_sys::rte_eal_alarm_set(1, Some(wait), std::ptr::null_mut()) };
    Errno::check(code).ok()?;
    let stage = locked(&STAGE);
    let came = CHANGED.wait_timeout_while(stage, PATIENCE, |stage| *stage == Stage::Asked);
    let (stage, _) = came.unwrap_or_else(|poison| poison.into_inner());
    let came = *stage == Stage::Held;
    drop(stage);
    came.then_some(hold)
}

impl Drop for Hold {
    fn drop(&mut self) {
        *locked(&STAGE) = Stage::Free;
        CHANGED.notify_all();
    }
}

/// Runs on the interrupt thread. One that comes late finds nobody who asks.
unsafe extern "C" fn wait(_: *mut c_void) {
    let mut stage = locked(&STAGE);
    if *stage == Stage::Asked {
        *stage = Stage::Held;
        CHANGED.notify_all();
        let released = CHANGED.wait_while(stage, |stage| *stage == Stage::Held);
        drop(released);
    }
}
