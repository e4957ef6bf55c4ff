// SPDX-License-Identifier: BSD-3-Clause
//! Captured frames in memory: OTG's capture buffer.

use std::sync::Arc;

use capture_file::ring::Record;

use super::store::Store;
use super::tap::{Inlet, Tap};
use super::{Figures, Settings, format};

/// Most bytes of a file's head and tail, without the port's name.
const AROUND: usize = 1024;

/// Keeps the captured frames of a port's taps, up to its limits.
#[derive(Debug)]
pub struct Recorder {
    settings: Settings,
    inlets: Vec<Inlet>,
    /// Shared with files that are being made.
    store: Arc<Store>,
    overwritten: u64,
    refused: u64,
    /// True if a frame was refused because of the limits; no more are taken then.
    full: bool,
    /// When it was stopped, in nanoseconds since the epoch, and the taps' counts at that time.
    ended: Option<(u64, Figures)>,
    started: u64,
}

impl Recorder {
    /// A recorder and its taps, one for each thread that receives on the port. It starts at the TSC
    /// `now`.
    pub fn start(settings: Settings, taps: usize, now: u64) -> (Recorder, Vec<Tap>) {
        let (taps, inlets) = settings.taps(taps);
        let store = Store::new(inlets.len(), settings.limits.bytes, settings.limits.frames);
        let started = settings.clock.nanoseconds(now);
        let recorder = Recorder {
            settings,
            inlets,
            store: Arc::new(store),
            overwritten: 0,
            refused: 0,
            full: false,
            ended: None,
            started,
        };
        (recorder, taps)
    }

    /// Takes the frames that wait in the rings. Call it often enough that they do not fill. It ends
    /// even if the taps fill them faster.
    pub fn collect(&mut self) {
        if self.inlets.iter().all(|inlet| inlet.ring.waiting() == 0) {
            return;
        }
        // A copy, if a file is being made of it.
        let kept = Arc::make_mut(&mut self.store);
        for (lane, inlet) in self.inlets.iter_mut().enumerate() {
            let mut left = inlet.ring.waiting();
            while let Some(record) = inlet.ring.peek().filter(|_| left > 0) {
                while self.settings.overwrite && !kept.fits(&record) {
                    if !kept.drop_oldest() {
                        break;
                    }
                    self.overwritten += 1;
                }
                let wanted = !self.full && kept.fits(&record);
                let store = &mut *kept;
                let taken = inlet.ring.take(&record, |one, two| {
                    if wanted {
                        store.push(lane, record, one, two);
                    }
                    one.len() + two.len()
                });
                let Some(taken) = taken else { break };
                left = left.saturating_sub(taken + 1);
                if !wanted {
                    self.refused += 1;
                    // The stored frames have no gaps: a smaller frame is not added later.
                    self.full = !self.settings.overwrite;
                }
            }
        }
    }

    /// Collects the last frames and ends the capture at the TSC `now`. Later frames of its taps are
    /// lost.
    pub fn stop(&mut self, now: u64) {
        if self.ended.is_none() {
            self.collect();
            self.ended = Some((self.settings.clock.nanoseconds(now), Figures::of(&self.inlets)));
            self.inlets.clear();
        }
    }

    /// Returns true if it was stopped.
    pub fn is_stopped(&self) -> bool {
        self.ended.is_some()
    }

    /// The counts of the frames.
    pub fn figures(&self) -> Figures {
        Figures {
            refused: self.refused,
            overwritten: self.overwritten,
            stored: self.store.frames(),
            ..self.ended.map_or_else(|| Figures::of(&self.inlets), |(_, figures)| figures)
        }
    }

    /// What is kept now, of which a file can be made while more is captured. As long as it is there, the next
    /// [`collect`](Self::collect) copies all that is kept: have one at a time.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            settings: self.settings.clone(),
            store: self.store.clone(),
            started: self.started,
            ended: self.ended.map(|(ended, _)| (ended, self.figures())),
        }
    }

    /// [`Snapshot::file`] of what is kept now.
    pub fn file(&self, slice: Option<(u64, u64)>) -> Vec<u8> {
        self.snapshot().file(slice)
    }
}

/// What a [`Recorder`] kept at a time.
#[derive(Debug)]
pub struct Snapshot {
    settings: Settings,
    store: Arc<Store>,
    started: u64,
    /// Of a capture that was stopped: when, in nanoseconds since the epoch, and its figures.
    ended: Option<(u64, Figures)>,
}

impl Snapshot {
    /// The frames of a slice.
    fn records(&self, slice: Option<(u64, u64)>) -> impl Iterator<Item = (&Record, &[u8], &[u8])> {
        let (first, count) = slice.unwrap_or((1, u64::MAX));
        let skip = usize::try_from(first.saturating_sub(1)).unwrap_or(usize::MAX);
        self.store.iter().skip(skip).take(usize::try_from(count).unwrap_or(usize::MAX))
    }

    /// An upper bound of the size of [`file`](Self::file), known at once.
    pub fn file_len(&self, slice: Option<(u64, u64)>) -> usize {
        let (frames, bytes) = (self.store.frames(), self.store.captured());
        let frames = slice.map_or(frames, |(_, count)| count.min(frames));
        let frames = usize::try_from(frames).unwrap_or(usize::MAX);
        let longest = frames.saturating_mul(self.settings.snap);
        let records = frames.saturating_mul(format::RECORD_OVERHEAD);
        records.saturating_add(bytes.min(longest)) + self.settings.port.len() + AROUND
    }

    /// The capture file, in order of time. With a slice, only the frames from `slice.0` (the oldest
    /// is 1) on, at most `slice.1` of them. Takes a second for some million frames.
    pub fn file(&self, slice: Option<(u64, u64)>) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.file_len(slice));
        self.settings.head(&mut out);
        for (record, one, two) in self.records(slice) {
            self.settings.record(&mut out, record, one, two);
        }
        if let Some((ended, figures)) = &self.ended {
            self.settings.format.tail(&mut out, self.started, *ended, figures);
        }
        out
    }
}
