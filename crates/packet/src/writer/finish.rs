// SPDX-License-Identifier: BSD-3-Clause
//! What stands behind the headers, and the frames themselves.

use super::column::Columns;
use super::{BURST, Buffer, longest};
use crate::checksum;
use crate::frame::{FrameSpec, SignatureSpec};
use crate::signature::{self, EXTENSION_LEN, MAX_FLOWS, Signature};

/// Payload and signature of a flow's frames.
#[derive(Clone, Debug)]
pub struct Tails {
    pub flow: u16,
    pub run: u8,
    pub sequence: u32,
    headers_len: usize,
    signature: Option<SignatureSpec>,
    /// The longest payload; empty when it is zeros.
    payload: Box<[u8]>,
    /// The sum of the payload's first bytes, by their number; empty when it is zeros.
    payload_sums: Box<[u16]>,
}

impl Tails {
    pub fn new(spec: &FrameSpec, flow: u16) -> Self {
        let headers_len = spec.headers_len();
        let mut payload = spec.payload.bytes(longest(&spec.sizes).saturating_sub(headers_len));
        if payload.iter().all(|byte| *byte == 0) {
            payload.clear();
        }
        let mut payload_sums = Vec::new();
        if !payload.is_empty() {
            let mut sum = 0;
            payload_sums.push(0);
            for (i, byte) in payload.iter().enumerate() {
                let high = (headers_len + i) % 2 == 0;
                sum =
                    checksum::fold(u64::from(sum) + (u64::from(*byte) << if high { 8 } else { 0 }));
                payload_sums.push(sum);
            }
        }
        Tails {
            flow,
            run: 0,
            sequence: 0,
            headers_len,
            signature: spec.signature,
            payload: payload.into(),
            payload_sums: payload_sums.into(),
        }
    }

    pub fn restart(&mut self, run: u8) {
        (self.run, self.sequence) = (run, 0);
    }

    /// Where the payload of a frame of `len` bytes ends.
    #[inline]
    pub fn payload_end(&self, len: usize) -> usize {
        match self.signature {
            None => len,
            Some(SignatureSpec { integrity, .. }) => {
                let extension = if integrity { EXTENSION_LEN } else { 0 };
                signature::offset(len).unwrap_or(0).saturating_sub(extension)
            }
        }
    }

    /// The sum of the payload of a frame of `len` bytes.
    #[inline]
    pub fn payload_sum(&self, len: usize) -> u16 {
        let bytes = self.payload_end(len).saturating_sub(self.headers_len);
        self.payload_sums.get(bytes).copied().unwrap_or(0)
    }

    /// What everything behind the headers adds to a checksum, without the payload where that has
    /// no extension which makes it zero.
    pub fn constant_sum(&self) -> u32 {
        match self.signature {
            None => 0,
            Some(SignatureSpec { integrity: false, .. }) => 0xffff,
            Some(SignatureSpec { integrity: true, .. }) => 2 * 0xffff,
        }
    }

    /// Whether the payload counts for checksums.
    pub fn payload_counts(&self) -> bool {
        !self.payload.is_empty() && !self.signature.is_some_and(|signature| signature.integrity)
    }

    /// Writes payload and the byte behind the signature of an odd frame.
    #[inline]
    pub fn write_payload(&self, frame: &mut [u8], headers_len: usize) {
        let len = frame.len();
        let end = self.payload_end(len);
        if let Some(place) = frame.get_mut(headers_len..end) {
            match self.payload.get(..place.len()) {
                Some(payload) => place.copy_from_slice(payload),
                None => place.fill(0),
            }
        }
        if self.signature.is_some() && len % 2 == 1 {
            if let Some(last) = frame.last_mut() {
                *last = 0;
            }
        }
    }

