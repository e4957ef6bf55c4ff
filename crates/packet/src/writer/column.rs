// SPDX-License-Identifier: BSD-3-Clause
//! The headers of a burst side by side, and the columns of fields in them that change.

use super::finish::Tails;
use super::source::{Source, Word};
use super::{LANES, Lanes};

/// A checksum that a field counts for, and by how many bits the field's lowest bit stands left of
/// the end of its 16-bit word.
pub type Covered = (usize, u32);

/// How values get into headers.
#[derive(Clone, Copy, Debug)]
pub enum Store {
    /// A field of whole bytes at this offset: 1, 2, 4, 6, 8 or 16 of them.
    Bytes { at: usize, len: usize },
    /// Any other field: bits of a big-endian number of 1, 2, 4, 8 or 16 bytes at this offset.
    Bits { at: usize, len: usize, mask: u128, shift: u32 },
}

/// A field that follows a pattern.
#[derive(Clone, Debug)]
pub struct Column<T> {
    pub source: Source<T>,
    pub store: Store,
    /// Whether values have at most 16 bits.
    pub short: bool,
    pub covered: Box<[Covered]>,
}

/// A length field of frames with several sizes: the frame's length less `minus`.
#[derive(Clone, Debug)]
pub struct LengthColumn {
    pub minus: u32,
    pub store: Store,
    pub covered: Box<[Covered]>,
}

/// A checksum that is worked out.
#[derive(Clone, Debug)]
pub struct Check {
    /// Where it stands.
    pub at: usize,
    /// What the bytes that never change add.
    pub base: u32,
    /// The bit that is inverted to make it wrong, as it lies in the frame; 0 for none.
    pub flip: u32,
    /// What stands for zero (RFC 768: 0 means that there is no checksum).
    pub zero: u32,
    /// With several sizes, the length in the pseudo-header: what is taken off the frame's length,
    /// and by how many bits it is shifted.
    pub length: Option<(u32, u32)>,
    /// Whether the payload's sum depends on the frame's size and has to be added.
    pub payload: bool,
    /// The checksums that cover this one, all of headers before it.
    pub covered: Box<[usize]>,
}

/// The headers of a burst and the fields of them that change.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    pub headers_len: usize,
    /// Bytes from one frame's headers to the next.
    pub stride: usize,
    /// The headers of all frames of a burst.
    pub rows: Vec<u8>,
    /// The sums of each checksum, one for each frame.
    pub sums: Vec<Lanes<u32>>,
    pub narrow: Vec<Column<u32>>,
    pub wide: Vec<Column<u64>>,
    pub huge: Vec<Column<u128>>,
    pub lengths: Vec<LengthColumn>,
}

impl Columns {
    pub fn restart(&mut self) {
        self.narrow.iter_mut().for_each(|column| column.source.restart());
        self.wide.iter_mut().for_each(|column| column.source.restart());
        self.huge.iter_mut().for_each(|column| column.source.restart());
    }

    /// Takes over where the same fields of another size are.
    pub fn go_on_from(&mut self, other: &mut Columns) {
        fn swap<T>(new: &mut [Column<T>], old: &mut [Column<T>]) {
            for (new, old) in new.iter_mut().zip(old) {
                std::mem::swap(&mut new.source, &mut old.source);
            }
        }
        swap(&mut self.narrow, &mut other.narrow);
        swap(&mut self.wide, &mut other.wide);
        swap(&mut self.huge, &mut other.huge);
    }

    /// Sets the sums of a new burst.
    #[inline]
    pub fn start(&mut self, checks: &[Check], n: usize) {
        for (sums, check) in self.sums.iter_mut().zip(checks) {
            sums.iter_mut().take(n.div_ceil(LANES)).for_each(|sums| *sums = [check.base; LANES]);
        }
    }

    /// What depends on the frames' lengths, which differ.
    pub fn fill_lengths(&mut self, checks: &[Check], lens: &Lanes<u32>, tails: &Tails, n: usize) {
        for LengthColumn { minus, store, covered } in &self.lengths {
            let values = lens.map(|lens| lens.map(|len| len.saturating_sub(*minus)));
            store.write(&mut self.rows, self.stride, &values.as_flattened()[..n]);
            add(&mut self.sums, covered, &values, true, n);
        }
        for (check, sums) in checks.iter().zip(&mut self.sums) {
            let (sums, lens) = (&mut sums.as_flattened_mut()[..n], lens.as_flattened());
            if let Some((minus, shift)) = check.length {
                for (sum, len) in sums.iter_mut().zip(lens) {
                    *sum += len.saturating_sub(minus).adds(shift);
                }
            }
            if check.payload {
                for (sum, len) in sums.iter_mut().zip(lens) {
                    *sum += u32::from(tails.payload_sum(*len as usize));
                }
            }
        }
    }

