// SPDX-License-Identifier: BSD-3-Clause
//! The signature by which a generator knows its own frames, in the last bytes of the payload.
//!
//! It stands at the end, so that a forwarder may rewrite, add or remove headers. All numbers are
//! big-endian. It starts at an even offset of the frame (one byte of an odd frame stays behind
//! it), so that its words add to the checksums of headers without a shift. A 64-byte frame (60
//! without FCS) with UDP over IPv4 has 18 payload bytes, and the signature takes exactly these:
//!
//! | bytes | field | |
//! |---|---|---|
//! | 0..3 | magic | [`MAGIC`], three bytes |
//! | 3 | run | counts starts, modulo 256, from anywhere on: a frame of another run is stale |
//! | 4..6 | flow | index of the flow in the configuration, 15 bits; bit 15: an extension stands before |
//! | 6..10 | sequence | number of the frame in its flow and run, modulo 2^32 |
//! | 10..16 | stamp | low 48 bits of the TSC at sending; 0 means that the frame carries no stamp |
//! | 16..18 | check | internet checksum over the other 16 bytes |
//!
//! With its check the signature adds zero to any internet checksum, so that the checksum of a UDP
//! header never depends on sequence or stamp.
//!
//! The extension, if a flow asks for it, is the 4 bytes before the signature: the length of the
//! payload in bytes (from the end of the headers to the extension), and an internet checksum over
//! payload and length. Payload and extension together add zero, too.
//!
//! # Frames without room for it
//! | known by | bytes | gives | does not give |
//! |---|---|---|---|
//! | the signature | 18 or 22 | loss, order, duplicates, damage, latency | |
//! | a short signature ([`short`]) | 8 | loss, order, duplicates | damage, latency |
//! | header fields ([`crate::classifier`]) | 0 | loss | order, duplicates, damage, latency; frames of an earlier run count |

pub mod short;

use crate::checksum;

/// Length of a signature in bytes.
pub const LEN: usize = 18;
/// Length of the extension in bytes.
pub const EXTENSION_LEN: usize = 4;
/// The first three bytes of every signature.
pub const MAGIC: u32 = 0x004c_529d;
/// Flows have numbers below this.
pub const MAX_FLOWS: u16 = 0x8000;
/// The bits of a stamp.
pub const STAMP_MASK: u64 = (1 << 48) - 1;

/// What a frame says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Which run of the flow sent it, modulo 256.
    pub run: u8,
    /// Index of the flow, below [`MAX_FLOWS`].
    pub flow: u16,
    /// Number of the frame in its flow and run, modulo 2^32.
    pub sequence: u32,
    /// Low 48 bits of the TSC at sending, 0 for none.
    pub stamp: u64,
}

/// What the place of the signature holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// No signature: a frame of somebody else's, or one too short.
    None,
    /// A signature whose check is right.
    Ours(Signature),
    /// The magic, but the check is wrong: one of ours that was damaged under way.
    Corrupt,
}

/// Where the signature of a frame of `frame_len` bytes starts; `None` when it is too short.
#[inline]
pub const fn offset(frame_len: usize) -> Option<usize> {
    match frame_len.checked_sub(LEN) {
        Some(offset) => Some(offset & !1),
        None => None,
    }
}

/// The stamp for a moment of the TSC: its low 48 bits, and 1 in place of the 0 that means "none".
#[inline]
pub const fn stamp_of(tsc: u64) -> u64 {
    match tsc & STAMP_MASK {
        0 => 1,
        stamp => stamp,
    }
}

/// TSC ticks from `stamp` to `now_tsc`, right as long as fewer than 2^48 passed (a day at 3 GHz).
///
/// ```
/// assert_eq!(packet::signature::elapsed(0x0005_0000_0000_0002, 0xffff_ffff_fffe), 4);
/// ```
#[inline]
pub const fn elapsed(now_tsc: u64, stamp: u64) -> u64 {
    now_tsc.wrapping_sub(stamp) & STAMP_MASK
}

