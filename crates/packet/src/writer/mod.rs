// SPDX-License-Identifier: BSD-3-Clause
//! Writes the frames of a [`FrameSpec`], burst by burst.
//!
//! A [`FrameWriter`] is built once per flow and belongs to one thread at a time. It works by
//! columns: it keeps the headers of a burst of frames side by side, writes each field that changes
//! into all of them before it turns to the next, adds the values to the sums of the checksums that
//! cover them, and copies the finished headers into the frames, each with its signature. Which
//! field goes where and counts for which checksum is worked out once, at the start; per frame
//! nothing is looked up, divided or dispatched.

mod column;
mod finish;
mod plan;
mod source;

use column::{Check, Columns};
use finish::Tails;
pub(crate) use plan::rule;

use crate::FCS_LEN;
use crate::frame::{FrameError, FrameSpec};
use crate::payload::Payload;
use crate::size::{Sizes, Walk};

/// Most frames that are worked on side by side; longer bursts are taken in pieces.
pub const BURST: usize = 32;

/// Values are worked on by so many at once; the compiler makes a few vector instructions of it.
const LANES: usize = 8;

/// One value for each frame of a burst.
type Lanes<T> = [[T; LANES]; BURST / LANES];

/// Where a frame is written.
pub trait Buffer {
    /// Makes the frame `len` bytes long and gives these bytes; `None` when it cannot.
    fn resize(&mut self, len: usize) -> Option<&mut [u8]>;
}

impl Buffer for Vec<u8> {
    fn resize(&mut self, len: usize) -> Option<&mut [u8]> {
        Vec::resize(self, len, 0);
        Some(self)
    }
}

/// What buffers have in common whose payload may stay in them: two writers with equal keys may
/// share a pool of buffers, each of which [`FrameWriter::write_still`] has written once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Still {
    /// Length of the frames in bytes, without FCS.
    pub len: usize,
    /// Length of their headers in bytes.
    pub headers_len: usize,
    /// Where the payload ends.
    pub payload_end: usize,
    /// Their payload.
    pub payload: Payload,
}

/// Writes the frames of one flow, each different from the last as the patterns say.
///
/// ```
/// use packet::field::Pattern;
/// use packet::frame::{FrameSpec, Header, SignatureSpec};
/// use packet::{headers, payload::Payload, signature::Signature, size::Sizes};
/// use packet::writer::FrameWriter;
///
/// let ports = Pattern::Increment { start: 10_000, step: 1, count: 1000 };
/// let spec = FrameSpec {
///     headers: vec![
///         Header::new(&headers::ETHERNET),
///         Header::new(&headers::IPV4).with("src", 0xc612_0001)?,
///         Header::new(&headers::UDP).with("src_port", ports)?,
///     ],
///     sizes: Sizes::Fixed(64),
///     payload: Payload::default(),
///     signature: Some(SignatureSpec::default()),
/// };
/// let mut writer = FrameWriter::new(&spec, 7)?;
/// let mut frames = vec![Vec::new(); 3];
/// writer.write(&mut frames, 0, false);
/// assert_eq!(frames[2].len(), 60);
/// assert_eq!(frames[2][34..36], 10_002u16.to_be_bytes());
/// assert_eq!(Signature::read(&frames[2]).map(|s| (s.flow, s.sequence)), Some((7, 2)));
/// # Ok::<(), packet::frame::FrameError>(())
/// ```
#[derive(Clone, Debug)]
pub struct FrameWriter {
    spec: FrameSpec,
    columns: Columns,
    checks: Vec<Check>,
    sizes: Walk,
    tails: Tails,
    /// Lengths of the frames of a burst, without FCS.
    lens: Lanes<u32>,
}

impl FrameWriter {
    /// The writer of flow number `flow`, at its first frame and in run 0.
    ///
    /// # Errors
    /// [`FrameError`] says what to change in the description.
    pub fn new(spec: &FrameSpec, flow: u16) -> Result<Self, FrameError> {
        let below = spec.signature.unwrap_or_default().max_flows();
        if flow >= below {
            return Err(FrameError::Flow { flow, below });
        }
        spec.check()?;
        let plan::Plan { columns, checks } = plan::plan(spec)?;
        let sizes = Walk::new(&spec.sizes);
        let lens = [[sizes.peek() as u32; LANES]; BURST / LANES];
        let tails = Tails::new(spec, flow);
        Ok(FrameWriter { spec: spec.clone(), columns, checks, sizes, tails, lens })
    }

    /// Goes back to the first frame and marks the frames as of run `run`.
    pub fn restart(&mut self, run: u8) {
        self.columns.restart();
        self.sizes.restart();
        self.tails.restart(run);
    }

    /// Length of the next frame in bytes, without FCS.
    #[inline]
    pub fn peek_len(&self) -> usize {
        self.sizes.peek()
    }

    /// The description that is being written.
    pub fn spec(&self) -> &FrameSpec {
        &self.spec
    }

    /// Goes on where a writer of the same flow is, whose description differs in the sizes only; those
    /// begin with their first. The other one is of no use any more. Allocates and frees nothing.
    pub fn go_on_from(&mut self, other: &mut FrameWriter) {
        self.columns.go_on_from(&mut other.columns);
        (self.tails.run, self.tails.sequence) = (other.tails.run, other.tails.sequence);
    }

    /// Number of the next frame in its run, modulo 2^32.
    #[inline]
    pub fn sequence(&self) -> u32 {
        self.tails.sequence
    }

    /// Writes the next `frames.len()` frames. Stamped signatures get the low 48 bits of `stamp`,
    /// a moment of the TSC. With `resident` only headers, signature and extension are written:
    /// the rest must be in the buffers already ([`FrameWriter::write_still`]).
    ///
    /// A frame whose buffer refuses its length is left out and counts as written.
    #[inline]
    pub fn write<B: Buffer>(&mut self, frames: &mut [B], stamp: u64, resident: bool) {
        for burst in frames.chunks_mut(BURST) {
            self.fill_headers(burst.len());
            self.tails.finish(burst, &self.columns, self.lens.as_flattened(), stamp, resident);
        }
    }

    /// What stays the same from frame to frame behind the headers; `None` when sizes differ.
    pub fn still_part(&self) -> Option<Still> {
        let Walk::Fixed(len) = self.sizes else { return None };
        let len = len as usize;
        Some(Still {
            len,
            headers_len: self.columns.headers_len,
            payload_end: self.tails.payload_end(len),
            payload: self.spec.payload.clone(),
        })
    }

    /// Writes what never changes into `frame`, which must have the frames' length.
    pub fn write_still(&self, frame: &mut [u8]) {
        self.tails.write_payload(frame, self.columns.headers_len);
    }

    /// The headers of the next `n` frames, `n` at most [`BURST`].
    fn fill_headers(&mut self, n: usize) {
        self.columns.start(&self.checks, n);
        if !matches!(self.sizes, Walk::Fixed(_)) {
            self.sizes.fill(&mut self.lens.as_flattened_mut()[..n]);
            self.columns.fill_lengths(&self.checks, &self.lens, &self.tails, n);
        }
        self.columns.fill(n);
        self.columns.fill_checks(&self.checks, n);
    }
}

/// Length without FCS of the longest frame of some sizes.
fn longest(sizes: &Sizes) -> usize {
    sizes.max_with_fcs().saturating_sub(FCS_LEN)
}

#[cfg(test)]
mod tests;
