// SPDX-License-Identifier: BSD-3-Clause
//! What the files of `--json-stats` have in common: the outer fields, and the thread that writes
//! one each period.
//!
//! The values are those of `rte_eth_stats_get` and of the telemetry commands. A value that a driver
//! does not report is absent, never zero.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use measure::clock::cost;
use telemetry::Value;

use crate::complain;
use crate::stats_file::{StatsFile, StatsFileError};

/// A dictionary of the entries that have a value.
#[must_use]
pub fn dict(entries: Vec<(&str, Value)>) -> Value {
    Value::Dict(entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// The first entries of every document: name and version of its format, whether it is the last, and
/// which program wrote it when.
#[must_use]
pub fn header(schema: &str, ended: bool) -> Vec<(&'static str, Value)> {
    // None if the clock is before 1970; the time is then absent.
    let time = SystemTime::now().duration_since(UNIX_EPOCH).ok();
    let mut entries = vec![
        ("schema", schema.into()),
        ("state", if ended { "ended" } else { "forwarding" }.into()),
        ("pid", u64::from(std::process::id()).into()),
    ];
    entries.extend(time.map(|time| ("unix_time_ns", (time.as_nanos() as u64).into())));
    entries
}

/// The answer to `/linerate/clock`: cycles of the time stamp counter per second, and the cost of
/// one reading.
#[must_use]
pub fn clock(tsc_hz: u64) -> Value {
    Value::dict([("tsc_hz", tsc_hz.into()), ("clock_cost_cycles", cost().into())])
}

/// A file that is updated while its program forwards.
pub struct Kept<'k, V> {
    /// The program's name, with which errors begin.
    pub program: &'static str,
    /// The file.
    pub file: &'k StatsFile,
    /// Seconds between two documents; 0 for one at the beginning and one at the end.
    pub period_s: u32,
    /// Returns the present values; the argument is true for the last ones.
    pub value: V,
}

impl<V: Fn(bool) -> Value + Sync> Kept<'_, V> {
    /// Runs `forward` while a thread writes the file, and writes it once more at the end. The
    /// packet path never waits for a disk.
    ///
    /// # Errors
    /// Those of `forward`, or why the last document could not be written.
    pub fn during<E: From<StatsFileError>>(
        &self,
        forward: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        let outcome = thread::scope(|threads| {
            let (running, ended) = mpsc::channel();
            let writer = thread::Builder::new()
                .name("json-stats".to_owned())
                .spawn_scoped(threads, move || self.keep(&ended))
                .map_err(|error| self.file.error(error))?;
            let outcome = forward();
            drop(running);
            let _ = writer.join();
            outcome
        });
        // Also after an error: the counts up to then are valid.
        let written = self.file.write(&(self.value)(true));
        outcome.and(written.map_err(E::from))
    }

    /// Writes the file now and each period, until the other end of `ended` is dropped. If a write
    /// fails, that is reported once and tried again.
    fn keep(&self, ended: &Receiver<()>) {
        let period = (self.period_s > 0).then(|| Duration::from_secs(self.period_s.into()));
        let mut complained = false;
        loop {
            if let Err(error) = self.file.write(&(self.value)(false)) {
                if !complained {
                    complain!("{}: {error} (forwarding goes on)", self.program);
                }
                complained = true;
            }
            let waited = match period {
                Some(period) => ended.recv_timeout(period),
                None => ended.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            if waited != Err(RecvTimeoutError::Timeout) {
                return;
            }
        }
    }
}