#[inline]
fn tail(frame: &[u8]) -> Option<&[u8; LEN]> {
    frame.get(..frame.len() & !1)?.last_chunk()
}

impl Signature {
    /// The signature of a frame; `None` when it has none, or a damaged one.
    ///
    /// ```
    /// use packet::signature::Signature;
    /// let mut frame = [0u8; 60];
    /// assert_eq!(Signature::read(&frame), None);
    /// let ours = Signature { run: 1, flow: 2, sequence: 3, stamp: 0 };
    /// ours.write(&mut frame);
    /// assert_eq!(Signature::read(&frame), Some(ours));
    /// ```
    #[inline]
    pub fn read(frame: &[u8]) -> Option<Self> {
        match Self::inspect(frame) {
            Reading::Ours(signature) => Some(signature),
            _ => None,
        }
    }

    /// What the place of the signature holds.
    ///
    /// ```
    /// use packet::signature::{Reading, Signature};
    /// let mut frame = [0u8; 60];
    /// Signature { run: 1, flow: 2, sequence: 3, stamp: 0 }.write(&mut frame);
    /// frame[50] ^= 4;
    /// assert_eq!(Signature::inspect(&frame), Reading::Corrupt);
    /// ```
    #[inline]
    pub fn inspect(frame: &[u8]) -> Reading {
        let Some(tail) = tail(frame) else { return Reading::None };
        let (first, second, check) = numbers(tail);
        if (first >> 40) as u32 != MAGIC {
            return Reading::None;
        }
        if fold_words(first, second) != !check {
            return Reading::Corrupt;
        }
        Reading::Ours(Signature {
            run: (first >> 32) as u8,
            flow: (first >> 16) as u16 & (MAX_FLOWS - 1),
            sequence: (first as u32) << 16 | (second >> 48) as u32,
            stamp: second & STAMP_MASK,
        })
    }

    /// The signature as bytes, without an extension before it.
    #[inline]
    pub fn to_bytes(self) -> [u8; LEN] {
        let (first, second) = self.words();
        let mut tail = [0u8; LEN];
        tail[..8].copy_from_slice(&first.to_be_bytes());
        tail[8..16].copy_from_slice(&second.to_be_bytes());
        tail[16..].copy_from_slice(&(!fold_words(first, second)).to_be_bytes());
        tail
    }

    /// The 16 bytes that the check covers.
    #[inline]
    pub(crate) const fn words(self) -> (u64, u64) {
        let id = (MAGIC as u64) << 40 | (self.run as u64) << 32 | (self.flow as u64) << 16;
        let second = (self.sequence as u64) << 48 | self.stamp & STAMP_MASK;
        (id | (self.sequence >> 16) as u64, second)
    }

    /// Writes the signature into a frame and says whether the frame had room for it.
    #[inline]
    pub fn write(self, frame: &mut [u8]) -> bool {
        let place =
            offset(frame.len()).and_then(|at| frame.get_mut(at..)?.first_chunk_mut::<LEN>());
        match place {
            Some(tail) => {
                *tail = self.to_bytes();
                true
            }
            None => false,
        }
    }
}

/// The folded sum of the words of two big-endian numbers.
#[inline]
pub(crate) const fn fold_words(first: u64, second: u64) -> u16 {
    // End-around carry: 2^64 is 1 modulo 2^16 - 1, too.
    let (sum, carry) = first.overflowing_add(second);
    checksum::fold_wide(sum, carry)
}

