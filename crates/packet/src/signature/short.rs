// SPDX-License-Identifier: BSD-3-Clause
//! The short signature: 8 bytes, for frames without room for the full one.
//!
//! It stands where the full one does: at the end of the payload, at an even offset of the frame.
//! All numbers are big-endian.
//!
//! | bytes | field | |
//! |---|---|---|
//! | 0..2 | run, flow | two bits: number of the start, modulo 4; 14 bits: index of the flow |
//! | 2..6 | sequence | number of the frame in its flow and run, modulo 2^32 |
//! | 6..8 | check | internet checksum over the other 6 bytes and [`SEED`] |
//!
//! With its check the signature adds the constant [`SUM`] to any internet checksum, so that the
//! checksum of a UDP or TCP header does not depend on the sequence. It carries no stamp and no
//! checksum of the payload, and it says nothing about damage: a signature with a changed bit looks
//! like another program's frame.
//!
//! Other programs' frames are taken for a signature if their last 8 bytes pass the check: one in
//! 65,536 where these are random. Run and flow must fit as well. Of random frames, a receiver that
//! waits for `n` flows counts `n` in 2^32 as its own.

use crate::checksum;

/// Length of a short signature in bytes.
pub const LEN: usize = 8;
/// Flows have numbers below this.
pub const MAX_FLOWS: u16 = 0x4000;
/// Runs have numbers below this.
pub const RUNS: u8 = 4;
/// Added to the sum that the check is made of, so that zeros are no signature.
pub const SEED: u16 = 0x4c52;
/// What a signature adds to an internet checksum.
pub const SUM: u16 = !SEED;

/// What a frame with a short signature says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortSignature {
    /// Which run of the flow sent it, modulo [`RUNS`].
    pub run: u8,
    /// Index of the flow, below [`MAX_FLOWS`].
    pub flow: u16,
    /// Number of the frame in its flow and run, modulo 2^32.
    pub sequence: u32,
}

/// Where the signature of a frame of `frame_len` bytes starts; `None` when it is too short.
#[inline]
pub const fn offset(frame_len: usize) -> Option<usize> {
    match frame_len.checked_sub(LEN) {
        Some(offset) => Some(offset & !1),
        None => None,
    }
}

/// The bytes at the place of the signature, as a number.
#[inline]
fn number(frame: &[u8]) -> Option<u64> {
    frame.get(..frame.len() & !1)?.last_chunk().map(|tail| u64::from_be_bytes(*tail))
}

impl ShortSignature {
    /// The signature of a frame; `None` when it has none.
    ///
    /// ```
    /// use packet::signature::short::ShortSignature;
    /// let mut frame = [0u8; 60];
    /// assert_eq!(ShortSignature::read(&frame), None);
    /// let ours = ShortSignature { run: 1, flow: 2, sequence: 3 };
    /// ours.write(&mut frame);
    /// assert_eq!(ShortSignature::read(&frame), Some(ours));
    /// ```
    #[inline]
    pub fn read(frame: &[u8]) -> Option<Self> {
        let number = number(frame)?;
        let found = ShortSignature {
            run: (number >> 62) as u8,
            flow: (number >> 48) as u16 & (MAX_FLOWS - 1),
            sequence: (number >> 16) as u32,
        };
        (found.number() == number).then_some(found)
    }

    /// The signature as bytes.
    #[inline]
    pub const fn to_bytes(self) -> [u8; LEN] {
        self.number().to_be_bytes()
    }

    /// The signature as a number; the check is its low 16 bits.
    #[inline]
    const fn number(self) -> u64 {
        let (rest, sum) = self.without_check();
        rest | !sum as u64
    }

    /// The signature without its check, and the sum whose complement the check is.
    #[inline]
    pub(crate) const fn without_check(self) -> (u64, u16) {
        let id = ((self.run & (RUNS - 1)) as u16) << 14 | self.flow & (MAX_FLOWS - 1);
        let (high, low) = ((self.sequence >> 16) as u64, (self.sequence & 0xffff) as u64);
        let sum = checksum::fold(id as u64 + high + low + SEED as u64);
        ((id as u64) << 48 | (self.sequence as u64) << 16, sum)
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

/// The signature that comes next in a row of frames of the same run of the same flow. To compare with it
/// takes less than to read one.
///
/// ```
/// use packet::signature::short::{ShortSignature, ShortSuccessor};
/// let frame = |sequence| {
///     let mut frame = [0u8; 60];
///     ShortSignature { run: 1, flow: 2, sequence }.write(&mut frame);
///     frame
/// };
/// let mut next = ShortSuccessor::of(&frame(3));
/// assert!(next.is_in(&frame(4)) && next.is_in(&frame(5)));
/// assert!(!next.is_in(&frame(7)) && next.is_in(&frame(6)));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct ShortSuccessor {
    /// 0 for none: no signature is 0.
    next: u64,
}

impl ShortSuccessor {
    /// What follows the signature of `frame`; what is in no frame when that has none.
    #[inline]
    pub fn of(frame: &[u8]) -> Self {
        let next = ShortSignature::read(frame).map(|found| {
            ShortSignature { sequence: found.sequence.wrapping_add(1), ..found }.number()
        });
        ShortSuccessor { next: next.unwrap_or(0) }
    }