    /// The fields that follow patterns.
    #[inline]
    pub fn fill(&mut self, n: usize) {
        let Columns { stride, rows, sums, narrow, wide, huge, .. } = self;
        fill(narrow, rows, *stride, sums, n);
        if !wide.is_empty() {
            fill(wide, rows, *stride, sums, n);
        }
        if !huge.is_empty() {
            fill(huge, rows, *stride, sums, n);
        }
    }

    /// The checksums, the innermost first.
    #[inline]
    pub fn fill_checks(&mut self, checks: &[Check], n: usize) {
        let Columns { stride, rows, sums, .. } = self;
        let mut values = Lanes::default();
        for (i, check) in checks.iter().enumerate() {
            let Some(sums_here) = sums.get(i) else { return };
            for (values, sums) in values.iter_mut().zip(sums_here).take(n.div_ceil(LANES)) {
                *values = sums.map(|sum| check.value(sum));
            }
            // Sums are made of words as they lie in the frame. At an odd offset the two bytes of a
            // checksum are halves of two words.
            let (at, stride) = (check.at, *stride);
            let finished = &values.as_flattened()[..n];
            match at % 2 {
                0 => each(rows, stride, at, finished, |_, v| (v as u16).to_be_bytes()),
                _ => each(rows, stride, at, finished, |_, v| (v as u16).to_le_bytes()),
            }
            for outer in &check.covered {
                if let Some(sums) = sums.get_mut(*outer) {
                    add_lanes(sums, &values, n);
                }
            }
        }
    }
}

impl Check {
    /// The checksum of a sum, as it lies in the frame.
    #[inline]
    pub fn value(&self, sum: u32) -> u32 {
        let value = complement(sum) ^ self.flip;
        // All ones if it is zero, in vector instructions, which a comparison is not.
        let none = (value.wrapping_sub(1) as i32 >> 31) as u32;
        value | none & self.zero
    }
}

/// The complement of a folded sum. (Adding the sum to itself with its halves exchanged would be
/// shorter, but SSE2 has no instruction to rotate.)
#[inline]
const fn complement(sum: u32) -> u32 {
    let sum = (sum & 0xffff) + (sum >> 16);
    !(sum + (sum >> 16)) & 0xffff
}

fn fill<T: Word>(
    columns: &mut [Column<T>],
    rows: &mut [u8],
    stride: usize,
    sums: &mut [Lanes<u32>],
    n: usize,
) {
    let mut values = Lanes::default();
    for column in columns {
        column.source.fill(&mut values, n);
        column.store.write(rows, stride, &values.as_flattened()[..n]);
        add(sums, &column.covered, &values, column.short, n);
    }
}

/// Adds values, `short` if they have at most 16 bits, to the sums of the checksums that cover them.
#[inline]
fn add<T: Word>(
    sums: &mut [Lanes<u32>],
    covered: &[Covered],
    values: &Lanes<T>,
    short: bool,
    n: usize,
) {
    let Some((_, first)) = covered.first() else { return };
    // Most often short fields at even offsets: they add themselves.
    if let (Some(values), [(check, 0)]) = (T::themselves(values, short), covered) {
        if let Some(sums) = sums.get_mut(*check) {
            add_lanes(sums, values, n);
        }
        return;
    }
    let (mut adds, mut shifted) = (Lanes::default(), *first);
    shift(values, &mut adds, shifted, n);
    for (check, by) in covered {
        if *by != shifted {
            shifted = *by;
            shift(values, &mut adds, shifted, n);
        }
        if let Some(sums) = sums.get_mut(*check) {
            add_lanes(sums, &adds, n);
        }
    }
}

/// What values add to a checksum.
#[inline]
fn shift<T: Word>(values: &Lanes<T>, adds: &mut Lanes<u32>, by: u32, n: usize) {
    let pairs = adds.iter_mut().zip(values).take(n.div_ceil(LANES));
    if by == 0 {
        pairs.for_each(|(adds, values)| *adds = values.map(|value| value.adds(0)));
    } else {
        pairs.for_each(|(adds, values)| *adds = values.map(|value| value.adds(by)));
    }
}