/// Gives the signature of `frame` the stamp of another moment of the TSC. What has none, or no stamp, stays.
/// Checksums of headers stay right: a signature adds zero to them, whatever its stamp.
///
/// ```
/// use packet::signature::{Signature, restamp};
/// let mut frame = [0u8; 60];
/// Signature { run: 1, flow: 2, sequence: 3, stamp: 4 }.write(&mut frame);
/// restamp(&mut frame, 5);
/// assert_eq!(Signature::read(&frame), Some(Signature { run: 1, flow: 2, sequence: 3, stamp: 5 }));
/// ```
#[inline]
pub fn restamp(frame: &mut [u8], tsc: u64) {
    let Some(at) = offset(frame.len()) else { return };
    let Some(tail) = frame.get_mut(at..).and_then(|tail| tail.first_chunk_mut::<LEN>()) else {
        return;
    };
    let (first, second, _) = numbers(tail);
    if (first >> 40) as u32 != MAGIC || second & STAMP_MASK == 0 {
        return;
    }
    let second = second & !STAMP_MASK | stamp_of(tsc);
    tail[8..16].copy_from_slice(&second.to_be_bytes());
    tail[16..].copy_from_slice(&(!fold_words(first, second)).to_be_bytes());
}

/// The signature that comes next in a row of frames that were sent together: of the same run of the same
/// flow, with the next number and the same stamp. To compare with it takes a third of reading one.
///
/// ```
/// use packet::signature::{Signature, Successor};
/// let frame = |sequence| {
///     let mut frame = [0u8; 60];
///     Signature { run: 1, flow: 2, sequence, stamp: 9 }.write(&mut frame);
///     frame
/// };
/// let mut next = Successor::of(&frame(3));
/// assert!(next.is_in(&frame(4)) && next.is_in(&frame(5)));
/// assert!(!next.is_in(&frame(7)) && next.is_in(&frame(6)));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Successor {
    first: u64,
    second: u64,
    check: u16,
}

impl Successor {
    /// What follows the signature of `frame`. What is in no frame when that has none.
    #[inline]
    pub fn of(frame: &[u8]) -> Self {
        match tail(frame).map(numbers) {
            Some((first, second, check)) if fold_words(first, second) == !check => {
                let mut next = Successor { first, second, check };
                next.advance();
                next
            }
            _ => Successor::default(),
        }
    }

    /// Whether `frame` has it; if so, the one after it is what comes next.
    #[inline]
    pub fn is_in(&mut self, frame: &[u8]) -> bool {
        let Some(tail) = tail(frame) else { return false };
        let found = numbers(tail) == (self.first, self.second, self.check) && self.first != 0;
        if found {
            self.advance();
        }
        found
    }

    /// Whether each of `n` frames has what comes after the one before it; if so, what follows the
    /// last is what comes next. As if [`is_in`](Self::is_in) were asked of one after the other, at
    /// half the cost; but `false` too where numbers run over in between, and then nothing changes.
    #[inline]
    pub fn is_in_all<'a>(&mut self, n: usize, mut frame: impl FnMut(usize) -> &'a [u8]) -> bool {
        if n == 0 {
            return true;
        }
        let room = (0xffff - (self.second >> 48)).min(u64::from(self.check));
        if self.first == 0 || n as u64 > room {
            return false;
        }
        let after = |i: usize| Successor {
            second: self.second + ((i as u64) << 48),
            check: self.check - i as u16,
            ..*self
        };
        // What does not follow shows at the end most often.
        if !after(n - 1).is_in(frame(n - 1)) {
            return false;
        }
        // The others are looked at without a branch for each.
        let mut different = 0;
        for i in 0..n - 1 {
            let Some(tail) = tail(frame(i)) else { return false };
            let (found, wanted) = (numbers(tail), after(i));
            different |= (found.0 ^ wanted.first) | (found.1 ^ wanted.second);
            different |= u64::from(found.2 ^ wanted.check);
        }
        if different == 0 {
            *self = after(n);
        }
        different == 0
    }

    #[inline]
    fn advance(&mut self) {
        // Where the number's lower half or the sum runs over, the next signature is read again.
        if self.second >> 48 == 0xffff || self.check == 0 {
            *self = Successor::default();
        } else {
            self.second += 1 << 48;
            self.check -= 1;
        }
    }
}

