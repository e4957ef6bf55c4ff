// SPDX-License-Identifier: BSD-3-Clause
//! The flag that SIGINT, SIGTERM and SIGHUP raise.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::say;

/// Raised by the program itself: no signal has this number.
const FROM_WITHIN: usize = usize::MAX;

/// Raised once somebody has asked the program to end.
#[derive(Clone)]
pub struct Stop(Arc<AtomicUsize>);

impl Stop {
    /// From now on SIGINT, SIGTERM and SIGHUP raise the flag instead of ending the process. A SIGHUP
    /// that is ignored (`nohup`) stays so.
    ///
    /// # Errors
    /// When the handlers cannot be installed.
    pub fn on_signals() -> io::Result<Self> {
        let stop = Self(Arc::new(AtomicUsize::new(0)));
        let hangup = (!host::ignores_signal(SIGHUP)).then_some(SIGHUP);
        for signal in [SIGINT, SIGTERM].into_iter().chain(hangup) {
            signal_hook::flag::register_usize(signal, Arc::clone(&stop.0), signal as usize)?;
        }
        Ok(stop)
    }

    /// Whether the program is to end.
    #[inline]
    #[must_use]
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }

    /// Raises the flag from within.
    pub fn raise(&self) {
        self.0.store(FROM_WITHIN, Ordering::Relaxed);
    }

    /// Says which signal raised the flag, as the C examples do.
    pub fn announce(&self) {
        match self.0.load(Ordering::Relaxed) {
            0 | FROM_WITHIN => {}
            signal => say!("\n\nSignal {signal} received, preparing to exit..."),
        }
    }
}