    /// Whether `frame` has it; if so, the one after it is what comes next.
    #[inline]
    pub fn is_in(&mut self, frame: &[u8]) -> bool {
        let found = number(frame) == Some(self.next) && self.next != 0;
        if found {
            let (low, check) = ((self.next >> 16) as u16, self.next as u16);
            self.next = match (low, check) {
                // Numbers run over: the next signature is read again.
                (0xffff, _) | (_, 0) => 0,
                // One more in the sequence is one less in the check.
                _ => self.next + 0xffff,
            };
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use proptest::prelude::*;

    #[test]
    fn a_known_signature() {
        let bytes = ShortSignature { run: 1, flow: 2, sequence: 0x0003_0004 }.to_bytes();
        // 4c52 + 4002 + 3 + 4 = 8c5b; complement 73a4.
        assert_eq!(bytes, [0x40, 2, 0, 3, 0, 4, 0x73, 0xa4]);
    }

    #[test]
    fn usual_padding_is_no_signature() {
        for byte in 0..=255 {
            assert_eq!(ShortSignature::read(&[byte; 60]), None, "{byte}");
        }
        let mut counting: Vec<u8> = (0..60).collect();
        assert_eq!(ShortSignature::read(&counting), None);
        counting.reverse();
        assert_eq!(ShortSignature::read(&counting), None);
    }

    #[test]
    fn random_frames_pass_the_check_once_in_65536() {
        let mut random = Random::new(7);
        let frame = |_| random.bits().to_be_bytes();
        let frames = (0..1_000_000).map(frame);
        let found = frames.filter(|frame| ShortSignature::read(frame).is_some()).count();
        // 15.3 are to be expected: fewer than 3 or more than 35 once in 20,000.
        assert!((3..=35).contains(&found), "{found}");
    }

    proptest! {
        #[test]
        fn round_trips_at_every_length(len in 0usize..1600, run in 0..RUNS, flow in 0..MAX_FLOWS, sequence: u32) {
            let signature = ShortSignature { run, flow, sequence };
            let mut frame = vec![0xee; len];
            prop_assert_eq!(signature.write(&mut frame), len >= LEN);
            if len < LEN {
                prop_assert_eq!(ShortSignature::read(&frame), None);
                return Ok(());
            }
            prop_assert_eq!(ShortSignature::read(&frame), Some(signature));
            let at = (len - LEN) & !1;
            prop_assert_eq!(offset(len), Some(at));
            prop_assert!(frame[..at].iter().chain(&frame[at + LEN..]).all(|byte| *byte == 0xee));
            prop_assert_eq!(checksum::fold(checksum::sum(&frame[at..at + LEN])), SUM);
        }

        #[test]
        fn one_wrong_bit_is_seen(run in 0..RUNS, flow in 0..MAX_FLOWS, sequence: u32, bit in 0..LEN * 8) {
            let mut frame = [0; 60];
            ShortSignature { run, flow, sequence }.write(&mut frame);
            frame[52 + bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(ShortSignature::read(&frame), None);
        }

        #[test]
        fn a_successor_is_the_next_number_and_nothing_else(
            run in 0..RUNS, flow in 0..MAX_FLOWS, start: u32, len in LEN..70, jumps in prop::collection::vec(0u32..3, 1..40),
        ) {
            let write = |sequence| {
                let mut frame = vec![7; len];
                ShortSignature { run, flow, sequence }.write(&mut frame);
                frame
            };
            let (mut last, mut next) = (start, ShortSuccessor::of(&write(start)));
            for jump in jumps {
                let frame = write(last.wrapping_add(jump));
                prop_assert!(!next.is_in(&write(last)));
                let found = next.is_in(&frame);
                prop_assert!(!found || jump == 1);
                // Only where numbers run over is a successor not known.
                let known = last as u16 != 0xffff && frame[((len - LEN) & !1) + 6..][..2] != [0xff, 0xfe];
                prop_assert!(found || jump != 1 || !known);
                last = last.wrapping_add(jump);
                if !found {
                    next = ShortSuccessor::of(&frame);
                }
            }
        }
    }
}
