// SPDX-License-Identifier: BSD-3-Clause
//! Capture of received frames: OTG's `captures`, and a file that is written while frames arrive.
//!
//! # Parts and threads
//! A [`Tap`] belongs to one thread that receives on one port: it filters ([`filter`]), truncates to
//! the snap length and copies into a ring without waiting. The rings of a port's taps lead either
//! to a [`Recorder`], which keeps a bounded number of bytes in memory and returns them as a file at
//! any time, or to a [`Sink`], which writes them to a file. These two belong to an ordinary thread
//! that calls their `collect` often enough that rings do not fill.
//!
//! # Lifecycle
//! Starting a capture makes new taps; those of the previous one are not used any more. Taps that
//! are dropped before a recorder or a sink collects leave their captured frames in their rings.
//!
//! # Units
//! Lengths in rings are bytes without the FCS, which ports do not deliver. If a file is to include the FCS, it is
//! computed from the received bytes when a frame is written; lengths and the snap length then include it. Filters do not
//! see it. Times in rings are TSC cycles; in files they are nanoseconds since the epoch, by a [`Clock`].

pub mod filter;
mod format;
mod recorder;
mod sink;
mod store;
mod tap;

use std::path::PathBuf;
use std::sync::Arc;

pub use capture_file::Clock;
use capture_file::ring::Record;
use capture_file::{FCS_LEN, fcs};

pub use capture_file::ring::MAX_SNAP;
pub use format::Format;
pub use recorder::{Recorder, Snapshot};
pub use sink::{Sink, SinkError};
pub use tap::Tap;

use filter::Filter;
use format::About;
use tap::Inlet;

/// An entry of OTG's `captures`.
#[derive(Clone, Debug)]
pub struct CapturePlan {
    /// Its name.
    pub name: String,
    /// Names of the ports that it is for.
    pub ports: Vec<String>,
    /// The frames to capture.
    pub filter: Arc<Filter>,
    /// Snap length: the most bytes of each frame, up to [`MAX_SNAP`].
    pub snap: usize,
    /// True if captured frames include their FCS.
    pub fcs: bool,
    /// True if a full store drops its oldest frames; otherwise it takes no more.
    pub overwrite: bool,
    /// Format of the file.
    pub format: Format,
    /// Where it is written while frames arrive; `None` keeps them in memory.
    pub file: Option<FileTarget>,
}

/// A file that is written while frames arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileTarget {
    /// Its path; an existing file is replaced.
    pub path: PathBuf,
    /// Maximum size of the file in bytes.
    pub max_bytes: u64,
}

/// Limits of a capture.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most bytes that a [`Recorder`] keeps: the captured ones and 24 for each frame.
    pub bytes: usize,
    /// Most frames that a [`Recorder`] keeps.
    pub frames: Option<u64>,
    /// Bytes of each ring; at least two frames of maximum size fit.
    pub ring: usize,
}

impl Default for Limits {
    /// 64 MiB a port and 4 MiB a ring.
    fn default() -> Self {
        Limits { bytes: 64 << 20, frames: None, ring: 4 << 20 }
    }
}

impl Limits {
    /// The limits of each of this many captured ports: together they keep at most as much as four
    /// ports with the default, 256 MiB.
    pub fn of_one_of(ports: usize) -> Self {
        let usual = Limits::default();
        Limits { bytes: usual.bytes.min(4 * usual.bytes / ports.max(1)), ..usual }
    }
}

/// The settings of one port's capture.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Name of the port, which a pcapng file names as its interface.
    pub port: String,
    /// Which frames.
    pub filter: Arc<Filter>,
    /// Snap length: the most bytes of each frame, up to [`MAX_SNAP`].
    pub snap: usize,
    /// True if captured frames include their FCS.
    pub fcs: bool,
    /// True if a full recorder drops its oldest frames; otherwise it takes no more. A sink ignores
    /// it.
    pub overwrite: bool,
    /// Format of the file.
    pub format: Format,
    /// Converts the TSC of time stamps.
    pub clock: Clock,
    /// What may be kept.
    pub limits: Limits,
}

impl Settings {
    /// Everything that `port` receives, whole frames without their FCS, in pcap.
    pub fn new(port: &str, clock: Clock) -> Self {
        Settings {
            port: port.to_owned(),
            filter: Arc::default(),
            snap: MAX_SNAP,
            fcs: false,
            overwrite: true,
            format: Format::Pcap,
            clock,
            limits: Limits::default(),
        }
    }

    /// The settings of a plan for one of its ports.
    pub fn of(plan: &CapturePlan, port: &str, clock: Clock) -> Self {
        Settings {
            filter: Arc::clone(&plan.filter),
            snap: plan.snap,
            fcs: plan.fcs,
            overwrite: plan.overwrite,
            format: plan.format,
            ..Settings::new(port, clock)
        }
    }

    /// Writes what stands before the first frame of a file.
    fn head(&self, out: &mut Vec<u8>) {
        self.format.head(out, &self.port, self.snap, self.fcs);
    }

    /// Writes a frame, whose bytes come in two parts, and as much of its FCS as the snap length leaves.
    fn record(&self, out: &mut Vec<u8>, record: &Record, one: &[u8], two: &[u8]) {
        let fcs_len = if self.fcs { FCS_LEN } else { 0 };
        // If there is room for any of it, the frame is there as a whole.
        let room = self.snap.saturating_sub(record.len as usize).min(fcs_len);
        let found = if room > 0 { fcs(&[one, two]) } else { [0; FCS_LEN] };
        let about = About {
            nanoseconds: self.clock.nanoseconds(record.tsc),
            len: record.len.saturating_add(fcs_len as u32),
            missed: record.missed,
        };
        self.format.record(out, &about, &[one, two, found.get(..room).unwrap_or_default()]);
    }

    fn taps(&self, taps: usize) -> (Vec<Tap>, Vec<Inlet>) {
        let pair = |_| tap::pair(Arc::clone(&self.filter), self.snap, self.limits.ring);
        (0..taps).map(pair).unzip()
    }
}

/// Counts of the frames that a port received while it was captured.
///
/// `matched` is the sum of `dropped`, `refused`, `overwritten`, `stored` and those still in rings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Frames that the taps have checked.
    pub seen: u64,
    /// Those that the filter matched.
    pub matched: u64,
    /// Frames that found their ring full.
    pub dropped: u64,
    /// Frames that arrived when the limit was reached, and were left out.
    pub refused: u64,
    /// Frames that were stored and later dropped for newer ones.
    pub overwritten: u64,
    /// Frames that are in the file.
    pub stored: u64,
}

impl Figures {
    /// The counts of the taps; the others are the collector's.
    fn of(inlets: &[Inlet]) -> Figures {
        let mut figures = Figures::default();
        for inlet in inlets {
            figures.seen += inlet.books.seen.get();
            figures.matched += inlet.books.matched.get();
            figures.dropped += inlet.ring.dropped();
        }
        figures
    }
}

#[cfg(test)]
mod tests;