#[inline]
fn add_lanes(sums: &mut Lanes<u32>, adds: &Lanes<u32>, n: usize) {
    for (sums, adds) in sums.iter_mut().zip(adds).take(n.div_ceil(LANES)) {
        for (sum, add) in sums.iter_mut().zip(adds) {
            // Lanes behind the last frame hold anything.
            *sum = sum.wrapping_add(*add);
        }
    }
}

/// Replaces the `N` bytes at offset `at` of each row.
#[inline]
fn each<T: Copy, const N: usize>(
    rows: &mut [u8],
    stride: usize,
    at: usize,
    values: &[T],
    make: impl Fn([u8; N], T) -> [u8; N] + Copy,
) {
    // The usual strides as constants, so that nothing is divided or checked in the loop.
    match stride {
        64 => each_of(rows, 64, at, values, make),
        128 => each_of(rows, 128, at, values, make),
        _ => each_of(rows, stride, at, values, make),
    }
}

#[inline(always)]
fn each_of<T: Copy, const N: usize>(
    rows: &mut [u8],
    stride: usize,
    at: usize,
    values: &[T],
    make: impl Fn([u8; N], T) -> [u8; N],
) {
    if at > stride - N {
        return;
    }
    for (row, value) in rows.chunks_exact_mut(stride).zip(values) {
        if let Some(place) = row.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<N>()) {
            *place = make(*place, *value);
        }
    }
}

impl Store {
    /// Writes a value into each row.
    #[inline(always)]
    fn write<T: Word>(self, rows: &mut [u8], stride: usize, values: &[T]) {
        match self {
            Store::Bytes { at, len: 1 } => each(rows, stride, at, values, |_, v| [v.low() as u8]),
            Store::Bytes { at, len: 2 } => {
                each(rows, stride, at, values, |_, v| (v.low() as u16).to_be_bytes());
            }
            Store::Bytes { at, len: 4 } => {
                each(rows, stride, at, values, |_, v| (v.low() as u32).to_be_bytes());
            }
            Store::Bytes { at, len: 6 } => each(rows, stride, at, values, |_, v| {
                let [_, _, mac @ ..] = v.low().to_be_bytes();
                mac
            }),
            Store::Bytes { at, len: 8 } => {
                each(rows, stride, at, values, |_, v| v.low().to_be_bytes());
            }
            Store::Bytes { at, .. } => {
                each(rows, stride, at, values, |_, v| v.whole().to_be_bytes());
            }
            Store::Bits { at, len: 1, mask, shift } => {
                each(rows, stride, at, values, |[old], v| {
                    [old & !(mask as u8) | (v.low() << shift) as u8]
                });
            }
            Store::Bits { at, len: 2, mask, shift } => {
                each(rows, stride, at, values, |old, v| {
                    let old = u16::from_be_bytes(old) & !(mask as u16);
                    (old | (v.low() << shift) as u16).to_be_bytes()
                });
            }
            Store::Bits { at, len: 4, mask, shift } => {
                each(rows, stride, at, values, |old, v| {
                    let old = u32::from_be_bytes(old) & !(mask as u32);
                    (old | (v.low() << shift) as u32).to_be_bytes()
                });
            }
            Store::Bits { at, len: 8, mask, shift } => {
                each(rows, stride, at, values, |old, v| {
                    let old = u64::from_be_bytes(old) & !(mask as u64);
                    (old | v.low() << shift).to_be_bytes()
                });
            }
            Store::Bits { at, mask, shift, .. } => each(rows, stride, at, values, |old, v| {
                (u128::from_be_bytes(old) & !mask | v.whole() << shift).to_be_bytes()
            }),
        }
    }

    /// For a field of `bits` bits whose first is bit number `offset` of rows of `stride` bytes.
    pub fn new(offset: usize, bits: u32, stride: usize) -> Self {
        let (at, end) = (offset / 8, offset + bits as usize);
        let span = end.div_ceil(8) - at;
        if offset % 8 == 0 && bits as usize == span * 8 && matches!(span, 1 | 2 | 4 | 6 | 8 | 16) {
            return Store::Bytes { at, len: span };
        }
        let len = span.next_power_of_two().min(16);
        let at = at.min(stride.saturating_sub(len));
        let shift = ((at + len) * 8 - end) as u32;
        let mask = u128::MAX >> (128 - bits.max(1)) << shift;
        Store::Bits { at, len, mask, shift }
    }
}
