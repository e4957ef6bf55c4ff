// SPDX-License-Identifier: BSD-3-Clause
//! A capture file that is written while frames arrive.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use capture_file::ring::Record;
use thiserror::Error;

use super::tap::{Inlet, Tap};
use super::{Figures, Settings, format};

/// Bytes that are written to the file at once.
const BATCH: usize = 1 << 18;
/// With several taps: how many milliseconds a frame waits for older ones of other taps.
const HOLD_MS: u64 = 20;

/// Why a capture file cannot be written.
#[derive(Debug, Error)]
pub enum SinkError {
    /// It cannot be created.
    #[error("the capture file {path} cannot be made: {source}; choose another place")]
    Create {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// It cannot be written to any more.
    #[error("the capture file {path} holds {frames} frames and takes no more: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// Whole frames in it.
        frames: u64,
        /// The reason.
        source: io::Error,
    },
}

/// Writes the captured frames of a port's taps to a file, without keeping them in memory.
///
/// Between two calls the file holds whole records. It holds everything up to the last
/// [`collect`](Self::collect), except frames of the last 20 ms, which may have to wait if there are
/// several taps. Called every 50 ms, it is never more than 100 ms behind. After an error the file
/// is truncated after its last whole record, so that it can be read.
#[derive(Debug)]
pub struct Sink {
    settings: Settings,
    inlets: Vec<Inlet>,
    /// The oldest record of each ring.
    fronts: Vec<Option<Record>>,
    file: File,
    path: PathBuf,
    batch: Vec<u8>,
    /// Frames in the batch.
    batched: u64,
    /// Bytes and frames in the file.
    written: u64,
    stored: u64,
    max_bytes: u64,
    refused: u64,
    /// True if the file takes no more frames: it has reached its limit, or cannot be written to.
    full: bool,
    hold: u64,
    started: u64,
}

impl Sink {
    /// Creates the file, or replaces an existing one, and the taps, one for each thread that
    /// receives on the port. The capture starts at the TSC `now`; the file is never longer than
    /// `max_bytes`, except for the statistics at its end.
    ///
    /// # Errors
    /// [`SinkError::Create`]; a file whose first bytes could not be written is removed.
    pub fn create(
        path: &Path,
        settings: Settings,
        taps: usize,
        max_bytes: u64,
        now: u64,
    ) -> Result<(Sink, Vec<Tap>), SinkError> {
        let mut head = Vec::new();
        settings.head(&mut head);
        let create = |source| SinkError::Create { path: path.to_owned(), source };
        let mut file = host::files::create(path).map_err(create)?;
        file.write_all(&head).map_err(|source| {
            if file.metadata().is_ok_and(|about| about.is_file()) {
                // The earlier error is the one that matters.
                host::files::remove(path);
            }
            create(source)
        })?;
        let (taps, inlets) = settings.taps(taps);
        let hold = if inlets.len() > 1 { settings.clock.cycles(HOLD_MS) } else { 0 };
        let sink = Sink {
            fronts: vec![None; inlets.len()],
            file,
            path: path.to_owned(),
            batch: Vec::with_capacity(BATCH + super::MAX_SNAP + format::RECORD_OVERHEAD),
            batched: 0,
            written: head.len() as u64,
            stored: 0,
            max_bytes,
            refused: 0,
            full: false,
            hold,
            started: settings.clock.nanoseconds(now),
            settings,
            inlets,
        };
        Ok((sink, taps))
    }

    /// Writes the frames that wait in the rings at the TSC `now`.
    ///
    /// # Errors
    /// [`SinkError::Write`], once: frames captured later are refused.
    pub fn collect(&mut self, now: u64) -> Result<(), SinkError> {
        self.drain(now.saturating_sub(self.hold))
    }

    /// Writes the remaining frames and the statistics, when the capture has ended at the TSC `now`.
    /// Returns the counts of the frames even if that fails.
    pub fn finish(mut self, now: u64) -> (Figures, Result<(), SinkError>) {
        let mut result = self.drain(u64::MAX);
        if result.is_err() {
            // Frames after the failed ones are refused, and counted.
            result = self.drain(u64::MAX).and(result);
        }
        let (ended, figures) = (self.settings.clock.nanoseconds(now), self.figures());
        if result.is_ok() {
            self.settings.format.tail(&mut self.batch, self.started, ended, &figures);
            result = self.flush();
        }
        (figures, result)
    }

    /// The counts of the frames.
    pub fn figures(&self) -> Figures {
        Figures {
            refused: self.refused,
            stored: self.stored + self.batched,
            ..Figures::of(&self.inlets)
        }
    }

    /// Writes the records up to a TSC, in order of time. It ends even if the taps fill the rings
    /// faster.
    fn drain(&mut self, until: u64) -> Result<(), SinkError> {
        let mut left: usize = self.inlets.iter().map(|inlet| inlet.ring.waiting()).sum();
        for (inlet, front) in self.inlets.iter_mut().zip(&mut self.fronts) {
            *front = inlet.ring.peek();
        }
        while left > 0 {
            let fronts = self.fronts.iter().enumerate();
            let oldest = fronts
                .filter_map(|(i, front)| front.map(|record| (i, record)))
                .min_by_key(|(_, record)| record.tsc)
                .filter(|(_, record)| record.tsc <= until);
            let Some((i, record)) = oldest else { break };
            left = left.saturating_sub(record.captured as usize + 1);
            self.take(i, &record);
            if self.batch.len() >= BATCH {
                self.flush()?;
            }
        }
        self.flush()
    }

    fn take(&mut self, i: usize, record: &Record) {
        let (Some(inlet), Some(front)) = (self.inlets.get_mut(i), self.fronts.get_mut(i)) else {
            return;
        };
        let (before, batch, settings) = (self.batch.len(), &mut self.batch, &self.settings);
        let full = self.full;
        inlet.ring.take(record, |one, two| {
            if !full {
                settings.record(batch, record, one, two);
            }
        });
        *front = inlet.ring.peek();
        if !self.full && self.written + self.batch.len() as u64 > self.max_bytes {
            self.batch.truncate(before);
            self.full = true;
        }
        if self.full {
            self.refused += 1;
        } else {
            self.batched += 1;
        }
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        let result = self.file.write_all(&self.batch);
        let (bytes, frames) = (self.batch.len() as u64, self.batched);
        self.batch.clear();
        self.batched = 0;
        match result {
            Ok(()) => {
                self.written += bytes;
                self.stored += frames;
                Ok(())
            }
            Err(source) => {
                self.full = true;
                self.refused += frames;
                // A part of the batch may have been written. A pipe, for example, cannot be
                // truncated.
                let _ = self.file.set_len(self.written);
                Err(SinkError::Write { path: self.path.clone(), frames: self.stored, source })
            }
        }
    }
}
