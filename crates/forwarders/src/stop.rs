// SPDX-License-Identifier: BSD-3-Clause
//! The flag that SIGINT, SIGTERM and SIGHUP raise.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::console::say;

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
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let hangup = (!is_ignored(&status, SIGHUP)).then_some(SIGHUP);
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

/// Whether the text of /proc/self/status says that a signal is ignored.
fn is_ignored(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ignored_hangup_is_seen() {
        assert!(is_ignored("Name:\tl2fwd\nSigIgn:\t0000000000001001\n", SIGHUP));
        assert!(!is_ignored("SigIgn:\t0000000000001000\n", SIGHUP));
        assert!(!is_ignored("", SIGHUP));
    }
}