/// A signature as numbers: two words of 64 bits and the check.
#[inline]
fn numbers(tail: &[u8; LEN]) -> (u64, u64, u16) {
    let [a0, a1, a2, a3, a4, a5, a6, a7, b0, b1, b2, b3, b4, b5, b6, b7, c0, c1] = *tail;
    (
        u64::from_be_bytes([a0, a1, a2, a3, a4, a5, a6, a7]),
        u64::from_be_bytes([b0, b1, b2, b3, b4, b5, b6, b7]),
        u16::from_be_bytes([c0, c1]),
    )
}

/// Whether the bytes before the signature are those that were sent; `None` when the frame has no
/// right signature or no extension.
///
/// The extension says itself how far the payload reaches, so that headers may have been changed,
/// added or removed under way.
pub fn payload_is_intact(frame: &[u8]) -> Option<bool> {
    let at = offset(frame.len())?;
    Signature::read(frame)?;
    let (before, tail) = frame.split_at_checked(at)?;
    if tail.get(4)? & 0x80 == 0 {
        return None;
    }
    let (_, extension) = before.split_last_chunk::<EXTENSION_LEN>()?;
    let len = usize::from(u16::from_be_bytes([extension[0], extension[1]]));
    let Some(start) = before.len().checked_sub(EXTENSION_LEN + len) else { return Some(false) };
    let covered = before.get(start..)?;
    // Words are aligned to the frame: of a payload at an odd offset the first byte is a lower half.
    let sum = match covered.split_first() {
        Some((first, rest)) if start % 2 == 1 => u64::from(*first) + checksum::sum(rest),
        _ => checksum::sum(covered),
    };
    Some(checksum::fold(sum) == 0xffff)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn stamps_are_never_none() {
        assert_eq!(stamp_of(0), 1);
        assert_eq!(stamp_of(1 << 48), 1);
        assert_eq!(stamp_of(u64::MAX), STAMP_MASK);
    }

    #[test]
    fn a_known_signature() {
        let bytes = Signature { run: 5, flow: 2, sequence: 0x0003_0004, stamp: 7 }.to_bytes();
        assert_eq!(bytes[..16], [0x4c, 0x52, 0x9d, 5, 0, 2, 0, 3, 0, 4, 0, 0, 0, 0, 0, 7]);
        // 4c52 + 9d05 + 2 + 3 + 4 + 7 = e967; complement 1698.
        assert_eq!(bytes[16..], [0x16, 0x98]);
    }

    proptest! {
        #[test]
        fn round_trips_at_every_length(len in LEN..1600, run: u8, flow in 0..MAX_FLOWS, sequence: u32, stamp in 0..=STAMP_MASK) {
            let signature = Signature { run, flow, sequence, stamp };
            let mut frame = vec![0xee; len];
            prop_assert!(signature.write(&mut frame));
            prop_assert_eq!(Signature::read(&frame), Some(signature));
            let at = (len - LEN) & !1;
            prop_assert_eq!(frame.iter().take_while(|b| **b == 0xee).count(), at);
            prop_assert_eq!(checksum::fold(checksum::sum(&frame[at..at + LEN])), 0xffff);
            prop_assert_eq!(payload_is_intact(&frame), None);
        }

        #[test]
        fn another_stamp_changes_nothing_else(
            len in LEN..90, run: u8, flow: u16, sequence: u32, stamp in 0..=STAMP_MASK, tsc: u64, ours: bool,
        ) {
            // Bit 15 of the flow says that there is an extension.
            let signature = Signature { run, flow, sequence, stamp };
            let (mut frame, mut wanted) = (vec![0xee; len], vec![0xee; len]);
            if ours {
                signature.write(&mut frame);
                let stamp = if stamp == 0 { 0 } else { stamp_of(tsc) };
                Signature { stamp, ..signature }.write(&mut wanted);
            }
            restamp(&mut frame, tsc);
            prop_assert_eq!(frame, wanted);
        }

        #[test]
        fn one_wrong_bit_is_seen(run: u8, flow in 0..MAX_FLOWS, sequence: u32, stamp in 0..=STAMP_MASK, bit in 0usize..LEN * 8) {
            let mut frame = [0; 60];
            Signature { run, flow, sequence, stamp }.write(&mut frame);
            frame[42 + bit / 8] ^= 1 << (bit % 8);
            let wanted = if bit < 24 { Reading::None } else { Reading::Corrupt };
            prop_assert_eq!(Signature::inspect(&frame), wanted);
        }

        #[test]
        fn a_successor_is_the_next_number_and_nothing_else(
            run: u8, flow in 0..MAX_FLOWS, start: u32, stamp in 0..=STAMP_MASK, len in LEN..90, wrong_bit in 0usize..LEN * 8, jumps in prop::collection::vec(0u32..3, 1..40),
        ) {
            let write = |sequence| {
                let mut frame = vec![7; len];
                Signature { run, flow, sequence, stamp }.write(&mut frame);
                frame
            };
            let (mut last, mut next) = (start, Successor::of(&write(start)));
            for jump in jumps {
                let frame = write(last.wrapping_add(jump));
                let mut damaged = write(last.wrapping_add(1));
                damaged[((len - LEN) & !1) + wrong_bit / 8] ^= 1 << (wrong_bit % 8);
                prop_assert!(!next.is_in(&damaged));
                let found = next.is_in(&frame);
                prop_assert!(!found || jump == 1);
                // Only where numbers run over is a successor not known.
                let known = last as u16 != 0xffff && frame[((len - LEN) & !1) + 16..][..2] != [0xff, 0xfe];
                prop_assert!(found || jump != 1 || !known);
                last = last.wrapping_add(jump);
                next = Successor::of(&frame);
            }
        }

        #[test]
        fn a_row_is_what_one_after_the_other_would_be(
            start: u32, len in LEN..70usize, n in 0u32..40, wrong in (0u32..60, 0..8 * LEN),
        ) {
            let frames: Vec<Vec<u8>> = (0..=n)
                .map(|i| {
                    let mut frame = vec![0; len];
                    let sequence = start.wrapping_add(i);
                    Signature { run: 1, flow: 2, sequence, stamp: 5 }.write(&mut frame);
                    if i == wrong.0 {
                        frame[((len - LEN) & !1) + wrong.1 / 8] ^= 1 << (wrong.1 % 8);
                    }
                    frame
                })
                .collect();
            let (mut one, mut all) = (Successor::of(&frames[0]), Successor::of(&frames[0]));
            let known = all.is_in_all(n as usize, |i| &frames[i + 1]);
            let each = frames[1..].iter().all(|frame| one.is_in(frame));
            prop_assert!(!known || each);
            let runs_over = u64::from(start) % 0x1_0000 + u64::from(n) > 0xffff
                || frames.iter().any(|f| f[((len - LEN) & !1) + 16..][..2] == [0, 0]);
            prop_assert!(known || !each || runs_over);
            if known {
                prop_assert_eq!((all.first, all.second, all.check), (one.first, one.second, one.check));
            }
        }

        #[test]
        fn short_frames_have_none(len in 0..LEN) {
            let mut frame = vec![0; len];
            let signature = Signature { run: 0, flow: 0, sequence: 0, stamp: 0 };
            prop_assert!(!signature.write(&mut frame));
            prop_assert_eq!(Signature::inspect(&frame), Reading::None);
        }

        #[test]
        fn elapsed_wraps(start: u64, ticks in 0..=STAMP_MASK) {
            prop_assert_eq!(elapsed(start.wrapping_add(ticks), start & STAMP_MASK), ticks);
        }
    }
}
