// SPDX-License-Identifier: BSD-3-Clause
//! The flag that SIGINT, SIGTERM and SIGHUP set.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::say;

/// Set by the program itself: no signal has this number.
const FROM_WITHIN: usize = usize::MAX;

/// Set once the program is to end.
#[derive(Clone)]
pub struct Stop(Arc<AtomicUsize>);

impl Stop {
    /// From now on SIGINT, SIGTERM and SIGHUP set the flag instead of ending the process. A SIGHUP
    /// that is ignored (`nohup`) stays ignored.
    ///
    /// # Errors
    /// The handlers cannot be installed.
    pub fn on_signals() -> io::Result<Self> {
        let stop = Self(Arc::new(AtomicUsize::new(0)));
        let hangup = (!host::ignores_signal(SIGHUP)).then_some(SIGHUP);
        for signal in [SIGINT, SIGTERM].into_iter().chain(hangup) {
            signal_hook::flag::register_usize(signal, Arc::clone(&stop.0), signal as usize)?;
        }
        Ok(stop)
    }

    /// Returns true if the program is to end.
    #[inline]
    #[must_use]
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }

    /// Sets the flag from within the program.
    pub fn raise(&self) {
        self.0.store(FROM_WITHIN, Ordering::Relaxed);
    }

    /// Prints which signal set the flag, as the C examples do.
    pub fn announce(&self) {
        match self.0.load(Ordering::Relaxed) {
            0 | FROM_WITHIN => {}
            signal => say!("\n\nSignal {signal} received, preparing to exit..."),
        }
    }
}
