// SPDX-License-Identifier: BSD-3-Clause
//! Frames from a capture file, to be sent again.
//!
//! [`Frames::open`] reads a pcap or pcapng file into memory, within [`Limits`]; nothing is
//! allocated after that. A [`Schedule`] says when each frame is due, for any number of loops.
//!
//! # What is read
//! pcap with micro- or nanoseconds in either byte order; pcapng with any number of sections and
//! interfaces, enhanced and simple packets. Only Ethernet: a packet of another link type is an
//! error. If the file says that its frames end with an FCS, it is removed. A file that ends within
//! a record is refused.
//!
//! # Times
//! Frames keep the order of the file. A frame is never due before its predecessor: if its time
//! stamp is before the latest one so far, it is due together with its predecessor, and later frames
//! keep their own times. The same holds for a frame without a time, such as a simple packet.
//!
//! # Threads
//! [`Frames`] are shared by reference counting; a [`Schedule`] belongs to one sending thread.

mod parse;
mod schedule;

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thiserror::Error;

pub use schedule::{MAX_SPEED, MIN_SPEED, Schedule, ScheduleError, Timing};

/// Fewest bytes of a frame: an Ethernet header.
pub const MIN_FRAME: usize = 14;
/// Most bytes of a frame, without FCS.
pub const MAX_FRAME: usize = 65_535;

/// What happens to frames that were captured only in part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Truncated {
    /// The file is refused.
    #[default]
    Refuse,
    /// Missing bytes are replaced by zeros, and the frames are counted.
    Pad,
}

/// The limits of a file.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Most bytes of the file, and of all frames together.
    pub bytes: usize,
    /// Most frames.
    pub frames: usize,
    /// What happens to frames that were captured only in part.
    pub truncated: Truncated,
}

impl Default for Limits {
    /// 256 MiB and four million frames.
    fn default() -> Self {
        Limits { bytes: 256 << 20, frames: 4 << 20, truncated: Truncated::Refuse }
    }
}

/// Why a file cannot be replayed. Offsets are those of the record in the file.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// It cannot be read.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// It exceeds a limit.
    #[error("{path}: more than {limit} {what}, which is the limit; raise it, or cut the file")]
    Limit {
        /// The file.
        path: PathBuf,
        /// The limit.
        limit: usize,
        /// What it counts.
        what: &'static str,
    },
    /// It is not a capture file of a known format.
    #[error("{path}: {reason}")]
    Kind {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        reason: &'static str,
    },
    /// Its contents violate the format.
    #[error("{path}, offset {offset}: {reason}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Where.
        offset: usize,
        /// What is wrong.
        reason: String,
    },
    /// A packet that is not Ethernet.
    #[error("{path}, offset {offset}: link type {link}; only Ethernet can be replayed")]
    LinkType {
        /// The file.
        path: PathBuf,
        /// Where.
        offset: usize,
        /// Its link type.
        link: String,
    },
    /// A frame that was captured only in part.
    #[error(
        "{path}, offset {offset}: frame {frame} has {captured} of its {len} bytes; capture whole frames, or have them padded"
    )]
    Truncated {
        /// The file.
        path: PathBuf,
        /// Where.
        offset: usize,
        /// Its number, from 1.
        frame: usize,
        /// Bytes in the file.
        captured: usize,
        /// Bytes of the original frame.
        len: usize,
    },
    /// A frame that cannot be sent.
    #[error(
        "{path}, offset {offset}: frame {frame} has {len} bytes; from {MIN_FRAME} to {MAX_FRAME} can be sent"
    )]
    Length {
        /// The file.
        path: PathBuf,
        /// Where.
        offset: usize,
        /// Its number, from 1.
        frame: usize,
        /// Its bytes.
        len: usize,
    },
    /// There is no frame in it.
    #[error("{path}: there is no frame in it")]
    Empty {
        /// The file.
        path: PathBuf,
    },
}

/// The frames of a file. Clones share them.
#[derive(Clone, Debug)]
pub struct Frames(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    longest: usize,
    padded: u64,
    out_of_order: u64,
    untimed: u64,
}

/// Where a frame's bytes are, and when it is due in nanoseconds after the first.
#[derive(Clone, Copy, Debug)]
struct Entry {
    start: usize,
    len: usize,
    offset: u64,
}

impl Inner {
    fn frame(&self, i: usize) -> Option<&[u8]> {
        let entry = self.entries.get(i)?;
        self.bytes.get(entry.start..)?.get(..entry.len)
    }

