// SPDX-License-Identifier: BSD-3-Clause
//! Capture of received frames: OTG's `captures`, and a file that is written while frames arrive.
//!
//! # Parts and threads
//! A [`Tap`] belongs to one thread that receives on one port: it filters ([`filter`]), cuts to the
//! snap length and copies into a ring without waiting. The rings of a port's taps lead to either a
//! [`Recorder`], which keeps a bounded number of bytes in memory and gives them as a file at any
//! moment, or a [`Sink`], which writes them to a file. Those two belong to an ordinary thread that
//! calls their `collect` often enough that rings do not fill.
//!
//! # Lifecycle
//! Starting a capture makes new taps; those of the one before are of no use any more. Taps
//! dropped before a recorder or a sink collects leave what they captured in their rings.
//!
//! # Units
//! Lengths are bytes without the FCS, which is never captured. Times in rings are TSC cycles; in files
//! they are nanoseconds since the epoch, by a [`Clock`].

pub mod filter;
mod format;
mod recorder;
mod sink;
mod store;
mod tap;

use std::path::PathBuf;
use std::sync::Arc;

pub use capture_file::Clock;
pub use capture_file::ring::MAX_SNAP;
pub use format::Format;
pub use recorder::{Recorder, Snapshot};
pub use sink::{Sink, SinkError};
pub use tap::Tap;

use filter::Filter;
use tap::Inlet;

/// An entry of OTG's `captures`.
#[derive(Clone, Debug)]
pub struct CapturePlan {
    /// Its name.
    pub name: String,
    /// Names of the ports that it is for.
    pub ports: Vec<String>,
    /// Which frames.
    pub filter: Arc<Filter>,
    /// Most bytes of each frame, up to [`MAX_SNAP`].
    pub snap: usize,
    /// Whether a full store drops its oldest frames, or takes no more.
    pub overwrite: bool,
    /// Format of the file.
    pub format: Format,
    /// Where it is written while frames arrive; `None` keeps them in memory.
    pub file: Option<FileTarget>,
}

/// A file that is written while frames arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileTarget {
    /// Where; what is there is replaced.
    pub path: PathBuf,
    /// Most bytes of the file.
    pub max_bytes: u64,
}

/// What may be kept.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Most bytes that a [`Recorder`] keeps: those captured and 24 for each frame.
    pub bytes: usize,
    /// Most frames that a [`Recorder`] keeps.
    pub frames: Option<u64>,
    /// Bytes of each ring; at least two frames of the greatest size fit.
    pub ring: usize,
}

impl Default for Limits {
    /// 64 MiB a port and 4 MiB a ring.
    fn default() -> Self {
        Limits { bytes: 64 << 20, frames: None, ring: 4 << 20 }
    }
}

impl Limits {
    /// Those of one of so many ports that are captured: together they keep no more than four with the
    /// default, 256 MiB.
    pub fn of_one_of(ports: usize) -> Self {
        let usual = Limits::default();
        Limits { bytes: usual.bytes.min(4 * usual.bytes / ports.max(1)), ..usual }
    }
}

/// The capture of one port.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Name of the port, which a pcapng file names as its interface.
    pub port: String,
    /// Which frames.
    pub filter: Arc<Filter>,
    /// Most bytes of each frame, up to [`MAX_SNAP`].
    pub snap: usize,
    /// Whether a full recorder drops its oldest frames, or takes no more. A sink ignores it.
    pub overwrite: bool,
    /// Format of the file.
    pub format: Format,
    /// Where the time stamps' TSC stands.
    pub clock: Clock,
    /// What may be kept.
    pub limits: Limits,
}

impl Settings {
    /// Everything that `port` receives, whole, in pcap.
    pub fn new(port: &str, clock: Clock) -> Self {
        Settings {
            port: port.to_owned(),
            filter: Arc::default(),
            snap: MAX_SNAP,
            overwrite: true,
            format: Format::Pcap,
            clock,
            limits: Limits::default(),
        }
    }

    /// What a plan says of one of its ports.
    pub fn of(plan: &CapturePlan, port: &str, clock: Clock) -> Self {
        Settings {
            filter: Arc::clone(&plan.filter),
            snap: plan.snap,
            overwrite: plan.overwrite,
            format: plan.format,
            ..Settings::new(port, clock)
        }
    }

    fn taps(&self, taps: usize) -> (Vec<Tap>, Vec<Inlet>) {
        let pair = |_| tap::pair(Arc::clone(&self.filter), self.snap, self.limits.ring);
        (0..taps).map(pair).unzip()
    }
}

/// What became of the frames that a port received while it was captured.
///
/// `matched` is the sum of `dropped`, `refused`, `overwritten`, `stored` and those still in rings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Frames that the taps looked at.
    pub seen: u64,
    /// Those that the filter matched.
    pub matched: u64,
    /// Those that found their ring full.
    pub dropped: u64,
    /// Those that came when the limit was reached, and were left out.
    pub refused: u64,
    /// Those that were stored and then made room for newer ones.
    pub overwritten: u64,
    /// Those that are in the file.
    pub stored: u64,
}

impl Figures {
    /// What the taps have counted; the rest is the collector's.
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
