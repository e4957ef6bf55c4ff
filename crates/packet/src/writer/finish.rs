// SPDX-License-Identifier: BSD-3-Clause
//! What stands behind the headers, and the frames themselves.

use super::column::Columns;
use super::{Buffer, longest};
use crate::checksum;
use crate::frame::{FrameSpec, SignatureSpec};
use crate::signature::short::{self, ShortSignature};
use crate::signature::{self, EXTENSION_LEN, LEN, MAX_FLOWS, Signature};

/// Kinds of frames: all of one length and with nothing to write but headers and signature,
const FIXED: u8 = 0;
/// of several lengths and with nothing else to write,
const SIGNATURE: u8 = 1;
/// of one length and with nothing to write but headers,
const BARE: u8 = 2;
/// with a short signature,
const SHORT: u8 = 3;
/// and any.
const ANY: u8 = 4;

/// Payload and signature of a flow's frames.
#[derive(Clone, Debug)]
pub struct Tails {
    pub flow: u16,
    pub run: u8,
    pub sequence: u32,
    headers_len: usize,
    signature: Option<SignatureSpec>,
    /// Whether all frames have one length.
    fixed: bool,
    /// Whether all frames are nothing but headers and signature.
    no_payload: bool,
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
        let mut tails = Tails {
            flow,
            run: 0,
            sequence: 0,
            headers_len,
            signature: spec.signature,
            fixed: spec.sizes.is_constant(),
            no_payload: false,
            payload: payload.into(),
            payload_sums: payload_sums.into(),
        };
        let len = longest(&spec.sizes);
        // An odd frame has a byte behind its signature.
        tails.no_payload = tails.fixed && len % 2 == 0 && tails.payload_end(len) == headers_len;
        tails
    }

    pub fn restart(&mut self, run: u8) {
        (self.run, self.sequence) = (run, 0);
    }

    /// Where the payload of a frame of `len` bytes ends.
    #[inline]
    pub fn payload_end(&self, len: usize) -> usize {
        match self.signature {
            None => len,
            Some(signature) => {
                let extension = if signature.has_integrity() { EXTENSION_LEN } else { 0 };
                signature.offset(len).unwrap_or(0).saturating_sub(extension)
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
            Some(SignatureSpec::Full { integrity: false, .. }) => 0xffff,
            Some(SignatureSpec::Full { integrity: true, .. }) => 2 * 0xffff,
            Some(SignatureSpec::Short) => short::SUM.into(),
        }
    }

    /// Whether the payload counts for checksums.
    pub fn payload_counts(&self) -> bool {
        !self.payload.is_empty()
            && !self.signature.is_some_and(|signature| signature.has_integrity())
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

    /// Writes the frames of a burst, whose headers and lengths are ready.
    #[inline]
    pub fn finish<B: Buffer>(
        &mut self,
        burst: &mut [B],
        columns: &Columns,
        lens: &[u32],
        stamp: u64,
        resident: bool,
    ) {
        // Sequence numbers of one piece have the same upper half.
        let until = 0x1_0000 - (self.sequence as usize & 0xffff);
        let (now, later) = burst.split_at_mut(until.min(burst.len()));
        self.finish_piece(now, Job { columns, skip: 0, lens, stamp, resident });
        if !later.is_empty() {
            let lens = lens.get(now.len()..).unwrap_or_default();
            self.finish_piece(later, Job { columns, skip: now.len(), lens, stamp, resident });
        }
    }

    #[inline]
    fn finish_piece<B: Buffer>(&mut self, burst: &mut [B], job: Job<'_>) {
        // The usual cases are loops of their own: nothing but headers and a signature to write.
        let signature_only =
            matches!(self.signature, Some(SignatureSpec::Full { integrity: false, .. }))
                && (job.resident || self.no_payload);
        match (signature_only, self.fixed) {
            _ if self.signature == Some(SignatureSpec::Short) => {
                self.finish_sized::<B, SHORT>(burst, job);
            }
            (true, true) => self.finish_sized::<B, FIXED>(burst, job),
            (true, false) => self.finish_sized::<B, SIGNATURE>(burst, job),
            (false, true) if self.signature.is_none() && job.resident => {
                self.finish_sized::<B, BARE>(burst, job);
            }
            (false, _) => self.finish_sized::<B, ANY>(burst, job),
        }
        self.sequence = self.sequence.wrapping_add(burst.len() as u32);
    }

    #[inline]
    fn finish_sized<B: Buffer, const KIND: u8>(&self, burst: &mut [B], job: Job<'_>) {
        // Headers are copied as a few whole 16-byte pieces and the last 16 bytes.
        match job.columns.headers_len {
            17..=32 => self.finish_with::<B, KIND, 16>(burst, job),
            33..=48 => self.finish_with::<B, KIND, 32>(burst, job),
            49..=64 => self.finish_with::<B, KIND, 48>(burst, job),
            65..=80 => self.finish_with::<B, KIND, 64>(burst, job),
            81..=96 => self.finish_with::<B, KIND, 80>(burst, job),
            97..=112 => self.finish_with::<B, KIND, 96>(burst, job),
            113..=128 => self.finish_with::<B, KIND, 112>(burst, job),
            _ => self.finish_with::<B, KIND, 0>(burst, job),
        }
    }

    // One call per burst, with all registers to itself.
    #[inline(never)]
    fn finish_with<B: Buffer, const KIND: u8, const WHOLE: usize>(
        &self,
        burst: &mut [B],
        Job { columns, skip, lens, stamp, resident }: Job<'_>,
    ) {
        let headers_len = columns.headers_len;
        let (stamped, integrity) = match self.signature {
            Some(SignatureSpec::Full { stamped, integrity }) => (stamped, integrity),
            Some(SignatureSpec::Short) | None => (false, false),
        };
        let stamp = if stamped { signature::stamp_of(stamp) } else { 0 };
        let extended = if integrity { MAX_FLOWS } else { 0 };
        // The lower half of the sequence number is added frame by frame; the upper stays.
        let (sequence, mut low) = (self.sequence & !0xffff, self.sequence & 0xffff);
        let blank = Signature { run: self.run, flow: self.flow | extended, sequence, stamp };
        let (first, second) = blank.words();
        let base = u32::from(signature::fold_words(first, second));
        let (first, second) = (first.to_be_bytes(), second.swap_bytes());
        let (short_rest, short_base) =
            ShortSignature { run: self.run, flow: self.flow, sequence }.without_check();
        let first_len = lens.first().copied().unwrap_or(0) as usize;
        let at_first = signature::offset(first_len).unwrap_or(0);

        // The strides that go with these lengths of headers, so that nothing is divided.
        let stride = match WHOLE {
            0 => columns.stride,
            1..64 => 64,
            _ => 128,
        };
        let rows = columns.rows.get(skip * stride..).unwrap_or_default();
        let rows = rows.chunks_exact(stride);
        for ((buffer, row), len) in burst.iter_mut().zip(rows).zip(lens) {
            let (len, at) = match KIND {
                FIXED | BARE => (first_len, at_first),
                SIGNATURE => (*len as usize, signature::offset(*len as usize).unwrap_or(0)),
                SHORT => (*len as usize, short::offset(*len as usize).unwrap_or(0)),
                // Without a signature all of the frame is before it.
                _ if self.signature.is_none() => (*len as usize, *len as usize),
                _ => (*len as usize, signature::offset(*len as usize).unwrap_or(0)),
            };
            let this = low;
            low += 1;
            let Some(frame) = buffer.resize(len) else { continue };
            if frame.len() != len {
                continue;
            }
            copy_headers::<WHOLE>(frame, row, headers_len);
            if KIND == BARE {
                continue;
            }
            if KIND == SHORT {
                if !resident && !self.no_payload {
                    self.write_payload(frame, headers_len);
                }
                let place = frame.get_mut(at..).and_then(|tail| tail.first_chunk_mut());
                if let Some(tail) = place {
                    let sum = u32::from(short_base) + this;
                    let check = !(sum + (sum >> 16)) as u16;
                    let number = short_rest | u64::from(this) << 16 | u64::from(check);
                    *tail = number.to_be_bytes();
                }
                continue;
            }
            if KIND == ANY {
                if !resident {
                    self.write_payload(frame, headers_len);
                }
                if integrity {
                    self.write_extension(frame, at);
                }
            }
            let Some(tail) = frame.get_mut(at..).and_then(|tail| tail.first_chunk_mut::<LEN>())
            else {
                continue;
            };
            let sum = base + this;
            let sum = sum + (sum >> 16);
            let this = u64::from((this as u16).swap_bytes());
            tail[..8].copy_from_slice(&first);
            tail[8..16].copy_from_slice(&(second | this).to_le_bytes());
            tail[16..].copy_from_slice(&(!sum as u16).to_be_bytes());
        }
    }

    /// Writes the extension before a signature at offset `at`.
    #[inline]
    fn write_extension(&self, frame: &mut [u8], at: usize) {
        let payload = at.saturating_sub(EXTENSION_LEN + self.headers_len);
        let sum = u64::from(self.payload_sum(frame.len())) + payload as u64;
        let check = !checksum::fold(sum);
        if let Some(extension) = frame.get_mut(..at).and_then(|head| head.last_chunk_mut()) {
            *extension = ((payload as u32) << 16 | u32::from(check)).to_be_bytes();
        }
    }
}

/// What a burst is made of.
#[derive(Clone, Copy)]
struct Job<'a> {
    columns: &'a Columns,
    /// Headers of the burst that earlier pieces took.
    skip: usize,
    lens: &'a [u32],
    stamp: u64,
    resident: bool,
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