    fn offset(&self, i: usize) -> Option<u64> {
        self.entries.get(i).map(|entry| entry.offset)
    }

    fn span(&self) -> u64 {
        self.entries.last().map_or(0, |entry| entry.offset)
    }
}

impl Frames {
    /// Reads a file.
    ///
    /// # Errors
    /// One of [`ReplayError`], which names the file and, where there is one, the record's offset.
    pub fn open(path: &Path, limits: Limits) -> Result<Frames, ReplayError> {
        let failed = |source| ReplayError::Io { path: path.to_owned(), source };
        let mut data = Vec::new();
        let most = limits.bytes as u64;
        let file = host::files::open_to_read(path).map_err(failed)?;
        file.take(most.saturating_add(1)).read_to_end(&mut data).map_err(failed)?;
        if data.len() > limits.bytes {
            let (path, limit) = (path.to_owned(), limits.bytes);
            return Err(ReplayError::Limit { path, limit, what: "bytes" });
        }
        Frames::read(path, &data, limits)
    }

    /// Frames that do not come from a file, `interval` nanoseconds apart. `None` if there is none,
    /// or if the length of one is not from [`MIN_FRAME`] to [`MAX_FRAME`].
    pub fn of(frames: &[Vec<u8>], interval: u64) -> Option<Frames> {
        let mut inner = Inner::default();
        for (i, frame) in (0u64..).zip(frames) {
            let offset = interval.checked_mul(i)?;
            inner.entries.push(Entry { start: inner.bytes.len(), len: frame.len(), offset });
            inner.bytes.extend_from_slice(frame);
            inner.longest = inner.longest.max(frame.len());
        }
        let can_be = |frame: &Vec<u8>| (MIN_FRAME..=MAX_FRAME).contains(&frame.len());
        (!frames.is_empty() && frames.iter().all(can_be)).then(|| Frames(Arc::new(inner)))
    }

    /// Parses a file's contents; `path` is for messages.
    fn read(path: &Path, data: &[u8], limits: Limits) -> Result<Frames, ReplayError> {
        let mut inner = parse::read(path, data, limits)?;
        inner.bytes.shrink_to_fit();
        inner.entries.shrink_to_fit();
        Ok(Frames(Arc::new(inner)))
    }

    /// Number of frames; at least one.
    #[allow(clippy::len_without_is_empty, reason = "a file without frames is refused")]
    pub fn len(&self) -> usize {
        self.0.entries.len()
    }

    /// The bytes of frame `i`, from 0, without FCS; `None` if there is no such frame.
    pub fn get(&self, i: usize) -> Option<&[u8]> {
        self.0.frame(i)
    }

    /// Nanoseconds from the first frame to frame `i`; `None` if there is no such frame.
    pub fn offset(&self, i: usize) -> Option<u64> {
        self.0.offset(i)
    }

    /// Nanoseconds from the previous frame to frame `i`, 0 for the first; `None` if there is no
    /// such frame.
    pub fn gap(&self, i: usize) -> Option<u64> {
        let before = i.checked_sub(1).and_then(|i| self.0.offset(i)).unwrap_or(0);
        Some(self.0.offset(i)? - before)
    }

    /// Nanoseconds from the first frame to the last.
    pub fn span(&self) -> u64 {
        self.0.span()
    }

    /// Bytes of all frames.
    pub fn bytes(&self) -> usize {
        self.0.bytes.len()
    }

    /// Bytes of the longest frame.
    pub fn longest(&self) -> usize {
        self.0.longest
    }

    /// Frames that were captured in part and padded.
    pub fn padded(&self) -> u64 {
        self.0.padded
    }

    /// Frames with a time stamp before that of an earlier frame.
    pub fn out_of_order(&self) -> u64 {
        self.0.out_of_order
    }

    /// Frames without a time.
    pub fn untimed(&self) -> u64 {
        self.0.untimed
    }

    /// When the frames are due, with a clock of `hz` cycles per second.
    ///
    /// # Errors
    /// [`ScheduleError`] if the timing needs times that the file does not have, or if a speed is
    /// out of range.
    pub fn schedule(&self, timing: Timing, hz: u64) -> Result<Schedule, ScheduleError> {
        Schedule::new(Arc::clone(&self.0), timing, hz)
    }
}

#[cfg(test)]
mod tests;