    /// Writes the frames of a burst, whose headers are ready.
    #[inline]
    pub fn finish<B: Buffer>(
        &mut self,
        burst: &mut [B],
        columns: &Columns,
        lens: &[u32; BURST],
        stamp: u64,
        resident: bool,
    ) {
        // Headers are copied as a few whole 16-byte pieces and the last 16 bytes.
        match columns.headers_len {
            17..=32 => self.finish_with::<B, 16>(burst, columns, lens, stamp, resident),
            33..=48 => self.finish_with::<B, 32>(burst, columns, lens, stamp, resident),
            49..=64 => self.finish_with::<B, 48>(burst, columns, lens, stamp, resident),
            65..=80 => self.finish_with::<B, 64>(burst, columns, lens, stamp, resident),
            81..=96 => self.finish_with::<B, 80>(burst, columns, lens, stamp, resident),
            97..=112 => self.finish_with::<B, 96>(burst, columns, lens, stamp, resident),
            113..=128 => self.finish_with::<B, 112>(burst, columns, lens, stamp, resident),
            _ => self.finish_with::<B, 0>(burst, columns, lens, stamp, resident),
        }
        self.sequence = self.sequence.wrapping_add(burst.len() as u32);
    }

    #[inline]
    fn finish_with<B: Buffer, const WHOLE: usize>(
        &self,
        burst: &mut [B],
        columns: &Columns,
        lens: &[u32; BURST],
        stamp: u64,
        resident: bool,
    ) {
        let Columns { headers_len, stride, rows, .. } = columns;
        let (headers_len, signature) = (*headers_len, self.signature);
        let (stamped, integrity) = signature
            .map_or((false, false), |SignatureSpec { stamped, integrity }| (stamped, integrity));
        let stamp = if stamped { signature::stamp_of(stamp) } else { 0 };
        let extended = if integrity { MAX_FLOWS } else { 0 };
        let blank = Signature { run: self.run, flow: self.flow | extended, sequence: 0, stamp };
        let (first, second) = blank.words();
        let base = u32::from(signature::fold_words(first, second));

        let rows = rows.chunks_exact(*stride);
        for (((i, buffer), row), len) in (0u32..).zip(burst).zip(rows).zip(lens) {
            let len = *len as usize;
            let Some(frame) = buffer.resize(len) else { continue };
            if frame.len() != len {
                continue;
            }
            copy_headers::<WHOLE>(frame, row, headers_len);
            if !resident {
                self.write_payload(frame, headers_len);
            }
            if signature.is_none() {
                continue;
            }
            let Some(at) = signature::offset(len) else { continue };
            if integrity {
                self.write_extension(frame, at);
            }
            let sequence = self.sequence.wrapping_add(i);
            let (high, low) = (sequence >> 16, sequence & 0xffff);
            let sum = base + high + low;
            let sum = (sum & 0xffff) + (sum >> 16);
            let sum = (sum & 0xffff) + (sum >> 16);
            if let Some(tail) =
                frame.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<{ signature::LEN }>())
            {
                tail[..8].copy_from_slice(&(first | u64::from(high)).to_be_bytes());
                tail[8..16].copy_from_slice(&(second | u64::from(low) << 48).to_be_bytes());
                tail[16..].copy_from_slice(&(!sum as u16).to_be_bytes());
            }
        }
    }

    /// Writes the extension before a signature at offset `at`.
    #[inline]
    fn write_extension(&self, frame: &mut [u8], at: usize) {
        let payload = at.saturating_sub(EXTENSION_LEN + self.headers_len);
        let sum = u64::from(self.payload_sum(frame.len())) + payload as u64;
        let check = !checksum::fold(sum);
        if let Some(place) = at.checked_sub(EXTENSION_LEN).and_then(|at| frame.get_mut(at..)) {
            if let Some(extension) = place.first_chunk_mut::<EXTENSION_LEN>() {
                *extension = ((payload as u32) << 16 | u32::from(check)).to_be_bytes();
            }
        }
    }
}

/// Copies the headers: `WHOLE` bytes, which are fewer than there are, and the last 16.
#[inline]
fn copy_headers<const WHOLE: usize>(frame: &mut [u8], row: &[u8], headers_len: usize) {
    let (Some(to), Some(from)) = (frame.get_mut(..headers_len), row.get(..headers_len)) else {
        return;
    };
    if WHOLE == 0 {
        to.copy_from_slice(from);
        return;
    }
    if let (Some(to), Some(from)) = (to.first_chunk_mut::<WHOLE>(), from.first_chunk::<WHOLE>()) {
        *to = *from;
    }
    if let (Some(to), Some(from)) = (to.last_chunk_mut::<16>(), from.last_chunk::<16>()) {
        *to = *from;
    }
}
