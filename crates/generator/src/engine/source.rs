// SPDX-License-Identifier: BSD-3-Clause
//! The source of a flow's frames: headers with patterns, or a file.

use packet::writer::FrameWriter;

use super::io::Frame;
use crate::replay::Frames;

/// Writes the frames of a flow, one after another.
#[derive(Clone, Debug)]
pub enum FrameSource {
    /// From headers.
    Writer(Box<FrameWriter>),
    /// From a file.
    Player {
        /// The file's frames.
        frames: Frames,
        /// Index of the next.
        next: usize,
    },
}

impl FrameSource {
    /// Goes back to the first frame and gives the frames run number `run`.
    pub fn restart(&mut self, run: u8) {
        match self {
            FrameSource::Writer(writer) => writer.restart(run),
            FrameSource::Player { next, .. } => *next = 0,
        }
    }

    /// Swaps the writer with `other`; a file's frames stay.
    pub fn go_on_with(&mut self, other: &mut Box<FrameWriter>) {
        if let FrameSource::Writer(writer) = self {
            other.go_on_from(writer);
            std::mem::swap(writer, other);
        }
    }

    /// Length of the frames in bytes, without FCS, if they all have the same.
    pub fn fixed_len(&self) -> Option<u16> {
        match self {
            FrameSource::Writer(writer) if writer.spec().sizes.is_constant() => {
                u16::try_from(writer.peek_len()).ok()
            }
            _ => None,
        }
    }

    /// The sequence number of the next frame; `None` if frames carry no signature of ours.
    pub fn sequence(&self) -> Option<u32> {
        match self {
            FrameSource::Writer(writer) => Some(writer.sequence()),
            FrameSource::Player { .. } => None,
        }
    }

    /// Writes the next frames.
    #[inline]
    pub fn write<F: Frame>(&mut self, frames: &mut [F], stamp: u64, resident: bool) {
        match self {
            FrameSource::Writer(writer) => writer.write(frames, stamp, resident),
            FrameSource::Player { frames: recorded, next } => {
                for frame in frames {
                    let bytes = recorded.get(*next).unwrap_or_default();
                    if let Some(buffer) = frame.resize(bytes.len()) {
                        buffer.copy_from_slice(bytes);
                    }
                    *next = if *next + 1 < recorded.len() { *next + 1 } else { 0 };
                }
            }
        }
    }
}
