// SPDX-License-Identifier: BSD-3-Clause
//! The flag that SIGINT, SIGTERM and SIGHUP raise.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Raised once somebody has asked the program to end.
#[derive(Clone)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// From now on SIGINT, SIGTERM and SIGHUP raise the flag instead of ending the process.
    ///
    /// # Errors
    /// When the handlers cannot be installed.
    pub fn on_signals() -> io::Result<Self> {
        let stop = Self(Arc::new(AtomicBool::new(false)));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&stop.0))?;
        }
        Ok(stop)
    }

    /// Whether the program is to end.
    #[inline]
    #[must_use]
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Raises the flag from within.
    pub fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
